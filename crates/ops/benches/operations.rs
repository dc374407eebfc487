//! Each operation, forward and backward, beside the same thing of Burn's own: width 128, 64 to 8192
//! positions.
//!
//! `cargo bench --workspace --profile dev --bench operations`

#![allow(
    clippy::wildcard_imports,
    reason = "a group is a name for two benchmarks, not a module of its own"
)]

use burn::{
    nn::{
        LayerNormConfig, RmsNormConfig,
        loss::{CrossEntropyLoss, CrossEntropyLossConfig},
    },
    tensor::{Device, Distribution, Int, Tensor, activation, module},
};
use divan::Bencher;
use headlight_ops::{cross_entropy, gelu, layer_norm, linear, rms_norm, swiglu};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const POSITIONS: [usize; 4] = [64, 512, 2048, 8192];
const WIDTH: usize = 128;

fn main() {
    divan::main();
}

fn device() -> Device {
    Device::flex().autodiff()
}

fn random<const D: usize>(dims: [usize; D]) -> Tensor<D> {
    Tensor::random(dims, Distribution::Normal(0.0, 1.0), &device()).require_grad()
}

/// Forward and backward of an operation on `[1, positions, WIDTH]`.
fn both_ways(
    bencher: Bencher,
    positions: usize,
    operation: impl Fn(Tensor<3>) -> Tensor<3> + Sync,
) {
    let x = random([1, positions, WIDTH]);
    bencher.bench(|| x.grad(&operation(x.clone()).sum().backward()));
}

#[divan::bench_group]
mod layer_norms {
    use super::*;

    #[divan::bench(args = POSITIONS)]
    fn headlight(bencher: Bencher, positions: usize) {
        let (gain, bias) = (random([WIDTH]), random([WIDTH]));
        both_ways(bencher, positions, |x| {
            layer_norm(x, gain.clone(), bias.clone(), 1e-5)
        });
    }

    #[divan::bench(args = POSITIONS)]
    fn burn(bencher: Bencher, positions: usize) {
        let norm = LayerNormConfig::new(WIDTH).init(&device());
        both_ways(bencher, positions, |x| norm.forward(x));
    }
}

#[divan::bench_group]
mod rms_norms {
    use super::*;

    #[divan::bench(args = POSITIONS)]
    fn headlight(bencher: Bencher, positions: usize) {
        let gain = random([WIDTH]);
        both_ways(bencher, positions, |x| rms_norm(x, gain.clone(), 1e-5));
    }

    #[divan::bench(args = POSITIONS)]
    fn burn(bencher: Bencher, positions: usize) {
        let norm = RmsNormConfig::new(WIDTH).init(&device());
        both_ways(bencher, positions, |x| norm.forward(x));
    }
}

#[divan::bench_group]
mod gelus {
    use super::*;

    #[divan::bench(args = POSITIONS)]
    fn headlight(bencher: Bencher, positions: usize) {
        both_ways(bencher, positions, gelu);
    }

    #[divan::bench(args = POSITIONS)]
    fn burn(bencher: Bencher, positions: usize) {
        both_ways(bencher, positions, activation::gelu);
    }
}

#[divan::bench_group]
mod swiglus {
    use super::*;

    #[divan::bench(args = POSITIONS)]
    fn headlight(bencher: Bencher, positions: usize) {
        let up = random([1, positions, WIDTH]);
        both_ways(bencher, positions, |gate| swiglu(gate, up.clone()));
    }

    #[divan::bench(args = POSITIONS)]
    fn burn(bencher: Bencher, positions: usize) {
        let up = random([1, positions, WIDTH]);
        both_ways(bencher, positions, |gate| {
            activation::silu(gate) * up.clone()
        });
    }
}

#[divan::bench_group]
mod linears {
    use super::*;

    #[divan::bench(args = POSITIONS)]
    fn headlight(bencher: Bencher, positions: usize) {
        let (weight, bias) = (random([WIDTH, WIDTH]), random([WIDTH]));
        both_ways(bencher, positions, |x| {
            linear(x, weight.clone(), Some(bias.clone()))
        });
    }

    #[divan::bench(args = POSITIONS)]
    fn burn(bencher: Bencher, positions: usize) {
        let (weight, bias) = (random([WIDTH, WIDTH]), random([WIDTH]));
        both_ways(bencher, positions, |x| {
            module::linear(x, weight.clone(), Some(bias.clone()))
        });
    }
}

#[divan::bench_group]
mod cross_entropies {
    use super::*;

    fn targets(positions: usize) -> Tensor<2, Int> {
        Tensor::<1, Int>::arange(0..positions as i64, &device())
            .remainder_scalar(WIDTH as i64)
            .unsqueeze()
    }

    #[divan::bench(args = POSITIONS)]
    fn headlight(bencher: Bencher, positions: usize) {
        let (targets, weights) = (targets(positions), Tensor::ones([1, positions], &device()));
        let logits = random([1, positions, WIDTH]);
        bencher.bench(|| {
            logits.grad(&cross_entropy(logits.clone(), targets.clone(), weights.clone()).backward())
        });
    }

    #[divan::bench(args = POSITIONS)]
    fn burn(bencher: Bencher, positions: usize) {
        let targets = targets(positions).squeeze_dim::<1>(0);
        let loss: CrossEntropyLoss = CrossEntropyLossConfig::new().init(&device());
        let logits = random([positions, WIDTH]);
        bencher.bench(|| logits.grad(&loss.forward(logits.clone(), targets.clone()).backward()));
    }
}
