//! How well a model does what it is asked: the measure behind every causal test.

use burn::tensor::{Int, Tensor, TensorData, activation::log_softmax};
use headlight_heads::Interval;
use headlight_residual::{Decoder, Probe, token_tensor};
use serde::Serialize;

use crate::bootstrap::{Share, interval_of_ratio};

/// Fixed sequences and which of their targets count.
#[derive(Debug, Clone)]
pub struct Behaviour {
    inputs: Tensor<2, Int>,
    targets: Vec<Vec<u32>>,
    scored: Vec<Vec<bool>>,
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
    /// `inputs` are `[batch, pos]`; for each of its rows the targets and whether they count.
    ///
    /// # Panics
    /// If there are not as many targets as inputs.
    #[must_use]
    pub fn new(inputs: Tensor<2, Int>, targets: Vec<Vec<u32>>, scored: Vec<Vec<bool>>) -> Self {
        let [batch, positions] = inputs.dims();
        let fits = targets.len() == batch
            && scored.len() == batch
            && targets.iter().all(|row| row.len() == positions)
            && scored.iter().all(|row| row.len() == positions);
        assert!(
            fits,
            "inputs {:?} with targets for {} sequences",
            inputs.dims(),
            targets.len()
        );
        Self {
            inputs,
            targets,
            scored,
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
        self.targets.len()
    }

    /// The targets, `[batch, pos]`.
    #[must_use]
    pub fn targets(&self) -> Tensor<2, Int> {
        token_tensor(&self.targets, &self.inputs.device())
    }

    /// 1 for each target that counts, else 0: `[batch, pos]`.
    #[must_use]
    pub fn scored(&self) -> Tensor<2> {
        let scored: Vec<f32> = self
            .scored
            .iter()
            .flatten()
            .map(|&scored| f32::from(u8::from(scored)))
            .collect();
        Tensor::from_data(
            TensorData::new(scored, self.inputs.dims()),
            &self.inputs.device(),
        )
    }

    /// Runs the model past `probe` and measures it. The model must not be on an autodiff device.
    #[must_use]
    pub fn measure<P: Probe>(&self, model: &Decoder, probe: &mut P) -> Performance {
        self.performance(model.forward_probed(self.inputs(), probe))
    }

    /// How well these logits do it.
    ///
    /// # Shapes
    /// - logits: `[batch, pos, vocabulary]`
    #[must_use]
    pub fn performance(&self, logits: Tensor<3>) -> Performance {
        let [_, positions, _] = logits.dims();
        let guesses: Vec<i64> = logits.clone().argmax(2).into_data().iter::<i64>().collect();
        let paid = self.paid(logits);

        let (mut right, mut losses, mut elsewhere) =
            (Vec::new(), Share::default(), Share::default());
        for (row, (targets, scored)) in self.targets.iter().zip(&self.scored).enumerate() {
            let mut share = Share::default();
            for (position, (&target, &scored)) in targets.iter().zip(scored).enumerate() {
                let at = row * positions + position;
                let losses = if scored { &mut losses } else { &mut elsewhere };
                losses.sum += paid[at];
                losses.rows += 1;
                if scored {
                    share.sum += f64::from(u8::from(guesses[at] == i64::from(target)));
                    share.rows += 1;
                }
            }
            right.push(share);
        }
        let mean = |share: Share| (share.rows > 0).then(|| share.sum / share.rows as f64);
        let total = right.iter().fold(Share::default(), |a, b| Share {
            sum: a.sum + b.sum,
            rows: a.rows + b.rows,
        });
        Performance {
            accuracy: mean(total).unwrap_or(f64::NAN),
            interval: interval_of_ratio(&right),
            loss: mean(losses).unwrap_or(f64::NAN),
            loss_elsewhere: mean(elsewhere),
        }
    }

    /// The mean loss on the scored targets of each position, nats; `None` where a position is never
    /// scored.
    #[must_use]
    pub fn loss_by_position(&self, model: &Decoder) -> Vec<Option<f64>> {
        let paid = self.paid(model.forward(self.inputs()));
        let [batch, positions] = self.inputs.dims();
        let mean = |position: usize| {
            let scored = (0..batch).filter(|&row| self.scored[row][position]);
            let paid: Vec<f64> = scored.map(|row| paid[row * positions + position]).collect();
            (!paid.is_empty()).then(|| paid.iter().sum::<f64>() / paid.len() as f64)
        };
        (0..positions).map(mean).collect()
    }

    /// What each target costs, nats, row by row.
    fn paid(&self, logits: Tensor<3>) -> Vec<f64> {
        let ids = self.targets().unsqueeze_dim::<3>(2);
        log_softmax(logits, 2)
            .gather(2, ids)
            .into_data()
            .iter::<f64>()
            .map(|x| -x)
            .collect()
    }
}
