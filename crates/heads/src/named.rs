//! A word that files and tables spell is a type: it is written, read and ordered by its name.

use std::{error::Error, fmt};

/// A text that names nothing of its kind.
///
/// ```
/// use headlight_heads::Reader;
///
/// let error = "query".parse::<Reader>().unwrap_err();
/// assert_eq!(error.to_string(), "query is no reader, there are: queries, keys, values, logits");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownName {
    text: String,
    kind: &'static str,
    known: Vec<&'static str>,
}

impl UnknownName {
    pub(crate) fn new(text: &str, kind: &'static str, known: Vec<&'static str>) -> Self {
        Self {
            text: text.to_owned(),
            kind,
            known,
        }
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, kind, known } = self;
        write!(f, "{text} is no {kind}, there are: {}", known.join(", "))?;
        if matches!(*kind, "score" | "role" | "measure") {
            f.write_str("; a program can add others, and reads what it has written")?;
        }
        Ok(())
    }
}

impl Error for UnknownName {}

/// Implements `Display`, `FromStr`, serde's traits and the order by name for a type with `name` and
/// `all`. The second argument says what one of them is called in an error.
///
/// The order is that of the names as text, so that maps in files keep the order of their keys.
macro_rules! named {
    ($type:ty, $kind:literal) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::UnknownName;

            fn from_str(text: &str) -> Result<Self, $crate::UnknownName> {
                Self::all()
                    .into_iter()
                    .find(|known| known.name() == text)
                    .ok_or_else(|| {
                        let known = Self::all().into_iter().map(Self::name).collect();
                        $crate::UnknownName::new(text, $kind, known)
                    })
            }
        }

        impl Ord for $type {
            fn cmp(&self, other: &Self) -> std::cmp::Ordering {
                self.name().cmp(other.name())
            }
        }

        impl PartialOrd for $type {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                <String as serde::Deserialize>::deserialize(deserializer)?
                    .parse()
                    .map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use named;

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fmt::Debug, str::FromStr};

    use serde::{Serialize, de::DeserializeOwned};

    use crate::{
        Ablation, Corruption, EdgeMethod, HeadSet, Measure, Metric, PatchDirection, Reader, Role,
        RoleEvent, ScoreName, SequenceKind, UnknownName,
    };

    /// A name is JSON text, comes back as what it was, and belongs to one value only.
    fn check<T>(all: impl IntoIterator<Item = T>)
    where
        T: Debug
            + Ord
            + Copy
            + ToString
            + Serialize
            + DeserializeOwned
            + FromStr<Err = UnknownName>,
    {
        let mut seen = BTreeSet::new();
        for value in all {
            let name = value.to_string();
            let json = serde_json::to_string(&value).unwrap();
            assert_eq!(json, format!("\"{name}\""));
            assert_eq!(serde_json::from_str::<T>(&json).unwrap(), value);
            assert_eq!(name.parse(), Ok(value));
            assert!(seen.insert(value), "{name} names two");
        }
        let in_order: Vec<String> = seen.iter().map(ToString::to_string).collect();
        assert!(in_order.is_sorted(), "{in_order:?}");
    }

    #[test]
    fn every_name_comes_back_as_what_it_named() {
        check(Measure::BUILT_IN);
        check(ScoreName::all());
        check(Role::all());
        check(Reader::ALL);
        check(HeadSet::all());
        check(Ablation::ALL);
        check(RoleEvent::ALL);
        check(SequenceKind::ALL);
        check(EdgeMethod::ALL);
        check(Metric::ALL);
        check(PatchDirection::ALL);
        check(Corruption::ALL);
    }

    #[test]
    fn an_unknown_name_is_an_error_that_lists_the_known_ones() {
        let error = serde_json::from_str::<RoleEvent>("\"role_found\"").unwrap_err();
        let message =
            "role_found is no event, there are: role_emerged, role_lost, range_emerged, range_lost";
        assert_eq!(error.to_string(), message);
        let error = "sink".parse::<Role>().unwrap_err().to_string();
        for name in Measure::BUILT_IN.map(Measure::name) {
            assert!(error.contains(name), "{name} is not in: {error}");
        }
        assert!(error.starts_with("sink is no role, ") && error.contains(", mixed; a program"));
    }
}
