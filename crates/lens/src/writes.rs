//! How much does a head write? A head can look sharply somewhere and write nearly nothing, because
//! the values there are near zero.

use burn::tensor::Tensor;
use headlight_heads::HeadName;
use headlight_residual::{Activations, ActivationsError, AttentionSite, BlockSite, Probed, Site};

use crate::given::attention_weights_of;

/// What one head writes, beside the stream that it writes into.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadWrites {
    /// The head.
    pub head: HeadName,
    /// `[position]`: the mean square of result − mean, over sequences and dimensions.
    squares: Vec<f64>,
    /// `[position]`: the same of the stream before the head's block.
    stream: Vec<f64>,
}

impl HeadWrites {
    /// rms(result − its mean)/rms(stream) over these positions; NaN without any.
    #[must_use]
    pub fn over(&self, positions: std::ops::RangeInclusive<usize>) -> f64 {
        let sum = |squares: &[f64]| {
            let last = positions.end() + 1;
            squares[(*positions.start()).min(last)..last]
                .iter()
                .sum::<f64>()
        };
        (sum(&self.squares) / sum(&self.stream)).sqrt()
    }

    /// The same over all positions.
    #[must_use]
    pub fn everywhere(&self) -> f64 {
        self.over(0..=self.squares.len() - 1)
    }

    /// The same at each position.
    #[must_use]
    pub fn by_position(&self) -> Vec<f64> {
        (0..self.squares.len())
            .map(|position| self.over(position..=position))
            .collect()
    }
}

/// What the heads of one layer write, from their blends of values: rms(result − mean)/rms(stream).
///
/// The result of a head is `hook_result`, `z·W_O`. Its mean is that over sequences and positions,
/// which mean ablation leaves in place. The stream is `hook_resid_pre` of the same block. Nothing
/// is renormalised: 0.1 means that the head moves the stream by a tenth of its size.
///
/// # Shapes
/// - z: `[batch, pos, head, d_head]`
/// - `w_o`: `[head, d_head, d_model]`
/// - stream: `[batch, pos, d_model]`
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use headlight_lens::writes_of_layer;
///
/// let device = Device::flex();
/// // One head of width 1 that blends −1 and 3 at two positions: the mean is 1, the rest −2 and 2.
/// let z = Tensor::<4>::from_floats([[[[-1.0]], [[3.0]]]], &device);
/// let w_o = Tensor::<3>::from_floats([[[0.5, 0.0]]], &device); // result −1 and 1 in one of two dimensions
/// let stream = Tensor::<3>::from_floats([[[1.0, 1.0], [3.0, 3.0]]], &device);
/// let writes = &writes_of_layer(0, z, w_o, stream)[0];
/// // Mean squares: 1/2 at both positions, of the stream 1 and 9.
/// assert!((writes.everywhere() - 0.1_f64.sqrt()).abs() < 1e-6);
/// assert!((writes.by_position()[1] - (0.5_f64 / 9.0).sqrt()).abs() < 1e-6);
/// ```
#[must_use]
pub fn writes_of_layer(
    layer: usize,
    z: Tensor<4>,
    w_o: Tensor<3>,
    stream: Tensor<3>,
) -> Vec<HeadWrites> {
    let [.., d_model] = w_o.dims();
    let blends = z.clone() - z.mean_dim(0).mean_dim(1);
    let blends = blends.swap_dims(1, 2); // [batch, head, pos, d_head]
    // ‖x·W‖² = x·(W·Wᵀ)·xᵀ needs no result of width d_model.
    let gram = w_o.clone().matmul(w_o.swap_dims(1, 2)); // [head, d_head, d_head]
    let squares = blends.clone().matmul(gram.unsqueeze_dim::<4>(0)) * blends;
    let squares = squares.sum_dim(3).mean_dim(0).div_scalar(d_model as f64); // [1, head, pos, 1]
    head_writes_of(layer, squares, stream)
}

/// [`writes_of_layer`] of what the heads of a layer add, `[batch, pos, head, d_model]`.
fn writes_of_added(layer: usize, added: Tensor<4>, stream: Tensor<3>) -> Vec<HeadWrites> {
    let added = added.clone() - added.mean_dim(0).mean_dim(1);
    let squares = added.square().mean_dim(3).mean_dim(0); // [1, pos, head, 1]
    let squares = squares.swap_dims(1, 2); // [1, head, pos, 1]
    head_writes_of(layer, squares, stream)
}

/// From mean squares `[1, head, pos, 1]` and the stream `[batch, pos, d_model]`.
fn head_writes_of(layer: usize, squares: Tensor<4>, stream: Tensor<3>) -> Vec<HeadWrites> {
    let [_, heads, positions, _] = squares.dims();
    let squares: Vec<f64> = squares.into_data().iter::<f64>().collect();
    let stream = stream.square().mean_dim(2).mean_dim(0); // [1, pos, 1]
    let stream: Vec<f64> = stream.into_data().iter::<f64>().collect();
    let of_head = |head| HeadWrites {
        head: HeadName { layer, head },
        // Rounding may leave a little less than nothing.
        squares: squares[head * positions..][..positions]
            .iter()
            .map(|square| square.max(0.0))
            .collect(),
        stream: stream.clone(),
    };
    (0..heads).map(of_head).collect()
}

/// The sites that [`head_writes`] reads.
#[must_use]
pub fn writes_sites(model: &dyn Probed) -> Vec<Site> {
    let layers = 0..model.sizes().layers.len();
    layers
        .flat_map(|layer| writes_sites_at(model, layer))
        .collect()
}

/// The sites that [`head_writes_at`] reads of a layer.
#[must_use]
pub fn writes_sites_at(model: &dyn Probed, layer: usize) -> [Site; 2] {
    [written(model, layer), stream(layer)]
}

/// [`writes_of_layer`] of every layer, first layer first, in a pass that kept
/// [`writes_sites`].
///
/// # Errors
/// If the model does not give the weights of its attention.
///
/// # Panics
/// If the pass did not keep these sites.
pub fn head_writes(
    model: &dyn Probed,
    seen: &Activations,
) -> Result<Vec<HeadWrites>, ActivationsError> {
    let mut writes = Vec::new();
    for layer in 0..model.sizes().layers.len() {
        writes.extend(head_writes_at(model, layer, seen)?);
    }
    Ok(writes)
}

/// [`head_writes`] of one layer, in a pass that kept [`writes_sites_at`] it.
///
/// # Errors
/// If the model does not give the weights of its attention.
///
/// # Panics
/// If the pass did not keep these sites.
pub fn head_writes_at(
    model: &dyn Probed,
    layer: usize,
    seen: &Activations,
) -> Result<Vec<HeadWrites>, ActivationsError> {
    let stream = seen.tensor(stream(layer));
    let site = written(model, layer);
    if site == Site::HeadsAdded(layer) {
        return Ok(writes_of_added(layer, seen.tensor(site), stream));
    }
    let weights = attention_weights_of(model, layer)?;
    let [width, d_model] = weights.w_o.dims();
    let heads = weights.n_heads;
    let w_o = weights.w_o.reshape([heads, width / heads, d_model]);
    Ok(writes_of_layer(layer, seen.tensor(site), w_o, stream))
}

/// Where a head's writing is seen: its blend of values, or what it adds if a norm stands between.
fn written(model: &dyn Probed, layer: usize) -> Site {
    let added = Site::HeadsAdded(layer);
    if model.has(added) {
        added
    } else {
        Site::Attention(layer, AttentionSite::Z)
    }
}

fn stream(layer: usize) -> Site {
    Site::Block(layer, BlockSite::ResidPre)
}
