//! The tasks that a program has: the built-in ones, and those that it adds.

use std::path::Path;

use headlight_run::{Config, Error, OwnTask, OwnTaskKeys, OwnTasks, ReadModel, TaskConfig};
use serde::{Serialize, de::DeserializeOwned};

use crate::{RowKey, Sequence, Task, Use, build};

/// A task that is made from the keys of its table `[task]`: what a program adds to the built-in
/// tasks.
///
/// ```
/// use headlight_run::Error;
/// use headlight_tasks::{FromKeys, RowKey, Sequence, Task, Tasks, Vocabulary};
/// use serde::{Deserialize, Serialize};
///
/// /// `task = { name = "count", to = 5 }`: 0, 1, 2, 3, 4, 0, 1, …
/// #[derive(Serialize, Deserialize)]
/// #[serde(deny_unknown_fields)]
/// struct Keys {
///     to: u32,
/// }
///
/// struct Count {
///     to: u32,
///     n_ctx: usize,
/// }
///
/// impl FromKeys for Count {
///     type Keys = Keys;
///
///     fn from_keys(keys: Keys, n_ctx: usize, _seed: u64) -> Result<Self, Error> {
///         Ok(Self { to: keys.to, n_ctx })
///     }
/// }
///
/// impl Task for Count {
///     fn vocabulary(&self) -> Vocabulary {
///         Vocabulary::of_names((0..self.to).map(|number| number.to_string()).collect())
///     }
///
///     fn sequence(&self, _row: RowKey) -> Sequence {
///         Sequence {
///             tokens: (0..=self.n_ctx as u32).map(|at| at % self.to).collect(),
///             scored: vec![true; self.n_ctx],
///         }
///     }
/// }
///
/// let tasks = Tasks::built_in("my_program").with::<Count>("count")?;
/// let folder = tempfile::tempdir().unwrap();
/// let file = folder.path().join("count.toml");
/// std::fs::write(&file, r#"
///     task = { name = "count", to = 5 }
///     model = { n_layers = 1, n_heads = 1, d_model = 4, n_ctx = 7 }
///     train = { steps = 1, batch_size = 1, learning_rate = 1e-3 }
/// "#).unwrap();
/// let config = tasks.load(&file, &[])?;
/// assert_eq!(tasks.build(&config.task, 7, 0)?.vocabulary().names()[4], "4");
/// let error = tasks.load(&file, &["task.too=3".to_owned()]).unwrap_err().to_string();
/// assert!(error.ends_with("task.too = 3: unknown key, did you mean to?"), "{error}");
/// # Ok::<(), Error>(())
/// ```
pub trait FromKeys: Task + Sized + 'static {
    /// The keys of the table beside `name`. They should be `deny_unknown_fields`, so that a misspelt
    /// key is an error that names the nearest one. The run's `config.toml` has them all, with every
    /// default.
    type Keys: Serialize + DeserializeOwned;

    /// Those of the keys that say where files lie: a run goes on when these were moved.
    const PLACES: &'static [&'static str] = &[];

    /// The task for sequences of `n_ctx` inputs, one more token than that; `seed` is the run's.
    ///
    /// # Errors
    /// If the keys make no sense, best as `Error::config(message).key("task.KEY").value(value)`.
    fn from_keys(keys: Self::Keys, n_ctx: usize, seed: u64) -> Result<Self, Error>;
}

/// The tasks of a program.
#[derive(Clone)]
pub struct Tasks {
    program: String,
    keys: Vec<OwnTaskKeys>,
    builders: Vec<Builder>,
    read_model: Option<ReadModel>,
}

type Builder = fn(&OwnTask, usize, u64) -> Result<Box<dyn Task>, Error>;

impl Tasks {
    /// The built-in tasks, as `program` has them.
    #[must_use]
    pub fn built_in(program: &str) -> Self {
        Self {
            program: program.to_owned(),
            keys: Vec::new(),
            builders: Vec::new(),
            read_model: None,
        }
    }

