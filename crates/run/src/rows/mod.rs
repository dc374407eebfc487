//! What training measured, as rows of JSON.
//!
//! | file | a row | written |
//! |---|---|---|
//! | `metrics.jsonl` | [`MetricsRow`] | at each measurement |
//! | `heads.jsonl` | [`HeadRow`] | at each measurement, for each head on each kind of sequences |
//! | `timing.jsonl` | [`TimingRow`] | at each measurement but the first |
//! | `events.jsonl` | [`EventRow`] | when a head takes on a role or loses it |
//! | `uses.jsonl` | [`UsesRow`] | with the patterns |
//! | `summary.json` | [`Summary`], one object | at the end |

mod measured;
mod uses;

pub use measured::{
    Answers, Breakdown, EventRow, HeadRow, HeadSummary, MetricsRow, Summary, TimingRow,
};
pub use uses::{HeadsUse, Left, Missed, UsesRow};
