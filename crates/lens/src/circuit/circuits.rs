//! The matrices of a model's heads, ready to be multiplied.

use burn::tensor::Tensor;
use faer::{Mat, MatRef};
use headlight_heads::{HeadName, MayAttend};
use headlight_residual::{AttentionSizes, CircuitWeightsError, Probed, ProcessError};

use super::FactoredMatrix;

/// Weights beyond it make nothing that could be read; products of a few of them stay finite.
const LARGEST: f64 = 1e12;

/// Why a model has no circuits to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CircuitError {
    /// Its norms cannot be folded into what reads them.
    Norms(ProcessError),
    /// It does not give its matrices.
    NotGiven {
        /// The name of the model.
        model: String,
    },
    /// A weight is not a number, or too large to be multiplied.
    Weight,
}

impl std::fmt::Display for CircuitError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Norms(error) => error.fmt(f),
            Self::NotGiven { model } => {
                write!(f, "{model} does not give the weights of its circuits")
            }
            Self::Weight => write!(f, "a weight is not a number, or beyond {LARGEST:e}"),
        }
    }
}

impl std::error::Error for CircuitError {}

impl From<CircuitWeightsError> for CircuitError {
    fn from(error: CircuitWeightsError) -> Self {
        match error {
            CircuitWeightsError::Norms(error) => Self::Norms(error),
            CircuitWeightsError::NotGiven { model } => Self::NotGiven { model },
        }
    }
}

/// A model's matrices in f64, in the form in which circuits can be compared:
///
/// - the gain of each norm is part of the matrices that read it;
/// - with layer norm, which takes the mean off whatever is read, nothing writes a mean and nothing
///   reads one;
/// - `W_U` has no mean over the vocabulary, which softmax does not see.
///
/// Biases are left out: those of values are written whatever a head attends to, those of queries
/// and keys prefer some tokens to others whatever they meet.
///
/// What remains unknown is by how much each position's norm divides, so tables over tokens hold up
/// to a positive factor for each query and key. Scores come before the scale 1/√`d_head`.
///
/// Where queries and keys rotate, QK is that of distance 0: at distance n it is `W_Q·R(n)·W_Kᵀ`, R
/// the rotation. `ALiBi` takes from scores in proportion to distance, whatever the tokens.
#[derive(Debug, Clone)]
pub struct Circuits {
    w_e: Mat<f64>,
    w_u: Mat<f64>,
    w_pos: Option<Mat<f64>>,
    layers: Vec<Vec<Head>>,
    /// Of each layer, how many positions up to its own a query sees.
    windows: Vec<usize>,
}

/// `W_Q, W_K, W_V [d_model, d_head]` and `W_O [d_head, d_model]` of a query head.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_field_names,
    reason = "without the w they would be activations"
)]
struct Head {
    w_q: Mat<f64>,
    w_k: Mat<f64>,
    w_v: Mat<f64>,
    w_o: Mat<f64>,
}

impl Circuits {
    /// Reads the weights of a model.
    ///
    /// # Errors
    /// If the model is post-norm or does not give its matrices, or a weight is not finite.
    pub fn of(model: &dyn Probed) -> Result<Self, CircuitError> {
        let weights = model.circuit_weights()?;
        let reader = |weight: Tensor<2>| {
            matrix_of(if weights.reads_no_mean {
                weight.clone() - weight.mean_dim(0)
            } else {
                weight
            })
        };
        let mut layers = Vec::new();
        for attention in &weights.attention {
            let [w_q, w_k, w_v] = [&attention.w_q, &attention.w_k, &attention.w_v]
                .map(|weight| reader(weight.clone()));
            let w_o = matrix_of(attention.w_o.clone());
            let (n_heads, n_kv_heads) = (attention.n_heads, attention.n_kv_heads);
            let (d_head, d_value) = (w_q.ncols() / n_heads, w_v.ncols() / n_kv_heads);
            let columns = |matrix: &Mat<f64>, head: usize, width: usize| {
                matrix.subcols(head * width, width).to_owned()
            };
            let head = |head| {
                let kv_head = head / (n_heads / n_kv_heads);
                Head {
                    w_q: columns(&w_q, head, d_head),
                    w_k: columns(&w_k, kv_head, d_head),
                    w_v: columns(&w_v, kv_head, d_value),
                    w_o: w_o.subrows(head * d_value, d_value).to_owned(),
                }
            };
            layers.push((0..n_heads).map(head).collect());
        }
        let sizes = model.sizes();
        let window = |layer: &AttentionSizes| match layer.may_attend {
            MayAttend::Window(window) => window,
            MayAttend::All | MayAttend::Causal => usize::MAX,
        };
        let circuits = Self {
            w_e: matrix_of(weights.w_e),
            w_u: reader(weights.w_u),
            w_pos: weights.w_pos.map(matrix_of),
            layers,
            windows: sizes.layers.iter().map(window).collect(),
        };
        if circuits.matrices().all(|matrix| {
            matrix
                .col_iter()
                .all(|column| column.iter().all(|x| x.abs() < LARGEST))
        }) {
            Ok(circuits)
        } else {
            Err(CircuitError::Weight)
        }
    }

