//! `inspect RUN activations`: what stands in the file is what the model has there.

mod common;

use std::fs;

use common::{Workshop, assert_ok, assert_one_line, json};
use safetensors::{Dtype, SafeTensors};

/// The numbers of an activation, and its shape.
fn activation(file: &SafeTensors, name: &str) -> (Vec<f32>, Vec<usize>) {
    let tensor = file.tensor(name).unwrap();
    assert_eq!(tensor.dtype(), Dtype::F32);
    let numbers = tensor.data().as_chunks().0.iter();
    (
        numbers.map(|&bytes| f32::from_le_bytes(bytes)).collect(),
        tensor.shape().to_vec(),
    )
}

#[test]
fn the_pattern_in_the_file_is_the_one_that_inspect_prints() {
    let workshop = Workshop::trained("run");
    let prompt = "c d e c d";
    let arguments = ["activations", "--prompt", prompt, "--to", "a.safetensors"];
    let written = json(&workshop.inspect("run", &[&arguments[..], &["--json"]].concat()));
    assert_eq!(written["sequences"], 1);

    let bytes = fs::read(workshop.path("a.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    // Every activation of the model is there, and their tokens.
    assert_eq!(
        file.len(),
        written["activations"].as_array().unwrap().len() + 1
    );
    let tokens = file.tensor("tokens").unwrap();
    assert_eq!((tokens.dtype(), tokens.shape()), (Dtype::I64, &[1, 5][..]));

    for head in 0..2 {
        let arguments = [
            "pattern",
            "--head",
            &format!("L1H{head}"),
            "--prompt",
            prompt,
            "--json",
        ];
        let printed = json(&workshop.inspect("run", &arguments));
        let (pattern, shape) = activation(&file, "blocks.1.attn.hook_pattern");
        assert_eq!(shape, [1, 2, 5, 5]);
        let rows = printed["pattern"].as_array().unwrap();
        let printed: Vec<f64> = rows
            .iter()
            .flat_map(|row| row.as_array().unwrap())
            .map(|weight| weight.as_f64().unwrap())
            .collect();
        for (place, printed) in printed.iter().enumerate() {
            let written = f64::from(pattern[head * 25 + place]);
            assert!((written - printed).abs() < 1e-6, "{written} {printed}");
        }
    }
}

#[test]
fn the_stream_after_a_block_is_the_sum_of_its_parts_on_every_sequence_of_the_probe() {
    let workshop = Workshop::trained("run");
    let sites = [
        "activations",
        "--sites",
        "blocks.0.hook_*",
        "--to",
        "a.safetensors",
    ];
    assert_ok(&workshop.inspect("run", &sites));
    let bytes = fs::read(workshop.path("a.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let [before, added, after] = ["hook_resid_pre", "hook_attn_out", "hook_resid_post"]
        .map(|name| activation(&file, &format!("blocks.0.{name}")));
    // More sequences than one pass takes.
    assert_eq!(after.1, [64, 16, 16]);
    let sums = before.0.iter().zip(&added.0);
    for ((before, added), after) in sums.zip(&after.0) {
        assert!((before + added - after).abs() < 1e-6);
    }
    assert!(file.tensor("blocks.1.hook_resid_pre").is_err());
}

#[test]
fn what_cannot_be_written_is_refused_in_one_line() {
    let workshop = Workshop::trained("run");
    workshop.write("taken.safetensors", "mine");
    let taken = ["activations", "--to", "taken.safetensors"];
    assert_one_line(
        &workshop.inspect("run", &taken),
        2,
        &["taken.safetensors", "exists already"],
    );
    let kept = fs::read_to_string(workshop.path("taken.safetensors")).unwrap();
    assert_eq!(kept, "mine");
    let unknown = [
        "activations",
        "--sites",
        "blocks.0.hook_patern",
        "--to",
        "a.safetensors",
    ];
    assert_one_line(
        &workshop.inspect("run", &unknown),
        2,
        &["--sites", "blocks.0.hook_patern", "did you mean"],
    );
    assert!(!workshop.path("a.safetensors").exists());
}
