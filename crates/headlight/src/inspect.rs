//! Shows what the heads of a run learned.

use std::{
    io::{IsTerminal, Write},
    path::PathBuf,
};

use clap::{
    Command, CommandFactory, Parser, Subcommand,
    error::{self, ContextKind, ContextValue},
};
use headlight_heads::{Ablation, HeadName, SequenceKind};
use headlight_inspect::{
    Ablations, ActivationsOf, CircuitTables, Elsewhere, ExportFormat, HeadPattern, Lens, Patch,
    Paths, Phases, PictureFiles, Positions, PredictArguments, Predictions, RelationHeads,
    SharedWork, Subject, WrittenActivations, curves_picture, curves_text, detect_printout,
    head_curves_picture, head_curves_text, offsets_printout, swaps_printout, write_learn_page,
};
use headlight_report::{Printout, Terminal, say};
use headlight_residual::{Generation, Sampling};
use headlight_run::{Error, ErrorKind, Weights};
use serde::Serialize;

use crate::{
    command_line::{self, Failure, print},
    compile::CompiledRun,
};

/// The verb that needs no run.
const LEARN: &str = "learn";

/// Look at the attention heads of a run.
///
/// Exit codes: 0 done, 1 failed while running, 2 the input was wrong.
#[derive(Parser)]
#[command(version, subcommand_negates_reqs = true)]
pub struct Arguments {
    /// The run, for example runs/induction; or a compiled program, for example compiled:induction
    #[arg(required = true)]
    run: Option<PathBuf>,
    /// What to show [default: heads]
    #[command(subcommand)]
    what: Option<What>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    /// The weights to look at: best, last or step-N [default: last, or the newest checkpoint of a
    /// run that was stopped]
    #[arg(long, global = true, value_name = "POINT")]
    at: Option<Weights>,
    /// flex, ndarray, wgpu, vulkan, metal, cuda or rocm
    #[arg(long, global = true, default_value = "flex")]
    device: String,
}

