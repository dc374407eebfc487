//! What 1/√d does to the scores of random queries and keys.

use burn::tensor::{Device, Tensor, TensorData};
use headlight_attention::{AttentionOptions, Mask, attention_scores, attention_weights};
use headlight_report::{Cloud, Saturation};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

const WIDTHS: [usize; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];
const PAIRS: usize = 240;
const KEYS: usize = 8;
/// Of the clouds: with this seed and order of draws they are those of
/// `cargo run --example why_scale`.
const CLOUD_SEED: u64 = 1;
const SATURATION_SEED: u64 = 2;

/// Dot products of random pairs, components independent with mean 0 and variance 1.
pub(super) fn clouds(device: &Device) -> Vec<Cloud> {
    let mut rng = ChaCha8Rng::seed_from_u64(CLOUD_SEED);
    let cloud = |d| {
        let [query, key] = [(); 2].map(|()| standard_normal([PAIRS, 1, 1, d], &mut rng, device));
        Cloud {
            d,
            dot_products: numbers(attention_scores(query, key, &Mask::none(), &unscaled())),
        }
    };
    WIDTHS.map(cloud).to_vec()
}

/// One query against a few keys for each width.
pub(super) fn saturation(device: &Device) -> Vec<Saturation> {
    let mut rng = ChaCha8Rng::seed_from_u64(SATURATION_SEED);
    let saturation = |d| {
        let [query, key] = [1, KEYS].map(|n| standard_normal([1, 1, n, d], &mut rng, device));
        let weights = |options| {
            numbers(attention_weights(
                query.clone(),
                key.clone(),
                &Mask::none(),
                &options,
            ))
        };
        Saturation {
            d,
            raw: weights(unscaled()),
            scaled: weights(AttentionOptions::default()),
        }
    };
    WIDTHS.map(saturation).to_vec()
}

fn unscaled() -> AttentionOptions {
    AttentionOptions::default().with_scale(1.0)
}

fn standard_normal(shape: [usize; 4], rng: &mut ChaCha8Rng, device: &Device) -> Tensor<4> {
    let values: Vec<f32> = (0..shape.iter().product())
        .map(|_| StandardNormal.sample(rng))
        .collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// All numbers in their order.
pub(super) fn numbers(tensor: Tensor<4>) -> Vec<f32> {
    tensor.into_data().iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dot_products_spread_like_the_root_of_the_width() {
        for Cloud { d, dot_products } in clouds(&Device::flex()) {
            assert_eq!(dot_products.len(), PAIRS);
            let variance = dot_products
                .iter()
                .map(|&x| f64::from(x).powi(2))
                .sum::<f64>()
                / PAIRS as f64;
            // The mean square of n draws of variance d has a standard error of d·√((kurtosis −
            // 1)/n), at most d·√(8/n) = 0.18·d at d = 1, where the product of two normals has a
            // kurtosis of 9.
            assert!(
                (variance / d as f64 - 1.0).abs() < 3.0 * 0.18,
                "variance {variance} at d = {d}"
            );
        }
    }

    #[test]
    fn only_raw_scores_saturate() {
        let largest = |weights: &[f32]| weights.iter().copied().fold(0.0, f32::max);
        let all = saturation(&Device::flex());
        for row in &all {
            for weights in [&row.raw, &row.scaled] {
                assert!((weights.iter().sum::<f32>() - 1.0).abs() < 1e-5);
            }
        }
        let wide = all.last().unwrap();
        assert!(
            largest(&wide.raw) > 0.95 && largest(&wide.scaled) < 0.6,
            "{wide:?}"
        );
    }
}
