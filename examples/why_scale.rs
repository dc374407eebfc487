//! Why scores are divided by √d, measured on random queries and keys.
//!
//! With components of variance 1, a dot product over d dimensions has variance d. The first table
//! shows it; the others show what softmax, and the gradient that comes back through it, make of
//! such scores with and without the division.
//!
//! ```sh
//! cargo run --example why_scale
//! ```
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example prints what it found"
)]

use burn::tensor::{Device, Tensor, TensorData};
use headlight_attention::{AttentionOptions, Mask, attention_weights};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

const SEED: u64 = 1;
const WIDTHS: [usize; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];
/// Query–key pairs in the first table, queries in the others.
const SAMPLES: usize = 240;
/// Keys that each query of the other tables chooses from.
const KEYS: usize = 16;

/// `[queries, 1 head, 1 query, d]` or `[queries, 1 head, KEYS, d]`: each query is a batch row with
/// keys of its own.
fn standard_normal(shape: [usize; 4], rng: &mut ChaCha8Rng, device: &Device) -> Tensor<4> {
    let values: Vec<f32> = (0..shape.iter().product())
        .map(|_| StandardNormal.sample(rng))
        .collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}

fn to_vec(tensor: Tensor<4>) -> Vec<f64> {
    tensor.into_data().iter().collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn standard_deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    (values
        .iter()
        .map(|value| (value - mean).powi(2))
        .sum::<f64>()
        / (values.len() - 1) as f64)
        .sqrt()
}

/// What softmax makes of the scores of `SAMPLES` queries, each against `KEYS` keys of its own.
struct Softmax {
    /// Mean of −Σ w ln w, nats.
    entropy: f64,
    /// Mean of the largest weight.
    largest: f64,
    /// For each query `q`, |∂(weight of the first key)/∂q|, in increasing order.
    gradient_norms: Vec<f64>,
}

impl Softmax {
    fn measure(query: Tensor<4>, key: Tensor<4>, options: &AttentionOptions) -> Self {
        let query = query.autodiff().require_grad();
        let weights = attention_weights(query.clone(), key.autodiff(), &Mask::none(), options); // [queries, 1, 1, KEYS]
        // Each query has its own keys, so the sum over queries has each one's own gradient in its
        // row.
        let gradients = weights.clone().narrow(3, 0, 1).sum().backward();
        let gradient = query
            .grad(&gradients)
            .expect("the loss depends on the query");
        let mut gradient_norms = to_vec(gradient.square().sum_dim(3).sqrt());
        gradient_norms.sort_by(f64::total_cmp);

        let weights = to_vec(weights);
        let rows = weights.chunks_exact(KEYS);
        // A weight that has underflowed to 0 contributes 0, the limit of w ln w.
        let entropy = |row: &[f64]| {
            -row.iter()
                .filter(|&&w| w > 0.0)
                .map(|w| w * w.ln())
                .sum::<f64>()
        };
        Self {
            entropy: mean(&rows.clone().map(entropy).collect::<Vec<_>>()),
            largest: mean(
                &rows
                    .map(|row| row.iter().copied().fold(0.0, f64::max))
                    .collect::<Vec<_>>(),
            ),
            gradient_norms,
        }
    }

    fn median_gradient(&self) -> f64 {
        f64::midpoint(
            self.gradient_norms[SAMPLES / 2 - 1],
            self.gradient_norms[SAMPLES / 2],
        )
    }

    /// The fewest queries whose gradient norms make up nine tenths of the sum of all.
    fn carriers(&self) -> usize {
        let nine_tenths = 0.9 * self.gradient_norms.iter().sum::<f64>();
        let largest_first = self.gradient_norms.iter().rev();
        let sums = largest_first.scan(0.0, |sum, norm| {
            *sum += norm;
            Some(*sum)
        });
        sums.take_while(|sum| *sum < nine_tenths).count() + 1
    }
}

