//! From Burn's attention to Headlight's: the same encoder block on either, the weights of one moved
//! to the other.
//!
//! Shows that the two give the same output on a padded batch, and the cases in which they do not.
//!
//! ```sh
//! cargo run --example swap_burn_attention
//! ```
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example prints what it found"
)]

use burn::{
    module::{Module, Param},
    nn::{
        LayerNorm, LayerNormConfig, Linear,
        attention::{
            MhaInput, MultiHeadAttention as BurnAttention,
            MultiHeadAttentionConfig as BurnAttentionConfig,
        },
        transformer::{PositionWiseFeedForward, PositionWiseFeedForwardConfig},
    },
    tensor::{Bool, Device, Distribution, Tensor, TensorData},
};
use headlight_attention::{ConfigError, Mask, MultiHeadAttention, MultiHeadAttentionConfig};

const D_MODEL: usize = 32;
const N_HEADS: usize = 4;

/// Before: `x ← x + attention(norm(x))`, `x ← x + feed_forward(norm(x))`, on Burn's attention.
#[derive(Module, Debug)]
struct BurnBlock {
    attention_norm: LayerNorm,
    attention: BurnAttention,
    feed_forward_norm: LayerNorm,
    feed_forward: PositionWiseFeedForward,
}

impl BurnBlock {
    fn new(device: &Device) -> Self {
        Self {
            attention_norm: LayerNormConfig::new(D_MODEL).init(device),
            attention: BurnAttentionConfig::new(D_MODEL, N_HEADS)
                .with_dropout(0.0)
                .init(device),
            feed_forward_norm: LayerNormConfig::new(D_MODEL).init(device),
            feed_forward: PositionWiseFeedForwardConfig::new(D_MODEL, 4 * D_MODEL)
                .with_dropout(0.0)
                .init(device),
        }
    }

    /// `is_padding[b, k]` is true where key `k` must not be seen.
    fn forward(&self, x: Tensor<3>, is_padding: Tensor<2, Bool>) -> Tensor<3> {
        let input =
            MhaInput::self_attn(self.attention_norm.forward(x.clone())).mask_pad(is_padding);
        let x = x + self.attention.forward(input).context;
        x.clone() + self.feed_forward.forward(self.feed_forward_norm.forward(x))
    }
}

/// After: the same on Headlight's attention.
#[derive(Module, Debug)]
struct HeadlightBlock {
    attention_norm: LayerNorm,
    attention: MultiHeadAttention,
    feed_forward_norm: LayerNorm,
    feed_forward: PositionWiseFeedForward,
}

impl HeadlightBlock {
    fn from_burn(block: BurnBlock, device: &Device) -> Result<Self, ConfigError> {
        Ok(Self {
            attention_norm: block.attention_norm,
            attention: from_burn(block.attention, device)?,
            feed_forward_norm: block.feed_forward_norm,
            feed_forward: block.feed_forward,
        })
    }

    fn forward(&self, x: Tensor<3>, mask: &Mask) -> Tensor<3> {
        let x = x.clone() + self.attention.forward(self.attention_norm.forward(x), mask);
        x.clone() + self.feed_forward.forward(self.feed_forward_norm.forward(x))
    }
}

/// Both store `Linear` layers `[in, out]` with the heads side by side, so the layers move as they
/// are.
fn from_burn(attention: BurnAttention, device: &Device) -> Result<MultiHeadAttention, ConfigError> {
    let config =
        MultiHeadAttentionConfig::new(attention.d_model, attention.n_heads).with_bias(true);
    let mut converted = config.try_init(device)?;
    converted.w_q = attention.query;
    converted.w_k = attention.key;
    converted.w_v = attention.value;
    converted.w_o = attention.output;
    Ok(converted)
}

