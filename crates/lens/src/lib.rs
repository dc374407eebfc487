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
//! Through which edges a behaviour runs is patched edge by edge: [`EdgePatching`],
//! [`find_circuit`].
//!
//! What a head could do on any sequence stands in its weights: [`Circuits`].
//!
//! # Any Burn module
//!
//! A test asks for a [`Probed`](headlight_residual::Probed) model: a
//! [`Decoder`](headlight_residual::Decoder), or a Burn module that lets its activations pass a probe.
//! A test that needs a site or a part that the module does not have is an error that names it.
//!
//! ```
//! use burn::{module::{Module, Param}, tensor::{Device, Int, Tensor, module::embedding}};
//! use headlight_attention::{Mask, MultiHeadAttention, MultiHeadAttentionConfig};
//! use headlight_heads::{Ablation, MayAttend};
//! use headlight_lens::{Behaviour, ablate, logit_lens};
//! use headlight_residual::{AnyProbe, AttentionSizes, Probed, Site, Sizes, attention_probed};
//!
//! /// Says which of two tokens was more frequent so far: the mean of all one-hot tokens.
//! #[derive(Module, Debug)]
//! struct Majority {
//!     one_hot: Param<Tensor<2>>,
//!     attention: MultiHeadAttention,
//! }
//!
//! impl Probed for Majority {
//!     fn sizes(&self) -> Sizes {
//!         let layers = vec![AttentionSizes::of(&self.attention, MayAttend::Causal)];
//!         Sizes { layers, d_model: 2, n_ctx: None, vocabulary: Some(2) }
//!     }
//!     fn device(&self) -> Device {
//!         self.one_hot.device()
//!     }
//!     fn sites(&self) -> Vec<Site> {
//!         Site::of_attention(0)
//!     }
//!     fn forward_probed(&self, rows: Tensor<2, Int>, probe: &mut dyn AnyProbe) -> Tensor<3> {
//!         let x = embedding(self.one_hot.val(), rows);
//!         attention_probed(&self.attention, [x.clone(), x.clone(), x], &Mask::causal(), 0, probe)
//!     }
//! }
//!
//! // Two heads of width 2 with keys that all match alike. The first writes its mean, the second 0.
//! let device = Device::flex();
//! let matrix = |rows: [[f32; 4]; 2]| Param::from_tensor(Tensor::<2>::from_floats(rows, &device));
//! let mut attention = MultiHeadAttentionConfig::new(2, 2).with_d_head(2).init(&device);
//! attention.w_q.weight = matrix([[0.0; 4]; 2]);
//! attention.w_v.weight = matrix([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]);
//! attention.w_o.weight = attention.w_v.weight.clone().map(Tensor::transpose);
//! let model = Majority { one_hot: Param::from_tensor(Tensor::eye(2, &device)), attention };
//!
//! // Asked after the third token: twice 0, twice 1.
//! let rows = Tensor::from_ints([[0, 1, 0], [1, 0, 1]], &device);
//! let asked = vec![vec![false, false, true]; 2];
//! let behaviour = Behaviour::new(rows, vec![vec![0, 0, 0], vec![1, 1, 1]], asked);
//! let without = |heads: &[&str]| -> f64 {
//!     let heads: Vec<_> = heads.iter().map(|head| head.parse().unwrap()).collect();
//!     ablate(&model, &behaviour, &heads, Ablation::Zero).unwrap().accuracy
//! };
//! assert_eq!(without(&[]), 1.0);
//! assert_eq!(without(&["L0H1"]), 1.0); // a head that writes nothing costs nothing
//! assert_eq!(without(&["L0H0"]), 0.5); // all logits are 0, and of equal ones the first is said
//! assert_eq!(logit_lens(&model, &behaviour).unwrap_err().to_string(), "Majority does not give its stream sites");
//! ```

mod ablation;
mod auroc;
mod band;
mod behaviour;
mod bootstrap;
mod by_position;
mod circuit;
mod compared;
mod control;
mod detect_head;
mod distance;
mod each_head;
mod edges;
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
mod prompt_pairs;
mod range;
mod rank_correlation;
mod reader;
mod relation;
mod score;
mod sense_patching;
mod senses;
mod shared_work;
mod shuffled;
mod spread;
mod swap_follow;
mod target_weights;
mod value_weighted;
mod why;
mod writer;
mod writes;

pub use ablation::{Ablations, ablate, all_heads, mean_ablated, without, zeroed};
pub use auroc::{auroc, auroc_of_effects};
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
pub use distance::{LayerDistances, attention_distances, mean_distance};
pub use each_head::{LayerAblations, at_each_layer};
pub use edges::{
    AtpStar, Circuit, Completeness, CurvePoint, EdgeError, EdgeGraph, EdgePatching, Effects,
    Faithfulness, JointEffect, MadePairs, RandomBand, RandomSets, ShareCurve, curve,
    differing_pairs, faithfulness, find_circuit, find_edges, jaccard, pairs_of, ranked,
    share_curve, stability,
};
pub use forbidden_distance::{ForbiddenDistances, without_distance};
pub use frozen::{ablate_frozen, heads_after};
pub use headlight_heads::Ablation;
pub use in_context::{Quarters, half_way};
pub use induction_profile::{InductionProfile, induction_profile};
pub use logit_lens::{Contribution, Depth, direct_logit_attribution, logit_lens};
pub use many_heads::{MeanCheck, mean_checks, role_checks};
pub use missed::{Missed, missed};
pub use offset_profile::{Offset, offset_profile};
pub use patching::{Patched, Patching, PatchingError, Place};
pub use path::{Input, path_test, path_tests};
pub use prompt_pairs::{PromptPair, PromptPairs};
pub use range::role_ranges;
pub use rank_correlation::rank_correlation;
pub use reader::{keys_and_queries, readers};
pub use relation::{best_head, relation_excess, score_relations};
pub use score::{LayerPattern, score_layer, score_layer_on, score_targets};
pub use sense_patching::{SenseMoves, SensePatching};
pub use senses::{SenseHead, Senses, Separation, WordInContext};
pub use shared_work::{MinimalSet, Pair, Taken, minimal_set, pairs};
pub use shuffled::ShuffledContext;
pub use spread::{difference_of_means, spread};
pub use swap_follow::{Swap, SwapFollow, swap_follow};
pub use target_weights::{RoleTargets, TargetWeights};
pub use value_weighted::{value_disagreement, value_weighted};
pub use why::{
    Cell, CellMean, Contrast, Ingredient, Moved, MovedFrom, OfKey, OpenedHead, ScoreTerms, Term,
    Toward, Why, target_cells,
};
pub use writer::Writer;
pub use writes::{
    HeadWrites, head_writes, head_writes_at, writes_of_layer, writes_sites, writes_sites_at,
};

/// The README's program compiles and does what it says.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
