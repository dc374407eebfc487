//! How much of a head must do its role until it is found, as a picture.

use headlight_heads::{
    RoleRate,
    role_rate::{DRAWS, SHARES},
};

use crate::{colour::hex, role_look::role_colour, svg::Svg};

/// The left upper corner of the first panel.
const CORNER: [f64; 2] = [44.0, 34.0];
/// Width and height of a panel.
const PANEL: [f64; 2] = [150.0, 150.0];
/// From the left of one panel to that of the next.
const APART: f64 = 174.0;
const HEIGHT: f64 = 246.0;

/// Draws the sensitivity of roles: of the heads that do their role at a share of the queries and
/// attend evenly at the others, the share that is found (line) and whose role is sure (dashes).
///
/// ```
/// use headlight_heads::RoleRate;
/// use headlight_report::sensitivity_svg;
///
/// let svg = sensitivity_svg(RoleRate::all());
/// assert!(svg.contains("previous token") && svg.contains("induction"));
/// ```
#[must_use]
pub fn sensitivity_svg(rates: &[RoleRate]) -> String {
    let width = CORNER[0] + APART * rates.len() as f64;
    let mut svg = Svg::new(width, HEIGHT);
    for (index, rate) in rates.iter().enumerate() {
        let left = CORNER[0] + APART * index as f64;
        draw_panel(&mut svg, left, rate);
    }
    let middle = width / 2.0;
    svg.text(
        [middle, HEIGHT - 28.0],
        r#"text-anchor="middle""#,
        "share of the queries at which the head does its role, %; it attends evenly at the others",
    );
    svg.text(
        [middle, HEIGHT - 10.0],
        r#"text-anchor="middle""#,
        &format!("line: share of {DRAWS} such heads with the role; dashes: whose role is sure"),
    );
    svg.finish()
}

fn draw_panel(svg: &mut Svg, left: f64, rate: &RoleRate) {
    let [width, height] = PANEL;
    let (top, bottom) = (CORNER[1], CORNER[1] + height);
    let grey = r##"stroke="#ddd""##;
    for share in [0.0, 0.5, 1.0] {
        let y = bottom - share * height;
        svg.line([left, y], [left + width, y], grey);
        svg.text(
            [left - 4.0, y + 4.0],
            r#"text-anchor="end""#,
            &share.to_string(),
        );
    }
    for percent in [0, 50, 100] {
        let x = left + width * f64::from(percent) / 100.0;
        svg.line([x, top], [x, bottom], grey);
        svg.text(
            [x, bottom + 14.0],
            r#"text-anchor="middle""#,
            &percent.to_string(),
        );
    }
    let name = rate.measure.name();
    svg.text(
        [left + width / 2.0, top - 12.0],
        r#"text-anchor="middle""#,
        name,
    );
    let colour = hex(role_colour(rate.measure));
    for (counts, dashes) in [(&rate.planted_found, ""), (&rate.planted_sure, "5 4")] {
        let mut points = Vec::new();
        for (share, count) in SHARES.iter().zip(counts) {
            let x = left + width * *share as f64 / 100.0;
            let y = bottom - height * *count as f64 / DRAWS as f64;
            points.push(format!("{x:.1},{y:.1}"));
        }
        svg.element(format_args!(
            r#"<polyline fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}" points="{}"/>"#,
            points.join(" ")
        ));
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_picture_in_docs_is_this_one() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/sensitivity.svg");
        let written = std::fs::read_to_string(path).unwrap();
        let command = "cargo run --example sensitivity > docs/results/sensitivity.svg";
        assert!(
            written.trim_end() == sensitivity_svg(RoleRate::all()).trim_end(),
            "docs/results/sensitivity.svg is old; run: {command}"
        );
    }
}
