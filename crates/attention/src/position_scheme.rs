//! Position schemes: interchangeable ways in which attention uses positions.

use burn::{
    config::Config,
    module::Module,
    tensor::{Device, Tensor},
};
use serde::{Deserialize, Serialize};

use crate::{Alibi, ConfigError, Positions, RelativeBias, Rotary, RotaryLayout, RotaryScaling};

/// The configuration of a [`PositionScheme`].
///
/// ```
/// use headlight_attention::{MultiHeadAttentionConfig, PositionConfig, RotaryLayout, RotaryScaling};
///
/// // Rotary on the first 4 of 8 components, pairs next to each other.
/// let position = PositionConfig::Rotary {
///     layout: RotaryLayout::Interleaved,
///     base: 10_000.0,
///     rotated: Some(4),
///     scaling: RotaryScaling::None,
/// };
/// assert!(MultiHeadAttentionConfig::new(16, 2).with_position(position.clone()).validate().is_ok());
/// let error = MultiHeadAttentionConfig::new(4, 2).with_position(position).validate().unwrap_err();
/// assert_eq!(error.to_string(), "rotary components 4 is more than d_head 2");
/// ```
///
/// In a file it is `"none"`, `"alibi"`, `{"rotary": {}}` or `{"relative_bias": {"max_distance": 8}}`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum PositionConfig {
    /// No scheme: only the input can hold positions.
    #[default]
    None,
    /// Rotates queries and keys (Su et al. 2021).
    Rotary {
        /// The components that form a pair.
        #[serde(default)]
        layout: RotaryLayout,
        /// The angle of pair `i` at position `p` is `p·base^(−2i/rotated)`.
        #[serde(default = "published_base")]
        base: f64,
        /// The number of components of a head that rotate, from the first on; `None`: all.
        #[serde(default)]
        rotated: Option<usize>,
        /// How frequencies are lowered.
        #[serde(default)]
        scaling: RotaryScaling,
    },
    /// Subtracts from each score a multiple of the distance (Press et al. 2022).
    Alibi,
    /// Adds a learned number for each head and distance (after Shaw et al. 2018).
    RelativeBias {
        /// Larger distances share the number of this distance.
        max_distance: usize,
    },
}

impl Config for PositionConfig {}

/// The base of the paper (Su et al. 2021, section 3.3).
const PUBLISHED_BASE: f64 = 10_000.0;

fn published_base() -> f64 {
    PUBLISHED_BASE
}

impl PositionConfig {
    /// Rotary embedding of all components, half-split pairs, base 10,000.
    #[must_use]
    pub fn rotary() -> Self {
        Self::Rotary {
            layout: RotaryLayout::HalfSplit,
            base: PUBLISHED_BASE,
            rotated: None,
            scaling: RotaryScaling::None,
        }
    }

    pub(crate) fn validate(&self, d_head: usize) -> Result<(), ConfigError> {
        match *self {
            Self::None | Self::Alibi => Ok(()),
            Self::Rotary {
                base,
                rotated,
                ref scaling,
                ..
            } => {
                ConfigError::check_positive("rotary base", base)?;
                let rotated = rotated.unwrap_or(d_head);
                ConfigError::check_divides(
                    ("rotary components", rotated),
                    ("the size of a pair,", 2),
                )?;
                ConfigError::check_sizes(&[("rotary components", rotated)])?;
                ConfigError::check_at_most(("rotary components", rotated), ("d_head", d_head))?;
                scaling.validate(base, rotated)
            }
            Self::RelativeBias { max_distance } => {
                ConfigError::check_sizes(&[("max_distance", max_distance)])
            }
        }
    }

    pub(crate) fn init(
        &self,
        n_heads: usize,
        d_head: usize,
        device: &Device,
    ) -> Option<PositionScheme> {
        match *self {
            Self::None => None,
            Self::Rotary {
                layout,
                base,
                rotated,
                ref scaling,
            } => {
                let rotary = Rotary::new(layout, base, rotated.unwrap_or(d_head));
                Some(PositionScheme::Rotary(rotary.with_scaling(scaling.clone())))
            }
            Self::Alibi => Some(PositionScheme::Alibi(Alibi::new(n_heads))),
            Self::RelativeBias { max_distance } => Some(PositionScheme::Relative(
                RelativeBias::new(n_heads, max_distance, device),
            )),
        }
    }
}

/// A position scheme. It rotates queries and keys, or adds a bias to their scores.
#[derive(Module, Debug)]
pub enum PositionScheme {
    /// Rotary embedding.
    Rotary(Rotary),
    /// Attention with linear biases.
    Alibi(Alibi),
    /// Learned relative bias.
    Relative(RelativeBias),
}

impl PositionScheme {
    /// Rotates queries or keys by their positions; schemes that add a bias return them as they are.
    /// The last position is that of the last token of the sequence ([`Rotary::rotate`]).
    ///
    /// # Shapes
    /// - heads, output: `[batch, heads, seq, d_head]`
    /// - positions: `[1 or batch][seq]`
    #[must_use]
    pub fn rotate(&self, heads: Tensor<4>, positions: &[Vec<i64>]) -> Tensor<4> {
        match self {
            Self::Rotary(rotary) => rotary.rotate(heads, positions),
            Self::Alibi(_) | Self::Relative(_) => heads,
        }
    }

    /// [`rotate`](Self::rotate) in sequences of `lengths` tokens, `[1 or batch]`.
    #[must_use]
    pub fn rotate_within(
        &self,
        heads: Tensor<4>,
        positions: &[Vec<i64>],
        lengths: &[usize],
    ) -> Tensor<4> {
        match self {
            Self::Rotary(rotary) => rotary.rotate_within(heads, positions, lengths),
            Self::Alibi(_) | Self::Relative(_) => heads,
        }
    }

    /// The bias that the scheme adds to the scores, `[1 or batch, heads, queries, keys]`.
    #[must_use]
    pub fn bias(&self, positions: &Positions, device: &Device) -> Option<Tensor<4>> {
        match self {
            Self::Rotary(_) => None,
            Self::Alibi(alibi) => Some(alibi.bias(positions, device)),
            Self::Relative(relative) => Some(relative.bias(positions)),
        }
    }
}
