//! Shows what the heads of a run learned.

use std::path::PathBuf;

use clap::{
    ArgMatches, Args, Command, CommandFactory, FromArgMatches, Parser,
    error::{self, ContextKind, ContextValue},
};
use headlight_inspect::{AnyVerb, Comparison, Output, Pairs, Subject, print, write_learn_page};
use headlight_report::{Terminal, say};
use headlight_run::{Error, ErrorKind, Weights};
use headlight_tasks::Tasks;

use crate::{command_line::Failure, compile::CompiledRun};

/// The verb that needs no run.
const LEARN: &str = "learn";
/// The verb that writes into its run.
const REPORT: &str = "report";

/// Look at the attention heads of a run.
///
/// Exit codes: 0 done, 1 failed while running, 2 the input was wrong.
#[derive(Parser)]
#[command(
    version,
    subcommand_negates_reqs = true,
    subcommand_precedence_over_arg = true
)]
pub struct Arguments {
    /// The run, for example runs/induction; or a model: a folder of transformers or a GGUF file; or a
    /// compiled program, for example compiled:induction. heads, curves and report also compare several
    /// runs, and the seeds in one folder
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    /// Write the tables as comma-separated values: heads.csv, and what is inside its rows beside it,
    /// heads.scores.csv
    #[arg(long, global = true, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// The weights to look at: best, last or step-N [default: last, or the newest checkpoint of a
    /// run that was stopped]
    #[arg(long, global = true, value_name = "POINT")]
    at: Option<Weights>,
    /// Measure on sequences of this text in place of the run's own
    #[arg(long, global = true, value_name = "FILE")]
    text: Option<PathBuf>,
    /// Measure causal tests on pairs of prompts. Made from the probe: what followed the current token
    /// before differs (value), the earlier token that equals the current one (key), or the current
    /// token (query). Or those of a file, a line of JSON for each: {"clean", "corrupted", "answer",
    /// "wrong"}
    #[arg(long, global = true, value_name = "value|key|query|FILE")]
    pairs: Option<Pairs>,
    /// flex, ndarray, wgpu, vulkan, metal, cuda or rocm
    #[arg(long, global = true, default_value = "flex")]
    device: String,
}

/// A page that explains attention with numbers to click on; needs no run
#[derive(Args)]
struct LearnArguments {
    /// Where to write it
    #[arg(long, value_name = "FILE", default_value = "learn.html")]
    out: PathBuf,
}

/// The command with its verbs; `program` is how this program is called.
#[must_use]
pub fn command(verbs: &[AnyVerb], program: &str) -> Command {
    let mut command = Arguments::command().subcommand_value_name("VERB");
    for verb in verbs {
        command = command.subcommand(with_usage(verb.command(), program));
    }
    command.subcommand(LearnArguments::augment_args(Command::new(LEARN)))
}

/// `inspect <RUN> export [OPTIONS] --to <DIR>` as the usage of a verb, which stands behind RUN; clap
/// leaves that out.
fn with_usage(verb: Command, program: &str) -> Command {
    let mut usage = format!("{program} <RUN> {} [OPTIONS]", verb.get_name());
    for argument in verb.get_arguments() {
        if let (true, Some(name)) = (argument.is_required_set(), argument.get_long()) {
            let value = argument.get_value_names().unwrap_or_default().join(" ");
            usage = format!("{usage} --{name} <{value}>");
        }
    }
    verb.override_usage(usage)
}

/// Where RUN belongs, for whoever wrote `inspect pattern runs/induction`.
pub(crate) fn run_behind_verb(
    error: &clap::Error,
    verbs: &[AnyVerb],
    program: &str,
) -> Option<String> {
    let is_verb = |argument: &String| verbs.iter().any(|verb| verb.name() == argument);
    let mut arguments = std::env::args().skip(program.split(' ').count());
    let verb = arguments.find(is_verb)?;
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let is_run = error.kind() == error::ErrorKind::UnknownArgument && !argument.starts_with('-');
    is_run.then(|| format!("RUN stands before the verb: {program} {argument} {verb}"))
}

