//! The kernel as a Burn operation, with its backward pass.

use std::sync::Arc;

use burn::backend::{
    Autodiff, Backend, Flex,
    autodiff::{
        checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
        grads::Gradients,
        ops::{Backward, Ops, OpsKind},
    },
    backend_extension,
    tensor::FloatTensor,
};

use super::{
    Plan,
    backward::{Saved, backward},
    forward::{forward, in_order},
};

/// Attention as one operation.
#[backend_extension(Flex, Autodiff)]
pub(crate) trait FusedAttention: Backend {
    /// `softmax(Q·Kᵀ·scale + mask)·V` by `plan`.
    fn fused_attention(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        plan: Arc<Plan>,
    ) -> FloatTensor<Self>;
}

impl FusedAttention for Flex {
    fn fused_attention(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        plan: Arc<Plan>,
    ) -> FloatTensor<Self> {
        forward(&in_order(query), &in_order(key), &in_order(value), &plan).0
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
        let (query, key, value) = (in_order(query), in_order(key), in_order(value));
        let (output, log_sums) = forward(&query, &key, &value, &plan);
        match FusedBackward.prepare::<C>([q_node, k_node, v_node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let saved = Saved { query, key, value, output: output.clone(), log_sums: Arc::new(log_sums), plan };
                prep.finish(saved, output)
            }
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
    }
}

#[derive(Debug)]
struct FusedBackward;

impl Backward<Flex, 3> for FusedBackward {
    type State = Saved;

    fn backward(self, ops: Ops<Saved, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let upstream = grads.consume::<Flex>(&ops.node);
        let gradients = backward(&ops.state, &upstream);
        for (parent, gradient) in ops.parents.into_iter().zip(gradients) {
            if let Some(parent) = parent {
                grads.register::<Flex>(parent.id, gradient);
            }
        }
    }
}
