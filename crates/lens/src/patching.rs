//! Where in the model does the difference between two prompts live? (Activation patching; Meng et
//! al. 2022, section 2; Wang et al. 2023, section 3.)

use std::fmt;

use burn::tensor::Tensor;
use headlight_heads::HeadName;
use headlight_residual::{
    Activations, ActivationsError, AttentionSite, BlockSite, Edit, Edits, Part, Probe, Probed,
    Site, argmax, token_tensor,
};
use serde::Serialize;

use crate::all_heads;

/// Logits in one forward pass: bounds memory.
const LOGITS_AT_ONCE: usize = 1 << 24;

/// Two prompts that the model answers differently, and what it does on each.
///
/// With `m = logit[source's answer] − logit[base's answer]` at one position, an activation of the
/// source put into the run over the base moves the answer by the share
/// `(m − m_base) / (m_source − m_base)`: 0 if nothing changes, 1 if the model says what it says on
/// the source. Below 0 and above 1 are possible.
///
/// With the clean prompt as source and a corrupted one as base, a share of 1 means that this place
/// is enough to bring the answer back; the other way round, that the answer needs it.
#[derive(Debug, Clone)]
pub struct Patching<'a> {
    model: &'a dyn Probed,
    base: Run,
    source: Run,
    position: usize,
}

/// One prompt.
#[derive(Debug, Clone)]
struct Run {
    tokens: Vec<u32>,
    seen: Activations,
    /// Of the token after the prompt's position.
    logits: Vec<f32>,
}

/// Why no difference between two prompts can be found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchingError {
    /// The model answers both alike.
    #[error("the model answers both prompts with token {token}")]
    SameAnswer {
        /// The answer.
        token: u32,
    },
    /// The prompts' activations do not fit into memory.
    #[error(transparent)]
    Activations(#[from] ActivationsError),
}

/// A part of the model whose activation is patched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A whole activation `[batch, pos, d_model]`.
    Stream(Site),
    /// A head's blend of values, `hook_z`.
    Head(HeadName),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stream(site) => site.fmt(f),
            Self::Head(head) => head.fmt(f),
        }
    }
}

impl Place {
    /// The stream before each block, what attention and feed-forward add to it, and every head.
    #[must_use]
    pub fn all(model: &dyn Probed) -> Vec<Self> {
        let layers = model.sizes().layers.len();
        let of_layers = |site| (0..layers).map(move |layer| Site::Block(layer, site));
        let sites = [BlockSite::ResidPre, BlockSite::AttnOut, BlockSite::MlpOut]
            .into_iter()
            .flat_map(of_layers);
        let sites = sites.filter(|&site| model.has(site)).map(Self::Stream);
        sites
            .chain(all_heads(model).into_iter().map(Self::Head))
            .collect()
    }

    fn site(self) -> Site {
        match self {
            Self::Stream(site) => site,
            Self::Head(head) => Site::Attention(head.layer, AttentionSite::Z),
        }
    }
}

/// How far the answer moves when one place is patched.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Patched {
    /// The place.
    pub place: String,
    /// Patched at one position alone, for each position.
    pub by_position: Vec<f64>,
    /// Patched at all positions together.
    pub everywhere: f64,
}

impl<'a> Patching<'a> {
    /// Runs `model` over both prompts; the answer is the likeliest token after `position`.
    ///
    /// # Errors
    /// If the answers agree, the model lacks `hook_z` of a layer, or the activations of a prompt do
    /// not fit into memory.
    ///
    /// # Panics
    /// If the prompts are not equally long or do not reach `position`, or the model has no logits
    /// there.
    pub fn new(
        model: &'a dyn Probed,
        base: &[u32],
        source: &[u32],
        position: usize,
    ) -> Result<Self, PatchingError> {
        assert!(
            base.len() == source.len() && position < base.len(),
            "prompts of {} and {} tokens, read at position {position}",
            base.len(),
            source.len()
        );
        let mut sites: Vec<Site> = Place::all(model).into_iter().map(Place::site).collect();
        sites.dedup();
        let run = |tokens: &[u32]| {
            let seen = model.activations(token_tensor(&[tokens], &model.device()), &sites)?;
            Ok::<Run, ActivationsError>(Run {
                tokens: tokens.to_vec(),
                logits: logits_at(seen.logits.clone(), tokens.len(), position),
                seen,
            })
        };
        let patching = Self {
            model,
            base: run(base)?,
            source: run(source)?,
            position,
        };
        let [base, source] = patching.answers();
        if base == source {
            Err(PatchingError::SameAnswer { token: base })
        } else {
            Ok(patching)
        }
    }

