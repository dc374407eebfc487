//! `report.html`: the whole run as one page.

use headlight_run::{InputError, SequenceKind};

use crate::{Page, ReportData, escaped_html, finding, headline, page::module};

/// The largest page that is written.
const MOST_BYTES: usize = 5_000_000;

/// The page's own modules.
pub(crate) const MODULES: [(&str, &str); 10] = [
    module!("report_data.js"),
    module!("report_run.js"),
    module!("report_seeds.js"),
    module!("report_training.js"),
    module!("report_causal.js"),
    module!("report_weights.js"),
    module!("report_heads.js"),
    module!("report_stream.js"),
    module!("report_walk.js"),
    module!("report.js"),
];

/// A part of the report that the page can do without.
type Part = (&'static str, fn(&mut ReportData));

/// What is left out of a page that would be too large, in this order.
const LEAST_NEEDED: [Part; 7] = [
    ("the walk", |data| data.walk = None),
    ("the patterns", |data| data.patterns.clear()),
    ("the residual stream", |data| data.stream = None),
    ("what the heads' weights say of tokens", |data| data.circuits.clear()),
    ("what the heads are used as over training", |data| data.uses = data.uses.pop().into_iter().collect()),
    ("the scores over training", |data| {
        data.scores.clear();
        data.steps.clear();
    }),
    ("the curves over training", |data| data.metrics.clear()),
];

/// The page, at most 5 MB. Parts that do not fit are left out, and the page says so.
///
/// # Errors
/// If it is too large even without all that can be left out.
pub fn report_page(mut data: ReportData) -> Result<String, InputError> {
    (data.finding, data.headline) = (finding(&data), headline(&data));
    let mut html = html(&data)?;
    for (name, leave_out) in LEAST_NEEDED {
        if html.len() <= MOST_BYTES {
            break;
        }
        leave_out(&mut data);
        data.left_out.push(format!("{name}: the page would be larger than {} MB", MOST_BYTES / 1_000_000));
        html = self::html(&data)?;
    }
    if html.len() > MOST_BYTES {
        let message = format!("would have {} bytes, more than {MOST_BYTES}", html.len());
        return Err(InputError::new("report.html", message));
    }
    Ok(html)
}

fn html(data: &ReportData) -> Result<String, InputError> {
    let title = format!("{}: what its heads learned", data.run.name);
    Page { title: &title, modules: &MODULES, data, without_script: &tables(data) }.html()
}

/// The report for readers without JavaScript: what came out, and the heads at the end.
fn tables(data: &ReportData) -> String {
    let mut html = format!("<h1>{}</h1>\n", escaped_html(&data.run.name));
    for sentence in &data.finding {
        html += &format!("<p>{}</p>\n", escaped_html(sentence));
    }
    html += "<p>The pictures of this page need JavaScript; here are the heads at the end, on the probe.</p>\n<div class=\"scroll\"><table>\n<tr>\
             <th>head</th><th>looks like</th>";
    let on_probe = || data.scores.iter().filter(|series| series.on == SequenceKind::Probe);
    for series in on_probe() {
        html += &format!("<th>{}</th>", escaped_html(&series.name));
    }
    html += "<th>accuracy without it</th></tr>\n";
    for (index, (head, role)) in data.heads.iter().enumerate() {
        html += &format!("<tr><td>{head}</td><td>{}</td>", escaped_html(role));
        for series in on_probe() {
            let last = 3 * ((data.steps.len() - 1) * data.heads.len() + index);
            html += &series
                .values
                .0
                .get(last)
                .map_or_else(|| "<td>–</td>".to_owned(), |value| format!("<td>{value:.3}</td>"));
        }
        let alone = data.uses.last().and_then(|row| row.uses.iter().find(|uses| uses.heads == [*head])?.ablated);
        html += &alone.map_or_else(|| "<td>–</td>".to_owned(), |left| format!("<td>{:.3}</td>", left.accuracy));
        html += "</tr>\n";
    }
    html += "<tr><td>uniform attention</td><td></td>";
    for series in on_probe() {
        html += &format!("<td>{:.3}</td>", series.null);
    }
    html += "<td></td></tr>\n</table></div>\n";
    for left_out in &data.left_out {
        html += &format!("<p>Left out: {}.</p>\n", escaped_html(left_out));
    }
    html
}
