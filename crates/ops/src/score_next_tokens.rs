//! What logits are worth at each position when the next token is known.

use burn::tensor::{Int, Tensor, activation::log_softmax};

use crate::ROWS;

/// The loss and the verdict at each position.
#[derive(Debug, Clone)]
pub struct NextTokenScores {
    /// `−ln softmax(logits)[target]`, nats: `[rows, positions]`.
    pub losses: Tensor<2>,
    /// 1 where the target is the likeliest token, else 0; of equally likely tokens the first is the
    /// likeliest: `[rows, positions]`.
    pub right: Tensor<2>,
}

impl NextTokenScores {
    /// The scores of all positions, from those of some positions after the other.
    ///
    /// # Panics
    /// If there is no part, or the parts have different numbers of rows.
    #[must_use]
    pub fn joined(parts: Vec<Self>) -> Self {
        let (losses, right) = parts
            .into_iter()
            .map(|part| (part.losses, part.right))
            .unzip();
        Self {
            losses: Tensor::cat(losses, 1),
            right: Tensor::cat(right, 1),
        }
    }

    /// `Σ_i count_i · loss_i`, nats: what [`cross_entropy`](crate::cross_entropy) of the logits is,
    /// added in the same order. A position of count 0 adds nothing, whatever its loss is.
    ///
    /// # Shapes
    /// - counts: `[rows, positions]`
    #[must_use]
    pub fn summed_loss(&self, counts: &Tensor<2>) -> f32 {
        let losses: Vec<f64> = self.losses.clone().into_data().iter::<f64>().collect();
        let counts: Vec<f64> = counts.clone().into_data().iter::<f64>().collect();
        let mut total = 0.0;
        for (losses, counts) in losses.chunks(ROWS).zip(counts.chunks(ROWS)) {
            let mut sum = 0.0;
            for (loss, count) in losses.iter().zip(counts) {
                if *count != 0.0 {
                    sum += count * loss;
                }
            }
            total += sum;
        }
        total as f32
    }
}

/// Scores every target. No gradient passes through the kernel.
///
/// # Shapes
/// - logits: `[rows, positions, vocabulary]`
/// - targets: `[rows, positions]`
///
/// # Panics
/// If the shapes do not belong together. A target outside the vocabulary panics on the kernel's
/// path.
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use headlight_ops::score_next_tokens;
///
/// let device = Device::flex();
/// let logits = Tensor::<3>::from_floats([[[0.0, 0.0], [0.0, 0.0], [3f32.ln(), 0.0]]], &device);
/// let targets = Tensor::<2, Int>::from_ints([[0, 1, 1]], &device);
/// let scores = score_next_tokens(logits, targets);
/// assert_eq!(scores.right.into_data().to_vec::<f32>().unwrap(), [1.0, 0.0, 0.0]);
/// let losses = scores.losses.into_data().to_vec::<f32>().unwrap();
/// assert!((losses[1] - 2f32.ln()).abs() < 1e-6 && (losses[2] - 4f32.ln()).abs() < 1e-6);
/// ```
#[must_use]
pub fn score_next_tokens(logits: Tensor<3>, targets: Tensor<2, Int>) -> NextTokenScores {
    let [rows, positions, _] = logits.dims();
    assert!(
        targets.dims() == [rows, positions],
        "logits {:?} and targets {:?} do not fit",
        logits.dims(),
        targets.dims()
    );
    #[cfg(feature = "flex")]
    if let Some(scores) = crate::kernel::score_next_tokens(&logits, &targets) {
        return scores;
    }
    let likeliest = logits.clone().argmax(2).squeeze_dim::<2>(2);
    let right = likeliest.equal(targets.clone()).float();
    let of_target = log_softmax(logits, 2).gather(2, targets.unsqueeze_dim(2));
    NextTokenScores {
        losses: of_target.squeeze_dim::<2>(2).neg(),
        right,
    }
}
