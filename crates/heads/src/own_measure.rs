//! Measures that a program adds to those that every program has.

use std::{error::Error, fmt, sync::OnceLock};

use crate::{HeadSet, Measure, Role, ScoreName};

/// A measure of one's own: which keys a head would attend to if it did one thing and nothing else.
///
/// The score of a head is the mean weight on these keys, over the queries that have any; its null,
/// its ceiling and its interval follow. Once it is [added](Measure::add), it stands in all tables,
/// files and pages beside the measures that every program has, and is a role.
///
/// ```
/// use headlight_heads::{Measure, TargetKeys};
///
/// struct TwoBack;
///
/// impl TargetKeys for TwoBack {
///     fn name(&self) -> &'static str {
///         "two back"
///     }
///
///     fn formula(&self) -> &'static str {
///         "mean over q ≥ 2 of A[q, q−2]"
///     }
///
///     fn does(&self) -> &'static str {
///         "looks two tokens back"
///     }
///
///     fn targets(&self, _tokens: &[u32], q: usize) -> Vec<usize> {
///         if q >= 2 { vec![q - 2] } else { Vec::new() }
///     }
///
///     fn asks_tokens(&self) -> bool {
///         false
///     }
/// }
///
/// Measure::add(vec![Box::new(TwoBack)])?;
/// let two_back: Measure = "two back".parse()?;
/// assert_eq!(two_back.targets(&[7, 8, 9, 7], 3), [1]);
/// assert_eq!(Measure::all().len(), Measure::BUILT_IN.len() + 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait TargetKeys: Send + Sync {
    /// The name of the score and of the role in files and tables.
    fn name(&self) -> &'static str;

    /// How the score is computed, in terms of the pattern `A[q, k]` and the tokens `x`.
    fn formula(&self) -> &'static str;

    /// What a head with a high score does, as the predicate of a sentence about it.
    fn does(&self) -> &'static str;

    /// The target keys of query `q`, which is a position in `tokens`; none if the measure says
    /// nothing about this query. A key after `q` cannot be seen and does not count, nor does a key
    /// that is named again.
    fn targets(&self, tokens: &[u32], q: usize) -> Vec<usize>;

    /// Whether targets depend on the tokens, and not on positions alone. Only then does a shuffled
    /// context say anything, and is a null of the score.
    fn asks_tokens(&self) -> bool {
        true
    }
}

/// A measure that the program has added: its place in the list, as small as a built-in one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct OwnMeasure(u16);

/// Names in files are read by serde, which cannot be handed a list of measures. So the list belongs
/// to the program: it is written once, before anything is read.
static ADDED: OnceLock<Vec<Box<dyn TargetKeys>>> = OnceLock::new();

impl OwnMeasure {
    /// The measures that this program has added.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let count = ADDED.get().map_or(0, Vec::len);
        (0..count as u16).map(Self)
    }

    /// What was added.
    ///
    /// # Panics
    /// Never: only what was added has a place.
    #[must_use]
    pub fn keys(self) -> &'static dyn TargetKeys {
        let added = ADDED.get().expect("there is a place in the list");
        &*added[self.0 as usize]
    }

    /// The keys that query `q` may see, in their order.
    pub(crate) fn targets(self, tokens: &[u32], q: usize) -> Vec<usize> {
        let mut keys = self.keys().targets(tokens, q);
        keys.retain(|&key| key <= q);
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

impl Measure {
    /// Adds the measures of a program to those that every program has, once and before any run is
    /// read or written. They live as long as the program.
    ///
    /// # Errors
    /// If measures were added before, or a name is empty or taken.
    pub fn add(measures: Vec<Box<dyn TargetKeys>>) -> Result<(), CannotAdd> {
        let sets = HeadSet::all().map(HeadSet::name);
        let mut taken: Vec<&str> = ScoreName::all().map(ScoreName::name).chain(sets).collect();
        taken.push(Role::Mixed.name());
        for measure in &measures {
            let name = measure.name();
            if name.trim().is_empty() || taken.contains(&name) {
                return Err(CannotAdd::Name(name));
            }
            taken.push(name);
        }
        ADDED.set(measures).map_err(|_| CannotAdd::Twice)
    }
}

/// Why measures cannot be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CannotAdd {
    /// The name is empty, or another score has it.
    Name(&'static str),
    /// Measures are added once.
    Twice,
}

impl fmt::Display for CannotAdd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) if name.trim().is_empty() => write!(f, "a measure has no name"),
            Self::Name(name) => write!(f, "the measure {name}: there is a score of this name"),
            Self::Twice => write!(f, "measures are added once"),
        }
    }
}

impl Error for CannotAdd {}

impl fmt::Debug for OwnMeasure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.keys().name())
    }
}
