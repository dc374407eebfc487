//! Slower rotation, for contexts that are longer than those of training.

use std::f64::consts::TAU;

use burn::config::Config;
use serde::{Deserialize, Serialize};

use crate::ConfigError;

/// How the frequencies `f = base^(−2i/rotated)` of the rotary pairs `i` are lowered. A frequency is the
/// angle of a pair at position 1.
///
/// Under [`Dynamic`](Self::Dynamic) and [`LongRope`](Self::LongRope) the angles of *all* positions depend
/// on the length of the sequence: a longer sequence has another output at its first position. Their
/// authors decided so. A sequence that is decoded with a cache keeps the angles that each key had when it
/// came ([`turns_alike`](Self::turns_alike)).
///
/// ```
/// use headlight_attention::RotaryScaling;
///
/// // Two pairs, of the frequencies 100^0 and 100^(−2/4).
/// let frequencies = |scaling: RotaryScaling, length| scaling.frequencies(100.0, 4, length);
/// assert_eq!(frequencies(RotaryScaling::Linear { factor: 4.0 }, 9), [0.25, 0.025]);
/// // Twice the original 8 positions: the base becomes 100·(4·2 − 3)^(4/2) = 2500.
/// let dynamic = RotaryScaling::Dynamic { factor: 4.0, original_n_ctx: 8 };
/// assert_eq!(frequencies(dynamic.clone(), 8), [1.0, 0.1]);
/// assert!((frequencies(dynamic, 16)[1] - 0.02).abs() < 1e-12);
/// let long = RotaryScaling::LongRope {
///     short_factors: vec![1.0, 2.0],
///     long_factors: vec![4.0, 5.0],
///     original_n_ctx: 8,
///     attention_factor: 1.25,
/// };
/// assert_eq!(frequencies(long.clone(), 8), [1.0, 0.05]);
/// assert_eq!(frequencies(long.clone(), 9), [0.25, 0.02]);
/// assert_eq!(long.attention_factor(), 1.25);
/// assert!(long.turns_alike(3, 8) && !long.turns_alike(8, 9));
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
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
    /// In a sequence of `length > original_n_ctx` tokens the base becomes `base·(factor·length/original_n_ctx −
    /// factor + 1)^(rotated/(rotated − 2))` (dynamic NTK-aware scaling, as in `transformers`).
    Dynamic {
        /// How much longer the context becomes.
        factor: f64,
        /// The number of positions before.
        original_n_ctx: usize,
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
    /// `YaRN` (Peng et al. 2023, section 3.2, as released): `f` for pairs with more than `fast_turns`
    /// turns in the original context, `f/factor` for pairs with fewer than `slow_turns`, and between
    /// them `(1 − r)·f + r·f/factor` with `r` from 0 to 1, linear in the number of the pair. Rotated
    /// components are multiplied by `attention_factor`.
    Yarn {
        /// How much longer the context becomes.
        factor: f64,
        /// The number of positions before.
        original_n_ctx: usize,
        /// β of the paper.
        #[serde(default = "published_fast_turns")]
        fast_turns: f64,
        /// α of the paper.
        #[serde(default = "published_slow_turns")]
        slow_turns: f64,
        /// Whether the pairs with these turns are rounded outwards to whole numbers.
        #[serde(default = "published_rounding")]
        whole_pairs: bool,
        /// `None`: `0.1·ln(factor) + 1`.
        #[serde(default)]
        attention_factor: Option<f64>,
    },
    /// `LongRoPE` (Ding et al. 2024, as in Phi-3): each pair has a factor of its own, `f/factor`. Which
    /// list holds depends on the sequence: the long one if it has more than `original_n_ctx` tokens.
    /// Rotated components are multiplied by `attention_factor`, in short sequences too.
    #[serde(rename = "longrope")]
    LongRope {
        /// One for each pair.
        short_factors: Vec<f64>,
        /// One for each pair.
        long_factors: Vec<f64>,
        /// The number of positions before.
        original_n_ctx: usize,
        /// The factor on cosines and sines.
        attention_factor: f64,
    },
}

impl Config for RotaryScaling {}

