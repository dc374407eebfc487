//! `inspect RUN serve`: a trained model that answers while someone plays with it.

use std::{collections::BTreeSet, net::SocketAddr, sync::Arc};

use headlight_heads::{Ablation, HeadName, Role};
use headlight_lens::{Patching, PatchingError, Place, all_heads};
use headlight_report::{
    Answer, Bytes, CircuitData, CircuitOfPairs, Explorer, ExplorerFacts, Question, Sweep,
    SweepDirection, SweepQuestion, WalkData, WhyData, WhyQuestion, Writing, WritingQuestion,
    most_telling_head, serve,
};
use headlight_residual::{AttentionSite, BlockSite, Decoder, Generation, Sampling, Site};
use headlight_run::Error;
use headlight_tasks::Sequence;
use headlight_watch::no_room;

use super::{
    Output, Subject, Verb,
    circuit::edges_facts,
    print,
    prompt_reader::{PromptReader, SHOWN_TOKENS, check_position, likeliest},
    report::walk::walk_of,
    why::{NamedModel, page::why_of_cell},
};

/// A page on 127.0.0.1 to play with: prompts, heads switched off, activations patched
#[derive(Debug, clap::Args)]
pub struct ServeVerb {
    /// Where to listen; 0 takes a free port
    #[arg(long, default_value_t = 8350)]
    port: u16,
    /// What stands in place of heads that are off, until it is chosen on the page: zero, mean or
    /// resample
    #[arg(long, value_name = "zero|mean|resample", default_value_t)]
    by: Ablation,
}

impl Verb for ServeVerb {
    const NAME: &'static str = "serve";

    fn show(self, subject: Subject, out: &Output) -> Result<(), Error> {
        out.check_no_tables(Self::NAME)?;
        subject.serve(self.port, self.by, announce)
    }
}

fn announce(address: SocketAddr) {
    // Whoever waits for the address reads it here; that nobody does is no failure.
    let _ = print(&format!("http://{address}"));
}

/// Longer prompts would not be answered at once, nor read.
const MOST_PROMPT_TOKENS: usize = 512;
/// Token names shown for help.
const SOME_TOKENS: usize = 64;
/// More are not read as they come.
const MOST_WRITTEN_TOKENS: usize = 256;

struct RunExplorer {
    inspection: Subject,
    reader: PromptReader,
    /// What prompts are made from.
    sequences: Vec<Sequence>,
    /// Of every head, first layer first.
    roles: Vec<Role>,
    /// What stands in place of heads that are off, until somebody chooses.
    by: Ablation,
}

impl Subject {
    /// Serves the live explorer until the program is stopped; `ready` hears the address. `by` stands
    /// in place of heads that are off, until somebody chooses on the page.
    ///
    /// # Errors
    /// If the run has no weights, or the port is taken.
    pub fn serve(
        self,
        port: u16,
        by: Ablation,
        ready: impl FnOnce(SocketAddr),
    ) -> Result<(), Error> {
        let reader = PromptReader::open(&self, self.n_ctx().min(MOST_PROMPT_TOKENS))?;
        let sequences = self.validation()?.sequences.clone();
        let roles = self.roles(&reader.model)?;
        serve(
            Arc::new(RunExplorer {
                roles,
                by,
                inspection: self,
                reader,
                sequences,
            }),
            port,
            ready,
        )
    }
}

impl RunExplorer {
    /// A run knows which head stands out; a model of another tool has the roles alone.
    fn head_to_begin_with(&self, heads: &[(HeadName, Role)]) -> Option<HeadName> {
        let of_run = self.inspection.head_to_begin_with();
        of_run.unwrap_or_else(|_| most_telling_head(heads))
    }
}

impl Explorer for RunExplorer {
    fn facts(&self) -> ExplorerFacts {
        let subject = &self.inspection;
        let path = subject.path();
        let PromptReader {
            model,
            vocabulary,
            most_tokens,
            ..
        } = &self.reader;
        let all = all_heads(model).into_iter();
        let heads: Vec<(HeadName, Role)> = all.zip(self.roles.iter().copied()).collect();
        ExplorerFacts {
            name: path
                .file_name()
                .unwrap_or(path.as_os_str())
                .display()
                .to_string(),
            task: subject.task_name().to_owned(),
            chosen: self.head_to_begin_with(&heads),
            heads,
            most_tokens: *most_tokens,
            some_tokens: vocabulary.iter().take(SOME_TOKENS).cloned().collect(),
            sites: model.sites().iter().map(ToString::to_string).collect(),
            sweeps: sweeps(model),
            edges: edges_facts(model),
            window: subject.window(),
            prompt: self.sample(0),
            ablations: Ablation::ALL.map(|by| (by, by.in_words())).into(),
            by: self.by,
        }
    }