#[derive(Subcommand)]
enum What {
    /// Every head: its role, its scores, and what they are measured against
    Heads,
    /// Patterns as heat maps
    Pattern {
        /// The head, written L0H1 [default: every head]
        #[arg(long)]
        head: Option<HeadName>,
        /// Token names with spaces between them, for a text some text [default: a sequence of the
        /// probe]
        #[arg(long)]
        prompt: Option<String>,
        #[command(flatten)]
        files: PictureFiles,
    },
    /// What is left without each head, without the heads of a role, and without ever more heads
    Ablate {
        /// These heads together too, written L1H0,L1H2
        #[arg(long, value_delimiter = ',')]
        heads: Vec<HeadName>,
        /// What stands in place of a head's blend of values: zero, its mean over sequences and
        /// positions, or its blend in another sequence (resample)
        #[arg(long, value_name = "zero|mean|resample", default_value_t)]
        by: Ablation,
    },
    /// Which input of a later layer needs what a layer or head wrote
    Paths,
    /// What heads do position by position: where they hold a role, how much they write, accuracy
    /// without them
    Positions {
        /// This head alone, written L0H1, at every position
        #[arg(long)]
        head: Option<HeadName>,
        /// What stands in place of heads that are off
        #[arg(long, value_name = "zero|mean|resample", default_value_t)]
        by: Ablation,
    },
    /// Work that heads share: a distance forbidden to a whole layer, keys and queries together,
    /// pairs of heads
    Shared {
        /// What stands in place of heads that are off
        #[arg(long, value_name = "zero|mean|resample", default_value_t)]
        by: Ablation,
    },
    /// Where in the model the difference between two prompts lives: activations of one put into the
    /// other
    Patch {
        /// Token names with spaces between them, for a text some text [default: made from the
        /// probe]
        #[arg(long)]
        prompt: Option<String>,
        /// As many tokens with another answer [default: what followed the last token before is
        /// replaced]
        #[arg(long, requires = "prompt")]
        corrupted: Option<String>,
        /// The position whose next token is the answer, counted from 0 [default: the last]
        #[arg(long, requires = "prompt")]
        position: Option<usize>,
    },
    /// What comes next after a prompt, with heads switched off and activations of another prompt
    /// put in
    Predict(PredictArguments),
    /// Whether predictions follow when the context says that another token came next
    Swap,
    /// What the stream says at each depth, and which parts say it
    Lens {
        /// Token names with spaces between them, for a text some text [default: sequences of the
        /// run's task]
        #[arg(long)]
        prompt: Option<String>,
    },
    /// What the heads' weights do by themselves: copying, positions, who fits whom
    Circuits {
        /// This head token by token too, written L1H0
        #[arg(long)]
        head: Option<HeadName>,
    },
    /// The scores that TransformerLens gives the heads, for comparison with that tool
    Detect {
        /// Token names with spaces between them, for a text some text [default: the probe]
        #[arg(long)]
        prompt: Option<String>,
    },
    /// Where heads look around an earlier equal token, by distance, and weighted by what the keys
    /// carry
    Offsets,
    /// When what formed: levels of the loss, half-way steps, the loss by position
    Phases,
    /// Which head follows each gold relation of the task, and what the model answers without it
    Relations,
    /// What the model writes, token by token
    Generate {
        /// Token names with spaces between them; may be given several times, and each prompt gets
        /// its own text [default: the first half of a sequence of the run's task]
        #[arg(long)]
        prompt: Vec<String>,
        /// The most tokens to write
        #[arg(long, default_value_t = 32)]
        tokens: usize,
        /// Divides the logits; 0 takes the likeliest token
        #[arg(long, default_value_t = 1.0)]
        temperature: f64,
        /// Only the K likeliest tokens may come
        #[arg(long, value_name = "K")]
        top_k: Option<usize>,
        /// Only the likeliest tokens that together reach this probability may come
        #[arg(long, value_name = "P")]
        top_p: Option<f64>,
        /// What the draws follow from
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Text that ends the text, or token names with spaces between them; may be given several
        /// times
        #[arg(long, value_name = "TEXT")]
        stop: Vec<String>,
    },
    /// Write the model and its tokenizer for other tools
    Export {
        /// The folder to write into
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
        /// Only this form [default: all that the architecture has]
        #[arg(long, value_enum)]
        format: Option<ExportFormat>,
    },
    /// Write activations for notebooks, with the names and shapes of TransformerLens
    Activations {
        /// Which activations; a * stands for any run of characters; may be given several times
        #[arg(long, value_name = "SITE", default_value = "*")]
        sites: Vec<String>,
        /// Token names with spaces between them, for a text some text
        #[arg(long, conflicts_with = "on")]
        prompt: Option<String>,
        /// The sequences that the model reads: probe, or task for its validation sequences
        #[arg(long, value_name = "SEQUENCES", default_value_t = SequenceKind::Probe)]
        on: SequenceKind,
        /// The safetensors file to write
        #[arg(long, value_name = "FILE")]
        to: PathBuf,
    },
    /// Accuracy over training
    Curves {
        #[command(flatten)]
        files: PictureFiles,
    },
    /// How every head's scores changed over training, on the probe
    Scores {
        /// This head alone, written L0H1
        #[arg(long)]
        head: Option<HeadName>,
        #[command(flatten)]
        files: PictureFiles,
    },
    /// A page on 127.0.0.1 to play with: prompts, heads switched off, activations patched
    Serve {
        /// Where to listen; 0 takes a free port
        #[arg(long, default_value_t = 8350)]
        port: u16,
        /// What stands in place of heads that are off, until it is chosen on the page: zero, mean
        /// or resample
        #[arg(long, value_name = "zero|mean|resample", default_value_t)]
        by: Ablation,
    },
    /// A page that explains attention with numbers to click on; needs no run
    Learn {
        /// Where to write it
        #[arg(long, value_name = "FILE", default_value = "learn.html")]
        out: PathBuf,
    },
    /// The whole run as one page, written to report.html in the run
    Report {
        /// What stands in place of heads that are off: zero, mean or resample. Training measures
        /// with mean; the others are measured anew
        #[arg(long, value_name = "zero|mean|resample", default_value_t)]
        by: Ablation,
    },
    /// The trained model on its own task, or on the task of another configuration
    Evaluate {
        /// The configuration that names the other task
        #[arg(long)]
        on: Option<PathBuf>,
    },
}

/// Reads the arguments of `inspect`.
#[must_use]
pub fn arguments() -> Arguments {
    command_line::parse(with_usage(Arguments::command(), "inspect"), "inspect")
}

/// `inspect <RUN> export [OPTIONS] --to <DIR>` as the usage of each verb: a verb stands behind RUN,
/// which clap leaves out. `program` is how this program is called.
#[must_use]
pub fn with_usage(command: Command, program: &str) -> Command {
    command.mut_subcommands(|verb| {
        if verb.get_name() == LEARN {
            return verb;
        }
        let mut usage = format!("{program} <RUN> {} [OPTIONS]", verb.get_name());
        for argument in verb.get_arguments() {
            if let (true, Some(name)) = (argument.is_required_set(), argument.get_long()) {
                let value = argument.get_value_names().unwrap_or_default().join(" ");
                usage = format!("{usage} --{name} <{value}>");
            }
        }
        verb.override_usage(usage)
    })
}

