//! What would the model say if it ended here, and who said it? (Logit lens, nostalgebraist 2020;
//! direct logit attribution, Elhage et al. 2021.)

use burn::tensor::{Int, Tensor, module::embedding};
use headlight_heads::HeadName;
use headlight_residual::{
    ActivationsError, AttentionSite, BlockSite, Decoder, NoProbe, Norm, NormPlacement, NormSite,
    Site,
};
use serde::Serialize;

use crate::{Behaviour, Performance};

/// The behaviour read off the stream at one place.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Depth {
    /// The place.
    pub site: String,
    /// What the unembedding makes of the stream there.
    pub performance: Performance,
    /// The mean norm of the stream's rows.
    pub norm: f64,
}

/// The unembedding applied to the stream before the first block, after each attention and after
/// each feed-forward ([`Decoder::stream_sites`]). The final norm takes its mean and scale from the
/// stream it is given, so that an early, small stream is not read as a faint late one. The last
/// place gives the model's own logits.
///
/// # Errors
/// If the stream at all these places does not fit into memory.
pub fn logit_lens(model: &Decoder, behaviour: &Behaviour) -> Result<Vec<Depth>, ActivationsError> {
    let sites = model.stream_sites();
    let seen = model.activations(behaviour.inputs(), &sites)?;
    let read = |site: Site| {
        let x = seen.tensor::<3>(site);
        let norm = f64::from(
            x.clone()
                .square()
                .sum_dim(2)
                .sqrt()
                .mean()
                .into_scalar::<f32>(),
        );
        let stream = model.final_norm(x, &mut NoProbe);
        let scores = model.target_scores_of(&stream, &behaviour.targets());
        let performance = behaviour.performance(&scores);
        Depth {
            site: site.to_string(),
            performance,
            norm,
        }
    };
    Ok(sites.into_iter().map(read).collect())
}

/// What one part of the model adds to the logit of the right token.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contribution {
    /// The part: `embedding`, `positions`, a head, `attention bias 0`, `feed-forward 0`,
    /// `final biases`.
    pub name: String,
    /// Mean over the scored targets of what it adds to `logit[target] − mean logit`.
    pub logit: f64,
}

/// Splits the logit of the right token, above the mean of all logits, into what each part wrote to
/// the stream. The scale of the final norm is that of the whole stream, so the parts add up to the
/// logit exactly.
///
/// A part that adds nothing here may still be needed: by what later layers make of it. `None` for a
/// post-norm model.
///
/// # Errors
/// If all that is written to the stream does not fit into memory.
pub fn direct_logit_attribution(
    model: &Decoder,
    behaviour: &Behaviour,
) -> Result<Option<Vec<Contribution>>, ActivationsError> {
    if model.config().norm_placement == NormPlacement::Post {
        return Ok(None);
    }
    let scale_site = Site::LnFinal(NormSite::Scale);
    let mut sites = vec![Site::Embed, Site::PosEmbed, scale_site];
    for layer in 0..model.blocks.len() {
        sites.push(Site::Attention(layer, AttentionSite::Result));
        sites.push(Site::Block(layer, BlockSite::MlpOut));
    }
    sites.retain(|&site| model.has(site));
    let seen = model.activations(behaviour.inputs(), &sites)?;
    let readers = readers(model, behaviour.targets());
    let scale = seen.get::<3>(scale_site);
    let scored = behaviour.scored();
    let count = f64::from(scored.clone().sum().into_scalar::<f32>()).max(1.0);
    let mean = |per_target: Tensor<2>| {
        f64::from((per_target * scored.clone()).sum().into_scalar::<f32>()) / count
    };
    let of_part = |part: Tensor<3>| {
        let read = (part * readers.directions.clone()).sum_dim(2);
        mean(match &scale {
            Some(scale) => (read / scale.clone()).squeeze_dim(2),
            None => read.squeeze_dim(2),
        })
    };

    let mut parts = Vec::new();
    let mut add = |name: String, logit: f64| parts.push(Contribution { name, logit });
    for (name, site) in [("embedding", Site::Embed), ("positions", Site::PosEmbed)] {
        if let Some(part) = seen.get::<3>(site) {
            add(name.to_owned(), of_part(part));
        }
    }
    for (layer, block) in model.blocks.iter().enumerate() {
        let results = seen.tensor::<4>(Site::Attention(layer, AttentionSite::Result));
        for head in 0..model.n_heads() {
            let result = results.clone().narrow(2, head, 1).squeeze_dim(2);
            add(HeadName { layer, head }.to_string(), of_part(result));
        }
        if let Some(bias) = &block.attn.w_o.bias {
            let [batch, positions, _, d_model] = results.dims();
            add(
                format!("attention bias {layer}"),
                of_part(
                    bias.val()
                        .unsqueeze::<3>()
                        .expand([batch, positions, d_model]),
                ),
            );
        }
        if let Some(part) = seen.get::<3>(Site::Block(layer, BlockSite::MlpOut)) {
            add(format!("feed-forward {layer}"), of_part(part));
        }
    }
    if let Some(constant) = readers.constant {
        add("final biases".to_owned(), mean(constant));
    }
    Ok(Some(parts))
}

/// How the right token's logit, above the mean logit, is read from the stream.
struct Readers {
    /// `[batch, pos, d_model]`: what a part is multiplied with, before the norm's scale divides.
    directions: Tensor<3>,
    /// `[batch, pos]`: what the biases of the final norm and the unembedding add.
    constant: Option<Tensor<2>>,
}

fn readers(model: &Decoder, targets: Tensor<2, Int>) -> Readers {
    let unembedding = model.unembedding(); // [d_model, vocabulary]
    let centred = unembedding.clone() - unembedding.mean_dim(1);
    let of_target = embedding(centred.transpose(), targets.clone()); // [batch, pos, d_model]
    let (directions, norm_bias) = match &model.ln_final {
        Some(Norm::Layer(norm)) => {
            let scaled = of_target.clone() * norm.gain.val().unsqueeze();
            // x − mean(x), read by v, is x read by v − mean(v).
            let bias = (of_target * norm.bias.val().unsqueeze())
                .sum_dim(2)
                .squeeze_dim::<2>(2);
            (scaled.clone() - scaled.mean_dim(2), Some(bias))
        }
        Some(Norm::Rms(norm)) => (of_target * norm.gain.val().unsqueeze(), None),
        None => (of_target, None),
    };
    let token_bias = model.b_u.as_ref().map(|bias| {
        let bias = bias.val() - bias.val().mean();
        embedding(bias.unsqueeze_dim::<2>(1), targets).squeeze_dim::<2>(2)
    });
    let constant = match (norm_bias, token_bias) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    };
    Readers {
        directions,
        constant,
    }
}
