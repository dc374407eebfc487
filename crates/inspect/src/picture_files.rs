//! Where pictures go that are asked for as files: SVG and PNG.

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
}

impl PictureFiles {
    /// Writes the picture, an SVG, as what was asked for, and gives the files written. It is drawn
    /// only if somebody asked.
    ///
    /// # Errors
    /// If a file cannot be written, or the picture is too large for pixels.
    pub fn write(
        &self,
        picture: impl FnOnce() -> Result<String, Error>,
    ) -> Result<Vec<PathBuf>, Error> {
        if self.svg.is_none() && self.png.is_none() {
            return Ok(Vec::new());
        }
        let svg = picture()?;
        // Drawn before anything is written: a picture that is too large leaves no other file
        // behind.
        let mut files = Vec::new();
        if let Some(path) = &self.png {
            files.push((path, svg_to_png(&svg)?));
        }
        if let Some(path) = &self.svg {
            files.insert(0, (path, svg.into_bytes()));
        }
        let mut written = Vec::new();
        for (path, bytes) in files {
            write_atomically(path, &bytes)?;
            written.push(path.clone());
        }
        Ok(written)
    }
}
