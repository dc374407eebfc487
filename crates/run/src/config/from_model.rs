//! `model.from`: a model of another tool, which `[model]` takes its sizes and parts from.

use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::{
    difference::difference,
    parse::{joined, wrong},
};
use crate::{Error, ErrorKind, ModelConfig};

/// How a program reads the model that `model.from` names: its sizes and parts, with `from_sha256`.
pub type ReadModel = fn(&Path) -> Result<ModelConfig, Error>;

/// Tokens in a sequence where nobody says how many: the models of others take thousands.
const MOST_N_CTX: usize = 128;

/// Puts the keys of the model of `model.from` where `[model]` has none of its own, and gives that
/// model, cut to `model.n_ctx`.
///
/// # Errors
/// If the model cannot be read, or takes no sequence so long.
pub fn expand(model: &mut Table, read: ReadModel) -> Result<Option<ModelConfig>, Error> {
    let path = match model.get("from") {
        None => return Ok(None),
        Some(Value::String(path)) => PathBuf::from(path),
        Some(other) => return Err(wrong("model.from", Some(other), "must be text in quotes")),
    };
    if let Some(preset) = model.get("preset") {
        let message = "does not go with model.from, whose model has its own sizes and parts";
        return Err(wrong("model.preset", Some(preset), message));
    }
    let mut source = read(&path).map_err(|error| {
        let cannot = Error::of(error.kind(), "config", &error).key("model.from");
        cannot.caused_by(error)
    })?;
    source.from = Some(path);
    let longest = source.n_ctx;
    source.n_ctx = match model.get("n_ctx") {
        None => longest.min(MOST_N_CTX),
        Some(asked) => match asked.as_integer().and_then(|asked| asked.try_into().ok()) {
            Some(asked) if asked <= longest => asked,
            Some(_) => {
                let message = format!("is longer than the model of model.from takes, {longest}");
                return Err(wrong("model.n_ctx", Some(asked), &message));
            }
            // It is refused as it would be of any model.
            None => longest,
        },
    };
    // A window that reaches over every sequence computes the same.
    source.window = source.window.map(|window| window.min(source.n_ctx));
    for (key, value) in table_of(&source)? {
        model.entry(key).or_insert(value);
    }
    Ok(Some(source))
}

/// Checks that `model` is the model of `model.from`.
///
/// # Errors
/// Names the first key that contradicts it, with both values.
pub fn check_same(model: &ModelConfig, source: &ModelConfig) -> Result<(), Error> {
    let Some((key, [asked, has])) = difference("", &table_of(model)?, &table_of(source)?) else {
        return Ok(());
    };
    let has = has.map_or_else(|| "none".to_owned(), |has| has.to_string());
    let message = format!("the model of model.from has {has}; leave the key out");
    Err(wrong(&joined("model", &key), asked.as_ref(), &message))
}

fn table_of(model: &ModelConfig) -> Result<Table, Error> {
    Table::try_from(model).map_err(|error| Error::because(ErrorKind::Config, "[model]", error))
}
