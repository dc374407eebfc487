//! Whether two configurations are the same, and if not, which key differs.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use crate::{Config, Error, ErrorKind};

impl Config {
    /// Every key in full with its value, `model.n_layers` and `2`.
    ///
    /// # Errors
    /// If the configuration has no TOML form.
    pub fn keys(&self) -> Result<BTreeMap<String, String>, Error> {
        let table = Table::try_from(self)
            .map_err(|error| Error::because(ErrorKind::Config, "config", error))?;
        let mut keys = BTreeMap::new();
        collect_keys("", &table, &mut keys);
        Ok(keys)
    }

    /// Checks that `other` is this configuration, the one of a run that was begun. Where the files
    /// of its task and of the model of `model.from` lie may differ: what they are is known from their
    /// bytes.
    ///
    /// # Errors
    /// Names the first key that differs, with both values.
    ///
    /// ```
    /// use headlight_run::Config;
    ///
    /// let text = r#"
    ///     task = { name = "repeat" }
    ///     model = { n_layers = 2, n_heads = 4, d_model = 64, n_ctx = 64 }
    ///     train = { steps = 10, batch_size = 8, learning_rate = 1e-3 }
    /// "#;
    /// let begun = Config::parse(text, "a.toml", &[])?;
    /// let longer = Config::parse(text, "a.toml", &["train.steps=20".to_owned()])?;
    /// let error = begun.check_same(&longer).unwrap_err().to_string();
    /// assert!(error.starts_with("config: train.steps = 20: the run was begun with 10"));
    /// # Ok::<(), headlight_run::Error>(())
    /// ```
    pub fn check_same(&self, other: &Self) -> Result<(), Error> {
        let table = |config: &Self| {
            Table::try_from(config)
                .map_err(|error| Error::because(ErrorKind::Config, "config", error))
        };
        let (mut begun, mut now) = (self.clone(), other.clone());
        begun.task.forget_places(&mut now.task);
        // Which model it is is known from its hash.
        begun.model.from.clone_from(&now.model.from);
        let Some((key, [begun, now])) = difference("", &table(&begun)?, &table(&now)?) else {
            return Ok(());
        };
        let shown = |value: Option<Value>| {
            value.map_or_else(|| "nothing".to_owned(), |value| value.to_string())
        };
        let message = format!(
            "the run was begun with {}; a changed configuration is another run: choose another --out",
            shown(begun)
        );
        Err(Error::config(message).key(key).value(shown(now)))
    }
}

fn collect_keys(prefix: &str, table: &Table, keys: &mut BTreeMap<String, String>) {
    for (key, value) in table {
        match value {
            Value::Table(inner) => collect_keys(&format!("{prefix}{key}."), inner, keys),
            _ => {
                keys.insert(format!("{prefix}{key}"), value.to_string());
            }
        }
    }
}

/// The first key, in full, at which two tables differ, and what each has there.
pub fn difference(prefix: &str, a: &Table, b: &Table) -> Option<(String, [Option<Value>; 2])> {
    let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    keys.into_iter().find_map(|key| {
        let full = if prefix.is_empty() {
            key.clone()
        } else {
            format!("{prefix}.{key}")
        };
        match (a.get(key), b.get(key)) {
            (Some(Value::Table(a)), Some(Value::Table(b))) => difference(&full, a, b),
            (a, b) => (a != b).then(|| (full, [a.cloned(), b.cloned()])),
        }
    })
}
