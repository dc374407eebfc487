//! How the scores of every head changed over training: small multiples, a row per layer, a column
//! per head.

use headlight_heads::{HeadName, Role};

use crate::{
    colour::hex,
    plot::{Curve, Plot, step_range},
    svg::Svg,
};

/// A head's scores over training.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadCurves {
    /// The head.
    pub head: HeadName,
    /// What it looks like at the end, where roles are read.
    pub role: Option<Role>,
    /// One curve per score; every head has the same ones in the same order.
    pub curves: Vec<Curve>,
}

/// A panel with its margins.
const PANEL: [f64; 2] = [190.0, 150.0];
/// Left and top of the first panel: names and legend stand outside.
const MARGIN: [f64; 2] = [16.0, 44.0];

/// Draws every head's scores over the logarithm of the step, with their intervals and nulls.
#[must_use]
pub fn head_scores_svg(heads: &[HeadCurves]) -> String {
    let last =
        |of: fn(&HeadName) -> usize| heads.iter().map(|head| of(&head.head)).max().unwrap_or(0);
    let (layers, columns) = (last(|head| head.layer) + 1, last(|head| head.head) + 1);
    let named = heads.first().map_or(&[][..], |head| &head.curves);
    let legend_width: f64 = named.iter().map(|curve| legend_entry(&curve.name)).sum();
    let width = (2.0 * MARGIN[0] + PANEL[0] * columns as f64).max(2.0 * MARGIN[0] + legend_width);
    let height = MARGIN[1] + PANEL[1] * layers as f64 + 44.0;
    let mut svg = Svg::new(width, height);
    let mut x = MARGIN[0];
    for curve in named {
        svg.line(
            [x, 20.0],
            [x + 18.0, 20.0],
            &format!(r#"stroke="{}" stroke-width="2""#, hex(curve.colour)),
        );
        svg.text([x + 24.0, 24.0], "", &curve.name);
        x += legend_entry(&curve.name);
    }
    let steps = step_range(heads.iter().flat_map(|head| &head.curves));
    for HeadCurves { head, role, curves } in heads {
        let panel = [
            MARGIN[0] + PANEL[0] * head.head as f64 + 28.0,
            MARGIN[1] + PANEL[1] * head.layer as f64 + 22.0,
        ];
        let plot = Plot {
            corner: panel,
            size: [PANEL[0] - 44.0, PANEL[1] - 50.0],
            steps,
        };
        plot.grid(&mut svg, &[0.0, 0.5, 1.0]);
        for curve in curves {
            plot.curve(&mut svg, curve);
        }
        let title = match role {
            Some(role) => format!("{head} {role}"),
            None => head.to_string(),
        };
        svg.text([panel[0], panel[1] - 7.0], "", &title);
    }
    let below = MARGIN[1] + PANEL[1] * layers as f64;
    svg.text(
        [MARGIN[0], below + 16.0],
        "",
        "Each score over the step (logarithmic); band: 95 % interval;",
    );
    svg.text(
        [MARGIN[0], below + 32.0],
        "",
        "dotted: uniform attention; no score exceeds 1.",
    );
    svg.finish()
}

/// The width that a name takes in the legend.
fn legend_entry(name: &str) -> f64 {
    44.0 + 6.5 * name.chars().count() as f64
}
