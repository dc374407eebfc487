//! `x·Φ(x)` and its derivative `Φ(x) + x·φ(x)`, with Φ itself and with its tanh approximation.

use std::marker::PhantomData;

use burn::backend::flex::FlexTensor;
use headlight_vector::{Kernel, Simd, gauss, tanh, vectorised};
use rayon::prelude::*;

use super::{CHUNK, numbers, shaped};
use crate::gelu::Form;

pub(crate) fn forward(x: &FlexTensor, form: Form) -> FlexTensor {
    match form {
        Form::Exact => values::<Exact>(x),
        Form::Tanh => values::<Tanh>(x),
    }
}

pub(crate) fn backward(x: &FlexTensor, form: Form, upstream: &FlexTensor) -> FlexTensor {
    match form {
        Form::Exact => slopes::<Exact>(x, upstream),
        Form::Tanh => slopes::<Tanh>(x, upstream),
    }
}

/// A distribution function and its density.
pub(crate) trait Distribution: Send + Sync {
    /// Both at `x`. What the caller does not use is not computed.
    fn at<S: Simd>(simd: S, x: f32) -> (f32, f32);
}

/// The standard normal.
pub(crate) struct Exact;

impl Distribution for Exact {
    #[inline(always)]
    fn at<S: Simd>(simd: S, x: f32) -> (f32, f32) {
        gauss(simd, x)
    }
}

/// `(1 + tanh u)/2` with `u = √(2/π)·(x + c·x³)`, and `(1 − tanh² u)/2 · u′`.
pub(crate) struct Tanh;

/// `√(2/π)`
const FACTOR: f32 = 0.797_884_6;
const CUBIC: f32 = 0.044_715;

impl Distribution for Tanh {
    #[inline(always)]
    fn at<S: Simd>(simd: S, x: f32) -> (f32, f32) {
        let t = tanh(simd, FACTOR * (x + CUBIC * x * x * x));
        let density = 0.5 * (1.0 - t * t) * FACTOR * (1.0 + 3.0 * CUBIC * x * x);
        (0.5 + 0.5 * t, density)
    }
}

fn values<D: Distribution>(x: &FlexTensor) -> FlexTensor {
    let numbers_of_x = numbers(x);
    let mut y = vec![0.0; numbers_of_x.len()];
    y.par_chunks_mut(CHUNK)
        .zip(numbers_of_x.par_chunks(CHUNK))
        .for_each(|(y, x)| {
            vectorised(Values {
                y,
                x,
                of: PhantomData::<D>,
            });
        });
    shaped(y, x.layout().shape().clone())
}

fn slopes<D: Distribution>(x: &FlexTensor, upstream: &FlexTensor) -> FlexTensor {
    let (numbers_of_x, upstream) = (numbers(x), numbers(upstream));
    let mut gradient = vec![0.0; numbers_of_x.len()];
    let chunks = numbers_of_x
        .par_chunks(CHUNK)
        .zip(upstream.par_chunks(CHUNK));
    gradient
        .par_chunks_mut(CHUNK)
        .zip(chunks)
        .for_each(|(gradient, (x, upstream))| {
            vectorised(Slopes {
                gradient,
                x,
                upstream,
                of: PhantomData::<D>,
            });
        });
    shaped(gradient, x.layout().shape().clone())
}

struct Values<'a, D> {
    y: &'a mut [f32],
    x: &'a [f32],
    of: PhantomData<D>,
}

impl<D: Distribution> Kernel for Values<'_, D> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for (y, &x) in self.y.iter_mut().zip(self.x) {
            *y = x * D::at(simd, x).0;
        }
    }
}

struct Slopes<'a, D> {
    gradient: &'a mut [f32],
    x: &'a [f32],
    upstream: &'a [f32],
    of: PhantomData<D>,
}

impl<D: Distribution> Kernel for Slopes<'_, D> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for ((gradient, &x), &upstream) in self.gradient.iter_mut().zip(self.x).zip(self.upstream) {
            let (value, density) = D::at(simd, x);
            *gradient = upstream * (value + x * density);
        }
    }
}
