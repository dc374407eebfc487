//! `inspect RUN serve`: a trained model that answers while someone plays with it.

use std::{net::SocketAddr, sync::Arc};

use headlight_heads::{Ablation, HeadName, Role};
use headlight_lens::all_heads;
use headlight_report::{
    Answer, Bytes, Explorer, ExplorerFacts, Question, WalkData, WhyData, WhyQuestion, serve,
};
use headlight_residual::{AttentionSite, Site};
use headlight_run::Error;
use headlight_tasks::Sequence;

use super::{
    Output, Subject, Verb, print,
    prompt_reader::{PromptReader, SHOWN_TOKENS, likeliest},
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
        ExplorerFacts {
            name: path
                .file_name()
                .unwrap_or(path.as_os_str())
                .display()
                .to_string(),
            task: subject.task_name().to_owned(),
            heads: all_heads(model)
                .into_iter()
                .zip(self.roles.iter().copied())
                .collect(),
            most_tokens: *most_tokens,
            some_tokens: vocabulary.iter().take(SOME_TOKENS).cloned().collect(),
            sites: model.sites().iter().map(ToString::to_string).collect(),
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
        let model = &self.reader.model;
        let subject = &self.inspection;
        let (reading, seen) = self
            .reader
            .read(subject, question, &model.pattern_sites())?;
        let mut heads = Vec::new();
        for head in all_heads(model) {
            let pattern = seen.tensor::<4>(Site::Attention(head.layer, AttentionSite::Pattern));
            let weights = pattern.narrow(1, head.head, 1).into_data();
            let bytes: Vec<u8> = weights
                .iter::<f32>()
                .map(|weight| (weight * 255.0).round() as u8)
                .collect();
            heads.push((head, Bytes(bytes)));
        }
        let [predictions, untouched] =
            [&reading.changed, &reading.untouched].map(|read| self.shown(read));
        Ok(Answer {
            tokens: reading.tokens,
            predictions,
            untouched,
            patterns: heads,
        })
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
}

impl RunExplorer {
    /// For each position the likeliest next tokens.
    fn shown(&self, probabilities: &[Vec<f32>]) -> Vec<Vec<(String, f32)>> {
        let of_position = |probabilities: &Vec<f32>| {
            let shown = likeliest(probabilities).into_iter().take(SHOWN_TOKENS);
            shown
                .map(|token| (self.reader.vocabulary[token].clone(), probabilities[token]))
                .collect()
        };
        probabilities.iter().map(of_position).collect()
    }
}
