//! How well a model does what it is asked: the measure behind every causal test.

use burn::tensor::{Int, Tensor, TensorData};
use headlight_heads::Interval;
use headlight_residual::{AnyProbe, Edit, NextTokenScores, NoProbe, Probed, Targets, token_tensor};
use serde::Serialize;

use crate::{
    Estimate,
    bootstrap::{Share, interval_of_ratio, mean},
};

/// Fixed sequences and which of their targets count.
#[derive(Debug, Clone)]
pub struct Behaviour {
    inputs: Tensor<2, Int>,
    targets: Targets,
    /// Whether each target counts, `[batch][outputs]`.
    is_scored: Vec<Vec<bool>>,
    /// 1 for each target that counts, else 0.
    scored: Tensor<2>,
    /// How many targets count in each sequence.
    scored_in_row: Vec<usize>,
    /// Whether targets that do not count are measured too.
    has_elsewhere: bool,
    /// The inputs whose activations take the place of resampled ones, `[batch, pos]`; `None`: those
    /// of the sequence before.
    resampled_from: Option<Tensor<2, Int>>,
    /// 1 for each input that is no padding, else 0, `[batch, pos]`; `None`: none is.
    counted: Option<Tensor<2>>,
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
    /// is scored, or the others are not measured.
    pub loss_elsewhere: Option<f64>,
    /// Of targets beside a wrong token: the mean of logit\[target\] − logit\[wrong\], with its
    /// interval by bootstrap over sequences. Accuracy is then the share of targets where it is above
    /// 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logit_difference: Option<Estimate>,
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
            targets: token_tensor(&targets, &device).into(),
            scored: Tensor::from_data(TensorData::new(is_scored, [batch, positions]), &device),
            scored_in_row: scored.iter().map(|row| count_true(row)).collect(),
            is_scored: scored,
            inputs,
            has_elsewhere: true,
            resampled_from: None,
            counted: None,
        }
    }

    /// The same, where a target is right if its logit is larger than that of another token, and its
    /// logit difference from that token is measured.
    ///
    /// # Panics
    /// If there are not as many other tokens as targets.
    #[must_use]
    pub fn against(self, wrong: &[Vec<u32>]) -> Self {
        let wrong = token_tensor(wrong, &self.inputs.device());
        Self {
            targets: self.targets.against(wrong),
            ..self
        }
    }

    /// The same without the loss elsewhere: no logits are computed where no target counts, which is
    /// most of the work with a large vocabulary.
    #[must_use]
    pub fn only_where_scored(self) -> Self {
        Self {
            targets: self.targets.only(&self.is_scored),
            has_elsewhere: false,
            ..self
        }
    }

    /// The same, where a resampled head does what it does in `inputs`, row by row.
    ///
    /// # Panics
    /// If they have another shape than the inputs.
    #[must_use]
    pub fn resampled_from(self, inputs: Tensor<2, Int>) -> Self {
        assert_eq!(self.inputs.dims(), inputs.dims(), "inputs (left, right)");
        Self {
            resampled_from: Some(inputs),
            ..self
        }
    }

    /// The same, where means are taken over the inputs that count: 1, and 0 for padding.
    ///
    /// # Panics
    /// If they have another shape than the inputs.
    #[must_use]
    pub fn padded(self, counted: Tensor<2>) -> Self {
        assert_eq!(self.inputs.dims(), counted.dims(), "inputs (left, right)");
        Self {
            counted: Some(counted),
            ..self
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
        self.targets.tokens()
    }

    /// What a pass is scored on.
    #[must_use]
    pub fn asked(&self) -> &Targets {
        &self.targets
    }

    /// All that a measurement depends on besides the model, so that it can be told from others.
    #[must_use]
    pub fn numbers(&self) -> Vec<u32> {
        let tokens = |all: Option<Tensor<2, Int>>| -> Vec<u32> {
            let ids = all.map(|all| all.into_data().iter::<i64>().collect::<Vec<i64>>());
            ids.unwrap_or_default()
                .iter()
                .map(|&id| id as u32)
                .collect()
        };
        let flags = |all: Option<&Tensor<2>>| -> Vec<u32> {
            let flags = all.map(|all| all.clone().into_data().iter::<f32>().collect::<Vec<f32>>());
            flags
                .unwrap_or_default()
                .iter()
                .map(|flag| flag.to_bits())
                .collect()
        };
        let parts = [
            self.inputs().dims().map(|size| size as u32).to_vec(),
            self.targets.dims().map(|size| size as u32).to_vec(),
            tokens(Some(self.inputs())),
            tokens(Some(self.targets())),
            flags(Some(&self.scored)),
            vec![u32::from(self.has_elsewhere)],
            tokens(self.targets.wrong()),
            tokens(self.resampled_from.clone()),
            flags(self.counted.as_ref()),
        ];
        let with_length = |part: Vec<u32>| [vec![part.len() as u32], part].concat();
        parts.into_iter().flat_map(with_length).collect()
    }

    /// The inputs whose activations take the place of resampled ones: each sequence's are those of
    /// the one before it, unless others are named.
    pub(crate) fn others(&self) -> Tensor<2, Int> {
        let before = || self.inputs().roll_dim(1, 0);
        self.resampled_from.clone().unwrap_or_else(before)
    }

    /// What puts the mean over sequences and positions in the place of an activation.
    pub(crate) fn mean(&self) -> Edit {
        match &self.counted {
            Some(counted) => Edit::MeanOf(counted.clone()),
            None => Edit::Mean,
        }
    }

    /// The mean of an activation over sequences and positions, `[1, 1, d]` of `[batch, pos, d]`.
    pub(crate) fn mean_of(&self, x: Tensor<3>) -> Tensor<3> {
        let Some(counted) = &self.counted else {
            return x.mean_dim(0).mean_dim(1);
        };
        let counted = counted.clone().unsqueeze_dim::<3>(2); // [batch, pos, 1]
        (x * counted.clone()).sum_dim(0).sum_dim(1) / counted.sum_dim(0).sum_dim(1)
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
        [(0, half), (half, all - half)].map(|(first, count)| self.rows(first, count))
    }

    /// Some of the sequences.
    fn rows(&self, first: usize, count: usize) -> Self {
        let tokens = |all: Tensor<2, Int>| all.narrow(0, first, count);
        let numbers = |all: Tensor<2>| all.narrow(0, first, count);
        let is_scored = self.is_scored[first..first + count].to_vec();
        let mut targets = Targets::from(tokens(self.targets()));
        if let Some(wrong) = self.targets.wrong() {
            targets = targets.against(tokens(wrong));
        }
        if !self.has_elsewhere {
            targets = targets.only(&is_scored);
        }
        Self {
            inputs: tokens(self.inputs()),
            targets,
            is_scored,
            scored: numbers(self.scored()),
            scored_in_row: self.scored_in_row[first..first + count].to_vec(),
            has_elsewhere: self.has_elsewhere,
            resampled_from: self.resampled_from.clone().map(tokens),
            counted: self.counted.clone().map(numbers),
        }
    }

    /// Runs the model past `probe` and measures it. The model must not be on an autodiff device.
    ///
    /// # Panics
    /// If the model has not as many logits as there are targets.
    #[must_use]
    pub fn measure(&self, model: &dyn Probed, probe: &mut dyn AnyProbe) -> Performance {
        self.performance(&model.next_token_scores(self.inputs(), &self.targets, probe))
    }

    /// How well it was done by the scores of all targets.
    ///
    /// # Shapes
    /// - scores: `[batch, outputs]`
    #[must_use]
    pub fn performance(&self, scores: &NextTokenScores) -> Performance {
        let [batch, positions] = self.targets.dims();
        let shares = self.shares(scores.right.clone());
        let scored: usize = self.scored_in_row.iter().sum();
        let mut loss_elsewhere = None;
        if self.has_elsewhere {
            let unscored = self.scored().neg().add_scalar(1.0);
            loss_elsewhere = mean_loss(scores, &unscored, batch * positions - scored);
        }
        let difference = scores.difference.clone();
        Performance {
            accuracy: mean(&shares).unwrap_or(f64::NAN),
            interval: interval_of_ratio(&shares),
            loss: mean_loss(scores, &self.scored, scored).unwrap_or(f64::NAN),
            loss_elsewhere,
            logit_difference: difference.map(|all| Estimate::of(&self.shares(all))),
        }
    }

    /// Of each sequence, the sum over its scored targets.
    fn shares(&self, of_targets: Tensor<2>) -> Vec<Share> {
        let sums = (of_targets * self.scored()).sum_dim(1).into_data();
        sums.iter::<f64>()
            .zip(&self.scored_in_row)
            .map(|(sum, &rows)| Share { sum, rows })
            .collect()
    }

    /// The mean loss on the scored targets of each position, nats; `None` where a position is never
    /// scored.
    #[must_use]
    pub fn loss_by_position(&self, model: &dyn Probed) -> Vec<Option<f64>> {
        let scores = model.next_token_scores(self.inputs(), &self.targets, &mut NoProbe);
        let [_, positions] = self.targets.dims();
        let at = |position| {
            let scored = self.scored().narrow(1, position, 1);
            let count = scored.clone().sum().into_scalar::<f32>() as usize;
            let of_position = NextTokenScores {
                losses: scores.losses.clone().narrow(1, position, 1),
                right: scores.right.clone().narrow(1, position, 1),
                difference: None,
            };
            mean_loss(&of_position, &scored, count)
        };
        (0..positions).map(at).collect()
    }
}

fn count_true(flags: &[bool]) -> usize {
    flags.iter().filter(|&&flag| flag).count()
}

/// The mean loss on the `count` targets that count, nats; `None` if there are none.
fn mean_loss(scores: &NextTokenScores, counts: &Tensor<2>, count: usize) -> Option<f64> {
    (count > 0).then(|| f64::from(scores.summed_loss(counts)) / count as f64)
}
