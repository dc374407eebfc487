//! Every verb of `inspect` on every architecture: a number of each follows from the model by another
//! way, or one line says why there is none. `docs/verbs.md` has the same as a table.

mod common;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use burn::tensor::{
    Device, Tensor,
    activation::{log_softmax, softmax},
};
use common::{Workshop, ask, assert_ok};
use headlight_inspect::Need;
use headlight_lens::{Ablation, swap_follow};
use headlight_residual::{
    AttentionSite, BlockSite, Decoder, Edit, Edits, KeptTensor, Norm, NormPlacement, Part,
    Positions, Projection, Site, from_huggingface, token_tensor,
};
use headlight_run::{Config, RunDirectory, Weights};
use headlight_tasks::{self as tasks, Sequence};
use headlight_watch::{Cores, Watched, device, evaluate, model, probe, uses::SEQUENCES};
use safetensors::SafeTensors;
use serde_json::{Value, json};

/// Name of each architecture, as in the table, and its keys in `[model]`.
const ARCHITECTURES: [(&str, &str); 13] = [
    ("attention only", ""),
    (
        "gpt2",
        "feed_forward = 'gelu_tanh', attention_bias = true, tied_embedding = true",
    ),
    (
        "llama",
        "norm = 'rms_norm', positions = 'rotary', feed_forward = 'swiglu', n_kv_heads = 2",
    ),
    (
        "post-norm",
        "norm_placement = 'post', feed_forward = 'relu'",
    ),
    ("post-norm, no MLP", "norm_placement = 'post'"),
    ("RMS norm", "norm = 'rms_norm', feed_forward = 'gelu'"),
    ("no norm", "norm = 'none', feed_forward = 'relu'"),
    ("grouped queries", "n_kv_heads = 2, attention_bias = true"),
    ("window", "window = 4"),
    ("rotary", "positions = 'rotary'"),
    ("ALiBi", "positions = 'alibi'"),
    (
        "sinusoidal",
        "positions = 'sinusoidal', feed_forward = 'gelu'",
    ),
    ("no positions", "positions = 'none'"),
];

const LAYERS: usize = 2;
const HEADS: usize = 4;
const N_CTX: usize = 16;
const PROMPT: &str = "a b c d a b c";
const OTHER: &str = "d b a c a d c";
/// One of them makes each model answer otherwise than after `PROMPT`.
const CORRUPTED: [&str; 5] = [
    OTHER,
    "e f g h i j k",
    "k k k k k k k",
    "a a b b l l f",
    "g g g h h h h",
];

/// A trained run, looked at with the program, and its model for the other way to each number.
struct Looked {
    workshop: Workshop,
    config: Config,
    model: Decoder,
    vocabulary: Vec<String>,
}

/// What a verb says of an architecture: nothing if its numbers are right, else why there are none.
type Verdict = Option<String>;

impl Looked {
    fn train(task: &str, keys: &str, n_ctx: usize) -> Self {
        let comma = if keys.is_empty() { "" } else { ", " };
        let text = format!(
            "
            seed = 1
            task = {task}
            model = {{ n_layers = {LAYERS}, n_heads = {HEADS}, d_model = 16, n_ctx = {n_ctx}, init_std = 0.5, initialization = 'normal'{comma}{keys} }}
            train = {{ steps = 4, batch_size = 4, learning_rate = 1e-3, shards = 1 }}
            log = {{ every = 2, patterns_every = 4 }}
            "
        );
        let workshop = Workshop::new();
        let config = workshop.write("small.toml", &text);
        assert_ok(&workshop.train(&config, &["--out", "run"]));
        let run = RunDirectory::open(&workshop.path("run")).unwrap();
        let config = run.config().unwrap();
        let model = model::load(&run, &config, Weights::Last, &device()).unwrap();
        let vocabulary = run.vocabulary().unwrap();
        Self {
            workshop,
            config,
            model,
            vocabulary,
        }
    }

    fn repeat(keys: &str) -> Self {
        let task = "{ name = 'repeat', vocabulary = 12, prefix = [0, 2], block = [3, 5] }";
        Self::train(task, keys, N_CTX)
    }

    /// The JSON of a verb; if the model has none, the one line on standard error.
    fn try_verb(&self, arguments: &[&str]) -> Result<Value, String> {
        let output = self
            .workshop
            .inspect("run", &[arguments, &["--json"]].concat());
        if output.status.success() {
            return Ok(serde_json::from_slice(&output.stdout).unwrap());
        }
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert_eq!(error.trim_end().lines().count(), 1, "{error}");
        Err(error.trim_end().to_owned())
    }

    #[track_caller]
    fn verb(&self, arguments: &[&str]) -> Value {
        self.try_verb(arguments)
            .unwrap_or_else(|error| panic!("{arguments:?}: {error}"))
    }

    fn tokens(&self, prompt: &str) -> Vec<u32> {
        let token = |name: &str| self.vocabulary.iter().position(|known| known == name);
        prompt
            .split(' ')
            .map(|name| token(name).unwrap() as u32)
            .collect()
    }

    /// `[position][token]`: log-probabilities of what comes next.
    fn log_probabilities(&self, tokens: &[u32], edits: Edits) -> Vec<Vec<f64>> {
        let mut edits = edits;
        let inputs = token_tensor(&[tokens], &device());
        let logits = self.model.forward_probed(inputs, &mut edits);
        assert_eq!(edits.unmet(), []);
        rows(log_softmax(logits, 2))
    }

    fn probabilities(&self, prompt: &str, edits: Edits) -> Vec<f64> {
        let all = self.log_probabilities(&self.tokens(prompt), edits);
        all.last().unwrap().iter().map(|log| log.exp()).collect()
    }

    fn validation(&self) -> Vec<Sequence> {
        let Config {
            task, model, seed, ..
        } = &self.config;
        let task = tasks::build(task, model.n_ctx, *seed).unwrap();
        task.validation(*seed).sequences
    }

    /// The mean loss of the scored targets of the first `count` validation sequences.
    fn loss(&self, count: usize, edits: &Edits) -> f64 {
        let sequences = self.validation();
        let (mut sum, mut scored) = (0.0, 0);
        for sequence in sequences.iter().take(count) {
            let length = sequence.scored.len();
            let logs = self.log_probabilities(&sequence.tokens[..length], edits.clone());
            for (position, log) in logs.iter().enumerate() {
                if sequence.scored[position] {
                    sum -= log[sequence.tokens[position + 1] as usize];
                    scored += 1;
                }
            }
        }
        sum / f64::from(scored)
    }

