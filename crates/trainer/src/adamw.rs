//! AdamW as an optimizer of burn-optim, each parameter in one pass.

use burn::{
    optim::{AdamWState, AdaptiveMomentumState, LearningRate, Optimizer},
    tensor::{Device, Tensor},
};
use headlight_ops::{AdamWStep, adamw};
use headlight_run::TrainConfig;

/// [`adamw`] behind burn-optim's trait; its state is that of Burn's own AdamW.
#[derive(Debug, Clone)]
pub(crate) struct AdamW {
    betas: [f64; 2],
    epsilon: f64,
    weight_decay: f64,
    gradient_scale: f64,
}

impl AdamW {
    pub fn new(train: &TrainConfig, weight_decay: f64) -> Self {
        Self {
            betas: train.betas,
            epsilon: train.epsilon,
            weight_decay,
            gradient_scale: 1.0,
        }
    }

    /// The same rule for gradients that are to be scaled first.
    #[must_use]
    pub fn scaled(&self, gradient_scale: f64) -> Self {
        Self {
            gradient_scale,
            ..self.clone()
        }
    }
}

impl Optimizer for AdamW {
    type State<const D: usize> = AdamWState<D>;

    fn step<const D: usize>(
        &self,
        learning_rate: LearningRate,
        parameter: Tensor<D>,
        gradient: Tensor<D>,
        state: Option<AdamWState<D>>,
    ) -> (Tensor<D>, Option<AdamWState<D>>) {
        let AdaptiveMomentumState {
            time,
            moment_1,
            moment_2,
            ..
        } = match state {
            Some(state) => state.momentum,
            None => AdaptiveMomentumState::new(0, gradient.zeros_like(), gradient.zeros_like()),
        };
        let time = time + 1;
        let step = AdamWStep {
            learning_rate,
            gradient_scale: self.gradient_scale,
            beta_1: self.betas[0],
            beta_2: self.betas[1],
            epsilon: self.epsilon,
            weight_decay: self.weight_decay,
            time: i32::try_from(time).unwrap_or(i32::MAX),
        };
        let (parameter, m, v) = adamw(parameter, gradient, moment_1, moment_2, &step);
        (
            parameter,
            Some(AdamWState::new(AdaptiveMomentumState::new(time, m, v))),
        )
    }

    fn to_device<const D: usize>(mut state: AdamWState<D>, device: &Device) -> AdamWState<D> {
        state.momentum = state.momentum.to_device(device);
        state
    }
}
