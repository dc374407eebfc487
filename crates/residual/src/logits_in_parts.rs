//! Logits of some positions after the other: those of a large vocabulary are never all in memory.

use std::ops::Range;

use burn::tensor::Tensor;
use headlight_ops::{NextTokenScores, linear};

use crate::{Targets, readout::softcapped};

/// The logits that are computed at once: 64 MiB.
const AT_ONCE: usize = 1 << 24;

/// `stream·W_U + b_U`, capped if the model has a cap, of some positions after the other, with these
/// positions.
pub(crate) fn logits_in_parts(
    stream: Tensor<3>,
    w_u: Tensor<2>,
    b_u: Option<Tensor<1>>,
    cap: Option<f64>,
) -> impl Iterator<Item = (Range<usize>, Tensor<3>)> {
    let [rows, positions, _] = stream.dims();
    let [_, vocabulary] = w_u.dims();
    let at_once = (AT_ONCE / (rows * vocabulary).max(1)).max(1);
    (0..positions).step_by(at_once).map(move |first| {
        let part = first..positions.min(first + at_once);
        let stream = stream.clone().narrow(1, first, part.len());
        let logits = linear(stream, w_u.clone(), b_u.clone());
        (part, softcapped(logits, cap))
    })
}

/// The scores of targets, of each of which `parts` computes the logits of some positions of a stream
/// after the other. Where nobody asks, no logits are computed.
pub(crate) fn next_token_scores<P>(
    stream: &Tensor<3>,
    targets: &Targets,
    parts: impl Fn(Tensor<3>) -> P,
) -> NextTokenScores
where
    P: Iterator<Item = (Range<usize>, Tensor<3>)>,
{
    targets.scores_of(stream, |stream, targets| {
        let mut scores = Vec::new();
        for (positions, logits) in parts(stream.clone()) {
            let targets = targets.some_outputs(positions.start, positions.len());
            scores.push(targets.scores(logits));
        }
        NextTokenScores::joined(scores)
    })
}
