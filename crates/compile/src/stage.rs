//! In which layer each variable is computed.

use crate::{Program, variable::Id};

/// The part of a model that writes a variable into the stream, in the order of the way through it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Token embedding and position vectors.
    Embedding,
    /// The attention or the feed-forward of a layer.
    Layer(usize, Half),
}

/// A half of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Half {
    Attention,
    FeedForward,
}

impl Stage {
    /// The first stage after this one that is such a half.
    fn next(self, half: Half) -> Self {
        match (self, half) {
            (Self::Embedding, _) => Self::Layer(0, half),
            (Self::Layer(layer, Half::Attention), Half::FeedForward) => Self::Layer(layer, half),
            (Self::Layer(layer, _), _) => Self::Layer(layer + 1, half),
        }
    }
}

/// The stage of every variable that the answer depends on; `None` for the others, which the model
/// does not compute. Each is computed as early as what it reads allows.
pub(crate) fn stages(program: &Program) -> Vec<Option<Stage>> {
    let needed = needed(program);
    let mut stages: Vec<Option<Stage>> = Vec::new();
    for (id, variable) in program.variables.iter().enumerate() {
        let read = variable.operation.reads();
        let last = read.iter().filter_map(|&id| stages[id]).max();
        let half = match variable.operation.selector() {
            Some(_) => Half::Attention,
            None => Half::FeedForward,
        };
        stages.push(match last {
            _ if !needed[id] => None,
            None => Some(Stage::Embedding),
            Some(last) => Some(last.next(half)),
        });
    }
    stages
}

/// Whether the answer depends on each variable. Tokens and indices are in every model.
fn needed(program: &Program) -> Vec<bool> {
    let mut needed = vec![false; program.variables.len()];
    let mut open: Vec<Id> = vec![0, 1, program.answer];
    while let Some(id) = open.pop() {
        if !needed[id] {
            needed[id] = true;
            open.extend(program.variables[id].operation.reads());
        }
    }
    needed
}
