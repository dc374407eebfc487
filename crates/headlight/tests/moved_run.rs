//! A run says the same wherever it lies and whatever became of the data that it was made from.

mod common;

use std::{collections::BTreeMap, fs, path::Path};

use common::{Workshop, assert_ok, assert_one_line, json};

/// The part of a configuration that is the same for every task.
const MODEL_AND_TRAINING: &str = r#"
[model]
n_layers = 2
n_heads = 2
d_model = 16
n_ctx = 24
feed_forward = "relu"
[train]
steps = 12
batch_size = 4
learning_rate = 1e-2
shards = 1
[log]
every = 4
patterns_every = 6
[checkpoint]
every = 6
"#;

const TEXT: &str = "The keeper lit the lamp. The lamp was bright, and the sea was dark.\n\
    The keeper saw the sea, and the sea saw the lamp; nobody saw the keeper.\n";

/// A workshop with a run called `run` of this task.
fn trained(task: &str) -> Workshop {
    let workshop = Workshop::new();
    // The last tenth holds windows too.
    workshop.write("sea.txt", &TEXT.repeat(12));
    let config = workshop.write("a.toml", &format!("[task]\n{task}\n{MODEL_AND_TRAINING}"));
    assert_ok(&workshop.train(&config, &["--out", "run"]));
    workshop
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (from, to) = {
            let entry = entry.unwrap();
            (entry.path(), to.join(entry.file_name()))
        };
        if from.is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(from, to).unwrap();
        }
    }
}

/// The JSON of every verb but `serve` and `learn`, by the verb, and every exported file.
fn told(workshop: &Workshop, prompt: &str, has_relations: bool) -> BTreeMap<String, Vec<u8>> {
    let mut told = BTreeMap::new();
    let mut verbs = vec![
        vec!["heads"],
        vec!["heads", "--at", "best"],
        vec!["pattern"],
        vec!["pattern", "--prompt", prompt],
        vec!["ablate"],
        vec!["paths"],
        vec!["predict", "--prompt", prompt],
        vec!["swap"],
        vec!["lens"],
        vec!["circuits"],
        vec!["circuit", "--pairs", "key"],
        vec!["why", "--head", "L0H1"],
        vec!["detect"],
        vec!["offsets"],
        vec!["phases"],
        vec!["generate"],
        vec!["generate", "--prompt", prompt],
        vec!["curves"],
        vec!["scores"],
        vec!["report"],
        vec!["evaluate"],
    ];
    if has_relations {
        verbs.push(vec!["relations"]);
    }
    for verb in verbs {
        let output = workshop.inspect("run", &[&verb[..], &["--json"]].concat());
        assert_ok(&output);
        told.insert(verb.join(" "), output.stdout);
    }
    let patched = workshop.inspect("run", &["patch", "--json"]);
    told.insert(
        "patch".to_owned(),
        [patched.stdout, patched.stderr].concat(),
    );
    let export = workshop.inspect("run", &["export", "--to", "exported"]);
    assert_ok(&export);
    for entry in fs::read_dir(workshop.path("exported")).unwrap() {
        let path = entry.unwrap().path();
        told.insert(path.display().to_string(), fs::read(&path).unwrap());
    }
    fs::remove_dir_all(workshop.path("exported")).unwrap();
    let in_workshop = workshop.0.path().display().to_string();
    let named = |(name, bytes): (String, Vec<u8>)| (name.replace(&in_workshop, ""), bytes);
    told.into_iter().map(named).collect()
}

#[track_caller]
fn assert_same(before: &BTreeMap<String, Vec<u8>>, after: &BTreeMap<String, Vec<u8>>) {
    assert!(before.keys().eq(after.keys()), "{:?}", after.keys());
    for (verb, bytes) in before {
        assert!(bytes == &after[verb], "{verb} says something else");
    }
}

/// Another workshop with the run alone.
fn moved(workshop: &Workshop) -> Workshop {
    let elsewhere = Workshop::new();
    copy(&workshop.path("run"), &elsewhere.path("run"));
    elsewhere
}

#[test]
fn a_run_of_a_text_says_the_same_without_its_text_and_with_another_one() {
    for tokens in ["\"characters\"", "{ train = \"bpe\", size = 270 }"] {
        let task = format!("name = \"text\"\npath = \"sea.txt\"\ntokens = {tokens}");
        let workshop = trained(&task);
        let before = told(&workshop, "the sea", false);
        // Other letters, so that every token would have another id.
        workshop.write("sea.txt", &TEXT.replace("The", "¡A¿").repeat(20));
        assert_same(&before, &told(&workshop, "the sea", false));
        fs::remove_file(workshop.path("sea.txt")).unwrap();
        assert_same(&before, &told(&workshop, "the sea", false));
        assert_same(&before, &told(&moved(&workshop), "the sea", false));
    }
}

