//! `[task]` of a task that a program adds to the built-in ones.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use toml::{Table, Value};

use crate::{Error, config::parse::parse_strictly};

/// The key of a run's `config.toml` that names the program whose task it is.
const PROGRAM: &str = "program";

/// A task that is not built in: its keys as they stand in the table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OwnTask {
    /// `task.name`.
    pub name: String,
    /// The program that has the task, once it has read the table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The task's own keys; with every default, once the program has read them.
    #[serde(flatten)]
    pub keys: Table,
    /// The keys that say where files lie; known to the program alone.
    #[serde(skip)]
    places: &'static [&'static str],
}

impl OwnTask {
    /// The table `[task]` of some program's task, as it stands.
    pub(super) fn unread(name: &str, mut table: Table) -> Self {
        let program = match table.remove(PROGRAM) {
            Some(Value::String(program)) => Some(program),
            _ => None,
        };
        Self {
            name: name.to_owned(),
            program,
            keys: table,
            places: &[],
        }
    }

    /// The task's own keys as the program's type.
    ///
    /// # Errors
    /// Names the key that is unknown, missing or has an impossible value.
    pub fn read_keys<K: DeserializeOwned>(&self) -> Result<K, Error> {
        parse_strictly("task", self.keys.clone())
    }

    /// An error for a program that does not have the task: it names the program that does.
    #[must_use]
    pub fn not_built_in(&self) -> Error {
        let message = match &self.program {
            Some(program) => format!("is not built in; it is a task of the program {program}"),
            None => "is not built in".to_owned(),
        };
        Error::config(message)
            .key("task.name")
            .value(format_args!("{:?}", self.name))
    }

    /// Takes out of this task, with which a run was begun, and out of the same task `now` where
    /// their files lie.
    pub(super) fn forget_places(&mut self, now: &mut Self) {
        for place in now.places {
            self.keys.remove(*place);
            now.keys.remove(*place);
        }
        // Whoever renames the program has the same task.
        self.program.clone_from(&now.program);
    }
}

/// How a program reads the keys of a task that it adds.
#[derive(Debug, Clone, Copy)]
pub struct OwnTaskKeys {
    /// `task.name`.
    pub name: &'static str,
    /// Those of the keys that say where files lie: a run goes on when these were moved.
    places: &'static [&'static str],
    /// The keys, checked, with every default.
    read: fn(Table) -> Result<Table, Error>,
}

impl OwnTaskKeys {
    /// The keys of the task `name` are the fields of `K`. It should be `deny_unknown_fields`, so that
    /// a misspelt key is an error that names the nearest one.
    #[must_use]
    pub fn of<K: Serialize + DeserializeOwned>(
        name: &'static str,
        places: &'static [&'static str],
    ) -> Self {
        Self {
            name,
            places,
            read: with_defaults::<K>,
        }
    }

    /// The task of the table, for a run of `program`.
    pub(super) fn read(&self, mut table: Table, program: &str) -> Result<OwnTask, Error> {
        table.remove(PROGRAM);
        Ok(OwnTask {
            name: self.name.to_owned(),
            program: Some(program.to_owned()),
            keys: (self.read)(table)?,
            places: self.places,
        })
    }
}

fn with_defaults<K: Serialize + DeserializeOwned>(table: Table) -> Result<Table, Error> {
    let keys: K = parse_strictly("task", table)?;
    Table::try_from(keys).map_err(|error| Error::config(error).key("task"))
}

/// The tasks that a configuration may name beside the built-in ones.
#[derive(Debug, Clone, Copy)]
pub enum OwnTasks<'a> {
    /// Those of a program.
    Of {
        /// The program's name.
        program: &'a str,
        /// Its tasks.
        tasks: &'a [OwnTaskKeys],
    },
    /// Any: whoever looks at a run need not have its task.
    Any,
}

impl OwnTasks<'_> {
    /// None: the tasks are the built-in ones.
    pub const NONE: Self = Self::Of {
        program: "",
        tasks: &[],
    };

    /// The names of the tasks of a program.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        match self {
            Self::Of { tasks, .. } => tasks.iter().map(|task| task.name).collect(),
            Self::Any => Vec::new(),
        }
    }

    /// The task `name` with the keys of `table`; `None` if there is no such task.
    pub(super) fn read(&self, name: &str, table: Table) -> Result<Option<OwnTask>, Error> {
        let Self::Of { program, tasks } = self else {
            return Ok(Some(OwnTask::unread(name, table)));
        };
        if let Some(task) = tasks.iter().find(|task| task.name == name) {
            return task.read(table, program).map(Some);
        }
        let task = OwnTask::unread(name, table);
        match task.program {
            Some(_) => Err(task.not_built_in()),
            None => Ok(None),
        }
    }
}
