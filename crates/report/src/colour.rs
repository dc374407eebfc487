//! The colour map of weights, the same in the terminal, in files and on pages.

/// Anchors of cividis (Nuñez et al. 2018): even steps of lightness, the same for colour-blind eyes.
pub(crate) const COLOURS: [[u8; 3]; 6] =
    [[0, 34, 78], [53, 69, 108], [102, 105, 112], [148, 142, 119], [200, 184, 102], [254, 232, 56]];

/// Red, green and blue of a weight between 0 and 1: linear between the anchors.
pub(crate) fn colour(weight: f32) -> [u8; 3] {
    let at = weight.clamp(0.0, 1.0) * (COLOURS.len() - 1) as f32;
    let below = (at as usize).min(COLOURS.len() - 2);
    let part = at - below as f32;
    [0, 1, 2].map(|channel| {
        let (from, to) = (f32::from(COLOURS[below][channel]), f32::from(COLOURS[below + 1][channel]));
        (from + part * (to - from)).round() as u8
    })
}
