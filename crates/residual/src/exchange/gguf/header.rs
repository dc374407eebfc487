//! The header of a GGUF file: metadata, and where each tensor lies.
//!
//! Layout (the specification of GGUF, version 3): `GGUF`, version, the count of tensors, the count
//! of values, the values with their keys, the tensors with name, shape, type and place; then the
//! numbers, each tensor at a multiple of `general.alignment`. All numbers are little-endian.

use std::{collections::BTreeMap, path::Path};

use super::{
    bytes::Bytes,
    metadata::{Metadata, Value},
};
use crate::exchange::{
    ExchangeError,
    stored_tensor::{StoredTensor, map, wrong},
    tensor_type::TensorType,
};

const MAGIC: u32 = u32::from_le_bytes(*b"GGUF");
/// Version 1 had other sizes of numbers.
const VERSIONS: [u32; 2] = [2, 3];
/// Models with a hundred layers have 40 values and 2000 tensors. A value takes 150 bytes of memory
/// and a tensor 200.
const MOST_VALUES: u64 = 4096;
const MOST_TENSORS: u64 = 16 << 10;
const MOST_NAME_BYTES: usize = 256;
const MOST_AXES: u32 = 4;
const ALIGNMENT: &str = "general.alignment";

/// A GGUF file whose tensors are still in it.
#[derive(Debug)]
pub struct Header {
    pub metadata: Metadata,
    pub tensors: BTreeMap<String, StoredTensor>,
}

/// Reads the header of a file.
pub fn read(path: &Path) -> Result<Header, ExchangeError> {
    let file = map(path)?;
    let mut bytes = Bytes::of(&file);
    let parsed = parse(&mut bytes).map_err(|reason| wrong(path, reason))?;
    let alignment = match parsed.values.get(ALIGNMENT) {
        None => 32,
        Some(&Value::Whole(power)) if power > 0 && power <= 1 << 16 && power & (power - 1) == 0 => {
            power as usize
        }
        Some(_) => {
            return Err(wrong(
                path,
                format_args!("{ALIGNMENT} is no power of two up to 65536"),
            ));
        }
    };
    let data = bytes.at().next_multiple_of(alignment);
    let mut tensors = BTreeMap::new();
    for Place {
        name,
        shape,
        kind,
        offset,
    } in parsed.places
    {
        let kind = TensorType::of_ggml(kind).map_err(|kind| {
            wrong(
                path,
                format_args!("tensor {name} has type {kind}, which is not supported"),
            )
        })?;
        let range = range_of(&shape, kind, data, offset, alignment, file.len())
            .map_err(|reason| wrong(path, format_args!("tensor {name} {reason}")))?;
        let stored = StoredTensor {
            shape,
            kind,
            paired_heads: None,
            file: file.clone(),
            bytes: range,
        };
        if tensors.insert(name.clone(), stored).is_some() {
            return Err(wrong(path, format_args!("has two tensors {name}")));
        }
    }
    let stored: usize = tensors.values().map(|tensor| tensor.bytes.len()).sum();
    if stored > file.len() {
        return Err(wrong(path, "has tensors that lie in each other"));
    }
    Ok(Header {
        metadata: Metadata::new(path.to_owned(), file, parsed.values),
        tensors,
    })
}

/// What the header says, before it is compared with the file.
struct Parsed {
    values: BTreeMap<String, Value>,
    places: Vec<Place>,
}

struct Place {
    name: String,
    shape: Vec<usize>,
    kind: u32,
    offset: u64,
}

fn parse(bytes: &mut Bytes<'_>) -> Result<Parsed, String> {
    if bytes.u32() != Ok(MAGIC) {
        return Err("is no GGUF file".to_owned());
    }
    let version = bytes.u32()?;
    if VERSIONS.contains(&version.swap_bytes()) {
        return Err("is a GGUF file of a big-endian machine, which is not supported".to_owned());
    }
    if !VERSIONS.contains(&version) {
        return Err(format!(
            "is GGUF of version {version}; versions 2 and 3 are read"
        ));
    }
    let n_tensors = bytes.u64()?;
    let n_values = bytes.u64()?;
    if n_tensors > MOST_TENSORS {
        return Err(format!(
            "says it has {n_tensors} tensors, more than {MOST_TENSORS}"
        ));
    }
    if n_values > MOST_VALUES {
        return Err(format!(
            "says it has {n_values} values, more than {MOST_VALUES}"
        ));
    }
    let mut values = BTreeMap::new();
    for _ in 0..n_values {
        let key = bytes.name()?;
        let kind = bytes.u32()?;
        let value = bytes
            .value(kind)
            .map_err(|reason| format!("{key}: {reason}"))?;
        if values.insert(key.clone(), value).is_some() {
            return Err(format!("has two values {key}"));
        }
    }
    let places = (0..n_tensors)
        .map(|_| place(bytes))
        .collect::<Result<_, _>>()?;
    Ok(Parsed { values, places })
}

fn place(bytes: &mut Bytes<'_>) -> Result<Place, String> {
    let name = bytes.name()?;
    let axes = bytes.u32()?;
    if !(1..=MOST_AXES).contains(&axes) {
        return Err(format!(
            "tensor {name} has {axes} axes, not 1 to {MOST_AXES}"
        ));
    }
    let mut shape = Vec::new();
    for _ in 0..axes {
        let size = usize::try_from(bytes.u64()?).ok().filter(|&size| size > 0);
        shape.push(size.ok_or_else(|| format!("tensor {name} has an axis of no size"))?);
    }
    // The file has the axis first whose entries lie side by side.
    shape.reverse();
    let kind = bytes.u32()?;
    let offset = bytes.u64()?;
    Ok(Place {
        name,
        shape,
        kind,
        offset,
    })
}

/// Where the numbers of a tensor lie.
fn range_of(
    shape: &[usize],
    kind: TensorType,
    data: usize,
    offset: u64,
    alignment: usize,
    file: usize,
) -> Result<std::ops::Range<usize>, String> {
    let (numbers, size) = kind.block();
    let row = *shape.last().unwrap_or(&1);
    if !row.is_multiple_of(numbers) {
        return Err(format!(
            "has rows of {row} numbers, which are no whole blocks of {numbers}"
        ));
    }
    let ends_early = || format!("of shape {shape:?} does not lie in the file");
    let count = shape
        .iter()
        .try_fold(1_usize, |count, &size| count.checked_mul(size));
    let length = count
        .and_then(|count| (count / numbers).checked_mul(size))
        .ok_or_else(ends_early)?;
    let offset = usize::try_from(offset).map_err(|_| ends_early())?;
    if !offset.is_multiple_of(alignment) {
        return Err(format!(
            "lies at {offset}, which is no multiple of {alignment}"
        ));
    }
    let from = data.checked_add(offset).ok_or_else(ends_early)?;
    let to = from
        .checked_add(length)
        .filter(|&to| to <= file)
        .ok_or_else(ends_early)?;
    Ok(from..to)
}

impl Bytes<'_> {
    /// The name of a value or a tensor.
    fn name(&mut self) -> Result<String, String> {
        let range = self.text()?;
        if range.len() > MOST_NAME_BYTES {
            return Err(format!(
                "has a name of {} bytes, more than {MOST_NAME_BYTES}",
                range.len()
            ));
        }
        let name = std::str::from_utf8(self.bytes(range)).map(str::to_owned);
        name.map_err(|_| "has a name that is no UTF-8".to_owned())
    }
}
