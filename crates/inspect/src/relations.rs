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

use super::{ModelParts, Subject};

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
            let message = format!("{} has no gold relations", self.config.task.name());
            return Err(Error::new(self.run.path().display(), message));
        }
        let half = validation.sequences.len() / 2;
        if half == 0 {
            let message =
                "has one validation sequence; a head is chosen on some and measured on others";
            return Err(Error::new(self.run.path().display(), message));
        }
        let (first, second) = validation.sequences.split_at(half);
        let (first_relations, second_relations) = validation.relations.split_at(half);
        let chosen_by = self.relation_scores(&model, first, first_relations)?.plain;
        let measured = self.relation_scores(&model, second, second_relations)?;
        let names: Vec<String> = chosen_by
            .first()
            .map_or_else(Vec::new, |(_, scores)| scores.keys().cloned().collect());
        let best = |relation: String| {
            let head = best_head(&chosen_by, &relation)?;
            let of = |heads: &[(HeadName, RelationScores)]| {
                heads
                    .iter()
                    .find(|(name, _)| *name == head)?
                    .1
                    .get(&relation)
                    .copied()
            };
            Some(RelationHead {
                head,
                chosen_by: of(&chosen_by)?,
                score: of(&measured.plain)?,
                shuffled: of(&measured.shuffled).map(|score| score.score.value),
                value_weighted: of(&measured.value_weighted)?.score.value,
                relation,
            })
        };
        let asked = validation.questions.get(half..).unwrap_or_default();
        let answers = |heads: &[HeadName]| {
            evaluate_without(&model, heads, second, asked, &self.device, Cores::all()).breakdown
        };
        Ok(RelationHeads {
            sequences: second.len(),
            best: names.into_iter().filter_map(best).collect(),
            untouched: answers(&[]),
            without: all_heads(&model)
                .into_iter()
                .map(|head| (head, answers(&[head])))
                .collect(),
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
        let shuffled = ShuffledContext::new(&watched.tokens, &watched.relations, self.config.seed);
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

/// Every head's scores against the gold relations.
#[derive(Default)]
struct HeadRelations {
    plain: Vec<(HeadName, RelationScores)>,
    value_weighted: Vec<(HeadName, RelationScores)>,
    shuffled: Vec<(HeadName, RelationScores)>,
}

impl RelationHeads {
    /// For the terminal.
    #[must_use]
    pub fn printout(&self) -> Printout {
        let number = |value: f64| format!("{value:.2}");
        let best = self.best.iter().map(|best| {
            let RelationScore {
                score,
                distance_null,
                rows,
            } = best.score;
            let shuffled = number_or_dash(best.shuffled, 2);
            let interval = with_interval(score.value, score.interval, 2);
            let nulls = [
                number(score.null),
                number(distance_null),
                shuffled,
                number(best.value_weighted),
            ];
            let chosen_by = number(best.chosen_by.score.value);
            [
                vec![
                    best.relation.clone(),
                    best.head.to_string(),
                    chosen_by,
                    interval,
                    rows.to_string(),
                ],
                nulls.to_vec(),
            ]
            .concat()
        });
        let heads: Vec<&HeadName> = self.without.keys().collect();
        let answers = self.untouched.iter().map(|(kind, untouched)| {
            let without = heads.iter().map(|head| {
                let answers = self.without[head].get(kind);
                number_or_dash(answers.map(|answers| answers.accuracy), 3)
            });
            [
                kind.clone(),
                untouched.count.to_string(),
                format!("{:.3}", untouched.accuracy),
            ]
            .into_iter()
            .chain(without)
            .collect()
        });
        let columns = [
            "right answers".to_owned(),
            "of".to_owned(),
            "untouched".to_owned(),
        ];
        let columns: Vec<String> = columns
            .into_iter()
            .chain(heads.iter().map(ToString::to_string))
            .collect();
        let best = Table::new(
            &[
                "relation",
                "head",
                "chosen by",
                "weight",
                "pairs",
                "uniform",
                "distance",
                "shuffled",
                "values",
            ],
            best,
        );
        let chosen = format!(
            "For each relation the head with the largest weight above both nulls on one half of the validation \
             sequences, and its weight on the other half ({} sequences), where all nulls are counted:",
            self.sequences
        );
        Printout::new()
            .prose(chosen)
            .table(
                best.text_columns(2)
                    .first_to_go(&["values", "pairs", "chosen by"]),
            )
            .prose(
                "uniform: even attention; distance: the same head at the same distances to words that are no source; \
                 shuffled: the same head at the same places when the tokens are shuffled; values: weights scaled by \
                 the norms of the values.",
            )
            .prose(
                "Right answers on the other half without each head alone, its mean in its place:",
            )
            .table(Table::new(&columns, answers).first_to_go(&self.heads_by_need()))
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
