//! Why a head looks there, for the terminal.

use headlight_lens::{CellMean, Contrast, Ingredient, Moved};
use headlight_report::{Printout, Table, number_or_dash, one_line, with_interval};

use super::{Place, WhyOfCells};

/// Terms in the terminal; JSON has all.
const SHOWN_TERMS: usize = 10;
/// Rows of what the keys add.
const SHOWN_KEYS: usize = 6;
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
            .prose(self.terms_text())
            .table(self.keys_table());
        let Some(moved) = &self.moved else {
            return printout;
        };
        printout
            .prose(format!(
                "What {} moves from there to the logits, above the mean logit, by who wrote it at the key. This is \
                 the direct path alone: the pattern and the scales of norms are held, and what later parts make of \
                 it does not count.",
                self.head
            ))
            .table(self.moved_table(moved))
            .prose(self.raised_text())
    }

    fn raised_text(&self) -> String {
        if self.raised.is_empty() {
            return String::new();
        }
        let raised = self.raised.iter();
        let raised: Vec<String> = raised
            .map(|(token, logit)| format!("{} {logit:+.2}", one_line(token)))
            .collect();
        format!("It raises most: {}.", raised.join(", "))
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
        let mut rows = Vec::new();
        let telling = self.why.telling_terms();
        let (shown, rest) = self.why.terms.split_at(telling.min(SHOWN_TERMS));
        for term in shown {
            rows.push(term_row(
                [in_table(term.query), in_table(term.key)],
                mean(&term.value),
                term.value.value / margin,
                [Some(term.random_key), term.turned],
            ));
        }
        if !rest.is_empty() {
            let adds: f64 = rest.iter().map(|term| term.value.value).sum();
            let random_key: f64 = rest.iter().map(|term| term.random_key).sum();
            rows.push(term_row(
                [others(rest.len()), String::new()],
                number_or_dash(Some(adds), 2),
                adds / margin,
                [Some(random_key), None],
            ));
        }
        rows.push(term_row(
            ["together".to_owned(), String::new()],
            mean(&self.why.margin),
            1.0,
            [Some(self.why.random_key.value), None],
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
             \"every query\": {} of the margin. The sizes of all terms of a cell add up to {:.2}. random key: the \
             same with a visible key drawn at random in place of these. turned: the size of the term when W_K is \
             turned at random (root mean square of 20 draws). By what the key is made of:",
            number_or_dash(Some(self.for_every_query), 2),
            self.why.sizes
        )
    }

    /// What each part of the keys adds, with all parts of the query together.
    fn keys_table(&self) -> Table {
        let mut rows = Vec::new();
        for of_key in self.why.by_key.iter().take(SHOWN_KEYS) {
            rows.push(vec![
                in_table(of_key.key),
                mean(&of_key.matched),
                mean(&of_key.for_every_query),
            ]);
        }
        Table::new(&["in the key", "with this query", "with every query"], rows)
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
            let mut cells = vec![others(rest.len())];
            cells.extend(sums);
            rows.push(cells);
        }
        rows.push(row("together".to_owned(), &moved.together));
        rows.push(row("from all other keys".to_owned(), &moved.elsewhere));
        let mut header = vec!["written at the key".to_owned()];
        header.extend(self.toward.iter().map(|name| one_line(name)));
        Table::new(&header, rows)
    }
}

/// A row of the table of terms; `nulls` are those of a random key and of turned matrices.
fn term_row(ends: [String; 2], adds: String, share: f64, nulls: [Option<f64>; 2]) -> Vec<String> {
    let mut row = ends.to_vec();
    row.push(adds);
    row.push(format!("{} %", number_or_dash(Some(100.0 * share), 0)));
    row.extend(nulls.map(|null| number_or_dash(null, 2)));
    row
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

/// `45 others`
fn others(count: usize) -> String {
    match count {
        1 => "1 other".to_owned(),
        _ => format!("{count} others"),
    }
}
