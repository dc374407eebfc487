//! What the heads are used as, for the terminal.

use headlight_heads::Reader;
use headlight_report::{Printout, Table, or_dash, with_interval};
use headlight_run::{HeadsUse, Left, UsesRow};

/// What is left of the task without each head, the heads of each role and each layer, and with them
/// hidden from one kind of reader.
pub(super) fn uses_printout(row: &UsesRow) -> Printout {
    let cell = |left: Option<&Left>| {
        or_dash(left.map(|left| with_interval(left.accuracy, left.interval, 3)))
    };
    let lines = row.uses.iter().map(|uses: &HeadsUse| {
        let heads: Vec<String> = uses.heads.iter().map(ToString::to_string).collect();
        let readers = Reader::ALL.map(|reader| cell(uses.through.get(&reader)));
        [
            vec![
                heads.join(" "),
                uses.name.to_string(),
                cell(uses.ablated.as_ref()),
            ],
            readers.to_vec(),
        ]
        .concat()
    });
    let columns: Vec<&str> = ["heads", "look like", "for all"]
        .into_iter()
        .chain(Reader::ALL.map(Reader::name))
        .collect();
    let untouched = format!(
        "Accuracy on {} sequences of the task is {} untouched. What is left for all that read these heads, when in \
         place of what a head blends stands {}; and for one kind of reader only, when it reads their mean:",
        row.sequences,
        cell(Some(&row.untouched)),
        row.by.in_words(),
    );
    let table = Table::new(&columns, lines)
        .text_columns(2)
        .first_to_go(&[Reader::Values, Reader::Queries].map(Reader::name))
        .whole_in("uses.jsonl");
    Printout::new()
        .prose(untouched)
        .table(table)
        .prose(
            "\"Is used as\" names the readers through whom accuracy falls, by at least 0.02 and beyond both intervals, \
             and its fall for all of them. (set): nothing falls without the head alone, but without all heads that \
             look like it. all: it falls, but through no single reader. pattern only: nothing falls even where the other \
             heads that hold its role are off. backup: it falls only then.",
        )
}
