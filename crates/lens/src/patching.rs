//! Where in the model does the difference between two prompts live? (Activation patching; Meng et
//! al. 2022, section 2; Wang et al. 2023, section 3.)

use std::fmt;

use burn::tensor::Tensor;
use headlight_heads::HeadName;
use headlight_residual::{
    Activations, ActivationsError, AttentionSite, BlockSite, Edit, Edits, NoProbe, Part, Probe,
    Probed, Site, argmax, token_tensor,
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
    /// The answers of base and source.
    answers: [u32; 2],
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
        let mut patching = Self::between(model, base, source, position, [0, 0])?;
        let likeliest = |run: &Run| argmax(&run.logits).unwrap_or(0) as u32;
        patching.answers = [&patching.base, &patching.source].map(likeliest);
        let [base, source] = patching.answers;
        if base == source {
            Err(PatchingError::SameAnswer { token: base })
        } else {
            Ok(patching)
        }
    }

    /// The same between two answers that somebody names, of base and source, whatever the likeliest
    /// tokens are.
    ///
    /// # Errors
    /// If the model lacks `hook_z` of a layer, or the activations of a prompt do not fit into memory.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub fn between(
        model: &'a dyn Probed,
        base: &[u32],
        source: &[u32],
        position: usize,
        answers: [u32; 2],
    ) -> Result<Self, ActivationsError> {
        assert!(
            base.len() == source.len() && position < base.len(),
            "prompts of {} and {} tokens, read at position {position}",
            base.len(),
            source.len()
        );
        let mut sites: Vec<Site> = Place::all(model).into_iter().map(Place::site).collect();
        sites.dedup();
        let run = |tokens: &[u32]| {
            let inputs = token_tensor(&[tokens], &model.device());
            let logits = model.logits_at(inputs.clone(), position, &mut NoProbe);
            Ok::<Run, ActivationsError>(Run {
                tokens: tokens.to_vec(),
                logits: numbers(logits),
                seen: model.activations(inputs, &sites)?,
            })
        };
        Ok(Self {
            model,
            base: run(base)?,
            source: run(source)?,
            position,
            answers,
        })
    }

    /// The same prompts in each other's place.
    #[must_use]
    pub fn reversed(&self) -> Self {
        Self {
            base: self.source.clone(),
            source: self.base.clone(),
            answers: [self.answers[1], self.answers[0]],
            ..*self
        }
    }

    /// The answers of base and source: unless somebody named them, the likeliest next tokens, the
    /// first of equals.
    #[must_use]
    pub fn answers(&self) -> [u32; 2] {
        self.answers
    }

    /// `m_base` and `m_source`: the logit of the source's answer over that of the base's answer in
    /// the untouched runs.
    #[must_use]
    pub fn differences(&self) -> [f64; 2] {
        [&self.base, &self.source].map(|run| self.difference(&run.logits))
    }

    fn difference(&self, logits: &[f32]) -> f64 {
        let [base, source] = self
            .answers
            .map(|answer| f64::from(logits[answer as usize]));
        source - base
    }

    /// `m_source − m_base`: how far the answer can be moved.
    #[must_use]
    pub fn gap(&self) -> f64 {
        let [base, source] = self.differences();
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
        let moved = match place {
            Place::Stream(_) => self.moved::<3>(site, &parts),
            Place::Head(_) => self.moved::<4>(site, &parts),
        };
        let mut shares = self.shares(&moved);
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
        self.shares(&self.moved_by_heads())
    }

    /// `m − m_base` with each head patched at all positions, first layer first: its share of the
    /// [gap](Self::gap), before it is divided.
    #[must_use]
    pub fn moved_by_heads(&self) -> Vec<f64> {
        let mut moved = Vec::new();
        for (layer, sizes) in self.model.sizes().layers.iter().enumerate() {
            let parts: Vec<Part> = (0..sizes.n_heads)
                .map(|head| Part::heads(&[head]))
                .collect();
            let site = Site::Attention(layer, AttentionSite::Z);
            moved.extend(self.moved::<4>(site, &parts));
        }
        moved
    }

    fn shares(&self, moved: &[f64]) -> Vec<f64> {
        moved.iter().map(|moved| moved / self.gap()).collect()
    }

    /// `m − m_base` for each part of the activation at `site`. Each part is a row of one batch: all
    /// rows meet the site with what the base has there, but for their part. What stands before the
    /// block is not computed again.
    fn moved<const D: usize>(&self, site: Site, parts: &[Part]) -> Vec<f64> {
        let base = self.base.seen.tensor::<D>(site);
        let source = self.source.seen.kept(site);
        let patched = |part: &Part| {
            let mut edits =
                Edits::default().part(site, part.clone(), Edit::Replace(source.clone()));
            Probe::at(&mut edits, site, base.clone())
        };
        let [from, _] = self.differences();
        let before = site
            .layer()
            .map(|layer| Site::Block(layer, BlockSite::ResidPre));
        let before = before.and_then(|site| self.base.seen.get::<3>(site));
        let (length, classes) = (self.base.tokens.len(), self.base.logits.len());
        let rows_at_once = LOGITS_AT_ONCE / (length * classes);
        let mut moved = Vec::with_capacity(parts.len());
        for parts in parts.chunks(rows_at_once.max(1)) {
            let rows = Tensor::cat(parts.iter().map(patched).collect(), 0);
            let mut edits = Edits::default().at(site, Edit::Replace(rows.into()));
            let inputs = token_tensor(&vec![&self.base.tokens; parts.len()], &base.device());
            let logits = match (site.layer(), &before) {
                (Some(layer), Some(before)) => {
                    let stream = before.clone().repeat_dim(0, parts.len());
                    self.model
                        .logits_at_from(layer, inputs, stream, self.position, &mut edits)
                        .expect("a model with this site goes on from it")
                }
                _ => self.model.logits_at(inputs, self.position, &mut edits),
            };
            let by_part = |logits: &[f32]| self.difference(logits) - from;
            moved.extend(numbers(logits).chunks(classes).map(by_part));
        }
        moved
    }
}

fn numbers(tensor: Tensor<3>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}
