//! Runs side by side, as one page.

use headlight_heads::{HeadName, Interval, Role, Values};
use headlight_run::Error;
use maud::html;
use serde::Serialize;

use crate::page::{Page, Visible, module};

/// The page's own modules.
pub(crate) const MODULES: [(&str, &str); 3] = [
    module!("comparison_tables.js"),
    module!("comparison_curves.js"),
    module!("comparison.js"),
];

/// Several runs, or several configurations with runs of several seeds each.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparisonData {
    /// What is compared, in the order in which it was named.
    pub sides: Vec<ComparedSide>,
    /// The keys of the configurations that differ, with the value of each side.
    pub keys: Vec<(String, Vec<String>)>,
    /// Accuracy, loss and whatever else is measured at the end.
    pub measures: Vec<ComparedMeasure>,
    /// By curve: the first logged step at which a run had gone half of the way from its first to its
    /// last value, for each side.
    pub half_way: Vec<(String, Vec<Values>)>,
    /// The roles that a head of any run has.
    pub roles: Vec<ComparedRole>,
    /// What was measured over training.
    pub curves: Vec<ComparedCurves>,
}

/// A run, or the runs of one configuration that differ in the seed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedSide {
    /// The name of the folder.
    pub name: String,
    /// The task.
    pub task: String,
    /// How often heads were scored, in steps.
    pub logged_every: usize,
    /// Its runs.
    pub runs: Vec<ComparedRun>,
}

/// One run of a side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedRun {
    /// Its seed.
    pub seed: u64,
    /// Where its page is, from this page; none where there is none.
    pub report: Option<String>,
}

/// One number of every run at the end of its training.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedMeasure {
    /// What it is, with its unit.
    pub name: String,
    /// Of each side.
    pub sides: Vec<MeasureOfSide>,
    /// By how much each side but the first is above the first, where that has an interval.
    pub differences: Vec<Option<Difference>>,
}

/// One number of the runs of a side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasureOfSide {
    /// Each run's.
    pub values: Vec<Option<f64>>,
    /// Their mean.
    pub mean: Option<f64>,
    /// Of the mean over seeds (Student's t); of one run, over its validation sequences (bootstrap).
    pub interval: Option<Interval>,
}

/// By how much one side is above another one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Difference {
    /// The difference.
    pub mean: f64,
    /// 95 %.
    #[serde(flatten)]
    pub interval: Interval,
    /// What the interval is over.
    pub over: Over,
}

/// What an interval is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Over {
    /// The same validation sequences on both sides, drawn together.
    SameSequences,
    /// Other validation sequences on each side.
    Sequences,
    /// Seeds, by Welch's t.
    Seeds,
}

impl Over {
    /// In a sentence.
    #[must_use]
    pub fn in_words(self) -> &'static str {
        match self {
            Self::SameSequences => "the same validation sequences",
            Self::Sequences => "each side's own validation sequences",
            Self::Seeds => "seeds",
        }
    }
}

/// The heads that look like one thing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedRole {
    /// What they look like.
    pub role: Role,
    /// Of each side.
    pub sides: Vec<RoleOfSide>,
}

/// The heads of a side that look like one thing, run by run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RoleOfSide {
    /// The heads of each run.
    pub heads: Vec<Vec<HeadName>>,
    /// How many they are.
    pub count: Values,
    /// The highest score of the role on the probe, over all heads of the run.
    pub highest: Values,
    /// The first logged step at which a head looked so.
    pub emerged: Values,
    /// The accuracy without all heads of the role.
    pub without: Values,
}

/// One quantity over training, a curve a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedCurves {
    /// What it is, with its unit.
    pub name: String,
    /// The upper end of the axis; the lower is 0.
    pub highest: f64,
    /// What it is measured against.
    pub levels: Vec<(String, f64)>,
    /// The curves.
    pub runs: Vec<ComparedCurve>,
}

/// One run's curve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedCurve {
    /// The number of its side.
    pub side: usize,
    /// The number of the run in it.
    pub run: usize,
    /// Steps and values.
    pub points: Vec<(usize, f64)>,
}

impl ComparisonData {
    /// `induction and control_one_layer`; of one side its name and the number of its seeds.
    #[must_use]
    pub fn title(&self) -> String {
        let names: Vec<&str> = self.sides.iter().map(|side| side.name.as_str()).collect();
        match names.as_slice() {
            [only] => format!("{only}: {} seeds", self.sides[0].runs.len()),
            [others @ .., last] => format!("{} and {last}", others.join(", ")),
            [] => String::new(),
        }
    }
}

/// The page as one HTML file.
///
/// # Errors
/// If the data has no JSON form.
pub fn comparison_page(data: &ComparisonData) -> Result<String, Error> {
    let title = data.title();
    Page {
        title: &title,
        modules: &MODULES,
        data,
        without_script: html! {
            h1 { (Visible(&title)) }
            p { "The curves of this page need JavaScript; here are the measures at the end." }
            table {
                tr {
                    th { "at the end" }
                    @for side in &data.sides { th { (Visible(&side.name)) } }
                }
                @for measure in &data.measures {
                    tr {
                        th scope="row" { (Visible(&measure.name)) }
                        @for side in &measure.sides {
                            td { (crate::number_or_dash(side.mean, 4)) }
                        }
                    }
                }
            }
        },
    }
    .html()
}