    fn sample(&self, row: usize) -> String {
        let PromptReader {
            text, most_tokens, ..
        } = &self.reader;
        let sequence = &self.sequences[row % self.sequences.len()];
        let tokens = &sequence.tokens[..sequence.scored.len()];
        // A window may begin and end inside a word or a character; the prompt must not.
        text.prompt(tokens, *most_tokens)
    }

    fn explore(&self, question: &Question) -> Result<Answer, Error> {
        let (reading, _) = self.reader.read(&self.inspection, question, &[])?;
        let [predictions, untouched] =
            [&reading.changed, &reading.untouched].map(|read| self.shown(read));
        Ok(Answer {
            right: right(&reading.ids, &reading.changed),
            right_untouched: right(&reading.ids, &reading.untouched),
            tokens: reading.tokens,
            predictions,
            untouched,
        })
    }

    fn patterns(
        &self,
        question: &Question,
        heads: &[HeadName],
    ) -> Result<Vec<(HeadName, Bytes)>, Error> {
        for &head in heads {
            self.reader.check_head("heads", head)?;
        }
        let layers: BTreeSet<usize> = heads.iter().map(|head| head.layer).collect();
        let pattern = |layer| Site::Attention(layer, AttentionSite::Pattern);
        let sites: Vec<Site> = layers.into_iter().map(pattern).collect();
        let tokens = self.reader.tokens("prompt", &question.prompt)?;
        let seen = self
            .reader
            .activations(&self.inspection, question, &tokens, &sites)?;
        let mut patterns = Vec::new();
        for &head in heads {
            let of_layer = seen.tensor::<4>(pattern(head.layer)); // [1, head, query, key]
            let weights = of_layer.narrow(1, head.head, 1).into_data();
            let as_byte = |weight: f32| (weight * 255.0).round() as u8;
            let bytes = weights.iter::<f32>().map(as_byte).collect();
            patterns.push((head, Bytes(bytes)));
        }
        Ok(patterns)
    }

    fn walk(&self, question: &Question, head: HeadName) -> Result<WalkData, Error> {
        let PromptReader { model, .. } = &self.reader;
        self.reader.check_head("head", head)?;
        let tokens = self.reader.tokens("prompt", &question.prompt)?;
        let seen = self
            .reader
            .activations(&self.inspection, question, &tokens, &model.sites())?;
        let heads = |layer| {
            if layer == head.layer {
                head.head..head.head + 1
            } else {
                0..0
            }
        };
        let walk = walk_of(model, self.reader.names(&tokens), &seen, heads);
        Ok(WalkData {
            directions: self.inspection.directions()?,
            ..walk
        })
    }

    fn why(&self, question: &WhyQuestion) -> Result<WhyData, Error> {
        let WhyQuestion {
            ref prompt,
            head,
            query,
            key,
        } = *question;
        let PromptReader {
            model, vocabulary, ..
        } = &self.reader;
        let tokens = self.reader.tokens("prompt", prompt)?;
        let parts = NamedModel { model, vocabulary };
        why_of_cell(parts, tokens, head, query, key)
    }

    fn circuit(&self, question: &CircuitOfPairs) -> Result<CircuitData, Error> {
        self.inspection.circuit_for_explorer(question.pairs)
    }

