//! A model's outputs for some tokens, with which a reader of its weights can be checked.

use std::collections::BTreeMap;

use burn::tensor::{Int, Tensor};

use super::ExchangeError;
use crate::{Decoder, NoProbe, tensor_file::serialize};

/// A safetensors file with `tokens [batch, pos]` (as f32), `logits [batch, pos, vocabulary]` and,
/// for each layer, `pattern.{l} [batch, head, query, key]`: a reader of an exported model can
/// compare its own outputs with them.
///
/// # Errors
/// If the patterns do not fit into memory, or a tensor has no safetensors form.
///
/// # Panics
/// As [`Decoder::forward`].
pub fn expected_of(model: &Decoder, tokens: Tensor<2, Int>) -> Result<Vec<u8>, ExchangeError> {
    let sites = model.pattern_sites();
    let (logits, seen) = model
        .logits_and_activations(tokens.clone(), &sites, &mut NoProbe)
        .map_err(|error| cannot_be_written(error.to_string()))?;
    let mut tensors = BTreeMap::from([
        ("tokens".to_owned(), tokens.float().into_data()),
        ("logits".to_owned(), logits.into_data()),
    ]);
    for (layer, site) in sites.into_iter().enumerate() {
        let pattern = seen.tensor::<4>(site).into_data();
        tensors.insert(format!("pattern.{layer}"), pattern);
    }
    serialize(&tensors, None).map_err(cannot_be_written)
}

fn cannot_be_written(reason: String) -> ExchangeError {
    ExchangeError::File {
        file: "expected.safetensors".to_owned(),
        reason,
    }
}
