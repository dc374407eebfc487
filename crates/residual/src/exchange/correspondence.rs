//! The correspondence of another tool's tensors and this model's parameters.

use std::{borrow::Cow, collections::BTreeMap};

use burn::tensor::TensorData;

use super::{ExchangeError, shapes::shapes, stored_tensor::StoredTensor};
use crate::{
    Decoder,
    parameters::{parameters, with_parameters},
};

/// One tensor of another tool and the parameters that it holds.
#[derive(Debug, Clone)]
pub struct Correspondence {
    /// The other tool's name.
    pub theirs: String,
    /// The parameters, side by side along the last axis.
    pub ours: Vec<String>,
    /// Into so many equal pieces each parameter is cut; the first pieces of all lie side by side,
    /// then the second, and so on.
    pub interleaved: usize,
    /// The layout of the other tool's tensor.
    pub layout: Layout,
    /// The shape of a tensor of zeros to write if the model lacks the parameter, such as an absent
    /// bias.
    pub zeros: Option<Vec<usize>>,
}

/// The layout of a tensor in a file, compared with the parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// The same layout.
    Same,
    /// `[out, in]` instead of `[in, out]`.
    Transposed,
    /// `[head, in, d_head]` instead of `[in, head·d_head]`; a vector as `[head, d_head]`.
    HeadsOut(usize),
    /// `[head, d_head, out]` instead of `[head·d_head, out]`.
    HeadsIn(usize),
    /// The same layout, and each number less 1.
    LessOne,
}

impl Correspondence {
    pub fn new(theirs: impl Into<String>, ours: impl Into<String>, layout: Layout) -> Self {
        Self {
            theirs: theirs.into(),
            ours: vec![ours.into()],
            interleaved: 1,
            layout,
            zeros: None,
        }
    }

    pub fn or_zeros(mut self, shape: &[usize]) -> Self {
        self.zeros = Some(shape.to_vec());
        self
    }
}

/// The entries under the names that the file has, in which `prefix` may be left out of all.
pub fn named_as_in(
    tensors: &BTreeMap<String, StoredTensor>,
    prefix: &str,
    mut entries: Vec<Correspondence>,
) -> Vec<Correspondence> {
    let bare = |entry: &Correspondence| entry.theirs.strip_prefix(prefix).map(str::to_owned);
    let left_out = entries
        .iter()
        .filter_map(bare)
        .any(|name| tensors.contains_key(&name));
    if left_out {
        for entry in &mut entries {
            entry.theirs = bare(entry).unwrap_or_else(|| entry.theirs.clone());
        }
    }
    entries
}

/// The model's parameters under the other tool's names.
pub fn export(
    model: &Decoder,
    entries: &[Correspondence],
) -> Result<BTreeMap<String, TensorData>, ExchangeError> {
    let parameters = parameters(model);
    let export = |entry: &Correspondence| {
        let ours: Option<Vec<&TensorData>> =
            entry.ours.iter().map(|name| parameters.get(name)).collect();
        let data = match (ours, &entry.zeros) {
            (Some(ours), _) => entry.layout.export(&beside(&ours, entry.interleaved)),
            (None, Some(shape)) => TensorData::zeros::<f32, _>(shape.clone()),
            (None, None) => return Err(ExchangeError::Missing(entry.ours.join(", "))),
        };
        Ok((entry.theirs.clone(), data))
    };
    entries.iter().map(export).collect()
}

/// Imports the other tool's tensors into the model. A tensor without a place is an error.
pub fn import(
    model: Decoder,
    entries: &[Correspondence],
    mut tensors: BTreeMap<String, StoredTensor>,
) -> Result<Decoder, ExchangeError> {
    let own = shapes(&model);
    let mut values = BTreeMap::new();
    for entry in entries {
        let name = &entry.theirs;
        let theirs = tensors
            .remove(name)
            .ok_or_else(|| ExchangeError::Missing(name.clone()))?;
        let wanted: Vec<&Vec<usize>> = entry
            .ours
            .iter()
            .map(|name| {
                own.get(name)
                    .ok_or_else(|| ExchangeError::LeftOver(entry.theirs.clone()))
            })
            .collect::<Result<_, _>>()?;
        let widths: Vec<usize> = wanted.iter().map(|shape| last_axis(shape)).collect();
        let expected = entry.layout.shape(wanted[0], widths.iter().sum());
        let found = theirs.shape.clone();
        if found != expected {
            return Err(ExchangeError::Shape {
                name: name.clone(),
                found,
                expected,
            });
        }
        let parts = split(
            entry.layout.import(theirs.read()),
            &widths,
            entry.interleaved,
        );
        values.extend(entry.ours.iter().cloned().zip(parts));
    }
    if let Some(name) = tensors.into_keys().next() {
        return Err(ExchangeError::LeftOver(name));
    }
    Ok(with_parameters(model, values)?)
}

