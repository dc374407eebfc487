//! What logits are worth at each position when the next token is known.

use burn::tensor::{Int, Tensor, activation::log_softmax};

use crate::ROWS;

/// The loss and the verdict at each position.
#[derive(Debug, Clone)]
pub struct NextTokenScores {
    /// `−ln softmax(logits)[target]`, nats: `[rows, positions]`.
    pub losses: Tensor<2>,
    /// 1 where the target is the likeliest token, else 0; of equally likely tokens the first is the
    /// likeliest: `[rows, positions]`. Beside a wrong token, 1 where the target's logit is larger.
    pub right: Tensor<2>,
    /// `logit[target] − logit[wrong]`, if a wrong token is named: `[rows, positions]`.
    pub difference: Option<Tensor<2>>,
}

impl NextTokenScores {
    /// The scores of all positions, from those of some positions after the other.
    ///
    /// # Panics
    /// If there is no part, or the parts have different numbers of rows.
    #[must_use]
    pub fn joined(parts: Vec<Self>) -> Self {
        let (mut losses, mut right, mut differences) = (Vec::new(), Vec::new(), Vec::new());
        for part in parts {
            losses.push(part.losses);
            right.push(part.right);
            differences.extend(part.difference);
        }
        Self {
            losses: Tensor::cat(losses, 1),
            right: Tensor::cat(right, 1),
            difference: (!differences.is_empty()).then(|| Tensor::cat(differences, 1)),
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
        difference: None,
    }
}

/// [`score_next_tokens`] of targets that are right if their logits are larger than those of `wrong`
/// tokens, whatever the likeliest token is.
///
/// # Shapes
/// - logits: `[rows, positions, vocabulary]`
/// - targets, wrong: `[rows, positions]`
///
/// # Panics
/// As [`score_next_tokens`].
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use headlight_ops::score_against;
///
/// let device = Device::flex();
/// let logits = Tensor::<3>::from_floats([[[2.0, 0.5, 7.0], [1.0, 1.0, 0.0]]], &device);
/// let token = |token: i32| Tensor::<2, Int>::from_ints([[token, token]], &device);
/// let scores = score_against(logits, token(0), token(1));
/// // 2 is larger than 0.5; of equal logits none is larger.
/// assert_eq!(scores.right.into_data().to_vec::<f32>().unwrap(), [1.0, 0.0]);
/// let difference = scores.difference.unwrap().into_data().to_vec::<f32>().unwrap();
/// assert!((difference[0] - 1.5).abs() < 1e-5 && difference[1] == 0.0);
/// ```
#[must_use]
pub fn score_against(
    logits: Tensor<3>,
    targets: Tensor<2, Int>,
    wrong: Tensor<2, Int>,
) -> NextTokenScores {
    let of_wrong = score_next_tokens(logits.clone(), wrong);
    let of_target = score_next_tokens(logits, targets);
    // Both losses are above the same logarithm of a sum.
    let difference = of_wrong.losses - of_target.losses.clone();
    NextTokenScores {
        losses: of_target.losses,
        right: difference.clone().greater_elem(0.0).float(),
        difference: Some(difference),
    }
}
