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
    /// The point of training that is looked at.
    at: Weights,
    /// Whether somebody named it. Logs speak of the end, so the model is measured anew.
    chosen: bool,
}

impl Inspection {
    /// Opens the run at `path`: with the weights of the end, or with those of the newest checkpoint
    /// if it was stopped.
    ///
    /// # Errors
    /// If it is not a run.
    pub fn open(path: &Path, device: &str) -> Result<Self, InputError> {
        let run = RunDirectory::open(path)?;
        Ok(Self {
            config: run.config()?,
            device: headlight_watch::device::open(device)?,
            at: run.newest_weights().unwrap_or(Weights::Last),
            chosen: false,
            run,
        })
    }

    /// Opens the run at `path` with the weights of one point of its training.
    ///
    /// # Errors
    /// If it is not a run, or has no whole weights of that point.
    pub fn open_at(path: &Path, device: &str, at: Weights) -> Result<Self, InputError> {
        let inspection = Self::open(path, device)?;
        inspection.run.weights(at)?;
        Ok(Self {
            at,
            chosen: true,
            ..inspection
        })
    }

    /// A sentence for a person, where the weights are not those of the end of training.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let stopped = !self.chosen && matches!(self.at, Weights::Step(_));
        stopped.then(|| {
            let path = self.run.path().display();
            format!("{path} has not ended; this is its checkpoint {}", self.at)
        })
    }

    /// The updates that the weights had.
    fn step(&self) -> Result<usize, InputError> {
        match self.at {
            Weights::Step(step) => Ok(step),
            Weights::Last => Ok(self.run.checkpoint(Weights::Last)?.state.step),
            Weights::Best => {
                let newest = self.run.newest_weights().unwrap_or(Weights::Last);
                let best = self.run.checkpoint(newest)?.state.best;
                Ok(best.map_or(0, |best| best.step))
            }
        }
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
        let model = model::load(&self.run, &self.config, self.at, &self.device)?;
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
