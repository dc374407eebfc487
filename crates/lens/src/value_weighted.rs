//! Weights scaled by what they carry.

/// `A[q, k]·‖v_k‖ / Σ_j A[q, j]·‖v_j‖`: a head that attends to a value near zero writes nothing,
/// however large the weight (Kobayashi et al. 2020, section 3). A row whose values are all zero
/// becomes 0.
///
/// # Shapes
/// - weights, output: `[batch, heads, queries, keys]`, row by row
/// - norms: `[batch, heads, keys]`, `‖v_k‖` of the values that each head reads
///
/// # Panics
/// If the sizes do not belong together.
///
/// ```
/// use headlight_lens::value_weighted;
///
/// // Nine tenths of the weight are on a value of norm 0.1, one tenth on one of norm 0.9.
/// let weighted = value_weighted(&[0.9, 0.1], &[0.1, 0.9], 2);
/// assert!((weighted[0] - 0.5).abs() < 1e-6 && (weighted[1] - 0.5).abs() < 1e-6);
/// ```
#[must_use]
pub fn value_weighted(weights: &[f32], norms: &[f32], keys: usize) -> Vec<f32> {
    let fits = keys > 0 && norms.len().is_multiple_of(keys) && !norms.is_empty();
    assert!(
        fits && weights.len().is_multiple_of(norms.len()),
        "{} weights, {} norms",
        weights.len(),
        norms.len()
    );
    let queries = weights.len() / norms.len();
    let mut weighted = Vec::with_capacity(weights.len());
    for (rows, norms) in weights.chunks(queries * keys).zip(norms.chunks(keys)) {
        for row in rows.chunks(keys) {
            let carried: Vec<f32> = row
                .iter()
                .zip(norms)
                .map(|(weight, norm)| weight * norm)
                .collect();
            let total: f32 = carried.iter().sum();
            weighted.extend(
                carried
                    .iter()
                    .map(|x| if total > 0.0 { x / total } else { 0.0 }),
            );
        }
    }
    weighted
}

/// How far a pattern is from what it moves: for each head, the mean over its queries of half the
/// absolute differences between a row of the pattern and the same row value-weighted, which is the
/// share of the weight that stands elsewhere.
///
/// # Shapes
/// - weights, weighted: `[batch, heads, queries, keys]`, row by row, queries = keys
///
/// # Panics
/// If the sizes do not belong together.
///
/// ```
/// use headlight_lens::value_disagreement;
///
/// // One head, one sequence of two tokens: its second row says .9 and .1, but moves half and half.
/// let moved = value_disagreement(&[1.0, 0.0, 0.9, 0.1], &[1.0, 0.0, 0.5, 0.5], [1, 1, 2]);
/// assert!((moved[0] - 0.2).abs() < 1e-6); // (0 + .4) / 2
/// ```
#[must_use]
pub fn value_disagreement(
    weights: &[f32],
    weighted: &[f32],
    [batch, heads, length]: [usize; 3],
) -> Vec<f64> {
    let size = length * length;
    assert!(
        weights.len() == weighted.len() && weights.len() == batch * heads * size,
        "{} weights",
        weights.len()
    );
    let mut moved = vec![0.0; heads];
    for (index, (pattern, carried)) in weights.chunks(size).zip(weighted.chunks(size)).enumerate() {
        let apart: f64 = pattern
            .iter()
            .zip(carried)
            .map(|(a, b)| f64::from((a - b).abs()))
            .sum();
        moved[index % heads] += apart / 2.0 / (batch * length) as f64;
    }
    moved
}
