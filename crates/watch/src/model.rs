//! From a configuration to a model, and from a run to the model it trained.

use std::path::Path;

use burn::tensor::Device;
use headlight_attention::{AttentionOptions, Biases, QkNorm};
use headlight_residual::{
    self as residual, Activation, Decoder, DecoderConfig, RotaryPositions, weights_from_bytes,
};
use headlight_run::{
    BlockOrder, Config, Error, ErrorKind, FeedForwardKind, InitializationKind, ModelConfig,
    NormKind, NormPlacement, PositionKind, QkNormKind, RunDirectory, TaskConfig, Weights,
    untrusted::{MOST_PARAMETERS, ROOM_FOR_PARAMETERS},
};
use headlight_tasks::program_code;

use crate::{ModelFiles, compiled, rotary_scaling};

/// The base of rotary angles in the paper (Su et al. 2021) and in Llama.
const ROTARY_BASE: f64 = 10_000.0;

/// The decoder a configuration describes, with its initial weights.
///
/// # Errors
/// If the sizes do not fit together or are too large, or the model of `model.from` cannot be read.
pub fn build(config: &Config, vocabulary: usize, device: &Device) -> Result<Decoder, Error> {
    if let Some(path) = &config.model.from {
        return of_others(&config.model, path, device);
    }
    let decoder = decoder_config(config, vocabulary);
    let parameters = decoder.parameters();
    if parameters > MOST_PARAMETERS {
        let message = format_args!("has {parameters} parameters, more than {MOST_PARAMETERS}");
        return Err(Error::config(message).at("[model]"));
    }
    let model = decoder
        .try_init(config.seed, device)
        .map_err(|error| Error::because(ErrorKind::Config, "[model]", error))?;
    match (&config.task, config.model.initialization) {
        (TaskConfig::Program(program), InitializationKind::Compiled) => {
            let compiled = program_code(program)?
                .compile(config.model.coldness())
                .map_err(|error| Error::because(ErrorKind::Config, "[task]", error))?;
            compiled::with_weights(model, &compiled)
        }
        _ => Ok(model),
    }
}

/// The model of `model.from` at `path`, for sequences of `model.n_ctx` tokens.
fn of_others(config: &ModelConfig, path: &Path, device: &Device) -> Result<Decoder, Error> {
    let model = ModelFiles::open(path)?.model(device)?;
    let n_ctx = config.n_ctx.min(model.n_ctx());
    let model = model.shortened(n_ctx);
    let described = ModelConfig {
        from: config.from.clone(),
        from_sha256: config.from_sha256.clone(),
        ..model_config(model.config())?
    };
    if described != *config {
        let message = "is another model than the configuration was made for";
        return Err(Error::damaged(path.display(), message).key("model.from"));
    }
    Ok(model)
}

