//! Logits, loss and both gradients in blocks of positions. No block outlives its turn.

use burn::{backend::flex::FlexTensor, tensor::Shape};
use headlight_vector::{
    Kernel, Matrix, Onto, Simd, exp_and_sum, max_of, new_product, product, sum_of_rows, vectorised,
};
use rayon::prelude::*;

use super::{CHUNK, ROWS, contiguous, cross_entropy::targets_of, matrix, numbers, shaped, width};

/// With as many logits or fewer, `linear` and `cross_entropy` keep them all: 16 MiB.
pub(crate) const FEW: usize = 1 << 22;

/// The fewest positions in a block. The product of a shorter block waits for memory.
const LEAST: usize = 256;

/// The tensors that the loss is computed from.
pub(crate) struct Inputs {
    /// `[rows, positions, width]`
    x: FlexTensor,
    /// `[width, vocabulary]`; in a tied model, a transposed view.
    weight: FlexTensor,
    bias: Option<FlexTensor>,
    targets: Vec<usize>,
    weights: FlexTensor,
}

/// The gradients of the loss, for an upstream gradient of 1.
#[derive(Debug, Clone)]
pub(crate) struct Gradients {
    x: FlexTensor,
    weight: FlexTensor,
    bias: Option<FlexTensor>,
}

impl Inputs {
    pub fn new(
        x: FlexTensor,
        weight: FlexTensor,
        bias: Option<FlexTensor>,
        targets: FlexTensor,
        weights: FlexTensor,
    ) -> Self {
        let weight = if weight.layout().has_positive_strides() {
            weight
        } else {
            contiguous(weight)
        };
        Self {
            x: contiguous(x),
            targets: targets_of(&contiguous(targets), width(&weight)),
            weight,
            bias: bias.map(contiguous),
            weights: contiguous(weights),
        }
    }

    /// The summed loss `[1]`.
    pub fn loss(&self) -> FlexTensor {
        let positions = Positions::of(self);
        let mut loss = 0.0;
        let mut logits = positions.room_for_logits();
        for (first, count) in positions.blocks() {
            let logits = positions.logits(first, count, &mut logits);
            loss += positions.losses(logits, first, false);
        }
        shaped(vec![loss as f32], Shape::new([1]))
    }

    /// The summed loss `[1]`, and its gradients.
    pub fn loss_and_gradients(&self) -> (FlexTensor, Gradients) {
        let positions = Positions::of(self);
        let (width, vocabulary) = (positions.width, positions.weight.columns);
        let is_transposed = positions.weight.column_stride != 1;
        let mut loss = 0.0;
        let mut logits = positions.room_for_logits();
        let mut d_x = vec![0.0; numbers(&self.x).len()];
        let mut d_weight = vec![0.0; width * vocabulary];
        let mut d_bias = vec![0.0; vocabulary];
        for (first, count) in positions.blocks() {
            let logits = positions.logits(first, count, &mut logits);
            loss += positions.losses(logits, first, true);
            // The gradient of the logits stands in their place.
            let d_logits = Matrix::dense(logits, count, vocabulary);
            let x = positions.x(first, count);
            let d_x_of_block = new_product(d_logits, positions.weight.transposed(), None);
            positions.scatter(&d_x_of_block, first, &mut d_x);
            // The gradient has the layout of the weight.
            let (left, right) = if is_transposed {
                (d_logits.transposed(), x)
            } else {
                (x.transposed(), d_logits)
            };
            let onto = if first > 0 { Onto::Out } else { Onto::Zeros };
            product(&mut d_weight, right.columns, onto, 1.0, left, right);
            if self.bias.is_some() {
                for (sum, part) in d_bias.iter_mut().zip(sum_of_rows(logits, vocabulary)) {
                    *sum += part;
                }
            }
        }
        let d_weight = if is_transposed {
            shaped(d_weight, Shape::new([vocabulary, width])).transpose(0, 1)
        } else {
            shaped(d_weight, Shape::new([width, vocabulary]))
        };
        let d_bias = self
            .bias
            .as_ref()
            .map(|bias| shaped(d_bias, bias.layout().shape().clone()));
        let gradients = Gradients {
            x: shaped(d_x, self.x.layout().shape().clone()),
            weight: d_weight,
            bias: d_bias,
        };
        (shaped(vec![loss as f32], Shape::new([1])), gradients)
    }
}

impl Gradients {
    /// Of x, weight and bias.
    pub fn in_order(self) -> impl Iterator<Item = FlexTensor> {
        [self.x, self.weight].into_iter().chain(self.bias)
    }
}

