//! Reading a Hugging Face folder.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use safetensors::{SafeTensors, tensor::TensorInfo};
use serde_json::{Map, Value};

use super::{
    ExchangeError,
    stored_tensor::{StoredTensor, map, wrong},
    tensor_type::TensorType,
};
use crate::tensor_file::{Float, check_header};

/// The size limit of a JSON file: the list of 700 tensors has 60 KB. Small values in a hostile file
/// take 100 times their bytes in memory.
const MOST_JSON_BYTES: u64 = 128 << 10;

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

/// The shape of the buffer that old versions of `transformers` stored under a name, beside the
/// parameters: a mask, or angles. `None` if no buffer has this name.
pub type ShapeOfBuffer<'a> = &'a dyn Fn(&str) -> Option<Vec<usize>>;

/// Every tensor of `model.safetensors`, or of the shards that its index lists, but the buffers. Where
/// both are there, the single file is read, as by `transformers`: the index is of an earlier save.
pub fn read_tensors(
    folder: &Path,
    buffer: ShapeOfBuffer<'_>,
) -> Result<BTreeMap<String, StoredTensor>, ExchangeError> {
    let single = folder.join("model.safetensors");
    let index = folder.join("model.safetensors.index.json");
    if single.exists() || !index.is_file() {
        return read_file(&single, buffer);
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
        for (name, data) in read_file(&folder.join(shard), buffer)? {
            if shard_of.get(&name).and_then(Value::as_str) != Some(shard) {
                return Err(ExchangeError::LeftOver(format!("{name} in {shard}")));
            }
            tensors.insert(name, data);
        }
    }
    let is_missing = |name: &&String| !tensors.contains_key(*name) && buffer(name).is_none();
    match shard_of.keys().find(is_missing) {
        Some(name) => Err(ExchangeError::Missing(name.clone())),
        None => Ok(tensors),
    }
}

/// The tensors of a file. Buffers need not be floats: they must have their shape, and are left out.
fn read_file(
    path: &Path,
    buffer: ShapeOfBuffer<'_>,
) -> Result<BTreeMap<String, StoredTensor>, ExchangeError> {
    let file = map(path)?;
    check_header(&file).map_err(|reason| wrong(path, reason))?;
    let (header, metadata) =
        SafeTensors::read_metadata(&file).map_err(|error| wrong(path, error))?;
    let data = size_of::<u64>() + header;
    // By name, so that of several faults the same one is told each time.
    let infos: BTreeMap<String, &TensorInfo> = metadata.tensors().into_iter().collect();
    let mut tensors = BTreeMap::new();
    for (name, info) in infos {
        let shape = info.shape.clone();
        match buffer(&name) {
            Some(expected) if expected == shape => continue,
            Some(expected) => {
                return Err(ExchangeError::Shape {
                    name,
                    found: shape,
                    expected,
                });
            }
            None => {}
        }
        let float = Float::of(&name, info.dtype).map_err(|reason| wrong(path, reason))?;
        let (from, to) = info.data_offsets;
        let stored = StoredTensor {
            shape,
            kind: TensorType::Float(float),
            paired_heads: None,
            file: file.clone(),
            bytes: data + from..data + to,
        };
        tensors.insert(name, stored);
    }
    Ok(tensors)
}

/// What stands behind `{layers}.{layer}.` in a name, if the model has such a layer.
pub fn name_in_layer<'a>(name: &'a str, layers: &str, n_layers: usize) -> Option<&'a str> {
    let (layer, rest) = name
        .strip_prefix(layers)?
        .strip_prefix('.')?
        .split_once('.')?;
    let number: usize = layer.parse().ok()?;
    (number < n_layers && number.to_string() == layer).then_some(rest)
}
