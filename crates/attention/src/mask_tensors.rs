//! A mask as a tensor, built once for each shape of scores.

use std::sync::{Arc, Mutex};

use burn::tensor::{Bool, Device, Tensor, TensorData};

use crate::{Mask, Positions, mask_rule::Rule, score_shape::ScoreShape};

/// `[batch or 1, heads or 1, queries, keys]`, true where a query may *not* attend; `None` if all
/// pairs may attend.
type MaskedPairs = Option<Tensor<4, Bool>>;

/// The tensor of the last shape that was built; copies of a mask share it.
pub(crate) type Memo = Arc<Mutex<Option<(MemoKey, MaskedPairs)>>>;

/// The shape and device for which the tensor of a mask was built.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MemoKey {
    shape: ScoreShape,
    device: Device,
    autodiff: bool,
}

impl Mask {
    /// Builds the rules as a tensor, or takes it from the memo if the last call had the same key.
    pub(crate) fn masked_pairs(&self, shape: &ScoreShape, device: &Device) -> MaskedPairs {
        let key = MemoKey {
            shape: shape.clone(),
            device: device.clone(),
            autodiff: device.is_autodiff(),
        };
        let mut memo = self
            .memo
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((known, masked)) = memo.as_ref()
            && *known == key
        {
            return masked.clone();
        }
        let masked = self.build(shape, device);
        *memo = Some((key, masked.clone()));
        masked
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

    fn build(&self, shape: &ScoreShape, device: &Device) -> MaskedPairs {
        let positions = self.positions_for(shape.queries, shape.keys);
        if self.rules.is_empty() && !positions.has_empty_slots() {
            return None;
        }
        self.assert_fits(shape, &positions);

        let (batches, heads) = Rule::copies(&self.rules, &positions, shape);
        let (queries, keys) = (shape.queries, shape.keys);
        let mut masked = Vec::with_capacity(batches * heads * queries * keys);
        for batch in 0..batches {
            for head in 0..heads {
                for row in 0..queries {
                    for column in 0..keys {
                        masked.push(!self.allows_at(&positions, batch, head, row, column));
                    }
                }
            }
        }
        if !masked.contains(&true) {
            return None;
        }
        let dims = [batches, heads, queries, keys];
        Some(Tensor::from_data(TensorData::new(masked, dims), device))
    }
}
