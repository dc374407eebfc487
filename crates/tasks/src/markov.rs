//! Markov chains: transition matrices, where they settle, and draws from them.

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Gamma};

/// `n` rows of a transition matrix, each from the symmetric Dirichlet distribution of this
/// concentration.
///
/// # Panics
/// If the concentration is not positive and finite; a checked configuration's is.
pub(super) fn dirichlet_matrix(
    n: usize,
    concentration: f64,
    rng: &mut ChaCha8Rng,
) -> Vec<Vec<f64>> {
    let gamma = Gamma::new(concentration, 1.0).expect("a positive finite concentration");
    (0..n)
        .map(|_| {
            // Dirichlet: independent gammas, normalised. The floor keeps every transition possible.
            let row: Vec<f64> = (0..n).map(|_| gamma.sample(rng).max(1e-6)).collect();
            let sum: f64 = row.iter().sum();
            row.into_iter().map(|weight| weight / sum).collect()
        })
        .collect()
}

/// The largest of some numbers that are not negative.
pub(super) fn largest(of: &[f64]) -> f64 {
    of.iter().copied().fold(0.0, f64::max)
}

/// The outcome whose part of [0, 1) holds `uniform`.
pub(super) fn draw(distribution: &[f64], uniform: f64) -> u32 {
    let mut left = uniform;
    for (outcome, probability) in distribution.iter().enumerate() {
        left -= probability;
        if left < 0.0 {
            return outcome as u32;
        }
    }
    distribution.len() as u32 - 1
}

/// π with πP = π, by elimination of states without subtraction (Grassmann, Taksar & Heyman 1985):
/// no cancellation, however sharp the rows are.
pub(super) fn stationary_distribution(transition: &[Vec<f64>]) -> Vec<f64> {
    let n = transition.len();
    let mut p = transition.to_vec();
    for last in (1..n).rev() {
        let leaves: f64 = p[last][..last].iter().sum();
        for row in 0..last {
            p[row][last] /= leaves;
            for column in 0..last {
                p[row][column] += p[row][last] * p[last][column];
            }
        }
    }
    let mut stationary = vec![1.0; n];
    for state in 1..n {
        stationary[state] = (0..state)
            .map(|before| stationary[before] * p[before][state])
            .sum();
    }
    let sum: f64 = stationary.iter().sum();
    stationary.iter().map(|weight| weight / sum).collect()
}

/// `H(next | current) = −Σ_i π_i Σ_j P_ij ln P_ij`
pub(super) fn entropy_rate(transition: &[Vec<f64>], stationary: &[f64]) -> f64 {
    let row_entropy = |row: &Vec<f64>| -row.iter().map(|p| p * p.ln()).sum::<f64>();
    stationary
        .iter()
        .zip(transition)
        .map(|(weight, row)| weight * row_entropy(row))
        .sum()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn the_stationary_distribution_stays() {
        for (seed, concentration) in (0..20).zip([0.05, 1.0].into_iter().cycle()) {
            let transition =
                dirichlet_matrix(16, concentration, &mut ChaCha8Rng::seed_from_u64(seed));
            let stationary = stationary_distribution(&transition);
            for state in 0..16 {
                let after: f64 = (0..16)
                    .map(|before| stationary[before] * transition[before][state])
                    .sum();
                assert!(
                    (after - stationary[state]).abs() < 1e-12,
                    "seed {seed}, state {state}"
                );
            }
        }
    }

    #[test]
    fn two_states_by_hand() {
        // π = (b, a)/(a + b) for leaving probabilities a and b.
        let stationary = stationary_distribution(&[vec![0.9, 0.1], vec![0.3, 0.7]]);
        assert!((stationary[0] - 0.75).abs() < 1e-12);
    }
}
