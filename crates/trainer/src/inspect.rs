//! What `inspect` shows of a finished run.

use std::path::{Path, PathBuf};

use burn::tensor::Device;
use headlight_lens::{Measure, Role};
use headlight_report::{HeadLine, Heatmap, Ink, heads_table};
use headlight_residual::{Decoder, ExportedFiles, Generation, expected_of, to_huggingface, to_transformer_lens};
use headlight_run::{
    Config, HeadName, HeadRow, HeadSummary, InputError, RunDirectory, SequenceKind, Summary, Weights, write_atomically,
};
use serde::Serialize;

use crate::{
    batch::Batch,
    evaluate::evaluate,
    model,
    tasks::{self, Use},
    training::VALIDATION_SEQUENCES,
    watch::{WATCHED_SEQUENCES, Watched, patterns},
};

/// Sequences whose logits and patterns go with an exported model.
const EXPECTED_SEQUENCES: usize = 4;

/// The most tokens that are written at once: bounds the memory of what was seen.
const MOST_TOKENS: usize = 65_536;

/// A run opened to be looked at.
pub struct Inspection {
    run: RunDirectory,
    config: Config,
    device: Device,
}

/// One head's pattern on one sequence, as `inspect pattern --json` prints it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeadPattern {
    /// The head.
    pub head: HeadName,
    /// The sequence.
    pub tokens: Vec<String>,
    /// `[queries][keys]`
    pub pattern: Vec<Vec<f32>>,
}

/// What a model wrote, as `inspect generate --json` prints it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Written {
    /// What it wrote on from.
    pub prompt: Vec<String>,
    /// What it wrote.
    pub tokens: Vec<String>,
    /// Why it ended.
    pub ending: String,
}

/// A trained model on another task, as `inspect evaluate --json` prints it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Elsewhere {
    /// The configuration that names the task.
    pub on: String,
    /// The task's name.
    pub task: String,
    /// Mean over scored positions, nats.
    pub loss: f64,
    /// On scored positions.
    pub accuracy: f64,
    /// The lowest loss any predictor can reach on these sequences.
    pub floor: f64,
    /// The accuracy of guessing.
    pub chance: f64,
    /// The heads' scores on that task; roles are read on the probe.
    pub heads: Vec<HeadSummary>,
}

impl Inspection {
    /// Opens the run at `path`.
    ///
    /// # Errors
    /// If it is not a run.
    pub fn open(path: &Path, device: &str) -> Result<Self, InputError> {
        let run = RunDirectory::open(path)?;
        let config = run.config()?;
        Ok(Self { run, config, device: crate::device::open(device)? })
    }

    /// The summary that training wrote.
    ///
    /// # Errors
    /// If training has not ended.
    pub fn summary(&self) -> Result<Summary, InputError> {
        self.run.summary()
    }

    /// The heads as text: on the probe with their roles, and on the run's own task.
    ///
    /// # Errors
    /// If the run has no head scores.
    pub fn heads_text(&self) -> Result<String, InputError> {
        let rows = self.run.heads()?;
        let last = rows.iter().map(|row| row.step).max().unwrap_or(0);
        let lines = |step, kind| {
            let of = |row: &&HeadRow| row.step == step && row.on == kind;
            let line = |row: &HeadRow| HeadLine { head: row.head, role: row.role.clone(), scores: row.scores.clone() };
            rows.iter().filter(of).map(line).collect::<Vec<_>>()
        };
        let table =
            |kind| heads_table(&score_names(), &lines(last, kind), &if last > 0 { lines(0, kind) } else { Vec::new() });
        Ok(format!(
            "Heads after {last} steps, on the probe: {WATCHED_SEQUENCES} sequences in which a block of random tokens, of random\n\
             length and start, comes back.\n\n{}\n\n\
             The same heads on the run's own task, {}. A task can make a head look like what it is not.\n\n{}\n\n\
             value±half of the 95 % interval; uniform: what even attention scores on the same rows; step 0: the highest\n\
             of all heads before training. A role is the score furthest on the way from uniform to ceiling, if past half.",
            table(SequenceKind::Probe),
            self.config.task.name(),
            table(SequenceKind::Task),
        ))
    }

    /// A head's pattern on `prompt` (token names between spaces) or, without one, on the first probe sequence.
    ///
    /// # Errors
    /// If the head or a token does not exist, or the prompt is too long.
    pub fn pattern(&self, head: HeadName, prompt: Option<&str>) -> Result<HeadPattern, InputError> {
        let ModelParts { model, vocabulary } = self.model()?;
        let (n_layers, n_heads) = (self.config.model.n_layers, self.config.model.n_heads);
        if head.layer >= n_layers || head.head >= n_heads {
            let message = format!("there is no such head, the last is L{}H{}", n_layers - 1, n_heads - 1);
            return Err(InputError::new(format_args!("--head {head}"), message));
        }
        let tokens = match prompt {
            Some(prompt) => parse_prompt(prompt, &vocabulary, self.config.model.n_ctx)?,
            None => Watched::probe(vocabulary.len(), self.config.model.n_ctx, self.config.seed).tokens.swap_remove(0),
        };
        let (layers, [_, _, length]) = patterns(&model, std::slice::from_ref(&tokens), &self.device);
        let weights = &layers[head.layer][head.head * length * length..][..length * length];
        Ok(HeadPattern {
            head,
            tokens: tokens.iter().map(|&token| vocabulary[token as usize].clone()).collect(),
            pattern: weights.chunks(length).map(<[f32]>::to_vec).collect(),
        })
    }

