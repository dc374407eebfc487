//! A program that has `train` and `inspect`, and what one adds to them.

use std::process::ExitCode;

use clap::{ArgMatches, Command, CommandFactory};
use headlight_heads::{Measure, TargetKeys};
use headlight_inspect::{AnyVerb, Verb, verbs};
use headlight_run::Error;
use headlight_tasks::{FromKeys, Tasks};
use headlight_watch::read_model;

use crate::{
    command_line::{self, Failure},
    compile, inspect, train,
};

/// The commands of `inspect` that are no verbs.
const COMMANDS: [&str; 2] = ["learn", "help"];

/// `train` and `inspect` under one name, with tasks, measures and verbs of one's own:
///
/// ```no_run
/// use std::process::ExitCode;
///
/// use headlight::{Program, own::*};
///
/// struct TwoBack;
///
/// impl TargetKeys for TwoBack {
///     fn name(&self) -> &'static str {
///         "two back"
///     }
///
///     fn formula(&self) -> &'static str {
///         "mean over q ≥ 2 of A[q, q−2]"
///     }
///
///     fn does(&self) -> &'static str {
///         "looks two tokens back"
///     }
///
///     fn targets(&self, _tokens: &[u32], q: usize) -> Vec<usize> {
///         if q >= 2 { vec![q - 2] } else { Vec::new() }
///     }
/// }
///
/// fn main() -> ExitCode {
///     Program::new().measure(TwoBack).run()
/// }
/// ```
///
/// That is a program with the commands `train CONFIG.toml` and `inspect RUN VERB`, with all options of
/// the stock programs. `task::<T>("name")` adds a task, `verb::<V>()` a verb.
///
/// A run that was trained on such a task is a run like any other. The stock `inspect` shows it too,
/// with every verb that does not need the task's code; only this program can go on training it.
#[must_use]
pub struct Program {
    tasks: Tasks,
    measures: Vec<Box<dyn TargetKeys>>,
    verbs: Vec<AnyVerb>,
    /// What was added wrongly; `run` says it.
    wrong: Option<Error>,
}

impl Default for Program {
    fn default() -> Self {
        Self::new()
    }
}

impl Program {
    /// The stock programs.
    pub fn new() -> Self {
        Self {
            tasks: Tasks::built_in(&name_of_program()).reading_models(read_model),
            measures: Vec::new(),
            verbs: verbs(),
            wrong: None,
        }
    }

    /// A task that configurations may name.
    pub fn task<T: FromKeys>(mut self, name: &'static str) -> Self {
        match self.tasks.clone().with::<T>(name) {
            Ok(tasks) => self.tasks = tasks,
            Err(error) => self.wrong = Some(error),
        }
        self
    }

    /// A measure that every head is scored on.
    pub fn measure(mut self, measure: impl TargetKeys + 'static) -> Self {
        self.measures.push(Box::new(measure));
        self
    }

    /// A verb of `inspect`. One of the name of a built-in verb takes its place.
    pub fn verb<V: Verb>(mut self) -> Self {
        if COMMANDS.contains(&V::NAME) {
            let error = Error::new("a verb of one's own", "there is a command of this name");
            self.wrong = Some(error.value(V::NAME));
            return self;
        }
        self.verbs.retain(|verb| verb.name() != V::NAME);
        self.verbs.push(AnyVerb::of::<V>());
        self
    }

    /// Runs `train …`, `inspect …` or `compile …`, whichever the first argument says.
    #[must_use]
    pub fn run(self) -> ExitCode {
        let inspect = format!("{} inspect", name_of_program());
        self.run_as(
            |verbs| {
                Command::new("headlight")
                    .version(headlight_run::VERSION)
                    .about("Train mini-transformers in seconds, and see and test what their attention heads learned")
                    .subcommand_required(true)
                    .arg_required_else_help(true)
                    .subcommand(train::Arguments::command().name("train"))
                    .subcommand(inspect::command(verbs, &inspect).name("inspect"))
                    .subcommand(compile::Arguments::command().name("compile"))
            },
            &inspect,
            |matches, verbs, tasks| match matches.subcommand() {
                Some(("train", matches)) => train::run(matches, tasks),
                Some(("compile", matches)) => compile::run(matches),
                Some((_, matches)) => inspect::run(matches, verbs, tasks),
                None => unreachable!("a command is required"),
            },
        )
    }

    /// Runs `train` alone.
    #[must_use]
    pub fn run_train(self) -> ExitCode {
        self.run_as(
            |_| train::Arguments::command(),
            "inspect",
            |matches, _, tasks| train::run(matches, tasks),
        )
    }

    /// Runs `inspect` alone.
    #[must_use]
    pub fn run_inspect(self) -> ExitCode {
        self.run_as(
            |verbs| inspect::command(verbs, "inspect"),
            "inspect",
            inspect::run,
        )
    }

    /// Parses the arguments of `command` and runs `program` on them; `inspect` is how `inspect` is
    /// called.
    fn run_as(
        self,
        command: impl FnOnce(&[AnyVerb]) -> Command,
        inspect: &str,
        program: impl FnOnce(&ArgMatches, &[AnyVerb], &Tasks) -> Result<(), Failure>,
    ) -> ExitCode {
        command_line::log();
        let matches = command_line::parse(command(&self.verbs), &self.verbs, inspect);
        command_line::exit_code(self.run_with(&matches, program))
    }

    fn run_with(
        self,
        matches: &ArgMatches,
        program: impl FnOnce(&ArgMatches, &[AnyVerb], &Tasks) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if let Some(wrong) = self.wrong {
            return Err(wrong.into());
        }
        Measure::add(self.measures).map_err(|error| Error::new("a measure of one's own", error))?;
        program(matches, &self.verbs, &self.tasks)
    }
}

/// The name of the file that runs.
fn name_of_program() -> String {
    let path = std::env::current_exe().ok();
    let name = path.as_deref().and_then(|path| path.file_stem());
    name.map_or_else(
        || "headlight".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}
