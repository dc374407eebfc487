//! Tensors in safetensors files.

use std::collections::{BTreeMap, HashMap};

use burn::tensor::TensorData;
use half::{bf16, f16};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};

/// The longest header that is read, enough for 5000 tensors. A hostile one takes 25 times its
/// bytes; what is promised of hostile files stands in `headlight-run`, module `untrusted`.
const MOST_HEADER_BYTES: u64 = 512 << 10;

/// Opens a safetensors file; its tensors stay bytes.
pub(crate) fn open(bytes: &[u8]) -> Result<SafeTensors<'_>, String> {
    match bytes
        .first_chunk()
        .map(|&header| u64::from_le_bytes(header))
    {
        Some(header) if header > MOST_HEADER_BYTES => Err(format!(
            "its header has {header} bytes, more than {MOST_HEADER_BYTES}"
        )),
        _ => SafeTensors::deserialize(bytes).map_err(|error| error.to_string()),
    }
}

/// The tensors as a safetensors file in f32, in the order of their names.
pub(crate) fn serialize(
    tensors: &BTreeMap<String, TensorData>,
    metadata: Option<HashMap<String, String>>,
) -> Result<Vec<u8>, String> {
    let bytes: Vec<Vec<u8>> = tensors
        .values()
        .map(|data| data.iter::<f32>().flat_map(f32::to_le_bytes).collect())
        .collect();
    let views = tensors
        .iter()
        .zip(&bytes)
        .map(|((name, data), bytes)| {
            Ok((
                name,
                TensorView::new(Dtype::F32, data.shape().to_vec(), bytes)?,
            ))
        })
        .collect::<Result<Vec<_>, safetensors::SafeTensorError>>();
    views
        .and_then(|views| safetensors::serialize(views, metadata))
        .map_err(|error| error.to_string())
}

/// A stored tensor of any floating-point type, in f32.
pub(crate) fn data_of(name: &str, view: &TensorView<'_>) -> Result<TensorData, String> {
    let bytes = view.data();
    let values: Vec<f32> = match view.dtype() {
        Dtype::F32 => bytes
            .as_chunks()
            .0
            .iter()
            .map(|&value| f32::from_le_bytes(value))
            .collect(),
        Dtype::F16 => bytes
            .as_chunks()
            .0
            .iter()
            .map(|&value| f16::from_le_bytes(value).to_f32())
            .collect(),
        Dtype::BF16 => bytes
            .as_chunks()
            .0
            .iter()
            .map(|&value| bf16::from_le_bytes(value).to_f32())
            .collect(),
        dtype => return Err(format!("{name} holds {dtype:?}, not f32, f16 or bf16")),
    };
    Ok(TensorData::new(values, view.shape().to_vec()))
}
