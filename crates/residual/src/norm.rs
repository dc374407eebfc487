//! The norms: interchangeable parts whose scale, quotient and output a probe can read and change.

use burn::{
    module::{Module, Param},
    tensor::{Device, Tensor},
};
use headlight_ops::rms_norm;

use crate::{Interest, NormSite, Probe, Site, probe::visit};

/// The kind of a [`Norm`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NormKind {
    /// [`LayerNorm`]
    #[default]
    LayerNorm,
    /// [`RmsNorm`]
    RmsNorm,
    /// No norm: blocks read the stream as it is.
    None,
}

/// A norm over the last axis.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use headlight_residual::{NoProbe, NormKind, Site};
///
/// let x = Tensor::<3>::from_floats([[[1.0, 7.0]]], &Device::flex()); // mean 4, deviation 3, root mean square 5
/// let normalized = |kind: NormKind| {
///     let norm = kind.init(2, 0.0, &Device::flex()).unwrap();
///     norm.forward(x.clone(), Site::LnFinal, &mut NoProbe).into_data().to_vec::<f32>().unwrap()
/// };
/// assert_eq!(normalized(NormKind::LayerNorm), [-1.0, 1.0]);
/// assert_eq!(normalized(NormKind::RmsNorm), [0.2, 1.4]);
/// assert!(NormKind::None.init(2, 0.0, &Device::flex()).is_none());
/// ```
#[derive(Module, Debug)]
pub enum Norm {
    /// `(x − mean) / √(variance + ε) · gain + bias`
    Layer(LayerNorm),
    /// `x / √(mean of squares + ε) · gain`
    Rms(RmsNorm),
}

impl NormKind {
    /// The norm with gain 1 and bias 0, or nothing.
    #[must_use]
    pub fn init(self, width: usize, epsilon: f64, device: &Device) -> Option<Norm> {
        match self {
            Self::LayerNorm => Some(Norm::Layer(LayerNorm::new(width, epsilon, device))),
            Self::RmsNorm => Some(Norm::Rms(RmsNorm::new(width, epsilon, device))),
            Self::None => None,
        }
    }
}

impl Norm {
    /// Normalises each position; `site` says which norm of the model this is.
    ///
    /// # Shapes
    /// - x, output: `[batch, pos, d_model]`
    #[must_use]
    pub fn forward<P: Probe + ?Sized>(
        &self,
        x: Tensor<3>,
        site: impl Fn(NormSite) -> Site,
        probe: &mut P,
    ) -> Tensor<3> {
        let (scale_site, normalized_site) = (site(NormSite::Scale), site(NormSite::Normalized));
        let interest = probe
            .interest(scale_site)
            .max(probe.interest(normalized_site));
        let out = match interest {
            Interest::Skip => self.normalize(x),
            Interest::Read => {
                let _ = self.step_by_step(x.clone(), scale_site, normalized_site, probe);
                self.normalize(x)
            }
            Interest::Change => self.step_by_step(x, scale_site, normalized_site, probe),
        };
        visit(probe, site(NormSite::Out), out)
    }

    /// The output of the norm as one operation.
    fn normalize(&self, x: Tensor<3>) -> Tensor<3> {
        match self {
            Self::Layer(norm) => {
                headlight_ops::layer_norm(x, norm.gain.val(), norm.bias.val(), norm.epsilon)
            }
            Self::Rms(norm) => rms_norm(x, norm.gain.val(), norm.epsilon),
        }
    }

    /// What it multiplies with, `[d_model]`.
    #[must_use]
    pub fn gain(&self) -> Tensor<1> {
        match self {
            Self::Layer(norm) => norm.gain.val(),
            Self::Rms(norm) => norm.gain.val(),
        }
    }

    /// What it adds, `[d_model]`, if it adds anything.
    #[must_use]
    pub fn bias(&self) -> Option<Tensor<1>> {
        match self {
            Self::Layer(norm) => Some(norm.bias.val()),
            Self::Rms(_) => None,
        }
    }

    /// What each of several parts becomes in the norm of their sum: the parts of the output, apart
    /// from its bias.
    ///
    /// # Shapes
    /// - parts, output: `[batch, pos, part, d_model]`
    /// - scale, that of the sum: `[batch, pos, 1]`
    #[must_use]
    pub fn shares(&self, parts: Tensor<4>, scale: Tensor<3>) -> Tensor<4> {
        let scale = scale.unsqueeze_dim::<4>(2); // [batch, pos, 1, 1]
        match self {
            Self::Layer(norm) => {
                let centred = parts.clone() - parts.mean_dim(3);
                centred / scale * norm.gain.val().unsqueeze()
            }
            Self::Rms(norm) => parts / scale * norm.gain.val().unsqueeze(),
        }
    }

    /// The output of the norm, with a probe at the scale and at the quotient.
    fn step_by_step<P: Probe + ?Sized>(
        &self,
        x: Tensor<3>,
        scale_site: Site,
        normalized_site: Site,
        probe: &mut P,
    ) -> Tensor<3> {
        let (x, epsilon) = match self {
            Self::Layer(norm) => (x.clone() - x.mean_dim(2), norm.epsilon),
            Self::Rms(norm) => (x, norm.epsilon),
        };
        let scale = x.clone().square().mean_dim(2).add_scalar(epsilon).sqrt(); // [batch, pos, 1]
        let normalized = x / visit(probe, scale_site, scale);
        let normalized = visit(probe, normalized_site, normalized);
        match self {
            Self::Layer(norm) => {
                normalized * norm.gain.val().unsqueeze() + norm.bias.val().unsqueeze()
            }
            Self::Rms(norm) => normalized * norm.gain.val().unsqueeze(),
        }
    }
}

/// `(x − mean) / √(variance + ε) · gain + bias` over the last axis (Ba et al. 2016, section 3).
#[derive(Module, Debug)]
pub struct LayerNorm {
    /// `[d_model]`, starts at 1.
    pub gain: Param<Tensor<1>>,
    /// `[d_model]`, starts at 0.
    pub bias: Param<Tensor<1>>,
    epsilon: f64,
}

impl LayerNorm {
    /// A norm with gain 1 and bias 0.
    #[must_use]
    pub fn new(d_model: usize, epsilon: f64, device: &Device) -> Self {
        Self {
            gain: Param::from_tensor(Tensor::ones([d_model], device)),
            bias: Param::from_tensor(Tensor::zeros([d_model], device)),
            epsilon,
        }
    }
}

/// `x / √(mean of squares + ε) · gain` over the last axis (Zhang & Sennrich 2019, section 4): layer
/// norm that neither centres nor shifts.
#[derive(Module, Debug)]
pub struct RmsNorm {
    /// `[d_model]`, starts at 1.
    pub gain: Param<Tensor<1>>,
    epsilon: f64,
}

impl RmsNorm {
    /// A norm with gain 1.
    #[must_use]
    pub fn new(d_model: usize, epsilon: f64, device: &Device) -> Self {
        Self {
            gain: Param::from_tensor(Tensor::ones([d_model], device)),
            epsilon,
        }
    }
}
