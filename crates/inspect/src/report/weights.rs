//! What the heads' weights say of tokens: the largest entries of the QK and OV circuits.

use headlight_lens::{Circuits, Entry, FactoredMatrix};
use headlight_report::HeadPairs;
use headlight_residual::Decoder;

/// Entries of each table.
const PAIRS: usize = 10;
/// Entries of all heads' tables together that are looked through.
const MOST_ENTRIES: usize = 200_000_000;

/// One of these for each head; none where the model has no circuits to read, or too many entries.
pub(super) fn pairs(
    model: &Decoder,
    vocabulary: &[String],
    left_out: &mut Vec<String>,
) -> Vec<HeadPairs> {
    let heads = model.blocks.len() * model.n_heads();
    if 2 * heads * vocabulary.len() * vocabulary.len() > MOST_ENTRIES {
        left_out.push(
            "what the heads' weights say of tokens: too many tokens; inspect RUN circuits shows one head".to_owned(),
        );
        return Vec::new();
    }
    let circuits = match Circuits::of(model) {
        Ok(circuits) => circuits,
        Err(error) => {
            left_out.push(format!("what the heads' weights say of tokens: {error}"));
            return Vec::new();
        }
    };
    let named = |table: &FactoredMatrix| {
        let name = |entry: Entry| {
            (
                vocabulary[entry.row].clone(),
                vocabulary[entry.column].clone(),
                entry.value,
            )
        };
        table.largest(PAIRS).into_iter().map(name).collect()
    };
    let of_head = |head| HeadPairs {
        qk: named(&circuits.full_qk(head)),
        ov: named(&circuits.full_ov(head)),
    };
    circuits.heads().into_iter().map(of_head).collect()
}
