//! A mask as tensors, built once for each shape of scores.

use std::sync::{Arc, Mutex};

use burn::tensor::{Bool, Device, Tensor, TensorData};

use crate::{Mask, Positions, mask_rule::Rule, score_shape::ScoreShape};

/// The mask as tensors, for one shape of scores.
#[derive(Debug, Clone)]
pub(crate) struct Materialized {
    /// `[batch or 1, heads or 1, queries, keys]`, true where a query may *not* attend; `None` if
    /// all pairs may attend.
    pub blocked: Option<Tensor<4, Bool>>,
    /// `[batch or 1, 1, keys, 1]`, true for keys that no query may attend to; `None` if there are
    /// no such keys.
    pub dead_keys: Option<Tensor<4, Bool>>,
}

/// The tensors of the last shape that was built; copies of a mask share them.
pub(crate) type Memo = Arc<Mutex<Option<(MemoKey, Materialized)>>>;

/// The shape, positions and device for which the tensors of a mask were built.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MemoKey {
    shape: ScoreShape,
    device: Device,
    autodiff: bool,
}

impl Mask {
    /// Builds the rules as tensors, or takes them from the memo if the last call had the same key.
    pub(crate) fn materialize(&self, shape: &ScoreShape, device: &Device) -> Materialized {
        let key = MemoKey {
            shape: shape.clone(),
            device: device.clone(),
            autodiff: device.is_autodiff(),
        };
        let mut memo = self
            .memo
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((known, materialized)) = memo.as_ref()
            && *known == key
        {
            return materialized.clone();
        }
        let materialized = self.build(shape, device);
        *memo = Some((key, materialized.clone()));
        materialized
    }

    /// Panics if a rule or the positions were written for another shape.
    pub(crate) fn assert_fits(&self, shape: &ScoreShape, positions: &Positions) {
        for rule in &self.rules {
            rule.assert_fits(shape);
        }
        assert!(
            positions.rows() == 1 || positions.rows() == shape.batch,
            "mask positions are for batch {}, the scores have batch {}",
            positions.rows(),
            shape.batch
        );
    }

    fn build(&self, shape: &ScoreShape, device: &Device) -> Materialized {
        let positions = self.positions_for(shape.queries, shape.keys);
        if self.rules.is_empty() && !positions.has_empty_slots() {
            return Materialized {
                blocked: None,
                dead_keys: None,
            };
        }
        self.assert_fits(shape, &positions);

        let (batches, heads) = Rule::copies(&self.rules, &positions, shape);
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
            any.then(|| Tensor::<4, Bool>::from_data(TensorData::new(flags, dims), device))
        };
        Materialized {
            blocked: tensor(blocked, [batches, heads, queries, keys]),
            dead_keys: tensor(dead, [batches, 1, keys, 1]),
        }
    }
}
