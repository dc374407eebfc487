//! Why each part adds to the stream instead of replacing it, measured on the gradient that reaches the embedding.
//!
//! A deep stack of the same freshly drawn blocks is walked twice: with `x + f(norm(x))` and with `f(norm(x))` alone.
//! With the sum, the gradient has a way back that passes through no block; without it, every block scales it.
//!
//! ```sh
//! cargo run --example why_residual
//! ```

use burn::tensor::{Device, Int, Tensor, TensorData};
use headlight_attention::Mask;
use headlight_residual::{Activation, Decoder, DecoderConfig, FeedForwardKind, NoProbe, Site};

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
    config.try_init(SEED, device).expect("the sizes fit together")
}

/// The stream after all blocks.
fn walk(model: &Decoder, mut x: Tensor<3>, adds: bool) -> Tensor<3> {
    let mask = Mask::causal();
    let mut step = |x: Tensor<3>, f_of_x: Tensor<3>| if adds { x + f_of_x } else { f_of_x };
    for (layer, block) in model.blocks.iter().enumerate() {
        let (ln1, ln2) = (block.ln1.as_ref().expect("layer norm"), block.ln2.as_ref().expect("layer norm"));
        let read = ln1.forward(x.clone(), |norm| Site::Ln1(layer, norm), &mut NoProbe);
        x = step(x, block.attn.forward(read, &mask));
        let read = ln2.forward(x.clone(), |norm| Site::Ln2(layer, norm), &mut NoProbe);
        x = step(x, block.mlp.as_ref().expect("a feed-forward").forward(read, layer, &mut NoProbe));
    }
    x
}

/// The norm of the loss's gradient with respect to the embedded tokens, and the loss.
fn gradient_norm(model: &Decoder, adds: bool, device: &Device) -> f64 {
    let ids: Vec<i32> = (0..TOKENS as i32).map(|i| (i * 37 + 11) % VOCABULARY as i32).collect();
    let tokens = Tensor::<2, Int>::from_data(TensorData::new(ids, [1, TOKENS]), device);
    let embedded = burn::tensor::module::embedding(model.w_e.val(), tokens.clone());
    let x = embedded.detach().require_grad();
    let logits = model.unembed(walk(model, x.clone(), adds), &mut NoProbe);
    // Each token's loss is to predict itself: any target does.
    let loss = -burn::tensor::activation::log_softmax(logits, 2).gather(2, tokens.unsqueeze_dim(2)).mean();
    let gradients = loss.backward();
    let gradient = x.grad(&gradients).expect("the loss depends on the embedding");
    f64::from(gradient.square().sum().sqrt().into_scalar::<f32>())
}

fn main() {
    let device = Device::flex().autodiff();
    println!("The norm of the gradient that reaches the embedding of a fresh model.\n");
    println!("  layers      x + f(norm(x))        f(norm(x))        ratio");
    let norms = DEPTHS.map(|depth| {
        let model = model(depth, &device);
        let [with, without] = [true, false].map(|adds| gradient_norm(&model, adds, &device));
        println!("{depth:8}{with:20.2e}{without:18.2e}{:13.0e}", with / without);
        (with, without)
    });
    let ([(first, first_without), .., (last, last_without)], depth) = (norms, DEPTHS[DEPTHS.len() - 1]);
    println!("\nFrom 1 layer to {depth} it changed by a factor of {:.2} with the sum", last / first);
    println!("and of {:.0e} without it.", last_without / first_without);
}
