//! At which positions does a head hold a role?

use std::ops::RangeInclusive;

use headlight_heads::RoleRange;

use crate::{
    Estimate, TargetWeights,
    band::{Cell, Side, simultaneous},
    bootstrap::Share,
    target_weights::Series,
};

/// A range has at least so many queries.
const FEWEST_QUERIES: usize = 8;
/// A query with a target in fewer sequences of a half has no label.
const FEWEST_SEQUENCES: usize = 20;
/// At query 1 the previous token is the first one, so that query has no label.
const FIRST_QUERY: usize = 2;
/// The share from which a head holds a role.
const ROLE: f64 = 0.5;

/// The ranges of positions at which each head holds a role, first layer first.
///
/// With share(q) = (score(q) − null(q))/(ceiling(q) − null(q)), a range is eight or more
/// consecutive queries whose simultaneous lower 95 % band exceeds ½. The band is a max-t bootstrap
/// over sequences, jointly over positions, heads and measures. It is computed on every second
/// sequence. The share that is reported is the mean on the other sequences; a range whose interval
/// there does not lie above ½ is dropped. The end of a range lies between `last_low` and
/// `last_high`, by a two-sided band on the other sequences.
///
/// No query counts that has a target in fewer than 20 sequences of a half.
///
/// ```
/// use headlight_heads::Measure;
/// use headlight_lens::{LayerPattern, RoleTargets, TargetWeights, role_ranges};
///
/// // One head looks one back at queries 2 to 11 of 16 and evenly at the rest, in 40 sequences.
/// let row = |query: usize| -> Vec<f32> {
///     (0..16).map(|key| match query {
///         2..=11 => f32::from(u8::from(key + 1 == query)),
///         _ if key <= query => 1.0 / (query + 1) as f32,
///         _ => 0.0,
///     }).collect()
/// };
/// let sequence: Vec<f32> = (0..16).flat_map(row).collect();
/// let weights = sequence.repeat(40);
/// let layers = [LayerPattern::new([40, 1, 16], &weights)];
/// let targets = RoleTargets::of(&layers[0], &vec![(0..16).collect(); 40]);
/// let ranges = role_ranges(&TargetWeights::of(&layers, &targets));
/// assert_eq!(ranges[0].len(), 1);
/// assert_eq!(ranges[0][0].to_string(), "previous token, positions 2–11");
/// assert_eq!((ranges[0][0].role, ranges[0][0].share), (Measure::PreviousToken, 1.0));
/// ```
#[must_use]
pub fn role_ranges(weights: &TargetWeights) -> Vec<Vec<RoleRange>> {
    let series = weights.series();
    let halves = |parity| {
        (parity..weights.sequences())
            .step_by(2)
            .collect::<Vec<usize>>()
    };
    let [finding, reporting] = [0, 1].map(halves);

    let found = found_runs(&series, &finding);
    let bounds = Bounds::of(&series, &found, &reporting);
    let mut ranges = vec![Vec::new(); weights.n_heads()];
    for (run, bounds) in found.iter().zip(bounds) {
        let series = &series[run.series];
        let share = series.mean_share(run.first..=run.last, &reporting);
        if share.interval.low > ROLE {
            ranges[series.head].push(RoleRange {
                role: series.measure,
                first: run.first,
                last: run.last,
                share: share.mean,
                low: share.interval.low,
                high: share.interval.high,
                last_low: bounds.last_low,
                last_high: bounds.last_high,
                writes: None,
            });
        }
    }
    ranges
}

impl Series<'_> {
    /// (weight − null)/(1 − null) at one query; none without a visible target, and where all
    /// visible keys are targets.
    fn share(&self, sequence: usize, query: usize) -> Option<f64> {
        let row = self.targets.row(sequence, query)?;
        let has_share = query >= self.targets.start + FIRST_QUERY && row.null < 1.0;
        has_share.then(|| (self.weight(sequence, query) - row.null) / (1.0 - row.null))
    }

    /// The mean share at each query over these sequences, where enough of them have a target.
    fn cells(&self, sequences: &[usize]) -> Vec<Option<Cell>> {
        let cell = |query| {
            let shares: Vec<Option<f64>> = sequences
                .iter()
                .map(|&sequence| self.share(sequence, query))
                .collect();
            Cell::of(&shares, FEWEST_SEQUENCES)
        };
        (0..self.length()).map(cell).collect()
    }

    fn mean_share(&self, queries: RangeInclusive<usize>, sequences: &[usize]) -> Estimate {
        let of_sequence = |&sequence: &usize| {
            let known: Vec<f64> = queries
                .clone()
                .filter_map(|query| self.share(sequence, query))
                .collect();
            Share {
                sum: known.iter().sum(),
                rows: known.len(),
            }
        };
        Estimate::of(&sequences.iter().map(of_sequence).collect::<Vec<_>>())
    }
}

/// Consecutive queries of one series of shares.
struct Run {
    series: usize,
    first: usize,
    last: usize,
}

