//! The door for "run the model and keep these activations".

use std::collections::BTreeMap;

use burn::tensor::{Int, Tensor};

use crate::{AnyProbe, Capture, Decoder, KeptTensor, NoProbe, Probed, Site};

/// The activations that one pass left at the sites that were asked for: every one of them.
#[derive(Debug, Clone)]
pub struct Activations {
    pub(crate) kept: BTreeMap<Site, KeptTensor>,
}

impl FromIterator<(Site, KeptTensor)> for Activations {
    fn from_iter<I: IntoIterator<Item = (Site, KeptTensor)>>(kept: I) -> Self {
        Self {
            kept: kept.into_iter().collect(),
        }
    }
}

/// Why a model could not be looked into.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ActivationsError {
    /// The model has no such site.
    #[error("{site} is not in {model}")]
    NotInModel {
        /// The site.
        site: Site,
        /// [`Probed::name`]
        model: String,
    },
    /// The model does not say this about itself.
    #[error("{model} does not give its {part}")]
    NotGiven {
        /// What was asked for.
        part: &'static str,
        /// [`Probed::name`]
        model: String,
    },
    /// The activation would exceed the budget.
    #[error("{site} takes {bytes} bytes, and {used} of {budget} are taken")]
    DoesNotFit {
        /// The first site that does not fit.
        site: Site,
        /// The bytes of its activation.
        bytes: usize,
        /// The bytes that are kept before it.
        used: usize,
        /// The most bytes that may be kept.
        budget: usize,
    },
}

impl Activations {
    /// The activation at `site`, or `None` if it was not asked for.
    ///
    /// # Panics
    /// If `D` is not its number of axes.
    #[must_use]
    pub fn get<const D: usize>(&self, site: Site) -> Option<Tensor<D>> {
        self.kept.get(&site).map(KeptTensor::tensor)
    }

    /// The activation at `site`, which was asked for.
    ///
    /// # Panics
    /// If `site` was not asked for, or `D` is not its number of axes.
    #[must_use]
    pub fn tensor<const D: usize>(&self, site: Site) -> Tensor<D> {
        self.kept(site).tensor()
    }

    /// The activation at `site` with any number of axes, to put it into another pass.
    ///
    /// # Panics
    /// If `site` was not asked for.
    #[must_use]
    pub fn kept(&self, site: Site) -> &KeptTensor {
        match self.kept.get(&site) {
            Some(kept) => kept,
            None => panic!("{site} was not asked for"),
        }
    }

    /// As [`kept`](Self::kept), and holds it no longer: its numbers can be read without a copy.
    ///
    /// # Panics
    /// If `site` was not asked for, or was taken before.
    pub fn take(&mut self, site: Site) -> KeptTensor {
        match self.kept.remove(&site) {
            Some(kept) => kept,
            None => panic!("{site} was not asked for, or was taken before"),
        }
    }

    /// The bytes of all activations.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.kept.values().map(KeptTensor::bytes).sum()
    }
}

/// The most bytes of activations that [`Decoder::activations`] keeps: half of the memory that Linux
/// calls available, at this moment; 4 GB on other systems.
#[must_use]
pub fn activation_budget() -> usize {
    available_memory().map_or(4_000_000_000, |available| available / 2)
}

/// `MemAvailable` of `/proc/meminfo`, in bytes.
fn available_memory() -> Option<usize> {
    let report = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = report
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: usize = line.trim().strip_suffix(" kB")?.parse().ok()?;
    kibibytes.checked_mul(1024)
}

impl Decoder {
    /// Runs the model over `tokens` and keeps the activations at `sites`: `TransformerLens`'
    /// `run_with_cache`, without the logits. At most [`activation_budget`] bytes are kept.
    ///
    /// # Shapes
    /// - tokens: `[batch, pos]`; the activations have the shapes in the table at [`Site`]
    ///
    /// # Errors
    /// If the model has no such site, or the activations do not fit into the budget; the error
    /// names the site.
    ///
    /// # Panics
    /// As [`forward`](Self::forward).
    ///
    /// ```
    /// use burn::tensor::Device;
    /// use headlight_residual::{DecoderConfig, token_tensor};
    ///
    /// let device = Device::flex();
    /// let model = DecoderConfig::default().try_init(0, &device)?; // 2 layers, 4 heads
    /// let batch = token_tensor(&[[5, 6, 7]], &device);
    /// let patterns = model.select("*.hook_pattern")?;
    /// let seen = model.activations(batch.clone(), &patterns)?;
    /// assert_eq!(seen.tensor::<4>(patterns[1]).dims(), [1, 4, 3, 3]);
    ///
    /// // 4·3·3 numbers of 4 bytes in each layer: one layer fits into 200 bytes, two do not.
    /// let error = model.activations_within(batch, &patterns, 200).unwrap_err();
    /// let expected = "blocks.1.attn.hook_pattern takes 144 bytes, and 144 of 200 are taken";
    /// assert_eq!(error.to_string(), expected);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn activations(
        &self,
        tokens: Tensor<2, Int>,
        sites: &[Site],
    ) -> Result<Activations, ActivationsError> {
        Probed::activations(self, tokens, sites)
    }

    /// [`activations`](Self::activations) with a budget of one's own, in bytes.
    ///
    /// # Errors
    /// As [`activations`](Self::activations).
    ///
    /// # Panics
    /// As [`forward`](Self::forward).
    pub fn activations_within(
        &self,
        tokens: Tensor<2, Int>,
        sites: &[Site],
        budget: usize,
    ) -> Result<Activations, ActivationsError> {
        self.keep(tokens, Capture::new(sites, budget), &mut NoProbe)
    }

    /// [`activations`](Self::activations) of a pass that `probe` sees before, and may change:
    /// activations downstream of some [`Edits`](crate::Edits), say.
    ///
    /// # Errors
    /// As [`activations`](Self::activations).
    ///
    /// # Panics
    /// As [`forward`](Self::forward).
    pub fn activations_probed(
        &self,
        tokens: Tensor<2, Int>,
        sites: &[Site],
        probe: &mut dyn AnyProbe,
    ) -> Result<Activations, ActivationsError> {
        Probed::activations_probed(self, tokens, sites, probe)
    }

    /// The logits of a pass, `[batch, pos, vocabulary]`, beside its
    /// [`activations_probed`](Self::activations_probed).
    ///
    /// # Errors
    /// As [`activations`](Self::activations).
    ///
    /// # Panics
    /// As [`forward`](Self::forward).
    pub fn logits_and_activations(
        &self,
        tokens: Tensor<2, Int>,
        sites: &[Site],
        probe: &mut dyn AnyProbe,
    ) -> Result<(Tensor<3>, Activations), ActivationsError> {
        Probed::logits_and_activations(self, tokens, sites, probe)
    }

    /// Keeps what `capture` wants of a pass, which ends where it has all of it.
    pub(crate) fn keep(
        &self,
        tokens: Tensor<2, Int>,
        mut capture: Capture,
        probe: &mut dyn AnyProbe,
    ) -> Result<Activations, ActivationsError> {
        Probed::require(self, capture.sites())?;
        let sites = capture.sites().to_vec();
        self.run_to_the_last(&sites, tokens, &mut (probe, &mut capture));
        capture.into_activations()
    }
}
