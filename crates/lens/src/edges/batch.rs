//! Pairs of prompts that go through a model together.

use std::ops::Range;

use burn::tensor::{Device, Int, Tensor, activation::log_softmax};
use headlight_heads::Metric;
use headlight_residual::{Activations, Readout, token_tensor};

use super::{EdgeGraph, graph::Sources};
use crate::PromptPair;

/// Pairs of prompts as tensors.
#[derive(Debug, Clone)]
pub(super) struct Batch {
    /// Which of all pairs these are.
    pub range: Range<usize>,
    /// `[pairs, pos]`
    pub clean: Tensor<2, Int>,
    /// `[pairs, pos]`
    pub corrupted: Tensor<2, Int>,
    /// `[pairs, 1]`
    answers: Tensor<2, Int>,
    /// `[pairs, 1]`
    wrongs: Tensor<2, Int>,
    /// Of the last token of each prompt.
    positions: Vec<usize>,
    /// The log-probabilities of the clean run, `[pairs, vocabulary]`, where the metric needs them.
    log_clean: Option<Tensor<2>>,
}

impl Batch {
    /// Shorter prompts are filled up at their ends, which no answer of a causal model sees.
    pub fn new(pairs: &[PromptPair], range: Range<usize>, device: &Device) -> Self {
        let pairs = &pairs[range.clone()];
        let length = pairs.iter().map(|pair| pair.clean.len()).max().unwrap_or(0);
        let filled = |prompt: fn(&PromptPair) -> &Vec<u32>| {
            let row = |pair| {
                let mut row = prompt(pair).clone();
                row.resize(length, 0);
                row
            };
            token_tensor(&pairs.iter().map(row).collect::<Vec<_>>(), device)
        };
        let column = |token: fn(&PromptPair) -> u32| {
            let rows: Vec<[u32; 1]> = pairs.iter().map(|pair| [token(pair)]).collect();
            token_tensor(&rows, device)
        };
        Self {
            range,
            clean: filled(|pair| &pair.clean),
            corrupted: filled(|pair| &pair.corrupted),
            answers: column(|pair| pair.answer),
            wrongs: column(|pair| pair.wrong),
            positions: pairs.iter().map(|pair| pair.clean.len() - 1).collect(),
            log_clean: None,
        }
    }

    /// The number of pairs.
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Remembers what the metric compares with.
    pub fn remember_clean(&mut self, readout: &Readout, stream: Tensor<3>) {
        self.log_clean = Some(log_softmax(self.logits(readout, stream), 1));
    }

    /// The metric of every row of a stream. Row `copy·pairs + pair` belongs to this pair.
    ///
    /// # Shapes
    /// - stream, at the last site: `[copies·pairs, pos, d_model]`
    /// - output: `[copies·pairs]`
    pub fn metric(&self, metric: Metric, readout: &Readout, stream: Tensor<3>) -> Tensor<1> {
        let logits = self.logits(readout, stream); // [rows, vocabulary]
        let copies = logits.dims()[0] / self.len();
        let of = |numbers: &Tensor<2>, tokens: &Tensor<2, Int>| {
            let tokens = tokens.clone().repeat_dim(0, copies);
            numbers.clone().gather(1, tokens).squeeze_dim::<1>(1)
        };
        match (metric, &self.log_clean) {
            (Metric::LogitDifference, _) => of(&logits, &self.answers) - of(&logits, &self.wrongs),
            (Metric::Kl, Some(clean)) => {
                let clean = clean.clone().repeat_dim(0, copies);
                let lost = clean.clone() - log_softmax(logits, 1);
                (clean.exp() * lost).sum_dim(1).squeeze_dim(1)
            }
            (Metric::Loss | Metric::Kl, _) => of(&log_softmax(logits, 1), &self.answers).neg(),
        }
    }

    /// The logits at the position of each row's answer, `[rows, vocabulary]`.
    pub fn logits(&self, readout: &Readout, stream: Tensor<3>) -> Tensor<2> {
        let [rows, length, d_model] = stream.dims();
        let asked: Vec<i32> = (0..rows)
            .map(|row| (row * length + self.positions[row % self.len()]) as i32)
            .collect();
        let asked = Tensor::<1, Int>::from_ints(asked.as_slice(), &stream.device());
        let stream = stream.reshape([rows * length, d_model]).select(0, asked);
        let logits = readout.logits(stream.unsqueeze_dim::<3>(0)); // [1, rows, vocabulary]
        logits.squeeze_dim(0)
    }
}

/// What the sources of a graph wrote in a pass: for each site `[batch, sources, pos·d_model]`.
pub(super) fn written(graph: &EdgeGraph, seen: &Activations) -> Vec<Tensor<3>> {
    let of_site = |sources: &Sources| written_at(sources, seen);
    graph.sources.iter().map(of_site).collect()
}

pub(super) fn written_at(sources: &Sources, seen: &Activations) -> Tensor<3> {
    match sources.site.head_axis() {
        Some(_) => by_source(seen.tensor::<4>(sources.site)),
        None => one_source(seen.tensor::<3>(sources.site)),
    }
}

/// `[batch, pos, source, d_model]` as `[batch, source, pos·d_model]`.
pub(super) fn by_source(written: Tensor<4>) -> Tensor<3> {
    let [batch, positions, sources, d_model] = written.dims();
    let written = written.swap_dims(1, 2); // [batch, source, pos, d_model]
    written.reshape([batch, sources, positions * d_model])
}

/// `[batch, pos, d_model]` as `[batch, 1, pos·d_model]`.
pub(super) fn one_source(written: Tensor<3>) -> Tensor<3> {
    let [batch, positions, d_model] = written.dims();
    written.reshape([batch, 1, positions * d_model])
}

pub(super) fn numbers(tensor: Tensor<1>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}
