//! The n×n weights against the linear-memory path, as the benchmark measured it.

use headlight_report::MemoryUse;
use headlight_run::InputError;

/// What `scripts/bench` wrote, so that the page cannot say anything else.
const RESULTS: &str = include_str!("../../../../../benches/RESULTS.md");
const TABLE: &str = "## Causal attention, forward and backward, 8 heads";
const HEADS: f64 = 8.0;

/// The benchmark's lengths that were measured in both libraries.
pub(super) fn measured() -> Result<Vec<MemoryUse>, InputError> {
    let missing = || InputError::new("benches/RESULTS.md", "has no table of attention's memory");
    let (_, table) = RESULTS.split_once(TABLE).ok_or_else(missing)?;
    let table = table.split_once("\n## ").map_or(table, |(table, _)| table);
    // | length | Headlight ms | PyTorch ms | ratio | Headlight MB | PyTorch MB |
    let rows: Vec<MemoryUse> = table.lines().filter_map(row).collect();
    if rows.is_empty() {
        Err(missing())
    } else {
        Ok(rows)
    }
}

fn row(line: &str) -> Option<MemoryUse> {
    let cells: Vec<f64> = line
        .split('|')
        .map(|cell| cell.trim().parse().unwrap_or(f64::NAN))
        .collect();
    let &[_, length, _, _, _, headlight, pytorch, _] = cells.as_slice() else {
        return None;
    };
    let all_there = [length, headlight, pytorch]
        .iter()
        .all(|value| value.is_finite());
    // In MB as the benchmark's, of single precision.
    let weights = HEADS * length * length * 4.0 / 1e6;
    all_there.then_some(MemoryUse {
        length: length as usize,
        headlight,
        pytorch,
        weights,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_benchmarks_table_is_found() {
        let rows = measured().unwrap();
        assert!(rows.len() >= 3, "{rows:?}");
        for pair in rows.windows(2) {
            let longer = pair[1].length as f64 / pair[0].length as f64;
            // Measured memory grows with the length at most, the weights with its square.
            assert!(
                pair[1].headlight / pair[0].headlight < 1.2 * longer,
                "{pair:?}"
            );
            assert!(
                (pair[1].weights / pair[0].weights - longer * longer).abs() < 1e-9,
                "{pair:?}"
            );
        }
    }
}