    fn matrices(&self) -> impl Iterator<Item = MatRef<'_, f64>> {
        let of_heads = self
            .layers
            .iter()
            .flatten()
            .flat_map(|head| [&head.w_q, &head.w_k, &head.w_v, &head.w_o]);
        [&self.w_e, &self.w_u]
            .into_iter()
            .chain(&self.w_pos)
            .chain(of_heads)
            .map(Mat::as_ref)
    }

    /// Every head, first layer first.
    #[must_use]
    pub fn heads(&self) -> Vec<HeadName> {
        let of_layer = |(layer, heads): (usize, &Vec<Head>)| {
            (0..heads.len()).map(move |head| HeadName { layer, head })
        };
        self.layers.iter().enumerate().flat_map(of_layer).collect()
    }

    /// The number of tokens.
    #[must_use]
    pub fn vocabulary(&self) -> usize {
        self.w_e.nrows()
    }

    /// `W_E [vocabulary, d_model]`
    pub(super) fn w_e(&self) -> &Mat<f64> {
        &self.w_e
    }

    /// `W_U [d_model, vocabulary]`
    pub(super) fn w_u(&self) -> &Mat<f64> {
        &self.w_u
    }

    /// `[d_model, d_head]`
    pub(super) fn shape_of(&self, head: HeadName) -> (usize, usize) {
        self.head(head).w_v.shape()
    }

    /// How many positions up to its own a query of this head sees.
    pub(super) fn window(&self, head: HeadName) -> usize {
        self.windows[head.layer]
    }

    /// `W_QK = W_Q·W_Kᵀ [d_model, d_model]`: from what is looked for to what is looked at.
    ///
    /// # Panics
    /// If there is no such head.
    #[must_use]
    pub fn qk(&self, head: HeadName) -> FactoredMatrix {
        let Head { w_q, w_k, .. } = self.head(head);
        FactoredMatrix::new(w_q.clone(), w_k.transpose().to_owned())
    }

    /// `W_OV = W_V·W_O [d_model, d_model]`: from what is looked at to what is written of it.
    ///
    /// # Panics
    /// If there is no such head.
    #[must_use]
    pub fn ov(&self, head: HeadName) -> FactoredMatrix {
        let Head { w_v, w_o, .. } = self.head(head);
        FactoredMatrix::new(w_v.clone(), w_o.clone())
    }

    /// `W_E·W_QK·W_Eᵀ [query token, key token]`: how much more a token looks for another than for
    /// all on average. In a layer behind the first it is what the head makes of the tokens
    /// themselves, not of what others wrote.
    ///
    /// # Panics
    /// If there is no such head.
    #[must_use]
    pub fn full_qk(&self, head: HeadName) -> FactoredMatrix {
        self.qk(head)
            .between(self.w_e.as_ref(), without_mean_row(&self.w_e).transpose())
    }

    /// `W_E·W_OV·W_U [token looked at, next token]`: what a head that looks at a token adds to the
    /// logits, above their mean.
    ///
    /// # Panics
    /// If there is no such head.
    #[must_use]
    pub fn full_ov(&self, head: HeadName) -> FactoredMatrix {
        self.ov(head).between(self.w_e.as_ref(), self.w_u.as_ref())
    }

    /// `W_pos·W_QK·W_posᵀ [query position, key position]`: which position looks for which, whatever
    /// stands there. `None` where positions are not added to the stream.
    ///
    /// # Panics
    /// If there is no such head.
    #[must_use]
    pub fn positional_qk(&self, head: HeadName) -> Option<FactoredMatrix> {
        let w_pos = self.w_pos.as_ref()?;
        Some(
            self.qk(head)
                .between(w_pos.as_ref(), without_mean_row(w_pos).transpose()),
        )
    }

    /// `W_E·W_QK·(W_E·W_OV)ᵀ [query token, token]`, QK the reader's and OV the writer's: for which
    /// token that a writer has put into a key a query looks. An induction head and its
    /// previous-token head have their largest scores on the diagonal: "a key behind a token like
    /// me".
    ///
    /// # Panics
    /// If there is no such head.
    #[must_use]
    pub fn key_composed_qk(&self, writer: HeadName, reader: HeadName) -> FactoredMatrix {
        let composed = self.qk(reader).times(&self.ov(writer).transpose());
        composed.between(self.w_e.as_ref(), without_mean_row(&self.w_e).transpose())
    }

    fn head(&self, head: HeadName) -> &Head {
        &self.layers[head.layer][head.head]
    }
}

/// A query's scores change nothing by what all keys share.
fn without_mean_row(matrix: &Mat<f64>) -> Mat<f64> {
    let count = matrix.nrows() as f64;
    let means: Vec<f64> = matrix
        .col_iter()
        .map(|column| column.iter().sum::<f64>() / count)
        .collect();
    Mat::from_fn(matrix.nrows(), matrix.ncols(), |i, j| {
        matrix[(i, j)] - means[j]
    })
}

/// The numbers of a tensor in f64.
pub(crate) fn matrix_of(tensor: Tensor<2>) -> Mat<f64> {
    let [rows, columns] = tensor.dims();
    let values: Vec<f64> = tensor.into_data().iter::<f64>().collect();
    Mat::from_fn(rows, columns, |i, j| values[i * columns + j])
}
