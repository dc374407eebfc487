//! One layer whose first head looks back by position alone: what a task with a fixed period
//! teaches.

use headlight_residual::Decoder;

use crate::common::{D_HEAD, D_MODEL, LENGTH, POSITION, hand_built, into_head, matrix};

/// The first layer of the induction circuit, its first head looking `distance` back.
pub fn fixed_distance(distance: usize) -> Decoder {
    let mut model = hand_built();
    model.blocks.truncate(1);
    model.blocks[0].attn.w_k.weight = matrix(
        D_MODEL,
        2 * D_HEAD,
        into_head(POSITION, LENGTH, 0, distance),
        1.0,
    );
    model
}
