//! The keys of `config.json` about layers with and without a window.

use serde_json::{Map, Value, json};

use super::{ExchangeError, keys::Keys};
use crate::DecoderConfig;

const KEY: &str = "layer_types";
const WINDOWED: &str = "sliding_attention";
const FULL: &str = "full_attention";

/// The window, and the layers that have none. Where the file does not name the kind of each layer,
/// `is_full` says it.
pub fn read(
    keys: &mut Keys<'_>,
    window: Option<usize>,
    n_layers: usize,
    is_full: impl Fn(usize) -> bool,
) -> Result<(Option<usize>, Vec<usize>), ExchangeError> {
    let full_layers: Vec<usize> = match keys.texts(KEY)? {
        None => (0..n_layers).filter(|&layer| is_full(layer)).collect(),
        Some(kinds) => {
            if kinds.len() != n_layers {
                let reason = format!("must have an entry for each of {n_layers} layers");
                return Err(keys.refused(KEY, &json!(kinds), &reason));
            }
            let is_known = |kind: &&str| [WINDOWED, FULL].contains(kind);
            if let Some(kind) = kinds.iter().find(|kind| !is_known(kind)) {
                let reason = format!("must be {WINDOWED} or {FULL}");
                return Err(keys.refused(KEY, &json!(kind), &reason));
            }
            if window.is_none() && kinds.contains(&WINDOWED) {
                return Err(keys.refused(KEY, &json!(WINDOWED), "there is no sliding_window"));
            }
            (0..n_layers)
                .filter(|&layer| kinds[layer] == FULL)
                .collect()
        }
    };
    match window {
        Some(window) if full_layers.len() < n_layers => Ok((Some(window), full_layers)),
        _ => Ok((None, Vec::new())),
    }
}

/// Adds the window and the kind of each layer.
pub fn write(keys: &mut Map<String, Value>, config: &DecoderConfig) {
    let kind = |layer| match config.window_of(layer) {
        Some(_) => WINDOWED,
        None => FULL,
    };
    let kinds: Vec<&str> = (0..config.n_layers).map(kind).collect();
    keys.insert(KEY.to_owned(), json!(kinds));
    keys.insert("sliding_window".to_owned(), json!(config.window));
}
