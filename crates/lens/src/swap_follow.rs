//! Does the prediction follow the context? What came after the current token last time is replaced
//! by another token: a model that copies it says the other token (swap-follow).

use headlight_heads::HeadName;
use headlight_residual::{ActivationsError, Probed, token_tensor};
use rand::{
    RngExt, SeedableRng,
    seq::{IndexedRandom, IteratorRandom},
};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use crate::{
    Ablation, ablation,
    bootstrap::{Estimate, Share},
    given::vocabulary_of,
};

/// Queries tried in each sequence.
const QUERIES: usize = 8;

/// Another story about what follows a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swap {
    query: usize,
    /// The positions after each earlier token equal to the query's.
    successors: Vec<usize>,
    /// The earlier positions that say nothing about what follows it: neither an equal token nor a
    /// successor.
    others: Vec<usize>,
    token: u32,
}

impl Swap {
    /// For the token at `query`, which has been there before, a token that did not follow it: one
    /// that is nowhere in the context, if the vocabulary has any.
    ///
    /// `None` if it was not there before, if it followed itself, or if no other token exists.
    #[must_use]
    pub fn draw(
        tokens: &[u32],
        query: usize,
        vocabulary: usize,
        rng: &mut impl RngExt,
    ) -> Option<Self> {
        let context = &tokens[..=query];
        let is_match = |position: usize| position < query && context[position] == context[query];
        let successors: Vec<usize> = (0..query).filter(|&j| is_match(j)).map(|j| j + 1).collect();
        if successors.is_empty() || successors.iter().any(|&key| context[key] == context[query]) {
            return None;
        }
        let new = |token: &u32| !context.contains(token);
        let other = |token: &u32| {
            *token != context[query] && successors.iter().all(|&key| context[key] != *token)
        };
        let all = 0..vocabulary as u32;
        let token = all
            .clone()
            .filter(new)
            .choose(rng)
            .or_else(|| all.filter(other).choose(rng))?;
        let others = (0..query)
            .filter(|&key| !is_match(key) && !successors.contains(&key))
            .collect();
        Some(Self {
            query,
            successors,
            others,
            token,
        })
    }

    /// The position whose prediction is asked for.
    #[must_use]
    pub fn query(&self) -> usize {
        self.query
    }

    /// The token that is put in the successors' place.
    #[must_use]
    pub fn token(&self) -> u32 {
        self.token
    }

    /// `tokens` with every successor replaced.
    #[must_use]
    pub fn swapped(&self, tokens: &[u32]) -> Vec<u32> {
        self.replaced(tokens, &self.successors)
    }

    /// `tokens` with as many others replaced by the same token; `None` if there are not so many.
    #[must_use]
    pub fn control(&self, tokens: &[u32], rng: &mut impl RngExt) -> Option<Vec<u32>> {
        let chosen: Vec<usize> = self
            .others
            .sample(rng, self.successors.len())
            .copied()
            .collect();
        (chosen.len() == self.successors.len()).then(|| self.replaced(tokens, &chosen))
    }

    fn replaced(&self, tokens: &[u32], positions: &[usize]) -> Vec<u32> {
        let mut tokens = tokens.to_vec();
        for &position in positions {
            tokens[position] = self.token;
        }
        tokens
    }
}

/// Whether predictions follow what the context says. Shares of queries, ceiling 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SwapFollow {
    /// How many queries the shares are over.
    pub queries: usize,
    /// Untouched, the likeliest token is one that followed the query's token before.
    pub copies: Estimate,
    /// With these successors replaced, it is the token in their place.
    pub follows: Estimate,
    /// The null: it is that token although as many other context tokens were replaced, and no
    /// successor.
    pub control_follows: Estimate,
    /// With these others replaced, it is what it was.
    pub control_keeps: Estimate,
}

