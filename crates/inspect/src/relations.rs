//! `inspect RUN relations`: which head follows each gold relation, and is it needed?

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use headlight_heads::{HeadName, Relation, RelationScore, RelationScores, SequenceKind};
use headlight_lens::{
    MeanCheck, ShuffledContext, all_heads, best_head, mean_checks, relation_excess, score_relations,
};
use headlight_report::{Printout, Table, number_or_dash, with_interval};
use headlight_residual::Decoder;
use headlight_run::{Breakdown, Error};
use headlight_tasks::{Recut, Sequence, Validation};
use headlight_watch::{Cores, Watched, each_carried_layer, each_layer, evaluate_without, task};
use serde::Serialize;

use super::{ModelParts, Need, Output, Subject, Verb};

/// Sequences of another task: two halves of as many as roles are read on.
const SEQUENCES: usize = 128;
/// Tokens of each.
const MOST_INPUTS: usize = 64;
/// Heads that a printout names for each relation.
const SHOWN_HEADS: usize = 5;

/// Which head follows each gold relation of the task, and what the model answers without it
#[derive(Debug, clap::Args)]
pub struct RelationsVerb {
    /// The configuration of a task with gold relations: its sentences stand in place of the
    /// subject's own sequences, cut by the subject's tokenizer
    #[arg(long)]
    on: Option<PathBuf>,
}

impl Verb for RelationsVerb {
    const NAME: &'static str = "relations";
    const NEEDS: &'static [Need] = &[Need::Relations];

    fn show(self, subject: Subject, out: &Output) -> Result<(), Error> {
        out.show(
            &subject.relations(self.on.as_deref())?,
            RelationHeads::printout,
        )
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
    /// The weight above the larger of both nulls, tested among all heads and relations.
    pub above: MeanCheck,
    /// The heads that are surely above both nulls, those furthest above first.
    pub sure: Vec<HeadName>,
}

/// What `inspect RUN relations` shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RelationHeads {
    /// What the sequences are.
    pub on: String,
    /// Sequences in each half.
    pub sequences: usize,
    /// The heads of the model.
    pub heads: usize,
    /// For each relation its head.
    pub best: Vec<RelationHead>,
    /// Right answers on the second half, untouched; none where the sequences ask nothing.
    pub untouched: Breakdown,
    /// The same without each head, its mean in its place.
    pub without: BTreeMap<HeadName, Breakdown>,
}

/// Sequences with gold relations.
struct Related<'a> {
    sequences: &'a [Sequence],
    relations: &'a [Vec<Relation>],
}

impl Subject {
    /// For each gold relation of the task its best head, and the answers of the model without each
    /// head. The task is that of the configuration `on`, whose words are cut by the subject's
    /// tokenizer, or the subject's own.
    ///
    /// # Errors
    /// If the run has no weights or one validation sequence only, or its task no gold relations.
    pub fn relations(&self, on: Option<&Path>) -> Result<RelationHeads, Error> {
        let ModelParts { model, .. } = self.model()?;
        if let Some(on) = on {
            let (sequences, relations) = self.related_sequences(on)?;
            let related = Related {
                sequences: &sequences,
                relations: &relations,
            };
            return self.relation_heads(&model, on.display().to_string(), &related);
        }
        let validation = self.validation()?;
        let related = Related {
            sequences: &validation.sequences,
            relations: &validation.relations,
        };
        let mut found = self.relation_heads(&model, self.task_name().to_owned(), &related)?;
        let half = validation.sequences.len() / 2;
        let second = &validation.sequences[half..];
        let asked = validation.questions.get(half..).unwrap_or_default();
        let answers = |heads: &[HeadName]| {
            evaluate_without(&model, heads, second, asked, &self.device, Cores::all()).breakdown
        };
        found.untouched = answers(&[]);
        if !found.untouched.is_empty() {
            for head in all_heads(&model) {
                found.without.insert(head, answers(&[head]));
            }
        }
        Ok(found)
    }

    /// The sequences of the task of another configuration in the tokens of this model, and the
    /// relations of each.
    fn related_sequences(&self, on: &Path) -> Result<(Vec<Sequence>, Vec<Vec<Relation>>), Error> {
        let wrong = |message: String| Error::new(format_args!("--on {}", on.display()), message);
        let config = self.tasks.load(on, &[])?;
        let task = task::build(&config, &self.tasks)?;
        let (theirs, ours) = (task.vocabulary().names(), self.vocabulary()?);
        let inputs = self.n_ctx().min(MOST_INPUTS);
        let validation = Validation::of_first(&*task, config.seed, SEQUENCES);
        let (mut sequences, mut relations) = (Vec::new(), Vec::new());
        for (sequence, related) in validation.sequences.iter().zip(&validation.relations) {
            let recut = Recut::of(&theirs, &sequence.tokens, related, &ours, inputs);
            let recut = recut.map_err(|token| {
                wrong(format!("cannot be cut into tokens of the model: {token}"))
            })?;
            let tokens = recut.sequence.scored.len();
            if tokens < inputs {
                let message = format!(
                    "its sequences have {tokens} tokens of the model, not {inputs}; set a larger model.n_ctx there"
                );
                return Err(wrong(message));
            }
            sequences.push(recut.sequence);
            relations.push(recut.relations);
        }
        Ok((sequences, relations))
    }

