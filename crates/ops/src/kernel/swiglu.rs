//! `SiLU(gate)·up` and its derivatives: with `σ = σ(gate)`,
//! `d gate = upstream·up·σ·(1 + gate·(1 − σ))` and `d up = upstream·gate·σ`.

use burn::backend::flex::FlexTensor;
use headlight_vector::{Kernel, Simd, sigmoid, vectorised};
use rayon::prelude::*;

use super::{CHUNK, numbers, shaped};

/// The tensors that forward saved.
#[derive(Debug, Clone)]
pub(crate) struct Saved {
    pub gate: FlexTensor,
    pub up: FlexTensor,
}

pub(crate) fn forward(gate: &FlexTensor, up: &FlexTensor) -> FlexTensor {
    let (gate_numbers, up) = (numbers(gate), numbers(up));
    let mut y = vec![0.0; gate_numbers.len()];
    let chunks = gate_numbers.par_chunks(CHUNK).zip(up.par_chunks(CHUNK));
    y.par_chunks_mut(CHUNK)
        .zip(chunks)
        .for_each(|(y, (gate, up))| vectorised(Values { y, gate, up }));
    shaped(y, gate.layout().shape().clone())
}

pub(crate) fn backward(saved: &Saved, upstream: &FlexTensor) -> [FlexTensor; 2] {
    let (gate, up, upstream) = (numbers(&saved.gate), numbers(&saved.up), numbers(upstream));
    let (mut d_gate, mut d_up) = (vec![0.0; gate.len()], vec![0.0; gate.len()]);
    let inputs = gate
        .par_chunks(CHUNK)
        .zip(up.par_chunks(CHUNK))
        .zip(upstream.par_chunks(CHUNK));
    d_gate
        .par_chunks_mut(CHUNK)
        .zip(d_up.par_chunks_mut(CHUNK))
        .zip(inputs)
        .for_each(|((d_gate, d_up), ((gate, up), upstream))| {
            vectorised(Slopes {
                d_gate,
                d_up,
                gate,
                up,
                upstream,
            });
        });
    let shape = saved.gate.layout().shape();
    [shaped(d_gate, shape.clone()), shaped(d_up, shape.clone())]
}

struct Values<'a> {
    y: &'a mut [f32],
    gate: &'a [f32],
    up: &'a [f32],
}

impl Kernel for Values<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for ((y, &gate), &up) in self.y.iter_mut().zip(self.gate).zip(self.up) {
            *y = gate * sigmoid(simd, gate) * up;
        }
    }
}

struct Slopes<'a> {
    d_gate: &'a mut [f32],
    d_up: &'a mut [f32],
    gate: &'a [f32],
    up: &'a [f32],
    upstream: &'a [f32],
}

impl Kernel for Slopes<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let outputs = self.d_gate.iter_mut().zip(self.d_up);
        for ((d_gate, d_up), ((&gate, &up), &upstream)) in
            outputs.zip(self.gate.iter().zip(self.up).zip(self.upstream))
        {
            let share = sigmoid(simd, gate);
            *d_gate = upstream * up * share * (1.0 + gate * (1.0 - share));
            *d_up = upstream * gate * share;
        }
    }
}
