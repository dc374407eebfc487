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

/// The size limit of a file of tensors, far above any mini-transformer.
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

/// Every tensor of `model.safetensors`, or of the shards that its index lists.
pub fn read_tensors(folder: &Path) -> Result<BTreeMap<String, TensorData>, ExchangeError> {
    let index = folder.join("model.safetensors.index.json");
    if !index.is_file() {
        return read_file(&folder.join("model.safetensors"));
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

/// Keys of a configuration, with the defaults of `transformers`.
pub struct Keys<'a>(pub &'a Map<String, Value>);

impl Keys<'_> {
    fn present(&self, key: &str) -> Option<&Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    pub fn size(&self, key: &'static str) -> Result<Option<usize>, ExchangeError> {
        let size = |value: &Value| value.as_u64().and_then(|size| usize::try_from(size).ok());
        // Products of such sizes do not overflow.
        let size = |value: &Value| size(value).filter(|size| (1..=1 << 20).contains(size));
        self.typed(key, size, "must be a whole number from 1 to 1048576")
    }

    pub fn required_size(&self, key: &'static str) -> Result<usize, ExchangeError> {
        self.size(key)?
            .ok_or_else(|| refused(key, &Value::Null, "is missing"))
    }

    pub fn number(&self, key: &'static str, default: f64) -> Result<f64, ExchangeError> {
        let positive = |value: &Value| value.as_f64().filter(|number| *number > 0.0);
        Ok(self
            .typed(key, positive, "must be a number above 0")?
            .unwrap_or(default))
    }

    pub fn flag(&self, key: &'static str, default: bool) -> Result<bool, ExchangeError> {
        Ok(self
            .typed(key, Value::as_bool, "must be true or false")?
            .unwrap_or(default))
    }

    pub fn text<'b>(
        &'b self,
        key: &'static str,
        default: &'b str,
    ) -> Result<&'b str, ExchangeError> {
        match self.present(key) {
            None => Ok(default),
            Some(value) => value
                .as_str()
                .ok_or_else(|| refused(key, value, "must be text")),
        }
    }

    fn typed<T>(
        &self,
        key: &'static str,
        read: impl Fn(&Value) -> Option<T>,
        reason: &str,
    ) -> Result<Option<T>, ExchangeError> {
        self.present(key)
            .map(|value| read(value).ok_or_else(|| refused(key, value, reason)))
            .transpose()
    }
}

pub fn refused(key: &'static str, value: &Value, reason: &str) -> ExchangeError {
    ExchangeError::Config {
        key,
        value: value.to_string(),
        reason: reason.to_owned(),
    }
}
