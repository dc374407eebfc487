//! Which heads are interfered with together.

use crate::{Role, named::named};

/// What heads that are interfered with together have in common.
///
/// ```
/// use headlight_heads::{HeadSet, Measure, Role};
///
/// let induction = HeadSet::LooksLike(Role::Of(Measure::Induction));
/// assert_eq!((induction.name(), HeadSet::Layer.name()), ("induction", "layer"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HeadSet {
    /// They look like this: one head, or all heads of a role.
    LooksLike(Role),
    /// They are all heads of one layer.
    Layer,
}

impl HeadSet {
    /// Whatever a set can have in common.
    pub fn all() -> impl Iterator<Item = Self> {
        Role::all().map(Self::LooksLike).chain([Self::Layer])
    }

    /// The name in files and tables: that of the role, or `layer`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::LooksLike(role) => role.name(),
            Self::Layer => "layer",
        }
    }
}

named!(HeadSet, "set of heads");
