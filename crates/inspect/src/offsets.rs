//! `inspect RUN offsets`: where the heads look around a match and how far back, and what weighting
//! by values changes.

use headlight_heads::{HeadName, Measure, Score, ScoreName, Scores};
use headlight_lens::{Offset, offset_profile, score_layer, value_disagreement};
use headlight_report::{Printout, Table, number_or_dash};
use headlight_run::Error;
use headlight_watch::CarriedPatterns;
use serde::Serialize;

use super::{ModelParts, Output, Subject, Verb};

/// Where heads look around an earlier equal token, by distance, and weighted by what the keys carry
#[derive(Debug, clap::Args)]
pub struct OffsetsVerb;

impl Verb for OffsetsVerb {
    const NAME: &'static str = "offsets";

    fn show(self, subject: Subject, out: &Output) -> Result<(), Error> {
        out.show(&subject.offsets()?[..], offsets_printout)
    }
}

/// What `inspect RUN offsets` shows of a head, all on the probe.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeadOffsets {
    /// The head.
    pub head: HeadName,
    /// Mean weight by place, in the order of tables.
    pub profile: Vec<(String, Score)>,
    /// The head's scores.
    pub scores: Scores,
    /// The same scores of the pattern scaled by the norm of what each key carries.
    pub value_weighted: Scores,
    /// The share of the weight that stands elsewhere once it is scaled so, mean over queries.
    pub moved_elsewhere: f64,
}

impl HeadOffsets {
    /// The mean weight at one place, if any query has it.
    fn at(&self, offset: Offset) -> Option<&Score> {
        let name = offset.to_string();
        let (_, score) = self.profile.iter().find(|(place, _)| *place == name)?;
        Some(score)
    }
}

impl Subject {
    /// Offset profile and value-weighted scores of every head on the probe.
    ///
    /// # Errors
    /// If the run has no weights.
    pub fn offsets(&self) -> Result<Vec<HeadOffsets>, Error> {
        let ModelParts { model, .. } = self.model()?;
        let probe = self.probe()?;
        let CarriedPatterns { plain, weighted } =
            CarriedPatterns::of(&model, &probe.tokens, &self.device)?.with_start(probe.has_start);
        let mut heads = Vec::new();
        for (layer, (pattern, carried)) in plain.layers().zip(weighted.layers()).enumerate() {
            let profile = offset_profile(pattern, &probe.tokens);
            let scores = score_layer(pattern, &probe.tokens);
            let of_values = score_layer(carried, &probe.tokens);
            let elsewhere = value_disagreement(
                &plain.weights()[layer],
                &weighted.weights()[layer],
                plain.dims(),
            );
            for (head, (scores, value_weighted)) in scores.into_iter().zip(of_values).enumerate() {
                let mut places = Vec::new();
                for (offset, scores_of_heads) in &profile {
                    places.push((offset.to_string(), scores_of_heads[head]));
                }
                heads.push(HeadOffsets {
                    head: HeadName { layer, head },
                    profile: places,
                    scores,
                    value_weighted,
                    moved_elsewhere: elsewhere[head],
                });
            }
        }
        Ok(heads)
    }
}

/// The places that say least of a head, first.
const FARTHEST: [&str; 6] = [
    "distance 4",
    "distance 3",
    "match−3",
    "match+3",
    "distance 2",
    "match−2",
];

/// Two tables.
#[must_use]
pub fn offsets_printout(heads: &[HeadOffsets]) -> Printout {
    Printout::new()
        .prose(
            "Mean weight around an earlier token equal to the current one, and by distance; on the probe, over the \
             queries whose token has been there before.",
        )
        .table(profile_table(heads))
        .prose(
            "Scores of the pattern, and of the pattern scaled by the norm of the values: what a head moves. elsewhere: \
             the share of the weight that stands on other keys then.",
        )
        .table(weighted_table(heads))
}

/// A line for each head, a column for each place, and a last line for uniform attention.
fn profile_table(heads: &[HeadOffsets]) -> Table {
    let mut header = vec!["head".to_owned()];
    let mut uniform = vec!["uniform".to_owned()];
    for offset in Offset::all() {
        header.push(offset.to_string());
        // Uniform attention is the same in every head.
        let score = heads.first().and_then(|head| head.at(offset));
        uniform.push(number_or_dash(score.map(|score| score.null), 2));
    }
    let mut rows = Vec::new();
    for head in heads {
        let mut row = vec![head.head.to_string()];
        for offset in Offset::all() {
            let score = head.at(offset);
            row.push(number_or_dash(score.map(|score| score.value), 2));
        }
        rows.push(row);
    }
    rows.push(uniform);
    Table::new(&header, rows).first_to_go(&FARTHEST)
}

/// A line for each head, a column for each measure: the score of the pattern and that of the
/// pattern scaled by values.
fn weighted_table(heads: &[HeadOffsets]) -> Table {
    let mut header = vec!["head".to_owned()];
    for measure in Measure::all() {
        header.push(measure.name().replace(" token", ""));
    }
    header.push("elsewhere".to_owned());
    let mut rows = Vec::new();
    for head in heads {
        let mut row = vec![head.head.to_string()];
        for measure in Measure::all() {
            let name = ScoreName::from(measure);
            let plain = head.scores.get(&name).map(|score| score.value);
            let weighted = head.value_weighted.get(&name).map(|score| score.value);
            row.push(format!(
                "{} {}",
                number_or_dash(plain, 2),
                number_or_dash(weighted, 2)
            ));
        }
        row.push(format!("{:.2}", head.moved_elsewhere));
        rows.push(row);
    }
    Table::new(&header, rows).first_to_go(&["current", "first", "duplicate"])
}
