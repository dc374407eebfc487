//! Weights that are written down, so that every effect is known.
//!
//! A stream has three parts, `[token | position | previous token]`, all one-hot.
//!
//! | head | attends to | writes |
//! |---|---|---|
//! | L0H0 | the source token before, the last one for the first | that token, into the third part |
//! | L2H0 | the source token behind the one that the decoder reads | four times that token, into the first part |
//! | L2H1 | the source token that the decoder reads | nothing |
//! | all others | all keys alike | nothing |

use burn::{
    module::Param,
    tensor::{Device, Tensor},
};

use crate::{CROSS, ENCODER, EncoderDecoder, SOURCE, TARGET, VOCABULARY};

/// Wide enough for a token and for a source position.
const D_HEAD: usize = VOCABULARY;
const POSITION: usize = VOCABULARY;
const PREVIOUS: usize = POSITION + SOURCE + TARGET;
const D_MODEL: usize = PREVIOUS + VOCABULARY;
/// Makes a key that matches the only one: exp(−200) is 0 in f32.
const SHARP: f32 = 200.0;
/// How loudly L2H0 writes, over the token that the decoder reads.
const LOUD: f32 = 4.0;

/// The circuit.
#[must_use]
pub fn hand_made(device: &Device) -> EncoderDecoder {
    let matrix = |rows: usize, columns: usize, cells: &[(usize, usize, f32)]| {
        let mut values = vec![0.0; rows * columns];
        for &(row, column, value) in cells {
            values[row * columns + column] = value;
        }
        let values = Tensor::<1>::from_floats(values.as_slice(), device);
        Param::from_tensor(values.reshape([rows, columns]))
    };
    // Carries `count` dimensions from `from` on to those from `to` on.
    let carry = |from: usize, to: usize, count: usize, value: f32| -> Vec<(usize, usize, f32)> {
        (0..count).map(|i| (from + i, to + i, value)).collect()
    };
    let tokens = |from: usize, to: usize, value: f32| carry(from, to, VOCABULARY, value);
    let into_heads = |cells: Vec<(usize, usize, f32)>| matrix(D_MODEL, 2 * D_HEAD, &cells);
    let out_of_heads = |cells: Vec<(usize, usize, f32)>| matrix(2 * D_HEAD, D_MODEL, &cells);

    let mut model = EncoderDecoder::init(D_MODEL, D_HEAD, 1.0, device);
    model.w_e = matrix(VOCABULARY, D_MODEL, &tokens(0, 0, 1.0));
    model.w_pos = matrix(
        SOURCE + TARGET,
        D_MODEL,
        &carry(0, POSITION, SOURCE + TARGET, 1.0),
    );
    model.w_u = matrix(D_MODEL, VOCABULARY, &tokens(0, 0, 1.0));
    for attention in &mut model.attention {
        for projection in [&mut attention.w_q, &mut attention.w_k, &mut attention.w_v] {
            projection.weight = into_heads(Vec::new());
        }
        attention.w_o.weight = out_of_heads(Vec::new());
    }

    // A key at position k is found by the query at k + 1.
    let next = |position: usize| (position + 1) % SOURCE;
    let shifted = (0..SOURCE).map(|position| (POSITION + position, next(position), 1.0));
    let encoder = &mut model.attention[ENCODER];
    encoder.w_q.weight = into_heads(carry(POSITION, 0, SOURCE, SHARP));
    encoder.w_k.weight = into_heads(shifted.collect());
    encoder.w_v.weight = into_heads(tokens(0, 0, 1.0));
    encoder.w_o.weight = out_of_heads(tokens(0, PREVIOUS, 1.0));

    let cross = &mut model.attention[CROSS];
    let both_heads = |first: usize, second: usize, value: f32| {
        [tokens(first, 0, value), tokens(second, D_HEAD, value)].concat()
    };
    cross.w_q.weight = into_heads(both_heads(0, 0, SHARP));
    cross.w_k.weight = into_heads(both_heads(PREVIOUS, 0, 1.0));
    cross.w_v.weight = into_heads(tokens(0, 0, 1.0));
    cross.w_o.weight = out_of_heads(tokens(0, 0, LOUD));
    model
}
