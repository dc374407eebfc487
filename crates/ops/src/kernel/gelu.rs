//! `x·Φ(x)` and its derivative `Φ(x) + x·φ(x)`.

use burn::backend::flex::FlexTensor;
use headlight_vector::{Kernel, erf, exp, vectorised};
use rayon::prelude::*;

use super::{numbers, shaped};

/// Numbers in one task.
const CHUNK: usize = 1 << 14;

pub(crate) fn forward(x: &FlexTensor) -> FlexTensor {
    let x_numbers = numbers(x);
    let mut y = vec![0.0; x_numbers.len()];
    y.par_chunks_mut(CHUNK).zip(x_numbers.par_chunks(CHUNK)).for_each(|(y, x)| {
        vectorised(Values { y, x });
    });
    shaped(y, x.layout().shape().clone())
}

pub(crate) fn backward(x: &FlexTensor, upstream: &FlexTensor) -> FlexTensor {
    let (x_numbers, upstream) = (numbers(x), numbers(upstream));
    let mut gradient = vec![0.0; x_numbers.len()];
    let chunks = x_numbers.par_chunks(CHUNK).zip(upstream.par_chunks(CHUNK));
    gradient.par_chunks_mut(CHUNK).zip(chunks).for_each(|(gradient, (x, upstream))| {
        vectorised(Slopes { gradient, x, upstream });
    });
    shaped(gradient, x.layout().shape().clone())
}

struct Values<'a> {
    y: &'a mut [f32],
    x: &'a [f32],
}

impl Kernel for Values<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (y, &x) in self.y.iter_mut().zip(self.x) {
            *y = x * distribution(x);
        }
    }
}

struct Slopes<'a> {
    gradient: &'a mut [f32],
    x: &'a [f32],
    upstream: &'a [f32],
}

impl Kernel for Slopes<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for ((gradient, &x), &upstream) in self.gradient.iter_mut().zip(self.x).zip(self.upstream) {
            *gradient = upstream * (distribution(x) + x * density(x));
        }
    }
}

/// `Φ(x) = (1 + erf(x/√2))/2`
#[inline(always)]
fn distribution(x: f32) -> f32 {
    0.5 + 0.5 * erf(x * std::f32::consts::FRAC_1_SQRT_2)
}

/// `φ(x) = e^{−x²/2}/√(2π)`
#[inline(always)]
fn density(x: f32) -> f32 {
    const SCALE: f32 = 0.398_942_3;
    SCALE * exp(-0.5 * x * x)
}
