//! A two-layer induction circuit whose weights are written down, so that every score and effect is
//! known.
//!
//! The residual stream has three parts, `[token | position | previous token]`, all one-hot.
//!
//! | head | queries read | keys read | so it attends to |
//! |---|---|---|---|
//! | L0H0 | position | position, shifted by one | the previous token, and copies it into the third part |
//! | L0H1 | nothing | nothing | every key equally |
//! | L1H0 | token | previous token | the token after the same token: induction |
//! | L1H1 | token | token | every equal token, itself included |
//!
//! L1H0 writes the token it attends to; L0H1 and L1H1 write nothing.
#![allow(dead_code, reason = "each test file uses its part")]

use burn::{
    module::Param,
    tensor::{Device, Tensor},
};
use headlight_attention::AttentionOptions;
use headlight_residual::{Decoder, DecoderConfig};

pub const VOCABULARY: usize = 12;
pub const LENGTH: usize = 9;
pub const D_HEAD: usize = 12;
pub const D_MODEL: usize = VOCABULARY + LENGTH + VOCABULARY;
const TOKEN: usize = 0;
pub const POSITION: usize = VOCABULARY;
const PREVIOUS: usize = VOCABULARY + LENGTH;
/// Makes every score difference at least 104, where exp(−difference) is 0 in f32; no larger, since
/// it also scales the rounding of equal scores.
const SHARP: f32 = 20.0;

/// How loudly L1H0 writes the token it attends to, over the current token, which is in the stream
/// already.
const LOUD: f32 = 4.0;

/// `[rows, columns]` with `value` at the listed cells and 0 elsewhere.
pub fn matrix(
    rows: usize,
    columns: usize,
    cells: impl Iterator<Item = (usize, usize)>,
    value: f32,
) -> Param<Tensor<2>> {
    let mut data = vec![0.0; rows * columns];
    for (row, column) in cells {
        data[row * columns + column] = value;
    }
    Param::from_tensor(
        Tensor::<1>::from_floats(data.as_slice(), &Device::flex()).reshape([rows, columns]),
    )
}

/// Cells that carry `count` dimensions of the stream from `from` on into head `head`, `shift`
/// further on.
pub fn into_head(
    from: usize,
    count: usize,
    head: usize,
    shift: usize,
) -> impl Iterator<Item = (usize, usize)> {
    (0..count)
        .filter(move |i| i + shift < D_HEAD)
        .map(move |i| (from + i, head * D_HEAD + i + shift))
}

/// Two layers of two heads whose stream has tokens and positions one-hot, at `token` and at
/// `position`.
pub fn one_hot(d_model: usize, d_head: usize, token: usize, position: usize) -> Decoder {
    let config = DecoderConfig {
        vocabulary: VOCABULARY,
        n_ctx: LENGTH,
        d_model,
        n_layers: 2,
        n_heads: 2,
        d_head: Some(d_head),
        attention: AttentionOptions::default().with_scale(1.0),
        ..DecoderConfig::default()
    };
    let mut model = config.try_init(0, &Device::flex()).unwrap();
    model.w_e = matrix(
        VOCABULARY,
        d_model,
        (0..VOCABULARY).map(|i| (i, token + i)),
        1.0,
    );
    model.w_pos = Some(matrix(
        LENGTH,
        d_model,
        (0..LENGTH).map(|i| (i, position + i)),
        1.0,
    ));
    model
}

pub fn hand_built() -> Decoder {
    let mut model = one_hot(D_MODEL, D_HEAD, TOKEN, POSITION);
    let wide = 2 * D_HEAD;

    let [layer_0, layer_1] = &mut model.blocks[..] else {
        unreachable!()
    };
    layer_0.attn.w_q.weight = matrix(D_MODEL, wide, into_head(POSITION, LENGTH, 0, 0), SHARP);
    layer_0.attn.w_k.weight = matrix(D_MODEL, wide, into_head(POSITION, LENGTH, 0, 1), 1.0);
    layer_0.attn.w_v.weight = matrix(D_MODEL, wide, into_head(TOKEN, VOCABULARY, 0, 0), 1.0);
    layer_0.attn.w_o.weight = matrix(
        wide,
        D_MODEL,
        (0..VOCABULARY).map(|i| (i, PREVIOUS + i)),
        1.0,
    );

    let token_queries =
        into_head(TOKEN, VOCABULARY, 0, 0).chain(into_head(TOKEN, VOCABULARY, 1, 0));
    let keys = into_head(PREVIOUS, VOCABULARY, 0, 0).chain(into_head(TOKEN, VOCABULARY, 1, 0));
    layer_1.attn.w_q.weight = matrix(D_MODEL, wide, token_queries, SHARP);
    layer_1.attn.w_k.weight = matrix(D_MODEL, wide, keys, 1.0);
    layer_1.attn.w_v.weight = matrix(D_MODEL, wide, into_head(TOKEN, VOCABULARY, 0, 0), 1.0);
    layer_1.attn.w_o.weight = matrix(wide, D_MODEL, (0..VOCABULARY).map(|i| (i, TOKEN + i)), LOUD);
    model.w_u = Some(matrix(
        D_MODEL,
        VOCABULARY,
        (0..VOCABULARY).map(|i| (TOKEN + i, i)),
        1.0,
    ));
    model
}

/// A token that never comes back, a block of four, the block again.
pub fn sequences() -> Vec<Vec<u32>> {
    vec![
        vec![11, 1, 2, 3, 4, 1, 2, 3, 4],
        vec![0, 9, 8, 7, 6, 9, 8, 7, 6],
        vec![5, 2, 10, 1, 3, 2, 10, 1, 3],
    ]
}
