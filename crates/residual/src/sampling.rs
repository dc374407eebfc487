//! Sampling: the choice of the next token from logits.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// The settings of a draw: temperature applies first, then `top_k`, then `top_p`.
///
/// ```
/// use headlight_residual::Sampling;
/// use rand::SeedableRng;
/// use rand_chacha::ChaCha8Rng;
///
/// let logits = [1.0, 3.0, 2.0];
/// let mut rng = ChaCha8Rng::seed_from_u64(0);
/// assert_eq!(Sampling::GREEDY.choose(&logits, &mut rng), Ok(1));
/// // Of equal logits the first.
/// assert_eq!(Sampling::GREEDY.choose(&[-1.0, 3.0, 3.0], &mut rng), Ok(1));
/// assert_eq!(Sampling::GREEDY.choose(&[-0.0, 0.0], &mut rng), Ok(0));
/// // Probabilities are .09, .67 and .24: two tokens reach .9, one alone reaches .6.
/// let nucleus = Sampling { top_p: Some(0.9), ..Sampling::default() };
/// assert!((0..100).all(|_| nucleus.choose(&logits, &mut rng) != Ok(0)));
/// let narrow = Sampling { top_p: Some(0.6), ..Sampling::default() };
/// assert!((0..100).all(|_| narrow.choose(&logits, &mut rng) == Ok(1)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// Logits are divided by it. At 0 the likeliest token is taken, the first of equals.
    pub temperature: f64,
    /// Only the `k` likeliest tokens can be drawn (Fan et al. 2018).
    pub top_k: Option<usize>,
    /// Only the likeliest tokens that together reach this probability can be drawn (Holtzman et al.
    /// 2020).
    pub top_p: Option<f64>,
}

impl Default for Sampling {
    /// Draws from the model's own distribution.
    fn default() -> Self {
        Self {
            temperature: 1.0,
            top_k: None,
            top_p: None,
        }
    }
}

/// The reason why no token could be drawn.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SamplingError {
    /// The temperature is negative or not finite.
    #[error("temperature must be 0 or more and finite, not {0}")]
    Temperature(f64),
    /// `top_k` is 0.
    #[error("top-k must be at least 1")]
    TopK,
    /// `top_p` is not a probability above 0.
    #[error("top-p must be above 0 and at most 1, not {0}")]
    TopP(f64),
    /// A logit is NaN or +∞.
    #[error("the logit of token {token} is {value}")]
    NotANumber {
        /// The token.
        token: usize,
        /// Its logit.
        value: f32,
    },
    /// Every logit is −∞, or there is none.
    #[error("no token has a probability above 0")]
    Nothing,
}

impl Sampling {
    /// Takes the likeliest token, always.
    pub const GREEDY: Self = Self {
        temperature: 0.0,
        top_k: None,
        top_p: None,
    };

    /// Checks the numbers.
    ///
    /// # Errors
    /// Names the invalid number.
    pub fn validate(&self) -> Result<(), SamplingError> {
        if !(self.temperature >= 0.0 && self.temperature.is_finite()) {
            return Err(SamplingError::Temperature(self.temperature));
        }
        match self.top_p {
            _ if self.top_k == Some(0) => Err(SamplingError::TopK),
            Some(p) if !(p > 0.0 && p <= 1.0) => Err(SamplingError::TopP(p)),
            _ => Ok(()),
        }
    }

    /// Draws a token, always an index of `logits`.
    ///
    /// # Errors
    /// If a logit is NaN or +∞, all are −∞, or a setting is invalid.
    pub fn choose(&self, logits: &[f32], rng: &mut ChaCha8Rng) -> Result<usize, SamplingError> {
        self.validate()?;
        if let Some((token, &value)) = logits
            .iter()
            .enumerate()
            .find(|(_, logit)| logit.is_nan() || **logit == f32::INFINITY)
        {
            return Err(SamplingError::NotANumber { token, value });
        }
        let mut likeliest: Vec<usize> = (0..logits.len())
            .filter(|&token| logits[token].is_finite())
            .collect();
        // A stable sort: of equal logits the first token stays first. 0 and −0 are equal.
        likeliest.sort_by(|&a, &b| (logits[b] + 0.0).total_cmp(&(logits[a] + 0.0)));
        let first = *likeliest.first().ok_or(SamplingError::Nothing)?;
        if self.temperature == 0.0 {
            return Ok(first);
        }
        likeliest.truncate(self.top_k.unwrap_or(usize::MAX));
        let weight = |token: &usize| {
            ((f64::from(logits[*token]) - f64::from(logits[first])) / self.temperature).exp()
        };
        let weights: Vec<f64> = likeliest.iter().map(weight).collect();
        let enough = self.top_p.unwrap_or(1.0) * weights.iter().sum::<f64>();
        let mut sum = 0.0;
        let mut kept = 0;
        while kept < weights.len() && (kept == 0 || sum < enough) {
            sum += weights[kept];
            kept += 1;
        }
        let mut rest = rng.random::<f64>() * sum;
        for (&token, weight) in likeliest[..kept].iter().zip(&weights) {
            rest -= weight;
            if rest < 0.0 {
                return Ok(token);
            }
        }
        Ok(likeliest[kept - 1])
    }
}
