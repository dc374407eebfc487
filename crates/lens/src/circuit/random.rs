//! What would random matrices give?

use faer::Mat;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

/// Mean and standard deviation of a number over random matrices.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Random {
    /// Over the draws.
    pub mean: f64,
    /// Over the draws.
    pub deviation: f64,
}

/// A number of a circuit beside what random matrices give.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AgainstRandom {
    /// The circuit's.
    pub value: f64,
    /// Random matrices'.
    pub random: Random,
    /// `(value − mean) / deviation`
    pub z: f64,
}

impl Random {
    /// Of these draws.
    pub(super) fn of(draws: &[f64]) -> Self {
        let count = draws.len() as f64;
        let mean = draws.iter().sum::<f64>() / count;
        let variance = draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>() / (count - 1.0);
        Self {
            mean,
            deviation: variance.sqrt(),
        }
    }

    /// `value` beside these.
    #[must_use]
    pub fn against(self, value: f64) -> AgainstRandom {
        AgainstRandom {
            value,
            random: self,
            z: (value - self.mean) / self.deviation,
        }
    }
}

/// Random matrices, the same for the same seed.
pub(crate) struct Draws(ChaCha8Rng);

impl Draws {
    pub fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Entries from N(0, 1), by Box and Muller's way from two uniform numbers.
    pub fn gaussian(&mut self, rows: usize, columns: usize) -> Mat<f64> {
        Mat::from_fn(rows, columns, |_, _| {
            let (radius, angle): (f64, f64) = (self.0.random(), self.0.random());
            (-2.0 * (1.0 - radius).ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
        })
    }

    /// `[rows, columns]` with orthonormal columns, in every direction alike.
    pub fn orthonormal(&mut self, rows: usize, columns: usize) -> Mat<f64> {
        self.gaussian(rows, columns).qr().compute_thin_Q()
    }
}
