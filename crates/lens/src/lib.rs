//! What did the heads learn? Pure functions from patterns and tokens to scores.
//!
//! A score never stands alone. It has a formula ([`Measure`]), a ceiling, a null (what uniform attention scores on
//! the very same rows) and an interval. From them follows the [`Role`] a head looks like.

mod bootstrap;
mod distance;
mod measure;
mod relation;
mod role;
mod score;

pub use distance::{MEAN_DISTANCE, mean_distance};
pub use measure::Measure;
pub use relation::{Relation, score_relations};
pub use role::Role;
pub use score::{ENTROPY, LayerPattern, score_layer};