impl Layout {
    fn export(self, data: &TensorData) -> TensorData {
        let shape = data.shape().to_vec();
        match (self, &shape[..]) {
            (Self::Transposed, &[rows, columns]) => {
                permuted(data, [rows, columns, 1], [1, 0, 2], vec![columns, rows])
            }
            (Self::HeadsOut(heads), &[rows, width]) => {
                let d_head = width / heads;
                permuted(
                    data,
                    [rows, heads, d_head],
                    [1, 0, 2],
                    vec![heads, rows, d_head],
                )
            }
            (Self::HeadsOut(heads), &[width]) => reshaped(data, vec![heads, width / heads]),
            (Self::HeadsIn(heads), &[width, columns]) => {
                reshaped(data, vec![heads, width / heads, columns])
            }
            (Self::LessOne, _) => plus(data, -1.0),
            _ => data.clone(),
        }
    }

    /// The inverse of the layouts that can be read. Layouts with a head axis are only written.
    fn import(self, data: TensorData) -> TensorData {
        match self {
            Self::Transposed => self.export(&data),
            Self::LessOne => plus(&data, 1.0),
            Self::Same | Self::HeadsOut(_) | Self::HeadsIn(_) => data,
        }
    }

    /// The shape of the file's tensor in a layout that can be read, for parameters with a total
    /// width of `width`.
    fn shape(self, ours: &[usize], width: usize) -> Vec<usize> {
        let mut shape = with_width(ours, width);
        if self == Self::Transposed {
            shape.reverse();
        }
        shape
    }
}

fn values(data: &TensorData) -> Vec<f32> {
    data.iter::<f32>().collect()
}

fn reshaped(data: &TensorData, shape: Vec<usize>) -> TensorData {
    TensorData::new(values(data), shape)
}

/// Permutes three axes.
fn permuted(
    data: &TensorData,
    sizes: [usize; 3],
    order: [usize; 3],
    shape: Vec<usize>,
) -> TensorData {
    let from = data
        .as_slice::<f32>()
        .map_or_else(|_| Cow::Owned(values(data)), Cow::Borrowed);
    let strides = [sizes[1] * sizes[2], sizes[2], 1];
    let [a, b, c] = order.map(|axis| (sizes[axis], strides[axis]));
    let mut to = Vec::with_capacity(from.len());
    for i in 0..a.0 {
        for j in 0..b.0 {
            to.extend((0..c.0).map(|k| from[i * a.1 + j * b.1 + k * c.1]));
        }
    }
    TensorData::new(to, shape)
}

fn last_axis(shape: &[usize]) -> usize {
    shape.last().copied().unwrap_or(1)
}

/// Replaces the last axis of a shape.
fn with_width(shape: &[usize], width: usize) -> Vec<usize> {
    let mut shape = shape.to_vec();
    if let Some(last) = shape.last_mut() {
        *last = width;
    }
    shape
}

/// Adds a number to each number.
fn plus(data: &TensorData, number: f32) -> TensorData {
    let sums = values(data)
        .into_iter()
        .map(|value| value + number)
        .collect();
    TensorData::new::<f32, _>(sums, data.shape().to_vec())
}

/// Concatenates tensors along the last axis, piece by piece.
fn beside(parts: &[&TensorData], pieces: usize) -> TensorData {
    let [first, ..] = parts else {
        return TensorData::zeros::<f32, _>([0]);
    };
    if parts.len() == 1 {
        return (*first).clone();
    }
    let shape = first.shape().to_vec();
    let rows: usize = shape[..shape.len() - 1].iter().product();
    let parts: Vec<(usize, Vec<f32>)> = parts
        .iter()
        .map(|part| (last_axis(part.shape()), values(part)))
        .collect();
    let width = parts.iter().map(|(width, _)| width).sum();
    let mut together = Vec::with_capacity(rows * width);
    for row in 0..rows {
        for piece in 0..pieces {
            for (width, values) in &parts {
                let size = width / pieces;
                together.extend_from_slice(&values[row * width + piece * size..][..size]);
            }
        }
    }
    TensorData::new(together, with_width(&shape, width))
}

/// The inverse of [`beside`].
fn split(data: TensorData, widths: &[usize], pieces: usize) -> Vec<TensorData> {
    if widths.len() == 1 {
        return vec![data];
    }
    let (values, shape) = (values(&data), data.shape().to_vec());
    // Together, one piece of each.
    let stretches = || values.chunks((last_axis(&shape) / pieces).max(1));
    let mut from = 0;
    widths
        .iter()
        .map(|&width| {
            let size = width / pieces;
            let part = stretches()
                .flat_map(|stretch| &stretch[from..from + size])
                .copied()
                .collect();
            from += size;
            TensorData::new::<f32, _>(part, with_width(&shape, width))
        })
        .collect()
}
