//! The encoder: BERT's post-norm layers, `x = norm(x + attention(x))`, then
//! `x = norm(x + W_2·gelu(W_1·x))`.

use std::path::Path;

use burn::{
    module::Param,
    nn::{Embedding, LayerNorm, LayerNormConfig, Linear},
    store::{ModuleStore, SafetensorsStore},
    tensor::{Device, Int, Tensor, TensorData, activation::gelu},
};
use headlight_attention::{
    LoadError, Mask, MultiHeadAttention, MultiHeadAttentionConfig, WeightFormat,
};
use serde::Deserialize;

/// The part of `config.json` that this program needs; it leaves the other keys unread.
#[derive(Debug, Deserialize)]
pub struct Config {
    pub hidden_size: usize,
    pub intermediate_size: usize,
    pub num_hidden_layers: usize,
    pub num_attention_heads: usize,
    pub vocab_size: usize,
    pub max_position_embeddings: usize,
    type_vocab_size: usize,
    layer_norm_eps: f64,
    pad_token_id: u32,
    hidden_act: String,
    position_embedding_type: String,
}

/// A sentence encoder with its weights.
pub struct Encoder {
    tokens: Embedding,
    positions: Tensor<2>,
    /// Row 0 of the token types: there is only one sentence in a sequence.
    token_type: Tensor<2>,
    norm: LayerNorm,
    layers: Vec<Layer>,
    pad: u32,
    device: Device,
}

struct Layer {
    attention: MultiHeadAttention,
    attention_norm: LayerNorm,
    w_1: Linear,
    w_2: Linear,
    output_norm: LayerNorm,
}

/// What the encoder makes of a batch.
pub struct Encoded {
    /// A unit vector per sentence, `[batch, hidden]`.
    pub embeddings: Tensor<2>,
    /// The weights of each layer, `[batch, heads, seq, seq]`.
    pub patterns: Vec<Tensor<4>>,
}

impl Config {
    /// Reads `config.json`.
    ///
    /// # Errors
    /// If it cannot be read, or describes another model than this program computes.
    pub fn open(path: &Path) -> Result<Self, String> {
        let config: Self = crate::read_json(path)?;
        for (key, value, expected) in [
            ("hidden_act", &config.hidden_act, "gelu"),
            (
                "position_embedding_type",
                &config.position_embedding_type,
                "absolute",
            ),
        ] {
            if value != expected {
                return Err(format!(
                    "{}: {key} is {value:?}, this program knows {expected:?}",
                    path.display()
                ));
            }
        }
        Ok(config)
    }
}

impl Encoder {
    /// Builds the model and fills it from `model.safetensors`.
    ///
    /// # Errors
    /// Names the tensor that is missing or of the wrong shape, or the sizes that do not fit
    /// together.
    pub fn load(path: &Path, config: &Config, device: &Device) -> Result<Self, String> {
        // BERT keeps the norm after attention under `attention`, of which it is no part.
        let store = SafetensorsStore::from_file(path)
            .with_key_remapping(r"attention\.output\.LayerNorm", "attention_norm");
        let mut weights = Weights {
            store,
            config,
            device,
        };
        let in_file = |error: LoadError| format!("{}: {error}", path.display());
        let table = |weights: &mut Weights, name: &str, rows| {
            weights.tensor(
                &format!("embeddings.{name}_embeddings.weight"),
                [rows, config.hidden_size],
            )
        };
        let tokens = table(&mut weights, "word", config.vocab_size).map_err(in_file)?;
        let positions =
            table(&mut weights, "position", config.max_position_embeddings).map_err(in_file)?;
        let types = table(&mut weights, "token_type", config.type_vocab_size).map_err(in_file)?;
        let norm = weights.norm("embeddings.LayerNorm").map_err(in_file)?;
        let (d_model, n_heads) = (config.hidden_size, config.num_attention_heads);
        let mut layers = Vec::new();
        for layer in 0..config.num_hidden_layers {
            let attention = MultiHeadAttentionConfig::new(d_model, n_heads).with_bias(true);
            let attention = attention
                .try_init(device)
                .map_err(|error| error.to_string())?;
            layers.push(weights.layer(layer, attention).map_err(in_file)?);
        }
        Ok(Self {
            tokens: Embedding {
                weight: Param::from_tensor(tokens),
            },
            positions,
            token_type: types.narrow(0, 0, 1),
            norm,
            layers,
            pad: config.pad_token_id,
            device: device.clone(),
        })
    }