    /// Runs the trained model on the task of another configuration.
    ///
    /// # Errors
    /// If that task has other tokens or longer sequences than the model knows.
    pub fn evaluate(&self, on: &Path) -> Result<Elsewhere, InputError> {
        let other = Config::load(on, &[])?;
        let ModelParts { model, vocabulary } = self.model()?;
        let task = tasks::build(&other.task, other.model.n_ctx, other.seed);
        let place = on.display();
        if task.vocabulary() != vocabulary {
            let message =
                format!("has {} tokens, the model was trained on {} others", task.vocabulary().len(), vocabulary.len());
            return Err(InputError::new(place, message).key("task").value(other.task.name()));
        }
        if other.model.n_ctx > self.config.model.n_ctx {
            let message = format!("is longer than the model's {}", self.config.model.n_ctx);
            return Err(InputError::new(place, message).key("model.n_ctx").value(other.model.n_ctx));
        }
        let sequences = tasks::batch(&*task, other.seed, Use::Validation, 0, VALIDATION_SEQUENCES);
        let evaluation = evaluate(&model, &sequences, &self.device);
        let on_task = Watched::task(&sequences).observe(&model, &self.device);
        let probe = Watched::probe(vocabulary.len(), self.config.model.n_ctx, self.config.seed);
        let roles = probe.observe(&model, &self.device);
        let heads = on_task.heads.into_iter().zip(&roles.heads).map(|((head, scores), (_, on_probe))| HeadSummary {
            head,
            role: Role::of(on_probe).name().to_owned(),
            scores,
        });
        Ok(Elsewhere {
            on: place.to_string(),
            task: other.task.name().to_owned(),
            loss: evaluation.loss,
            accuracy: evaluation.accuracy,
            floor: tasks::mean_scored(&sequences, |sequence| task.floor_losses(sequence)),
            chance: task.chance(),
            heads: heads.collect(),
        })
    }

    /// Writes on after `prompt` (token names between spaces) or, without one, after the first half of a sequence of the
    /// run's task. Prompt and tokens are shown to `show` as they come.
    ///
    /// # Errors
    /// If a token of the prompt or of `stop` does not exist, the prompt is too long, or the sampling makes no sense.
    pub fn generate(
        &self,
        prompt: Option<&str>,
        stop: &[String],
        generation: Generation,
        mut show: impl FnMut(&str),
    ) -> Result<Written, InputError> {
        if generation.tokens > MOST_TOKENS {
            return Err(
                InputError::new("--tokens", format_args!("must be at most {MOST_TOKENS}")).value(generation.tokens)
            );
        }
        let ModelParts { model, vocabulary } = self.model()?;
        let prompt = if let Some(prompt) = prompt {
            parse_prompt(prompt, &vocabulary, model.most_positions().unwrap_or(usize::MAX))?
        } else {
            let task = tasks::build(&self.config.task, self.config.model.n_ctx, self.config.seed);
            let sequence = tasks::batch(&*task, self.config.seed, Use::Validation, 0, 1).swap_remove(0);
            sequence.tokens[..sequence.scored.len().div_ceil(2)].to_vec()
        };
        let stop = stop.iter().map(|name| token_id("--stop", name, &vocabulary)).collect::<Result<_, _>>()?;
        let wrong = |error| InputError::new("generate", error);
        let mut text = model.generate(&prompt, Generation { stop, ..generation }).map_err(wrong)?;
        let name = |token: u32| vocabulary[token as usize].clone();
        let prompt: Vec<String> = prompt.into_iter().map(name).collect();
        for token in &prompt {
            show(token);
        }
        let mut tokens = Vec::new();
        for token in text.by_ref() {
            let token = name(token.map_err(wrong)?);
            show(&token);
            tokens.push(token);
        }
        Ok(Written { prompt, tokens, ending: text.ending().map(|ending| ending.to_string()).unwrap_or_default() })
    }

