//! Pictures of a run. This crate sees plain rows and numbers, never a model.

mod colour;
mod curves;
mod page;
mod terminal_heads;
mod terminal_heatmap;
mod terminal_relations;
mod terminal_table;

pub use curves::{Curve, curves_svg};
pub use page::{Page, escaped_html};
pub use terminal_heads::{HeadLine, heads_table};
pub use terminal_heatmap::{Heatmap, Ink};
pub use terminal_relations::relations_table;
pub use terminal_table::plain_table;
