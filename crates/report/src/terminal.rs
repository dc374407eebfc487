//! The terminal that a view is printed in: its width and its ink.

use std::io::{stderr, stdout};

use anstream::{AutoStream, ColorChoice};
use terminal_size::{Width, terminal_size_of};

/// The columns of a pipe or a file, where `COLUMNS` does not say otherwise.
const COLUMNS_OF_A_PIPE: usize = 100;

/// What weights are drawn with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    /// Colours.
    Colour,
    /// Characters from light to dark.
    Characters,
}

/// Where a view is printed: every view keeps within these columns, so that no line breaks where
/// the terminal ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terminal {
    /// How many characters of single width fit into a line.
    pub columns: usize,
    /// What weights are drawn with.
    pub ink: Ink,
}

impl Terminal {
    /// Standard output. Its columns are those of the terminal, if it is one; else the variable
    /// `COLUMNS`, if it is set; else 100. Colours are used where the terminal shows them and
    /// `NO_COLOR` does not forbid it.
    #[must_use]
    pub fn of_standard_output() -> Self {
        let columns = match terminal_size_of(stdout()) {
            Some((Width(columns), _)) => columns.into(),
            None => columns_of_environment().unwrap_or(COLUMNS_OF_A_PIPE),
        };
        let ink = match AutoStream::choice(&stdout()) {
            ColorChoice::Never => Ink::Characters,
            _ => Ink::Colour,
        };
        Self { columns, ink }
    }
}

fn columns_of_environment() -> Option<usize> {
    let columns = std::env::var("COLUMNS").ok()?.parse().ok()?;
    (columns > 0).then_some(columns)
}

/// The columns of standard error, if it is a terminal. Lines in a file stay whole.
pub(crate) fn columns_of_standard_error() -> Option<usize> {
    terminal_size_of(stderr()).map(|(Width(columns), _)| columns.into())
}
