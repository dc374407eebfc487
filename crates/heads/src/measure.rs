//! Which keys a head would attend to if it did one thing and nothing else.

use crate::{OwnMeasure, named::named};

/// Makes the enum, [`Measure::BUILT_IN`] and what is said of each measure from one table, so that no
/// list can lack one.
macro_rules! measures {
    ($(
        $(#[$more:meta])*
        $measure:ident {
            name: $name:literal,
            formula: $formula:literal,
            does: $does:literal,
        }
    )+) => {
        /// A kind of attention, defined by its target keys: for query `q` over tokens `x`, the keys
        /// whose weights count.
        ///
        /// The score of a head is the mean, over the queries that have a target, of the weight on
        /// the targets. Its ceiling is the share of these queries that see a target: 1 without a
        /// window. On the same queries uniform causal attention scores the mean of
        /// `targets / (q + 1)`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Measure {
            $(
                #[doc = concat!("The head ", $does, ": `", $formula, "`.")]
                $(#[$more])*
                $measure,
            )+
            /// A measure that the program has [added](Measure::add).
            Own(OwnMeasure),
        }

        impl Measure {
            /// The measures that every program has, in the order of tables.
            pub const BUILT_IN: [Self; [$($name),+].len()] = [$(Self::$measure),+];

            /// The name in files and tables; the score and the role bear the same name.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$measure => $name,)+
                    Self::Own(own) => own.keys().name(),
                }
            }

            /// How the score is computed.
            #[must_use]
            pub fn formula(self) -> &'static str {
                match self {
                    $(Self::$measure => $formula,)+
                    Self::Own(own) => own.keys().formula(),
                }
            }

            /// What a head with a high score does, as the predicate of a sentence about it.
            #[must_use]
            pub fn does(self) -> &'static str {
                match self {
                    $(Self::$measure => $does,)+
                    Self::Own(own) => own.keys().does(),
                }
            }
        }
    };
}

measures! {
    PreviousToken {
        name: "previous token",
        formula: "mean over q ≥ 1 of A[q, q−1]",
        does: "looks one token back",
    }
    CurrentToken {
        name: "current token",
        formula: "mean over q ≥ 1 of A[q, q]",
        does: "looks at the current token itself",
    }
    FirstToken {
        name: "first token",
        formula: "mean over q ≥ 1 of A[q, 0]",
        does: "looks at the first token",
    }
    DuplicateToken {
        name: "duplicate token",
        formula: "mean over queries q whose token stood before: Σ A[q, j] over j < q with x[j] = x[q]",
        does: "looks at the places where the current token stood before",
    }
    /// (Olsson et al. 2022)
    Induction {
        name: "induction",
        formula: "mean over queries q whose token stood before: Σ A[q, j] over 0 < j ≤ q with x[j−1] = x[q], j−1 < q",
        does: "looks at the token that followed the current token last time",
    }
}

impl Measure {
    /// All measures, in the order of tables: those that every program has, then those that this one
    /// has [added](Self::add).
    #[must_use]
    pub fn all() -> Vec<Self> {
        let own = OwnMeasure::all().map(Self::Own);
        Self::BUILT_IN.into_iter().chain(own).collect()
    }

    /// The target keys of query `q`; none if the measure says nothing about this query.
    ///
    /// ```
    /// use headlight_heads::Measure;
    ///
    /// let tokens = [7, 8, 9, 7]; // query 3 sees a 7, which stood at 0 and was followed by the token at 1
    /// assert_eq!(Measure::DuplicateToken.targets(&tokens, 3), [0]);
    /// assert_eq!(Measure::Induction.targets(&tokens, 3), [1]);
    /// assert_eq!(Measure::PreviousToken.targets(&tokens, 3), [2]);
    /// assert!(Measure::Induction.targets(&tokens, 2).is_empty());
    /// ```
    #[must_use]
    pub fn targets(self, tokens: &[u32], q: usize) -> Vec<usize> {
        self.each_target(tokens, q).collect()
    }

    /// [`targets`](Self::targets), one by one.
    pub fn each_target(self, tokens: &[u32], q: usize) -> impl Iterator<Item = usize> + '_ {
        let asks_tokens = self.asks_tokens();
        let own = match self {
            Self::Own(own) => own.targets(tokens, q),
            _ => Vec::new(),
        };
        // Targets stand so far after the keys that are looked through.
        let (keys, after) = match self {
            Self::Own(_) => (0..0, 0),
            _ if q == 0 => (0..0, 0),
            Self::PreviousToken => (q - 1..q, 0),
            Self::CurrentToken => (q..q + 1, 0),
            Self::FirstToken => (0..1, 0),
            Self::DuplicateToken => (0..q, 0),
            Self::Induction => (0..q, 1),
        };
        let built_in = keys
            .filter(move |&key| !asks_tokens || tokens[key] == tokens[q])
            .map(move |key| key + after);
        own.into_iter().chain(built_in)
    }

    /// Whether targets are found by a token equal to the query's, and not by position alone. Only
    /// then does a shuffled context say anything: a head that goes by position does not care.
    #[must_use]
    pub fn asks_tokens(self) -> bool {
        match self {
            Self::Own(own) => own.keys().asks_tokens(),
            Self::PreviousToken | Self::CurrentToken | Self::FirstToken => false,
            Self::DuplicateToken | Self::Induction => true,
        }
    }
}

named!(Measure, "measure");
