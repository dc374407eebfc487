//! Where do the representations of one word part that stands in several senses?

use burn::tensor::{Int, Tensor, TensorData};
use headlight_heads::HeadName;
use headlight_residual::{
    ActivationsError, AttentionSite, BlockSite, Edit, Edits, KeptTensor, Part, Probed, Site,
    token_tensor,
};
use rand::{SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use crate::{MeanCheck, mean_checks};

/// Orders of the labels that the null is made of.
const ORDERS: usize = 1000;

/// A word at the end of a context that decides its sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordInContext {
    /// The tokens up to the last one of the word.
    pub tokens: Vec<u32>,
    /// The sense, counted from 0.
    pub sense: usize,
    /// The position of the deciding word.
    pub cue: usize,
}

/// One word in contexts of several senses, at least two of each.
///
/// `d(i, j)` is the cosine distance of what stands at the word in contexts `i` and `j`. The
/// separation is `(mean of d over pairs of two senses − mean of d over pairs of one sense) / mean of d
/// over all pairs`: 0 where the senses say nothing.
pub struct Senses<'a> {
    pub(crate) model: &'a dyn Probed,
    pub(crate) contexts: &'a [WordInContext],
    /// `[context, pos]`, filled up behind the word, which sees nothing of it.
    pub(crate) rows: Tensor<2, Int>,
}

/// How far the senses are apart behind a layer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Separation {
    /// The layer.
    pub layer: usize,
    /// The mean cosine distance between contexts of one sense.
    pub within: f64,
    /// Between contexts of two.
    pub between: f64,
    /// The separation: tested by jackknife over contexts, among all layers.
    #[serde(flatten)]
    pub separation: MeanCheck,
    /// What the largest separation of any layer is below in 95 % of random orders of the senses.
    pub null: f64,
}

/// What a head brings to the separation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SenseHead {
    /// The head.
    pub head: HeadName,
    /// The mean weight from the word to the deciding word.
    pub weight: f64,
    /// What uniform attention gives it.
    pub uniform: f64,
    /// The separation that is lost if the head writes at the word what it writes there on average
    /// over all contexts: tested by jackknife over contexts, among all heads.
    #[serde(flatten)]
    pub lost: MeanCheck,
}

impl<'a> Senses<'a> {
    /// # Panics
    /// If there are not two senses with two contexts each, or a cue is no position.
    #[must_use]
    pub fn new(model: &'a dyn Probed, contexts: &'a [WordInContext]) -> Self {
        let count = |sense| {
            contexts
                .iter()
                .filter(|context| context.sense == sense)
                .count()
        };
        let senses = contexts
            .iter()
            .map(|context| context.sense)
            .max()
            .map_or(0, |last| last + 1);
        assert!(
            senses >= 2 && (0..senses).all(|sense| count(sense) >= 2),
            "senses"
        );
        assert!(
            contexts
                .iter()
                .all(|context| context.cue < context.tokens.len()),
            "cues"
        );
        let length = contexts
            .iter()
            .map(|context| context.tokens.len())
            .max()
            .unwrap_or(0);
        let mut rows = Vec::new();
        for context in contexts {
            let mut row = context.tokens.clone();
            row.resize(length, context.tokens[0]);
            rows.push(row);
        }
        Self {
            model,
            contexts,
            rows: token_tensor(&rows, &model.device()),
        }
    }

    /// The separation behind each layer.
    ///
    /// # Errors
    /// If the streams do not fit into memory.
    pub fn by_layer(&self, seed: u64) -> Result<Vec<Separation>, ActivationsError> {
        let mut layers = Vec::new();
        let count = self.model.sizes().layers.len();
        let sites: Vec<Site> = (0..count).map(stream_behind).collect();
        self.model
            .by_layer(self.rows.clone(), &sites, &mut |layer, seen| {
                layers.push(self.distances(seen.tensor::<3>(stream_behind(layer))));
                Ok(())
            })?;
        let labels: Vec<usize> = self.contexts.iter().map(|context| context.sense).collect();
        let null = largest_by_chance(&layers, labels.clone(), seed);
        let estimates: Vec<Vec<f64>> = layers
            .iter()
            .map(|distances| jackknife(labels.len(), |kept| distances.separation(&labels, kept)))
            .collect();
        let checks = mean_checks(&estimates);
        let mut separations = Vec::new();
        for (layer, (distances, separation)) in layers.iter().zip(checks).enumerate() {
            let [within, between] = distances.means(&labels, |_| true);
            separations.push(Separation {
                layer,
                within,
                between,
                separation,
                null,
            });
        }
        Ok(separations)
    }

