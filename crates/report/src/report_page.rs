//! `report.html`: the whole run as one page.

use headlight_heads::{HeadName, Role, SequenceKind};
use headlight_run::InputError;

use crate::{
    Page, ReportData, ScoreSeries, escaped_html, finding, headline, number_or_dash, page::module,
};

/// The largest page that is written.
const MOST_PAGE_BYTES: usize = 5_000_000;

/// The page's own modules.
pub(crate) const MODULES: [(&str, &str); 14] = [
    module!("vocabulary.js"),
    module!("walk_source.js"),
    module!("report_data.js"),
    module!("emergence.js"),
    module!("metrics_plots.js"),
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
    ("what the heads' weights say of tokens", |data| {
        data.circuits.clear();
    }),
    ("what the heads are used as over training", |data| {
        data.uses = data.uses.pop().into_iter().collect();
    }),
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
        if html.len() <= MOST_PAGE_BYTES {
            break;
        }
        leave_out(&mut data);
        data.left_out.push(format!(
            "{name}: the page would be larger than {} MB",
            MOST_PAGE_BYTES / 1_000_000
        ));
        html = self::html(&data)?;
    }
    if html.len() > MOST_PAGE_BYTES {
        let message = format!(
            "would have {} bytes, more than {MOST_PAGE_BYTES}",
            html.len()
        );
        return Err(InputError::new("report.html", message));
    }
    Ok(html)
}

fn html(data: &ReportData) -> Result<String, InputError> {
    let title = format!("{}: what its heads learned", data.run.name);
    Page {
        title: &title,
        modules: &MODULES,
        data,
        without_script: &tables(data),
    }
    .html()
}

/// The report for readers without JavaScript: what came out, and the heads at the end.
fn tables(data: &ReportData) -> String {
    let paragraph = |text: &str| format!("<p>{}</p>\n", escaped_html(text));
    let left_out = |what: &String| paragraph(&format!("Left out: {what}."));
    format!(
        "<h1>{}</h1>\n{}<p>The pictures of this page need JavaScript; here are the heads at the end, on the probe.</p>\n\
         <div class=\"scroll\"><table>\n{}</table></div>\n{}",
        escaped_html(&data.run.name),
        data.finding
            .iter()
            .map(|sentence| paragraph(sentence))
            .collect::<String>(),
        heads_rows(data),
        data.left_out.iter().map(left_out).collect::<String>(),
    )
}

/// A row for each head, and what uniform attention scores.
fn heads_rows(data: &ReportData) -> String {
    let row = |tag: &str, cells: &[String]| {
        let cell = |text: &String| format!("<{tag}>{}</{tag}>", escaped_html(text));
        format!("<tr>{}</tr>\n", cells.iter().map(cell).collect::<String>())
    };
    let number = |value: Option<f64>| number_or_dash(value, 3);
    let on_probe: Vec<_> = data
        .scores
        .iter()
        .filter(|series| series.on == SequenceKind::Probe)
        .collect();
    let names = on_probe.iter().map(|series| series.name.clone());
    let header = ["head", "looks like"]
        .map(str::to_owned)
        .into_iter()
        .chain(names)
        .chain(["accuracy without it".to_owned()]);
    let of_head = |(index, (head, role)): (usize, &(HeadName, Role))| {
        let last = data
            .steps
            .len()
            .checked_sub(1)
            .map(|last| 3 * (last * data.heads.len() + index));
        let value = |series: &&ScoreSeries| {
            number(
                last.and_then(|at| series.values.0.get(at))
                    .map(|x| f64::from(*x)),
            )
        };
        let alone = data
            .uses
            .last()
            .and_then(|row| row.uses.iter().find(|uses| uses.heads == [*head])?.ablated);
        let first = [head.to_string(), role.to_string()];
        let cells = first
            .into_iter()
            .chain(on_probe.iter().map(value))
            .chain([number(alone.map(|left| left.accuracy))]);
        row("td", &cells.collect::<Vec<_>>())
    };
    let nulls = on_probe.iter().map(|series| number(Some(series.null)));
    let uniform = ["uniform attention".to_owned(), String::new()]
        .into_iter()
        .chain(nulls);
    [
        row("th", &header.collect::<Vec<_>>()),
        data.heads.iter().enumerate().map(of_head).collect(),
        row("td", &uniform.collect::<Vec<_>>()),
    ]
    .concat()
}