/// The runs whose simultaneous lower band exceeds ½ on these sequences.
fn found_runs(series: &[Series], sequences: &[usize]) -> Vec<Run> {
    let cells: Vec<Vec<Option<Cell>>> = series
        .iter()
        .map(|series| series.cells(sequences))
        .collect();
    let above = |band: f64| {
        let mut found = Vec::new();
        for (series, cells) in cells.iter().enumerate() {
            let is_above = |cell: &Option<Cell>| {
                cell.as_ref()
                    .is_some_and(|cell| cell.mean - band * cell.error > ROLE)
            };
            for (first, last) in runs(cells.iter().map(is_above)) {
                found.push(Run {
                    series,
                    first,
                    last,
                });
            }
        }
        found
    };
    // Nearly all untrained models end here: without a band there is no run either.
    if above(0.0).is_empty() {
        return Vec::new();
    }
    let all: Vec<&Cell> = cells.iter().flatten().flatten().collect();
    above(simultaneous(&all, Side::High))
}

/// The first and last index of each long enough run of `true`.
fn runs(flags: impl Iterator<Item = bool>) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut begun = None;
    for (index, flag) in flags.chain([false]).enumerate() {
        match begun {
            None if flag => begun = Some(index),
            Some(first) if !flag => {
                if index - first >= FEWEST_QUERIES {
                    found.push((first, index - 1));
                }
                begun = None;
            }
            _ => {}
        }
    }
    found
}

/// Where a run may end.
struct Bounds {
    last_low: usize,
    last_high: usize,
}

impl Bounds {
    /// By a two-sided band, jointly over the positions of all runs' series. Each end is looked for
    /// from the query of the run at which the lower edge is highest.
    fn of(series: &[Series], found: &[Run], sequences: &[usize]) -> Vec<Self> {
        let cells: Vec<Vec<Option<Cell>>> = found
            .iter()
            .map(|run| series[run.series].cells(sequences))
            .collect();
        let all: Vec<&Cell> = cells.iter().flatten().flatten().collect();
        let band = simultaneous(&all, Side::Both);
        let bounds_of = |(run, cells): (&Run, &Vec<Option<Cell>>)| {
            let edge = |query: usize, side: f64| match &cells[query] {
                Some(cell) => cell.mean + side * band * cell.error,
                None => f64::NEG_INFINITY,
            };
            let peak = (run.first..=run.last)
                .max_by(|&a, &b| edge(a, -1.0).total_cmp(&edge(b, -1.0)))
                .unwrap_or(run.first);
            let last_above = |side| {
                let above = (peak..cells.len()).take_while(|&query| edge(query, side) > ROLE);
                above.last().unwrap_or(peak)
            };
            Self {
                last_low: last_above(-1.0),
                last_high: last_above(1.0),
            }
        };
        found.iter().zip(&cells).map(bounds_of).collect()
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::{LayerPattern, RoleTargets};

    fn ranges_of(pattern: LayerPattern, tokens: &[Vec<u32>]) -> Vec<Vec<RoleRange>> {
        let targets = RoleTargets::of(&pattern, tokens);
        role_ranges(&TargetWeights::of(&[pattern], &targets))
    }

    #[test]
    fn a_run_has_eight_queries_or_more() {
        let flags = |text: &str| text.chars().map(|c| c == '#').collect::<Vec<_>>();
        let runs_of = |text: &str| runs(flags(text).into_iter());
        assert_eq!(runs_of("..########..#######"), [(2, 9)]);
        assert_eq!(runs_of("#########"), [(0, 8)]);
        assert!(runs_of("#######").is_empty() && runs_of("").is_empty());
    }

    /// Patterns of one head whose share of the previous token is `share` plus noise that is the
    /// same at all queries of a sequence; the rest is spread evenly.
    fn noisy_head(length: usize, share: f64, noise: f64, seed: u64) -> Vec<f32> {
        const SEQUENCES: usize = 64;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut weights = vec![0.0; SEQUENCES * length * length];
        for rows in weights.chunks_mut(length * length) {
            let shared = rng.random_range(-noise..noise);
            for (query, row) in rows.chunks_mut(length).enumerate() {
                let share = share + shared + rng.random_range(-noise..noise);
                let null = 1.0 / (query + 1) as f64;
                row[..=query].fill(((1.0 - share) * null) as f32);
                if query > 0 {
                    row[query - 1] += share as f32;
                }
            }
        }
        weights
    }

    #[test]
    fn heads_at_exactly_half_get_a_false_range_in_at_most_one_of_twenty() {
        // The edge of the null hypothesis, with noise that moves whole ranges together.
        const LENGTH: usize = 24;
        let tokens: Vec<Vec<u32>> = vec![(0..LENGTH as u32).collect(); 64];
        let mut models_with_ranges = 0;
        for seed in 0..200 {
            let weights = noisy_head(LENGTH, 0.5, 0.2, seed);
            let pattern = LayerPattern::new([64, 1, LENGTH], &weights);
            models_with_ranges += usize::from(!ranges_of(pattern, &tokens)[0].is_empty());
        }
        assert!(models_with_ranges <= 10, "{models_with_ranges} of 200");
    }

    #[test]
    fn a_head_well_above_half_is_found_through_the_same_noise() {
        const LENGTH: usize = 24;
        let tokens: Vec<Vec<u32>> = vec![(0..LENGTH as u32).collect(); 64];
        let weights = noisy_head(LENGTH, 0.75, 0.2, 0);
        let pattern = LayerPattern::new([64, 1, LENGTH], &weights);
        let ranges = ranges_of(pattern, &tokens);
        let range = ranges[0][0];
        assert_eq!((range.first, range.last), (2, LENGTH - 1));
        assert!(range.low < 0.75 && 0.75 < range.high, "{range:?}");
        assert_eq!((range.last_low, range.last_high), (LENGTH - 1, LENGTH - 1));
    }
}
