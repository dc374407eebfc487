//! What came out of a run, in sentences made from its numbers.

use std::{collections::BTreeSet, fmt::Write as _};

use headlight_heads::{HeadName, HeadSet, Measure, Role, RoleEvent, SequenceKind, first_largest};
use headlight_run::{EventRow, HeadsUse, UsesRow};

use crate::{
    Control, RelationOfHead, RelationSeen, ReportData, ScoreSeries,
    heads_that_matter::measured_before, role_look::measures_as_told,
};

/// When which head formed, that it is one, and what it is used as. Each sentence holds only what
/// was measured.
#[must_use]
pub fn finding(data: &ReportData) -> Vec<String> {
    let Some((measure, heads)) = subject(data) else {
        let when = if data.run.steps > 0 {
            format!("After {} steps no", data.run.steps)
        } else {
            "No".to_owned()
        };
        let no_role = format!(
            "{when} head looks like one of the roles that are measured here: {}. Accuracy is {:.3} (guessing {:.3}).",
            names_as_told().join(", "),
            data.run.accuracy,
            data.run.chance
        );
        let of_relations = [
            followed(data),
            follows(data),
            nulls_of_relation(data),
            Some(no_role),
        ];
        return of_relations.into_iter().flatten().collect();
    };
    let sentences = [
        followed(data),
        formed(data, measure, &heads).or_else(|| Some(held(data, measure, &heads))),
        follows(data),
        nulls_of_relation(data),
        looks_like(data, measure, &heads),
        used_as(data, measure, &heads),
        path(data, &heads),
    ];
    sentences.into_iter().flatten().collect()
}

/// The names of all roles but `mixed`.
fn names_as_told() -> Vec<&'static str> {
    measures_as_told().into_iter().map(Measure::name).collect()
}

/// The head to show first: of those that the finding speaks of, the first with the largest score.
#[must_use]
pub fn headline(data: &ReportData) -> Option<HeadName> {
    let follows = clearest_follower(&data.heads, &data.relations);
    if follows.is_some() {
        return follows;
    }
    let (measure, heads) = subject(data)?;
    best(data, measure, &heads)
        .map(|(_, head, ..)| head)
        .or_else(|| heads.first().copied())
}

/// The role that the finding speaks of, by its measure, and the heads that have it.
fn subject(data: &ReportData) -> Option<(Measure, Vec<HeadName>)> {
    for measure in measures_as_told() {
        let of_role = data
            .heads
            .iter()
            .filter(|(_, role)| *role == Role::Of(measure));
        let heads: Vec<HeadName> = of_role.map(|(head, _)| *head).collect();
        if !heads.is_empty() {
            return Some((measure, heads));
        }
    }
    None
}

/// How many heads hold a role, where nobody saw them take it on.
fn held(data: &ReportData, measure: Measure, heads: &[HeadName]) -> String {
    let all = data.heads.len();
    let clearest = best(data, measure, heads).map(|(_, head, ..)| head);
    match (heads, clearest) {
        ([head], _) => format!("Of {all} heads, {head} looks like {measure}."),
        (_, Some(clearest)) => format!(
            "Of {all} heads, {} look like {measure}, {clearest} most clearly.",
            heads.len()
        ),
        _ => format!("Of {all} heads, {} look like {measure}.", heads.len()),
    }
}

/// The head that stands furthest above the nulls of a gold relation of the task, if any does surely.
#[must_use]
pub fn clearest_follower(
    heads: &[(HeadName, Role)],
    relations: &[RelationSeen],
) -> Option<HeadName> {
    best_relation(heads, relations).map(|(_, head, _)| head)
}

/// The relation and the head that stand furthest above their nulls, if any does surely.
fn best_relation<'a>(
    heads: &[(HeadName, Role)],
    relations: &'a [RelationSeen],
) -> Option<(&'a RelationSeen, HeadName, RelationOfHead)> {
    let mut above = Vec::new();
    for relation in relations {
        for ((head, _), seen) in heads.iter().zip(&relation.heads) {
            if let Some(seen) = seen
                && seen.is_above_nulls(relation.uniform)
            {
                above.push((relation, *head, *seen));
            }
        }
    }
    first_largest(above, |(relation, _, seen)| {
        seen.above_nulls(relation.uniform)
    })
}

/// Which heads follow which relations for at least half of their attention, surely above every null.
fn followed(data: &ReportData) -> Option<String> {
    let mut of_heads = Vec::new();
    for (index, (head, _)) in data.heads.iter().enumerate() {
        let mut names = Vec::new();
        for relation in &data.relations {
            let seen = relation.heads.get(index).copied().flatten();
            if let Some(seen) = seen
                && seen.value >= 0.5
                && seen.is_above_nulls(relation.uniform)
            {
                let since = since(&seen);
                names.push(format!("{} ({:.2}{since})", relation.name, seen.value));
            }
        }
        if !names.is_empty() {
            of_heads.push(format!("{head} follows {}", list(names.into_iter())));
        }
    }
    if of_heads.is_empty() {
        return None;
    }
    Some(format!("On the task, {}.", of_heads.join("; ")))
}

