//! The pairs of prompts between which edges are patched: made from the probe, or given in a file.

use headlight_heads::Corruption;
use headlight_lens::{EdgeGraph, MadePairs, PromptPair, differing_pairs, pairs_of};
use headlight_residual::Decoder;
use headlight_run::{Error, ErrorKind};

use crate::Subject;

/// From more edges on, a graph is large: each edge cannot be patched, and circuits are shares of it.
pub(super) const LARGE: usize = 2000;
/// Pairs that are made for a large graph.
const PAIRS_OF_LARGE: usize = 16;
/// The fewest pairs: from fewer, halves and intervals say nothing.
const FEWEST_PAIRS: usize = 8;

/// Pairs, and what differs between their prompts; `None` where they were given.
pub(super) struct CircuitPairs {
    pub made: MadePairs,
    pub corruption: Option<Corruption>,
}

impl CircuitPairs {
    /// The half on which edges are chosen, and the half on which they are reported.
    pub fn halves(&self) -> (&[PromptPair], &[PromptPair]) {
        self.made.pairs.split_at(self.made.pairs.len() / 2)
    }
}

impl Subject {
    /// The pairs that are asked for, those of `--pairs`, or else value pairs.
    ///
    /// # Errors
    /// If too few pairs have an answer that the corruption lowers.
    pub(super) fn circuit_pairs(
        &self,
        model: &Decoder,
        corruption: Option<Corruption>,
    ) -> Result<CircuitPairs, Error> {
        let corruption = corruption.or(self.corruption());
        let Some(given) = self.pairs().filter(|_| corruption.is_none()) else {
            let corruption = corruption.unwrap_or_default();
            return Ok(CircuitPairs {
                made: self.made_pairs(model, corruption)?,
                corruption: Some(corruption),
            });
        };
        let made = differing_pairs(model, given.pairs().to_vec());
        let made = made.map_err(|error| self.edge_error(error))?;
        if made.pairs.len() < FEWEST_PAIRS {
            let message = format!(
                "in {} of {} pairs the answer is lower after the corrupted prompt; {FEWEST_PAIRS} are needed",
                made.pairs.len(),
                made.made
            );
            return Err(Error::new("--pairs", message));
        }
        Ok(CircuitPairs {
            made,
            corruption: None,
        })
    }

    /// Pairs made from the probe; of a model with a large graph, few.
    ///
    /// # Errors
    /// If in too few of them the corruption lowers the right answer.
    pub(crate) fn made_pairs(
        &self,
        model: &Decoder,
        corruption: Corruption,
    ) -> Result<MadePairs, Error> {
        let mut sequences = self.probe()?.tokens;
        // A model without a graph of edges has pairs all the same.
        if EdgeGraph::of(model).is_ok_and(|graph| graph.edges().len() > LARGE) {
            sequences.truncate(PAIRS_OF_LARGE);
        }
        let made = pairs_of(model, &sequences, corruption, self.seed());
        let made = made.map_err(|error| self.edge_error(error))?;
        if made.pairs.len() < FEWEST_PAIRS {
            let message = format!(
                "does not continue what came before: of {} {corruption} pairs made from the probe, {} lower the right \
                 answer; {FEWEST_PAIRS} are needed",
                made.made,
                made.pairs.len(),
            );
            return Err(Error::of(
                ErrorKind::Missing,
                self.path().display(),
                message,
            ));
        }
        Ok(made)
    }
}

/// `key pairs`, or `pairs given`.
pub(super) fn pairs_in_words(corruption: Option<Corruption>) -> String {
    match corruption {
        Some(corruption) => format!("{corruption} pairs"),
        None => "pairs given".to_owned(),
    }
}