fn published_fast_turns() -> f64 {
    RotaryScaling::FAST_TURNS
}

fn published_slow_turns() -> f64 {
    RotaryScaling::SLOW_TURNS
}

fn published_rounding() -> bool {
    true
}

impl RotaryScaling {
    /// β of `YaRN` where nothing is said (Peng et al. 2023, section 3.2).
    pub const FAST_TURNS: f64 = 32.0;
    /// α of `YaRN` where nothing is said.
    pub const SLOW_TURNS: f64 = 1.0;

    /// The frequency of each of `rotated/2` pairs, in a sequence of `length` tokens.
    ///
    /// # Panics
    /// If a list of factors is shorter than the pairs.
    #[must_use]
    pub fn frequencies(&self, base: f64, rotated: usize, length: usize) -> Vec<f64> {
        let base = self.base_at(base, rotated, length);
        let frequency = |pair: usize| base.powf(-2.0 * pair as f64 / rotated as f64);
        let lowered = |pair: usize| self.lowered(frequency(pair), pair, base, rotated, length);
        (0..rotated / 2).map(lowered).collect()
    }

    /// The factor on cosines and sines.
    #[must_use]
    pub fn attention_factor(&self) -> f64 {
        match *self {
            Self::None | Self::Linear { .. } | Self::Dynamic { .. } | Self::Llama3 { .. } => 1.0,
            Self::Yarn {
                factor,
                attention_factor,
                ..
            } => attention_factor.unwrap_or(0.1 * factor.max(1.0).ln() + 1.0),
            Self::LongRope {
                attention_factor, ..
            } => attention_factor,
        }
    }

    /// Whether sequences of these two lengths have the same angles at the positions that both have.
    #[must_use]
    pub fn turns_alike(&self, a: usize, b: usize) -> bool {
        match *self {
            Self::None | Self::Linear { .. } | Self::Llama3 { .. } | Self::Yarn { .. } => true,
            Self::Dynamic { original_n_ctx, .. } => a == b || a.max(b) <= original_n_ctx,
            Self::LongRope { original_n_ctx, .. } => (a > original_n_ctx) == (b > original_n_ctx),
        }
    }

    fn base_at(&self, base: f64, rotated: usize, length: usize) -> f64 {
        match *self {
            Self::Dynamic {
                factor,
                original_n_ctx,
            } if length > original_n_ctx => {
                let longer = length as f64 / original_n_ctx as f64;
                let exponent = rotated as f64 / (rotated as f64 - 2.0);
                base * (factor * longer - (factor - 1.0)).powf(exponent)
            }
            _ => base,
        }
    }

    fn lowered(
        &self,
        frequency: f64,
        pair: usize,
        base: f64,
        rotated: usize,
        length: usize,
    ) -> f64 {
        match *self {
            Self::None | Self::Dynamic { .. } => frequency,
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
            Self::Yarn {
                factor,
                original_n_ctx,
                fast_turns,
                slow_turns,
                whole_pairs,
                ..
            } => {
                // The pair, in fractions, that turns so often in the original context.
                let pair_with = |turns: f64| {
                    let frequency = turns * TAU / original_n_ctx as f64;
                    -(rotated as f64) * frequency.ln() / (2.0 * base.ln())
                };
                let (mut first, mut last) = (pair_with(fast_turns), pair_with(slow_turns));
                if whole_pairs {
                    (first, last) = (first.floor(), last.ceil());
                }
                (first, last) = (first.max(0.0), last.min(rotated as f64 - 1.0));
                // As released: a step where the two are equal.
                let width = if first == last { 0.001 } else { last - first };
                let slowed = ((pair as f64 - first) / width).clamp(0.0, 1.0);
                (1.0 - slowed) * frequency + slowed * frequency / factor
            }
            Self::LongRope {
                ref short_factors,
                ref long_factors,
                original_n_ctx,
                ..
            } => {
                let is_long = length > original_n_ctx;
                let factors = if is_long { long_factors } else { short_factors };
                frequency / factors[pair]
            }
        }
    }

