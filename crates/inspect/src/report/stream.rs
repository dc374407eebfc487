//! The residual stream: what each part writes, and what could be read on the way.

use burn::tensor::{Tensor, activation::softmax};
use headlight_lens::{Behaviour, Depth, direct_logit_attribution, logit_lens};
use headlight_report::{Floats, LensData, StreamData};
use headlight_residual::{BlockSite, Decoder, NoProbe, Site, argmax, token_tensor};
use headlight_run::Error;
use headlight_watch::{no_room, uses::left};

use super::{Subject, numbers};

/// The longest sequence whose every position is shown.
const MOST_SHOWN_TOKENS: usize = 128;

impl Subject {
    /// Norms, logit attribution and logit lens on the run's own task.
    pub(super) fn stream(
        &self,
        model: &Decoder,
        behaviour: &Behaviour,
        vocabulary: &[String],
    ) -> Result<StreamData, Error> {
        let parts = written_sites(model);
        let sites: Vec<Site> = parts.iter().map(|(_, site)| *site).collect();
        let seen = model
            .activations(behaviour.inputs(), &sites)
            .map_err(no_room)?;
        let norm =
            |x: Tensor<3>| f64::from(x.square().sum_dim(2).sqrt().mean().into_scalar::<f32>());
        let norms = parts
            .into_iter()
            .map(|(name, site)| (name, norm(seen.tensor(site))))
            .collect();
        let depths = logit_lens(model, behaviour).map_err(no_room)?;
        let lens = self.lens_by_position(model, vocabulary, &depths)?;
        let depth = |depth: &Depth| (depth.site.clone(), left(&depth.performance), depth.norm);
        let logits = direct_logit_attribution(model, behaviour).map_err(no_room)?;
        Ok(StreamData {
            norms,
            logits: logits.map(|parts| {
                parts
                    .into_iter()
                    .map(|part| (part.name, part.logit))
                    .collect()
            }),
            depths: depths.iter().map(depth).collect(),
            lens,
        })
    }

    /// The logit lens at every position of the first validation sequence.
    fn lens_by_position(
        &self,
        model: &Decoder,
        vocabulary: &[String],
        depths: &[Depth],
    ) -> Result<LensData, Error> {
        let sequence = &self.validation()?.sequences[0];
        let length = sequence.scored.len().min(MOST_SHOWN_TOKENS);
        let (inputs, targets) = (&sequence.tokens[..length], &sequence.tokens[1..=length]);
        let sites: Vec<(String, Site)> = depths
            .iter()
            .filter_map(|depth| Some((depth.site.clone(), depth.site.parse().ok()?)))
            .collect();
        let kept: Vec<Site> = sites.iter().map(|(_, site)| *site).collect();
        let seen = model
            .activations(token_tensor(&[inputs], &self.device), &kept)
            .map_err(no_room)?;
        let name = |&token: &u32| vocabulary.get(token as usize).cloned().unwrap_or_default();
        let (mut right, mut confidence, mut likeliest) = (Vec::new(), Vec::new(), Vec::new());
        for (_, site) in &sites {
            let logits = model.unembed(seen.tensor(*site), &mut NoProbe);
            let probabilities = numbers(softmax(logits, 2));
            let rows: Vec<(&[f32], u32)> = probabilities
                .chunks(model.vocabulary())
                .map(|row| (row, argmax(row).unwrap_or(0) as u32))
                .collect();
            right.extend(
                rows.iter()
                    .zip(targets)
                    .map(|((row, _), &target)| row[target as usize]),
            );
            confidence.extend(rows.iter().map(|(row, best)| row[*best as usize]));
            likeliest.push(rows.iter().map(|(_, best)| name(best)).collect());
        }
        Ok(LensData {
            tokens: inputs.iter().map(name).collect(),
            targets: targets.iter().map(name).collect(),
            scored: sequence.scored[..length].to_vec(),
            depths: sites.into_iter().map(|(name, _)| name).collect(),
            right: Floats(right),
            likeliest,
            confidence: Floats(confidence),
        })
    }
}

/// What is written to the stream, in order.
pub(super) fn written_sites(model: &Decoder) -> Vec<(String, Site)> {
    let mut sites = vec![
        ("embedding".to_owned(), Site::Embed),
        ("positions".to_owned(), Site::PosEmbed),
    ];
    for layer in 0..model.blocks.len() {
        sites.push((
            format!("attention {layer}"),
            Site::Block(layer, BlockSite::AttnOut),
        ));
        sites.push((
            format!("feed-forward {layer}"),
            Site::Block(layer, BlockSite::MlpOut),
        ));
    }
    sites.retain(|(_, site)| model.has(*site));
    sites
}
