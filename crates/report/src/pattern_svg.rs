//! Attention patterns as SVG: one head with its tokens, or every head of a model.

use std::{collections::BTreeMap, fmt::Write as _};

use headlight_heads::{HeadName, MayAttend, Role};

use crate::{
    Heatmap,
    colour::{colour, hex},
    label::token_label,
    svg::Svg,
};

/// Beside this many tokens, single cells can no longer be told apart.
pub const MOST_PICTURED_TOKENS: usize = 512;

/// The side of a pattern in pixels, alone and among others.
const ALONE: f64 = 560.0;
const AMONG_OTHERS: f64 = 180.0;
/// Weights are drawn in as many steps above 0, as fine as a colour channel.
const LEVELS: f32 = 255.0;
/// Labels narrower than this would overlap.
const LABEL: f64 = 8.0;
/// The width that the legend needs.
const LEGEND: f64 = 490.0;

/// Draws one head with its tokens on both axes under a title.
///
/// ```
/// use headlight_heads::MayAttend;
/// use headlight_report::{Heatmap, pattern_svg};
///
/// let tokens = ["<b>".to_owned(), "b".to_owned()];
/// let heatmap = Heatmap { weights: &[1.0, 0.0, 0.2, 0.8], tokens: &tokens, may_attend: MayAttend::Causal };
/// let svg = pattern_svg("L1H0 induction", &heatmap);
/// assert!(svg.contains("&lt;b&gt;") && !svg.contains("<b>"));
/// // The weight 0.8 is in the second row and the second column; one cell has the unit length.
/// assert!(svg.contains("M1 1h1v1h-1z"));
/// ```
#[must_use]
pub fn pattern_svg(title: &str, heatmap: &Heatmap) -> String {
    let labels: Vec<String> = heatmap
        .tokens
        .iter()
        .map(|token| token_label(token))
        .collect();
    let longest = labels
        .iter()
        .map(|label| label.chars().count())
        .max()
        .unwrap_or(0) as f64;
    let cell = (ALONE / labels.len().max(1) as f64).min(48.0);
    let font = (cell * 0.8).clamp(LABEL, 14.0);
    let side = cell * labels.len() as f64;
    let corner = [22.0 + longest * font * 0.62, 44.0 + longest * font * 0.62];
    let mut svg = Svg::new(
        (corner[0] + side + 24.0).max(corner[0] + LEGEND),
        corner[1] + side + 70.0,
    );
    hatching(&mut svg);
    svg.text([16.0, 18.0], r#"font-size="15""#, title);
    svg.text([16.0, 34.0], "", "rows are queries, columns are keys");
    // Where cells are narrower than letters, only some have room for their label.
    let every = (LABEL / cell).ceil().max(1.0) as usize;
    for (index, label) in labels.iter().enumerate().step_by(every) {
        let at = (index as f64 + 0.5) * cell;
        let font = format!(r#"font-size="{font:.1}""#);
        svg.text(
            [corner[0] - 5.0, corner[1] + at + font_middle(cell)],
            &format!(r#"text-anchor="end" {font}"#),
            label,
        );
        let (x, y) = (corner[0] + at + font_middle(cell), corner[1] - 5.0);
        svg.text(
            [x, y],
            &format!(r#"transform="rotate(-90 {x:.1} {y:.1})" {font}"#),
            label,
        );
    }
    cells(&mut svg, heatmap, corner, side);
    legend(
        &mut svg,
        [corner[0], corner[1] + side + 18.0],
        heatmap.may_attend,
    );
    svg.finish()
}

/// Draws every head: a row per layer, a column per head.
#[must_use]
pub fn pattern_grid_svg(heads: &[(HeadName, Role, Heatmap)]) -> String {
    let last =
        |of: fn(&HeadName) -> usize| heads.iter().map(|(head, ..)| of(head)).max().unwrap_or(0);
    let (rows, columns) = (
        (last(|head| head.layer) + 1) as f64,
        (last(|head| head.head) + 1) as f64,
    );
    let step = [AMONG_OTHERS + 16.0, AMONG_OTHERS + 34.0];
    let mut svg = Svg::new(
        (16.0 + step[0] * columns).max(16.0 + LEGEND),
        16.0 + step[1] * rows + 84.0,
    );
    hatching(&mut svg);
    for (head, role, heatmap) in heads {
        let corner = [
            16.0 + step[0] * head.head as f64,
            34.0 + step[1] * head.layer as f64,
        ];
        svg.text([corner[0], corner[1] - 6.0], "", &format!("{head} {role}"));
        cells(&mut svg, heatmap, corner, AMONG_OTHERS);
    }
    let below = 16.0 + step[1] * rows;
    svg.text(
        [16.0, below + 14.0],
        "",
        "Rows are queries, columns are keys.",
    );
    let may_attend = heads
        .first()
        .map_or(MayAttend::All, |(.., heatmap)| heatmap.may_attend);
    legend(&mut svg, [16.0, below + 28.0], may_attend);
    svg.finish()
}

/// From the middle of a cell down to the baseline of its label.
fn font_middle(cell: f64) -> f64 {
    (cell * 0.28).clamp(2.8, 5.0)
}

/// The pattern that stands for "may not be looked at", which is not the same as a weight of 0.
fn hatching(svg: &mut Svg) {
    svg.element(format_args!(
        r##"<defs><pattern id="masked" width="6" height="6" patternUnits="userSpaceOnUse"><rect width="6" height="6" fill="#f4f4f4"/><path d="M0 6L6 0" stroke="#bbb" stroke-width="1"/></pattern></defs>"##
    ));
}

/// One path for each colour, in units of cells; runs of one colour in a row are one rectangle.
fn cells(svg: &mut Svg, heatmap: &Heatmap, [x, y]: [f64; 2], side: f64) {
    let length = heatmap.tokens.len();
    svg.element(format_args!(
        r#"<rect x="{x:.1}" y="{y:.1}" width="{side:.1}" height="{side:.1}" fill="url(#masked)"/>"#
    ));
    let mut paths: BTreeMap<u8, String> = BTreeMap::new();
    for query in 0..length {
        let keys = heatmap.may_attend.keys(query, length);
        let mut key = keys.start;
        let row = &heatmap.weights[query * length..][keys];
        let levels: Vec<u8> = row
            .iter()
            .map(|weight| (weight.clamp(0.0, 1.0) * LEVELS).round() as u8)
            .collect();
        for run in levels.chunk_by(PartialEq::eq) {
            let path = paths.entry(run[0]).or_default();
            let _ = write!(path, "M{key} {query}h{0}v1h-{0}z", run.len());
            key += run.len();
        }
    }
    let scale = side / length.max(1) as f64;
    svg.element(format_args!(
        r#"<g transform="translate({x:.1} {y:.1}) scale({scale:.4})" shape-rendering="crispEdges">"#
    ));
    for (level, path) in paths {
        let fill = hex(colour(f32::from(level) / LEVELS));
        svg.element(format_args!(r#"<path fill="{fill}" d="{path}"/>"#));
    }
    svg.element(format_args!("</g>"));
}

/// What the colours and the hatching mean.
fn legend(svg: &mut Svg, [x, y]: [f64; 2], may_attend: MayAttend) {
    const STEPS: usize = 32;
    for step in 0..STEPS {
        let fill = hex(colour(step as f32 / (STEPS - 1) as f32));
        let at = x + 5.0 * step as f64;
        svg.element(format_args!(
            r#"<rect x="{at:.1}" y="{y:.1}" width="5" height="12" fill="{fill}" shape-rendering="crispEdges"/>"#
        ));
    }
    let right = x + 5.0 * STEPS as f64;
    for (at, value) in [(x, "0"), (f64::midpoint(x, right), "0.5"), (right, "1")] {
        svg.text([at, y + 26.0], r#"text-anchor="middle""#, value);
    }
    svg.text([x, y + 42.0], "", "attention weight");
    let masked = match may_attend {
        MayAttend::All => None,
        MayAttend::Causal => Some("masked: after the query"),
        MayAttend::Window(_) => Some("masked: after the query or too far before it"),
    };
    if let Some(masked) = masked {
        let at = right + 24.0;
        svg.element(format_args!(
            r#"<rect x="{at:.1}" y="{y:.1}" width="24" height="12" fill="url(#masked)"/>"#
        ));
        svg.text([at + 30.0, y + 10.0], "", masked);
    }
}
