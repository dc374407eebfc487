//! What a person sees while training, on standard error.

use std::{
    cell::{Cell, RefCell},
    io::IsTerminal,
    net::SocketAddr,
    time::{Duration, Instant},
};

use headlight_report::{News, Screen, State, say};
use headlight_watch::{Evaluation, Observation};
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

/// How a run is shown while it trains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum View {
    /// A bar in a terminal, plain lines elsewhere.
    #[default]
    Bar,
    /// Plain lines that begin with a name: for runs side by side.
    Lines(String),
    /// The whole terminal, with the address of the page that shows the run too, if there is one.
    Screen(Option<SocketAddr>),
}

/// A bar in a terminal, plain lines elsewhere; on request the whole terminal.
pub struct Progress {
    /// Hidden where plain lines are printed.
    bar: ProgressBar,
    steps: usize,
    /// The step after which this process began, and when.
    begun: Cell<(usize, Instant)>,
    /// What each plain line begins with.
    name: String,
    /// The tenth of the run that a line of a named run told last.
    told: Cell<Option<usize>>,
    screen: RefCell<Option<Screen>>,
}

impl Progress {
    /// For a run of `steps` updates.
    #[must_use]
    pub fn new(steps: usize) -> Self {
        let bar = if std::io::stderr().is_terminal() {
            // The bar has the columns that the rest leaves.
            let style = ProgressStyle::with_template("{wide_bar} {pos}/{len}  {msg}  {prefix}")
                .unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::new(steps as u64).with_style(style)
        } else {
            Self::hidden_bar(steps)
        };
        Self {
            bar,
            steps,
            begun: Cell::new((0, Instant::now())),
            name: String::new(),
            told: Cell::new(None),
            screen: RefCell::new(None),
        }
    }

    /// Plain lines, each beginning with `name`.
    #[must_use]
    pub fn lines(steps: usize, name: &str) -> Self {
        let name = if name.is_empty() {
            String::new()
        } else {
            format!("{name}: ")
        };
        Self {
            bar: Self::hidden_bar(steps),
            steps,
            begun: Cell::new((0, Instant::now())),
            name,
            told: Cell::new(None),
            screen: RefCell::new(None),
        }
    }

    /// [`new`](Self::new), but on the whole terminal until it is closed there. Without a terminal,
    /// plain lines.
    #[must_use]
    pub fn on_screen(steps: usize, state: State) -> Self {
        match Screen::open(state) {
            Ok(screen) => Self {
                screen: RefCell::new(Some(screen)),
                ..Self::lines(steps, "")
            },
            Err(error) => {
                say(&format!("{error}; going on without it"));
                Self::new(steps)
            }
        }
    }

    fn hidden_bar(steps: usize) -> ProgressBar {
        let bar = ProgressBar::hidden();
        bar.set_length(steps as u64);
        bar
    }

    /// The first update of this process comes after `step`. What is done already took no time of
    /// this process, and says nothing about the time that is left.
    pub fn begin_after(&self, step: usize) {
        self.bar.set_position(step as u64);
        self.begun.set((step, Instant::now()));
    }

    /// An update is done.
    pub fn step(&self, step: usize) {
        let left = self.left(step);
        self.bar.set_position(step as u64);
        if !self.bar.is_hidden() {
            self.bar
                .set_prefix(format!("{:#} left", HumanDuration(left)));
        }
        self.tell(|| News::Step(step, left));
    }

    /// The time that the other steps take, at the mean pace of this process. What watching takes is
    /// in it: the pace of the last seconds alone would jump with every measurement.
    fn left(&self, step: usize) -> Duration {
        let (first, begun) = self.begun.get();
        let done = step.saturating_sub(first).max(1) as u32;
        begun.elapsed() / done * self.steps.saturating_sub(step) as u32
    }

    /// New measurements, and what the heads do on the probe.
    pub fn measured(
        &self,
        step: usize,
        loss: f64,
        evaluation: &Evaluation,
        probe: &Observation,
        tokens_per_second: f64,
    ) {
        self.bar.set_position(step as u64);
        let accuracy = evaluation.accuracy;
        let pace = if tokens_per_second < 1e4 {
            format!("{tokens_per_second:.0}")
        } else {
            format!("{:.0}k", tokens_per_second / 1e3)
        };
        let text = format!("loss {loss:.4}  accuracy {accuracy:.3}  {pace} tokens/s");
        if self.tell(|| News::Measured {
            step,
            loss,
            text: text.clone(),
            heads: probe.heads.clone(),
            patterns: probe.patterns.clone(),
        }) {
            return;
        }
        if self.bar.is_hidden() {
            if self.is_told_already(step) {
                return;
            }
            let left = HumanDuration(self.left(step));
            say(&format!(
                "{}step {step}/{}  {text}  {left:#} left",
                self.name, self.steps
            ));
        } else {
            self.bar.set_message(text);
        }
    }

    /// Of runs side by side, each tells its progress ten times.
    fn is_told_already(&self, step: usize) -> bool {
        if self.name.is_empty() {
            return false;
        }
        let tenth = Some(10 * step / self.steps.max(1));
        self.told.replace(tenth) == tenth
    }

    /// A line that stays.
    pub fn say(&self, line: &str) {
        if self.tell(|| News::Line(line.to_owned())) {
            return;
        }
        if self.bar.is_hidden() {
            say(&format!("{}{line}", self.name));
        } else {
            self.bar.println(line);
        }
    }

    /// Takes the bar or the screen away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
        self.screen.take();
    }

    /// Whether there is a screen to tell; one that was closed there is given up.
    fn tell(&self, news: impl FnOnce() -> News) -> bool {
        let mut screen = self.screen.borrow_mut();
        let told = screen.as_ref().is_some_and(|screen| screen.tell(news()));
        if !told {
            *screen = None;
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use std::{thread::sleep, time::Duration};

    use super::*;

    #[test]
    fn runs_side_by_side_tell_their_progress_ten_times() {
        let told = |progress: &Progress| {
            let steps = (0..=50).map(|logged| 50 * logged);
            steps
                .filter(|&step| !progress.is_told_already(step))
                .count()
        };
        assert_eq!(told(&Progress::lines(2500, "seed 0")), 11); // with step 0
        assert_eq!(told(&Progress::lines(2500, "")), 51);
    }

    #[test]
    fn the_time_left_counts_only_the_steps_of_this_process() {
        let progress = Progress::lines(1000, "");
        progress.begin_after(500);
        // A step takes at least this long, so 499 steps take at least 499 times as long. With the
        // 500 steps before, one step would seem to take a 501st of it.
        sleep(Duration::from_millis(20));
        assert!(
            progress.left(501) > Duration::from_secs(5),
            "{:?}",
            progress.left(501)
        );
        assert_eq!(progress.left(1000), Duration::ZERO);
    }
}
