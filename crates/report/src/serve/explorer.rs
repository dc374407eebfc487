//! What the live explorer asks, and who answers it.

use headlight_heads::{Ablation, HeadName, Role};
use headlight_run::Error;
use serde::{Deserialize, Serialize};

use crate::{Bytes, WalkData, WhyData};

/// A trained model that can be asked. Whatever a question holds, the answer is an answer or an
/// error that names the field.
pub trait Explorer: Send + Sync + 'static {
    /// What the page shows before anything was asked.
    fn facts(&self) -> ExplorerFacts;

    /// A prompt of the run's own task; the same for the same row.
    fn sample(&self, row: usize) -> String;

    /// What the model says, and where its heads look.
    ///
    /// # Errors
    /// If the prompt, a head, a site or a position is none of this model's.
    fn explore(&self, question: &Question) -> Result<Answer, Error>;

    /// The numbers of one head in the same pass.
    ///
    /// # Errors
    /// As [`explore`](Self::explore).
    fn walk(&self, question: &Question, head: HeadName) -> Result<WalkData, Error>;

    /// Why a head looks at a key, in the model as it is.
    ///
    /// # Errors
    /// If the prompt, the head or a position is none of this model's, or the stream is no sum.
    fn why(&self, question: &WhyQuestion) -> Result<WhyData, Error>;
}

/// What does not change from question to question.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExplorerFacts {
    /// The run.
    pub name: String,
    /// The task's name.
    pub task: String,
    /// Every head and what it looks like on the probe.
    pub heads: Vec<(HeadName, Role)>,
    /// The most tokens a prompt may have.
    pub most_tokens: usize,
    /// Some of the tokens' names.
    pub some_tokens: Vec<String>,
    /// Places whose activations can be patched.
    pub sites: Vec<String>,
    /// A key later than a query is masked; with a window, so is one that far before it.
    pub window: Option<usize>,
    /// The first prompt.
    pub prompt: String,
    /// What may stand in place of heads that are off, each with its words; the page begins with
    /// `by`.
    pub ablations: Vec<(Ablation, &'static str)>,
    /// What stands there at first.
    pub by: Ablation,
}

/// A prompt, and what is changed while the model reads it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Token names with spaces between them; for a text, text.
    pub prompt: String,
    /// Heads whose blend of values is replaced.
    #[serde(default)]
    pub off: Vec<HeadName>,
    /// What stands in its place.
    #[serde(default)]
    pub by: Ablation,
    /// Activations that come from other prompts.
    #[serde(default)]
    pub patches: Vec<ActivationPatch>,
}

/// A cell of a head's pattern.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WhyQuestion {
    /// Token names with spaces between them; for a text, text.
    pub prompt: String,
    /// The head.
    pub head: HeadName,
    /// The position of the query.
    pub query: usize,
    /// The position of the key.
    pub key: usize,
}

/// Activations of another prompt put into this one.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActivationPatch {
    /// The other prompt, of as many tokens.
    pub from: String,
    /// The place, as TransformerLens names it: `blocks.0.hook_resid_post`.
    pub site: String,
    /// Only at these positions; all if left out.
    #[serde(default)]
    pub positions: Option<Vec<usize>>,
}

/// What the model says to a question.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// The prompt's tokens.
    pub tokens: Vec<String>,
    /// For each position the likeliest next tokens and their probabilities.
    pub predictions: Vec<Vec<(String, f32)>>,
    /// The same of the model as it is.
    pub untouched: Vec<Vec<(String, f32)>>,
    /// Every head's pattern, `[queries, keys]`, a byte a weight: weight · 255, rounded.
    pub patterns: Vec<(HeadName, Bytes)>,
}
