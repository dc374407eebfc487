//! Compiled programs: sizes, arrays, and the truth about them.

use std::collections::BTreeMap;

use headlight_heads::HeadName;

use crate::{Array, Truth};

/// A norm-free decoder that computes what a program computes. It has learned positions, `ReLU`
/// feed-forwards and the score scale 1.
///
/// At position 0 stands the token `<s>`, and the input follows.
///
/// # The six-line program
/// ```
/// use headlight_compile::{Draft, Layout, select};
///
/// // Which token came after the latest earlier token that equals this one?
/// let mut draft = Draft::new("induction", ["a", "b"], Layout::Prefix { length: 3 })?;
/// let (tokens, indices) = (draft.tokens(), draft.indices());
/// let one_back = select(&indices, &indices, |key, query| key + 1 == *query).only()?;
/// let previous = draft.aggregate("previous", &one_back, &tokens, "-".to_owned())?;
/// let after_equal = select(&previous, &tokens, |key, query| key == query).latest();
/// let next = draft.aggregate("next", &after_equal, &tokens, "-".to_owned())?;
/// let program = draft.answer(&next)?;
///
/// assert_eq!(program.run(&["a", "b", "a"])?.answers(), ["-", "-", "b"]);
/// let compiled = program.compile(100.0)?;
/// assert_eq!(
///     compiled.truth.to_string().lines().collect::<Vec<_>>(),
///     [
///         "tokens    embedding  the token",
///         "indices   positions  the position, from 0 behind <s>",
///         "previous  L0H0       tokens at the only key with indices = query.indices − 1, else '-'",
///         "next      L1H0       tokens at the latest key with previous = query.tokens, else '-'",
///     ]
/// );
/// // L0H0: a query at position 1 gives the key at position 0 the score 100, and itself 0.
/// let head = "L0H0".parse()?;
/// assert_eq!(compiled.score(head, "indices:1", "indices:0"), Some(100.0));
/// assert_eq!(compiled.score(head, "indices:1", "indices:1"), Some(0.0));
/// // Where nothing fits, the start of the sequence has the largest score, and "-" is written.
/// assert_eq!(compiled.score(head, "indices:0", "start"), Some(50.0));
/// assert_eq!(compiled.written(head, "start", "previous:-"), Some(1.0));
/// // What it writes for a key that is "b".
/// assert_eq!(compiled.written(head, "tokens:b", "previous:b"), Some(1.0));
/// assert_eq!(compiled.written(head, "tokens:b", "previous:a"), Some(0.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Compiled {
    /// The sizes of the model.
    pub shape: Shape,
    /// The tokens' names, by id.
    pub vocabulary: Vec<String>,
    /// The names of the basis directions of the residual stream: `start`, `tokens:a`, …
    pub directions: Vec<String>,
    /// The parameters by their paths in a decoder: `w_e`, `blocks.0.attn.w_q.weight`, …;
    /// activations multiply from the left, `x·W`.
    pub arrays: BTreeMap<String, Array>,
    /// Which part computes which variable.
    pub truth: Truth,
}

/// The sizes of a compiled model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// The positions, that of the start of the sequence included.
    pub n_ctx: usize,
    /// The width of the residual stream.
    pub d_model: usize,
    /// The number of blocks.
    pub n_layers: usize,
    /// The number of heads of each block. Blocks that need fewer have heads whose weights are 0.
    pub n_heads: usize,
    /// The width of a head.
    pub d_head: usize,
    /// The width of the feed-forward of each block; `None`: no block has one.
    pub d_ff: Option<usize>,
}

impl Compiled {
    /// The score that the head gives, for a query with 1 in one direction of the stream, to a key
    /// with 1 in another: an entry of `W_Q·W_Kᵀ`. `None` if there is no such head or direction.
    #[must_use]
    pub fn score(&self, head: HeadName, query: &str, key: &str) -> Option<f32> {
        let (query, key) = (self.direction(query)?, self.direction(key)?);
        let (w_q, w_k) = (self.of_head(head, "w_q")?, self.of_head(head, "w_k")?);
        let mut sum = 0.0;
        for column in self.columns(head) {
            sum += w_q.at(query, column) * w_k.at(key, column);
        }
        Some(sum)
    }

    /// What the head writes into one direction for a key with 1 in another: an entry of `W_V·W_O`.
    /// `None` if there is no such head or direction.
    #[must_use]
    pub fn written(&self, head: HeadName, read: &str, written: &str) -> Option<f32> {
        let (read, written) = (self.direction(read)?, self.direction(written)?);
        let (w_v, w_o) = (self.of_head(head, "w_v")?, self.of_head(head, "w_o")?);
        let mut sum = 0.0;
        for column in self.columns(head) {
            sum += w_v.at(read, column) * w_o.at(column, written);
        }
        Some(sum)
    }

    fn direction(&self, name: &str) -> Option<usize> {
        self.directions.iter().position(|known| known == name)
    }

    fn of_head(&self, head: HeadName, matrix: &str) -> Option<&Array> {
        let path = format!("blocks.{}.attn.{matrix}.weight", head.layer);
        self.arrays
            .get(&path)
            .filter(|_| head.head < self.shape.n_heads)
    }

    fn columns(&self, head: HeadName) -> std::ops::Range<usize> {
        let width = self.shape.d_head;
        head.head * width..(head.head + 1) * width
    }
}
