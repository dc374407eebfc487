//! A curve in one line of a table.

use crate::plot::{Curve, along};

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A curve of shares in `columns` characters, from the first of `steps` to the last on a
/// logarithmic axis, each as high as the last value that was measured by then; a space before the
/// first.
pub(crate) fn sparkline(curve: &Curve, steps: [f64; 2], columns: usize) -> String {
    let mut line = String::new();
    for column in 0..columns {
        // Half a character to the right, so that a point in the last one counts.
        let until = (column as f64 + 0.5) / (columns - 1) as f64;
        let measured = curve
            .points
            .iter()
            .rev()
            .find(|point| point.step > 0 && along(point.step as f64, steps) <= until);
        let character = measured.map(|point| {
            let level = point.value.clamp(0.0, 1.0) * (LEVELS.len() - 1) as f64;
            LEVELS[level.round() as usize]
        });
        line.push(character.unwrap_or(' '));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CurvePoint;

    #[test]
    fn a_character_is_as_high_as_the_last_value_by_then() {
        let point = |step, value| CurvePoint {
            step,
            value,
            interval: None,
        };
        let curve = Curve {
            points: vec![
                point(0, 1.0),
                point(10, 0.0),
                point(100, 0.5),
                point(1000, 1.0),
            ],
            ..Curve::default()
        };
        // A character is a quarter of a power of ten; that before step 10 had no value.
        assert_eq!(sparkline(&curve, [10.0, 1000.0], 9), "▁▁▁▁▅▅▅▅█");
        assert_eq!(sparkline(&curve, [1.0, 1000.0], 4), " ▁▅█");
    }
}
