//! Which input of a later layer needs what a head wrote? (Path patching; Wang et al. 2023, section
//! 3.)

use std::collections::BTreeMap;

use burn::tensor::Tensor;
use headlight_heads::{HeadName, Reader};
use headlight_residual::{
    ActivationsError, AttentionSite, BlockSite, Decoder, Edit, Edits, KeptTensor, NormPlacement,
    Site,
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
/// `None` for a post-norm model, whose stream is not a sum, and for writers that do not all stand
/// before `reader`.
///
/// # Errors
/// If the writers' results do not fit into memory.
pub fn path_test(
    model: &Decoder,
    behaviour: &Behaviour,
    writers: &[HeadName],
    reader: usize,
    input: Input,
) -> Result<Option<Performance>, ActivationsError> {
    let Some(hidden) = hidden(model, behaviour, writers, reader)? else {
        return Ok(None);
    };
    let mut edits = Edits::default().at(input.site(reader), hidden);
    Ok(Some(behaviour.measure(model, &mut edits)))
}

/// [`path_test`] of all three inputs, in the order of [`Input::ALL`]; what the writers wrote is
/// looked up once.
///
/// # Errors
/// As [`path_test`].
pub fn path_tests(
    model: &Decoder,
    behaviour: &Behaviour,
    writers: &[HeadName],
    reader: usize,
) -> Result<Option<[Performance; 3]>, ActivationsError> {
    let Some(hidden) = hidden(model, behaviour, writers, reader)? else {
        return Ok(None);
    };
    let through = |input: Input| {
        behaviour.measure(
            model,
            &mut Edits::default().at(input.site(reader), hidden.clone()),
        )
    };
    Ok(Some(Input::ALL.map(through)))
}

fn hidden(
    model: &Decoder,
    behaviour: &Behaviour,
    writers: &[HeadName],
    reader: usize,
) -> Result<Option<Edit>, ActivationsError> {
    let before = writers.iter().all(|head| head.layer < reader);
    if !before || reader >= model.blocks.len() {
        return Ok(None);
    }
    let written = Written::by(model, behaviour, writers)?;
    Ok(written.and_then(|written| written.hidden_before(reader)))
}

/// What some heads wrote, so that it can be hidden from readers.
pub(crate) struct Written {
    /// By layer: the mean over sequences and positions of the sum of the heads' results, minus that
    /// sum.
    hide: BTreeMap<usize, Tensor<3>>,
}

impl Written {
    /// `None` for a post-norm model, whose stream is not a sum.
    pub fn by(
        model: &Decoder,
        behaviour: &Behaviour,
        writers: &[HeadName],
    ) -> Result<Option<Self>, ActivationsError> {
        if model.config().norm_placement == NormPlacement::Post {
            return Ok(None);
        }
        let layers = by_layer(writers);
        let site = |layer| Site::Attention(layer, AttentionSite::Result);
        let sites: Vec<Site> = layers.keys().map(|&layer| site(layer)).collect();
        let seen = model.activations(behaviour.inputs(), &sites)?;
        let mut hide = BTreeMap::new();
        for (layer, heads) in layers {
            let results = seen.tensor::<4>(site(layer));
            let result = |head| results.clone().narrow(2, head, 1).squeeze_dim::<3>(2);
            let sum = heads.into_iter().map(result).reduce(|sum, more| sum + more);
            if let Some(sum) = sum {
                hide.insert(layer, sum.clone().mean_dim(0).mean_dim(1) - sum);
            }
        }
        Ok(Some(Self { hide }))
    }

    /// What turns the stream before block `reader` into one in which these heads put their mean;
    /// `None` if none of them stands before it.
    pub fn hidden_before(&self, reader: usize) -> Option<Edit> {
        let before = self.hide.range(..reader).map(|(_, hide)| hide.clone());
        before
            .reduce(|sum, more| sum + more)
            .map(|hide| Edit::Add(KeptTensor::from(hide)))
    }
}
