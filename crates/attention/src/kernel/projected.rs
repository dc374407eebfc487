//! Attention of sequences to themselves with its projections, as one operation: the gradients of the
//! three projections add up in one place.

use std::sync::Arc;

use burn::backend::{
    Autodiff, Backend, Flex,
    autodiff::{
        checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
        grads::Gradients,
        ops::{Backward, Ops, OpsKind},
    },
    backend_extension,
    flex::FlexTensor,
    tensor::FloatTensor,
};
use burn::tensor::{Shape, TensorData};
use headlight_vector::{Matrix, Onto, new_product, product, sum_of_rows};

use super::{
    Plan,
    backward::{Saved as SavedByAttention, backward},
    forward::forward,
    operation::inputs,
};

/// Attention with its projections.
#[backend_extension(Flex, Autodiff)]
pub(crate) trait ProjectedAttention: Backend {
    /// Computes `softmax(Q·Kᵀ·scale + mask)·V` as `plan` says, with `Q = x·W_Q` and so on, in
    /// `kv_heads` key/value heads.
    fn projected_attention(
        x: FloatTensor<Self>,
        w_q: FloatTensor<Self>,
        w_k: FloatTensor<Self>,
        w_v: FloatTensor<Self>,
        kv_heads: usize,
        plan: Arc<Plan>,
    ) -> FloatTensor<Self>;

    /// The same with `Q = x·W_Q + b_Q` and so on.
    #[allow(
        clippy::too_many_arguments,
        reason = "a backend's function takes tensors one by one"
    )]
    fn projected_attention_with_biases(
        x: FloatTensor<Self>,
        w_q: FloatTensor<Self>,
        w_k: FloatTensor<Self>,
        w_v: FloatTensor<Self>,
        b_q: FloatTensor<Self>,
        b_k: FloatTensor<Self>,
        b_v: FloatTensor<Self>,
        kv_heads: usize,
        plan: Arc<Plan>,
    ) -> FloatTensor<Self>;
}

/// The tensors of a call. They are contiguous.
#[derive(Debug, Clone)]
struct Sources {
    /// `[batch, seq, d_model]`
    x: FlexTensor,
    /// `W_Q`, `W_K` and `W_V`, `[d_model, width]`
    weights: [FlexTensor; 3],
    /// Their biases, `[width]`.
    biases: Option<[FlexTensor; 3]>,
    kv_heads: usize,
}

/// The tensors that backward needs.
#[derive(Debug, Clone)]
struct Saved {
    sources: Sources,
    attention: SavedByAttention,
}

impl Sources {
    fn new(
        x: FlexTensor,
        weights: [FlexTensor; 3],
        biases: Option<[FlexTensor; 3]>,
        kv_heads: usize,
    ) -> Self {
        Self {
            x: contiguous(x),
            weights: weights.map(contiguous),
            biases: biases.map(|biases| biases.map(contiguous)),
            kv_heads,
        }
    }

    /// Q, K and V, `[batch, heads or kv_heads, seq, width of a head]`.
    fn project(&self, plan: &Plan) -> [FlexTensor; 3] {
        let heads = [plan.shape.heads, self.kv_heads, self.kv_heads];
        [0, 1, 2].map(|i| {
            let bias = self.biases.as_ref().map(|biases| numbers(&biases[i]));
            let rows = new_product(rows(&self.x), rows(&self.weights[i]), bias);
            let width = width(&self.weights[i]) / heads[i];
            let shape = [plan.shape.batch, plan.shape.queries, heads[i], width];
            FlexTensor::from_data(TensorData::new(rows, Shape::new(shape))).permute(&[0, 2, 1, 3])
        })
    }

    fn attend(&self, plan: &Arc<Plan>) -> FlexTensor {
        let (inputs, poison) = inputs(self.project(plan), None);
        forward(&inputs, &poison, plan).0
    }

    fn attend_and_save(self, plan: Arc<Plan>) -> (FlexTensor, Saved) {
        let (inputs, poison) = inputs(self.project(&plan), None);
        let (output, log_sums) = forward(&inputs, &poison, &plan);
        let attention = SavedByAttention::new(inputs, poison, &output, log_sums, plan);
        let saved = Saved {
            sources: self,
            attention,
        };
        (output, saved)
    }
}

impl ProjectedAttention for Flex {
    fn projected_attention(
        x: FlexTensor,
        w_q: FlexTensor,
        w_k: FlexTensor,
        w_v: FlexTensor,
        kv_heads: usize,
        plan: Arc<Plan>,
    ) -> FlexTensor {
        Sources::new(x, [w_q, w_k, w_v], None, kv_heads).attend(&plan)
    }

    fn projected_attention_with_biases(
        x: FlexTensor,
        w_q: FlexTensor,
        w_k: FlexTensor,
        w_v: FlexTensor,
        b_q: FlexTensor,
        b_k: FlexTensor,
        b_v: FlexTensor,
        kv_heads: usize,
        plan: Arc<Plan>,
    ) -> FlexTensor {
        Sources::new(x, [w_q, w_k, w_v], Some([b_q, b_k, b_v]), kv_heads).attend(&plan)
    }
}

