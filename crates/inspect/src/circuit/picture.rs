//! A circuit as a picture.

use headlight_heads::Edge;
use headlight_report::{CircuitPicture, PicturedEdge};

use super::{found::FoundCircuit, pairs::pairs_in_words};

/// Edges in a picture where no circuit was searched for.
const SHOWN: usize = 12;

impl FoundCircuit {
    /// The circuit as a picture; where none was searched for, its first edges.
    #[must_use]
    pub fn picture(&self) -> CircuitPicture {
        let pairs = pairs_in_words(self.corruption);
        let title = match &self.circuit {
            Some(circuit) => format!(
                "{} edges carry {:.2} of the behaviour ({pairs})",
                circuit.edges.len(),
                circuit.faithfulness.share,
            ),
            None => format!("The {SHOWN} edges of the largest effects ({pairs})"),
        };
        let mut edges = Vec::new();
        for (place, edge) in self.edges.iter().enumerate() {
            let is_shown = match self.circuit {
                Some(_) => edge.in_circuit,
                None => place < SHOWN,
            };
            if is_shown {
                edges.push(PicturedEdge {
                    edge: Edge {
                        source: edge.source,
                        destination: edge.destination,
                    },
                    importance: edge.importance,
                });
            }
        }
        let [n_layers, n_heads] = self.sizes;
        CircuitPicture {
            title,
            n_layers,
            n_heads,
            edges,
        }
    }
}