    fn probe(&self) -> Vec<Vec<u32>> {
        let Config {
            task, model, seed, ..
        } = &self.config;
        let task = tasks::build(task, model.n_ctx, *seed).unwrap();
        Watched::probe(&probe(&*task, N_CTX, *seed)).tokens
    }

    /// The pattern of each head on one sequence: `[head][query][key]`.
    fn patterns(&self, tokens: &[u32]) -> Vec<Vec<Vec<f64>>> {
        let sites = self.model.pattern_sites();
        let inputs = token_tensor(&[tokens], &device());
        let seen = self.model.activations(inputs, &sites).unwrap();
        let mut heads = Vec::new();
        for site in sites {
            for head in 0..HEADS {
                let pattern = seen.tensor::<4>(site).narrow(1, head, 1);
                heads.push(rows(pattern.squeeze_dim(0)));
            }
        }
        heads
    }

    /// The previous-token score of each head on the probe: the mean of `A[q, q − 1]` over `q ≥ 1`.
    fn previous_token_scores(&self) -> Vec<f64> {
        let mut sums = [0.0; LAYERS * HEADS];
        let mut count = 0;
        for tokens in self.probe() {
            let patterns = self.patterns(&tokens);
            for (sum, pattern) in sums.iter_mut().zip(&patterns) {
                *sum += (1..tokens.len()).map(|q| pattern[q][q - 1]).sum::<f64>();
            }
            count += tokens.len() - 1;
        }
        sums.iter().map(|sum| sum / count as f64).collect()
    }
}

fn device() -> Device {
    device::open("flex").unwrap()
}

/// The rows of `[1, rows, columns]`.
fn rows(tensor: Tensor<3>) -> Vec<Vec<f64>> {
    let [_, _, columns] = tensor.dims();
    let numbers: Vec<f64> = tensor.into_data().iter::<f64>().collect();
    numbers.chunks(columns).map(<[f64]>::to_vec).collect()
}

#[track_caller]
fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("no number: {value}"))
}

#[track_caller]
fn list(value: &Value) -> &Vec<Value> {
    value
        .as_array()
        .unwrap_or_else(|| panic!("no list: {value}"))
}

#[track_caller]
fn assert_near(what: &str, found: f64, expected: f64) {
    let bound = 1e-4 * expected.abs().max(1.0);
    let near = (found - expected).abs() <= bound;
    assert!(near, "{what} is {found}, not {expected}");
}

/// The same JSON; numbers may differ by their last digits, which reading them back may change.
#[track_caller]
fn assert_same_numbers(what: &str, found: &Value, expected: &Value) {
    match (found, expected) {
        (Value::Number(_), Value::Number(_)) => {
            let (found, expected) = (number(found), number(expected));
            assert!(
                (found - expected).abs() < 1e-12,
                "{what} is {found}, not {expected}"
            );
        }
        (Value::Object(found), Value::Object(expected)) => {
            assert!(found.keys().eq(expected.keys()), "{what}");
            for (key, found) in found {
                assert_same_numbers(&format!("{what}.{key}"), found, &expected[key]);
            }
        }
        _ => assert_eq!(found, expected, "{what}"),
    }
}

