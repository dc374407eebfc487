//! What is lost without a head, or a set of heads? (Ablation; Olsson et al. 2022, section "Argument
//! 3".)

use std::collections::BTreeMap;

use burn::tensor::{Int, Tensor};
use headlight_heads::{Ablation, HeadName};
use headlight_residual::{
    Activations, ActivationsError, AttentionSite, Edit, Edits, Part, Probed, Site,
};

use crate::{Behaviour, Performance};

/// Each head of a model.
#[must_use]
pub fn all_heads(model: &dyn Probed) -> Vec<HeadName> {
    let mut all = Vec::new();
    for (layer, sizes) in model.sizes().layers.iter().enumerate() {
        all.extend((0..sizes.n_heads).map(|head| HeadName { layer, head }));
    }
    all
}

/// The behaviour without `heads`, all of them ablated at once. Without any head it is what the
/// model does untouched.
///
/// # Errors
/// As [`without`].
pub fn ablate(
    model: &dyn Probed,
    behaviour: &Behaviour,
    heads: &[HeadName],
    ablation: Ablation,
) -> Result<Performance, ActivationsError> {
    let mut edits = without(model, behaviour, heads, ablation)?;
    Ok(behaviour.measure(model, &mut edits))
}

/// One ablation after the other. What stands before the first ablated head is computed once.
///
/// ```
/// use burn::tensor::Device;
/// use headlight_heads::{Ablation, HeadName};
/// use headlight_lens::{Ablations, Behaviour, ablate};
/// use headlight_residual::{DecoderConfig, token_tensor};
///
/// let device = Device::flex();
/// let model = DecoderConfig::default().try_init(0, &device)?;
/// let behaviour = Behaviour::new(token_tensor(&[[1, 2, 3]], &device), vec![vec![2, 3, 4]], vec![vec![true; 3]]);
/// let head: HeadName = "L1H0".parse()?;
/// let ablations = Ablations::new(&model, &behaviour, Ablation::Mean);
/// assert_eq!(ablations.without(&[head])?, ablate(&model, &behaviour, &[head], Ablation::Mean)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Ablations<'a> {
    model: &'a dyn Probed,
    behaviour: &'a Behaviour,
    ablation: Ablation,
    /// Of the untouched pass, where the model can go on from activations and they fit into memory.
    kept: Option<Activations>,
}

impl<'a> Ablations<'a> {
    /// Runs the untouched model once.
    #[must_use]
    pub fn new(model: &'a dyn Probed, behaviour: &'a Behaviour, ablation: Ablation) -> Self {
        let mut sites = Vec::new();
        for layer in 0..model.sizes().layers.len() {
            sites.extend(model.kept_for(layer));
        }
        let mut kept = None;
        if !sites.is_empty() {
            kept = model.activations(behaviour.inputs(), &sites).ok();
        }
        Self {
            model,
            behaviour,
            ablation,
            kept,
        }
    }

    /// [`ablate`], from the layer of the first of `heads` on.
    ///
    /// # Errors
    /// As [`without`].
    pub fn without(&self, heads: &[HeadName]) -> Result<Performance, ActivationsError> {
        let (inputs, targets) = (self.behaviour.inputs(), self.behaviour.asked());
        let mut edits = without(self.model, self.behaviour, heads, self.ablation)?;
        let first = heads.iter().map(|head| head.layer).min();
        let (Some(layer), Some(kept)) = (first, &self.kept) else {
            return Ok(self.behaviour.measure(self.model, &mut edits));
        };
        let scores = self
            .model
            .next_token_scores_from(layer, kept, inputs, targets, &mut edits);
        Ok(self.behaviour.performance(&scores))
    }
}

/// The changes that take `heads` away from a run over the behaviour's inputs.
///
/// # Errors
/// If the model has no `hook_z` of a layer of these heads, or the heads are resampled and their
/// blends of values do not fit into memory.
pub fn without(
    model: &dyn Probed,
    behaviour: &Behaviour,
    heads: &[HeadName],
    ablation: Ablation,
) -> Result<Edits, ActivationsError> {
    let (others, mean) = (|| behaviour.others(), behaviour.mean());
    taken_away(model, heads, ablation, others, mean)
}

/// [`without`] over rows that are equally long, `[batch, pos]`. Each row's activations stand in the
/// place of resampled ones of the next.
pub(crate) fn without_over(
    model: &dyn Probed,
    rows: Tensor<2, Int>,
    heads: &[HeadName],
    ablation: Ablation,
) -> Result<Edits, ActivationsError> {
    taken_away(model, heads, ablation, || rows.roll_dim(1, 0), Edit::Mean)
}

fn taken_away(
    model: &dyn Probed,
    heads: &[HeadName],
    ablation: Ablation,
    others: impl FnOnce() -> Tensor<2, Int>,
    mean: Edit,
) -> Result<Edits, ActivationsError> {
    let sites: Vec<Site> = by_layer(heads).into_keys().map(blends_of).collect();
    model.require(&sites)?;
    match ablation {
        Ablation::Zero => Ok(zeroed(heads)),
        Ablation::Mean => Ok(changed(heads, |_| mean.clone())),
        Ablation::Resample if heads.is_empty() => Ok(Edits::default()),
        Ablation::Resample => {
            let others = model.activations(others(), &sites)?;
            Ok(changed(heads, |site| {
                Edit::Replace(others.kept(site).clone())
            }))
        }
    }
}

/// The changes that put 0 in the place of what `heads` blend.
#[must_use]
pub fn zeroed(heads: &[HeadName]) -> Edits {
    changed(heads, |_| Edit::Zero)
}

/// The changes that put the mean over the sequences and positions of the pass in the place of what
/// `heads` blend.
#[must_use]
pub fn mean_ablated(heads: &[HeadName]) -> Edits {
    changed(heads, |_| Edit::Mean)
}

fn changed(heads: &[HeadName], edit: impl Fn(Site) -> Edit) -> Edits {
    let mut edits = Edits::default();
    for (layer, heads) in by_layer(heads) {
        let site = blends_of(layer);
        edits = edits.part(site, Part::heads(&heads), edit(site));
    }
    edits
}

/// What the heads of a layer blend.
pub(crate) fn blends_of(layer: usize) -> Site {
    Site::Attention(layer, AttentionSite::Z)
}

/// The heads of each layer that has any.
pub(crate) fn by_layer(heads: &[HeadName]) -> BTreeMap<usize, Vec<usize>> {
    let mut layers = BTreeMap::<usize, Vec<usize>>::new();
    for head in heads {
        layers.entry(head.layer).or_default().push(head.head);
    }
    layers
}
