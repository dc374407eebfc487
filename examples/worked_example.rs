//! Attention on "The cat sat down", with numbers small enough to follow with a pencil.
//!
//! Four tokens, one head, no mask, `d_model` 8, `d_k = d_v = 4`. Prints every matrix on the way from `X` to the
//! output, and checks that [`SingleHeadAttention`] computes the same.
//!
//! ```sh
//! cargo run --example worked_example
//! cargo run --example worked_example -- --json    # the same matrices, for programs
//! ```

use std::process::ExitCode;

use burn::{
    module::Param,
    tensor::{Device, Tensor, activation::softmax},
};
use headlight_attention::{ConfigError, SingleHeadAttention};
use serde::Serialize;

const D_MODEL: usize = 8;
const D_K: usize = 4;
const TOKENS: [&str; 4] = ["The", "cat", "sat", "down"];

/// One row per token, one column per feature.
const X: [[f32; D_MODEL]; 4] = [
    [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], // The
    [0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0], // cat
    [0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.5, 0.0], // sat
    [0.0, 0.0, 0.0, 1.0, 0.0, 0.5, 1.0, 0.0], // down
];

type Weights = [f32; D_K];

/// One row per feature: what a token with it looks for, what it is found as, what it passes on.
/// The columns of `X` have names here; those of a trained model have none.
const FEATURES: [(&str, Weights, Weights, Weights); D_MODEL] = [
    // name         W_Q                   W_K                   W_V
    ("determiner", [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.5, 0.0], [0.0, 0.0, 0.0, 1.0]),
    ("noun", [0.0, 1.0, 0.5, 0.0], [1.5, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]),
    ("verb", [2.0, 0.0, 0.0, 0.0], [0.0, 1.5, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]),
    ("adverb", [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.5], [0.0, 0.0, 0.5, 0.0]),
    ("living", [0.0, 1.0, 1.0, 0.0], [0.5, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, -0.5]),
    ("posture", [0.0, 0.0, 0.0, 1.0], [0.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]),
    ("direction", [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0]),
    ("first", [0.5, 0.0, 0.0, 0.0], [0.0, 0.0, 0.5, 0.0], [0.0, 0.0, 0.0, 0.5]),
];

type Rows = Vec<Vec<f32>>;