    /// The same for a program that reads models of other tools, so that a configuration may name one
    /// in `model.from`.
    #[must_use]
    pub fn reading_models(self, read: ReadModel) -> Self {
        Self {
            read_model: Some(read),
            ..self
        }
    }

    /// The task `T` too, by this name.
    ///
    /// # Errors
    /// If there is a task of this name.
    pub fn with<T: FromKeys>(mut self, name: &'static str) -> Result<Self, Error> {
        let taken = self.keys.iter().any(|task| task.name == name);
        if taken || TaskConfig::NAMES.contains(&name) {
            return Err(
                Error::new("a task of one's own", "there is a task of this name").value(name),
            );
        }
        self.keys.push(OwnTaskKeys::of::<T::Keys>(name, T::PLACES));
        self.builders.push(build_own::<T>);
        Ok(self)
    }

    /// Reads a configuration whose task is one of these.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn load(&self, path: &Path, assignments: &[String]) -> Result<Config, Error> {
        let own = OwnTasks::Of {
            program: &self.program,
            tasks: &self.keys,
        };
        Config::load_with(path, assignments, own, self.read_model)
    }

    /// Whether the task of a configuration is one of these.
    #[must_use]
    pub fn has(&self, config: &TaskConfig) -> bool {
        match config {
            TaskConfig::Own(task) => self.keys.iter().any(|known| known.name == task.name),
            _ => true,
        }
    }

    /// The task of a configuration.
    ///
    /// # Errors
    /// If the program does not have it, or a file that it reads is not what it must be.
    pub fn build(
        &self,
        config: &TaskConfig,
        n_ctx: usize,
        seed: u64,
    ) -> Result<Box<dyn Task>, Error> {
        match config {
            TaskConfig::Own(task) => self.build_own(task, n_ctx, seed),
            built_in => build(built_in, n_ctx, seed),
        }
    }

    fn build_own(&self, task: &OwnTask, n_ctx: usize, seed: u64) -> Result<Box<dyn Task>, Error> {
        for (known, build) in self.keys.iter().zip(&self.builders) {
            if known.name == task.name {
                return build(task, n_ctx, seed);
            }
        }
        Err(task.not_built_in())
    }
}

fn build_own<T: FromKeys>(task: &OwnTask, n_ctx: usize, seed: u64) -> Result<Box<dyn Task>, Error> {
    let task = T::from_keys(task.read_keys()?, n_ctx, seed)?;
    check_example(&task, &task.sequence(first_row(seed)), n_ctx)?;
    Ok(Box::new(task))
}

/// The row that a task is tried on.
fn first_row(seed: u64) -> RowKey {
    RowKey {
        seed,
        usage: Use::Training,
        step: 1,
        row: 0,
        rows: 1,
    }
}

/// Checks a sequence of a task against what [`Task`] asks for, so that a mistake is one line and not
/// a panic in the middle of a tensor.
fn check_example<T: Task>(task: &T, sequence: &Sequence, n_ctx: usize) -> Result<(), Error> {
    let wrong = |message: String| Err(Error::config(message).key("task"));
    let Sequence { tokens, scored } = sequence;
    let length = scored.len();
    if length == 0 || length > n_ctx || tokens.len() != length + 1 {
        return wrong(format!(
            "made a sequence of {} tokens and {length} marks for model.n_ctx = {n_ctx}; there must be \
             one token more than marks, and at most {n_ctx} marks",
            tokens.len()
        ));
    }
    let vocabulary = task.vocabulary().len();
    if let Some(token) = tokens.iter().find(|token| **token as usize >= vocabulary) {
        return wrong(format!(
            "made the token {token}; its vocabulary has {vocabulary}"
        ));
    }
    for (name, losses) in [
        ("bayes_losses", task.bayes_losses(sequence)),
        ("floor_losses", task.floor_losses(sequence)),
        ("best_accuracies", task.best_accuracies(sequence)),
    ] {
        if let Some(losses) = losses
            && losses.len() != length
        {
            return wrong(format!("gave {} {name} for {length} targets", losses.len()));
        }
    }
    Ok(())
}
