//! The program of a compiled model, line by line beside what was found in the model.

use headlight_heads::{HeadName, Role};
use headlight_run::Left;
use serde::{Deserialize, Serialize};

/// A program, and what looking at its model found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgramData {
    /// Its name.
    pub name: String,
    /// What it answers, where it is one that ships.
    pub answers: Option<String>,
    /// The tokens of its longest input.
    pub length: usize,
    /// Its lines, in order.
    pub lines: Vec<ProgramLine>,
    /// The heads of the model, first layer first.
    pub heads: Vec<KnownHead>,
    /// The accuracy of the model as it is, on the inputs of `without` of the heads.
    pub untouched: Option<Left>,
    /// The values of all lines along some sequences.
    pub traces: Vec<ProgramTrace>,
}

/// A variable of the program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgramLine {
    /// Its name.
    pub variable: String,
    /// How it is computed.
    pub how: String,
    /// What computes it: `L0H1`, `feed-forward 0`, `embedding`, `positions`.
    pub part: String,
    /// The head among these.
    pub head: Option<HeadName>,
    /// What reads it.
    pub read_by: Vec<String>,
    /// The first of the basis directions that hold it.
    pub first_direction: usize,
    /// How many they are.
    pub directions: usize,
}

/// A head beside the truth about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnownHead {
    /// The head.
    pub head: HeadName,
    /// The variable that it computes; `None`: its weights are 0.
    pub computes: Option<String>,
    /// What its pattern on the probe looks like.
    pub looks_like: Role,
    /// The role that its program says, `no role`, or `open`.
    pub must_look_like: String,
    /// Whether the role is right: `found`, `missed`, `falsely found`, `rightly none`; `None` where the
    /// program leaves it open.
    pub role_is: Option<String>,
    /// What it is used as.
    pub used_as: Option<String>,
    /// What is left without it.
    pub without: Option<Left>,
    /// Whether a fall of accuracy is right: `found`, `missed`, `falsely found`, `rightly none`.
    pub use_is: Option<String>,
}

impl KnownHead {
    /// Whether its weights are 0 and nothing was found of it.
    #[must_use]
    pub fn is_rightly_idle(&self) -> bool {
        let is_false = |is: &Option<String>| is.as_deref() == Some("falsely found");
        self.computes.is_none() && !is_false(&self.role_is) && !is_false(&self.use_is)
    }
}

/// The values of the lines along one sequence, as the model's stream holds them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgramTrace {
    /// The tokens, the start of the sequence first.
    pub tokens: Vec<String>,
    /// `[line][position]`; an empty text where the stream holds none of a line's values.
    pub values: Vec<Vec<String>>,
}