    /// Reads all sentences in one batch; the shorter ones are filled up, and no token may attend to
    /// the filling.
    ///
    /// A sentence's embedding is the mean over its tokens' last vectors, scaled to length 1.
    pub fn encode(&self, sentences: &[&[u32]]) -> Encoded {
        let lengths: Vec<usize> = sentences.iter().map(|ids| ids.len()).collect();
        let (batch, longest) = (lengths.len(), lengths.iter().copied().max().unwrap_or(0));
        let padded = sentences.iter().flat_map(|ids| {
            let filling = std::iter::repeat_n(&self.pad, longest - ids.len());
            ids.iter().chain(filling).map(|&id| i64::from(id))
        });
        let ids = TensorData::new(padded.collect::<Vec<i64>>(), [batch, longest]);
        let ids = Tensor::<2, Int>::from_data(ids, &self.device);

        let places = self.positions.clone().narrow(0, 0, longest) + self.token_type.clone();
        let mut x = self
            .norm
            .forward(self.tokens.forward(ids) + places.unsqueeze()); // [batch, seq, hidden]
        let mask = Mask::lengths(&lengths);
        let mut patterns = Vec::new();
        for layer in &self.layers {
            let (output, pattern) = layer.forward(x, &mask);
            x = output;
            patterns.push(pattern);
        }

        let embeddings = lengths.iter().enumerate().map(|(row, &length)| {
            let mean: Tensor<2> = x
                .clone()
                .narrow(0, row, 1)
                .narrow(1, 0, length)
                .mean_dim(1)
                .squeeze_dim(1);
            let size = mean.clone().square().sum_dim(1).sqrt();
            mean / size
        });
        Encoded {
            embeddings: Tensor::cat(embeddings.collect(), 0),
            patterns,
        }
    }
}

impl Layer {
    fn forward(&self, x: Tensor<3>, mask: &Mask) -> (Tensor<3>, Tensor<4>) {
        let (attended, pattern) = self.attention.forward_with_weights(x.clone(), mask);
        let x = self.attention_norm.forward(x + attended);
        let fed_forward = self.w_2.forward(gelu(self.w_1.forward(x.clone())));
        (self.output_norm.forward(x + fed_forward), pattern)
    }
}

/// The file, read piece by piece under the names that PyTorch's BERT gives its parameters.
struct Weights<'a> {
    store: SafetensorsStore,
    config: &'a Config,
    device: &'a Device,
}

impl Weights<'_> {
    fn layer(&mut self, layer: usize, attention: MultiHeadAttention) -> Result<Layer, LoadError> {
        let at = |name: &str| format!("encoder.layer.{layer}.{name}");
        let names = ["self.query", "self.key", "self.value", "output.dense"].map(str::to_owned);
        let (d_model, d_inner) = (self.config.hidden_size, self.config.intermediate_size);
        Ok(Layer {
            attention: attention.load(
                &mut self.store,
                &at("attention."),
                &WeightFormat::TorchLinears(names),
            )?,
            attention_norm: self.norm(&at("attention_norm"))?,
            w_1: self.linear(&at("intermediate.dense"), d_model, d_inner)?,
            w_2: self.linear(&at("output.dense"), d_inner, d_model)?,
            output_norm: self.norm(&at("output.LayerNorm"))?,
        })
    }

    fn norm(&mut self, name: &str) -> Result<LayerNorm, LoadError> {
        let width = self.config.hidden_size;
        let mut norm = LayerNormConfig::new(width)
            .with_epsilon(self.config.layer_norm_eps)
            .init(self.device);
        norm.gamma = Param::from_tensor(self.tensor(&format!("{name}.weight"), [width])?);
        norm.beta = Some(Param::from_tensor(
            self.tensor(&format!("{name}.bias"), [width])?,
        ));
        Ok(norm)
    }

    /// PyTorch's matrices are `[out, in]`, Burn's `[in, out]`.
    fn linear(&mut self, name: &str, input: usize, output: usize) -> Result<Linear, LoadError> {
        let weight: Tensor<2> = self.tensor(&format!("{name}.weight"), [output, input])?;
        let bias = self.tensor(&format!("{name}.bias"), [output])?;
        Ok(Linear {
            weight: Param::from_tensor(weight.transpose()),
            bias: Some(Param::from_tensor(bias)),
        })
    }

    fn tensor<const D: usize>(
        &mut self,
        name: &str,
        expected: [usize; D],
    ) -> Result<Tensor<D>, LoadError> {
        let unreadable = |error: String| LoadError::Unreadable(format!("{name}: {error}"));
        let stored = self
            .store
            .get_tensor(name)
            .map_err(|error| LoadError::Unreadable(error.to_string()))?;
        let stored = stored.ok_or_else(|| LoadError::Missing(name.to_owned()))?;
        let found = stored.shape.to_vec();
        if found != expected {
            return Err(LoadError::Shape {
                name: name.to_owned(),
                found,
                expected: expected.to_vec(),
            });
        }
        let bytes = stored
            .to_bytes()
            .map_err(|error| unreadable(error.to_string()))?;
        let data = TensorData::try_from_bytes(bytes, stored.shape.clone(), stored.dtype);
        Ok(Tensor::from_data(
            data.map_err(|error| unreadable(format!("{error:?}")))?,
            self.device,
        ))
    }
}