/// `, since step 900`, where that is known.
fn since(seen: &RelationOfHead) -> String {
    seen.since
        .map(|(_, step)| format!(", since step {step}"))
        .unwrap_or_default()
}

/// The head that follows a gold relation of the task most clearly.
fn follows(data: &ReportData) -> Option<String> {
    let (relation, head, seen) = best_relation(&data.heads, &data.relations)?;
    Some(format!(
        "Most clearly {head} follows {name}{since}: it gives the source {value:.2} of its attention (95 % interval {low:.2} to \
         {high:.2}; evenly spread attention {even:.2}).",
        name = relation.name,
        since = since(&seen),
        value = seen.value,
        low = seen.low,
        high = seen.high,
        even = relation.uniform,
    ))
}

/// What that head gives where the relation is not, and of how many pairs it is the clearest.
fn nulls_of_relation(data: &ReportData) -> Option<String> {
    let (relation, head, seen) = best_relation(&data.heads, &data.relations)?;
    let mut nulls = format!("Evenly spread attention gives {:.2}", relation.uniform);
    if let Some(distance) = seen.distance {
        let _ = write!(
            nulls,
            ", the head itself {distance:.2} at the same distances to other words"
        );
    }
    if let Some(shuffled) = seen.shuffled {
        let _ = write!(nulls, ", {shuffled:.2} when the words are shuffled");
    }
    Some(format!(
        "{head} was measured on {pairs} pairs of words of {name}. {nulls}. Of {tried} heads and relations this pair stands \
         out most.",
        name = relation.name,
        pairs = relation.pairs,
        tried = data.heads.len() * data.relations.len(),
    ))
}

/// When the heads took on the role they have at the end.
fn formed(data: &ReportData, measure: Measure, heads: &[HeadName]) -> Option<String> {
    let mut since = Vec::new();
    for head in heads {
        let emerged = |event: &&EventRow| {
            event.event == RoleEvent::Emerged
                && event.head == *head
                && event.role == Role::Of(measure)
        };
        if let Some(event) = data.events.iter().rfind(emerged) {
            since.push((event.step, *head));
        }
    }
    since.sort_unstable();
    let &(first, _) = since.first()?;
    let before = measured_before(data, first);
    let (early, late): (Vec<_>, Vec<_>) = since.into_iter().partition(|(step, _)| *step == first);
    let heads = if early.len() == 1 { "head" } else { "heads" };
    let mut sentence = format!(
        "Between steps {before} and {first} the {measure} {heads} {} formed",
        names(&early)
    );
    if let Some(&(last, _)) = late.last() {
        let _ = write!(sentence, "; by step {last} {} did too", names(&late));
    }
    let then = accuracy_at(data, before);
    let end = accuracy_at(data, data.run.steps);
    if let (Some(then), Some(end)) = (then, end) {
        let _ = write!(
            sentence,
            ". Accuracy was {then:.3} at step {before} and is {end:.3} at the end, step {} (guessing: {:.3})",
            data.run.steps, data.run.chance
        );
    }
    Some(sentence + ".")
}

fn names(heads: &[(usize, HeadName)]) -> String {
    list(heads.iter().map(|(_, head)| head.to_string()))
}

fn accuracy_at(data: &ReportData, step: usize) -> Option<f64> {
    let row = data.metrics.iter().find(|row| row.step == step)?;
    Some(row.accuracy)
}

/// The best head's score against its ceiling and its nulls.
fn looks_like(data: &ReportData, measure: Measure, heads: &[HeadName]) -> Option<String> {
    let (series, best, [value, low, high]) = best(data, measure, heads)?;
    let mut untrained = String::new();
    if data.steps.len() > 1 {
        let [before, ..] = score(data, series, 0, &best)?;
        untrained = format!(", the untrained head gave {before:.2}");
    }
    Some(format!(
        "It looks like one: {best} {does}, with {value:.2} of its attention (95 % interval {low:.2} to {high:.2}; the most \
         is {ceiling}). Evenly spread attention would give {null:.2}{untrained}.",
        does = measure.does(),
        // 1, or with decimals where a window hides some targets.
        ceiling = (series.ceiling * 100.0).round() / 100.0,
        null = series.null,
    ))
}

