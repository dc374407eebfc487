//! `inspect learn`: the numbers of the page that explains attention, all computed here and now.

mod heads;
mod mask;
mod memory;
mod scaling;
mod softmax;

use std::path::Path;

use burn::tensor::Device;
use headlight_attention::worked_example::{TOKENS, WorkedExample, features};
use headlight_report::{Lesson, LessonRun, learn_page};
use headlight_run::{Error, write_atomically};

/// Writes the page.
///
/// # Errors
/// If there is no such device, or the file cannot be written.
pub fn write_learn_page(path: &Path, device: &str) -> Result<(), Error> {
    write_lesson(path, None, &headlight_watch::device::open(device)?)
}

/// Writes the page, with numbers made on `device`, and questions about `run`.
pub(super) fn write_lesson(
    path: &Path,
    run: Option<LessonRun>,
    device: &Device,
) -> Result<(), Error> {
    write_atomically(path, learn_page(&lesson(run, device)?)?.as_bytes())
}

fn lesson(run: Option<LessonRun>, device: &Device) -> Result<Lesson, Error> {
    let example = WorkedExample::compute(device);
    Ok(Lesson {
        tokens: TOKENS.map(str::to_owned).to_vec(),
        features: features().map(str::to_owned).to_vec(),
        example: example
            .matrices()
            .into_iter()
            .map(|(name, rows)| (name.to_owned(), rows.clone()))
            .collect(),
        clouds: scaling::clouds(device),
        saturation: scaling::saturation(device),
        sharpening: softmax::sharpening(device),
        masks: mask::masked_weights(&example, device),
        values: softmax::value_sizes(&example, device),
        heads: heads::at_one_cost(device)?,
        memory: memory::measured()?,
        run,
    })
}
