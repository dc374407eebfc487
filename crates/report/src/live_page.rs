//! The page of a run under way.

use headlight_run::Error;
use maud::html;
use serde::Serialize;

use crate::page::{Page, Visible, module};

/// The page's own modules.
pub(crate) const MODULES: [(&str, &str); 6] = [
    module!("emergence.js"),
    module!("metrics_plots.js"),
    module!("explorer_asks.js"),
    module!("live_scores.js"),
    module!("live_heads.js"),
    module!("live.js"),
];

/// What is known of a run before its first step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LiveFacts {
    /// The run.
    pub name: String,
    /// The task's name.
    pub task: String,
    /// Updates in all.
    pub steps: usize,
    /// What the best predictor pays that knows the task and what is scored, nats, where it is
    /// known.
    pub floor: Option<f64>,
    /// The accuracy of guessing.
    pub chance: f64,
    /// The accuracy that the best predictor is expected to reach which knows the task and what is
    /// scored, where it is known.
    pub best_accuracy: Option<f64>,
    /// Tokens of an update.
    pub tokens_per_step: usize,
    /// The measures that heads are scored on, first the one that takes most to tell.
    pub measures: Vec<&'static str>,
    /// The number of heads in a layer.
    pub n_heads: usize,
    /// A key later than a query is masked; with a window, so is one that far before it.
    pub window: Option<usize>,
    /// Where the report will be.
    pub report: String,
}

/// The page as one HTML file; what is new comes from where it came from.
pub(crate) fn live_page(facts: &LiveFacts) -> Result<String, Error> {
    Page {
        title: &format!("{}: training", facts.name),
        modules: &MODULES,
        data: facts,
        without_script: html! {
            p {
                "Watching " (Visible(&facts.name)) " train needs JavaScript; when it has ended, its report is "
                (Visible(&facts.report)) "."
            }
        },
    }
    .html()
}