/// The first of the largest.
fn likeliest(numbers: &[f64]) -> usize {
    let largest = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    numbers.iter().position(|x| *x == largest).unwrap()
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

fn all_heads() -> Vec<String> {
    (0..LAYERS)
        .flat_map(|layer| (0..HEADS).map(move |head| format!("L{layer}H{head}")))
        .collect()
}

fn check_heads(run: &Looked) -> Verdict {
    let heads = run.verb(&["heads"]);
    let expected = run.previous_token_scores();
    assert_eq!(list(&heads).len(), expected.len());
    for (head, expected) in list(&heads).iter().zip(expected) {
        let found = number(&head["scores"]["previous token"]["value"]);
        assert_near("previous token", found, expected);
    }
    None
}

fn check_pattern(run: &Looked) -> Verdict {
    let found = run.verb(&["pattern", "--prompt", PROMPT]);
    let expected = run.patterns(&run.tokens(PROMPT));
    let window = run.config.model.window.unwrap_or(usize::MAX);
    for (found, expected) in list(&found).iter().zip(&expected) {
        for (q, row) in list(&found["pattern"]).iter().enumerate() {
            let row: Vec<f64> = list(row).iter().map(number).collect();
            assert_near("a row", row.iter().sum(), 1.0);
            for (k, weight) in row.iter().enumerate() {
                assert_near("a weight", *weight, expected[q][k]);
                if k > q || q - k >= window {
                    assert_eq!(*weight, 0.0, "{q} to {k}");
                }
            }
        }
    }
    None
}

fn check_scores(run: &Looked) -> Verdict {
    let rows = run.verb(&["scores", "--head", "L1H2"]);
    let last = list(&rows).iter().rev().find(|row| row["on"] == "probe");
    let last = last.unwrap();
    assert_eq!((&last["step"], &last["head"]), (&json!(4), &json!("L1H2")));
    let expected = run.previous_token_scores()[HEADS + 2];
    let found = number(&last["scores"]["previous token"]["value"]);
    assert_near("previous token", found, expected);
    None
}

fn check_curves(run: &Looked) -> Verdict {
    let rows = run.verb(&["curves"]);
    let last = list(&rows).last().unwrap();
    let expected = run.loss(usize::MAX, &Edits::default());
    assert_near("validation", number(&last["validation"]), expected);
    None
}

fn check_evaluate(run: &Looked) -> Verdict {
    let found = run.verb(&["evaluate"]);
    let expected = run.loss(usize::MAX, &Edits::default());
    assert_near("loss", number(&found["loss"]), expected);
    None
}

fn check_phases(run: &Looked) -> Verdict {
    let found = run.verb(&["phases"]);
    let mut losses = vec![Vec::new(); N_CTX];
    for sequence in run.validation().iter().take(SEQUENCES) {
        let length = sequence.scored.len();
        let logs = run.log_probabilities(&sequence.tokens[..length], Edits::default());
        for (position, log) in logs.iter().enumerate() {
            if sequence.scored[position] {
                losses[position].push(-log[sequence.tokens[position + 1] as usize]);
            }
        }
    }
    assert!(!list(&found["by_position"]).is_empty());
    for row in list(&found["by_position"]) {
        let position = number(&row["position"]) as usize;
        assert_near("loss", number(&row["loss"]), mean(&losses[position]));
    }
    None
}

fn check_ablate(run: &Looked) -> Verdict {
    let found = run.verb(&["ablate", "--by", "zero"]);
    let nothing = run.loss(SEQUENCES, &Edits::default());
    assert_near("untouched", number(&found["untouched"]["loss"]), nothing);
    for (index, alone) in list(&found["alone"]).iter().enumerate() {
        let (layer, head) = (index / HEADS, index % HEADS);
        let z = Site::Attention(layer, AttentionSite::Z);
        let off = Edits::default().part(z, Part::heads(&[head]), Edit::Zero);
        let loss = number(&alone["performance"]["loss"]);
        assert_near(&format!("L{layer}H{head}"), loss, run.loss(SEQUENCES, &off));
        if layer == LAYERS - 1 {
            // No later head looks elsewhere.
            assert_eq!(alone["frozen"], alone["performance"]);
        }
    }
    None
}

/// The edit of the input of keys of layer 1 that hides L0H1: its mean stands in place of its result.
fn hidden_from_keys(run: &Looked, tokens: &[Vec<u32>]) -> Edits {
    let result = Site::Attention(0, AttentionSite::Result);
    let inputs = token_tensor(tokens, &device());
    let seen = run.model.activations(inputs, &[result]).unwrap();
    let of_head = seen.tensor::<4>(result).narrow(2, 1, 1).squeeze_dim::<3>(2);
    let hide = of_head.clone().mean_dim(0).mean_dim(1) - of_head;
    let input = Site::Block(1, BlockSite::KInput);
    Edits::default().at(input, Edit::Add(KeptTensor::from(hide)))
}

fn check_paths(run: &Looked) -> Verdict {
    let found = match run.try_verb(&["paths"]) {
        Ok(found) => found,
        Err(error) => return Some(error),
    };
    // Layer 0 and each of its heads, hidden from three inputs of layer 1.
    let paths = list(&found["paths"]);
    assert_eq!(paths.len(), (1 + HEADS) * 3);
    let path = paths
        .iter()
        .find(|path| path["writer"] == "L0H1" && path["input"] == "key");
    let sequences: Vec<Sequence> = run.validation().into_iter().take(SEQUENCES).collect();
    let tokens: Vec<Vec<u32>> = sequences
        .iter()
        .map(|sequence| sequence.tokens[..sequence.scored.len()].to_vec())
        .collect();
    let inputs = token_tensor(&tokens, &device());
    let mut hidden = hidden_from_keys(run, &tokens);
    let logits = run.model.forward_probed(inputs, &mut hidden);
    let loss = number(&path.unwrap()["performance"]["loss"]);
    assert_near(
        "L0H1 hidden from keys",
        loss,
        mean_loss(&logits, &sequences),
    );
    None
}

fn check_positions(run: &Looked) -> Verdict {
    let found = run.verb(&["positions"]);
    let site = Site::Attention(1, AttentionSite::Result);
    let stream = Site::Block(1, BlockSite::ResidPre);
    let inputs = token_tensor(&run.probe(), &device());
    let seen = run.model.activations(inputs, &[site, stream]).unwrap();
    let square = |x: Tensor<3>| f64::from(x.square().mean().into_scalar::<f32>());
    let stream = square(seen.tensor(stream));
    for head in 0..HEADS {
        let result = seen
            .tensor::<4>(site)
            .narrow(2, head, 1)
            .squeeze_dim::<3>(2);
        let written = result.clone() - result.mean_dim(0).mean_dim(1);
        let expected = (square(written) / stream).sqrt();
        let found = &found["heads"][HEADS + head];
        assert_eq!(found["head"], format!("L1H{head}"));
        assert_near("writes", number(&found["writes"]), expected);
    }
    None
}

/// The loss on the first validation sequences if the pattern of layer 1 is the softmax of changed
/// scores `[batch, head, query, key]`.
fn loss_with_scores(run: &Looked, change: impl Fn(Tensor<4>) -> Tensor<4>) -> f64 {
    let sequences: Vec<Sequence> = run.validation().into_iter().take(SEQUENCES).collect();
    let tokens: Vec<Vec<u32>> = sequences
        .iter()
        .map(|sequence| sequence.tokens[..sequence.scored.len()].to_vec())
        .collect();
    let [scores, pattern] =
        [AttentionSite::Scores, AttentionSite::Pattern].map(|site| Site::Attention(1, site));
    let inputs = token_tensor(&tokens, &device());
    let seen = run.model.activations(inputs.clone(), &[scores]).unwrap();
    let changed = softmax(change(seen.tensor::<4>(scores)), 3);
    let mut edits = Edits::default().at(pattern, Edit::Replace(KeptTensor::from(changed)));
    let logits = run.model.forward_probed(inputs, &mut edits);
    mean_loss(&logits, &sequences)
}

/// The mean loss of the scored targets.
fn mean_loss(logits: &Tensor<3>, sequences: &[Sequence]) -> f64 {
    let mut losses = Vec::new();
    for (row, sequence) in sequences.iter().enumerate() {
        let logs = rows(log_softmax(logits.clone().narrow(0, row, 1), 2));
        for (position, log) in logs.iter().enumerate() {
            if sequence.scored[position] {
                losses.push(-log[sequence.tokens[position + 1] as usize]);
            }
        }
    }
    mean(&losses)
}

/// The distances, and apart from them what is hidden from readers.
fn check_shared(run: &Looked) -> [Verdict; 2] {
    let found = run.verb(&["shared"]);
    let distance = list(&found["distances"])
        .iter()
        .find(|row| row["layer"] == 1 && row["distance"] == 1);
    // Every query sees itself, so no row is empty.
    let without_one_back = |scores: Tensor<4>| {
        let [_, _, queries, keys] = scores.dims();
        let fill = (0..queries * keys).map(|at| {
            let is_one_back = at % keys + 1 == at / keys;
            if is_one_back { f32::NEG_INFINITY } else { 0.0 }
        });
        let fill = Tensor::<1>::from_floats(fill.collect::<Vec<f32>>().as_slice(), &device());
        scores + fill.reshape([1, 1, queries, keys])
    };
    let expected = loss_with_scores(run, without_one_back);
    let loss = number(&distance.unwrap()["performance"]["loss"]);
    assert_near("without one back", loss, expected);
    let readers = list(&found["readers"]);
    if let Some(why) = found["no_readers"].as_str() {
        assert!(readers.is_empty());
        return [None, Some(why.to_owned())];
    }
    assert_eq!(readers.len(), 1 + HEADS);
    [None, None]
}

fn check_activations(run: &Looked) -> Verdict {
    let to = ["--prompt", PROMPT, "--to", "activations.safetensors"];
    let written = run.verb(&[&["activations"], &to[..]].concat());
    let sites = run.model.sites();
    assert_eq!(list(&written["activations"]).len(), sites.len());
    let bytes = fs::read(run.workshop.path("activations.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let inputs = token_tensor(&[run.tokens(PROMPT)], &device());
    let seen = run.model.activations(inputs, &sites).unwrap();
    for site in sites {
        let tensor = file.tensor(&site.to_string()).unwrap();
        assert_eq!(tensor.shape(), seen.kept(site).dims(), "{site}");
        let found: Vec<f32> = floats(tensor.data());
        let kept = match site {
            Site::Attention(..) | Site::HeadInput(..) => seen.tensor::<4>(site).into_data(),
            _ => seen.tensor::<3>(site).into_data(),
        };
        let kept: Vec<f32> = kept.iter::<f32>().collect();
        assert_eq!(found, kept, "{site}");
    }
    None
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    let number = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().unwrap());
    bytes.chunks(4).map(number).collect()
}

fn check_patch(run: &Looked) -> Verdict {
    let answers = |prompt: &str| {
        let tokens = run.tokens(prompt);
        let mut all = run.log_probabilities(&tokens, Edits::default());
        all.pop().unwrap()
    };
    let clean = answers(PROMPT);
    let others = CORRUPTED.map(|prompt| (prompt, answers(prompt)));
    let other = others
        .into_iter()
        .find(|(_, logs)| likeliest(logs) != likeliest(&clean));
    let (prompt, corrupted) = other.expect("a prompt with another answer");
    let found = run.verb(&["patch", "--prompt", PROMPT, "--corrupted", prompt]);
    let (right, wrong) = (likeliest(&clean), likeliest(&corrupted));
    let difference = |logs: &[f64]| logs[right] - logs[wrong];
    let found_difference = number(&found["clean"]["difference"]);
    assert_near("m of the clean run", found_difference, difference(&clean));
    // The whole stream of the clean prompt is the clean run.
    let place = |name: &str| {
        let places = list(&found["returns"]).iter();
        let mut places = places.filter(move |place| place["place"] == name);
        places.next().unwrap().clone()
    };
    for layer in 0..LAYERS {
        let stream = place(&format!("blocks.{layer}.hook_resid_pre"));
        assert_near("the stream", number(&stream["everywhere"]), 1.0);
    }
    // A head's blend of values, put there by hand.
    let site = Site::Attention(1, AttentionSite::Z);
    let inputs = token_tensor(&[run.tokens(PROMPT)], &device());
    let seen = run.model.activations(inputs, &[site]).unwrap();
    let patch = Edit::Replace(seen.kept(site).clone());
    let edits = Edits::default().part(site, Part::heads(&[3]), patch);
    let patched = run.log_probabilities(&run.tokens(prompt), edits);
    let moved = difference(patched.last().unwrap()) - difference(&corrupted);
    let share = moved / (difference(&clean) - difference(&corrupted));
    assert_near("L1H3", number(&place("L1H3")["everywhere"]), share);
    None
}

/// Beside what gradients estimate stands what patching finds.
fn check_estimates(run: &Looked, exact: &Value) {
    assert_eq!(exact["agreement"], Value::Null);
    let found = run.verb(&["circuit", "--method", "atp-star"]);
    for things in ["edges", "parts"] {
        let estimated = list(&found[things]);
        for thing in list(&exact[things]) {
            let same = estimated.iter().find(|estimated| {
                ["source", "destination"]
                    .iter()
                    .all(|key| estimated[key] == thing[key])
            });
            let patched = number(&same.unwrap()["exact"]["mean"]);
            assert_near(things, patched, number(&thing["mean"]));
        }
        let agreement = &found["agreement"][things];
        assert_eq!(number(&agreement["count"]) as usize, estimated.len());
        if let Some(correlation) = agreement["rank_correlation"].as_f64() {
            assert!(correlation.abs() <= 1.0 + 1e-9, "{correlation}");
        }
    }
}

/// The metric of all pairs, and the effect of one edge, put there by hand.
fn check_circuit(run: &Looked) -> Verdict {
    let found = match run.try_verb(&["circuit"]) {
        Ok(found) => found,
        Err(error) => return Some(error),
    };
    let result = Site::Attention(0, AttentionSite::Result);
    let input = Site::HeadInput(1, Projection::Key);
    let (mut clean, mut effects) = (Vec::new(), Vec::new());
    for pair in list(&found["prompts"]) {
        let names = |prompt: &Value| {
            let names = list(prompt).iter().map(|name| name.as_str().unwrap());
            run.tokens(&names.collect::<Vec<_>>().join(" "))
        };
        let (base, other) = (names(&pair["clean"]), names(&pair["corrupted"]));
        let token = |name: &Value| run.tokens(name.as_str().unwrap())[0] as usize;
        let (answer, wrong) = (token(&pair["answer"]), token(&pair["wrong"]));
        let difference = |edits: Edits| {
            let logs = run.log_probabilities(&base, edits);
            let last = logs.last().unwrap();
            last[answer] - last[wrong]
        };
        let written = |tokens: &[u32]| -> Tensor<4> {
            let inputs = token_tensor(&[tokens], &device());
            let seen = run.model.activations(inputs, &[result]).unwrap();
            seen.tensor::<4>(result).narrow(2, 1, 1)
        };
        let delta = KeptTensor::from(written(&other) - written(&base));
        let hidden = Edits::default().part(input, Part::heads(&[0]), Edit::Add(delta));
        let untouched = difference(Edits::default());
        effects.push(difference(hidden) - untouched);
        clean.push(untouched);
    }
    assert!(clean.len() >= 4);
    assert_near("m of the clean runs", number(&found["clean"]), mean(&clean));
    let edges = list(&found["edges"]).iter();
    let mut edges = edges.filter(|edge| {
        (&edge["source"], &edge["destination"]) == (&json!("L0H1"), &json!("keys of L1H0"))
    });
    let edge = edges.next().unwrap();
    assert_near("L0H1 → keys of L1H0", number(&edge["mean"]), mean(&effects));
    check_estimates(run, &found);
    None
}

/// The score of a cell as the model computes it, and the same as a sum of terms.
fn check_why(run: &Looked) -> Verdict {
    let cell = [
        "--head", "L1H2", "--prompt", PROMPT, "--query", "5", "--key", "4",
    ];
    let of = |contrast| {
        let contrast = ["--contrast", contrast];
        run.try_verb(&[&["why"], &cell[..], &contrast].concat())
    };
    let found = match of("none") {
        Ok(found) => found,
        Err(error) => return Some(error),
    };
    let scores = Site::Attention(1, AttentionSite::Scores);
    let inputs = token_tensor(&[run.tokens(PROMPT)], &device());
    let seen = run.model.activations(inputs, &[scores]).unwrap();
    let head = seen.tensor::<4>(scores).narrow(1, 2, 1).squeeze_dim(1);
    let row = rows(head).swap_remove(5);
    let sum = |found: &Value| {
        let terms = list(&found["terms"]).iter();
        terms.map(|term| number(&term["value"])).sum::<f64>()
    };
    assert_near("a score", sum(&found), row[4]);
    let uniform = of("uniform").unwrap();
    let others: Vec<f64> = [0, 1, 2, 3, 5].into_iter().map(|key| row[key]).collect();
    let others: Vec<f64> = others
        .into_iter()
        .filter(|score| score.is_finite())
        .collect();
    assert_near("a margin", sum(&uniform), row[4] - mean(&others));
    assert_near(
        "a margin",
        number(&uniform["margin"]["value"]),
        sum(&uniform),
    );
    // Over the probe.
    let probe = run.verb(&["why", "--head", "L1H2"]);
    assert!(number(&probe["cells"]) > 64.0);
    assert_near("a margin", number(&probe["margin"]["value"]), sum(&probe));
    None
}

fn check_swap(run: &Looked) -> Verdict {
    let found = run.verb(&["swap"]);
    let untouched = list(&found)
        .iter()
        .find(|row| row["on"] == "probe" && row["name"] == "untouched");
    let by = Ablation::default();
    let expected = swap_follow(&run.model, &run.probe(), &[], by, run.config.seed).unwrap();
    let expected = serde_json::to_value(expected.unwrap()).unwrap();
    assert!(number(&expected["queries"]) > 0.0);
    assert_same_numbers("swap", &untouched.unwrap()["swap_follow"], &expected);
    None
}

fn probability_of(found: &Value, token: &str) -> f64 {
    let rows = list(&found["predictions"]);
    let row = rows.iter().find(|row| row["token"] == token);
    number(&row.unwrap()["probability"])
}

fn check_predict(run: &Looked) -> Verdict {
    let everything = ["predict", "--prompt", PROMPT, "--top", "12"];
    let check = |arguments: &[&str], expected: Vec<f64>| {
        let found = run.verb(&[&everything, arguments].concat());
        for (token, expected) in run.vocabulary.iter().zip(expected) {
            assert_near(token, probability_of(&found, token), expected);
        }
    };
    check(&[], run.probabilities(PROMPT, Edits::default()));
    let z = Site::Attention(0, AttentionSite::Z);
    let off = Edits::default().part(z, Part::heads(&[1, 3]), Edit::Zero);
    let arguments = ["--off", "L0H1,L0H3", "--by", "zero"];
    check(&arguments, run.probabilities(PROMPT, off));
    let patch = ["--patch-from", OTHER, "--patch", "blocks.1.hook_resid_pre"];
    check(&patch, run.probabilities(OTHER, Edits::default()));
    None
}

/// The only verb that asks for another task: one with gold relations.
fn check_relations(keys: &str) -> Verdict {
    let run = Looked::train("{ name = 'grammar' }", keys, 32);
    let found = run.verb(&["relations"]);
    let task = tasks::build(&run.config.task, 32, run.config.seed).unwrap();
    let validation = task.validation(run.config.seed);
    let half = validation.sequences.len() / 2;
    let (second, asked) = (&validation.sequences[half..], &validation.questions[half..]);
    let expected = evaluate(&run.model, second, asked, &device(), Cores::all());
    let expected = serde_json::to_value(expected.breakdown).unwrap();
    assert!(!expected.as_object().unwrap().is_empty());
    assert_same_numbers("untouched", &found["untouched"], &expected);
    let without = found["without"].as_object().unwrap();
    assert_eq!(without.keys().cloned().collect::<Vec<_>>(), all_heads());
    assert!(!list(&found["best"]).is_empty());
    None
}

/// The distances behind the last layer, and the weights on the cue, from whole passes.
fn check_senses(run: &Looked) -> Verdict {
    let texts = ["a c d", "a e d", "b c d", "b f d"];
    let mut lines = Vec::new();
    for (text, sense) in texts.iter().zip(["one", "one", "two", "two"]) {
        let line = json!({ "text": text, "word": "d", "sense": sense, "cue": &text[..1] });
        lines.push(line.to_string());
    }
    run.workshop.write("words.jsonl", &lines.join("\n"));
    let found = run.verb(&["senses", "--words", "words.jsonl", "--control", "g"]);
    let tokens = texts.map(|text| run.tokens(text));
    let last = LAYERS - 1;
    let sites = run
        .model
        .select(&format!("blocks.{last}.hook_resid_post"))
        .unwrap();
    let seen = run
        .model
        .activations(token_tensor(&tokens, &device()), &sites)
        .unwrap();
    let stream = rows(seen.tensor::<3>(sites[0]).narrow(1, 2, 1));
    let product = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let distance = |i: usize, j: usize| {
        let norms = product(&stream[i], &stream[i]) * product(&stream[j], &stream[j]);
        1.0 - product(&stream[i], &stream[j]) / norms.sqrt()
    };
    let within = f64::midpoint(distance(0, 1), distance(2, 3));
    let between = (distance(0, 2) + distance(0, 3) + distance(1, 2) + distance(1, 3)) / 4.0;
    let layer = &found["layers"][last];
    assert_near("within", layer["within"].as_f64().unwrap(), within);
    assert_near("between", layer["between"].as_f64().unwrap(), between);
    assert_eq!(list(&found["control"]["layers"]).len(), LAYERS);
    let heads = list(&found["heads"]);
    assert_eq!(
        heads.len(),
        HEADS * (1 + found["most_apart"].as_u64().unwrap() as usize)
    );
    let sites = run.model.select("blocks.0.attn.hook_pattern").unwrap();
    let seen = run
        .model
        .activations(token_tensor(&tokens, &device()), &sites)
        .unwrap();
    let on_cue = seen
        .tensor::<4>(sites[0])
        .narrow(1, 1, 1)
        .narrow(2, 2, 1)
        .narrow(3, 0, 1);
    let on_cue: f32 = on_cue.mean().into_scalar();
    assert_eq!(heads[1]["head"], "L0H1");
    assert_near(
        "weight",
        heads[1]["weight"].as_f64().unwrap(),
        f64::from(on_cue),
    );
    check_patched_senses(run);
    None
}

/// What L0H1 moves of the logits behind the word, from whole passes.
fn check_patched_senses(run: &Looked) {
    let mut lines = Vec::new();
    for middle in ["c", "e", "f", "h"] {
        for (cue, sense) in [("a", "one"), ("b", "two")] {
            let text = format!("{cue} {middle} d");
            let line = json!({ "text": text, "word": "d", "sense": sense, "cue": cue });
            lines.push(line.to_string());
        }
    }
    run.workshop.write("pairs.jsonl", &lines.join("\n"));
    let words = ["senses", "--words", "pairs.jsonl", "--control", "g"];
    let found = run.verb(&[&words[..], &["--patch"]].concat());
    let site = Site::Attention(0, AttentionSite::Z);
    let logits = |text: &str, edits: &mut Edits| -> Vec<f64> {
        let inputs = token_tensor(&[run.tokens(text)], &device());
        let at_word = run.model.forward_probed(inputs, edits).narrow(1, 2, 1);
        let logits = rows(at_word).remove(0);
        let middle = mean(&logits);
        logits.iter().map(|logit| logit - middle).collect()
    };
    let difference =
        |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| a - b).collect() };
    let product = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let mut shares = Vec::new();
    for middle in ["c", "e", "f", "h"] {
        for [to, from] in [["a", "b"], ["b", "a"]] {
            let [to, from] = [to, from].map(|cue| format!("{cue} {middle} d"));
            let other = token_tensor(&[run.tokens(&from)], &device());
            let other = run.model.activations(other, &[site]).unwrap();
            let part = Part {
                heads: Some(vec![1]),
                positions: Some(vec![2]),
            };
            let patch = Edit::Replace(other.kept(site).clone());
            let before = logits(&to, &mut Edits::default());
            let patched = logits(&to, &mut Edits::default().part(site, part, patch));
            let whole = difference(&logits(&from, &mut Edits::default()), &before);
            let moved = difference(&patched, &before);
            shares.push(product(&moved, &whole) / product(&whole, &whole));
        }
    }
    let patched = &found["patched"];
    assert_eq!(patched["pairs"], 4);
    let heads = list(&patched["heads"]);
    assert_eq!(heads.len(), HEADS * LAYERS);
    assert_eq!(heads[1]["head"], "L0H1");
    let found = number(&heads[1]["next_token"]["mean"]);
    assert_near("share moved", found, mean(&shares));
    for set in list(&patched["sets"]) {
        assert_eq!(list(&set["heads"]).len(), 5.min(HEADS * LAYERS));
        assert!(set["moved"]["stream"]["mean"].is_number(), "{set}");
    }
}

