//! Weights as safetensors bytes.

use burn::store::{ModuleSnapshot, SafetensorsStore};

use crate::Decoder;

/// Why weights could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    /// The bytes are no safetensors file, or not of this model.
    #[error("{0}")]
    Unreadable(String),
    /// A parameter of the model is not in the file.
    #[error("the weights lack {0}")]
    Missing(String),
    /// The file has something the model does not.
    #[error("the weights hold {0}, which the model does not have")]
    Unexpected(String),
}

/// The parameters as a safetensors file, one tensor per path; the same parameters give the same bytes.
///
/// # Errors
/// If a parameter cannot be read from its device.
pub fn weights_to_bytes(model: &Decoder) -> Result<Vec<u8>, WeightsError> {
    let unreadable = |error: &dyn std::fmt::Display| WeightsError::Unreadable(error.to_string());
    // Metadata is a hash map, whose order would differ from run to run.
    let mut store = SafetensorsStore::from_bytes(None).clear_metadata();
    model.save_into(&mut store).map_err(|error| unreadable(&error))?;
    store.get_bytes().map_err(|error| unreadable(&error))
}

/// Puts the parameters of a safetensors file into `model`. All of them must be there, and nothing else.
///
/// # Errors
/// Names the parameter that is missing, left over or of the wrong shape.
pub fn weights_from_bytes(mut model: Decoder, bytes: Vec<u8>) -> Result<Decoder, WeightsError> {
    let mut store = SafetensorsStore::from_bytes(Some(bytes)).allow_partial(true).validate(false);
    let applied = model.load_from(&mut store).map_err(|error| WeightsError::Unreadable(error.to_string()))?;
    if let Some(error) = applied.errors.first() {
        return Err(WeightsError::Unreadable(error.to_string()));
    }
    if let Some((path, _)) = applied.missing.first() {
        return Err(WeightsError::Missing(path.clone()));
    }
    if let Some(path) = applied.unused.first() {
        return Err(WeightsError::Unexpected(path.clone()));
    }
    Ok(model)
}
