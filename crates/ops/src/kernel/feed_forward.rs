//! `f(x·W_in + b_in)·W_out + b_out` with GELU as `f`, some rows and some middle columns at a time:
//! what is between the two products is used while it is in the cache. Of the middle layer only
//! `x·W_in + b_in` is kept for backward.

use std::{marker::PhantomData, mem::MaybeUninit, sync::Arc};

use burn::{backend::flex::FlexTensor, tensor::Shape};
use headlight_vector::{
    BLOCK, DEPTH, Kernel, Matrix, Onto, Panels, Simd, add_rows, panel_product, vectorised,
};
use rayon::prelude::*;

use super::{
    contiguous,
    gelu::{Distribution, Exact, Tanh},
    linear::{self, rows as rows_of},
    matrix, numbers, shaped,
};
use crate::gelu::Form;

/// Rows whose part of the middle layer stays in the second-level cache, in forward and backward.
const ROWS: usize = 16 * BLOCK;
const ROWS_BACKWARD: usize = 32 * BLOCK;

/// Middle columns at a time in forward: the step in which a product adds up, so that the sums are
/// those of two products.
const STEP: usize = DEPTH;

/// Middle columns at a time in backward: a panel of the widest vectors.
const PANEL: usize = 64;

/// Rows whose gradients of the weights are summed by one thread. It is fixed, so that sums are
/// added in the same order on any number of threads.
const ROWS_IN_GROUP: usize = 2048;

/// The tensors of a call.
#[derive(Debug, Clone)]
pub(crate) struct Inputs {
    /// `[batch, pos, d_model]`
    x: FlexTensor,
    /// `W_in [d_model, d_ff]` and its bias
    w_in: FlexTensor,
    b_in: Option<FlexTensor>,
    /// `W_out [d_ff, d_out]` and its bias
    w_out: FlexTensor,
    b_out: Option<FlexTensor>,
    form: Form,
}

impl Inputs {
    pub fn new(
        x: FlexTensor,
        weights: [FlexTensor; 2],
        biases: Option<[FlexTensor; 2]>,
        form: Form,
    ) -> Self {
        let [w_in, w_out] = weights.map(contiguous);
        let (b_in, b_out) = match biases.map(|biases| biases.map(contiguous)) {
            Some([b_in, b_out]) => (Some(b_in), Some(b_out)),
            None => (None, None),
        };
        Self {
            x: contiguous(x),
            w_in,
            b_in,
            w_out,
            b_out,
            form,
        }
    }
}

/// The tensors that backward needs.
#[derive(Debug, Clone)]
pub(crate) struct Saved {
    inputs: Inputs,
    /// `x·W_in + b_in`: a part for each step of middle columns.
    before: Arc<Vec<Before>>,
}

/// Some columns of `x·W_in + b_in`, in the order in which backward reads them: for each block of
/// [`ROWS`] rows each panel, row after row.
#[derive(Debug)]
struct Before {
    numbers: Vec<f32>,
    rows: usize,
    columns: usize,
}

impl Before {
    /// The numbers of a row in the panel that begins at `column`.
    #[inline(always)]
    fn row(&self, row: usize, column: usize) -> &[f32] {
        let first = row / ROWS * ROWS;
        let rows = ROWS.min(self.rows - first);
        let width = PANEL.min(self.columns - column);
        let from = first * self.columns + rows * column + (row - first) * width;
        &self.numbers[from..from + width]
    }
}

pub(crate) fn forward(inputs: &Inputs) -> FlexTensor {
    match inputs.form {
        Form::Exact => output::<Exact>(inputs, false).0,
        Form::Tanh => output::<Tanh>(inputs, false).0,
    }
}

pub(crate) fn forward_and_save(inputs: Inputs) -> (FlexTensor, Saved) {
    let (y, before) = match inputs.form {
        Form::Exact => output::<Exact>(&inputs, true),
        Form::Tanh => output::<Tanh>(&inputs, true),
    };
    let before = Arc::new(before);
    (y, Saved { inputs, before })
}

/// Gradients of x, `W_in`, `W_out`, `b_in` and `b_out`; of x alone if those of the weights are not
/// wanted.
///
/// With `h = x·W_in + b_in`: `d h = f′(h)·(upstream·W_outᵀ)`, `dx = d h·W_inᵀ`, `dW_in = xᵀ·d h`,
/// `dW_out = f(h)ᵀ·upstream`.
pub(crate) fn backward(
    saved: &Saved,
    upstream: &FlexTensor,
    of_weights: bool,
) -> [Option<FlexTensor>; 5] {
    match saved.inputs.form {
        Form::Exact => gradients::<Exact>(saved, upstream, of_weights),
        Form::Tanh => gradients::<Tanh>(saved, upstream, of_weights),
    }
}

