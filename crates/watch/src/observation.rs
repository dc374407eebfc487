//! Watching heads: their patterns and scores on the probe and on the task.

use std::collections::BTreeMap;

use burn::tensor::Device;
use headlight_heads::{
    HeadName, Measure, Relation, RelationScores, Role, RoleCheck, RoleRange, Score, ScoreName,
    Scores, SequenceKind,
};
use headlight_lens::{
    HeadWrites, LayerDistances, RoleTargets, TargetWeights, attention_distances, role_checks,
    role_ranges, score_layer_on, score_relations,
};
use headlight_residual::Decoder;
use headlight_run::{Error, HeadRow, HeadSummary, PatternFile};
use headlight_tasks::{Repeat, Sequence, Task, Use, Validation, batch};

use crate::each_layer;

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
    /// Whether the first token is the start of the sequence, which scores leave out.
    pub has_start: bool,
}

/// The probe: the jittered `repeat` task over the tokens that occur in the training data of `task`.
/// Roles are read here, because a task of its own can make a head look like what it is not, and so
/// can tokens that the model never saw.
#[must_use]
pub fn probe(task: &dyn Task, n_ctx: usize, seed: u64) -> Vec<Sequence> {
    let all = || (0..task.vocabulary().len() as u32).collect();
    let start = task.start();
    let length = n_ctx - usize::from(start.is_some());
    let task = Repeat::probe(task.training_tokens().unwrap_or_else(all), length);
    let mut sequences = batch(&task, seed, Use::Probe, 0, WATCHED_SEQUENCES);
    if let Some(start) = start {
        for sequence in &mut sequences {
            sequence.tokens.insert(0, start);
            sequence.scored.insert(0, false);
        }
    }
    sequences
}

/// What the heads do on some sequences.
#[derive(Debug, Clone)]
pub struct Observation {
    /// The sequences.
    pub kind: SequenceKind,
    /// Every head's scores, first layer first.
    pub heads: Vec<(HeadName, Scores)>,
    /// How far back the heads of each layer look, all together: their mean attention distance.
    pub distances: Vec<Score>,
    /// Every head's scores against the gold relations, in the same order.
    pub relations: Vec<RelationScores>,
    /// What every head writes, in the same order: rms(result − mean)/rms(stream); on the probe only.
    pub writes: Vec<f64>,
    /// The positions at which every head holds roles, in the same order; on the probe only.
    pub ranges: Vec<Vec<RoleRange>>,
    /// How sure every head's share is on each measure, in the same order; on the probe only.
    pub checks: Vec<BTreeMap<Measure, RoleCheck>>,
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
            has_start: false,
        }
    }

    /// The same sequences, whose first token is the start of the sequence if `has_start`.
    #[must_use]
    pub fn with_start(self, has_start: bool) -> Self {
        Self { has_start, ..self }
    }

    /// Runs `model` over the sequences and scores every head.
    ///
    /// # Errors
    /// If the patterns do not fit into memory.
    pub fn observe(&self, model: &Decoder, device: &Device) -> Result<Observation, Error> {
        let is_probe = self.kind == SequenceKind::Probe;
        let (mut heads, mut relations, mut writes) = (Vec::new(), Vec::new(), Vec::new());
        let mut distances = Vec::new();
        let length = self.tokens.first().map_or(0, Vec::len);
        let kept_rows = self.tokens.len().min(KEPT_SEQUENCES);
        let kept_of_layer = kept_rows * model.n_heads() * length * length;
        let mut kept = Vec::new();
        // All layers see the keys of the first.
        let window = model.config().window_of(0);
        let targets = RoleTargets::causal(&self.tokens, window, self.has_start);
        let mut weights = TargetWeights::new(&targets);
        each_layer(
            model,
            &self.tokens,
            device,
            self.has_start,
            is_probe,
            |seen| {
                let pattern = seen.pattern;
                let mut scores = score_layer_on(pattern, &targets);
                let LayerDistances { heads: far, layer } = attention_distances(pattern);
                for (scores, distance) in scores.iter_mut().zip(far) {
                    scores.insert(ScoreName::MeanDistance, distance);
                }
                distances.push(layer);
                relations.extend(score_relations(pattern, &self.relations));
                let layer = seen.layer;
                let named = |(head, scores)| (HeadName { layer, head }, scores);
                heads.extend(scores.into_iter().enumerate().map(named));
                if is_probe {
                    weights.add(&pattern);
                    writes.extend(seen.writes);
                }
                kept.extend_from_slice(&seen.weights[..kept_of_layer]);
            },
        )?;
        let (mut ranges, mut checks) = (Vec::new(), Vec::new());
        if is_probe {
            ranges = ranges_with_writes(&weights, &writes);
            checks = role_checks(&weights);
        }
        let patterns = PatternFile::quantise(
            [model.blocks.len(), kept_rows, model.n_heads(), length],
            &kept,
            self.tokens[..kept_rows].to_vec(),
        );
        Ok(Observation {
            kind: self.kind,
            heads,
            distances,
            relations,
            writes: writes.iter().map(HeadWrites::everywhere).collect(),
            ranges,
            checks,
            patterns,
        })
    }
}

