//! A head taken apart: its queries, keys and values as sums of what each part of the model wrote.

use burn::tensor::Tensor;
use headlight_heads::HeadName;
use headlight_residual::{ActivationsError, Probed};

use super::{
    Ingredient,
    moved::toward_tokens,
    stream_reader::{ReadBatch, StreamReader},
};

/// A head on some sequences, whose queries, keys and values are taken apart into what they are made
/// of.
///
/// With the scales of the norms held as they were in the pass, `q(i) = Σ_a q_a(i)` and
/// `k(j) = Σ_b k_b(j)`. For a source `a` of the stream with the output `c_a`,
/// `q_a(i) = (gain·(c_a(i) − mean c_a(i))/σ(i))·W_Q`, turned to position `i` by rotary positions; RMS
/// norm takes no mean off. The bias of the norm, `b_Q` and `b_K` are ingredients of their own. With
/// QK-norm its scale is held too. The score before the softcap is then a sum of terms:
///
/// `score(i, j) = Σ_a Σ_b q_a(i)·k_b(j)ᵀ·scale`
///
/// A position bias (`ALiBi`, relative bias) is added to it.
#[derive(Debug, Clone)]
pub struct OpenedHead {
    pub(super) head: HeadName,
    pub(super) queries: Vec<Ingredient>,
    pub(super) keys: Vec<Ingredient>,
    pub(super) values: Vec<Ingredient>,
    pub(super) scale: f64,
    /// `[query, key]`
    pub(super) position_bias: Option<Vec<f32>>,
    pub(super) tokens: Vec<Vec<u32>>,
    pub(super) sequences: Vec<OpenedSequence>,
    /// `[token, d_value]`: what a value, times its weight, adds to the logit of each token above the
    /// mean logit, before the scales of the norms divide. `None` if the model gives no readout.
    pub(super) toward: Option<Vec<f32>>,
}

/// One sequence; numbers stand row by row.
#[derive(Debug, Clone)]
pub(super) struct OpenedSequence {
    /// `[query, key]`: as the model computed them, after softcap and position bias.
    pub scores: Vec<f32>,
    /// `[query, key]`
    pub pattern: Vec<f32>,
    /// `[ingredient, query, d_head]`: the mean over queries taken off; the last ingredient is this
    /// mean.
    pub queries: Vec<f32>,
    /// `[ingredient, key, d_head]`
    pub keys: Vec<f32>,
    /// `[ingredient, key, d_value]`
    pub values: Vec<f32>,
    /// `[query]`: by what the norms behind the head divide.
    pub divisors: Vec<f32>,
}

/// The terms of one score.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoreTerms {
    /// What the query is made of.
    pub queries: Vec<Ingredient>,
    /// What the key is made of.
    pub keys: Vec<Ingredient>,
    /// `[query ingredient, key ingredient]`, row by row.
    pub terms: Vec<f64>,
    /// What the position adds, after the softcap.
    pub position_bias: f64,
}

impl ScoreTerms {
    /// The score before softcap and position bias.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.terms.iter().sum()
    }

    /// `Σ|terms|`, with the position bias.
    #[must_use]
    pub fn sizes(&self) -> f64 {
        let terms = self.terms.iter().map(|term| term.abs());
        terms.sum::<f64>() + self.position_bias.abs()
    }
}

impl OpenedHead {
    /// Runs `model` over sequences of one length. The first `start` tokens of each are no queries of
    /// the mean.
    ///
    /// `None` if the stream that the head reads is not a sum, as in a post-norm model.
    ///
    /// # Errors
    /// If the model does not give its attention, or the activations do not fit into memory.
    ///
    /// # Panics
    /// If there is no such head, or there are no sequences.
    pub fn of(
        model: &dyn Probed,
        head: HeadName,
        tokens: &[Vec<u32>],
        start: usize,
    ) -> Result<Option<Self>, ActivationsError> {
        let Some(reader) = StreamReader::of(model, head)? else {
            return Ok(None);
        };
        let length = tokens[0].len();
        let mut queries_of = Vec::new();
        let mut sequences = Vec::new();
        let mut written = Vec::new();
        for some in reader.at_once(tokens) {
            let read = reader.read(some)?;
            queries_of.push(read.queries());
            sequences.extend(opened(&read, &read.keys(), &read.values()));
            written.clone_from(&read.ingredients);
        }
        let queries = Tensor::cat(queries_of, 0); // [sequence, ingredient, query, d_head]
        let mean = queries
            .clone()
            .narrow(2, start, length - start)
            .mean_dim(0)
            .mean_dim(2); // [1, ingredient, 1, d_head]
        let every = mean.clone().sum_dim(1).repeat_dim(2, length); // [1, 1, query, d_head]
        let every = reader.layer.turned(every).repeat_dim(0, tokens.len());
        let own = reader.layer.turned(queries - mean);
        let of_sequence = rows(Tensor::cat(vec![own, every], 1));
        for (sequence, queries) in sequences.iter_mut().zip(of_sequence) {
            sequence.queries = queries;
        }
        let with_bias = |has_bias: bool| {
            let bias = has_bias.then_some(Ingredient::Bias);
            written.iter().copied().chain(bias).collect::<Vec<_>>()
        };
        let matrices = &reader.matrices;
        let mut queries = with_bias(matrices.query.1.is_some());
        queries.push(Ingredient::EveryQuery);
        let position_bias = reader.layer.position_bias(head.head, length);
        Ok(Some(Self {
            head,
            queries,
            keys: with_bias(matrices.key.1.is_some()),
            values: with_bias(matrices.value.1.is_some()),
            scale: reader.layer.scale(),
            position_bias: position_bias.map(numbers),
            tokens: tokens.to_vec(),
            sequences,
            toward: toward_tokens(model, &reader.layer, head.head),
        }))
    }

