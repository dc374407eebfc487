//! The same pictures in pixels.

use std::sync::{Arc, LazyLock};

use headlight_run::{ErrorKind, InputError};
use resvg::{
    render,
    tiny_skia::{Pixmap, Transform},
    usvg::{Options, Tree, fontdb::Database},
};

/// Pixels of the picture for each pixel of the drawing: sharp in print and on dense screens.
const SCALE: f32 = 2.0;
/// 256 MiB of colours.
const MOST_PIXELS: f32 = 64.0 * 1024.0 * 1024.0;

/// Fonts that come with the program, so that a picture is the same on every machine. What none of
/// them has, such as Chinese characters, is left out of the PNG; the SVG leaves the choice of fonts
/// to whoever shows it.
static FONTS: LazyLock<Arc<Database>> = LazyLock::new(|| {
    let mut fonts = Database::new();
    for font in [
        epaint_default_fonts::UBUNTU_LIGHT,
        epaint_default_fonts::HACK_REGULAR,
    ] {
        fonts.load_font_data(font.to_vec());
    }
    fonts.set_sans_serif_family("Ubuntu");
    Arc::new(fonts)
});

/// Draws an SVG of this crate as a PNG file.
///
/// # Errors
/// If the picture is too large, or is no SVG.
pub fn svg_to_png(svg: &str) -> Result<Vec<u8>, InputError> {
    let options = Options {
        fontdb: FONTS.clone(),
        ..Options::default()
    };
    let tree = Tree::from_str(svg, &options)
        .map_err(|error| InputError::because(ErrorKind::Internal, "PNG", error))?;
    let (width, height) = (tree.size().width() * SCALE, tree.size().height() * SCALE);
    if width * height > MOST_PIXELS {
        let message =
            format_args!("{width} × {height} pixels are too many for one picture; write it as SVG");
        return Err(InputError::new("PNG", message));
    }
    let mut pixels = Pixmap::new(width.ceil() as u32, height.ceil() as u32)
        .ok_or_else(|| InputError::new("PNG", "an empty picture"))?;
    render(
        &tree,
        Transform::from_scale(SCALE, SCALE),
        &mut pixels.as_mut(),
    );
    pixels
        .encode_png()
        .map_err(|error| InputError::because(ErrorKind::Internal, "PNG", error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::Svg;

    #[test]
    fn letters_are_drawn_without_fonts_of_the_machine() {
        let dark_pixels = |text: &str| {
            let mut svg = Svg::new(60.0, 20.0);
            svg.text([5.0, 15.0], "", text);
            let png = svg_to_png(&svg.finish()).unwrap();
            let pixels = Pixmap::decode_png(&png).unwrap();
            assert_eq!((pixels.width(), pixels.height()), (120, 40));
            pixels
                .pixels()
                .iter()
                .filter(|pixel| pixel.red() < 128)
                .count()
        };
        assert_eq!(dark_pixels(""), 0);
        assert!(
            dark_pixels("cat").abs_diff(120) < 100,
            "{}",
            dark_pixels("cat")
        );
    }

    #[test]
    fn a_picture_larger_than_memory_is_refused() {
        let error = svg_to_png(&Svg::new(1e5, 1e5).finish())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("200000 × 200000 pixels are too many"),
            "{error}"
        );
    }
}
