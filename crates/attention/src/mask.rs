//! Which query may attend to which key.

use std::{borrow::Borrow, sync::Arc};

use burn::tensor::{Bool, Tensor};

use crate::{
    Positions,
    mask_rule::{KeepArray, Rule},
    mask_tensors::Memo,
    score_shape::ScoreShape,
};

/// Says which query **may attend** to which key.
///
/// A mask is a description on the host, made of rules. A pair (query, key) may attend only if every
/// rule allows it; [`and`](Mask::and) adds the rules of another mask. The tensor is built once for
/// each shape and shared by all layers that get the same mask.
///
/// Rules about order compare [`Positions`]. Unless positions are given with [`at`](Mask::at), the
/// queries are aligned with the last keys: the last query sees every key of a causal mask.
///
/// ```text
/// causal, 3 queries, 3 keys    causal, 1 query, 3 keys    window(2), 4 queries, 4 keys
///     k0 k1 k2                     k0 k1 k2                   k0 k1 k2 k3
/// q0  ■  ·  ·                  q0  ■  ■  ■                q0  ■  ·  ·  ·
/// q1  ■  ■  ·                                             q1  ■  ■  ·  ·
/// q2  ■  ■  ■                                             q2  ·  ■  ■  ·
///                                                         q3  ·  ·  ■  ■
/// ```
///
/// ```
/// use headlight_attention::Mask;
///
/// assert_eq!(Mask::causal().to_string(), "causal");
/// assert_eq!(Mask::causal().and(Mask::lengths(&[3, 1])).to_string(), "causal and lengths[3, 1]");
/// assert_eq!(Mask::none().to_string(), "none");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Mask {
    pub(crate) rules: Vec<Rule>,
    bias: Option<Tensor<4>>,
    positions: Option<Positions>,
    pub(crate) memo: Memo,
}

impl Mask {
    /// Every query may attend to every key.
    ///
    /// ```
    /// # use headlight_attention::Mask;
    /// assert!(Mask::none().allows(0, 0, 0, 1, (2, 2)));
    /// ```
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// A query may attend to keys at its own position and before: `k ≤ q`.
    ///
    /// ```
    /// # use headlight_attention::Mask;
    /// let row = |q| [0, 1, 2].map(|k| Mask::causal().allows(0, 0, q, k, (3, 3)));
    /// assert_eq!([row(0), row(1), row(2)], [[true, false, false], [true, true, false], [true, true, true]]);
    /// ```
    #[must_use]
    pub fn causal() -> Self {
        Self::of(Rule::Causal)
    }

    /// A query may attend to the last `width` positions up to its own: `0 ≤ q − k < width`.
    ///
    /// It includes `causal`. `window(1)` is "self only".
    ///
    /// ```
    /// # use headlight_attention::Mask;
    /// assert_eq!([0, 1, 2, 3].map(|k| Mask::window(2).allows(0, 0, 2, k, (4, 4))), [false, true, true, false]);
    /// ```
    #[must_use]
    pub fn window(width: usize) -> Self {
        Self::of(Rule::Window(width))
    }

    /// In batch row `b` only keys at positions `k < lengths[b]` are real.
    ///
    /// ```
    /// # use headlight_attention::Mask;
    /// let mask = Mask::lengths(&[2, 1]);
    /// assert_eq!([0, 1].map(|batch| mask.allows(batch, 0, 0, 1, (2, 2))), [true, false]);
    /// ```
    #[must_use]
    pub fn lengths(lengths: &[usize]) -> Self {
        Self::of(Rule::Lengths(lengths.into()))
    }

    /// `keep[b, k]` says whether key `k` of batch row `b` is real (true) or padding (false).
    ///
    /// # Shapes
    /// - keep: `[batch, keys]`
    ///
    /// ```
    /// # use burn::tensor::{Bool, Device, Tensor};
    /// # use headlight_attention::Mask;
    /// let keep = Tensor::<2, Bool>::from_bool([[true, false]], &Device::flex());
    /// assert_eq!([0, 1].map(|k| Mask::key_padding(keep.clone()).allows(0, 0, 1, k, (2, 2))), [true, false]);
    /// ```
    #[must_use]
    pub fn key_padding(keep: Tensor<2, Bool>) -> Self {
        let [batch, keys] = keep.dims();
        Self::allowed(keep.reshape([batch, 1, 1, keys]))
    }

    /// `keep[query, key]` is true if the query may attend to the key.
    ///
    /// # Shapes
    /// - keep: `[queries, keys]`, `[batch, queries, keys]` or `[batch, heads, queries, keys]`; an
    ///   axis of size 1 holds for all
    ///
    /// # Panics
    /// If `keep` has another rank.
    ///
    /// ```
    /// # use burn::tensor::{Bool, Device, Tensor};
    /// # use headlight_attention::Mask;
    /// let keep = Tensor::<2, Bool>::from_bool([[false, true], [true, false]], &Device::flex());
    /// assert_eq!([0, 1].map(|k| Mask::allowed(keep.clone()).allows(0, 0, 1, k, (2, 2))), [true, false]);
    /// ```
    #[must_use]
    pub fn allowed<const D: usize>(keep: Tensor<D, Bool>) -> Self {
        Self::of(Rule::Array(Arc::new(KeepArray::from_tensor(keep))))
    }

