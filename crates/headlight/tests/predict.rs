//! What `inspect predict` prints is what the lens measures.

mod common;

use burn::tensor::{Device, Int, Tensor, TensorData, activation::softmax};
use common::{Workshop, assert_one_line, json};
use headlight_heads::HeadName;
use headlight_lens::{Ablation, Behaviour, ablate};
use headlight_residual::{Decoder, Edit, Edits, KeptTensor, Part, token_tensor};
use headlight_run::{RunDirectory, Weights};
use headlight_watch::{device, model, uses};
use serde_json::Value;

const PROMPT: &str = "a b c a b c a";
const OTHER: &str = "b b c d b c a";

/// A model whose heads say something without having learned it.
fn workshop() -> Workshop {
    let workshop = Workshop::new();
    let config = workshop.write("small.toml", common::SMALL);
    common::assert_ok(&workshop.train(&config, &["--out", "run", "--set", "model.init_std=0.5"]));
    workshop
}

impl Workshop {
    fn predict(&self, arguments: &[&str]) -> Value {
        json(&self.inspect(
            "run",
            &[&["predict", "--prompt", PROMPT, "--json"], arguments].concat(),
        ))
    }
}

fn device() -> Device {
    device::open("flex").unwrap()
}

/// Token, probability and probability without the changes.
fn rows(predictions: &Value) -> Vec<(String, f64, Option<f64>)> {
    let row = |row: &Value| {
        let token = row["token"].as_str().unwrap().to_owned();
        (
            token,
            row["probability"].as_f64().unwrap(),
            row["untouched"].as_f64(),
        )
    };
    predictions["predictions"]
        .as_array()
        .unwrap()
        .iter()
        .map(row)
        .collect()
}

/// `ln p(a)/p(b)`, the difference of their logits.
fn difference(predictions: &Value, a: &str, b: &str) -> f64 {
    let rows = rows(predictions);
    let of = |name: &str| rows.iter().find(|(token, ..)| token == name).unwrap().1;
    (of(a) / of(b)).ln()
}

/// What the lens pays for the token `answer` after `position` without `heads`, as a probability.
fn probability(
    model: &Decoder,
    tokens: &[u32],
    position: usize,
    answer: u32,
    heads: &[HeadName],
) -> f64 {
    let ids: Vec<i32> = tokens.iter().map(|&token| token as i32).collect();
    let inputs = Tensor::<2, Int>::from_data(TensorData::new(ids, [1, tokens.len()]), &device());
    let scored = (0..tokens.len()).map(|at| at == position).collect();
    let behaviour = Behaviour::new(inputs, vec![vec![answer; tokens.len()]], vec![scored]);
    (-ablate(model, &behaviour, heads, Ablation::Zero)
        .unwrap()
        .loss)
        .exp()
}

#[test]
fn probabilities_with_and_without_heads_are_those_of_the_lens() {
    let workshop = workshop();
    let run = RunDirectory::open(&workshop.path("run")).unwrap();
    let model = model::load(&run, &run.config().unwrap(), Weights::Last, &device()).unwrap();
    let vocabulary = run.vocabulary().unwrap();
    let id = |name: &str| vocabulary.iter().position(|known| known == name).unwrap() as u32;
    let tokens: Vec<u32> = PROMPT.split(' ').map(id).collect();
    for (off, position) in [
        ("", None),
        ("L1H0", None),
        ("L0H1,L1H0", None),
        ("L0H1,L0H0", Some(3)),
    ] {
        let at = position.map(|position: usize| position.to_string());
        // With 0 in place of a head the lens needs no sequences of the task.
        let mut arguments = vec!["--top", "12"];
        arguments.extend(at.iter().flat_map(|at| ["--position", at]));
        arguments.extend(
            (!off.is_empty())
                .then_some(["--off", off, "--by", "zero"])
                .into_iter()
                .flatten(),
        );
        let predictions = workshop.predict(&arguments);
        let heads: Vec<HeadName> = off
            .split(',')
            .filter(|name| !name.is_empty())
            .map(|name| name.parse().unwrap())
            .collect();
        let position = position.unwrap_or(6);
        assert_eq!(
            (&predictions["position"], rows(&predictions).len()),
            (&position.into(), vocabulary.len())
        );
        for (token, found, untouched) in rows(&predictions) {
            let expected =
                |heads: &[HeadName]| probability(&model, &tokens, position, id(&token), heads);
            let near = |found: f64, expected: f64| (found - expected).abs() <= 1e-5 * expected;
            assert!(near(found, expected(&heads)), "{off} {token}: {found}");
            assert_eq!(untouched.is_some(), !heads.is_empty());
            assert!(
                untouched.is_none_or(|untouched| near(untouched, expected(&[]))),
                "{off} {token}: {untouched:?}"
            );
        }
    }
}

