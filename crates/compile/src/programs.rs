//! The programs that ship, as a reader would write them.
//!
//! `length` is the number of tokens of the longest input. "So far" means: at this position and
//! before.

use crate::{Category, Draft, Error, Layout, Number, Program, SEPARATOR, random_program, select};

/// The value where nothing was found.
const NONE: &str = "-";
/// The letters of most programs.
const LETTERS: [&str; 4] = ["a", "b", "c", "d"];

/// A program that ships.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it answers.
    pub answers: &'static str,
    /// The longest input, unless another is asked for.
    pub length: usize,
    /// The program for inputs up to a length.
    pub write: fn(usize) -> Result<Program, Error>,
}

/// All of them.
pub const ALL: &[Entry] = &[
    entry("identity", "the token", 8, identity),
    entry(
        "previous_token",
        "the token before this one",
        16,
        previous_token,
    ),
    entry(
        "induction",
        "the token after the latest earlier token equal to this one",
        16,
        induction,
    ),
    entry(
        "histogram",
        "how many tokens so far equal this one",
        16,
        histogram,
    ),
    entry(
        "double_histogram",
        "how many positions so far have the same histogram",
        16,
        double_histogram,
    ),
    entry("reverse", "the input, last token first", 6, reverse),
    entry("sort", "the input in alphabetical order", 5, sort),
    entry(
        "fraction",
        "the share of a among the tokens so far, rounded down to quarters",
        16,
        fraction,
    ),
    entry(
        "most_frequent",
        "the token that occurs most so far; of several the one that was first there",
        16,
        most_frequent,
    ),
    entry(
        "shuffle_dyck_1",
        "whether the brackets so far are closed, open or wrong",
        16,
        shuffle_dyck_1,
    ),
    entry(
        "shuffle_dyck_2",
        "the same of two kinds of brackets that may cross",
        16,
        shuffle_dyck_2,
    ),
    entry(
        "palindrome",
        "whether the tokens so far read the same backwards",
        8,
        palindrome,
    ),
];

const fn entry(
    name: &'static str,
    answers: &'static str,
    length: usize,
    write: fn(usize) -> Result<Program, Error>,
) -> Entry {
    Entry {
        name,
        answers,
        length,
        write,
    }
}

/// What the names of random programs begin with: `random_7` follows from the seed 7.
const RANDOM: &str = "random_";
/// The lines of a random program.
const RANDOM_LINES: usize = 6;
/// The length of its inputs, unless another is asked for.
const RANDOM_LENGTH: usize = 12;

/// The usual length of the inputs of a program.
///
/// # Errors
/// If there is no such program.
pub fn usual_length(name: &str) -> Result<usize, Error> {
    if seed_of(name).is_some() {
        return Ok(RANDOM_LENGTH);
    }
    find(name).map(|entry| entry.length)
}

/// The program of this name, for inputs up to `length` or up to its usual length.
///
/// # Errors
/// If there is no such program, or the length is too large for it.
///
/// ```
/// use headlight_compile::programs;
///
/// assert_eq!(programs::named("sort", None)?.layout().length(), 5);
/// let error = programs::named("srot", None).unwrap_err().to_string();
/// assert!(error.starts_with("srot: is no program; there are identity, previous_token, "));
/// # Ok::<(), headlight_compile::Error>(())
/// ```
pub fn named(name: &str, length: Option<usize>) -> Result<Program, Error> {
    let length = length.map_or_else(|| usual_length(name), Ok)?;
    match seed_of(name) {
        Some(seed) => random_program(seed, RANDOM_LINES, length),
        None => (find(name)?.write)(length),
    }
}

fn seed_of(name: &str) -> Option<u64> {
    name.strip_prefix(RANDOM)?.parse().ok()
}

fn find(name: &str) -> Result<&'static Entry, Error> {
    let found = ALL.iter().find(|entry| entry.name == name);
    found.ok_or_else(|| {
        let mut known: Vec<&str> = ALL.iter().map(|entry| entry.name).collect();
        known.push("random_SEED");
        Error::Unknown {
            name: name.to_owned(),
            known: known.join(", "),
        }
    })
}

/// The token. No head does anything.
///
/// # Errors
/// If the length is too large.
pub fn identity(length: usize) -> Result<Program, Error> {
    let draft = Draft::new("identity", LETTERS, Layout::Prefix { length })?;
    let tokens = draft.tokens();
    draft.answer(&tokens)
}

/// The token before this one; `-` at the first.
///
/// # Errors
/// If the length is too large.
pub fn previous_token(length: usize) -> Result<Program, Error> {
    let mut draft = Draft::new("previous_token", LETTERS, Layout::Prefix { length })?;
    let previous = previous(&mut draft)?;
    draft.answer(&previous)
}

