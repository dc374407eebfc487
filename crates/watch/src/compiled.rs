//! From a compiled program to a decoder, and to the configuration of a run that has it.

use std::collections::BTreeMap;

use burn::tensor::{Device, TensorData};
use headlight_attention::AttentionOptions;
use headlight_compile::{Compiled, Program};
use headlight_residual::{
    Activation, Decoder, DecoderConfig, FeedForwardKind, NormKind, tensors_to_bytes,
    weights_from_bytes,
};
use headlight_run::{Config, Error, ErrorKind};

/// The decoder that computes what a program computes.
///
/// # Errors
/// If the arrays are not those of a decoder; what a program compiles to always is.
///
/// ```
/// use burn::tensor::Device;
/// use headlight_compile::programs;
/// use headlight_residual::token_tensor;
/// use headlight_watch::compiled::decoder;
///
/// let program = programs::histogram(4)?;
/// let model = decoder(&program.compile(100.0)?, &Device::flex())?;
/// let tokens = program.ids(&["<s>", "a", "b", "a"])?;
/// let logits = model.forward(token_tensor(&[tokens], &Device::flex()));
/// let guesses: Vec<i32> = logits.argmax(2).into_data().iter().collect();
/// let names = program.vocabulary();
/// let guesses: Vec<&str> = guesses[1..].iter().map(|&id| names[id as usize].as_str()).collect();
/// assert_eq!(guesses, ["1", "1", "2"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn decoder(compiled: &Compiled, device: &Device) -> Result<Decoder, Error> {
    let shape = compiled.shape;
    let config = DecoderConfig {
        vocabulary: compiled.vocabulary.len(),
        n_ctx: shape.n_ctx,
        d_model: shape.d_model,
        n_layers: shape.n_layers,
        n_heads: shape.n_heads,
        d_head: Some(shape.d_head),
        feed_forward: shape
            .d_ff
            .map(|d_ff| (d_ff, FeedForwardKind::Plain(Activation::Relu))),
        norm: NormKind::None,
        attention: AttentionOptions::default().with_scale(1.0),
        ..DecoderConfig::default()
    };
    let model = config
        .try_init(0, device)
        .map_err(|error| Error::because(ErrorKind::Internal, "a compiled program", error))?;
    with_weights(model, compiled)
}

/// `model` with the weights of a compiled program in place of its own.
///
/// # Errors
/// If the model is not of the program's sizes.
pub fn with_weights(model: Decoder, compiled: &Compiled) -> Result<Decoder, Error> {
    let mut tensors = BTreeMap::new();
    for (path, array) in &compiled.arrays {
        let data = TensorData::new(array.values.clone(), array.shape.clone());
        tensors.insert(path.clone(), data);
    }
    tensors_to_bytes(&tensors)
        .and_then(|bytes| weights_from_bytes(model, &bytes))
        .map_err(|error| {
            let message = format_args!("is not of the program's sizes: {error}");
            Error::of(ErrorKind::Config, "[model]", message)
        })
}

/// The configuration of a run of no steps whose model is a compiled program: `name` is the
/// program's, as in [`programs::named`](headlight_compile::programs::named).
///
/// # Errors
/// If the program cannot be compiled.
pub fn config(name: &str, program: &Program, coldness: f64) -> Result<Config, Error> {
    let compiled = program
        .compile(coldness)
        .map_err(|error| Error::because(ErrorKind::Config, name, error))?;
    let shape = compiled.shape;
    let feed_forward = match shape.d_ff {
        Some(d_ff) => format!("feed_forward = \"relu\"\nd_ff = {d_ff}"),
        None => "feed_forward = \"none\"".to_owned(),
    };
    let text = format!(
        r#"
[task]
name = "program"
program = "{name}"
length = {}
[model]
n_layers = {}
n_heads = {}
d_model = {}
d_head = {}
n_ctx = {}
{feed_forward}
norm = "none"
attention_scale = 1.0
initialization = "compiled"
coldness = {coldness:?}
[train]
steps = 0
batch_size = 64
learning_rate = 1e-3
"#,
        program.layout().length(),
        shape.n_layers,
        shape.n_heads,
        shape.d_model,
        shape.d_head,
        shape.n_ctx,
    );
    Config::parse(&text, name, &[])
}
