//! An encoder–decoder that Headlight did not build, and that all of its tests understand.
//!
//! The task is a walk along the source: eight different tokens in a circle. The decoder is at one of
//! them and has to say the next one.
//!
//! ```text
//! source  c h a e g b f d     decoder reads  a e g b     has to say  e g b f
//! ```
//!
//! A row of ids holds both inputs, the source first. Three attentions write to two streams:
//!
//! | layer | queries | keys and values | stream |
//! |---|---|---|---|
//! | 0 | source | source | source |
//! | 1 | target | target so far | target |
//! | 2 | target | source, after layer 0 | target |

mod hand_made;
mod model;
mod walk;

pub use hand_made::hand_made;
pub use model::{CROSS, DECODER, ENCODER, EncoderDecoder, LAYERS};
pub use walk::{SOURCE, TARGET, VOCABULARY, Walk};
