//! Every head's pattern on some sequences.

use burn::tensor::{Device, Tensor};
use headlight_lens::{
    HeadWrites, LayerPattern, head_writes, head_writes_at, value_weighted, writes_sites,
    writes_sites_at,
};
use headlight_residual::{Activations, AttentionSite, Decoder, Probed, Site, token_tensor};
use headlight_run::Error;

use crate::no_room;

/// Every head's pattern on some sequences of one length.
#[derive(Debug, Clone)]
pub struct Patterns {
    sequences: usize,
    n_heads: usize,
    length: usize,
    /// How many keys a query of each layer sees at most.
    windows: Vec<Option<usize>>,
    /// Whether the first token is the start of the sequence, which scores leave out.
    has_start: bool,
    /// Of each layer the weights `[sequences, n_heads, length, length]`, row by row.
    layers: Vec<Vec<f32>>,
}

/// Every head's pattern beside what it moves.
#[derive(Debug, Clone)]
pub struct CarriedPatterns {
    /// The patterns.
    pub plain: Patterns,
    /// The same, scaled by the norms of the values that each query head reads.
    pub weighted: Patterns,
}

impl Patterns {
    /// Runs `model` over `tokens`, `[sequences][length]`.
    ///
    /// # Errors
    /// If the patterns do not fit into memory.
    pub fn of(model: &Decoder, tokens: &[Vec<u32>], device: &Device) -> Result<Self, Error> {
        let mut seen = model
            .activations(token_tensor(tokens, device), &model.pattern_sites())
            .map_err(no_room)?;
        Ok(Self::taken(model, tokens, &mut seen))
    }

    /// [`of`](Self::of), with what every head writes in the same pass, first layer first.
    ///
    /// # Errors
    /// If patterns, blends and streams do not fit into memory.
    pub fn with_writes(
        model: &Decoder,
        tokens: &[Vec<u32>],
        device: &Device,
    ) -> Result<(Self, Vec<HeadWrites>), Error> {
        let sites = [model.pattern_sites(), writes_sites(model)].concat();
        let mut seen = model
            .activations(token_tensor(tokens, device), &sites)
            .map_err(no_room)?;
        let writes = head_writes(model, &seen).map_err(no_room)?;
        Ok((Self::taken(model, tokens, &mut seen), writes))
    }

    /// Takes the patterns out of a pass.
    fn taken(model: &Decoder, tokens: &[Vec<u32>], seen: &mut Activations) -> Self {
        let weights = |site| numbers(seen.take(site).into_tensor::<4>());
        let layers = model.pattern_sites().into_iter().map(weights).collect();
        Self::new(model, tokens, layers)
    }

    fn new(model: &Decoder, tokens: &[Vec<u32>], layers: Vec<Vec<f32>>) -> Self {
        Self {
            sequences: tokens.len(),
            n_heads: model.n_heads(),
            length: tokens.first().map_or(0, Vec::len),
            has_start: false,
            windows: (0..layers.len())
                .map(|layer| model.config().window_of(layer))
                .collect(),
            layers,
        }
    }

    /// The same patterns, whose first token is the start of the sequence if `has_start`.
    #[must_use]
    pub fn with_start(self, has_start: bool) -> Self {
        Self { has_start, ..self }
    }

    /// The number of sequences, of heads in a layer, and of tokens.
    #[must_use]
    pub fn dims(&self) -> [usize; 3] {
        [self.sequences, self.n_heads, self.length]
    }

    /// Every layer's weights, first layer first.
    #[must_use]
    pub fn weights(&self) -> &[Vec<f32>] {
        &self.layers
    }

    /// Every layer's patterns with the keys that their queries see, to be scored.
    pub fn layers(&self) -> impl Iterator<Item = LayerPattern<'_>> {
        let layers = self.layers.iter().zip(&self.windows);
        layers.map(|(weights, &window)| {
            LayerPattern::new(self.dims(), weights)
                .with_window(window)
                .with_start(self.has_start)
        })
    }
}

/// One layer of a pass over some sequences.
#[derive(Debug)]
pub struct LayerSeen<'a> {
    /// The layer.
    pub layer: usize,
    /// The patterns of its heads.
    pub pattern: LayerPattern<'a>,
    /// All weights, `[sequences, n_heads, length, length]`, row by row.
    pub weights: &'a [f32],
    /// What its heads write; nothing where nobody asked.
    pub writes: Vec<HeadWrites>,
}

