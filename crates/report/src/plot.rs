//! Shares over the logarithm of the step, so that what happens early and what happens late are both
//! seen.

use headlight_heads::Interval;

use crate::{colour::hex, svg::Svg};

/// A named curve of shares, between 0 and 1.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Curve {
    /// Stands in the legend.
    pub name: String,
    /// Of the line, the band and the null.
    pub colour: [u8; 3],
    /// In the order of steps.
    pub points: Vec<CurvePoint>,
    /// What the values are measured against: chance, or uniform attention.
    pub null: Option<f64>,
}

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurvePoint {
    /// Updates done.
    pub step: usize,
    /// What was measured.
    pub value: f64,
    /// Its 95 % interval, where there is one.
    pub interval: Option<Interval>,
}

/// The steps that have a logarithm, from the first to the last of all curves.
pub(crate) fn step_range<'a>(curves: impl Iterator<Item = &'a Curve> + Clone) -> [f64; 2] {
    let steps = || {
        curves
            .clone()
            .flat_map(|curve| &curve.points)
            .map(|point| point.step)
            .filter(|&step| step > 0)
    };
    [
        steps().min().unwrap_or(1) as f64,
        steps().max().unwrap_or(1) as f64,
    ]
}

/// How far along the logarithmic axis a step is, 0 … 1.
pub(crate) fn along(step: f64, [first, last]: [f64; 2]) -> f64 {
    (step / first).ln() / (last / first).ln().max(f64::MIN_POSITIVE)
}

/// Where in a picture shares are drawn over steps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plot {
    /// The left upper corner.
    pub corner: [f64; 2],
    /// Width and height.
    pub size: [f64; 2],
    /// The first and the last step.
    pub steps: [f64; 2],
}

impl Plot {
    pub fn x(&self, step: f64) -> f64 {
        self.corner[0] + self.size[0] * along(step, self.steps)
    }

    pub fn y(&self, value: f64) -> f64 {
        self.corner[1] + self.size[1] * (1.0 - value.clamp(0.0, 1.0))
    }

    /// Lines at these shares and at the powers of ten of the step, with their numbers.
    pub fn grid(&self, svg: &mut Svg, shares: &[f64]) {
        let ([left, top], [right, bottom]) = (
            self.corner,
            [self.corner[0] + self.size[0], self.corner[1] + self.size[1]],
        );
        for &share in shares {
            let y = self.y(share);
            svg.line([left, y], [right, y], r##"stroke="#ddd""##);
            svg.text(
                [left - 6.0, y + 4.0],
                r#"text-anchor="end""#,
                &share.to_string(),
            );
        }
        let powers = (0..12).map(|power| 10_f64.powi(power));
        for step in powers.filter(|&step| (self.steps[0]..=self.steps[1]).contains(&step)) {
            let x = self.x(step);
            svg.line([x, top], [x, bottom], r##"stroke="#ddd""##);
            svg.text(
                [x, bottom + 16.0],
                r#"text-anchor="middle""#,
                &step.to_string(),
            );
        }
    }

    /// The curve, its interval as a band, and its null as a dotted line. Step 0, which has no
    /// logarithm, is left out.
    pub fn curve(&self, svg: &mut Svg, curve: &Curve) {
        let colour = hex(curve.colour);
        let points = || curve.points.iter().filter(|point| point.step > 0);
        let at =
            |step: usize, value: f64| format!("{:.1},{:.1}", self.x(step as f64), self.y(value));
        let sure = || points().filter_map(|point| Some((point.step, point.interval?)));
        let there = sure().map(|(step, interval)| at(step, interval.high));
        let back = sure().rev().map(|(step, interval)| at(step, interval.low));
        let band: Vec<String> = there.chain(back).collect();
        if !band.is_empty() {
            svg.element(format_args!(
                r#"<polygon fill="{colour}" fill-opacity="0.2" points="{}"/>"#,
                band.join(" ")
            ));
        }
        if let Some(null) = curve.null {
            let (left, right, y) = (self.corner[0], self.corner[0] + self.size[0], self.y(null));
            svg.line(
                [left, y],
                [right, y],
                &format!(r#"stroke="{colour}" stroke-dasharray="2 3""#),
            );
        }
        let line: Vec<String> = points().map(|point| at(point.step, point.value)).collect();
        svg.element(format_args!(
            r#"<polyline fill="none" stroke="{colour}" stroke-width="2" points="{}"/>"#,
            line.join(" ")
        ));
    }
}