/// Swap-follow of the model without `heads`, on a few queries of each sequence, drawn by `seed`,
/// whose token has been there before. `None` if there is no such query. The intervals are a 95 %
/// bootstrap over sequences.
///
/// # Errors
/// If the ids of the model are no tokens, and as [`without`](crate::without).
pub fn swap_follow(
    model: &dyn Probed,
    sequences: &[Vec<u32>],
    heads: &[HeadName],
    ablation: Ablation,
    seed: u64,
) -> Result<Option<SwapFollow>, ActivationsError> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let vocabulary = vocabulary_of(model)?;
    let guess = |contexts: &[&[u32]]| guesses(model, contexts, heads, ablation);
    let untouched = guess(&sequences.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
    let mut trials = Vec::with_capacity(sequences.len());
    for (tokens, untouched) in sequences.iter().zip(&untouched) {
        let first = tokens.len() - untouched.len();
        trials.push(trials_of(tokens, first, vocabulary, &mut rng));
    }
    let queries: usize = trials.iter().map(Vec::len).sum();
    if queries == 0 {
        return Ok(None);
    }
    let mut shares = [(); 4].map(|()| vec![Share::default(); sequences.len()]);
    for round in 0..QUERIES {
        // One trial of each sequence at a time, so that a batch is never larger than the sequences.
        let (rows, trials): (Vec<usize>, Vec<&Trial>) = trials
            .iter()
            .enumerate()
            .filter_map(|(row, trials)| Some((row, trials.get(round)?)))
            .unzip();
        if trials.is_empty() {
            break;
        }
        let swapped = guess(
            &trials
                .iter()
                .map(|trial| trial.swapped.as_slice())
                .collect::<Vec<_>>(),
        )?;
        let control = guess(
            &trials
                .iter()
                .map(|trial| trial.control.as_slice())
                .collect::<Vec<_>>(),
        )?;
        for (at, (row, Trial { swap, .. })) in rows.into_iter().zip(trials).enumerate() {
            let [before, swapped, control] =
                [&untouched[row], &swapped[at], &control[at]].map(|guesses| {
                    // The model says something about the last positions of a row.
                    guesses[swap.query + guesses.len() - sequences[row].len()]
                });
            let copies = swap
                .successors
                .iter()
                .any(|&key| sequences[row][key] == before);
            let counts = [
                copies,
                swapped == swap.token,
                control == swap.token,
                control == before,
            ];
            for (shares, counts) in shares.iter_mut().zip(counts) {
                shares[row].sum += f64::from(u8::from(counts));
                shares[row].rows += 1;
            }
        }
    }
    let [copies, follows, control_follows, control_keeps] =
        shares.map(|shares| Estimate::of(&shares));
    Ok(Some(SwapFollow {
        queries,
        copies,
        follows,
        control_follows,
        control_keeps,
    }))
}

/// One query with both changed contexts.
struct Trial {
    swap: Swap,
    swapped: Vec<u32>,
    control: Vec<u32>,
}

/// Of the queries from position `first` on.
fn trials_of(tokens: &[u32], first: usize, vocabulary: usize, rng: &mut ChaCha8Rng) -> Vec<Trial> {
    let mut trials = Vec::new();
    for query in first.max(1)..tokens.len() {
        let Some(swap) = Swap::draw(tokens, query, vocabulary, rng) else {
            continue;
        };
        let Some(control) = swap.control(tokens, rng) else {
            continue;
        };
        trials.push(Trial {
            swapped: swap.swapped(tokens),
            control,
            swap,
        });
    }
    trials.into_iter().sample(rng, QUERIES)
}

/// The likeliest token at every position of each context for which the model has logits.
fn guesses(
    model: &dyn Probed,
    contexts: &[&[u32]],
    heads: &[HeadName],
    ablation: Ablation,
) -> Result<Vec<Vec<u32>>, ActivationsError> {
    let inputs = token_tensor(contexts, &model.device());
    let mut without = ablation::without_over(model, inputs.clone(), heads, ablation)?;
    let logits = model.forward_probed(inputs, &mut without);
    let [_, positions, _] = logits.dims();
    let guesses = logits.argmax(2).into_data();
    let guesses: Vec<u32> = guesses.iter::<i64>().map(|token| token as u32).collect();
    Ok(guesses.chunks(positions).map(<[u32]>::to_vec).collect())
}
