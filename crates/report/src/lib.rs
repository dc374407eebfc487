//! Pictures of a run, from plain rows and numbers.
//!
#![doc = include_str!("../README.md")]

mod base64_numbers;
mod circuit_data;
mod circuit_svg;
mod colour;
mod comparison_page;
mod csv;
mod curves;
mod explorer_page;
mod finding;
mod head_scores_svg;
mod heads_that_matter;
mod label;
mod learn_page;
mod live_page;
mod numbers;
mod page;
mod pattern_dots;
mod pattern_svg;
mod plot;
mod png;
mod printout;
mod program_data;
mod prose;
mod report_data;
mod report_page;
mod role_look;
mod say;
mod screen;
mod sensitivity_svg;
mod serve;
mod sparkline;
mod svg;
mod table;
mod terminal;
mod terminal_curves;
mod terminal_head_scores;
mod terminal_heads;
mod terminal_heatmap;
mod terminal_relations;
mod tidy;
#[cfg(test)]
mod vocabulary;
mod walk_data;
mod why_data;

pub use base64_numbers::{Bytes, Floats};
pub use circuit_data::{
    CircuitCurvePoint, CircuitData, CircuitEdge, CircuitEdgeOverSteps, CircuitShares, CircuitSteps,
};
pub use circuit_svg::{CircuitPicture, PicturedEdge};
pub use colour::{colour, line_colour};
pub use comparison_page::{
    ComparedCurve, ComparedCurves, ComparedMeasure, ComparedRole, ComparedRun, ComparedSide,
    ComparisonData, Difference, MeasureOfSide, Over, RoleOfSide, comparison_page,
};
pub use csv::csv;
pub use curves::curves_svg;
pub use finding::{clearest_follower, finding, headline};
pub use head_scores_svg::{HeadCurves, head_scores_svg};
pub use heads_that_matter::{
    BesideOthers, HeadGroup, HeadThatMatters, SeenScore, Without, heads_that_matter,
};
pub use label::one_line;
pub use learn_page::{
    Cloud, HeadCost, HeadsAtOneCost, Lesson, LessonRun, MaskedWeights, MemoryUse, ReadSentence,
    RemovedHeads, Rows, Saturation, Sharpening, ValueSize, learn_page,
};
pub use live_page::LiveFacts;
pub use numbers::{number, number_or_dash, or_dash, plus_minus, with_interval};
pub use pattern_svg::{MOST_PICTURED_TOKENS, pattern_grid_svg, pattern_svg};
pub use plot::{Curve, CurvePoint};
pub use png::svg_to_png;
pub use printout::Printout;
pub use program_data::{KnownHead, ProgramData, ProgramLine, ProgramTrace};
pub use report_data::{
    AccuracyByPosition, AnswersLost, Control, HeadPairs, HeadPositions, LensData, MeasureText,
    PatternSet, RelationOfHead, RelationSeen, ReportData, RunFacts, ScoreSeries, StreamData,
};
pub use report_page::report_page;
pub use role_look::{measures_as_told, most_telling_head, role_colour, scores_as_told};
pub use say::{say, say_wrapped};
pub use screen::{News, Screen, State};
pub use sensitivity_svg::sensitivity_svg;
pub use serve::{
    ActivationPatch, Answer, CircuitOfPairs, EdgesFacts, Explorer, ExplorerFacts, LiveAddress,
    LiveRun, Question, Sweep, SweepDirection, SweepQuestion, WhyQuestion, Writing, WritingQuestion,
    serve,
};
pub use table::Table;
pub use terminal::{Ink, Terminal};
pub use terminal_curves::TerminalCurves;
pub use terminal_head_scores::head_scores_table;
pub use terminal_heads::{HeadLine, heads_table};
pub use terminal_heatmap::Heatmap;
pub use terminal_relations::relations_table;
pub use tidy::{TidyTable, tidy_tables};
pub use walk_data::{WalkData, WalkHead, WalkLayer, WalkNorm};
pub use why_data::{WhyData, WhyOfHead, WhyOfHeads};