/// The token after the latest earlier token that equals this one; `-` if there is none.
///
/// # Errors
/// If the length is too large.
pub fn induction(length: usize) -> Result<Program, Error> {
    let mut draft = Draft::new("induction", LETTERS, Layout::Prefix { length })?;
    let tokens = draft.tokens();
    let previous = previous(&mut draft)?;
    let after_equal = select(&previous, &tokens, |key, query| key == query).latest();
    let next = draft.aggregate("next", &after_equal, &tokens, NONE.to_owned())?;
    draft.answer(&next)
}

fn previous(draft: &mut Draft) -> Result<Category<String>, Error> {
    let (tokens, indices) = (draft.tokens(), draft.indices());
    let one_back = select(&indices, &indices, |key, query| key + 1 == *query).only()?;
    draft.aggregate("previous", &one_back, &tokens, NONE.to_owned())
}

/// How many tokens so far equal this one, itself included.
///
/// # Errors
/// If the length is too large.
pub fn histogram(length: usize) -> Result<Program, Error> {
    let mut draft = Draft::new("histogram", LETTERS, Layout::Prefix { length })?;
    let count = count_of_token(&mut draft)?;
    draft.answer(&count)
}

fn count_of_token(draft: &mut Draft) -> Result<Category<i64>, Error> {
    let tokens = draft.tokens();
    let equal = select(&tokens, &tokens, |key, query| key == query);
    draft.selector_width("count", &equal)
}

/// How many positions so far have the same histogram as this one, itself included.
///
/// # Errors
/// If the length is too large.
pub fn double_histogram(length: usize) -> Result<Program, Error> {
    let mut draft = Draft::new("double_histogram", LETTERS, Layout::Prefix { length })?;
    let count = count_of_token(&mut draft)?;
    let same_count = select(&count, &count, |key, query| key == query);
    let again = draft.selector_width("again", &same_count)?;
    draft.answer(&again)
}

/// `x_1 … x_m = x_m … x_1`. At index q, with `=` at index e, the answer is the token at 2e − 1 − q.
///
/// # Errors
/// If the length is too large.
pub fn reverse(length: usize) -> Result<Program, Error> {
    let mut draft = Draft::new("reverse", LETTERS, Layout::Answer { length })?;
    let (tokens, indices) = (draft.tokens(), draft.indices());
    let separator = select(&tokens, &tokens, |key, _| key == SEPARATOR).first();
    let end = draft.aggregate("end", &separator, &indices, -1)?;
    let mirrored = draft.map_two("mirrored", &end, &indices, |end, q| {
        (2 * end - 1 - q).max(-1)
    })?;
    let there = select(&indices, &mirrored, |key, mirrored| key == mirrored).only()?;
    let reversed = draft.aggregate("reversed", &there, &tokens, NONE.to_owned())?;
    draft.answer(&reversed)
}

/// `x_1 … x_m =`, then the same tokens in alphabetical order. The i-th answer, counted from 0, is
/// the first letter up to which more than i tokens of the input count.
///
/// # Errors
/// If the length is too large.
pub fn sort(length: usize) -> Result<Program, Error> {
    let mut draft = Draft::new("sort", LETTERS, Layout::Answer { length })?;
    let tokens = draft.tokens();
    let separator = select(&tokens, &tokens, |key, _| key == SEPARATOR);
    let ended = draft.selector_width("ended", &separator)?;
    // The letters of the input; after it nothing.
    let letter = draft.map_two("letter", &tokens, &ended, |token, ended| {
        if *ended == 0 {
            token.clone()
        } else {
            NONE.to_owned()
        }
    })?;
    let outside = select(&letter, &tokens, |key, _| key == NONE);
    let answers = draft.selector_width("answers", &outside)?;
    let mut sorted = draft.map("at the latest d", &tokens, |_| "d".to_owned())?;
    for last in ["c", "b", "a"] {
        let up_to = select(&letter, &tokens, |key, _| {
            key != NONE && key.as_str() <= last
        });
        let count = draft.selector_width(&format!("up to {last}"), &up_to)?;
        let is_next = draft.map_two(
            &format!("{last} or before"),
            &count,
            &answers,
            |count, answers| *count >= *answers,
        )?;
        sorted = draft.map_two(
            &format!("at the latest {last}"),
            &is_next,
            &sorted,
            |is_next, later| {
                if *is_next {
                    last.to_owned()
                } else {
                    later.clone()
                }
            },
        )?;
    }
    draft.answer(&sorted)
}

/// The share of `a` among the tokens so far, rounded down to quarters.
///
/// # Errors
/// If the length is too large.
pub fn fraction(length: usize) -> Result<Program, Error> {
    let mut draft = Draft::new("fraction", LETTERS, Layout::Prefix { length })?;
    let tokens = draft.tokens();
    let is_a = draft.map("is a", &tokens, |token| token == "a")?;
    let all = select(&tokens, &tokens, |_, _| true);
    let share = draft.share("share of a", &all, &is_a, 0.0)?;
    let quarters = draft.classes("quarters", &share, |share| {
        format!("{:.2}", (4.0 * share + 1e-9).floor() / 4.0)
    })?;
    draft.answer(&quarters)
}

