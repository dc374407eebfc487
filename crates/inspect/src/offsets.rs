//! `inspect RUN offsets`: where the heads look around a match and how far back, and what weighting
//! by values changes.

use headlight_heads::{HeadName, Measure, Score, ScoreName, Scores};
use headlight_lens::{Offset, offset_profile, score_layer, value_disagreement};
use headlight_report::{Printout, Table, number_or_dash};
use headlight_run::Error;
use headlight_watch::CarriedPatterns;
use serde::Serialize;

use super::{ModelParts, Subject};

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

impl Subject {
    /// Offset profile and value-weighted scores of every head on the probe.
    ///
    /// # Errors
    /// If the run has no weights.
    pub fn offsets(&self) -> Result<Vec<HeadOffsets>, Error> {
        let ModelParts { model, .. } = self.model()?;
        let probe = self.probe()?;
        let CarriedPatterns { plain, weighted } =
            CarriedPatterns::of(&model, &probe.tokens, &self.device)?;
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
                let at =
                    |(offset, scores): &(Offset, Vec<Score>)| (offset.to_string(), scores[head]);
                heads.push(HeadOffsets {
                    head: HeadName { layer, head },
                    profile: profile.iter().map(at).collect(),
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
    let cell = |score: Option<&Score>| number_or_dash(score.map(|score| score.value), 2);
    let places: Vec<String> = Offset::all().map(|offset| offset.to_string()).collect();
    let value = |head: &HeadOffsets, place: &String| {
        cell(
            head.profile
                .iter()
                .find(|(name, _)| name == place)
                .map(|(_, score)| score),
        )
    };
    let profile = heads.iter().map(|head| {
        std::iter::once(head.head.to_string())
            .chain(places.iter().map(|place| value(head, place)))
            .collect()
    });
    let null = |place: &String| {
        let scores = heads
            .first()
            .and_then(|head| head.profile.iter().find(|(name, _)| name == place));
        number_or_dash(scores.map(|(_, score)| score.null), 2)
    };
    let uniform = std::iter::once("uniform".to_owned())
        .chain(places.iter().map(null))
        .collect();
    let weighted = heads.iter().map(|head| {
        let pair = |measure: Measure| {
            let name = ScoreName::from(measure);
            format!(
                "{} {}",
                cell(head.scores.get(&name)),
                cell(head.value_weighted.get(&name))
            )
        };
        let moved = format!("{:.2}", head.moved_elsewhere);
        std::iter::once(head.head.to_string())
            .chain(Measure::ALL.map(pair))
            .chain([moved])
            .collect()
    });
    let header = |names: &[&str]| {
        std::iter::once("head")
            .chain(names.iter().copied())
            .map(str::to_owned)
            .collect()
    };
    let (places, measures): (Vec<String>, Vec<String>) = (
        header(&places.iter().map(String::as_str).collect::<Vec<_>>()),
        header(&Measure::ALL.map(Measure::name)),
    );
    let names = |header: &[String]| {
        header
            .iter()
            .map(|name| name.replace(" token", ""))
            .collect::<Vec<_>>()
    };
    let profile = Table::new(&names(&places), profile.chain([uniform]));
    let weighted = Table::new(
        &[names(&measures), vec!["elsewhere".to_owned()]].concat(),
        weighted,
    );
    Printout::new()
        .prose(
            "Mean weight around an earlier token equal to the current one, and by distance; on the probe, over the \
             queries whose token has been there before.",
        )
        .table(profile.first_to_go(&FARTHEST))
        .prose(
            "Scores of the pattern, and of the pattern scaled by the norm of the values: what a head moves. elsewhere: \
             the share of the weight that stands on other keys then.",
        )
        .table(weighted.first_to_go(&["current", "first", "duplicate"]))
}
