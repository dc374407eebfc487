//! RMS norm, one pass over the rows each way.

use burn::{backend::flex::FlexTensor, tensor::Shape};
use headlight_vector::{Kernel, Simd, dot, vectorised};
use rayon::prelude::*;

use super::{ROWS, numbers, shaped, sum_in_order, width};

/// The tensors that forward saved: the input, the gain, and for each row 1/√(mean(x²) + ε).
#[derive(Debug, Clone)]
pub(crate) struct Saved {
    pub x: FlexTensor,
    pub gain: FlexTensor,
    pub inverses: std::sync::Arc<Vec<f32>>,
}

pub(crate) fn forward(x: &FlexTensor, gain: &FlexTensor, epsilon: f32) -> (FlexTensor, Vec<f32>) {
    let width = width(x);
    let (numbers_of_x, gain) = (numbers(x), numbers(gain));
    let mut y = vec![0.0; numbers_of_x.len()];
    let mut inverses = vec![0.0; numbers_of_x.len() / width];
    y.par_chunks_mut(ROWS * width)
        .zip(numbers_of_x.par_chunks(ROWS * width))
        .zip(inverses.par_chunks_mut(ROWS))
        .for_each(|((y, x), inverses)| {
            vectorised(Normalise {
                y,
                x,
                inverses,
                gain,
                epsilon,
            });
        });
    (shaped(y, x.layout().shape().clone()), inverses)
}

/// Gradients of x and gain. With `n = x·inverse` and `g = upstream·gain`:
/// `dx = inverse·(g − n·mean(g·n))`, `d gain = Σ upstream·n`.
pub(crate) fn backward(saved: &Saved, upstream: &FlexTensor) -> [FlexTensor; 2] {
    let width = width(&saved.x);
    let (x, gain, upstream) = (numbers(&saved.x), numbers(&saved.gain), numbers(upstream));
    let mut d_x = vec![0.0; x.len()];
    let sums: Vec<Vec<f32>> = d_x
        .par_chunks_mut(ROWS * width)
        .zip(
            x.par_chunks(ROWS * width)
                .zip(upstream.par_chunks(ROWS * width)),
        )
        .zip(saved.inverses.par_chunks(ROWS))
        .map(|((d_x, (x, upstream)), inverses)| {
            vectorised(Gradients {
                d_x,
                x,
                upstream,
                gain,
                inverses,
            })
        })
        .collect();
    let d_gain = sum_in_order(&sums, width);
    [
        shaped(d_x, saved.x.layout().shape().clone()),
        shaped(d_gain, Shape::new([width])),
    ]
}

/// The forward pass of a block of rows.
struct Normalise<'a> {
    y: &'a mut [f32],
    x: &'a [f32],
    inverses: &'a mut [f32],
    gain: &'a [f32],
    epsilon: f32,
}

impl Kernel for Normalise<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self {
            y,
            x,
            inverses,
            gain,
            epsilon,
        } = self;
        let width = gain.len();
        for ((y, x), inverse) in y
            .chunks_exact_mut(width)
            .zip(x.chunks_exact(width))
            .zip(inverses)
        {
            *inverse = 1.0 / (dot(simd, x, x) / width as f32 + epsilon).sqrt();
            for ((y, &x), &gain) in y.iter_mut().zip(x).zip(gain) {
                *y = x * *inverse * gain;
            }
        }
    }
}

/// The backward pass of a block of rows.
struct Gradients<'a> {
    d_x: &'a mut [f32],
    x: &'a [f32],
    upstream: &'a [f32],
    gain: &'a [f32],
    inverses: &'a [f32],
}

impl Kernel for Gradients<'_> {
    type Output = Vec<f32>;

    /// Fills `d_x` and returns the part of `d gain` of these rows.
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Vec<f32> {
        let Self {
            d_x,
            x,
            upstream,
            gain,
            inverses,
        } = self;
        let width = gain.len();
        let mut d_gain = vec![0.0; width];
        let rows = x.chunks_exact(width).zip(upstream.chunks_exact(width));
        for ((d_x, (x, upstream)), &inverse) in d_x.chunks_exact_mut(width).zip(rows).zip(inverses)
        {
            for (((d_x, d_gain), (&x, &upstream)), &gain) in d_x
                .iter_mut()
                .zip(&mut d_gain)
                .zip(x.iter().zip(upstream))
                .zip(gain)
            {
                *d_gain += upstream * x * inverse;
                *d_x = upstream * gain;
            }
            let mean_gn = dot(simd, d_x, x) * inverse / width as f32;
            for (d_x, &x) in d_x.iter_mut().zip(x) {
                *d_x = inverse * (*d_x - x * inverse * mean_gn);
            }
        }
        d_gain
    }
}
