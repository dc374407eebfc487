//! `inspect RUN predict`: what comes next after a prompt, and what some change makes of it.

use std::collections::BTreeSet;

use headlight_heads::{Ablation, HeadName};
use headlight_report::{ActivationPatch, Printout, Question, Table, one_line};
use headlight_run::Error;
use serde::Serialize;

use super::{
    Output, Subject, Verb,
    patch::names_of,
    prompt_reader::{PromptReader, Reading, SHOWN_TOKENS, check_position, likeliest},
};

/// What comes next after a prompt, with heads switched off and activations of another prompt put in
#[derive(Debug, Clone, clap::Args)]
pub struct PredictVerb {
    /// Tokens by name, with spaces between them; for a model of text, any text
    #[arg(long)]
    prompt: String,
    /// The position whose next token is predicted, counted from 0 [default: the last]
    #[arg(long)]
    position: Option<usize>,
    /// How many of the likeliest tokens to print; with a change, as many of the likeliest without
    /// it too
    #[arg(long, value_name = "K", default_value_t = SHOWN_TOKENS)]
    top: usize,
    /// Switch these heads off, written L1H0,L1H2
    #[arg(long, value_delimiter = ',', value_name = "HEADS")]
    off: Vec<HeadName>,
    /// What stands in place of the blend of values of a head that is off: zero, its mean over the
    /// task's sequences, or its blend in another sequence (resample)
    #[arg(
        long,
        value_name = "zero|mean|resample",
        default_value_t,
        requires = "off"
    )]
    by: Ablation,
    /// Another prompt of as many tokens, whose activations --patch takes
    #[arg(long, value_name = "PROMPT", requires = "patch")]
    patch_from: Option<String>,
    /// Where they are put: `blocks.0.hook_resid_post`, or only at some positions,
    /// `blocks.0.hook_resid_post@3,5`; may be given several times
    #[arg(long, value_name = "PLACE", requires = "patch_from")]
    patch: Vec<String>,
}

impl Verb for PredictVerb {
    const NAME: &'static str = "predict";

    fn show(self, subject: Subject, out: &Output) -> Result<(), Error> {
        out.show(&subject.predict(&self)?, Predictions::printout)
    }
}

/// What `inspect RUN predict` shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Predictions {
    /// The prompt's tokens.
    pub tokens: Vec<String>,
    /// The position whose next token is predicted.
    pub position: usize,
    /// What was changed, in words.
    pub changes: Vec<String>,
    /// What stands in place of the heads that are off; none if none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<Ablation>,
    /// How many tokens there are.
    pub vocabulary: usize,
    /// The likeliest next tokens, the likeliest first; after them those that are among the
    /// likeliest without the changes only.
    pub predictions: Vec<Prediction>,
}

/// A token that may come next.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// Its name.
    pub token: String,
    /// Softmax of the logits, with the changes.
    pub probability: f32,
    /// The same of the model as it is; none if nothing was changed.
    pub untouched: Option<f32>,
}

impl Subject {
    /// What comes next after a prompt, with heads switched off and activations of another prompt
    /// put in: the numbers that the live explorer shows.
    ///
    /// # Errors
    /// If the run has no weights, or a token, head, place or position does not exist, or the
    /// prompts are not equally long.
    pub fn predict(&self, arguments: &PredictVerb) -> Result<Predictions, Error> {
        let PredictVerb { position, top, .. } = *arguments;
        if top == 0 {
            return Err(Error::new("--top", "must be at least 1").value(top));
        }
        let question = arguments.question()?;
        let reader = PromptReader::open(self, self.n_ctx())?;
        let (reading, _) = reader.read(self, &question, &[]).map_err(of_argument)?;
        let Reading {
            tokens,
            changed,
            untouched,
            ..
        } = reading;
        let position = position.unwrap_or(tokens.len() - 1);
        check_position("--position", position, tokens.len())?;

        let (changed, untouched) = (&changed[position], &untouched[position]);
        let changes = arguments.changes();
        let likeliest_before: BTreeSet<usize> = likeliest(untouched, top).into_iter().collect();
        let shown = likeliest(changed, changed.len()).into_iter().enumerate();
        let shown = shown.filter(|(rank, token)| *rank < top || likeliest_before.contains(token));
        let prediction = |(_, token): (usize, usize)| Prediction {
            token: reader.vocabulary[token].clone(),
            probability: changed[token],
            untouched: (!changes.is_empty()).then_some(untouched[token]),
        };
        let predictions = shown.map(prediction).collect();
        Ok(Predictions {
            tokens,
            position,
            changes,
            by: (!arguments.off.is_empty()).then_some(arguments.by),
            vocabulary: reader.vocabulary.len(),
            predictions,
        })
    }
}

