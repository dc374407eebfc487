//! The kernels as Burn operations. Attention has a backward pass.

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

use super::{
    Plan,
    backward::{Saved, backward},
    forward::{Inputs, forward},
    head::in_order,
    poison::Poison,
    weights::weights,
};

/// Attention as one operation.
#[backend_extension(Flex, Autodiff)]
pub(crate) trait FusedAttention: Backend {
    /// Computes `softmax(Q·Kᵀ·scale + mask)·V` as `plan` says.
    fn fused_attention(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        plan: Arc<Plan>,
    ) -> FloatTensor<Self>;

    /// The same with a bias `[batch, heads, queries, keys]` on the scores.
    fn fused_attention_with_bias(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        plan: Arc<Plan>,
    ) -> FloatTensor<Self>;
}

impl FusedAttention for Flex {
    fn fused_attention(
        query: FlexTensor,
        key: FlexTensor,
        value: FlexTensor,
        plan: Arc<Plan>,
    ) -> FlexTensor {
        let (inputs, poison) = inputs([query, key, value], None);
        forward(&inputs, &poison, &plan).0
    }

    fn fused_attention_with_bias(
        query: FlexTensor,
        key: FlexTensor,
        value: FlexTensor,
        bias: FlexTensor,
        plan: Arc<Plan>,
    ) -> FlexTensor {
        let (inputs, poison) = inputs([query, key, value], Some(bias));
        forward(&inputs, &poison, &plan).0
    }
}

impl<C: CheckpointStrategy> FusedAttention for Autodiff<Flex, C> {
    fn fused_attention(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        plan: Arc<Plan>,
    ) -> FloatTensor<Self> {
        let ((query, q_node), (key, k_node), (value, v_node)) =
            (query.into_parts(), key.into_parts(), value.into_parts());
        let (inputs, poison) = inputs([query, key, value], None);
        let (output, log_sums) = forward(&inputs, &poison, &plan);
        match FusedBackward
            .prepare::<C>([q_node, k_node, v_node])
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(prep) => {
                prep.finish(Saved::new(inputs, poison, &output, log_sums, plan), output)
            }
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
    }

    fn fused_attention_with_bias(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        plan: Arc<Plan>,
    ) -> FloatTensor<Self> {
        let ((query, q_node), (key, k_node), (value, v_node), (bias, bias_node)) = (
            query.into_parts(),
            key.into_parts(),
            value.into_parts(),
            bias.into_parts(),
        );
        let (inputs, poison) = inputs([query, key, value], Some(bias));
        let (output, log_sums) = forward(&inputs, &poison, &plan);
        match FusedBackward
            .prepare::<C>([q_node, k_node, v_node, bias_node])
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(prep) => {
                prep.finish(Saved::new(inputs, poison, &output, log_sums, plan), output)
            }
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
    }
}

/// The weights, on a backend without gradients.
#[backend_extension(Flex)]
pub(crate) trait NativeWeights: Backend {
    /// Computes `softmax(Q·Kᵀ·scale + mask)` as `plan` says.
    fn native_weights(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        plan: Arc<Plan>,
    ) -> FloatTensor<Self>;

    /// The same with a bias `[batch, heads, queries, keys]` on the scores.
    fn native_weights_with_bias(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        plan: Arc<Plan>,
    ) -> FloatTensor<Self>;
}

impl NativeWeights for Flex {
    fn native_weights(query: FlexTensor, key: FlexTensor, plan: Arc<Plan>) -> FlexTensor {
        weights(in_order(query), in_order(key), None, &plan)
    }

    fn native_weights_with_bias(
        query: FlexTensor,
        key: FlexTensor,
        bias: FlexTensor,
        plan: Arc<Plan>,
    ) -> FlexTensor {
        weights(in_order(query), in_order(key), Some(in_order(bias)), &plan)
    }
}

/// The tensors of a call without the rows that are not finite, and these rows.
pub(crate) fn inputs(tensors: [FlexTensor; 3], bias: Option<FlexTensor>) -> (Inputs, Poison) {
    let [query, key, value] = tensors.map(in_order);
    let poison = Poison::of(&query, &[&key, &value]);
    let inputs = Inputs {
        query: poison.out_of_queries(query),
        key: poison.out_of_keys(key),
        value: poison.out_of_keys(value),
        bias: bias.map(in_order),
    };
    (inputs, poison)
}

/// The backward pass. Its parents are query, key and value, and the bias if there is one.
#[derive(Debug)]
struct FusedBackward;

impl<const N: usize> Backward<Flex, N> for FusedBackward {
    type State = Saved;

    fn backward(self, ops: Ops<Saved, N>, grads: &mut Gradients, _: &mut Checkpointer) {
        let upstream = grads.consume::<Flex>(&ops.node);
        let with_bias = ops.parents.get(3).is_some_and(Option::is_some);
        let gradients = backward(&ops.state, &upstream, with_bias);
        for (parent, gradient) in ops.parents.into_iter().zip(gradients) {
            if let (Some(parent), Some(gradient)) = (parent, gradient) {
                grads.register::<Flex>(parent.id, gradient);
            }
        }
    }
}
