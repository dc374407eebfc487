//! `inspect RUN relations`: which head follows each gold relation, and is it needed?

use std::collections::BTreeMap;

use headlight_heads::{HeadName, Relation, RelationScore, RelationScores, SequenceKind};
use headlight_lens::{ShuffledContext, all_heads, best_head, score_relations};
use headlight_report::{Printout, Table, number_or_dash, with_interval};
use headlight_residual::Decoder;
use headlight_run::{Breakdown, Error};
use headlight_tasks::Sequence;
use headlight_watch::{CarriedPatterns, Cores, Patterns, Watched, evaluate_without};
use serde::Serialize;

use super::{ModelParts, Need, Output, Subject, Verb};

/// Which head follows each gold relation of the task, and what the model answers without it
#[derive(Debug, clap::Args)]
pub struct RelationsVerb;

impl Verb for RelationsVerb {
    const NAME: &'static str = "relations";
    const NEEDS: &'static [Need] = &[Need::Relations];

    fn show(self, subject: Subject, out: &Output) -> Result<(), Error> {
        out.show(&subject.relations()?, RelationHeads::printout)
    }
}

/// The best head of a relation, chosen on one half of the validation sequences, measured on the
/// other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RelationHead {
    /// The relation.
    pub relation: String,
    /// The head with the largest score above both nulls on the first half.
    pub head: HeadName,
    /// Its score there.
    pub chosen_by: RelationScore,
    /// On the second half, like all that follows.
    pub score: RelationScore,
    /// What it gives to the same places when the tokens are shuffled; none where no place is left
    /// to score.
    pub shuffled: Option<f64>,
    /// The score of the pattern scaled by the norm of the values.
    pub value_weighted: f64,
}

/// What `inspect RUN relations` shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RelationHeads {
    /// Sequences in each half.
    pub sequences: usize,
    /// For each relation its head.
    pub best: Vec<RelationHead>,
    /// Right answers on the second half, untouched.
    pub untouched: Breakdown,
    /// The same without each head, its mean in its place.
    pub without: BTreeMap<HeadName, Breakdown>,
}

impl Subject {
    /// For each gold relation of the task its best head, and the answers of the model without each
    /// head.
    ///
    /// # Errors
    /// If the run has no weights or one validation sequence only, or its task no gold relations.
    pub fn relations(&self) -> Result<RelationHeads, Error> {
        let ModelParts { model, .. } = self.model()?;
        let validation = self.validation()?;
        if validation.relations.is_empty() {
            let message = format!("{} has no gold relations", self.task_name());
            return Err(Error::new(self.path().display(), message));
        }
        let half = validation.sequences.len() / 2;
        if half == 0 {
            let message =
                "has one validation sequence; a head is chosen on some and measured on others";
            return Err(Error::new(self.path().display(), message));
        }
        let (first, second) = validation.sequences.split_at(half);
        let (first_relations, second_relations) = validation.relations.split_at(half);
        let chosen_by = self.relation_scores(&model, first, first_relations)?.plain;
        let measured = self.relation_scores(&model, second, second_relations)?;
        let asked = validation.questions.get(half..).unwrap_or_default();
        let answers = |heads: &[HeadName]| {
            evaluate_without(&model, heads, second, asked, &self.device, Cores::all()).breakdown
        };
        let mut best = Vec::new();
        for relation in relations_of(&chosen_by) {
            best.extend(RelationHead::of(relation, &chosen_by, &measured));
        }
        let mut without = BTreeMap::new();
        for head in all_heads(&model) {
            without.insert(head, answers(&[head]));
        }
        Ok(RelationHeads {
            sequences: second.len(),
            best,
            untouched: answers(&[]),
            without,
        })
    }

    fn relation_scores(
        &self,
        model: &Decoder,
        sequences: &[Sequence],
        relations: &[Vec<Relation>],
    ) -> Result<HeadRelations, Error> {
        let mut heads = HeadRelations::default();
        let watched = Watched::new(SequenceKind::Task, sequences, relations);
        let shuffled = ShuffledContext::new(&watched.tokens, &watched.relations, self.seed());
        let carried = CarriedPatterns::of(model, &watched.tokens, &self.device)?;
        let on_shuffled = Patterns::of(model, shuffled.contexts(), &self.device)?;
        let layers = carried.plain.layers().zip(carried.weighted.layers());
        for (layer, ((pattern, weighted), on_shuffled)) in
            layers.zip(on_shuffled.layers()).enumerate()
        {
            let named = |scores: Vec<RelationScores>| {
                scores
                    .into_iter()
                    .enumerate()
                    .map(move |(head, scores)| (HeadName { layer, head }, scores))
            };
            let score = |pattern| named(score_relations(pattern, &watched.relations));
            heads.plain.extend(score(pattern));
            heads.value_weighted.extend(score(weighted));
            heads
                .shuffled
                .extend(named(shuffled.relation_scores(on_shuffled)));
        }
        Ok(heads)
    }
}

