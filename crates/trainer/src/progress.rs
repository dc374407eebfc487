//! What a person sees while training, on standard error.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar in a terminal, plain lines elsewhere.
pub struct Progress {
    bar: Option<ProgressBar>,
    steps: usize,
}

impl Progress {
    /// For a run of `steps` updates.
    #[must_use]
    pub fn new(steps: usize) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{bar:24} {pos}/{len}  {msg}  {eta} left")
                .unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::new(steps as u64).with_style(style)
        });
        Self { bar, steps }
    }

    /// An update is done.
    pub fn step(&self, step: usize) {
        if let Some(bar) = &self.bar {
            bar.set_position(step as u64);
        }
    }

    /// New measurements.
    pub fn measured(&self, step: usize, loss: f64, accuracy: f64, tokens_per_second: f64) {
        let text = format!("loss {loss:.4}  accuracy {accuracy:.3}  {:.0}k tokens/s", tokens_per_second / 1e3);
        match &self.bar {
            Some(bar) => bar.set_message(text),
            None => eprintln!("step {step}/{}  {text}", self.steps),
        }
    }

    /// A line that stays.
    pub fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None => eprintln!("{line}"),
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
