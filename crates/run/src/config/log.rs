//! `[log]`: what is written while training.

use headlight_heads::HeadName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ModelConfig, requirements::require};
use crate::Error;

/// Heads that are watched of a model of `model.from` where nobody says how many.
const OF_A_LARGE_MODEL: usize = 16;

/// `[log]`: how often things are measured, in steps, and of which heads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LogConfig {
    /// Loss and accuracy on the validation batch, and head scores.
    pub every: usize,
    /// Attention patterns.
    pub patterns_every: usize,
    /// The megabytes that patterns may take besides, of measurements that matter: eight a decade of
    /// steps, and each at which a head took on a role or lost one; 0: none. Patterns that would
    /// pass the limit are not kept.
    pub moments_megabytes: usize,
    /// The heads whose scores, roles and uses are logged: their names, `["L5H0", "L5H1"]`, or how
    /// many. A number takes the strongest at step 0, each measure in turn. Left out: all heads; of a
    /// model of `model.from` at most 16.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heads: Option<WatchedHeads>,
}

/// `log.heads`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "must be a number of heads or a list of their names, such as [\"L5H0\", \"L5H1\"]"
)]
pub enum WatchedHeads {
    /// So many.
    Number(usize),
    /// These.
    Named(#[schemars(with = "Vec<String>")] Vec<HeadName>),
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            every: 50,
            patterns_every: 250,
            moments_megabytes: 16,
            heads: None,
        }
    }
}

impl LogConfig {
    /// Puts the number of heads in force where it is left out; done again, it changes nothing.
    pub(super) fn resolve_heads(&mut self, model: &ModelConfig) {
        let heads = model.n_layers.saturating_mul(model.n_heads);
        if model.from.is_some() && self.heads.is_none() {
            self.heads = Some(WatchedHeads::Number(heads.min(OF_A_LARGE_MODEL)));
        }
    }

    pub(super) fn check(&self, model: &ModelConfig) -> Result<(), Error> {
        for (key, value) in [
            ("log.every", self.every),
            ("log.patterns_every", self.patterns_every),
        ] {
            require(value >= 1, key, value, "must be at least 1")?;
        }
        match &self.heads {
            None => Ok(()),
            Some(WatchedHeads::Number(heads)) => {
                let all = model.n_layers * model.n_heads;
                require(
                    (1..=all).contains(heads),
                    "log.heads",
                    heads,
                    format_args!("must be between 1 and {all}, all heads of the model"),
                )
            }
            Some(WatchedHeads::Named(heads)) => check_named(heads, model),
        }
    }
}

/// That there are heads, each one of the model and named once.
fn check_named(heads: &[HeadName], model: &ModelConfig) -> Result<(), Error> {
    let key = "log.heads";
    require(!heads.is_empty(), key, "[]", "must name a head")?;
    for (index, head) in heads.iter().enumerate() {
        require(
            head.layer < model.n_layers && head.head < model.n_heads,
            key,
            head,
            format_args!(
                "the last head is L{}H{}",
                model.n_layers - 1,
                model.n_heads - 1
            ),
        )?;
        require(!heads[..index].contains(head), key, head, "is named twice")?;
    }
    Ok(())
}
