//! The live explorer as a browser meets it, spoken to without one.

mod common;

use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use common::{SMALL, request};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A run and the program that serves it.
struct Served {
    directory: TempDir,
    program: Child,
    host: String,
}

impl Served {
    fn small_run() -> Self {
        let directory = TempDir::new().unwrap();
        fs::write(directory.path().join("small.toml"), SMALL).unwrap();
        let mut train = assert_cmd::Command::cargo_bin("train").unwrap();
        train
            .current_dir(&directory)
            .args([
                "small.toml",
                "--out",
                "run",
                "--set",
                "train.learning_rate=1e-2",
            ])
            .assert()
            .success();
        let inspect = assert_cmd::cargo::cargo_bin("inspect");
        let mut command = Command::new(inspect);
        command
            .current_dir(&directory)
            .args(["run", "serve", "--port", "0"])
            .stdout(Stdio::piped());
        let mut program = command.spawn().unwrap();
        let mut address = String::new();
        BufReader::new(program.stdout.take().unwrap())
            .read_line(&mut address)
            .unwrap();
        let host = address.trim().strip_prefix("http://").unwrap().to_owned();
        assert!(host.starts_with("127.0.0.1:"), "{host}");
        Self {
            directory,
            program,
            host,
        }
    }

    fn ask(&self, path: &str, question: &Value) -> (u16, Value) {
        common::ask(&self.host, path, question)
    }

    #[track_caller]
    fn assert_refused(&self, question: &Value, status: u16, parts: &[&str]) {
        let (found, answer) = self.ask("/explore", question);
        let message = answer["error"].as_str().unwrap_or_default();
        assert!(
            found == status && parts.iter().all(|part| message.contains(part)),
            "{found} {answer}"
        );
    }