/// Where RUN belongs, for whoever wrote `inspect pattern runs/induction`.
pub(crate) fn run_behind_verb(error: &clap::Error, program: &str) -> Option<String> {
    let command = Arguments::command();
    let verb = std::env::args()
        .skip(program.split(' ').count())
        .find(|argument| command.find_subcommand(argument).is_some())?;
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let is_run = error.kind() == error::ErrorKind::UnknownArgument && !argument.starts_with('-');
    (is_run && verb != LEARN)
        .then(|| format!("RUN stands before the verb: {program} {argument} {verb}"))
}

/// Runs the program.
///
/// # Errors
/// If the input is wrong, or the program fails while it runs.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let what = arguments.what.as_ref().unwrap_or(&What::Heads);
    if let What::Learn { out } = what {
        write_learn_page(out, &arguments.device)?;
        return Ok(print(&format!("Written to {}.", out.display()))?);
    }
    let no_run = || {
        Error::new(
            "inspect",
            "no run is named; for example: inspect runs/induction heads",
        )
    };
    let named = arguments.run.as_ref().ok_or_else(no_run)?;
    let compiled = CompiledRun::of(named, &arguments.device)?;
    if let (Some(_), What::Report { .. }) = (&compiled, what) {
        let message = "report writes into a run; first write one: headlight compile NAME --to DIR";
        return Err(Error::new(named.display(), message).into());
    }
    let run = &compiled
        .as_ref()
        .map_or_else(|| named.clone(), CompiledRun::path);
    let subject = match arguments.at {
        Some(at) => Subject::open_at(run, &arguments.device, at)?,
        None => Subject::open(run, &arguments.device)?,
    };
    if let Some(note) = subject.note() {
        say(&note);
    }
    if let What::Serve { port, by } = what {
        return Ok(subject.serve(*port, *by, announce)?);
    }
    let text = show(&subject, what, arguments.json);
    Ok(print(&text?)?)
}

/// How the result of a verb is printed.
struct Output {
    json: bool,
    terminal: Terminal,
}

impl Output {
    /// The result as JSON, or as text within the columns of the terminal.
    fn of<T: Serialize + ?Sized>(
        &self,
        result: &T,
        text: fn(&T) -> Printout,
    ) -> Result<String, Error> {
        if self.json {
            to_json(result)
        } else {
            Ok(text(result).draw(&self.terminal))
        }
    }
}

fn show(subject: &Subject, what: &What, json: bool) -> Result<String, Error> {
    let terminal = Terminal::of_standard_output();
    let out = Output { json, terminal };
    match what {
        What::Heads if json => to_json(&subject.heads()?),
        What::Heads => Ok(subject.heads_printout()?.draw(&out.terminal)),
        What::Pattern {
            head,
            prompt,
            files,
        } => show_patterns(subject, *head, prompt.as_deref(), files, &out),
        What::Ablate { heads, by } => out.of(&subject.ablations(heads, *by)?, Ablations::printout),
        What::Paths => out.of(&subject.paths()?, Paths::printout),
        What::Positions { head, by } => {
            out.of(&subject.positions(*head, *by)?, Positions::printout)
        }
        What::Shared { by } => out.of(&subject.shared_work(*by)?, SharedWork::printout),
        What::Patch {
            prompt,
            corrupted,
            position,
        } => {
            let patch = subject.patch(prompt.as_deref(), corrupted.as_deref(), *position)?;
            out.of(&patch, Patch::printout)
        }
        What::Predict(arguments) => out.of(&subject.predict(arguments)?, Predictions::printout),
        What::Swap => out.of(&subject.swaps()?[..], swaps_printout),
        What::Lens { prompt } => out.of(&subject.lens(prompt.as_deref())?, Lens::printout),
        What::Circuits { head } => out.of(&subject.circuits(*head)?, CircuitTables::printout),
        What::Detect { prompt } => out.of(&subject.detect(prompt.as_deref())?[..], detect_printout),
        What::Offsets => out.of(&subject.offsets()?[..], offsets_printout),
        What::Phases => out.of(&subject.phases()?, Phases::printout),
        What::Relations => out.of(&subject.relations()?, RelationHeads::printout),
        What::Generate {
            prompt,
            tokens,
            temperature,
            top_k,
            top_p,
            seed,
            stop,
        } => {
            let sampling = Sampling {
                temperature: *temperature,
                top_k: *top_k,
                top_p: *top_p,
            };
            let generation = Generation {
                tokens: *tokens,
                sampling,
                seed: *seed,
                ..Generation::default()
            };
            show_generated(subject, prompt, stop, generation, json)
        }
        What::Export { to, format } => show_exported(&subject.export(to, *format)?, json),
        What::Activations {
            sites,
            prompt,
            on,
            to,
        } => {
            let of = match prompt {
                Some(prompt) => ActivationsOf::Prompt(prompt),
                None => ActivationsOf::Sequences(*on),
            };
            let written = subject.write_activations(sites, of, to)?;
            out.of(&written, WrittenActivations::printout)
        }
        What::Curves { files } => show_curves(subject, files, &out),
        What::Scores { head, files } => show_scores(subject, *head, files, &out),
        What::Report { by } if json => to_json(&subject.report(*by)?),
        What::Report { by } => {
            let path = subject.write_report(*by)?;
            Ok(format!("Written to {}.", path.display()))
        }
        What::Evaluate { on } => out.of(&subject.evaluate(on.as_deref())?, Elsewhere::printout),
        What::Learn { .. } | What::Serve { .. } => unreachable!("print no result"),
    }
}

