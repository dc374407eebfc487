//! Layer norm, one pass over the rows each way.

use burn::{backend::flex::FlexTensor, tensor::Shape};
use headlight_vector::{Kernel, Simd, dot, sum_of, vectorised};
use rayon::prelude::*;

use super::{ROWS, numbers, shaped, sum_in_order, width};

/// The tensors that forward saved: the input, the gain, and for each row (mean, 1/√(variance + ε)).
#[derive(Debug, Clone)]
pub(crate) struct Saved {
    pub x: FlexTensor,
    pub gain: FlexTensor,
    pub statistics: std::sync::Arc<Vec<(f32, f32)>>,
}

pub(crate) fn forward(
    x: &FlexTensor,
    gain: &FlexTensor,
    bias: &FlexTensor,
    epsilon: f32,
) -> (FlexTensor, Vec<(f32, f32)>) {
    let width = width(x);
    let (numbers_of_x, gain, bias) = (numbers(x), numbers(gain), numbers(bias));
    let mut y = vec![0.0; numbers_of_x.len()];
    let mut statistics = vec![(0.0, 0.0); numbers_of_x.len() / width];
    y.par_chunks_mut(ROWS * width)
        .zip(numbers_of_x.par_chunks(ROWS * width))
        .zip(statistics.par_chunks_mut(ROWS))
        .for_each(|((y, x), statistics)| {
            vectorised(Normalise {
                y,
                x,
                statistics,
                gain,
                bias,
                epsilon,
            });
        });
    (shaped(y, x.layout().shape().clone()), statistics)
}

/// Gradients of x, gain and bias. With `n = (x − mean)·inverse` and `g = upstream·gain`:
/// `dx = inverse·(g − mean(g) − n·mean(g·n))`, `d gain = Σ upstream·n`, `d bias = Σ upstream`.
pub(crate) fn backward(saved: &Saved, upstream: &FlexTensor) -> [FlexTensor; 3] {
    let width = width(&saved.x);
    let (x, gain, upstream) = (numbers(&saved.x), numbers(&saved.gain), numbers(upstream));
    let mut d_x = vec![0.0; x.len()];
    let (of_gain, of_bias): (Vec<_>, Vec<_>) = d_x
        .par_chunks_mut(ROWS * width)
        .zip(
            x.par_chunks(ROWS * width)
                .zip(upstream.par_chunks(ROWS * width)),
        )
        .zip(saved.statistics.par_chunks(ROWS))
        .map(|((d_x, (x, upstream)), statistics)| {
            vectorised(Gradients {
                d_x,
                x,
                upstream,
                gain,
                statistics,
            })
        })
        .unzip();
    let (d_gain, d_bias) = (sum_in_order(&of_gain, width), sum_in_order(&of_bias, width));
    let row = |data| shaped(data, Shape::new([width]));
    [
        shaped(d_x, saved.x.layout().shape().clone()),
        row(d_gain),
        row(d_bias),
    ]
}

/// The forward pass of a block of rows.
struct Normalise<'a> {
    y: &'a mut [f32],
    x: &'a [f32],
    statistics: &'a mut [(f32, f32)],
    gain: &'a [f32],
    bias: &'a [f32],
    epsilon: f32,
}

impl Kernel for Normalise<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self {
            y,
            x,
            statistics,
            gain,
            bias,
            epsilon,
        } = self;
        let width = gain.len();
        for ((y, x), statistics) in y
            .chunks_exact_mut(width)
            .zip(x.chunks_exact(width))
            .zip(statistics)
        {
            let mean = sum_of(simd, x) / width as f32;
            for (y, &x) in y.iter_mut().zip(x) {
                *y = x - mean;
            }
            let variance = dot(simd, y, y) / width as f32;
            let inverse = 1.0 / (variance + epsilon).sqrt();
            for ((y, &gain), &bias) in y.iter_mut().zip(gain).zip(bias) {
                *y = *y * inverse * gain + bias;
            }
            *statistics = (mean, inverse);
        }
    }
}

/// The backward pass of a block of rows.
struct Gradients<'a> {
    d_x: &'a mut [f32],
    x: &'a [f32],
    upstream: &'a [f32],
    gain: &'a [f32],
    statistics: &'a [(f32, f32)],
}

impl Kernel for Gradients<'_> {
    type Output = (Vec<f32>, Vec<f32>);

    /// Fills `d_x` and returns the parts of `d gain` and `d bias` of these rows.
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> (Vec<f32>, Vec<f32>) {
        let Self {
            d_x,
            x,
            upstream,
            gain,
            statistics,
        } = self;
        let width = gain.len();
        let (mut d_gain, mut d_bias, mut normal) =
            (vec![0.0; width], vec![0.0; width], vec![0.0; width]);
        let rows = x.chunks_exact(width).zip(upstream.chunks_exact(width));
        for ((d_x, (x, upstream)), &(mean, inverse)) in
            d_x.chunks_exact_mut(width).zip(rows).zip(statistics)
        {
            for (normal, &x) in normal.iter_mut().zip(x) {
                *normal = (x - mean) * inverse;
            }
            for ((d_gain, &normal), &upstream) in d_gain.iter_mut().zip(&normal).zip(upstream) {
                *d_gain += upstream * normal;
            }
            for (d_bias, &upstream) in d_bias.iter_mut().zip(upstream) {
                *d_bias += upstream;
            }
            for ((d_x, &upstream), &gain) in d_x.iter_mut().zip(upstream).zip(gain) {
                *d_x = upstream * gain;
            }
            let mean_g = sum_of(simd, d_x) / width as f32;
            let mean_gn = dot(simd, d_x, &normal) / width as f32;
            for (d_x, &normal) in d_x.iter_mut().zip(&normal) {
                *d_x = inverse * (*d_x - mean_g - normal * mean_gn);
            }
        }
        (d_gain, d_bias)
    }
}
