//! The task: walk along the source.

use burn::tensor::{Device, Int, Tensor};
use headlight_lens::Behaviour;
use headlight_residual::token_tensor;
use rand::{RngExt, seq::SliceRandom};

/// The number of different tokens.
pub const VOCABULARY: usize = 12;
/// The number of tokens in a source, all different.
pub const SOURCE: usize = 8;
/// The number of steps of a walk.
pub const TARGET: usize = 4;

/// A source and a walk along it.
#[derive(Debug, Clone)]
pub struct Walk {
    /// The source, then what the decoder reads.
    pub row: Vec<u32>,
    /// What the decoder has to say.
    pub targets: Vec<u32>,
}

impl Walk {
    /// The walk that starts at position `start` of `source`.
    ///
    /// # Panics
    /// If the walk leaves the source.
    #[must_use]
    pub fn along(source: &[u32], start: usize) -> Self {
        let walked = &source[start..=start + TARGET];
        Self {
            row: [source, &walked[..TARGET]].concat(),
            targets: walked[1..].to_vec(),
        }
    }

    /// A random walk along a random source.
    pub fn draw(rng: &mut impl RngExt) -> Self {
        let mut tokens: Vec<u32> = (0..VOCABULARY as u32).collect();
        tokens.shuffle(rng);
        Self::along(&tokens[..SOURCE], rng.random_range(0..SOURCE - TARGET))
    }

    /// `[walks, SOURCE + TARGET]`
    #[must_use]
    pub fn rows(walks: &[Self], device: &Device) -> Tensor<2, Int> {
        let rows: Vec<&[u32]> = walks.iter().map(|walk| walk.row.as_slice()).collect();
        token_tensor(&rows, device)
    }

    /// To say every target of these walks.
    #[must_use]
    pub fn behaviour(walks: &[Self], device: &Device) -> Behaviour {
        let targets = walks.iter().map(|walk| walk.targets.clone()).collect();
        let scored = vec![vec![true; TARGET]; walks.len()];
        Behaviour::new(Self::rows(walks, device), targets, scored)
    }

    /// Where the source has the token that the decoder reads at step `query`.
    #[must_use]
    pub fn place_of(&self, query: usize) -> Option<usize> {
        let read = self.row[SOURCE + query];
        self.row[..SOURCE].iter().position(|&token| token == read)
    }
}
