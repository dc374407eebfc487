//! The one seam through which activations are read and changed.

use std::collections::BTreeMap;

use burn::tensor::Tensor;

use crate::{KeptTensor, Site};

/// What a [`Probe`] wants with a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Interest {
    /// Nothing: the site is not visited, and an activation that only inspection needs is not
    /// computed.
    Skip,
    /// To look. What [`Probe::at`] gives back is dropped, so that looking changes no bit.
    Read,
    /// To put another tensor in its place.
    Change,
}

/// Looks at activations during a forward pass, or changes them.
///
/// Each site that the probe wants passes through [`at`](Self::at), in the layout of the table at
/// [`Site`].
pub trait Probe {
    /// What the probe wants with `site`. It must not change during a forward pass.
    fn interest(&self, site: Site) -> Interest;

    /// Takes the activation and gives back the one to go on with.
    fn at<const D: usize>(&mut self, site: Site, activation: Tensor<D>) -> Tensor<D>;
}

/// Passes an activation by the probe, if the probe wants it. A probe that only reads cannot change
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

/// Wants nothing and costs nothing.
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
/// Memory is bounded: what would exceed the budget is not kept but listed in
/// [`dropped`](Self::dropped).
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

    /// The activation at `site` as last seen, or `None` if it was not asked for, not met or
    /// dropped.
    ///
    /// # Panics
    /// If `D` is not the site's number of axes.
    #[must_use]
    pub fn get<const D: usize>(&self, site: Site) -> Option<Tensor<D>> {
        self.tensor_at(site).map(KeptTensor::tensor)
    }

    /// The activation at `site` with whatever number of axes it has, to put it into another run.
    #[must_use]
    pub fn tensor_at(&self, site: Site) -> Option<&KeptTensor> {
        self.kept.get(&site)
    }

    /// As [`tensor_at`](Self::tensor_at), and keeps it no longer.
    pub fn take(&mut self, site: Site) -> Option<KeptTensor> {
        self.kept
            .remove(&site)
            .inspect(|kept| self.used -= kept.bytes())
    }

    /// Sites that were asked for and met but did not fit into the budget.
    #[must_use]
    pub fn dropped(&self) -> &[Site] {
        &self.dropped
    }

    /// Bytes kept.
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

/// Two probes on the same pass; the second sees what the first left.
impl<A: Probe, B: Probe> Probe for (A, B) {
    fn interest(&self, site: Site) -> Interest {
        self.0.interest(site).max(self.1.interest(site))
    }

    fn at<const D: usize>(&mut self, site: Site, activation: Tensor<D>) -> Tensor<D> {
        let activation = visit(&mut self.0, site, activation);
        visit(&mut self.1, site, activation)
    }
}
