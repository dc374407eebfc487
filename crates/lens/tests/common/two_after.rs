//! A circuit that continues a repeated block as the induction circuit does, and looks two after the
//! match.
//!
//! The residual stream has four parts, `[token | position | one back | two back]`.
//!
//! | head | attends to | writes |
//! |---|---|---|
//! | L0H0 | the previous token | that token into *one back* |
//! | L0H1 | the token before it | that token into *two back* |
//! | L1H0 | keys whose *two back* is the current token: two after the match (K-composition with L0H1) | their *one back*: what followed the match (V-composition with L0H0) |
//! | L1H1 | every key equally | nothing |

use headlight_residual::Decoder;

use crate::common::{LENGTH, VOCABULARY, into_head, matrix, one_hot};

const D_HEAD: usize = 12;
const TOKEN: usize = 0;
const POSITION: usize = VOCABULARY;
const ONE_BACK: usize = POSITION + LENGTH;
const TWO_BACK: usize = ONE_BACK + VOCABULARY;
const D_MODEL: usize = TWO_BACK + VOCABULARY;
/// Query 1 sees no token two back and blends what it sees; half a match must still count for
/// nothing.
const SHARP: f32 = 60.0;
/// How loudly L1H0 writes, over the current token.
const LOUD: f32 = 4.0;

pub fn two_after() -> Decoder {
    let mut model = one_hot(D_MODEL, D_HEAD, TOKEN, POSITION);
    let wide = 2 * D_HEAD;
    let out_of_head =
        |head: usize, to: usize| (0..VOCABULARY).map(move |i| (head * D_HEAD + i, to + i));

    let [layer_0, layer_1] = &mut model.blocks[..] else {
        unreachable!()
    };
    let positions = into_head(POSITION, LENGTH, 0, 0).chain(into_head(POSITION, LENGTH, 1, 0));
    let shifted = into_head(POSITION, LENGTH, 0, 1).chain(into_head(POSITION, LENGTH, 1, 2));
    let tokens = into_head(TOKEN, VOCABULARY, 0, 0).chain(into_head(TOKEN, VOCABULARY, 1, 0));
    layer_0.attn.w_q.weight = matrix(D_MODEL, wide, positions, SHARP);
    layer_0.attn.w_k.weight = matrix(D_MODEL, wide, shifted, 1.0);
    layer_0.attn.w_v.weight = matrix(D_MODEL, wide, tokens, 1.0);
    layer_0.attn.w_o.weight = matrix(
        wide,
        D_MODEL,
        out_of_head(0, ONE_BACK).chain(out_of_head(1, TWO_BACK)),
        1.0,
    );

    layer_1.attn.w_q.weight = matrix(D_MODEL, wide, into_head(TOKEN, VOCABULARY, 0, 0), SHARP);
    layer_1.attn.w_k.weight = matrix(D_MODEL, wide, into_head(TWO_BACK, VOCABULARY, 0, 0), 1.0);
    layer_1.attn.w_v.weight = matrix(D_MODEL, wide, into_head(ONE_BACK, VOCABULARY, 0, 0), 1.0);
    layer_1.attn.w_o.weight = matrix(wide, D_MODEL, out_of_head(0, TOKEN), LOUD);
    model.w_u = Some(matrix(
        D_MODEL,
        VOCABULARY,
        (0..VOCABULARY).map(|i| (TOKEN + i, i)),
        1.0,
    ));
    model
}