    fn relation_heads(
        &self,
        model: &Decoder,
        on: String,
        Related {
            sequences,
            relations,
        }: &Related,
    ) -> Result<RelationHeads, Error> {
        if relations.iter().all(Vec::is_empty) {
            let message = format!("{on} has no gold relations");
            return Err(Error::new(self.path().display(), message));
        }
        let half = sequences.len() / 2;
        if half == 0 {
            let message =
                "has one validation sequence; a head is chosen on some and measured on others";
            return Err(Error::new(self.path().display(), message));
        }
        let (first, second) = sequences.split_at(half);
        let (first_relations, second_relations) = relations.split_at(half);
        let chosen_by = self.relation_scores(model, first, first_relations)?.plain;
        let measured = self.relation_scores(model, second, second_relations)?;
        let checks = measured.checks();
        let mut best = Vec::new();
        for relation in relations_of(&chosen_by) {
            best.extend(RelationHead::of(relation, &chosen_by, &measured, &checks));
        }
        Ok(RelationHeads {
            on,
            sequences: second.len(),
            heads: chosen_by.len(),
            best,
            untouched: Breakdown::new(),
            without: BTreeMap::new(),
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
        each_carried_layer(
            model,
            &watched.tokens,
            &self.device,
            |layer, plain, weighted| {
                let score = |pattern| score_relations(pattern, &watched.relations);
                heads.plain.extend(named(layer, score(plain)));
                heads.value_weighted.extend(named(layer, score(weighted)));
                let excess = relation_excess(plain, &watched.relations);
                heads.excess.extend(named(layer, excess));
            },
        )?;
        each_layer(
            model,
            shuffled.contexts(),
            &self.device,
            false,
            false,
            |seen| {
                let scores = shuffled.relation_scores(seen.pattern);
                heads.shuffled.extend(named(seen.layer, scores));
            },
        )?;
        Ok(heads)
    }
}

/// The heads of a layer with their values.
fn named<T>(layer: usize, values: Vec<T>) -> impl Iterator<Item = (HeadName, T)> {
    let values = values.into_iter().enumerate();
    values.map(move |(head, value)| (HeadName { layer, head }, value))
}

/// Scores of every head against the gold relations.
type Scored = Vec<(HeadName, RelationScores)>;

/// Every head's scores against the gold relations.
#[derive(Default)]
struct HeadRelations {
    plain: Scored,
    value_weighted: Scored,
    shuffled: Scored,
    /// For each sequence how far a head is above both nulls.
    excess: Vec<(HeadName, BTreeMap<String, Vec<f64>>)>,
}

/// The test of every head on every relation.
type Checks = BTreeMap<(String, HeadName), MeanCheck>;

impl HeadRelations {
    /// Which heads are surely above both nulls, among all heads and relations.
    fn checks(&self) -> Checks {
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for (head, relations) in &self.excess {
            for (relation, excess) in relations {
                keys.push((relation.clone(), *head));
                values.push(excess.clone());
            }
        }
        keys.into_iter().zip(mean_checks(&values)).collect()
    }
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
    fn of(
        relation: String,
        chosen_by: &Scored,
        measured: &HeadRelations,
        checks: &Checks,
    ) -> Option<Self> {
        let mut sure = Vec::new();
        for ((name, head), check) in checks {
            if *name == relation && check.is_sure {
                sure.push((check.mean, *head));
            }
        }
        sure.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let head = best_head(chosen_by, &relation)?;
        let shuffled = score_of(&measured.shuffled, head, &relation);
        let value_weighted = score_of(&measured.value_weighted, head, &relation)?;
        Some(Self {
            head,
            chosen_by: score_of(chosen_by, head, &relation)?,
            score: score_of(&measured.plain, head, &relation)?,
            shuffled: shuffled.map(|score| score.score.value),
            value_weighted: value_weighted.score.value,
            above: *checks.get(&(relation.clone(), head))?,
            sure: sure.into_iter().map(|(_, head)| head).collect(),
            relation,
        })
    }
}

impl RelationHeads {
    /// For the terminal.
    #[must_use]
    pub fn printout(&self) -> Printout {
        let chosen = format!(
            "For each relation the head with the largest weight above both nulls on one half of the sequences \
             ({}), and its weight on the other half ({} sequences), where all nulls are counted:",
            self.on, self.sequences
        );
        let printout = Printout::new()
            .prose(chosen)
            .table(self.best_table())
            .prose(
                "uniform: even attention; distance: the same head at the same distances to words that are no source; \
                 shuffled: the same head at the same places when the tokens are shuffled; values: weights scaled by \
                 the norms of the values; above: the mean over sequences of the weight above the larger of uniform and \
                 distance.",
            )
            .prose(format!(
                "Heads that are surely above uniform and distance (false discovery rate 0.05 over {} heads and {} \
                 relations), those furthest above first:",
                self.heads,
                self.best.len()
            ))
            .table(self.sure_table());
        if self.without.is_empty() {
            return printout;
        }
        printout
            .prose(
                "Right answers on the other half without each head alone, its mean in its place:",
            )
            .table(self.answers_table())
    }

    /// The heads that follow each relation.
    fn sure_table(&self) -> Table {
        let mut rows = Vec::new();
        for best in &self.best {
            let shown = best.sure.iter().take(SHOWN_HEADS);
            let names: Vec<String> = shown.map(ToString::to_string).collect();
            let count = best.sure.len().to_string();
            rows.push(vec![best.relation.clone(), names.join(" "), count]);
        }
        Table::new(&["relation", "first of them", "heads"], rows).text_columns(2)
    }

    /// A line for each relation.
    fn best_table(&self) -> Table {
        const HEADER: [&str; 10] = [
            "relation",
            "head",
            "chosen by",
            "weight",
            "pairs",
            "uniform",
            "distance",
            "shuffled",
            "values",
            "above",
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
                with_interval(best.above.mean, best.above.interval, 2),
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
