//! A comparison for the terminal.

use headlight_heads::{HeadName, Values};
use headlight_report::{
    ComparedCurves, ComparedMeasure, ComparisonData, Curve, CurvePoint, MeasureOfSide, Printout,
    RoleOfSide, Table, Terminal, TerminalCurves, curves_svg, line_colour, number_or_dash,
};

/// Heads that a cell of the table names.
const MOST_NAMED_HEADS: usize = 6;

/// Which keys differ, the measures at the end, and the heads by role.
#[must_use]
pub fn comparison_printout(data: &ComparisonData) -> Printout {
    let printout = Printout::new()
        .prose(format!("{}.", data.title()))
        .prose(match data.keys.as_slice() {
            [] if data.sides.len() > 1 => "Their configurations do not differ.",
            _ => "",
        })
        .table(keys_table(data))
        .table(measures_table(data))
        .prose(intervals_text(data))
        .table(half_way_table(data));
    let printout = match data.sides.as_slice() {
        [_] => printout.table(roles_by_seed_table(data)),
        _ => printout.table(roles_table(data)),
    };
    printout.prose(format!(
        "half of its way: from the first to the last value. Heads are matched by what they look like on the probe: L0H1 of one run and L0H1 of another share no more than \
         their place. highest: the highest score of the role over all heads. emerged: the first logged step at which a \
         head looked so, {}. without: the accuracy without all heads of the role. A range is the lowest and the highest \
         of the seeds.",
        logged_text(data)
    ))
}

/// `logged every 50 steps`
fn logged_text(data: &ComparisonData) -> String {
    let mut every: Vec<String> = data
        .sides
        .iter()
        .map(|side| side.logged_every.to_string())
        .collect();
    every.dedup();
    format!("logged every {} steps", every.join(" and "))
}

fn names(data: &ComparisonData) -> Vec<String> {
    data.sides.iter().map(|side| side.name.clone()).collect()
}

fn keys_table(data: &ComparisonData) -> Table {
    let header = [vec!["key that differs".to_owned()], names(data)].concat();
    let rows = data.keys.iter().map(|(key, values)| {
        let mut row = vec![key.clone()];
        row.extend(values.iter().cloned());
        row
    });
    Table::new(&header, rows)
}

/// A column for each side and for its difference to the first; of one side a column for each seed.
fn measures_table(data: &ComparisonData) -> Table {
    let mut header = vec!["at the end".to_owned()];
    if let [side] = data.sides.as_slice() {
        header.extend(["mean", "range"].map(str::to_owned));
        header.extend(side.runs.iter().map(|run| format!("seed {}", run.seed)));
    } else {
        for (at, side) in data.sides.iter().enumerate() {
            header.push(side.name.clone());
            if at > 0 {
                header.push(format!("− {}", data.sides[0].name));
            }
        }
    }
    let row = |measure: &ComparedMeasure| {
        let mut row = vec![measure.name.clone()];
        if let [side] = measure.sides.as_slice() {
            row.push(number_or_dash(side.mean, 4));
            let values = side.values.clone();
            row.push(range(&Values { values }, 4));
            row.extend(side.values.iter().map(|value| number_or_dash(*value, 4)));
            return row;
        }
        for (at, side) in measure.sides.iter().enumerate() {
            row.push(with_half(side));
            if at > 0 {
                let difference = measure.differences[at].map(|difference| {
                    format!("{:+.4}±{:.4}", difference.mean, difference.interval.half())
                });
                row.push(difference.unwrap_or_else(|| "–".to_owned()));
            }
        }
        row
    };
    Table::new(&header, data.measures.iter().map(row))
}

/// `0.9962±0.0011`
fn with_half(side: &MeasureOfSide) -> String {
    match (side.mean, side.interval) {
        (Some(mean), Some(interval)) => format!("{mean:.4}±{:.4}", interval.half()),
        (mean, _) => number_or_dash(mean, 4),
    }
}

/// What the intervals are over.
fn intervals_text(data: &ComparisonData) -> String {
    let mut kinds: Vec<&str> = Vec::new();
    for difference in data
        .measures
        .iter()
        .flat_map(|measure| &measure.differences)
    {
        if let Some(difference) = difference
            && !kinds.contains(&difference.over.in_words())
        {
            kinds.push(difference.over.in_words());
        }
    }
    let seeds = data.sides.iter().any(|side| side.runs.len() > 1);
    let text = match (seeds, data.sides.len()) {
        (true, 1) => String::new(),
        (true, _) => {
            "±: half of the 95 % interval, of several seeds that of their mean by Student's t."
                .to_owned()
        }
        _ => "±: half of the 95 % interval over validation sequences.".to_owned(),
    };
    if !kinds.is_empty() {
        let kinds = kinds.join(" or ");
        return format!("{text} That of a difference is over {kinds}.");
    }
    text
}

/// A line for each curve, a column for each side, or for each seed of one side.
fn half_way_table(data: &ComparisonData) -> Table {
    let mut header = vec!["half of its way at step".to_owned()];
    match data.sides.as_slice() {
        [side] => {
            header.push("range".to_owned());
            header.extend(side.runs.iter().map(|run| format!("seed {}", run.seed)));
        }
        _ => header.extend(names(data)),
    }
    let rows = data.half_way.iter().map(|(name, sides)| {
        let mut row = vec![name.clone()];
        row.extend(sides.iter().map(|side| range(side, 0)));
        if let [side] = sides.as_slice() {
            row.extend(side.values.iter().map(|value| number_or_dash(*value, 0)));
        }
        row
    });
    Table::new(&header, rows)
}

