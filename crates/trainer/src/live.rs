//! What the page of a run under way begins with.

use std::path::Path;

use headlight_heads::Measure;
use headlight_report::{LiveFacts, measures_as_told};

use crate::Setup;

impl Setup {
    /// What is known before the first step of the run at `path`.
    #[must_use]
    pub fn live_facts(&self, path: &Path) -> LiveFacts {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        LiveFacts {
            name: path
                .file_name()
                .unwrap_or(path.as_os_str())
                .display()
                .to_string(),
            task: self.config.task.name().to_owned(),
            steps: self.config.train.steps,
            floor: self.floor,
            chance: self.task.chance(),
            best_accuracy: self.validation.best_accuracy(),
            tokens_per_step: self.tokens_per_step() as usize,
            measures: measures_as_told().into_iter().map(Measure::name).collect(),
            n_heads: self.model.n_heads(),
            window: self.config.model.window_of_all_layers(),
            report: path.join("report.html").display().to_string(),
        }
    }
}
