//! `inspect RUN heads`: what the heads score where the tokens are shuffled, beside what they score.

use headlight_lens::{LayerPattern, ShuffledContext};
use headlight_report::HeadLine;
use headlight_run::{HeadName, HeadSummary, InputError, RelationScores, Scores, SequenceKind};
use serde::Serialize;

use super::{Inspection, ModelParts};
use crate::{
    tasks,
    watch::{Watched, patterns},
};

/// A head as `inspect heads --json` prints it: as in `summary.json`, with one more null.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InspectedHead {
    /// What the summary says.
    #[serde(flatten)]
    pub summary: HeadSummary,
    /// Duplicate token and induction at the same places of the probe when its tokens are shuffled.
    #[serde(skip_serializing_if = "Scores::is_empty")]
    pub shuffled: Scores,
    /// The gold relations of the task at the same places when its tokens are shuffled.
    #[serde(skip_serializing_if = "RelationScores::is_empty")]
    pub shuffled_relations: RelationScores,
}

/// What every head scores on shuffled tokens, first layer first; nothing where the run has no weights.
#[derive(Debug, Default)]
pub(super) struct ShuffledHeads {
    /// On the probe.
    pub probe: Vec<(HeadName, Scores)>,
    task: Vec<(HeadName, Scores)>,
    /// On the task.
    pub relations: Vec<RelationScores>,
}

impl ShuffledHeads {
    /// As lines of the table of heads.
    pub fn lines(&self, kind: SequenceKind) -> Vec<HeadLine> {
        let heads = match kind {
            SequenceKind::Probe => &self.probe,
            SequenceKind::Task => &self.task,
        };
        let line = |(head, scores): &(HeadName, Scores)| HeadLine {
            head: *head,
            role: None,
            used_as: None,
            scores: scores.clone(),
        };
        heads.iter().map(line).collect()
    }
}

impl Inspection {
    /// The heads of the summary, with what they score on shuffled tokens.
    ///
    /// # Errors
    /// If training has not ended.
    pub fn heads(&self) -> Result<Vec<InspectedHead>, InputError> {
        let shuffled = self.shuffled_heads();
        let head = |(index, summary): (usize, HeadSummary)| InspectedHead {
            summary,
            shuffled: shuffled.probe.get(index).map(|(_, scores)| scores.clone()).unwrap_or_default(),
            shuffled_relations: shuffled.relations.get(index).cloned().unwrap_or_default(),
        };
        Ok(self.summary()?.heads.into_iter().enumerate().map(head).collect())
    }

    /// One more forward pass on the probe and one on the task. Scores in the run's files are shown whether or not its
    /// weights can be read, so that an error here only leaves the null out.
    pub(super) fn shuffled_heads(&self) -> ShuffledHeads {
        self.try_shuffled_heads().unwrap_or_else(|error| {
            tracing::warn!("without scores on shuffled tokens: {error}");
            ShuffledHeads::default()
        })
    }

    fn try_shuffled_heads(&self) -> Result<ShuffledHeads, InputError> {
        let ModelParts { model, vocabulary } = self.model()?;
        let task = tasks::build(&self.config.task, self.config.model.n_ctx, self.config.seed)?;
        let probe = Watched::probe(vocabulary.len(), self.config.model.n_ctx, self.config.seed);
        let task = Watched::task(&*task, &tasks::validation(&*task, self.config.seed));
        let observe = |watched: &Watched| {
            let shuffled = ShuffledContext::new(&watched.tokens, &watched.relations, self.config.seed);
            let (layers, dims) = patterns(&model, shuffled.contexts(), &self.device);
            let (mut heads, mut relations) = (Vec::new(), Vec::new());
            for (layer, weights) in layers.iter().enumerate() {
                let pattern = LayerPattern::new(dims, weights);
                let named = |(head, scores)| (HeadName { layer, head }, scores);
                heads.extend(shuffled.scores(pattern).into_iter().enumerate().map(named));
                relations.extend(shuffled.relation_scores(pattern));
            }
            (heads, relations)
        };
        let (probe, _) = observe(&probe);
        let (task, relations) = observe(&task);
        Ok(ShuffledHeads { probe, task, relations })
    }
}
