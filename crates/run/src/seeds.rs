//! Runs that differ in the seed alone, and what they have in common.

use std::{collections::BTreeMap, ops::Range, str::FromStr};

use headlight_heads::{Role, Spread, Values};
use serde::{Deserialize, Serialize};

/// The most runs of one command.
const MOST_SEEDS: u64 = 1024;

/// Seeds of runs that differ in nothing else, written like a range of Rust.
///
/// ```
/// use headlight_run::Seeds;
///
/// let seeds: Seeds = "2..5".parse()?;
/// assert_eq!(seeds.iter().collect::<Vec<_>>(), [2, 3, 4]);
/// assert_eq!("5..2".parse::<Seeds>().unwrap_err().to_string(), "5..2 are no seeds, they are written 0..4: 0, 1, 2 and 3");
/// # Ok::<(), headlight_run::NoSeeds>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seeds(Range<u64>);

impl Seeds {
    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = u64> + use<> {
        self.0.clone()
    }
}

/// A text that names no seeds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} are no seeds, they are written 0..4: 0, 1, 2 and 3")]
pub struct NoSeeds(String);

impl FromStr for Seeds {
    type Err = NoSeeds;

    fn from_str(text: &str) -> Result<Self, NoSeeds> {
        let parse = || {
            let (from, to) = text.split_once("..")?;
            let range = from.parse::<u64>().ok()?..to.parse().ok()?;
            (!range.is_empty() && range.end - range.start <= MOST_SEEDS).then_some(Self(range))
        };
        parse().ok_or_else(|| NoSeeds(text.to_owned()))
    }
}

/// `seeds.json`: what runs that differ in the seed alone have in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeedsSummary {
    /// The task's name.
    pub task: String,
    /// The seeds, in order.
    pub seeds: Vec<u64>,
    /// Loss, accuracy and whatever else is measured at the end, by name.
    pub measures: BTreeMap<String, Spread>,
    /// By role: how many heads have it at the end.
    pub heads: BTreeMap<Role, Values>,
    /// By role: the first logged step at which a head took it on; no value for a seed without.
    pub emergence: BTreeMap<Role, Values>,
    /// By measure: the first logged step at which it was half of the way from its first to its last
    /// value.
    pub half_way: BTreeMap<String, Values>,
}