    fn sweep(&self, question: &SweepQuestion) -> Result<Sweep, Error> {
        let PromptReader {
            model, vocabulary, ..
        } = &self.reader;
        let mut places = Place::all(model).into_iter();
        let place = places.find(|place| place.to_string() == question.place);
        let unknown = || Error::new("place", "is not in this model").value(&question.place);
        let place = place.ok_or_else(unknown)?;
        let clean = self.reader.tokens("prompt", &question.prompt)?;
        let position = question.position.unwrap_or(clean.len() - 1);
        check_position("position", position, clean.len())?;
        let other = self.other_prompt(question.from.as_deref(), &clean, position)?;
        let name = |token: u32| vocabulary[token as usize].clone();
        let patching =
            Patching::new(model, &other, &clean, position).map_err(|error| match error {
                PatchingError::SameAnswer { token } => {
                    let message = format_args!(
                        "the model answers both prompts with {}, so that there is nothing to find",
                        name(token)
                    );
                    Error::new("from", message)
                }
                PatchingError::Activations(error) => no_room(error),
            })?;
        let [of_other, of_prompt] = patching.answers();
        let patched = match question.direction {
            SweepDirection::Returns => patching.at(place),
            SweepDirection::Lost => patching.reversed().at(place),
        };
        Ok(Sweep {
            from: self.reader.text.prompt(&other, other.len()),
            tokens: self.reader.names(&clean),
            other_tokens: self.reader.names(&other),
            answers: [name(of_prompt), name(of_other)],
            by_position: patched.by_position,
            everywhere: patched.everywhere,
        })
    }

    fn write(&self, question: &WritingQuestion) -> Result<Writing, Error> {
        if question.tokens > MOST_WRITTEN_TOKENS {
            let message = format_args!("must be at most {MOST_WRITTEN_TOKENS}");
            return Err(Error::new("tokens", message).value(question.tokens));
        }
        let generation = Generation {
            tokens: question.tokens,
            sampling: Sampling {
                temperature: question.temperature,
                ..Sampling::default()
            },
            seed: question.seed,
            ..Generation::default()
        };
        let (written, ending) =
            self.reader
                .write(&self.inspection, &question.question, generation)?;
        Ok(Writing {
            tokens: self.reader.names(&written),
            ending,
        })
    }
}

/// The probability of each token of a prompt after those before it, from the second on.
fn right(tokens: &[u32], probabilities: &[Vec<f32>]) -> Vec<f32> {
    let after = tokens.iter().skip(1).zip(probabilities);
    after
        .map(|(&token, probabilities)| probabilities[token as usize])
        .collect()
}

/// The places of each kind of sweep, in the order of layers.
fn sweeps(model: &Decoder) -> Vec<(&'static str, Vec<String>)> {
    let is_of = |place: &Place, wanted: BlockSite| match place {
        Place::Stream(Site::Block(_, site)) => *site == wanted,
        _ => false,
    };
    let all = Place::all(model);
    let kinds = [
        ("the stream before each layer", Some(BlockSite::ResidPre)),
        (
            "what attention adds in each layer",
            Some(BlockSite::AttnOut),
        ),
        (
            "what the feed-forward adds in each layer",
            Some(BlockSite::MlpOut),
        ),
        ("the blend of each head", None),
    ];
    let mut sweeps = Vec::new();
    for (name, site) in kinds {
        let places = all.iter().filter(|place| match site {
            Some(site) => is_of(place, site),
            None => matches!(place, Place::Head(_)),
        });
        let places: Vec<String> = places.map(ToString::to_string).collect();
        if !places.is_empty() {
            sweeps.push((name, places));
        }
    }
    sweeps
}

impl RunExplorer {
    /// The other prompt of a sweep, as typed or made from this one.
    fn other_prompt(
        &self,
        from: Option<&str>,
        clean: &[u32],
        position: usize,
    ) -> Result<Vec<u32>, Error> {
        let vocabulary = &self.reader.vocabulary;
        let Some(from) = from else {
            let other = self.inspection.corrupted(clean, position, vocabulary.len());
            return other.ok_or_else(|| {
                let message = "write one: the prompt's token there was not followed by another token before, so that none can be replaced";
                Error::new("from", message).value(&vocabulary[clean[position] as usize])
            });
        };
        let other = self.reader.tokens("from", from)?;
        if other.len() != clean.len() {
            let message = format_args!(
                "has {} tokens, the prompt has {}; positions must match",
                other.len(),
                clean.len()
            );
            return Err(Error::new("from", message));
        }
        Ok(other)
    }

    /// For each position the likeliest next tokens.
    fn shown(&self, probabilities: &[Vec<f32>]) -> Vec<Vec<(String, f32)>> {
        let of_position = |probabilities: &Vec<f32>| {
            let shown = likeliest(probabilities, SHOWN_TOKENS);
            shown
                .into_iter()
                .map(|token| (self.reader.vocabulary[token].clone(), probabilities[token]))
                .collect()
        };
        probabilities.iter().map(of_position).collect()
    }
}
