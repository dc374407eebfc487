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

use super::{
    contiguous, cross_entropy, feed_forward, gelu, in_its_place, layer_norm, linear,
    linear_cross_entropy, numbers, rms_norm, swiglu, width,
};
use crate::gelu::Form;

/// The fused operations. The functions that this crate exports define them.
#[backend_extension(Flex, Autodiff)]
pub(crate) trait Fused: Backend {
    fn fused_cross_entropy(
        logits: FloatTensor<Self>,
        targets: IntTensor<Self>,
        weights: FloatTensor<Self>,
    ) -> FloatTensor<Self>;
    fn fused_feed_forward(
        x: FloatTensor<Self>,
        w_in: FloatTensor<Self>,
        w_out: FloatTensor<Self>,
        form: Form,
    ) -> FloatTensor<Self>;
    fn fused_feed_forward_with_biases(
        x: FloatTensor<Self>,
        w_in: FloatTensor<Self>,
        b_in: FloatTensor<Self>,
        w_out: FloatTensor<Self>,
        b_out: FloatTensor<Self>,
        form: Form,
    ) -> FloatTensor<Self>;
    fn fused_gelu(x: FloatTensor<Self>, form: Form) -> FloatTensor<Self>;
    fn fused_layer_norm(
        x: FloatTensor<Self>,
        gain: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        epsilon: f32,
    ) -> FloatTensor<Self>;
    fn fused_linear(x: FloatTensor<Self>, weight: FloatTensor<Self>) -> FloatTensor<Self>;
    fn fused_linear_with_bias(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self>;
    fn fused_linear_cross_entropy(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        targets: IntTensor<Self>,
        weights: FloatTensor<Self>,
    ) -> FloatTensor<Self>;
    fn fused_linear_cross_entropy_with_bias(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        targets: IntTensor<Self>,
        weights: FloatTensor<Self>,
    ) -> FloatTensor<Self>;
    fn fused_rms_norm(
        x: FloatTensor<Self>,
        gain: FloatTensor<Self>,
        epsilon: f32,
    ) -> FloatTensor<Self>;
    fn fused_swiglu(gate: FloatTensor<Self>, up: FloatTensor<Self>) -> FloatTensor<Self>;
}

impl Fused for Flex {
    fn fused_cross_entropy(
        logits: FlexTensor,
        targets: FlexTensor,
        weights: FlexTensor,
    ) -> FlexTensor {
        let logits = contiguous(logits);
        let targets = cross_entropy::targets_of(&contiguous(targets), width(&logits));
        cross_entropy::forward(&logits, &targets, &contiguous(weights)).0
    }

    fn fused_feed_forward(
        x: FlexTensor,
        w_in: FlexTensor,
        w_out: FlexTensor,
        form: Form,
    ) -> FlexTensor {
        feed_forward::forward(&feed_forward::Inputs::new(x, [w_in, w_out], None, form))
    }

    fn fused_feed_forward_with_biases(
        x: FlexTensor,
        w_in: FlexTensor,
        b_in: FlexTensor,
        w_out: FlexTensor,
        b_out: FlexTensor,
        form: Form,
    ) -> FlexTensor {
        feed_forward::forward(&feed_forward::Inputs::new(
            x,
            [w_in, w_out],
            Some([b_in, b_out]),
            form,
        ))
    }

    fn fused_gelu(x: FlexTensor, form: Form) -> FlexTensor {
        gelu::forward(&contiguous(x), form)
    }

    fn fused_layer_norm(
        x: FlexTensor,
        gain: FlexTensor,
        bias: FlexTensor,
        epsilon: f32,
    ) -> FlexTensor {
        layer_norm::forward(
            &contiguous(x),
            &contiguous(gain),
            &contiguous(bias),
            epsilon,
        )
        .0
    }

    fn fused_linear(x: FlexTensor, weight: FlexTensor) -> FlexTensor {
        linear::forward(&contiguous(x), &in_its_place(weight), None)
    }

    fn fused_linear_with_bias(x: FlexTensor, weight: FlexTensor, bias: FlexTensor) -> FlexTensor {
        linear::forward(
            &contiguous(x),
            &in_its_place(weight),
            Some(&contiguous(bias)),
        )
    }

    fn fused_linear_cross_entropy(
        x: FlexTensor,
        weight: FlexTensor,
        targets: FlexTensor,
        weights: FlexTensor,
    ) -> FlexTensor {
        linear_cross_entropy::Inputs::new(x, weight, None, targets, weights).loss()
    }

    fn fused_linear_cross_entropy_with_bias(
        x: FlexTensor,
        weight: FlexTensor,
        bias: FlexTensor,
        targets: FlexTensor,
        weights: FlexTensor,
    ) -> FlexTensor {
        linear_cross_entropy::Inputs::new(x, weight, Some(bias), targets, weights).loss()
    }

    fn fused_rms_norm(x: FlexTensor, gain: FlexTensor, epsilon: f32) -> FlexTensor {
        rms_norm::forward(&contiguous(x), &contiguous(gain), epsilon).0
    }

