//! `learn.html`: the mechanism, explained with numbers that can be clicked.

use std::collections::BTreeMap;

use headlight_heads::{HeadName, Role};
use headlight_run::Error;
use maud::{Markup, html};
use serde::Serialize;

use crate::page::{Page, Visible, module};

/// The page's own modules.
pub(crate) const MODULES: [(&str, &str); 7] = [
    module!("learn_controls.js"),
    module!("learn_exercises.js"),
    module!("learn_scores.js"),
    module!("learn_softmax.js"),
    module!("learn_mask.js"),
    module!("learn_heads.js"),
    module!("learn.js"),
];

/// Numbers row by row.
pub type Rows = Vec<Vec<f32>>;

/// Everything that the page shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lesson {
    /// The worked example's sentence.
    pub tokens: Vec<String>,
    /// The names of the columns of its `X`.
    pub features: Vec<String>,
    /// Its matrices by name: `X`, `W_Q`, …, `weights`, `output`.
    pub example: BTreeMap<String, Rows>,
    /// Dot products of random queries and keys, by width.
    pub clouds: Vec<Cloud>,
    /// Softmax of random scores, by width.
    pub saturation: Vec<Saturation>,
    /// Softmax against plain normalising.
    pub sharpening: Sharpening,
    /// The weights of the worked example under masks.
    pub masks: Vec<MaskedWeights>,
    /// One head of which the most looked-at token has an ever smaller value.
    pub values: Vec<ValueSize>,
    /// One head and several of the same cost.
    pub heads: HeadsAtOneCost,
    /// Memory by length.
    pub memory: Vec<MemoryUse>,
    /// The run whose report the page stands beside, if it does.
    pub run: Option<LessonRun>,
}

/// The weights of the worked example under one mask.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MaskedWeights {
    /// The mask.
    pub name: String,
    /// `[query][key]`: whether the query may attend to the key.
    pub may_attend: Vec<Vec<bool>>,
    /// `[query][key]`.
    pub weights: Rows,
}

/// A trained run to ask about: what is left of its accuracy without some heads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LessonRun {
    /// Its name.
    pub name: String,
    /// Its report, from this page.
    pub report: String,
    /// Accuracy with all heads.
    pub accuracy: f64,
    /// Some heads that were switched off.
    pub removed: Vec<RemovedHeads>,
}

/// Heads that were switched off together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RemovedHeads {
    /// The heads.
    pub heads: Vec<HeadName>,
    /// What they look like.
    pub role: Role,
    /// The accuracy that is left.
    pub accuracy: f64,
}

/// Dot products `q·k` of random pairs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cloud {
    /// The number of components.
    pub d: usize,
    /// One for each pair, not scaled.
    pub dot_products: Vec<f32>,
}

/// A random query against random keys.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Saturation {
    /// The number of components.
    pub d: usize,
    /// Softmax of `q·k`.
    pub raw: Vec<f32>,
    /// Softmax of `q·k/√d`.
    pub scaled: Vec<f32>,
}

/// Two ways from the same scores to weights.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sharpening {
    /// The scores.
    pub scores: Vec<f32>,
    /// Each score over the sum of all: the same, whatever factor all are multiplied by.
    pub plain: Vec<f32>,
    /// Factors on the scores, and softmax of the scores so multiplied.
    pub softmax: Vec<(f32, Vec<f32>)>,
}

/// What one query takes when one token's value is multiplied.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ValueSize {
    /// The factor on the value of the token that is looked at most.
    pub factor: f32,
    /// The query's weights.
    pub weights: Vec<f32>,
    /// The norm of `weight · value` for each key.
    pub moved: Vec<f32>,
}

/// What heads cost, and what one cannot keep apart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeadsAtOneCost {
    /// The width of the stream in the table of costs.
    pub d_model: usize,
    /// The number of tokens in it.
    pub tokens: usize,
    /// A row for each number of heads.
    pub costs: Vec<HeadCost>,
    /// Two sentences, read by one head and by two.
    pub sentences: Vec<ReadSentence>,
}

/// A row of the table of costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeadCost {
    /// Heads.
    pub n_heads: usize,
    /// Their width.
    pub d_head: usize,
    /// Parameters, counted on the module.
    pub parameters: usize,
    /// Multiplications of projections, scores and blend.
    pub multiplications: usize,
}

/// What the middle token of a sentence takes from its neighbours.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReadSentence {
    /// The sentence.
    pub tokens: Vec<String>,
    /// The output of one head that looks at both neighbours.
    pub one_head: Vec<f32>,
    /// The outputs of two heads, half as wide, side by side: one looks back, the other ahead.
    pub two_heads: Vec<f32>,
}

/// Memory of attention forward and backward at one length.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MemoryUse {
    /// The number of tokens.
    pub length: usize,
    /// What this project's attention took, MB.
    pub headlight: f64,
    /// What PyTorch's took, MB.
    pub pytorch: f64,
    /// What the weights alone would take if they were stored, MB.
    pub weights: f64,
}

/// The page as one HTML file.
///
/// # Errors
/// If the lesson has no JSON form.
pub fn learn_page(lesson: &Lesson) -> Result<String, Error> {
    Page {
        title: "How attention works",
        modules: &MODULES,
        data: lesson,
        without_script: without_script(lesson),
    }
    .html()
}

/// The matrices of the worked example that are shown without JavaScript.
const MATRICES: [&str; 11] = [
    "X", "W_Q", "W_K", "W_V", "Q", "K", "V", "scores", "scaled", "weights", "output",
];

/// The worked example as tables.
fn without_script(lesson: &Lesson) -> Markup {
    let names = |rows: &Rows| {
        if rows.len() == lesson.tokens.len() {
            &lesson.tokens
        } else {
            &lesson.features
        }
    };
    html! {
        h1 { "How attention works" }
        p {
            "The figures of this page need JavaScript. These are the matrices of the worked example."
        }
        @for (name, rows) in MATRICES.iter().filter_map(|name| Some((name, lesson.example.get(*name)?))) {
            table {
                caption { (name) }
                @for (row, name) in rows.iter().zip(names(rows)) {
                    tr {
                        th scope="row" { (Visible(name)) }
                        @for value in row {
                            td { (format!("{value:.2}")) }
                        }
                    }
                }
            }
        }
    }
}
