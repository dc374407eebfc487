//! What the live explorer asks, and who answers it.

use headlight_heads::{Ablation, Corruption, HeadName, Role};
use headlight_run::Error;
use serde::{Deserialize, Serialize};

use crate::{Bytes, CircuitData, WalkData, WhyData};

/// A trained model that can be asked, by several at once. Whatever a question holds, the answer is
/// an answer or an error whose place is the field that is wrong.
pub trait Explorer: Send + Sync + 'static {
    /// What the page shows before anything was asked.
    fn facts(&self) -> ExplorerFacts;

    /// A prompt of the run's own task; the same for the same row.
    fn sample(&self, row: usize) -> String;

    /// What the model says.
    ///
    /// # Errors
    /// If the prompt, a head, a site or a position is none of this model's.
    fn explore(&self, question: &Question) -> Result<Answer, Error>;

    /// Where these heads look in the same pass: `[queries, keys]` of each, a byte a weight, weight ·
    /// 255, rounded.
    ///
    /// # Errors
    /// As [`explore`](Self::explore).
    fn patterns(
        &self,
        question: &Question,
        heads: &[HeadName],
    ) -> Result<Vec<(HeadName, Bytes)>, Error>;

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

    /// Through which edges the continuation of what came before runs, in the model as it is.
    ///
    /// # Errors
    /// If the model does not continue what came before, or its stream is no sum.
    fn circuit(&self, question: &CircuitOfPairs) -> Result<CircuitData, Error>;

    /// How far the answer moves when one place is patched between two prompts.
    ///
    /// # Errors
    /// If the prompts do not fit together, the place or the position is none of this model's, or the
    /// model answers both prompts alike.
    fn sweep(&self, question: &SweepQuestion) -> Result<Sweep, Error>;

    /// What the model writes on after a prompt.
    ///
    /// # Errors
    /// If the prompt or a head is none of this model's, or the temperature makes no sense.
    fn write(&self, question: &WritingQuestion) -> Result<Writing, Error>;
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
    /// The head whose pattern is shown at first.
    pub chosen: Option<HeadName>,
    /// The most tokens a prompt may have.
    pub most_tokens: usize,
    /// Some of the tokens' names.
    pub some_tokens: Vec<String>,
    /// Places whose activations can be patched.
    pub sites: Vec<String>,
    /// Places of a sweep, by what they are.
    pub sweeps: Vec<(&'static str, Vec<String>)>,
    /// Its edges, if its stream is a sum.
    pub edges: Option<EdgesFacts>,
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

/// The edges of a model, and which circuits can be asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EdgesFacts {
    /// Each kind of pairs with its words.
    pub kinds: Vec<(Corruption, &'static str)>,
    /// How many edges there are.
    pub edges: usize,
    /// Whether a circuit takes minutes.
    pub is_large: bool,
}

/// Whose circuit is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CircuitOfPairs {
    /// What differs between the two prompts of a pair.
    pub pairs: Corruption,
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
    /// The probability of each token of the prompt after those before it, from the second on.
    pub right: Vec<f32>,
    /// The same of the model as it is.
    pub right_untouched: Vec<f32>,
}

/// Two prompts, and one place whose activations of one are put into the other.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepQuestion {
    /// The prompt whose answer is looked for.
    pub prompt: String,
    /// As many tokens with another answer. Without it, what followed the last token before is
    /// replaced.
    #[serde(default)]
    pub from: Option<String>,
    /// The position whose next token is the answer; the last if left out.
    #[serde(default)]
    pub position: Option<usize>,
    /// The place: `blocks.0.hook_resid_pre`, or a head.
    pub place: String,
    /// Which prompt is changed.
    pub direction: SweepDirection,
}

/// Which prompt is read, and which gives its activations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SweepDirection {
    /// Activations of the prompt in the other one: how much of the prompt's answer returns.
    Returns,
    /// Activations of the other one in the prompt: how much of the answer is lost.
    Lost,
}

/// How far the answer moves when a place is patched: 0 not at all, 1 all the way.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sweep {
    /// The other prompt, as it can be typed.
    pub from: String,
    /// The tokens of the prompt.
    pub tokens: Vec<String>,
    /// The tokens of the other one.
    pub other_tokens: Vec<String>,
    /// The likeliest next token of the prompt, and of the other one.
    pub answers: [String; 2],
    /// Patched at one position alone.
    pub by_position: Vec<f64>,
    /// Patched at all positions together.
    pub everywhere: f64,
}

/// What is to be written on.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WritingQuestion {
    /// The prompt, and the heads that are off while the model writes. Patches have no positions in
    /// a text that grows, so there may be none.
    pub question: Question,
    /// The most tokens to write.
    pub tokens: usize,
    /// Divides the logits; 0 takes the likeliest token.
    pub temperature: f64,
    /// What the draws follow from.
    pub seed: u64,
}

/// What the model wrote.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Writing {
    /// The names of the tokens.
    pub tokens: Vec<String>,
    /// Why it ended.
    pub ending: String,
}
