//! The tokens of a long text, chunk by chunk.
//!
//! A tokenizer may look far ahead: where a token ends can depend on what follows. So a text is not
//! cut into chunks that are encoded one by one. Neighbouring chunks overlap, and they are joined in
//! the middle of a stretch where both have the same tokens at the same bytes: there neither feels
//! its own end any more. Where two chunks do not agree, the first is made longer.

use super::{
    UnknownToken,
    pieces::{Piece, Pieces},
};

/// How long chunks are, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct ChunkSizes {
    /// A chunk.
    pub length: usize,
    /// What a chunk and the next have in common. They must agree on the half in its middle.
    pub overlap: usize,
    /// The longest chunk. It bounds memory: the tokenizer takes some 100 bytes for each byte.
    pub most: usize,
}

impl ChunkSizes {
    /// What texts are encoded with.
    pub const USUAL: Self = Self {
        length: 256 << 10,
        overlap: 8 << 10,
        most: 4 << 20,
    };
}

/// Why a text has no tokens.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The tokenizer does not know a part.
    #[error("from byte {from} on: {unknown} is no token")]
    Unknown {
        /// Where the chunk begins that the part is in.
        from: usize,
        /// The part.
        unknown: UnknownToken,
    },
    /// The chunks cannot be joined.
    #[error(
        "from byte {from} on: the tokenizer cuts {length} bytes depending on where it begins to read; it can be used on shorter texts alone"
    )]
    NoJoin {
        /// Where the chunk begins.
        from: usize,
        /// Its length.
        length: usize,
    },
}

/// Gives the tokens of `text`, those that the tokenizer gives for all of it at once, to `each` in
/// turn, with the bytes that are done.
///
/// # Errors
/// If the text has a part that is no token, or there is a stretch of `sizes.most` bytes inside which
/// two chunks never agree.
pub fn encode_in_chunks(
    pieces: &Pieces,
    text: &str,
    sizes: ChunkSizes,
    each: &mut dyn FnMut(&[u32], usize),
) -> Result<(), EncodeError> {
    let mut chunk = Chunk::cut(pieces, text, 0, sizes.length)?;
    let mut done = 0;
    while chunk.end < text.len() {
        let start = text.floor_char_boundary(chunk.end - sizes.overlap);
        let next = Chunk::cut(pieces, text, start, sizes.length)?;
        if let Some(join) = chunk.join(&next) {
            each(&chunk.tokens(done, join), join);
            done = join;
            chunk = next;
            continue;
        }
        let (from, length) = (chunk.start, chunk.end - chunk.start);
        if length >= sizes.most {
            return Err(EncodeError::NoJoin { from, length });
        }
        chunk = Chunk::cut(pieces, text, from, 2 * length)?;
    }
    each(&chunk.tokens(done, usize::MAX), text.len());
    Ok(())
}

/// A part of a text, encoded by itself.
struct Chunk {
    start: usize,
    end: usize,
    /// With their places in the whole text.
    pieces: Vec<Piece>,
}

impl Chunk {
    fn cut(pieces: &Pieces, text: &str, start: usize, length: usize) -> Result<Self, EncodeError> {
        let end = text.ceil_char_boundary((start + length).min(text.len()));
        let unknown = |unknown| EncodeError::Unknown {
            from: start,
            unknown,
        };
        let mut pieces = pieces.cut(&text[start..end]).map_err(unknown)?;
        for piece in &mut pieces {
            piece.start += start;
            piece.end += start;
        }
        Ok(Self { start, end, pieces })
    }

    /// The byte at which the tokens of this chunk may end and those of the next begin.
    fn join(&self, next: &Self) -> Option<usize> {
        let quarter = (self.end - next.start) / 4;
        let (from, to) = (next.start + quarter, self.end - quarter);
        let here = self.beginning_in(from, to);
        (!here.is_empty() && here == next.beginning_in(from, to)).then_some(from.midpoint(to))
    }

    /// The pieces that begin at or after `from` and before `to`.
    fn beginning_in(&self, from: usize, to: usize) -> &[Piece] {
        let before = |byte: usize| self.pieces.partition_point(|piece| piece.start < byte);
        &self.pieces[before(from)..before(to)]
    }

    fn tokens(&self, from: usize, to: usize) -> Vec<u32> {
        let pieces = self.beginning_in(from, to).iter();
        pieces.map(|piece| piece.token).collect()
    }
}
