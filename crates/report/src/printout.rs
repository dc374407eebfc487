//! What a verb shows, as paragraphs and tables that are laid out for a terminal.

use crate::{
    Table, Terminal,
    prose::{with_minus, wrapped},
};

/// Paragraphs and tables, with an empty line between them.
///
/// ```
/// use headlight_report::{Ink, Table, Terminal, Printout};
///
/// let rows = [["L0H1", "0.98", "0.02"].map(str::to_owned).to_vec()];
/// let printout = Printout::new()
///     .prose("Scores of the heads on the probe.")
///     .table(Table::new(&["head", "previous", "induction"], rows));
/// let terminal = Terminal { columns: 30, ink: Ink::Characters };
/// assert_eq!(
///     printout.draw(&terminal),
///     "Scores of the heads on the\nprobe.\n\n head  previous  induction\n L0H1      0.98       0.02"
/// );
/// let narrow = Terminal { columns: 20, ..terminal };
/// assert_eq!(
///     printout.draw(&narrow).split("\n\n").nth(1),
///     Some(
///         " head  previous\n L0H1      0.98\nLeft out: induction.\nSee --json, or a\nterminal of 26\ncolumns."
///     )
/// );
/// let command = Printout::new().command("inspect runs/induction pattern --head L1H0");
/// assert_eq!(command.draw(&narrow), "  inspect runs/induction pattern --head L1H0");
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Printout {
    blocks: Vec<Block>,
}

#[derive(Debug, Clone, PartialEq)]
enum Block {
    Prose(String),
    Command(String),
    Table(Table),
}

impl Printout {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A paragraph. Its lines break where the terminal ends, and where the text says so. An empty
    /// text is no paragraph.
    #[must_use]
    pub fn prose(mut self, text: impl Into<String>) -> Self {
        let text = text.into();
        if !text.is_empty() {
            self.blocks.push(Block::Prose(text));
        }
        self
    }

    /// A command on a line of its own. It is never broken, so that it runs as it is copied.
    #[must_use]
    pub fn command(mut self, text: impl Into<String>) -> Self {
        self.blocks.push(Block::Command(text.into()));
        self
    }

    /// A table. One without rows is left out.
    #[must_use]
    pub fn table(mut self, table: Table) -> Self {
        if !table.is_empty() {
            self.blocks.push(Block::Table(table));
        }
        self
    }

    /// Everything of another printout.
    #[must_use]
    pub fn printout(mut self, other: Self) -> Self {
        self.blocks.extend(other.blocks);
        self
    }

    /// As text that keeps within the columns of `terminal`.
    #[must_use]
    pub fn draw(&self, terminal: &Terminal) -> String {
        let draw = |block: &Block| match block {
            Block::Prose(text) => wrapped(&with_minus(text), terminal.columns, 0),
            Block::Command(text) => format!("  {text}"),
            Block::Table(table) => table.draw(terminal.columns),
        };
        let blocks: Vec<String> = self.blocks.iter().map(draw).collect();
        blocks.join("\n\n")
    }
}
