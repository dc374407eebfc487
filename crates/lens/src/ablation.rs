//! What is lost without a head, or a set of heads? (Ablation; Olsson et al. 2022, section "Argument
//! 3".)

use std::collections::BTreeMap;

use burn::tensor::{Int, Tensor};
use headlight_heads::HeadName;
use headlight_residual::{AttentionSite, Capture, Decoder, Edit, Edits, KeptTensor, Part, Site};
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
#[must_use]
pub fn ablate(
    model: &Decoder,
    behaviour: &Behaviour,
    heads: &[HeadName],
    ablation: Ablation,
) -> Performance {
    behaviour.measure(
        model,
        &mut without(model, behaviour.inputs(), heads, ablation),
    )
}

/// The changes that take `heads` away from a run over `inputs`, `[batch, pos]`.
#[must_use]
pub fn without(
    model: &Decoder,
    inputs: Tensor<2, Int>,
    heads: &[HeadName],
    ablation: Ablation,
) -> Edits {
    let layers = by_layer(heads);
    let site = |layer| Site::Attention(layer, AttentionSite::Z);
    let others = match ablation {
        Ablation::Resample => others(
            model,
            inputs,
            &layers.keys().map(|&layer| site(layer)).collect::<Vec<_>>(),
        ),
        _ => BTreeMap::new(),
    };
    layers
        .iter()
        .fold(Edits::default(), |edits, (&layer, heads)| {
            let edit = match ablation {
                Ablation::Zero => Edit::Zero,
                Ablation::Mean => Edit::Mean,
                Ablation::Resample => Edit::Replace(others[&site(layer)].clone()),
            };
            edits.part(site(layer), Part::heads(heads), edit)
        })
}

/// The heads of each layer that has any.
pub(crate) fn by_layer(heads: &[HeadName]) -> BTreeMap<usize, Vec<usize>> {
    let mut layers = BTreeMap::<usize, Vec<usize>>::new();
    for head in heads {
        layers.entry(head.layer).or_default().push(head.head);
    }
    layers
}

/// The activations at `sites`, each sequence's in the place of the one before it.
fn others(model: &Decoder, inputs: Tensor<2, Int>, sites: &[Site]) -> BTreeMap<Site, KeptTensor> {
    if sites.is_empty() {
        return BTreeMap::new();
    }
    let mut seen = Capture::new(sites, usize::MAX);
    let _ = model.forward_probed(inputs.roll_dim(1, 0), &mut seen);
    sites
        .iter()
        .filter_map(|&site| Some((site, seen.tensor_at(site)?.clone())))
        .collect()
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
#[must_use]
pub fn minimal_set(
    model: &Decoder,
    behaviour: &Behaviour,
    ablation: Ablation,
    accuracy: f64,
) -> Vec<(HeadName, Performance)> {
    let mut left = all_heads(model);
    let mut taken: Vec<(HeadName, Performance)> = Vec::new();
    while taken
        .last()
        .is_none_or(|(_, performance)| performance.accuracy > accuracy)
    {
        let without = |&head: &HeadName| {
            let heads: Vec<HeadName> = taken.iter().map(|(head, _)| *head).chain([head]).collect();
            (head, ablate(model, behaviour, &heads, ablation))
        };
        let worst = left
            .iter()
            .map(without)
            .min_by(|(_, a), (_, b)| a.accuracy.total_cmp(&b.accuracy));
        let Some(worst) = worst else { break };
        left.retain(|head| *head != worst.0);
        taken.push(worst);
    }
    taken
}
