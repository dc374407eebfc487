//! What the hand-built circuits are asked to do.

use burn::tensor::Device;
use headlight_heads::HeadName;
use headlight_lens::Behaviour;
use headlight_residual::token_tensor;

use crate::common::{LENGTH, sequences};

/// To continue the second copy: targets 6, 7 and 8.
pub fn induction() -> Behaviour {
    let sequences = sequences();
    let inputs: Vec<&[u32]> = sequences.iter().map(|row| &row[..LENGTH - 1]).collect();
    let inputs = token_tensor(&inputs, &Device::flex());
    let targets = sequences.iter().map(|row| row[1..].to_vec()).collect();
    let scored = sequences
        .iter()
        .map(|_| (0..LENGTH - 1).map(|input| input >= 5).collect())
        .collect();
    Behaviour::new(inputs, targets, scored)
}

pub fn head(name: &str) -> HeadName {
    name.parse().unwrap()
}
