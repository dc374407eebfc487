//! Nothing but the matrix products of a step, with the packing and the turning that they need: no
//! program that multiplies like Headlight is faster. The same of causal attention.
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

/// Causal attention of `benches/attention`: heads, and the width of each.
const HEADS: usize = 8;
const WIDTH: usize = 64;
/// Its queries and keys fall into tiles of so many.
const TILE: usize = 256;

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
                vectorised(Tile::on_the_diagonal(attention));
            }
        });
    }
}

/// The products of causal attention over `length` tokens each time it is called: a tile of queries
/// sees all keys of the tiles before it. Heads are divided among the cores.
pub fn attention_stepper(length: usize, cores: usize) -> impl FnMut(usize) + use<> {
    let heads = HEADS.div_ceil(cores);
    let cores = Cores::new(cores).expect("threads");
    let mut tiles: Vec<Attention> = (0..cores.count())
        .map(|_| Attention::new(TILE, WIDTH))
        .collect();
    move |_| {
        cores.map(tiles.iter_mut().collect(), |attention| {
            for before in (0..length / TILE).cycle().take(heads * (length / TILE)) {
                vectorised(Tile::on_the_diagonal(attention));
                for _ in 0..before {
                    vectorised(Tile::before_it(attention));
                }
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

/// What a tile of queries and keys of a head is multiplied from.
struct Attention {
    length: usize,
    width: usize,
    /// From a row of scores or turned keys to the next: no power of two, for the cache's sake.
    stride: usize,
    /// Query, key, value and the gradient of the output all have the same numbers.
    rows: Vec<f32>,
    turned: Vec<f32>,
    scores: Vec<f32>,
    out: Vec<f32>,
}

impl Attention {
    fn new(length: usize, width: usize) -> Self {
        let stride = length + WIDEST;
        Self {
            length,
            width,
            stride,
            rows: vec![0.5; length * width],
            turned: vec![0.0; width * stride],
            scores: vec![0.5; length * stride],
            out: vec![0.0; length * width],
        }
    }
}

/// The seven products of a tile, forward and backward.
struct Tile<'a> {
    of: &'a mut Attention,
    /// Whether each query sees the keys up to its own; else it sees all.
    is_causal: bool,
}

impl<'a> Tile<'a> {
    fn on_the_diagonal(of: &'a mut Attention) -> Self {
        let is_causal = true;
        Self { of, is_causal }
    }

    fn before_it(of: &'a mut Attention) -> Self {
        let is_causal = false;
        Self { of, is_causal }
    }
}

impl Kernel for Tile<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Attention {
            length,
            width,
            stride,
            ref rows,
            ref mut turned,
            ref mut scores,
            ref mut out,
        } = *self.of;
        let rows = Matrix::dense(rows, length, width);
        // Once for each tile of keys: for the scores, and keys and values again for backward.
        if self.is_causal {
            for _ in 0..3 {
                transpose(simd, rows, turned, stride);
            }
        }
        let turned = Matrix::dense(turned, width, stride);
        for first in (0..length).step_by(BLOCK) {
            let count = BLOCK.min(length - first);
            let (keys, first_seeing) = if self.is_causal {
                (first + count, first)
            } else {
                (length, 0)
            };
            let block = rows.some_rows(first, count);
            // The scores, twice, and the gradient of the weights.
            for _ in 0..3 {
                let out = &mut scores[first * stride..];
                let seen = keys.next_multiple_of(WIDEST).min(length);
                let turned = turned.some_columns(0, seen);
                block_product(simd, out, stride, Onto::Zeros, 1.0, block, turned);
            }
            let scores = Matrix::dense(scores, length, stride);
            let out = &mut out[first * width..];
            // The output, and the gradient of the queries.
            let weights = scores.some_rows(first, count).some_columns(0, keys);
            for _ in 0..2 {
                let rows = rows.some_rows(0, keys);
                block_product(simd, out, width, Onto::Out, 1.0, weights, rows);
            }
            // The gradients of the keys and of the values.
            let seeing = length - first_seeing;
            let weights = scores
                .some_rows(first_seeing, seeing)
                .some_columns(first, count);
            for _ in 0..2 {
                let rows = rows.some_rows(first_seeing, seeing);
                block_product(simd, out, width, Onto::Out, 1.0, weights.transposed(), rows);
            }
        }
    }
}
