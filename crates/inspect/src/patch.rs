//! `inspect RUN patch`: where in the model the difference between two prompts lives.

use headlight_heads::HeadName;
use headlight_lens::{
    Estimate, Patched, Patching, PatchingError, Place, PromptPair, Swap, all_heads,
};
use headlight_report::{Printout, Table, one_line};
use headlight_residual::Decoder;
use headlight_run::{Error, ErrorKind};
use headlight_tasks as tasks;
use headlight_watch::{Cores, interrupt, no_room};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use super::{
    ModelParts, Output, Subject, Verb, causal::share, progress::Progress,
    prompt_reader::check_position,
};

/// Where in the model the difference between two prompts lives: activations of one put into the
/// other
#[derive(Debug, clap::Args)]
pub struct PatchVerb {
    /// Tokens by name, with spaces between them; for a model of text, any text [default: made from the probe]
    #[arg(long)]
    prompt: Option<String>,
    /// As many tokens with another answer [default: what followed the last token before is
    /// replaced]
    #[arg(long, requires = "prompt")]
    corrupted: Option<String>,
    /// The position whose next token is the answer, counted from 0 [default: the last]
    #[arg(long, requires = "prompt")]
    position: Option<usize>,
}

impl Verb for PatchVerb {
    const NAME: &'static str = "patch";
    const TAKES_PAIRS: bool = true;

    fn show(self, subject: Subject, out: &Output) -> Result<(), Error> {
        if self.prompt.is_some() && subject.pairs().is_some() {
            return Err(Error::new("--prompt", "does not go with --pairs"));
        }
        interrupt::listen()?;
        let (prompt, corrupted) = (self.prompt.as_deref(), self.corrupted.as_deref());
        let patch = subject.patch(prompt, corrupted, self.position)?;
        out.show(&patch, Patch::printout)
    }
}

/// The fewest pairs of prompts over which means are shown: from fewer, an interval says nothing.
const FEWEST_PAIRS: usize = 10;
/// With more heads, fewer pairs are made from the probe, and few heads are patched by position.
const MOST_HEADS_AT_LENGTH: usize = 64;
/// Pairs made from the probe for so many heads.
const PAIRS_OF_MANY: usize = 16;
/// Heads that are patched by position then, and shown.
const SHOWN_OF_MANY: usize = 12;

/// What `inspect RUN patch` shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Patch {
    /// The prompt whose answer is looked for.
    pub clean: Prompt,
    /// The same with another answer.
    pub corrupted: Prompt,
    /// The position whose next token is the answer.
    pub position: usize,
    /// Clean activations in the corrupted run: the share of the clean answer that returns.
    pub returns: Vec<Patched>,
    /// Corrupted activations in the clean run: the share of it that is lost.
    pub lost: Vec<Patched>,
    /// The same of each head at all positions, over pairs of prompts; none where there are too few for
    /// an interval. Of pairs made from the probe the mean share; of pairs in a file Σ(m − m base) /
    /// Σ(m source − m base).
    pub heads: Vec<PatchedHead>,
    /// How many pairs there are: made from the probe and answered differently, or in the file.
    pub pairs: usize,
    /// Whether the pairs are those of a file.
    pub is_given: bool,
}

/// A prompt and what the model says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prompt {
    /// Token names.
    pub tokens: Vec<String>,
    /// The likeliest next token.
    pub answer: String,
    /// The logit of the clean answer over that of the corrupted one.
    pub difference: f64,
}

/// One head over many pairs of prompts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PatchedHead {
    /// The head.
    pub head: HeadName,
    /// What its clean activations bring back.
    pub returns: Estimate,
    /// What its corrupted activations take away.
    pub lost: Estimate,
}

/// Clean and corrupted tokens, and the answers to them, if they are named.
#[derive(Clone)]
struct Pair {
    clean: Vec<u32>,
    corrupted: Vec<u32>,
    answers: Option<[u32; 2]>,
}

/// What patching moves in one pair and direction.
struct Moved {
    heads: Vec<f64>,
    gap: f64,
}

