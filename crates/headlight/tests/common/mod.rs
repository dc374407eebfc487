//! What the tests of the binaries share.
#![allow(dead_code, reason = "each test uses some of it")]

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::Output,
};

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// A run of a second.
pub const SMALL: &str = r#"
seed = 3
[task]
name = "repeat"
vocabulary = 12
prefix = [0, 2]
block = [3, 5]
[model]
n_layers = 2
n_heads = 2
d_model = 16
n_ctx = 16
[train]
steps = 25
batch_size = 8
learning_rate = 1e-3
warmup = 5
shards = 2
[log]
every = 10
patterns_every = 20
[checkpoint]
every = 10
"#;

/// A directory to run the binaries in.
pub struct Workshop(pub TempDir);

impl Workshop {
    pub fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path
    }

    pub fn train(&self, config: &Path, arguments: &[&str]) -> Output {
        let mut command = Command::cargo_bin("train").unwrap();
        command
            .current_dir(self.0.path())
            .env("HEADLIGHT_CACHE", self.path("cache"))
            .arg(config)
            .args(arguments)
            .output()
            .unwrap()
    }

    pub fn inspect(&self, run: &str, arguments: &[&str]) -> Output {
        let mut command = Command::cargo_bin("inspect").unwrap();
        command
            .current_dir(self.0.path())
            .env("HEADLIGHT_CACHE", self.path("cache"))
            .arg(run)
            .args(arguments)
            .output()
            .unwrap()
    }

    /// With `SMALL` trained in it, as `name`.
    pub fn trained(name: &str) -> Self {
        let workshop = Self::new();
        let config = workshop.write("small.toml", SMALL);
        assert_ok(&workshop.train(&config, &["--out", name]));
        workshop
    }
}

#[track_caller]
pub fn assert_ok(output: &Output) {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Exit code `code`, nothing on standard output, and one line on standard error that has all
/// `parts`.
#[track_caller]
pub fn assert_one_line(output: &Output, code: i32, parts: &[&str]) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{error}");
    assert!(output.stdout.is_empty());
    assert_eq!(error.trim_end().lines().count(), 1, "{error}");
    for part in parts {
        assert!(error.contains(part), "{error:?} does not say {part:?}");
    }
}

pub fn json(output: &Output) -> Value {
    assert_ok(output);
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Status and body of what the server at `host` answers.
pub fn request(host: &str, head: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(host).unwrap();
    let length = body.len();
    // A server that refuses early may close before it has read all.
    let _ = write!(
        stream,
        "{head}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (
        status.unwrap_or_else(|| panic!("no answer but {answer:?}")),
        body.to_owned(),
    )
}

/// Status and body of the answer to a question in JSON.
pub fn ask(host: &str, path: &str, question: &Value) -> (u16, Value) {
    let head = format!("POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json");
    let (status, body) = request(host, &head, &question.to_string());
    (
        status,
        serde_json::from_str(&body).unwrap_or_else(|_| panic!("no JSON: {body}")),
    )
}