/// `gradient · factor`, in place where nobody else holds the gradient.
pub(crate) fn scaled(mut gradient: FlexTensor, factor: f32) -> FlexTensor {
    if factor != 1.0 {
        gradient
            .storage_mut::<f32>()
            .par_chunks_mut(CHUNK)
            .for_each(|chunk| vectorised(Scale { chunk, factor }));
    }
    gradient
}

/// The positions that count, one after the other.
struct Positions<'a> {
    /// Where each of them stands among all positions.
    places: Vec<usize>,
    targets: Vec<usize>,
    weights: Vec<f32>,
    /// `[position, width]`
    x: Vec<f32>,
    width: usize,
    weight: Matrix<'a>,
    bias: Option<&'a [f32]>,
}

impl<'a> Positions<'a> {
    fn of(inputs: &'a Inputs) -> Self {
        let (all, width) = (numbers(&inputs.x), width(&inputs.x));
        let mut positions = Self {
            places: Vec::new(),
            targets: Vec::new(),
            weights: Vec::new(),
            x: Vec::new(),
            width,
            weight: matrix(&inputs.weight),
            bias: inputs.bias.as_ref().map(numbers),
        };
        for (place, &weight) in numbers(&inputs.weights).iter().enumerate() {
            if weight == 0.0 {
                continue;
            }
            positions.places.push(place);
            positions.targets.push(inputs.targets[place]);
            positions.weights.push(weight);
            positions
                .x
                .extend_from_slice(&all[place * width..][..width]);
        }
        positions
    }

    /// The logits of so many positions take as much memory as the weight, which is there in any
    /// case.
    fn positions_at_once(&self) -> usize {
        self.width.max(LEAST)
    }

    /// First position and number of positions of each block.
    fn blocks(&self) -> Vec<(usize, usize)> {
        let (all, most) = (self.places.len(), self.positions_at_once());
        let block = |first| (first, most.min(all - first));
        (0..all).step_by(most).map(block).collect()
    }

    fn x(&self, first: usize, count: usize) -> Matrix<'_> {
        Matrix::dense(&self.x, self.places.len(), self.width).some_rows(first, count)
    }

    /// Room for the logits of the longest block. All blocks use it.
    fn room_for_logits(&self) -> Vec<f32> {
        let rows = self.places.len().min(self.positions_at_once());
        vec![0.0; rows * self.weight.columns]
    }

    fn logits<'b>(&self, first: usize, count: usize, room: &'b mut [f32]) -> &'b mut [f32] {
        let vocabulary = self.weight.columns;
        let logits = &mut room[..count * vocabulary];
        let onto = self.bias.map_or(Onto::Zeros, Onto::Row);
        product(
            logits,
            vocabulary,
            onto,
            1.0,
            self.x(first, count),
            self.weight,
        );
        logits
    }

    /// The summed loss of a block. With gradients, `weight · (softmax − one-hot)` replaces the
    /// logits.
    fn losses(&self, logits: &mut [f32], first: usize, with_gradients: bool) -> f64 {
        let rows = ROWS * self.weight.columns;
        let losses: Vec<f64> = logits
            .par_chunks_mut(rows)
            .enumerate()
            .map(|(block, logits)| {
                vectorised(Losses {
                    logits,
                    targets: &self.targets[first + block * ROWS..],
                    weights: &self.weights[first + block * ROWS..],
                    vocabulary: self.weight.columns,
                    with_gradients,
                })
            })
            .collect();
        losses.iter().sum()
    }

    /// Puts the rows of a block where they stand among all positions.
    fn scatter(&self, rows: &[f32], first: usize, out: &mut [f32]) {
        for (row, &place) in rows.chunks_exact(self.width).zip(&self.places[first..]) {
            out[place * self.width..][..self.width].copy_from_slice(row);
        }
    }
}

/// The losses of some rows, one after the other.
struct Losses<'a> {
    logits: &'a mut [f32],
    targets: &'a [usize],
    weights: &'a [f32],
    vocabulary: usize,
    with_gradients: bool,
}

impl Kernel for Losses<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f64 {
        let mut loss = 0.0;
        let rows = self.logits.chunks_exact_mut(self.vocabulary);
        for ((logits, &target), &weight) in rows.zip(self.targets).zip(self.weights) {
            let of_target = logits[target];
            let max = max_of(logits);
            let sum = exp_and_sum(simd, logits, max);
            loss += f64::from(weight) * f64::from(max + sum.ln() - of_target);
            if self.with_gradients {
                let factor = weight / sum;
                for power in &mut *logits {
                    *power *= factor;
                }
                logits[target] -= weight;
            }
        }
        loss
    }
}

struct Scale<'a> {
    chunk: &'a mut [f32],
    factor: f32,
}

impl Kernel for Scale<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        for x in self.chunk {
            *x *= self.factor;
        }
    }
}
