//! Configurations that cannot be right: one clear line, exit code 2, and nothing written.

mod common;

use std::fs;

use common::{SMALL, Workshop, assert_one_line};

#[test]
fn wrong_input_is_one_clear_line_and_nothing_is_written() {
    let workshop = Workshop::new();
    let config = workshop.write("small.toml", SMALL);
    let cases: &[(&str, &[&str])] = &[
        ("train.stepz=5", &["--set train.stepz=5", "train.stepz = 5", "did you mean steps?"]),
        ("trian.steps=5", &["trian", "did you mean train?"]),
        ("sede=5", &["sede = 5", "did you mean seed?"]),
        ("train.steps=many", &["train.steps = \"many\"", "expected usize"]),
        ("train.steps=0", &["train.steps = 0", "at least 1"]),
        ("train.steps=-1", &["train.steps = -1"]),
        ("train.steps=1.5", &["train.steps = 1.5"]),
        ("train.batch_size=0", &["train.batch_size = 0"]),
        ("train.shards=3", &["train.shards = 3", "train.batch_size = 8"]),
        ("train.warmup=25", &["train.warmup = 25", "train.steps = 25"]),
        ("train.learning_rate=0", &["train.learning_rate = 0"]),
        ("train.learning_rate=nan", &["train.learning_rate = NaN"]),
        ("train.schedule=cosin", &["train.schedule = \"cosin\"", "did you mean cosine?"]),
        ("train.betas=[0.9, 1.0]", &["train.betas = 1", "below 1"]),
        ("train.clip=-1", &["train.clip = -1"]),
        ("model.n_heads=3", &["model.d_model = 16", "model.n_heads = 3"]),
        ("model.d_model=0", &["model.d_model = 0"]),
        ("model.d_ff=8", &["model.d_ff = 8", "no feed-forward"]),
        ("model.n_ctx=7", &["task.block = 5", "model.n_ctx = 7"]),
        ("model.feed_forward=swish", &["model.feed_forward = \"swish\""]),
        ("model.attention_scale=0", &["model.attention_scale = 0"]),
        ("model.preset=gpt3", &["model.preset = \"gpt3\"", "did you mean gpt2?"]),
        ("model.n_kv_heads=3", &["model.n_kv_heads = 3", "model.n_heads = 2"]),
        ("model.norm=rms", &["model.norm = \"rms\"", "rms_norm"]),
        ("model.norm_epsilon=0", &["model.norm_epsilon = 0"]),
        ("model.positions=rotery", &["model.positions = \"rotery\"", "did you mean rotary?"]),
        ("model.rotary_base=500.0", &["model.rotary_base = 500", "nothing rotates"]),
        ("model.window=0", &["model.window = 0", "at least 1"]),
        ("model.feed_forward_bias=true", &["model.feed_forward_bias = true", "no feed-forward"]),
        ("model.tied_embedding=maybe", &["model.tied_embedding = \"maybe\"", "boolean"]),
        ("model.initialization=gpt3", &["model.initialization = \"gpt3\"", "did you mean gpt2?"]),
        ("task.name=repaet", &["task.name = \"repaet\"", "did you mean repeat?"]),
        ("task.blok=[1, 2]", &["task.blok = [1, 2]", "did you mean block?"]),
        ("task.block=[5, 3]", &["task.block = [5, 3]"]),
        ("task.vocabulary=1", &["task.vocabulary = 1"]),
        ("log.every=0", &["log.every = 0"]),
        ("checkpoint.every=0", &["checkpoint.every = 0"]),
        ("steps", &["--set steps", "KEY=VALUE"]),
        ("=1", &["KEY=VALUE"]),
        ("seed.deep=1", &["seed", "not a table"]),
    ];
    for (assignment, parts) in cases {
        let output = workshop.train(&config, &["--out", "run", "--set", assignment]);
        assert_one_line(&output, 2, parts);
        assert!(!workshop.path("run").exists(), "{assignment} left a run");
    }
}