    /// What every head up to `layer` brings to the separation behind it.
    ///
    /// # Errors
    /// If the activations of a layer do not fit into memory.
    pub fn heads(&self, layer: usize) -> Result<Vec<SenseHead>, ActivationsError> {
        let behind = stream_behind(layer);
        let labels: Vec<usize> = self.contexts.iter().map(|context| context.sense).collect();
        let untouched = self.model.activations(self.rows.clone(), &[behind])?;
        let untouched = self.distances(untouched.tensor::<3>(behind));
        let (mut heads, mut weights, mut lost) = (Vec::new(), Vec::new(), Vec::new());
        let sites_of = |at| {
            [
                Site::Block(at, BlockSite::ResidPre),
                Site::Attention(at, AttentionSite::Pattern),
                Site::Attention(at, AttentionSite::Z),
            ]
        };
        let sites: Vec<Site> = (0..=layer).flat_map(sites_of).collect();
        self.model
            .by_layer(self.rows.clone(), &sites, &mut |at, seen| {
                let [before, pattern, blends] = sites_of(at);
                let to_mean = self.to_mean_at_word(seen.tensor::<4>(blends));
                let pattern = seen.tensor::<4>(pattern);
                for head in 0..pattern.dims()[1] {
                    let add = Edit::Add(KeptTensor::from(to_mean.clone()));
                    let mut edits = Edits::default().part(blends, Part::heads(&[head]), add);
                    let without = self.model.activations_from(
                        at,
                        self.rows.clone(),
                        seen.tensor::<3>(before),
                        &[behind],
                        &mut edits,
                    )?;
                    let without = self.distances(without.tensor::<3>(behind));
                    let loss = |kept: &dyn Fn(usize) -> bool| {
                        untouched.separation(&labels, kept) - without.separation(&labels, kept)
                    };
                    lost.push(jackknife(labels.len(), loss));
                    weights.push(self.weight_on_cue(&pattern, head));
                    heads.push(HeadName { layer: at, head });
                }
                Ok(())
            })?;
        let uniform = self
            .contexts
            .iter()
            .map(|context| 1.0 / context.tokens.len() as f64);
        let uniform = uniform.sum::<f64>() / self.contexts.len() as f64;
        let mut found = Vec::new();
        for ((head, weight), lost) in heads.into_iter().zip(weights).zip(mean_checks(&lost)) {
            found.push(SenseHead {
                head,
                weight,
                uniform,
                lost,
            });
        }
        Ok(found)
    }

    /// What has to be added to `z`, `[context, pos, head, d_head]`, so that every head has at the word
    /// its mean over the contexts there.
    fn to_mean_at_word(&self, z: Tensor<4>) -> Tensor<4> {
        let [contexts, length, heads, d_head] = z.dims();
        let device = z.device();
        let mut is_word = vec![0.0f32; contexts * length];
        for (index, context) in self.contexts.iter().enumerate() {
            is_word[index * length + context.tokens.len() - 1] = 1.0;
        }
        let is_word = TensorData::new(is_word, [contexts, length, 1, 1]);
        let is_word = Tensor::<4>::from_data(is_word, &device);
        let at_word = (z.clone() * is_word.clone()).sum_dim(1); // [contexts, 1, heads, d_head]
        let mean = at_word
            .mean_dim(0)
            .expand([contexts, length, heads, d_head]);
        (mean - z) * is_word
    }

    /// The mean weight of a head from the word to the deciding word; pattern `[context, head, query,
    /// key]`.
    fn weight_on_cue(&self, pattern: &Tensor<4>, head: usize) -> f64 {
        let mut sum = 0.0;
        for (index, context) in self.contexts.iter().enumerate() {
            let (word, cue) = (context.tokens.len() - 1, context.cue);
            let weight = pattern.clone().slice([
                index..index + 1,
                head..head + 1,
                word..word + 1,
                cue..cue + 1,
            ]);
            sum += f64::from(weight.into_scalar::<f32>());
        }
        sum / self.contexts.len() as f64
    }

    /// The distances between what stands at the word; stream `[context, pos, d_model]`.
    fn distances(&self, stream: Tensor<3>) -> Distances {
        let at_word = at_each_word(&stream, self.contexts);
        let at_word: Vec<&[f32]> = at_word.iter().map(Vec::as_slice).collect();
        Distances::of(&at_word)
    }
}

/// What a stream `[context, pos, d_model]` holds at the word of each context.
pub(crate) fn at_each_word(stream: &Tensor<3>, contexts: &[WordInContext]) -> Vec<Vec<f32>> {
    let [_, length, width] = stream.dims();
    let numbers: Vec<f32> = stream.to_data().iter::<f32>().collect();
    let mut at_word = Vec::new();
    for (index, context) in contexts.iter().enumerate() {
        let first = (index * length + context.tokens.len() - 1) * width;
        at_word.push(numbers[first..first + width].to_vec());
    }
    at_word
}

