//! What happens to a head's role while a model trains.

use crate::named::named;

/// What happened to a head's role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RoleEvent {
    /// The head took the role on.
    Emerged,
    /// The head looks like no role any more.
    Lost,
    /// The head took the role on at some positions, without looking like it as a whole.
    RangeEmerged,
    /// The head holds the role at no positions any more.
    RangeLost,
}

impl RoleEvent {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Emerged,
        Self::Lost,
        Self::RangeEmerged,
        Self::RangeLost,
    ];

    /// The name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Emerged => "role_emerged",
            Self::Lost => "role_lost",
            Self::RangeEmerged => "range_emerged",
            Self::RangeLost => "range_lost",
        }
    }

    fn all() -> [Self; Self::ALL.len()] {
        Self::ALL
    }
}

named!(RoleEvent, "event");
