//! Answers to questions, counted: what accuracy alone does not tell.

use std::collections::BTreeMap;

use headlight_run::{Answers, Breakdown, Question};

/// Right answers, counted by kind.
#[derive(Debug, Default)]
pub struct Marks(BTreeMap<Box<str>, [usize; 2]>);

impl Marks {
    /// Counts an answer under each kind of its question.
    pub fn add(&mut self, question: &Question, is_right: bool) {
        for kind in &question.kinds {
            let [right, count] = self.0.entry(kind.clone()).or_default();
            *right += usize::from(is_right);
            *count += 1;
        }
    }

    /// Counts answers that were counted elsewhere.
    pub fn extend(&mut self, more: Self) {
        for (kind, [right, count]) in more.0 {
            let sum = self.0.entry(kind).or_default();
            *sum = [sum[0] + right, sum[1] + count];
        }
    }

    /// The share of right answers to each kind.
    #[must_use]
    pub fn breakdown(self) -> Breakdown {
        let share = |(kind, [right, count]): (Box<str>, [usize; 2])| {
            (
                kind.into_string(),
                Answers {
                    accuracy: right as f64 / count as f64,
                    count,
                },
            )
        };
        self.0.into_iter().map(share).collect()
    }
}
