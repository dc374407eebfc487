//! The verbs of the program `inspect`: their numbers and their text.
//!
#![doc = include_str!("../README.md")]

mod activations;
mod causal;
mod circuit;
mod circuits;
mod comparison;
mod curves;
mod detect;
mod each_alone;
mod evaluate;
mod explorer;
mod export;
mod generate;
mod heads;
mod interchange;
mod kept_ablations;
mod learn;
mod lens;
mod offsets;
mod output;
mod patch;
mod patched_senses;
mod pattern;
mod phases;
mod picture_files;
mod positions;
mod predict;
mod program;
mod progress;
mod prompt_reader;
mod relations;
mod report;
mod senses;
mod shared;
mod subject;
mod swap;
mod uses;
mod verb;
mod verbs;
mod why;

pub use activations::{ActivationsOf, ActivationsVerb, WrittenActivation, WrittenActivations};
pub use causal::{AblateVerb, Ablations, Path as CausalPath, Paths, PathsVerb, Without};
pub use circuit::{
    Agreement, CircuitAtStep, CircuitEdges, CircuitOverTraining, CircuitQuestion, CircuitVerb,
    EdgeOverTraining, FoundCircuit, MeasuredEdge, MeasuredPart, NamedPair, PairCounts, Similarity,
    Stability,
};
pub use circuits::{
    ChosenHead, CircuitTables, CircuitsVerb, ComposedHeads, HeadCircuits, NamedDirection,
    TokenTable,
};
pub use comparison::{
    Comparison, comparison_printout, curves_text, report_of_seeds, write_comparison,
};
pub use curves::{CurvesVerb, ScoresVerb};
pub use detect::{DetectVerb, DetectedHead, detect_printout};
pub use evaluate::{Elsewhere, EvaluateVerb, accuracy_text, breakdown_printout, loss_text};
pub use explorer::ServeVerb;
pub use export::{ExportFormat, ExportVerb};
pub use generate::{GenerateVerb, Written};
pub use heads::{HeadsVerb, InspectedHead};
pub use interchange::{InterchangeFound, InterchangeVerb, MethodFound, PartFound};
pub use learn::write_learn_page;
pub use lens::{Lens, LensVerb};
pub use offsets::{HeadOffsets, OffsetsVerb, offsets_printout};
pub use output::{Output, print};
pub use patch::{Patch, PatchVerb};
pub use patched_senses::{
    Apart, Moved, PatchedHead, PatchedSenses, PatchedSet, RandomHeads, Shares,
};
pub use pattern::{HeadPattern, PatternVerb};
pub use phases::{Phases, PhasesVerb, curves_of};
pub use picture_files::PictureFiles;
pub use positions::{HeadAtPositions, Positions, PositionsVerb};
pub use predict::{PredictVerb, Prediction, Predictions};
pub use program::ProgramVerb;
pub use relations::{RelationHead, RelationHeads, RelationsVerb};
pub use report::{ReportQuestion, ReportVerb, report_after_training};
pub use senses::{ControlWord, SensesVerb, WordSenses};
pub use shared::{ForbiddenDistance, JointReaders, SharedVerb, SharedWork};
pub use subject::{ModelParts, Pairs, Subject};
pub use swap::{SwapVerb, Swapped, swaps_printout};
pub use verb::{ARCHITECTURES, AnyVerb, Limit, Need, Part, Verb};
pub use verbs::{row_name, verbs, verbs_page};
pub use why::{On, Place as WhyPlace, WhyAsked, WhyOfCells, WhyVerb};
