//! How well a model does what it is asked: the measure behind every causal test.

use burn::tensor::{Int, Tensor, TensorData};
use headlight_heads::Interval;
use headlight_residual::{AnyProbe, NoProbe, Probed, is_right, summed_loss, token_tensor};
use serde::Serialize;

use crate::bootstrap::{Share, interval_of_ratio, mean};

/// Fixed sequences and which of their targets count.
#[derive(Debug, Clone)]
pub struct Behaviour {
    inputs: Tensor<2, Int>,
    targets: Tensor<2, Int>,
    /// 1 for each target that counts, else 0.
    scored: Tensor<2>,
    /// How many targets count in each sequence.
    scored_in_row: Vec<usize>,
}

/// How well it was done.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Performance {
    /// The share of scored targets that are the likeliest token.
    pub accuracy: f64,
    /// Of the accuracy, by bootstrap over sequences.
    #[serde(flatten)]
    pub interval: Interval,
    /// Mean over the scored targets, nats.
    pub loss: f64,
    /// Mean over all other targets, nats: what an intervention breaks besides. None if every target
    /// is scored.
    pub loss_elsewhere: Option<f64>,
}

impl Behaviour {
    /// `inputs` are `[batch, pos]`; for each of its rows the targets and whether they count. The
    /// targets are those of the last positions of the row, for which the model has logits: of all
    /// positions in a decoder.
    ///
    /// # Panics
    /// If there are not as many rows of targets as of inputs, all equally long and no longer than
    /// the inputs.
    #[must_use]
    pub fn new(inputs: Tensor<2, Int>, targets: Vec<Vec<u32>>, scored: Vec<Vec<bool>>) -> Self {
        let [batch, length] = inputs.dims();
        let positions = targets.first().map_or(length, Vec::len);
        let fits = targets.len() == batch
            && scored.len() == batch
            && positions <= length
            && targets.iter().all(|row| row.len() == positions)
            && scored.iter().all(|row| row.len() == positions);
        assert!(
            fits,
            "inputs {:?} with targets for {} sequences",
            inputs.dims(),
            targets.len()
        );
        let device = inputs.device();
        let is_scored: Vec<f32> = scored
            .iter()
            .flatten()
            .map(|&scored| f32::from(u8::from(scored)))
            .collect();
        Self {
            targets: token_tensor(&targets, &device),
            scored: Tensor::from_data(TensorData::new(is_scored, [batch, positions]), &device),
            scored_in_row: scored.iter().map(|row| count_true(row)).collect(),
            inputs,
        }
    }

    /// The inputs, `[batch, pos]`.
    #[must_use]
    pub fn inputs(&self) -> Tensor<2, Int> {
        self.inputs.clone()
    }

    /// How many sequences there are.
    #[must_use]
    pub fn sequences(&self) -> usize {
        self.scored_in_row.len()
    }

    /// The targets, `[batch, outputs]`.
    #[must_use]
    pub fn targets(&self) -> Tensor<2, Int> {
        self.targets.clone()
    }

    /// 1 for each target that counts, else 0: `[batch, outputs]`.
    #[must_use]
    pub fn scored(&self) -> Tensor<2> {
        self.scored.clone()
    }

    /// How many targets count in each sequence.
    pub(crate) fn scored_in_row(&self) -> &[usize] {
        &self.scored_in_row
    }

    /// The first half of the sequences and the rest: what is found on one is reported on the other.
    ///
    /// # Panics
    /// If there are fewer than two sequences.
    #[must_use]
    pub fn halves(&self) -> [Self; 2] {
        let (half, all) = (self.sequences() / 2, self.sequences());
        assert!(half > 0, "{all} sequences have no halves");
        [(0, half), (half, all - half)].map(|(first, count)| Self {
            inputs: self.inputs().narrow(0, first, count),
            targets: self.targets().narrow(0, first, count),
            scored: self.scored().narrow(0, first, count),
            scored_in_row: self.scored_in_row[first..first + count].to_vec(),
        })
    }

    /// Runs the model past `probe` and measures it. The model must not be on an autodiff device.
    ///
    /// # Panics
    /// If the model has not as many logits as there are targets.
    #[must_use]
    pub fn measure(&self, model: &dyn Probed, probe: &mut dyn AnyProbe) -> Performance {
        self.performance(model.forward_probed(self.inputs(), probe))
    }

    /// How well these logits do it.
    ///
    /// # Shapes
    /// - logits: `[batch, outputs, vocabulary]`
    ///
    /// # Panics
    /// If there are not as many logits as targets.
    #[must_use]
    pub fn performance(&self, logits: Tensor<3>) -> Performance {
        let [batch, positions] = self.targets.dims();
        self.assert_fits(&logits);
        let right = is_right(logits.clone(), self.targets()) * self.scored();
        let right_in_row = right.sum_dim(1).into_data();
        let shares: Vec<Share> = right_in_row
            .iter::<f64>()
            .zip(&self.scored_in_row)
            .map(|(sum, &rows)| Share { sum, rows })
            .collect();

        let scored: usize = self.scored_in_row.iter().sum();
        let unscored = self.scored().neg().add_scalar(1.0);
        Performance {
            accuracy: mean(&shares).unwrap_or(f64::NAN),
            interval: interval_of_ratio(&shares),
            loss: mean_loss(logits.clone(), self.targets(), self.scored(), scored)
                .unwrap_or(f64::NAN),
            loss_elsewhere: mean_loss(logits, self.targets(), unscored, batch * positions - scored),
        }
    }

    /// The mean loss on the scored targets of each position, nats; `None` where a position is never
    /// scored.
    #[must_use]
    pub fn loss_by_position(&self, model: &dyn Probed) -> Vec<Option<f64>> {
        let logits = model.forward_probed(self.inputs(), &mut NoProbe);
        self.assert_fits(&logits);
        let [_, positions] = self.targets.dims();
        let at = |position| {
            let scored = self.scored().narrow(1, position, 1);
            let count = scored.clone().sum().into_scalar::<f32>() as usize;
            mean_loss(
                logits.clone().narrow(1, position, 1),
                self.targets().narrow(1, position, 1),
                scored,
                count,
            )
        };
        (0..positions).map(at).collect()
    }

    /// Panics if these are not the logits of the targets.
    pub(crate) fn assert_fits(&self, logits: &Tensor<3>) {
        let [batch, positions, _] = logits.dims();
        assert_eq!(
            [batch, positions],
            self.targets.dims(),
            "logits (left) for targets (right), [batch, outputs]"
        );
    }
}

fn count_true(flags: &[bool]) -> usize {
    flags.iter().filter(|&&flag| flag).count()
}

/// The mean loss on the `count` targets that count, nats; `None` if there are none.
fn mean_loss(
    logits: Tensor<3>,
    targets: Tensor<2, Int>,
    counts: Tensor<2>,
    count: usize,
) -> Option<f64> {
    if count == 0 {
        return None;
    }
    let sum = summed_loss(logits, targets, counts).into_scalar::<f32>();
    Some(f64::from(sum) / count as f64)
}
