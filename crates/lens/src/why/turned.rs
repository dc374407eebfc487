//! What would the terms be if the head's matrices were turned at random against each other?

use std::collections::BTreeMap;

use burn::tensor::{Device, Tensor, TensorData};
use faer::Mat;
use headlight_residual::{ActivationsError, Probed};

use super::{
    Cell, Ingredient, OpenedHead, Why,
    cell::Coefficients,
    opened_head::{blends, rows},
    stream_reader::StreamReader,
    why_head::Groups,
};
use crate::circuit::{Draws, matrix_of};

/// Matrices that are drawn.
const DRAWS: usize = 20;
const SEED: u64 = 0;

impl Why {
    /// The same with a null for each term: the root mean square that it has over 20 draws in which
    /// `W_K` is turned at random in the stream. `W_K` keeps its singular values, and so its size and
    /// rank, but reads other directions than those that were written. Queries, biases and patterns
    /// stay as they are.
    ///
    /// # Errors
    /// If the activations do not fit into memory.
    ///
    /// # Panics
    /// If head and cells are not those of the terms.
    pub fn against_turned(
        self,
        model: &dyn Probed,
        opened: &OpenedHead,
        cells: &[Vec<Cell>],
    ) -> Result<Self, ActivationsError> {
        let Some(reader) = StreamReader::of(model, opened.head)? else {
            return Ok(self);
        };
        let turned = turns_of(&reader.matrices.key.0);
        let mut sums = vec![Vec::new(); turned.len()];
        let mut first = 0;
        for some in reader.at_once(&opened.tokens) {
            let read = reader.read(some)?;
            let input = self.groups.input(&read.input);
            for (sum, matrix) in sums.iter_mut().zip(&turned) {
                let keys = rows(read.keys_by(input.clone(), matrix.clone()));
                for (at, keys) in keys.iter().enumerate() {
                    let sequence = first + at;
                    for cell in &cells[sequence] {
                        let terms = self.terms_with(opened, sequence, cell, keys);
                        sum.resize(terms.len(), 0.0);
                        for (sum, term) in sum.iter_mut().zip(terms) {
                            *sum += term;
                        }
                    }
                }
            }
            first += some.len();
        }
        let columns = self.groups.turned_keys();
        let mut nulls = BTreeMap::new();
        for (row, &query) in self.groups.queries.names.iter().enumerate() {
            for (column, &key) in columns.iter().enumerate() {
                let at = row * columns.len() + column;
                let squares: f64 = sums.iter().map(|sum| sum[at] * sum[at]).sum();
                let size = (squares / sums.len() as f64).sqrt() / self.cells as f64;
                nulls.insert((query, key), size);
            }
        }
        Ok(self.with_turned(&nulls))
    }

    /// `[query group, key group]`: the terms of a cell with other keys.
    fn terms_with(
        &self,
        opened: &OpenedHead,
        sequence: usize,
        cell: &Cell,
        keys: &[f32],
    ) -> Vec<f64> {
        let scores = opened.scores(sequence, cell.query);
        let coefficients = Coefficients::of(cell, scores, self.contrast).asked;
        // With the bias of keys, which does not turn and is not looked at.
        let columns = keys.len() / (opened.length() * opened.d_head());
        let blends = blends(keys, columns, &coefficients);
        let named = self.groups.turned_keys().len();
        let terms = opened.products(&opened.sequences[sequence], cell.query, &blends[..named]);
        let mut sums = vec![0.0; self.groups.queries.names.len() * named];
        for (row, &group) in terms.chunks(named).zip(&self.groups.queries.group) {
            for (sum, term) in sums[group * named..][..named].iter_mut().zip(row) {
                *sum += term;
            }
        }
        sums
    }
}

impl Groups {
    /// The groups of keys that a matrix makes of the stream: all but `b_K` alone.
    fn turned_keys(&self) -> Vec<Ingredient> {
        let names = self.keys.names.iter().copied();
        names.filter(|name| *name != Ingredient::Bias).collect()
    }

    /// `[batch, pos, group, d_model]`: the input of each group of keys.
    fn input(&self, input: &Tensor<4>) -> Tensor<4> {
        let [_, _, ingredients, _] = input.dims();
        let mut groups = Vec::new();
        for (group, name) in self.keys.names.iter().enumerate() {
            if *name == Ingredient::Bias {
                continue;
            }
            let members = (0..ingredients).filter(|&at| self.keys.group[at] == group);
            let part = |at| input.clone().narrow(2, at, 1);
            groups.extend(members.map(part).reduce(|sum, more| sum + more));
        }
        Tensor::cat(groups, 2)
    }
}

/// `W_K [d_model, d_head]` turned at random: `O·R`, where `W_K = Q·R` and the columns of `O` are
/// orthonormal in every direction alike.
fn turns_of(w_k: &Tensor<2>) -> Vec<Tensor<2>> {
    let device = w_k.device();
    let matrix = matrix_of(w_k.clone());
    let r = matrix.qr().thin_R().to_owned();
    let mut draws = Draws::new(SEED);
    let turned = |_| {
        tensor_of(
            &(draws.orthonormal(matrix.nrows(), r.nrows()) * &r),
            &device,
        )
    };
    (0..DRAWS).map(turned).collect()
}

fn tensor_of(matrix: &Mat<f64>, device: &Device) -> Tensor<2> {
    let mut numbers = Vec::with_capacity(matrix.nrows() * matrix.ncols());
    for row in 0..matrix.nrows() {
        numbers.extend((0..matrix.ncols()).map(|column| matrix[(row, column)] as f32));
    }
    Tensor::from_data(
        TensorData::new(numbers, [matrix.nrows(), matrix.ncols()]),
        device,
    )
}
