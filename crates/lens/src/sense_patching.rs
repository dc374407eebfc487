//! Which heads bring its sense to a word? Each head is patched at the word with what it writes there
//! where another word decides.

use burn::tensor::Tensor;
use headlight_heads::HeadName;
use headlight_residual::{
    Activations, ActivationsError, AttentionSite, BlockSite, Edit, Edits, KeptTensor, Part,
    Readout, Site,
};

use crate::{
    Senses,
    ablation::by_layer,
    senses::{at_each_word, stream_behind},
};

/// Contexts of a word in pairs that differ in the deciding word, and so in the sense.
///
/// At the word of context `i`, a head is patched with what it writes at the word of its partner `j`.
/// What stands at the word, `v_i`, becomes `v'`, and moves by the share
/// `⟨v' − v_i, v_j − v_i⟩ / ‖v_j − v_i‖²`: 0 if nothing changes, 1 if it becomes that of the partner
/// (activation patching; Meng et al. 2022, section 2). `v` is the stream behind a layer, or the logits
/// of the next token less their mean, which softmax does not see. Both directions of a pair are one
/// number, their mean.
pub struct SensePatching<'a> {
    senses: &'a Senses<'a>,
    pairs: Vec<[usize; 2]>,
    /// The layer behind which the stream is read.
    layer: usize,
    /// Where the stream stands as the readout reads it.
    last: Site,
    readout: Readout,
    untouched: AtWord,
}

/// What stands at the word of each context.
struct AtWord {
    stream: Vec<Vec<f32>>,
    logits: Vec<Vec<f32>>,
}

/// How far patched heads move each pair of contexts towards each other.
#[derive(Debug, Clone, PartialEq)]
pub struct SenseMoves {
    /// The share of the stream, by pair.
    pub stream: Vec<f64>,
    /// The share of the logits of the next token, by pair.
    pub next_token: Vec<f64>,
}

impl<'a> SensePatching<'a> {
    /// Runs the model over the contexts. The stream is read behind `layer`. `None` if the model does
    /// not say how logits are read.
    ///
    /// # Errors
    /// If the streams do not fit into memory.
    ///
    /// # Panics
    /// If a pair names a context that does not exist.
    pub fn new(
        senses: &'a Senses<'a>,
        pairs: &[[usize; 2]],
        layer: usize,
    ) -> Result<Option<Self>, ActivationsError> {
        let contexts = senses.contexts.len();
        assert!(
            pairs.iter().flatten().all(|&context| context < contexts),
            "pairs of {contexts} contexts"
        );
        let last = senses.model.stream_sites().last().copied();
        let (Some(last), Some(readout)) = (last, senses.model.readout()) else {
            return Ok(None);
        };
        let mut patching = Self {
            senses,
            pairs: pairs.to_vec(),
            layer,
            last,
            readout,
            untouched: AtWord {
                stream: Vec::new(),
                logits: Vec::new(),
            },
        };
        let [behind, last] = patching.read_at();
        let seen = senses
            .model
            .activations(senses.rows.clone(), &distinct(&[behind, last]))?;
        patching.untouched = patching.at_word(&seen);
        Ok(Some(patching))
    }

    /// The mean of `2·‖v_j − v_i‖ / (‖v_i‖ + ‖v_j‖)` over pairs, of the stream and of the logits: 0
    /// where the deciding word changes nothing.
    #[must_use]
    pub fn apart(&self) -> [f64; 2] {
        let AtWord { stream, logits } = &self.untouched;
        [stream, logits].map(|vectors| {
            let apart = |&[i, j]: &[usize; 2]| {
                let difference = minus(&vectors[j], &vectors[i]);
                2.0 * norm(&difference) / (norm(&vectors[i]) + norm(&vectors[j]))
            };
            self.pairs.iter().map(apart).sum::<f64>() / self.pairs.len() as f64
        })
    }

    /// Each of these heads alone, in the order of layers. `done` hears of each head.
    ///
    /// # Errors
    /// If the activations of a layer do not fit into memory.
    pub fn each(
        &self,
        heads: &[HeadName],
        done: &mut dyn FnMut(HeadName),
    ) -> Result<Vec<(HeadName, SenseMoves)>, ActivationsError> {
        let model = self.senses.model;
        let wanted = by_layer(heads);
        let sites: Vec<Site> = wanted
            .keys()
            .flat_map(|&layer| before_and_z(layer))
            .collect();
        let mut moves = Vec::new();
        model.by_layer(self.senses.rows.clone(), &sites, &mut |layer, seen| {
            let Some(of_layer) = wanted.get(&layer) else {
                return Ok(());
            };
            let [before, blends] = before_and_z(layer);
            let other = KeptTensor::from(self.with_those_of_partners(seen.tensor::<4>(blends)));
            for &head in of_layer {
                let patch = Edit::Replace(other.clone());
                let mut edits = Edits::default().part(blends, Part::heads(&[head]), patch);
                let patched = model.activations_from(
                    layer,
                    self.senses.rows.clone(),
                    seen.tensor::<3>(before),
                    &self.read_from(layer),
                    &mut edits,
                )?;
                let head = HeadName { layer, head };
                moves.push((head, self.moves(&patched)));
                done(head);
            }
            Ok(())
        })?;
        Ok(moves)
    }