/// The output, and the middle layer before `f` if it is kept.
#[allow(
    unsafe_code,
    reason = "the memory of the middle layer is not cleared before"
)]
fn output<D: Distribution>(inputs: &Inputs, keeps: bool) -> (FlexTensor, Vec<Before>) {
    let (x, w_in, w_out) = (
        rows_of(&inputs.x),
        matrix(&inputs.w_in),
        matrix(&inputs.w_out),
    );
    let (b_in, b_out) = (
        inputs.b_in.as_ref().map(numbers),
        inputs.b_out.as_ref().map(numbers),
    );
    let d_out = w_out.columns;
    let mut y = vec![0.0; x.rows * d_out];
    let mut kept = Vec::new();
    for first in (0..w_in.columns).step_by(STEP) {
        let count = STEP.min(w_in.columns - first);
        let read = Panels::new(w_in.some_columns(first, count));
        let write = Panels::new(w_out.some_rows(first, count));
        let mut numbers = Vec::with_capacity(if keeps { x.rows * count } else { 0 });
        let mut blocks_before: Vec<&mut [MaybeUninit<f32>]> = if keeps {
            let all = &mut numbers.spare_capacity_mut()[..x.rows * count];
            all.chunks_mut(ROWS * count).collect()
        } else {
            (0..x.rows.div_ceil(ROWS))
                .map(|_| Default::default())
                .collect()
        };
        y.par_chunks_mut(ROWS * d_out)
            .zip(&mut blocks_before)
            .enumerate()
            .for_each_init(Vec::new, |middle, (block, (y, before))| {
                vectorised(Output {
                    y,
                    middle,
                    before,
                    x: x.some_rows(block * ROWS, ROWS.min(x.rows - block * ROWS)),
                    read: &read,
                    read_onto: b_in.map_or(Onto::Zeros, |bias| Onto::Row(&bias[first..][..count])),
                    write: &write,
                    write_onto: match b_out {
                        _ if first > 0 => Onto::Out,
                        Some(bias) => Onto::Row(bias),
                        None => Onto::Zeros,
                    },
                    of: PhantomData::<D>,
                });
            });
        if keeps {
            // SAFETY: `Output` has written all rows.
            unsafe { numbers.set_len(x.rows * count) };
            kept.push(Before {
                numbers,
                rows: x.rows,
                columns: count,
            });
        }
    }
    let mut shape = inputs.x.layout().shape().clone();
    let last = shape.num_dims() - 1;
    shape[last] = d_out;
    (shaped(y, shape), kept)
}

/// A step of middle columns for some rows.
struct Output<'a, D> {
    y: &'a mut [f32],
    /// Room for the middle columns.
    middle: &'a mut Vec<f32>,
    /// The middle columns before `f`, or empty.
    before: &'a mut [MaybeUninit<f32>],
    x: Matrix<'a>,
    read: &'a Panels<'a>,
    read_onto: Onto<'a>,
    write: &'a Panels<'a>,
    write_onto: Onto<'a>,
    of: PhantomData<D>,
}

impl<D: Distribution> Kernel for Output<'_, D> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let (rows, count) = (self.x.rows, self.read.columns());
        if self.middle.len() < rows * count {
            self.middle.resize(rows * count, 0.0);
        }
        let middle = &mut self.middle[..rows * count];
        panel_product(simd, middle, count, self.read_onto, 1.0, self.x, self.read);
        if self.before.is_empty() {
            for x in &mut *middle {
                *x *= D::at(simd, *x).0;
            }
        } else {
            for (row, middle) in middle.chunks_exact_mut(count).enumerate() {
                for (panel, middle) in middle.chunks_mut(PANEL).enumerate() {
                    let from = rows * panel * PANEL + row * middle.len();
                    let before = &mut self.before[from..from + middle.len()];
                    for (x, before) in middle.iter_mut().zip(before) {
                        before.write(*x);
                        *x *= D::at(simd, *x).0;
                    }
                }
            }
        }
        let middle = Matrix::dense(middle, rows, count);
        let d_out = self.write.columns();
        panel_product(
            simd,
            self.y,
            d_out,
            self.write_onto,
            1.0,
            middle,
            self.write,
        );
    }
}

fn gradients<D: Distribution>(
    saved: &Saved,
    upstream: &FlexTensor,
    of_weights: bool,
) -> [Option<FlexTensor>; 5] {
    let inputs = &saved.inputs;
    let (x, w_in, w_out) = (
        rows_of(&inputs.x),
        matrix(&inputs.w_in),
        matrix(&inputs.w_out),
    );
    let (d_model, d_ff, d_out) = (w_in.rows, w_in.columns, w_out.columns);
    let up = rows_of(upstream);
    let mut d_x = vec![0.0; x.rows * d_model];
    let of_groups: Vec<OfWeights> = d_x
        .par_chunks_mut(ROWS_IN_GROUP * d_model)
        .enumerate()
        .map(|(group, d_x)| {
            let (first, count) = (group * ROWS_IN_GROUP, d_x.len() / d_model);
            let mut of_group = OfWeights::zeros(d_model, d_ff, d_out, of_weights);
            vectorised(Group {
                d_x,
                of_weights: of_weights.then_some(&mut of_group),
                first,
                x: x.some_rows(first, count),
                up: up.some_rows(first, count),
                w_in,
                w_out,
                before: &saved.before,
                of: PhantomData::<D>,
            });
            of_group
        })
        .collect();
    let d_x = shaped(d_x, inputs.x.layout().shape().clone());
    let sums = of_groups.into_iter().reduce(OfWeights::plus);
    let Some(sums) = sums.filter(|_| of_weights) else {
        return [Some(d_x), None, None, None, None];
    };
    let b_out = inputs.b_out.as_ref();
    [
        Some(d_x),
        Some(shaped(sums.w_in, Shape::new([d_model, d_ff]))),
        Some(shaped(sums.w_out, Shape::new([d_ff, d_out]))),
        Some(shaped(sums.b_in, Shape::new([d_ff]))),
        b_out.map(|_| linear::backward_bias(upstream)),
    ]
}

