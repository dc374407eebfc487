//! What a program says of the heads of its model.

use headlight_compile::programs;
use headlight_heads::{HeadName, Measure, Role};
use headlight_watch::{Expected, Known, RoleVerdict};

fn known(name: &str) -> Known {
    let code = programs::named(name, Some(8)).unwrap();
    let compiled = code.compile(100.0).unwrap();
    Known { code, compiled }
}

/// `<s>` and these letters.
fn ids(known: &Known, letters: &str) -> Vec<u32> {
    let mut names = vec!["<s>".to_owned()];
    names.extend(letters.chars().map(String::from));
    known.code.ids(&names).unwrap()
}

#[test]
fn a_head_must_have_the_role_that_its_program_selects_and_no_other() {
    let induction = known("induction");
    let sequences = [ids(&induction, "abcaabcd"), ids(&induction, "dcbaabcd")];
    let head = |name: &str| name.parse::<HeadName>().unwrap();
    let expected = |name| induction.expected_role(head(name), &sequences);
    assert_eq!(
        expected("L0H0"),
        Some(Expected::Role(Measure::PreviousToken))
    );
    assert_eq!(expected("L1H0"), Some(Expected::Role(Measure::Induction)));
    assert_eq!(expected("L1H1"), None);
    let previous = Expected::Role(Measure::PreviousToken);
    assert_eq!(previous.verdict(Role::Mixed), Some(RoleVerdict::Missed));
    let falsely = Expected::NoRole.verdict(Role::Of(Measure::Induction));
    assert_eq!(falsely, Some(RoleVerdict::FalselyFound));
}

#[test]
fn the_stream_is_read_in_the_words_of_the_program() {
    let histogram = known("histogram");
    let trace = histogram.trace(&ids(&histogram, "aba")).unwrap();
    let stream = trace.stream(&histogram.compiled);
    let last: Vec<f32> = stream[2].iter().map(|&x| x as f32).collect();
    let values = histogram.compiled.truth.places.iter();
    let values: Vec<String> = values
        .map(|place| histogram.value_in(place, &last))
        .collect();
    // tokens, indices, 1/(1 + 2), 2
    assert_eq!(values, ["a", "2", "0.333", "2"]);
}

#[test]
fn readers_are_those_of_the_truth() {
    let induction = known("induction");
    let place = induction.compiled.truth.place("previous").unwrap();
    assert_eq!(induction.readers(place.part, "previous"), ["keys of L1H0"]);
}
