//! Tensors that are still in their file.

use std::{fs, io, ops::Range, path::Path, sync::Arc};

use burn::tensor::TensorData;
use memmap2::Mmap;

use super::{ExchangeError, tensor_type::TensorType};

/// The largest file of tensors that is mapped: far above any mini-transformer. What is promised of
/// hostile files stands in `headlight-run`, module `untrusted`.
const MOST_FILE_BYTES: u64 = 64 << 30;

/// A tensor in a mapped file. It takes no memory until it is read, and is read once, so a model is
/// loaded without a second copy.
#[derive(Debug, Clone)]
pub struct StoredTensor {
    /// Rows first, as in PyTorch.
    pub shape: Vec<usize>,
    pub kind: TensorType,
    /// The heads whose rotary pairs lie side by side, where a file has them so: row `2i + h` of a
    /// head is component `i + h·d_head/2` of this model's.
    pub paired_heads: Option<usize>,
    pub file: Arc<Mmap>,
    /// Whole blocks of the kind, as many as the shape needs.
    pub bytes: Range<usize>,
}

impl StoredTensor {
    /// The numbers in f32.
    pub fn read(&self) -> TensorData {
        let values = self.kind.decode(&self.file[self.bytes.clone()]);
        let values = match self.paired_heads {
            Some(heads) => {
                pairs_apart(&values, self.shape[0] / heads, values.len() / self.shape[0])
            }
            None => values,
        };
        TensorData::new(values, self.shape.clone())
    }

    /// The number of numbers.
    pub fn count(&self) -> usize {
        self.shape.iter().product()
    }
}

/// Rows `0, 2, 4, …` of each head, then its rows `1, 3, 5, …`.
fn pairs_apart(values: &[f32], d_head: usize, width: usize) -> Vec<f32> {
    let mut apart = Vec::with_capacity(values.len());
    for head in values.chunks(d_head * width) {
        for half in 0..2 {
            for pair in head.chunks(2 * width) {
                apart.extend_from_slice(&pair[half * width..][..width]);
            }
        }
    }
    apart
}

/// Maps a file of tensors.
pub fn map(file: &Path) -> Result<Arc<Mmap>, ExchangeError> {
    let metadata = fs::metadata(file).map_err(|error| wrong(file, error))?;
    // A pipe or a device might not end.
    if !metadata.is_file() {
        return Err(wrong(file, "is not a file"));
    }
    if metadata.len() > MOST_FILE_BYTES {
        let reason = format_args!("has {} bytes, more than {MOST_FILE_BYTES}", metadata.len());
        return Err(wrong(file, reason));
    }
    let opened = fs::File::open(file).map_err(|error| wrong(file, error))?;
    Ok(Arc::new(
        map_open(&opened).map_err(|error| wrong(file, error))?,
    ))
}

#[expect(
    unsafe_code,
    reason = "a mapped file must not be cut short meanwhile; that cannot be ruled out, only asked for"
)]
fn map_open(file: &fs::File) -> io::Result<Mmap> {
    // SAFETY: the mapping is only read, and every reader takes any bytes. A file that is cut short
    // while a model is loaded ends the process, as the documentation of the doors warns.
    unsafe { Mmap::map(file) }
}

/// An error about a file.
pub fn wrong(file: &Path, reason: impl ToString) -> ExchangeError {
    ExchangeError::File {
        file: file.display().to_string(),
        reason: reason.to_string(),
    }
}
