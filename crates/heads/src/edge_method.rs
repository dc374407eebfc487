//! How the effect of an edge is found.

use crate::named::named;

/// How the effect of an edge is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum EdgeMethod {
    /// Each edge is patched.
    #[default]
    Exact,
    /// A first-order estimate of all edges from one gradient (edge attribution patching, Syed et al.
    /// 2023).
    Eap,
    /// The same with the gradient averaged on the way from one prompt to the other (Hanna et al.
    /// 2024).
    EapIg,
    /// As EAP, but for queries and keys softmax is recomputed, and whole parts have a gradient for
    /// each layer that is dropped (Kramár et al. 2024).
    AtpStar,
}

impl EdgeMethod {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Exact, Self::Eap, Self::EapIg, Self::AtpStar];

    /// The name in files and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Eap => "eap",
            Self::EapIg => "eap-ig",
            Self::AtpStar => "atp-star",
        }
    }

    fn all() -> [Self; Self::ALL.len()] {
        Self::ALL
    }
}

named!(EdgeMethod, "method");
