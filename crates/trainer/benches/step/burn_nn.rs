//! The same decoder of Burn's `nn` modules, trained as Burn's book does it: one graph, Burn's AdamW
//! and clipping.

use burn::{
    grad_clipping::GradientClippingConfig,
    module::Module,
    nn::{
        Embedding, EmbeddingConfig, Gelu, LayerNorm, LayerNormConfig, Linear, LinearConfig,
        attention::{
            MhaInput, MultiHeadAttention, MultiHeadAttentionConfig, generate_autoregressive_mask,
        },
        loss::{CrossEntropyLoss, CrossEntropyLossConfig},
    },
    optim::{AdamWConfig, GradientsParams},
    tensor::{Device, Distribution, Int, Tensor},
};

use crate::Sizes;

#[derive(Module, Debug)]
struct Block {
    ln1: LayerNorm,
    attention: MultiHeadAttention,
    feed_forward: Option<(LayerNorm, Linear, Linear)>,
}

#[derive(Module, Debug)]
struct Decoder {
    tokens: Embedding,
    positions: Embedding,
    blocks: Vec<Block>,
    ln: LayerNorm,
    head: Linear,
    loss: CrossEntropyLoss,
}

impl Decoder {
    fn new(sizes: Sizes, device: &Device) -> Self {
        let width = sizes.width;
        let block = |_| Block {
            ln1: LayerNormConfig::new(width).init(device),
            attention: MultiHeadAttentionConfig::new(width, sizes.heads)
                .with_dropout(0.0)
                .init(device),
            feed_forward: sizes.feed_forward.then(|| {
                let linear = |from, to| LinearConfig::new(from, to).init(device);
                (
                    LayerNormConfig::new(width).init(device),
                    linear(width, 4 * width),
                    linear(4 * width, width),
                )
            }),
        };
        Self {
            tokens: EmbeddingConfig::new(sizes.vocabulary, width).init(device),
            positions: EmbeddingConfig::new(sizes.length, width).init(device),
            blocks: (0..sizes.layers).map(block).collect(),
            ln: LayerNormConfig::new(width).init(device),
            head: LinearConfig::new(width, sizes.vocabulary)
                .with_bias(false)
                .init(device),
            loss: CrossEntropyLossConfig::new().init(device),
        }
    }

    fn loss(&self, tokens: Tensor<2, Int>) -> Tensor<1> {
        let [batch, length] = [tokens.dims()[0], tokens.dims()[1] - 1];
        let [vocabulary, _] = self.tokens.weight.dims();
        let device = tokens.device();
        let positions = Tensor::arange(0..length as i64, &device).unsqueeze::<2>();
        let mut x = self.tokens.forward(tokens.clone().narrow(1, 0, length))
            + self.positions.forward(positions);
        let mask = generate_autoregressive_mask(batch, length, &device);
        for Block {
            ln1,
            attention,
            feed_forward,
        } in &self.blocks
        {
            let input = MhaInput::self_attn(ln1.forward(x.clone())).mask_attn(mask.clone());
            x = x + attention.forward(input).context;
            if let Some((ln2, w_in, w_out)) = feed_forward {
                x = x.clone() + w_out.forward(Gelu::new().forward(w_in.forward(ln2.forward(x))));
            }
        }
        let logits = self
            .head
            .forward(self.ln.forward(x))
            .reshape([batch * length, vocabulary]);
        self.loss.forward(
            logits,
            tokens.narrow(1, 1, length).reshape([batch * length]),
        )
    }
}

/// One step each time it is called.
pub fn stepper(sizes: Sizes, device: &Device) -> impl FnMut(usize) + use<> {
    let device = device.clone().autodiff();
    let mut model = Some(Decoder::new(sizes, &device));
    let mut optimizer = AdamWConfig::new()
        .with_beta_2(0.98)
        .with_weight_decay(0.0)
        .with_grad_clipping(Some(GradientClippingConfig::Norm(1.0)))
        .init();
    move |_| {
        let uniform = Distribution::Uniform(0.0, sizes.vocabulary as f64);
        let tokens = Tensor::<2>::random([sizes.batch, sizes.length + 1], uniform, &device).int();
        model = model.take().map(|model| {
            let gradients = GradientsParams::from_grads(model.loss(tokens).backward(), &model);
            optimizer.step(1e-3, model, gradients)
        });
    }
}
