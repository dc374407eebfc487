//! Scores and patterns over training, as many as fit into a page.

use std::collections::{BTreeMap, BTreeSet};

use headlight_heads::{HeadName, Score, ScoreName, SequenceKind};
use headlight_report::{Bytes, Floats, MeasureText, PatternSet, ScoreSeries, scores_as_told};
use headlight_residual::{AttentionSite, Decoder, Site, token_tensor};
use headlight_run::{Error, HeadRow, PatternFile, Summary};
use headlight_watch::{no_room, value_norms};

use super::Subject;

/// Bytes of scores and of patterns; base64 makes a third more of them.
const MOST_SCORE_BYTES: usize = 300_000;
const MOST_PATTERN_BYTES: usize = 2_200_000;

/// Shorter than this no sequence is cut.
const FEWEST_TOKENS: usize = 16;

/// Every score of every head over training.
pub(super) struct Scores {
    pub(super) steps: Vec<usize>,
    pub(super) series: Vec<ScoreSeries>,
    /// What they mean.
    pub(super) measures: Vec<MeasureText>,
}

/// What a head has a score on.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Scored {
    Score(ScoreName),
    Relation(String),
}

impl Scored {
    /// All that a row has a score on.
    fn in_row(row: &HeadRow) -> impl Iterator<Item = Self> {
        let scores = row.scores.keys().copied().map(Self::Score);
        scores.chain(row.relations.keys().cloned().map(Self::Relation))
    }

    fn name(&self) -> &str {
        match self {
            Self::Score(name) => name.name(),
            Self::Relation(name) => name,
        }
    }

    fn of<'a>(&self, row: &'a HeadRow) -> Option<&'a Score> {
        match self {
            Self::Score(name) => row.scores.get(name),
            Self::Relation(name) => row.relations.get(name).map(|relation| &relation.score),
        }
    }
}

impl Scores {
    pub(super) fn of(
        run: &Subject,
        summary: &Summary,
        left_out: &mut Vec<String>,
    ) -> Result<Self, Error> {
        let rows = run.head_rows()?;
        let heads: Vec<HeadName> = summary.heads.iter().map(|head| head.head).collect();
        let all: Vec<usize> = rows
            .iter()
            .map(|row| row.step)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        let by_place: BTreeMap<(usize, SequenceKind, HeadName), &HeadRow> = rows
            .iter()
            .map(|row| ((row.step, row.on, row.head), row))
            .collect();
        // The last row of the first head on each kind of sequences: all others score the same.
        let mut references: Vec<(Scored, &HeadRow)> = Vec::new();
        for on in SequenceKind::ALL {
            if let (Some(&last), Some(&head)) = (all.last(), heads.first())
                && let Some(&row) = by_place.get(&(last, on, head))
            {
                references.extend(Scored::in_row(row).map(|scored| (scored, row)));
            }
        }
        let bytes_a_step = 12 * heads.len() * references.len();
        let steps = thinned(&all, MOST_SCORE_BYTES / bytes_a_step.max(1));
        if steps.len() < all.len() {
            left_out.push(format!(
                "head scores at {} of {} logged steps",
                all.len() - steps.len(),
                all.len()
            ));
        }
        let mut series = Vec::new();
        let mut measures: Vec<MeasureText> = scores_as_told()
            .into_iter()
            .map(MeasureText::from)
            .collect();
        for (scored, reference) in references {
            let Some(&Score { null, ceiling, .. }) = scored.of(reference) else {
                continue;
            };
            let mut values = Vec::new();
            for &step in &steps {
                for &head in &heads {
                    let row = by_place.get(&(step, reference.on, head));
                    values.extend(three(row.and_then(|row| scored.of(row))));
                }
            }
            series.push(ScoreSeries {
                on: reference.on,
                name: scored.name().to_owned(),
                null,
                ceiling,
                values: Floats(values),
            });
            if let Scored::Relation(name) = scored {
                measures.push(MeasureText {
                    formula: format!(
                        "mean of A[dependent, source] over the pairs of words of the relation {name}"
                    ),
                    does: "looks from a word at the word it depends on".to_owned(),
                    is_role: false,
                    rate: None,
                    name,
                });
            }
        }
        Ok(Self {
            steps,
            series,
            measures,
        })
    }
}

