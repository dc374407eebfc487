//! What the page of a run under way begins with.

use std::path::Path;

use headlight_report::LiveFacts;

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
            n_heads: self.model.n_heads(),
            window: self.config.model.window_of_all_layers(),
            report: path.join("report.html").display().to_string(),
        }
    }
}
