//! A run goes on with the data that it was begun with, or not at all.

mod common;

use std::{collections::BTreeMap, fs, path::Path};

use common::{Workshop, assert_ok, assert_one_line};

const CONFIG: &str = r#"
[task]
name = "text"
path = "sea"
tokens = "words"
[model]
n_layers = 1
n_heads = 2
d_model = 16
n_ctx = 8
[train]
steps = 12
batch_size = 4
learning_rate = 1e-2
shards = 1
[log]
every = 4
[checkpoint]
every = 4
"#;

const TEXT: &str = "the keeper lit the lamp and the sea was dark and the keeper saw the sea ";

/// Every file of the run, with its bytes and the time of its last change.
fn everything(run: &Path) -> BTreeMap<String, (Vec<u8>, std::time::SystemTime)> {
    fn collect(
        root: &Path,
        directory: &Path,
        found: &mut BTreeMap<String, (Vec<u8>, std::time::SystemTime)>,
    ) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(root, &path, found);
                continue;
            }
            let name = path.strip_prefix(root).unwrap().display().to_string();
            let changed = path.metadata().unwrap().modified().unwrap();
            found.insert(name, (fs::read(&path).unwrap(), changed));
        }
    }
    let mut found = BTreeMap::new();
    collect(run, run, &mut found);
    found
}

/// A workshop with a folder of two texts and a run that was stopped after step 8.
fn stopped(config: &str) -> Workshop {
    let workshop = Workshop::new();
    fs::create_dir(workshop.path("sea")).unwrap();
    workshop.write("sea/a.txt", &TEXT.repeat(20));
    workshop.write("sea/b.txt", &TEXT.repeat(10));
    let path = workshop.write("a.toml", config);
    assert_ok(&workshop.train(&path, &["--out", "run"]));
    fs::remove_dir_all(workshop.path("run/last")).unwrap();
    fs::remove_file(workshop.path("run/summary.json")).unwrap();
    workshop
}

#[track_caller]
fn assert_refused(workshop: &Workshop, more: &[&str], parts: &[&str]) {
    let before = everything(&workshop.path("run"));
    let arguments = [&["--out", "run", "--resume"], more].concat();
    let output = workshop.train(&workshop.path("a.toml"), &arguments);
    assert_one_line(&output, 2, parts);
    assert!(
        everything(&workshop.path("run")) == before,
        "the run was changed"
    );
}

fn hash(workshop: &Workshop, file: &str) -> String {
    headlight_run::sha256(&fs::read(workshop.path(file)).unwrap())[..12].to_owned()
}

#[test]
fn a_changed_text_is_refused_and_the_same_text_goes_on() {
    let workshop = stopped(CONFIG);
    let data = fs::read_to_string(workshop.path("run/data.json")).unwrap();
    assert!(data.contains("\"training_share\": 0.9"), "{data}");
    let (a, whole) = (TEXT.repeat(20), hash(&workshop, "sea/a.txt"));
    assert!(data.contains(&whole), "{data}");

    // Other words of the same length, and a word that was not there.
    for (old, new) in [("lamp", "dark"), ("lamp", "moon")] {
        workshop.write("sea/a.txt", &a.replacen(old, new, 1));
        let found = hash(&workshop, "sea/a.txt");
        let then = format!("begun with {} bytes with SHA-256 {whole}", a.len());
        assert_refused(&workshop, &[], &["sea/a.txt: has", &found, &then]);
    }
    workshop.write("sea/a.txt", &a);
    workshop.write("sea/aa.txt", TEXT);
    let added = "sea/aa.txt: was not there when the run was begun; it was begun with 2 files";
    assert_refused(&workshop, &[], &[added]);
    fs::remove_file(workshop.path("sea/aa.txt")).unwrap();
    workshop.write("sea/z.txt", TEXT);
    assert_refused(&workshop, &[], &["sea/z.txt: was not there"]);
    fs::remove_file(workshop.path("sea/z.txt")).unwrap();
    fs::rename(workshop.path("sea/b.txt"), workshop.path("b.txt")).unwrap();
    assert_refused(
        &workshop,
        &[],
        &["sea/b.txt: is not there; the run was begun with it"],
    );
    fs::rename(workshop.path("b.txt"), workshop.path("sea/b.txt")).unwrap();

    // The same bytes, changed again by nothing, and in another place.
    fs::rename(workshop.path("sea"), workshop.path("ocean")).unwrap();
    assert_refused(&workshop, &[], &["sea", "task.path"]);
    let config = workshop.path("a.toml");
    let moved = ["--out", "run", "--resume", "--set", "task.path=ocean"];
    assert_ok(&workshop.train(&config, &moved));
    let untouched = workshop.write("b.toml", &CONFIG.replace("\"sea\"", "\"ocean\""));
    assert_ok(&workshop.train(&untouched, &["--out", "whole"]));
    for file in ["metrics.jsonl", "heads.jsonl", "last/weights.safetensors"] {
        let [resumed, whole] = ["run", "whole"].map(|run| workshop.path(run).join(file));
        assert!(
            fs::read(resumed).unwrap() == fs::read(whole).unwrap(),
            "{file}"
        );
    }
}

#[test]
fn a_changed_tokenizer_is_refused() {
    let trained = CONFIG.replace("\"words\"", "{ train = \"bpe\", size = 260 }");
    let workshop = stopped(&trained);
    fs::copy(
        workshop.path("run/tokenizer.json"),
        workshop.path("given.json"),
    )
    .unwrap();
    let config = workshop.write("a.toml", &CONFIG.replace("\"words\"", "\"given.json\""));
    assert_ok(&workshop.train(&config, &["--out", "run", "--overwrite"]));
    fs::remove_dir_all(workshop.path("run/last")).unwrap();
    fs::remove_file(workshop.path("run/summary.json")).unwrap();
    let given = fs::read_to_string(workshop.path("given.json")).unwrap();
    workshop.write("given.json", &format!("{given} "));
    assert_refused(
        &workshop,
        &[],
        &["given.json: has", "the run was begun with"],
    );
    workshop.write("other.json", &given);
    let moved = [
        "--out",
        "run",
        "--resume",
        "--set",
        "task.tokens=other.json",
    ];
    assert_ok(&workshop.train(&config, &moved));
    assert_refused(&workshop, &["--set", "task.tokens=bytes"], &["task.tokens"]);
}

#[test]
fn other_keys_of_the_task_are_still_compared() {
    let workshop = stopped(CONFIG);
    let tokens = ["--set", "task.tokens=characters"];
    assert_refused(
        &workshop,
        &tokens,
        &["task.tokens = \"characters\"", "begun with \"words\""],
    );
}
