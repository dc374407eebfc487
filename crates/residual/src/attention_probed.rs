//! Attention that passes a probe: each activation on its way has a site.

use burn::tensor::Tensor;
use headlight_attention::{
    Dropout, HeadInputs, Heads, Mask, MultiHeadAttention, attention_scores, masked_scores,
    softmax_of_scores, weighted_sum,
};

use crate::{AttentionSite, Interest, Probe, Site, probe::visit};

/// The output of `attention`, all of whose activations pass `probe` as sites of `layer`:
/// [`Site::of_attention`].
///
/// # Shapes
/// - inputs, of queries, keys and values: `[batch, queries, d_model]`, `[batch, keys, d_context]` twice
/// - output: `[batch, queries, d_model]`
///
/// # Panics
/// If an input is not as wide as its projection, or the mask is for another shape.
///
/// ```
/// use burn::{module::Param, tensor::{Device, Tensor}};
/// use headlight_attention::{Mask, MultiHeadAttentionConfig};
/// use headlight_residual::{AttentionSite, Edit, Edits, Site, attention_probed};
///
/// let device = Device::flex();
/// let mut attention = MultiHeadAttentionConfig::new(1, 1).try_init(&device)?;
/// for projection in [&mut attention.w_q, &mut attention.w_k, &mut attention.w_v, &mut attention.w_o] {
///     projection.weight = Param::from_tensor(Tensor::ones([1, 1], &device));
/// }
/// // A query of 0 takes the mean of the context, 2; its blend of values tripled is 6.
/// let (x, context) = (Tensor::<3>::zeros([1, 1, 1], &device), Tensor::<3>::from_floats([[[1.0], [3.0]]], &device));
/// let mut tripled = Edits::default().at(Site::Attention(0, AttentionSite::Z), Edit::Scale(3.0));
/// let y = attention_probed(&attention, [x, context.clone(), context], &Mask::none(), 0, &mut tripled);
/// assert_eq!(y.into_scalar::<f32>(), 6.0);
/// # Ok::<(), headlight_attention::ConfigError>(())
/// ```
#[must_use]
pub fn attention_probed<P: Probe + ?Sized>(
    attention: &MultiHeadAttention,
    inputs: [Tensor<3>; 3],
    mask: &Mask,
    layer: usize,
    probe: &mut P,
) -> Tensor<3> {
    let inputs = AttentionInputs::Own(inputs.map(HeadInputs::Shared));
    attention_with_dropout_probed(attention, inputs, mask, layer, None, probe)
}

/// What queries, keys and values read.
#[expect(
    clippy::large_enum_variant,
    reason = "one is made in a pass through a layer, and none is kept"
)]
pub(crate) enum AttentionInputs {
    /// All of them the same, `[batch, pos, d_model]`.
    Same(Tensor<3>),
    /// Each its own.
    Own([HeadInputs; 3]),
}

/// The three stages of attention, with a probe between them.
pub(crate) fn attention_with_dropout_probed<P: Probe + ?Sized>(
    attention: &MultiHeadAttention,
    inputs: AttentionInputs,
    mask: &Mask,
    layer: usize,
    dropout: Option<&Dropout>,
    probe: &mut P,
) -> Tensor<3> {
    let [x_q, x_k, x_v] = match inputs {
        AttentionInputs::Same(x) if !looks_inside(layer, probe) => {
            let z = attention.attend_to_self(x, mask, dropout); // [batch, heads, pos, d_value]
            return merge_probed(attention, z, layer, probe);
        }
        AttentionInputs::Same(x) => [x.clone(), x.clone(), x].map(HeadInputs::Shared),
        AttentionInputs::Own(inputs) => inputs,
    };
    let Heads { q, k, v } = attention.project(x_q, x_k, x_v); // [batch, heads, pos, width]
    let heads = Heads {
        q: visit_heads(AttentionSite::Q, q, layer, probe),
        k: visit_heads(AttentionSite::K, k, layer, probe),
        v: visit_heads(AttentionSite::V, v, layer, probe),
    };
    let z = attend(attention, heads, mask, layer, dropout, probe); // [batch, heads, pos, d_value]
    merge_probed(attention, z, layer, probe)
}