/// The gradients of weights and of the inner bias, as sums over some rows.
struct OfWeights {
    w_in: Vec<f32>,
    b_in: Vec<f32>,
    w_out: Vec<f32>,
}

impl OfWeights {
    fn zeros(d_model: usize, d_ff: usize, d_out: usize, wanted: bool) -> Self {
        let zeros = |count: usize| vec![0.0; if wanted { count } else { 0 }];
        Self {
            w_in: zeros(d_model * d_ff),
            b_in: zeros(d_ff),
            w_out: zeros(d_ff * d_out),
        }
    }

    fn plus(mut self, other: Self) -> Self {
        let ours = [&mut self.w_in, &mut self.b_in, &mut self.w_out];
        for (ours, others) in ours.into_iter().zip([other.w_in, other.b_in, other.w_out]) {
            for (ours, others) in ours.iter_mut().zip(others) {
                *ours += others;
            }
        }
        self
    }
}

/// The gradients of a group of rows, the first of which is number `first`.
struct Group<'a, D> {
    d_x: &'a mut [f32],
    of_weights: Option<&'a mut OfWeights>,
    first: usize,
    x: Matrix<'a>,
    up: Matrix<'a>,
    w_in: Matrix<'a>,
    w_out: Matrix<'a>,
    before: &'a [Before],
    of: PhantomData<D>,
}

impl<D: Distribution> Kernel for Group<'_, D> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self {
            d_x,
            mut of_weights,
            first,
            x,
            up,
            w_in,
            w_out,
            before,
            of: PhantomData,
        } = self;
        let (d_model, d_ff, d_out) = (w_in.rows, w_in.columns, w_out.columns);
        let blocks: Vec<(usize, usize)> = (0..x.rows)
            .step_by(ROWS_BACKWARD)
            .map(|row| (row, ROWS_BACKWARD.min(x.rows - row)))
            .collect();
        let mut up_in_panels = Vec::new();
        if of_weights.is_some() {
            for &(row, rows) in &blocks {
                up_in_panels.push(Panels::new(up.some_rows(row, rows)));
            }
        }
        let mut room = vec![0.0; 2 * ROWS_BACKWARD * PANEL];
        let (after, d_before) = room.split_at_mut(ROWS_BACKWARD * PANEL);
        for column in (0..d_ff).step_by(PANEL) {
            let count = PANEL.min(d_ff - column);
            let w_in = &Panels::new(w_in.some_columns(column, count).transposed());
            let w_out = &Panels::new(w_out.some_rows(column, count).transposed());
            let step = &before[column / STEP];
            for (block, &(row, rows)) in blocks.iter().enumerate() {
                let (x, up) = (x.some_rows(row, rows), up.some_rows(row, rows));
                let after = &mut after[..rows * count];
                let d_before = &mut d_before[..rows * count];
                panel_product(simd, d_before, count, Onto::Zeros, 1.0, up, w_out);
                for (i, (after, d_before)) in after
                    .chunks_exact_mut(count)
                    .zip(d_before.chunks_exact_mut(count))
                    .enumerate()
                {
                    let before = step.row(first + row + i, column % STEP);
                    for ((after, d_before), &x) in after.iter_mut().zip(d_before).zip(before) {
                        let (value, density) = D::at(simd, x);
                        *after = x * value;
                        *d_before *= value + x * density;
                    }
                }
                let of_before = Matrix::dense(d_before, rows, count);
                let onto = if column == 0 { Onto::Zeros } else { Onto::Out };
                let d_x = &mut d_x[row * d_model..][..rows * d_model];
                panel_product(simd, d_x, d_model, onto, 1.0, of_before, w_in);
                let Some(sums) = &mut of_weights else {
                    continue;
                };
                let onto = if block == 0 { Onto::Zeros } else { Onto::Out };
                let after = Matrix::dense(after, rows, count).transposed();
                let w_out = &mut sums.w_out[column * d_out..][..count * d_out];
                panel_product(simd, w_out, d_out, onto, 1.0, after, &up_in_panels[block]);
                let of_before = &Panels::new(of_before);
                let w_in = &mut sums.w_in[column..];
                panel_product(simd, w_in, d_ff, onto, 1.0, x.transposed(), of_before);
                add_rows(&mut sums.b_in[column..column + count], d_before);
            }
        }
    }
}
