//! Models that other tools made open like runs: a folder of `transformers`, a GGUF file.

mod common;

use std::{fs, path::Path};

use common::{Workshop, assert_ok};
use serde_json::{Value, json};

/// A run of a Llama, and the folder that it exports.
struct Exported {
    workshop: Workshop,
}

impl Exported {
    fn new() -> Self {
        let text = "
            seed = 0
            task = { name = 'repeat', vocabulary = 12, prefix = [0, 2], block = [3, 5] }
            model = { preset = 'llama', n_layers = 2, n_heads = 4, n_kv_heads = 2, d_model = 16, n_ctx = 16, init_std = 0.5, initialization = 'normal' }
            train = { steps = 4, batch_size = 4, learning_rate = 1e-3, shards = 1 }
            log = { every = 2, patterns_every = 4 }
        ";
        let workshop = Workshop::new();
        let config = workshop.write("small.toml", text);
        assert_ok(&workshop.train(&config, &["--out", "run"]));
        assert_ok(&workshop.inspect("run", &["export", "--to", "folder"]));
        Self { workshop }
    }

    fn json(&self, subject: &str, arguments: &[&str]) -> Value {
        let output = self
            .workshop
            .inspect(subject, &[arguments, &["--json"]].concat());
        assert_ok(&output);
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The one line of a verb that a model cannot answer.
    fn refused(&self, subject: &str, arguments: &[&str]) -> String {
        let output = self.workshop.inspect(subject, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let error = String::from_utf8(output.stderr).unwrap();
        let lines: Vec<&str> = error.lines().collect();
        assert_eq!(lines.len(), 1, "{error}");
        error
    }
}

const PROMPT: &str = "a b c d a b c";

#[test]
fn a_folder_says_what_the_run_says_that_it_was_exported_from() {
    let exported = Exported::new();
    for arguments in [
        &["pattern", "--prompt", PROMPT] as &[&str],
        &["predict", "--prompt", PROMPT],
        &[
            "predict", "--prompt", PROMPT, "--off", "L0H1", "--by", "zero",
        ],
        &["lens", "--prompt", PROMPT],
        &["detect", "--prompt", PROMPT],
        &["circuits"],
        &["circuit", "--pairs", "query"],
        &["why", "--head", "L1H2", "--prompt", PROMPT],
        &["patch", "--prompt", PROMPT, "--corrupted", "d b a c a d c"],
        &[
            "generate",
            "--prompt",
            PROMPT,
            "--temperature",
            "0",
            "--tokens",
            "5",
        ],
    ] {
        let (run, folder) = (
            exported.json("run", arguments),
            exported.json("folder", arguments),
        );
        assert!(folder == run, "{arguments:?}");
    }
}

#[test]
fn verbs_that_need_a_log_say_so_and_all_others_answer() {
    let exported = Exported::new();
    for verb in ["curves", "scores", "phases"] {
        let error = exported.refused("folder", &[verb]);
        let expected = "folder: is a model without a log of its training; this verb needs a run";
        assert!(error.contains(expected), "{verb}: {error}");
    }
    exported.json("folder", &["why", "--head", "L1H2"]);
    for verb in [
        "heads",
        "pattern",
        "ablate",
        "paths",
        "positions",
        "shared",
        "swap",
        "lens",
        "circuits",
        "detect",
        "offsets",
        "evaluate",
        "generate",
    ] {
        exported.json("folder", &[verb]);
        assert_ok(&exported.workshop.inspect("folder", &[verb]));
    }
    assert_ok(
        &exported
            .workshop
            .inspect("folder", &["export", "--to", "again"]),
    );
    assert_ok(
        &exported
            .workshop
            .inspect("folder", &["activations", "--to", "all.safetensors"]),
    );
    let error = exported.refused("folder", &["report"]);
    assert!(error.contains("--out: a model of another tool"), "{error}");
    let page = exported.workshop.path("page.html");
    assert_ok(
        &exported
            .workshop
            .inspect("folder", &["report", "--out", "page.html"]),
    );
    assert!(
        fs::read_to_string(page)
            .unwrap()
            .contains("folder: what its heads do")
    );
    let report = exported.json("folder", &["report"]);
    let heads = exported.json("folder", &["heads"]);
    let roles: Vec<Value> = heads
        .as_array()
        .unwrap()
        .iter()
        .map(|head| json!([head["head"], head["role"]]))
        .collect();
    assert_eq!(report["heads"], json!(roles));
    let ablated = exported.json("folder", &["ablate"]);
    let [uses] = report["uses"].as_array().unwrap().as_slice() else {
        panic!("one point is measured: {}", report["uses"])
    };
    let untouched = &ablated["untouched"]["accuracy"];
    assert_eq!(uses["untouched"]["accuracy"], *untouched);
    let alone = ablated["alone"].as_array().unwrap();
    for uses in uses["uses"].as_array().unwrap() {
        if let Some(same) = alone.iter().find(|head| head["heads"] == uses["heads"]) {
            let accuracy = &same["performance"]["accuracy"];
            assert_eq!(uses["ablated"]["accuracy"], *accuracy);
        }
    }
    let files = ["model.safetensors", "tokenizer.json"];
    for file in files {
        let read = |folder: &str| fs::read(exported.workshop.path(folder).join(file)).unwrap();
        assert!(read("again") == read("folder"), "{file}");
    }
    let error = exported.refused("folder", &["heads", "--at", "best"]);
    assert!(
        error.contains("folder is a model, which has one point"),
        "{error}"
    );
    let error = exported.refused("folder", &["relations"]);
    assert!(
        error.contains("random tokens that come back has no gold relations"),
        "{error}"
    );
}

#[test]
fn a_folder_without_a_tokenizer_numbers_its_tokens() {
    let exported = Exported::new();
    fs::remove_file(exported.workshop.path("folder").join("tokenizer.json")).unwrap();
    let run = exported.json("run", &["predict", "--prompt", "a b a"]);
    let folder = exported.json("folder", &["predict", "--prompt", "0 1 0"]);
    let best = |answer: &Value| answer["predictions"][0]["probability"].clone();
    assert!(best(&run).is_number());
    assert_eq!(best(&folder), best(&run));
}

#[test]
fn a_gguf_file_opens() {
    let exported = Exported::new();
    let fixture =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../residual/tests/fixtures/gguf/llama.gguf");
    fs::copy(fixture, exported.workshop.path("model.gguf")).unwrap();
    let heads = exported.json("model.gguf", &["heads"]);
    assert_eq!(heads.as_array().unwrap().len(), 8);
    let text = exported.json(
        "model.gguf",
        &["predict", "--prompt", "the light of the lamp"],
    );
    let tokens: String = text["tokens"]
        .as_array()
        .unwrap()
        .iter()
        .map(|token| token.as_str().unwrap())
        .collect();
    assert_eq!(tokens, "the␣light␣of␣the␣lamp");
    assert_ok(
        &exported
            .workshop
            .inspect("model.gguf", &["export", "--to", "from-gguf"]),
    );
    let folder = exported.json(
        "from-gguf",
        &["predict", "--prompt", "the light of the lamp"],
    );
    assert_eq!(folder, text);
}

#[test]
fn what_is_no_model_is_one_line() {
    let exported = Exported::new();
    let folder = exported.workshop.path("folder");
    let error = exported.refused("nowhere", &["heads"]);
    assert!(error.contains("nowhere"), "{error}");
    fs::write(exported.workshop.path("text.gguf"), "not a model").unwrap();
    let error = exported.refused("text.gguf", &["heads"]);
    assert!(error.contains("text.gguf: is no GGUF file"), "{error}");
    fs::write(folder.join("tokenizer.json"), "{}").unwrap();
    let error = exported.refused("folder", &["heads"]);
    assert!(
        error.contains("tokenizer.json: is no tokenizer.json"),
        "{error}"
    );
    fs::remove_file(folder.join("tokenizer.json")).unwrap();
    fs::write(folder.join("config.json"), "{\"model_type\": \"bert\"}").unwrap();
    let error = exported.refused("folder", &["heads"]);
    assert!(
        error.contains("config.json: model_type = \"bert\": must be one of gpt2,"),
        "{error}"
    );
}

#[test]
fn a_text_stands_in_place_of_the_own_sequences() {
    let exported = Exported::new();
    // Ten sequences of 16 inputs, in which a is followed by b, c or d in turn.
    exported
        .workshop
        .write("text.txt", &"a b a c a d e f ".repeat(21));
    for subject in ["run", "folder"] {
        let own = exported.json(subject, &["evaluate"]);
        let text = exported.json(subject, &["evaluate", "--text", "text.txt"]);
        assert_eq!(text["task"], "the text text.txt", "{subject}");
        assert_ne!(text["loss"], own["loss"], "{subject}");
        assert_ok(
            &exported
                .workshop
                .inspect(subject, &["heads", "--text", "text.txt"]),
        );
        assert_ok(
            &exported
                .workshop
                .inspect(subject, &["ablate", "--text", "text.txt"]),
        );
    }
    let loss =
        |subject| exported.json(subject, &["evaluate", "--text", "text.txt"])["loss"].clone();
    assert_eq!(loss("run"), loss("folder"));
    exported.workshop.write("short.txt", "a b c");
    let error = exported.refused("run", &["ablate", "--text", "short.txt"]);
    assert!(
        error.contains("--text short.txt: has 3 tokens; a sequence takes 17"),
        "{error}"
    );
    exported.workshop.write("other.txt", "a b lamp");
    let error = exported.refused("run", &["ablate", "--text", "other.txt"]);
    assert!(
        error.contains("--text other.txt: cannot be cut into tokens of the model: lamp"),
        "{error}"
    );
}

#[test]
fn causal_tests_take_pairs_of_prompts_in_place_of_sequences() {
    let exported = Exported::new();
    let pair = |clean: &str, corrupted: &str| {
        format!(
            r#"{{"clean": "{clean}", "corrupted": "{corrupted}", "answer": "c", "wrong": "d"}}"#
        )
    };
    let mut lines = vec![
        pair("a b c e a b", "a b d e a b"),
        pair("b c a b", "b d a b"),
    ];
    lines.extend((0..10).map(|_| pair("f c e f", "f d e f")));
    exported.workshop.write("pairs.jsonl", &lines.join("\n"));
    let pairs = ["--pairs", "pairs.jsonl"];
    for subject in ["run", "folder"] {
        let json = |arguments: &[&str]| exported.json(subject, &[arguments, &pairs].concat());
        let lens = json(&["lens"]);
        let last = &lens["depths"].as_array().unwrap().last().unwrap()["performance"];
        let untouched = &json(&["ablate"])["untouched"];
        for key in ["accuracy", "loss", "logit_difference"] {
            assert_eq!(last[key], untouched[key], "{subject} {key}");
        }
        let mean = untouched["logit_difference"]["mean"].as_f64().unwrap();
        let [low, high] =
            ["low", "high"].map(|end| untouched["logit_difference"][end].as_f64().unwrap());
        assert!(low <= mean && mean <= high, "{untouched}");
        assert_eq!(json(&["paths"])["untouched"], *untouched);
        assert_eq!(json(&["shared"])["untouched"], *untouched);
        let patch = json(&["patch"]);
        assert_eq!(
            (&patch["pairs"], &patch["clean"]["answer"]),
            (&12.into(), &"c".into())
        );
        assert_eq!(patch["heads"].as_array().unwrap().len(), 8);
        for verb in ["ablate", "lens", "paths", "patch", "shared"] {
            let arguments = [&[verb], &pairs[..]].concat();
            assert_ok(&exported.workshop.inspect(subject, &arguments));
        }
        let error = exported.refused(subject, &["swap", "--pairs", "pairs.jsonl"]);
        let expected = "--pairs: swap does not look at pairs of prompts; these verbs do: ablate";
        assert!(error.contains(expected), "{error}");
    }
    let bad = [&lines[..1], &[pair("a b", "a b c")]].concat();
    exported.workshop.write("bad.jsonl", &bad.join("\n"));
    let error = exported.refused("run", &["ablate", "--pairs", "bad.jsonl"]);
    let expected = r#"--pairs bad.jsonl line 2: corrupted = "a b c": has 3 tokens, clean has 2"#;
    assert!(error.contains(expected), "{error}");
    let error = exported.refused("run", &["ablate", "--pairs", "nowhere.jsonl"]);
    assert!(error.contains("nowhere.jsonl"), "{error}");
    // A name that is no kind of pairs is a file.
    let error = exported.refused("run", &["circuit", "--pairs", "keys"]);
    assert!(error.contains("keys: "), "{error}");
}

#[test]
fn pairs_that_are_made_are_those_of_every_test() {
    let exported = Exported::new();
    let found = exported.json("run", &["circuit", "--pairs", "key", "--effects-only"]);
    assert_eq!(found["corruption"], "key");
    let used = found["pairs"]["used"].as_u64().unwrap();
    // The circuit reports on the second half of them; the lens reads all.
    let lens = exported.json("run", &["lens", "--pairs", "key"]);
    let last = &lens["depths"].as_array().unwrap().last().unwrap()["performance"];
    let untouched = &exported.json("run", &["ablate", "--pairs", "key"])["untouched"];
    assert_eq!(last["logit_difference"], untouched["logit_difference"]);
    let patch = exported.json("run", &["patch", "--pairs", "key"]);
    assert_eq!(patch["pairs"].as_u64(), Some(used));
    let other = exported.json("run", &["ablate", "--pairs", "query"]);
    assert_ne!(other["untouched"], *untouched);
}

#[test]
fn gold_relations_of_another_task_are_cut_into_the_tokens_of_the_model() {
    let exported = Exported::new();
    let text = "
        task = { name = 'grammar' }
        model = { preset = 'llama', n_layers = 2, n_heads = 4, d_model = 16, n_ctx = 32, init_std = 0.5, initialization = 'normal' }
        train = { steps = 4, batch_size = 4, learning_rate = 1e-3, shards = 1 }
        log = { every = 2, patterns_every = 4 }
    ";
    let config = exported.workshop.write("grammar.toml", text);
    assert_ok(&exported.workshop.train(&config, &["--out", "words"]));
    assert_ok(
        &exported
            .workshop
            .inspect("words", &["export", "--to", "of-words"]),
    );
    let on = ["relations", "--on", "grammar.toml"];
    let of_run = exported.json("words", &on);
    assert_eq!(exported.json("of-words", &on), of_run);
    let best = of_run["best"].as_array().unwrap();
    let names: Vec<&str> = best
        .iter()
        .map(|best| best["relation"].as_str().unwrap())
        .collect();
    assert!(
        names.contains(&"verb→subject") && names.contains(&"noun→determiner"),
        "{names:?}"
    );
    // The same sentences as in the run, but for what is said of the first token.
    let own = exported.json("words", &["relations"]);
    for (here, there) in best.iter().zip(own["best"].as_array().unwrap()) {
        assert_eq!(here["relation"], there["relation"]);
        let pairs = |best: &Value| best["score"]["rows"].as_u64().unwrap();
        assert!(
            pairs(here) > 0 && pairs(here) < pairs(there),
            "{here} {there}"
        );
    }
    // Random weights follow nothing.
    let sure: usize = best
        .iter()
        .map(|best| best["sure"].as_array().unwrap().len())
        .sum();
    assert!(sure < best.len() * 8, "{of_run}");
    assert_ok(&exported.workshop.inspect("of-words", &on));
    let error = exported.refused("run", &on);
    assert!(
        error.contains("--on grammar.toml: cannot be cut into tokens of the model"),
        "{error}"
    );
    let error = exported.refused("folder", &["relations", "--on", "small.toml"]);
    assert!(
        error.contains("small.toml has no gold relations"),
        "{error}"
    );
}

#[test]
fn a_wrong_line_of_words_is_named() {
    let exported = Exported::new();
    let line = |text: &str, word: &str, sense: &str, cue: &str| {
        json!({ "text": text, "word": word, "sense": sense, "cue": cue }).to_string()
    };
    let good = [
        line("a c d", "d", "one", "a"),
        line("a e d", "d", "one", "a"),
        line("b c d", "d", "two", "b"),
        line("b e d", "d", "two", "b"),
    ];
    let words = ["senses", "--words", "words.jsonl"];
    exported.workshop.write("words.jsonl", &good.join("\n"));
    assert_eq!(
        exported.json("folder", &words),
        exported.json("run", &words)
    );
    assert_ok(&exported.workshop.inspect("folder", &words));
    for (bad, message) in [
        (
            line("a c d", "x", "one", "a"),
            "context 5: word = \"x\": does not occur in the text",
        ),
        (
            line("a c d", "d", "one", "d"),
            "cue = \"d\": does not occur in the text before",
        ),
        (
            line("a c e", "e", "one", "a"),
            "word = \"e\": ends in another token",
        ),
        (
            line("a lamp d", "d", "one", "a"),
            "cannot be cut into tokens of the model: lamp",
        ),
        (
            line("a c d", "d", "three", "a"),
            "must have two senses or more",
        ),
        (
            line(&"a ".repeat(20), "a", "one", "a"),
            "has 20 tokens, the model takes 16",
        ),
        ("{}".to_owned(), "words.jsonl line 5: must be {\"text\""),
    ] {
        let lines = [&good[..], &[bad]].concat().join("\n");
        exported.workshop.write("words.jsonl", &lines);
        let error = exported.refused("run", &words);
        assert!(error.contains(message), "{error}\n{message}");
    }
}

#[test]
fn long_tests_can_be_narrowed() {
    let exported = Exported::new();
    let all = exported.json("folder", &["paths"]);
    let some = exported.json(
        "folder",
        &["paths", "--heads", "L0H1,L0H3", "--reader", "1"],
    );
    let chosen: Vec<Value> = all["paths"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|path| path["writer"] == "L0H1" || path["writer"] == "L0H3")
        .cloned()
        .collect();
    assert_eq!(chosen.len(), 6);
    assert_eq!(some["paths"], json!(chosen));
    let all = exported.json("folder", &["shared"]);
    let some = exported.json("folder", &["shared", "--layers", "1"]);
    let of_layer = |shared: &Value| -> Vec<Value> {
        let distances = shared["distances"].as_array().unwrap().iter();
        distances.filter(|one| one["layer"] == 1).cloned().collect()
    };
    assert_eq!(json!(of_layer(&all)), some["distances"]);
    assert_eq!(some["readers"], json!([]));
    for (arguments, message) in [
        (
            ["paths", "--heads", "L2H0"],
            "--heads L2H0: there is no such head",
        ),
        (
            ["paths", "--reader", "2"],
            "--reader: 2: the last layer is 1",
        ),
        (
            ["shared", "--layers", "2"],
            "--layers: 2: the last layer is 1",
        ),
    ] {
        let error = exported.refused("folder", &arguments);
        assert!(error.contains(message), "{error}");
    }
}
