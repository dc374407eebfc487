//! `[interchange]`: the variables of a task's program are trained into chosen parts of the model.

use std::collections::BTreeMap;

use headlight_heads::Source;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Error, FeedForwardKind, ModelConfig, TaskConfig, TrainConfig, config::requirements::require,
};

/// `[interchange]`: interchange training (Geiger et al. 2022, section 3; Gupta et al. 2024, section
/// 3). The rows of a batch are pairs. What a part of the model writes is swapped between the two rows
/// of a pair, and the model must answer as the task's program does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InterchangeConfig {
    /// The part that computes each variable of the program: a head, `"L0H1"`, or a feed-forward,
    /// `"feed-forward 0"`. Parts that are not named here are outside the circuit.
    #[schemars(with = "BTreeMap<String, String>")]
    pub alignment: BTreeMap<String, Source>,
    /// The weight of the interchange loss beside the task's loss, whose weight is 1: a part of the
    /// alignment is swapped, and the answer must be that of the program with these variables
    /// swapped. 0: it is measured and not trained.
    #[serde(default = "default_weight")]
    pub weight: f64,
    /// The weight of the strictness loss: a part outside the circuit is swapped, and the answer
    /// must not change. 0: it is measured and not trained.
    #[serde(default = "default_strictness")]
    pub strictness: f64,
}

fn default_weight() -> f64 {
    1.0
}

fn default_strictness() -> f64 {
    0.4
}

impl InterchangeConfig {
    /// Checks the table against the others. Whether the program has the variables is not known
    /// here.
    pub(crate) fn check(
        &self,
        task: &TaskConfig,
        model: &ModelConfig,
        train: &TrainConfig,
    ) -> Result<(), Error> {
        require(
            matches!(task, TaskConfig::Program(_)),
            "task.name",
            task.name(),
            "must be program with [interchange]: other tasks have no program to align with",
        )?;
        require(
            !self.alignment.is_empty(),
            "interchange.alignment",
            "{}",
            "must name the part of at least one variable, for example previous = \"L0H1\"",
        )?;
        for (variable, part) in &self.alignment {
            let key = format!("interchange.alignment.{variable}");
            check_part(model, *part).map_err(|error| error.key(key).value(part))?;
        }
        for (key, weight) in [
            ("interchange.weight", self.weight),
            ("interchange.strictness", self.strictness),
        ] {
            let is_weight = weight >= 0.0 && (weight as f32).is_finite();
            require(
                is_weight,
                key,
                format_args!("{weight:?}"),
                "must be 0 or more, and finite in 32 bits",
            )?;
        }
        for (key, share) in [
            ("train.dropout", train.dropout),
            ("train.attention_dropout", train.attention_dropout),
        ] {
            require(
                share == 0.0,
                key,
                share,
                "must be 0 with [interchange]: the two rows of a pair would drop different numbers",
            )?;
        }
        let parts = train.shards * train.accumulate;
        require(
            (train.batch_size / parts).is_multiple_of(2),
            "train.batch_size",
            train.batch_size,
            format_args!(
                "must be a multiple of {} with [interchange]: each of {parts} parts takes pairs of rows",
                2 * parts
            ),
        )
    }
}

/// Whether the model has a part that can be swapped.
fn check_part(model: &ModelConfig, part: Source) -> Result<(), Error> {
    let ModelConfig {
        n_layers, n_heads, ..
    } = model;
    match part {
        Source::Head(head) if head.layer < *n_layers && head.head < *n_heads => Ok(()),
        Source::Head(_) => Err(Error::config(format_args!(
            "there is no such head; the model has {n_layers} layers of {n_heads} heads"
        ))),
        Source::FeedForward(_) if model.feed_forward == FeedForwardKind::None => Err(
            Error::config("the model has no feed-forwards; set model.feed_forward"),
        ),
        Source::FeedForward(layer) if layer < *n_layers => Ok(()),
        Source::FeedForward(_) => Err(Error::config(format_args!(
            "there is no such layer; the model has {n_layers}"
        ))),
        Source::Embedding | Source::Positions => {
            Err(Error::config("must be a head or a feed-forward"))
        }
    }
}