    /// All these heads together.
    ///
    /// # Errors
    /// If the activations do not fit into memory.
    pub fn together(&self, heads: &[HeadName]) -> Result<SenseMoves, ActivationsError> {
        let (model, rows) = (self.senses.model, &self.senses.rows);
        let wanted = by_layer(heads);
        let blends: Vec<Site> = wanted.keys().map(|&layer| before_and_z(layer)[1]).collect();
        let seen = model.activations(rows.clone(), &blends)?;
        let mut edits = Edits::default();
        for (&site, of_layer) in blends.iter().zip(wanted.values()) {
            let other = self.with_those_of_partners(seen.tensor::<4>(site));
            edits = edits.part(site, Part::heads(of_layer), Edit::Replace(other.into()));
        }
        let patched = model.activations_probed(rows.clone(), &self.read_from(0), &mut edits)?;
        Ok(self.moves(&patched))
    }

    /// The sites at which the stream and the logits are read.
    fn read_at(&self) -> [Site; 2] {
        [stream_behind(self.layer), self.last]
    }

    /// Those of them that a change in `layer` can reach.
    fn read_from(&self, layer: usize) -> Vec<Site> {
        let [behind, last] = self.read_at();
        if layer > self.layer {
            vec![last]
        } else {
            distinct(&[behind, last])
        }
    }

    /// What heads write, `[context, pos, head, d_head]`, with that of the partner at the word. Before
    /// the word, nothing that is patched there is seen.
    fn with_those_of_partners(&self, z: Tensor<4>) -> Tensor<4> {
        let [_, _, heads, d_head] = z.dims();
        let word = |context: usize| self.senses.contexts[context].tokens.len() - 1;
        let mut patched = z.clone();
        for &[i, j] in &self.pairs {
            for [to, from] in [[i, j], [j, i]] {
                let [at, there] = [to, from].map(|context| {
                    let word = word(context);
                    [context..context + 1, word..word + 1, 0..heads, 0..d_head]
                });
                patched = patched.slice_assign(at, z.clone().slice(there));
            }
        }
        patched
    }

    fn moves(&self, seen: &Activations) -> SenseMoves {
        let now = self.at_word(seen);
        let before = &self.untouched;
        SenseMoves {
            stream: self.shares(&before.stream, &now.stream),
            next_token: self.shares(&before.logits, &now.logits),
        }
    }

    /// What stands at the word; nothing of a stream that was not kept, which no change reached.
    fn at_word(&self, seen: &Activations) -> AtWord {
        let [behind, last] = self.read_at();
        let contexts = self.senses.contexts;
        let stream = match seen.get::<3>(behind) {
            Some(stream) => at_each_word(&stream, contexts),
            None => self.untouched.stream.clone(),
        };
        let mut logits = Vec::new();
        for row in at_each_word(&seen.tensor::<3>(last), contexts) {
            let row = Tensor::<1>::from_floats(&row[..], &self.senses.model.device());
            let of_row = self.readout.logits(row.unsqueeze());
            let mean = of_row.clone().mean_dim(2);
            logits.push((of_row - mean).into_data().iter::<f32>().collect());
        }
        AtWord { stream, logits }
    }

    /// The share that each pair moves, the mean of both directions.
    fn shares(&self, before: &[Vec<f32>], now: &[Vec<f32>]) -> Vec<f64> {
        let share = |to: usize, from: usize| {
            let whole = minus(&before[from], &before[to]);
            let moved = minus(&now[to], &before[to]);
            let size = product(&whole, &whole);
            // Contexts that the model does not tell apart cannot move.
            if size > 0.0 {
                product(&moved, &whole) / size
            } else {
                0.0
            }
        };
        let of_pair = |&[i, j]: &[usize; 2]| f64::midpoint(share(i, j), share(j, i));
        self.pairs.iter().map(of_pair).collect()
    }
}

fn before_and_z(layer: usize) -> [Site; 2] {
    [
        Site::Block(layer, BlockSite::ResidPre),
        Site::Attention(layer, AttentionSite::Z),
    ]
}

/// Each site once.
fn distinct(sites: &[Site; 2]) -> Vec<Site> {
    let mut sites = sites.to_vec();
    sites.dedup();
    sites
}

fn minus(a: &[f32], b: &[f32]) -> Vec<f64> {
    let pairs = a.iter().zip(b);
    pairs.map(|(a, b)| f64::from(*a) - f64::from(*b)).collect()
}

fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn norm<T: Copy + Into<f64>>(vector: &[T]) -> f64 {
    let squares = vector.iter().map(|&x| x.into() * x.into());
    squares.sum::<f64>().sqrt()
}