/// A padded batch through both blocks.
fn compare_blocks(device: &Device) -> Result<(), ConfigError> {
    let lengths = [7, 4, 1];
    let x = Tensor::random([3, 7, D_MODEL], Distribution::Normal(0.0, 1.0), device);
    let is_padding: Vec<bool> = lengths
        .iter()
        .flat_map(|length| (0..7).map(move |key| key >= *length))
        .collect();
    let is_padding = Tensor::<2, Bool>::from_data(TensorData::new(is_padding, [3, 7]), device);

    let burn = BurnBlock::new(device);
    let headlight = HeadlightBlock::from_burn(burn.clone(), device)?;
    // Burn's true says "padding", Headlight's "may attend". Converters bear the name of the mask
    // they take.
    let mask = Mask::from_burn_pad(is_padding.clone()); // the same as Mask::key_padding(is_padding.bool_not())
    let before = burn.forward(x.clone(), is_padding);
    let after = headlight.forward(x, &mask);
    let largest: f32 = before.clone().abs().max().into_scalar();
    let difference: f32 = (before - after).abs().max().into_scalar();
    println!(
        "One encoder block on Burn's and on Headlight's attention, batch of lengths {lengths:?}:"
    );
    println!("outputs up to {largest:.1}, largest difference {difference:.1e}.\n");
    assert!(difference < 1e-5, "the blocks differ by {difference}");
    Ok(())
}

/// Attention of width 1 that can be followed by hand: query x, key `w_k`·x, value x, output z +
/// `b_o`.
fn by_hand(w_k: f32, b_o: f32, device: &Device) -> BurnAttention {
    let linear = |weight: f32, bias: f32| Linear {
        weight: Param::from_tensor(Tensor::from_floats([[weight]], device)),
        bias: Some(Param::from_tensor(Tensor::from_floats([bias], device))),
    };
    let mut attention = BurnAttentionConfig::new(1, 1)
        .with_dropout(0.0)
        .init(device);
    (attention.query, attention.key) = (linear(1.0, 0.0), linear(w_k, 0.0));
    (attention.value, attention.output) = (linear(1.0, 0.0), linear(1.0, b_o));
    attention
}

/// Both attentions on a sequence of two numbers; prints and gives what the first token takes and
/// gets.
fn compare_first(
    attention: BurnAttention,
    x: [f32; 2],
    is_padding: [bool; 2],
    device: &Device,
) -> Result<[f32; 2], ConfigError> {
    let headlight = from_burn(attention.clone(), device)?;
    let input = Tensor::<3>::from_floats([[[x[0]], [x[1]]]], device);
    let is_padding = Tensor::<2, Bool>::from_bool([is_padding], device);
    let before = attention.forward(MhaInput::self_attn(input.clone()).mask_pad(is_padding.clone()));
    let after = headlight.forward_with_weights(input, &Mask::from_burn_pad(is_padding));
    let mut outputs = [0.0; 2];
    let both = [
        ("Burn", before.weights, before.context),
        ("Headlight", after.1, after.0),
    ];
    for (output, (name, weights, context)) in outputs.iter_mut().zip(both) {
        let weights: Vec<f32> = weights.narrow(2, 0, 1).into_data().iter().collect();
        *output = context.narrow(1, 0, 1).into_scalar();
        println!(
            "  {name:10} weights {:.2} {:.2}   output {output:6.2}",
            weights[0], weights[1]
        );
    }
    println!();
    Ok(outputs)
}

fn main() -> Result<(), ConfigError> {
    let device = Device::flex();
    device.seed(0);
    compare_blocks(&device)?;
    println!("Where they differ, on one head of width 1 whose query and value are x itself:\n");

    println!(
        "Every key is padding, x = (1, 3), output bias 0.5. Burn fills both scores with -1e4, and equal scores"
    );
    println!(
        "give equal weights: the mean of the padding comes out. Headlight takes nothing: the bias alone is left."
    );
    let outputs = compare_first(
        by_hand(1.0, 0.5, &device),
        [1.0, 3.0],
        [true, true],
        &device,
    )?;
    assert_eq!(outputs, [2.5, 0.5]);

    println!(
        "Key 1 is padding, x = (200, 5), keys are -x. The real score is 200·(-200) = -4e4, below Burn's -1e4: the"
    );
    println!("padding wins. Headlight's masked scores are -∞, below any number.");
    let outputs = compare_first(
        by_hand(-1.0, 0.0, &device),
        [200.0, 5.0],
        [false, true],
        &device,
    )?;
    assert_eq!(outputs, [5.0, 200.0]);

    println!(
        "Key 1 is padding, x = (1, NaN). Burn multiplies the padding's value by 0, and 0·NaN is NaN. Headlight does"
    );
    println!("not read values that no query may attend to.");
    let [before, after] = compare_first(
        by_hand(1.0, 0.0, &device),
        [1.0, f32::NAN],
        [false, true],
        &device,
    )?;
    assert!(before.is_nan() && after == 1.0);
    Ok(())
}
