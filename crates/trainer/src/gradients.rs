//! Gradients of the parts of a batch: summed in a fixed order, with their norm as a whole.

use burn::{
    module::{Module, ModuleVisitor, Param},
    optim::GradientsParams,
    tensor::Tensor,
};
use headlight_ops::sum_with_squared_norm;

/// Sums the gradients of all parts, parameter by parameter, first part first: the result depends on
/// the number of parts, never on which of them was ready first. Each parameter's squared norm `Σ g²`
/// comes with it, as `[1]` on its device, in the order of the model.
pub fn sum<M: Module>(model: &M, parts: Vec<GradientsParams>) -> (GradientsParams, Vec<Tensor<1>>) {
    let mut sum = Sum {
        parts,
        total: GradientsParams::new(),
        squared_norms: Vec::new(),
    };
    model.visit(&mut sum);
    (sum.total, sum.squared_norms)
}

/// The factor on all gradients with which their `norm` as a whole is at most `most` (Pascanu et al.
/// 2013).
///
/// Burn's own clipping works on each tensor alone, which changes the direction of the step.
#[must_use]
pub fn clip(norm: f64, most: f64) -> f64 {
    if norm <= most { 1.0 } else { most / norm }
}

struct Sum {
    parts: Vec<GradientsParams>,
    total: GradientsParams,
    squared_norms: Vec<Tensor<1>>,
}

impl ModuleVisitor for Sum {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let mut parts = Vec::new();
        for part in &mut self.parts {
            parts.extend(part.remove::<D>(param.id));
        }
        if !parts.is_empty() {
            let (sum, squared_norm) = sum_with_squared_norm(parts);
            self.total.register(param.id, sum);
            self.squared_norms.push(squared_norm);
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
    fn the_norm_is_over_all_parameters() {
        let (linear, first) = gradients();
        let second = GradientsParams::from_grads(
            linear
                .forward(Tensor::<2>::zeros([2, 2], &linear.weight.device()))
                .sum()
                .backward(),
            &linear,
        );
        // Weights [[3, 3], [0, 0]]; biases [2, 2] from each of the two: the norm is √(18 + 32).
        let (sum, squared_norms) = sum(&linear, vec![first, second]);
        let squared: Vec<f64> = squared_norms
            .into_iter()
            .map(|norm| norm.into_scalar())
            .collect();
        assert_eq!(squared, [18.0, 32.0]);
        assert_eq!(
            values(&sum, &linear),
            (vec![3.0, 3.0, 0.0, 0.0], vec![4.0, 4.0])
        );
    }

    #[test]
    fn clipping_only_shortens() {
        assert_eq!(clip(50.0, 25.0), 0.5);
        assert_eq!(clip(25.0, 25.0), 1.0);
        assert_eq!(clip(0.0, 25.0), 1.0);
    }
}
