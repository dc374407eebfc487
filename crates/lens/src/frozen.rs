//! Is a head missed for what it moves, or because later heads look elsewhere without it? (Frozen
//! patterns; Elhage et al. 2021, section "Induction heads".)

use headlight_heads::HeadName;
use headlight_residual::{ActivationsError, AttentionSite, Edit, Part, Probed, Site};

use crate::{Ablation, Behaviour, Performance, ablation, all_heads};

/// The behaviour without `heads`, while the heads in `frozen` attend as in the untouched model.
///
/// What is lost all the same is lost through values: what `heads` wrote was read off the stream by
/// the unembedding, by a feed-forward, or was moved on by later heads (OV). What comes back by
/// freezing was lost because later heads look elsewhere without them (QK).
///
/// # Errors
/// If the model has no pattern of such a layer, the patterns do not fit into memory, and as [`without`](crate::without).
pub fn ablate_frozen(
    model: &dyn Probed,
    behaviour: &Behaviour,
    heads: &[HeadName],
    ablation: Ablation,
    frozen: &[HeadName],
) -> Result<Performance, ActivationsError> {
    let mut edits = ablation::without(model, behaviour, heads, ablation)?;
    let layers = ablation::by_layer(frozen);
    let site = |layer| Site::Attention(layer, AttentionSite::Pattern);
    if layers.is_empty() {
        return Ok(behaviour.measure(model, &mut edits));
    }
    let sites: Vec<Site> = layers.keys().map(|&layer| site(layer)).collect();
    let untouched = model.activations(behaviour.inputs(), &sites)?;
    for (layer, heads) in layers {
        let pattern = untouched.kept(site(layer)).clone();
        edits = edits.part(site(layer), Part::heads(&heads), Edit::Replace(pattern));
    }
    Ok(behaviour.measure(model, &mut edits))
}

/// All heads in layers after the first that holds one of `heads`: those whose patterns an ablation
/// can change.
#[must_use]
pub fn heads_after(model: &dyn Probed, heads: &[HeadName]) -> Vec<HeadName> {
    let first = heads.iter().map(|head| head.layer).min();
    all_heads(model)
        .into_iter()
        .filter(|head| first.is_some_and(|first| head.layer > first))
        .collect()
}
