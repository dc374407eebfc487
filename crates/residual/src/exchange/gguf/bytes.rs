//! Reading numbers and texts of a GGUF file in their order, never past its end.

use std::ops::Range;

use super::metadata::{List, Value};

/// Lists of lists are read to this depth.
const MOST_NESTED: usize = 2;

/// A place in the bytes of a file.
pub struct Bytes<'a> {
    file: &'a [u8],
    at: usize,
    end: usize,
}

/// The types of values, by their numbers in the file.
impl Bytes<'_> {
    const U8: u32 = 0;
    const I8: u32 = 1;
    const U16: u32 = 2;
    const I16: u32 = 3;
    pub const U32: u32 = 4;
    pub const I32: u32 = 5;
    pub const F32: u32 = 6;
    const FLAG: u32 = 7;
    pub const TEXT: u32 = 8;
    const LIST: u32 = 9;
    const U64: u32 = 10;
    const I64: u32 = 11;
    const F64: u32 = 12;
}

impl<'a> Bytes<'a> {
    pub fn of(file: &'a [u8]) -> Self {
        Self::within(file, 0..file.len())
    }

    pub fn within(file: &'a [u8], range: Range<usize>) -> Self {
        Self {
            file,
            at: range.start,
            end: range.end,
        }
    }

    /// The place of the next byte.
    pub fn at(&self) -> usize {
        self.at
    }

    /// The bytes at a place that was read.
    pub fn bytes(&self, range: Range<usize>) -> &'a [u8] {
        &self.file[range]
    }

    pub fn u32(&mut self) -> Result<u32, String> {
        self.next().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, String> {
        self.next().map(u64::from_le_bytes)
    }

    /// The place of a text: its length, and as many bytes.
    pub fn text(&mut self) -> Result<Range<usize>, String> {
        let length = self.u64()?;
        self.skip(length)
    }

    /// A value of a type.
    pub fn value(&mut self, kind: u32) -> Result<Value, String> {
        self.value_at_depth(kind, 0)
    }

    fn value_at_depth(&mut self, kind: u32, depth: usize) -> Result<Value, String> {
        Ok(match kind {
            Self::U8 => Value::Whole(self.next().map(u8::from_le_bytes)?.into()),
            Self::I8 => Value::Whole(self.next().map(i8::from_le_bytes)?.into()),
            Self::U16 => Value::Whole(self.next().map(u16::from_le_bytes)?.into()),
            Self::I16 => Value::Whole(self.next().map(i16::from_le_bytes)?.into()),
            Self::U32 => Value::Whole(self.u32()?.into()),
            Self::I32 => Value::Whole(self.next().map(i32::from_le_bytes)?.into()),
            Self::U64 => Value::Whole(self.u64()?.into()),
            Self::I64 => Value::Whole(self.next().map(i64::from_le_bytes)?.into()),
            Self::F32 => Value::Number(self.next().map(f32::from_le_bytes)?.into()),
            Self::F64 => Value::Number(self.next().map(f64::from_le_bytes)?),
            Self::FLAG => Value::Flag(self.next().map(u8::from_le_bytes)? != 0),
            Self::TEXT => Value::Text(self.text()?),
            Self::LIST => Value::List(self.list(depth)?),
            _ => return Err(format!("has a value of the unknown type {kind}")),
        })
    }

    /// The type of the entries, their count, and the entries.
    fn list(&mut self, depth: usize) -> Result<List, String> {
        if depth == MOST_NESTED {
            return Err(format!("has lists within lists deeper than {MOST_NESTED}"));
        }
        let kind = self.u32()?;
        let count = self.u64()?;
        let from = self.at;
        match size_of(kind) {
            Some(size) => {
                let bytes = count.checked_mul(size).ok_or_else(ends_early)?;
                self.skip(bytes)?;
            }
            // Each entry moves on by a byte at least, so the end of the file ends this too.
            None => {
                for _ in 0..count {
                    self.value_at_depth(kind, depth + 1)?;
                }
            }
        }
        let count = usize::try_from(count).map_err(|_| ends_early())?;
        Ok(List {
            kind,
            count,
            bytes: from..self.at,
        })
    }

    fn skip(&mut self, count: u64) -> Result<Range<usize>, String> {
        let count = usize::try_from(count).map_err(|_| ends_early())?;
        if count > self.end - self.at {
            return Err(ends_early());
        }
        let range = self.at..self.at + count;
        self.at = range.end;
        Ok(range)
    }

    fn next<const COUNT: usize>(&mut self) -> Result<[u8; COUNT], String> {
        let range = self.skip(COUNT as u64)?;
        let mut bytes = [0; COUNT];
        bytes.copy_from_slice(&self.file[range]);
        Ok(bytes)
    }
}

/// The bytes of a value whose type has one size.
fn size_of(kind: u32) -> Option<u64> {
    match kind {
        Bytes::U8 | Bytes::I8 | Bytes::FLAG => Some(1),
        Bytes::U16 | Bytes::I16 => Some(2),
        Bytes::U32 | Bytes::I32 | Bytes::F32 => Some(4),
        Bytes::U64 | Bytes::I64 | Bytes::F64 => Some(8),
        _ => None,
    }
}

fn ends_early() -> String {
    "ends within its header".to_owned()
}
