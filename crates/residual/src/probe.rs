//! The probe: the one door through which activations are read and changed.

use std::{any::Any, collections::BTreeMap};

use burn::tensor::Tensor;

use crate::{Activations, ActivationsError, KeptTensor, Site};

/// The access of a [`Probe`] to a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Interest {
    /// None: the probe does not visit the site, and an activation that only inspection needs is not
    /// computed.
    Skip,
    /// Reading. The model discards the output of [`Probe::at`], so that reading changes no bit.
    Read,
    /// Changing. The output of [`Probe::at`] replaces the activation.
    Change,
}

/// Reads or changes activations during a forward pass.
///
/// Each site that the probe wants passes through [`at`](Self::at), in the layout of the table at
/// [`Site`].
pub trait Probe {
    /// The access of the probe to `site`. It must not change during a forward pass.
    fn interest(&self, site: Site) -> Interest;

    /// Takes the activation and returns the one with which the pass goes on.
    fn at<const D: usize>(&mut self, site: Site, activation: Tensor<D>) -> Tensor<D>;
}

/// A [`Probe`] behind a pointer: a [`Probed`](crate::Probed) model takes `&mut dyn AnyProbe`, so one
/// compiled function serves all probes.
///
/// Every probe is one. Such a pointer is a probe itself: pass it on to [`visit`],
/// [`attention_probed`](crate::attention_probed) and [`Norm::forward`](crate::Norm::forward).
pub trait AnyProbe {
    /// [`Probe::interest`]
    fn interest_at(&self, site: Site) -> Interest;

    /// [`Probe::at`] a site of three axes.
    fn at_three_axes(&mut self, site: Site, activation: Tensor<3>) -> Tensor<3>;

    /// [`Probe::at`] a site of four axes.
    fn at_four_axes(&mut self, site: Site, activation: Tensor<4>) -> Tensor<4>;
}

impl<P: Probe> AnyProbe for P {
    fn interest_at(&self, site: Site) -> Interest {
        self.interest(site)
    }

    fn at_three_axes(&mut self, site: Site, activation: Tensor<3>) -> Tensor<3> {
        self.at(site, activation)
    }

    fn at_four_axes(&mut self, site: Site, activation: Tensor<4>) -> Tensor<4> {
        self.at(site, activation)
    }
}

impl Probe for dyn AnyProbe + '_ {
    fn interest(&self, site: Site) -> Interest {
        self.interest_at(site)
    }

    fn at<const D: usize>(&mut self, site: Site, activation: Tensor<D>) -> Tensor<D> {
        match D {
            3 => same_axes(self.at_three_axes(site, same_axes(activation))),
            4 => same_axes(self.at_four_axes(site, same_axes(activation))),
            _ => panic!("{site} has 3 or 4 axes, not {D}"),
        }
    }
}

/// The same tensor under another name for the same number of axes: the compiler does not know that
/// `D` is 3 where it was compared with 3.
fn same_axes<const FROM: usize, const TO: usize>(tensor: Tensor<FROM>) -> Tensor<TO> {
    let mut tensor = Some(tensor);
    let tensor: &mut dyn Any = &mut tensor;
    match tensor.downcast_mut::<Option<Tensor<TO>>>() {
        Some(tensor) => tensor.take().expect("the tensor was put there"),
        None => panic!("a tensor of {FROM} axes has not {TO}"),
    }
}

/// Shows an activation to the probe, if the probe wants it, and returns the one with which the pass
/// goes on. A probe that only reads cannot change anything.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use headlight_residual::{Edit, Edits, NoProbe, Site, visit};
///
/// let x = Tensor::<3>::from_floats([[[1.0, 2.0]]], &Device::flex());
/// let mut doubled = Edits::default().at(Site::Embed, Edit::Scale(2.0));
/// let seen = visit(&mut doubled, Site::Embed, x.clone());
/// assert_eq!(seen.into_data().to_vec::<f32>().unwrap(), [2.0, 4.0]);
/// assert_eq!(visit(&mut NoProbe, Site::Embed, x).into_data().to_vec::<f32>().unwrap(), [1.0, 2.0]);
/// ```
pub fn visit<P: Probe + ?Sized, const D: usize>(
    probe: &mut P,
    site: Site,
    activation: Tensor<D>,
) -> Tensor<D> {
    match probe.interest(site) {
        Interest::Skip => activation,
        Interest::Read => {
            let _ = probe.at(site, activation.clone());
            activation
        }
        Interest::Change => probe.at(site, activation),
    }
}

