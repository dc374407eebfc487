//! A cache of the keys and values of tokens already seen.

use std::ops::Range;

use burn::tensor::{Int, Tensor};

use crate::{Heads, Mask, MultiHeadAttention, Positions, attention, multi_head::add_bias};

/// The keys, values and positions of the tokens that one attention layer has seen.
///
/// A full cache holds up to `capacity` tokens. A rolling cache holds what a sliding window can
/// still see, in a buffer that does not grow. Rows of a batch may have different lengths
/// ([`MultiHeadAttention::forward_cached_rows`]).
///
/// ```
/// use burn::tensor::{Device, Tensor, Tolerance};
/// use headlight_attention::{KvCache, Mask, MultiHeadAttentionConfig};
///
/// let device = Device::flex();
/// let attention = MultiHeadAttentionConfig::new(8, 2).try_init(&device)?;
/// let x = Tensor::<3>::random([1, 5, 8], burn::tensor::Distribution::Default, &device);
/// let whole = attention.forward(x.clone(), &Mask::causal());
///
/// let mut cache = KvCache::with_capacity(5);
/// let first = attention.forward_cached(x.clone().narrow(1, 0, 3), &Mask::causal(), &mut cache);
/// let rest = attention.forward_cached(x.narrow(1, 3, 2), &Mask::causal(), &mut cache);
/// let chunked = Tensor::cat(vec![first, rest], 1);
/// whole.into_data().assert_approx_eq::<f32>(&chunked.into_data(), Tolerance::absolute(1e-6));
/// # Ok::<(), headlight_attention::ConfigError>(())
/// ```
#[derive(Debug, Clone)]
pub struct KvCache {
    slots: usize,
    window: Option<usize>,
    /// `[batch, kv_heads, slots, d_head]` and `[…, d_value]`; allocated with the first tokens.
    buffers: Option<(Tensor<4>, Tensor<4>)>,
    /// The number of tokens seen, for each row.
    lengths: Vec<usize>,
    /// The position in each slot, for each row.
    positions: Vec<Vec<Option<i64>>>,
}

