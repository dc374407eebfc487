//! Loss and gradient as one row of numbers: one sum over all ranks a step, whatever the number of
//! parameters.

use burn::{
    module::{Module, ModuleVisitor, Param},
    optim::GradientsParams,
    tensor::{Tensor, TensorData},
};
use headlight_ops::squared_norm;

use super::Ranks;

/// The sums over all ranks of their parts of the loss and of the gradient, with each parameter's
/// squared norm. One rank's parts stay where they are. Several send one row of numbers: every
/// parameter's gradient, in the order of the model, then the loss; and the loss comes back as one
/// part.
pub fn sum<M: Module>(
    ranks: &dyn Ranks,
    model: &M,
    losses: Vec<Tensor<1>>,
    gradients: GradientsParams,
    squared_norms: Vec<Tensor<1>>,
) -> (Vec<Tensor<1>>, GradientsParams, Vec<Tensor<1>>) {
    if ranks.size() == 1 {
        return (losses, gradients, squared_norms);
    }
    let device = losses[0].device();
    let loss: f64 = Tensor::cat(losses, 0).into_data().iter::<f64>().sum();
    let mut flatten = Flatten {
        gradients,
        numbers: Vec::with_capacity(model.num_params() + 1),
    };
    model.visit(&mut flatten);
    let Flatten {
        gradients,
        mut numbers,
    } = flatten;
    numbers.push(loss as f32);
    ranks.sum(&mut numbers);
    let loss = numbers.pop().unwrap_or(f32::NAN);
    let mut refill = Refill {
        gradients,
        numbers: &numbers,
        squared_norms: Vec::new(),
    };
    model.visit(&mut refill);
    let loss = Tensor::from_floats([loss], &device);
    (vec![loss], refill.gradients, refill.squared_norms)
}

/// Tells the ranks that wait in [`sum`] for the next step that there is none: they read a loss that
/// is no number.
pub fn dismiss<M: Module>(ranks: &dyn Ranks, model: &M) {
    ranks.sum(&mut vec![f32::NAN; model.num_params() + 1]);
}

struct Flatten {
    gradients: GradientsParams,
    numbers: Vec<f32>,
}

impl ModuleVisitor for Flatten {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        match self.gradients.get::<D>(param.id) {
            Some(gradient) => self.numbers.extend(gradient.into_data().iter::<f32>()),
            None => self
                .numbers
                .resize(self.numbers.len() + param.lazy_shape().num_elements(), 0.0),
        }
    }
}

/// Puts the numbers back where they came from.
struct Refill<'a> {
    gradients: GradientsParams,
    numbers: &'a [f32],
    squared_norms: Vec<Tensor<1>>,
}

impl ModuleVisitor for Refill<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let shape = param.lazy_shape();
        let (own, rest) = self.numbers.split_at(shape.num_elements());
        self.numbers = rest;
        if let Some(part) = self.gradients.remove::<D>(param.id) {
            let sum = Tensor::<D>::from_data(TensorData::new(own.to_vec(), shape), &part.device());
            self.squared_norms.push(squared_norm(sum.clone()));
            self.gradients.register(param.id, sum);
        }
    }
}
