//! Headlight's attention as a part of your own Burn model: a small classifier, trained from scratch
//! in seconds.
//!
//! The task has a known answer: sequences of 6 to 12 tokens contain one marker `*`, and the class
//! is the token right after it. One attention block lets each token learn what stands before it;
//! then a learned query picks the one token that matters. The padding holds noise, a false marker
//! included, and is masked.
//!
//! ```sh
//! cargo run --example attention_in_your_model
//! ```
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example prints what it found"
)]

use std::time::Instant;

use burn::{
    config::Config,
    module::{Initializer, Module, Param},
    nn::{
        Embedding, EmbeddingConfig, LayerNorm, LayerNormConfig, Linear, LinearConfig,
        loss::CrossEntropyLossConfig,
    },
    optim::{AdamWConfig, GradientsParams},
    tensor::{Device, Int, Tensor, TensorData},
};
use headlight_attention::{Mask, MultiHeadAttention, MultiHeadAttentionConfig};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const SEED: u64 = 0;
const STEPS: usize = 600;
const HELD_OUT: usize = 1000;
const VOCABULARY: usize = 16;
const MARKER: i64 = 0;
const MAX_LENGTH: usize = 12;
const N_HEADS: usize = 2;

/// The attention's configuration is a field of the model's, like any other Burn configuration.
#[derive(Config, Debug)]
struct ClassifierConfig {
    attention: MultiHeadAttentionConfig,
    #[config(default = "VOCABULARY")]
    vocabulary: usize,
    #[config(default = "MAX_LENGTH")]
    max_length: usize,
}

impl ClassifierConfig {
    fn init(&self, device: &Device) -> Classifier {
        let d_model = self.attention.d_model;
        let standard_normal = Initializer::Normal {
            mean: 0.0,
            std: 1.0,
        };
        Classifier {
            tokens: EmbeddingConfig::new(self.vocabulary, d_model).init(device),
            positions: EmbeddingConfig::new(self.max_length, d_model).init(device),
            norm: LayerNormConfig::new(d_model).init(device),
            attention: self.attention.init(device),
            pool_norm: LayerNormConfig::new(d_model).init(device),
            pool_query: standard_normal.init([1, 1, d_model], device),
            pool: MultiHeadAttentionConfig::new(d_model, 1).init(device),
            output: LinearConfig::new(d_model, self.vocabulary).init(device),
        }
    }
}

#[derive(Module, Debug)]
struct Classifier {
    tokens: Embedding,
    positions: Embedding,
    norm: LayerNorm,
    attention: MultiHeadAttention,
    pool_norm: LayerNorm,
    /// Asks all tokens of a sequence: which of you is the answer?
    pool_query: Param<Tensor<3>>,
    pool: MultiHeadAttention,
    output: Linear,
}

impl Classifier {
    /// Logits `[batch, VOCABULARY]`.
    fn forward(&self, batch: &Batch, mask: &Mask) -> Tensor<2> {
        let (query, x) = self.pool_inputs(self.embed(batch), mask);
        let pooled = self.pool.cross(query, x, mask); // [batch, 1, d_model]
        self.output.forward(pooled.squeeze_dim(1))
    }

    /// `[batch, MAX_LENGTH, d_model]`
    fn embed(&self, batch: &Batch) -> Tensor<3> {
        let positions = Tensor::arange(0..MAX_LENGTH as i64, &batch.tokens.device()).unsqueeze();
        self.tokens.forward(batch.tokens.clone()) + self.positions.forward(positions)
    }

    /// The block `x ← x + attention(norm(x))`, and what comes after it: the query and the tokens it
    /// looks at.
    fn pool_inputs(&self, x: Tensor<3>, mask: &Mask) -> (Tensor<3>, Tensor<3>) {
        let x = x.clone() + self.attention.forward(self.norm.forward(x), mask);
        let [batch, _, _] = x.dims();
        (
            self.pool_query.val().repeat_dim(0, batch),
            self.pool_norm.forward(x),
        )
    }

    /// Who looks at whom, `[batch, heads, queries, keys]`: in the block, and in the pool.
    fn patterns(&self, batch: &Batch, mask: &Mask) -> (Tensor<4>, Tensor<4>) {
        let x = self.embed(batch);
        let (_, block) = self
            .attention
            .forward_with_weights(self.norm.forward(x.clone()), mask);
        let (query, x) = self.pool_inputs(x, mask);
        (
            block,
            self.pool
                .weights(self.pool.project(query, x.clone(), x), mask),
        )
    }
}

struct Batch {
    /// `[batch, MAX_LENGTH]`
    tokens: Tensor<2, Int>,
    /// How many tokens of each row are real; the rest is padding.
    lengths: Vec<usize>,
    /// Where each row's answer is: right after the marker.
    answers: Vec<usize>,
    /// `[batch]`: the token there.
    classes: Tensor<1, Int>,
}

impl Batch {
    fn draw(size: usize, rng: &mut ChaCha8Rng, device: &Device) -> Self {
        let (mut tokens, mut lengths, mut answers, mut classes) = (vec![], vec![], vec![], vec![]);
        for _ in 0..size {
            let length = rng.random_range(MAX_LENGTH / 2..=MAX_LENGTH);
            let answer = rng.random_range(1..length);
            let mut row: Vec<i64> = (0..MAX_LENGTH)
                .map(|_| rng.random_range(1..VOCABULARY as i64))
                .collect();
            row[answer - 1] = MARKER;
            if length < MAX_LENGTH {
                row[rng.random_range(length..MAX_LENGTH)] = MARKER; // a false one, in the padding
            }
            classes.push(row[answer]);
            tokens.extend(row);
            lengths.push(length);
            answers.push(answer);
        }
        let tokens = Tensor::from_data(TensorData::new(tokens, [size, MAX_LENGTH]), device);
        Self {
            tokens,
            lengths,
            answers,
            classes: Tensor::from_data(TensorData::new(classes, [size]), device),
        }
    }

