//! A measure that a program adds is one like the others. The list is the program's, so this is one
//! test.

use headlight_heads::{CannotAdd, Interval, Measure, Role, Score, ScoreName, Scores, TargetKeys};

struct Named(&'static str);

impl TargetKeys for Named {
    fn name(&self) -> &'static str {
        self.0
    }

    fn formula(&self) -> &'static str {
        "mean over q ≥ 2 of A[q, q−2]"
    }

    fn does(&self) -> &'static str {
        "looks two tokens back"
    }

    /// Some of the keys come twice, in no order, or after the query.
    fn targets(&self, tokens: &[u32], q: usize) -> Vec<usize> {
        if q < 2 {
            return vec![];
        }
        vec![q + 1, q - 2, 0, q - 2, tokens.len()]
    }
}

fn add(names: &[&'static str]) -> Result<(), CannotAdd> {
    let mut measures: Vec<Box<dyn TargetKeys>> = Vec::new();
    for name in names {
        measures.push(Box::new(Named(name)));
    }
    Measure::add(measures)
}

#[test]
fn a_measure_that_a_program_adds_is_one_like_the_others() {
    let built_in = Measure::all();
    assert_eq!(built_in, Measure::BUILT_IN);
    for taken in ["induction", "entropy", "mixed", "layer"] {
        let error = add(&["two back", taken]).unwrap_err();
        assert_eq!(error, CannotAdd::Name(taken));
        assert_eq!(
            error.to_string(),
            format!("the measure {taken}: there is a score of this name")
        );
    }
    assert_eq!(
        add(&["two back", "two back"]),
        Err(CannotAdd::Name("two back"))
    );
    assert_eq!(
        add(&[" "]).unwrap_err().to_string(),
        "a measure has no name"
    );
    assert_eq!(Measure::all(), built_in, "nothing was added by halves");

    add(&["two back", "another"]).unwrap();
    assert_eq!(add(&[]), Err(CannotAdd::Twice));
    let names: Vec<&str> = Measure::all().into_iter().map(Measure::name).collect();
    assert_eq!(names[built_in.len()..], ["two back", "another"]);

    let two_back: Measure = "two back".parse().unwrap();
    assert_eq!(serde_json::to_string(&two_back).unwrap(), r#""two back""#);
    assert_eq!(
        serde_json::from_str::<Measure>(r#""two back""#).unwrap(),
        two_back
    );
    assert_ne!(two_back, "another".parse().unwrap());
    assert_eq!(
        two_back.targets(&[5, 6, 7, 8], 3),
        [0, 1],
        "in order, once, not after the query"
    );
    assert!(two_back.targets(&[5, 6, 7, 8], 1).is_empty());
    assert!(two_back.asks_tokens());

    let score = |value| Score {
        value,
        null: 0.25,
        ceiling: 1.0,
        interval: Interval::point(value),
    };
    let scores = Scores::from([
        (two_back.into(), score(0.75)),
        (Measure::Induction.into(), score(0.5)),
    ]);
    assert_eq!(Role::of(&scores), Role::Of(two_back));
    assert!(Role::all().any(|role| role == Role::Of(two_back)));
    let json = serde_json::to_string(&scores).unwrap();
    assert_eq!(serde_json::from_str::<Scores>(&json).unwrap(), scores);
    assert!(ScoreName::all().any(|name| name.formula() == Named("").formula()));
}
