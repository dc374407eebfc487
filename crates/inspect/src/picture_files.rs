//! Where pictures go that are asked for as files: SVG and PNG, and their numbers beside them.

use std::path::PathBuf;

use headlight_report::svg_to_png;
use headlight_run::{Error, write_atomically};

/// The files asked for.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct PictureFiles {
    /// Write the picture as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write the picture as PNG
    #[arg(long, value_name = "FILE")]
    png: Option<PathBuf>,
    /// Write its numbers as comma-separated values
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

/// A picture and its numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// As SVG.
    pub svg: String,
    /// As comma-separated values.
    pub csv: String,
}

impl PictureFiles {
    /// Whether a file is asked for that shows something.
    #[must_use]
    pub fn any(&self) -> bool {
        self.svg.is_some() || self.png.is_some() || self.csv.is_some()
    }

    /// Writes what was asked for, and says what was written.
    ///
    /// # Errors
    /// If a file cannot be written, or the picture is too large for pixels.
    pub fn write(&self, picture: &Picture) -> Result<String, Error> {
        let mut written = Vec::new();
        // Drawn before anything is written: a picture that is too large leaves no other file
        // behind.
        let png = self
            .png
            .as_ref()
            .map(|path| svg_to_png(&picture.svg).map(|bytes| (path, bytes)))
            .transpose()?;
        let text = [(&self.svg, &picture.svg), (&self.csv, &picture.csv)];
        let text = text
            .into_iter()
            .filter_map(|(path, text)| Some((path.as_ref()?, text.clone().into_bytes())));
        for (path, bytes) in text.chain(png) {
            write_atomically(path, &bytes)?;
            written.push(path.display().to_string());
        }
        Ok(format!("Written to {}.", written.join(", ")))
    }
}