/// Runs `model` over `tokens`, `[sequences][length]`, whose first token is the start of the sequence
/// if `has_start`. The patterns of each layer are shown to `look` and dropped, so that those of
/// hundreds of heads are never in memory together. With `writes`, what heads write is measured too.
///
/// # Errors
/// If the patterns of one layer do not fit into memory.
pub fn each_layer(
    model: &Decoder,
    tokens: &[Vec<u32>],
    device: &Device,
    has_start: bool,
    writes: bool,
    mut look: impl FnMut(LayerSeen),
) -> Result<(), Error> {
    let mut sites = model.pattern_sites();
    if writes {
        sites.extend(writes_sites(model));
    }
    let length = tokens.first().map_or(0, Vec::len);
    let dims = [tokens.len(), model.n_heads(), length];
    let passed = model.by_layer(
        token_tensor(tokens, device),
        &sites,
        &mut |layer, mut seen| {
            let mut of_heads = Vec::new();
            if writes {
                of_heads = head_writes_at(model, layer, &seen)?;
                for site in writes_sites_at(model, layer) {
                    let _ = seen.take(site);
                }
            }
            let site = Site::Attention(layer, AttentionSite::Pattern);
            let weights = numbers(seen.take(site).into_tensor::<4>());
            look(LayerSeen {
                layer,
                pattern: LayerPattern::new(dims, &weights)
                    .with_window(model.config().window_of(layer))
                    .with_start(has_start),
                weights: &weights,
                writes: of_heads,
            });
            Ok(())
        },
    );
    passed.map_err(no_room)
}

/// Runs `model` over `tokens`, `[sequences][length]`, and shows each layer's patterns to `look`, plain
/// and scaled by the norms of the values that each query head reads. Those of one layer are in memory
/// at a time.
///
/// # Errors
/// If the patterns and values of one layer do not fit into memory.
pub fn each_carried_layer(
    model: &Decoder,
    tokens: &[Vec<u32>],
    device: &Device,
    mut look: impl FnMut(usize, LayerPattern, LayerPattern),
) -> Result<(), Error> {
    let length = tokens.first().map_or(0, Vec::len);
    let dims = [tokens.len(), model.n_heads(), length];
    let sites_of =
        |layer| [AttentionSite::Pattern, AttentionSite::V].map(|site| Site::Attention(layer, site));
    let sites: Vec<Site> = (0..model.blocks.len()).flat_map(sites_of).collect();
    let passed = model.by_layer(
        token_tensor(tokens, device),
        &sites,
        &mut |layer, mut seen| {
            let [pattern, values] = sites_of(layer).map(|site| seen.take(site).into_tensor::<4>());
            let weights = numbers(pattern);
            let weighted = value_weighted(&weights, &value_norms(values, model.n_heads()), length);
            let window = model.config().window_of(layer);
            let [plain, weighted] = [&weights, &weighted]
                .map(|weights| LayerPattern::new(dims, weights).with_window(window));
            look(layer, plain, weighted);
            Ok(())
        },
    );
    passed.map_err(no_room)
}

impl CarriedPatterns {
    /// Runs `model` over `tokens`, `[sequences][length]`.
    ///
    /// # Errors
    /// If patterns and values do not fit into memory.
    pub fn of(model: &Decoder, tokens: &[Vec<u32>], device: &Device) -> Result<Self, Error> {
        let sites = |layer| {
            [AttentionSite::Pattern, AttentionSite::V].map(|site| Site::Attention(layer, site))
        };
        let layers = 0..model.blocks.len();
        let mut seen = model
            .activations(
                token_tensor(tokens, device),
                &layers.clone().flat_map(sites).collect::<Vec<_>>(),
            )
            .map_err(no_room)?;
        let length = tokens.first().map_or(0, Vec::len);
        let (mut plain, mut weighted) = (Vec::new(), Vec::new());
        for layer in layers {
            let [pattern, values] = sites(layer).map(|site| seen.take(site).into_tensor::<4>());
            let weights = numbers(pattern);
            let norms = value_norms(values, model.n_heads());
            weighted.push(value_weighted(&weights, &norms, length));
            plain.push(weights);
        }
        Ok(Self {
            plain: Patterns::new(model, tokens, plain),
            weighted: Patterns::new(model, tokens, weighted),
        })
    }

    /// The same patterns, whose first token is the start of the sequence if `has_start`.
    #[must_use]
    pub fn with_start(self, has_start: bool) -> Self {
        Self {
            plain: self.plain.with_start(has_start),
            weighted: self.weighted.with_start(has_start),
        }
    }
}

/// A tensor's numbers, without a copy where nobody else holds it.
fn numbers(tensor: Tensor<4>) -> Vec<f32> {
    let data = tensor.into_data().convert::<f32>();
    data.try_into_vec::<f32>().expect("readable numbers")
}

/// `[batch, heads, keys]`: the norm of the value each query head reads at each key.
#[must_use]
pub fn value_norms(values: Tensor<4>, n_heads: usize) -> Vec<f32> {
    let [batch, keys, kv_heads, _] = values.dims();
    let norms = values
        .square()
        .sum_dim(3)
        .sqrt()
        .swap_dims(1, 2)
        .reshape([batch, kv_heads, 1, keys]);
    norms
        .expand([batch, kv_heads, n_heads / kv_heads, keys])
        .into_data()
        .iter::<f32>()
        .collect()
}
