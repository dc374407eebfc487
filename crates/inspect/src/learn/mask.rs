//! The worked example's weights under masks.

use burn::tensor::{Device, Tensor, TensorData};
use headlight_attention::{
    AttentionOptions, Mask, attention_weights, worked_example::WorkedExample,
};
use headlight_report::{MaskedWeights, Rows};

use super::scaling::numbers;

/// The keys that a query sees through the window.
const WINDOW: usize = 2;

/// Whether a query may attend to a key.
type MayAttend = fn(usize, usize) -> bool;

/// Without a mask, with the causal one, through a window.
pub(super) fn masked_weights(example: &WorkedExample, device: &Device) -> Vec<MaskedWeights> {
    let tokens = example.q.len();
    let as_tensor = |rows: &Rows| {
        let data = TensorData::new(rows.concat(), [1, 1, rows.len(), rows[0].len()]);
        Tensor::<4>::from_data(data, device)
    };
    let masks: [(String, Mask, MayAttend); 3] = [
        ("none".to_owned(), Mask::none(), |_, _| true),
        ("causal".to_owned(), Mask::causal(), |query, key| {
            key <= query
        }),
        (
            format!("causal, window of {WINDOW}"),
            Mask::causal().and(Mask::window(WINDOW)),
            |query, key| key <= query && query - key < WINDOW,
        ),
    ];
    let mut all = Vec::new();
    for (name, mask, may_attend) in masks {
        let weights = attention_weights(
            as_tensor(&example.q),
            as_tensor(&example.k),
            &mask,
            &AttentionOptions::default(),
        );
        let of_query =
            |query| -> Vec<bool> { (0..tokens).map(|key| may_attend(query, key)).collect() };
        all.push(MaskedWeights {
            name,
            may_attend: (0..tokens).map(of_query).collect(),
            weights: numbers(weights)
                .chunks(tokens)
                .map(<[f32]>::to_vec)
                .collect(),
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_masked_key_has_weight_0_and_the_rest_keeps_its_ratios() {
        let device = Device::flex();
        let example = WorkedExample::compute(&device);
        let masks = masked_weights(&example, &device);
        let free = &masks[0].weights;
        for mask in &masks {
            for (query, row) in mask.weights.iter().enumerate() {
                let seen: f32 = (0..row.len())
                    .filter(|&key| mask.may_attend[query][key])
                    .map(|key| free[query][key])
                    .sum();
                for (key, &weight) in row.iter().enumerate() {
                    let expected = if mask.may_attend[query][key] {
                        free[query][key] / seen
                    } else {
                        0.0
                    };
                    assert!((weight - expected).abs() < 1e-6, "{}: {row:?}", mask.name);
                }
            }
        }
        assert_eq!(masks[1].weights[0], [1.0, 0.0, 0.0, 0.0]);
    }
}
