//! Why each part adds to the stream instead of replacing it, measured on the gradient that reaches
//! the embedding.
//!
//! A deep stack of the same freshly drawn blocks is walked with `x + f(norm(x))`, with `f(norm(x))`
//! alone, and both ways without the norms. With the sum, the gradient has a way back that passes
//! through no block; without it, every block scales it. Norms, which bring each vector back to one
//! size, hide part of the damage but do not undo it.
//!
//! ```sh
//! cargo run --example why_residual
//! ```
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example prints what it found"
)]

use burn::tensor::{Device, Int, Tensor, TensorData};
use headlight_attention::Mask;
use headlight_residual::{
    Activation, Decoder, DecoderConfig, FeedForwardKind, NoProbe, Norm, Site,
};

const DEPTHS: [usize; 6] = [1, 2, 4, 8, 16, 32];
const TOKENS: usize = 32;
const VOCABULARY: usize = 64;
const SEED: u64 = 1;

fn model(n_layers: usize, device: &Device) -> Decoder {
    let config = DecoderConfig {
        vocabulary: VOCABULARY,
        n_ctx: TOKENS,
        n_layers,
        feed_forward: Some((256, FeedForwardKind::Plain(Activation::Gelu))),
        ..DecoderConfig::default()
    };
    config
        .try_init(SEED, device)
        .expect("the sizes fit together")
}

/// How a stack is walked.
#[derive(Clone, Copy)]
struct Walk {
    adds: bool,
    normalizes: bool,
}

impl Walk {
    /// The stream after all blocks.
    fn through(self, model: &Decoder, mut x: Tensor<3>) -> Tensor<3> {
        let mask = Mask::causal();
        let read = |norm: &Option<Norm>, x: &Tensor<3>| match norm {
            Some(norm) if self.normalizes => norm.forward(x.clone(), Site::LnFinal, &mut NoProbe),
            _ => x.clone(),
        };
        let step = |x: Tensor<3>, f_of_x: Tensor<3>| if self.adds { x + f_of_x } else { f_of_x };
        for (layer, block) in model.blocks.iter().enumerate() {
            let attn_out = block.attn.forward(read(&block.ln1, &x), &mask);
            x = step(x, attn_out);
            if let Some(mlp) = &block.mlp {
                let mlp_out = mlp.forward(read(&block.ln2, &x), layer, &mut NoProbe);
                x = step(x, mlp_out);
            }
        }
        x
    }
}

/// The norm of the loss's gradient with respect to the embedded tokens.
fn gradient_norm(model: &Decoder, walk: Walk, device: &Device) -> f64 {
    let ids: Vec<i32> = (0..TOKENS as i32)
        .map(|i| (i * 37 + 11) % VOCABULARY as i32)
        .collect();
    let tokens = Tensor::<2, Int>::from_data(TensorData::new(ids, [1, TOKENS]), device);
    let embedded = burn::tensor::module::embedding(model.w_e.val(), tokens.clone());
    let x = embedded.detach().require_grad();
    let logits = model.unembed(walk.through(model, x.clone()), &mut NoProbe);
    // Each token's loss is to predict itself: any target does.
    let loss = -burn::tensor::activation::log_softmax(logits, 2)
        .gather(2, tokens.unsqueeze_dim(2))
        .mean();
    let gradients = loss.backward();
    let gradient = x
        .grad(&gradients)
        .expect("the loss depends on the embedding");
    f64::from(gradient.square().sum().sqrt().into_scalar::<f32>())
}

fn main() {
    let device = Device::flex().autodiff();
    println!("The norm of the gradient that reaches the embedding of a fresh model.\n");
    println!("  layers   x + f(norm(x))     f(norm(x))       x + f(x)           f(x)");
    let walks = [(true, true), (false, true), (true, false), (false, false)];
    let norms = DEPTHS.map(|depth| {
        let model = model(depth, &device);
        let norms = walks
            .map(|(adds, normalizes)| gradient_norm(&model, Walk { adds, normalizes }, &device));
        println!(
            "{depth:8}{:17.1e}{:15.1e}{:15.1e}{:15.1e}",
            norms[0], norms[1], norms[2], norms[3]
        );
        norms
    });
    let [first, .., last] = norms;
    let factors: Vec<String> = first
        .iter()
        .zip(last)
        .map(|(first, last)| format!("{:.1e}", last / first))
        .collect();
    println!(
        "\nFrom 1 layer to {} it changed by the factors {}.",
        DEPTHS[DEPTHS.len() - 1],
        factors.join(", ")
    );
}
