//! What did the heads learn? What they look like, from patterns and tokens, and what they are used
//! as, by intervention.
//!
//! A score never stands alone. It has a formula ([`Measure`](headlight_heads::Measure)), a ceiling, a null (what uniform
//! attention scores on the very same rows) and an interval. From them follows the [`Role`](headlight_heads::Role) a head
//! looks like.
//!
//! What a head is used as is another question. [`ablate`] takes heads away, alone or in sets,
//! [`ablate_frozen`] while later heads look where they looked; [`path_test`] hides what they wrote
//! from one input of a later layer. All are measured on a [`Behaviour`]. [`Patching`] puts
//! activations of one prompt into another, [`swap_follow`] changes what the context says and asks
//! whether the prediction goes along. [`readers`] says who needs what some heads wrote.
//!
//! What a head could do on any sequence stands in its weights: [`Circuits`].

mod ablation;
mod behaviour;
mod bootstrap;
mod circuit;
mod detect_head;
mod distance;
mod frozen;
mod in_context;
mod logit_lens;
mod offset_profile;
mod patching;
mod path;
mod reader;
mod relation;
mod score;
mod shuffled;
mod spread;
mod swap_follow;
mod value_weighted;

pub use ablation::{
    Ablation, ablate, all_heads, matched_sets, mean_ablated, minimal_set, without, zeroed,
};
pub use behaviour::{Behaviour, Performance};
pub use bootstrap::Estimate;
pub use circuit::{
    AgainstRandom, CircuitError, Circuits, Composition, Direction, End, Entry, FactoredMatrix,
    FavouriteDistance, Random, Svd, compositions, copying_by_eigenvalues, directions,
    favourite_distance, random_copying,
};
pub use detect_head::{DetectHead, detect_head};
pub use distance::mean_distance;
pub use frozen::{ablate_frozen, heads_after};
pub use in_context::{Quarters, half_way};
pub use logit_lens::{Contribution, Depth, direct_logit_attribution, logit_lens};
pub use offset_profile::{Offset, offset_profile};
pub use patching::{Patched, Patching, PatchingError, Place};
pub use path::{Input, path_test, path_tests};
pub use reader::readers;
pub use relation::{best_head, score_relations};
pub use score::{LayerPattern, score_layer};
pub use shuffled::ShuffledContext;
pub use spread::spread;
pub use swap_follow::{Swap, SwapFollow, swap_follow};
pub use value_weighted::{value_disagreement, value_weighted};

/// The README's program compiles and does what it says.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