/// A probe that visits no site and costs nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProbe;

impl Probe for NoProbe {
    fn interest(&self, _: Site) -> Interest {
        Interest::Skip
    }

    fn at<const D: usize>(&mut self, _: Site, activation: Tensor<D>) -> Tensor<D> {
        activation
    }
}

/// Keeps the activations at some sites, within a budget of bytes.
///
/// [`Decoder::activations`](crate::Decoder::activations) is the short way; this is the probe behind
/// it, for a pass that is called by hand.
///
/// ```
/// use burn::tensor::Device;
/// use headlight_residual::{Capture, DecoderConfig, token_tensor};
///
/// let device = Device::flex();
/// let model = DecoderConfig::default().try_init(0, &device)?;
/// let sites = model.select("blocks.0.attn.hook_z")?;
/// let mut capture = Capture::new(&sites, 1 << 20);
/// let _logits = model.forward_probed(token_tensor(&[[1, 2, 3]], &device), &mut capture);
/// let seen = capture.into_activations()?;
/// assert_eq!(seen.tensor::<4>(sites[0]).dims(), [1, 3, 4, 16]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Capture {
    sites: Vec<Site>,
    budget: usize,
    used: usize,
    kept: BTreeMap<Site, KeptTensor>,
    /// The first activation that did not fit. Nothing is kept after it.
    refused: Option<ActivationsError>,
}

impl Capture {
    /// Keeps `sites`, which may take `budget` bytes together.
    #[must_use]
    pub fn new(sites: &[Site], budget: usize) -> Self {
        Self {
            sites: sites.to_vec(),
            budget,
            used: 0,
            kept: BTreeMap::new(),
            refused: None,
        }
    }

    pub(crate) fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// The activation at a site that was met.
    pub(crate) fn take<const D: usize>(&mut self, site: Site) -> Tensor<D> {
        let kept = self.kept.remove(&site);
        kept.expect("the site was met").into_tensor()
    }

    /// The activations as last seen, after a pass.
    ///
    /// # Errors
    /// If one did not fit into the budget, or the pass did not meet a site; the error names it.
    pub fn into_activations(self) -> Result<Activations, ActivationsError> {
        if let Some(refused) = self.refused {
            return Err(refused);
        }
        let missing = |site: &&Site| !self.kept.contains_key(site);
        match self.sites.iter().find(missing) {
            Some(&site) => Err(ActivationsError::NotInModel {
                site,
                model: "this model".to_owned(),
            }),
            None => Ok(Activations { kept: self.kept }),
        }
    }
}

impl Probe for Capture {
    fn interest(&self, site: Site) -> Interest {
        if self.sites.contains(&site) {
            Interest::Read
        } else {
            Interest::Skip
        }
    }

    fn at<const D: usize>(&mut self, site: Site, activation: Tensor<D>) -> Tensor<D> {
        if self.refused.is_some() {
            return activation;
        }
        // A site can be met more than once: the last activation stays.
        if let Some(before) = self.kept.remove(&site) {
            self.used -= before.bytes();
        }
        let kept = KeptTensor::from(activation.clone());
        let bytes = kept.bytes();
        if bytes > self.budget - self.used {
            self.refused = Some(ActivationsError::DoesNotFit {
                site,
                bytes,
                used: self.used,
                budget: self.budget,
            });
            self.kept.clear();
        } else {
            self.used += bytes;
            self.kept.insert(site, kept);
        }
        activation
    }
}

impl<P: Probe + ?Sized> Probe for &mut P {
    fn interest(&self, site: Site) -> Interest {
        (**self).interest(site)
    }

    fn at<const D: usize>(&mut self, site: Site, activation: Tensor<D>) -> Tensor<D> {
        (**self).at(site, activation)
    }
}

/// Two probes on the same pass. The second sees the output of the first.
impl<A: Probe, B: Probe> Probe for (A, B) {
    fn interest(&self, site: Site) -> Interest {
        self.0.interest(site).max(self.1.interest(site))
    }

    fn at<const D: usize>(&mut self, site: Site, activation: Tensor<D>) -> Tensor<D> {
        let activation = visit(&mut self.0, site, activation);
        visit(&mut self.1, site, activation)
    }
}
