//! What a head moves from the keys that it looks at: towards which logits, and who wrote it there.

use burn::tensor::Tensor;
use headlight_residual::{LayerAttention, Norm, Probed};
use serde::Serialize;

use super::{Cell, Ingredient, OpenedHead, opened_head::dot, why_head::CellMean};
use crate::bootstrap::Share;

/// A logit, above the mean of all logits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Toward {
    /// Of the token that comes next in the sequence. The last token of a sequence has none.
    NextToken,
    /// Of the token at the key: does the head say again what it looks at?
    KeyToken,
    /// Of this token.
    Token(u32),
}

/// What a head moves from one ingredient of its values.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MovedFrom {
    /// Who wrote it at the key.
    pub value: Ingredient,
    /// `[direction]`: what it adds to the logit.
    pub logits: Vec<CellMean>,
}

/// What a head moves from the keys of some cells to the logits: its weight on the key times the
/// value, through `W_O`, the final norm and `W_U`. Pattern and scales of norms are held. This is the
/// direct path alone: what later parts make of it does not count.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Moved {
    /// By ingredient, the one that adds most first.
    pub from: Vec<MovedFrom>,
    /// `[direction]`: all of them together.
    pub together: Vec<CellMean>,
    /// `[direction]`: from all other keys.
    pub elsewhere: Vec<CellMean>,
}

impl OpenedHead {
    /// What the head moves in these cells, `[sequence]`. `None` if the model gives no readout, or no
    /// cell has such a direction.
    #[must_use]
    pub fn moved(&self, cells: &[Vec<Cell>], directions: &[Toward]) -> Option<Moved> {
        let toward = self.toward.as_ref()?;
        let ingredients = self.values.len();
        let empty = || vec![Vec::new(); ingredients + 2];
        // `[direction][ingredient, then together, then elsewhere][sequence]`
        let mut shares: Vec<Vec<Vec<Share>>> = directions.iter().map(|_| empty()).collect();
        for (sequence, cells) in cells.iter().enumerate() {
            for (shares, &direction) in shares.iter_mut().zip(directions) {
                let mut sums = vec![0.0; ingredients + 2];
                let mut rows = 0;
                for cell in cells {
                    if let Some(logits) = self.moved_in(sequence, cell, direction, toward) {
                        rows += 1;
                        for (sum, logit) in sums.iter_mut().zip(logits) {
                            *sum += logit;
                        }
                    }
                }
                for (shares, sum) in shares.iter_mut().zip(sums) {
                    shares.push(Share { sum, rows });
                }
            }
        }
        let at = |index: usize| -> Vec<CellMean> {
            shares.iter().map(|of| CellMean::of(&of[index])).collect()
        };
        let mut from = Vec::new();
        for (index, &value) in self.values.iter().enumerate() {
            from.push(MovedFrom {
                value,
                logits: at(index),
            });
        }
        from.retain(|moved| moved.logits.iter().any(|logit| logit.value != 0.0));
        let size = |moved: &MovedFrom| moved.logits.first().map_or(0.0, |logit| logit.value.abs());
        from.sort_by(|a, b| size(b).total_cmp(&size(a)));
        Some(Moved {
            from,
            together: at(ingredients),
            elsewhere: at(ingredients + 1),
        })
    }

    /// The tokens whose logits one cell raises most above the mean logit.
    ///
    /// # Panics
    /// If there is no such sequence, query or key.
    #[must_use]
    pub fn raised(&self, sequence: usize, cell: &Cell, count: usize) -> Vec<(u32, f64)> {
        let Some(toward) = &self.toward else {
            return Vec::new();
        };
        let opened = &self.sequences[sequence];
        let d_value = self.d_value();
        let mut value = vec![0.0; d_value];
        for &key in &cell.keys {
            let weight = self.weight(sequence, cell.query, key);
            for ingredient in 0..self.values.len() {
                let at = ingredient * self.length() + key;
                let row = &opened.values[at * d_value..][..d_value];
                for (sum, &number) in value.iter_mut().zip(row) {
                    *sum += weight * f64::from(number);
                }
            }
        }
        let divisor = f64::from(opened.divisors[cell.query]);
        let mut raised: Vec<(u32, f64)> = Vec::new();
        for (token, direction) in toward.chunks(d_value).enumerate() {
            raised.push((token as u32, dot(direction, &value) / divisor));
        }
        raised.sort_by(|a, b| b.1.total_cmp(&a.1));
        raised.truncate(count);
        raised
    }

    /// `[ingredient, then together, then elsewhere]`; `None` where the cell has no such direction.
    fn moved_in(
        &self,
        sequence: usize,
        cell: &Cell,
        direction: Toward,
        toward: &[f32],
    ) -> Option<Vec<f64>> {
        let opened = &self.sequences[sequence];
        let tokens = &self.tokens[sequence];
        let (d_value, ingredients) = (self.d_value(), self.values.len());
        let divisor = f64::from(opened.divisors[cell.query]);
        let mut logits = vec![0.0; ingredients + 2];
        for key in 0..self.length() {
            let token = match direction {
                Toward::NextToken => *tokens.get(cell.query + 1)?,
                Toward::KeyToken => tokens[key],
                Toward::Token(token) => token,
            };
            let weight = self.weight(sequence, cell.query, key) / divisor;
            if weight == 0.0 {
                continue;
            }
            let direction: Vec<f64> = toward[token as usize * d_value..][..d_value]
                .iter()
                .map(|&number| weight * f64::from(number))
                .collect();
            let is_asked = cell.keys.contains(&key);
            for ingredient in 0..ingredients {
                let at = ingredient * self.length() + key;
                let logit = dot(&opened.values[at * d_value..][..d_value], &direction);
                if is_asked {
                    logits[ingredient] += logit;
                    logits[ingredients] += logit;
                } else {
                    logits[ingredients + 1] += logit;
                }
            }
        }
        Some(logits)
    }

    fn d_value(&self) -> usize {
        self.sequences[0].values.len() / (self.values.len() * self.length())
    }
}

/// `[token, d_value]`: what a blend of values adds to the logit of each token above the mean logit,
/// before the scales of the norms divide.
pub(super) fn toward_tokens(
    model: &dyn Probed,
    layer: &LayerAttention,
    head: usize,
) -> Option<Vec<f32>> {
    let readout = model.readout()?;
    let centred = readout.w_u.clone() - readout.w_u.mean_dim(1); // [d_model, token]
    let mut directions = centred;
    for norm in [&readout.norm, &layer.ln1_post].into_iter().flatten() {
        directions = before_norm(norm, directions);
    }
    let toward = layer.w_o_of(head).matmul(directions); // [d_value, token]
    Some(toward.transpose().into_data().iter::<f32>().collect())
}

/// The directions `[d_model, token]` that a norm turns into these, but for its scale: `x − mean(x)`,
/// times the gain, read by `v`, is `x` read by `gain·v − mean(gain·v)`.
fn before_norm(norm: &Norm, directions: Tensor<2>) -> Tensor<2> {
    let scaled = directions * norm.gain().unsqueeze_dim::<2>(1);
    match norm {
        Norm::Layer(_) => scaled.clone() - scaled.mean_dim(0),
        Norm::Rms(_) => scaled,
    }
}