impl<C: CheckpointStrategy> ProjectedAttention for Autodiff<Flex, C> {
    fn projected_attention(
        x: FloatTensor<Self>,
        w_q: FloatTensor<Self>,
        w_k: FloatTensor<Self>,
        w_v: FloatTensor<Self>,
        kv_heads: usize,
        plan: Arc<Plan>,
    ) -> FloatTensor<Self> {
        let ((x, x_node), (w_q, q_node), (w_k, k_node), (w_v, v_node)) = (
            x.into_parts(),
            w_q.into_parts(),
            w_k.into_parts(),
            w_v.into_parts(),
        );
        let sources = Sources::new(x, [w_q, w_k, w_v], None, kv_heads);
        match ProjectedBackward
            .prepare::<C>([x_node, q_node, k_node, v_node])
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(prep) => {
                let (output, saved) = sources.attend_and_save(plan);
                prep.finish(saved, output)
            }
            OpsKind::UnTracked(prep) => prep.finish(sources.attend(&plan)),
        }
    }

    fn projected_attention_with_biases(
        x: FloatTensor<Self>,
        w_q: FloatTensor<Self>,
        w_k: FloatTensor<Self>,
        w_v: FloatTensor<Self>,
        b_q: FloatTensor<Self>,
        b_k: FloatTensor<Self>,
        b_v: FloatTensor<Self>,
        kv_heads: usize,
        plan: Arc<Plan>,
    ) -> FloatTensor<Self> {
        let ((x, x_node), (w_q, q_node), (w_k, k_node), (w_v, v_node)) = (
            x.into_parts(),
            w_q.into_parts(),
            w_k.into_parts(),
            w_v.into_parts(),
        );
        let ((b_q, b_q_node), (b_k, b_k_node), (b_v, b_v_node)) =
            (b_q.into_parts(), b_k.into_parts(), b_v.into_parts());
        let sources = Sources::new(x, [w_q, w_k, w_v], Some([b_q, b_k, b_v]), kv_heads);
        match ProjectedBackward
            .prepare::<C>([x_node, q_node, k_node, v_node, b_q_node, b_k_node, b_v_node])
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(prep) => {
                let (output, saved) = sources.attend_and_save(plan);
                prep.finish(saved, output)
            }
            OpsKind::UnTracked(prep) => prep.finish(sources.attend(&plan)),
        }
    }
}

/// The backward pass. Its parents are x, the three weights, and the three biases if there are any.
///
/// `dx = dQ·W_Qᵀ + dK·W_Kᵀ + dV·W_Vᵀ`, `dW_Q = xᵀ·dQ`, `db_Q = Σ dQ` over all rows, and so on.
#[derive(Debug)]
struct ProjectedBackward;

impl<const N: usize> Backward<Flex, N> for ProjectedBackward {
    type State = Saved;

    fn backward(self, ops: Ops<Saved, N>, grads: &mut Gradients, _: &mut Checkpointer) {
        let upstream = grads.consume::<Flex>(&ops.node);
        let Saved { sources, attention } = &ops.state;
        let [d_q, d_k, d_v, _] = backward(attention, &upstream, false);
        let of_heads = [d_q, d_k, d_v].map(|d| d.map(side_by_side));
        let x = rows(&sources.x);
        let mut d_x = Vec::new();
        for (i, d) in of_heads.iter().enumerate() {
            let Some(d) = d else { continue };
            let d_rows = rows(d);
            let weight = &sources.weights[i];
            if ops.parents[0].is_some() {
                let turned = rows(weight).transposed();
                if d_x.is_empty() {
                    d_x = new_product(d_rows, turned, None);
                } else {
                    product(&mut d_x, x.columns, Onto::Out, 1.0, d_rows, turned);
                }
            }
            if let Some(parent) = &ops.parents[1 + i] {
                let d_weight = new_product(x.transposed(), d_rows, None);
                grads.register::<Flex>(parent.id, shaped(d_weight, weight));
            }
            if let Some(Some(parent)) = ops.parents.get(4 + i) {
                let d_bias = sum_of_rows(numbers(d), width(d));
                let shape = Shape::new([d_bias.len()]);
                let d_bias = FlexTensor::from_data(TensorData::new(d_bias, shape));
                grads.register::<Flex>(parent.id, d_bias);
            }
        }
        if let Some(parent) = &ops.parents[0] {
            grads.register::<Flex>(parent.id, shaped(d_x, &sources.x));
        }
    }
}

/// `[batch, heads, seq, width of a head]` → `[batch, seq, heads · width]`.
fn side_by_side(tensor: FlexTensor) -> FlexTensor {
    let [batch, heads, seq, width] = [0, 1, 2, 3].map(|axis| tensor.layout().shape()[axis]);
    let tensor = contiguous(tensor.permute(&[0, 2, 1, 3])); // [batch, seq, heads, width]
    tensor.reshape(Shape::new([batch, seq, heads * width]))
}

fn contiguous(tensor: FlexTensor) -> FlexTensor {
    if tensor.is_contiguous() {
        tensor
    } else {
        tensor.to_contiguous()
    }
}

/// The numbers of a contiguous tensor.
fn numbers(tensor: &FlexTensor) -> &[f32] {
    let layout = tensor.layout();
    &tensor.storage::<f32>()[layout.start_offset()..][..layout.num_elements()]
}

/// The length of the last axis.
fn width(tensor: &FlexTensor) -> usize {
    let shape = tensor.layout().shape();
    shape[shape.num_dims() - 1]
}

/// The rows of a contiguous tensor, one after the other.
fn rows(tensor: &FlexTensor) -> Matrix<'_> {
    let (numbers, width) = (numbers(tensor), width(tensor));
    Matrix::dense(numbers, numbers.len() / width, width)
}

/// A tensor of the shape of another.
fn shaped(data: Vec<f32>, like: &FlexTensor) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(data, like.layout().shape().clone()))
}
