//! Trains the model of a configuration and writes the run.

use std::path::{Path, PathBuf};

use clap::{ArgMatches, FromArgMatches, Parser};
use headlight_heads::HeadName;
use headlight_inspect::{
    Comparison, Subject, accuracy_text, breakdown_printout, comparison_printout, loss_text, print,
    report_after_training, report_of_seeds,
};
use headlight_report::{LiveAddress, LiveRun, Printout, Terminal, say, say_wrapped};
use headlight_run::{Config, Error, RunDirectory, Seeds, schema};
use headlight_tasks::Tasks;
use headlight_trainer::{
    Setup, View, interrupt,
    ranks::{self, Ranks},
};
use headlight_watch::task;

use crate::{
    command_line::Failure,
    seeds::{run_path, train_seeds},
};

/// Where the text of a decision begins, after its name.
const DECISION: usize = 12;

/// Train a mini-transformer and watch its attention heads form.
///
/// Ctrl-C, SIGTERM and SIGHUP write a checkpoint and stop after the step, a second signal (but not
/// under mpirun) at once. Exit codes: 0 done, 1 failed while running, 2 the input was wrong, 130
/// stopped by a signal.
#[derive(Parser)]
#[command(version)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Arguments {
    /// The configuration, for example configs/induction.toml
    #[arg(required_unless_present = "schema")]
    config: Option<PathBuf>,
    /// Change a key of the configuration: --set train.steps=500
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Where the run is written [default: runs/NAME OF THE CONFIGURATION]
    #[arg(long)]
    out: Option<PathBuf>,
    /// flex, ndarray, wgpu, vulkan, metal, cuda or rocm
    #[arg(long, default_value = "flex")]
    device: String,
    /// One run for each seed, side by side (under mpirun spread over the ranks), each in a folder
    /// of its own: --seeds 0..4
    #[arg(long, value_name = "FROM..TO")]
    seeds: Option<Seeds>,
    /// Show the run on the whole terminal while it trains: the loss, the heads, their patterns
    #[arg(long, conflicts_with = "seeds")]
    screen: bool,
    /// Show the run on a page of this machine while it trains; its address is printed
    #[arg(long, conflicts_with = "seeds")]
    live: bool,
    /// Where that page is on 127.0.0.1; 0 takes a free port
    #[arg(long, default_value_t = 8351, requires = "live")]
    port: u16,
    /// Replace a run that is already there
    #[arg(long)]
    overwrite: bool,
    /// Go on with a run that was stopped, from its newest checkpoint; without a run, begin one
    #[arg(long, conflicts_with = "overwrite")]
    resume: bool,
    /// Print the JSON schema of configurations
    #[arg(long)]
    schema: bool,
}