impl Subject {
    /// Activation patching between two prompts, in both directions. Without `corrupted`, what
    /// followed the last token of `prompt` before is replaced in it; without `prompt` both are made
    /// from the probe in this way. The answer is read at `position`, which is the last if not
    /// given.
    ///
    /// # Errors
    /// If the run has no weights, a token does not exist, the prompts do not fit together, or the
    /// model answers both alike.
    pub fn patch(
        &self,
        prompt: Option<&str>,
        corrupted: Option<&str>,
        position: Option<usize>,
    ) -> Result<Patch, Error> {
        let ModelParts { model, vocabulary } = self.model()?;
        let is_large = all_heads(&model).len() > MOST_HEADS_AT_LENGTH;
        let mut pairs = self.given_or_probe_pairs(vocabulary.len())?;
        if is_large && self.pairs().is_none() {
            pairs.truncate(PAIRS_OF_MANY);
        }
        let (answered, moved) = self.moved(&model, &pairs)?;
        let given = prompt
            .map(|prompt| self.prompts(prompt, corrupted, position, &vocabulary))
            .transpose()?;
        let Some(pair) = given.or_else(|| answered.first().copied().cloned()) else {
            let message = format!(
                "in all {} prompts made from the probe the answer stays when the token to be copied is replaced, so that \
                 there is nothing to find; give --prompt and --corrupted",
                pairs.len()
            );
            return Err(Error::new(self.path().display(), message));
        };
        let Pair {
            clean, corrupted, ..
        } = &pair;
        let position = position.unwrap_or(clean.len() - 1);
        check_position("--position", position, clean.len())?;
        let returning = pair
            .patching(&model, position)
            .map_err(|error| match error {
                PatchingError::SameAnswer { token } => {
                    let message = "is the answer to both prompts, so that there is nothing to find";
                    Error::new("--prompt", message).value(&vocabulary[token as usize])
                }
                PatchingError::Activations(error) => no_room(error),
            })?;
        let losing = returning.reversed();
        let mut places = Place::all(&model);
        if is_large {
            let shown = strongest(&model, &moved, &returning);
            let is_shown = |place: &Place| match place {
                Place::Stream(_) => true,
                Place::Head(head) => shown.contains(head),
            };
            places.retain(is_shown);
        }
        let described = |tokens: &[u32], answer: usize| Prompt {
            tokens: tokens
                .iter()
                .map(|&token| vocabulary[token as usize].clone())
                .collect(),
            answer: vocabulary[returning.answers()[answer] as usize].clone(),
            difference: returning.differences()[answer],
        };
        Ok(Patch {
            clean: described(clean, 1),
            corrupted: described(corrupted, 0),
            position,
            returns: places.iter().map(|&place| returning.at(place)).collect(),
            lost: places.iter().map(|&place| losing.at(place)).collect(),
            heads: heads(&model, &moved, self.pairs().is_some()),
            pairs: moved.len(),
            is_given: self.pairs().is_some(),
        })
    }

    /// The pairs of the file, or those made from the probe.
    fn given_or_probe_pairs(&self, vocabulary: usize) -> Result<Vec<Pair>, Error> {
        let Some(given) = self.pairs() else {
            return self.probe_pairs(vocabulary);
        };
        let pair = |pair: &PromptPair| Pair {
            clean: pair.clean.clone(),
            corrupted: pair.corrupted.clone(),
            answers: Some([pair.answer, pair.wrong]),
        };
        Ok(given.pairs().iter().map(pair).collect())
    }