/// Whether a probe reads or changes an activation between the input of attention and z.
fn looks_inside<P: Probe + ?Sized>(layer: usize, probe: &P) -> bool {
    use AttentionSite::{K, Pattern, Q, Scores, V};
    [Q, K, V, Scores, Pattern]
        .into_iter()
        .any(|site| probe.interest(Site::Attention(layer, site)) != Interest::Skip)
}

/// The last stage of attention: the sum of what the heads write.
///
/// # Shapes
/// - z: `[batch, n_heads, queries, d_value]`
/// - output: `[batch, queries, d_model]`
pub(crate) fn merge_probed<P: Probe + ?Sized>(
    attention: &MultiHeadAttention,
    z: Tensor<4>,
    layer: usize,
    probe: &mut P,
) -> Tensor<3> {
    let z = visit_heads(AttentionSite::Z, z, layer, probe);
    let result = Site::Attention(layer, AttentionSite::Result);
    match probe.interest(result) {
        Interest::Skip => attention.merge(z), // [batch, pos, d_model]
        Interest::Read => {
            // [batch, n_heads, pos, d_model] → [batch, pos, n_heads, d_model]
            let _ = probe.at(result, attention.results(z.clone()).swap_dims(1, 2));
            attention.merge(z)
        }
        Interest::Change => {
            let results = probe.at(result, attention.results(z).swap_dims(1, 2));
            let sum = results.sum_dim(2).squeeze_dim(2); // [batch, pos, d_model]
            match &attention.w_o.bias {
                Some(bias) => sum + bias.val().unsqueeze(),
                None => sum,
            }
        }
    }
}

/// Without a probe on scores or pattern, attention is one call. For a probe that reads them,
/// they are computed in addition. For a probe that changes them, the same equation is computed
/// step by step.
fn attend<P: Probe + ?Sized>(
    attention: &MultiHeadAttention,
    heads: Heads,
    mask: &Mask,
    layer: usize,
    dropout: Option<&Dropout>,
    probe: &mut P,
) -> Tensor<4> {
    let scores_site = Site::Attention(layer, AttentionSite::Scores);
    let pattern_site = Site::Attention(layer, AttentionSite::Pattern);
    let of_scores = probe.interest(scores_site);
    let of_pattern = probe.interest(pattern_site);

    if of_scores == Interest::Change || of_pattern == Interest::Change {
        assert!(
            dropout.is_none(),
            "{pattern_site} cannot be changed and dropped from in one pass"
        );
        let (heads, mask) = attention.with_positions(heads, mask);
        let scores = attention_scores(heads.q, heads.k, &mask, attention.options());
        // A masked pair stays masked, whatever the probe puts there.
        let scores = masked_scores(visit(probe, scores_site, scores), &mask);
        let pattern = visit(probe, pattern_site, softmax_of_scores(scores));
        return weighted_sum(pattern, heads.v, &mask); // [batch, heads, queries, d_value]
    }
    if of_scores == Interest::Read {
        let (heads, mask) = attention.with_positions(heads.clone(), mask);
        let scores = attention_scores(heads.q, heads.k, &mask, attention.options());
        let _ = probe.at(scores_site, scores);
    }
    if of_pattern == Interest::Read {
        let _ = probe.at(pattern_site, attention.weights(heads.clone(), mask));
    }
    match dropout {
        Some(dropout) => attention.attend_with_dropout(heads, mask, dropout),
        None => attention.attend(heads, mask),
    }
}

/// Probes see `[batch, pos, head, d_head]`; attention works on `[batch, head, pos, d_head]`.
fn visit_heads<P: Probe + ?Sized>(
    site: AttentionSite,
    heads: Tensor<4>,
    layer: usize,
    probe: &mut P,
) -> Tensor<4> {
    let site = Site::Attention(layer, site);
    match probe.interest(site) {
        Interest::Skip => heads,
        Interest::Read => {
            let _ = probe.at(site, heads.clone().swap_dims(1, 2)); // [batch, pos, head, d_head]
            heads
        }
        Interest::Change => probe.at(site, heads.swap_dims(1, 2)).swap_dims(1, 2),
    }
}
