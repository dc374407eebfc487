//! Lines of a program in words: as a reader would have written them.

use headlight_compile::{Place, programs};

/// `previous = tokens at …`, a line a variable that the answer needs.
fn lines(program: &str) -> Vec<String> {
    let program = programs::named(program, Some(5)).unwrap();
    let truth = program.compile(100.0).unwrap().truth;
    let line = |place: &Place| format!("{} = {}", place.variable, place.how);
    truth.places.iter().map(line).collect()
}

#[test]
fn programs_read_as_they_were_written() {
    assert_eq!(
        lines("induction"),
        [
            "tokens = the token",
            "indices = the position, from 0 behind <s>",
            "previous = tokens at the only key with indices = query.indices − 1, else '-'",
            "next = tokens at the latest key with previous = query.tokens, else '-'",
        ]
    );
    assert_eq!(
        lines("histogram")[2..],
        [
            "1/(1+count) = 1/(1 + w), w the number of keys with tokens = query.tokens",
            "count = w of 1/(1+count) = 1/(1 + w)",
        ]
    );
    assert_eq!(
        lines("fraction")[2..],
        [
            "is a = from tokens: a → true, else false",
            "share of a = mean of is a (true → 1, else 0) over the keys, else 0",
            "quarters = from share of a: ≤ 0.2 → 0.00, ≤ 0.4 → 0.25, ≤ 0.667 → 0.50, ≤ 0.8 → 0.75, else 1.00",
        ]
    );
    assert_eq!(
        lines("reverse")[2..],
        [
            "end = indices at the first key with tokens = '=', else -1",
            "mirrored = from end and indices by a table of 11 × 10",
            "reversed = tokens at the only key with indices = query.mirrored, else '-'",
        ]
    );
    assert_eq!(
        lines("shuffle_dyck_1")[2..],
        [
            "balance () = mean of tokens ('(' → 1, else -1) over the keys, else 0",
            "sign () = from balance (): ≤ -0.2 → -1, ≤ 0 → 0, else 1",
            "lowest () = sign () at the first key with sign () = -1, else 0",
            "state () = from lowest () and sign () by a table of 3 × 3",
        ]
    );
}

#[test]
fn conditions_of_two_variables_are_found_in_their_tables() {
    let palindrome = lines("palindrome");
    assert!(palindrome.contains(&"pair 0 = true if front 0 = back 0, else false".to_owned()));
    assert!(
        palindrome
            .contains(&"same up to 1 = from same up to 0: true → pair 1, else false".to_owned()),
        "{palindrome:?}"
    );
    let sort = lines("sort");
    assert!(
        sort.contains(&"c or before = true if up to c ≥ answers, else false".to_owned()),
        "{sort:?}"
    );
    assert!(
        sort.contains(
            &"at the latest b = from b or before: true → b, else at the latest c".to_owned()
        ),
        "{sort:?}"
    );
    let frequent = lines("most_frequent");
    assert!(
        frequent.contains(&"record = from again: 1 → count, else 0".to_owned()),
        "{frequent:?}"
    );
    assert!(
        frequent[7].ends_with("w the number of keys with record > 0"),
        "{frequent:?}"
    );
}

#[test]
fn a_table_that_nobody_knows_is_called_a_table() {
    // Random programs have tables of chance; each line of each is told, and none is empty.
    for seed in 0..50 {
        for line in lines(&format!("random_{seed}")) {
            assert!(line.len() < 160 && !line.ends_with("= "), "{line}");
        }
    }
}
