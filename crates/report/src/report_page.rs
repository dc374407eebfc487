//! `report.html`: the whole run as one page.

use headlight_heads::{HeadName, SequenceKind};
use headlight_run::Error;
use maud::{Markup, html};

use crate::{
    ReportData, ScoreSeries, finding, headline, heads_that_matter, number_or_dash,
    page::{Page, Visible, module},
};

/// The largest page that is written.
const MOST_PAGE_BYTES: usize = 5_000_000;

/// The page's own modules.
pub(crate) const MODULES: [(&str, &str); 26] = [
    module!("address.js"),
    module!("walk_source.js"),
    module!("report_data.js"),
    module!("report_state.js"),
    module!("step_slider.js"),
    module!("token_lines.js"),
    module!("head_panels.js"),
    module!("head_grid.js"),
    module!("emergence.js"),
    module!("metrics_plots.js"),
    module!("report_relations.js"),
    module!("report_positions.js"),
    module!("report_run.js"),
    module!("report_program.js"),
    module!("report_seeds.js"),
    module!("report_training.js"),
    module!("report_accuracy.js"),
    module!("report_causal.js"),
    module!("report_first.js"),
    module!("report_weights.js"),
    module!("report_why.js"),
    module!("report_circuit.js"),
    module!("report_heads.js"),
    module!("report_stream.js"),
    module!("report_walk.js"),
    module!("report.js"),
];

/// A part of the report that the page can do without: its name, and what takes it out, which says
/// whether there was one.
type Part = (&'static str, fn(&mut ReportData) -> bool);

/// What is left out of a page that would be too large, in this order.
const LEAST_NEEDED: [Part; 10] = [
    ("why heads look where they look", |data| {
        data.why.take().is_some()
    }),
    ("circuits", |data| {
        !std::mem::take(&mut data.edges).is_empty()
    }),
    ("the walk", |data| data.walk.take().is_some()),
    ("the patterns", |data| {
        !std::mem::take(&mut data.patterns).is_empty()
    }),
    ("the residual stream", |data| data.stream.take().is_some()),
    ("what the heads' weights say of tokens", |data| {
        !std::mem::take(&mut data.circuits).is_empty()
    }),
    ("what the heads are used as over training", |data| {
        let last = data.uses.pop();
        !std::mem::replace(&mut data.uses, last.into_iter().collect()).is_empty()
    }),
    ("accuracy by position without each head", |data| {
        data.accuracy_by_position.take().is_some()
    }),
    ("the scores over training", |data| {
        data.steps.clear();
        !std::mem::take(&mut data.scores).is_empty()
    }),
    ("the curves over training", |data| {
        !std::mem::take(&mut data.metrics).is_empty()
    }),
];

/// The page, at most 5 MB. Parts that do not fit are left out, and the page says so.
///
/// # Errors
/// If it is too large even without all that can be left out.
pub fn report_page(mut data: ReportData) -> Result<String, Error> {
    (data.finding, data.headline) = (finding(&data), headline(&data));
    data.first = heads_that_matter(&data);
    let mut page = page(&data)?;
    for (name, leave_out) in LEAST_NEEDED {
        if page.len() <= MOST_PAGE_BYTES {
            break;
        }
        if !leave_out(&mut data) {
            continue;
        }
        data.left_out.push(format!(
            "{name}: the page would be larger than {} MB",
            MOST_PAGE_BYTES / 1_000_000
        ));
        page = self::page(&data)?;
    }
    if page.len() > MOST_PAGE_BYTES {
        let message = format!(
            "would have {} bytes, more than {MOST_PAGE_BYTES}",
            page.len()
        );
        return Err(Error::new("report.html", message));
    }
    Ok(page)
}

fn page(data: &ReportData) -> Result<String, Error> {
    let did = if data.run.steps > 0 { "learned" } else { "do" };
    let title = format!("{}: what its heads {did}", data.run.name);
    Page {
        title: &title,
        modules: &MODULES,
        data,
        without_script: without_script(data),
    }
    .html()
}

/// The report for readers without JavaScript: what came out, and the heads at the end.
fn without_script(data: &ReportData) -> Markup {
    html! {
        h1 { (Visible(&data.run.name)) }
        @for sentence in &data.finding {
            p { (Visible(sentence)) }
        }
        p {
            "The pictures of this page need JavaScript; here are the heads at the end, on the probe."
        }
        div class="scroll" {
            table { (heads_rows(data)) }
        }
        @for part in &data.left_out {
            p { "Left out: " (Visible(part)) "." }
        }
    }
}

/// A row for each head, and what uniform attention scores.
fn heads_rows(data: &ReportData) -> Markup {
    let on_probe: Vec<&ScoreSeries> = data
        .scores
        .iter()
        .filter(|series| series.on == SequenceKind::Probe)
        .collect();
    // Value, low and high of every head at every step; the last step is wanted.
    let value = |series: &ScoreSeries, head: usize| {
        let last = data.steps.len().checked_sub(1)?;
        let [value, ..] = series.at(last, head, data.heads.len())?;
        Some(f64::from(value))
    };
    html! {
        tr {
            th { "head" }
            th { "looks like" }
            @for series in &on_probe {
                th { (Visible(&series.name)) }
            }
            th { "accuracy without it" }
        }
        @for (index, (head, role)) in data.heads.iter().enumerate() {
            tr {
                td { (head) }
                td { (role) }
                @for series in &on_probe {
                    td { (number(value(series, index))) }
                }
                td { (number(accuracy_without(data, *head))) }
            }
        }
        tr {
            td { "uniform attention" }
            td {}
            @for series in &on_probe {
                td { (number(Some(series.null))) }
            }
        }
    }
}

/// Accuracy at the end without a head alone, where it was measured.
fn accuracy_without(data: &ReportData, head: HeadName) -> Option<f64> {
    let row = data.uses.last()?;
    let alone = row.uses.iter().find(|uses| uses.heads == [head])?;
    alone.ablated.map(|left| left.accuracy)
}

fn number(value: Option<f64>) -> String {
    number_or_dash(value, 3)
}