    fn fused_swiglu(gate: FlexTensor, up: FlexTensor) -> FlexTensor {
        swiglu::forward(&contiguous(gate), &contiguous(up))
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
                prep.finish(
                    cross_entropy::Saved {
                        logits,
                        targets,
                        weights,
                        log_sums,
                    },
                    loss,
                )
            }
            OpsKind::UnTracked(prep) => prep.finish(loss),
        }
    }

    fn fused_feed_forward(
        x: FloatTensor<Self>,
        w_in: FloatTensor<Self>,
        w_out: FloatTensor<Self>,
        form: Form,
    ) -> FloatTensor<Self> {
        let ((x, x_node), (w_in, in_node), (w_out, out_node)) =
            (x.into_parts(), w_in.into_parts(), w_out.into_parts());
        let inputs = feed_forward::Inputs::new(x, [w_in, w_out], None, form);
        match FeedForward
            .prepare::<C>([x_node, in_node, out_node])
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(prep) => {
                let (y, saved) = feed_forward::forward_and_save(inputs);
                prep.finish(saved, y)
            }
            OpsKind::UnTracked(prep) => prep.finish(feed_forward::forward(&inputs)),
        }
    }

    fn fused_feed_forward_with_biases(
        x: FloatTensor<Self>,
        w_in: FloatTensor<Self>,
        b_in: FloatTensor<Self>,
        w_out: FloatTensor<Self>,
        b_out: FloatTensor<Self>,
        form: Form,
    ) -> FloatTensor<Self> {
        let ((x, x_node), (w_in, in_node), (w_out, out_node)) =
            (x.into_parts(), w_in.into_parts(), w_out.into_parts());
        let ((b_in, b_in_node), (b_out, b_out_node)) = (b_in.into_parts(), b_out.into_parts());
        let inputs = feed_forward::Inputs::new(x, [w_in, w_out], Some([b_in, b_out]), form);
        match FeedForward
            .prepare::<C>([x_node, in_node, out_node, b_in_node, b_out_node])
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(prep) => {
                let (y, saved) = feed_forward::forward_and_save(inputs);
                prep.finish(saved, y)
            }
            OpsKind::UnTracked(prep) => prep.finish(feed_forward::forward(&inputs)),
        }
    }

    fn fused_gelu(x: FloatTensor<Self>, form: Form) -> FloatTensor<Self> {
        let (x, node) = x.into_parts();
        let x = contiguous(x);
        let y = gelu::forward(&x, form);
        match Gelu.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish((x, form), y),
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
        match LayerNorm
            .prepare::<C>([x_node, gain_node, bias_node])
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(prep) => prep.finish(
                layer_norm::Saved {
                    x,
                    gain,
                    statistics: Arc::new(statistics),
                },
                y,
            ),
            OpsKind::UnTracked(prep) => prep.finish(y),
        }
    }

    fn fused_linear(x: FloatTensor<Self>, weight: FloatTensor<Self>) -> FloatTensor<Self> {
        let ((x, x_node), (weight, weight_node)) = (x.into_parts(), weight.into_parts());
        let (x, weight) = (contiguous(x), contiguous(weight));
        let y = linear::forward(&x, &weight, None);
        match Linear
            .prepare::<C>([x_node, weight_node])
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(prep) => prep.finish(linear::Saved { x, weight }, y),
            OpsKind::UnTracked(prep) => prep.finish(y),
        }
    }

    fn fused_linear_with_bias(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let ((x, x_node), (weight, weight_node), (bias, bias_node)) =
            (x.into_parts(), weight.into_parts(), bias.into_parts());
        let (x, weight) = (contiguous(x), contiguous(weight));
        let y = linear::forward(&x, &weight, Some(&contiguous(bias)));
        match Linear
            .prepare::<C>([x_node, weight_node, bias_node])
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(prep) => prep.finish(linear::Saved { x, weight }, y),
            OpsKind::UnTracked(prep) => prep.finish(y),
        }
    }

    fn fused_linear_cross_entropy(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        targets: IntTensor<Self>,
        weights: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let ((x, x_node), (weight, weight_node)) = (x.into_parts(), weight.into_parts());
        let weights = weights.into_primitive();
        let inputs = linear_cross_entropy::Inputs::new(x, weight, None, targets, weights);
        match LinearCrossEntropy
            .prepare::<C>([x_node, weight_node])
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(prep) => {
                let (loss, gradients) = inputs.loss_and_gradients();
                prep.finish(gradients, loss)
            }
            OpsKind::UnTracked(prep) => prep.finish(inputs.loss()),
        }
    }

    fn fused_linear_cross_entropy_with_bias(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        targets: IntTensor<Self>,
        weights: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let ((x, x_node), (weight, weight_node), (bias, bias_node)) =
            (x.into_parts(), weight.into_parts(), bias.into_parts());
        let weights = weights.into_primitive();
        let inputs = linear_cross_entropy::Inputs::new(x, weight, Some(bias), targets, weights);
        match LinearCrossEntropy
            .prepare::<C>([x_node, weight_node, bias_node])
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(prep) => {
                let (loss, gradients) = inputs.loss_and_gradients();
                prep.finish(gradients, loss)
            }
            OpsKind::UnTracked(prep) => prep.finish(inputs.loss()),
        }
    }

    fn fused_rms_norm(
        x: FloatTensor<Self>,
        gain: FloatTensor<Self>,
        epsilon: f32,
    ) -> FloatTensor<Self> {
        let ((x, x_node), (gain, gain_node)) = (x.into_parts(), gain.into_parts());
        let (x, gain) = (contiguous(x), contiguous(gain));
        let (y, inverses) = rms_norm::forward(&x, &gain, epsilon);
        match RmsNorm
            .prepare::<C>([x_node, gain_node])
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(prep) => prep.finish(
                rms_norm::Saved {
                    x,
                    gain,
                    inverses: Arc::new(inverses),
                },
                y,
            ),
            OpsKind::UnTracked(prep) => prep.finish(y),
        }
    }

    fn fused_swiglu(gate: FloatTensor<Self>, up: FloatTensor<Self>) -> FloatTensor<Self> {
        let ((gate, gate_node), (up, up_node)) = (gate.into_parts(), up.into_parts());
        let (gate, up) = (contiguous(gate), contiguous(up));
        let y = swiglu::forward(&gate, &up);
        match SwiGlu
            .prepare::<C>([gate_node, up_node])
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(prep) => prep.finish(swiglu::Saved { gate, up }, y),
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

/// The backward pass of `feed_forward`: of x and the two weights, then of two biases, if there are
/// any.
#[derive(Debug)]
struct FeedForward;

impl<const N: usize> Backward<Flex, N> for FeedForward {
    type State = feed_forward::Saved;

    fn backward(self, ops: Ops<Self::State, N>, grads: &mut Gradients, _: &mut Checkpointer) {
        let upstream = contiguous(grads.consume::<Flex>(&ops.node));
        let of_weights = ops.parents[1..].iter().any(Option::is_some);
        let gradients = feed_forward::backward(&ops.state, &upstream, of_weights);
        for (parent, gradient) in ops.parents.into_iter().zip(gradients) {
            if let (Some(parent), Some(gradient)) = (parent, gradient) {
                grads.register::<Flex>(parent.id, gradient);
            }
        }
    }
}

#[derive(Debug)]
struct Gelu;

impl Backward<Flex, 1> for Gelu {
    type State = (FlexTensor, Form);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let upstream = contiguous(grads.consume::<Flex>(&ops.node));
        let (x, form) = &ops.state;
        let gradient = gelu::backward(x, *form, &upstream);
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

/// The backward pass of `linear`, with or without a bias.
#[derive(Debug)]
struct Linear;

impl<const N: usize> Backward<Flex, N> for Linear {
    type State = linear::Saved;

    fn backward(self, ops: Ops<Self::State, N>, grads: &mut Gradients, _: &mut Checkpointer) {
        let upstream = contiguous(grads.consume::<Flex>(&ops.node));
        for (input, parent) in ops.parents.into_iter().enumerate() {
            let Some(parent) = parent else { continue };
            let gradient = match input {
                0 => linear::backward_x(&ops.state, &upstream),
                1 => linear::backward_weight(&ops.state, &upstream),
                _ => linear::backward_bias(&upstream),
            };
            grads.register::<Flex>(parent.id, gradient);
        }
    }
}

/// The backward pass of `linear_cross_entropy`, with or without a bias: the gradients are there
/// already.
#[derive(Debug)]
struct LinearCrossEntropy;

impl<const N: usize> Backward<Flex, N> for LinearCrossEntropy {
    type State = linear_cross_entropy::Gradients;

    fn backward(self, ops: Ops<Self::State, N>, grads: &mut Gradients, _: &mut Checkpointer) {
        let upstream = contiguous(grads.consume::<Flex>(&ops.node));
        let factor = numbers(&upstream)[0];
        let gradients = ops.state.in_order();
        for (parent, gradient) in ops.parents.into_iter().zip(gradients) {
            if let Some(parent) = parent {
                grads.register::<Flex>(parent.id, linear_cross_entropy::scaled(gradient, factor));
            }
        }
    }
}

#[derive(Debug)]
struct RmsNorm;

impl Backward<Flex, 2> for RmsNorm {
    type State = rms_norm::Saved;

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let upstream = contiguous(grads.consume::<Flex>(&ops.node));
        let gradients = rms_norm::backward(&ops.state, &upstream);
        register(ops, gradients, grads);
    }
}

#[derive(Debug)]
struct SwiGlu;

impl Backward<Flex, 2> for SwiGlu {
    type State = swiglu::Saved;

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let upstream = contiguous(grads.consume::<Flex>(&ops.node));
        let gradients = swiglu::backward(&ops.state, &upstream);
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
