//! What the heads are used as, for the terminal.

use headlight_heads::Reader;
use headlight_report::{Printout, Table};
use headlight_run::{HeadsUse, Left, UsesRow};

/// What is left of the task without each head, the heads of each role and each layer, and with them
/// hidden from one kind of reader.
pub(super) fn uses_printout(row: &UsesRow) -> Printout {
    let cell = |left: Option<&Left>| {
        left.map_or_else(
            || "–".to_owned(),
            |left| format!("{:.3}±{:.3}", left.accuracy, (left.high - left.low) / 2.0),
        )
    };
    let lines = row.uses.iter().map(|uses: &HeadsUse| {
        let heads: Vec<String> = uses.heads.iter().map(ToString::to_string).collect();
        let readers = Reader::ALL.map(|reader| cell(uses.through.get(reader.name())));
        [
            vec![
                heads.join(" "),
                uses.name.clone(),
                cell(uses.ablated.as_ref()),
            ],
            readers.to_vec(),
        ]
        .concat()
    });
    let columns = [
        "heads",
        "look like",
        "for all",
        "queries",
        "keys",
        "values",
        "logits",
    ];
    let untouched = format!(
        "Accuracy on {} sequences of the task is {} untouched. What is left when the mean over sequences and \
         positions stands in place of what these heads write, for all that read it or for one kind of reader only:",
        row.sequences,
        cell(Some(&row.untouched)),
    );
    let table = Table::new(&columns, lines)
        .text_columns(2)
        .first_to_go(&["values", "queries"])
        .whole_in("uses.jsonl");
    Printout::new()
        .prose(untouched)
        .table(table)
        .prose(
            "\"Is used as\" names the readers through whom accuracy falls, by at least .02 and beyond both intervals, \
             and its fall for all of them. (set): nothing falls without the head alone, but without all heads that \
             look like it. all: it falls, but through no single reader.",
        )
}
