//! Small models whose circuits are known from their task: what is induction is shown to be, and
//! what is not is not.

use std::{fs, path::Path, process::Output};

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

const JITTERED: &str = r#"
seed = 3
[task]
name = "repeat"
vocabulary = 16
prefix = [0, 4]
block = [4, 12]
[model]
n_layers = 2
n_heads = 2
d_model = 32
n_ctx = 32
[train]
steps = 700
batch_size = 32
learning_rate = 3e-3
warmup = 20
shards = 2
"#;

fn call(binary: &str, directory: &Path, arguments: &[&str]) -> Output {
    Command::cargo_bin(binary)
        .unwrap()
        .current_dir(directory)
        .args(arguments)
        .output()
        .unwrap()
}

/// A run trained on the jittered task, but for what `settings` change.
fn trained(settings: &[&str]) -> TempDir {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("jittered.toml"), JITTERED).unwrap();
    let settings: Vec<&str> = settings
        .iter()
        .flat_map(|setting| ["--set", *setting])
        .collect();
    let output = call(
        "train",
        directory.path(),
        &[&["jittered.toml", "--out", "run"], &settings[..]].concat(),
    );
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    directory
}

fn inspect(run: &TempDir, arguments: &[&str]) -> Value {
    let output = call(
        "inspect",
        run.path(),
        &[&["run"], arguments, &["--json"]].concat(),
    );
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

fn list(value: &Value) -> &Vec<Value> {
    value
        .as_array()
        .unwrap_or_else(|| panic!("{value} is no list"))
}

fn induction_heads(heads: &Value) -> usize {
    list(heads)
        .iter()
        .filter(|head| head["role"] == "induction")
        .count()
}

/// Of the sets of `swap` on the probe, the share that follows and the control's.
fn follows(swaps: &Value, name: &str) -> [f64; 2] {
    let found = list(swaps)
        .iter()
        .find(|swap| swap["on"] == "probe" && swap["name"] == name);
    let found = &found.unwrap_or_else(|| panic!("no {name} in {swaps}"))["swap_follow"];
    ["follows", "control_follows"].map(|share| number(&found[share]["mean"]))
}

#[test]
fn two_layers_learn_induction_and_every_test_finds_it() {
    let run = trained(&[]);
    let heads = inspect(&run, &["heads"]);
    assert!(induction_heads(&heads) > 0, "{heads}");
    for head in list(&heads)
        .iter()
        .filter(|head| head["role"] == "induction")
    {
        let score = &head["scores"]["induction"];
        let null = number(&head["shuffled"]["induction"]["high"]);
        assert!(number(&score["low"]) > 0.5 && null < 0.3, "{head}");
        // It looks for its own token in what a head of layer 0 wrote at the key.
        let why = inspect(&run, &["why", "--head", head["head"].as_str().unwrap()]);
        let first = &why["terms"][0];
        assert!(first["key"].as_str().unwrap().starts_with("L0H"), "{first}");
        assert_eq!(first["query"], "embedding", "{first}");
        let low = number(&first["interval"]["low"]);
        assert!(low > 4.0 * number(&first["turned"]), "{first}");
    }

    let swaps = inspect(&run, &["swap"]);
    let [follow, control] = follows(&swaps, "untouched");
    assert!(follow > 0.9 && control < 0.05, "{follow} {control}");
    let [follow, _] = follows(&swaps, "all induction");
    assert!(follow < 0.25, "{follow}");

    let ablations = inspect(&run, &["ablate"]);
    let untouched = number(&ablations["untouched"]["accuracy"]);
    assert!(untouched > 0.85, "{untouched}");
    for set in list(&ablations["sets"]) {
        let left = |how: &str| number(&set[how]["accuracy"]);
        match set["name"].as_str().unwrap() {
            "all induction" => {
                assert!(left("performance") < 0.25 && left("frozen") < 0.25, "{set}");
            }
            // It is needed, and all that it is needed for is where later heads look.
            "all previous token" => assert!(
                left("performance") < 0.7 && left("frozen") > untouched - 0.02,
                "{set}"
            ),
            _ => {}
        }
    }

    let patch = inspect(&run, &["patch"]);
    assert_ne!(patch["clean"]["answer"], patch["corrupted"]["answer"]);
    let last = number(&patch["position"]) as usize;
    for direction in ["returns", "lost"] {
        let at = |name: &str| {
            list(&patch[direction])
                .iter()
                .find(|place| place["place"] == name)
                .unwrap()
        };
        let differs = |position: &usize| {
            patch["clean"]["tokens"][*position] != patch["corrupted"]["tokens"][*position]
        };
        let changed = (0..last).find(differs).unwrap();
        assert!(
            (number(&at("blocks.0.hook_resid_pre")["by_position"][changed]) - 1.0).abs() < 1e-4
        );
        assert!(number(&at("blocks.1.hook_attn_out")["by_position"][last]) > 0.9);
        assert!(number(&at("blocks.0.hook_attn_out")["everywhere"]).abs() < 0.2);
    }
    assert!(number(&patch["pairs"]) > 32.0);
    let of_layer = |layer: char| -> f64 {
        let of = list(&patch["heads"]).iter().filter(|head| {
            head["head"]
                .as_str()
                .unwrap()
                .starts_with(&format!("L{layer}"))
        });
        of.map(|head| number(&head["returns"]["mean"])).sum()
    };
    assert!(
        of_layer('1') > 0.8 && of_layer('0').abs() < 0.1,
        "{} {}",
        of_layer('0'),
        of_layer('1')
    );

    let wrong = |arguments: &[&str], parts: &[&str]| {
        let output = call(
            "inspect",
            run.path(),
            &[&["run", "patch"], arguments].concat(),
        );
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            (output.status.code(), error.trim_end().lines().count()),
            (Some(2), 1),
            "{error}"
        );
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    };
    wrong(
        &["--prompt", "a b c", "--corrupted", "a b"],
        &["--corrupted", "2 tokens", "3"],
    );
    wrong(
        &["--prompt", "a b c", "--corrupted", "a zz c"],
        &["--corrupted", "zz", "no token"],
    );
    wrong(
        &["--prompt", "a b c"],
        &["--prompt", "c", "give --corrupted"],
    );
    wrong(
        &["--prompt", "a b c a", "--position", "4"],
        &["--position", "4", "4 tokens"],
    );
    wrong(
        &["--prompt", "a b c a", "--corrupted", "a b c a"],
        &["answer to both prompts"],
    );
    for command in ["patch", "swap", "ablate", "paths"] {
        assert!(
            call("inspect", run.path(), &["run", command])
                .status
                .success(),
            "{command}"
        );
    }
}

