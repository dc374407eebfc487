//! `inspect RUN detect`: the numbers that `TransformerLens` gives the heads.

use std::collections::BTreeMap;

use headlight_heads::{HeadName, Measure};
use headlight_lens::{DetectHead, detect_head};
use headlight_report::{Printout, Table};
use headlight_run::Error;
use headlight_tasks as tasks;
use headlight_watch::each_layer;
use serde::Serialize;

use super::{ModelParts, Output, Subject, Verb};

/// The scores that TransformerLens gives the heads, for comparison with that tool
#[derive(Debug, clap::Args)]
pub struct DetectVerb {
    /// Tokens by name, with spaces between them; for a model of text, any text [default: the probe]
    #[arg(long)]
    prompt: Option<String>,
}

impl Verb for DetectVerb {
    const NAME: &'static str = "detect";

    fn show(self, subject: Subject, out: &Output) -> Result<(), Error> {
        out.show(
            &subject.detect(self.prompt.as_deref())?[..],
            detect_printout,
        )
    }
}

/// The kinds of heads that `TransformerLens` has a name for.
const MEASURES: [Measure; 3] = [
    Measure::PreviousToken,
    Measure::DuplicateToken,
    Measure::Induction,
];

/// What `inspect RUN detect` shows of a head.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DetectedHead {
    /// The head.
    pub head: HeadName,
    /// By their names there, `previous_token_head` and so on.
    #[serde(flatten)]
    pub found: BTreeMap<String, DetectHead>,
}

impl Subject {
    /// What `TransformerLens`' `detect_head` gives each head on `prompt` (token names between
    /// spaces; for a text, text) or, without one, on the probe: there the mean over its sequences.
    ///
    /// # Errors
    /// If the run has no weights, a token does not exist, or the prompt is too long.
    pub fn detect(&self, prompt: Option<&str>) -> Result<Vec<DetectedHead>, Error> {
        let ModelParts { model, .. } = self.model()?;
        let n_ctx = self.n_ctx();
        let tokens = match prompt {
            Some(prompt) => vec![tasks::encode_prompt(&self.vocabulary()?, prompt, n_ctx)?],
            None => self.probe()?.tokens,
        };
        let has_start = self
            .start()?
            .is_some_and(|start| tokens.iter().all(|row| row.first() == Some(&start)));
        let mut heads = Vec::new();
        each_layer(&model, &tokens, &self.device, has_start, false, |seen| {
            let layer = seen.layer;
            let found = MEASURES.map(|measure| detect_head(seen.pattern, &tokens, measure));
            for head in 0..model.n_heads() {
                let of_measure =
                    |(measure, found): (Measure, &Vec<DetectHead>)| (name(measure), found[head]);
                let found = MEASURES.into_iter().zip(&found).map(of_measure).collect();
                heads.push(DetectedHead {
                    head: HeadName { layer, head },
                    found,
                });
            }
        })?;
        Ok(heads)
    }
}

/// The head's name there.
fn name(measure: Measure) -> String {
    format!("{}_head", measure.name().replace(' ', "_"))
}

/// `previous mul`
fn column(measure: Measure, error: &str) -> String {
    format!("{} {error}", measure.name().replace(" token", ""))
}

/// A table.
#[must_use]
pub fn detect_printout(heads: &[DetectedHead]) -> Printout {
    let columns = MEASURES
        .iter()
        .flat_map(|measure| ["mul", "abs"].map(|error| column(*measure, error)));
    let header: Vec<String> = std::iter::once("head".to_owned()).chain(columns).collect();
    let row = |head: &DetectedHead| {
        let found = MEASURES.iter().map(|&measure| &head.found[&name(measure)]);
        let cells = found
            .flat_map(|found| [found.mul, found.abs])
            .map(|value| format!("{value:.3}"));
        std::iter::once(head.head.to_string())
            .chain(cells)
            .collect()
    };
    let duplicate = ["mul", "abs"].map(|error| column(Measure::DuplicateToken, error));
    Printout::new()
        .prose(
            "What TransformerLens' detect_head gives each head, for comparison with that tool: it counts queries \
             without a target too, has no null, and its induction score stays below ½ on a block that comes once again.",
        )
        .table(Table::new(&header, heads.iter().map(row)).first_to_go(&duplicate))
}
