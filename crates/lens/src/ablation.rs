//! What is lost without a head, or a set of heads? (Ablation; Olsson et al. 2022, section "Argument
//! 3".)

use std::collections::BTreeMap;

use burn::tensor::{Int, Tensor};
use headlight_heads::HeadName;
use headlight_residual::{ActivationsError, AttentionSite, Decoder, Edit, Edits, Part, Site};
use rand::{SeedableRng, seq::IteratorRandom};
use rand_chacha::ChaCha8Rng;

use crate::{Behaviour, Performance};

/// What stands in place of an ablated head's blend of values, `hook_z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Ablation {
    /// 0. Also takes away what the head adds always, so that later layers meet inputs they have
    ///    never seen.
    Zero,
    /// Its mean over sequences and positions: only what differs from one place to another is lost.
    #[default]
    Mean,
    /// What the head blended in another of the sequences, at the same position.
    Resample,
}

/// Each head of a model.
#[must_use]
pub fn all_heads(model: &Decoder) -> Vec<HeadName> {
    let heads = |layer| (0..model.n_heads()).map(move |head| HeadName { layer, head });
    (0..model.blocks.len()).flat_map(heads).collect()
}

/// The behaviour without `heads`, all of them ablated at once. Without any head it is what the
/// model does untouched.
///
/// # Errors
/// As [`without`].
pub fn ablate(
    model: &Decoder,
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
/// If the heads are resampled and their blends of values do not fit into memory.
pub fn without(
    model: &Decoder,
    inputs: Tensor<2, Int>,
    heads: &[HeadName],
    ablation: Ablation,
) -> Result<Edits, ActivationsError> {
    match ablation {
        Ablation::Zero => Ok(zeroed(heads)),
        Ablation::Mean => Ok(mean_ablated(heads)),
        Ablation::Resample if heads.is_empty() => Ok(Edits::default()),
        Ablation::Resample => {
            let sites: Vec<Site> = by_layer(heads).into_keys().map(blends_of).collect();
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

/// Sets of as many heads as `heads`, none of them among these, drawn by `seed`; fewer than `count`
/// where there are not so many, and none where too few other heads exist. A drop that such a set
/// causes too says nothing about `heads`.
#[must_use]
pub fn matched_sets(
    model: &Decoder,
    heads: &[HeadName],
    count: usize,
    seed: u64,
) -> Vec<Vec<HeadName>> {
    let rest: Vec<HeadName> = all_heads(model)
        .into_iter()
        .filter(|head| !heads.contains(head))
        .collect();
    if heads.is_empty() || rest.len() < heads.len() {
        return Vec::new();
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut sets = Vec::new();
    // Small models have few sets: what was drawn before is not drawn again, and after many vain
    // draws there are no more.
    for _ in 0..20 * count {
        let mut set = rest.iter().copied().sample(&mut rng, heads.len());
        set.sort();
        if !sets.contains(&set) {
            sets.push(set);
        }
        if sets.len() == count {
            break;
        }
    }
    sets
}

/// Heads in the order in which a greedy search takes them away, each with what is left without it
/// and all before it: every time the one without which accuracy is lowest, until it is at most
/// `accuracy`.
///
/// A small set is evidence that the behaviour lives there; that another small set exists is not
/// ruled out.
///
/// # Errors
/// As [`without`].
pub fn minimal_set(
    model: &Decoder,
    behaviour: &Behaviour,
    ablation: Ablation,
    accuracy: f64,
) -> Result<Vec<(HeadName, Performance)>, ActivationsError> {
    let mut left = all_heads(model);
    let mut taken: Vec<(HeadName, Performance)> = Vec::new();
    while taken
        .last()
        .is_none_or(|(_, performance)| performance.accuracy > accuracy)
    {
        let mut tried = Vec::with_capacity(left.len());
        for &head in &left {
            let heads: Vec<HeadName> = taken.iter().map(|(head, _)| *head).chain([head]).collect();
            tried.push((head, ablate(model, behaviour, &heads, ablation)?));
        }
        let worst = tried
            .into_iter()
            .min_by(|(_, a), (_, b)| a.accuracy.total_cmp(&b.accuracy));
        let Some(worst) = worst else { break };
        left.retain(|head| *head != worst.0);
        taken.push(worst);
    }
    Ok(taken)
}
