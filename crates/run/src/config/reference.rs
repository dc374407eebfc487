//! The reference of configurations, made from their schema: what the keys' own documentation says,
//! in one page.

use std::fmt::Write as _;

use serde_json::Value;

use super::schema::{properties, schema};

const HEAD: &str = "# Configuration

<!-- Written by `cargo run --example reference > docs/configuration.md`; do not edit. -->

A run is told what to do by one TOML file: `train CONFIG.toml`, any key changed by `--set table.key=value`. Unknown keys
and impossible values are refused before anything is written. `train --schema` prints this page as a JSON schema, for
editors that complete TOML. The run's own `config.toml` has every key in force.
";

/// The tables in the order in which people write them.
const TABLES: [(&str, &str); 5] = [
    ("model", "ModelConfig"),
    ("train", "TrainConfig"),
    ("interchange", "InterchangeConfig"),
    ("log", "LogConfig"),
    ("checkpoint", "CheckpointConfig"),
];

/// `docs/configuration.md`: every key with its type, its default and its meaning.
#[must_use]
pub fn reference() -> String {
    let schema = schema();
    let defs = &schema["$defs"];
    let mut page = HEAD.to_owned();
    page += "\n## At the top\n\n";
    let top = properties(&schema).filter(|(key, _)| *key == "seed");
    rows(&mut page, top, &schema, defs);
    for (table, def) in TABLES {
        let _ = write!(page, "\n## `[{table}]`\n\n");
        rows(&mut page, properties(&defs[def]), &defs[def], defs);
    }
    page +=
        "\n## `[task]`\n\nThe key `name` chooses the task; the other keys are the task's own.\n";
    for task in defs["TaskConfig"]["oneOf"].as_array().into_iter().flatten() {
        let name = task["properties"]["name"]["const"]
            .as_str()
            .unwrap_or_default();
        let _ = write!(page, "\n### `name = \"{name}\"`\n\n{}\n", text(task));
        let own = task["$ref"]
            .as_str()
            .map_or(task, |path| definition(path, defs));
        if properties(own).any(|(key, _)| key != "name") {
            page.push('\n');
            rows(
                &mut page,
                properties(own).filter(|(key, _)| *key != "name"),
                own,
                defs,
            );
        }
    }
    page
}

/// A table of keys; those of `table` that are required have no default.
fn rows<'a>(
    page: &mut String,
    keys: impl Iterator<Item = (&'a String, &'a Value)>,
    table: &Value,
    defs: &Value,
) {
    *page += "| key | type | default | meaning |\n|---|---|---|---|\n";
    let required = |key: &str| {
        table["required"]
            .as_array()
            .is_some_and(|keys| keys.iter().any(|known| known == key))
    };
    for (key, value) in keys {
        let default = match &value["default"] {
            _ if required(key) => "required".to_owned(),
            Value::Null => String::new(),
            default => format!("`{default}`"),
        };
        let _ = writeln!(
            page,
            "| `{key}` | {} | {default} | {} |",
            kind(value, defs),
            meaning(value, defs)
        );
    }
}

/// What type of value a key takes.
fn kind(value: &Value, defs: &Value) -> String {
    if let Some(path) = value["$ref"].as_str() {
        return kind(definition(path, defs), defs);
    }
    let of_list = |items: &Value| {
        if items.is_null() {
            String::new()
        } else {
            format!(" of {}s", kind(items, defs))
        }
    };
    let types: Vec<&str> = match &value["type"] {
        Value::Array(types) => types
            .iter()
            .filter_map(Value::as_str)
            .filter(|name| *name != "null")
            .collect(),
        name => name.as_str().into_iter().collect(),
    };
    match types.first() {
        Some(&"array") => "list".to_owned() + &of_list(&value["items"]),
        Some(&"object") => "table".to_owned(),
        Some(name) => (*name).to_owned(),
        None => kinds(value, defs),
    }
}

/// What types of value a key takes that has several. One that may be left out is null then.
fn kinds(value: &Value, defs: &Value) -> String {
    let forms = value["anyOf"].as_array().into_iter().flatten();
    let names: Vec<String> = forms
        .filter(|form| form["type"] != "null")
        .map(|form| kind(form, defs))
        .collect();
    if names.is_empty() {
        "string".to_owned()
    } else {
        names.join(" or ")
    }
}

/// What a key means, and what each of its values does where it has few.
fn meaning(value: &Value, defs: &Value) -> String {
    let of_values = value["$ref"]
        .as_str()
        .map_or(value, |path| definition(path, defs));
    let described = of_values["oneOf"].as_array().into_iter().flatten();
    let described =
        described.filter_map(|one| Some(format!("`{}`: {}", one["const"].as_str()?, text(one))));
    let listed = of_values["enum"].as_array().into_iter().flatten();
    let listed = listed.filter_map(|one| Some(format!("`{}`", one.as_str()?)));
    let values: Vec<String> = described.chain(listed).collect();
    [text(value), values.join(" ")]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// A description as one line that can stand in a table.
fn text(value: &Value) -> String {
    let text = value["description"].as_str().unwrap_or_default();
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace('|', "\\|")
}

/// The definition that `#/$defs/Name` names.
fn definition<'a>(path: &str, defs: &'a Value) -> &'a Value {
    &defs[path.rsplit('/').next().unwrap_or_default()]
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_in_docs_is_this_one() {
        let path =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
        let written = std::fs::read_to_string(path).unwrap();
        let command = "cargo run --example reference > docs/configuration.md";
        assert!(
            written.trim_end() == super::reference().trim_end(),
            "docs/configuration.md is old; run: {command}"
        );
    }
}
