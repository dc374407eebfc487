//! Watching heads: their patterns and scores on the probe and on the task.

use burn::tensor::Device;
use headlight_heads::{HeadName, Relation, RelationScores, Role, ScoreName, Scores, SequenceKind};
use headlight_lens::{mean_distance, score_layer, score_relations};
use headlight_residual::Decoder;
use headlight_run::{Error, HeadRow, HeadSummary, PatternFile};
use headlight_tasks::{Repeat, Sequence, Task, Use, Validation, batch};

use crate::Patterns;

/// Sequences that scores are taken over.
pub const WATCHED_SEQUENCES: usize = 64;
/// Sequences whose patterns are kept.
const KEPT_SEQUENCES: usize = 2;

/// Token sequences that heads are watched on.
#[derive(Debug, Clone)]
pub struct Watched {
    /// What they are.
    pub kind: SequenceKind,
    /// `[sequences][positions]`
    pub tokens: Vec<Vec<u32>>,
    /// The gold relations of each sequence.
    pub relations: Vec<Vec<Relation>>,
}

/// The probe: the jittered `repeat` task over the tokens that occur in the training data of `task`.
/// Roles are read here, because a task of its own can make a head look like what it is not, and so
/// can tokens that the model never saw.
#[must_use]
pub fn probe(task: &dyn Task, n_ctx: usize, seed: u64) -> Vec<Sequence> {
    let all = || (0..task.vocabulary().len() as u32).collect();
    let task = Repeat::probe(task.training_tokens().unwrap_or_else(all), n_ctx);
    batch(&task, seed, Use::Probe, 0, WATCHED_SEQUENCES)
}

/// What the heads do on some sequences.
#[derive(Debug, Clone)]
pub struct Observation {
    /// The sequences.
    pub kind: SequenceKind,
    /// Every head's scores, first layer first.
    pub heads: Vec<(HeadName, Scores)>,
    /// Every head's scores against the gold relations, in the same order.
    pub relations: Vec<RelationScores>,
    /// The patterns on the first sequences.
    pub patterns: PatternFile,
}

impl Watched {
    /// The sequences of the probe.
    #[must_use]
    pub fn probe(sequences: &[Sequence]) -> Self {
        Self::new(SequenceKind::Probe, sequences, &[])
    }

    /// The first validation sequences of a task.
    #[must_use]
    pub fn task(validation: &Validation) -> Self {
        let count = validation.sequences.len().min(WATCHED_SEQUENCES);
        let relations = validation.relations.get(..count).unwrap_or_default();
        Self::new(
            SequenceKind::Task,
            &validation.sequences[..count],
            relations,
        )
    }

    /// Some sequences with the gold relations of each, or with none at all.
    #[must_use]
    pub fn new(kind: SequenceKind, sequences: &[Sequence], relations: &[Vec<Relation>]) -> Self {
        let mut inputs = Vec::new();
        let mut between_inputs = Vec::new();
        for (at, sequence) in sequences.iter().enumerate() {
            let length = sequence.scored.len();
            inputs.push(sequence.tokens[..length].to_vec());
            // The last token is only a target: no query, no key.
            let mut related = relations.get(at).cloned().unwrap_or_default();
            related.retain(|relation| relation.dependent.max(relation.source) < length);
            between_inputs.push(related);
        }
        Self {
            kind,
            tokens: inputs,
            relations: between_inputs,
        }
    }

    /// Runs `model` over the sequences and scores every head.
    ///
    /// # Errors
    /// If the patterns do not fit into memory.
    pub fn observe(&self, model: &Decoder, device: &Device) -> Result<Observation, Error> {
        let patterns = Patterns::of(model, &self.tokens, device)?;
        let [rows, n_heads, length] = patterns.dims();
        let mut heads = Vec::new();
        let mut relations = Vec::new();
        let mut kept = Vec::new();
        let kept_rows = rows.min(KEPT_SEQUENCES);
        for (layer, pattern) in patterns.layers().enumerate() {
            let mut scores = score_layer(pattern, &self.tokens);
            for (scores, distance) in scores.iter_mut().zip(mean_distance(pattern)) {
                scores.insert(ScoreName::MeanDistance, distance);
            }
            relations.extend(score_relations(pattern, &self.relations));
            heads.extend(
                scores
                    .into_iter()
                    .enumerate()
                    .map(|(head, scores)| (HeadName { layer, head }, scores)),
            );
        }
        for weights in patterns.weights() {
            kept.extend_from_slice(&weights[..kept_rows * n_heads * length * length]);
        }
        let patterns = PatternFile::quantise(
            [patterns.weights().len(), kept_rows, n_heads, length],
            &kept,
            self.tokens[..kept_rows].to_vec(),
        );
        Ok(Observation {
            kind: self.kind,
            heads,
            relations,
            patterns,
        })
    }
}

impl Observation {
    /// What each head looks like here.
    #[must_use]
    pub fn roles(&self) -> Vec<Role> {
        self.heads
            .iter()
            .map(|(_, scores)| Role::of(scores))
            .collect()
    }

    /// As the heads of `summary.json`.
    #[must_use]
    pub fn summaries(&self) -> Vec<HeadSummary> {
        let head = |(head, scores): &(HeadName, Scores)| HeadSummary {
            head: *head,
            role: Role::of(scores),
            scores: scores.clone(),
        };
        self.heads.iter().map(head).collect()
    }

    /// As rows of `heads.jsonl`; roles only on the probe.
    #[must_use]
    pub fn rows(&self, step: usize) -> Vec<HeadRow> {
        let role = |scores| (self.kind == SequenceKind::Probe).then(|| Role::of(scores));
        self.heads
            .iter()
            .zip(&self.relations)
            .map(|((head, scores), relations)| HeadRow {
                step,
                on: self.kind,
                head: *head,
                role: role(scores),
                scores: scores.clone(),
                relations: relations.clone(),
            })
            .collect()
    }
}
