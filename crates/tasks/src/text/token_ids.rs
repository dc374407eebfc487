//! The ids of a text's tokens, in memory or mapped from a file.

use std::{ops::Range, sync::Arc};

use memmap2::Mmap;

/// Token ids in a row, each in as many bytes as the vocabulary needs, the lowest byte first.
#[derive(Clone)]
pub struct TokenIds {
    bytes: Bytes,
    /// Where the ids are in them.
    range: Range<usize>,
    /// Bytes of an id: 1, 2 or 4.
    width: usize,
}

#[derive(Clone)]
enum Bytes {
    Mapped(Arc<Mmap>),
    Held(Arc<Vec<u8>>),
}

impl TokenIds {
    /// The ids in `range` of a file.
    pub fn mapped(file: &Arc<Mmap>, range: Range<usize>, width: usize) -> Self {
        Self {
            bytes: Bytes::Mapped(file.clone()),
            range,
            width,
        }
    }

    /// Ids in memory.
    pub fn held(bytes: Vec<u8>, width: usize) -> Self {
        Self {
            range: 0..bytes.len(),
            bytes: Bytes::Held(Arc::new(bytes)),
            width,
        }
    }

    /// Bytes of an id where `vocabulary` is the number of tokens.
    pub fn width_for(vocabulary: usize) -> usize {
        if vocabulary <= 1 << 16 { 2 } else { 4 }
    }

    pub fn len(&self) -> usize {
        self.range.len() / self.width
    }

    /// Some of these, without copying them.
    pub fn part(&self, ids: Range<usize>) -> Self {
        let start = self.range.start + ids.start * self.width;
        Self {
            range: start..start + ids.len() * self.width,
            ..self.clone()
        }
    }

    /// The ids at `places`.
    pub fn window(&self, places: Range<usize>) -> Vec<u32> {
        let range = self.part(places).range;
        let bytes = match &self.bytes {
            Bytes::Mapped(file) => &file[range],
            Bytes::Held(bytes) => &bytes[range],
        };
        let id = |bytes: &[u8]| {
            let mut four = [0; 4];
            four[..bytes.len()].copy_from_slice(bytes);
            u32::from_le_bytes(four)
        };
        bytes.chunks_exact(self.width).map(id).collect()
    }
}