/// The values of the heads that are kept; of some kinds of sequences heads have no values.
fn those_kept<T>(values: Vec<T>, kept: &[bool]) -> Vec<T> {
    let of_kept = values.into_iter().zip(kept).filter(|(_, kept)| **kept);
    of_kept.map(|(value, _)| value).collect()
}

/// The ranges of every head, each with what the head writes there.
fn ranges_with_writes(weights: &TargetWeights, writes: &[HeadWrites]) -> Vec<Vec<RoleRange>> {
    let mut ranges = role_ranges(weights);
    for (ranges, writes) in ranges.iter_mut().zip(writes) {
        for range in ranges {
            range.writes = Some(writes.over(range.first..=range.last));
        }
    }
    ranges
}

impl Observation {
    /// What some of the heads do: the patterns stay those of all.
    #[must_use]
    pub fn only(self, heads: &[HeadName]) -> Self {
        let kept: Vec<bool> = self
            .heads
            .iter()
            .map(|(head, _)| heads.contains(head))
            .collect();
        Self {
            heads: those_kept(self.heads, &kept),
            relations: those_kept(self.relations, &kept),
            writes: those_kept(self.writes, &kept),
            ranges: those_kept(self.ranges, &kept),
            checks: those_kept(self.checks, &kept),
            ..self
        }
    }

    /// What each head looks like here.
    #[must_use]
    pub fn roles(&self) -> Vec<Role> {
        self.heads
            .iter()
            .map(|(_, scores)| Role::of(scores))
            .collect()
    }

    /// The heads that hold each role, as a whole or at some positions.
    #[must_use]
    pub fn holders(&self) -> Vec<(Measure, Vec<HeadName>)> {
        let mut holders = Vec::new();
        for measure in Measure::all() {
            let mut heads = Vec::new();
            for ((head, scores), ranges) in self.heads.iter().zip(&self.ranges) {
                let in_range = ranges.iter().any(|range| range.role == measure);
                if in_range || Role::of(scores) == Role::Of(measure) {
                    heads.push(*head);
                }
            }
            if !heads.is_empty() {
                holders.push((measure, heads));
            }
        }
        holders
    }

    /// As rows of `heads.jsonl`; roles only on the probe.
    #[must_use]
    pub fn rows(&self, step: usize) -> Vec<HeadRow> {
        let row = |(index, (head, scores)): (usize, &(HeadName, Scores))| {
            let role = (self.kind == SequenceKind::Probe).then(|| Role::of(scores));
            HeadRow {
                step,
                on: self.kind,
                head: *head,
                role,
                scores: scores.clone(),
                ranges: self.ranges.get(index).cloned().unwrap_or_default(),
                check: self.check(index, role),
                writes: self.writes.get(index).copied(),
                relations: self.relations[index].clone(),
            }
        };
        self.heads.iter().enumerate().map(row).collect()
    }

    /// As in `summary.json`; on the probe.
    #[must_use]
    pub fn summaries(&self) -> Vec<HeadSummary> {
        let summary = |row: HeadRow| HeadSummary {
            head: row.head,
            role: row.role.unwrap_or(Role::Mixed),
            scores: row.scores,
            ranges: row.ranges,
            check: row.check,
            writes: row.writes,
        };
        self.rows(0).into_iter().map(summary).collect()
    }

    /// The check of one head's role.
    fn check(&self, index: usize, role: Option<Role>) -> Option<RoleCheck> {
        match role? {
            Role::Of(measure) => self.checks.get(index)?.get(&measure).copied(),
            Role::Mixed => None,
        }
    }
}
