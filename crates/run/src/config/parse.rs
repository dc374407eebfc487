//! From TOML text and `--set` to a checked configuration: nothing unknown passes.

use std::path::Path;

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::{ReadModel, from_model, preset, task, token_budget};
use crate::{
    Config, Error, ErrorKind, OwnTasks, TaskConfig,
    error::one_line,
    untrusted::{MOST_CONFIG_BYTES, read_at_most},
};

impl Config {
    /// Reads `path`, lays the assignments of `--set` over it (`"train.steps=500"`) and checks all
    /// of it.
    ///
    /// # Errors
    /// Names the file, the key and the value that are wrong, and the nearest known key.
    pub fn load(path: &Path, assignments: &[String]) -> Result<Self, Error> {
        Self::load_with(path, assignments, OwnTasks::NONE, None)
    }

    /// [`load`](Self::load) for a program that has tasks beside the built-in ones, and reads models of
    /// other tools. Without `read_model`, the keys of the model of `model.from` must be there, as in
    /// the `config.toml` of a run.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_with(
        path: &Path,
        assignments: &[String],
        own: OwnTasks<'_>,
        read_model: Option<ReadModel>,
    ) -> Result<Self, Error> {
        let text = String::from_utf8(read_at_most(path, MOST_CONFIG_BYTES)?).map_err(|error| {
            Error::config("is not UTF-8")
                .at(path.display())
                .caused_by(error)
        })?;
        Self::parse_with(
            &text,
            &path.display().to_string(),
            assignments,
            own,
            read_model,
        )
    }

    /// [`load`](Self::load) for a text already read; `place` is named in errors.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    ///
    /// ```
    /// use headlight_run::Config;
    ///
    /// let text = r#"
    ///     task = { name = "repeat" }
    ///     model = { n_layers = 2, n_heads = 4, d_model = 64, n_ctx = 64 }
    ///     train = { steps = 10, batch_size = 8, learning_rate = 1e-3 }
    /// "#;
    /// let config = Config::parse(text, "a.toml", &["train.steps=20".to_owned()])?;
    /// assert_eq!(config.train.steps, 20);
    /// let error = Config::parse(text, "a.toml", &["train.stepps=20".to_owned()]).unwrap_err();
    /// assert_eq!(error.to_string(), "--set train.stepps=20: train.stepps = 20: unknown key, did you mean steps?");
    /// # Ok::<(), headlight_run::Error>(())
    /// ```
    pub fn parse(text: &str, place: &str, assignments: &[String]) -> Result<Self, Error> {
        Self::parse_with(text, place, assignments, OwnTasks::NONE, None)
    }

    fn parse_with(
        text: &str,
        place: &str,
        assignments: &[String],
        own: OwnTasks<'_>,
        read_model: Option<ReadModel>,
    ) -> Result<Self, Error> {
        let mut table: Table = text.parse().map_err(|error: toml::de::Error| {
            let line = error
                .span()
                .map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            Error::config(error.message())
                .at(format_args!("{place}:{line}"))
                .caused_by(error)
        })?;
        for assignment in assignments {
            assign(&mut table, assignment)?;
        }
        // An error about a key that --set wrote is an error of that argument.
        Self::from_table(table, own, read_model).map_err(|error| {
            let key = error.key_name();
            let culprit = assignments
                .iter()
                .rev()
                .find(|assignment| key == Some(&one_line(assigned_key(assignment))));
            error.at(culprit.map_or_else(
                || place.to_owned(),
                |assignment| format!("--set {assignment}"),
            ))
        })
    }

    fn from_table(
        mut table: Table,
        own: OwnTasks<'_>,
        read_model: Option<ReadModel>,
    ) -> Result<Self, Error> {
        let mut source = None;
        if let Some(Value::Table(model)) = table.get_mut("model") {
            if let Some(read) = read_model {
                source = from_model::expand(model, read)?;
            }
            preset::expand(model)?;
        }
        if let Some(Value::Table(train)) = table.get_mut("train") {
            token_budget::allow_without_steps(train);
        }
        let task = match table.remove("task") {
            Some(Value::Table(mut task)) => {
                if source.is_some() {
                    task::take_tokens_of_model(&mut task);
                }
                Some(parse_task(task, own)?)
            }
            Some(other) => {
                return Err(wrong(
                    "task",
                    Some(&other),
                    "must be a table with the key name",
                ));
            }
            None => None,
        };
        // The task is parsed on its own, by its name, so that its keys are named in full; here it
        // is known to be good.
        if let Some(value) = task.as_ref().and_then(|task| Value::try_from(task).ok()) {
            table.insert("task".to_owned(), value);
        }
        let mut config: Self = parse_strictly("", table)?;
        config.task = task.unwrap_or(config.task);
        if let Some(source) = source {
            from_model::check_same(&config.model, &source)?;
        }
        config.resolve_steps();
        config.log.resolve_heads(&config.model);
        config.validate()?;
        Ok(config)
    }

    /// The configuration as TOML with every default filled in.
    ///
    /// # Errors
    /// If a number has no TOML form.
    pub fn to_toml(&self) -> Result<String, Error> {
        toml::to_string_pretty(self)
            .map_err(|error| Error::because(ErrorKind::Config, "config", error))
    }
}

