//! `inspect RUN lens`: how the answer forms along the stream, and which parts give it.

use headlight_lens::{Contribution, Depth, direct_logit_attribution, logit_lens};
use headlight_report::plain_table;
use headlight_run::InputError;
use serde::Serialize;

use super::{Inspection, causal::cells};

/// What `inspect RUN lens` shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lens {
    /// The logit lens, in the order of the stream.
    pub depths: Vec<Depth>,
    /// What each part adds to the right token's logit above the mean logit; none for a post-norm model.
    pub contributions: Option<Vec<Contribution>>,
}

impl Inspection {
    /// Logit lens and direct logit attribution on sequences of the run's task.
    ///
    /// # Errors
    /// If the run has no weights.
    pub fn lens(&self) -> Result<Lens, InputError> {
        let (model, behaviour) = self.behaviour()?;
        Ok(Lens { depths: logit_lens(&model, &behaviour), contributions: direct_logit_attribution(&model, &behaviour) })
    }
}

impl Lens {
    /// As text.
    #[must_use]
    pub fn text(&self) -> String {
        let depths = self.depths.iter().map(|depth| {
            let norm = format!("{:.2}", depth.norm);
            [vec![depth.site.clone()], cells(&depth.performance), vec![norm]].concat()
        });
        let depths = plain_table(&["stream at", "accuracy", "loss", "elsewhere", "norm"], depths);
        let contributions = self.contributions.as_ref().map_or_else(
            || "its norms replace the stream, so that parts do not add up".to_owned(),
            |parts| {
                let row = |part: &Contribution| vec![part.name.clone(), format!("{:+.3}", part.logit)];
                let sum: f64 = parts.iter().map(|part| part.logit).sum();
                let total = vec!["together".to_owned(), format!("{sum:+.3}")];
                plain_table(&["part", "logit"], parts.iter().map(row).chain([total]))
            },
        );
        format!(
            "What the unembedding reads from the stream on its way; the last row is the model itself.\n\n{depths}\n\n\
             What each part adds to the right token's logit, above the mean of all logits, on scored targets:\n\n\
             {contributions}\n\n\
             A part that adds nothing here may be needed by later parts: see ablate and paths."
        )
    }
}
