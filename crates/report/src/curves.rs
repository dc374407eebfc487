//! Curves over training as SVG: text that any browser shows, without scripts or fonts of its own.

use std::fmt::Write as _;

/// A named curve of shares: `(step, value)` with values between 0 and 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Stands in the legend.
    pub name: String,
    /// In the order of steps.
    pub points: Vec<(usize, f64)>,
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 360.0;
/// Left, top, right, bottom of the plot: outside stand numbers and names.
const PLOT: [f64; 4] = [48.0, 16.0, 704.0, 312.0];
/// Told apart with any colour vision (Okabe & Ito 2008).
const COLOURS: [&str; 4] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"];

/// Draws curves over the logarithm of the step, so that what happens early and what happens late are both seen.
/// Step 0, which has no logarithm, is left out.
///
/// ```
/// use headlight_report::{Curve, curves_svg};
///
/// let svg = curves_svg(&[Curve { name: "test".to_owned(), points: vec![(1, 0.0), (10, 0.5), (100, 1.0)] }]);
/// // From the lower left over the middle to the upper right.
/// assert!(svg.contains(r#"points="48.0,312.0 376.0,164.0 704.0,16.0""#));
/// ```
#[must_use]
pub fn curves_svg(curves: &[Curve]) -> String {
    let [left, top, right, bottom] = PLOT;
    let steps = || curves.iter().flat_map(|curve| &curve.points).map(|&(step, _)| step).filter(|&step| step > 0);
    let (first, last) = (steps().min().unwrap_or(1) as f64, steps().max().unwrap_or(1) as f64);
    let x = |step: f64| left + (right - left) * (step / first).ln() / (last / first).ln().max(f64::MIN_POSITIVE);
    let y = |value: f64| bottom - (bottom - top) * value;

    let mut svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="white"/>
"#
    );
    let mut line = |text: std::fmt::Arguments| {
        let _ = svg.write_fmt(text);
        svg.push('\n');
    };
    for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let y = y(share);
        line(format_args!(r##"<line x1="{left}" x2="{right}" y1="{y:.1}" y2="{y:.1}" stroke="#ddd"/>"##));
        line(format_args!(r#"<text x="{}" y="{:.1}" text-anchor="end">{share}</text>"#, left - 6.0, y + 4.0));
    }
    let powers = (0..12).map(|power| 10f64.powi(power)).filter(|&step| (first..=last).contains(&step));
    for step in powers {
        let x = x(step);
        line(format_args!(r##"<line x1="{x:.1}" x2="{x:.1}" y1="{top}" y2="{bottom}" stroke="#ddd"/>"##));
        line(format_args!(r#"<text x="{x:.1}" y="{}" text-anchor="middle">{step}</text>"#, bottom + 18.0));
    }
    line(format_args!(
        r#"<text x="{}" y="{}" text-anchor="middle">step</text>"#,
        f64::midpoint(left, right),
        bottom + 36.0
    ));
    for (index, (curve, colour)) in curves.iter().zip(COLOURS.into_iter().cycle()).enumerate() {
        let points = curve.points.iter().filter(|(step, _)| *step > 0);
        let points: Vec<String> =
            points.map(|&(step, value)| format!("{:.1},{:.1}", x(step as f64), y(value.clamp(0.0, 1.0)))).collect();
        line(format_args!(
            r#"<polyline fill="none" stroke="{colour}" stroke-width="2" points="{}"/>"#,
            points.join(" ")
        ));
        let y = top + 20.0 + 18.0 * index as f64;
        line(format_args!(r#"<text x="{}" y="{y}" fill="{colour}">{}</text>"#, left + 12.0, escaped(&curve.name)));
    }
    svg.push_str("</svg>\n");
    svg
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
