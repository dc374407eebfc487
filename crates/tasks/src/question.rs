//! Questions with a right answer and named wrong ones: what accuracy alone does not tell.

use std::collections::BTreeMap;

use headlight_run::{Answers, Breakdown};

/// At `input`, is the `right` next token likelier than each of the `wrong` ones?
///
/// Everything else that might follow is left aside: a model may think that an adverb is likely
/// here, and still know which form the verb must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The position after which the answer stands.
    pub input: usize,
    /// The answer.
    pub right: u32,
    /// What must be less likely.
    pub wrong: Vec<u32>,
    /// The kinds of question this is, by name.
    pub kinds: Vec<&'static str>,
}

impl Question {
    /// Whether these logits answer rightly; a tie is wrong.
    ///
    /// ```
    /// use headlight_tasks::Question;
    ///
    /// let question = Question { input: 0, right: 1, wrong: vec![0], kinds: vec!["agreement"] };
    /// assert!(question.is_answered_by(&[0.2, 0.3, 9.0])); // token 2 is not asked about
    /// assert!(!question.is_answered_by(&[0.3, 0.3, 9.0]));
    /// ```
    #[must_use]
    pub fn is_answered_by(&self, logits: &[f32]) -> bool {
        self.wrong
            .iter()
            .all(|&wrong| logits[self.right as usize] > logits[wrong as usize])
    }
}

/// Right answers, counted by kind.
#[derive(Debug, Default)]
pub struct Marks(BTreeMap<&'static str, [usize; 2]>);

impl Marks {
    /// Counts an answer under each kind of its question.
    pub fn add(&mut self, question: &Question, is_right: bool) {
        for kind in &question.kinds {
            let [right, count] = self.0.entry(kind).or_default();
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
        let share = |(kind, [right, count]): (&str, [usize; 2])| {
            (
                kind.to_owned(),
                Answers {
                    accuracy: right as f64 / count as f64,
                    count,
                },
            )
        };
        self.0.into_iter().map(share).collect()
    }
}
