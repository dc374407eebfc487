//! Nothing but the matrix products of a step, with the packing and the turning that they need: no
//! program that multiplies like Headlight is faster.
#![allow(
    clippy::inline_always,
    reason = "vector width is chosen outside, so loops must be compiled inside the caller"
)]

use std::hint::black_box;

use headlight_vector::{
    BLOCK, Kernel, Matrix, Onto, Simd, WIDEST, block_product, new_product, transpose, vectorised,
};
use headlight_watch::Cores;

use crate::Sizes;

/// The products of one step each time it is called.
pub fn stepper(sizes: Sizes, shards: usize) -> impl FnMut(usize) + use<> {
    let Sizes {
        layers,
        heads,
        width,
        length,
        ..
    } = sizes;
    let cores = Cores::new(shards).expect("threads");
    let sequences = sizes.batch.div_ceil(shards);
    let mut matrices = vec![(width, width); 4 * layers];
    if sizes.feed_forward {
        matrices.extend(vec![(width, 4 * width); layers]);
        matrices.extend(vec![(4 * width, width); layers]);
    }
    matrices.push((width, sizes.vocabulary));
    let linear = |&(from, to)| Linear::new(sequences * length, from, to);
    let mut factors: Vec<(Vec<Linear>, Attention)> = (0..shards)
        .map(|_| {
            let linear = matrices.iter().map(linear).collect();
            (linear, Attention::new(length, width / heads))
        })
        .collect();
    move |_| {
        cores.map(factors.iter_mut().collect(), |(linear, attention)| {
            for linear in linear {
                linear.multiply();
            }
            for _ in 0..layers * sequences * heads {
                vectorised(&mut *attention);
            }
        });
    }
}

/// `x·W` and the gradients of both.
struct Linear {
    rows: usize,
    from: usize,
    to: usize,
    x: Vec<f32>,
    weight: Vec<f32>,
    upstream: Vec<f32>,
}

impl Linear {
    fn new(rows: usize, from: usize, to: usize) -> Self {
        Self {
            rows,
            from,
            to,
            x: vec![0.5; rows * from],
            weight: vec![0.5; from * to],
            upstream: vec![0.5; rows * to],
        }
    }

    fn multiply(&mut self) {
        let x = Matrix::dense(&self.x, self.rows, self.from);
        let weight = Matrix::dense(&self.weight, self.from, self.to);
        let upstream = Matrix::dense(&self.upstream, self.rows, self.to);
        black_box(new_product(x, weight, None));
        black_box(new_product(upstream, weight.transposed(), None));
        black_box(new_product(x.transposed(), upstream, None));
    }
}

/// The seven products of a causal head, forward and backward, in one tile.
struct Attention {
    length: usize,
    width: usize,
    /// Query, key, value and the gradient of the output all have the same numbers.
    rows: Vec<f32>,
    turned: Vec<f32>,
    scores: Vec<f32>,
    out: Vec<f32>,
}

impl Attention {
    fn new(length: usize, width: usize) -> Self {
        Self {
            length,
            width,
            rows: vec![0.5; length * width],
            turned: vec![0.0; length * width],
            scores: vec![0.5; length * length],
            out: vec![0.0; length * width],
        }
    }
}

impl Kernel for &mut Attention {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let (length, width) = (self.length, self.width);
        let rows = Matrix::dense(&self.rows, length, width);
        // Keys for the scores, keys and values again for backward.
        for _ in 0..3 {
            transpose(simd, rows, &mut self.turned, length);
        }
        let turned = Matrix::dense(&self.turned, width, length);
        for first in (0..length).step_by(BLOCK) {
            let count = BLOCK.min(length - first);
            let seen = (first + count).next_multiple_of(WIDEST).min(length);
            let block = rows.some_rows(first, count);
            // The scores, twice, and the gradient of the weights.
            for _ in 0..3 {
                let out = &mut self.scores[first * length..];
                let turned = turned.some_columns(0, seen);
                block_product(simd, out, length, Onto::Zeros, 1.0, block, turned);
            }
            let scores = Matrix::dense(&self.scores, length, length);
            let out = &mut self.out[first * width..];
            // The output, and the gradient of the queries.
            let weights = scores
                .some_rows(first, count)
                .some_columns(0, first + count);
            for _ in 0..2 {
                let rows = rows.some_rows(0, first + count);
                block_product(simd, out, width, Onto::Out, 1.0, weights, rows);
            }
            // The gradients of the keys and of the values.
            let seeing = length - first;
            let weights = scores.some_rows(first, seeing).some_columns(first, count);
            for _ in 0..2 {
                let rows = rows.some_rows(first, seeing);
                block_product(simd, out, width, Onto::Out, 1.0, weights.transposed(), rows);
            }
        }
    }
}
