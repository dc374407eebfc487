//! The learning rate over time.

use headlight_run::{ScheduleKind, TrainConfig};

/// The learning rate of update `step`, counted from 1: linear from 0 over the warm-up, then as the
/// schedule says.
///
/// ```
/// use headlight_run::{Config, ScheduleKind};
/// use headlight_trainer::learning_rate;
///
/// let text = r#"
///     task = { name = "repeat" }
///     model = { n_layers = 1, n_heads = 1, d_model = 8, n_ctx = 64 }
///     train = { steps = 20, batch_size = 1, learning_rate = 0.1, warmup = 10, schedule = "cosine" }
/// "#;
/// let mut train = Config::parse(text, "example", &[])?.train;
/// assert_eq!(learning_rate(&train, 5), 0.05); // half of the warm-up
/// assert_eq!(learning_rate(&train, 10), 0.1);
/// assert!((learning_rate(&train, 15) - 0.05).abs() < 1e-12); // half of the cosine
/// train.schedule = ScheduleKind::Linear;
/// assert!((learning_rate(&train, 18) - 0.02).abs() < 1e-12); // a fifth of the line is left
/// train.schedule = ScheduleKind::WarmupStableDecay; // cools down over the last fifth: 4 steps
/// assert_eq!((learning_rate(&train, 16), learning_rate(&train, 19)), (0.1, 0.025));
/// train.schedule = ScheduleKind::Constant;
/// assert_eq!(learning_rate(&train, 15), 0.1);
/// # Ok::<(), headlight_run::Error>(())
/// ```
#[must_use]
pub fn learning_rate(train: &TrainConfig, step: usize) -> f64 {
    if step < train.warmup {
        return train.learning_rate * step as f64 / train.warmup as f64;
    }
    let done = |from: usize| step.saturating_sub(from) as f64 / (train.steps - from).max(1) as f64;
    match train.schedule {
        ScheduleKind::Constant => train.learning_rate,
        ScheduleKind::Cosine => {
            train.learning_rate * 0.5 * (1.0 + (std::f64::consts::PI * done(train.warmup)).cos())
        }
        ScheduleKind::Linear => train.learning_rate * (1.0 - done(train.warmup)),
        ScheduleKind::WarmupStableDecay => {
            train.learning_rate * (1.0 - done(train.steps - train.cooldown()))
        }
    }
}
