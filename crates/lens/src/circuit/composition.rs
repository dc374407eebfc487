//! Does a head read what an earlier one wrote?

use faer::Mat;
use headlight_heads::HeadName;
use serde::Serialize;

use super::{AgainstRandom, Circuits, FactoredMatrix, Random, random::Draws};
use crate::Input;

/// How well what `writer` writes fits what `reader` reads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Composition {
    /// The earlier head.
    pub writer: HeadName,
    /// The later head.
    pub reader: HeadName,
    /// Through which input.
    pub input: Input,
    /// The score beside its null.
    pub score: AgainstRandom,
}

/// Every composition of a head with one of a later layer (Elhage et al. 2021, "Composition"), the
/// largest z first:
///
/// - queries: `‖W_OV·W_QK‖ / (‖W_OV‖·‖W_QK‖)`
/// - keys: `‖W_OV·W_QKᵀ‖ / (‖W_OV‖·‖W_QK‖)`
/// - values: `‖W_OV·W_OV'‖ / (‖W_OV‖·‖W_OV'‖)`
///
/// OV the writer's, QK and OV' the reader's, norms those of Frobenius. The ceiling is 1, reached
/// where all that is written lies along one direction and all that is read too. The null: both
/// matrices keep their singular values, and so shape, rank and size, but are turned at random
/// against each other. Its mean is about 1/√`d_model`. Matrices far from random but of rank near 1
/// score high by chance more often, and this null knows. Heads that write or read nothing compose
/// with none.
///
/// A high score says that two heads fit, not that the model uses it: see
/// [`path_test`](crate::path_test).
#[must_use]
pub fn compositions(circuits: &Circuits, draws: usize, seed: u64) -> Vec<Composition> {
    let heads = circuits.heads();
    let part = |input: Input| {
        heads
            .iter()
            .map(move |&head| Part::new(circuits, head, input))
    };
    let written: Vec<Part> = part(Input::Value).collect();
    let Some((d_model, rank)) = written
        .first()
        .map(|part| (part.matrix.rows(), part.values.len()))
    else {
        return Vec::new();
    };
    let mut random = Draws::new(seed);
    let turns: Vec<Mat<f64>> = (0..draws)
        .map(|_| random.orthonormal(d_model, rank))
        .collect();
    let mut found = Vec::new();
    for input in Input::ALL {
        for (reader, read) in heads.iter().zip(part(input)) {
            for (writer, written) in heads
                .iter()
                .zip(&written)
                .filter(|(writer, _)| writer.layer < reader.layer)
            {
                if let Some(score) = written.composed_with(&read, &turns) {
                    found.push(Composition {
                        writer: *writer,
                        reader: *reader,
                        input,
                        score,
                    });
                }
            }
        }
    }
    found.sort_by(|a, b| b.score.z.total_cmp(&a.score.z));
    found
}

/// A circuit as it meets what was written before it: `[read, …]`.
struct Part {
    matrix: FactoredMatrix,
    values: Vec<f64>,
    norm: f64,
}

impl Part {
    fn new(circuits: &Circuits, head: HeadName, input: Input) -> Self {
        let matrix = match input {
            Input::Query => circuits.qk(head),
            Input::Key => circuits.qk(head).transpose(),
            Input::Value => circuits.ov(head),
        };
        let values = matrix.svd().values;
        Self {
            norm: values.iter().map(|value| value * value).sum::<f64>().sqrt(),
            matrix,
            values,
        }
    }

    /// `None` if one of the two is 0.
    fn composed_with(&self, reader: &Self, turns: &[Mat<f64>]) -> Option<AgainstRandom> {
        let size = self.norm * reader.norm;
        if size == 0.0 {
            return None;
        }
        // U₁·S₁·V₁ᵀ·U₂·S₂·V₂ᵀ has the norm of S₁·(V₁ᵀ·U₂)·S₂, and turned at random V₁ᵀ·U₂ is a
        // corner of a random turn.
        let turned = |turn: &Mat<f64>| {
            let cell =
                |(i, j): (usize, usize)| (self.values[i] * turn[(i, j)] * reader.values[j]).powi(2);
            let cells =
                (0..self.values.len()).flat_map(|i| (0..reader.values.len()).map(move |j| (i, j)));
            cells.map(cell).sum::<f64>().sqrt() / size
        };
        let random: Vec<f64> = turns.iter().map(turned).collect();
        Some(Random::of(&random).against(self.matrix.times(&reader.matrix).norm() / size))
    }
}
