//! What happens to a head's role while a model trains.

use crate::named::named;

/// What happened to a head's role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RoleEvent {
    /// The head took the role on.
    Emerged,
    /// The head looks like no role any more.
    Lost,
}

impl RoleEvent {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Emerged, Self::Lost];

    /// The name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Emerged => "role_emerged",
            Self::Lost => "role_lost",
        }
    }

    fn all() -> [Self; Self::ALL.len()] {
        Self::ALL
    }
}

named!(RoleEvent, "event");