/// Runs the program on the arguments of its command.
///
/// # Errors
/// If the input is wrong, or the program fails while it runs.
pub fn run(matches: &ArgMatches, tasks: &Tasks) -> Result<(), Failure> {
    let arguments = &Arguments::from_arg_matches(matches).unwrap_or_else(|error| error.exit());
    let Some(path) = &arguments.config else {
        // Without a configuration, the schema was asked for.
        return Ok(print(&format!("{:#}", schema()))?);
    };
    let config = tasks.load(path, &arguments.set)?;
    let out = match (&arguments.out, path.file_stem()) {
        (Some(out), _) => out.clone(),
        (None, Some(name)) => PathBuf::from("runs").join(name),
        (None, None) => {
            return Err(Error::new(path.display(), "has no name; give --out").into());
        }
    };
    if let Some(seeds) = &arguments.seeds {
        return run_seeds(&config, tasks, seeds, &out, arguments);
    }
    let started = ranks::started();
    ranks::check_parts(&config, started)?;
    // Everything is checked and built before anything is written.
    let task = task::build(&config, tasks)?;
    let mut training = Setup::prepare_with(config.clone(), task, &arguments.device)?;
    let ranks = ranks::meet()?;
    if ranks.rank() > 0 {
        listen(&*ranks)?;
        return Ok(training.follow(ranks)?);
    }
    let address = arguments
        .live
        .then(|| LiveAddress::take(arguments.port))
        .transpose()?;
    let directory = open_run(&out, &training, arguments)?;
    for line in training.decisions() {
        say_wrapped(&line, DECISION);
    }
    if started > 1 {
        let rows = config.train.batch_size / started;
        say(&format!(
            "ranks       {started}, each on {rows} rows of a batch"
        ));
    }
    let live = address.map(|address| address.show(&training.live_facts(&out), &out));
    let live = live.transpose()?;
    if let Some(live) = &live {
        say(&format!("live        http://{}", live.address()));
    }
    if arguments.screen {
        training = training.shown(View::Screen(live.as_ref().map(LiveRun::address)));
    }
    listen(&*ranks)?;
    let summary = training.lead(&directory, ranks)?;
    report_after_training(&out, &arguments.device);
    if let Some(live) = &live {
        live.wait_for_last_look();
    }
    let subject = Subject::open(&out, &arguments.device)?.with_tasks(tasks.clone());
    let result = format!(
        "{}, {} after {} steps in {:.1} s, {:.0} tokens/s",
        accuracy_text(summary.accuracy, summary.chance, summary.best_accuracy),
        loss_text(summary.loss, summary.floor),
        summary.steps,
        summary.seconds,
        summary.tokens_per_second,
    );
    let head = subject
        .head_to_begin_with()?
        .unwrap_or(HeadName { layer: 0, head: 0 });
    let where_to_look = format!(
        "Written to {}; report.html there shows it all. The pattern of {head}:",
        out.display()
    );
    let printout = Printout::new()
        .prose(result)
        .printout(breakdown_printout(&summary.breakdown))
        .printout(subject.heads_printout()?)
        .prose(where_to_look)
        .command(format!("inspect {} pattern --head {head}", in_shell(&out)));
    print(&printout.draw(&Terminal::of_standard_output()))?;
    Ok(())
}

/// A path as a shell takes it.
fn in_shell(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// One run for each seed.
fn run_seeds(
    config: &Config,
    tasks: &Tasks,
    seeds: &Seeds,
    out: &Path,
    arguments: &Arguments,
) -> Result<(), Failure> {
    if !arguments.resume {
        let free = |seed| RunDirectory::check_free(&run_path(out, seed), arguments.overwrite);
        seeds.iter().try_for_each(free)?;
    }
    // Ranks meet after all have looked, and write after they have met.
    let ranks = ranks::meet()?;
    listen(&*ranks)?;
    let open = |path: &Path, training: &Setup| open_run(path, training, arguments);
    let summary = train_seeds(config, tasks, seeds, out, &arguments.device, ranks, open)?;
    if summary.is_some() {
        let runs = Comparison::open(&[out.to_owned()], &arguments.device, tasks)?;
        let page = report_of_seeds(out, &arguments.device, tasks);
        let page = page.map_or_else(String::new, |_| {
            "; report.html there shows them together".to_owned()
        });
        let written = format!("Written to {}{page}. Again:", out.display());
        let printout = comparison_printout(&runs.data(out)?)
            .prose(written)
            .command(format!("inspect {}", in_shell(out)));
        print(&printout.draw(&Terminal::of_standard_output()))?;
    }
    Ok(())
}

/// Listens to signals, of which the first rank speaks for all.
fn listen(ranks: &dyn Ranks) -> Result<(), Error> {
    if ranks.size() == 1 {
        interrupt::listen()
    } else {
        interrupt::listen_as_rank((ranks.rank() == 0).then_some(ranks::ASKED_TO_STOP))
    }
}

/// The run at `path`, made or gone on with.
fn open_run(path: &Path, training: &Setup, arguments: &Arguments) -> Result<RunDirectory, Error> {
    if arguments.resume && path.exists() {
        return training.resume(path);
    }
    training.create(path, arguments.overwrite)
}
