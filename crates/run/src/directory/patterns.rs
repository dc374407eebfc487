//! Attention patterns as a file: one byte a weight.

use std::collections::BTreeMap;

use safetensors::{Dtype, SafeTensors, tensor::TensorView};

use crate::{
    Error, ErrorKind,
    untrusted::{MOST_PATTERN_HEADER_BYTES, MOST_PATTERN_SEQUENCES},
};

/// The patterns of all heads on a few sequences.
///
/// As a file: a safetensors file with `pattern`, U8 `[layers, sequences, heads, queries, keys]`
/// (weight · 255, rounded), and `tokens`, U32 `[sequences, positions]`.
///
/// ```
/// use headlight_run::PatternFile;
///
/// let patterns = PatternFile::quantise([1, 1, 1, 2], &[1.0, 0.0, 0.2, 0.8], vec![vec![3, 4]]);
/// let read = PatternFile::from_bytes(&patterns.to_bytes()?)?;
/// assert_eq!(read, patterns);
/// assert_eq!(read.weight(0, 0, 0, 1, 0), 51.0 / 255.0); // 0.2
/// # Ok::<(), headlight_run::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternFile {
    layers: usize,
    heads: usize,
    length: usize,
    pattern: Vec<u8>,
    tokens: Vec<Vec<u32>>,
}

impl PatternFile {
    /// Rounds weights to a byte each.
    ///
    /// # Shapes
    /// - weights: `[layers, sequences, heads, length, length]`, the sizes given as
    ///   `[layers, sequences, heads, length]`
    /// - tokens: `[sequences][length]`
    ///
    /// # Panics
    /// If the sizes do not fit.
    #[must_use]
    pub fn quantise(sizes: [usize; 4], weights: &[f32], tokens: Vec<Vec<u32>>) -> Self {
        let [layers, sequences, heads, length] = sizes;
        assert_eq!(
            weights.len(),
            layers * sequences * heads * length * length,
            "weights of sizes {sizes:?}"
        );
        assert!(
            tokens.len() == sequences && tokens.iter().all(|row| row.len() == length),
            "tokens of sizes {sizes:?}"
        );
        let pattern = weights
            .iter()
            .map(|weight| (weight * 255.0).round() as u8)
            .collect();
        Self {
            layers,
            heads,
            length,
            pattern,
            tokens,
        }
    }

    /// The weight that query `query` gives to key `key`, to the nearest 1/255.
    #[must_use]
    pub fn weight(
        &self,
        layer: usize,
        sequence: usize,
        head: usize,
        query: usize,
        key: usize,
    ) -> f32 {
        f32::from(self.row(layer, sequence, head, query)[key]) / 255.0
    }

    /// The weights that query `query` gives to all keys, a byte each.
    #[must_use]
    pub fn row(&self, layer: usize, sequence: usize, head: usize, query: usize) -> &[u8] {
        let row =
            ((layer * self.tokens.len() + sequence) * self.heads + head) * self.length + query;
        &self.pattern[row * self.length..][..self.length]
    }

    /// `[layers, sequences, heads, length]`
    #[must_use]
    pub fn sizes(&self) -> [usize; 4] {
        [self.layers, self.tokens.len(), self.heads, self.length]
    }

    /// The bytes of the weights.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.pattern.len()
    }

    /// The sequences' tokens.
    #[must_use]
    pub fn tokens(&self) -> &[Vec<u32>] {
        &self.tokens
    }

    /// As a safetensors file.
    ///
    /// # Errors
    /// If the sizes have no safetensors form.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let wrong = |error: safetensors::SafeTensorError| {
            Error::because(ErrorKind::Internal, "patterns", error)
        };
        let shape = vec![
            self.layers,
            self.tokens.len(),
            self.heads,
            self.length,
            self.length,
        ];
        let tokens: Vec<u8> = self
            .tokens
            .iter()
            .flatten()
            .flat_map(|token| token.to_le_bytes())
            .collect();
        let views = BTreeMap::from([
            (
                "pattern",
                TensorView::new(Dtype::U8, shape, &self.pattern).map_err(wrong)?,
            ),
            (
                "tokens",
                TensorView::new(Dtype::U32, vec![self.tokens.len(), self.length], &tokens)
                    .map_err(wrong)?,
            ),
        ]);
        safetensors::serialize(views, None).map_err(wrong)
    }

    /// From a safetensors file.
    ///
    /// # Errors
    /// If the bytes are not such a file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let wrong = |error: safetensors::SafeTensorError| {
            Error::because(ErrorKind::Damaged, "patterns", error)
        };
        if bytes
            .first_chunk()
            .is_some_and(|&header| u64::from_le_bytes(header) > MOST_PATTERN_HEADER_BYTES)
        {
            return Err(Error::damaged(
                "patterns",
                "not a pattern file: its header is too long",
            ));
        }
        let file = SafeTensors::deserialize(bytes).map_err(wrong)?;
        let (pattern, tokens) = (
            file.tensor("pattern").map_err(wrong)?,
            file.tensor("tokens").map_err(wrong)?,
        );
        match (
            pattern.shape(),
            tokens.shape(),
            pattern.dtype(),
            tokens.dtype(),
        ) {
            (
                &[layers, sequences, heads, length, keys],
                &[rows, columns],
                Dtype::U8,
                Dtype::U32,
            ) if length == keys
                && columns == length
                && rows == sequences
                && length > 0
                && sequences <= MOST_PATTERN_SEQUENCES =>
            {
                let ids: Vec<u32> = tokens
                    .data()
                    .chunks_exact(4)
                    .map(|id| u32::from_le_bytes([id[0], id[1], id[2], id[3]]))
                    .collect();
                let tokens = ids.chunks(length).map(<[u32]>::to_vec).collect();
                Ok(Self {
                    layers,
                    heads,
                    length,
                    pattern: pattern.data().to_vec(),
                    tokens,
                })
            }
            shapes => Err(Error::damaged(
                "patterns",
                format_args!("not a pattern file: {shapes:?}"),
            )),
        }
    }
}