    fn inspect(&self, arguments: &[&str]) -> Value {
        let mut command = assert_cmd::Command::cargo_bin("inspect").unwrap();
        let output = command
            .current_dir(&self.directory)
            .arg("run")
            .args(arguments)
            .arg("--json")
            .output()
            .unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// What `inspect predict` prints, as the explorer shows it: the five likeliest after the last
    /// position.
    fn predict(&self, prompt: &str, arguments: &[&str]) -> Value {
        let predictions = self.inspect(&[&["predict", "--prompt", prompt], arguments].concat());
        let shown = predictions["predictions"].as_array().unwrap()[..5].iter();
        shown
            .map(|row| json!([row["token"], row["probability"]]))
            .collect()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

#[test]
fn why_a_head_looks_at_a_cell_is_what_inspect_says() {
    let served = Served::small_run();
    let prompt = "a b c a b c a";
    let question = json!({ "prompt": prompt, "head": "L1H1", "query": 5, "key": 3 });
    let (status, found) = served.ask("/why", &question);
    assert_eq!(status, 200, "{found}");
    let cell = ["--query", "5", "--key", "3"];
    let expected =
        served.inspect(&[&["why", "--head", "L1H1", "--prompt", prompt], &cell[..]].concat());
    assert_eq!(found["finding"], expected["finding"]);
    let near = |found: &Value, expected: &Value| {
        let error = found.as_f64().unwrap() - expected.as_f64().unwrap();
        assert!(error.abs() < 1e-3, "{found} is not {expected}");
    };
    near(&found["margin"], &expected["margin"]["value"]);
    for (index, term) in found["terms"].as_array().unwrap().iter().enumerate() {
        assert_eq!(
            [&term[0], &term[1]],
            ["query", "key"].map(|end| &expected["terms"][index][end])
        );
        near(&term[2], &expected["terms"][index]["value"]);
    }
    near(
        &found["moved_together"],
        &expected["moved"]["together"][0]["value"],
    );
    for (field, value, part) in [
        ("head", json!("L9H9"), "no such head"),
        (
            "query",
            json!(7),
            "--query: 7: is not inside the sequence of 7 tokens",
        ),
        ("key", json!(6), "is not seen by query 5"),
        ("prompt", json!("a nonsense"), "prompt: nonsense"),
    ] {
        let mut wrong = question.clone();
        wrong[field] = value;
        let (status, answer) = served.ask("/why", &wrong);
        let message = answer["error"].as_str().unwrap_or_default();
        assert!(status == 422 && message.contains(part), "{status} {answer}");
    }
}

#[test]
fn a_circuit_is_the_one_that_inspect_finds() {
    let served = Served::small_run();
    for pairs in ["value", "key"] {
        let (status, found) = served.ask("/circuit", &json!({ "pairs": pairs }));
        assert_eq!(status, 200, "{found}");
        let expected = served.inspect(&["circuit", "--pairs", pairs]);
        assert_eq!(found["sentences"], expected["circuit"]["sentences"]);
        let edges = found["edges"].as_array().unwrap();
        for (edge, expected) in edges.iter().zip(expected["edges"].as_array().unwrap()) {
            assert_eq!(edge["destination"], expected["destination"]);
            let error = edge["effect"].as_f64().unwrap() - expected["mean"].as_f64().unwrap();
            assert!(error.abs() < 1e-3, "{edge} is not {expected}");
        }
        assert!(edges.len() > 10);
    }
    let (status, answer) = served.ask("/circuit", &json!({ "pairs": "keys" }));
    assert_eq!(status, 422, "{answer}");
}

#[test]
fn the_explorer_says_what_inspect_says() {
    let served = Served::small_run();
    let prompt = "a b c a b c a";
    let (status, answer) = served.ask("/explore", &json!({ "prompt": prompt }));
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["predictions"], answer["untouched"]);
    assert_eq!(answer["predictions"][6], served.predict(prompt, &[]));
    for prediction in answer["predictions"].as_array().unwrap() {
        let sum: f64 = prediction
            .as_array()
            .unwrap()
            .iter()
            .map(|shown| shown[1].as_f64().unwrap())
            .sum();
        assert!(
            prediction.as_array().unwrap().len() == 5 && sum < 1.0 + 1e-5,
            "{prediction}"
        );
    }

    // All heads off: what is left is the token and its place, so the same token elsewhere changes
    // nothing before it.
    let all = json!(["L0H0", "L0H1", "L1H0", "L1H1"]);
    let (_, off) = served.ask("/explore", &json!({ "prompt": prompt, "off": all }));
    assert_eq!(off["untouched"], answer["untouched"]);
    assert_eq!(
        off["predictions"][6],
        served.predict(prompt, &["--off", "L0H0,L0H1,L1H0,L1H1"])
    );
    assert_ne!(off["predictions"], off["untouched"]);
    let (_, elsewhere) = served.ask(
        "/explore",
        &json!({ "prompt": "d d d d d d a", "off": all }),
    );
    assert_eq!(off["predictions"][6], elsewhere["predictions"][6]);

    // The whole stream of another prompt: the model says what it says to that prompt; at one
    // position, only there.
    let other = "c c c b b a a";
    let (_, others) = served.ask("/explore", &json!({ "prompt": other }));
    let patch = |positions: Value| json!([{ "from": other, "site": "blocks.1.hook_resid_post", "positions": positions }]);
    let (_, whole) = served.ask(
        "/explore",
        &json!({ "prompt": prompt, "patches": patch(Value::Null) }),
    );
    assert_eq!(whole["predictions"], others["predictions"]);
    let (_, one) = served.ask(
        "/explore",
        &json!({ "prompt": prompt, "patches": patch(json!([3])) }),
    );
    let at_three = [
        "--patch-from",
        other,
        "--patch",
        "blocks.1.hook_resid_post@3",
        "--position",
        "3",
    ];
    assert_eq!(one["predictions"][3], served.predict(prompt, &at_three));
    assert_eq!(one["predictions"][3], others["predictions"][3]);
    assert_eq!(one["predictions"][4], answer["predictions"][4]);

    let (status, walk) = served.ask(
        "/walk",
        &json!({ "question": { "prompt": prompt }, "head": "L1H1" }),
    );
    assert_eq!(
        (
            status,
            &walk["layers"][0]["layer"],
            &walk["layers"][0]["heads"][0]["head"]
        ),
        (200, &json!(1), &json!(1))
    );
    let (_, sample) = served.ask("/sample", &json!({ "row": 5 }));
    let (status, _) = served.ask("/explore", &json!({ "prompt": sample }));
    assert_eq!(status, 200);
}

#[test]
fn a_sweep_has_the_shares_of_patch_and_the_model_writes_what_generate_writes() {
    let served = Served::small_run();
    // Two prompts that the model answers differently, whatever it has learned.
    let patched = served.inspect(&["patch"]);
    let [prompt, other] = ["clean", "corrupted"].map(|prompt| {
        let tokens = patched[prompt]["tokens"].as_array().unwrap();
        let names: Vec<&str> = tokens.iter().map(|name| name.as_str().unwrap()).collect();
        names.join(" ")
    });
    let (prompt, other) = (prompt.as_str(), other.as_str());
    for (direction, place) in [("returns", 0), ("lost", 3)] {
        let expected = &patched[direction][place];
        let question = json!({ "prompt": prompt, "from": other, "place": expected["place"], "direction": direction });
        let (status, swept) = served.ask("/sweep", &question);
        assert_eq!(status, 200, "{swept}");
        for key in ["by_position", "everywhere"] {
            assert_eq!(
                swept[key], expected[key],
                "{direction} {}",
                expected["place"]
            );
        }
        assert_eq!(swept["answers"][0], patched["clean"]["answer"]);
        assert_eq!(swept["answers"][1], patched["corrupted"]["answer"]);
    }
    // Without another prompt, what followed the last token before is replaced.
    let samples = (0..32).map(|row| served.ask("/sample", &json!({ "row": row })).1);
    let mut swept = samples.filter_map(|sample| {
        let made = json!({ "prompt": sample, "place": "L0H1", "direction": "returns" });
        let (status, swept) = served.ask("/sweep", &made);
        (status == 200).then_some(swept)
    });
    let swept = swept.next().unwrap();
    let tokens = |name: &str| swept[name].as_array().unwrap().clone();
    let (own, other) = (tokens("tokens"), tokens("other_tokens"));
    let after_last = |at: usize| at > 0 && own[at - 1] == own[own.len() - 1];
    let replaced = (0..own.len()).find(|&at| after_last(at)).unwrap();
    for at in 0..own.len() {
        let expected = if after_last(at) {
            &other[replaced]
        } else {
            &own[at]
        };
        assert_eq!(&other[at], expected, "{at} {swept}");
    }
    assert_ne!(other[replaced], own[replaced]);

    let prompt = "a b c a b c a";

    let write = |off: Value| {
        let question = json!({ "question": { "prompt": prompt, "off": off }, "tokens": 6, "temperature": 0.8, "seed": 4 });
        served.ask("/write", &question).1
    };
    let arguments = [
        "--prompt",
        prompt,
        "--tokens",
        "6",
        "--temperature",
        "0.8",
        "--seed",
        "4",
    ];
    let generated = served.inspect(&[&["generate"], &arguments[..]].concat());
    assert_eq!(write(json!([]))["tokens"], generated["tokens"]);
    // With heads off, each token is drawn from what the model then says.
    let written = write(json!(["L0H0", "L1H0", "L1H1"]));
    let tokens = written["tokens"].as_array().unwrap();
    assert_eq!(tokens.len(), 6);
    let greedy = json!({ "question": { "prompt": prompt, "off": ["L1H0"] }, "tokens": 1, "temperature": 0, "seed": 0 });
    let (_, greedy) = served.ask("/write", &greedy);
    let predicted = served.predict(prompt, &["--off", "L1H0"]);
    assert_eq!(greedy["tokens"][0], predicted[0][0]);

    // A pattern is asked for by head, and is that of the changed pass.
    let question = json!({ "question": { "prompt": prompt }, "heads": ["L1H1", "L0H0"] });
    let (status, patterns) = served.ask("/patterns", &question);
    assert_eq!(
        (status, &patterns[0][0], &patterns[1][0]),
        (200, &json!("L1H1"), &json!("L0H0"))
    );
    let (status, refused) = served.ask(
        "/patterns",
        &json!({ "question": { "prompt": prompt }, "heads": ["L7H0"] }),
    );
    assert_eq!((status, &refused["field"]), (422, &json!("heads")));
    let (_, answer) = served.ask("/explore", &json!({ "prompt": "abcabca" }));
    assert_eq!(answer["tokens"], json!(["a", "b", "c", "a", "b", "c", "a"]));
    assert_eq!(answer["right"].as_array().unwrap().len(), 6);
    let next = answer["predictions"][2].as_array().unwrap();
    let shown = next.iter().find(|shown| shown[0] == "a");
    assert!(
        shown.is_none_or(|shown| shown[1] == answer["right"][2]),
        "{answer}"
    );
}

#[test]
fn the_explorer_refuses_what_is_not_its_own() {
    let served = Served::small_run();
    served.assert_refused(&json!({ "prompt": "a zebra" }), 422, &["prompt", "zebra"]);
    served.assert_refused(&json!({ "prompt": "" }), 422, &["prompt", "empty"]);
    served.assert_refused(
        &json!({ "prompt": "a ".repeat(17) }),
        422,
        &["17 tokens", "16"],
    );
    served.assert_refused(
        &json!({ "prompt": "a", "off": ["L2H0"] }),
        422,
        &["off", "L2H0"],
    );
    let patched = |from: &str, site: &str, position: usize| json!({ "prompt": "a b", "patches": [{ "from": from, "site": site, "positions": [position] }] });
    served.assert_refused(
        &patched("a b c", "hook_embed", 0),
        422,
        &["from", "3 tokens", "2"],
    );
    served.assert_refused(
        &patched("a b", "hook_embd", 0),
        422,
        &["site", "hook_embed?"],
    );
    served.assert_refused(
        &patched("a b", "blocks.0.mlp.hook_pre", 0),
        422,
        &["site", "not in this model"],
    );
    served.assert_refused(
        &patched("a b", "blocks.7.hook_resid_pre", 0),
        422,
        &["site", "not in this model"],
    );
    served.assert_refused(&patched("a b", "hook_embed", 2), 422, &["positions", "2"]);
    served.assert_refused(
        &json!({ "prompt": "a", "path": "/etc/passwd" }),
        422,
        &["unknown field `path`"],
    );
    served.assert_refused(
        &json!({ "prompt": "a".repeat(70_000) }),
        413,
        &["65536 bytes"],
    );

    let status = |path: &str, headers: &str| {
        request(&served.host, &format!("{path} HTTP/1.1\r\n{headers}"), "").0
    };
    let own = format!("Host: {}", served.host);
    assert_eq!(status("GET /", &own), 200);
    for path in [
        "/config.toml",
        "/../config.toml",
        "/%2e%2e/config.toml",
        "//etc/passwd",
    ] {
        assert_eq!(status(&format!("GET {path}"), &own), 404, "{path}");
    }
    assert_eq!(status("GET /", "Host: evil.example"), 403);
    // Through a tunnel or out of a container, from another port.
    for host in ["127.0.0.1:1", "localhost:9000", "[::1]:9000", "localhost"] {
        assert_eq!(status("GET /", &format!("Host: {host}")), 200, "{host}");
        let asking = format!("Host: {host}\r\nOrigin: http://{host}");
        assert_eq!(status("GET /", &asking), 200, "{host}");
        let other = format!("Host: {host}\r\nOrigin: http://{host}0");
        assert_eq!(status("GET /", &other), 403, "{host}");
    }
    assert_eq!(
        status("GET /", &format!("{own}\r\nOrigin: https://evil.example")),
        403
    );
    assert_eq!(status("GET /", &format!("{own}\r\nOrigin: null")), 403);
    assert_eq!(
        status("GET /", &format!("{own}\r\nOrigin: http://{}", served.host)),
        200
    );
    // A form of another page can send text, but no JSON.
    assert_eq!(
        status(
            "POST /explore",
            &format!("{own}\r\nContent-Type: text/plain")
        ),
        415
    );
}