#[test]
fn wrong_numbers_of_a_task_are_one_clear_line() {
    let workshop = Workshop::new();
    let config = workshop.write("small.toml", SMALL);
    let cases: &[(&str, &str, &[&str])] = &[
        ("{ name = 'icl_markov', states = 1 }", "16", &["task.states = 1", "between 2 and 64"]),
        ("{ name = 'icl_markov', concentration = 0 }", "16", &["task.concentration = 0", "above 0"]),
        ("{ name = 'recall', pairs = 8 }", "16", &["task.pairs = 8", "no query", "model.n_ctx = 16"]),
        ("{ name = 'recall', keys = 4, pairs = 5 }", "16", &["task.pairs = 5", "task.keys = 4"]),
        ("{ name = 'recall', pair = 5 }", "16", &["task.pair = 5", "did you mean pairs?"]),
        ("{ name = 'modular_addition' }", "16", &["model.n_ctx = 16", "must be 3"]),
        ("{ name = 'modular_addition', modulus = 7 }", "3", &["train.batch_size = 8", "must be 14", "training set"]),
        ("{ name = 'modular_addition', train_share = 1.0 }", "3", &["task.train_share = 1", "113² pairs"]),
        ("{ name = 'sort' }", "16", &["task.length = 10", "model.n_ctx = 20, it is 16"]),
        ("{ name = 'reverse', symbols = 2, length = 8 }", "16", &["task.length = 8", "256 sequences"]),
        ("{ name = 'dyck', kinds = 1 }", "15", &["task.kinds = 1", "between 2 and 4"]),
        ("{ name = 'dyck' }", "16", &["model.n_ctx = 16", "must be odd"]),
    ];
    for (task, n_ctx, parts) in cases {
        let (task, n_ctx) = (format!("task={task}"), format!("model.n_ctx={n_ctx}"));
        let output = workshop.train(&config, &["--out", "run", "--set", &task, "--set", &n_ctx]);
        assert_one_line(&output, 2, parts);
        assert!(!workshop.path("run").exists(), "{task} left a run");
    }
}

#[test]
fn a_wrong_file_is_named_with_its_line() {
    let workshop = Workshop::new();
    let broken = workshop.write("broken.toml", "seed = 0\n[task\n");
    assert_one_line(&workshop.train(&broken, &[]), 2, &["broken.toml:2"]);
    let empty = workshop.write("empty.toml", "");
    assert_one_line(&workshop.train(&empty, &[]), 2, &["empty.toml", "task", "missing"]);
    let no_steps = workshop.write("no_steps.toml", &SMALL.replace("steps = 25", ""));
    assert_one_line(&workshop.train(&no_steps, &[]), 2, &["no_steps.toml", "train.steps", "missing"]);
    let wrong = workshop.write("wrong.toml", &SMALL.replace("d_model = 16", "d_modell = 16"));
    assert_one_line(&workshop.train(&wrong, &[]), 2, &["wrong.toml", "model.d_modell = 16", "did you mean d_model?"]);
    assert_one_line(&workshop.train(&workshop.path("nowhere.toml"), &[]), 2, &["nowhere.toml", "cannot read"]);
    assert_one_line(&workshop.train(workshop.0.path(), &[]), 2, &["is not a file"]);
    fs::write(workshop.path("binary.toml"), [0xff, 0xfe, 0x00]).unwrap();
    assert_one_line(&workshop.train(&workshop.path("binary.toml"), &[]), 2, &["binary.toml"]);
    assert_one_line(&workshop.train(&broken, &["--device", "cuda"]), 2, &["broken.toml:2"]);
    let good = workshop.write("good.toml", SMALL);
    assert_one_line(&workshop.train(&good, &["--device", "tpu"]), 2, &["--device tpu", "flex"]);
    assert!(!workshop.path("runs").exists());
}
