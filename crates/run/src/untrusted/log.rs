//! Reading the rows of a log, in bounded memory.

use std::{collections::BTreeMap, fmt, path::Path};

use headlight_heads::{HeadName, RoleRange};
use serde::de::DeserializeOwned;

use super::{MEMORY_A_LOGGED_BYTE, MOST_LINE_BYTES, ROOM_FOR_ROWS, from_json};
use crate::{
    Error, ErrorKind, EventRow, HeadRow, HeadsUse, MetricsRow, Missed, Question, SequenceRow,
    TimingRow, UsesRow,
};

/// A row of a log.
pub trait LogRow: DeserializeOwned {
    /// The bytes of memory that it holds apart from itself.
    fn held(&self) -> usize;
}

/// The rows of `text`, which in the log at `path` follows after `before` other lines.
///
/// # Errors
/// Names the line that cannot be read, or whose rows would take too much memory.
pub fn rows_of<R: LogRow>(path: &Path, before: usize, text: &[u8]) -> Result<Vec<R>, Error> {
    let lines = || text.split_inclusive(|&byte| byte == b'\n');
    let count = lines().count();
    let too_large = |line: usize, message: &str| {
        Error::of(ErrorKind::TooLarge, Line(path, before + line), message)
    };
    let too_much = |line| too_large(line, "its rows take far more memory than any run's");
    let mut room = ROOM_FOR_ROWS + MEMORY_A_LOGGED_BYTE * text.len();
    room = room
        .checked_sub(count * size_of::<R>())
        .ok_or_else(|| too_much(count))?;
    let mut rows = Vec::with_capacity(count);
    for (line, text) in (1..).zip(lines()) {
        if text.len() > MOST_LINE_BYTES {
            let message = format!("has {} bytes, more than {MOST_LINE_BYTES}", text.len());
            return Err(too_large(line, &message));
        }
        let row: R = from_json(Line(path, before + line), text)?;
        room = room.checked_sub(row.held()).ok_or_else(|| too_much(line))?;
        rows.push(row);
    }
    Ok(rows)
}

/// A line of a log, as errors name it.
struct Line<'a>(&'a Path, usize);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(path, line) = self;
        write!(f, "{}:{line}", path.display())
    }
}

/// What a tree map holds apart from its names: nodes with room for 11 entries, of which all but a
/// lone one have at least 5.
fn held_by_map<K, V>(map: &BTreeMap<K, V>) -> usize {
    let nodes = match map.len() {
        few @ ..=11 => few.min(1),
        many => many.div_ceil(5),
    };
    // Beside its entries a node has its place in its parent, and one of six has 12 children.
    let of_node = 11 * size_of::<(K, V)>() + 4 * size_of::<usize>();
    nodes * of_node
}

/// What the names of a map hold that are text.
fn held_by_names<V>(map: &BTreeMap<String, V>) -> usize {
    map.keys().map(String::len).sum()
}

impl LogRow for HeadRow {
    fn held(&self) -> usize {
        held_by_map(&self.scores)
            + held_by_map(&self.relations)
            + held_by_names(&self.relations)
            + self.ranges.capacity() * size_of::<RoleRange>()
    }
}

impl LogRow for MetricsRow {
    fn held(&self) -> usize {
        held_by_map(&self.breakdown) + held_by_names(&self.breakdown)
    }
}

impl LogRow for TimingRow {
    fn held(&self) -> usize {
        0
    }
}

impl LogRow for EventRow {
    fn held(&self) -> usize {
        0
    }
}

impl LogRow for UsesRow {
    fn held(&self) -> usize {
        let of_use = |uses: &HeadsUse| {
            uses.heads.capacity() * size_of::<HeadName>() + held_by_map(&uses.through)
        };
        let of_missed = |missed: &Missed| missed.others.capacity() * size_of::<HeadName>();
        self.uses.capacity() * size_of::<HeadsUse>()
            + self.uses.iter().map(of_use).sum::<usize>()
            + self.missed.capacity() * size_of::<Missed>()
            + self.missed.iter().map(of_missed).sum::<usize>()
    }
}

impl LogRow for SequenceRow {
    /// Its lists, and for each input the byte that later says whether its target is scored.
    fn held(&self) -> usize {
        let of_question = |question: &Question| {
            let names: usize = question.kinds.iter().map(|kind| kind.len()).sum();
            names
                + question.kinds.capacity() * size_of::<Box<str>>()
                + question.wrong.capacity() * size_of::<u32>()
        };
        let names: usize = self
            .relations
            .iter()
            .map(|relation| relation.name.len())
            .sum();
        let losses =
            |losses: Option<&Box<[f64]>>| losses.map_or(0, |losses| size_of_val(&**losses));
        let shortcut = self.shortcut.as_ref();
        size_of_val(&*self.tokens)
            + self.scored.as_deref().map_or(0, size_of_val)
            + size_of_val(&*self.relations)
            + names
            + size_of_val(&*self.questions)
            + self.questions.iter().map(of_question).sum::<usize>()
            + losses(self.floor.as_ref())
            + losses(self.bayes.as_ref())
            + losses(self.best_accuracy.as_ref())
            + losses(shortcut.map(|shortcut| &shortcut.losses))
            + shortcut.map_or(0, |shortcut| shortcut.name.len())
            + self.inputs()
    }
}

#[cfg(test)]
mod tests {
    use headlight_heads::RoleEvent;

    use super::*;

    fn error(before: usize, text: &str) -> String {
        rows_of::<EventRow>(Path::new("a.jsonl"), before, text.as_bytes())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_line_that_is_no_row_or_too_long_is_named() {
        let row = r#"{"step":0,"event":"role_lost","head":"L0H0","role":"induction","value":0}"#;
        let rows: Vec<EventRow> =
            rows_of(Path::new("a.jsonl"), 0, format!("{row}\n{row}").as_bytes()).unwrap();
        assert_eq!((rows.len(), rows[1].event), (2, RoleEvent::Lost));
        assert!(error(7, &format!("{row}\n\n{row}")).starts_with("a.jsonl:9: EOF while parsing"));
        let long = " ".repeat(MOST_LINE_BYTES + 1);
        assert_eq!(
            error(0, &format!("{row}\n{long}")),
            "a.jsonl:2: has 524289 bytes, more than 524288"
        );
    }

    #[test]
    fn rows_without_end_are_refused_before_room_is_made_for_them() {
        let lines = 1 << 20;
        let message = "its rows take far more memory than any run's";
        assert_eq!(
            error(0, &"0\n".repeat(lines)),
            format!("a.jsonl:{lines}: {message}")
        );
    }
}
