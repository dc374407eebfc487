//! The same pictures in pixels.

use std::{
    collections::BTreeSet,
    sync::{Arc, LazyLock},
};

use headlight_run::{Error, ErrorKind};
use resvg::{
    render,
    tiny_skia::{Pixmap, Transform},
    usvg::{Group, Node, Options, Tree, fontdb::Database},
};

/// Pixels of the picture for each pixel of the drawing: sharp in print and on dense screens.
const SCALE: f32 = 2.0;
/// Of more characters that no font has, only so many are named.
const MOST_NAMED: usize = 20;
/// 256 MiB of colours.
const MOST_PIXELS: f32 = 64.0 * 1024.0 * 1024.0;

/// Fonts that come with the program, so that a picture is the same on every machine. A character
/// that none of them has, such as a Chinese one, is a box in the PNG, and a warning names it; the
/// SVG leaves the choice of fonts to whoever shows it.
static FONTS: LazyLock<Arc<Database>> = LazyLock::new(|| {
    let mut fonts = Database::new();
    for font in [
        epaint_default_fonts::UBUNTU_LIGHT,
        epaint_default_fonts::HACK_REGULAR,
        epaint_default_fonts::NOTO_EMOJI_REGULAR,
    ] {
        fonts.load_font_data(font.to_vec());
    }
    fonts.set_sans_serif_family("Ubuntu");
    Arc::new(fonts)
});

/// The sign for a space in the names of tokens, which none of the fonts has, and one of the same
/// form, which one of them has.
const SPACE: [&str; 2] = ["␣", "⊔"];

/// Draws an SVG of this crate as a PNG file. A warning names the characters that no font has.
///
/// # Errors
/// If the picture is too large, or is no SVG.
pub fn svg_to_png(svg: &str) -> Result<Vec<u8>, Error> {
    let options = Options {
        fontdb: FONTS.clone(),
        ..Options::default()
    };
    let [space, drawn_space] = SPACE;
    let svg = svg.replace(space, drawn_space);
    let tree = Tree::from_str(&svg, &options)
        .map_err(|error| Error::because(ErrorKind::Internal, "PNG", error))?;
    let (width, height) = (tree.size().width() * SCALE, tree.size().height() * SCALE);
    if width * height > MOST_PIXELS {
        let message =
            format_args!("{width} × {height} pixels are too many for one picture; write it as SVG");
        return Err(Error::new("PNG", message));
    }
    let missing = missing_characters(tree.root());
    if !missing.is_empty() {
        let named: Vec<String> = missing.iter().take(MOST_NAMED).cloned().collect();
        let more = if missing.len() > MOST_NAMED {
            " …"
        } else {
            ""
        };
        tracing::warn!(
            "no font of the program has {}{more}: boxes stand in the PNG, the characters in the SVG",
            named.join(" ")
        );
    }
    let mut pixels = Pixmap::new(width.ceil() as u32, height.ceil() as u32)
        .ok_or_else(|| Error::new("PNG", "an empty picture"))?;
    render(
        &tree,
        Transform::from_scale(SCALE, SCALE),
        &mut pixels.as_mut(),
    );
    pixels
        .encode_png()
        .map_err(|error| Error::because(ErrorKind::Internal, "PNG", error))
}

/// The characters that no font has, each once.
fn missing_characters(group: &Group) -> BTreeSet<String> {
    let mut missing = BTreeSet::new();
    for node in group.children() {
        match node {
            Node::Group(group) => missing.extend(missing_characters(group)),
            Node::Text(text) => {
                let glyphs = text
                    .layouted()
                    .iter()
                    .flat_map(|span| &span.positioned_glyphs);
                // In every font the first glyph stands for all that the font has not.
                let boxes = glyphs.filter(|glyph| glyph.id.0 == 0);
                missing.extend(boxes.map(|glyph| glyph.text.clone()));
            }
            Node::Path(_) | Node::Image(_) => {}
        }
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::Svg;

    /// The pixels of a text.
    fn drawn(text: &str) -> Vec<u8> {
        let mut svg = Svg::new(60.0, 20.0);
        svg.text([5.0, 15.0], "", text);
        let png = svg_to_png(&svg.finish()).unwrap();
        let pixels = Pixmap::decode_png(&png).unwrap();
        assert_eq!((pixels.width(), pixels.height()), (120, 40));
        pixels.data().to_vec()
    }

    fn missing(text: &str) -> Vec<String> {
        let mut svg = Svg::new(60.0, 20.0);
        svg.text([5.0, 15.0], "", text);
        let options = Options {
            fontdb: FONTS.clone(),
            ..Options::default()
        };
        let tree = Tree::from_str(&svg.finish(), &options).unwrap();
        missing_characters(tree.root()).into_iter().collect()
    }

    #[test]
    fn letters_are_drawn_without_fonts_of_the_machine() {
        let dark_pixels = |text: &str| {
            let pixels = drawn(text);
            pixels.chunks(4).filter(|pixel| pixel[0] < 128).count()
        };
        assert_eq!(dark_pixels(""), 0);
        assert!(
            dark_pixels("cat").abs_diff(120) < 100,
            "{}",
            dark_pixels("cat")
        );
    }

    #[test]
    fn the_sign_for_a_space_is_no_box() {
        // A box is what stands in the place of every character that no font has.
        assert_eq!(drawn("猫"), drawn("犬"));
        assert_ne!(drawn(SPACE[0]), drawn("猫"));
        assert_ne!(drawn(SPACE[0]), drawn(""));
        assert_eq!(missing(SPACE[1]), [""; 0]);
    }

    #[test]
    fn what_no_font_has_is_named_once() {
        assert_eq!(missing("caf\u{e9} Ġ→⟨⟩·−±½ Привет"), [""; 0]);
        assert_eq!(missing("🐈😀"), [""; 0]);
        assert_eq!(missing("a猫b猫c犬"), ["犬", "猫"]);
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
