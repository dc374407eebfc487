//! `inspect SUBJECT circuit`: through which edges a behaviour runs.

mod agreement;
mod found;
mod over_training;
mod page;
mod pairs;
mod picture;
mod printout;
mod search;
mod sentences;

use headlight_heads::{Corruption, EdgeMethod, Metric, PatchDirection};
use headlight_run::Error;

use super::{Limit, Output, Part, Subject, Verb, picture_files::PictureFiles, verb::POST_NORM};

pub use found::{
    Agreement, CircuitEdges, FoundCircuit, MeasuredEdge, MeasuredPart, NamedPair, PairCounts,
    Similarity, Stability,
};
pub use over_training::{CircuitAtStep, CircuitOverTraining, EdgeOverTraining};
pub(crate) use page::edges_facts;

/// The edges through which the continuation of what came before runs: which part reads which part,
/// as queries, keys, values or logits
///
/// --pairs says what differs between the two prompts of a pair: what followed the current token
/// before (value, the default), the earlier token that equals the current one (key), or the current
/// token (query). Such pairs are made from the probe. A file has pairs of its own
#[derive(Debug, clap::Args)]
pub struct CircuitVerb {
    /// Each edge patched (exact), or estimated from gradients (eap, eap-ig, atp-star) beside patching
    /// [default: exact, for more than 2000 edges eap-ig]
    #[arg(long, value_name = "exact|eap|eap-ig|atp-star")]
    method: Option<EdgeMethod>,
    /// What is read from the logits
    #[arg(long, value_name = "logit-difference|loss|kl", default_value_t)]
    metric: Metric,
    /// Corrupted values put into the clean run (noise), or clean ones into the corrupted run
    /// (denoise)
    #[arg(long, value_name = "noise|denoise", default_value_t)]
    direction: PatchDirection,
    /// The effects of edges alone: no circuit is searched for, which takes most of the time
    #[arg(long)]
    effects_only: bool,
    /// When each edge of the circuit appeared, at the kept checkpoints of a run
    #[arg(long, conflicts_with_all = ["method", "direction", "effects_only", "svg", "png"])]
    over_training: bool,
    #[command(flatten)]
    files: PictureFiles,
}

impl Verb for CircuitVerb {
    const NAME: &'static str = "circuit";
    const TAKES_PAIRS: bool = true;
    const PARTS: &'static [Part] = &[Part {
        name: "",
        limits: &[Limit {
            on: POST_NORM,
            says: "has no edges: its stream is no sum of what its parts write, since norms replace it",
        }],
    }];

    fn show(self, subject: Subject, out: &Output) -> Result<(), Error> {
        let asked = CircuitQuestion {
            corruption: None,
            method: self.method,
            metric: self.metric,
            direction: self.direction,
            effects_only: self.effects_only,
            is_brief: false,
        };
        if self.over_training {
            let found = subject.circuit_over_training(asked)?;
            return out.show(&found, CircuitOverTraining::printout);
        }
        let found = subject.circuit(asked)?;
        let written = self.files.write(|| Ok(found.picture().svg()))?;
        let terminal = out.terminal;
        out.show_text(&found, &found.edges, written, |found| {
            found.printout().draw(&terminal)
        })
    }
}

/// What is asked about edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CircuitQuestion {
    /// What differs between the prompts of a pair; `None`: as `--pairs` says, or value.
    pub corruption: Option<Corruption>,
    /// How effects are found; `None`: as the size of the graph allows.
    pub method: Option<EdgeMethod>,
    /// What is read from the logits.
    pub metric: Metric,
    /// Which run is changed.
    pub direction: PatchDirection,
    /// Whether no circuit is searched for.
    pub effects_only: bool,
    /// Whether what a page does not show is left out: the search on the other half, and whole parts.
    /// Beside a circuit stand 5 random sets in place of 20.
    pub is_brief: bool,
}

impl CircuitQuestion {
    /// The circuit of one kind of pairs, for a page.
    #[must_use]
    pub fn for_page(corruption: Corruption) -> Self {
        Self {
            corruption: Some(corruption),
            is_brief: true,
            ..Self::default()
        }
    }
}
