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
    check_header(bytes)?;
    SafeTensors::deserialize(bytes).map_err(|error| error.to_string())
}

/// That the header is no longer than it may be.
pub(crate) fn check_header(bytes: &[u8]) -> Result<(), String> {
    match bytes.first_chunk().map(|&size| u64::from_le_bytes(size)) {
        Some(size) if size > MOST_HEADER_BYTES => Err(format!(
            "its header has {size} bytes, more than {MOST_HEADER_BYTES}"
        )),
        _ => Ok(()),
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
    let float = Float::of(name, view.dtype())?;
    Ok(TensorData::new(
        float.decode(view.data()),
        view.shape().to_vec(),
    ))
}

/// A floating-point type in which weights are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Float {
    F32,
    F16,
    Bf16,
}

impl Float {
    /// The type of the tensor `name`.
    pub fn of(name: &str, dtype: Dtype) -> Result<Self, String> {
        match dtype {
            Dtype::F32 => Ok(Self::F32),
            Dtype::F16 => Ok(Self::F16),
            Dtype::BF16 => Ok(Self::Bf16),
            dtype => Err(format!("{name} holds {dtype:?}, not f32, f16 or bf16")),
        }
    }

    /// Numbers as they are stored, in f32.
    pub fn decode(self, bytes: &[u8]) -> Vec<f32> {
        match self {
            Self::F32 => each(bytes, f32::from_le_bytes),
            Self::F16 => each(bytes, |bytes| f16::from_le_bytes(bytes).to_f32()),
            Self::Bf16 => each(bytes, |bytes| bf16::from_le_bytes(bytes).to_f32()),
        }
    }
}

fn each<const SIZE: usize>(bytes: &[u8], number: fn([u8; SIZE]) -> f32) -> Vec<f32> {
    let (numbers, _) = bytes.as_chunks();
    numbers.iter().map(|&bytes| number(bytes)).collect()
}
