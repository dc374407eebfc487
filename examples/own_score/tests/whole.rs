//! The example as a program: its score stands in every table, file and page, and its verb is one.

use std::{
    fs,
    process::{Command, Output},
};

use serde_json::Value;
use tempfile::TempDir;

const CONFIG: &str = "
    seed = 1
    task = { name = 'repeat', vocabulary = 12, prefix = [0, 2], block = [3, 5] }
    model = { n_layers = 2, n_heads = 2, d_model = 16, n_ctx = 16 }
    train = { steps = 4, batch_size = 4, learning_rate = 1e-3, shards = 1 }
    log = { every = 2, patterns_every = 4 }
";

const NAME: &str = "bigram induction";

fn own_score(folder: &TempDir, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_own_score"))
        .args(arguments)
        .current_dir(folder.path())
        .output()
        .unwrap()
}

#[track_caller]
fn done(output: Output) -> String {
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{error}");
    String::from_utf8(output.stdout).unwrap()
}

fn trained() -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("a.toml"), CONFIG).unwrap();
    done(own_score(&folder, &["train", "a.toml", "--out", "run"]));
    folder
}

fn json(folder: &TempDir, arguments: &[&str]) -> Value {
    let arguments = [&["inspect", "run"], arguments, &["--json"]].concat();
    serde_json::from_str(&done(own_score(folder, &arguments))).unwrap()
}

/// The score by its definition, over the patterns that the program writes.
fn by_hand(folder: &TempDir, head: &str) -> f64 {
    let probe = fs::read_to_string(folder.path().join("run/probe.jsonl")).unwrap();
    let names: Vec<String> =
        serde_json::from_slice(&fs::read(folder.path().join("run/vocabulary.json")).unwrap())
            .unwrap();
    let (mut sum, mut queries) = (0.0, 0);
    for line in probe.lines().take(64) {
        let row: Value = serde_json::from_str(line).unwrap();
        let tokens: Vec<u64> = serde_json::from_value(row["tokens"].clone()).unwrap();
        let x = &tokens[..tokens.len() - 1];
        let words: Vec<&str> = x
            .iter()
            .map(|&token| names[token as usize].as_str())
            .collect();
        let pattern = json(
            folder,
            &["pattern", "--head", head, "--prompt", &words.join(" ")],
        );
        for q in 0..x.len() {
            let targets = (2..=q).filter(|&j| x[j - 1] == x[q] && x[j - 2] == x[q - 1]);
            let weights: Vec<f64> = targets
                .map(|j| pattern["pattern"][q][j].as_f64().unwrap())
                .collect();
            if !weights.is_empty() {
                sum += weights.iter().sum::<f64>();
                queries += 1;
            }
        }
    }
    sum / f64::from(queries)
}

#[test]
fn the_score_is_what_its_formula_says_with_null_ceiling_and_interval() {
    let folder = trained();
    let heads = json(&folder, &["heads"]);
    let score = &heads[3]["scores"][NAME];
    let number = |name: &str| score[name].as_f64().unwrap();
    let expected = by_hand(&folder, "L1H1");
    assert!(
        (number("value") - expected).abs() < 1e-4,
        "{score}, {expected}"
    );
    assert!(number("low") <= number("value") && number("value") <= number("high"));
    assert!(0.0 < number("null") && number("null") < 1.0);
    assert_eq!(number("ceiling"), 1.0);
    // It asks tokens, so a shuffled context is a null too.
    assert!(heads[3]["shuffled"][NAME].is_object(), "{}", heads[3]);
}

#[test]
fn the_score_stands_in_every_table_file_and_page() {
    let folder = trained();
    for verb in [
        &["heads"][..],
        &["scores"],
        &["offsets"],
        &["positions", "--json"],
    ] {
        let shown = done(own_score(&folder, &[&["inspect", "run"], verb].concat()));
        assert!(shown.contains("bigram"), "{verb:?}: {shown}");
    }
    let rows = fs::read_to_string(folder.path().join("run/heads.jsonl")).unwrap();
    assert!(rows.lines().all(|row| row.contains(NAME)), "{rows}");
    let page = fs::read_to_string(folder.path().join("run/report.html")).unwrap();
    assert!(page.contains(NAME) && page.contains("whose last two tokens stood before"));
}

#[test]
fn a_run_of_another_program_is_scored_when_it_is_looked_at() {
    let folder = trained();
    for file in ["heads.jsonl", "summary.json"] {
        let path = folder.path().join("run").join(file);
        let text = fs::read_to_string(&path).unwrap();
        let mut stripped = String::new();
        for row in serde_json::Deserializer::from_str(&text).into_iter::<Value>() {
            let mut row = row.unwrap();
            strip(&mut row);
            stripped += &row.to_string();
            stripped.push('\n');
        }
        fs::write(path, stripped).unwrap();
    }
    let before = json(&folder, &["scores"]);
    assert!(!before.to_string().contains(NAME));
    let heads = json(&folder, &["heads"]);
    assert!(heads[0]["scores"][NAME].is_object(), "{heads}");
    let shown = done(own_score(&folder, &["inspect", "run", "heads"]));
    assert!(shown.contains("bigram"), "{shown}");
}

/// Takes the score out of a row.
fn strip(row: &mut Value) {
    match row {
        Value::Object(fields) => {
            fields.remove(NAME);
            fields.values_mut().for_each(strip);
        }
        Value::Array(elements) => elements.iter_mut().for_each(strip),
        _ => {}
    }
}

#[test]
fn the_verb_is_one_like_the_others() {
    let folder = trained();
    let prompt = ["follow", "--prompt", "a b c a b"];
    let heads = json(&folder, &prompt);
    let followed = &heads[2];
    let pattern = json(
        &folder,
        &["pattern", "--head", "L1H0", "--prompt", "a b c a b"],
    );
    let last: Vec<f64> = serde_json::from_value(pattern["pattern"][4].clone()).unwrap();
    let key = followed["key"].as_u64().unwrap() as usize;
    assert!(
        last.iter().all(|weight| *weight <= last[key]),
        "{last:?}, {key}"
    );
    assert_eq!(followed["token"], ["a", "b", "c", "a", "b"][key]);
    let shown = done(own_score(
        &folder,
        &[&["inspect", "run"], &prompt[..]].concat(),
    ));
    assert_eq!(shown.lines().count(), 5, "{shown}");
    done(own_score(
        &folder,
        &[
            "inspect", "run", "follow", "--prompt", "a b", "--csv", "a.csv",
        ],
    ));
    let csv = fs::read_to_string(folder.path().join("a.csv")).unwrap();
    assert!(csv.starts_with("head,key,token,weight\nL0H0,"), "{csv}");
    let help = done(own_score(&folder, &["inspect", "--help"]));
    assert!(
        help.contains("follow       The key that each head looks at most"),
        "{help}"
    );
    let wrong = own_score(
        &folder,
        &["inspect", "run", "follow", "--prompt", "nothing"],
    );
    assert_eq!(wrong.status.code(), Some(2));
    let wrong = own_score(&folder, &["inspect", "follow", "run"]);
    let error = String::from_utf8(wrong.stderr).unwrap();
    assert!(
        error.contains("RUN stands before the verb: own_score inspect run follow"),
        "{error}"
    );
}
