//! Patterns over training, as many as fit into a page.

use headlight_heads::{Relation, SequenceKind};
use headlight_report::{Bytes, Floats, PatternSet};
use headlight_residual::{AttentionSite, Decoder, Site, token_tensor};
use headlight_run::{Error, PatternFile};
use headlight_watch::{Observation, Watched, no_room, value_norms};

use super::{Subject, over_training::thinned};

/// Bytes of patterns; base64 makes a third more of them.
const MOST_PATTERN_BYTES: usize = 2_200_000;
/// Shorter than this no sequence is cut.
const FEWEST_TOKENS: usize = 16;
/// Steps at which the patterns of sequences after the first are kept.
const STEPS_OF_OTHERS: usize = 6;

/// The patterns that a page keeps.
struct Kept {
    /// Of each kind.
    sequences: usize,
    /// The steps of the first sequence: heads that form are seen on one sequence.
    steps: Vec<usize>,
    /// The steps of the others.
    steps_of_others: Vec<usize>,
    /// Of each sequence.
    tokens: usize,
}

impl Kept {
    /// As much as fits of the steps `all`, whose patterns are as large as `file`; what does not is
    /// told. `None` if not even a few tokens of one sequence at one step fit.
    fn of(file: &PatternFile, all: &[usize], left_out: &mut Vec<String>) -> Option<Self> {
        let [layers, sequences, heads, length] = file.sizes();
        let heads = layers * heads;
        let Some((kept, steps, tokens)) = most(heads, sequences, all.len(), length) else {
            left_out.push(format!("the patterns of {heads} heads: too many"));
            return None;
        };
        let steps = match (steps, all.last()) {
            (1, Some(&last)) => vec![last],
            _ => thinned(all, steps),
        };
        let steps_of_others = thinned(&steps, STEPS_OF_OTHERS);
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
        if kept > 1 && steps_of_others.len() < steps.len() {
            left_out.push(format!(
                "patterns of sequences after the first at {} of {} steps",
                steps.len() - steps_of_others.len(),
                steps.len()
            ));
        }
        if tokens < length {
            left_out.push(format!(
                "patterns beyond the first {tokens} of {length} tokens"
            ));
        }
        Some(Self {
            sequences: kept,
            steps,
            steps_of_others,
            tokens,
        })
    }
}

/// Sequences, steps and tokens, as many as fit: fewer sequences, then fewer steps, then fewer
/// tokens; `None` if not even a few tokens of one sequence at one step fit.
fn most(
    heads: usize,
    sequences: usize,
    steps: usize,
    length: usize,
) -> Option<(usize, usize, usize)> {
    let mut tokens = length;
    loop {
        for (sequences, steps) in [
            (sequences, steps),
            (1, steps),
            (1, 24),
            (1, 12),
            (1, 6),
            (1, 2),
            (1, 1),
        ] {
            let others = sequences.saturating_sub(1) * steps.min(STEPS_OF_OTHERS);
            // Of both kinds, a byte for each key that a query sees.
            let bytes = 2 * (steps + others) * heads * tokens * (tokens + 1) / 2;
            if bytes <= MOST_PATTERN_BYTES {
                return Some((sequences, steps, tokens));
            }
        }
        if tokens <= FEWEST_TOKENS {
            return None;
        }
        tokens = tokens.div_ceil(2);
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
        let run = self.trained()?;
        let all = run.directory.pattern_steps()?;
        let Some(&last) = all.last() else {
            return Ok(Vec::new());
        };
        let newest = self.checked_patterns(last, SequenceKind::Probe, model, vocabulary)?;
        let has_norms = last == run.config.train.steps;
        let Some(kept) = Kept::of(&newest, &all, left_out) else {
            return Ok(Vec::new());
        };
        let mut sets = Vec::new();
        for kind in SequenceKind::ALL {
            let mut files = Vec::new();
            for &step in &kept.steps {
                files.push(self.checked_patterns(step, kind, model, vocabulary)?);
            }
            let files: Vec<&PatternFile> = files.iter().collect();
            let names = has_norms.then_some(model);
            sets.extend(self.sets_of_kind(kind, &files, &kept, vocabulary, names)?);
        }
        Ok(sets)
    }

    /// The patterns of a model that was not trained here.
    pub(super) fn patterns_now(
        &self,
        observations: &[Observation],
        model: &Decoder,
        vocabulary: &[String],
        left_out: &mut Vec<String>,
    ) -> Result<Vec<PatternSet>, Error> {
        let mut sets = Vec::new();
        let first = observations.first();
        let kept = first.and_then(|first| Kept::of(&first.patterns, &[0], left_out));
        if let Some(kept) = kept {
            for seen in observations {
                let files = [&seen.patterns];
                sets.extend(self.sets_of_kind(
                    seen.kind,
                    &files,
                    &kept,
                    vocabulary,
                    Some(model),
                )?);
            }
        }
        Ok(sets)
    }

    /// `files` are those of the kept steps; with a model, the norms of its values stand beside.
    fn sets_of_kind(
        &self,
        kind: SequenceKind,
        files: &[&PatternFile],
        kept: &Kept,
        vocabulary: &[String],
        model: Option<&Decoder>,
    ) -> Result<Vec<PatternSet>, Error> {
        let Some(newest) = files.last() else {
            return Ok(Vec::new());
        };
        let watched = match kind {
            SequenceKind::Probe => self.probe()?,
            SequenceKind::Task => self.on_task()?,
        };
        let mut sets = Vec::new();
        for sequence in 0..kept.sequences.min(newest.tokens().len()) {
            let row = &newest.tokens()[sequence];
            let same = |file: &&PatternFile| file.tokens().get(sequence) == Some(row);
            if !files.iter().all(same) {
                return Err(Error::damaged(
                    self.path().display(),
                    "patterns are of different sequences",
                ));
            }
            // Keys beyond the cut are seen by no query before it.
            let row = &row[..kept.tokens.min(row.len())];
            let mut names = Vec::new();
            for &token in row {
                names.push(vocabulary[token as usize].clone());
            }
            let steps = if sequence == 0 {
                &kept.steps
            } else {
                &kept.steps_of_others
            };
            let mut weights = Vec::new();
            for (step, file) in kept.steps.iter().zip(files) {
                if steps.contains(step) {
                    weights.push(lower_triangles(file, sequence, row.len()));
                }
            }
            let mut value_norms = None;
            if let Some(model) = model {
                value_norms = Some(Floats(self.value_norms_at(model, row)?));
            }
            sets.push(PatternSet {
                on: kind,
                tokens: names,
                relations: relations_within(&watched, sequence, row.len()),
                steps: steps.clone(),
                weights,
                value_norms,
            });
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

/// The gold relations of a sequence between its first tokens.
fn relations_within(watched: &Watched, sequence: usize, tokens: usize) -> Vec<Relation> {
    let mut relations = watched.relations.get(sequence).cloned().unwrap_or_default();
    relations.retain(|relation| relation.is_visible() && relation.dependent < tokens);
    relations
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
    fn what_is_above_the_diagonal_is_not_written() {
        let weights = [1.0, 0.0, 0.0, 0.4, 0.6, 0.0, 0.2, 0.2, 0.6];
        let file = PatternFile::quantise([1, 1, 1, 3], &weights, vec![vec![0, 1, 2]]);
        assert_eq!(lower_triangles(&file, 0, 3).0, [255, 102, 153, 51, 51, 153]);
        assert_eq!(lower_triangles(&file, 0, 2).0, [255, 102, 153]);
    }
}
