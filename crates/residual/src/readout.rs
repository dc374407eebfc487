//! The readout: from the last stream to the logits.

use burn::tensor::Tensor;
use headlight_ops::{NextTokenScores, linear};

use crate::{
    NoProbe, Norm, Site, Targets,
    block::normalize,
    logits_in_parts::{logits_in_parts, next_token_scores},
};

/// `logits = norm(x)·W_U + b_U`; with a softcap `c`, they become `c·tanh(logits/c)`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use headlight_residual::{NormKind, Readout};
///
/// let device = Device::flex();
/// let readout = Readout {
///     norm: NormKind::RmsNorm.init(2, 0.0, &device),
///     w_u: Tensor::from_floats([[1.0, 10.0], [0.0, 10.0]], &device),
///     b_u: None,
///     softcap: None,
/// };
/// // The root mean square of (1, 7) is 5: the readout reads (0.2, 1.4).
/// let logits = readout.logits(Tensor::from_floats([[[1.0, 7.0]]], &device));
/// assert_eq!(logits.into_data().to_vec::<f32>().unwrap(), [0.2, 16.0]);
/// ```
#[derive(Debug, Clone)]
pub struct Readout {
    /// The norm before the unembedding.
    pub norm: Option<Norm>,
    /// `W_U [d_model, vocabulary]`
    pub w_u: Tensor<2>,
    /// `b_U [vocabulary]`
    pub b_u: Option<Tensor<1>>,
    /// `c`: the bound of the logits.
    pub softcap: Option<f64>,
}

impl Readout {
    /// The logits of a stream.
    ///
    /// # Shapes
    /// - x: `[batch, pos, d_model]`
    /// - logits: `[batch, pos, vocabulary]`
    #[must_use]
    pub fn logits(&self, x: Tensor<3>) -> Tensor<3> {
        let logits = linear(self.normalized(x), self.w_u.clone(), self.b_u.clone());
        softcapped(logits, self.softcap)
    }

    /// The loss of every target and whether the likeliest token is right, if the model ended with
    /// this stream. The logits of a large vocabulary are never all in memory.
    ///
    /// # Shapes
    /// - x: `[batch, pos, d_model]`
    /// - targets: `[batch, pos]`
    #[must_use]
    pub fn next_token_scores(&self, x: Tensor<3>, targets: &Targets) -> NextTokenScores {
        next_token_scores(&self.normalized(x), targets, |stream| {
            logits_in_parts(stream, self.w_u.clone(), self.b_u.clone(), self.softcap)
        })
    }

    fn normalized(&self, x: Tensor<3>) -> Tensor<3> {
        normalize(self.norm.as_ref(), x, Site::LnFinal, &mut NoProbe)
    }
}

/// `c·tanh(logits/c)`, or the logits as they are.
pub(crate) fn softcapped(logits: Tensor<3>, cap: Option<f64>) -> Tensor<3> {
    match cap {
        Some(cap) => logits.div_scalar(cap).tanh().mul_scalar(cap),
        None => logits,
    }
}
