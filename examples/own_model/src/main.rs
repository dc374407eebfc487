//! Trains the encoder–decoder, then asks Headlight what its heads do: where each of them looks, what
//! is lost without it, and which input reads it.
//!
//! ```sh
//! cargo run --bin own_model
//! ```
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example prints what it found"
)]

use std::time::Instant;

use burn::{
    module::Module,
    nn::loss::CrossEntropyLossConfig,
    optim::{AdamWConfig, GradientsParams},
    tensor::{Device, Tensor},
};
use headlight_heads::{Ablation, HeadName, Score};
use headlight_lens::{LayerPattern, ablate, all_heads, path_tests, score_targets, swap_follow};
use headlight_own_model::{
    CROSS, DECODER, ENCODER, EncoderDecoder, SOURCE, TARGET, VOCABULARY, Walk,
};
use headlight_residual::{AttentionSite, NoProbe, Probed, Site};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

const SEED: u64 = 0;
const STEPS: usize = 1500;
const BATCH: usize = 64;
const HELD_OUT: usize = 256;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::flex();
    let walks = draw(HELD_OUT, &mut ChaCha8Rng::seed_from_u64(SEED + 1));
    let behaviour = Walk::behaviour(&walks, &device);

    let start = Instant::now();
    let model = train(&device);
    let untouched = behaviour.measure(&model, &mut NoProbe);
    println!(
        "trained in {:.1} s: held-out accuracy {:.3}, loss {:.4} nats\n",
        start.elapsed().as_secs_f32(),
        untouched.accuracy,
        untouched.loss
    );

    println!("head  on its target (95 %)   uniform  accuracy without it");
    let scores = scores(&model, &walks)?;
    for (head, score) in all_heads(&model).into_iter().zip(scores) {
        let without = ablate(&model, &behaviour, &[head], Ablation::Mean)?;
        println!(
            "{head}  {:.2} ({:.2} to {:.2})     {:.2}                {:.3}",
            score.value, score.interval.low, score.interval.high, score.null, without.accuracy
        );
    }

    let encoder: Vec<HeadName> = all_heads(&model)
        .into_iter()
        .filter(|head| head.layer == ENCODER)
        .collect();
    println!("\nThe encoder's heads hidden from one input of the cross-attention:");
    if let Some(hidden) = path_tests(&model, &behaviour, &encoder, CROSS)? {
        for (input, performance) in ["queries", "keys", "values"].iter().zip(hidden) {
            println!("  {input:8} accuracy {:.3}", performance.accuracy);
        }
    }

    let rows: Vec<Vec<u32>> = walks.iter().map(|walk| walk.row.clone()).collect();
    println!("\nAnother token in the place of the next one:");
    if let Some(swap) = swap_follow(&model, &rows, &[], Ablation::Mean, SEED)? {
        println!(
            "  the model says it for {:.3} of {} queries; with another token of the source replaced, {:.3}",
            swap.follows.mean, swap.queries, swap.control_follows.mean
        );
    }
    Ok(())
}

fn draw(count: usize, rng: &mut ChaCha8Rng) -> Vec<Walk> {
    (0..count).map(|_| Walk::draw(rng)).collect()
}

fn train(device: &Device) -> EncoderDecoder {
    let device = device.clone().autodiff();
    device.seed(SEED); // for the initial weights
    let mut rng = ChaCha8Rng::seed_from_u64(SEED); // for the walks
    let mut model = EncoderDecoder::init(32, 16, 0.25, &device);
    let mut optimizer = AdamWConfig::new().with_weight_decay(0.0).init();
    let cross_entropy = CrossEntropyLossConfig::new().init(&device);
    for step in 1..=STEPS {
        let walks = draw(BATCH, &mut rng); // never the same twice
        let targets = Walk::behaviour(&walks, &device).targets();
        let logits = model.forward_probed(Walk::rows(&walks, &device), &mut NoProbe);
        let loss = cross_entropy.forward(
            logits.reshape([BATCH * TARGET, VOCABULARY]),
            targets.reshape([BATCH * TARGET]),
        );
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimizer.step(3e-3, model, gradients);
        if step == 1 || step % 250 == 0 {
            println!("step {step:4}   loss {:.3}", loss.into_scalar::<f32>());
        }
    }
    model.valid()
}

/// The score of every head on the keys that its layer needs: in the encoder the token before, in the
/// decoder the token itself, in the cross-attention the token behind the one that is read.
fn scores(
    model: &EncoderDecoder,
    walks: &[Walk],
) -> Result<Vec<Score>, Box<dyn std::error::Error>> {
    let target = |layer: usize, walk: &Walk, query: usize| match layer {
        ENCODER => Some((query + SOURCE - 1) % SOURCE),
        DECODER => Some(query),
        _ => walk.place_of(query).map(|place| place + 1),
    };
    let pattern = |layer| Site::Attention(layer, AttentionSite::Pattern);
    let sites = [ENCODER, DECODER, CROSS].map(pattern);
    let seen = model.activations(Walk::rows(walks, &model.device()), &sites)?;
    let mut scores = Vec::new();
    for (layer, site) in sites.into_iter().enumerate() {
        let weights: Tensor<4> = seen.tensor(site);
        let (dims, weights) = (weights.dims(), weights.into_data().try_into_vec::<f32>());
        let weights = weights.map_err(|error| format!("{error:?}"))?;
        let pattern = if layer == DECODER {
            LayerPattern::new([dims[0], dims[1], dims[2]], &weights)
        } else {
            LayerPattern::of_all_keys(dims, &weights)
        };
        let targets = |walk: usize, query: usize| Some(target(layer, &walks[walk], query));
        scores.extend(score_targets(&pattern, targets).unwrap_or_default());
    }
    Ok(scores)
}