fn main() {
    let device = Device::flex();
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);

    println!(
        "Dot products q·k of {SAMPLES} random pairs, components independent with mean 0 and variance 1.\n"
    );
    println!("    d   std of q·k        √d   std of q·k/√d");
    let deviations = WIDTHS.map(|d| {
        let [q, k] = [(); 2].map(|()| standard_normal([SAMPLES, 1, 1, d], &mut rng, &device));
        let raw = standard_deviation(&to_vec((q * k).sum_dim(3)));
        let root = (d as f64).sqrt();
        println!("{d:5}{raw:13.2}{root:10.2}{:16.2}", raw / root);
        (raw, raw / root)
    });

    let (uniform_entropy, uniform_weight) = ((KEYS as f64).ln(), 1.0 / KEYS as f64);
    println!(
        "\nSoftmax over {KEYS} such scores, mean over {SAMPLES} queries. Equal weights would give an entropy of"
    );
    println!(
        "ln {KEYS} = {uniform_entropy:.2} nats and a largest weight of 1/{KEYS} = {uniform_weight:.2}.\n"
    );
    println!("            entropy            largest weight");
    println!("    d      raw    scaled        raw    scaled");
    let softmaxes = WIDTHS.map(|d| {
        let [query, key] =
            [1, KEYS].map(|n| standard_normal([SAMPLES, 1, n, d], &mut rng, &device));
        let raw = Softmax::measure(
            query.clone(),
            key.clone(),
            &AttentionOptions::default().with_scale(1.0),
        );
        let scaled = Softmax::measure(query, key, &AttentionOptions::default()); // 1/√d
        println!(
            "{d:5}{:9.2}{:10.2}{:11.2}{:10.2}",
            raw.entropy, scaled.entropy, raw.largest, scaled.largest
        );
        (raw, scaled)
    });

    println!(
        "\nThe gradient that reaches the query from the weight of one key: its norm for the median query, its"
    );
    println!("mean norm, and how many of the {SAMPLES} queries carry nine tenths of the sum.\n");
    println!("           median norm           mean norm           carried by");
    println!("    d      raw    scaled       raw    scaled       raw    scaled");
    for (d, (raw, scaled)) in WIDTHS.iter().zip(&softmaxes) {
        print!(
            "{d:5}{:9.0e}{:10.0e}",
            raw.median_gradient(),
            scaled.median_gradient()
        );
        print!(
            "{:10.3}{:10.3}",
            mean(&raw.gradient_norms),
            mean(&scaled.gradient_norms)
        );
        println!("{:10}{:10}", raw.carriers(), scaled.carriers());
    }
    print_summary(&deviations, &softmaxes);
}

fn print_summary(deviations: &[(f64, f64)], softmaxes: &[(Softmax, Softmax)]) {
    let ([(first, _), .., (last, _)], [.., (raw, scaled)]) = (deviations, softmaxes) else {
        return;
    };
    let d = WIDTHS[WIDTHS.len() - 1];
    let scaled_deviations = range(deviations.iter().map(|(_, scaled)| *scaled));
    let largest = range(softmaxes.iter().map(|(_, scaled)| scaled.largest));
    let (raw_mean, scaled_mean) = (mean(&raw.gradient_norms), mean(&scaled.gradient_norms));
    println!(
        "\nFrom d = 1 to {d} the standard deviation of q·k went from {first:.2} to {last:.2};"
    );
    println!("that of q·k/√d stayed within {scaled_deviations}.");
    println!(
        "At d = {d} the largest of {KEYS} raw weights was {:.2} on average; scaled, {largest} at every d.",
        raw.largest
    );
    print!(
        "At d = {d} the median query got a gradient of norm {:.0e} raw, ",
        raw.median_gradient()
    );
    println!("{:.0e} scaled.", scaled.median_gradient());
    println!(
        "The mean norm does not show it ({raw_mean:.2} raw, {scaled_mean:.2} scaled): nine tenths of the raw sum"
    );
    println!(
        "came from {} queries of {SAMPLES}, of the scaled sum from {}.",
        raw.carriers(),
        scaled.carriers()
    );
}

fn range(values: impl Iterator<Item = f64> + Clone) -> String {
    format!(
        "{:.2} to {:.2}",
        values.clone().fold(f64::MAX, f64::min),
        values.fold(f64::MIN, f64::max)
    )
}
