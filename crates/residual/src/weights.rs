//! Weights as safetensors bytes.

use std::collections::BTreeMap;

use burn::tensor::TensorData;

use crate::{
    Decoder,
    parameters::{Mismatch, parameters, with_parameters},
    tensor_file::{data_of, open, serialize},
};

/// The reason why weights could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    /// The bytes are not a safetensors file, or the tensors do not fit the model.
    #[error("{0}")]
    Unreadable(String),
    /// The file lacks a parameter of the model.
    #[error("the weights lack {0}")]
    Missing(String),
    /// The file has a tensor that the model lacks.
    #[error("the weights hold {0}, which the model does not have")]
    Unexpected(String),
}

/// The parameters as a safetensors file, one tensor per path; the same parameters give the same
/// bytes.
///
/// # Errors
/// If a parameter has no safetensors form.
pub fn weights_to_bytes(model: &Decoder) -> Result<Vec<u8>, WeightsError> {
    tensors_to_bytes(&parameters(model))
}

/// Loads the parameters of a safetensors file into `model`. The file must have all parameters of
/// the model and no other tensor.
///
/// # Errors
/// Names the parameter that is missing, is left over or has the wrong shape.
pub fn weights_from_bytes(model: Decoder, bytes: &[u8]) -> Result<Decoder, WeightsError> {
    let values = tensors_from_bytes(bytes)?;
    with_parameters(model, values).map_err(|mismatch| match mismatch {
        Mismatch::Missing(name) => WeightsError::Missing(name),
        Mismatch::LeftOver(name) => WeightsError::Unexpected(name),
        Mismatch::Shape { .. } => WeightsError::Unreadable(mismatch.to_string()),
    })
}

/// Tensors by name as a safetensors file in f32; the same tensors give the same bytes.
///
/// # Errors
/// If a tensor has no safetensors form.
pub fn tensors_to_bytes(tensors: &BTreeMap<String, TensorData>) -> Result<Vec<u8>, WeightsError> {
    serialize(tensors, None).map_err(WeightsError::Unreadable)
}

/// The tensors of a safetensors file by name.
///
/// # Errors
/// If the bytes are not a safetensors file, or a tensor does not hold floating-point numbers.
pub fn tensors_from_bytes(bytes: &[u8]) -> Result<BTreeMap<String, TensorData>, WeightsError> {
    let file = open(bytes).map_err(WeightsError::Unreadable)?;
    file.iter()
        .map(|(name, view)| Ok((name.to_owned(), data_of(name, &view)?)))
        .collect::<Result<_, String>>()
        .map_err(WeightsError::Unreadable)
}
