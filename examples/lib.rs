//! Short programs that show attention at work, `cargo run --example NAME`; and the README's program,
//! tested.

/// The README's program compiles and does what it says.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
