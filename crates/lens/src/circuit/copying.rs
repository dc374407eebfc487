//! Does a head say again what it looks at?

use super::{Circuits, FactoredMatrix, Random, random::Draws};

/// Eigenvalues below this share of the largest that the factors could give are rounding.
const ROUNDING: f64 = 1e-8;

/// `Σλ / Σ|λ|` over the eigenvalues of a full OV circuit (Elhage et al. 2021, "Summarizing OV/QK
/// matrices"): 1 where looking at a token makes it, or a mix of tokens it belongs to, more likely,
/// −1 where less. The ceiling is 1, the null [`random_copying`]. `None` for a circuit that has no
/// eigenvalues but 0: it writes nothing, or only to other parts.
///
/// ```
/// use faer::mat;
/// use headlight_lens::{FactoredMatrix, copying_by_eigenvalues};
///
/// let identity = mat![[1.0, 0.0], [0.0, 1.0]];
/// let of = |table| copying_by_eigenvalues(&FactoredMatrix::new(identity.clone(), table));
/// assert_eq!(of(mat![[3.0, 0.0], [0.0, 1.0]]), Some(1.0));
/// assert_eq!(of(mat![[3.0, 0.0], [0.0, -1.0]]), Some(0.5));
/// assert_eq!(of(mat![[0.0, 1.0], [0.0, 0.0]]), None); // the first token makes the second, nothing itself
/// ```
#[must_use]
pub fn copying_by_eigenvalues(full_ov: &FactoredMatrix) -> Option<f64> {
    let eigenvalues = full_ov.eigenvalues();
    let sizes: f64 = eigenvalues.iter().map(|value| value.norm()).sum();
    // Complex ones come in pairs: the sum is real.
    let sum: f64 = eigenvalues.iter().map(|value| value.re).sum();
    (sizes > ROUNDING * full_ov.bound()).then(|| sum / sizes)
}

/// [`copying_by_eigenvalues`] of `W_E·A·B·W_U` with the model's own embedding and unembedding, A
/// and B random matrices of the shapes of a head's `W_V` and `W_O`. Its mean is 0, its deviation
/// what counts: few eigenvalues can agree by chance. It takes two draws to have one.
#[must_use]
pub fn random_copying(circuits: &Circuits, draws: usize, seed: u64) -> Random {
    let head = circuits.heads()[0];
    let (d_model, d_head) = circuits.shape_of(head);
    // The small B·W_U·W_E·A has the eigenvalues of the large product.
    let unembed_embed = circuits.w_u() * circuits.w_e();
    let mut random = Draws::new(seed);
    let values: Vec<f64> = (0..draws)
        .filter_map(|_| {
            let (a, b) = (
                random.gaussian(d_model, d_head),
                random.gaussian(d_head, d_model),
            );
            copying_by_eigenvalues(&FactoredMatrix::new(&unembed_embed * a, b))
        })
        .collect();
    Random::of(&values)
}
