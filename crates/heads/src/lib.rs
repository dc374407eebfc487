//! The vocabulary of attention heads as types: names of heads, scores, roles, readers, events.
//!
//! Every other room speaks of these. This one needs nothing but serde, so that a program that reads
//! what a run wrote does not compile a model.
//!
//! # What flows in and out
//!
//! Text flows in: `L1H2`, `induction`, `role_emerged`. A typed value flows out, or an error that
//! names the text and lists what is known. The value flows back out as the same text, so that files
//! keep their spelling. Each word is spelled in one place, the type's `name`. Maps by these types
//! are ordered by name.
//!
//! | question | type |
//! |---|---|
//! | which head? | [`HeadName`] |
//! | what is measured? | [`Measure`] by target keys; [`ScoreName`] also entropy and mean distance |
//! | how much is it? | [`Score`]: value, null, ceiling, [`Interval`]; [`RelationScore`] has two nulls |
//! | what does the head look like? | [`Role`]: a measure, or `mixed` |
//! | at which positions, and how surely? | [`RoleRange`], [`RoleCheck`] |
//! | how often is a role false? | [`RoleRate`] |
//! | on which sequences? | [`SequenceKind`] |
//! | what happened while training? | [`RoleEvent`] |
//! | which heads are interfered with? | [`HeadSet`] |
//! | what stands in the place of a head that is off? | [`Ablation`] |
//! | who reads what they wrote? | [`Reader`] |
//! | which part reads which? | [`Edge`] from a [`Source`] to a [`Destination`] |
//! | how is its effect found, between which prompts? | [`EdgeMethod`], [`Metric`], [`PatchDirection`], [`Corruption`] |
//! | which word depends on which? | [`Relation`] |
//! | how sure is a mean over seeds? | [`Spread`] |
//! | what stands in a file for NaN? | [`number`] |
//!
//! # A use
//!
//! ```
//! use headlight_heads::{Interval, Measure, Role, Score, ScoreName, Scores};
//!
//! // Uniform attention gives 0.08 to the previous token. This head gives 0.98.
//! let interval = Interval { low: 0.97, high: 0.99 };
//! let score = Score { value: 0.98, null: 0.08, ceiling: 1.0, interval };
//! let scores = Scores::from([(ScoreName::Measure(Measure::PreviousToken), score)]);
//!
//! let role = Role::of(&scores);
//! assert_eq!(role, Role::Of(Measure::PreviousToken));
//! assert_eq!(format!("It {}.", Measure::PreviousToken.does()), "It looks one token back.");
//! assert_eq!("previous token".parse(), Ok(role));
//! let error = "second token".parse::<ScoreName>().unwrap_err();
//! assert!(error.to_string().starts_with("second token is no score, there are: previous token, "));
//! ```
//!
//! # A new measure
//!
//! One entry in the table of `measure.rs` and one arm in each `match` there. The compiler and the
//! tests lead to the other places.

mod ablation;
mod corruption;
mod edge;
mod edge_method;
mod first_largest;
mod head_name;
mod head_set;
mod interval;
mod may_attend;
mod measure;
mod metric;
mod named;
pub mod number;
mod own_measure;
mod patch_direction;
mod reader;
mod relation;
mod role;
mod role_check;
mod role_event;
mod role_range;
pub mod role_rate;
mod score;
mod score_name;
mod sequence_kind;
mod source;
mod spread;

pub use ablation::Ablation;
pub use corruption::Corruption;
pub use edge::{Destination, Edge};
pub use edge_method::EdgeMethod;
pub use first_largest::first_largest;
pub use head_name::{HeadName, NotAHead};
pub use head_set::HeadSet;
pub use interval::Interval;
pub use may_attend::MayAttend;
pub use measure::Measure;
pub use metric::Metric;
pub use named::UnknownName;
pub use own_measure::{CannotAdd, OwnMeasure, TargetKeys};
pub use patch_direction::PatchDirection;
pub use reader::Reader;
pub use relation::Relation;
pub use role::{Role, heads_by_role};
pub use role_check::RoleCheck;
pub use role_event::RoleEvent;
pub use role_range::RoleRange;
pub use role_rate::RoleRate;
pub use score::{RelationScore, RelationScores, Score, Scores};
pub use score_name::ScoreName;
pub use sequence_kind::SequenceKind;
pub use source::{NotASource, Source};
pub use spread::{Spread, Values};

/// The README's program compiles and does what it says.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