#[test]
fn one_layer_learns_no_induction() {
    let run = trained(&["model.n_layers=1", "train.steps=400"]);
    let heads = inspect(&run, &["heads"]);
    assert_eq!(induction_heads(&heads), 0, "{heads}");
    assert!(number(&inspect(&run, &["evaluate"])["accuracy"]) < 0.5);
    let [follow, _] = follows(&inspect(&run, &["swap"]), "untouched");
    assert!(follow < 0.5, "{follow}");
}

#[test]
fn a_fixed_period_is_solved_by_position_and_called_no_induction() {
    let fixed = [
        "task.prefix=[0,0]",
        "task.block=[8,8]",
        "model.n_layers=1",
        "train.steps=400",
    ];
    let run = trained(&fixed);
    let own = inspect(&run, &["evaluate"]);
    assert!(number(&own["accuracy"]) > 0.99);
    // On its own sequences the score alone would say induction.
    let highest = list(&own["heads"])
        .iter()
        .map(|head| number(&head["scores"]["induction"]["value"]))
        .fold(0.0, f64::max);
    assert!(highest > 0.6, "{highest}");
    assert_eq!(induction_heads(&inspect(&run, &["heads"])), 0);
    assert!(number(&inspect(&run, &["evaluate", "--on", "jittered.toml"])["accuracy"]) < 0.45);
}