    /// The terms of the score of one cell.
    ///
    /// # Panics
    /// If there is no such sequence, query or key.
    #[must_use]
    pub fn score_terms(&self, sequence: usize, query: usize, key: usize) -> ScoreTerms {
        let mut coefficients = vec![0.0; self.length()];
        coefficients[key] = 1.0;
        self.terms(sequence, query, &coefficients)
    }

    /// The score of a cell as the model computed it, after softcap and position bias; −∞ where it is
    /// masked.
    ///
    /// # Panics
    /// If there is no such sequence, query or key.
    #[must_use]
    pub fn score(&self, sequence: usize, query: usize, key: usize) -> f64 {
        f64::from(self.scores(sequence, query)[key])
    }

    /// The attention weight of a cell.
    ///
    /// # Panics
    /// If there is no such sequence, query or key.
    #[must_use]
    pub fn weight(&self, sequence: usize, query: usize, key: usize) -> f64 {
        f64::from(self.sequences[sequence].pattern[query * self.length() + key])
    }

    /// `[sequence, query, key]`: the attention weights, row by row.
    #[must_use]
    pub fn weights(&self) -> Vec<f32> {
        let pattern = |opened: &OpenedSequence| opened.pattern.clone();
        self.sequences.iter().flat_map(pattern).collect()
    }

    /// The scores of one query.
    pub(super) fn scores(&self, sequence: usize, query: usize) -> &[f32] {
        &self.sequences[sequence].scores[query * self.length()..][..self.length()]
    }

    /// The terms of a sum of scores of one query, each with its coefficient.
    pub(super) fn terms(&self, sequence: usize, query: usize, coefficients: &[f64]) -> ScoreTerms {
        let length = self.length();
        let opened = &self.sequences[sequence];
        let blends = blends(&opened.keys, self.keys.len(), coefficients);
        let terms = self.products(opened, query, &blends);
        let position_bias = self.position_bias.as_ref().map_or(0.0, |bias| {
            let row = &bias[query * length..][..length];
            dot(row, coefficients)
        });
        ScoreTerms {
            queries: self.queries.clone(),
            keys: self.keys.clone(),
            terms,
            position_bias,
        }
    }

    /// `[query ingredient, key ingredient]`: the products of a query with blends of keys.
    pub(super) fn products(
        &self,
        opened: &OpenedSequence,
        query: usize,
        blends: &[Vec<f64>],
    ) -> Vec<f64> {
        let d_head = blends[0].len();
        let mut terms = Vec::with_capacity(self.queries.len() * blends.len());
        for ingredient in 0..self.queries.len() {
            let at = ingredient * self.length() + query;
            let row = &opened.queries[at * d_head..][..d_head];
            terms.extend(blends.iter().map(|blend| self.scale * dot(row, blend)));
        }
        terms
    }

    pub(super) fn d_head(&self) -> usize {
        self.sequences[0].queries.len() / (self.queries.len() * self.length())
    }

    pub(super) fn length(&self) -> usize {
        self.tokens[0].len()
    }
}

/// `[ingredient][width]`: the sum over positions of numbers `[ingredient, position, width]`, each
/// position with its coefficient.
pub(super) fn blends(numbers: &[f32], ingredients: usize, coefficients: &[f64]) -> Vec<Vec<f64>> {
    let width = numbers.len() / ingredients / coefficients.len();
    let mut blends = Vec::with_capacity(ingredients);
    for rows in numbers.chunks(coefficients.len() * width) {
        let mut blend = vec![0.0; width];
        for (row, &coefficient) in rows.chunks(width).zip(coefficients) {
            if coefficient != 0.0 {
                for (sum, &number) in blend.iter_mut().zip(row) {
                    *sum += coefficient * f64::from(number);
                }
            }
        }
        blends.push(blend);
    }
    blends
}

pub(super) fn dot(row: &[f32], other: &[f64]) -> f64 {
    row.iter().zip(other).map(|(a, b)| f64::from(*a) * b).sum()
}

/// The sequences of a pass; their queries come when the mean of all is known.
fn opened(read: &ReadBatch, keys: &Tensor<4>, values: &Tensor<4>) -> Vec<OpenedSequence> {
    let [scores, pattern] = read.scores_and_pattern().map(rows);
    let (keys, values) = (rows(keys.clone()), rows(values.clone()));
    let divisors = rows(read.divisors());
    let mut sequences = Vec::new();
    for (index, scores) in scores.into_iter().enumerate() {
        sequences.push(OpenedSequence {
            scores,
            pattern: pattern[index].clone(),
            queries: Vec::new(),
            keys: keys[index].clone(),
            values: values[index].clone(),
            divisors: divisors[index].clone(),
        });
    }
    sequences
}

/// The numbers of each sequence, row by row; the first axis counts sequences.
pub(super) fn rows<const D: usize>(tensor: Tensor<D>) -> Vec<Vec<f32>> {
    let sequences = tensor.dims()[0];
    let numbers = numbers(tensor);
    let size = numbers.len() / sequences;
    numbers.chunks(size).map(<[f32]>::to_vec).collect()
}

fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}