    /// Of the pairs that the model answers differently, and of all whose answers are named: what each
    /// head moves, returning and losing.
    fn moved<'p>(
        &self,
        model: &Decoder,
        pairs: &'p [Pair],
    ) -> Result<(Vec<&'p Pair>, Vec<[Moved; 2]>), Error> {
        let cores = Cores::all();
        let what = format!(
            "{} heads in {} pairs of prompts",
            all_heads(model).len(),
            pairs.len()
        );
        let mut progress = Progress::new(what, "pairs", pairs.len(), pairs.len() as f64);
        let (mut answered, mut moved) = (Vec::new(), Vec::new());
        for some in pairs.chunks(cores.count()) {
            if interrupt::requested() {
                let message = format!("by a signal after {} of {} pairs", moved.len(), pairs.len());
                let path = self.path().display();
                return Err(Error::of(ErrorKind::Interrupted, path, message));
            }
            let of_some = cores.map(some.iter().collect(), |pair: &Pair| pair.moved(model));
            for (pair, of_pair) in some.iter().zip(of_some) {
                match of_pair {
                    Ok(of_pair) => {
                        answered.push(pair);
                        moved.push(of_pair);
                    }
                    Err(PatchingError::SameAnswer { .. }) => {}
                    Err(PatchingError::Activations(error)) => return Err(no_room(error)),
                }
            }
            progress.add(some.len(), some.len() as f64);
        }
        Ok((answered, moved))
    }

    /// The prompts as typed.
    fn prompts(
        &self,
        prompt: &str,
        corrupted: Option<&str>,
        position: Option<usize>,
        vocabulary: &[String],
    ) -> Result<Pair, Error> {
        let text = self.vocabulary()?;
        let encode = |prompt| tasks::encode_prompt(&text, prompt, self.n_ctx());
        let clean = encode(prompt)?;
        let query = position.unwrap_or(clean.len() - 1);
        check_position("--position", query, clean.len())?;
        if let Some(corrupted) = corrupted {
            let corrupted = encode(corrupted).map_err(|error| error.at("--corrupted"))?;
            if corrupted.len() != clean.len() {
                let message = format_args!(
                    "has {} tokens, --prompt has {}",
                    corrupted.len(),
                    clean.len()
                );
                return Err(Error::new("--corrupted", message));
            }
            return Ok(Pair::unanswered(clean, corrupted));
        }
        let corrupted = self
            .corrupted(&clean, query, vocabulary.len())
            .ok_or_else(|| {
                let message = "was not followed by another token before, so that none can be replaced; give --corrupted";
                Error::new("--prompt", message).value(&vocabulary[clean[query] as usize])
            })?;
        Ok(Pair::unanswered(clean, corrupted))
    }

    /// The prompt with another token in the place of what followed the token at `query` before;
    /// none where that token was not there before.
    pub(super) fn corrupted(
        &self,
        clean: &[u32],
        query: usize,
        vocabulary: usize,
    ) -> Option<Vec<u32>> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed());
        let swap = Swap::draw(clean, query, vocabulary, &mut rng)?;
        Some(swap.swapped(clean))
    }

    /// Each sequence of the probe up to the last token that has been there exactly once, and the
    /// same with another token in the place of what followed it; the shortest first.
    fn probe_pairs(&self, vocabulary: usize) -> Result<Vec<Pair>, Error> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed());
        let mut pairs: Vec<Pair> = Vec::new();
        for tokens in &self.probe()?.tokens {
            let was_there_once = |&query: &usize| {
                tokens[..query]
                    .iter()
                    .filter(|&&token| token == tokens[query])
                    .count()
                    == 1
            };
            let Some(query) = (0..tokens.len()).rev().find(was_there_once) else {
                continue;
            };
            let clean = tokens[..=query].to_vec();
            let Some(swap) = Swap::draw(&clean, query, vocabulary, &mut rng) else {
                continue;
            };
            let corrupted = swap.swapped(&clean);
            pairs.push(Pair::unanswered(clean, corrupted));
        }
        pairs.sort_by_key(|pair| pair.clean.len());
        Ok(pairs)
    }
}

impl Pair {
    fn unanswered(clean: Vec<u32>, corrupted: Vec<u32>) -> Self {
        Self {
            clean,
            corrupted,
            answers: None,
        }
    }

    /// Clean activations in the corrupted run.
    fn patching<'a>(
        &self,
        model: &'a Decoder,
        position: usize,
    ) -> Result<Patching<'a>, PatchingError> {
        let (base, source) = (&self.corrupted, &self.clean);
        match self.answers {
            Some([answer, wrong]) => {
                let answers = [wrong, answer];
                Ok(Patching::between(model, base, source, position, answers)?)
            }
            None => Patching::new(model, base, source, position),
        }
    }

    fn moved(&self, model: &Decoder) -> Result<[Moved; 2], PatchingError> {
        let returning = self.patching(model, self.clean.len() - 1)?;
        Ok([&returning, &returning.reversed()].map(|patching| Moved {
            heads: patching.moved_by_heads(),
            gap: patching.gap(),
        }))
    }
}

