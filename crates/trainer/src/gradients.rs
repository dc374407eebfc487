//! Gradients of the parts of a batch: summed in a fixed order, clipped by their norm as a whole.

use burn::{
    module::{Module, ModuleVisitor, Param},
    optim::GradientsParams,
    tensor::Tensor,
};
use headlight_ops::squared_norm;

/// Sums the gradients of all parts, parameter by parameter, first part first: the result depends on
/// the number of parts, never on which of them was ready first.
pub fn sum<M: Module>(model: &M, parts: Vec<GradientsParams>) -> GradientsParams {
    let mut sum = Sum {
        parts,
        total: GradientsParams::new(),
    };
    model.visit(&mut sum);
    sum.total
}

/// Each parameter's squared norm `Σ g²`, as `[1]` on its device, in the order of the model.
pub fn squared_norms<M: Module>(model: &M, gradients: &GradientsParams) -> Vec<Tensor<1>> {
    let mut visitor = SquaredNorms {
        gradients,
        squared_norms: Vec::new(),
    };
    model.visit(&mut visitor);
    visitor.squared_norms
}

/// Scales all gradients by one factor so that their norm as a whole is at most `most` (Pascanu et
/// al. 2013).
///
/// Burn's own clipping works on each tensor alone, which changes the direction of the step.
pub fn clip<M: Module>(
    model: &M,
    gradients: GradientsParams,
    norm: f64,
    most: f64,
) -> GradientsParams {
    if norm <= most {
        return gradients;
    }
    let mut scale = Scale {
        gradients,
        factor: most / norm,
    };
    model.visit(&mut scale);
    scale.gradients
}

struct Sum {
    parts: Vec<GradientsParams>,
    total: GradientsParams,
}

impl ModuleVisitor for Sum {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let parts = self
            .parts
            .iter_mut()
            .filter_map(|part| part.remove::<D>(param.id));
        if let Some(gradient) = parts.reduce(|sum, part| sum + part) {
            self.total.register(param.id, gradient);
        }
    }
}

struct SquaredNorms<'a> {
    gradients: &'a GradientsParams,
    squared_norms: Vec<Tensor<1>>,
}

impl ModuleVisitor for SquaredNorms<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = self.gradients.get::<D>(param.id) {
            self.squared_norms.push(squared_norm(gradient));
        }
    }
}

struct Scale {
    gradients: GradientsParams,
    factor: f64,
}

impl ModuleVisitor for Scale {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = self.gradients.remove::<D>(param.id) {
            self.gradients
                .register(param.id, gradient.mul_scalar(self.factor));
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::{
        nn::{Linear, LinearConfig},
        tensor::Device,
    };

    use super::*;

    fn gradients() -> (Linear, GradientsParams) {
        let device = Device::flex().autodiff();
        let linear = LinearConfig::new(2, 2).init(&device);
        let loss = linear
            .forward(Tensor::<2>::from_floats([[3.0, 0.0], [0.0, 0.0]], &device))
            .sum();
        let gradients = GradientsParams::from_grads(loss.backward(), &linear);
        (linear, gradients)
    }

    fn values(gradients: &GradientsParams, linear: &Linear) -> (Vec<f32>, Vec<f32>) {
        let weight = gradients
            .get::<2>(linear.weight.id)
            .unwrap()
            .into_data()
            .iter::<f32>()
            .collect();
        let bias = gradients
            .get::<1>(linear.bias.as_ref().unwrap().id)
            .unwrap()
            .into_data()
            .iter::<f32>()
            .collect();
        (weight, bias)
    }

    #[test]
    fn the_norm_is_over_all_parameters_and_clipping_keeps_the_direction() {
        let (linear, first) = gradients();
        let second = GradientsParams::from_grads(
            linear
                .forward(Tensor::<2>::zeros([2, 2], &linear.weight.device()))
                .sum()
                .backward(),
            &linear,
        );
        // Weights [[3, 3], [0, 0]]; biases [2, 2] from each of the two: the norm is √(18 + 32).
        let sum = sum(&linear, vec![first, second]);
        let squared: Vec<f64> = squared_norms(&linear, &sum)
            .into_iter()
            .map(|norm| norm.into_scalar())
            .collect();
        assert_eq!(squared, [18.0, 32.0]);
        let norm = 50f64.sqrt();
        assert_eq!(
            values(&sum, &linear),
            (vec![3.0, 3.0, 0.0, 0.0], vec![4.0, 4.0])
        );

        let half = clip(&linear, sum, norm, norm / 2.0);
        assert_eq!(
            values(&half, &linear),
            (vec![1.5, 1.5, 0.0, 0.0], vec![2.0, 2.0])
        );
        let same = clip(&linear, half, norm / 2.0, norm);
        assert_eq!(
            values(&same, &linear),
            (vec![1.5, 1.5, 0.0, 0.0], vec![2.0, 2.0])
        );
    }
}
