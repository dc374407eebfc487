//! The induction circuit with its previous-token work shared by two heads, and with a head that
//! attends and writes nothing.

use burn::{
    module::Param,
    tensor::{Device, Tensor},
};
use headlight_residual::Decoder;

use crate::common::{D_HEAD, D_MODEL, LENGTH, POSITION, VOCABULARY, hand_built, into_head, matrix};

/// Makes all keys but the two that a head looks at vanish.
const SHARP: f32 = 60.0;
/// Where the stream has the previous token.
const PREVIOUS: usize = POSITION + LENGTH;

/// The induction circuit on the one-hot stream itself.
pub fn without_norms() -> Decoder {
    let mut model = hand_built();
    for block in &mut model.blocks {
        block.ln1 = None;
    }
    model
}

/// Both heads of layer 0 give 0.4 of their weight to the previous token and 0.6 to the first one,
/// and both write the tokens that they attend to where L1H0 looks for the previous token.
pub fn shared_work() -> Decoder {
    let mut model = without_norms();
    let wide = 2 * D_HEAD;
    // Dimension 0 of a head is for the first key, dimension i for the key before position i.
    let mut queries = vec![0.0; D_MODEL * wide];
    for head in 0..2 {
        for position in 0..LENGTH {
            let row = (POSITION + position) * wide + head * D_HEAD;
            queries[row] = SHARP;
            queries[row + position] += SHARP + (0.4_f32 / 0.6).ln();
        }
    }
    let keys = (0..2).flat_map(|head| {
        let previous = into_head(POSITION, LENGTH, head, 1);
        previous.chain([(POSITION, head * D_HEAD)])
    });
    let values = (0..2).flat_map(|head| into_head(0, VOCABULARY, head, 0));
    let outputs =
        (0..2).flat_map(|head| (0..VOCABULARY).map(move |i| (head * D_HEAD + i, PREVIOUS + i)));
    let attention = &mut model.blocks[0].attn;
    let queries = Tensor::<1>::from_floats(queries.as_slice(), &Device::flex());
    attention.w_q.weight = Param::from_tensor(queries.reshape([D_MODEL, wide]));
    attention.w_k.weight = matrix(D_MODEL, wide, keys, 1.0);
    attention.w_v.weight = matrix(D_MODEL, wide, values, 1.0);
    attention.w_o.weight = matrix(wide, D_MODEL, outputs, 1.0);
    model
}

/// The induction circuit in which L0H1 attends as L0H0 does, to the previous token, and reads values
/// of 0.
pub fn attends_and_writes_nothing() -> Decoder {
    let mut model = without_norms();
    let wide = 2 * D_HEAD;
    let both = |shift| (0..2).flat_map(move |head| into_head(POSITION, LENGTH, head, shift));
    let attention = &mut model.blocks[0].attn;
    attention.w_q.weight = matrix(D_MODEL, wide, both(0), SHARP);
    attention.w_k.weight = matrix(D_MODEL, wide, both(1), 1.0);
    model
}