/// Of every pair, what all heads move in both directions. Of pairs whose answers the model gives
/// itself, the mean of their shares. Pairs whose answers are named may leave little to move, so their
/// moves are added before they are divided.
fn heads(model: &Decoder, moved: &[[Moved; 2]], is_given: bool) -> Vec<PatchedHead> {
    let estimate = |direction: usize, index: usize| {
        let mut moves = Vec::new();
        let mut gaps = Vec::new();
        for pair in moved {
            moves.push(pair[direction].heads[index]);
            gaps.push(pair[direction].gap);
        }
        if is_given {
            return Estimate::of_ratio(&moves, &gaps);
        }
        let shares = moves.iter().zip(&gaps).map(|(moved, gap)| moved / gap);
        Estimate::of_values(&shares.collect::<Vec<f64>>())
    };
    let head = |(index, head)| PatchedHead {
        head,
        returns: estimate(0, index),
        lost: estimate(1, index),
    };
    let heads = if moved.len() < FEWEST_PAIRS {
        Vec::new()
    } else {
        all_heads(model)
    };
    heads.into_iter().enumerate().map(head).collect()
}

/// Of many heads those that bring back most over all pairs; without a pair, in the prompt.
fn strongest(model: &Decoder, moved: &[[Moved; 2]], prompt: &Patching) -> Vec<HeadName> {
    let of_all = |index: usize| {
        moved
            .iter()
            .map(|[returns, _]| returns.heads[index])
            .sum::<f64>()
    };
    let by_head: Vec<f64> = match moved {
        [] => prompt.moved_by_heads(),
        _ => (0..all_heads(model).len()).map(of_all).collect(),
    };
    let mut heads: Vec<(f64, HeadName)> = by_head.into_iter().zip(all_heads(model)).collect();
    heads.sort_by(|(a, _), (b, _)| b.abs().total_cmp(&a.abs()));
    heads
        .into_iter()
        .take(SHOWN_OF_MANY)
        .map(|(_, head)| head)
        .collect()
}

impl Patch {
    /// Both prompts, a table of positions and places for each direction, and the heads over all
    /// pairs.
    #[must_use]
    pub fn printout(&self) -> Printout {
        let prompt = |name: &str, prompt: &Prompt| {
            format!(
                "{name}: {} → {} ({:+.2})",
                names_of(&prompt.tokens),
                one_line(&prompt.answer),
                prompt.difference
            )
        };
        let heads = self.shown_heads().into_iter().map(|head| {
            vec![
                head.head.to_string(),
                share(&head.returns),
                share(&head.lost),
            ]
        });
        Printout::new()
            .prose(format!(
                "{}\n{}",
                prompt("clean", &self.clean),
                prompt("corrupted", &self.corrupted)
            ))
            .prose(format!(
                "→ {} position {} (m = logit of the clean answer over that of the corrupted one)",
                if self.is_given { "answer and wrong token after" } else { "the likeliest token after" },
                self.position
            ))
            .prose(
                "Clean activations put into the corrupted run, one place at a time: the share of the clean answer that \
                 returns, (m − m corrupted) / (m clean − m corrupted).",
            )
            .table(self.table(&self.returns))
            .prose(
                "Corrupted activations put into the clean run: the share of the clean answer that is lost.",
            )
            .table(self.table(&self.lost))
            .prose(
                "pre: the stream before a layer; attn, mlp: what its attention and its feed-forward add; L0H0: a head's \
                 blend of values; all: at all positions together. · is less than 0.005 either way; 1 is all of it. One \
                 pair of prompts has no interval.",
            )
            .prose(self.pairs_text())
            .table(Table::new(&["head", "returns", "lost"], heads))
            .prose(
                "A head that decides where others look moves no answer here: the answer does not pass through its \
                 values. What it does for others is told by `paths`.",
            )
    }