    /// The same prompts in each other's place.
    #[must_use]
    pub fn reversed(&self) -> Self {
        Self {
            base: self.source.clone(),
            source: self.base.clone(),
            ..*self
        }
    }

    /// The likeliest next tokens of base and source, the first of equals.
    #[must_use]
    pub fn answers(&self) -> [u32; 2] {
        [&self.base, &self.source].map(|run| argmax(&run.logits).unwrap_or(0) as u32)
    }

    /// `m_base` and `m_source`: the logit of the source's answer over that of the base's answer in
    /// the untouched runs.
    #[must_use]
    pub fn differences(&self) -> [f64; 2] {
        [&self.base, &self.source].map(|run| self.difference(&run.logits))
    }

    fn difference(&self, logits: &[f32]) -> f64 {
        let [base, source] = self
            .answers()
            .map(|answer| f64::from(logits[answer as usize]));
        source - base
    }

    /// Patches one place, at each position alone and at all together.
    #[must_use]
    pub fn at(&self, place: Place) -> Patched {
        let heads = match place {
            Place::Stream(_) => None,
            Place::Head(head) => Some(vec![head.head]),
        };
        let part = |positions| Part {
            heads: heads.clone(),
            positions,
        };
        let site = place.site();
        let positions = self.base.seen.kept(site).dims()[site.position_axis()];
        let single = (0..positions).map(|position| part(Some(vec![position])));
        let parts: Vec<Part> = single.chain([part(None)]).collect();
        let mut shares = match place {
            Place::Stream(_) => self.shares::<3>(site, &parts),
            Place::Head(_) => self.shares::<4>(site, &parts),
        };
        let everywhere = shares.pop().unwrap_or(f64::NAN);
        Patched {
            place: place.to_string(),
            by_position: shares,
            everywhere,
        }
    }

    /// Patches each head at all positions: the shares, first layer first.
    #[must_use]
    pub fn heads(&self) -> Vec<f64> {
        let mut shares = Vec::new();
        for (layer, sizes) in self.model.sizes().layers.iter().enumerate() {
            let parts: Vec<Part> = (0..sizes.n_heads)
                .map(|head| Part::heads(&[head]))
                .collect();
            let site = Site::Attention(layer, AttentionSite::Z);
            shares.extend(self.shares::<4>(site, &parts));
        }
        shares
    }

    /// The share for each part of the activation at `site`. Each part is a row of one batch: all
    /// rows meet the site with what the base has there, but for their part.
    fn shares<const D: usize>(&self, site: Site, parts: &[Part]) -> Vec<f64> {
        let base = self.base.seen.tensor::<D>(site);
        let source = self.source.seen.kept(site);
        let patched = |part: &Part| {
            let mut edits =
                Edits::default().part(site, part.clone(), Edit::Replace(source.clone()));
            Probe::at(&mut edits, site, base.clone())
        };
        let [from, to] = self.differences();
        let (length, classes) = (self.base.tokens.len(), self.base.logits.len());
        let rows_at_once = LOGITS_AT_ONCE / (length * classes);
        let mut shares = Vec::with_capacity(parts.len());
        for parts in parts.chunks(rows_at_once.max(1)) {
            let rows = Tensor::cat(parts.iter().map(patched).collect(), 0);
            let mut edits = Edits::default().at(site, Edit::Replace(rows.into()));
            let inputs = token_tensor(&vec![&self.base.tokens; parts.len()], &base.device());
            let logits = self.model.forward_probed(inputs, &mut edits);
            let logits = logits_at(logits, length, self.position);
            let moved = |logits: &[f32]| (self.difference(logits) - from) / (to - from);
            shares.extend(logits.chunks(classes).map(moved));
        }
        shares
    }
}

/// Of every row of `length` ids the logits at one position, one row after the other.
fn logits_at(logits: Tensor<3>, length: usize, position: usize) -> Vec<f32> {
    let [_, outputs, _] = logits.dims();
    assert!(
        position + outputs >= length,
        "no logits at position {position}: they stand for the last {outputs} of {length}"
    );
    logits
        .narrow(1, position + outputs - length, 1)
        .into_data()
        .iter::<f32>()
        .collect()
}
