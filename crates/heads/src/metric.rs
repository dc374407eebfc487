//! What is read from the logits.

use crate::named::named;

/// What is read from the logits at the position that is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Metric {
    /// `logit[answer] − logit[wrong answer]`: higher is better.
    #[default]
    LogitDifference,
    /// `−ln p(answer)` in nats: lower is better.
    Loss,
    /// `Σ p_clean·ln(p_clean/p)` in nats, the divergence from the clean prompt: lower is better.
    Kl,
}

impl Metric {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::LogitDifference, Self::Loss, Self::Kl];

    /// The name in files and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LogitDifference => "logit-difference",
            Self::Loss => "loss",
            Self::Kl => "kl",
        }
    }

    /// How much an edge matters whose effect is this: what is lost without it.
    ///
    /// ```
    /// use headlight_heads::Metric;
    ///
    /// assert_eq!(Metric::LogitDifference.importance(-2.0), 2.0); // the answer lost 2 logits
    /// assert_eq!(Metric::Loss.importance(0.5), 0.5); // the loss rose by 0.5 nats
    /// ```
    #[must_use]
    pub fn importance(self, effect: f64) -> f64 {
        match self {
            Self::LogitDifference => -effect,
            Self::Loss | Self::Kl => effect,
        }
    }

    fn all() -> [Self; Self::ALL.len()] {
        Self::ALL
    }
}

named!(Metric, "metric");
