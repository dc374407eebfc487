//! Wrong programs and wrong inputs are one clear line.

use std::fmt;

use headlight_compile::{Draft, Error, Layout, programs, select};

/// Values that differ and are written in the same way.
#[derive(Debug, Clone, PartialEq)]
struct Quiet(u8);

impl fmt::Display for Quiet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("quiet")
    }
}

fn draft() -> Draft {
    Draft::new("example", ["a", "b"], Layout::Prefix { length: 4 }).unwrap()
}

#[track_caller]
fn says<T: fmt::Debug>(result: Result<T, Error>, message: &str) {
    assert_eq!(result.unwrap_err().to_string(), message);
}

#[test]
fn several_keys_for_one_value() {
    let draft = draft();
    let (tokens, indices) = (draft.tokens(), draft.indices());
    says(
        select(&indices, &indices, |key, query| key + 1 >= *query).only(),
        "the query 0 of indices selects indices = 0 and 1; take the .latest() or the .first() of them",
    );
    says(
        select(&tokens, &indices, |_, _| true).only(),
        "the keys of tokens may stand at several positions; take the .latest() or the .first() of them",
    );
}

#[test]
fn numbers_that_cannot_be_told_apart() {
    let mut draft = draft();
    let tokens = draft.tokens();
    let all = select(&tokens, &tokens, |_, _| true);
    let small = |token: &String| if token == "a" { 0.0 } else { 1e-3 };
    let mean = draft.mean("mean", &all, &tokens, small, 0.0).unwrap();
    let halves = draft.classes("halves", &mean, |mean| mean > 4e-4).unwrap();
    says(
        draft.answer(&halves).unwrap().compile(100.0),
        "halves: 0.0003333333333333333 and 0.0005 belong to different classes and are closer than 0.001; use shorter inputs",
    );
}

#[test]
fn means_of_too_many_values_have_no_classes() {
    let letters: Vec<String> = ('a'..='p').map(String::from).collect();
    let mut draft = Draft::new("example", letters, Layout::Prefix { length: 12 }).unwrap();
    let tokens = draft.tokens();
    let all = select(&tokens, &tokens, |_, _| true);
    let odd = |token: &String| f64::from(token.as_bytes()[0] - b'a').sqrt();
    let mean = draft.mean("mean", &all, &tokens, odd, 0.0).unwrap();
    says(
        draft.classes("classes", &mean, |mean| mean > 1.0),
        "mean: may have more than 4096 different values, too many for classes",
    );
    says(
        draft.mean("no number", &all, &tokens, |_| f64::NAN, 0.0),
        "no number: NaN is not finite",
    );
}

#[test]
fn names_values_and_handles() {
    let mut first = draft();
    let tokens = first.tokens();
    says(
        first.map("tokens", &tokens, String::clone),
        "tokens: is the name of another variable, a reserved token, or empty",
    );
    says(
        first.map("same", &tokens, |token| Quiet(token.as_bytes()[0])),
        "same: two of its values are written quiet",
    );
    let upper = first
        .map("upper", &tokens, |token| token.to_uppercase())
        .unwrap();
    says(
        draft().answer(&upper),
        "upper: is no variable of the program example",
    );
    let longer = Draft::new("longer", ["a", "b"], Layout::Prefix { length: 5 }).unwrap();
    let later = select(&longer.indices(), &tokens, |_, _| true);
    says(
        first.selector_width("width", &later),
        "indices: is no variable of the program example",
    );
}

#[test]
fn programs_without_tokens_or_of_no_length() {
    let prefix = |length| Layout::Prefix { length };
    says(
        Draft::new("empty", Vec::<String>::new(), prefix(4)),
        "empty: the alphabet is empty",
    );
    says(
        Draft::new("none", ["a"], prefix(0)),
        "none: inputs of 0 tokens; expected 1 to 64",
    );
    says(
        Draft::new("start", ["a", "<s>"], prefix(4)),
        "<s>: is the name of another variable, a reserved token, or empty",
    );
    says(
        Draft::new("twice", ["a", "a"], prefix(4)),
        "tokens: two of its values are written a",
    );
}

#[test]
fn inputs_and_coldness() {
    let program = programs::induction(3).unwrap();
    says(
        program.run(&["a", "b", "c", "d"]),
        "induction: the input has 4 tokens; expected 1 to 3",
    );
    says(
        program.question(&["a", "x"]),
        "induction: x is no token; there are a, b, c, d",
    );
    for coldness in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let expected = format!("coldness = {coldness}: must be positive and finite");
        says(program.compile(coldness), &expected);
    }
}