/// The head with the largest score of a measure at the end, with it; the first of equals.
fn best<'a>(
    data: &'a ReportData,
    measure: Measure,
    heads: &[HeadName],
) -> Option<(&'a ScoreSeries, HeadName, [f32; 3])> {
    let series = data
        .scores
        .iter()
        .find(|series| series.on == SequenceKind::Probe && series.name == measure.name())?;
    let last = data.steps.len().checked_sub(1)?;
    let scored = heads
        .iter()
        .filter_map(|head| Some((series, *head, score(data, series, last, head)?)));
    first_largest(scored, |(.., [value, ..])| f64::from(*value))
}

/// Value, low and high of a head at the `step`-th step.
fn score(
    data: &ReportData,
    series: &ScoreSeries,
    step: usize,
    head: &HeadName,
) -> Option<[f32; 3]> {
    let index = data.heads.iter().position(|(other, _)| other == head)?;
    series.at(step, index, data.heads.len())
}

/// What is lost without the heads.
fn used_as(data: &ReportData, measure: Measure, heads: &[HeadName]) -> Option<String> {
    let role = Role::Of(measure);
    let (row, uses) = last_use(data, HeadSet::LooksLike(role), heads)?;
    let left = uses.ablated.as_ref()?;
    let (pronoun, names) = if heads.len() == 1 {
        ("it", "it")
    } else {
        ("them", "all of them")
    };
    let verb = if left.interval.is_below(row.untouched.interval) {
        "The model uses"
    } else {
        "The model does without"
    };
    let mut sentence = format!(
        "{verb} {pronoun}: with {names} off ({} in place of the blend of values), accuracy goes from {:.3} to {:.3}",
        row.by.in_words(),
        row.untouched.accuracy,
        left.accuracy
    );
    let controls: Vec<&Control> = data
        .controls
        .iter()
        .filter(|control| control.role == role)
        .collect();
    let worst = controls
        .iter()
        .min_by(|a, b| a.left.accuracy.total_cmp(&b.left.accuracy));
    let (count, layers) = (heads.len(), layers_of(heads));
    let _ = match worst {
        Some(Control { heads, left, .. }) => write!(
            sentence,
            ". For comparison, as many heads of {layers} that no test marks as needed leave {:.3} at worst, in {} (without \
             {})",
            left.accuracy,
            if controls.len() == 1 {
                "1 draw".to_owned()
            } else {
                format!("{} draws", controls.len())
            },
            list(heads.iter().map(ToString::to_string))
        ),
        None => write!(
            sentence,
            ". There is no control: among the other heads of {layers}, fewer than {count} are not needed",
        ),
    };
    Some(sentence + ".")
}

/// `layer 0`, `layers 0 and 1`.
fn layers_of(heads: &[HeadName]) -> String {
    let layers: BTreeSet<usize> = heads.iter().map(|head| head.layer).collect();
    let plural = if layers.len() == 1 { "layer" } else { "layers" };
    format!("{plural} {}", list(layers.iter().map(ToString::to_string)))
}

/// Which input of the heads' layer needs what the layer before wrote.
fn path(data: &ReportData, heads: &[HeadName]) -> Option<String> {
    let before = heads.iter().map(|head| head.layer).max()?.checked_sub(1)?;
    let of_layer: Vec<HeadName> = data
        .heads
        .iter()
        .map(|(head, _)| *head)
        .filter(|head| head.layer == before)
        .collect();
    let (row, uses) = last_use(data, HeadSet::Layer, &of_layer)?;
    let (needed, least) = uses
        .through
        .iter()
        .min_by(|a, b| a.1.accuracy.total_cmp(&b.1.accuracy))?;
    if !least.interval.is_below(row.untouched.interval) {
        return None;
    }
    let others = uses.through.iter().filter(|(reader, _)| *reader != needed);
    let others =
        list(others.map(|(reader, left)| format!("{:.3} from the {reader}", left.accuracy)));
    Some(format!(
        "What layer {before} wrote is needed in the {needed} of later layers: hidden from them alone, accuracy is {:.3}; \
         hidden from others, {others}.",
        least.accuracy
    ))
}

/// What was measured last of these heads, and with what beside it.
fn last_use<'a>(
    data: &'a ReportData,
    name: HeadSet,
    heads: &[HeadName],
) -> Option<(&'a UsesRow, &'a HeadsUse)> {
    let row = data.uses.last()?;
    row.uses
        .iter()
        .find(|uses| uses.name == name && uses.heads == heads)
        .map(|uses| (row, uses))
}

/// `a`, `a and b`, `a, b and c`.
fn list(items: impl Iterator<Item = String>) -> String {
    let mut items: Vec<String> = items.collect();
    match items.pop() {
        Some(last) if items.is_empty() => last,
        Some(last) => format!("{} and {last}", items.join(", ")),
        None => String::new(),
    }
}
