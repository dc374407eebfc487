//! Which run is changed, and by what.

use crate::named::named;

/// Which run is changed, and by what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PatchDirection {
    /// Corrupted values are put into the clean run: which edges does the answer need?
    #[default]
    Noise,
    /// Clean values are put into the corrupted run: which edges bring the answer back?
    Denoise,
}

impl PatchDirection {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Noise, Self::Denoise];

    /// The name in files and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Noise => "noise",
            Self::Denoise => "denoise",
        }
    }

    fn all() -> [Self; Self::ALL.len()] {
        Self::ALL
    }
}

named!(PatchDirection, "direction");
