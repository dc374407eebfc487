//! Softmax and the loss in one pass over the logits; backward in another. No copy of the logits is
//! kept.

use burn::{backend::flex::FlexTensor, tensor::DType, tensor::Shape};
use headlight_vector::{Kernel, Simd, exp, exp_and_sum, max_of, vectorised};
use rayon::prelude::*;

use super::{ROWS, numbers, shaped, width};

/// The tensors that forward saved: the logits, and `ln Σ exp` of each row.
#[derive(Debug, Clone)]
pub(crate) struct Saved {
    pub logits: FlexTensor,
    pub targets: std::sync::Arc<Vec<usize>>,
    pub weights: FlexTensor,
    pub log_sums: std::sync::Arc<Vec<f32>>,
}

pub(crate) fn targets_of(targets: &FlexTensor, vocabulary: usize) -> Vec<usize> {
    let (from, count) = (
        targets.layout().start_offset(),
        targets.layout().num_elements(),
    );
    let ids: Vec<i64> = match targets.dtype() {
        DType::I64 => targets.storage::<i64>()[from..][..count].to_vec(),
        DType::I32 => targets.storage::<i32>()[from..][..count]
            .iter()
            .map(|&id| i64::from(id))
            .collect(),
        other => panic!("targets of dtype {other:?}"),
    };
    let checked = |id: i64| {
        let index = usize::try_from(id).ok().filter(|&index| index < vocabulary);
        index.unwrap_or_else(|| panic!("target {id} is outside the vocabulary of {vocabulary}"))
    };
    ids.into_iter().map(checked).collect()
}

/// The summed loss `[1]` and each row's log-sum.
pub(crate) fn forward(
    logits: &FlexTensor,
    targets: &[usize],
    weights: &FlexTensor,
) -> (FlexTensor, Vec<f32>) {
    let vocabulary = width(logits);
    let (numbers, weights) = (numbers(logits), numbers(weights));
    let mut log_sums = vec![0.0; targets.len()];
    let blocks: Vec<f64> = numbers
        .par_chunks(ROWS * vocabulary)
        .zip(log_sums.par_chunks_mut(ROWS))
        .zip(targets.par_chunks(ROWS).zip(weights.par_chunks(ROWS)))
        .map(|((logits, log_sums), (targets, weights))| {
            vectorised(Losses {
                logits,
                log_sums,
                targets,
                weights,
            })
        })
        .collect();
    let loss: f64 = blocks.iter().sum();
    (shaped(vec![loss as f32], Shape::new([1])), log_sums)
}

/// `d logits = upstream · weight · (softmax − one-hot)`
pub(crate) fn backward(saved: &Saved, upstream: f32) -> FlexTensor {
    let vocabulary = width(&saved.logits);
    let (logits, weights) = (numbers(&saved.logits), numbers(&saved.weights));
    let mut gradient = vec![0.0; logits.len()];
    gradient
        .par_chunks_mut(ROWS * vocabulary)
        .enumerate()
        .for_each(|(block, gradient)| {
            vectorised(Gradients {
                gradient,
                saved,
                logits,
                weights,
                first: block * ROWS,
                upstream,
            });
        });
    shaped(gradient, saved.logits.layout().shape().clone())
}

/// The forward pass of a block of rows.
struct Losses<'a> {
    logits: &'a [f32],
    log_sums: &'a mut [f32],
    targets: &'a [usize],
    weights: &'a [f32],
}

impl Kernel for Losses<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f64 {
        let Self {
            logits,
            log_sums,
            targets,
            weights,
        } = self;
        let vocabulary = logits.len() / targets.len();
        let mut powers = vec![0.0; vocabulary];
        let mut loss = 0.0;
        for (row, logits) in logits.chunks_exact(vocabulary).enumerate() {
            if weights[row] == 0.0 {
                continue;
            }
            let max = max_of(logits);
            powers.copy_from_slice(logits);
            log_sums[row] = max + exp_and_sum(simd, &mut powers, max).ln();
            loss += f64::from(weights[row]) * f64::from(log_sums[row] - logits[targets[row]]);
        }
        loss
    }
}

/// The backward pass of a block of rows; logits and weights are those of all rows.
struct Gradients<'a> {
    gradient: &'a mut [f32],
    saved: &'a Saved,
    logits: &'a [f32],
    weights: &'a [f32],
    first: usize,
    upstream: f32,
}

impl Kernel for Gradients<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self {
            gradient,
            saved,
            logits,
            weights,
            first,
            upstream,
        } = self;
        let vocabulary = width(&saved.logits);
        for (row, gradient) in gradient.chunks_exact_mut(vocabulary).enumerate() {
            let row = first + row;
            let factor = upstream * weights[row];
            if factor == 0.0 {
                continue;
            }
            let (logits, log_sum) = (
                &logits[row * vocabulary..][..vocabulary],
                saved.log_sums[row],
            );
            for (gradient, &logit) in gradient.iter_mut().zip(logits) {
                *gradient = factor * exp(simd, logit - log_sum);
            }
            gradient[saved.targets[row]] -= factor;
        }
    }
}
