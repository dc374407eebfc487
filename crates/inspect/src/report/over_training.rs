//! Scores and patterns over training, as many as fit into a page.

use std::collections::{BTreeMap, BTreeSet};

use headlight_heads::{HeadName, Score, SequenceKind};
use headlight_report::{Bytes, Floats, MeasureText, PatternSet, ScoreSeries};
use headlight_residual::{AttentionSite, Decoder, Site, token_tensor};
use headlight_run::{HeadRow, InputError, PatternFile, Summary};
use headlight_watch::{no_room, value_norms};

use super::{Inspection, MEASURES, file_name};

/// Bytes of scores and of patterns; base64 makes a third more of them.
const MOST_SCORE_BYTES: usize = 300_000;
const MOST_PATTERN_BYTES: usize = 2_200_000;

/// Shorter than this no sequence is cut.
const FEWEST_TOKENS: usize = 16;

/// Every score of every head over training.
pub(super) struct Scores {
    pub(super) steps: Vec<usize>,
    pub(super) series: Vec<ScoreSeries>,
}

impl Scores {
    pub(super) fn of(
        run: &Inspection,
        summary: &Summary,
        left_out: &mut Vec<String>,
    ) -> Result<Self, InputError> {
        let rows = run.run.heads()?;
        let heads: Vec<HeadName> = summary.heads.iter().map(|head| head.head).collect();
        let all: Vec<usize> = rows
            .iter()
            .map(|row| row.step)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        let by_place: BTreeMap<(usize, bool, HeadName), &HeadRow> = rows
            .iter()
            .map(|row| ((row.step, row.on == SequenceKind::Task, row.head), row))
            .collect();
        let last = |task| {
            by_place
                .get(&(*all.last()?, task, *heads.first()?))
                .copied()
        };
        let names: Vec<(SequenceKind, String, Score)> = [SequenceKind::Probe, SequenceKind::Task]
            .into_iter()
            .flat_map(|on| {
                last(on == SequenceKind::Task)
                    .map(|row| scores_of(row, on))
                    .unwrap_or_default()
            })
            .collect();
        let bytes_a_step = 12 * heads.len() * names.len();
        let steps = thinned(&all, MOST_SCORE_BYTES / bytes_a_step.max(1));
        if steps.len() < all.len() {
            left_out.push(format!(
                "head scores at {} of {} logged steps",
                all.len() - steps.len(),
                all.len()
            ));
        }
        let series = names.into_iter().map(|(on, name, reference)| {
            let value = |step: usize, head: HeadName| {
                let row = by_place.get(&(step, on == SequenceKind::Task, head))?;
                row.scores
                    .get(&name)
                    .or_else(|| row.relations.get(&name).map(|relation| &relation.score))
            };
            let of_step =
                |&step: &usize| heads.iter().flat_map(move |&head| three(value(step, head)));
            let values = steps
                .iter()
                .flat_map(|step| of_step(step).collect::<Vec<f32>>())
                .collect();
            let Score { null, ceiling, .. } = reference;
            ScoreSeries {
                on,
                name: name.clone(),
                null,
                ceiling,
                values: Floats(values),
            }
        });
        Ok(Self {
            series: series.collect(),
            steps,
        })
    }

    /// What the scores against gold relations mean.
    pub(super) fn relations(&self) -> impl Iterator<Item = MeasureText> {
        let known = |name: &str| MEASURES.iter().any(|(known, ..)| *known == name);
        self.series
            .iter()
            .filter(move |series| !known(&series.name))
            .map(|series| MeasureText {
                name: series.name.clone(),
                formula: format!(
                    "mean of A[dependent, source] over the pairs of words of the relation {}",
                    series.name
                ),
                does: "looks from a word at the word it depends on".to_owned(),
                is_role: false,
            })
    }
}

/// The scores and relation scores of a row, with their nulls and ceilings.
fn scores_of(row: &HeadRow, on: SequenceKind) -> Vec<(SequenceKind, String, Score)> {
    let scores = row
        .scores
        .iter()
        .map(|(name, score)| (on, name.clone(), *score));
    scores
        .chain(
            row.relations
                .iter()
                .map(|(name, relation)| (on, name.clone(), relation.score)),
        )
        .collect()
}

fn three(score: Option<&Score>) -> [f32; 3] {
    score.map_or([f32::NAN; 3], |score| {
        [score.value, score.low, score.high].map(|number| number as f32)
    })
}

/// At most `count` of these, at least the first and the last, evenly spread.
fn thinned(steps: &[usize], count: usize) -> Vec<usize> {
    if steps.len() <= count.max(2) {
        return steps.to_vec();
    }
    let last = count.max(2) - 1;
    (0..=last)
        .map(|at| steps[at * (steps.len() - 1) / last])
        .collect()
}