impl KvCache {
    /// An empty cache for up to `capacity` tokens.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            slots: capacity,
            window: None,
            buffers: None,
            lengths: Vec::new(),
            positions: Vec::new(),
        }
    }

    /// An empty rolling cache for any number of tokens. Each token sees the last `window` tokens up
    /// to itself: `0 ≤ q − k < window`. Attention through this cache applies this window and the
    /// caller's mask.
    ///
    /// The buffer holds `2·window` tokens: half to look back on, half for the tokens of a chunk.
    ///
    /// # Panics
    /// If `window` is 0.
    #[must_use]
    pub fn rolling(window: usize) -> Self {
        assert!(window > 0, "a rolling cache needs a window of at least 1");
        Self {
            slots: 2 * window,
            window: Some(window),
            ..Self::with_capacity(0)
        }
    }

    /// The number of tokens seen, for each batch row; empty before the first token.
    #[must_use]
    pub fn lengths(&self) -> &[usize] {
        &self.lengths
    }

    /// The number of slots in the buffer, which bounds its memory.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Removes from each row the tokens after the first `lengths[row]`, such as padding or rejected
    /// guesses.
    ///
    /// ```
    /// # use burn::tensor::{Device, Tensor};
    /// # use headlight_attention::{KvCache, Mask, MultiHeadAttentionConfig};
    /// let device = Device::flex();
    /// let attention = MultiHeadAttentionConfig::new(4, 1).try_init(&device)?;
    /// let mut cache = KvCache::with_capacity(8);
    /// // Two prompts of 2 and 3 tokens, the first padded.
    /// let _ = attention.forward_cached(Tensor::ones([2, 3, 4], &device), &Mask::causal(), &mut cache);
    /// cache.truncate(&[2, 3]);
    /// let _ = attention.forward_cached(Tensor::ones([2, 1, 4], &device), &Mask::causal(), &mut cache);
    /// assert_eq!(cache.lengths(), [3, 4]);
    /// # Ok::<(), headlight_attention::ConfigError>(())
    /// ```
    ///
    /// # Panics
    /// If there are not as many lengths as rows, a length is more than was seen, or a rolling cache
    /// no longer holds the tokens that the window needs at that length.
    pub fn truncate(&mut self, lengths: &[usize]) {
        assert_eq!(
            lengths.len(),
            self.lengths.len(),
            "truncate: one length for each of {} rows",
            self.lengths.len()
        );
        for (row, &length) in lengths.iter().enumerate() {
            let seen = self.lengths[row];
            assert!(
                length <= seen,
                "truncate: row {row} has {seen} tokens, not {length}"
            );
            assert!(
                seen - length <= self.most_new() || seen <= self.slots,
                "truncate: {} tokens back is further than a rolling cache of {} slots remembers",
                seen - length,
                self.slots
            );
            for position in &mut self.positions[row] {
                *position = position.filter(|&position| position < length as i64);
            }
            self.lengths[row] = length;
        }
    }

    /// Keeps only these rows of the batch, in this order; the others need no more work.
    ///
    /// ```
    /// # use burn::tensor::{Device, Tensor};
    /// # use headlight_attention::{KvCache, Mask, MultiHeadAttentionConfig};
    /// let device = Device::flex();
    /// let attention = MultiHeadAttentionConfig::new(4, 1).try_init(&device)?;
    /// let mut cache = KvCache::with_capacity(8);
    /// let x = Tensor::ones([3, 2, 4], &device);
    /// let _ = attention.forward_cached_rows(x, &[2, 0, 1], &Mask::causal(), &mut cache);
    /// cache.keep_rows(&[2, 0]);
    /// assert_eq!(cache.lengths(), [1, 2]);
    /// # Ok::<(), headlight_attention::ConfigError>(())
    /// ```
    ///
    /// # Panics
    /// If there is no such row.
    pub fn keep_rows(&mut self, rows: &[usize]) {
        assert!(
            rows.iter().all(|&row| row < self.lengths.len()),
            "a cache of {} rows has not all of {rows:?}",
            self.lengths.len()
        );
        self.lengths = rows.iter().map(|&row| self.lengths[row]).collect();
        self.positions = rows
            .iter()
            .map(|&row| self.positions[row].clone())
            .collect();
        self.buffers = self.buffers.take().map(|(keys, values)| {
            let indices: Vec<i64> = rows.iter().map(|&row| row as i64).collect();
            let indices = Tensor::<1, Int>::from_data(indices.as_slice(), &keys.device());
            (keys.select(0, indices.clone()), values.select(0, indices))
        });
    }

    /// How many tokens may be written at once without losing one that the first of them still sees.
    fn most_new(&self) -> usize {
        self.window
            .map_or(usize::MAX, |window| self.slots - window + 1)
    }

    /// The positions of the next `count` tokens, for each row.
    fn next_positions(&self, count: usize) -> Vec<Vec<i64>> {
        let of_row = |&length: &usize| (length as i64..(length + count) as i64).collect();
        self.lengths.iter().map(of_row).collect()
    }

    fn start(&mut self, batch: usize) {
        if self.lengths.is_empty() {
            self.lengths = vec![0; batch];
            self.positions = vec![vec![None; self.slots]; batch];
        }
        assert_eq!(
            self.lengths.len(),
            batch,
            "a cache of {} rows got a batch of {batch}",
            self.lengths.len()
        );
    }

    /// Writes the keys and values of the next tokens, in each row the first `counts[row]`; gives
    /// back those of all slots that have ever been used, and their positions.
    fn append(
        &mut self,
        k: Tensor<4>,
        v: Tensor<4>,
        counts: &[usize],
    ) -> (Tensor<4>, Tensor<4>, Vec<Vec<Option<i64>>>) {
        let batch = counts.len();
        for (length, count) in self.lengths.iter().zip(counts) {
            assert!(
                self.window.is_some() || length + count <= self.slots,
                "a cache of capacity {} has {length} tokens and got {count} more",
                self.slots
            );
        }
        // The buffers are taken out: a tensor that is held twice would be copied before it is
        // written.
        let (mut keys, mut values) = self
            .buffers
            .take()
            .unwrap_or_else(|| (empty_like(&k, self.slots), empty_like(&v, self.slots)));
        // Rows of equal length that get equally many tokens are written together.
        let rows: Vec<Range<usize>> = if all_equal(&self.lengths) && all_equal(counts) {
            std::iter::once(0..batch).collect()
        } else {
            (0..batch).map(|row| row..row + 1).collect()
        };
        for rows in rows {
            for (from, slots) in self.runs(self.lengths[rows.start], counts[rows.start]) {
                keys = write(keys, &rows, &slots, &k, from);
                values = write(values, &rows, &slots, &v, from);
            }
        }
        let rows = self.lengths.iter_mut().zip(&mut self.positions);
        for ((length, positions), count) in rows.zip(counts) {
            for position in *length..*length + count {
                positions[position % self.slots] = Some(position as i64);
            }
            *length += count;
        }
        let used = self
            .lengths
            .iter()
            .max()
            .copied()
            .unwrap_or(0)
            .min(self.slots);
        let seen = (
            keys.clone().narrow(2, 0, used),   // [batch, kv_heads, used, d_head]
            values.clone().narrow(2, 0, used), // [batch, kv_heads, used, d_value]
        );
        self.buffers = Some((keys, values));
        (
            seen.0,
            seen.1,
            self.positions
                .iter()
                .map(|row| row[..used].to_vec())
                .collect(),
        )
    }

    /// The slots of `count` tokens after the first `length`: (first token, slots) for each run
    /// without a wrap.
    fn runs(&self, length: usize, count: usize) -> Vec<(usize, Range<usize>)> {
        let mut runs = Vec::new();
        let mut done = 0;
        while done < count {
            let slot = (length + done) % self.slots;
            let run = (self.slots - slot).min(count - done);
            runs.push((done, slot..slot + run));
            done += run;
        }
        runs
    }
}

