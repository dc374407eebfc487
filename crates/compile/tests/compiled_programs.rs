//! A compiled model computes what the program computes: every variable, on every input.

mod common;

use common::{Forward, forward, inputs};
use headlight_compile::{Compiled, Layout, Program, START, programs, random_program};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The largest difference between a number of the program and the model's.
const TOLERANCE: f64 = 1e-5;

/// Runs program and model on one sequence, the answer's tokens among them, and compares every
/// direction of the stream, every pattern and every answer.
#[track_caller]
fn compare(program: &Program, compiled: &Compiled, tokens: &[&str]) {
    let trace = program.run(tokens).unwrap();
    let with_start: Vec<&str> = [START].into_iter().chain(tokens.iter().copied()).collect();
    let Forward {
        stream,
        patterns,
        logits,
    } = forward(compiled, &program.ids(&with_start).unwrap());

    for (expected, found) in trace.stream(compiled).iter().zip(&stream[1..]) {
        for (direction, (expected, &found)) in expected.iter().zip(found).enumerate() {
            let difference = (expected - f64::from(found)).abs();
            let name = &compiled.directions[direction];
            assert!(
                difference < TOLERANCE,
                "{tokens:?} {name}: {found}, not {expected}"
            );
        }
    }
    for &head in &compiled.truth.heads {
        let variable = &compiled.truth.computed_by(head).unwrap().variable;
        let expected = trace.pattern(variable).unwrap();
        for (expected, found) in expected.iter().zip(&patterns[head.layer][head.head]) {
            for (expected, found) in expected.iter().zip(found) {
                let difference = (expected - f64::from(*found)).abs();
                assert!(
                    difference < TOLERANCE,
                    "{tokens:?} {head}: {found}, not {expected}"
                );
            }
        }
    }
    for (answer, logits) in trace.answers().into_iter().zip(&logits[1..]) {
        let largest = logits.iter().copied().fold(f32::MIN, f32::max);
        let likeliest = logits.iter().position(|logit| *logit == largest).unwrap();
        assert_eq!(compiled.vocabulary[likeliest], answer, "{tokens:?}");
    }
}

/// The tokens that a model reads to answer an input.
fn asked<'a>(program: &Program, input: &[&'a str], names: &'a [String]) -> Vec<&'a str> {
    let question = program.question(input).unwrap();
    let inputs = &question.tokens[1..question.tokens.len() - 1];
    inputs
        .iter()
        .map(|&id| names[id as usize].as_str())
        .collect()
}

/// The same program for inputs of up to `length` tokens, on all inputs of up to 6 and on random
/// ones of full length.
#[track_caller]
fn computes_the_same(name: &str, length: usize) {
    let program = programs::named(name, Some(length)).unwrap();
    let compiled = program.compile(100.0).unwrap();
    let names = program.vocabulary();
    // What comes later changes nothing before it: of the prefix form the longest inputs have all
    // shorter ones in them.
    let lengths = match program.layout() {
        Layout::Prefix { .. } => 6..=6,
        Layout::Answer { .. } => 1..=6,
    };
    for length in lengths {
        for input in inputs(program.alphabet(), length) {
            compare(&program, &compiled, &asked(&program, &input, &names));
        }
    }
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    for _ in 0..200 {
        let input = random_input(&program, &mut rng);
        let input: Vec<&str> = input.iter().map(String::as_str).collect();
        compare(&program, &compiled, &asked(&program, &input, &names));
    }
}

fn random_input(program: &Program, rng: &mut ChaCha8Rng) -> Vec<String> {
    let alphabet = program.alphabet();
    let length = program.layout().length();
    (0..length)
        .map(|_| alphabet[rng.random_range(0..alphabet.len())].clone())
        .collect()
}

#[test]
fn short_programs() {
    for name in [
        "identity",
        "previous_token",
        "induction",
        "histogram",
        "fraction",
    ] {
        computes_the_same(name, 12);
    }
}

#[test]
fn programs_of_several_counts() {
    for name in ["double_histogram", "most_frequent"] {
        computes_the_same(name, 8);
    }
}

#[test]
fn brackets() {
    computes_the_same("shuffle_dyck_1", 12);
    computes_the_same("shuffle_dyck_2", 12);
}

#[test]
fn programs_that_read_the_whole_input_first() {
    computes_the_same("reverse", 8);
    computes_the_same("sort", 6);
}

#[test]
fn palindromes() {
    computes_the_same("palindrome", 8);
}

#[test]
fn random_programs() {
    for seed in 0..50 {
        let program = random_program(seed, 6, 8).unwrap();
        let compiled = program.compile(100.0).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        for _ in 0..40 {
            let input = random_input(&program, &mut rng);
            let input: Vec<&str> = input.iter().map(String::as_str).collect();
            compare(&program, &compiled, &input);
        }
    }
}