#[test]
fn a_tokenizer_is_the_runs_own() {
    let workshop =
        trained("name = \"text\"\npath = \"sea.txt\"\ntokens = { train = \"bpe\", size = 264 }");
    fs::copy(
        workshop.path("run/tokenizer.json"),
        workshop.path("given.json"),
    )
    .unwrap();
    let text = fs::read_to_string(workshop.path("a.toml")).unwrap();
    let text = text.replace("{ train = \"bpe\", size = 264 }", "\"given.json\"");
    let config = workshop.write("given.toml", &text);
    assert_ok(&workshop.train(&config, &["--out", "run", "--overwrite"]));
    let before = told(&workshop, "the sea", false);
    fs::remove_file(workshop.path("given.json")).unwrap();
    fs::remove_file(workshop.path("sea.txt")).unwrap();
    assert_same(&before, &told(&workshop, "the sea", false));
}

#[test]
fn generated_tasks_say_the_same_elsewhere() {
    let grammar = trained("name = \"grammar\"");
    let before = told(&grammar, "the cat", true);
    assert_same(&before, &told(&moved(&grammar), "the cat", true));

    let repeat = trained("name = \"repeat\"\nvocabulary = 12\nprefix = [0, 4]\nblock = [4, 8]");
    let before = told(&repeat, "a b c", false);
    assert_same(&before, &told(&moved(&repeat), "a b c", false));
}

#[test]
fn another_task_needs_its_own_data() {
    let workshop = trained("name = \"text\"\npath = \"sea.txt\"\ntokens = \"bytes\"");
    let on = ["evaluate", "--json", "--on", "a.toml"];
    let there = json(&workshop.inspect("run", &on));
    let own = json(&workshop.inspect("run", &["evaluate", "--json"]));
    assert_eq!(there["loss"], own["loss"]);
    fs::remove_file(workshop.path("sea.txt")).unwrap();
    assert_one_line(&workshop.inspect("run", &on), 2, &["sea.txt", "task.path"]);
}

#[test]
fn a_damaged_file_of_sequences_is_named_with_its_line() {
    let workshop = trained("name = \"repeat\"\nvocabulary = 12\nprefix = [0, 4]\nblock = [4, 8]");
    let path = workshop.path("run/validation.jsonl");
    let rows = fs::read_to_string(&path).unwrap();
    let second = rows.lines().nth(1).unwrap();
    for (line, message) in [
        ("{", "validation.jsonl:2: EOF while parsing"),
        (
            "{\"tokens\":[1,2,3]}",
            "validation.jsonl:2: tokens: are 3, in the first line 25",
        ),
        (
            "{\"tokens\":[1,12]}",
            "validation.jsonl:2: 12 is no token; the run has 12",
        ),
        (
            "{\"tokens\":[1,2],\"scored\":[1]}",
            "validation.jsonl:2: 1 is no input",
        ),
        (
            "{\"tokens\":[1,2],\"relations\":[[\"a\",2,0]]}",
            "validation.jsonl:2: relations: 2 is no position",
        ),
        (
            "{\"tokens\":[1,2],\"floor\":[]}",
            "validation.jsonl:2: 0 losses for 1 targets",
        ),
        (
            "{\"tokens\":[1,2],\"colour\":1}",
            "validation.jsonl:2: unknown field `colour`",
        ),
    ] {
        fs::write(&path, rows.replacen(second, line, 1)).unwrap();
        assert_one_line(&workshop.inspect("run", &["evaluate"]), 2, &[message]);
    }
    fs::write(&path, "{\"tokens\":[1,2,3],\"relations\":[[\"a\",1,0]]}\n").unwrap();
    let too_few = workshop.inspect("run", &["relations"]);
    assert_one_line(&too_few, 2, &["run: has one validation sequence"]);
    fs::write(&path, "").unwrap();
    assert_one_line(
        &workshop.inspect("run", &["phases"]),
        2,
        &["has no sequences"],
    );
    // What needs no sequence of the task does not read them.
    assert_ok(&workshop.inspect("run", &["pattern"]));
}
