//! `inspect RUN offsets`: where the heads look around a match and how far back, and what weighting by values changes.

use headlight_lens::{LayerPattern, Measure, Offset, offset_profile, score_layer, value_weighted};
use headlight_report::plain_table;
use headlight_residual::{AttentionSite, Capture, Decoder, Site};
use headlight_run::{HeadName, InputError, Score, Scores};
use serde::Serialize;

use super::{Inspection, ModelParts};
use crate::watch::{Watched, ids};

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
}

impl Inspection {
    /// Offset profile and value-weighted scores of every head on the probe.
    ///
    /// # Errors
    /// If the run has no weights.
    pub fn offsets(&self) -> Result<Vec<HeadOffsets>, InputError> {
        let ModelParts { model, vocabulary } = self.model()?;
        let probe = Watched::probe(vocabulary.len(), self.config.model.n_ctx, self.config.seed);
        let (rows, length) = (probe.tokens.len(), probe.tokens.first().map_or(0, Vec::len));
        let layers = 0..model.blocks.len();
        let site = |layer, site| Site::Attention(layer, site);
        let sites: Vec<Site> = layers
            .clone()
            .flat_map(|layer| [site(layer, AttentionSite::Pattern), site(layer, AttentionSite::V)])
            .collect();
        let mut seen = Capture::new(&sites, usize::MAX);
        let _ = model.forward_probed(ids(&probe.tokens, &self.device), &mut seen);
        let mut heads = Vec::new();
        for layer in layers {
            let Some(pattern) = seen.get::<4>(site(layer, AttentionSite::Pattern)) else { continue };
            let weights: Vec<f32> = pattern.into_data().iter::<f32>().collect();
            let norms = value_norms(&model, layer, &seen);
            let weighted = value_weighted(&weights, &norms, length);
            let dims = [rows, model.n_heads(), length];
            let profile = offset_profile(LayerPattern::new(dims, &weights), &probe.tokens);
            let scores = score_layer(LayerPattern::new(dims, &weights), &probe.tokens);
            let of_values = score_layer(LayerPattern::new(dims, &weighted), &probe.tokens);
            for (head, (scores, value_weighted)) in scores.into_iter().zip(of_values).enumerate() {
                let at = |(offset, scores): &(Offset, Vec<Score>)| (offset.to_string(), scores[head]);
                heads.push(HeadOffsets {
                    head: HeadName { layer, head },
                    profile: profile.iter().map(at).collect(),
                    scores,
                    value_weighted,
                });
            }
        }
        Ok(heads)
    }
}

/// `[batch, heads, keys]`: the norm of the value each query head reads at each key.
pub(super) fn value_norms(model: &Decoder, layer: usize, seen: &Capture) -> Vec<f32> {
    let Some(values) = seen.get::<4>(Site::Attention(layer, AttentionSite::V)) else { return Vec::new() };
    let [batch, keys, kv_heads, _] = values.dims();
    let norms = values.square().sum_dim(3).sqrt().swap_dims(1, 2).reshape([batch, kv_heads, 1, keys]);
    let heads = model.n_heads();
    norms.expand([batch, kv_heads, heads / kv_heads, keys]).into_data().iter::<f32>().collect()
}

/// As two tables.
#[must_use]
pub fn offsets_text(heads: &[HeadOffsets]) -> String {
    let cell = |score: Option<&Score>| score.map_or_else(|| "–".to_owned(), |score| format!("{:.2}", score.value));
    let places: Vec<String> = Offset::all().map(|offset| offset.to_string()).collect();
    let value = |head: &HeadOffsets, place: &String| {
        cell(head.profile.iter().find(|(name, _)| name == place).map(|(_, score)| score))
    };
    let profile = heads.iter().map(|head| {
        std::iter::once(head.head.to_string()).chain(places.iter().map(|place| value(head, place))).collect()
    });
    let null = |place: &String| {
        let scores = heads.first().and_then(|head| head.profile.iter().find(|(name, _)| name == place));
        scores.map_or_else(|| "–".to_owned(), |(_, score)| format!("{:.2}", score.null))
    };
    let uniform = std::iter::once("uniform".to_owned()).chain(places.iter().map(null)).collect();
    let measures = Measure::ALL.map(Measure::name);
    let weighted = heads.iter().map(|head| {
        let pair = |name: &&str| format!("{} {}", cell(head.scores.get(*name)), cell(head.value_weighted.get(*name)));
        std::iter::once(head.head.to_string()).chain(measures.iter().map(pair)).collect()
    });
    let header = |names: &[&str]| std::iter::once("head").chain(names.iter().copied()).map(str::to_owned).collect();
    let (places, measures): (Vec<String>, Vec<String>) =
        (header(&places.iter().map(String::as_str).collect::<Vec<_>>()), header(&measures));
    let names = |header: &[String]| header.iter().map(|name| name.replace(" token", "")).collect::<Vec<_>>();
    format!(
        "Mean weight around an earlier token equal to the current one, and by distance; on the probe, over the queries\n\
         whose token has been there before.\n\n{}\n\n\
         Scores of the pattern, and of the pattern scaled by the norm of the values: what a head moves.\n\n{}",
        plain_table(&names(&places), profile.chain([uniform])),
        plain_table(&names(&measures), weighted),
    )
}