impl PredictVerb {
    fn question(&self) -> Result<Question, Error> {
        let from = self.patch_from.clone().unwrap_or_default();
        let patch = |place: &String| {
            let (site, positions) = place
                .split_once('@')
                .map_or((place.as_str(), None), |(site, at)| (site, Some(at)));
            let position = |text: &str| {
                let message =
                    "is no position; positions are counted from 0, with commas between them";
                text.trim()
                    .parse()
                    .map_err(|_| Error::new(format_args!("--patch {place}"), message).value(text))
            };
            let positions = positions
                .map(|all| all.split(',').map(position).collect::<Result<_, _>>())
                .transpose()?;
            Ok(ActivationPatch {
                from: from.clone(),
                site: site.to_owned(),
                positions,
            })
        };
        let patches = self.patch.iter().map(patch).collect::<Result<_, _>>()?;
        Ok(Question {
            prompt: self.prompt.clone(),
            off: self.off.clone(),
            by: self.by,
            patches,
        })
    }

    fn changes(&self) -> Vec<String> {
        let place = self.by.in_words();
        let off = self
            .off
            .iter()
            .map(|head| format!("{head} off: {place} in place of its blend of values"));
        let from = self.patch_from.as_deref().unwrap_or_default();
        let patched = self
            .patch
            .iter()
            .map(|place| format!("{place} as in: {from}"));
        off.chain(patched).collect()
    }
}

/// The same error about the argument that the question's field came from.
fn of_argument(error: Error) -> Error {
    let argument = match error.place() {
        "from" => "--patch-from".to_owned(),
        "site" | "positions" | "patches" => "--patch".to_owned(),
        field @ ("prompt" | "off" | "by") => format!("--{field}"),
        // Not about an argument: a file of the run, say.
        _ => return error,
    };
    error.at(argument)
}

impl Predictions {
    /// The prompt, what was changed, a line for each token.
    #[must_use]
    pub fn printout(&self) -> Printout {
        let mut question = format!(
            "{}\nnext after position {}, {}",
            names_of(&self.tokens),
            self.position,
            one_line(&self.tokens[self.position])
        );
        for change in &self.changes {
            question = question + "\nwith  " + &one_line(change);
        }
        let columns = ["token", "probability", "untouched"];
        let columns = if self.changes.is_empty() {
            &columns[..2]
        } else {
            &columns
        };
        let row = |prediction: &Prediction| {
            let numbers = [Some(prediction.probability), prediction.untouched]
                .into_iter()
                .flatten();
            let numbers = numbers.map(|probability| format!("{probability:.4}"));
            std::iter::once(prediction.token.clone())
                .chain(numbers)
                .collect()
        };
        Printout::new()
            .prose(question)
            .table(Table::new(columns, self.predictions.iter().map(row)))
            .prose(format!(
                "Softmax of the logits; guessing gives each of the {} tokens {}.",
                self.vocabulary,
                of_each(self.vocabulary)
            ))
    }
}

/// What even odds give one of so many tokens. Of many it is little, but never nothing.
fn of_each(tokens: usize) -> String {
    let share = 1.0 / tokens as f64;
    if share < 0.0001 {
        "less than 0.0001".to_owned()
    } else {
        format!("{share:.4}")
    }
}
