//! Swaps between pairs of sequences, against compiled programs: they do what the program says, and a
//! wrong alignment is seen.

use std::collections::BTreeMap;

use burn::tensor::Device;
use headlight_compile::programs;
use headlight_heads::Source;
use headlight_run::{Breakdown, InterchangeConfig};
use headlight_tasks::{self as tasks, Use};
use headlight_watch::{
    Cores, Interchange, compiled,
    interchange::{INTERCHANGE_ACCURACY, STRICTNESS, breakdown},
};

/// Interchange accuracy and strictness of a compiled program whose variables are said to be in these
/// parts.
fn measured(name: &str, alignment: BTreeMap<String, Source>) -> Breakdown {
    let program = programs::named(name, Some(8)).unwrap();
    let mut config = compiled::config(name, &program, 100.0).unwrap();
    config.interchange = Some(InterchangeConfig {
        alignment,
        weight: 1.0,
        strictness: 0.4,
    });
    let interchange = Interchange::of(&config).unwrap().unwrap();
    let device = Device::flex();
    let model = compiled::decoder(&interchange.known().compiled, &device).unwrap();
    let task = tasks::build(&config.task, config.model.n_ctx, 0).unwrap();
    // One without a partner is left out.
    let sequences = tasks::batch(&*task, 0, Use::Validation, 0, 129);
    let measured = interchange.measure(&model, &sequences, &device, Cores::all());
    breakdown(&measured.unwrap())
}

/// Where the compiler puts the variables.
fn truth(name: &str) -> BTreeMap<String, Source> {
    let program = programs::named(name, Some(8)).unwrap();
    let places = program.compile(100.0).unwrap().truth.places.into_iter();
    let computed = places.filter(|place| place.part.layer().is_some());
    computed.map(|place| (place.variable, place.part)).collect()
}

#[test]
fn a_compiled_program_answers_every_swap_as_the_program_does() {
    for name in [
        "induction",
        "histogram",
        "double_histogram",
        "fraction",
        "palindrome",
        "sort",
    ] {
        let found = measured(name, truth(name));
        let swapped = found[INTERCHANGE_ACCURACY];
        assert_eq!(swapped.accuracy, 1.0, "{name}");
        assert!(swapped.count > 50, "{name}: {}", swapped.count);
        let heads_without_weights = found.get(STRICTNESS);
        assert!(
            heads_without_weights.is_none_or(|kept| kept.accuracy == 1.0),
            "{name}"
        );
    }
}

#[test]
fn a_wrong_alignment_is_seen() {
    let [first, second] = ["L0H0", "L1H0"].map(|part| part.parse().unwrap());
    let exchanged = BTreeMap::from([("previous".to_owned(), second), ("next".to_owned(), first)]);
    let found = measured("induction", exchanged);
    assert!(found[INTERCHANGE_ACCURACY].accuracy < 0.5, "{found:?}");
    // A head of the circuit that is said to be outside.
    let found = measured(
        "induction",
        BTreeMap::from([("previous".to_owned(), first)]),
    );
    assert_eq!(found[INTERCHANGE_ACCURACY].accuracy, 1.0);
    assert!(found[STRICTNESS].accuracy < 0.5, "{found:?}");
}
