//! What did the heads learn? What they look like, from patterns and tokens, and what they are used
//! as, by intervention.
//!
//! A score never stands alone. It has a formula ([`Measure`](headlight_heads::Measure)), a ceiling, a null (what uniform
//! attention scores on the very same rows) and an interval. From them follows the [`Role`](headlight_heads::Role) a head
//! looks like.
//!
//! A score is also known query by query: [`scores_by_position`], [`role_ranges`]. [`HeadWrites`] says
//! how much a head writes, and [`role_checks`] which roles are sure where many heads were looked at.
//!
//! What a head is used as is another question. [`ablate`] takes heads away, alone or in sets,
//! [`ablate_frozen`] while later heads look where they looked; [`path_test`] hides what they wrote
//! from one input of a later layer. All are measured on a [`Behaviour`]. [`Patching`] puts
//! activations of one prompt into another, [`swap_follow`] changes what the context says and asks
//! whether the prediction goes along. [`readers`] says who needs what some heads wrote.
//!
//! Work that heads share shows in none of them alone: [`without_distance`] forbids a distance to all
//! heads of a layer, [`pairs`] and [`keys_and_queries`] compare two interventions with both, and
//! [`minimal_set`] searches for heads without which a behaviour is gone. [`control_sets`] draws heads to
//! compare with.
//!
//! What a head could do on any sequence stands in its weights: [`Circuits`].

mod ablation;
mod band;
mod behaviour;
mod bootstrap;
mod by_position;
mod circuit;
mod compared;
mod control;
mod detect_head;
mod distance;
mod forbidden_distance;
mod frozen;
mod given;
mod in_context;
mod induction_profile;
mod logit_lens;
mod many_heads;
mod missed;
mod offset_profile;
mod patching;
mod path;
mod range;
mod reader;
mod relation;
mod score;
mod shared_work;
mod shuffled;
mod spread;
mod swap_follow;
mod target_weights;
mod value_weighted;
mod writes;

pub use ablation::{ablate, all_heads, mean_ablated, without, zeroed};
pub use behaviour::{Behaviour, Performance};
pub use bootstrap::Estimate;
pub use by_position::{ScoresByPosition, scores_by_position};
pub use circuit::{
    AgainstRandom, CircuitError, Circuits, Composition, Direction, End, Entry, FactoredMatrix,
    FavouriteDistance, Random, Svd, compositions, copying_by_eigenvalues, directions,
    favourite_distance, random_copying,
};
pub use compared::{Joint, Rights};
pub use control::control_sets;
pub use detect_head::{DetectHead, detect_head};
pub use distance::mean_distance;
pub use forbidden_distance::{ForbiddenDistances, without_distance};
pub use frozen::{ablate_frozen, heads_after};
pub use headlight_heads::Ablation;
pub use in_context::{Quarters, half_way};
pub use induction_profile::{InductionProfile, induction_profile};
pub use logit_lens::{Contribution, Depth, direct_logit_attribution, logit_lens};
pub use many_heads::role_checks;
pub use missed::{Missed, missed};
pub use offset_profile::{Offset, offset_profile};
pub use patching::{Patched, Patching, PatchingError, Place};
pub use path::{Input, path_test, path_tests};
pub use range::role_ranges;
pub use reader::{keys_and_queries, readers};
pub use relation::{best_head, score_relations};
pub use score::{LayerPattern, score_layer, score_layer_on, score_targets};
pub use shared_work::{MinimalSet, Pair, Taken, minimal_set, pairs};
pub use shuffled::ShuffledContext;
pub use spread::spread;
pub use swap_follow::{Swap, SwapFollow, swap_follow};
pub use target_weights::{RoleTargets, TargetWeights};
pub use value_weighted::{value_disagreement, value_weighted};
pub use writes::{HeadWrites, head_writes, writes_of_layer, writes_sites};

/// The README's program compiles and does what it says.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