/// `[vocabulary][vocabulary]`: what looking at a token adds to the logits of each, by plain loops.
fn full_ov(model: &Decoder, head: usize) -> Vec<Vec<f64>> {
    let of = |tensor: Tensor<2>| rows(tensor.unsqueeze());
    let attention = &model.blocks[0].attn;
    let config = model.config();
    let (d_head, group) = (config.d_head(), HEADS / config.n_kv_heads());
    let w_v = of(attention
        .w_v
        .weight
        .val()
        .narrow(1, head / group * d_head, d_head));
    let w_o = of(attention.w_o.weight.val().narrow(0, head * d_head, d_head));
    let w_u = of(model.unembedding());
    let times = |row: &[f64], matrix: &[Vec<f64>]| -> Vec<f64> {
        (0..matrix[0].len())
            .map(|j| row.iter().zip(matrix).map(|(x, row)| x * row[j]).sum())
            .collect()
    };
    // A norm without its division, which only scales a row.
    let read = |row: Vec<f64>, norm: &Option<Norm>| -> Vec<f64> {
        let (gain, centre) = match norm {
            Some(Norm::Layer(norm)) => (norm.gain.val(), mean(&row)),
            Some(Norm::Rms(norm)) => (norm.gain.val(), 0.0),
            None => return row,
        };
        let gain: Vec<f64> = gain.into_data().iter::<f64>().collect();
        row.iter()
            .zip(gain)
            .map(|(x, gain)| (x - centre) * gain)
            .collect()
    };
    of(model.w_e.val())
        .into_iter()
        .map(|row| {
            let value = times(&read(row, &model.blocks[0].ln1), &w_v);
            let written = times(&value, &w_o);
            times(&read(written, &model.ln_final), &w_u)
        })
        .collect()
}

