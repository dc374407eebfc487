//! The kernels as Burn operations with their backward passes.

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
    tensor::{FloatTensor, IntTensor},
};

use super::{contiguous, cross_entropy, gelu, layer_norm, numbers, width};

/// The fused operations; what they compute is said where they are exported.
#[backend_extension(Flex, Autodiff)]
pub(crate) trait Fused: Backend {
    fn fused_cross_entropy(
        logits: FloatTensor<Self>,
        targets: IntTensor<Self>,
        weights: FloatTensor<Self>,
    ) -> FloatTensor<Self>;
    fn fused_gelu(x: FloatTensor<Self>) -> FloatTensor<Self>;
    fn fused_layer_norm(
        x: FloatTensor<Self>,
        gain: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        epsilon: f32,
    ) -> FloatTensor<Self>;
}

impl Fused for Flex {
    fn fused_cross_entropy(logits: FlexTensor, targets: FlexTensor, weights: FlexTensor) -> FlexTensor {
        let logits = contiguous(logits);
        let targets = cross_entropy::targets_of(&contiguous(targets), width(&logits));
        cross_entropy::forward(&logits, &targets, &contiguous(weights)).0
    }

    fn fused_gelu(x: FlexTensor) -> FlexTensor {
        gelu::forward(&contiguous(x))
    }

    fn fused_layer_norm(x: FlexTensor, gain: FlexTensor, bias: FlexTensor, epsilon: f32) -> FlexTensor {
        layer_norm::forward(&contiguous(x), &contiguous(gain), &contiguous(bias), epsilon).0
    }
}

impl<C: CheckpointStrategy> Fused for Autodiff<Flex, C> {
    fn fused_cross_entropy(
        logits: FloatTensor<Self>,
        targets: IntTensor<Self>,
        weights: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let ((logits, node), weights) = (logits.into_parts(), contiguous(weights.into_primitive()));
        let logits = contiguous(logits);
        let targets = cross_entropy::targets_of(&contiguous(targets), width(&logits));
        let (loss, log_sums) = cross_entropy::forward(&logits, &targets, &weights);
        match CrossEntropy.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let (targets, log_sums) = (Arc::new(targets), Arc::new(log_sums));
                prep.finish(cross_entropy::Saved { logits, targets, weights, log_sums }, loss)
            }
            OpsKind::UnTracked(prep) => prep.finish(loss),
        }
    }

    fn fused_gelu(x: FloatTensor<Self>) -> FloatTensor<Self> {
        let (x, node) = x.into_parts();
        let x = contiguous(x);
        let y = gelu::forward(&x);
        match Gelu.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish(x, y),
            OpsKind::UnTracked(prep) => prep.finish(y),
        }
    }

    fn fused_layer_norm(
        x: FloatTensor<Self>,
        gain: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        epsilon: f32,
    ) -> FloatTensor<Self> {
        let ((x, x_node), (gain, gain_node), (bias, bias_node)) =
            (x.into_parts(), gain.into_parts(), bias.into_parts());
        let (x, gain, bias) = (contiguous(x), contiguous(gain), contiguous(bias));
        let (y, statistics) = layer_norm::forward(&x, &gain, &bias, epsilon);
        match LayerNorm.prepare::<C>([x_node, gain_node, bias_node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish(layer_norm::Saved { x, gain, statistics: Arc::new(statistics) }, y),
            OpsKind::UnTracked(prep) => prep.finish(y),
        }
    }
}

#[derive(Debug)]
struct CrossEntropy;

impl Backward<Flex, 1> for CrossEntropy {
    type State = cross_entropy::Saved;

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let upstream = contiguous(grads.consume::<Flex>(&ops.node));
        let gradient = cross_entropy::backward(&ops.state, numbers(&upstream)[0]);
        register(ops, [gradient], grads);
    }
}

#[derive(Debug)]
struct Gelu;

impl Backward<Flex, 1> for Gelu {
    type State = FlexTensor;

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let upstream = contiguous(grads.consume::<Flex>(&ops.node));
        let gradient = gelu::backward(&ops.state, &upstream);
        register(ops, [gradient], grads);
    }
}

#[derive(Debug)]
struct LayerNorm;

impl Backward<Flex, 3> for LayerNorm {
    type State = layer_norm::Saved;

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let upstream = contiguous(grads.consume::<Flex>(&ops.node));
        let gradients = layer_norm::backward(&ops.state, &upstream);
        register(ops, gradients, grads);
    }
}

fn register<S, const N: usize>(ops: Ops<S, N>, gradients: [FlexTensor; N], grads: &mut Gradients) {
    for (parent, gradient) in ops.parents.into_iter().zip(gradients) {
        if let Some(parent) = parent {
            grads.register::<Flex>(parent.id, gradient);
        }
    }
}