/// A line for each role and what is known of it, a column for each side.
fn roles_table(data: &ComparisonData) -> Table {
    let header = [vec!["looks like".to_owned(), String::new()], names(data)].concat();
    let mut rows = Vec::new();
    for role in &data.roles {
        let mut row = |name: &str, value: &dyn Fn(&RoleOfSide) -> String| {
            let mut row = vec![role.role.to_string(), name.to_owned()];
            row.extend(role.sides.iter().map(value));
            rows.push(row);
        };
        row("heads", &heads_text);
        row("highest", &|side| range(&side.highest, 3));
        row("emerged", &|side| range(&side.emerged, 0));
        row("without", &|side| range(&side.without, 3));
    }
    Table::new(&header, rows).text_columns(2)
}

/// A line for each role and what is known of it, a column for each seed.
fn roles_by_seed_table(data: &ComparisonData) -> Table {
    let mut header = ["looks like", "", "range"].map(str::to_owned).to_vec();
    for run in data.sides.iter().flat_map(|side| &side.runs) {
        header.push(format!("seed {}", run.seed));
    }
    let mut rows = Vec::new();
    for role in &data.roles {
        let [side] = role.sides.as_slice() else {
            continue;
        };
        let mut heads = vec![
            role.role.to_string(),
            "heads".to_owned(),
            range(&side.count, 0),
        ];
        heads.extend(side.heads.iter().map(|heads| named(heads)));
        rows.push(heads);
        let values = [
            ("highest", &side.highest, 3),
            ("emerged", &side.emerged, 0),
            ("without", &side.without, 3),
        ];
        for (name, values, decimals) in values {
            let mut row = vec![
                role.role.to_string(),
                name.to_owned(),
                range(values, decimals),
            ];
            row.extend(
                values
                    .values
                    .iter()
                    .map(|value| number_or_dash(*value, decimals)),
            );
            rows.push(row);
        }
    }
    Table::new(&header, rows).text_columns(2)
}

/// Of one run its heads by name; of several seeds how many they are.
fn heads_text(side: &RoleOfSide) -> String {
    match side.heads.as_slice() {
        [only] => named(only),
        _ => range(&side.count, 0),
    }
}

fn named(heads: &[HeadName]) -> String {
    match heads.len() {
        0 => "none".to_owned(),
        count if count > MOST_NAMED_HEADS => count.to_string(),
        _ => {
            let names: Vec<String> = heads.iter().map(ToString::to_string).collect();
            names.join(" ")
        }
    }
}

/// `250–300`, and of how many seeds, if not of all.
fn range(values: &Values, decimals: usize) -> String {
    let Some((lowest, highest)) = values.range() else {
        return "–".to_owned();
    };
    let [lowest, highest] = [lowest, highest].map(|value| format!("{value:.decimals$}"));
    let range = if lowest == highest {
        lowest
    } else if lowest.starts_with('-') {
        // A dash beside a sign is not read.
        format!("{lowest} to {highest}")
    } else {
        format!("{lowest}–{highest}")
    };
    match (values.count(), values.values.len()) {
        (count, all) if count < all => format!("{range} ({count} of {all})"),
        _ => range,
    }
}

/// Every quantity as a plot, one below the other, with a colour for each side.
#[must_use]
pub fn curves_text(data: &ComparisonData, terminal: &Terminal) -> String {
    let mut plots = Vec::new();
    for of_quantity in &data.curves {
        let curves = plotted(data, of_quantity);
        let plot = TerminalCurves {
            title: &of_quantity.name,
            curves: &curves,
            highest: of_quantity.highest,
        };
        plots.push(plot.draw(terminal));
    }
    plots.join("\n\n")
}

/// The accuracies of all runs as a picture.
pub(crate) fn accuracies_svg(data: &ComparisonData) -> String {
    curves_svg(&plotted(data, &data.curves[0]))
}

/// The curves of one quantity, the seeds of a side in one colour. The null of a side stands with its
/// first run.
fn plotted(data: &ComparisonData, of_quantity: &ComparedCurves) -> Vec<Curve> {
    let mut curves = Vec::new();
    for curve in &of_quantity.runs {
        let side = &data.sides[curve.side];
        let name = if side.runs.len() > 1 {
            format!("{}, seed {}", side.name, side.runs[curve.run].seed)
        } else {
            side.name.clone()
        };
        let levels = &of_quantity.levels;
        let level = if levels.len() == data.sides.len() {
            levels.get(curve.side)
        } else {
            levels.first().filter(|_| curve.side == 0)
        };
        let point = |&(step, value): &(usize, f64)| CurvePoint {
            step,
            value,
            interval: None,
        };
        curves.push(Curve {
            name,
            colour: line_colour(curve.side),
            points: curve.points.iter().map(point).collect(),
            null: level.filter(|_| curve.run == 0).map(|(_, value)| *value),
        });
    }
    curves
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_says_of_how_many_seeds_it_is() {
        let of = |values: &[Option<f64>]| {
            range(
                &Values {
                    values: values.to_vec(),
                },
                0,
            )
        };
        assert_eq!(of(&[Some(250.0), Some(300.0)]), "250–300");
        assert_eq!(of(&[Some(250.0), Some(250.0)]), "250");
        assert_eq!(of(&[Some(250.0), None, None]), "250 (1 of 3)");
        assert_eq!(of(&[Some(-2.0), Some(-1.0)]), "-2 to -1");
        assert_eq!(of(&[None]), "–");
    }
}
