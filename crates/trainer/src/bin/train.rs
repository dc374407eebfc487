//! Trains the model of a configuration and writes the run.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Parser;
use headlight_run::{Config, InputError, RunDirectory, Seeds};
use headlight_trainer::{
    Training,
    command_line::{self, Failure, print},
    inspect::{Inspection, breakdown_text, loss_text, report_after_training},
    seeds_text, train_seeds,
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Train a mini-transformer and watch its attention heads form.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The configuration, for example configs/induction.toml
    config: PathBuf,
    /// Change a key of the configuration: --set train.steps=500
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Where the run is written [default: runs/NAME OF THE CONFIGURATION]
    #[arg(long)]
    out: Option<PathBuf>,
    /// flex, ndarray, wgpu, vulkan or cuda
    #[arg(long, default_value = "flex")]
    device: String,
    /// One run for each seed, side by side, each in a folder of its own: --seeds 0..4
    #[arg(long, value_name = "FROM..TO")]
    seeds: Option<Seeds>,
    /// Show the run on the whole terminal while it trains: the loss, the heads, their patterns
    #[arg(long, conflicts_with = "seeds")]
    screen: bool,
    /// Replace a run that is already there
    #[arg(long)]
    overwrite: bool,
}

fn main() -> ExitCode {
    command_line::run(run)
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    let config = Config::load(&arguments.config, &arguments.set).map_err(Failure::Input)?;
    let out = match (&arguments.out, arguments.config.file_stem()) {
        (Some(out), _) => out.clone(),
        (None, Some(name)) => PathBuf::from("runs").join(name),
        (None, None) => {
            return Err(Failure::Input(InputError::new(arguments.config.display(), "has no name; give --out")));
        }
    };
    if let Some(seeds) = &arguments.seeds {
        let create = |path: &Path, config: &Config| RunDirectory::create(path, config, arguments.overwrite);
        let summary = train_seeds(&config, seeds, &out, &arguments.device, create)?;
        return print(&format!("{}\n\nWritten to {}.", seeds_text(&summary), out.display()));
    }
    // Everything is checked and built before anything is written.
    let mut training = Training::prepare(config.clone(), &arguments.device).map_err(Failure::Input)?;
    let directory = RunDirectory::create(&out, &config, arguments.overwrite).map_err(Failure::Input)?;
    for line in training.decisions() {
        eprintln!("{line}");
    }
    if arguments.screen {
        training = training.on_screen();
    }
    let summary = training.run(&directory).map_err(Failure::Running)?;
    report_after_training(&out, &arguments.device);
    let inspection = Inspection::open(&out, &arguments.device).map_err(Failure::Running)?;
    print(&format!(
        "accuracy {:.4} (chance {:.4}), {} after {} steps in {:.1} s, {:.0} tokens/s\n{}\n{}\n\n\
         Written to {}; report.html there shows it all. A head's pattern: inspect {} pattern --head L0H0",
        summary.accuracy,
        summary.chance,
        loss_text(summary.loss, summary.floor),
        summary.steps,
        summary.seconds,
        summary.tokens_per_second,
        breakdown_text(&summary.breakdown),
        inspection.heads_text().map_err(Failure::Running)?,
        out.display(),
        out.display(),
    ))
}