#[test]
fn a_head_that_is_off_leaves_what_by_says() {
    let workshop = workshop();
    let run = RunDirectory::open(&workshop.path("run")).unwrap();
    let config = run.config().unwrap();
    let model = model::load(&run, &config, Weights::Last, &device()).unwrap();
    let vocabulary = run.vocabulary().unwrap();
    let id = |name: &str| vocabulary.iter().position(|known| known == name).unwrap() as u32;
    let tokens: Vec<u32> = PROMPT.split(' ').map(id).collect();
    // What L1H0 blends on the sequences that `ablate` measures on.
    let task = headlight_tasks::build(&config.task, config.model.n_ctx, config.seed).unwrap();
    let sequences = task.validation(config.seed).sequences;
    let reference = uses::behaviour(&sequences, uses::SEQUENCES, &device());
    let site = "blocks.1.attn.hook_z".parse().unwrap();
    let seen = model.activations(reference.inputs(), &[site]).unwrap();
    let blends = seen.tensor::<4>(site);
    let places = [
        ("mean", blends.clone().mean_dim(0).mean_dim(1)),
        (
            "resample",
            blends.narrow(0, 0, 1).narrow(1, 0, tokens.len()),
        ),
    ];
    let mut answers = Vec::new();
    for (by, place) in places {
        let edit = Edit::Replace(KeptTensor::from(place));
        let mut edits = Edits::default().part(site, Part::heads(&[0]), edit);
        let logits = model.forward_probed(
            token_tensor(std::slice::from_ref(&tokens), &device()),
            &mut edits,
        );
        let expected: Vec<f64> = softmax(logits.narrow(1, tokens.len() - 1, 1), 2)
            .into_data()
            .iter::<f64>()
            .collect();
        let predictions = workshop.predict(&["--top", "12", "--off", "L1H0", "--by", by]);
        assert_eq!(predictions["by"], by);
        for (token, found, _) in rows(&predictions) {
            let expected = expected[id(&token) as usize];
            assert!((found - expected).abs() <= 1e-5 * expected, "{by} {token}");
        }
        answers.push(rows(&predictions));
    }
    assert_ne!(answers[0], answers[1]);
    // The mean is what nobody has to ask for.
    let unasked = workshop.predict(&["--top", "12", "--off", "L1H0"]);
    assert_eq!(rows(&unasked), answers[0]);
}

#[test]
fn a_patch_moves_the_answer_as_far_as_the_lens_says() {
    let workshop = workshop();
    let patching = json(&workshop.inspect(
        "run",
        &["patch", "--prompt", PROMPT, "--corrupted", OTHER, "--json"],
    ));
    let [clean, corrupted] =
        ["clean", "corrupted"].map(|prompt| patching[prompt]["answer"].as_str().unwrap());
    let m = |predictions: &Value| difference(predictions, clean, corrupted);
    let all = ["--top", "12"];
    let base = m(&workshop.predict(&all));
    let other = json(&workshop.inspect(
        "run",
        &["predict", "--prompt", OTHER, "--top", "12", "--json"],
    ));
    let mut moved = 0.0_f64;
    for place in patching["lost"].as_array().unwrap() {
        let site = place["place"].as_str().unwrap();
        if !site.starts_with("blocks.") {
            continue;
        }
        let at = |position: usize| {
            (
                format!("{site}@{position}"),
                &place["by_position"][position],
            )
        };
        for (place, expected) in (0..7)
            .map(at)
            .chain([(site.to_owned(), &place["everywhere"])])
        {
            let patch = ["--patch-from", OTHER, "--patch", place.as_str()];
            let patched = workshop.predict(&[&all[..], &patch].concat());
            let share = (m(&patched) - base) / (m(&other) - base);
            assert!(
                (share - expected.as_f64().unwrap()).abs() < 1e-4,
                "{place}: {share} beside {expected}"
            );
            moved = moved.max(share);
        }
    }
    assert!(
        moved > 0.9,
        "some place brings all of the other prompt's answer: {moved}"
    );
    // The same at several places at once: the stream before the last token of the other prompt,
    // token by token.
    let pieces = [
        "--patch",
        "hook_embed@0,1,2",
        "--patch",
        "hook_embed@3,4,5,6",
        "--patch-from",
        OTHER,
    ];
    let pieces = rows(&workshop.predict(&pieces));
    let whole = rows(&other);
    assert!(
        pieces
            .iter()
            .zip(&whole)
            .take(5)
            .all(|(a, b)| a.0 == b.0 && (a.1 - b.1).abs() < 1e-6),
        "{pieces:?}"
    );
}

