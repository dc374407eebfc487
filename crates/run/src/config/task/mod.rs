//! `[task]`: one table for each task, told apart by `task.name`.

mod dyck;
mod grammar;
mod icl_markov;
mod lagged_markov;
mod modular_addition;
mod own;
mod program;
mod rearrange;
mod recall;
mod repeat;
mod sequences;
mod text;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

pub use dyck::DyckConfig;
pub use grammar::GrammarConfig;
pub use icl_markov::IclMarkovConfig;
pub use lagged_markov::LaggedMarkovConfig;
pub use modular_addition::ModularAdditionConfig;
pub use own::{OwnTask, OwnTaskKeys, OwnTasks};
pub use program::ProgramConfig;
pub use rearrange::RearrangeConfig;
pub use recall::RecallConfig;
pub use repeat::RepeatConfig;
pub use sequences::SequencesConfig;
pub use text::{NoTextTokens, TextConfig, TextTokens, TokenTrainer, TrainedTokens};

use crate::{
    Error, ModelConfig,
    config::parse::{parse_strictly, unknown_task},
};

/// What is asked of the keys of a task.
trait TaskKeys {
    /// Whether the numbers make sense, alone and with the model.
    fn check(&self, model: &ModelConfig) -> Result<(), Error>;

    /// Takes out where files lie: what is in them is known from their bytes.
    fn forget_places(&mut self) {}
}

/// The enum of all tasks, and what follows from the list of them.
macro_rules! tasks {
    ($($(#[doc = $doc:literal])+ $name:literal: $Task:ident($Config:ident),)+) => {
        /// `[task]`: the key `name` and the task's own keys.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "name")]
        pub enum TaskConfig {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $Task($Config),)+
            /// A task that a program adds.
            #[serde(untagged)]
            #[schemars(!untagged, skip)]
            Own(OwnTask),
        }

        impl TaskConfig {
            /// Every built-in task's name.
            pub const NAMES: &[&str] = &[$($name),+];

            /// The task's name, as in `task.name`.
            #[must_use]
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$Task(_) => $name,)+
                    Self::Own(task) => &task.name,
                }
            }

            /// The task called `name` with the keys of `table`.
            pub(crate) fn parse(
                name: &str,
                table: Table,
                own: OwnTasks<'_>,
            ) -> Result<Self, Error> {
                match name {
                    $($name => Ok(Self::$Task(parse_strictly("task", table)?)),)+
                    _ => match own.read(name, table)? {
                        Some(task) => Ok(Self::Own(task)),
                        None => Err(unknown_task(name, &Self::names_with(own))),
                    },
                }
            }

            /// Checks the task's numbers.
            pub(crate) fn check(&self, model: &ModelConfig) -> Result<(), Error> {
                match self {
                    $(Self::$Task(task) => task.check(model),)+
                    // Its program has checked it.
                    Self::Own(_) => Ok(()),
                }
            }

            /// Takes out of this task, with which a run was begun, and out of the task `now` where
            /// their files lie.
            pub(crate) fn forget_places(&mut self, now: &mut Self) {
                match (self, now) {
                    $((Self::$Task(begun), Self::$Task(now)) => {
                        begun.forget_places();
                        now.forget_places();
                    })+
                    (Self::Own(begun), Self::Own(now)) => begun.forget_places(now),
                    // Tasks of different names are not the same, wherever their files are.
                    _ => {}
                }
            }
        }
    };
}

/// Where the model of `model.from` is trained on a text, the text is cut by that model's tokenizer.
pub(super) fn take_tokens_of_model(task: &mut Table) {
    if task.get("name").and_then(Value::as_str) == Some("text") {
        let tokens = TextTokens::Model.to_string();
        task.entry("tokens").or_insert(Value::String(tokens));
    }
}

impl TaskConfig {
    /// That the task has the tokens of the model of `model.from`, if there is one.
    pub(crate) fn check_from(&self, model: &ModelConfig) -> Result<(), Error> {
        let tokens = match self {
            Self::Text(text) => Some(&text.tokens),
            _ => None,
        };
        match (&model.from, tokens) {
            (None, Some(TextTokens::Model)) => Err(Error::config(
                "there is no model whose tokenizer could cut the text; set model.from",
            )
            .key("task.tokens")
            .value("model")),
            (None, _) | (Some(_), Some(TextTokens::Model)) => Ok(()),
            (Some(_), Some(other)) => {
                let message = "the text is cut by the tokenizer of the model of model.from; leave the key out";
                Err(Error::config(message).key("task.tokens").value(other))
            }
            (Some(_), None) => {
                let message = "has tokens of its own, which the model of model.from does not know; that model learns from a text: set task.name = \"text\"";
                Err(Error::config(message)
                    .key("task.name")
                    .value(format_args!("{:?}", self.name())))
            }
        }
    }

    /// The names of the built-in tasks, then those of `own`.
    pub(crate) fn names_with(own: OwnTasks<'_>) -> Vec<&'static str> {
        Self::NAMES.iter().copied().chain(own.names()).collect()
    }
}

tasks! {
    /// A block of random tokens, repeated.
    "repeat": Repeat(RepeatConfig),
    /// A Markov chain that skips a step.
    "lagged_markov": LaggedMarkov(LaggedMarkovConfig),
    /// Markov chains, each with a matrix of its own.
    "icl_markov": IclMarkov(IclMarkovConfig),
    /// Key–value pairs, then queries.
    "recall": Recall(RecallConfig),
    /// `a + b mod p`, learned from some of the pairs.
    "modular_addition": ModularAddition(ModularAdditionConfig),
    /// Symbols, then the same in order.
    "sort": Sort(RearrangeConfig),
    /// Symbols, then the same backwards.
    "reverse": Reverse(RearrangeConfig),
    /// Brackets of several kinds.
    "dyck": Dyck(DyckConfig),
    /// A small English with gold relations.
    "grammar": Grammar(GrammarConfig),
    /// What a program answers; its circuit is known.
    "program": Program(ProgramConfig),
    /// Sequences from files of one's own.
    "sequences": Sequences(SequencesConfig),
    /// Any UTF-8 text.
    "text": Text(TextConfig),
}
