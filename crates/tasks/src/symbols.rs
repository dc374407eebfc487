//! Names of tokens without a meaning.

/// Letters and digits first, then `t0`, `t1` and so on.
pub fn symbols(count: usize) -> Vec<String> {
    let single = ('a'..='z')
        .chain('A'..='Z')
        .chain('0'..='9')
        .chain(['+', '-']);
    let numbered = (0..).map(|n| format!("t{n}"));
    single
        .map(String::from)
        .chain(numbered)
        .take(count)
        .collect()
}
