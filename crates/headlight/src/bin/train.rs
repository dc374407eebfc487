//! Trains the model of a configuration and writes the run.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Parser;
use headlight_inspect::{Inspection, breakdown_printout, loss_text, report_after_training};
use headlight_report::{LiveAddress, LiveRun, Printout, Terminal, say, say_wrapped};
use headlight_run::{Config, InputError, RunDirectory, Seeds, reference, schema};
use headlight_trainer::{
    Training, View, interrupt,
    ranks::{self, Ranks},
};

use headlight::{
    command_line::{self, Failure, print},
    seeds::{run_path, seeds_printout, train_seeds},
};

/// Where the text of a decision begins, after its name.
const DECISION: usize = 12;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Train a mini-transformer and watch its attention heads form.
///
/// Ctrl-C, SIGTERM and SIGHUP write a checkpoint and stop after the step, a second signal (but not
/// under mpirun) at once. Exit codes: 0 done, 1 failed while running, 2 the input was wrong, 130
/// stopped by a signal.
#[derive(Parser)]
#[command(version)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
struct Arguments {
    /// The configuration, for example configs/induction.toml
    #[arg(required_unless_present_any = ["schema", "reference"])]
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
    /// Print the reference of configurations, docs/configuration.md
    #[arg(long, conflicts_with = "schema")]
    reference: bool,
}

fn main() -> ExitCode {
    command_line::run(Arguments::parse, run)
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Some(path) = &arguments.config else {
        return describe_configurations(arguments);
    };
    let config = Config::load(path, &arguments.set).map_err(Failure::Input)?;
    let out = match (&arguments.out, path.file_stem()) {
        (Some(out), _) => out.clone(),
        (None, Some(name)) => PathBuf::from("runs").join(name),
        (None, None) => {
            return Err(Failure::Input(InputError::new(
                path.display(),
                "has no name; give --out",
            )));
        }
    };
    if let Some(seeds) = &arguments.seeds {
        return run_seeds(&config, seeds, &out, arguments);
    }
    let started = ranks::started();
    ranks::check_parts(&config, started).map_err(Failure::Input)?;
    // Everything is checked and built before anything is written.
    let mut training =
        Training::prepare(config.clone(), &arguments.device).map_err(Failure::Input)?;
    let ranks = ranks::meet().map_err(Failure::Input)?;
    if ranks.rank() > 0 {
        listen(&*ranks)?;
        return training.follow(ranks).map_err(Failure::Running);
    }
    let address = arguments
        .live
        .then(|| LiveAddress::take(arguments.port))
        .transpose()
        .map_err(Failure::Input)?;
    let directory = open_run(&out, &config, arguments).map_err(Failure::Input)?;
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
    let live = live.transpose().map_err(Failure::Running)?;
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
    let inspection = Inspection::open(&out, &arguments.device).map_err(Failure::Running)?;
    let result = format!(
        "accuracy {:.4} (chance {:.4}), {} after {} steps in {:.1} s, {:.0} tokens/s",
        summary.accuracy,
        summary.chance,
        loss_text(summary.loss, summary.floor),
        summary.steps,
        summary.seconds,
        summary.tokens_per_second,
    );
    let where_to_look = format!(
        "Written to {0}; report.html there shows it all. A head's pattern: inspect {0} pattern --head L0H0",
        out.display()
    );
    let printout = Printout::new()
        .prose(result)
        .printout(breakdown_printout(&summary.breakdown))
        .printout(inspection.heads_printout().map_err(Failure::Running)?)
        .prose(where_to_look);
    print(&printout.draw(&Terminal::of_standard_output()))
}

/// One run for each seed.
fn run_seeds(
    config: &Config,
    seeds: &Seeds,
    out: &Path,
    arguments: &Arguments,
) -> Result<(), Failure> {
    if !arguments.resume {
        let free = |seed| RunDirectory::check_free(&run_path(out, seed), arguments.overwrite);
        seeds.iter().try_for_each(free).map_err(Failure::Input)?;
    }
    // Ranks meet after all have looked, and write after they have met.
    let ranks = ranks::meet().map_err(Failure::Input)?;
    listen(&*ranks)?;
    let open = |path: &Path, config: &Config| open_run(path, config, arguments);
    match train_seeds(config, seeds, out, &arguments.device, ranks, open)? {
        Some(summary) => {
            let printout = seeds_printout(&summary).prose(format!("Written to {}.", out.display()));
            print(&printout.draw(&Terminal::of_standard_output()))
        }
        None => Ok(()),
    }
}

/// Listens to signals, of which the first rank speaks for all.
fn listen(ranks: &dyn Ranks) -> Result<(), Failure> {
    let listening = if ranks.size() == 1 {
        interrupt::listen()
    } else {
        interrupt::listen_as_rank((ranks.rank() == 0).then_some(ranks::ASKED_TO_STOP))
    };
    listening.map_err(Failure::Running)
}

/// The run at `path`, made or gone on with.
fn open_run(
    path: &Path,
    config: &Config,
    arguments: &Arguments,
) -> Result<RunDirectory, InputError> {
    if arguments.resume && path.exists() {
        return RunDirectory::resume(path, config);
    }
    RunDirectory::create(path, config, arguments.overwrite)
}

/// What a configuration can say.
fn describe_configurations(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.schema {
        print(&format!("{:#}", schema()))
    } else {
        print(reference().trim_end())
    }
}
