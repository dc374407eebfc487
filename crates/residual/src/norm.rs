//! Layer norm, open to probes.

use burn::{
    module::{Module, Param},
    tensor::{Device, Tensor},
};

use crate::{Interest, NormSite, Probe, Site, probe::visit};

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
    /// The identity gain and no bias, ε = 1e-5.
    #[must_use]
    pub fn new(d_model: usize, device: &Device) -> Self {
        Self {
            gain: Param::from_tensor(Tensor::ones([d_model], device)),
            bias: Param::from_tensor(Tensor::zeros([d_model], device)),
            epsilon: 1e-5,
        }
    }

    /// Normalises each position; `site` says which norm of the model this is.
    ///
    /// # Shapes
    /// - x, output: `[batch, pos, d_model]`
    #[must_use]
    pub fn forward<P: Probe>(&self, x: Tensor<3>, site: impl Fn(NormSite) -> Site, probe: &mut P) -> Tensor<3> {
        let scale_site = site(NormSite::Scale);
        let normalized = match probe.interest(scale_site) {
            Interest::Skip => self.normalize(x),
            Interest::Read => {
                let _ = probe.at(scale_site, self.scale(x.clone()));
                self.normalize(x)
            }
            Interest::Change => {
                let scale = probe.at(scale_site, self.scale(x.clone()));
                (x.clone() - x.mean_dim(2)) / scale * self.gain.val().unsqueeze() + self.bias.val().unsqueeze()
            }
        };
        visit(probe, site(NormSite::Normalized), normalized)
    }

    fn normalize(&self, x: Tensor<3>) -> Tensor<3> {
        headlight_ops::layer_norm(x, self.gain.val(), self.bias.val(), self.epsilon)
    }

    /// `√(variance + ε)`, `[batch, pos, 1]`
    fn scale(&self, x: Tensor<3>) -> Tensor<3> {
        let centred = x.clone() - x.mean_dim(2);
        centred.square().mean_dim(2).add_scalar(self.epsilon).sqrt()
    }
}
