//! Which query may attend to which key.

use std::sync::{Arc, Mutex};

use burn::tensor::{Bool, Device, Tensor};

use crate::{
    Positions,
    mask_rule::{KeepArray, Rule},
};

/// Says which query **may attend** to which key.
///
/// A mask is a description on the host, made of rules. A pair (query, key) may attend only if every rule allows
/// it; [`and`](Mask::and) adds the rules of another mask. The tensor is built once for each shape and shared by
/// all layers that get the same mask.
///
/// Rules about order compare [`Positions`]. Unless positions are given with [`at`](Mask::at), the queries are
/// aligned with the last keys: the last query sees every key of a causal mask.
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
/// assert_eq!(Mask::causal().and(&Mask::lengths(&[3, 1])).to_string(), "causal and lengths[3, 1]");
/// assert_eq!(Mask::none().to_string(), "none");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Mask {
    pub(crate) rules: Vec<Rule>,
    bias: Option<Tensor<4>>,
    positions: Option<Positions>,
    memo: Arc<Mutex<Option<(MemoKey, Materialized)>>>,
}

/// The mask as tensors, for one shape of scores.
#[derive(Debug, Clone)]
pub(crate) struct Materialized {
    /// `[batch or 1, heads or 1, queries, keys]`, true where attending is *not* allowed; `None`: all pairs may.
    pub blocked: Option<Tensor<4, Bool>>,
    /// `[batch or 1, 1, keys, 1]`, true for keys that no query may attend to; `None`: there are none.
    pub dead_keys: Option<Tensor<4, Bool>>,
}

/// The shape of the scores a mask is laid over.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScoreShape {
    pub batch: usize,
    pub heads: usize,
    pub queries: usize,
    pub keys: usize,
}

#[derive(Debug, Clone, PartialEq)]
struct MemoKey {
    shape: ScoreShape,
    device: Device,
    autodiff: bool,
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

    /// `keep` says for each pair whether the query may attend to the key.
    ///
    /// # Shapes
    /// - keep: `[queries, keys]`, `[batch, queries, keys]` or `[batch, heads, queries, keys]`; an axis of size 1
    ///   holds for all
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

    /// Adds `bias` to the scores (after scale and softcap); every pair may attend. Gradients reach the bias.
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
        Self { bias: Some(bias), ..Self::default() }
    }

    /// Both masks: a pair may attend only if both allow it; biases add up.
    ///
    /// # Panics
    /// If both masks were given different positions with [`at`](Mask::at).
    ///
    /// ```
    /// # use headlight_attention::Mask;
    /// let mask = Mask::causal().and(&Mask::lengths(&[1]));
    /// assert_eq!([0, 1, 2].map(|k| mask.allows(0, 0, 1, k, (3, 3))), [true, false, false]);
    /// ```
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        assert!(
            self.positions.is_none() || other.positions.is_none() || self.positions == other.positions,
            "Mask::and: the two masks were made for different positions"
        );
        let mut rules = self.rules.clone();
        rules.extend(other.rules.iter().filter(|rule| !self.rules.contains(rule)).cloned());
        Self {
            rules,
            bias: match (self.bias.clone(), other.bias.clone()) {
                (Some(a), Some(b)) => Some(a + b),
                (a, b) => a.or(b),
            },
            positions: self.positions.clone().or_else(|| other.positions.clone()),
            memo: Arc::default(),
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
        Self { positions: Some(positions), memo: Arc::default(), ..self.clone() }
    }

    /// Whether the mask neither forbids a pair nor changes a score.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.rules.is_empty() && self.bias.is_none() && !self.positions.as_ref().is_some_and(Positions::has_empty_slots)
    }

    /// Whether part of the mask is written out by rows and columns, not said of positions.
    pub(crate) fn is_written_out(&self) -> bool {
        self.bias.is_some() || self.rules.iter().any(|rule| matches!(rule, Rule::Array(_)))
    }

    /// Whether query `row` may attend to key `column` in batch row `batch` and head `head`, for scores with
    /// `queries` rows and `keys` columns. What the tensors say, pair by pair.
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
        Self { rules: vec![rule], ..Self::default() }
    }

    fn allows_at(&self, positions: &Positions, batch: usize, head: usize, row: usize, column: usize) -> bool {
        let query = positions.query(batch, row);
        positions
            .key(batch, column)
            .is_some_and(|key| self.rules.iter().all(|rule| rule.allows(batch, head, (row, query), (column, key))))
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

    /// The rules as tensors, from the memo where the last call had the same shape and device.
    pub(crate) fn materialize(&self, shape: &ScoreShape, device: &Device) -> Materialized {
        let key = MemoKey { shape: shape.clone(), device: device.clone(), autodiff: device.is_autodiff() };
        let mut memo = self.memo.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((known, materialized)) = memo.as_ref()
            && *known == key
        {
            return materialized.clone();
        }
        let materialized = self.build(shape, device);
        *memo = Some((key, materialized.clone()));
        materialized
    }

    fn build(&self, shape: &ScoreShape, device: &Device) -> Materialized {
        let positions = self.positions_for(shape.queries, shape.keys);
        if self.rules.is_empty() && !positions.has_empty_slots() {
            return Materialized { blocked: None, dead_keys: None };
        }
        for rule in &self.rules {
            rule.assert_fits(shape);
        }
        assert!(
            positions.rows() == 1 || positions.rows() == shape.batch,
            "mask positions are for batch {}, the scores have batch {}",
            positions.rows(),
            shape.batch
        );

        // One copy is enough along an axis on which no rule depends.
        let by_batch = positions.rows() > 1 || self.rules.iter().any(Rule::depends_on_batch);
        let by_head = self.rules.iter().any(Rule::depends_on_head);
        let batches = if by_batch { shape.batch } else { 1 };
        let heads = if by_head { shape.heads } else { 1 };
        let (queries, keys) = (shape.queries, shape.keys);

        let mut blocked = Vec::with_capacity(batches * heads * queries * keys);
        let mut dead = vec![true; batches * keys];
        for batch in 0..batches {
            for head in 0..heads {
                for row in 0..queries {
                    for column in 0..keys {
                        let allowed = self.allows_at(&positions, batch, head, row, column);
                        blocked.push(!allowed);
                        dead[batch * keys + column] &= !allowed;
                    }
                }
            }
        }
        let tensor = |flags: Vec<bool>, dims: [usize; 4]| {
            let any = flags.contains(&true);
            any.then(|| Tensor::<4, Bool>::from_data(burn::tensor::TensorData::new(flags, dims), device))
        };
        Materialized {
            blocked: tensor(blocked, [batches, heads, queries, keys]),
            dead_keys: tensor(dead, [batches, 1, keys, 1]),
        }
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

impl ScoreShape {
    /// Panics unless `dims` can be broadcast to the scores.
    pub(crate) fn assert_broadcast(&self, what: &str, dims: [usize; 4]) {
        let scores = [self.batch, self.heads, self.queries, self.keys];
        assert!(
            dims.iter().zip(scores).all(|(&own, score)| own == 1 || own == score),
            "{what} of shape {dims:?} does not fit scores of shape {scores:?} [batch, heads, queries, keys]"
        );
    }
}
