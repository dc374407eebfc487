//! Programs compiled into weights: as a run in a folder, and as a run that `inspect` makes for itself.

use std::path::{Path, PathBuf};

use clap::{ArgMatches, FromArgMatches, Parser};
use headlight_compile::{Compiled, Program, Truth, programs};
use headlight_inspect::{print, report_after_training};
use headlight_report::{Printout, Table, Terminal};
use headlight_run::{Error, ErrorKind, write_atomically};
use headlight_trainer::Setup;
use headlight_watch::compiled;
use tempfile::TempDir;

use crate::command_line::Failure;

/// What stands before the name of a program, in place of a run: `inspect compiled:induction`.
const SUBJECT: &str = "compiled:";

/// Compile a program into weights and write it as a run, whose circuit is known.
///
/// The message about an unknown name lists the programs. In the run, truth.json says which part
/// computes which variable. Exit codes: 0 done, 1 failed while running, 2 the input was wrong.
#[derive(Parser)]
#[command(version)]
pub struct Arguments {
    /// The program, for example induction
    program: String,
    /// The folder to write the run into
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// The tokens of an input, 1 to 64 [default: the program's own]
    #[arg(long)]
    length: Option<usize>,
    /// The factor on the scores of heads: at 100 they choose, at 1 they blend
    #[arg(long, default_value_t = 100.0)]
    coldness: f64,
    /// flex, ndarray, wgpu, vulkan, metal, cuda or rocm
    #[arg(long, default_value = "flex")]
    device: String,
    /// Replace a run that is already there
    #[arg(long)]
    overwrite: bool,
}

/// Runs the program.
///
/// # Errors
/// If the input is wrong, or the program fails while it runs.
pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let arguments = Arguments::from_arg_matches(matches).unwrap_or_else(|error| error.exit());
    let Arguments {
        program,
        to,
        length,
        coldness,
        device,
        overwrite,
    } = &arguments;
    let code = named(program, *length)?;
    let compiled = write_run(program, &code, *coldness, to, device, *overwrite)?;
    report_after_training(to, device);
    let printout = Printout::new()
        .table(truth_table(&compiled.truth))
        .prose(format!(
            "Written to {0}; truth.json there has the edges. Its heads: inspect {0}",
            to.display()
        ));
    Ok(print(&printout.draw(&Terminal::of_standard_output()))?)
}

/// Which part computes which variable.
fn truth_table(truth: &Truth) -> Table {
    let mut rows = Vec::new();
    for place in &truth.places {
        rows.push(vec![
            place.variable.clone(),
            place.part.to_string(),
            place.how.clone(),
        ]);
    }
    Table::new(&["variable", "part", "how"], rows).text_columns(3)
}

/// A compiled program as a run in a folder that goes away with this value.
pub struct CompiledRun {
    /// The program's name, that of the run too.
    name: String,
    folder: TempDir,
}

impl CompiledRun {
    /// The run that `subject` asks for, if it is `compiled:NAME`.
    ///
    /// # Errors
    /// If there is no such program.
    pub fn of(subject: &Path, device: &str) -> Result<Option<Self>, Failure> {
        let name = subject.to_str().and_then(|text| text.strip_prefix(SUBJECT));
        let Some(name) = name else {
            return Ok(None);
        };
        let code = named(name, None)?;
        let folder = TempDir::new()
            .map_err(|error| Error::because(ErrorKind::Io, subject.display(), error))?;
        let run = Self {
            name: name.to_owned(),
            folder,
        };
        write_run(name, &code, 100.0, &run.path(), device, false)?;
        Ok(Some(run))
    }

    /// Where the run is.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }
}

fn named(name: &str, length: Option<usize>) -> Result<Program, Error> {
    let place = format_args!("{SUBJECT}{name}").to_string();
    programs::named(name, length).map_err(|error| Error::because(ErrorKind::Argument, place, error))
}

/// Writes a run of no steps whose model is the program, and the truth about it.
fn write_run(
    name: &str,
    code: &Program,
    coldness: f64,
    to: &Path,
    device: &str,
    overwrite: bool,
) -> Result<Compiled, Failure> {
    let compiled = code
        .compile(coldness)
        .map_err(|error| Error::because(ErrorKind::Argument, "compile", error))?;
    let config = compiled::config(name, code, coldness)?;
    let setup = Setup::prepare(config, device)?;
    let run = setup.create(to, overwrite)?;
    let mut truth = serde_json::to_vec_pretty(&compiled.truth)
        .map_err(|error| Error::because(ErrorKind::Internal, to.display(), error))?;
    truth.push(b'\n');
    write_atomically(&to.join("truth.json"), &truth)?;
    setup.run(&run)?;
    Ok(compiled)
}
