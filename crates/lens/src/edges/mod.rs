//! Through which edges does a behaviour run? (Wang et al. 2023, section 3; Conmy et al. 2023.)
//!
//! The stream before a part is the sum of what earlier parts wrote. So each part reads each earlier
//! part along an edge of its own ([`EdgeGraph`]), and an edge can be patched alone: its destination
//! sees `x + (other − own)` of one source, and nothing else changes. [`EdgePatching`] patches edges
//! between the two prompts of each [`PromptPair`](crate::PromptPair), or estimates what patching would do from
//! gradients.
//!
//! A circuit is a set of edges that carries a behaviour while all other edges carry what they carry
//! on the corrupted prompt ([`find_circuit`]). It is a circuit of this behaviour under this
//! corruption: where a corruption does not change the place to look at, no edge that says where to
//! look is part of it.

mod atp_star;
mod attribution;
mod batch;
mod edge_patching;
mod effects;
mod exact;
mod faithfulness;
mod find_circuit;
mod graph;
mod kept_edges;
mod pair;
mod ranking;

pub use atp_star::AtpStar;
pub use edge_patching::EdgePatching;
pub use effects::{Completeness, Effects};
pub use exact::JointEffect;
pub use faithfulness::Faithfulness;
pub use find_circuit::{
    Circuit, CurvePoint, RandomBand, RandomSets, ShareCurve, curve, faithfulness, find_circuit,
    find_edges, share_curve,
};
pub use graph::{EdgeError, EdgeGraph};
pub use pair::{MadePairs, differing_pairs, pairs_of};
pub use ranking::{jaccard, ranked, stability};