fn decoder_config(Config { model, .. }: &Config, vocabulary: usize) -> DecoderConfig {
    let feed_forward = |kind| Some((model.d_ff(), kind));
    let plain = |activation| feed_forward(residual::FeedForwardKind::Plain(activation));
    let gated = |activation| feed_forward(residual::FeedForwardKind::Gated(activation));
    DecoderConfig {
        vocabulary,
        n_ctx: model.n_ctx,
        d_model: model.d_model,
        n_layers: model.n_layers,
        n_heads: model.n_heads,
        n_kv_heads: model.n_kv_heads,
        d_head: model.d_head,
        attention_bias: Biases {
            query: model.attention_bias,
            key: model.attention_bias,
            value: model.attention_bias,
            output: model.attention_output_bias(),
        },
        qk_norm: match model.qk_norm {
            QkNormKind::None => QkNorm::None,
            QkNormKind::EachHead => QkNorm::EachHead,
            QkNormKind::AllHeads => QkNorm::AllHeads,
        },
        block_order: match model.block_order {
            BlockOrder::Sequential => residual::BlockOrder::Sequential,
            BlockOrder::Parallel => residual::BlockOrder::Parallel,
        },
        feed_forward: match model.feed_forward {
            FeedForwardKind::None => None,
            FeedForwardKind::Relu => plain(Activation::Relu),
            FeedForwardKind::Gelu => plain(Activation::Gelu),
            FeedForwardKind::GeluTanh => plain(Activation::GeluTanh),
            FeedForwardKind::Silu => plain(Activation::Silu),
            FeedForwardKind::ReGlu => gated(Activation::Relu),
            FeedForwardKind::GeGlu => gated(Activation::Gelu),
            FeedForwardKind::GeGluTanh => gated(Activation::GeluTanh),
            FeedForwardKind::SwiGlu => gated(Activation::Silu),
        },
        feed_forward_bias: model.feed_forward_bias(),
        norm: match model.norm {
            NormKind::LayerNorm => residual::NormKind::LayerNorm,
            NormKind::RmsNorm => residual::NormKind::RmsNorm,
            NormKind::None => residual::NormKind::None,
        },
        norm_epsilon: model.norm_epsilon,
        norm_placement: match model.norm_placement {
            NormPlacement::Pre => residual::NormPlacement::Pre,
            NormPlacement::Post => residual::NormPlacement::Post,
            NormPlacement::Output => residual::NormPlacement::Output,
            NormPlacement::PreAndOutput => residual::NormPlacement::PreAndOutput,
        },
        positions: match model.positions {
            PositionKind::Learned => residual::Positions::Learned,
            PositionKind::Sinusoidal => residual::Positions::Sinusoidal,
            PositionKind::Rotary => residual::Positions::Rotary(rotary_positions(model)),
            PositionKind::Alibi => residual::Positions::Alibi,
            PositionKind::None => residual::Positions::None,
        },
        window: model.window,
        full_layers: model.full_layers.clone(),
        embedding_scale: model.embedding_scale,
        tied_embedding: model.tied_embedding,
        attention: AttentionOptions {
            scale: model.attention_scale,
            softcap: model.attention_softcap,
        },
        logit_softcap: model.logit_softcap,
        initialization: match model.initialization {
            InitializationKind::Gpt2 => residual::Initialization::Gpt2,
            // Other weights take the place of what is drawn.
            InitializationKind::Normal
            | InitializationKind::Compiled
            | InitializationKind::From => residual::Initialization::Normal,
            InitializationKind::Xavier => residual::Initialization::Xavier,
        },
        init_std: model.init_std,
    }
}

fn rotary_positions(model: &ModelConfig) -> RotaryPositions {
    RotaryPositions {
        base: model.rotary_base.unwrap_or(ROTARY_BASE),
        rotated: model.rotary_components,
        scaling: rotary_scaling::of_attention(model.rotary_scaling.as_ref()),
        base_in_window: model.rotary_base_in_window,
    }
}

