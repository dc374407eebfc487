//! Attention on "The cat sat down", with numbers small enough to follow with a pencil.
//!
//! Four tokens, one head, no mask, `d_model` 8, `d_k = d_v = 4`. Prints every matrix on the way
//! from `X` to the output, and checks that `SingleHeadAttention` computes the same. The numbers are
//! made in `headlight_attention::worked_example`; `inspect learn` shows the same ones.
//!
//! ```sh
//! cargo run --example worked_example
//! cargo run --example worked_example -- --json    # the same matrices, for programs
//! ```
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example prints what it found"
)]

use std::process::ExitCode;

use burn::tensor::Device;
use headlight_attention::worked_example::{
    D_K, D_MODEL, Rows, TOKENS, WorkedExample, features, output_of_module,
};
use serde_json::{Map, Value};

/// The matrices under their names, and the tokens.
fn json(steps: &WorkedExample) -> Value {
    let matrices = steps
        .matrices()
        .into_iter()
        .map(|(name, rows)| (name.to_owned(), Value::from(rows.clone())));
    Value::Object(
        matrices
            .chain([("tokens".to_owned(), Value::from(TOKENS.to_vec()))])
            .collect::<Map<_, _>>(),
    )
}

/// A matrix to print: title, column names, rows.
type Titled<'a> = (&'a str, [&'a str; 4], &'a Rows);

fn print(steps: &WorkedExample) {
    println!(
        "One attention head reads \"{}\": d_model {D_MODEL}, d_k = d_v = {D_K}, no mask.",
        TOKENS.join(" ")
    );
    println!("X and the three W were chosen by hand; every other number follows from them.");

    println!("\nThe input X: one row per token, one column per feature.\n");
    println!(
        "{:10}{}",
        "",
        features().map(|feature| format!("{feature:>11}")).concat()
    );
    for (token, row) in TOKENS.iter().zip(&steps.x) {
        println!(
            "{token:10}{}",
            row.iter()
                .map(|value| format!("{value:11.2}"))
                .collect::<Vec<_>>()
                .concat()
        );
    }

    let sought = ["noun", "verb", "det", "dir"];
    let carried = ["who", "does", "way", "known"];
    println!(
        "\nThe parameters W: learned (here: chosen), stored, the same for every sentence. W_Q: what a feature"
    );
    println!(
        "looks for (noun, verb, determiner, direction); W_K: what it is found as; W_V: what it passes on.\n"
    );
    let parameters = [
        ("W_Q", sought, &steps.w_q),
        ("W_K", sought, &steps.w_k),
        ("W_V", carried, &steps.w_v),
    ];
    print_side_by_side(&features(), &parameters, |_| String::new());

    println!("\nThe activations Q, K, V: computed for this sentence, then forgotten.\n");
    let activations = [
        ("Q = X·W_Q", sought, &steps.q),
        ("K = X·W_K", sought, &steps.k),
        ("V = X·W_V", carried, &steps.v),
    ];
    print_side_by_side(&TOKENS, &activations, |_| String::new());

    println!("\nScores: each query (row) against each key (column); then divided by √d_k = 2.\n");
    let scores = [
        ("scores = Q·Kᵀ", TOKENS, &steps.scores),
        ("scaled = scores/√d_k", TOKENS, &steps.scaled),
    ];
    print_side_by_side(&TOKENS, &scores, |_| String::new());
    let terms: Vec<String> = steps.q[1]
        .iter()
        .zip(&steps.k[2])
        .map(|(q, k)| format!("{q:.1}·{k:.1}"))
        .collect();
    println!(
        "\nFor instance cat's query with sat's key: {} = {:.2}.",
        terms.join(" + "),
        steps.scores[1][2]
    );

    println!("\nWeights: how much each query (row) takes from each key (column).\n");
    print_side_by_side(
        &TOKENS,
        &[("weights = softmax(scaled)", TOKENS, &steps.weights)],
        |row| format!("sum {:.2}", steps.weights[row].iter().sum::<f32>()),
    );

    println!(
        "\ncat takes most from {}, sat from {}.",
        most(&steps.weights[1]),
        most(&steps.weights[2])
    );

    println!("\nOutput: each row is a blend of the rows of V.\n");
    print_side_by_side(
        &TOKENS,
        &[("output = weights·V", carried, &steps.output)],
        |row| {
            let part = |(weight, key): (&f32, &str)| format!("{weight:.2}·V[{key}]");
            format!(
                "= {}",
                steps.weights[row]
                    .iter()
                    .zip(TOKENS)
                    .map(part)
                    .collect::<Vec<_>>()
                    .join(" + ")
            )
        },
    );
    println!("\nSingleHeadAttention::forward gives the same output, to within 1e-6.");
}

/// The token with the largest weight.
fn most(weights: &[f32]) -> String {
    let (weight, token) = weights
        .iter()
        .zip(TOKENS)
        .max_by(|a, b| a.0.total_cmp(b.0))
        .expect("four tokens");
    format!("{token} ({weight:.2})")
}

fn print_side_by_side(names: &[&str], matrices: &[Titled], note: impl Fn(usize) -> String) {
    let titles = matrices
        .iter()
        .map(|(title, ..)| format!("   {title:28}"))
        .collect::<Vec<_>>()
        .concat();
    let columns =
        |columns: &[&str; 4]| columns.map(|column| format!("{column:>7}")).concat() + "   ";
    let header: String = matrices
        .iter()
        .map(|(_, names, _)| columns(names))
        .collect();
    println!(
        "{:10}{}\n{:10}{}",
        "",
        titles.trim_end(),
        "",
        header.trim_end()
    );
    let cells = |row: &[f32]| {
        row.iter()
            .map(|value| format!("{value:7.2}"))
            .collect::<Vec<_>>()
            .concat()
            + "   "
    };
    for (row, name) in names.iter().enumerate() {
        let line: String = matrices
            .iter()
            .map(|(.., matrix)| cells(&matrix[row]))
            .collect();
        println!("{}", format!("{name:10}{line}{}", note(row)).trim_end());
    }
}

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let device = Device::flex();
    let steps = WorkedExample::compute(&device);

    let by_module = output_of_module(&device)?;
    let pairs = steps
        .output
        .iter()
        .flatten()
        .zip(by_module.iter().flatten());
    let difference = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(
        difference < 1e-6,
        "the module's output differs by {difference}"
    );
    assert!(
        steps
            .weights
            .iter()
            .all(|row| (row.iter().sum::<f32>() - 1.0).abs() < 1e-6),
        "a row does not sum to 1"
    );

    match std::env::args().nth(1).as_deref() {
        None => print(&steps),
        Some("--json") => println!("{}", json(&steps)),
        Some(_) => {
            eprintln!("usage: worked_example [--json]");
            return Ok(ExitCode::from(2));
        }
    }
    Ok(ExitCode::SUCCESS)
}