/// The tables, and apart from them the positions, which a model may not add to its stream.
fn check_circuits(run: &Looked) -> [Verdict; 2] {
    let found = match run.try_verb(&["circuits"]) {
        Ok(found) => found,
        Err(error) => return [Some(error.clone()), Some(error)],
    };
    let positions = run.model.config().positions.clone();
    let added = matches!(positions, Positions::Learned | Positions::Sinusoidal);
    for (index, head) in list(&found["heads"]).iter().enumerate() {
        assert_eq!(head["position"].is_object(), added);
        if index < HEADS {
            let table = full_ov(&run.model, index);
            let own = table.iter().enumerate().filter(|(token, row)| {
                let others = row.iter().enumerate().filter(|(other, _)| other != token);
                others.into_iter().all(|(_, logit)| *logit < row[*token])
            });
            let share = own.count() as f64 / table.len() as f64;
            assert_near("own token", number(&head["own_token"]), share);
        }
    }
    let printed = run.workshop.inspect("run", &["circuits"]);
    assert_ok(&printed);
    let none = "positions are not added to the stream";
    let text = String::from_utf8(printed.stdout).unwrap();
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words.contains(none), !added, "{text}");
    [None, (!added).then(|| none.to_owned())]
}

/// The logit lens, and apart from it the attribution of logits to parts.
fn check_lens(run: &Looked) -> [Verdict; 2] {
    let found = run.verb(&["lens", "--prompt", PROMPT]);
    let tokens = run.tokens(PROMPT);
    let (inputs, targets) = (&tokens[..tokens.len() - 1], &tokens[1..]);
    let logs = run.log_probabilities(inputs, Edits::default());
    let losses: Vec<f64> = logs
        .iter()
        .zip(targets)
        .map(|(log, &target)| -log[target as usize])
        .collect();
    let last = list(&found["depths"]).last().unwrap();
    assert_near(
        "the last row",
        number(&last["performance"]["loss"]),
        mean(&losses),
    );

    let printed = run.workshop.inspect("run", &["lens", "--prompt", PROMPT]);
    assert_ok(&printed);
    let text = String::from_utf8(printed.stdout).unwrap();
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let none = "its norms replace the stream, so that parts do not add up";
    let is_replaced = run.model.config().norm_placement == NormPlacement::Post;
    assert_eq!(words.contains(none), is_replaced, "{text}");
    if is_replaced {
        assert!(found["contributions"].is_null());
        return [None, Some(none.to_owned())];
    }
    let parts = list(&found["contributions"]);
    let sum: f64 = parts.iter().map(|part| number(&part["logit"])).sum();
    // The logit of the target above the mean of all logits: the same with log-probabilities.
    let expected: Vec<f64> = logs
        .iter()
        .zip(targets)
        .map(|(log, &target)| log[target as usize] - mean(log))
        .collect();
    assert_near("the sum of the parts", sum, mean(&expected));
    [None, None]
}

