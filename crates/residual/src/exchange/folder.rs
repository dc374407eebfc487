//! Reading a Hugging Face folder.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use burn::tensor::TensorData;
use serde_json::{Map, Value};

use super::ExchangeError;
use crate::tensor_file::{data_of, open};

/// The largest file of tensors that is read: far above any mini-transformer. What is promised of
/// hostile files stands in `headlight-run`, module `untrusted`.
const MOST_TENSOR_BYTES: u64 = 4 << 30;
/// The size limit of a JSON file: the list of 700 tensors has 60 KB. Small values in a hostile file
/// take 100 times their bytes in memory.
const MOST_JSON_BYTES: u64 = 128 << 10;

fn wrong(file: &Path, reason: impl ToString) -> ExchangeError {
    ExchangeError::File {
        file: file.display().to_string(),
        reason: reason.to_string(),
    }
}

fn read(file: &Path, most: u64) -> Result<Vec<u8>, ExchangeError> {
    let metadata = fs::metadata(file).map_err(|error| wrong(file, error))?;
    let size = metadata.len();
    if size > most {
        return Err(wrong(
            file,
            format_args!("has {size} bytes, more than {most}"),
        ));
    }
    // A pipe or a device might not end.
    if !metadata.is_file() {
        return Err(wrong(file, "is not a file"));
    }
    fs::read(file).map_err(|error| wrong(file, error))
}

fn read_object(file: &Path) -> Result<Map<String, Value>, ExchangeError> {
    serde_json::from_slice(&read(file, MOST_JSON_BYTES)?).map_err(|error| wrong(file, error))
}

/// `config.json`
pub fn read_config(folder: &Path) -> Result<Map<String, Value>, ExchangeError> {
    read_object(&folder.join("config.json"))
}

/// Every tensor of `model.safetensors`, or of the shards that its index lists. Where both are there,
/// the single file is read, as by `transformers`: the index is of an earlier save.
pub fn read_tensors(folder: &Path) -> Result<BTreeMap<String, TensorData>, ExchangeError> {
    let single = folder.join("model.safetensors");
    let index = folder.join("model.safetensors.index.json");
    if single.exists() || !index.is_file() {
        return read_file(&single);
    }
    let object = read_object(&index)?;
    let shard_of = object.get("weight_map").and_then(Value::as_object);
    let shard_of = shard_of.ok_or_else(|| wrong(&index, "has no weight_map"))?;
    let mut tensors = BTreeMap::new();
    for shard in shard_of
        .values()
        .filter_map(Value::as_str)
        .collect::<BTreeSet<_>>()
    {
        // A shard is a file of the folder itself.
        if Path::new(shard).file_name() != Some(shard.as_ref()) {
            return Err(wrong(
                &index,
                format_args!("{shard} is not the name of a file"),
            ));
        }
        for (name, data) in read_file(&folder.join(shard))? {
            if shard_of.get(&name).and_then(Value::as_str) != Some(shard) {
                return Err(ExchangeError::LeftOver(format!("{name} in {shard}")));
            }
            tensors.insert(name, data);
        }
    }
    match shard_of.keys().find(|name| !tensors.contains_key(*name)) {
        Some(name) => Err(ExchangeError::Missing(name.clone())),
        None => Ok(tensors),
    }
}

fn read_file(file: &Path) -> Result<BTreeMap<String, TensorData>, ExchangeError> {
    let bytes = read(file, MOST_TENSOR_BYTES)?;
    let tensors = open(&bytes).map_err(|reason| wrong(file, reason))?;
    // Masks and angles in some files are not parameters and need not be floats.
    let parameters = tensors.iter().filter(|(name, _)| !is_buffer(name));
    parameters
        .map(|(name, view)| {
            Ok((
                name.to_owned(),
                data_of(name, &view).map_err(|reason| wrong(file, reason))?,
            ))
        })
        .collect()
}

/// Whether the tensor is a buffer that old versions of `transformers` stored with the parameters.
fn is_buffer(name: &str) -> bool {
    [".attn.bias", ".attn.masked_bias", ".rotary_emb.inv_freq"]
        .iter()
        .any(|end| name.ends_with(end))
}
