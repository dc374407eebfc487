//! SVG as text: elements one a line, everything a person wrote escaped.

use std::fmt::{Arguments, Write as _};

/// A picture in the making.
pub(crate) struct Svg(String);

impl Svg {
    /// An empty white picture of this size in pixels.
    pub fn new(width: f64, height: f64) -> Self {
        Self(format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="white"/>
"#
        ))
    }

    /// One element, written out.
    pub fn element(&mut self, element: Arguments) {
        let _ = self.0.write_fmt(element);
        self.0.push('\n');
    }

    /// A line of text that starts, or with `text-anchor` in `attributes` is centred or ends, at
    /// `x`.
    pub fn text(&mut self, [x, y]: [f64; 2], attributes: &str, text: &str) {
        self.element(format_args!(
            r#"<text x="{x:.1}" y="{y:.1}" {attributes}>{}</text>"#,
            escaped(text)
        ));
    }

    /// A straight line.
    pub fn line(&mut self, [x1, y1]: [f64; 2], [x2, y2]: [f64; 2], attributes: &str) {
        self.element(format_args!(
            r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" {attributes}/>"#
        ));
    }

    /// The whole file.
    pub fn finish(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }
}

/// Text as XML takes it, in content and between quotes.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}
