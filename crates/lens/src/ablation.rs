//! What is lost without a head, or a set of heads? (Ablation; Olsson et al. 2022, section "Argument
//! 3".)

use std::collections::BTreeMap;

use burn::tensor::{Int, Tensor};
use headlight_heads::{Ablation, HeadName};
use headlight_residual::{ActivationsError, AttentionSite, Edit, Edits, Part, Probed, Site};

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
    let mut edits = without(model, behaviour.inputs(), heads, ablation)?;
    Ok(behaviour.measure(model, &mut edits))
}

/// The changes that take `heads` away from a run over `inputs`, `[batch, pos]`.
///
/// # Errors
/// If the model has no `hook_z` of a layer of these heads, or the heads are resampled and their
/// blends of values do not fit into memory.
pub fn without(
    model: &dyn Probed,
    inputs: Tensor<2, Int>,
    heads: &[HeadName],
    ablation: Ablation,
) -> Result<Edits, ActivationsError> {
    let sites: Vec<Site> = by_layer(heads).into_keys().map(blends_of).collect();
    model.require(&sites)?;
    match ablation {
        Ablation::Zero => Ok(zeroed(heads)),
        Ablation::Mean => Ok(mean_ablated(heads)),
        Ablation::Resample if heads.is_empty() => Ok(Edits::default()),
        Ablation::Resample => {
            // Each sequence's activations stand in the place of those of the one before it.
            let others = model.activations(inputs.roll_dim(1, 0), &sites)?;
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
fn blends_of(layer: usize) -> Site {
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
