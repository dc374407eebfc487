//! A configuration that cannot be right.

/// Why an attention module cannot be built; each message names the numbers that do not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A size is zero.
    #[error("{name} must be at least 1")]
    Zero {
        /// The setting.
        name: &'static str,
    },
    /// One number must divide the other.
    #[error("{dividend_name} {dividend} is not divisible by {divisor_name} {divisor}")]
    NotDivisible {
        /// The setting that must be a multiple.
        dividend_name: &'static str,
        /// Its value.
        dividend: usize,
        /// The setting that must divide it.
        divisor_name: &'static str,
        /// Its value.
        divisor: usize,
    },
    /// One number must not exceed the other.
    #[error("{smaller_name} {smaller} is more than {larger_name} {larger}")]
    TooLarge {
        /// The setting that is too large.
        smaller_name: &'static str,
        /// Its value.
        smaller: usize,
        /// The setting that bounds it.
        larger_name: &'static str,
        /// Its value.
        larger: usize,
    },
    /// A list must have so many entries.
    #[error("{list} has {found} entries, there are {needed} {of}")]
    Count {
        /// The list.
        list: &'static str,
        /// Its length.
        found: usize,
        /// The length it must have.
        needed: usize,
        /// What it has an entry for.
        of: &'static str,
    },
    /// Two parts cannot stand in one model.
    #[error("{one} cannot be combined with {other}")]
    DoNotCombine {
        /// One part.
        one: &'static str,
        /// The other.
        other: &'static str,
    },
    /// A list must rise.
    #[error("{name} must be in rising order")]
    NotRising {
        /// The setting.
        name: &'static str,
    },
    /// A number that must be positive and finite is not.
    #[error("{name} must be a positive finite number, not {value}")]
    NotPositive {
        /// The setting.
        name: &'static str,
        /// Its value as written.
        value: String,
    },
}

impl ConfigError {
    pub(crate) fn check_sizes(sizes: &[(&'static str, usize)]) -> Result<(), Self> {
        match sizes.iter().find(|(_, size)| *size == 0) {
            Some(&(name, _)) => Err(Self::Zero { name }),
            None => Ok(()),
        }
    }

    pub(crate) fn check_divides(
        dividend: (&'static str, usize),
        divisor: (&'static str, usize),
    ) -> Result<(), Self> {
        if dividend.1.is_multiple_of(divisor.1) {
            return Ok(());
        }
        Err(Self::NotDivisible {
            dividend_name: dividend.0,
            dividend: dividend.1,
            divisor_name: divisor.0,
            divisor: divisor.1,
        })
    }

    /// That one number is not above the other.
    ///
    /// # Errors
    /// If it is.
    pub fn check_at_most(
        smaller: (&'static str, usize),
        larger: (&'static str, usize),
    ) -> Result<(), Self> {
        if smaller.1 <= larger.1 {
            return Ok(());
        }
        Err(Self::TooLarge {
            smaller_name: smaller.0,
            smaller: smaller.1,
            larger_name: larger.0,
            larger: larger.1,
        })
    }

    pub(crate) fn check_count(
        list: (&'static str, usize),
        needed: (&'static str, usize),
    ) -> Result<(), Self> {
        if list.1 == needed.1 {
            return Ok(());
        }
        Err(Self::Count {
            list: list.0,
            found: list.1,
            needed: needed.1,
            of: needed.0,
        })
    }

    /// That a number is above 0 and finite.
    ///
    /// # Errors
    /// If it is not.
    pub fn check_positive(name: &'static str, value: f64) -> Result<(), Self> {
        if value > 0.0 && value.is_finite() {
            return Ok(());
        }
        Err(Self::NotPositive {
            name,
            value: value.to_string(),
        })
    }
}
