//! Loss and verdict of every target in one pass over the logits.

use burn::{
    backend::{
        Backend, Flex, backend_extension,
        flex::FlexTensor,
        tensor::{FloatTensor, IntTensor},
    },
    tensor::Shape,
};
use headlight_vector::{Kernel, Simd, exp_and_sum, max_of, vectorised};
use rayon::prelude::*;

use super::{ROWS, contiguous, cross_entropy::targets_of, numbers, shaped, width};

/// The scores as one operation, without a gradient.
#[backend_extension(Flex)]
pub(crate) trait FusedScoreNextTokens: Backend {
    fn fused_score_next_tokens(
        logits: FloatTensor<Self>,
        targets: IntTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);
}

impl FusedScoreNextTokens for Flex {
    fn fused_score_next_tokens(
        logits: FlexTensor,
        targets: FlexTensor,
    ) -> (FlexTensor, FlexTensor) {
        let (logits, targets) = (contiguous(logits), contiguous(targets));
        let vocabulary = width(&logits);
        let shape: Shape = targets.layout().shape().clone();
        let targets = targets_of(&targets, vocabulary);
        let (mut losses, mut right) = (vec![0.0; targets.len()], vec![0.0; targets.len()]);
        numbers(&logits)
            .par_chunks(ROWS * vocabulary)
            .zip(targets.par_chunks(ROWS))
            .zip(losses.par_chunks_mut(ROWS))
            .zip(right.par_chunks_mut(ROWS))
            .for_each(|(((logits, targets), losses), right)| {
                vectorised(Scores {
                    logits,
                    targets,
                    losses,
                    right,
                });
            });
        (shaped(losses, shape.clone()), shaped(right, shape))
    }
}

/// The scores of a block of rows.
struct Scores<'a> {
    logits: &'a [f32],
    targets: &'a [usize],
    losses: &'a mut [f32],
    right: &'a mut [f32],
}

impl Kernel for Scores<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let vocabulary = self.logits.len() / self.targets.len();
        let mut powers = vec![0.0; vocabulary];
        for (row, logits) in self.logits.chunks_exact(vocabulary).enumerate() {
            let target = self.targets[row];
            let max = max_of(logits);
            powers.copy_from_slice(logits);
            let log_sum = max + exp_and_sum(simd, &mut powers, max).ln();
            self.losses[row] = log_sum - logits[target];
            let is_likeliest = logits[target] == max && !logits[..target].contains(&max);
            self.right[row] = f32::from(u8::from(is_likeliest));
        }
    }
}
