//! The page of a comparison.

use std::path::{Path, PathBuf};

use headlight_report::comparison_page;
use headlight_run::{Error, write_atomically};
use headlight_tasks::Tasks;

use super::Comparison;

/// Writes the page of `comparison` and says where: of the seeds of one folder into the folder, of
/// others beside the first of them, with the names of all.
///
/// # Errors
/// If a file of a run is damaged, or the page cannot be written.
pub fn write_comparison(comparison: &Comparison, out: Option<PathBuf>) -> Result<PathBuf, Error> {
    let path = out.unwrap_or_else(|| comparison.page_path());
    let html = comparison_page(&comparison.data(folder_of(&path))?)?;
    write_atomically(&path, html.as_bytes())?;
    Ok(path)
}

/// The folder that a file is in.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Writes the page of runs of several seeds that have just ended. One that cannot be made is said
/// and costs nothing else.
#[must_use]
pub fn report_of_seeds(folder: &Path, device: &str, tasks: &Tasks) -> Option<PathBuf> {
    let written = Comparison::open(&[folder.to_owned()], device, tasks)
        .and_then(|comparison| write_comparison(&comparison, None));
    written
        .map_err(|error| tracing::warn!("the runs have no common report.html: {error}"))
        .ok()
}

impl Comparison {
    fn page_path(&self) -> PathBuf {
        let first = &self.sides[0];
        if self.sides.len() == 1 {
            return first.path.join("report.html");
        }
        let file_name = |path: &Path| super::name_of(path);
        let names: Vec<String> = self
            .sides
            .iter()
            .map(|side| file_name(&side.path))
            .collect();
        let beside = first
            .path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let folder = beside.unwrap_or(Path::new("."));
        folder.join(format!("{}.html", names.join("-and-")))
    }
}
