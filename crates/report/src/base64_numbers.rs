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

/// Bytes as they are.
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
        let Bytes(bytes) = Bytes::deserialize(deserializer)?;
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
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map(Self).map_err(D::Error::custom)
    }
}