fn show_patterns(
    subject: &Subject,
    head: Option<HeadName>,
    prompt: Option<&str>,
    files: &PictureFiles,
    out: &Output,
) -> Result<String, Error> {
    let patterns = subject.patterns(head, prompt)?;
    let mut written = None;
    if files.any() {
        written = Some(files.write(&HeadPattern::picture(&patterns)?)?);
    }
    match written {
        // One head is asked for by name, so it is no list.
        _ if out.json && head.is_some() => to_json(&patterns[0]),
        _ if out.json => to_json(&patterns),
        Some(written) => Ok(written),
        None => {
            let drawn: Vec<String> = patterns
                .iter()
                .map(|pattern| pattern.draw(&out.terminal))
                .collect();
            Ok(drawn.join("\n"))
        }
    }
}

fn show_generated(
    subject: &Subject,
    prompts: &[String],
    stops: &[String],
    generation: Generation,
    json: bool,
) -> Result<String, Error> {
    let written = subject.generate(prompts, stops, generation, |piece| {
        if !json {
            print_piece(piece);
        }
    })?;
    match written.as_slice() {
        [one] if json => to_json(one),
        all if json => to_json(all),
        all => {
            // The first text was printed as it came.
            let mut text = format!("\n\n{}", all[0].ending);
            for other in &all[1..] {
                text.push_str("\n\n");
                text.push_str(&other.shown());
            }
            Ok(text)
        }
    }
}

fn show_exported(files: &[PathBuf], json: bool) -> Result<String, Error> {
    let names: Vec<String> = files
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    if json {
        to_json(&names)
    } else {
        Ok(names.join("\n"))
    }
}

fn show_curves(subject: &Subject, files: &PictureFiles, out: &Output) -> Result<String, Error> {
    let curves = subject.curves()?;
    let mut written = None;
    if files.any() {
        written = Some(files.write(&curves_picture(&curves))?);
    }
    if out.json {
        return to_json(&subject.metrics()?);
    }
    if let Some(written) = written {
        return Ok(written);
    }
    let text = curves_text(&curves, &subject.loss_curves()?, &out.terminal);
    match subject.diverged()? {
        None => Ok(text),
        Some(step) => Ok(format!(
            "{text}\n\nAt step {step} the loss is no number. Training stopped there."
        )),
    }
}

fn show_scores(
    subject: &Subject,
    head: Option<HeadName>,
    files: &PictureFiles,
    out: &Output,
) -> Result<String, Error> {
    let heads = subject.head_curves(head)?;
    let mut written = None;
    if files.any() {
        written = Some(files.write(&head_curves_picture(&heads))?);
    }
    if out.json {
        let mut rows = subject.head_rows()?;
        rows.retain(|row| head.is_none_or(|head| row.head == head));
        return to_json(&rows);
    }
    Ok(written.unwrap_or_else(|| head_curves_text(&heads, &out.terminal)))
}

fn announce(address: std::net::SocketAddr) {
    // Whoever waits for the address reads it here; that nobody does is no failure.
    let _ = print(&format!("http://{address}"));
}

/// Shows a token as soon as it is there. In a terminal, a control character that the model learned
/// from a text is a dot: it could move the cursor or worse.
fn print_piece(token: &str) {
    let mut out = std::io::stdout().lock();
    let in_terminal = out.is_terminal();
    let shown = |c: char| {
        if in_terminal && c.is_control() && !matches!(c, '\n' | '\t') {
            '·'
        } else {
            c
        }
    };
    let token: String = token.chars().map(shown).collect();
    // A reader that has gone away is no failure; anything else shows when the ending is printed.
    let _ = write!(out, "{token}").and_then(|()| out.flush());
}

fn to_json<T: Serialize + ?Sized>(value: &T) -> Result<String, Error> {
    serde_json::to_string_pretty(value)
        .map_err(|error| Error::because(ErrorKind::Internal, "--json", error))
}