/// The token that occurs most so far; of several the one that had this count first.
///
/// A position sets a record if no earlier one had its count. The number of records so far is the
/// largest count, and the record of that height is the token.
///
/// # Errors
/// If the length is too large.
pub fn most_frequent(length: usize) -> Result<Program, Error> {
    let mut draft = Draft::new("most_frequent", LETTERS, Layout::Prefix { length })?;
    let tokens = draft.tokens();
    let count = count_of_token(&mut draft)?;
    let same_count = select(&count, &count, |key, query| key == query);
    let again = draft.selector_width("again", &same_count)?;
    let record = draft.map_two("record", &count, &again, |count, again| {
        if *again == 1 { *count } else { 0 }
    })?;
    let records = select(&record, &record, |key, _| *key > 0);
    let largest = draft.selector_width("largest", &records)?;
    let of_largest = select(&record, &largest, |record, largest| record == largest).first();
    let most = draft.aggregate("most", &of_largest, &tokens, NONE.to_owned())?;
    draft.answer(&most)
}

/// Whether the brackets so far are closed, may still be closed, or are wrong.
///
/// # Errors
/// If the length is too large.
pub fn shuffle_dyck_1(length: usize) -> Result<Program, Error> {
    let mut draft = Draft::new("shuffle_dyck_1", ["(", ")"], Layout::Prefix { length })?;
    let state = brackets(&mut draft, "(", ")")?;
    draft.answer(&state)
}

/// The same of two kinds of brackets. Each kind must be right by itself; they may cross.
///
/// # Errors
/// If the length is too large.
pub fn shuffle_dyck_2(length: usize) -> Result<Program, Error> {
    let mut draft = Draft::new(
        "shuffle_dyck_2",
        ["(", ")", "[", "]"],
        Layout::Prefix { length },
    )?;
    let round = brackets(&mut draft, "(", ")")?;
    let square = brackets(&mut draft, "[", "]")?;
    let both = draft.map_two("both kinds", &round, &square, |round, square| {
        let states = [round.as_str(), square.as_str()];
        let worst = ["wrong", "open"]
            .into_iter()
            .find(|state| states.contains(state));
        worst.unwrap_or("closed").to_owned()
    })?;
    draft.answer(&both)
}

/// Whether the brackets of one kind are closed, open or wrong so far.
fn brackets(draft: &mut Draft, open: &str, close: &str) -> Result<Category<String>, Error> {
    let tokens = draft.tokens();
    let all = select(&tokens, &tokens, |_, _| true);
    let step = |token: &String| match token {
        token if token == open => 1.0,
        token if token == close => -1.0,
        _ => 0.0,
    };
    let name = |of: &str| format!("{of} {open}{close}");
    let balance: Number = draft.mean(&name("balance"), &all, &tokens, step, 0.0)?;
    let sign = draft.classes(&name("sign"), &balance, |balance| {
        i64::from(balance > 0.0) - i64::from(balance < 0.0)
    })?;
    let below = select(&sign, &sign, |key, _| *key < 0).first();
    let lowest = draft.aggregate(&name("lowest"), &below, &sign, 0)?;
    draft.map_two(&name("state"), &lowest, &sign, |lowest, sign| {
        let state = match (lowest, sign) {
            (-1, _) => "wrong",
            (_, 0) => "closed",
            _ => "open",
        };
        state.to_owned()
    })
}

/// Whether the tokens so far read the same backwards: the j-th from the front equals the j-th from
/// the back, for each j up to half of the length.
///
/// # Errors
/// If the length is too large.
pub fn palindrome(length: usize) -> Result<Program, Error> {
    let mut draft = Draft::new("palindrome", ["a", "b"], Layout::Prefix { length })?;
    let (tokens, indices) = (draft.tokens(), draft.indices());
    let mut same = draft.map("same so far", &tokens, |_| true)?;
    for j in 0..(length / 2) as i64 {
        let front = select(&indices, &indices, |key, _| *key == j).only()?;
        let front = draft.aggregate(&format!("front {j}"), &front, &tokens, NONE.to_owned())?;
        let back = select(&indices, &indices, |key, query| *key == query - j).only()?;
        let back = draft.aggregate(&format!("back {j}"), &back, &tokens, NONE.to_owned())?;
        let pair = draft.map_two(&format!("pair {j}"), &front, &back, |front, back| {
            front == back
        })?;
        same = draft.map_two(&format!("same up to {j}"), &same, &pair, |same, pair| {
            *same && *pair
        })?;
    }
    draft.answer(&same)
}
