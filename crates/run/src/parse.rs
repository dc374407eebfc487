//! From TOML text and `--set` to a checked configuration: nothing unknown passes.

use std::path::Path;

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::{Config, InputError, TaskConfig, capped::read_capped, preset, token_budget};

/// The largest configuration file that is read. TOML of many small values takes 100 times its bytes
/// in memory.
const MOST_BYTES: u64 = 128 << 10;

/// An error and the key it is about.
pub type KeyError = (InputError, String);

impl Config {
    /// Reads `path`, lays the assignments of `--set` over it (`"train.steps=500"`) and checks all
    /// of it.
    ///
    /// # Errors
    /// Names the file, the key and the value that are wrong, and the nearest known key.
    pub fn load(path: &Path, assignments: &[String]) -> Result<Self, InputError> {
        let text = String::from_utf8(read_capped(path, MOST_BYTES)?)
            .map_err(|_| InputError::new(path.display(), "is not UTF-8"))?;
        Self::parse(&text, &path.display().to_string(), assignments)
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
    /// # Ok::<(), headlight_run::InputError>(())
    /// ```
    pub fn parse(text: &str, place: &str, assignments: &[String]) -> Result<Self, InputError> {
        let mut table: Table = text.parse().map_err(|error: toml::de::Error| {
            let line = error
                .span()
                .map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            InputError::new(format_args!("{place}:{line}"), error.message())
        })?;
        for assignment in assignments {
            assign(&mut table, assignment)?;
        }
        // An error about a key that --set wrote is an error of that argument.
        Self::from_table(table).map_err(|(error, key)| {
            let culprit = assignments
                .iter()
                .rev()
                .find(|assignment| assigned_key(assignment) == key);
            error.at(culprit.map_or_else(
                || place.to_owned(),
                |assignment| format!("--set {assignment}"),
            ))
        })
    }

    fn from_table(mut table: Table) -> Result<Self, KeyError> {
        if let Some(Value::Table(model)) = table.get_mut("model") {
            preset::expand(model)?;
        }
        if let Some(Value::Table(train)) = table.get_mut("train") {
            token_budget::allow_without_steps(train);
        }
        let task = match table.remove("task") {
            Some(Value::Table(task)) => Some(parse_task(task)?),
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
        if let Some(value) = task.and_then(|task| Value::try_from(task).ok()) {
            table.insert("task".to_owned(), value);
        }
        let mut config: Self = parse_strictly("", table)?;
        config.resolve_steps();
        config.validate().map_err(|error| {
            let key = error.key_name().unwrap_or_default().to_owned();
            (error, key)
        })?;
        Ok(config)
    }

    /// The configuration as TOML with every default filled in.
    ///
    /// # Errors
    /// If a number has no TOML form.
    pub fn to_toml(&self) -> Result<String, InputError> {
        toml::to_string_pretty(self).map_err(|error| InputError::new("config", error))
    }
}

fn parse_task(mut task: Table) -> Result<TaskConfig, KeyError> {
    let name = match task.remove("name") {
        Some(Value::String(name)) => name,
        other => {
            return Err(wrong(
                "task.name",
                other.as_ref(),
                &format!("must be one of {}", TaskConfig::NAMES.join(", ")),
            ));
        }
    };
    TaskConfig::parse(&name, task)
}

/// An error about `task.name`.
pub fn unknown_task(name: &str, known: &[&str]) -> KeyError {
    let message = format!("unknown task{}", suggestion(name, known));
    wrong("task.name", Some(&Value::String(name.to_owned())), &message)
}

/// An error about a value that is not among the known ones.
pub fn unknown_value(key: &str, value: &Value, known: &[&str]) -> KeyError {
    let message = format!(
        "unknown value{}",
        suggestion(value.as_str().unwrap_or_default(), known)
    );
    wrong(key, Some(value), &message)
}

/// Deserializes a table; the error names the full key, its value and, for an unknown key, the
/// nearest known one.
pub fn parse_strictly<T: DeserializeOwned>(prefix: &str, table: Table) -> Result<T, KeyError> {
    let lookup = Value::Table(table.clone());
    serde_path_to_error::deserialize(Value::Table(table)).map_err(|error| {
        let parent = error.path().to_string();
        let parent = if parent == "." { String::new() } else { parent };
        let full = |key: &str| {
            [prefix, key]
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join(".")
        };
        let message = error
            .inner()
            .message()
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned();
        let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
        match quoted.split_first() {
            Some((unknown, known)) if message.starts_with("unknown field") => {
                // The path may or may not end in the unknown key itself.
                let key = match parent.rsplit('.').next() {
                    Some(last) if last == *unknown => parent,
                    _ if parent.is_empty() => (*unknown).to_owned(),
                    _ => format!("{parent}.{unknown}"),
                };
                let value = find(&lookup, &key);
                wrong(
                    &full(&key),
                    value.as_ref(),
                    &format!("unknown key{}", suggestion(unknown, known)),
                )
            }
            Some((missing, _)) if message.starts_with("missing field") => {
                let key = if parent.is_empty() {
                    (*missing).to_owned()
                } else {
                    format!("{parent}.{missing}")
                };
                wrong(&full(&key), None, "is missing")
            }
            Some((unknown, known)) if message.starts_with("unknown variant") => {
                let message = format!("unknown value{}", suggestion(unknown, known));
                wrong(&full(&parent), find(&lookup, &parent).as_ref(), &message)
            }
            _ => wrong(
                &full(&parent),
                find(&lookup, &parent).as_ref(),
                &in_words_of_toml(&message),
            ),
        }
    })
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

fn wrong(key: &str, value: Option<&Value>, message: &str) -> KeyError {
    let error = InputError::new("config", message).key(key);
    let error = match value {
        Some(value) => error.value(value),
        None => error,
    };
    (error, key.to_owned())
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

/// Lays `key.sub = value` over the table; a value that is no TOML is taken as text.
fn assign(table: &mut Table, assignment: &str) -> Result<(), InputError> {
    let place = format!("--set {assignment}");
    let Some((key, value)) = assignment.split_once('=') else {
        return Err(InputError::new(
            place,
            "must be KEY=VALUE, for example train.steps=500",
        ));
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
        return Err(InputError::new(
            place,
            "must be KEY=VALUE, for example train.steps=500",
        ));
    }
    let mut at = table;
    for part in parts {
        let entry = at.entry(part).or_insert_with(|| Value::Table(Table::new()));
        at = match entry {
            Value::Table(table) => table,
            other => {
                return Err(InputError::new(place, "is not a table")
                    .key(part)
                    .value(other));
            }
        };
    }
    at.insert(last.to_owned(), value);
    Ok(())
}
