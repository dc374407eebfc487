//! `train.stop_when`: a target that ends training.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is measured on the validation batch, as `metrics.jsonl` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// The share of scored positions whose likeliest token is right.
    Accuracy,
    /// The share of sequences whose scored targets are all right.
    Exact,
    /// The loss in nats.
    Validation,
}

const QUANTITIES: [(&str, Quantity); 3] = [
    ("accuracy", Quantity::Accuracy),
    ("exact", Quantity::Exact),
    ("validation", Quantity::Validation),
];

/// A target, written `"accuracy >= 0.98"` or `"validation <= 0.05"`.
///
/// ```
/// use headlight_run::StopWhen;
///
/// let target: StopWhen = "accuracy >= 0.98".parse()?;
/// assert!(target.is_reached(|_| 0.98) && !target.is_reached(|_| 0.97));
/// assert_eq!(target.to_string(), "accuracy >= 0.98");
/// assert!("accuracy > 0.98".parse::<StopWhen>().is_err());
/// assert!("accuracy >= 98".parse::<StopWhen>().is_err()); // a share
/// # Ok::<(), headlight_run::NoTarget>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct StopWhen {
    quantity: Quantity,
    target: f64,
}

impl StopWhen {
    /// Whether the measured values reach the target; a value that is no number does not.
    pub fn is_reached(&self, measured: impl Fn(Quantity) -> f64) -> bool {
        let value = measured(self.quantity);
        if self.quantity == Quantity::Validation {
            value <= self.target
        } else {
            value >= self.target
        }
    }
}

/// A text that is no target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be accuracy >= SHARE, exact >= SHARE or validation <= NATS, for example accuracy >= 0.98"
)]
pub struct NoTarget;

impl FromStr for StopWhen {
    type Err = NoTarget;

    fn from_str(text: &str) -> Result<Self, NoTarget> {
        let parse = || {
            let [name, sign, target] = text
                .split_whitespace()
                .collect::<Vec<_>>()
                .try_into()
                .ok()?;
            let (_, quantity) = QUANTITIES.into_iter().find(|(known, _)| *known == name)?;
            let target: f64 = target.parse().ok()?;
            let fits = match quantity {
                Quantity::Validation => sign == "<=" && target >= 0.0 && target.is_finite(),
                Quantity::Accuracy | Quantity::Exact => {
                    sign == ">=" && target > 0.0 && target <= 1.0
                }
            };
            fits.then_some(Self { quantity, target })
        };
        parse().ok_or(NoTarget)
    }
}

impl fmt::Display for StopWhen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, sign) = match self.quantity {
            Quantity::Accuracy => ("accuracy", ">="),
            Quantity::Exact => ("exact", ">="),
            Quantity::Validation => ("validation", "<="),
        };
        write!(f, "{name} {sign} {}", self.target)
    }
}

impl TryFrom<String> for StopWhen {
    type Error = NoTarget;

    fn try_from(text: String) -> Result<Self, NoTarget> {
        text.parse()
    }
}

impl From<StopWhen> for String {
    fn from(target: StopWhen) -> Self {
        target.to_string()
    }
}