/// The table `[model]` of a decoder whose weights are there: `decoder_config` the other way round.
///
/// # Errors
/// If a configuration has no key for a part.
pub fn model_config(decoder: &DecoderConfig) -> Result<ModelConfig, Error> {
    let Biases {
        query,
        key,
        value,
        output,
    } = decoder.attention_bias;
    if query != key || key != value {
        let message =
            "has biases on some of queries, keys and values, which no key of [model] says";
        return Err(Error::config(message).at("model.from"));
    }
    let rotary = match &decoder.positions {
        residual::Positions::Rotary(rotary) => Some(rotary),
        _ => None,
    };
    Ok(ModelConfig {
        from: None,
        from_sha256: None,
        n_layers: decoder.n_layers,
        n_heads: decoder.n_heads,
        n_kv_heads: Some(decoder.n_kv_heads()),
        d_model: decoder.d_model,
        n_ctx: decoder.n_ctx,
        d_head: Some(decoder.d_head()),
        attention_bias: query,
        attention_output_bias: Some(output),
        qk_norm: match decoder.qk_norm {
            QkNorm::None => QkNormKind::None,
            QkNorm::EachHead => QkNormKind::EachHead,
            QkNorm::AllHeads => QkNormKind::AllHeads,
        },
        block_order: match decoder.block_order {
            residual::BlockOrder::Sequential => BlockOrder::Sequential,
            residual::BlockOrder::Parallel => BlockOrder::Parallel,
        },
        feed_forward: match decoder.feed_forward.map(|(_, kind)| kind) {
            None => FeedForwardKind::None,
            Some(residual::FeedForwardKind::Plain(activation)) => match activation {
                Activation::Relu => FeedForwardKind::Relu,
                Activation::Gelu => FeedForwardKind::Gelu,
                Activation::GeluTanh => FeedForwardKind::GeluTanh,
                Activation::Silu => FeedForwardKind::Silu,
            },
            Some(residual::FeedForwardKind::Gated(activation)) => match activation {
                Activation::Relu => FeedForwardKind::ReGlu,
                Activation::Gelu => FeedForwardKind::GeGlu,
                Activation::GeluTanh => FeedForwardKind::GeGluTanh,
                Activation::Silu => FeedForwardKind::SwiGlu,
            },
        },
        d_ff: decoder.feed_forward.map(|(d_ff, _)| d_ff),
        feed_forward_bias: decoder.feed_forward.map(|_| decoder.feed_forward_bias),
        norm: match decoder.norm {
            residual::NormKind::LayerNorm => NormKind::LayerNorm,
            residual::NormKind::RmsNorm => NormKind::RmsNorm,
            residual::NormKind::None => NormKind::None,
        },
        norm_epsilon: decoder.norm_epsilon,
        norm_placement: match decoder.norm_placement {
            residual::NormPlacement::Pre => NormPlacement::Pre,
            residual::NormPlacement::Post => NormPlacement::Post,
            residual::NormPlacement::Output => NormPlacement::Output,
            residual::NormPlacement::PreAndOutput => NormPlacement::PreAndOutput,
        },
        positions: match decoder.positions {
            residual::Positions::Learned => PositionKind::Learned,
            residual::Positions::Sinusoidal => PositionKind::Sinusoidal,
            residual::Positions::Rotary(_) => PositionKind::Rotary,
            residual::Positions::Alibi => PositionKind::Alibi,
            residual::Positions::None => PositionKind::None,
        },
        rotary_base: rotary.map(|rotary| rotary.base),
        rotary_base_in_window: rotary.and_then(|rotary| rotary.base_in_window),
        rotary_components: rotary.and_then(|rotary| rotary.rotated),
        rotary_scaling: rotary.and_then(|rotary| rotary_scaling::of_run(&rotary.scaling)),
        window: decoder.window,
        full_layers: decoder.full_layers.clone(),
        embedding_scale: decoder.embedding_scale,
        tied_embedding: decoder.tied_embedding,
        attention_scale: decoder.attention.scale,
        attention_softcap: decoder.attention.softcap,
        logit_softcap: decoder.logit_softcap,
        initialization: InitializationKind::From,
        init_std: decoder.init_std,
        coldness: None,
    })
}

/// The model of a run with the weights it kept.
///
/// # Errors
/// If the weights are missing, damaged or of another model.
pub fn load(
    run: &RunDirectory,
    config: &Config,
    which: Weights,
    device: &Device,
) -> Result<Decoder, Error> {
    let vocabulary = run.vocabulary()?.len();
    let bytes = run.weights(which)?;
    let decoder = decoder_config(config, vocabulary);
    // Room is made for what the weights can fill, not for whatever the configuration says.
    let parameters = decoder.parameters();
    if parameters > (bytes.len() / size_of::<f32>()).max(ROOM_FOR_PARAMETERS) {
        let message = format!(
            "its model has {parameters} parameters, its weights have {} bytes",
            bytes.len()
        );
        return Err(Error::damaged(run.path().display(), message));
    }
    let laid_out = decoder
        .try_lay_out(device)
        .map_err(|error| Error::because(ErrorKind::Config, "[model]", error))?;
    weights_from_bytes(laid_out, &bytes)
        .map_err(|error| Error::because(ErrorKind::Damaged, run.path().display(), error))
}

/// `1 layer`, `2 layers`.
fn counted(count: usize, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{plural}")
}