    /// Adds `bias` to the scores after scale and softcap, and masks no pair. The bias gets
    /// gradients.
    ///
    /// # Shapes
    /// - bias: `[batch, heads, queries, keys]`; an axis of size 1 holds for all
    ///
    /// ```
    /// # use burn::tensor::{Device, Tensor};
    /// # use headlight_attention::{attention_weights, AttentionOptions, Mask};
    /// let zeros = |n| Tensor::<4>::zeros([1, 1, n, 1], &Device::flex());
    /// let bias = Tensor::<4>::from_floats([[[[0.0, 3f32.ln()]]]], &Device::flex());
    /// let weights = attention_weights(zeros(1), zeros(2), &Mask::bias(bias), &AttentionOptions::default());
    /// let weights = weights.into_data().to_vec::<f32>().unwrap();
    /// assert!((weights[0] - 0.25).abs() < 1e-6 && (weights[1] - 0.75).abs() < 1e-6); // 1 : 3
    /// ```
    #[must_use]
    pub fn bias(bias: Tensor<4>) -> Self {
        Self {
            bias: Some(bias),
            ..Self::default()
        }
    }

    /// Both masks: a pair may attend only if both allow it; biases add up.
    ///
    /// # Panics
    /// If both masks were given different positions with [`at`](Mask::at).
    ///
    /// ```
    /// # use headlight_attention::Mask;
    /// let mask = Mask::causal().and(Mask::lengths(&[1]));
    /// assert_eq!([0, 1, 2].map(|k| mask.allows(0, 0, 1, k, (3, 3))), [true, false, false]);
    /// ```
    #[must_use]
    pub fn and(&self, other: impl Borrow<Self>) -> Self {
        let other = other.borrow();
        assert!(
            self.positions.is_none()
                || other.positions.is_none()
                || self.positions == other.positions,
            "Mask::and: the two masks were made for different positions"
        );
        let mut rules = self.rules.clone();
        rules.extend(
            other
                .rules
                .iter()
                .filter(|rule| !self.rules.contains(rule))
                .cloned(),
        );
        Self {
            rules,
            bias: match (self.bias.clone(), other.bias.clone()) {
                (Some(a), Some(b)) => Some(a + b),
                (a, b) => a.or(b),
            },
            positions: self.positions.clone().or_else(|| other.positions.clone()),
            memo: Memo::default(),
        }
    }

    /// The same rules for queries and keys at these positions.
    ///
    /// ```
    /// # use headlight_attention::{Mask, Positions};
    /// // A query at position 1; slots that hold positions 2 and 0, and an empty one.
    /// let mask = Mask::causal().at(Positions::new(vec![vec![1]], vec![vec![Some(2), Some(0), None]]));
    /// assert_eq!([0, 1, 2].map(|slot| mask.allows(0, 0, 0, slot, (1, 3))), [false, true, false]);
    /// ```
    #[must_use]
    pub fn at(&self, positions: Positions) -> Self {
        Self {
            positions: Some(positions),
            memo: Memo::default(),
            ..self.clone()
        }
    }

    /// Whether the mask neither forbids a pair nor changes a score.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.rules.is_empty()
            && self.bias.is_none()
            && !self
                .positions
                .as_ref()
                .is_some_and(Positions::has_empty_slots)
    }

    /// Whether a rule is an array by rows and columns instead of a condition on positions.
    pub(crate) fn is_written_out(&self) -> bool {
        self.bias.is_some() || self.rules.iter().any(|rule| matches!(rule, Rule::Array(_)))
    }

    /// Whether query `row` may attend to key `column` in batch row `batch` and head `head`, for
    /// scores with `queries` rows and `keys` columns. The mask's tensor holds the same answer for
    /// each pair.
    ///
    /// ```
    /// use headlight_attention::Mask;
    ///
    /// let mask = Mask::causal();
    /// assert!(!mask.allows(0, 0, 0, 1, (2, 2))); // the future
    /// assert!(mask.allows(0, 0, 0, 1, (1, 2))); // one query aligned with the last of two keys
    /// ```
    #[must_use]
    pub fn allows(
        &self,
        batch: usize,
        head: usize,
        row: usize,
        column: usize,
        (queries, keys): (usize, usize),
    ) -> bool {
        self.allows_at(&self.positions_for(queries, keys), batch, head, row, column)
    }

    fn of(rule: Rule) -> Self {
        Self {
            rules: vec![rule],
            ..Self::default()
        }
    }

    pub(crate) fn allows_at(
        &self,
        positions: &Positions,
        batch: usize,
        head: usize,
        row: usize,
        column: usize,
    ) -> bool {
        let query = positions.query(batch, row);
        positions.key(batch, column).is_some_and(|key| {
            self.rules
                .iter()
                .all(|rule| rule.allows(batch, head, (row, query), (column, key)))
        })
    }

    pub(crate) fn positions_for(&self, queries: usize, keys: usize) -> Positions {
        match &self.positions {
            Some(positions) => {
                assert_eq!(
                    positions.len(),
                    (queries, keys),
                    "mask positions are for (queries, keys) {:?}, the scores have {:?}",
                    positions.len(),
                    (queries, keys)
                );
                positions.clone()
            }
            None => Positions::aligned_at_end(queries, keys),
        }
    }

    /// The bias, checked against the shape of the scores.
    pub(crate) fn bias_for(&self, shape: &ScoreShape) -> Option<Tensor<4>> {
        let bias = self.bias.clone()?;
        shape.assert_broadcast("Mask::bias", bias.dims());
        Some(bias)
    }
}

impl std::fmt::Display for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut parts: Vec<String> = self.rules.iter().map(ToString::to_string).collect();
        if let Some(bias) = &self.bias {
            parts.push(format!("bias{:?}", bias.dims()));
        }
        if parts.is_empty() {
            parts.push("none".to_owned());
        }
        f.write_str(&parts.join(" and "))
    }
}
