//! Watching heads: their patterns and scores on the probe and on the task.

use burn::tensor::{Device, Int, Tensor, TensorData};
use headlight_heads::{HeadName, Relation, RelationScores, Role, ScoreName, Scores, SequenceKind};
use headlight_lens::{LayerPattern, mean_distance, score_layer, score_relations, value_weighted};
use headlight_residual::{AttentionSite, Capture, Decoder, Site};
use headlight_run::{HeadRow, PatternFile};
use headlight_tasks::{Repeat, Sequence, Task, Use, batch};

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
    /// The probe: the jittered `repeat` task over the model's own vocabulary. Roles are read here,
    /// because a task of its own can make a head look like what it is not.
    #[must_use]
    pub fn probe(vocabulary: usize, n_ctx: usize, seed: u64) -> Self {
        let task = Repeat::probe(vocabulary, n_ctx);
        let sequences = batch(&task, seed, Use::Probe, 0, WATCHED_SEQUENCES);
        Self::inputs_of(SequenceKind::Probe, &task, &sequences)
    }

    /// The first sequences of a task.
    #[must_use]
    pub fn task(task: &dyn Task, sequences: &[Sequence]) -> Self {
        Self::all(task, &sequences[..sequences.len().min(WATCHED_SEQUENCES)])
    }

    /// All of these sequences of a task.
    #[must_use]
    pub fn all(task: &dyn Task, sequences: &[Sequence]) -> Self {
        Self::inputs_of(SequenceKind::Task, task, sequences)
    }

    fn inputs_of(kind: SequenceKind, task: &dyn Task, sequences: &[Sequence]) -> Self {
        let inputs = |sequence: &Sequence| sequence.tokens[..sequence.scored.len()].to_vec();
        // The last token is only a target: no query, no key.
        let relations = |sequence: &Sequence| {
            let inside = |relation: &Relation| {
                relation.dependent.max(relation.source) < sequence.scored.len()
            };
            task.relations(sequence)
                .into_iter()
                .filter(inside)
                .collect()
        };
        Self {
            kind,
            tokens: sequences.iter().map(inputs).collect(),
            relations: sequences.iter().map(relations).collect(),
        }
    }

    /// Runs `model` over the sequences and scores every head.
    #[must_use]
    pub fn observe(&self, model: &Decoder, device: &Device) -> Observation {
        let (layers, [rows, n_heads, length]) = patterns(model, &self.tokens, device);
        let mut heads = Vec::new();
        let mut relations = Vec::new();
        let mut kept = Vec::new();
        let kept_rows = rows.min(KEPT_SEQUENCES);
        for (layer, weights) in layers.iter().enumerate() {
            let pattern = LayerPattern::new([rows, n_heads, length], weights)
                .with_window(model.config().window);
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
            kept.extend_from_slice(&weights[..kept_rows * n_heads * length * length]);
        }
        let patterns = PatternFile::quantise(
            [layers.len(), kept_rows, n_heads, length],
            &kept,
            self.tokens[..kept_rows].to_vec(),
        );
        Observation {
            kind: self.kind,
            heads,
            relations,
            patterns,
        }
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

/// Every layer's pattern, `[rows, n_heads, length, length]` row by row, and these sizes.
///
/// # Panics
/// If the device cannot hand out its numbers.
#[must_use]
pub fn patterns(
    model: &Decoder,
    tokens: &[Vec<u32>],
    device: &Device,
) -> (Vec<Vec<f32>>, [usize; 3]) {
    let (rows, length) = (tokens.len(), tokens.first().map_or(0, Vec::len));
    let ids = ids(tokens, device);
    let sites = model.pattern_sites();
    let mut capture = Capture::new(&sites, usize::MAX);
    let _ = model.forward_probed(ids, &mut capture);
    let layers = sites
        .into_iter()
        .filter_map(|site| capture.take(site))
        .map(|pattern| pattern.into_tensor::<4>().into_data().convert::<f32>())
        .map(|pattern| pattern.try_into_vec::<f32>().expect("readable numbers"))
        .collect();
    (layers, [rows, model.n_heads(), length])
}

/// A layer's pattern, and the same scaled by the norms of the values that each query head reads.
#[derive(Debug, Clone)]
pub struct CarriedPattern {
    /// `[rows, n_heads, length, length]` row by row.
    pub weights: Vec<f32>,
    /// In the same order.
    pub weighted: Vec<f32>,
}

/// [`patterns`], each beside what it moves.
#[must_use]
pub fn carried_patterns(
    model: &Decoder,
    tokens: &[Vec<u32>],
    device: &Device,
) -> (Vec<CarriedPattern>, [usize; 3]) {
    let (rows, length) = (tokens.len(), tokens.first().map_or(0, Vec::len));
    let site = |layer, site| Site::Attention(layer, site);
    let layers = 0..model.blocks.len();
    let of_layer = |layer| {
        [
            site(layer, AttentionSite::Pattern),
            site(layer, AttentionSite::V),
        ]
    };
    let mut seen = Capture::new(
        &layers.clone().flat_map(of_layer).collect::<Vec<_>>(),
        usize::MAX,
    );
    let _ = model.forward_probed(ids(tokens, device), &mut seen);
    let carried = |layer| {
        let weights: Vec<f32> = seen
            .get::<4>(site(layer, AttentionSite::Pattern))?
            .into_data()
            .iter::<f32>()
            .collect();
        let norms = value_norms(
            seen.get::<4>(site(layer, AttentionSite::V))?,
            model.n_heads(),
        );
        let weighted = value_weighted(&weights, &norms, length);
        Some(CarriedPattern { weights, weighted })
    };
    (
        layers.filter_map(carried).collect(),
        [rows, model.n_heads(), length],
    )
}

/// `[batch, heads, keys]`: the norm of the value each query head reads at each key.
#[must_use]
pub fn value_norms(values: Tensor<4>, n_heads: usize) -> Vec<f32> {
    let [batch, keys, kv_heads, _] = values.dims();
    let norms = values
        .square()
        .sum_dim(3)
        .sqrt()
        .swap_dims(1, 2)
        .reshape([batch, kv_heads, 1, keys]);
    norms
        .expand([batch, kv_heads, n_heads / kv_heads, keys])
        .into_data()
        .iter::<f32>()
        .collect()
}

/// Token sequences of one length as a tensor, `[rows, length]`.
#[must_use]
pub fn ids(tokens: &[Vec<u32>], device: &Device) -> Tensor<2, Int> {
    let dims = [tokens.len(), tokens.first().map_or(0, Vec::len)];
    let ids: Vec<i32> = tokens.iter().flatten().map(|&token| token as i32).collect();
    Tensor::from_data(TensorData::new(ids, dims), device)
}
