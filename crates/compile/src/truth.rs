//! What is known about a compiled model: which part computes which variable, and which edges carry
//! one.

use std::{collections::BTreeMap, fmt, ops::Range};

use headlight_heads::HeadName;
pub use headlight_heads::{Destination as Input, Source as Part};
use serde::Serialize;

/// A variable in the model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Place {
    /// The variable.
    pub variable: String,
    /// The part that writes it.
    pub part: Part,
    /// The basis directions of the stream that hold it.
    pub directions: Range<usize>,
    /// How it is computed, in words: `query.x` is the variable x at the query, the other names of a
    /// condition are those of variables at a key.
    pub how: String,
}

/// An edge of the circuit: what one part writes, another one reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Edge {
    /// Who writes.
    pub from: Part,
    /// Who reads.
    pub to: Input,
    /// The variables that are read; none where only the start of the sequence is, which is the same
    /// in every input.
    pub carries: Vec<String>,
}

/// All that is known about a compiled model. Every part that is not named here writes nothing, and
/// every edge that is not listed carries nothing.
///
/// Its `Display` is a table, a line for each variable.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Truth {
    /// The variables, in the order of the program.
    pub places: Vec<Place>,
    /// The edges, in the order of the readers.
    pub edges: Vec<Edge>,
    /// The heads that compute something, first layer first.
    pub heads: Vec<HeadName>,
}

impl Truth {
    /// The place of a variable.
    #[must_use]
    pub fn place(&self, variable: &str) -> Option<&Place> {
        self.places.iter().find(|place| place.variable == variable)
    }

    /// What a head computes.
    #[must_use]
    pub fn computed_by(&self, head: HeadName) -> Option<&Place> {
        let part = Part::Head(head);
        self.places.iter().find(|place| place.part == part)
    }

    /// The edges that carry a variable. The others bring the start of the sequence only: what they
    /// carry is the same in every input, so no change of tokens has an effect along them.
    pub fn carrying(&self) -> impl Iterator<Item = &Edge> {
        self.edges.iter().filter(|edge| !edge.carries.is_empty())
    }
}

impl fmt::Display for Truth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |text: fn(&Place) -> usize| self.places.iter().map(text).max().unwrap_or(0);
        let names = width(|place| place.variable.chars().count());
        let parts = width(|place| place.part.to_string().len());
        for place in &self.places {
            let (variable, part, how) = (&place.variable, place.part.to_string(), &place.how);
            writeln!(f, "{variable:names$}  {part:parts$}  {how}")?;
        }
        Ok(())
    }
}

/// Edges while they are collected: several variables may pass along one.
#[derive(Debug, Default)]
pub(crate) struct Edges(BTreeMap<(Input, Part), Vec<String>>);

impl Edges {
    /// An edge that brings the start of the sequence.
    pub fn add_start(&mut self, to: Input) {
        self.0.entry((to, Part::Embedding)).or_default();
    }

    /// An edge that carries a variable.
    pub fn add(&mut self, from: Part, to: Input, variable: &str) {
        let carried = self.0.entry((to, from)).or_default();
        if !carried.iter().any(|name| name == variable) {
            carried.push(variable.to_owned());
        }
    }

    pub fn finish(self) -> Vec<Edge> {
        let edge = |((to, from), carries)| Edge { from, to, carries };
        self.0.into_iter().map(edge).collect()
    }
}
