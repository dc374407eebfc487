//! Which input of a later layer needs what a head wrote? (Path patching; Wang et al. 2023, section
//! 3.)

use std::collections::BTreeMap;

use burn::tensor::Tensor;
use headlight_heads::{HeadName, Reader};
use headlight_residual::{
    ActivationsError, BlockSite, Edit, Edits, KeptTensor, Probed, Site, site_of_heads,
};
use serde::Serialize;

use crate::{Behaviour, Performance, ablation::by_layer};

/// An input of an attention layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// What its queries are made from: what am I looking for?
    Query,
    /// What its keys are made from: what do I advertise?
    Key,
    /// What its values are made from: what do I carry?
    Value,
}

impl Input {
    /// All three.
    pub const ALL: [Self; 3] = [Self::Query, Self::Key, Self::Value];

    /// Whoever reads what heads wrote at this input of all later layers.
    #[must_use]
    pub fn reader(self) -> Reader {
        match self {
            Self::Query => Reader::Queries,
            Self::Key => Reader::Keys,
            Self::Value => Reader::Values,
        }
    }

    /// The input where `reader` reads; none for the logits.
    #[must_use]
    pub fn of(reader: Reader) -> Option<Self> {
        Self::ALL.into_iter().find(|input| input.reader() == reader)
    }

    pub(crate) fn site(self, layer: usize) -> Site {
        let site = match self {
            Self::Query => BlockSite::QInput,
            Self::Key => BlockSite::KInput,
            Self::Value => BlockSite::VInput,
        };
        Site::Block(layer, site)
    }
}

/// The behaviour when one input of layer `reader` meets the stream without what `writers` put
/// there: the sum of their results is replaced by its mean over sequences and positions. Everything
/// else reads the stream as it is.
///
/// If accuracy falls, the writers are used through this input; an induction circuit needs its
/// previous-token head in the keys alone (K-composition, Elhage et al. 2021).
///
/// `None` where the results of the writers are not all [summands](Probed::summands) of the stream at
/// this input: in a post-norm model, whose stream is not a sum, and for writers that do not all stand
/// before `reader`.
///
/// # Errors
/// If the model lacks the input or the writers' results, or the results do not fit into memory.
pub fn path_test(
    model: &dyn Probed,
    behaviour: &Behaviour,
    writers: &[HeadName],
    reader: usize,
    input: Input,
) -> Result<Option<Performance>, ActivationsError> {
    let site = input.site(reader);
    if !all_are_read(model, writers, site) {
        return Ok(None);
    }
    let written = Written::by(model, behaviour, writers)?;
    let mut edits = written.hidden_at(model, &[site])?.unwrap_or_default();
    Ok(Some(behaviour.measure(model, &mut edits)))
}

/// [`path_test`] of all three inputs, in the order of [`Input::ALL`]; what the writers wrote is
/// looked up once.
///
/// `None` where no input reads all of them. Where one of the three reads another stream, as the
/// queries of a cross-attention do, nothing is hidden from it.
///
/// # Errors
/// As [`path_test`].
pub fn path_tests(
    model: &dyn Probed,
    behaviour: &Behaviour,
    writers: &[HeadName],
    reader: usize,
) -> Result<Option<[Performance; 3]>, ActivationsError> {
    let sites = Input::ALL.map(|input| input.site(reader));
    if !sites.iter().any(|&site| all_are_read(model, writers, site)) {
        return Ok(None);
    }
    let written = Written::by(model, behaviour, writers)?;
    let mut measured = Vec::with_capacity(sites.len());
    for site in sites {
        let mut edits = written.hidden_at(model, &[site])?.unwrap_or_default();
        measured.push(behaviour.measure(model, &mut edits));
    }
    Ok(measured.try_into().ok())
}

/// Whether there are writers, and the stream at `site` has the results of all of them.
fn all_are_read(model: &dyn Probed, writers: &[HeadName], site: Site) -> bool {
    let summands = model.summands(site).unwrap_or_default();
    let is_read = |head: &HeadName| summands.contains(&site_of_heads(model, head.layer));
    !writers.is_empty() && writers.iter().all(is_read)
}

/// What some heads wrote, so that it can be hidden from readers.
pub(crate) struct Written {
    /// By layer: the mean over sequences and positions of the sum of the heads' results, minus that
    /// sum.
    hide: BTreeMap<usize, Tensor<3>>,
}

impl Written {
    pub fn by(
        model: &dyn Probed,
        behaviour: &Behaviour,
        writers: &[HeadName],
    ) -> Result<Self, ActivationsError> {
        let layers = by_layer(writers);
        let heads_of = |layer| site_of_heads(model, layer);
        let sites: Vec<Site> = layers.keys().map(|&layer| heads_of(layer)).collect();
        let seen = model.activations(behaviour.inputs(), &sites)?;
        let mut hide = BTreeMap::new();
        for (layer, heads) in layers {
            let results = seen.tensor::<4>(heads_of(layer));
            let result = |head| results.clone().narrow(2, head, 1).squeeze_dim::<3>(2);
            let sum = heads.into_iter().map(result).reduce(|sum, more| sum + more);
            if let Some(sum) = sum {
                hide.insert(layer, behaviour.mean_of(sum.clone()) - sum);
            }
        }
        Ok(Self { hide })
    }

    /// What turns the stream at `sites` into one in which these heads put their mean; `None` if the
    /// stream has the results of none of them there.
    pub fn hidden_at(
        &self,
        model: &dyn Probed,
        sites: &[Site],
    ) -> Result<Option<Edits>, ActivationsError> {
        let mut edits = None;
        for &site in sites {
            let summands = model.summands(site).unwrap_or_default();
            let of_layer = |(&layer, hide): (&usize, &Tensor<3>)| {
                let heads = site_of_heads(model, layer);
                summands.contains(&heads).then(|| hide.clone())
            };
            let hide = self.hide.iter().filter_map(of_layer);
            if let Some(hide) = hide.reduce(|sum, more| sum + more) {
                model.require(&[site])?;
                let hide = Edit::Add(KeptTensor::from(hide));
                edits = Some(edits.unwrap_or_else(Edits::default).at(site, hide));
            }
        }
        Ok(edits)
    }
}