/// What the model is made of and what that costs, line by line.
#[must_use]
pub fn describe(model: &DecoderConfig) -> Vec<String> {
    let (costs, parameters) = (model.costs(), model.parameters());
    let flops: f64 = costs.iter().map(|cost| cost.flops_per_token).sum();
    let (n_heads, d_head) = (model.n_heads, model.d_head());
    let line = |part: &str, parameters: usize, flops: f64| {
        format!("  {part:22}{parameters:>12} {flops:>16.0}")
    };
    let mut lines = vec![
        format!(
            "model       {}, {} of width {d_head}, d_model {}: {parameters} parameters",
            counted(model.n_layers, "layer"),
            counted(n_heads, "head"),
            model.d_model
        ),
        format!(
            "  {:22}{:>12} {:>16}",
            "part", "parameters", "FLOPs per token"
        ),
    ];
    lines.extend(
        costs
            .iter()
            .map(|cost| line(cost.part, cost.parameters, cost.flops_per_token)),
    );
    lines.push(line("all", parameters, flops));
    let wide = n_heads * d_head;
    lines.push(if n_heads == 1 {
        format!("heads       1 of width {d_head}: one pattern a layer")
    } else if model.n_kv_heads() == n_heads {
        format!(
            "heads       {n_heads} of width {d_head} cost what 1 of width {wide} would: the same parameters and FLOPs; they \
             see {n_heads} patterns a layer, each from a form of rank {d_head}, where 1 would see one, of rank {}",
            wide.min(model.d_model)
        )
    } else {
        format!(
            "heads       {n_heads} of width {d_head} share {} heads of keys and values; 1 of width {wide} with keys and \
             values of its own would have {} parameters more a layer",
            model.n_kv_heads(),
            2 * model.d_model * d_head * (n_heads - model.n_kv_heads())
        )
    });
    lines
}

#[cfg(test)]
mod tests {
    use headlight_attention::RotaryScaling;

    use super::*;

    #[test]
    fn every_part_of_a_configuration_is_that_part_of_the_decoder() {
        let text = "
            task = { name = 'repeat' }
            train = { steps = 10, batch_size = 8, learning_rate = 1e-3 }
            [model]
            n_layers = 3
            n_heads = 2
            d_model = 16
            n_ctx = 64
            attention_bias = true
            attention_output_bias = false
            qk_norm = 'all_heads'
            block_order = 'parallel'
            feed_forward = 'geglu_tanh'
            d_ff = 24
            norm = 'rms_norm'
            norm_placement = 'pre_and_output'
            positions = 'rotary'
            rotary_base = 500.0
            rotary_base_in_window = 50.0
            rotary_components = 4
            rotary_scaling = { linear = { factor = 8.0 } }
            window = 5
            full_layers = [2]
            embedding_scale = 4.0
            attention_softcap = 50.0
            logit_softcap = 30.0
        ";
        let config = Config::parse(text, "a.toml", &[]).unwrap();
        let expected = DecoderConfig {
            vocabulary: 9,
            n_ctx: 64,
            d_model: 16,
            n_layers: 3,
            n_heads: 2,
            attention_bias: Biases::QUERY_KEY_VALUE,
            qk_norm: QkNorm::AllHeads,
            block_order: residual::BlockOrder::Parallel,
            feed_forward: Some((24, residual::FeedForwardKind::Gated(Activation::GeluTanh))),
            feed_forward_bias: false,
            norm: residual::NormKind::RmsNorm,
            norm_placement: residual::NormPlacement::PreAndOutput,
            positions: residual::Positions::Rotary(RotaryPositions {
                base: 500.0,
                rotated: Some(4),
                scaling: RotaryScaling::Linear { factor: 8.0 },
                base_in_window: Some(50.0),
            }),
            window: Some(5),
            full_layers: vec![2],
            embedding_scale: Some(4.0),
            attention: AttentionOptions::default().with_softcap(50.0),
            logit_softcap: Some(30.0),
            ..DecoderConfig::default()
        };
        assert_eq!(decoder_config(&config, 9), expected);
        // What is written down is read as the same.
        let written = config.to_toml().unwrap();
        assert_eq!(Config::parse(&written, "a.toml", &[]).unwrap(), config);
    }
}
