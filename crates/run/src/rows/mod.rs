//! What training measured and what it was measured on, as rows of JSON.
//!
//! | file | a row | written |
//! |---|---|---|
//! | `metrics.jsonl` | [`MetricsRow`] | at each measurement |
//! | `heads.jsonl` | [`HeadRow`] | at each measurement, for each head on each kind of sequences |
//! | `timing.jsonl` | [`TimingRow`] | at each measurement but the first |
//! | `events.jsonl` | [`EventRow`] | when a head takes on a role or loses it |
//! | `uses.jsonl` | [`UsesRow`] | with the patterns |
//! | `validation.jsonl`, `probe.jsonl` | [`SequenceRow`] | at the beginning |
//! | `summary.json` | [`Summary`], one object | at the end |

mod measured;
mod sequence;
mod uses;

pub use measured::{
    Answers, Breakdown, EventRow, HeadRow, HeadSummary, MetricsRow, Summary, TimingRow,
};
pub use sequence::{Question, SequenceRow, Shortcut};
pub use uses::{HeadsUse, Left, Missed, UsesRow};
