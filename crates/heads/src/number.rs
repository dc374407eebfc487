//! Numbers in files that may be no numbers: JSON has neither NaN nor infinities.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, Visitor},
};

/// A number as it stands in a file: JSON's number where it is finite, else the text `NaN`, `inf` or
/// `-inf`. A model whose weights are no numbers any more scores these, and its rows can still be
/// read.
///
/// As `#[serde(with = "headlight_heads::number")]` for a field of type `f64`;
/// [`optional`] is for one of type `Option<f64>`.
///
/// ```
/// use headlight_heads::number::Number;
///
/// let text = serde_json::to_string(&[0.25, f64::NAN, f64::NEG_INFINITY].map(Number)).unwrap();
/// assert_eq!(text, r#"[0.25,"NaN","-inf"]"#);
/// let [quarter, nan, infinite]: [Number; 3] = serde_json::from_str(&text).unwrap();
/// assert_eq!((quarter.0, infinite.0), (0.25, f64::NEG_INFINITY));
/// assert!(nan.0.is_nan());
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Number(pub f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_finite() {
            serializer.serialize_f64(self.0)
        } else {
            serializer.collect_str(&self.0)
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}

struct NumberVisitor;

impl Visitor<'_> for NumberVisitor {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a number, \"NaN\", \"inf\" or \"-inf\"")
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Number, E> {
        Ok(Number(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Number, E> {
        Ok(Number(value as f64))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Number, E> {
        Ok(Number(value as f64))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Number, E> {
        match text {
            "NaN" => Ok(Number(f64::NAN)),
            "inf" => Ok(Number(f64::INFINITY)),
            "-inf" => Ok(Number(f64::NEG_INFINITY)),
            _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
        }
    }
}

/// Writes a [`Number`].
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    Number(*value).serialize(serializer)
}

/// Reads a [`Number`].
///
/// # Errors
/// If it is neither a number nor the text of one that JSON does not have.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Number::deserialize(deserializer).map(|Number(value)| value)
}

/// A [`Number`] that may be left out.
pub mod optional {
    use super::{Deserialize, Deserializer, Number, Serialize, Serializer};

    /// Writes a [`Number`] or nothing.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
        value.map(Number).serialize(serializer)
    }

    /// Reads a [`Number`] or nothing.
    ///
    /// # Errors
    /// If it is neither a number nor the text of one that JSON does not have.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<f64>, D::Error> {
        let number = Option::<Number>::deserialize(deserializer)?;
        Ok(number.map(|Number(value)| value))
    }
}