    /// Writes the model into the folder `to` for other tools, with what it says of a few sequences of its task, and
    /// gives the files written.
    ///
    /// # Errors
    /// If the model has no such form, or a file is there already.
    pub fn export(&self, to: &Path, format: Option<ExportFormat>) -> Result<Vec<PathBuf>, InputError> {
        let ModelParts { model, vocabulary } = self.model()?;
        let wrong = |error| InputError::new("export", error);
        let mut files = Vec::new();
        let mut left_out = None;
        if format != Some(ExportFormat::TransformerLens) {
            match to_huggingface(&model) {
                Ok(exported) => files.extend(named(exported, "config.json", "model.safetensors")),
                Err(error) if format.is_some() => return Err(wrong(error)),
                Err(error) => left_out = Some(error),
            }
        }
        if format != Some(ExportFormat::Huggingface) {
            let exported = to_transformer_lens(&model).map_err(wrong)?;
            files.extend(named(exported, "transformer_lens.json", "transformer_lens.safetensors"));
        }
        let names = serde_json::to_vec_pretty(&vocabulary).map_err(|error| InputError::new("export", error))?;
        files.push(("vocabulary.json", names));
        let task = tasks::build(&self.config.task, self.config.model.n_ctx, self.config.seed);
        let sequences = tasks::batch(&*task, self.config.seed, Use::Validation, 0, EXPECTED_SEQUENCES);
        let tokens = Batch::new(&sequences, &self.device).inputs;
        files.push(("expected.safetensors", expected_of(&model, tokens).map_err(wrong)?));
        let files: Vec<(PathBuf, Vec<u8>)> = files.into_iter().map(|(name, bytes)| (to.join(name), bytes)).collect();
        if let Some((path, _)) = files.iter().find(|(path, _)| path.exists()) {
            return Err(InputError::new(path.display(), "exists already; choose another --to"));
        }
        std::fs::create_dir_all(to).map_err(|error| InputError::io(to, "create", &error))?;
        files.iter().try_for_each(|(path, bytes)| write_atomically(path, bytes))?;
        if let Some(error) = left_out {
            tracing::warn!("no folder for transformers: {error}");
        }
        Ok(files.into_iter().map(|(path, _)| path).collect())
    }

    fn model(&self) -> Result<ModelParts, InputError> {
        let model = model::load(&self.run, &self.config, Weights::Last, &self.device)?;
        Ok(ModelParts { model, vocabulary: self.run.vocabulary()? })
    }
}

/// Which form a model is exported in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum ExportFormat {
    /// A GPT-2 or Llama folder for transformers
    Huggingface,
    /// Weights with `TransformerLens`' names
    TransformerLens,
}

fn named(exported: ExportedFiles, config: &'static str, weights: &'static str) -> [(&'static str, Vec<u8>); 2] {
    [(config, exported.config.into_bytes()), (weights, exported.weights)]
}

struct ModelParts {
    model: Decoder,
    vocabulary: Vec<String>,
}

impl HeadPattern {
    /// The heat map.
    #[must_use]
    pub fn draw(&self, ink: Ink) -> String {
        let weights: Vec<f32> = self.pattern.concat();
        let heatmap = Heatmap { weights: &weights, tokens: &self.tokens, causal: true };
        format!("{}\n\n{}", self.head, heatmap.draw(ink))
    }
}

impl Elsewhere {
    /// As text.
    #[must_use]
    pub fn text(&self) -> String {
        let line = |head: &HeadSummary| HeadLine {
            head: head.head,
            role: Some(head.role.clone()),
            scores: head.scores.clone(),
        };
        let lines: Vec<HeadLine> = self.heads.iter().map(line).collect();
        format!(
            "On {} ({}): accuracy {:.4} (chance {:.4}), loss {:.4} nats (floor {:.4})\n\n{}\n\n\
             Scores are on this task, roles are read on the probe.",
            self.on,
            self.task,
            self.accuracy,
            self.chance,
            self.loss,
            self.floor,
            heads_table(&score_names(), &lines, &[])
        )
    }
}

fn score_names() -> [&'static str; 5] {
    Measure::ALL.map(Measure::name)
}

fn token_id(argument: &str, name: &str, vocabulary: &[String]) -> Result<u32, InputError> {
    let found = vocabulary.iter().position(|known| known == name);
    found.map(|id| id as u32).ok_or_else(|| {
        let some: Vec<&str> = vocabulary.iter().take(12).map(String::as_str).collect();
        let more = if vocabulary.len() > some.len() { ", …" } else { "" };
        let message = format!("is no token of this run; its {} tokens are {}{more}", vocabulary.len(), some.join(", "));
        InputError::new(argument, message).value(name)
    })
}

fn parse_prompt(prompt: &str, vocabulary: &[String], n_ctx: usize) -> Result<Vec<u32>, InputError> {
    let id = |name: &str| token_id("--prompt", name, vocabulary);
    let tokens: Vec<u32> = prompt.split_whitespace().map(id).collect::<Result<_, _>>()?;
    match tokens.len() {
        0 => Err(InputError::new("--prompt", "is empty; write token names with spaces between them")),
        length if length > n_ctx => {
            Err(InputError::new("--prompt", format_args!("has {length} tokens, the model takes {n_ctx}")))
        }
        _ => Ok(tokens),
    }
}
