//! The activations of a pass, layer by layer: those of one layer are dropped before the next is
//! computed.

use std::collections::BTreeMap;

use burn::tensor::Tensor;

use crate::{Activations, ActivationsError, Capture, Interest, Probe, Site, activation_budget};

/// What is done with the activations of each layer.
pub type TakeLayer<'a> = dyn FnMut(usize, Activations) -> Result<(), ActivationsError> + 'a;

/// The probe that hands the activations of each layer over as soon as all of them are there.
pub(crate) struct ByLayer<'a, 'b> {
    /// The sites that are wanted of each layer.
    sites: BTreeMap<usize, Vec<Site>>,
    /// What has been met of the layers that are not complete: of one, in a model that computes one
    /// after the other.
    met: BTreeMap<usize, (Capture, usize)>,
    take: &'a mut TakeLayer<'b>,
    /// What went wrong first. Nothing is kept after it.
    failed: Option<ActivationsError>,
}

impl<'a, 'b> ByLayer<'a, 'b> {
    /// # Panics
    /// If a site is in no layer.
    pub fn new(sites: &[Site], take: &'a mut TakeLayer<'b>) -> Self {
        let mut of_layers = BTreeMap::<usize, Vec<Site>>::new();
        for &site in sites {
            match site.layer() {
                Some(layer) => of_layers.entry(layer).or_default().push(site),
                None => panic!("{site} is in no layer"),
            }
        }
        Self {
            sites: of_layers,
            met: BTreeMap::new(),
            take,
            failed: None,
        }
    }

    pub fn result(self) -> Result<(), ActivationsError> {
        self.failed.map_or(Ok(()), Err)
    }

    fn hand_over(&mut self, layer: usize, capture: Capture) {
        let taken = capture
            .into_activations()
            .and_then(|seen| (self.take)(layer, seen));
        if let Err(error) = taken {
            self.failed = Some(error);
            self.met.clear();
        }
    }
}

impl Probe for ByLayer<'_, '_> {
    fn interest(&self, site: Site) -> Interest {
        let wanted = site.layer().and_then(|layer| self.sites.get(&layer));
        match wanted {
            Some(wanted) if wanted.contains(&site) => Interest::Read,
            _ => Interest::Skip,
        }
    }

    fn at<const D: usize>(&mut self, site: Site, activation: Tensor<D>) -> Tensor<D> {
        let Some(layer) = site.layer().filter(|_| self.failed.is_none()) else {
            return activation;
        };
        let Some(wanted) = self.sites.get(&layer) else {
            return activation;
        };
        let new = || (Capture::new(wanted, activation_budget()), wanted.len());
        let (mut capture, left) = self.met.remove(&layer).unwrap_or_else(new);
        let _ = capture.at(site, activation.clone());
        if left > 1 {
            self.met.insert(layer, (capture, left - 1));
        } else {
            self.hand_over(layer, capture);
        }
        activation
    }
}
