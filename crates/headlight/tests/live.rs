//! `train --live` as a browser meets it, spoken to without one.

mod common;

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use common::{SMALL, Workshop, ask, assert_ok, assert_one_line, request};
use serde_json::{Value, json};

/// A run under way.
struct Live {
    program: Child,
    host: String,
}

impl Live {
    fn train(workshop: &Workshop, config: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("train"));
        command
            .current_dir(workshop.0.path())
            .arg(config)
            .args(["--live", "--port", "0"])
            .args(arguments);
        let mut program = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(program.stderr.take().unwrap());
        let mut line = String::new();
        let host = loop {
            line.clear();
            assert!(said.read_line(&mut line).unwrap() > 0, "no address");
            if let Some((_, host)) = line.trim().split_once("live        http://") {
                break host.to_owned();
            }
        };
        // Whoever stops listening to the program would stop it.
        thread::spawn(move || said.read_to_end(&mut Vec::new()));
        assert!(host.starts_with("127.0.0.1:"), "{host}");
        Self { program, host }
    }

    /// Asks until the answer is as wanted.
    #[track_caller]
    fn news(&self, known: &Value, wanted: impl Fn(&Value) -> bool) -> Value {
        let begin = Instant::now();
        loop {
            let (status, news) = ask(&self.host, "/news", known);
            assert_eq!(status, 200, "{news}");
            if wanted(&news) {
                return news;
            }
            assert!(begin.elapsed() < Duration::from_mins(1), "only {news}");
            thread::sleep(Duration::from_millis(30));
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

fn steps(news: &Value) -> Vec<u64> {
    news["metrics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["step"].as_u64().unwrap())
        .collect()
}

#[test]
fn new_rows_and_patterns_appear_while_a_run_trains() {
    let workshop = Workshop::new();
    let config = workshop.write("small.toml", SMALL);
    let live = Live::train(
        &workshop,
        &config,
        &["--out", "run", "--set", "train.steps=1000000"],
    );
    let first = live.news(&json!({}), |news| {
        !steps(news).is_empty() && !news["patterns"].is_null()
    });
    assert_eq!(steps(&first)[0], 0);
    assert_eq!(first["finished"], false);
    let patterns = &first["patterns"];
    assert_eq!(
        (
            patterns["tokens"].as_array().unwrap().len(),
            &patterns["length"]
        ),
        (16, &json!(16))
    );
    let heads: Vec<&str> = patterns["weights"]
        .as_array()
        .unwrap()
        .iter()
        .map(|w| w[0].as_str().unwrap())
        .collect();
    assert_eq!(heads, ["L0H0", "L0H1", "L1H0", "L1H1"]);

    // What is known is not told again, and training goes on.
    let last = *steps(&first).last().unwrap();
    let known = json!({ "metrics": last, "patterns": patterns["step"] });
    let next = live.news(&known, |news| {
        !steps(news).is_empty() && !news["patterns"].is_null()
    });
    assert_eq!(steps(&next)[0], last + 10);
    assert!(next["patterns"]["step"].as_u64() > patterns["step"].as_u64());

    // The rows are those of the run.
    let written = fs::read_to_string(workshop.path("run/metrics.jsonl")).unwrap();
    let row: Value = serde_json::from_str(written.lines().next().unwrap()).unwrap();
    assert_eq!(first["metrics"][0], row);

    let status = |path: &str, headers: &str| {
        request(&live.host, &format!("{path} HTTP/1.1\r\n{headers}"), "").0
    };
    let own = format!("Host: {}", live.host);
    assert_eq!(status("GET /", &own), 200);
    assert_eq!(status("GET /", "Host: evil.example"), 403);
    assert_eq!(
        status("GET /", &format!("{own}\r\nOrigin: https://evil.example")),
        403
    );
    assert_eq!(status("POST /news", &format!("{own}\r\nOrigin: null")), 403);
    assert_eq!(
        status("POST /news", &format!("{own}\r\nContent-Type: text/plain")),
        415
    );
    for path in [
        "/config.toml",
        "/../config.toml",
        "/%2e%2e/config.toml",
        "/report.html",
    ] {
        assert_eq!(status(&format!("GET {path}"), &own), 404, "{path}");
    }
    assert_eq!(
        ask(&live.host, "/news", &json!({ "metrics": "all" })).0,
        422
    );
    assert_eq!(
        ask(&live.host, "/news", &json!({ "path": "/etc/passwd" })).0,
        422
    );
    assert_eq!(
        ask(&live.host, "/news", &json!({ "path": "a".repeat(70_000) })).0,
        413
    );
}

#[test]
fn a_run_that_is_watched_is_the_run_it_would_be_alone_and_hands_out_its_report() {
    let workshop = Workshop::new();
    let config = workshop.write("small.toml", SMALL);
    let mut live = Live::train(&workshop, &config, &["--out", "watched"]);
    let news = live.news(&json!({}), |news| news["finished"] == true);
    assert_eq!(steps(&news), [0, 10, 20, 25]);
    assert_eq!(news["patterns"]["step"], 25);
    let (status, report) = request(
        &live.host,
        &format!("GET /report.html HTTP/1.1\r\nHost: {}", live.host),
        "",
    );
    assert_eq!(status, 200);
    assert!(report == fs::read_to_string(workshop.path("watched/report.html")).unwrap());
    assert!(live.program.wait().unwrap().success());

    assert_ok(&workshop.train(&config, &["--out", "alone"]));
    for file in [
        "metrics.jsonl",
        "heads.jsonl",
        "patterns/step-25/probe.safetensors",
        "last/weights.safetensors",
    ] {
        let read = |run: &str| fs::read(workshop.path(run).join(file)).unwrap();
        assert!(read("watched") == read("alone"), "{file} differs");
    }
}

#[test]
fn a_port_that_is_taken_is_said_before_anything_is_written() {
    let workshop = Workshop::new();
    let config = workshop.write("small.toml", SMALL);
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port().to_string();
    assert_one_line(
        &workshop.train(&config, &["--out", "run", "--live", "--port", &port]),
        2,
        &["--port", &port, "use"],
    );
    assert!(!workshop.path("run").exists());
    let output = workshop.train(&config, &["--live", "--seeds", "0..2"]);
    assert!(
        output.status.code() == Some(2)
            && String::from_utf8_lossy(&output.stderr).contains("--seeds")
    );
    let output = workshop.train(&config, &["--port", "8351"]);
    assert!(
        output.status.code() == Some(2)
            && String::from_utf8_lossy(&output.stderr).contains("--live")
    );
}
