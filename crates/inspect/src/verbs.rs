//! Every verb of `inspect`, in the order of its help, and the page that says what each one shows.

use std::fmt::Write as _;

use crate::{
    ARCHITECTURES, AblateVerb, ActivationsVerb, AnyVerb, CircuitVerb, CircuitsVerb, CurvesVerb,
    DetectVerb, EvaluateVerb, ExportVerb, GenerateVerb, HeadsVerb, InterchangeVerb, LensVerb,
    OffsetsVerb, PatchVerb, PathsVerb, PatternVerb, PhasesVerb, PositionsVerb, PredictVerb,
    ProgramVerb, RelationsVerb, ReportVerb, ScoresVerb, SensesVerb, ServeVerb, SharedVerb,
    SwapVerb, WhyVerb,
    verb::{Need, Part},
};

/// The verbs that every program has; the first is the default.
#[must_use]
pub fn verbs() -> Vec<AnyVerb> {
    vec![
        AnyVerb::of::<HeadsVerb>(),
        AnyVerb::of::<PatternVerb>(),
        AnyVerb::of::<AblateVerb>(),
        AnyVerb::of::<PathsVerb>(),
        AnyVerb::of::<PositionsVerb>(),
        AnyVerb::of::<SharedVerb>(),
        AnyVerb::of::<PatchVerb>(),
        AnyVerb::of::<CircuitVerb>(),
        AnyVerb::of::<PredictVerb>(),
        AnyVerb::of::<SwapVerb>(),
        AnyVerb::of::<LensVerb>(),
        AnyVerb::of::<CircuitsVerb>(),
        AnyVerb::of::<WhyVerb>(),
        AnyVerb::of::<DetectVerb>(),
        AnyVerb::of::<OffsetsVerb>(),
        AnyVerb::of::<PhasesVerb>(),
        AnyVerb::of::<RelationsVerb>(),
        AnyVerb::of::<SensesVerb>(),
        AnyVerb::of::<ProgramVerb>(),
        AnyVerb::of::<InterchangeVerb>(),
        AnyVerb::of::<GenerateVerb>(),
        AnyVerb::of::<ExportVerb>(),
        AnyVerb::of::<ActivationsVerb>(),
        AnyVerb::of::<CurvesVerb>(),
        AnyVerb::of::<ScoresVerb>(),
        AnyVerb::of::<ServeVerb>(),
        AnyVerb::of::<ReportVerb>(),
        AnyVerb::of::<EvaluateVerb>(),
    ]
}

const HEAD: &str = "# Verbs

<!-- Written by `cargo run --example verbs > docs/verbs.md`; do not edit. -->

`inspect RUN VERB` shows a run. `inspect RUN VERB --help` has the options. Every verb takes `--json`, which prints its
numbers, and `--csv FILE`, which writes its tables ([how](notebooks.md)). `inspect learn` needs no run: it writes a page
that explains attention.
";

const ARCHITECTURES_HEAD: &str = "
## Architectures

Every verb works on every architecture, or says in one line why it cannot. ✓: the numbers are those of the model. A
number: the verb says the words of the note.
";

/// `docs/verbs.md`: what each verb shows, what it needs, and on which architectures it works.
#[must_use]
pub fn verbs_page() -> String {
    let mut page = HEAD.to_owned();
    page += "\n| verb | what it shows | options | needs |\n|---|---|---|---|\n";
    for verb in verbs() {
        let needs: Vec<&str> = verb
            .needs()
            .iter()
            .map(|need| Need::in_words(*need))
            .collect();
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} |",
            verb.name(),
            verb.help(),
            options(&verb),
            needs.join(", ")
        );
    }
    page += ARCHITECTURES_HEAD;
    let _ = writeln!(page, "\n| verb | {} |", ARCHITECTURES.join(" | "));
    let _ = writeln!(page, "|---{}|", "|---".repeat(ARCHITECTURES.len()));
    let mut notes: Vec<&str> = Vec::new();
    for verb in verbs() {
        // A compiled program has an architecture of its own, and runs with a program are few.
        let needs = verb.needs();
        if needs.contains(&Need::Program) || needs.contains(&Need::Alignment) {
            continue;
        }
        for part in verb.parts() {
            let cells = ARCHITECTURES.map(|architecture| cell(part, architecture, &mut notes));
            let _ = writeln!(
                page,
                "| {} | {} |",
                row_name(&verb, part),
                cells.join(" | ")
            );
        }
    }
    page.push('\n');
    for (index, note) in notes.iter().enumerate() {
        let _ = writeln!(page, "{}. `{note}`", index + 1);
    }
    page
}

/// `--head HEAD`, `--by zero|mean|resample`
fn options(verb: &AnyVerb) -> String {
    let command = verb.command();
    let mut options = Vec::new();
    if verb.takes_pairs() {
        options.push("`--pairs`".to_owned());
    }
    for argument in command.get_arguments() {
        if let Some(long) = argument.get_long() {
            options.push(format!("`--{long}`"));
        }
    }
    options.join(", ")
}

/// `` `lens`: by depth ``
#[must_use]
pub fn row_name(verb: &AnyVerb, part: &Part) -> String {
    if part.name.is_empty() {
        format!("`{}`", verb.name())
    } else {
        format!("`{}`: {}", verb.name(), part.name)
    }
}

/// A check mark, or the number of the note that says why there is none.
fn cell(part: &Part, architecture: &str, notes: &mut Vec<&str>) -> String {
    let limit = part
        .limits
        .iter()
        .find(|limit| limit.on.contains(&architecture));
    let Some(limit) = limit else {
        return "✓".to_owned();
    };
    let known = notes.iter().position(|note| *note == limit.says);
    let index = known.unwrap_or_else(|| {
        notes.push(limit.says);
        notes.len() - 1
    });
    (index + 1).to_string()
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, path::Path};

    use super::*;

    #[test]
    fn the_page_in_docs_is_this_one() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/verbs.md");
        let written = std::fs::read_to_string(path).unwrap();
        let command = "cargo run --example verbs > docs/verbs.md";
        assert!(
            written == verbs_page(),
            "docs/verbs.md is old; run: {command}"
        );
    }

    #[test]
    fn every_verb_has_a_name_of_its_own_and_a_sentence_and_its_limits_are_on_known_architectures() {
        let mut names = BTreeSet::new();
        for verb in verbs() {
            assert!(names.insert(verb.name()), "{} twice", verb.name());
            assert!(verb.help().len() > 10, "{}: {}", verb.name(), verb.help());
            for limit in verb.parts().iter().flat_map(|part| part.limits) {
                for architecture in limit.on {
                    assert!(ARCHITECTURES.contains(architecture), "{architecture}");
                }
            }
        }
    }
}
