//! `inspect RUN patch`: where in the model the difference between two prompts lives.

use headlight_heads::HeadName;
use headlight_lens::{Estimate, Patched, Patching, PatchingError, Place, Swap, all_heads};
use headlight_report::{Printout, Table, one_line};
use headlight_residual::Decoder;
use headlight_run::Error;
use headlight_tasks as tasks;
use headlight_watch::no_room;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use super::{ModelParts, Output, Subject, Verb, causal::share, prompt_reader::check_position};

/// Where in the model the difference between two prompts lives: activations of one put into the
/// other
#[derive(Debug, clap::Args)]
pub struct PatchVerb {
    /// Token names with spaces between them, for a text some text [default: made from the probe]
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

    fn show(self, subject: Subject, out: &Output) -> Result<(), Error> {
        let (prompt, corrupted) = (self.prompt.as_deref(), self.corrupted.as_deref());
        let patch = subject.patch(prompt, corrupted, self.position)?;
        out.show(&patch, Patch::printout)
    }
}

/// The fewest pairs of prompts over which means are shown: from fewer, an interval says nothing.
const FEWEST_PAIRS: usize = 10;

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
    /// The same of each head at all positions, mean over pairs of prompts made from the probe; none
    /// where there are too few pairs for an interval.
    pub heads: Vec<PatchedHead>,
    /// How many of these pairs the model answers differently.
    pub pairs: usize,
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

/// Clean and corrupted tokens.
type Pair = [Vec<u32>; 2];

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
        let pairs = self.probe_pairs(vocabulary.len())?;
        let mut answered = Vec::new();
        let mut shares = Vec::new();
        for pair in &pairs {
            let [clean, corrupted] = pair;
            let returning = match Patching::new(&model, corrupted, clean, clean.len() - 1) {
                Ok(returning) => returning,
                Err(PatchingError::SameAnswer { .. }) => continue,
                Err(PatchingError::Activations(error)) => return Err(no_room(error)),
            };
            shares.push([returning.heads(), returning.reversed().heads()]);
            answered.push(pair);
        }

        let given = prompt
            .map(|prompt| self.prompts(prompt, corrupted, position, &vocabulary))
            .transpose()?;
        let Some([clean, corrupted]) = given.or_else(|| answered.first().copied().cloned()) else {
            let message = format!(
                "in all {} prompts made from the probe the answer stays when the token to be copied is replaced, so that \
                 there is nothing to find; give --prompt and --corrupted",
                pairs.len()
            );
            return Err(Error::new(self.path().display(), message));
        };
        let position = position.unwrap_or(clean.len() - 1);
        check_position("--position", position, clean.len())?;
        let returning =
            Patching::new(&model, &corrupted, &clean, position).map_err(|error| match error {
                PatchingError::SameAnswer { token } => {
                    let message = "is the answer to both prompts, so that there is nothing to find";
                    Error::new("--prompt", message).value(&vocabulary[token as usize])
                }
                PatchingError::Activations(error) => no_room(error),
            })?;
        let losing = returning.reversed();
        let places = Place::all(&model);
        let described = |tokens: &[u32], answer: usize| Prompt {
            tokens: tokens
                .iter()
                .map(|&token| vocabulary[token as usize].clone())
                .collect(),
            answer: vocabulary[returning.answers()[answer] as usize].clone(),
            difference: returning.differences()[answer],
        };
        Ok(Patch {
            clean: described(&clean, 1),
            corrupted: described(&corrupted, 0),
            position,
            returns: places.iter().map(|&place| returning.at(place)).collect(),
            lost: places.iter().map(|&place| losing.at(place)).collect(),
            heads: heads(&model, &shares),
            pairs: shares.len(),
        })
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
            return Ok([clean, corrupted]);
        }
        let corrupted = self
            .corrupted(&clean, query, vocabulary.len())
            .ok_or_else(|| {
                let message = "was not followed by another token before, so that none can be replaced; give --corrupted";
                Error::new("--prompt", message).value(&vocabulary[clean[query] as usize])
            })?;
        Ok([clean, corrupted])
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
            pairs.push([clean, corrupted]);
        }
        pairs.sort_by_key(|[clean, _]| clean.len());
        Ok(pairs)
    }
}

/// Of every pair, the shares of all heads in both directions.
fn heads(model: &Decoder, shares: &[[Vec<f64>; 2]]) -> Vec<PatchedHead> {
    let head = |(index, head)| {
        let of = |direction: usize| {
            shares
                .iter()
                .map(|pair| pair[direction][index])
                .collect::<Vec<f64>>()
        };
        let [returns, lost] = [0, 1].map(|direction| Estimate::of_values(&of(direction)));
        PatchedHead {
            head,
            returns,
            lost,
        }
    };
    let heads = if shares.len() < FEWEST_PAIRS {
        Vec::new()
    } else {
        all_heads(model)
    };
    heads.into_iter().enumerate().map(head).collect()
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
        let heads = self.heads.iter().map(|head| {
            vec![
                head.head.to_string(),
                share(&head.returns),
                share(&head.lost),
            ]
        });
        let pairs = if self.heads.is_empty() {
            format!(
                "Pairs made from the probe that the model answers differently: {}, too few for a mean.",
                self.pairs
            )
        } else {
            format!(
                "Each head at all positions, over {} pairs made from the probe, share±half of the 95 % interval:",
                self.pairs
            )
        };
        Printout::new()
            .prose(format!(
                "{}\n{}",
                prompt("clean", &self.clean),
                prompt("corrupted", &self.corrupted)
            ))
            .prose(format!(
                "→ the likeliest token after position {} (m = logit of the clean answer over that of the corrupted one)",
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
                 blend of values; all: at all positions together. · is less than .005 either way; 1 is all of it. One \
                 pair of prompts has no interval.",
            )
            .prose(pairs)
            .table(Table::new(&["head", "returns", "lost"], heads))
            .prose(
                "A head that decides where others look moves no answer here: the answer does not pass through its \
                 values. What it does for others is told by `paths`.",
            )
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
