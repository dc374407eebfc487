//! The probe: the one door through which activations are read and changed.

use std::collections::BTreeMap;

use burn::tensor::Tensor;

use crate::{KeptTensor, Site};

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

/// Shows an activation to the probe, if the probe wants it. A probe that only reads cannot change
/// anything.
pub(crate) fn visit<P: Probe, const D: usize>(
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

/// Keeps the activations at some sites.
///
/// Memory is bounded: a capture does not keep an activation that exceeds the budget, and lists its
/// site in [`dropped`](Self::dropped).
#[derive(Debug, Clone)]
pub struct Capture {
    sites: Vec<Site>,
    budget: usize,
    used: usize,
    kept: BTreeMap<Site, KeptTensor>,
    dropped: Vec<Site>,
}

impl Capture {
    /// Keeps `sites` as long as they fit into `budget` bytes together.
    #[must_use]
    pub fn new(sites: &[Site], budget: usize) -> Self {
        Self {
            sites: sites.to_vec(),
            budget,
            used: 0,
            kept: BTreeMap::new(),
            dropped: Vec::new(),
        }
    }

    /// The activation at `site` as last seen, or `None` if the site was not requested, not met or
    /// dropped.
    ///
    /// # Panics
    /// If `D` is not the site's number of axes.
    #[must_use]
    pub fn get<const D: usize>(&self, site: Site) -> Option<Tensor<D>> {
        self.tensor_at(site).map(KeptTensor::tensor)
    }

    /// The activation at `site` with any number of axes, for use in another run.
    #[must_use]
    pub fn tensor_at(&self, site: Site) -> Option<&KeptTensor> {
        self.kept.get(&site)
    }

    /// As [`tensor_at`](Self::tensor_at), and removes the activation from the capture.
    pub fn take(&mut self, site: Site) -> Option<KeptTensor> {
        self.kept
            .remove(&site)
            .inspect(|kept| self.used -= kept.bytes())
    }

    /// The requested sites whose activations did not fit into the budget.
    #[must_use]
    pub fn dropped(&self) -> &[Site] {
        &self.dropped
    }

    /// The size of the kept activations in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.used
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
        let bytes = activation.dims().iter().product::<usize>() * activation.dtype().size();
        drop(self.take(site));
        if self.used + bytes > self.budget {
            if !self.dropped.contains(&site) {
                self.dropped.push(site);
            }
        } else {
            self.used += bytes;
            self.kept.insert(site, activation.clone().into());
        }
        activation
    }
}

impl<P: Probe> Probe for &mut P {
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