impl MultiHeadAttention {
    /// Self-attention of new tokens. They see each other, as `mask` allows, and the earlier tokens
    /// in the cache.
    ///
    /// Every split of a sequence into calls computes the numbers of one pass. Masks compare
    /// positions, so `mask` is the mask of the whole sequence, usually [`Mask::causal`]. A mask
    /// from an array ([`Mask::allowed`], [`Mask::key_padding`], [`Mask::bias`]) has one column for
    /// each token seen so far, the new ones included.
    ///
    /// # Shapes
    /// - `x_new`, output: `[batch, new, d_model]`
    ///
    /// # Panics
    /// If the cache is full or has another batch size, or if it is rolling and the mask is an
    /// array.
    #[must_use]
    pub fn forward_cached(&self, x_new: Tensor<3>, mask: &Mask, cache: &mut KvCache) -> Tensor<3> {
        let [batch, new, _] = x_new.dims();
        self.forward_cached_rows(x_new, &vec![new; batch], mask, cache)
    }

    /// [`forward_cached`](Self::forward_cached) where rows get different numbers of tokens: in row
    /// `b` the first `counts[b]` of `x_new` are tokens, and the rest is padding, of which nothing
    /// is kept and whose outputs mean nothing. Each row goes on at its own position, and gets what
    /// it would get alone. A row that is full takes part with 0 tokens.
    ///
    /// # Shapes
    /// - `x_new`, output: `[batch, new, d_model]`
    /// - counts: `[batch]`, each at most `new`
    ///
    /// # Panics
    /// As [`forward_cached`](Self::forward_cached), or if the counts do not fit `x_new`.
    ///
    /// ```
    /// # use burn::tensor::{Device, Distribution, Tensor, Tolerance};
    /// # use headlight_attention::{KvCache, Mask, MultiHeadAttentionConfig};
    /// let device = Device::flex();
    /// let attention = MultiHeadAttentionConfig::new(8, 2).try_init(&device)?;
    /// // Two sequences of 3 tokens and of 1, the second padded.
    /// let x = Tensor::<3>::random([2, 3, 8], Distribution::Default, &device);
    /// let mut cache = KvCache::with_capacity(3);
    /// let y = attention.forward_cached_rows(x.clone(), &[3, 1], &Mask::causal(), &mut cache);
    /// assert_eq!(cache.lengths(), [3, 1]);
    /// let alone = attention.forward(x.slice([1..2, 0..1]), &Mask::causal());
    /// let second = y.slice([1..2, 0..1]).into_data();
    /// second.assert_approx_eq::<f32>(&alone.into_data(), Tolerance::absolute(1e-6));
    /// # Ok::<(), headlight_attention::ConfigError>(())
    /// ```
    #[must_use]
    pub fn forward_cached_rows(
        &self,
        x_new: Tensor<3>,
        counts: &[usize],
        mask: &Mask,
        cache: &mut KvCache,
    ) -> Tensor<3> {
        let [batch, new, _] = x_new.dims();
        assert!(
            counts.len() == batch && counts.iter().all(|&count| count <= new),
            "counts {counts:?} do not fit new tokens of shape {:?}",
            x_new.dims()
        );
        let heads = self.normalize(self.project(x_new.clone(), x_new.clone(), x_new));
        cache.start(batch);
        if new == 0 {
            let d_value = heads.v.dims()[3];
            return self.merge(Tensor::zeros(
                [batch, self.n_heads, 0, d_value],
                (&heads.v.device(), heads.v.dtype()),
            ));
        }
        let mask = match cache.window {
            Some(window) => {
                assert!(
                    !mask.is_written_out(),
                    "a rolling cache takes masks about positions only, not {mask}"
                );
                mask.and(Mask::window(window))
            }
            None => mask.clone(),
        };
        let heads = self.rotate_new(heads, counts, cache);
        let mut done = 0;
        let mut blends = Vec::new();
        while done < new {
            let count = cache.most_new().min(new - done);
            let counts: Vec<usize> = counts
                .iter()
                .map(|&in_row| in_row.saturating_sub(done).min(count))
                .collect();
            let part = |heads: &Tensor<4>| heads.clone().narrow(2, done, count);
            let heads = Heads {
                q: part(&heads.q),
                k: part(&heads.k),
                v: part(&heads.v),
            };
            blends.push(self.attend_cached(heads, &counts, &mask, cache));
            done += count;
        }
        self.merge(Tensor::cat(blends, 2)) // [batch, n_heads, new, d_value] → [batch, new, d_model]
    }

