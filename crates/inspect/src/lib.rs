//! The verbs of the program `inspect`: their numbers and their text.
//!
#![doc = include_str!("../README.md")]

mod causal;
mod circuits;
mod curves;
mod detect;
mod evaluate;
mod explorer;
mod export;
mod generate;
mod heads;
mod learn;
mod lens;
mod offsets;
mod patch;
mod pattern;
mod phases;
mod picture_files;
mod predict;
mod prompt_reader;
mod relations;
mod report;
mod swap;
mod uses;

use std::path::Path;

use burn::tensor::Device;
use headlight_residual::Decoder;
use headlight_run::{Config, HeadRow, InputError, MetricsRow, RunDirectory, Summary, Weights};
use headlight_watch::model;

pub use causal::{Ablations, Path as CausalPath, Paths, Without};
pub use circuits::{
    ChosenHead, CircuitTables, ComposedHeads, HeadCircuits, NamedDirection, TokenTable,
};
pub use curves::{curves_picture, curves_text, head_curves_picture, head_curves_text};
pub use detect::{DetectedHead, detect_printout};
pub use evaluate::{Elsewhere, breakdown_printout, loss_text};
pub use export::ExportFormat;
pub use generate::Written;
pub use heads::InspectedHead;
pub use learn::write_learn_page;
pub use lens::Lens;
pub use offsets::{HeadOffsets, offsets_printout};
pub use patch::Patch;
pub use pattern::HeadPattern;
pub use phases::Phases;
pub use phases::curves_of;
pub use picture_files::{Picture, PictureFiles};
pub use predict::{PredictArguments, Prediction, Predictions};
pub use relations::{RelationHead, RelationHeads};
pub use report::report_after_training;
pub use swap::{Swapped, swaps_printout};

/// A run opened to be looked at.
pub struct Inspection {
    run: RunDirectory,
    config: Config,
    device: Device,
}

impl Inspection {
    /// Opens the run at `path`.
    ///
    /// # Errors
    /// If it is not a run.
    pub fn open(path: &Path, device: &str) -> Result<Self, InputError> {
        let run = RunDirectory::open(path)?;
        let config = run.config()?;
        Ok(Self {
            run,
            config,
            device: headlight_watch::device::open(device)?,
        })
    }

    /// The summary that training wrote.
    ///
    /// # Errors
    /// If training has not ended.
    pub fn summary(&self) -> Result<Summary, InputError> {
        self.run.summary()
    }

    /// What was measured while training.
    ///
    /// # Errors
    /// If the run has no metrics.
    pub fn metrics(&self) -> Result<Vec<MetricsRow>, InputError> {
        self.run.metrics()
    }

    /// Every score of every head while training.
    ///
    /// # Errors
    /// If the run has no head scores.
    pub fn head_rows(&self) -> Result<Vec<HeadRow>, InputError> {
        self.run.heads()
    }

    fn model(&self) -> Result<ModelParts, InputError> {
        let model = model::load(&self.run, &self.config, Weights::Last, &self.device)?;
        Ok(ModelParts {
            model,
            vocabulary: self.run.vocabulary()?,
        })
    }
}

struct ModelParts {
    model: Decoder,
    vocabulary: Vec<String>,
}