fn check_offsets(run: &Looked) -> Verdict {
    let heads = run.verb(&["offsets"]);
    let expected = run.previous_token_scores();
    for (head, expected) in list(&heads).iter().zip(expected) {
        // Distance 1 is the previous token, over other rows: there it is only a share.
        let at_one = list(&head["profile"])
            .iter()
            .find(|place| place[0] == "distance 1");
        let at_one = number(&at_one.unwrap()[1]["value"]);
        assert!((0.0..=1.0).contains(&at_one), "{at_one}");
        let found = number(&head["scores"]["previous token"]["value"]);
        assert_near("previous token", found, expected);
    }
    None
}

fn check_detect(run: &Looked) -> Verdict {
    let heads = run.verb(&["detect", "--prompt", PROMPT]);
    let patterns = run.patterns(&run.tokens(PROMPT));
    for (head, pattern) in list(&heads).iter().zip(&patterns) {
        let all: f64 = pattern.iter().flatten().sum();
        let previous: f64 = (1..pattern.len()).map(|q| pattern[q][q - 1]).sum();
        let found = number(&head["previous_token_head"]["mul"]);
        assert_near("mul", found, previous / all);
    }
    None
}

fn check_generate(run: &Looked) -> Verdict {
    let greedy = ["--temperature", "0", "--tokens", "6"];
    let arguments = [&["generate", "--prompt", PROMPT], &greedy[..]].concat();
    let found = run.verb(&arguments);
    let mut tokens = run.tokens(PROMPT);
    let prompt = tokens.len();
    for _ in 0..6 {
        let logs = run.log_probabilities(&tokens, Edits::default());
        tokens.push(likeliest(logs.last().unwrap()) as u32);
    }
    let expected: Vec<&String> = tokens[prompt..]
        .iter()
        .map(|&token| &run.vocabulary[token as usize])
        .collect();
    assert_eq!(found["tokens"], json!(expected));
    None
}

