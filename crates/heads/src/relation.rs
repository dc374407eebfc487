//! Which word depends on which.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Inside one sequence, the word at `dependent` depends on the word at `source`.
///
/// In files it is a list of three.
///
/// ```
/// use headlight_heads::Relation;
///
/// let relation: Relation = serde_json::from_str(r#"["verb→subject",5,1]"#).unwrap();
/// assert_eq!((&*relation.name, relation.dependent, relation.source), ("verb→subject", 5, 1));
/// assert!(relation.is_visible());
/// assert_eq!(serde_json::to_string(&relation).unwrap(), r#"["verb→subject",5,1]"#);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Relation {
    /// The relation's name, for example `verb→subject`.
    pub name: Cow<'static, str>,
    /// The position of the word that depends.
    pub dependent: usize,
    /// The position of the word it depends on.
    pub source: usize,
}

/// Name, dependent, source.
type Written = (Cow<'static, str>, usize, usize);

impl From<Written> for Relation {
    fn from((name, dependent, source): Written) -> Self {
        Self {
            name,
            dependent,
            source,
        }
    }
}

impl From<Relation> for Written {
    fn from(relation: Relation) -> Self {
        (relation.name, relation.dependent, relation.source)
    }
}

impl Relation {
    /// Whether a causal head can attend from the dependent to the source, which is so if the source
    /// stands earlier.
    #[must_use]
    pub fn is_visible(&self) -> bool {
        self.source < self.dependent
    }
}
