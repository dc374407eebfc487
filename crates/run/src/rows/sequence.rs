//! A sequence as a row: its tokens, and what is known about predicting them.

use headlight_heads::Relation;
use serde::{Deserialize, Serialize};

/// A line of `validation.jsonl` and of `probe.jsonl`. Positions are counted from 0, losses are in
/// nats. All but the tokens may be left out.
///
/// ```
/// use headlight_run::SequenceRow;
///
/// let line = r#"{"tokens":[3,1,2],"scored":[1],"floor":[1.5,0.25]}"#;
/// let row: SequenceRow = serde_json::from_str(line).unwrap();
/// // Two inputs. The task scores the target at input 1, which is token 2.
/// assert_eq!((row.inputs(), row.scores()), (2, vec![false, true]));
/// assert_eq!(serde_json::to_string(&row).unwrap(), line);
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SequenceRow {
    /// The ids. The target at `tokens[i]` is `tokens[i + 1]`, so the last one is only a target.
    pub tokens: Box<[u32]>,
    /// The inputs whose targets the task scores, in order; left out: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scored: Option<Box<[usize]>>,
    /// The gold relations: `["verb→subject", dependent, source]`.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub relations: Box<[Relation]>,
    /// The task's own questions.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub questions: Box<[Question]>,
    /// For each target the loss of the best predictor that knows the task and which targets are
    /// scored; left out: nobody knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor: Option<Box<[f64]>>,
    /// For each target the loss of the best predictor that knows the task alone; left out: the
    /// floor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bayes: Option<Box<[f64]>>,
    /// A predictor that solves less than the task and looks good at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortcut: Option<Shortcut>,
    /// For each target how often the best predictor that knows the task and which targets are scored
    /// is right, 0 to 1; left out: nobody knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_accuracy: Option<Box<[f64]>>,
}

/// A predictor that solves less than the task and looks good at first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shortcut {
    /// Its name.
    pub name: Box<str>,
    /// Its loss for each target, nats.
    pub losses: Box<[f64]>,
}

/// At `input`, is the `right` next token likelier than each of the `wrong` ones?
///
/// Everything else that might follow is left aside: a model may think that an adverb is likely
/// here, and still know which form the verb must have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The position after which the answer stands.
    pub input: usize,
    /// The answer.
    pub right: u32,
    /// What must be less likely.
    pub wrong: Vec<u32>,
    /// The kinds of question this is, by name.
    pub kinds: Vec<Box<str>>,
}

impl Question {
    /// Whether these logits answer rightly; a tie is wrong.
    ///
    /// ```
    /// use headlight_run::Question;
    ///
    /// let question = Question { input: 0, right: 1, wrong: vec![0], kinds: vec!["agreement".into()] };
    /// assert!(question.is_answered_by(&[0.2, 0.3, 9.0])); // token 2 is not asked about
    /// assert!(!question.is_answered_by(&[0.3, 0.3, 9.0]));
    /// ```
    #[must_use]
    pub fn is_answered_by(&self, logits: &[f32]) -> bool {
        self.wrong
            .iter()
            .all(|&wrong| logits[self.right as usize] > logits[wrong as usize])
    }
}

impl SequenceRow {
    /// The number of inputs: all tokens but the last.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.tokens.len().saturating_sub(1)
    }

    /// Whether the task scores the target at each input.
    ///
    /// # Panics
    /// If a scored position is no input.
    #[must_use]
    pub fn scores(&self) -> Vec<bool> {
        let Some(scored) = &self.scored else {
            return vec![true; self.inputs()];
        };
        let mut scores = vec![false; self.inputs()];
        for &input in scored {
            scores[input] = true;
        }
        scores
    }

    /// What cannot be in this row of a model with `vocabulary` tokens and sequences of at most
    /// `n_ctx`, if anything.
    #[must_use]
    pub fn fault(&self, vocabulary: usize, n_ctx: usize) -> Option<String> {
        let (tokens, inputs) = (self.tokens.len(), self.inputs());
        if !(2..=n_ctx + 1).contains(&tokens) {
            return Some(format!(
                "tokens: are {tokens}; expected 2 to model.n_ctx + 1 = {}",
                n_ctx + 1
            ));
        }
        let asked = self.questions.iter();
        let asked = asked.flat_map(|question| question.wrong.iter().chain([&question.right]));
        if let Some(id) = self
            .tokens
            .iter()
            .chain(asked)
            .find(|id| **id as usize >= vocabulary)
        {
            return Some(format!("{id} is no token; the run has {vocabulary}"));
        }
        let scored = self.scored.as_deref().unwrap_or_default();
        if !scored.is_sorted_by(|a, b| a < b) {
            return Some("scored: must be in order, each position once".to_owned());
        }
        let asked_at = self.questions.iter().map(|question| question.input);
        if let Some(at) = scored
            .iter()
            .copied()
            .chain(asked_at)
            .find(|at| *at >= inputs)
        {
            return Some(format!("{at} is no input; the sequence has {inputs}"));
        }
        let related = self.relations.iter();
        let mut related = related.flat_map(|relation| [relation.dependent, relation.source]);
        if let Some(at) = related.find(|at| *at >= tokens) {
            return Some(format!(
                "relations: {at} is no position; the sequence has {tokens}"
            ));
        }
        let shortcut = self.shortcut.as_ref().map(|shortcut| &shortcut.losses);
        if let Some(losses) = [self.floor.as_ref(), self.bayes.as_ref(), shortcut]
            .into_iter()
            .flatten()
            .find(|losses| losses.len() != inputs)
        {
            return Some(format!("{} losses for {inputs} targets", losses.len()));
        }
        let best = self.best_accuracy.as_ref()?;
        if best.len() != inputs {
            return Some(format!(
                "best_accuracy: has {} values for {inputs} targets",
                best.len()
            ));
        }
        let outside = best.iter().find(|share| !(0.0..=1.0).contains(*share))?;
        Some(format!(
            "best_accuracy: {outside} is no share; it is 0 to 1"
        ))
    }

    /// What this row has otherwise than the first row of its file, if anything: all sequences of a
    /// file have one length, and what is known of one is known of all.
    #[must_use]
    pub fn unlike(&self, first: &Self) -> Option<String> {
        let (length, expected) = (self.tokens.len(), first.tokens.len());
        if length != expected {
            return Some(format!(
                "tokens: are {length}, in the first line {expected}; all sequences have one length"
            ));
        }
        let known = |row: &Self| {
            [
                row.floor.is_some(),
                row.bayes.is_some(),
                row.shortcut.is_some(),
                row.best_accuracy.is_some(),
            ]
        };
        (known(self) != known(first)).then(|| {
            "floor, bayes, shortcut and best_accuracy stand in every line or in none".to_owned()
        })
    }
}