    /// Real tokens may be attended to, padding may not.
    fn mask(&self) -> Mask {
        Mask::lengths(&self.lengths)
    }
}

fn accuracy(model: &Classifier, batch: &Batch, mask: &Mask) -> f32 {
    let predicted = model.forward(batch, mask).argmax(1).squeeze_dim::<1>(1);
    predicted
        .equal(batch.classes.clone())
        .float()
        .mean()
        .into_scalar()
}

fn train(config: &ClassifierConfig, device: &Device, held_out: &Batch) -> Classifier {
    let device = device.clone().autodiff();
    device.seed(SEED); // for the initial weights
    let mut rng = ChaCha8Rng::seed_from_u64(SEED); // for the sequences
    let mut model = config.init(&device);
    let mut optimizer = AdamWConfig::new().init();
    let cross_entropy = CrossEntropyLossConfig::new().init(&device);
    for step in 1..=STEPS {
        let batch = Batch::draw(64, &mut rng, &device); // never the same twice
        let loss =
            cross_entropy.forward(model.forward(&batch, &batch.mask()), batch.classes.clone());
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimizer.step(3e-3, model, gradients);
        if step == 1 || step % 100 == 0 {
            let accuracy = accuracy(&model.valid(), held_out, &held_out.mask());
            println!(
                "step {step:4}   loss {:.3}   held-out accuracy {accuracy:.3}",
                loss.into_scalar::<f32>()
            );
        }
    }
    model.valid()
}

/// Who looks at whom: written out for the first sequence, and averaged over all where the right key
/// is known.
fn print_patterns(model: &Classifier, batch: &Batch) {
    let (block, pool) = model.patterns(batch, &batch.mask());
    let [block, pool] =
        [block, pool].map(|pattern| pattern.into_data().iter().collect::<Vec<f32>>());
    let block = |row, head, query| {
        &block[((row * N_HEADS + head) * MAX_LENGTH + query) * MAX_LENGTH..][..MAX_LENGTH]
    };
    let pool = |row| &pool[row * MAX_LENGTH..][..MAX_LENGTH];

    let tokens: Vec<i64> = batch
        .tokens
        .clone()
        .narrow(0, 0, 1)
        .into_data()
        .iter()
        .collect();
    let answer = batch.answers[0];
    let keys = tokens.iter().enumerate().map(|(key, &token)| {
        let name = if token == MARKER {
            "*".to_owned()
        } else {
            token.to_string()
        };
        if key < batch.lengths[0] {
            format!("{name:>6}")
        } else {
            format!("{:>6}", format!("({name})"))
        }
    });
    let cells = |weights: &[f32]| {
        weights
            .iter()
            .map(|weight| format!("{weight:6.2}"))
            .collect::<Vec<_>>()
            .concat()
    };
    println!(
        "\nThe first held-out sequence, padding in brackets; the answer is {}.\n",
        tokens[answer]
    );
    println!("key                 {}", keys.collect::<String>());
    for head in 0..N_HEADS {
        println!(
            "{:20}{}",
            format!("block, head {head}: {}", tokens[answer]),
            cells(block(0, head, answer))
        );
    }
    println!("pool: learned query {}", cells(pool(0)));

    let answers = || batch.answers.iter().copied().enumerate();
    println!("\nMean weight over all {HELD_OUT} held-out sequences:");
    for head in 0..N_HEADS {
        let mean = answers()
            .map(|(row, at)| block(row, head, at)[at - 1])
            .sum::<f32>()
            / HELD_OUT as f32;
        println!("  block, head {head}: the answer's query on the marker before it   {mean:.2}");
    }
    let mean = answers().map(|(row, at)| pool(row)[at]).sum::<f32>() / HELD_OUT as f32;
    println!("  pool:          the learned query on the answer              {mean:.2}");
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let start = Instant::now();
    let config = ClassifierConfig::new(MultiHeadAttentionConfig::new(32, N_HEADS));
    // Saved and loaded as any Burn configuration is.
    let file = std::env::temp_dir().join(format!("classifier-{}.json", std::process::id()));
    config.save(&file)?;
    let config = ClassifierConfig::load(&file)?;
    std::fs::remove_file(&file)?;

    let device = Device::flex();
    let held_out = Batch::draw(HELD_OUT, &mut ChaCha8Rng::seed_from_u64(SEED + 1), &device);
    println!(
        "Which of {0} tokens follows the marker? Guessing is right one time in {0}.\n",
        VOCABULARY - 1
    );
    let model = train(&config, &device, &held_out);
    println!("\ntrained in {:.1} s", start.elapsed().as_secs_f32());
    let [with, without] =
        [held_out.mask(), Mask::none()].map(|mask| accuracy(&model, &held_out, &mask));
    println!("held-out accuracy {with:.3}; the same weights without the mask {without:.3}");
    print_patterns(&model, &held_out);
    Ok(())
}
