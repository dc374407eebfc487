//! Why a head looks there, in a sentence.

use headlight_heads::{HeadName, Interval, Source};
use headlight_lens::{Ingredient, Term, Why, Writer};
use headlight_report::one_line;

use super::Place;

/// Terms that are told.
const MOST_TOLD: usize = 3;
/// A term of less than this share of the margin is not told.
const LEAST_SHARE: f64 = 0.1;

/// `L1H0 looks at … because the current token's embedding meets what L0H1 wrote at the key: 7.20 of a
/// margin of 10.40; second, …`
pub(super) fn finding(head: HeadName, place: &Place, why: &Why) -> String {
    let looks = looks(place);
    let margin = number(why.margin.value);
    if why.margin.value <= 0.0 {
        return format!(
            "{head} does not {} more than elsewhere: the margin is {margin}.",
            looks.replacen("looks", "look", 1)
        );
    }
    let is_told = |term: &&Term| term.value.value >= LEAST_SHARE * why.margin.value;
    let told: Vec<&Term> = why.terms.iter().filter(is_told).take(MOST_TOLD).collect();
    let Some((first, more)) = told.split_first() else {
        return format!("{head} {looks} through many small terms: the margin is {margin}.");
    };
    let mut sentence = format!(
        "{head} {looks} because {}: {} of a margin of {}",
        meeting(first),
        with_interval(first),
        with_ends(margin, why.margin.interval),
    );
    for (term, place) in more.iter().zip(["second", "third"]) {
        let (meeting, value) = (meeting(term), with_interval(term));
        sentence = format!("{sentence}; {place}, {meeting}: {value}");
    }
    sentence + "."
}

fn looks(place: &Place) -> String {
    match place {
        Place::Cell { tokens, query, key } => format!(
            "looks from query {query} ({}) at key {key} ({})",
            one_line(&tokens[*query]),
            one_line(&tokens[*key])
        ),
        Place::Targets { does, .. } => does.clone(),
    }
}

fn with_interval(term: &Term) -> String {
    with_ends(number(term.value.value), term.value.interval)
}

/// `7.20 (7.10 to 7.30)`
fn with_ends(value: String, interval: Option<Interval>) -> String {
    match interval {
        Some(interval) => {
            let [low, high] = [interval.low, interval.high].map(number);
            format!("{value} ({low} to {high})")
        }
        None => value,
    }
}

fn number(value: f64) -> String {
    format!("{value:.2}")
}

/// `the current token's embedding meets what L0H1 wrote at the key`
fn meeting(term: &Term) -> String {
    match (term.query, term.key) {
        (_, Ingredient::PositionBias) => "the distance is favoured".to_owned(),
        (query, key) => format!("{} meets {}", in_query(query), in_key(key)),
    }
}

fn in_query(ingredient: Ingredient) -> String {
    match ingredient {
        Ingredient::Written(Writer::Source(Source::Embedding)) => {
            "the current token's embedding".to_owned()
        }
        Ingredient::Written(Writer::Source(Source::Positions)) => "the query's position".to_owned(),
        Ingredient::Bias => "the bias of queries".to_owned(),
        Ingredient::EveryQuery => "any query".to_owned(),
        other => written_at(other, "query"),
    }
}

fn in_key(ingredient: Ingredient) -> String {
    match ingredient {
        Ingredient::Written(Writer::Source(Source::Embedding)) => {
            "the embedding of the key's token".to_owned()
        }
        Ingredient::Written(Writer::Source(Source::Positions)) => "the key's position".to_owned(),
        Ingredient::Bias => "the bias of keys".to_owned(),
        other => written_at(other, "key"),
    }
}

fn written_at(ingredient: Ingredient, place: &str) -> String {
    match ingredient {
        Ingredient::Written(Writer::AttentionBias(_)) | Ingredient::NormBias => {
            format!("the {ingredient} at the {place}")
        }
        _ => format!("what {ingredient} wrote at the {place}"),
    }
}
