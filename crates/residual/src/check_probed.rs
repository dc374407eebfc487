//! Is a model of one's own what it says about itself?

use std::collections::BTreeMap;

use burn::tensor::{Int, Tensor};

use crate::{
    AttentionSite, BlockSite, Edit, Edits, Interest, KeptTensor, MlpSite, NoProbe, NormSite, Probe,
    Probed, Projection, Site, Sizes,
};

/// What may be lost to rounding, as a share of the largest number.
const ROUNDING: f32 = 1e-4;

/// A model that is not what it says about itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{model}: {what}")]
pub struct NotAsSaid {
    /// [`Probed::name`]
    pub model: String,
    /// What is wrong, with the site.
    pub what: String,
}

/// Checks on some rows that a [`Probed`] model is what it says about itself. One line in a test of
/// one's own model:
///
/// - The probe meets every one of [`sites`](Probed::sites) and no other, in the layouts of the table
///   at [`Site`], with the [`sizes`](Probed::sizes) of the model.
/// - Reading changes no bit of the logits.
/// - What a probe puts at a site reaches the logits.
/// - A pattern has weight on keys only that [`may_attend`](crate::AttentionSizes::may_attend) names.
/// - The stream is the sum of its [`summands`](Probed::summands), at every site that has any.
/// - The [`readout`](Probed::readout) makes the logits of the last stream.
///
/// # Errors
/// Names the first site at which this is not so.
///
/// ```
/// use burn::tensor::Device;
/// use headlight_residual::{DecoderConfig, check_probed, token_tensor};
///
/// let device = Device::flex();
/// let model = DecoderConfig::default().try_init(0, &device)?;
/// check_probed(&model, token_tensor(&[[5, 6, 7], [8, 9, 5]], &device))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn check_probed(model: &dyn Probed, rows: Tensor<2, Int>) -> Result<(), NotAsSaid> {
    match fault(model, rows) {
        Some(what) => Err(NotAsSaid {
            model: model.name(),
            what,
        }),
        None => Ok(()),
    }
}

fn fault(model: &dyn Probed, rows: Tensor<2, Int>) -> Option<String> {
    let [batch, _] = rows.dims();
    let (sites, sizes) = (model.sites(), model.sizes());
    let mut met = Everything::default();
    let logits = model.forward_probed(rows.clone(), &mut met);
    let met = met.0;

    if let Some(site) = sites.iter().find(|site| !met.contains_key(site)) {
        return Some(format!(
            "{site} is one of its sites, and a probe does not meet it"
        ));
    }
    for (&site, activation) in &met {
        if !sites.contains(&site) {
            return Some(format!("a probe meets {site}, which is none of its sites"));
        }
        let Some(expected) = axes(site, batch, &sizes) else {
            return Some(format!("it has {site}, and {} layers", sizes.layers.len()));
        };
        let found = activation.dims();
        let fits = |(&found, expected): (&usize, &Option<usize>)| {
            expected.is_none_or(|expected| found == expected)
        };
        if found.len() != expected.len() || !found.iter().zip(&expected).all(fits) {
            return Some(format!(
                "{site} has the shape {found:?}, not {}",
                written(&expected)
            ));
        }
        if let Site::Attention(layer, AttentionSite::Pattern) = site
            && let Some((query, key)) = hidden_key_with_weight(activation, layer, &sizes)
        {
            return Some(format!(
                "{site} has weight on key {key} at query {query}, which may not attend to it"
            ));
        }
    }

    let untouched = model.forward_probed(rows.clone(), &mut NoProbe);
    if logits.clone().into_data() != untouched.into_data() {
        return Some("a probe that reads changes its logits".to_owned());
    }
    for &site in &sites {
        let mut no_numbers = Edits::default().at(site, Edit::Scale(f64::NAN));
        let changed = model.forward_probed(rows.clone(), &mut no_numbers);
        if !changed.is_nan().any().into_scalar::<bool>() {
            return Some(format!(
                "what a probe puts at {site} does not reach the logits"
            ));
        }
    }
    for &site in sites.iter().filter(|site| matches!(site, Site::Block(..))) {
        let Some(summands) = model.summands(site) else {
            continue;
        };
        if let Some(what) = sum_fault(model, site, &summands, &met) {
            return Some(what);
        }
    }
    if let (Some(readout), Some(site)) = (model.readout(), model.stream_sites().last()) {
        let Some(stream) = met.get(site) else {
            return Some(format!(
                "{site} is one of its stream sites and none of its sites"
            ));
        };
        if differ(readout.logits(stream.tensor()), logits) {
            return Some(format!("its readout of {site} is not its logits"));
        }
    }
    None
}

