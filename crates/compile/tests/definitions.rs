//! The programs answer what their names say, by definitions that know nothing of selectors.

mod common;

use common::inputs;
use headlight_compile::{Program, SEPARATOR, programs};

/// Compares the answers at every position with a function of the tokens up to it.
#[track_caller]
fn answers(program: &Program, definition: impl Fn(&[&str]) -> String) {
    for input in inputs(program.alphabet(), 6) {
        let trace = program.run(&input).unwrap();
        for (position, answer) in trace.answers().into_iter().enumerate() {
            let so_far = &input[..=position];
            assert_eq!(
                answer,
                definition(so_far),
                "{} of {so_far:?}",
                program.name()
            );
        }
    }
}

/// Compares the answers behind the separator with the whole answer.
#[track_caller]
fn writes(program: &Program, definition: impl Fn(&mut Vec<&str>)) {
    let names = program.vocabulary();
    for length in 1..=5 {
        for input in inputs(program.alphabet(), length) {
            let question = program.question(&input).unwrap();
            let tokens: Vec<&str> = question.tokens[1..]
                .iter()
                .map(|&id| names[id as usize].as_str())
                .collect();
            let mut answer = input.clone();
            definition(&mut answer);
            assert_eq!(tokens, [&input[..], &[SEPARATOR], &answer].concat());
        }
    }
}

fn last<'a>(tokens: &[&'a str]) -> &'a str {
    tokens[tokens.len() - 1]
}

fn count(tokens: &[&str], token: &str) -> usize {
    tokens.iter().filter(|&&other| other == token).count()
}

#[test]
fn identity_and_previous_token() {
    answers(&programs::identity(6).unwrap(), |tokens| {
        last(tokens).to_owned()
    });
    answers(
        &programs::previous_token(6).unwrap(),
        |tokens| match tokens {
            [.., previous, _] => (*previous).to_owned(),
            _ => "-".to_owned(),
        },
    );
}

#[test]
fn induction_takes_the_latest_match() {
    answers(&programs::induction(6).unwrap(), |tokens| {
        let earlier = &tokens[..tokens.len() - 1];
        let found = earlier.iter().rposition(|&token| token == last(tokens));
        found.map_or("-", |at| tokens[at + 1]).to_owned()
    });
}

#[test]
fn histograms() {
    let of_last = |tokens: &[&str]| count(tokens, last(tokens));
    answers(&programs::histogram(6).unwrap(), |tokens| {
        of_last(tokens).to_string()
    });
    answers(&programs::double_histogram(6).unwrap(), |tokens| {
        let same = (1..=tokens.len()).filter(|&end| of_last(&tokens[..end]) == of_last(tokens));
        same.count().to_string()
    });
}

#[test]
fn fraction_in_quarters() {
    answers(&programs::fraction(6).unwrap(), |tokens| {
        let quarters = 4 * count(tokens, "a") / tokens.len();
        ["0.00", "0.25", "0.50", "0.75", "1.00"][quarters].to_owned()
    });
}

#[test]
fn the_most_frequent_token_is_the_first_with_its_count() {
    answers(&programs::most_frequent(6).unwrap(), |tokens| {
        let mut best = ("-", 0);
        for (position, &token) in tokens.iter().enumerate() {
            let so_far = count(&tokens[..=position], token);
            if so_far > best.1 {
                best = (token, so_far);
            }
        }
        best.0.to_owned()
    });
}

/// `closed`, `open` or `wrong`, with a stack that counts.
fn state(tokens: &[&str], open: &str, close: &str) -> &'static str {
    let mut depth = 0;
    for &token in tokens {
        depth += i32::from(token == open) - i32::from(token == close);
        if depth < 0 {
            return "wrong";
        }
    }
    if depth == 0 { "closed" } else { "open" }
}

#[test]
fn brackets_of_one_kind_and_of_two() {
    answers(&programs::shuffle_dyck_1(6).unwrap(), |tokens| {
        state(tokens, "(", ")").to_owned()
    });
    answers(&programs::shuffle_dyck_2(6).unwrap(), |tokens| {
        match (state(tokens, "(", ")"), state(tokens, "[", "]")) {
            ("wrong", _) | (_, "wrong") => "wrong".to_owned(),
            ("closed", "closed") => "closed".to_owned(),
            _ => "open".to_owned(),
        }
    });
}

#[test]
fn palindromes() {
    answers(&programs::palindrome(6).unwrap(), |tokens| {
        tokens.iter().eq(tokens.iter().rev()).to_string()
    });
}

#[test]
fn reverse_and_sort() {
    writes(&programs::reverse(5).unwrap(), |tokens| tokens.reverse());
    writes(&programs::sort(5).unwrap(), |tokens| tokens.sort_unstable());
}
