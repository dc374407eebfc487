//! The logit lens reads the stream as the model does, for every kind and place of norm.

use burn::{
    module::Param,
    tensor::{Device, Tensor},
};
use headlight_attention::Biases;
use headlight_lens::{Ablation, Behaviour, ablate, direct_logit_attribution, logit_lens};
use headlight_residual::{
    Activation, Decoder, DecoderConfig, FeedForwardKind, Initialization, NormKind, NormPlacement,
    token_tensor,
};

const LAYERS: usize = 2;

/// Name and model of each combination: kind of norm, its place, with and without a feed-forward.
fn models() -> Vec<(String, Decoder)> {
    let mut models = Vec::new();
    for norm in [NormKind::LayerNorm, NormKind::RmsNorm, NormKind::None] {
        for norm_placement in [
            NormPlacement::Pre,
            NormPlacement::Post,
            NormPlacement::Output,
            NormPlacement::PreAndOutput,
        ] {
            for feed_forward in [None, Some((20, FeedForwardKind::Plain(Activation::Gelu)))] {
                let name = format!("{norm:?}, {norm_placement:?}, {feed_forward:?}");
                let config = DecoderConfig {
                    vocabulary: 9,
                    n_ctx: 8,
                    d_model: 12,
                    n_layers: LAYERS,
                    n_heads: 2,
                    norm,
                    norm_placement,
                    feed_forward,
                    // A bias is no head's.
                    attention_bias: Biases::ALL,
                    embedding_scale: Some(1.5),
                    initialization: Initialization::Normal,
                    init_std: 0.3,
                    ..DecoderConfig::default()
                };
                let mut model = config.try_init(4, &Device::flex()).unwrap();
                for block in &mut model.blocks {
                    let bias = Tensor::arange(0..12, &Device::flex())
                        .float()
                        .div_scalar(10.0);
                    block.attn.w_o.bias = Some(Param::from_tensor(bias));
                }
                models.push((name, model));
            }
        }
    }
    models
}

fn behaviour() -> Behaviour {
    let tokens = [[3_u32, 1, 4, 1, 5, 2, 6], [2, 7, 1, 8, 2, 8, 1]];
    let targets = [[1, 4, 1, 5, 2, 6, 5], [7, 1, 8, 2, 8, 1, 8]].map(|row| row.to_vec());
    let scored = [[false, true, true, true, true, true, true]; 2].map(|row| row.to_vec());
    let inputs = token_tensor(&tokens, &Device::flex());
    Behaviour::new(inputs, targets.to_vec(), scored.to_vec())
}

#[test]
fn the_last_row_of_the_lens_is_the_model_itself() {
    let behaviour = behaviour();
    for (name, model) in models() {
        let depths = logit_lens(&model, &behaviour).unwrap();
        let per_block = 1 + usize::from(model.config().feed_forward.is_some());
        assert_eq!(depths.len(), 1 + LAYERS * per_block, "{name}");
        let untouched = ablate(&model, &behaviour, &[], Ablation::Zero).unwrap();
        let last = depths.last().unwrap();
        assert_eq!(last.performance, untouched, "{name}: {}", last.site);
        // Before the last block something else stands there.
        let earlier = &depths[depths.len() - 1 - per_block];
        assert_ne!(earlier.performance, untouched, "{name}: {}", earlier.site);
    }
}

#[test]
fn parts_add_up_to_the_logit_unless_norms_replace_the_stream() {
    let behaviour = behaviour();
    for (name, model) in models() {
        let is_replaced = model.config().norm_placement == NormPlacement::Post;
        let parts = direct_logit_attribution(&model, &behaviour).unwrap();
        assert_eq!(parts.is_none(), is_replaced, "{name}");
        let Some(parts) = parts else { continue };
        let logits = model.forward(behaviour.inputs());
        let centred = logits.clone() - logits.mean_dim(2);
        let right = centred
            .gather(2, behaviour.targets().unsqueeze_dim::<3>(2))
            .squeeze_dim::<2>(2);
        let scored = behaviour.scored();
        let mean =
            (right * scored.clone()).sum().into_scalar::<f32>() / scored.sum().into_scalar::<f32>();
        let sum: f64 = parts.iter().map(|part| part.logit).sum();
        assert!(
            (sum - f64::from(mean)).abs() < 1e-5,
            "{name}: {sum}, not {mean}"
        );
    }
}