fn parse_task(mut task: Table, own: OwnTasks<'_>) -> Result<TaskConfig, Error> {
    let name = match task.remove("name") {
        Some(Value::String(name)) => name,
        other => {
            return Err(wrong(
                "task.name",
                other.as_ref(),
                &format!("must be one of {}", TaskConfig::names_with(own).join(", ")),
            ));
        }
    };
    TaskConfig::parse(&name, task, own)
}

/// An error about `task.name`.
pub fn unknown_task(name: &str, known: &[&str]) -> Error {
    let message = format!("unknown task{}", suggestion(name, known));
    wrong("task.name", Some(&Value::String(name.to_owned())), &message)
}

/// An error about a value that is not among the known ones.
pub fn unknown_value(key: &str, value: &Value, known: &[&str]) -> Error {
    let message = format!(
        "unknown value{}",
        suggestion(value.as_str().unwrap_or_default(), known)
    );
    wrong(key, Some(value), &message)
}

/// Deserializes a table; the error names the full key, its value and, for an unknown key, the
/// nearest known one.
///
/// Which key is unknown or missing is said in serde's message alone, in backticks. Figment 0.10 keeps
/// it in a field. It was not taken: it has had no release since May 2024, it parses into a type of
/// values of its own, and the one merge here is an `or_insert`.
pub fn parse_strictly<T: DeserializeOwned>(prefix: &str, table: Table) -> Result<T, Error> {
    let lookup = Value::Table(table.clone());
    serde_path_to_error::deserialize(Value::Table(table)).map_err(|error| {
        let path = match error.path().to_string() {
            path if path == "." => String::new(),
            path => path,
        };
        refusal(prefix, &path, &lookup, error.inner().message()).caused_by(error.into_inner())
    })
}

/// What serde says in `message` about the value at `path` in `table`, which stands at `prefix`.
fn refusal(prefix: &str, path: &str, table: &Value, message: &str) -> Error {
    let message = message.lines().next().unwrap_or_default();
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let about = |path: &str, message: &str| {
        wrong(&joined(prefix, path), find(table, path).as_ref(), message)
    };
    match quoted.split_first() {
        Some((unknown, known)) if message.starts_with("unknown field") => {
            // The path may or may not end in the unknown key itself.
            let path = match path.rsplit('.').next() {
                Some(last) if last == *unknown => path.to_owned(),
                _ => joined(path, unknown),
            };
            about(&path, &format!("unknown key{}", suggestion(unknown, known)))
        }
        Some((missing, _)) if message.starts_with("missing field") => {
            about(&joined(path, missing), "is missing")
        }
        Some((unknown, known)) if message.starts_with("unknown variant") => about(
            path,
            &format!("unknown value{}", suggestion(unknown, known)),
        ),
        _ => about(path, &in_words_of_toml(message)),
    }
}

