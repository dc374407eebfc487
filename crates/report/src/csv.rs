//! Numbers for other programs, as comma-separated values (RFC 4180).

/// A header and rows. Fields with commas, quotes or line breaks stand in quotes.
///
/// ```
/// let csv = headlight_report::csv(&["token", "weight"], [vec!["a,\"b\"".to_owned(), "0.5".to_owned()]]);
/// assert_eq!(csv, "token,weight\n\"a,\"\"b\"\"\",0.5\n");
/// ```
#[must_use]
pub fn csv(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let header = std::iter::once(header.iter().map(|name| (*name).to_owned()).collect());
    let lines = header.chain(rows).map(|row: Vec<String>| {
        let fields: Vec<String> = row.iter().map(|field| quoted(field)).collect();
        fields.join(",") + "\n"
    });
    lines.collect()
}

fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}
