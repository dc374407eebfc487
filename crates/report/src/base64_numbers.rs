//! Numbers in JSON as base64: a third more than their bytes, where digits would take three times as
//! much.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// 32-bit floats, little-endian.
///
/// ```
/// use headlight_report::Floats;
///
/// let json = serde_json::to_string(&Floats(vec![1.0, -2.5]))?;
/// assert_eq!(json, "\"AACAPwAAIMA=\""); // 00 00 80 3f, 00 00 20 c0
/// assert_eq!(serde_json::from_str::<Floats>(&json)?.0, [1.0, -2.5]);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Floats(pub Vec<f32>);

/// Bytes of which many are 0, as the weights of patterns are: a run of zeros is written as 0 and its
/// length, at most 255.
///
/// ```
/// use headlight_report::Bytes;
///
/// let json = serde_json::to_string(&Bytes(vec![7, 0, 0, 0, 9]))?;
/// assert_eq!(json, "\"BwADCQ==\""); // 07, 00 03, 09
/// assert_eq!(serde_json::from_str::<Bytes>(&json)?.0, [7, 0, 0, 0, 9]);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bytes(pub Vec<u8>);

impl Serialize for Floats {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let bytes: Vec<u8> = self
            .0
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect();
        serializer.serialize_str(&STANDARD.encode(bytes))
    }
}

impl<'de> Deserialize<'de> for Floats {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = decoded(deserializer)?;
        let (numbers, rest) = bytes.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(D::Error::custom(format!(
                "{} bytes are no 32-bit floats",
                bytes.len()
            )));
        }
        Ok(Self(
            numbers
                .iter()
                .map(|bytes| f32::from_le_bytes(*bytes))
                .collect(),
        ))
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(with_runs(&self.0)))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let coded = decoded(deserializer)?;
        Ok(Self(without_runs(&coded)))
    }
}

fn decoded<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    STANDARD.decode(text).map_err(D::Error::custom)
}

/// Each run of zeros as 0 and its length.
fn with_runs(bytes: &[u8]) -> Vec<u8> {
    let mut coded = Vec::new();
    for run in bytes.chunk_by(|a, b| *a == 0 && *b == 0) {
        if run[0] != 0 {
            coded.extend_from_slice(run);
            continue;
        }
        for part in run.chunks(usize::from(u8::MAX)) {
            coded.extend([0, part.len() as u8]);
        }
    }
    coded
}

fn without_runs(coded: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = coded.iter();
    while let Some(&byte) = rest.next() {
        let count = if byte == 0 {
            rest.next().copied().unwrap_or(0)
        } else {
            1
        };
        bytes.extend(std::iter::repeat_n(byte, usize::from(count)));
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_of_zeros_comes_back() {
        for zeros in [0, 1, 2, 254, 255, 256, 700] {
            for (before, after) in [(0, 0), (1, 0), (0, 2), (3, 1)] {
                let bytes = [vec![5; before], vec![0; zeros], vec![255; after]].concat();
                assert_eq!(without_runs(&with_runs(&bytes)), bytes, "{zeros} zeros");
            }
        }
        assert_eq!(with_runs(&[0; 1000]).len(), 8);
    }
}
