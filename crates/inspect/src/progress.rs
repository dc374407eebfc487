//! What a long test will take, said first, and what is left of it while it runs.

use std::time::{Duration, Instant};

use headlight_report::say;
use indicatif::{HumanDuration, ProgressBar, ProgressFinish, ProgressStyle};

/// A shorter test says nothing.
const SHORT: Duration = Duration::from_secs(10);

/// A test of many parts. Its time is foreseen from those that are done. Its bar goes away with it,
/// also where the test ends early.
pub(super) struct Progress {
    /// `270 heads alone on 32 sequences of 64 tokens`
    what: String,
    /// In any unit in which equal parts take the same time.
    all: f64,
    done: f64,
    started: Instant,
    bar: ProgressBar,
    is_said: bool,
}

impl Progress {
    /// `count` parts, which are called `parts` and take `all` work together.
    pub fn new(what: String, parts: &str, count: usize, all: f64) -> Self {
        let template = format!("{{wide_bar}} {{pos}}/{{len}} {parts}  {{msg}}");
        let style = ProgressStyle::with_template(&template)
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        Self {
            what,
            all,
            done: 0.0,
            started: Instant::now(),
            bar: ProgressBar::new(count as u64)
                .with_style(style)
                .with_finish(ProgressFinish::AndClear),
            is_said: false,
        }
    }

    /// Some parts are done, which took this share of the work.
    pub fn add(&mut self, count: usize, part: f64) {
        self.done += part;
        let all = foreseen(self.started.elapsed(), self.done / self.all);
        if !self.is_said && all > SHORT {
            self.bar
                .suspend(|| say(&format!("{}: about {}", self.what, HumanDuration(all))));
        }
        self.is_said = true;
        self.bar.inc(count as u64);
        let left = all.saturating_sub(self.started.elapsed());
        self.bar
            .set_message(format!("{} left", HumanDuration(left)));
    }
}

/// The time of all work, of which a share is done.
fn foreseen(elapsed: Duration, share: f64) -> Duration {
    let seconds = elapsed.as_secs_f64() / share.clamp(1e-6, 1.0);
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_in_three_seconds_makes_twelve() {
        let three = Duration::from_secs(3);
        assert_eq!(foreseen(three, 0.25), Duration::from_secs(12));
        assert_eq!(foreseen(three, 1.0), three);
        assert!(foreseen(three, 0.0) > Duration::from_secs(1_000_000));
    }
}
