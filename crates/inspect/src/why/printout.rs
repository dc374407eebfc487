//! Why a head looks there, for the terminal.

use headlight_lens::{CellMean, Contrast, Ingredient, Moved, Term};
use headlight_report::{Printout, Table, number_or_dash, with_interval};

use super::{Place, WhyOfCells};

/// Terms in the terminal; JSON has all.
const SHOWN_TERMS: usize = 10;
/// Rows of what the head moves.
const SHOWN_MOVED: usize = 6;

impl WhyOfCells {
    /// For the terminal.
    #[must_use]
    pub fn printout(&self) -> Printout {
        let printout = Printout::new()
            .prose(self.finding.clone())
            .prose(self.cells_text())
            .table(self.terms_table())
            .prose(self.terms_text());
        let Some(moved) = &self.moved else {
            return printout;
        };
        let raised: Vec<String> = self
            .raised
            .iter()
            .map(|(token, logit)| format!("{token} {logit:+.2}"))
            .collect();
        let raised = match raised.is_empty() {
            true => String::new(),
            false => format!("It raises most: {}.", raised.join(", ")),
        };
        printout
            .prose(format!(
                "What {} moves from there to the logits, above the mean logit, by who wrote it at the key. This is \
                 the direct path alone: the pattern and the scales of norms are held, and what later parts make of \
                 it does not count.",
                self.head
            ))
            .table(self.moved_table(moved))
            .prose(raised)
    }

    fn cells_text(&self) -> String {
        let weight = mean(&self.why.weight);
        match &self.place {
            Place::Cell { .. } => format!("The weight of this cell is {weight}."),
            Place::Targets {
                measure,
                is_role,
                on,
                sequences,
                ..
            } => {
                let role = if *is_role {
                    format!("Its role is {measure}.")
                } else {
                    format!("It has no role; of all measures it stands out most on {measure}.")
                };
                format!(
                    "{role} Its mean weight on these keys is {weight}, over {} queries in {sequences} sequences of {on}.",
                    self.why.cells
                )
            }
        }
    }

    fn terms_table(&self) -> Table {
        let margin = self.why.margin.value;
        let row =
            |query: String, key: String, adds: String, share: f64, nulls: [Option<f64>; 2]| {
                let [random, turned] = nulls.map(|null| number_or_dash(null, 2));
                vec![
                    query,
                    key,
                    adds,
                    format!("{:.0} %", 100.0 * share),
                    random,
                    turned,
                ]
            };
        let mut rows = Vec::new();
        let (shown, rest) = self
            .why
            .terms
            .split_at(self.why.terms.len().min(SHOWN_TERMS));
        for term in shown {
            let nulls = [Some(term.random_key), term.turned];
            rows.push(row(
                in_table(term.query),
                in_table(term.key),
                mean(&term.value),
                term.value.value / margin,
                nulls,
            ));
        }
        let sum = |of: fn(&Term) -> f64| rest.iter().map(of).sum::<f64>();
        if !rest.is_empty() {
            let adds = sum(|term| term.value.value);
            let nulls = [Some(sum(|term| term.random_key)), None];
            let name = format!("the other {}", rest.len());
            let adds_text = format!("{adds:.2}");
            rows.push(row(name, String::new(), adds_text, adds / margin, nulls));
        }
        let nulls = [Some(self.why.random_key.value), None];
        let together = mean(&self.why.margin);
        rows.push(row(
            "together".to_owned(),
            String::new(),
            together,
            1.0,
            nulls,
        ));
        let header = [
            "in the query",
            "in the key",
            "adds",
            "share",
            "random key",
            "turned",
        ];
        Table::new(&header, rows)
            .text_columns(2)
            .first_to_go(&["share"])
    }

    fn terms_text(&self) -> String {
        let margin = match self.why.contrast {
            Contrast::Attention => {
                "The margin is the score minus the scores of the other keys, weighted as the head weights them."
            }
            Contrast::Uniform => {
                "The margin is the score minus the mean score of the other keys that the query sees."
            }
            Contrast::None => "The margin is the score itself: nothing was taken off.",
        };
        let softcap = if self.has_softcap {
            " Terms are those before the softcap."
        } else {
            ""
        };
        format!(
            "{margin}{softcap} A query is counted without the mean of all queries. What this mean adds stands as \
             \"every query\": {:.2} of the margin. The sizes of all terms of a cell add up to {:.2}. random key: the same with a visible key \
             drawn at random in place of these. turned: the size of the term when W_K is turned at random (root \
             mean square of 20 draws).",
            self.for_every_query, self.why.sizes
        )
    }

    fn moved_table(&self, moved: &Moved) -> Table {
        let row = |name: String, logits: &[CellMean]| {
            let mut row = vec![name];
            row.extend(logits.iter().map(mean));
            row
        };
        let mut rows = Vec::new();
        for from in moved.from.iter().take(SHOWN_MOVED) {
            rows.push(row(in_table(from.value), &from.logits));
        }
        if let Some(rest) = moved
            .from
            .get(SHOWN_MOVED..)
            .filter(|rest| !rest.is_empty())
        {
            let sum = |at: usize| rest.iter().map(|from| from.logits[at].value).sum();
            let sums = (0..self.toward.len()).map(|at| number_or_dash(Some(sum(at)), 2));
            let mut cells = vec![format!("the other {}", rest.len())];
            cells.extend(sums);
            rows.push(cells);
        }
        rows.push(row("together".to_owned(), &moved.together));
        rows.push(row("from all other keys".to_owned(), &moved.elsewhere));
        let mut header = vec!["written at the key".to_owned()];
        header.extend(self.toward.iter().cloned());
        Table::new(&header, rows)
    }
}

/// A name that is short.
fn in_table(ingredient: Ingredient) -> String {
    match ingredient {
        Ingredient::EveryQuery => "every query".to_owned(),
        other => other.to_string(),
    }
}

/// `7.20±0.10`
fn mean(mean: &CellMean) -> String {
    match mean.interval {
        Some(interval) => with_interval(mean.value, interval, 2),
        None => number_or_dash(Some(mean.value).filter(|value| value.is_finite()), 2),
    }
}
