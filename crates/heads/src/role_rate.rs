//! How often a role is false, and how much of a head must do it until it is found.

use crate::Measure;

/// What is known of a role from heads whose programs are known.
///
/// A head must have the role if its program selects the targets, and nothing else, at every query. It
/// must not if it does so at less than half of them. The others count for nothing.
///
/// The numbers are those of [`POPULATION`] and of no other one: a trained model has heads of other
/// kinds.
///
/// ```
/// use headlight_heads::{Measure, RoleRate};
///
/// let rate = RoleRate::of(Measure::Induction).unwrap();
/// // No false one in 50 programs still allows a rate of 1 − 0.025^(1/50).
/// assert_eq!((rate.programs_with_false, rate.programs), (0, 50));
/// assert!((rate.high - (1.0 - 0.025_f64.powf(1.0 / 50.0))).abs() < 5e-4);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoleRate {
    /// The role.
    pub measure: Measure,
    /// Heads that must have it, and have it.
    pub found: usize,
    /// Heads that must have it, and have not.
    pub missed: usize,
    /// Heads that must not have it, and have it.
    pub falsely_found: usize,
    /// Heads that must not have it, and have not.
    pub rightly_left: usize,
    /// Programs with a head that falsely has it.
    pub programs_with_false: usize,
    /// Programs with a head that must not have it.
    pub programs: usize,
    /// The lower end of the 95 % interval of the share of programs with a false one (Clopper and
    /// Pearson 1934): heads of one program are not independent.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// Of [`DRAWS`] planted heads, those that are found to have the role when they do it at a share of
    /// the queries and attend evenly at the others: one number for each of [`SHARES`].
    pub planted_found: [usize; SHARES.len()],
    /// Those of them whose role is sure ([`RoleCheck`](crate::RoleCheck)).
    pub planted_sure: [usize; SHARES.len()],
}

/// What the rates are rates of.
pub const POPULATION: &str =
    "50 random compiled programs that have a head, inputs of 24 tokens over 4 letters";

/// The shares of queries, in percent, at which a planted head does its role.
pub const SHARES: [usize; 13] = [0, 10, 20, 30, 40, 45, 50, 55, 60, 70, 80, 90, 100];
/// The planted heads of each share.
pub const DRAWS: usize = 20;

impl RoleRate {
    /// The rate of a role; `None` of a measure that a program has added.
    #[must_use]
    pub fn of(measure: Measure) -> Option<&'static Self> {
        MEASURED.iter().find(|rate| rate.measure == measure)
    }

    /// The rates of all roles that every program has.
    #[must_use]
    pub const fn all() -> &'static [Self] {
        &MEASURED
    }

    /// The smallest share of queries, in percent, from which at least half of the planted heads are
    /// found.
    #[must_use]
    pub fn found_from(&self) -> usize {
        from(&self.planted_found)
    }

    /// The same of heads whose role is sure.
    #[must_use]
    pub fn sure_from(&self) -> usize {
        from(&self.planted_sure)
    }
}

fn from(counts: &[usize; SHARES.len()]) -> usize {
    let first = counts.iter().position(|&count| 2 * count >= DRAWS);
    first.map_or(100, |at| SHARES[at])
}

/// Printed by the test `the_rates_in_the_code_are_these` of `crates/watch/tests/role_rates.rs`, which
/// measures them anew; change them there.
#[rustfmt::skip]
const MEASURED: [RoleRate; Measure::BUILT_IN.len()] = [
    RoleRate { measure: Measure::PreviousToken, found: 5, missed: 1, falsely_found: 0, rightly_left: 89, programs_with_false: 0, programs: 48, low: 0.0, high: 0.074, planted_found: [0, 0, 0, 0, 0, 0, 14, 20, 20, 20, 20, 20, 20], planted_sure: [0, 0, 0, 0, 0, 0, 1, 19, 20, 20, 20, 20, 20] },
    RoleRate { measure: Measure::CurrentToken, found: 7, missed: 0, falsely_found: 0, rightly_left: 87, programs_with_false: 0, programs: 48, low: 0.0, high: 0.074, planted_found: [0, 0, 0, 0, 0, 0, 14, 20, 20, 20, 20, 20, 20], planted_sure: [0, 0, 0, 0, 0, 0, 1, 19, 20, 20, 20, 20, 20] },
    RoleRate { measure: Measure::FirstToken, found: 0, missed: 0, falsely_found: 0, rightly_left: 93, programs_with_false: 0, programs: 50, low: 0.0, high: 0.071, planted_found: [0, 0, 0, 0, 0, 0, 14, 20, 20, 20, 20, 20, 20], planted_sure: [0, 0, 0, 0, 0, 0, 1, 19, 20, 20, 20, 20, 20] },
    RoleRate { measure: Measure::DuplicateToken, found: 12, missed: 0, falsely_found: 0, rightly_left: 80, programs_with_false: 0, programs: 46, low: 0.0, high: 0.077, planted_found: [0, 0, 0, 0, 0, 0, 15, 20, 20, 20, 20, 20, 20], planted_sure: [0, 0, 0, 0, 0, 0, 1, 19, 20, 20, 20, 20, 20] },
    RoleRate { measure: Measure::Induction, found: 0, missed: 0, falsely_found: 0, rightly_left: 95, programs_with_false: 0, programs: 50, low: 0.0, high: 0.071, planted_found: [0, 0, 0, 0, 0, 0, 15, 20, 20, 20, 20, 20, 20], planted_sure: [0, 0, 0, 0, 0, 0, 1, 19, 20, 20, 20, 20, 20] },
];
