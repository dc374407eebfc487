//! Two prompts that differ in one thing.

use std::collections::BTreeSet;

use headlight_heads::Corruption;
use headlight_residual::{Probed, argmax};
use rand::{SeedableRng, seq::IteratorRandom};
use rand_chacha::ChaCha8Rng;

use super::{EdgeError, batch::Batch};
use crate::{
    PromptPair,
    given::{last_stream, readout_of},
};

/// Prompts in one pass: bounds memory.
const ROWS_AT_ONCE: usize = 16;

/// Pairs of one kind, and what the model says to them.
#[derive(Debug, Clone, PartialEq)]
pub struct MadePairs {
    /// The pairs whose metric is lower on the corrupted prompt.
    pub pairs: Vec<PromptPair>,
    /// How many there were before.
    pub made: usize,
    /// The share of `pairs` whose clean prompt the model answers right.
    pub right: f64,
    /// The share of `pairs` whose corrupted prompt gets the same answer.
    pub right_on_corrupted: f64,
}

/// Pairs for a model that continues what came before: each sequence up to the last token that has
/// been there exactly once, corrupted as `corruption` says. The answer is the token that followed.
///
/// | corruption | replaced | wrong answer |
/// |---|---|---|
/// | value | the token that followed | the token in its place |
/// | key | the earlier token that equals the current one | the likeliest other token of the corrupted prompt |
/// | query | the current token, by one that was there before, always before the same token | what followed that one |
///
/// New tokens are drawn by `seed` from those of all sequences, outside the context if there are any.
/// Pairs are kept whose logit difference is lower on the corrupted prompt: the others have nothing
/// to find. Position 0 is neither a match nor replaced: it may be the start of the sequence.
///
/// # Errors
/// If the model does not give its readout, or activations do not fit into memory.
pub fn pairs_of(
    model: &dyn Probed,
    sequences: &[Vec<u32>],
    corruption: Corruption,
    seed: u64,
) -> Result<MadePairs, EdgeError> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let tokens: BTreeSet<u32> = sequences.iter().flatten().copied().collect();
    let mut made: Vec<PromptPair> = Vec::new();
    for sequence in sequences {
        made.extend(pair_of(sequence, corruption, &tokens, &mut rng));
    }
    kept(model, made, corruption == Corruption::Key)
}

/// The pairs of prompts whose logit difference is lower on the corrupted prompt: the others have
/// nothing to find.
///
/// # Errors
/// If the model does not give its readout, or activations do not fit into memory.
pub fn differing_pairs(model: &dyn Probed, pairs: Vec<PromptPair>) -> Result<MadePairs, EdgeError> {
    kept(model, pairs, false)
}

/// With `likeliest_is_wrong`, the wrong answer of a pair is the likeliest other token of its
/// corrupted prompt.
fn kept(
    model: &dyn Probed,
    mut made: Vec<PromptPair>,
    likeliest_is_wrong: bool,
) -> Result<MadePairs, EdgeError> {
    let (readout, last) = (readout_of(model)?, last_stream(model)?);
    let (mut pairs, mut right, mut right_on_corrupted) = (Vec::new(), 0, 0);
    for first in (0..made.len()).step_by(ROWS_AT_ONCE) {
        let range = first..(first + ROWS_AT_ONCE).min(made.len());
        let batch = Batch::new(&made, range.clone(), &model.device());
        let mut logits = Vec::new();
        for tokens in [&batch.clean, &batch.corrupted] {
            let seen = model.activations(tokens.clone(), &[last])?;
            let of_rows = batch.logits(&readout, seen.tensor(last));
            let classes = of_rows.dims()[1];
            let of_rows: Vec<f32> = of_rows.into_data().iter::<f32>().collect();
            logits.push(
                of_rows
                    .chunks(classes)
                    .map(<[f32]>::to_vec)
                    .collect::<Vec<_>>(),
            );
        }
        for (row, pair) in range
            .zip(&mut made[first..])
            .map(|(at, pair)| (at - first, pair))
        {
            let [clean, corrupted] = [&logits[0][row], &logits[1][row]];
            if likeliest_is_wrong {
                let mut others = corrupted.clone();
                others[pair.answer as usize] = f32::NEG_INFINITY;
                pair.wrong = argmax(&others).map_or(pair.wrong, |token| token as u32);
            }
            let difference =
                |logits: &[f32]| logits[pair.answer as usize] - logits[pair.wrong as usize];
            if difference(clean) > difference(corrupted) {
                let answer = Some(pair.answer as usize);
                right += usize::from(argmax(clean) == answer);
                right_on_corrupted += usize::from(argmax(corrupted) == answer);
                pairs.push(pair.clone());
            }
        }
    }
    let share = |count: usize| count as f64 / pairs.len() as f64;
    Ok(MadePairs {
        right: share(right),
        right_on_corrupted: share(right_on_corrupted),
        made: made.len(),
        pairs,
    })
}

/// The pair of one sequence; `None` if no token of it comes back as needed.
fn pair_of(
    tokens: &[u32],
    corruption: Corruption,
    all: &BTreeSet<u32>,
    rng: &mut ChaCha8Rng,
) -> Option<PromptPair> {
    let query = (1..tokens.len())
        .rev()
        .find(|&query| the_match(tokens, query).is_some())?;
    let key = the_match(tokens, query)?;
    let answer = tokens[key + 1];
    let context = &tokens[..=query];
    let new = || all.iter().copied().filter(|token| !context.contains(token));
    let mut corrupted = context.to_vec();
    let wrong;
    match corruption {
        Corruption::Value => {
            let others = || {
                let others = all.iter().copied();
                others.filter(|token| *token != answer && *token != tokens[query])
            };
            wrong = new().choose(rng).or_else(|| others().choose(rng))?;
            corrupted[key + 1] = wrong;
        }
        Corruption::Key => {
            let others = || {
                let others = all.iter().copied();
                others.filter(|token| *token != tokens[query])
            };
            let token = new().choose(rng).or_else(|| others().choose(rng))?;
            corrupted[key] = token;
            wrong = token;
        }
        Corruption::Query => {
            let other = (1..query).filter(|&at| {
                tokens[at] != tokens[query]
                    && always_before(context, at)
                    && tokens[at + 1] != answer
            });
            let other = other.choose(rng)?;
            corrupted[query] = tokens[other];
            wrong = tokens[other + 1];
        }
    }
    Some(PromptPair {
        clean: context.to_vec(),
        corrupted,
        answer,
        wrong,
    })
}

/// Whether the token at `at` stands before one and the same token wherever it is in the context.
fn always_before(context: &[u32], at: usize) -> bool {
    let last = context.len() - 1;
    let mut equal = (0..last).filter(|&other| context[other] == context[at]);
    equal.all(|other| other + 1 < last && context[other + 1] == context[at + 1])
}

/// The only earlier position, after the first, with the token at `query`, if another token followed
/// it.
fn the_match(tokens: &[u32], query: usize) -> Option<usize> {
    let mut equal = (0..query).filter(|&at| tokens[at] == tokens[query]);
    let key = equal.next()?;
    let is_only = equal.next().is_none() && key > 0;
    (is_only && tokens[key + 1] != tokens[query]).then_some(key)
}
