//! What softmax makes of scores, and what weights make of values.

use burn::tensor::{Device, Tensor, TensorData};
use headlight_attention::{
    AttentionOptions, Mask, attention_weights, worked_example::WorkedExample,
};
use headlight_heads::first_largest;
use headlight_report::{Sharpening, ValueSize};

use super::scaling::numbers;

const SCORES: [f32; 4] = [1.0, 2.0, 3.0, 4.0];
const FACTORS: [f32; 6] = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0];
/// Factors on the value of the token that is looked at most.
const SIZES: [f32; 5] = [1.0, 0.5, 0.2, 0.05, 0.0];
/// The query of the worked example whose blend is looked at: `cat`.
const QUERY: usize = 1;

/// Softmax of the same scores, ever larger, beside the scores divided by their sum.
pub(super) fn sharpening(device: &Device) -> Sharpening {
    // A query of 1 against these keys has them as scores.
    let query = Tensor::<4>::ones([1, 1, 1, 1], device);
    let key = Tensor::<4>::from_data(
        TensorData::new(SCORES.to_vec(), [1, 1, SCORES.len(), 1]),
        device,
    );
    let softmax = FACTORS.map(|factor| {
        let options = AttentionOptions::default().with_scale(f64::from(factor));
        (
            factor,
            numbers(attention_weights(
                query.clone(),
                key.clone(),
                &Mask::none(),
                &options,
            )),
        )
    });
    let sum: f32 = SCORES.iter().sum();
    Sharpening {
        scores: SCORES.to_vec(),
        plain: SCORES.map(|score| score / sum).to_vec(),
        softmax: softmax.to_vec(),
    }
}

/// The worked example's `cat` while the value of the token that it looks at most shrinks: the
/// weights stay.
pub(super) fn value_sizes(example: &WorkedExample, device: &Device) -> Vec<ValueSize> {
    let as_tensor = |rows: &[Vec<f32>]| {
        Tensor::<4>::from_data(
            TensorData::new(rows.concat(), [1, 1, rows.len(), rows[0].len()]),
            device,
        )
    };
    let query = as_tensor(&example.q[QUERY..=QUERY]);
    let weights = numbers(attention_weights(
        query,
        as_tensor(&example.k),
        &Mask::none(),
        &AttentionOptions::default(),
    ));
    let most = first_largest(0..weights.len(), |&key| f64::from(weights[key])).unwrap_or(0);
    let norm = |value: &[f32]| value.iter().map(|x| x * x).sum::<f32>().sqrt();
    let size = |factor| {
        let size_of = |key| if key == most { factor } else { 1.0 };
        let moved = weights
            .iter()
            .enumerate()
            .map(|(key, weight)| weight * size_of(key) * norm(&example.v[key]));
        ValueSize {
            factor,
            weights: weights.clone(),
            moved: moved.collect(),
        }
    };
    SIZES.map(size).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn softmax_sharpens_and_plain_normalising_does_not() {
        let Sharpening { plain, softmax, .. } = sharpening(&Device::flex());
        assert_eq!(plain, [0.1, 0.2, 0.3, 0.4]);
        for (factor, weights) in softmax {
            // exp(f·4)/exp(f·3) = exp(f)
            let ratio = weights[3] / weights[2];
            assert!(
                (ratio / factor.exp() - 1.0).abs() < 1e-4,
                "a ratio of {ratio} at factor {factor}"
            );
        }
    }

    #[test]
    fn a_value_of_zero_moves_nothing() {
        let sizes = value_sizes(&WorkedExample::compute(&Device::flex()), &Device::flex());
        assert!((sizes[0].weights.iter().sum::<f32>() - 1.0).abs() < 1e-6);
        // cat looks most at sat, key 2.
        assert!(sizes[0].weights[2] > 0.5 && sizes[0].moved[2] > sizes[0].moved[1]);
        assert_eq!(sizes[4].moved[2], 0.0);
        assert_eq!(sizes[4].weights, sizes[0].weights);
    }
}