/// Runs the program on the arguments of its [`command`]. The first verb is the default.
///
/// # Errors
/// If the input is wrong, or the program fails while it runs.
pub fn run(matches: &ArgMatches, verbs: &[AnyVerb], tasks: &Tasks) -> Result<(), Failure> {
    let arguments = Arguments::from_arg_matches(matches).unwrap_or_else(|error| error.exit());
    let out = Output {
        json: arguments.json,
        csv: arguments.csv,
        terminal: Terminal::of_standard_output(),
    };
    if let Some((LEARN, matches)) = matches.subcommand() {
        out.check_no_tables(LEARN)?;
        let learn = LearnArguments::from_arg_matches(matches).unwrap_or_else(|error| error.exit());
        write_learn_page(&learn.out, &arguments.device)?;
        return Ok(print(&format!("Written to {}.", learn.out.display()))?);
    }
    let no_options = ArgMatches::default();
    let (verb, options) = match matches.subcommand() {
        Some((name, options)) => (verbs.iter().find(|verb| verb.name() == name), options),
        None => (verbs.first(), &no_options),
    };
    let verb = verb.ok_or_else(|| Error::new("inspect", "there are no verbs"))?;
    check_runs(&arguments.runs, verbs)?;
    let named = &arguments.runs[0];
    if arguments.runs.len() > 1 || Comparison::is_of_seeds(named) {
        let point = arguments.at.map(|at| format!("--at {at}"));
        let text = arguments
            .text
            .map(|text| format!("--text {}", text.display()));
        let pairs = arguments.pairs.map(|pairs| format!("--pairs {pairs}"));
        if let Some(option) = point.or(text).or(pairs) {
            return Err(Error::new(option, "is for one run; here are several").into());
        }
        let runs = Comparison::open(&arguments.runs, &arguments.device, tasks)?;
        return Ok(verb.compare(options, &runs, &out)?);
    }
    let compiled = CompiledRun::of(named, &arguments.device)?;
    let run = compiled
        .as_ref()
        .map_or_else(|| named.clone(), CompiledRun::path);
    let subject = match arguments.at {
        Some(at) => Subject::open_at(&run, &arguments.device, at)?,
        None => Subject::open(&run, &arguments.device)?,
    };
    let mut subject = subject.with_tasks(tasks.clone());
    if let Some(text) = &arguments.text {
        subject = subject.on_text(text)?;
    }
    if let Some(pairs) = &arguments.pairs {
        if !verb.takes_pairs() {
            return Err(no_pairs(*verb, verbs).into());
        }
        subject = subject.on_pairs(pairs)?;
    }
    for note in [subject.task_note(), subject.note()].into_iter().flatten() {
        say(&note);
    }
    if compiled.is_some() && verb.name() == REPORT && !has_place(options) {
        let message = "report writes into a run; name a file with --out, or first write a run: headlight compile NAME --to DIR";
        return Err(Error::new(named.display(), message).into());
    }
    let shown = verb.show(options, subject, &out);
    // Nobody knows the folder of a run that is there for this command only.
    Ok(shown.map_err(|error| match &compiled {
        Some(compiled) => error.calling(&compiled.path(), named.display()),
        None => error,
    })?)
}

/// That a verb does not take pairs of prompts, and which ones do.
fn no_pairs(verb: AnyVerb, verbs: &[AnyVerb]) -> Error {
    let that_do = verbs.iter().filter(|verb| verb.takes_pairs());
    let names: Vec<&str> = that_do.map(AnyVerb::name).collect();
    let message = format!(
        "{} does not look at pairs of prompts; these verbs do: {}",
        verb.name(),
        names.join(", ")
    );
    Error::new("--pairs", message)
}

/// Whether the report was given a file to be written to.
fn has_place(options: &ArgMatches) -> bool {
    matches!(options.try_get_one::<PathBuf>("out"), Ok(Some(_)))
}

/// Checks that something is named, and that what stands behind the first run is a run and no verb
/// that was misspelt.
fn check_runs(runs: &[PathBuf], verbs: &[AnyVerb]) -> Result<(), Error> {
    if runs.is_empty() {
        let message = "no run is named; for example: inspect runs/induction heads";
        return Err(Error::new("inspect", message));
    }
    for run in &runs[1..] {
        if !run.exists() {
            let names: Vec<&str> = verbs.iter().map(AnyVerb::name).collect();
            let message = format!("is no run and no verb; the verbs are {}", names.join(", "));
            return Err(Error::of(ErrorKind::Missing, run.display(), message));
        }
    }
    Ok(())
}