#[test]
fn what_was_likeliest_before_stays_in_sight() {
    let workshop = workshop();
    let before = rows(&workshop.predict(&["--top", "1"]));
    assert!(before.len() == 1 && before[0].2.is_none());
    let all = ["--off", "L0H0,L0H1,L1H0,L1H1", "--top", "1"];
    let after = workshop.predict(&all);
    assert_eq!(after["changes"].as_array().unwrap().len(), 4);
    let after = rows(&after);
    assert_eq!(after.len(), 2, "the heads change the answer");
    assert!(after[0].1 > after[1].1);
    assert_eq!((&after[1].0, after[1].2), (&before[0].0, Some(before[0].1)));

    let text = |arguments: &[&str]| {
        let output = workshop.inspect(
            "run",
            &[&["predict", "--prompt", PROMPT], arguments].concat(),
        );
        common::assert_ok(&output);
        String::from_utf8(output.stdout).unwrap()
    };
    let plain = text(&[]);
    assert!(
        plain.contains("next after position 6, a") && !plain.contains("untouched"),
        "{plain}"
    );
    let changed = text(&all);
    for part in [
        "L1H1 off: its mean over sequences and positions in place of",
        "untouched",
        &format!("{:.4}", before[0].1),
    ] {
        assert!(changed.contains(part), "{part:?} is not in\n{changed}");
    }
}

#[test]
fn what_cannot_be_predicted_is_said_in_one_line() {
    let workshop = Workshop::trained("run");
    let refused = |arguments: &[&str], parts: &[&str]| {
        assert_one_line(
            &workshop.inspect("run", &[&["predict"], arguments].concat()),
            2,
            parts,
        );
    };
    refused(&["--prompt", "a zebra"], &["--prompt", "zebra"]);
    refused(&["--prompt", " "], &["--prompt", "empty"]);
    refused(
        &["--prompt", &"a ".repeat(17)],
        &["--prompt", "17 tokens", "16"],
    );
    refused(
        &["--prompt", "a b", "--position", "2"],
        &["--position", "2", "2 tokens"],
    );
    refused(&["--prompt", "a b", "--top", "0"], &["--top", "at least 1"]);
    refused(
        &["--prompt", "a b", "--off", "L0H0,L2H0"],
        &["--off", "L2H0", "no such head"],
    );
    let patched = |from: &str, place: &str, parts: &[&str]| {
        refused(
            &["--prompt", "a b", "--patch-from", from, "--patch", place],
            parts,
        );
    };
    patched("a b c", "hook_embed", &["--patch-from", "3 tokens", "2"]);
    patched("a zebra", "hook_embed", &["--patch-from", "zebra"]);
    patched("a b", "hook_embd", &["--patch", "hook_embed?"]);
    patched("a b", "", &["--patch"]);
    patched(
        "a b",
        "blocks.0.mlp.hook_pre",
        &["--patch", "not in this model"],
    );
    patched("a b", "hook_embed@0,2", &["--patch", "2 tokens"]);
    patched(
        "a b",
        "hook_embed@-1",
        &["--patch hook_embed@-1", "no position"],
    );
    patched(
        "a b",
        "hook_embed@",
        &["--patch hook_embed@", "no position"],
    );
    let many: Vec<&str> = ["--patch", "hook_embed"].repeat(9);
    refused(
        &[&["--prompt", "a b", "--patch-from", "a b"], &many[..]].concat(),
        &["--patch", "more than 8"],
    );
    // What clap refuses has its usage below.
    for arguments in [
        &["--prompt", "a", "--off", "head"][..],
        &["--prompt", "a", "--off", "L0H0", "--by", "nothing"],
        &["--prompt", "a", "--by", "zero"],
        &["--prompt", "a", "--patch", "hook_embed"],
        &[],
    ] {
        assert_eq!(
            workshop
                .inspect("run", &[&["predict"], arguments].concat())
                .status
                .code(),
            Some(2)
        );
    }
}
