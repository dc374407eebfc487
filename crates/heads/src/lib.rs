//! The vocabulary of the field as types: heads, scores, roles, readers, relations.
//!
//! Every other room speaks of these. This one needs nothing but serde, so that a program that reads
//! what a run wrote does not compile a model.

mod head_name;
mod may_attend;
mod measure;
mod reader;
mod relation;
mod role;
mod score;
mod sequence_kind;
mod spread;

pub use head_name::{HeadName, NotAHead};
pub use may_attend::MayAttend;
pub use measure::Measure;
pub use reader::Reader;
pub use relation::Relation;
pub use role::{Role, heads_by_role};
pub use score::{RelationScore, RelationScores, Score, Scores};
pub use sequence_kind::SequenceKind;
pub use spread::Spread;
