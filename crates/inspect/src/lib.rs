//! The verbs of the program `inspect`: their numbers and their text.
//!
#![doc = include_str!("../README.md")]

mod activations;
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
mod positions;
mod predict;
mod prompt_reader;
mod relations;
mod report;
mod shared;
mod subject;
mod swap;
mod uses;

pub use activations::{ActivationsOf, WrittenActivation, WrittenActivations};
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
pub use positions::{HeadAtPositions, Positions};
pub use predict::{PredictArguments, Prediction, Predictions};
pub use relations::{RelationHead, RelationHeads};
pub use report::report_after_training;
pub use shared::{ForbiddenDistance, JointReaders, SharedWork};
pub(crate) use subject::ModelParts;
pub use subject::Subject;
pub use swap::{Swapped, swaps_printout};
