//! Curves over training as SVG: text that any browser shows, without scripts or fonts of its own.

use crate::{
    colour::hex,
    plot::{Curve, Plot, step_range},
    svg::Svg,
};

const SIZE: [f64; 2] = [720.0, 360.0];

/// Draws curves over the logarithm of the step.
///
/// ```
/// use headlight_report::{Curve, CurvePoint, curves_svg, line_colour};
///
/// let point = |step, value| CurvePoint { step, value, interval: None };
/// let points = vec![point(1, 0.0), point(10, 0.5), point(100, 1.0)];
/// let curve = Curve { name: "test".to_owned(), colour: line_colour(0), points, null: Some(0.25) };
/// let svg = curves_svg(&[curve]);
/// // From the lower left over the middle to the upper right.
/// assert!(svg.contains(r#"points="48.0,312.0 376.0,164.0 704.0,16.0""#));
/// ```
#[must_use]
pub fn curves_svg(curves: &[Curve]) -> String {
    let [width, height] = SIZE;
    let mut svg = Svg::new(width, height);
    let plot = Plot {
        corner: [48.0, 16.0],
        size: [656.0, 296.0],
        steps: step_range(curves.iter()),
    };
    plot.grid(&mut svg, &[0.0, 0.25, 0.5, 0.75, 1.0]);
    svg.text(
        [376.0, 348.0],
        r#"text-anchor="middle""#,
        "step (logarithmic)",
    );
    for (index, curve) in curves.iter().enumerate() {
        let colour = hex(curve.colour);
        plot.curve(&mut svg, curve);
        let null = curve
            .null
            .map_or_else(String::new, |null| format!(" (dotted: null, {null:.3})"));
        let y = 36.0 + 18.0 * index as f64;
        svg.text(
            [60.0, y],
            &format!(r#"fill="{colour}""#),
            &format!("{}{null}", curve.name),
        );
    }
    svg.finish()
}
