//! Gradients with respect to activations.

use std::collections::BTreeMap;

use burn::tensor::{Gradients, Tensor};

use crate::{Interest, Probe, Site};

/// Adds a leaf of zeros to the activation at some sites: the gradient of the leaf is the gradient
/// of the activation.
///
/// The model must be on an autodiff device.
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use headlight_residual::{DecoderConfig, Leaves, Site};
///
/// let device = Device::flex().autodiff();
/// let model = DecoderConfig::default().try_init(0, &device)?;
/// let embed: Site = "hook_embed".parse()?;
/// let mut leaves = Leaves::new(&[embed]);
/// let logits = model.forward_probed(Tensor::<2, Int>::from_ints([[1, 2, 3]], &device), &mut leaves);
/// // The loss is about the last position; the others get their gradients through attention.
/// let gradients = logits.narrow(1, 2, 1).sum().backward();
/// let gradient = leaves.gradient::<3>(embed, &gradients).unwrap();
/// assert_eq!(gradient.dims(), [1, 3, 64]);
/// assert!(gradient.abs().sum().into_scalar::<f32>() > 0.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Leaves {
    sites: Vec<Site>,
    leaves: BTreeMap<Site, (Tensor<1>, Vec<usize>)>,
}

impl Leaves {
    /// Leaves at `sites`.
    #[must_use]
    pub fn new(sites: &[Site]) -> Self {
        Self {
            sites: sites.to_vec(),
            leaves: BTreeMap::new(),
        }
    }

    /// The gradient at `site`; `None` if the site was not requested or not met, or the loss does
    /// not depend on it.
    ///
    /// # Panics
    /// If `D` is not the site's number of axes.
    #[must_use]
    pub fn gradient<const D: usize>(&self, site: Site, gradients: &Gradients) -> Option<Tensor<D>> {
        let (leaf, dims) = self.leaves.get(&site)?;
        let dims: [usize; D] = dims
            .as_slice()
            .try_into()
            .unwrap_or_else(|_| panic!("{site} has {} axes, not {D}", dims.len()));
        Some(leaf.grad(gradients)?.reshape(dims))
    }
}

impl Probe for Leaves {
    fn interest(&self, site: Site) -> Interest {
        if self.sites.contains(&site) {
            Interest::Change
        } else {
            Interest::Skip
        }
    }

    fn at<const D: usize>(&mut self, site: Site, activation: Tensor<D>) -> Tensor<D> {
        let dims = activation.dims();
        let new = || {
            Tensor::<1>::zeros([dims.iter().product::<usize>()], &activation.device())
                .require_grad()
        };
        // A norm whose readers have separate inputs is computed once for each reader: the passes
        // share the leaf, and gradients add up.
        let leaf = match self.leaves.get(&site) {
            Some((leaf, known)) if *known == dims => leaf.clone(),
            _ => new(),
        };
        self.leaves.insert(site, (leaf.clone(), dims.to_vec()));
        activation + leaf.reshape(dims)
    }
}