/// Why the stream at `site` is not the sum of these.
fn sum_fault(
    model: &dyn Probed,
    site: Site,
    summands: &[Site],
    met: &BTreeMap<Site, KeptTensor>,
) -> Option<String> {
    let mut sum: Option<Tensor<3>> = None;
    for &summand in summands {
        let Some(activation) = met.get(&summand) else {
            return Some(format!(
                "{summand}, a summand of {site}, is none of its sites"
            ));
        };
        let mut part: Tensor<3> = match summand {
            Site::Attention(_, AttentionSite::Result) => {
                activation.tensor::<4>().sum_dim(2).squeeze_dim(2)
            }
            // With the share of the bias of attention, which is no head's.
            Site::HeadsAdded(layer) => met[&Site::Block(layer, BlockSite::AttnOut)].tensor(),
            _ => activation.tensor(),
        };
        if let Site::Attention(layer, AttentionSite::Result) = summand
            && let Some(bias) = model
                .attention_weights(layer)
                .and_then(|weights| weights.b_o)
        {
            part = part + bias.unsqueeze();
        }
        sum = Some(match sum {
            Some(sum) if sum.dims() != part.dims() => {
                return Some(format!("{summand} has not the shape of {site}, its sum"));
            }
            Some(sum) => sum + part,
            None => part,
        });
    }
    let stream = met[&site].tensor::<3>();
    let sum = sum.unwrap_or_else(|| stream.zeros_like());
    let is_sum = sum.dims() == stream.dims() && !differ(sum, stream);
    (!is_sum).then(|| format!("the stream at {site} is not the sum of its summands"))
}

/// Whether two tensors of one shape differ by more than rounding.
fn differ(a: Tensor<3>, b: Tensor<3>) -> bool {
    if a.dims() != b.dims() {
        return true;
    }
    let largest = b.clone().abs().max().into_scalar::<f32>().max(1.0);
    let difference = (a - b).abs().max().into_scalar::<f32>();
    difference.is_nan() || difference > ROUNDING * largest
}

/// The first query and key with a weight although the query may not attend to the key.
fn hidden_key_with_weight(
    pattern: &KeptTensor,
    layer: usize,
    sizes: &Sizes,
) -> Option<(usize, usize)> {
    let &[_, _, queries, keys] = pattern.dims() else {
        return None;
    };
    let may_attend = sizes.layers[layer].may_attend;
    let weights = pattern.clone().into_data();
    for (index, weight) in weights.iter::<f32>().enumerate() {
        let (query, key) = (index / keys % queries, index % keys);
        if weight != 0.0 && !may_attend.keys(query, keys).contains(&key) {
            return Some((query, key));
        }
    }
    None
}

/// The sizes of the axes at `site`, where they are known; `None` if there is no such layer.
fn axes(site: Site, batch: usize, sizes: &Sizes) -> Option<Vec<Option<usize>>> {
    let (batch, d_model) = (Some(batch), Some(sizes.d_model));
    let axes = match site {
        Site::Attention(layer, place) => {
            let sizes = sizes.layers.get(layer)?;
            let (heads, kv_heads) = (Some(sizes.n_heads), Some(sizes.n_kv_heads));
            let d_head = Some(sizes.d_head);
            match place {
                AttentionSite::Q => vec![batch, None, heads, d_head],
                AttentionSite::K => vec![batch, None, kv_heads, d_head],
                AttentionSite::V => vec![batch, None, kv_heads, None],
                AttentionSite::Z => vec![batch, None, heads, None],
                AttentionSite::Scores | AttentionSite::Pattern => vec![batch, heads, None, None],
                AttentionSite::Result => vec![batch, None, heads, d_model],
            }
        }
        Site::HeadInput(layer, projection) => {
            let sizes = sizes.layers.get(layer)?;
            let heads = match projection {
                Projection::Query => sizes.n_heads,
                Projection::Key | Projection::Value => sizes.n_kv_heads,
            };
            vec![batch, None, Some(heads), d_model]
        }
        Site::HeadsAdded(layer) => {
            let heads = Some(sizes.layers.get(layer)?.n_heads);
            vec![batch, None, heads, d_model]
        }
        Site::Ln1(_, NormSite::Scale)
        | Site::Ln2(_, NormSite::Scale)
        | Site::Ln1Post(_, NormSite::Scale)
        | Site::Ln2Post(_, NormSite::Scale)
        | Site::LnFinal(NormSite::Scale) => vec![batch, None, Some(1)],
        Site::Mlp(_, MlpSite::Pre | MlpSite::PreLinear | MlpSite::Post) => vec![batch, None, None],
        Site::Embed
        | Site::PosEmbed
        | Site::Block(..)
        | Site::Ln1(..)
        | Site::Ln2(..)
        | Site::Ln1Post(..)
        | Site::Ln2Post(..)
        | Site::LnFinal(_) => vec![batch, None, d_model],
    };
    Some(axes)
}

/// A shape, with `_` for any size.
fn written(axes: &[Option<usize>]) -> String {
    let size = |size: &Option<usize>| size.map_or("_".to_owned(), |size| size.to_string());
    let sizes: Vec<String> = axes.iter().map(size).collect();
    format!("[{}]", sizes.join(", "))
}

/// Keeps what stands at every site.
#[derive(Default)]
struct Everything(BTreeMap<Site, KeptTensor>);

impl Probe for Everything {
    fn interest(&self, _: Site) -> Interest {
        Interest::Read
    }

    fn at<const D: usize>(&mut self, site: Site, activation: Tensor<D>) -> Tensor<D> {
        self.0.insert(site, KeptTensor::from(activation.clone()));
        activation
    }
}
