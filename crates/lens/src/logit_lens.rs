//! What would the model say if it ended here, and who said it? (Logit lens, nostalgebraist 2020;
//! direct logit attribution, Elhage et al. 2021.)

use burn::tensor::{Int, Tensor, module::embedding};
use headlight_residual::{ActivationsError, Norm, NormSite, Probed, Readout, Site};
use serde::Serialize;

use crate::{
    Behaviour, Performance,
    given::{last_stream, readout_of, stream_sites_of},
    writer::{sites_of_written, written},
};

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
/// each feed-forward ([`Probed::stream_sites`]). The final norm takes its mean and scale from the
/// stream it is given, so that an early, small stream is not read as a faint late one. The last
/// place gives the model's own logits.
///
/// # Errors
/// If the model does not give its stream sites and its readout, or the stream at all these places
/// does not fit into memory.
pub fn logit_lens(
    model: &dyn Probed,
    behaviour: &Behaviour,
) -> Result<Vec<Depth>, ActivationsError> {
    let sites = stream_sites_of(model)?;
    let readout = readout_of(model)?;
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
        let scores = readout.next_token_scores(x, behaviour.asked());
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
    /// `final biases`, or the name of another site.
    pub name: String,
    /// Mean over the scored targets of what it adds to `logit[target] − mean logit`; beside a wrong
    /// token, to `logit[target] − logit[wrong]`.
    pub logit: f64,
}

/// Splits the logit of the right token, above the mean of all logits, into what each part wrote to
/// the stream. The scale of the final norm is that of the whole stream, so the parts add up to the
/// logit exactly; with a softcap, to the logit before it. Where a norm stands between attention and
/// the stream, a head is counted as its share of that norm's output.
///
/// A part that adds nothing here may still be needed: by what later layers make of it. `None` where
/// the last stream is not a sum, as in a post-norm model.
///
/// # Errors
/// If the model does not give its stream sites, its readout or the weights of its attention, or all
/// that is written to the stream does not fit into memory.
pub fn direct_logit_attribution(
    model: &dyn Probed,
    behaviour: &Behaviour,
) -> Result<Option<Vec<Contribution>>, ActivationsError> {
    let Some(summands) = model.summands(last_stream(model)?) else {
        return Ok(None);
    };
    let readout = readout_of(model)?;
    let scale_site = Site::LnFinal(NormSite::Scale);
    let mut sites = sites_of_written(&summands);
    if readout.norm.is_some() {
        sites.push(scale_site);
    }
    let seen = model.activations(behaviour.inputs(), &sites)?;
    let mut readers = readers_of(&readout, behaviour.targets());
    if let Some(wrong) = behaviour.asked().wrong() {
        readers = readers.less(readers_of(&readout, wrong));
    }
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
    for (writer, part) in written(model, &seen, &summands)? {
        add(writer.to_string(), of_part(part));
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

fn readers_of(readout: &Readout, targets: Tensor<2, Int>) -> Readers {
    let unembedding = readout.w_u.clone(); // [d_model, vocabulary]
    let centred = unembedding.clone() - unembedding.mean_dim(1);
    let of_target = embedding(centred.transpose(), targets.clone()); // [batch, pos, d_model]
    let (directions, norm_bias) = match &readout.norm {
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
    let token_bias = readout.b_u.clone().map(|bias| {
        let bias = bias.clone() - bias.mean();
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

impl Readers {
    /// What is read for these tokens above what is read for others.
    fn less(self, others: Self) -> Self {
        let constant = self.constant.zip(others.constant);
        Self {
            directions: self.directions - others.directions,
            constant: constant.map(|(constant, other)| constant - other),
        }
    }
}