    /// All heads in their order, or of many those that bring back most.
    fn shown_heads(&self) -> Vec<&PatchedHead> {
        let mut heads: Vec<&PatchedHead> = self.heads.iter().collect();
        if heads.len() > MOST_HEADS_AT_LENGTH {
            heads.sort_by(|a, b| b.returns.mean.abs().total_cmp(&a.returns.mean.abs()));
            heads.truncate(SHOWN_OF_MANY);
        }
        heads
    }

    /// Over which pairs heads are patched, and what their shares are.
    fn pairs_text(&self) -> String {
        let pairs = match (self.is_given, self.heads.is_empty()) {
            (true, true) => {
                return format!(
                    "Pairs in the file: {}, too few for an interval.",
                    self.pairs
                );
            }
            (false, true) => {
                return format!(
                    "Pairs made from the probe that the model answers differently: {}, too few for a mean.",
                    self.pairs
                );
            }
            (true, false) => format!(
                "over {} pairs of the file, all that returns over all that could",
                self.pairs
            ),
            (false, false) => format!("over {} pairs made from the probe, share", self.pairs),
        };
        let mut text = format!("Each head at all positions, {pairs}±half of the 95 % interval:");
        if self.heads.len() > MOST_HEADS_AT_LENGTH {
            let shown = format!(
                " Of {} heads the {SHOWN_OF_MANY} that bring back most; --json has all.",
                self.heads.len()
            );
            text.insert_str(text.len() - 1, &shown);
        }
        text
    }

    /// A line for each position, a column for each place.
    fn table(&self, places: &[Patched]) -> Table {
        let share = |share: f64| {
            if share.abs() < 0.005 {
                "·".to_owned()
            } else {
                format!("{share:.2}")
            }
        };
        let names = places.iter().map(|place| short(&place.place));
        let header: Vec<String> = ["position".to_owned()].into_iter().chain(names).collect();
        let tokens = self
            .clean
            .tokens
            .iter()
            .zip(&self.corrupted.tokens)
            .enumerate();
        let row = |(position, (clean, corrupted)): (usize, (&String, &String))| {
            let token = if clean == corrupted {
                clean.clone()
            } else {
                format!("{clean}/{corrupted}")
            };
            let shares = places
                .iter()
                .map(|place| share(place.by_position[position]));
            std::iter::once(format!("{position} {token}"))
                .chain(shares)
                .collect()
        };
        let everywhere = places.iter().map(|place| share(place.everywhere));
        let all = std::iter::once("all".to_owned())
            .chain(everywhere)
            .collect();
        Table::new(&header, tokens.map(row).chain([all])).first_to_go(&by_effect(places))
    }
}

/// The places, first those whose activations move the answer least.
fn by_effect(places: &[Patched]) -> Vec<String> {
    let largest = |place: &Patched| {
        let shares = place.by_position.iter().chain([&place.everywhere]);
        shares.map(|share| share.abs()).fold(0.0, f64::max)
    };
    let mut by_effect: Vec<(f64, String)> = places
        .iter()
        .map(|place| (largest(place), short(&place.place)))
        .collect();
    by_effect.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    by_effect.into_iter().map(|(_, place)| place).collect()
}

/// `blocks.0.hook_resid_pre` as `pre 0`.
fn short(place: &str) -> String {
    let names = [
        ("hook_resid_pre", "pre"),
        ("hook_attn_out", "attn"),
        ("hook_mlp_out", "mlp"),
    ];
    let parts = place
        .strip_prefix("blocks.")
        .and_then(|rest| rest.split_once('.'));
    let short = parts.and_then(|(layer, site)| {
        let (_, name) = names.iter().find(|(known, _)| *known == site)?;
        Some(format!("{name} {layer}"))
    });
    short.unwrap_or_else(|| place.to_owned())
}

/// Tokens with spaces between them, on one line.
pub(super) fn names_of(tokens: &[String]) -> String {
    let tokens: Vec<String> = tokens.iter().map(|token| one_line(token)).collect();
    tokens.join(" ")
}