/// Scores of every head against the gold relations.
type Scored = Vec<(HeadName, RelationScores)>;

/// Every head's scores against the gold relations.
#[derive(Default)]
struct HeadRelations {
    plain: Scored,
    value_weighted: Scored,
    shuffled: Scored,
}

/// The names of the relations that were scored: the same in every head.
fn relations_of(heads: &Scored) -> Vec<String> {
    match heads.first() {
        Some((_, scores)) => scores.keys().cloned().collect(),
        None => Vec::new(),
    }
}

/// The score of one head against one relation.
fn score_of(heads: &Scored, head: HeadName, relation: &str) -> Option<RelationScore> {
    let (_, scores) = heads.iter().find(|(name, _)| *name == head)?;
    scores.get(relation).copied()
}

impl RelationHead {
    /// The best head on the half that `chosen_by` scores, as `measured` on the other; `None` where
    /// the relation does not occur there.
    fn of(relation: String, chosen_by: &Scored, measured: &HeadRelations) -> Option<Self> {
        let head = best_head(chosen_by, &relation)?;
        let shuffled = score_of(&measured.shuffled, head, &relation);
        let value_weighted = score_of(&measured.value_weighted, head, &relation)?;
        Some(Self {
            head,
            chosen_by: score_of(chosen_by, head, &relation)?,
            score: score_of(&measured.plain, head, &relation)?,
            shuffled: shuffled.map(|score| score.score.value),
            value_weighted: value_weighted.score.value,
            relation,
        })
    }
}

impl RelationHeads {
    /// For the terminal.
    #[must_use]
    pub fn printout(&self) -> Printout {
        let chosen = format!(
            "For each relation the head with the largest weight above both nulls on one half of the validation \
             sequences, and its weight on the other half ({} sequences), where all nulls are counted:",
            self.sequences
        );
        Printout::new()
            .prose(chosen)
            .table(self.best_table())
            .prose(
                "uniform: even attention; distance: the same head at the same distances to words that are no source; \
                 shuffled: the same head at the same places when the tokens are shuffled; values: weights scaled by \
                 the norms of the values.",
            )
            .prose(
                "Right answers on the other half without each head alone, its mean in its place:",
            )
            .table(self.answers_table())
    }

    /// A line for each relation.
    fn best_table(&self) -> Table {
        const HEADER: [&str; 9] = [
            "relation",
            "head",
            "chosen by",
            "weight",
            "pairs",
            "uniform",
            "distance",
            "shuffled",
            "values",
        ];
        let mut rows = Vec::new();
        for best in &self.best {
            let RelationScore {
                score,
                distance_null,
                rows: pairs,
            } = best.score;
            rows.push(vec![
                best.relation.clone(),
                best.head.to_string(),
                format!("{:.2}", best.chosen_by.score.value),
                with_interval(score.value, score.interval, 2),
                pairs.to_string(),
                format!("{:.2}", score.null),
                format!("{distance_null:.2}"),
                number_or_dash(best.shuffled, 2),
                format!("{:.2}", best.value_weighted),
            ]);
        }
        Table::new(&HEADER, rows)
            .text_columns(2)
            .first_to_go(&["values", "pairs", "chosen by"])
    }

    /// A line for each kind of question, a column for each head that is taken away.
    fn answers_table(&self) -> Table {
        let mut header = ["right answers", "of", "untouched"]
            .map(str::to_owned)
            .to_vec();
        for head in self.without.keys() {
            header.push(head.to_string());
        }
        let mut rows = Vec::new();
        for (kind, untouched) in &self.untouched {
            let mut row = vec![
                kind.clone(),
                untouched.count.to_string(),
                format!("{:.3}", untouched.accuracy),
            ];
            for without in self.without.values() {
                let accuracy = without.get(kind).map(|answers| answers.accuracy);
                row.push(number_or_dash(accuracy, 3));
            }
            rows.push(row);
        }
        Table::new(&header, rows).first_to_go(&self.heads_by_need())
    }

    /// The heads, first those without which the answers change least.
    fn heads_by_need(&self) -> Vec<String> {
        let most_lost = |without: &Breakdown| {
            let lost = self.untouched.iter().filter_map(|(kind, untouched)| {
                Some(untouched.accuracy - without.get(kind)?.accuracy)
            });
            lost.fold(0.0, f64::max)
        };
        let mut heads: Vec<(f64, String)> = self
            .without
            .iter()
            .map(|(head, without)| (most_lost(without), head.to_string()))
            .collect();
        heads.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        heads.into_iter().map(|(_, head)| head).collect()
    }
}