pub(crate) fn stream_behind(layer: usize) -> Site {
    Site::Block(layer, BlockSite::ResidPost)
}

/// `[i][j]`: cosine distances.
struct Distances(Vec<Vec<f64>>);

impl Distances {
    fn of(vectors: &[&[f32]]) -> Self {
        let product = |a: &[f32], b: &[f32]| -> f64 {
            let products = a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b));
            products.sum()
        };
        let norms: Vec<f64> = vectors.iter().map(|v| product(v, v).sqrt()).collect();
        let mut distances = Vec::new();
        for (a, norm_a) in vectors.iter().zip(&norms) {
            let of_row = vectors.iter().zip(&norms);
            let distance = of_row.map(|(b, norm_b)| 1.0 - product(a, b) / (norm_a * norm_b));
            distances.push(distance.collect());
        }
        Self(distances)
    }

    /// The mean distance within a sense and between senses, of the contexts that are kept.
    fn means(&self, labels: &[usize], kept: impl Fn(usize) -> bool) -> [f64; 2] {
        let (mut sums, mut counts) = ([0.0; 2], [0.0; 2]);
        for i in 0..labels.len() {
            for j in 0..i {
                if kept(i) && kept(j) {
                    let kind = usize::from(labels[i] != labels[j]);
                    sums[kind] += self.0[i][j];
                    counts[kind] += 1.0;
                }
            }
        }
        [sums[0] / counts[0], sums[1] / counts[1]]
    }

    fn separation(&self, labels: &[usize], kept: impl Fn(usize) -> bool) -> f64 {
        let (mut sum, mut count) = (0.0, 0.0);
        for i in 0..labels.len() {
            for j in 0..i {
                if kept(i) && kept(j) {
                    sum += self.0[i][j];
                    count += 1.0;
                }
            }
        }
        let [within, between] = self.means(labels, kept);
        let all = sum / count;
        // Contexts that the model does not tell apart at all have no separation.
        if all > 1e-9 {
            (between - within) / all
        } else {
            0.0
        }
    }
}

/// The pseudo-values of a statistic over `count` contexts (Efron & Tibshirani 1993, chapter 11): their
/// mean is its estimate, and their deviation says how sure it is.
fn jackknife(count: usize, statistic: impl Fn(&dyn Fn(usize) -> bool) -> f64) -> Vec<f64> {
    let (n, whole) = (count as f64, statistic(&|_| true));
    let without = |left_out: usize| statistic(&|index| index != left_out);
    let pseudo = |left_out| n * whole - (n - 1.0) * without(left_out);
    (0..count).map(pseudo).collect()
}

/// What the largest separation of any layer is below in 95 % of random orders of the labels.
fn largest_by_chance(layers: &[Distances], mut labels: Vec<usize>, seed: u64) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut largest = Vec::new();
    for _ in 0..ORDERS {
        labels.shuffle(&mut rng);
        let separations = layers
            .iter()
            .map(|layer| layer.separation(&labels, |_| true));
        largest.push(separations.fold(f64::NEG_INFINITY, f64::max));
    }
    largest.sort_by(f64::total_cmp);
    largest[ORDERS * 95 / 100]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_of_two_senses_are_apart_and_their_order_by_chance_is_not() {
        // At right angles between senses, equal within.
        let (a, b): ([f32; 2], [f32; 2]) = ([1.0, 0.0], [0.0, 2.0]);
        let distances = Distances::of(&[&a, &a, &b, &b]);
        let labels = [0, 0, 1, 1];
        assert_eq!(distances.means(&labels, |_| true), [0.0, 1.0]);
        // Four of six pairs are of two senses.
        assert!((distances.separation(&labels, |_| true) - 1.5).abs() < 1e-12);
        let mixed = [0, 1, 0, 1];
        assert!(distances.separation(&mixed, |_| true) < 0.0);
        let alike = Distances::of(&[&a, &a, &a, &a]);
        assert_eq!(alike.separation(&labels, |_| true), 0.0);
    }

    #[test]
    fn the_jackknife_of_a_mean_is_the_values_themselves() {
        let values = [3.0, 5.0, 10.0];
        let mean = |kept: &dyn Fn(usize) -> bool| {
            let kept: Vec<f64> = (0..3).filter(|&i| kept(i)).map(|i| values[i]).collect();
            kept.iter().sum::<f64>() / kept.len() as f64
        };
        let pseudo = jackknife(3, mean);
        assert!(
            pseudo
                .iter()
                .zip(values)
                .all(|(a, b)| (a - b).abs() < 1e-12)
        );
    }
}
