//! Heads to compare with: a loss that any heads cause says nothing about these.

use std::collections::BTreeSet;

use headlight_heads::HeadName;
use headlight_residual::Probed;
use rand::{SeedableRng, seq::IteratorRandom};
use rand_chacha::ChaCha8Rng;

use crate::{ablation::by_layer, all_heads};

/// Sets of heads to compare `heads` with: as many heads, from the same layers, drawn by `seed` from
/// the heads that are neither among `heads` nor `needed` by any test. At most `count` different
/// sets; none where a layer has too few such heads.
///
/// ```
/// use burn::tensor::Device;
/// use headlight_heads::HeadName;
/// use headlight_lens::control_sets;
/// use headlight_residual::DecoderConfig;
///
/// let model = DecoderConfig::default().try_init(0, &Device::flex())?; // 2 layers of 4 heads
/// let head = |name: &str| name.parse::<HeadName>().unwrap();
/// let sets = control_sets(&model, &[head("L0H0")], &[head("L0H3"), head("L1H0")], 5, 0);
/// assert_eq!(sets.len(), 2); // L0H1 or L0H2: L0H3 is needed itself
/// assert!(sets.contains(&vec![head("L0H1")]) && sets.contains(&vec![head("L0H2")]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn control_sets(
    model: &dyn Probed,
    heads: &[HeadName],
    needed: &[HeadName],
    count: usize,
    seed: u64,
) -> Vec<Vec<HeadName>> {
    let is_free = |head: &HeadName| !heads.contains(head) && !needed.contains(head);
    let free: Vec<HeadName> = all_heads(model).into_iter().filter(is_free).collect();
    let free = by_layer(&free);
    let mut wanted = Vec::new();
    for (layer, of_layer) in by_layer(heads) {
        let free_here = free.get(&layer).cloned().unwrap_or_default();
        if free_here.len() < of_layer.len() {
            return Vec::new();
        }
        wanted.push((layer, of_layer.len(), free_here));
    }
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut sets = BTreeSet::new();
    // Small models have few sets, and after many vain draws there are no more.
    for _ in 0..20 * count {
        let mut set = Vec::new();
        for (layer, size, free) in &wanted {
            let drawn = free.iter().copied().sample(&mut rng, *size);
            set.extend(drawn.into_iter().map(|head| HeadName {
                layer: *layer,
                head,
            }));
        }
        set.sort();
        sets.insert(set);
        if sets.len() == count {
            break;
        }
    }
    sets.into_iter().collect()
}
