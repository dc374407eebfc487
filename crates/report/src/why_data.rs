//! Why a head looks there, as a page shows it.

use headlight_heads::HeadName;
use serde::{Deserialize, Serialize};

/// Why the heads of a run look where they look.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WhyOfHeads {
    /// The heads that are told of.
    pub heads: Vec<WhyOfHead>,
}

/// Why one head looks where it looks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WhyOfHead {
    /// The head.
    pub head: HeadName,
    /// At the keys of what it looks like, over the probe; none where no query has such a key.
    pub typical: Option<WhyData>,
    /// On the first sequence of the probe, for each query from the second on, at the key that it
    /// looks at most.
    pub cells: Vec<WhyData>,
}

/// Why a head looks at a key, or at the keys of many queries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WhyData {
    /// The query and the key; none for many.
    pub place: Option<(usize, usize)>,
    /// What came out, in a sentence.
    pub finding: String,
    /// What the terms add up to.
    pub margin: f64,
    /// `Σ|terms|`
    pub sizes: f64,
    /// What of the margin is for every query, whatever it holds.
    pub for_every_query: f64,
    /// The margin of a visible key drawn at random.
    pub random_key: f64,
    /// What the query is made of, what the key is made of, and what their meeting adds to the
    /// margin; the largest first.
    pub terms: Vec<(String, String, f64)>,
    /// How many further terms there are, and what they add together.
    pub others: (usize, f64),
    /// To which logit the head moves something.
    pub toward: String,
    /// What of the value was written by whom, and what it adds to this logit.
    pub moved: Vec<(String, f64)>,
    /// All that the head moves from there to this logit.
    pub moved_together: f64,
    /// The tokens whose logits it raises most; nothing for many cells.
    pub raised: Vec<(String, f64)>,
}