/// All matrices, row by row, under their own names.
#[derive(Serialize)]
#[expect(non_snake_case, reason = "matrices are written with capitals")]
struct Steps {
    tokens: [&'static str; 4],
    X: Rows,
    W_Q: Rows,
    W_K: Rows,
    W_V: Rows,
    Q: Rows,
    K: Rows,
    V: Rows,
    scores: Rows,
    scaled: Rows,
    weights: Rows,
    output: Rows,
}

/// `W_Q`, `W_K`, `W_V`, each `[d_model, d_k]`.
fn parameters(device: &Device) -> [Tensor<2>; 3] {
    [FEATURES.map(|row| row.1), FEATURES.map(|row| row.2), FEATURES.map(|row| row.3)]
        .map(|matrix| Tensor::from_floats(matrix, device))
}

/// The equation step by step, in plain tensor operations.
fn step_by_step(device: &Device) -> Steps {
    let x = Tensor::<2>::from_floats(X, device); // [tokens, d_model]
    let [w_q, w_k, w_v] = parameters(device);
    let [q, k, v] = [&w_q, &w_k, &w_v].map(|weight| x.clone().matmul(weight.clone())); // [tokens, d_k]
    let scores = q.clone().matmul(k.clone().transpose()); // [queries, keys]
    let scaled = scores.clone().div_scalar((D_K as f64).sqrt());
    let weights = softmax(scaled.clone(), 1); // over the keys: each row sums to 1
    let output = weights.clone().matmul(v.clone()); // [queries, d_v]
    let [x, w_q, w_k, w_v, q, k, v] = [x, w_q, w_k, w_v, q, k, v].map(rows);
    let [scores, scaled, weights, output] = [scores, scaled, weights, output].map(rows);
    Steps { tokens: TOKENS, X: x, W_Q: w_q, W_K: w_k, W_V: w_v, Q: q, K: k, V: v, scores, scaled, weights, output }
}

/// The same by the module that a model would use.
fn by_module(device: &Device) -> Result<Rows, ConfigError> {
    let mut head = SingleHeadAttention::try_init(D_MODEL, D_K, device)?;
    let [w_q, w_k, w_v] = parameters(device).map(Param::from_tensor);
    (head.w_q.weight, head.w_k.weight, head.w_v.weight) = (w_q, w_k, w_v);
    let batch_of_one = Tensor::<2>::from_floats(X, device).unsqueeze::<3>();
    Ok(rows(head.forward(batch_of_one).squeeze_dim(0)))
}

fn rows(matrix: Tensor<2>) -> Rows {
    let [_, columns] = matrix.dims();
    let values: Vec<f32> = matrix.into_data().iter().collect();
    values.chunks_exact(columns).map(<[f32]>::to_vec).collect()
}

/// A matrix to print: title, column names, rows.
type Titled<'a> = (&'a str, [&'a str; 4], &'a Rows);

fn print(steps: &Steps) {
    println!("One attention head reads \"{}\": d_model {D_MODEL}, d_k = d_v = {D_K}, no mask.", TOKENS.join(" "));
    println!("X and the three W were chosen by hand; every other number follows from them.");

    println!("\nThe input X: one row per token, one column per feature.\n");
    println!("{:10}{}", "", FEATURES.map(|(feature, ..)| format!("{feature:>11}")).concat());
    for (token, row) in TOKENS.iter().zip(&steps.X) {
        println!("{token:10}{}", row.iter().map(|value| format!("{value:11.2}")).collect::<Vec<_>>().concat());
    }

    let sought = ["noun", "verb", "det", "dir"];
    let carried = ["who", "does", "way", "known"];
    println!("\nThe parameters W: learned (here: chosen), stored, the same for every sentence. W_Q: what a feature");
    println!("looks for (noun, verb, determiner, direction); W_K: what it is found as; W_V: what it passes on.\n");
    let parameters = [("W_Q", sought, &steps.W_Q), ("W_K", sought, &steps.W_K), ("W_V", carried, &steps.W_V)];
    print_side_by_side(&FEATURES.map(|(feature, ..)| feature), &parameters, |_| String::new());

    println!("\nThe activations Q, K, V: computed for this sentence, then forgotten.\n");
    let activations =
        [("Q = X·W_Q", sought, &steps.Q), ("K = X·W_K", sought, &steps.K), ("V = X·W_V", carried, &steps.V)];
    print_side_by_side(&TOKENS, &activations, |_| String::new());

    println!("\nScores: each query (row) against each key (column); then divided by √d_k = 2.\n");
    let scores = [("scores = Q·Kᵀ", TOKENS, &steps.scores), ("scaled = scores/√d_k", TOKENS, &steps.scaled)];
    print_side_by_side(&TOKENS, &scores, |_| String::new());
    let terms: Vec<String> = steps.Q[1].iter().zip(&steps.K[2]).map(|(q, k)| format!("{q:.1}·{k:.1}")).collect();
    println!("\nFor instance cat's query with sat's key: {} = {:.2}.", terms.join(" + "), steps.scores[1][2]);

    println!("\nWeights: how much each query (row) takes from each key (column).\n");
    print_side_by_side(&TOKENS, &[("weights = softmax(scaled)", TOKENS, &steps.weights)], |row| {
        format!("sum {:.2}", steps.weights[row].iter().sum::<f32>())
    });

    println!("\ncat takes most from {}, sat from {}.", most(&steps.weights[1]), most(&steps.weights[2]));

    println!("\nOutput: each row is a blend of the rows of V.\n");
    print_side_by_side(&TOKENS, &[("output = weights·V", carried, &steps.output)], |row| {
        let part = |(weight, key): (&f32, &str)| format!("{weight:.2}·V[{key}]");
        format!("= {}", steps.weights[row].iter().zip(TOKENS).map(part).collect::<Vec<_>>().join(" + "))
    });
    println!("\nSingleHeadAttention::forward gives the same output, to within 1e-6.");
}

/// The token with the largest weight.
fn most(weights: &[f32]) -> String {
    let (weight, token) = weights.iter().zip(TOKENS).max_by(|a, b| a.0.total_cmp(b.0)).expect("four tokens");
    format!("{token} ({weight:.2})")
}

fn print_side_by_side(names: &[&str], matrices: &[Titled], note: impl Fn(usize) -> String) {
    let titles = matrices.iter().map(|(title, ..)| format!("   {title:28}")).collect::<Vec<_>>().concat();
    let columns = |columns: &[&str; 4]| columns.map(|column| format!("{column:>7}")).concat() + "   ";
    let header: String = matrices.iter().map(|(_, names, _)| columns(names)).collect();
    println!("{:10}{}\n{:10}{}", "", titles.trim_end(), "", header.trim_end());
    let cells = |row: &[f32]| row.iter().map(|value| format!("{value:7.2}")).collect::<Vec<_>>().concat() + "   ";
    for (row, name) in names.iter().enumerate() {
        let line: String = matrices.iter().map(|(.., matrix)| cells(&matrix[row])).collect();
        println!("{}", format!("{name:10}{line}{}", note(row)).trim_end());
    }
}

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let device = Device::flex();
    let steps = step_by_step(&device);

    let by_module = by_module(&device)?;
    let pairs = steps.output.iter().flatten().zip(by_module.iter().flatten());
    let difference = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(difference < 1e-6, "the module's output differs by {difference}");
    assert!(steps.weights.iter().all(|row| (row.iter().sum::<f32>() - 1.0).abs() < 1e-6), "a row does not sum to 1");

    match std::env::args().nth(1).as_deref() {
        None => print(&steps),
        Some("--json") => println!("{}", serde_json::to_string(&steps)?),
        Some(_) => {
            eprintln!("usage: worked_example [--json]");
            return Ok(ExitCode::from(2));
        }
    }
    Ok(ExitCode::SUCCESS)
}
