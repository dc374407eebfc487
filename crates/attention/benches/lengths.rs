//! Causal attention, forward and backward, beside Burn's own: 8 heads of width 64.
//!
//! `cargo bench --workspace --profile dev --bench lengths`. Under autodiff Burn's own keeps several
//! matrices of length × length for each head: at 8192 more than 10 GB, so it ends before.

use burn::tensor::{Device, Distribution, Tensor, module, ops::AttentionModuleOptions};
use divan::Bencher;
use headlight_attention::{AttentionOptions, Mask, attention};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    divan::main();
}

fn both_ways(
    bencher: Bencher,
    length: usize,
    operation: impl Fn([Tensor<4>; 3]) -> Tensor<4> + Sync,
) {
    let device = Device::flex().autodiff();
    let leaf = || {
        Tensor::<4>::random([1, 8, length, 64], Distribution::Normal(0.0, 1.0), &device)
            .require_grad()
    };
    let inputs = [leaf(), leaf(), leaf()];
    bencher.bench(|| inputs[0].grad(&operation(inputs.clone()).sum().backward()));
}

#[divan::bench(args = [64, 256, 1024, 2048, 4096, 8192], max_time = 5)]
fn headlight(bencher: Bencher, length: usize) {
    let options = AttentionOptions::default();
    both_ways(bencher, length, |[q, k, v]| {
        attention(q, k, v, &Mask::causal(), &options)
    });
}

#[divan::bench(args = [64, 256, 1024, 2048, 4096], max_time = 5)]
fn burn(bencher: Bencher, length: usize) {
    let options = AttentionModuleOptions {
        is_causal: true,
        ..AttentionModuleOptions::default()
    };
    both_ways(bencher, length, |[q, k, v]| {
        module::attention(q, k, v, None, None, options)
    });
}