fn three(score: Option<&Score>) -> [f32; 3] {
    score.map_or([f32::NAN; 3], |score| {
        [score.value, score.interval.low, score.interval.high].map(|number| number as f32)
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

/// How much of the patterns a page keeps.
struct Kept {
    /// Of each kind.
    sequences: usize,
    steps: usize,
    tokens: usize,
}

impl Kept {
    /// As much as fits: fewer sequences, then fewer steps, then fewer tokens; `None` if not even a
    /// few tokens of one sequence at one step fit.
    fn most(heads: usize, sequences: usize, steps: usize, length: usize) -> Option<Self> {
        let mut tokens = length;
        loop {
            for (sequences, steps) in [(sequences, steps), (1, steps), (1, 6), (1, 2), (1, 1)] {
                // Of both kinds, a byte for each key that a query sees.
                let bytes = 2 * sequences * steps * heads * tokens * (tokens + 1) / 2;
                if bytes <= MOST_PATTERN_BYTES {
                    return Some(Self {
                        sequences,
                        steps,
                        tokens,
                    });
                }
            }
            if tokens <= FEWEST_TOKENS {
                return None;
            }
            tokens = tokens.div_ceil(2);
        }
    }
}

impl Subject {
    /// The patterns over training: fewer sequences, then fewer steps, then fewer tokens where there
    /// are too many.
    pub(super) fn pattern_sets(
        &self,
        model: &Decoder,
        vocabulary: &[String],
        left_out: &mut Vec<String>,
    ) -> Result<Vec<PatternSet>, Error> {
        let all = self.trained()?.directory.pattern_steps()?;
        let Some(&last) = all.last() else {
            return Ok(Vec::new());
        };
        let heads = model.blocks.len() * model.n_heads();
        let newest = self.checked_patterns(last, SequenceKind::Probe, model, vocabulary)?;
        let [_, sequences, _, length] = newest.sizes();
        let Some(Kept {
            sequences: kept,
            steps,
            tokens,
        }) = Kept::most(heads, sequences, all.len(), length)
        else {
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
        for kind in SequenceKind::ALL {
            let mut files = Vec::new();
            for &step in &steps {
                files.push(self.checked_patterns(step, kind, model, vocabulary)?);
            }
            let Some(newest) = files.last() else { continue };
            for sequence in 0..kept.min(newest.tokens().len()) {
                let row = &newest.tokens()[sequence];
                let same = |file: &PatternFile| file.tokens().get(sequence) == Some(row);
                if !files.iter().all(same) {
                    return Err(Error::damaged(
                        self.path().display(),
                        "patterns are of different sequences",
                    ));
                }
                // Keys beyond the cut are seen by no query before it.
                let row = &row[..tokens.min(row.len())];
                let mut names = Vec::new();
                for &token in row {
                    names.push(vocabulary[token as usize].clone());
                }
                let mut weights = Vec::new();
                for file in &files {
                    weights.push(lower_triangles(file, sequence, row.len()));
                }
                let mut value_norms = None;
                if last == self.trained()?.config.train.steps {
                    value_norms = Some(Floats(self.value_norms_at(model, row)?));
                }
                sets.push(PatternSet {
                    on: kind,
                    tokens: names,
                    steps: steps.clone(),
                    weights,
                    value_norms,
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
    ) -> Result<PatternFile, Error> {
        let file = self.trained()?.directory.patterns(step, kind)?;
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
                "{}/patterns/step-{step}/{kind}.safetensors",
                self.path().display()
            );
            return Err(Error::damaged(place, "holds patterns of another model"));
        }
        Ok(file)
    }

    /// `[head][key]`: the norms of the values that each head reads.
    fn value_norms_at(&self, model: &Decoder, row: &[u32]) -> Result<Vec<f32>, Error> {
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
