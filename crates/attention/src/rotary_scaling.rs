//! Slower rotation, for contexts that are longer than those of training.

use std::f64::consts::TAU;

use burn::config::Config;
use serde::{Deserialize, Serialize};

use crate::ConfigError;

/// How rotary frequencies are lowered; a frequency is the angle of a pair at position 1.
///
/// ```
/// use headlight_attention::RotaryScaling;
///
/// assert_eq!(RotaryScaling::Linear { factor: 4.0 }.apply(1.0), 0.25);
/// let llama3 = RotaryScaling::Llama3 {
///     factor: 8.0,
///     low_frequency_factor: 1.0,
///     high_frequency_factor: 4.0,
///     original_n_ctx: 100,
/// };
/// // A pair of frequency f turns 100·f/2π times in 100 positions.
/// let turns = |turns: f64| turns / 100.0 * std::f64::consts::TAU;
/// assert_eq!(llama3.apply(turns(5.0)), turns(5.0));
/// assert_eq!(llama3.apply(turns(0.5)), turns(0.5) / 8.0);
/// // Half-way between 1 turn and 4 turns: half of each, (1 + 1/8)/2 = 9/16.
/// assert!((llama3.apply(turns(2.5)) / turns(2.5) - 0.5625).abs() < 1e-12);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RotaryScaling {
    /// Frequencies stay as they are.
    #[default]
    None,
    /// `f/factor` (position interpolation, Chen et al. 2023).
    Linear {
        /// How much longer the context becomes.
        factor: f64,
    },
    /// Llama 3.1's scaling. With `t = original_n_ctx·f/2π` turns in the original context: `f` for
    /// `t` above `high_frequency_factor`, `f/factor` for `t` below `low_frequency_factor`, and
    /// between them `s·f + (1 − s)·f/factor` with `s` from 0 to 1, linear in `t` (Grattafiori et al.
    /// 2024, as released).
    Llama3 {
        /// How much longer the context becomes.
        factor: f64,
        /// Pairs with fewer turns are slowed down fully.
        low_frequency_factor: f64,
        /// Pairs with more turns stay as they are.
        high_frequency_factor: f64,
        /// The number of positions before.
        original_n_ctx: usize,
    },
}

impl Config for RotaryScaling {}

impl RotaryScaling {
    /// The frequency that takes the place of `frequency`.
    #[must_use]
    pub fn apply(&self, frequency: f64) -> f64 {
        match *self {
            Self::None => frequency,
            Self::Linear { factor } => frequency / factor,
            Self::Llama3 {
                factor,
                low_frequency_factor: low,
                high_frequency_factor: high,
                original_n_ctx,
            } => {
                let turns = original_n_ctx as f64 * frequency / TAU;
                let kept = ((turns - low) / (high - low)).clamp(0.0, 1.0);
                kept * frequency + (1.0 - kept) * frequency / factor
            }
        }
    }

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        match *self {
            Self::None => Ok(()),
            Self::Linear { factor } => ConfigError::check_positive("rotary factor", factor),
            Self::Llama3 {
                factor,
                low_frequency_factor: low,
                high_frequency_factor: high,
                original_n_ctx,
            } => {
                ConfigError::check_positive("rotary factor", factor)?;
                ConfigError::check_positive("low_frequency_factor", low)?;
                ConfigError::check_positive(
                    "high_frequency_factor − low_frequency_factor",
                    high - low,
                )?;
                ConfigError::check_sizes(&[("original_n_ctx", original_n_ctx)])
            }
        }
    }
}
