//! The pairs of prompts between which edges are patched: made from the probe, or given in a file.

use headlight_heads::Corruption;
use headlight_lens::{MadePairs, differing_pairs, pairs_of};
use headlight_residual::Decoder;
use headlight_run::Error;

use super::Subject;

/// From more edges on, a graph is large: each edge cannot be patched, and circuits are shares of it.
pub(super) const LARGE: usize = 2000;
/// Pairs that are made for a large graph.
const PAIRS_OF_LARGE: usize = 16;
/// The fewest pairs: from fewer, halves and intervals say nothing.
const FEWEST_PAIRS: usize = 8;

impl Subject {
    /// The pairs of `--pairs`, or those made from the probe, and what differs in the latter.
    ///
    /// # Errors
    /// If both were asked for, or too few pairs have an answer that the corruption lowers.
    pub(super) fn circuit_pairs(
        &self,
        model: &Decoder,
        edges: usize,
        corruption: Option<Corruption>,
    ) -> Result<(MadePairs, Option<Corruption>), Error> {
        let wrong = |error| self.edge_error(error);
        if let Some(given) = self.pairs() {
            if let Some(corruption) = corruption {
                let message = "does not go with --pairs: its prompts say what differs";
                return Err(Error::new("--corrupt", message).value(corruption));
            }
            let made = differing_pairs(model, given.pairs().to_vec()).map_err(wrong)?;
            if made.pairs.len() < FEWEST_PAIRS {
                let message = format!(
                    "in {} of {} pairs the answer is lower after the corrupted prompt; {FEWEST_PAIRS} are needed",
                    made.pairs.len(),
                    made.made
                );
                return Err(Error::new("--pairs", message));
            }
            return Ok((made, None));
        }
        let corruption = corruption.unwrap_or_default();
        let mut sequences = self.probe()?.tokens;
        if edges > LARGE {
            sequences.truncate(PAIRS_OF_LARGE);
        }
        let made = pairs_of(model, &sequences, corruption, self.seed()).map_err(wrong)?;
        if made.pairs.len() < FEWEST_PAIRS {
            let message = format!(
                "does not continue what came before: of {} {corruption} pairs made from the probe, {} lower the right \
                 answer; {FEWEST_PAIRS} are needed",
                made.made,
                made.pairs.len(),
            );
            return Err(Error::new(self.path().display(), message));
        }
        Ok((made, Some(corruption)))
    }
}

/// `key pairs`, or `pairs given`.
pub(super) fn pairs_in_words(corruption: Option<Corruption>) -> String {
    match corruption {
        Some(corruption) => format!("{corruption} pairs"),
        None => "pairs given".to_owned(),
    }
}
