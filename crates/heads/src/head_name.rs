//! How heads are written.

use std::{error::Error, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A head, written `L0H1`: the second head of the first layer.
///
/// ```
/// use headlight_heads::HeadName;
///
/// let head: HeadName = "L1H2".parse()?;
/// assert_eq!((head.layer, head.head), (1, 2));
/// assert_eq!("H2".parse::<HeadName>().unwrap_err().to_string(), "H2 is no head, heads are written L0H1");
/// # Ok::<(), headlight_heads::NotAHead>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HeadName {
    /// The block, counted from 0.
    pub layer: usize,
    /// The head in it, counted from 0.
    pub head: usize,
}

impl fmt::Display for HeadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("L{}H{}", self.layer, self.head))
    }
}

/// A text that names no head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAHead(String);

impl fmt::Display for NotAHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is no head, heads are written L0H1", self.0)
    }
}

impl Error for NotAHead {}

impl FromStr for HeadName {
    type Err = NotAHead;

    fn from_str(text: &str) -> Result<Self, NotAHead> {
        let parse = || {
            let (layer, head) = text.strip_prefix('L')?.split_once('H')?;
            Some(Self {
                layer: layer.parse().ok()?,
                head: head.parse().ok()?,
            })
        };
        // One spelling for each head: no L0H01, no L+0H1.
        parse()
            .filter(|head| head.to_string() == text)
            .ok_or_else(|| NotAHead(text.to_owned()))
    }
}

impl Serialize for HeadName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HeadName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}
