//! `sort` and `reverse`: random symbols, then the same symbols in order, or backwards. To reverse
//! is to know positions; to sort is to compare contents.

use headlight_run::RearrangeConfig;
use rand::RngExt;

use super::{Optimum, RowKey, Sequence, Task, Use, Vocabulary, symbols::symbols};

/// Of so many contents one is held out: no training sequence has it, every validation sequence has
/// such a one.
const HELD_OUT: u64 = 8;

/// What is done with the symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rearrangement {
    /// In order, smallest first; equal symbols as often as they came.
    Sort,
    /// Last first.
    Reverse,
}

/// `length` uniform symbols, `=`, the same symbols rearranged. Scored is all that follows `=`.
#[derive(Debug, Clone)]
pub struct Rearrange {
    symbols: usize,
    length: usize,
    how: Rearrangement,
}

impl Rearrange {
    /// The task.
    #[must_use]
    pub fn new(config: &RearrangeConfig, how: Rearrangement) -> Self {
        Self {
            symbols: config.symbols,
            length: config.length,
            how,
        }
    }
}

/// Whether these symbols belong to the test set: by a hash of the content (FNV-1a), so that no list
/// is needed.
fn held_out(content: &[u32]) -> bool {
    let bytes = content.iter().flat_map(|symbol| symbol.to_le_bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    // The low bits of FNV-1a depend on the low bits of the bytes alone.
    (hash >> 32).is_multiple_of(HELD_OUT)
}

impl Task for Rearrange {
    fn vocabulary(&self) -> Vocabulary {
        let names = symbols(self.symbols)
            .into_iter()
            .chain(["=".to_owned()])
            .collect();
        Vocabulary::of_names(names)
    }

    fn sequence(&self, row: RowKey) -> Sequence {
        let mut rng = row.rng();
        let content = loop {
            let content: Vec<u32> = (0..self.length)
                .map(|_| rng.random_range(0..self.symbols as u32))
                .collect();
            if held_out(&content) == (row.usage == Use::Validation) {
                break content;
            }
        };
        let mut answer = content.clone();
        match self.how {
            Rearrangement::Sort => answer.sort_unstable(),
            Rearrangement::Reverse => answer.reverse(),
        }
        let scored = (1..=2 * self.length)
            .map(|target| target > self.length)
            .collect();
        Sequence {
            tokens: [content, vec![self.symbols as u32], answer].concat(),
            scored,
        }
    }

    /// Symbols are uniform (what is held out changes that by nothing worth counting), the rest is
    /// certain.
    fn bayes_losses(&self, _: &Sequence) -> Option<Vec<f64>> {
        let uniform = (self.symbols as f64).ln();
        let losses =
            (1..=2 * self.length).map(|target| if target < self.length { uniform } else { 0.0 });
        Some(losses.collect())
    }

    /// Any symbol, then the certain one.
    fn best_accuracies(&self, _: &Sequence) -> Option<Vec<f64>> {
        let uniform = 1.0 / self.symbols as f64;
        let best =
            (1..=2 * self.length).map(|target| if target < self.length { uniform } else { 1.0 });
        Some(best.collect())
    }

    fn optimum(&self) -> Option<Optimum> {
        Some(Optimum {
            name: "the rule",
            nats: 0.0,
        })
    }

    fn chance(&self) -> f64 {
        1.0 / self.symbols as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch;

    #[test]
    fn the_answer_is_the_content_in_order_or_backwards() {
        let config = RearrangeConfig::default();
        let (sort, reverse) = (
            Rearrange::new(&config, Rearrangement::Sort),
            Rearrange::new(&config, Rearrangement::Reverse),
        );
        for (a, b) in batch(&sort, 1, Use::Training, 1, 100)
            .into_iter()
            .zip(batch(&reverse, 1, Use::Training, 1, 100))
        {
            let (content, answer) = (&a.tokens[..10], &a.tokens[11..]);
            assert!(answer.is_sorted());
            let count = |of: &[u32], symbol| of.iter().filter(|&&other| other == symbol).count();
            assert!((0..20).all(|symbol| count(content, symbol) == count(answer, symbol)));
            assert_eq!(&b.tokens[..11], &a.tokens[..11]);
            assert!(b.tokens[11..].iter().eq(content.iter().rev()));
            assert_eq!(a.scored, [[false; 10], [true; 10]].concat());
        }
    }

    #[test]
    fn one_content_of_eight_is_held_out_and_never_trained_on() {
        let task = Rearrange::new(
            &RearrangeConfig {
                symbols: 10,
                length: 3,
            },
            Rearrangement::Sort,
        );
        let contents = |usage| -> Vec<Vec<u32>> {
            batch(&task, 0, usage, 1, 20_000)
                .into_iter()
                .map(|row| row.tokens[..3].to_vec())
                .collect()
        };
        let distinct = |rows: &[Vec<u32>]| {
            rows.iter()
                .cloned()
                .collect::<std::collections::BTreeSet<_>>()
        };
        let (training, test) = (
            distinct(&contents(Use::Training)),
            distinct(&contents(Use::Validation)),
        );
        assert!(training.is_disjoint(&test));
        // 20,000 draws see every one of the 1000 contents.
        assert_eq!(training.len() + test.len(), 1000);
        assert!((85..165).contains(&test.len()), "{}", test.len());
    }
}
