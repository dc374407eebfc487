//! The JSON schema of a configuration, for editors that complete and check TOML.

use serde_json::{Map, Value, json};

use super::preset;
use crate::Config;

/// The schema of [`Config`] as users write it: with `model.preset`, and with `train.tokens` in
/// place of `train.steps`.
#[must_use]
pub fn schema() -> Value {
    let mut schema = schemars::schema_for!(Config).to_value();
    let model = &mut schema["$defs"]["ModelConfig"];
    model["properties"]["preset"] = json!({
        "description": "A known architecture, whose keys the others override; left out: none.",
        "type": "string",
        "enum": preset::names(),
    });
    one_of_required(
        model,
        &["n_layers", "n_heads", "d_model", "n_ctx"],
        &["preset", "from"],
    );
    one_of_required(&mut schema["$defs"]["TrainConfig"], &["steps"], &["tokens"]);
    schema
}

/// Takes `keys` out of what is required: they are, unless there is one of `others`.
fn one_of_required(table: &mut Value, keys: &[&str], others: &[&str]) {
    let Some(table) = table.as_object_mut() else {
        return;
    };
    if let Some(Value::Array(required)) = table.get_mut("required") {
        required.retain(|key| !keys.iter().any(|known| key == known));
    }
    let mut any_of = vec![json!({ "required": keys })];
    for other in others {
        any_of.push(json!({ "required": [other] }));
    }
    table.insert("anyOf".to_owned(), Value::Array(any_of));
}

/// The keys of a table of the schema.
pub fn properties(table: &Value) -> impl Iterator<Item = (&String, &Value)> {
    table["properties"]
        .as_object()
        .into_iter()
        .flat_map(Map::iter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_and_every_task_is_there() {
        let schema = schema();
        let tables: Vec<&String> = properties(&schema).map(|(name, _)| name).collect();
        assert_eq!(
            tables,
            [
                "checkpoint",
                "interchange",
                "log",
                "model",
                "seed",
                "task",
                "train"
            ]
        );
        let tasks = schema["$defs"]["TaskConfig"]["oneOf"].as_array().unwrap();
        assert_eq!(tasks.len(), crate::TaskConfig::NAMES.len());
        assert!(
            schema["$defs"]["ModelConfig"]["properties"]["preset"]["enum"]
                .as_array()
                .unwrap()
                .len()
                > 2
        );
    }
}