/// The key `key` below `prefix`.
pub fn joined(prefix: &str, key: &str) -> String {
    match (prefix, key) {
        ("", key) => key.to_owned(),
        (prefix, "") => prefix.to_owned(),
        (prefix, key) => format!("{prefix}.{key}"),
    }
}

/// What a key takes, where serde's message names a type of Rust.
fn in_words_of_toml(message: &str) -> String {
    let takes = match message.rsplit("expected ").next().unwrap_or_default() {
        "u64" | "usize" => "a whole number, 0 or more",
        "f64" => "a number",
        "a boolean" => "true or false",
        "a string" | "path string" | "string only" => "text in quotes",
        "an array of length 2" | "fewer elements in array" => "a list of 2 numbers",
        expected if expected.starts_with("struct ") => "a table",
        // A table where the name of a variant is due.
        expected if expected.starts_with("wanted exactly 1 element") => "text in quotes",
        _ => return message.to_owned(),
    };
    format!("must be {takes}")
}

pub fn wrong(key: &str, value: Option<&Value>, message: &str) -> Error {
    let error = Error::config(message).key(key);
    match value {
        Some(value) => error.value(value),
        None => error,
    }
}

/// `, did you mean x?` for a name near enough, else the list of what there is.
fn suggestion(unknown: &str, known: &[&str]) -> String {
    let nearest = known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(unknown, name), name))
        .min();
    match nearest {
        Some((distance, name)) if distance <= 3 && distance < name.len() => {
            format!(", did you mean {name}?")
        }
        Some(_) => format!(", there are: {}", known.join(", ")),
        None => String::new(),
    }
}

/// The value at `key`; `betas[1]` is an element of a list.
fn find(value: &Value, key: &str) -> Option<Value> {
    let at = |value: &'_ Value, part: &str| match part.strip_suffix(']') {
        Some(index) => value.get(index.parse::<usize>().ok()?).cloned(),
        None => value.get(part).cloned(),
    };
    key.split(['.', '['])
        .try_fold(value.clone(), |value, part| at(&value, part))
}

fn assigned_key(assignment: &str) -> &str {
    assignment
        .split_once('=')
        .map_or(assignment, |(key, _)| key)
        .trim()
}

fn no_assignment(place: String) -> Error {
    Error::config("must be KEY=VALUE, for example train.steps=500").at(place)
}

/// Lays `key.sub = value` over the table; a value that is no TOML is taken as text.
/// No key of a configuration needs quotes, so that a split at its dots is all of its grammar.
fn assign(table: &mut Table, assignment: &str) -> Result<(), Error> {
    let place = format!("--set {assignment}");
    let Some((key, value)) = assignment.split_once('=') else {
        return Err(no_assignment(place));
    };
    let (key, value) = (key.trim(), value.trim());
    let parsed = format!("value = {value}")
        .parse::<Table>()
        .ok()
        .filter(|parsed| parsed.len() == 1);
    let value = parsed
        .and_then(|mut parsed| parsed.remove("value"))
        .unwrap_or_else(|| Value::String(value.to_owned()));
    let mut parts: Vec<&str> = key.split('.').collect();
    let last = parts.pop().unwrap_or_default();
    if last.is_empty() || parts.iter().any(|part| part.is_empty()) {
        return Err(no_assignment(place));
    }
    let mut at = table;
    for part in parts {
        let entry = at.entry(part).or_insert_with(|| Value::Table(Table::new()));
        at = match entry {
            Value::Table(table) => table,
            other => {
                return Err(Error::config("is not a table")
                    .at(place)
                    .key(part)
                    .value(other));
            }
        };
    }
    at.insert(last.to_owned(), value);
    Ok(())
}
