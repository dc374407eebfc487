//! Is a head missed for what it moves, or because later heads look elsewhere without it? (Frozen
//! patterns; Elhage et al. 2021, section "Induction heads".)

use headlight_heads::HeadName;
use headlight_residual::{AttentionSite, Capture, Decoder, Edit, Part, Site};

use crate::{Ablation, Behaviour, Performance, ablation, all_heads};

/// The behaviour without `heads`, while the heads in `frozen` attend as in the untouched model.
///
/// What is lost all the same is lost through values: what `heads` wrote was read off the stream by
/// the unembedding, by a feed-forward, or was moved on by later heads (OV). What comes back by
/// freezing was lost because later heads look elsewhere without them (QK).
#[must_use]
pub fn ablate_frozen(
    model: &Decoder,
    behaviour: &Behaviour,
    heads: &[HeadName],
    ablation: Ablation,
    frozen: &[HeadName],
) -> Performance {
    let layers = ablation::by_layer(frozen);
    let site = |layer| Site::Attention(layer, AttentionSite::Pattern);
    let mut untouched = Capture::new(
        &layers.keys().map(|&layer| site(layer)).collect::<Vec<_>>(),
        usize::MAX,
    );
    if !layers.is_empty() {
        let _ = model.forward_probed(behaviour.inputs(), &mut untouched);
    }
    let without = ablation::without(model, behaviour.inputs(), heads, ablation);
    let mut edits = layers.into_iter().fold(without, |edits, (layer, heads)| {
        let Some(pattern) = untouched.tensor_at(site(layer)) else {
            return edits;
        };
        edits.part(
            site(layer),
            Part::heads(&heads),
            Edit::Replace(pattern.clone()),
        )
    });
    behaviour.measure(model, &mut edits)
}

/// All heads in layers after the first that holds one of `heads`: those whose patterns an ablation
/// can change.
#[must_use]
pub fn heads_after(model: &Decoder, heads: &[HeadName]) -> Vec<HeadName> {
    let first = heads.iter().map(|head| head.layer).min();
    all_heads(model)
        .into_iter()
        .filter(|head| first.is_some_and(|first| head.layer > first))
        .collect()
}
