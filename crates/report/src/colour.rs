//! The colours of every picture, whoever draws it: terminal, SVG or a page.

use anstyle::{RgbColor, Style};

/// Anchors of cividis (Nuñez et al. 2018) from weight 0 to weight 1, sRGB: even steps of lightness,
/// the same for colour-blind eyes. Between them colours are linear.
pub(crate) const COLOURS: [[u8; 3]; 6] = [
    [0, 34, 78],
    [53, 69, 108],
    [102, 105, 112],
    [148, 142, 119],
    [200, 184, 102],
    [254, 232, 56],
];

// Told apart with any colour vision (Okabe & Ito 2008).
pub(crate) const BLUE: [u8; 3] = [0, 114, 178];
pub(crate) const VERMILLION: [u8; 3] = [213, 94, 0];
pub(crate) const BLUISH_GREEN: [u8; 3] = [0, 158, 115];
pub(crate) const REDDISH_PURPLE: [u8; 3] = [204, 121, 167];
pub(crate) const SKY_BLUE: [u8; 3] = [86, 180, 233];
pub(crate) const ORANGE: [u8; 3] = [230, 159, 0];
pub(crate) const YELLOW: [u8; 3] = [240, 228, 66];

/// The colour of the line with this number; after six they come again.
#[must_use]
pub fn line_colour(index: usize) -> [u8; 3] {
    let colours = [
        BLUE,
        VERMILLION,
        BLUISH_GREEN,
        REDDISH_PURPLE,
        SKY_BLUE,
        ORANGE,
    ];
    colours[index % colours.len()]
}

/// A colour of a line or a role as a terminal shows it, whose background may be black or white: the
/// dark blue changes places with the light blue.
pub(crate) fn terminal_colour(colour: [u8; 3]) -> [u8; 3] {
    match colour {
        BLUE => SKY_BLUE,
        SKY_BLUE => BLUE,
        other => other,
    }
}

/// Text for a terminal in the colour `front` on the colour `behind`; none leaves the terminal's
/// own.
pub(crate) fn painted(text: &str, front: Option<[u8; 3]>, behind: Option<[u8; 3]>) -> String {
    let rgb = |colour: Option<[u8; 3]>| colour.map(|[r, g, b]| RgbColor(r, g, b).into());
    let style = Style::new().fg_color(rgb(front)).bg_color(rgb(behind));
    format!("{style}{text}{style:#}")
}

/// The colour of a weight between 0 and 1.
#[must_use]
pub fn colour(weight: f32) -> [u8; 3] {
    let at = weight.clamp(0.0, 1.0) * (COLOURS.len() - 1) as f32;
    let below = (at as usize).min(COLOURS.len() - 2);
    let part = at - below as f32;
    [0, 1, 2].map(|channel| {
        let (from, to) = (
            f32::from(COLOURS[below][channel]),
            f32::from(COLOURS[below + 1][channel]),
        );
        (from + part * (to - from)).round() as u8
    })
}

/// `#00224e`
pub(crate) fn hex([r, g, b]: [u8; 3]) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CIE L*, 0 … 100, from sRGB (IEC 61966-2-1, white D65).
    fn lightness(rgb: [u8; 3]) -> f64 {
        let linear = rgb.map(|channel| {
            let value = f64::from(channel) / 255.0;
            if value <= 0.04045 {
                value / 12.92
            } else {
                ((value + 0.055) / 1.055).powf(2.4)
            }
        });
        let luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
        116.0 * luminance.cbrt() - 16.0
    }

    #[test]
    fn between_anchors_colours_are_linear() {
        assert_eq!(colour(0.0), [0, 34, 78]);
        assert_eq!(colour(0.3), [78, 87, 110]); // half-way between the second and the third anchor
        assert_eq!(colour(1.0), [254, 232, 56]);
    }

    #[test]
    fn equal_steps_of_weight_are_equal_steps_of_lightness() {
        let steps: Vec<f64> = (0..=20)
            .map(|step| lightness(colour(step as f32 / 20.0)))
            .collect();
        let mean = (steps[20] - steps[0]) / 20.0;
        for pair in steps.windows(2) {
            let step = pair[1] - pair[0];
            assert!(
                (0.75 * mean..1.25 * mean).contains(&step),
                "a step of {step:.2} beside a mean of {mean:.2}"
            );
        }
    }
}