fn check_report(run: &Looked) -> Verdict {
    let report = run.verb(&["report"]);
    let (_, left, _): (String, Value, f64) =
        serde_json::from_value(list(&report["stream"]["depths"]).last().unwrap().clone()).unwrap();
    let expected = run.loss(SEQUENCES, &Edits::default());
    assert_near("the last row of the lens", number(&left["loss"]), expected);
    // The walk and the lens by position are checked, number by number, in tests/report.rs.
    let walked = list(&report["walk"]["layers"]);
    assert_eq!(walked.len(), LAYERS);
    None
}

fn check_serve(run: &Looked) -> Verdict {
    let mut program = Command::new(assert_cmd::cargo::cargo_bin("inspect"))
        .current_dir(run.workshop.path(""))
        .args(["run", "serve", "--port", "0"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut address = String::new();
    let mut output = BufReader::new(program.stdout.take().unwrap());
    output.read_line(&mut address).unwrap();
    let host = address.trim().strip_prefix("http://").unwrap();
    let question = json!({ "prompt": PROMPT, "off": ["L0H1", "L0H3"], "by": "zero" });
    let (status, answer) = ask(host, "/explore", &question);
    program.kill().unwrap();
    program.wait().unwrap();
    assert_eq!(status, 200, "{answer}");
    let z = Site::Attention(0, AttentionSite::Z);
    let off = Edits::default().part(z, Part::heads(&[1, 3]), Edit::Zero);
    let expected = run.probabilities(PROMPT, off);
    for shown in list(list(&answer["predictions"]).last().unwrap()) {
        let token = shown[0].as_str().unwrap();
        let index = run.vocabulary.iter().position(|known| known == token);
        assert_near(token, number(&shown[1]), expected[index.unwrap()]);
    }
    None
}

/// The weights under the names of TransformerLens, and apart from them the folder for transformers.
fn check_export(run: &Looked) -> [Verdict; 2] {
    let output = run.workshop.inspect("run", &["export", "--to", "exported"]);
    assert_ok(&output);
    let folder = run.workshop.path("exported");
    let bytes = fs::read(folder.join("expected.safetensors")).unwrap();
    let expected = SafeTensors::deserialize(&bytes).unwrap();
    let floats = |name: &str| floats(expected.tensor(name).unwrap().data());
    let shape = expected.tensor("tokens").unwrap().shape().to_vec();
    let tokens: Vec<u32> = floats("tokens").iter().map(|&token| token as u32).collect();
    let tokens: Vec<&[u32]> = tokens.chunks(shape[1]).collect();
    let logits_of = |model: &Decoder| -> Vec<f32> {
        let logits = model.forward(token_tensor(&tokens, &device()));
        logits.into_data().iter::<f32>().collect()
    };
    assert_eq!(floats("logits"), logits_of(&run.model));
    let weights = fs::read(folder.join("transformer_lens.safetensors")).unwrap();
    let weights = SafeTensors::deserialize(&weights).unwrap();
    let w_e = weights.tensor("embed.W_E").unwrap();
    assert_eq!(w_e.shape(), [run.vocabulary.len(), 16]);
    if folder.join("config.json").exists() {
        let model = from_huggingface(&folder, &device()).unwrap();
        assert_eq!(logits_of(&model), logits_of(&run.model));
        return [None, None];
    }
    let warnings = String::from_utf8(output.stderr).unwrap();
    let why = warnings
        .lines()
        .find(|line| line.contains("no folder for transformers"));
    [None, Some(why.unwrap().to_owned())]
}

/// Every row of the table on one architecture, checked.
fn verdicts(keys: &str) -> BTreeMap<&'static str, Verdict> {
    let run = Looked::repeat(keys);
    let [circuits, positions] = check_circuits(&run);
    let [lens, attribution] = check_lens(&run);
    let [export, transformers] = check_export(&run);
    let [shared, readers] = check_shared(&run);
    BTreeMap::from([
        ("`heads`", check_heads(&run)),
        ("`pattern`", check_pattern(&run)),
        ("`scores`", check_scores(&run)),
        ("`curves`", check_curves(&run)),
        ("`phases`", check_phases(&run)),
        ("`ablate`", check_ablate(&run)),
        ("`paths`", check_paths(&run)),
        ("`positions`", check_positions(&run)),
        ("`shared`: distances", shared),
        ("`shared`: readers", readers),
        ("`patch`", check_patch(&run)),
        ("`circuit`", check_circuit(&run)),
        ("`swap`", check_swap(&run)),
        ("`why`", check_why(&run)),
        ("`predict`", check_predict(&run)),
        ("`relations`", check_relations(keys)),
        ("`senses`", check_senses(&run)),
        ("`circuits`: tokens", circuits),
        ("`circuits`: positions", positions),
        ("`lens`: by depth", lens),
        ("`lens`: by part", attribution),
        ("`offsets`", check_offsets(&run)),
        ("`detect`", check_detect(&run)),
        ("`evaluate`", check_evaluate(&run)),
        ("`generate`", check_generate(&run)),
        ("`report`", check_report(&run)),
        ("`serve`", check_serve(&run)),
        ("`activations`", check_activations(&run)),
        ("`export`: TransformerLens", export),
        ("`export`: transformers", transformers),
    ])
}

/// The table of `docs/verbs.md`: by verb and architecture a cell, and the notes by number.
struct Documented {
    columns: Vec<String>,
    rows: BTreeMap<String, Vec<String>>,
    notes: BTreeMap<String, String>,
}

impl Documented {
    fn read() -> Self {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/verbs.md");
        let text = fs::read_to_string(page).unwrap();
        let section = text.split("## Architectures").nth(1).unwrap();
        let section = section.split("\n## ").next().unwrap();
        let cells = |line: &str| -> Vec<String> {
            let line = line.trim().trim_matches('|');
            line.split('|').map(|cell| cell.trim().to_owned()).collect()
        };
        let mut table = section.lines().filter(|line| line.starts_with('|'));
        let columns = cells(table.next().unwrap())[1..].to_vec();
        let rows = table.skip(1).map(|line| {
            let mut row = cells(line);
            (row.remove(0), row)
        });
        // A note is a numbered line with the words of the verb in backticks.
        let mut notes = BTreeMap::new();
        for line in section.lines() {
            let Some((number, words)) = line.split_once(". `") else {
                continue;
            };
            if number.parse::<usize>().is_ok() {
                let words = words.split('`').next().unwrap();
                notes.insert(number.to_owned(), words.to_owned());
            }
        }
        Self {
            columns,
            rows: rows.collect(),
            notes,
        }
    }

    #[track_caller]
    fn assert_says(&self, architecture: &str, row: &str, verdict: &Verdict) {
        let column = self.columns.iter().position(|name| name == architecture);
        let cell = &self.rows[row][column.unwrap()];
        match verdict {
            None => assert_eq!(cell, "✓", "{architecture}, {row}"),
            Some(why) => {
                let note = self.notes.get(cell);
                let note =
                    note.unwrap_or_else(|| panic!("{architecture}, {row}: {cell}, but {why}"));
                assert!(
                    why.contains(note),
                    "{architecture}, {row}: {note}, but {why}"
                );
            }
        }
    }
}

#[track_caller]
fn check(name: &str) {
    let keys = ARCHITECTURES.iter().find(|(known, _)| *known == name);
    let documented = Documented::read();
    let verdicts = verdicts(keys.unwrap().1);
    assert!(
        verdicts.keys().eq(documented.rows.keys()),
        "a row without a check"
    );
    for (row, verdict) in verdicts {
        documented.assert_says(name, row, &verdict);
    }
}

macro_rules! on_each {
    ($($test:ident: $name:literal,)*) => {
        const TESTED: &[&str] = &[$($name),*];

        $(
            #[test]
            fn $test() {
                check($name);
            }
        )*
    };
}

on_each! {
    attention_only: "attention only",
    gpt2: "gpt2",
    llama: "llama",
    post_norm: "post-norm",
    post_norm_without_mlp: "post-norm, no MLP",
    rms_norm: "RMS norm",
    no_norm: "no norm",
    grouped_queries: "grouped queries",
    window: "window",
    rotary: "rotary",
    alibi: "ALiBi",
    sinusoidal: "sinusoidal",
    no_positions: "no positions",
}

#[test]
fn the_table_has_every_part_of_every_verb_and_every_architecture() {
    let documented = Documented::read();
    let names: Vec<&str> = ARCHITECTURES.iter().map(|(name, _)| *name).collect();
    assert_eq!(documented.columns, names);
    assert_eq!(TESTED, names);
    let mut rows = BTreeSet::new();
    for verb in headlight_inspect::verbs() {
        // A compiled program has an architecture of its own, and runs with a program are few.
        let needs = verb.needs();
        if needs.contains(&Need::Program) || needs.contains(&Need::Alignment) {
            continue;
        }
        for part in verb.parts() {
            rows.insert(headlight_inspect::row_name(&verb, part));
        }
    }
    let documented: BTreeSet<String> = documented.rows.into_keys().collect();
    assert_eq!(documented, rows);
}