    pub(crate) fn validate(&self, base: f64, rotated: usize) -> Result<(), ConfigError> {
        match self {
            Self::None => Ok(()),
            Self::Linear { factor } => ConfigError::check_positive("rotary factor", *factor),
            Self::Dynamic {
                factor,
                original_n_ctx,
            } => {
                ConfigError::check_positive("rotary factor", *factor)?;
                ConfigError::check_sizes(&[("original_n_ctx", *original_n_ctx)])?;
                ConfigError::check_at_most(
                    ("the least number of rotary components", 4),
                    ("rotary components", rotated),
                )
            }
            Self::Llama3 {
                factor,
                low_frequency_factor: low,
                high_frequency_factor: high,
                original_n_ctx,
            } => {
                ConfigError::check_positive("rotary factor", *factor)?;
                ConfigError::check_positive("low_frequency_factor", *low)?;
                ConfigError::check_positive(
                    "high_frequency_factor − low_frequency_factor",
                    high - low,
                )?;
                ConfigError::check_sizes(&[("original_n_ctx", *original_n_ctx)])
            }
            Self::Yarn {
                factor,
                original_n_ctx,
                fast_turns,
                slow_turns,
                attention_factor,
                ..
            } => {
                ConfigError::check_positive("rotary factor", *factor)?;
                ConfigError::check_positive("rotary base − 1", base - 1.0)?;
                ConfigError::check_positive("slow_turns", *slow_turns)?;
                ConfigError::check_positive("fast_turns − slow_turns", fast_turns - slow_turns)?;
                ConfigError::check_positive("attention_factor", attention_factor.unwrap_or(1.0))?;
                ConfigError::check_sizes(&[("original_n_ctx", *original_n_ctx)])
            }
            Self::LongRope {
                short_factors,
                long_factors,
                original_n_ctx,
                attention_factor,
            } => {
                for (name, factors) in [
                    ("short_factors", short_factors),
                    ("long_factors", long_factors),
                ] {
                    ConfigError::check_count((name, factors.len()), ("rotary pairs", rotated / 2))?;
                    for &factor in factors {
                        ConfigError::check_positive(name, factor)?;
                    }
                }
                ConfigError::check_positive("attention_factor", *attention_factor)?;
                ConfigError::check_sizes(&[("original_n_ctx", *original_n_ctx)])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The frequency of pair 0 of a base whose pair 0 of 2 components is 1.
    fn llama3(turns: f64) -> f64 {
        let scaling = RotaryScaling::Llama3 {
            factor: 8.0,
            low_frequency_factor: 1.0,
            high_frequency_factor: 4.0,
            original_n_ctx: 100,
        };
        let frequency = turns / 100.0 * TAU;
        scaling.lowered(frequency, 0, 10_000.0, 2, 1) / frequency
    }

    #[test]
    fn llama_3_slows_down_pairs_of_few_turns() {
        assert_eq!(llama3(5.0), 1.0);
        assert_eq!(llama3(0.5), 1.0 / 8.0);
        // Half-way between 1 turn and 4 turns: half of each, (1 + 1/8)/2 = 9/16.
        assert!((llama3(2.5) - 0.5625).abs() < 1e-12);
    }

    #[test]
    fn yarn_slows_down_pairs_between_those_of_many_and_of_few_turns() {
        let scaling = RotaryScaling::Yarn {
            factor: 4.0,
            original_n_ctx: 64,
            fast_turns: 4.0,
            slow_turns: 1.0,
            whole_pairs: true,
            attention_factor: None,
        };
        // Pair i turns 64·16^(−i/4)/2π times: 4 times at i = 1.35, once at i = 3.35; rounded, 1 and 4.
        let lowered = scaling.frequencies(16.0, 8, 1);
        let plain = RotaryScaling::None.frequencies(16.0, 8, 1);
        let ratios: Vec<f64> = lowered.iter().zip(plain).map(|(a, b)| a / b).collect();
        for (ratio, expected) in ratios.into_iter().zip([1.0, 1.0, 0.75, 0.5]) {
            assert!((ratio - expected).abs() < 1e-12, "{ratio} {expected}");
        }
        assert!((scaling.attention_factor() - (0.1 * 4f64.ln() + 1.0)).abs() < 1e-15);
    }
}
