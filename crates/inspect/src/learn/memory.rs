//! The memory of the n×n weights beside the kernel's, as the benchmark measured it.

use headlight_report::MemoryUse;
use headlight_run::{Error, ErrorKind};
use serde::Deserialize;

/// Written by `scripts/bench`.
const MEASURED: &str = include_str!("attention_memory.json");

/// Causal attention, forward and backward, at several lengths.
#[derive(Deserialize)]
struct Measured {
    heads: usize,
    megabytes: Vec<Row>,
}

/// By how many MB a process's peak grew.
#[derive(Deserialize)]
struct Row {
    length: usize,
    headlight: f64,
    pytorch: f64,
}

/// The benchmark's lengths, with the size of the weights in single precision beside them.
pub(super) fn measured() -> Result<Vec<MemoryUse>, Error> {
    let measured: Measured = serde_json::from_str(MEASURED)
        .map_err(|error| Error::because(ErrorKind::Internal, "attention_memory.json", error))?;
    let mut rows = Vec::new();
    for row in measured.megabytes {
        let weights = measured.heads * row.length * row.length * size_of::<f32>();
        rows.push(MemoryUse {
            length: row.length,
            headlight: row.headlight,
            pytorch: row.pytorch,
            weights: weights as f64 / 1e6,
        });
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_memory_grows_with_the_length_and_the_weights_with_its_square() {
        let rows = measured().unwrap();
        assert!(rows.len() >= 3, "{rows:?}");
        assert_eq!(rows[0].weights, 33.554_432); // 8 · 1024² · 4 bytes
        for pair in rows.windows(2) {
            let longer = pair[1].length as f64 / pair[0].length as f64;
            assert!(
                pair[1].headlight / pair[0].headlight < 1.2 * longer,
                "{pair:?}"
            );
            let growth = pair[1].weights / pair[0].weights;
            assert!((growth - longer * longer).abs() < 1e-9, "{pair:?}");
        }
    }
}