impl Inspection {
    /// The patterns over training: fewer sequences, then fewer steps, then fewer tokens where there
    /// are too many.
    pub(super) fn pattern_sets(
        &self,
        model: &Decoder,
        vocabulary: &[String],
        left_out: &mut Vec<String>,
    ) -> Result<Vec<PatternSet>, InputError> {
        let all = self.run.pattern_steps()?;
        let Some(&last) = all.last() else {
            return Ok(Vec::new());
        };
        let heads = model.blocks.len() * model.n_heads();
        let newest = self.checked_patterns(last, SequenceKind::Probe, model, vocabulary)?;
        let [_, sequences, _, length] = newest.sizes();
        let size = |sequences: usize, steps: usize, tokens: usize| {
            2 * sequences * steps * heads * tokens * (tokens + 1) / 2
        };
        let tokens = std::iter::successors(Some(length), |tokens| {
            (*tokens > FEWEST_TOKENS).then_some(tokens.div_ceil(2))
        });
        let ways = tokens.flat_map(|tokens| {
            [
                (sequences, all.len()),
                (1, all.len()),
                (1, 6),
                (1, 2),
                (1, 1),
            ]
            .map(|(sequences, steps)| (sequences, steps, tokens))
        });
        let fits = |&(sequences, steps, tokens): &(usize, usize, usize)| {
            size(sequences, steps, tokens) <= MOST_PATTERN_BYTES
        };
        let Some((kept, steps, tokens)) = ways.into_iter().find(fits) else {
            left_out.push(format!("the patterns of {heads} heads: too many"));
            return Ok(Vec::new());
        };
        let steps = if steps == 1 {
            vec![last]
        } else {
            thinned(&all, steps)
        };
        if kept < sequences {
            left_out.push(format!(
                "patterns on {} of {sequences} sequences of each kind",
                sequences - kept
            ));
        }
        if steps.len() < all.len() {
            left_out.push(format!(
                "patterns at {} of {} steps",
                all.len() - steps.len(),
                all.len()
            ));
        }
        if tokens < length {
            left_out.push(format!(
                "patterns beyond the first {tokens} of {length} tokens"
            ));
        }
        let mut sets = Vec::new();
        for kind in [SequenceKind::Probe, SequenceKind::Task] {
            let files = steps
                .iter()
                .map(|&step| self.checked_patterns(step, kind, model, vocabulary));
            let files = files.collect::<Result<Vec<_>, _>>()?;
            let Some(newest) = files.last() else { continue };
            for sequence in 0..kept.min(newest.tokens().len()) {
                let row = &newest.tokens()[sequence];
                let same = |file: &PatternFile| file.tokens().get(sequence) == Some(row);
                if !files.iter().all(same) {
                    return Err(InputError::damaged(
                        self.run.path().display(),
                        "patterns are of different sequences",
                    ));
                }
                // Keys beyond the cut are seen by no query before it.
                let row = &row[..tokens.min(row.len())];
                sets.push(PatternSet {
                    on: kind,
                    tokens: row
                        .iter()
                        .map(|&token| vocabulary[token as usize].clone())
                        .collect(),
                    steps: steps.clone(),
                    weights: files
                        .iter()
                        .map(|file| lower_triangles(file, sequence, row.len()))
                        .collect(),
                    value_norms: if last == self.config.train.steps {
                        Some(Floats(self.norms(model, row)?))
                    } else {
                        None
                    },
                });
            }
        }
        Ok(sets)
    }

    /// Patterns of this model, of tokens that it knows.
    fn checked_patterns(
        &self,
        step: usize,
        kind: SequenceKind,
        model: &Decoder,
        vocabulary: &[String],
    ) -> Result<PatternFile, InputError> {
        let name = file_name(kind);
        let file = self.run.patterns(step, name)?;
        let [layers, _, heads, length] = file.sizes();
        let known = file
            .tokens()
            .iter()
            .flatten()
            .all(|&token| (token as usize) < vocabulary.len());
        if layers != model.blocks.len()
            || heads != model.n_heads()
            || length > model.n_ctx()
            || !known
        {
            let place = format!(
                "{}/patterns/step-{step}/{name}.safetensors",
                self.run.path().display()
            );
            return Err(InputError::damaged(
                place,
                "holds patterns of another model",
            ));
        }
        Ok(file)
    }

    /// `[head][key]`: the norms of the values that each head reads.
    fn norms(&self, model: &Decoder, row: &[u32]) -> Result<Vec<f32>, InputError> {
        let sites: Vec<Site> = (0..model.blocks.len())
            .map(|layer| Site::Attention(layer, AttentionSite::V))
            .collect();
        let tokens = token_tensor(&[row], &self.device);
        let seen = model.activations(tokens, &sites).map_err(no_room)?;
        let norms = |site| value_norms(seen.tensor(site), model.n_heads());
        Ok(sites.into_iter().flat_map(norms).collect())
    }
}

/// `[head][query][key ≤ query]`, first layer first.
fn lower_triangles(file: &PatternFile, sequence: usize, tokens: usize) -> Bytes {
    let [layers, _, heads, _] = file.sizes();
    let mut bytes = Vec::with_capacity(layers * heads * tokens * (tokens + 1) / 2);
    for layer in 0..layers {
        for head in 0..heads {
            for query in 0..tokens {
                bytes.extend_from_slice(&file.row(layer, sequence, head, query)[..=query]);
            }
        }
    }
    Bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_the_ends() {
        let steps: Vec<usize> = (0..=10).map(|step| 100 * step).collect();
        assert_eq!(thinned(&steps, 20), steps);
        assert_eq!(thinned(&steps, 6), [0, 200, 400, 600, 800, 1000]);
        assert_eq!(thinned(&steps, 0), [0, 1000]);
        assert_eq!(thinned(&steps[..1], 0), [0]);
    }

    #[test]
    fn what_is_above_the_diagonal_is_not_written() {
        let weights = [1.0, 0.0, 0.0, 0.4, 0.6, 0.0, 0.2, 0.2, 0.6];
        let file = PatternFile::quantise([1, 1, 1, 3], &weights, vec![vec![0, 1, 2]]);
        assert_eq!(lower_triangles(&file, 0, 3).0, [255, 102, 153, 51, 51, 153]);
        assert_eq!(lower_triangles(&file, 0, 2).0, [255, 102, 153]);
    }
}
