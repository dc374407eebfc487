//! A model's outputs for some tokens, with which a reader of its weights can be checked.

use std::collections::BTreeMap;

use burn::tensor::{Int, Tensor};

use super::ExchangeError;
use crate::{Capture, Decoder, tensor_file::serialize};

/// A safetensors file with `tokens [batch, pos]` (as f32), `logits [batch, pos, vocabulary]` and,
/// for each layer, `pattern.{l} [batch, head, query, key]`: a reader of an exported model can
/// compare its own outputs with them.
///
/// # Errors
/// If a tensor has no safetensors form.
///
/// # Panics
/// As [`Decoder::forward`].
pub fn expected_of(model: &Decoder, tokens: Tensor<2, Int>) -> Result<Vec<u8>, ExchangeError> {
    let sites = model.pattern_sites();
    let mut capture = Capture::new(&sites, usize::MAX);
    let logits = model.forward_probed(tokens.clone(), &mut capture);
    let mut tensors = BTreeMap::from([
        ("tokens".to_owned(), tokens.float().into_data()),
        ("logits".to_owned(), logits.into_data()),
    ]);
    for (layer, site) in sites.into_iter().enumerate() {
        tensors.extend(
            capture
                .get::<4>(site)
                .map(|pattern| (format!("pattern.{layer}"), pattern.into_data())),
        );
    }
    serialize(&tensors, None).map_err(|reason| ExchangeError::File {
        file: "expected.safetensors".to_owned(),
        reason,
    })
}
