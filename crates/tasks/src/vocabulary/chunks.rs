//! The tokens of a long text, chunk by chunk.
//!
//! A tokenizer may look far ahead: where a token ends can depend on what follows. So a text is not
//! cut into chunks that are encoded one by one. Neighbouring chunks overlap, and they are joined in
//! the middle of a stretch where both have the same tokens at the same bytes. The stretch must have
//! them too when the overlap is encoded by itself from a few characters later or to a few
//! characters earlier: in a long run of equal characters, two chunks can agree by luck. Where
//! chunks cannot be joined, the first is made longer.
//!
//! One thing is left to chance. A unigram tokenizer may find two ways to cut a text equally likely;
//! then the rounding of a sum over all of the text chooses, and that of a sum over a chunk may
//! choose the other.

use std::collections::VecDeque;

use rayon::prelude::*;

use super::{
    UnknownToken,
    pieces::{Piece, Pieces},
};

/// Bytes that the ends of an overlap are moved by, to see whether its tokens depend on them.
const MOST_MOVED: usize = 8;
/// Chunks that are encoded side by side: more need more memory.
const AT_ONCE: usize = 2;
/// White space to cut at is looked for in this many bytes.
const CUT_WITHIN_BYTES: usize = 1 << 10;

/// How long chunks are, in bytes. A chunk is longer than the overlap and the white space that cuts
/// are moved over.
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
        length: 192 << 10,
        overlap: 4 << 10,
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
    let mut chunk = Chunk::of_at_least(pieces, text, 0, sizes.length, sizes.most)?;
    let mut ahead = Ahead {
        pieces,
        text,
        sizes,
        chunks: VecDeque::new(),
    };
    let mut done = 0;
    while chunk.end < text.len() {
        let next = ahead.after(chunk.end);
        let join = next
            .as_ref()
            .and_then(|next| chunk.join(next, pieces, text));
        if let (Some(next), Some(join)) = (next, join) {
            each(&chunk.tokens(done, join), join);
            done = join;
            chunk = next;
            continue;
        }
        let (from, length) = (chunk.start, chunk.end - chunk.start);
        if length >= sizes.most {
            return Err(EncodeError::NoJoin { from, length });
        }
        chunk = Chunk::of_at_least(pieces, text, from, 2 * length, sizes.most)?;
    }
    each(&chunk.tokens(done, usize::MAX), text.len());
    Ok(())
}

/// Chunks that are encoded before they are asked for.
struct Ahead<'a> {
    pieces: &'a Pieces,
    text: &'a str,
    sizes: ChunkSizes,
    /// Where each begins, and the chunk.
    chunks: VecDeque<(usize, Option<Chunk>)>,
}

impl Ahead<'_> {
    /// The chunk that overlaps with the one that ends at `end`. `None` where the tokenizer fails on
    /// it, as it may on the half of a word: there is no place to begin.
    fn after(&mut self, end: usize) -> Option<Chunk> {
        let start = cut_near(self.text, end - self.sizes.overlap);
        if self.chunks.front().is_none_or(|(first, _)| *first != start) {
            self.encode_from(start);
        }
        self.chunks.pop_front()?.1
    }

    fn encode_from(&mut self, start: usize) {
        let Self {
            pieces,
            text,
            sizes,
            ..
        } = *self;
        let mut starts = vec![start];
        while starts.len() < AT_ONCE {
            let end = end_of(text, starts[starts.len() - 1], sizes.length);
            if end == text.len() {
                break;
            }
            starts.push(cut_near(text, end - sizes.overlap));
        }
        let encode = |start| {
            let end = end_of(text, start, sizes.length);
            (start, Chunk::between(pieces, text, start, end).ok())
        };
        let chunks: Vec<_> = starts.into_par_iter().map(encode).collect();
        self.chunks = chunks.into();
    }
}

/// Where a chunk of about `length` bytes from `start` on ends.
fn end_of(text: &str, start: usize, length: usize) -> usize {
    if start + length >= text.len() {
        text.len()
    } else {
        cut_near(text, start + length)
    }
}

/// A place at `at` or some bytes before it: at white space if there is some near.
pub fn cut_near(text: &str, at: usize) -> usize {
    let at = text.floor_char_boundary(at);
    let near = text.floor_char_boundary(at.saturating_sub(CUT_WITHIN_BYTES));
    match text[near..at].rfind(char::is_whitespace) {
        Some(white) if near + white > 0 => near + white,
        _ => at,
    }
}

/// A part of a text, encoded by itself.
struct Chunk {
    start: usize,
    end: usize,
    /// With their places in the whole text.
    pieces: Vec<Piece>,
}

impl Chunk {
    /// About `length` bytes from `start` on; more, up to `most`, while the tokenizer fails on them.
    fn of_at_least(
        pieces: &Pieces,
        text: &str,
        start: usize,
        length: usize,
        most: usize,
    ) -> Result<Self, EncodeError> {
        let mut length = length;
        loop {
            let end = end_of(text, start, length);
            let chunk = Self::between(pieces, text, start, end);
            if chunk.is_ok() || length >= most || end == text.len() {
                return chunk;
            }
            length *= 2;
        }
    }

    fn between(pieces: &Pieces, text: &str, start: usize, end: usize) -> Result<Self, EncodeError> {
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
    fn join(&self, next: &Self, pieces: &Pieces, text: &str) -> Option<usize> {
        let (first, last) = (next.start, self.end);
        let quarter = (last - first) / 4;
        let (from, to) = (first + quarter, last - quarter);
        let here = self.beginning_in(from, to);
        if here.is_empty() || here != next.beginning_in(from, to) {
            return None;
        }
        let moves = 1..=MOST_MOVED.min(quarter);
        let later = moves.clone().map(|moved| (first + moved, last));
        let earlier = moves.map(|moved| (first, last - moved));
        let moved: Vec<(usize, usize)> = later.chain(earlier).collect();
        let same = |&(start, end): &(usize, usize)| {
            let (start, end) = (
                text.ceil_char_boundary(start),
                text.floor_char_boundary(end),
            );
            let other = Self::between(pieces, text, start, end);
            // What the tokenizer fails on says nothing.
            other.is_err() || other.is_ok_and(|other| other.beginning_in(from, to) == here)
        };
        moved.par_iter().all(same).then(|| from.midpoint(to))
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