    /// Queries and keys of new tokens, turned to their positions in sequences that end with them.
    fn rotate_new(&self, new: Heads, counts: &[usize], cache: &KvCache) -> Heads {
        let Some(scheme) = &self.position else {
            return new;
        };
        let positions = cache.next_positions(new.q.dims()[2]);
        let rows = cache.lengths.iter().zip(counts);
        let lengths: Vec<usize> = rows.map(|(before, count)| before + count).collect();
        Heads {
            q: scheme.rotate_within(new.q, &positions, &lengths),
            k: scheme.rotate_within(new.k, &positions, &lengths),
            v: new.v,
        }
    }

    /// Attention of a few new tokens, whose queries and keys have turned to their positions. The cache
    /// keeps keys as they are compared.
    fn attend_cached(
        &self,
        new: Heads,
        counts: &[usize],
        mask: &Mask,
        cache: &mut KvCache,
    ) -> Tensor<4> {
        let Heads { q, k, v } = new;
        let queries = cache.next_positions(q.dims()[2]);
        let (k, v, key_positions) = cache.append(k, v, counts);
        let positions = Positions::new(queries, key_positions).shared_if_equal();
        let bias = self
            .position
            .as_ref()
            .and_then(|scheme| scheme.bias(&positions, &q.device()));
        attention(q, k, v, &add_bias(&mask.at(positions), bias), &self.options)
    }
}

fn all_equal(numbers: &[usize]) -> bool {
    numbers.windows(2).all(|pair| pair[0] == pair[1])
}

fn empty_like(new: &Tensor<4>, slots: usize) -> Tensor<4> {
    let [batch, heads, _, width] = new.dims();
    Tensor::zeros([batch, heads, slots, width], (&new.device(), new.dtype()))
}

fn write(
    buffer: Tensor<4>,
    rows: &Range<usize>,
    slots: &Range<usize>,
    new: &Tensor<4>,
    from: usize,
) -> Tensor<4> {
    let [_, heads, _, width] = buffer.dims();
    let values = new
        .clone()
        .narrow(0, rows.start, rows.len())
        .narrow(2, from, slots.len()); // [rows, heads, slots, width]
    buffer.slice_assign([rows.clone(), 0..heads, slots.clone(), 0..width], values)
}
