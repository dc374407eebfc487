//! The encoder–decoder, and what it says about itself.

use burn::{
    module::{Initializer, Module, Param},
    tensor::{Device, Int, Tensor, module::embedding},
};
use headlight_attention::{AttentionOptions, Mask, MultiHeadAttention, MultiHeadAttentionConfig};
use headlight_heads::MayAttend;
use headlight_residual::{
    AnyProbe, AttentionSite, AttentionSizes, AttentionWeights, BlockSite, CircuitWeights,
    CircuitWeightsError, Probed, Readout, Site, Sizes, attention_probed, visit,
};

use crate::{SOURCE, TARGET, VOCABULARY};

/// The layer of the encoder's self-attention.
pub const ENCODER: usize = 0;
/// The layer of the decoder's self-attention.
pub const DECODER: usize = 1;
/// The layer of the decoder's attention to the source.
pub const CROSS: usize = 2;
/// The number of layers.
pub const LAYERS: usize = 3;

/// Attention only, without norms: `x ← x + attention(x, context)` three times.
#[derive(Module, Debug)]
pub struct EncoderDecoder {
    /// `W_E [VOCABULARY, d_model]`
    pub w_e: Param<Tensor<2>>,
    /// `W_pos [SOURCE + TARGET, d_model]`
    pub w_pos: Param<Tensor<2>>,
    /// Of each layer.
    pub attention: Vec<MultiHeadAttention>,
    /// `W_U [d_model, VOCABULARY]`
    pub w_u: Param<Tensor<2>>,
}

impl EncoderDecoder {
    /// A model with two heads in each layer, at its initial weights.
    #[must_use]
    pub fn init(d_model: usize, d_head: usize, scale: f64, device: &Device) -> Self {
        let normal = Initializer::Normal {
            mean: 0.0,
            std: 0.1,
        };
        let config = MultiHeadAttentionConfig::new(d_model, 2)
            .with_d_head(d_head)
            .with_options(AttentionOptions::default().with_scale(scale));
        Self {
            w_e: normal.init([VOCABULARY, d_model], device),
            w_pos: normal.init([SOURCE + TARGET, d_model], device),
            attention: (0..LAYERS).map(|_| config.init(device)).collect(),
            w_u: normal.init([d_model, VOCABULARY], device),
        }
    }

    /// `x ← x + attention(x, context)`; without a context, `x` is its own.
    fn layer(
        &self,
        layer: usize,
        x: Tensor<3>,
        context: Option<Tensor<3>>,
        mask: &Mask,
        probe: &mut dyn AnyProbe,
    ) -> Tensor<3> {
        let site = |site| Site::Block(layer, site);
        let x = visit(probe, site(BlockSite::ResidPre), x);
        let context = context.unwrap_or_else(|| x.clone());
        let inputs = [
            visit(probe, site(BlockSite::QInput), x.clone()),
            visit(probe, site(BlockSite::KInput), context.clone()),
            visit(probe, site(BlockSite::VInput), context),
        ];
        let out = attention_probed(&self.attention[layer], inputs, mask, layer, probe);
        let x = x + visit(probe, site(BlockSite::AttnOut), out);
        visit(probe, site(BlockSite::ResidPost), x)
    }
}

impl Probed for EncoderDecoder {
    fn sizes(&self) -> Sizes {
        let may_attend = [MayAttend::All, MayAttend::Causal, MayAttend::All];
        let layers = self.attention.iter().zip(may_attend);
        let [vocabulary, d_model] = self.w_e.dims();
        Sizes {
            layers: layers
                .map(|(attention, may_attend)| AttentionSizes::of(attention, may_attend))
                .collect(),
            d_model,
            n_ctx: Some(SOURCE + TARGET),
            vocabulary: Some(vocabulary),
        }
    }

    fn device(&self) -> Device {
        self.w_e.device()
    }

    fn sites(&self) -> Vec<Site> {
        let mut sites = Vec::new();
        for layer in 0..LAYERS {
            sites.extend(Site::of_attention(layer));
            sites.extend(
                [
                    BlockSite::ResidPre,
                    BlockSite::QInput,
                    BlockSite::KInput,
                    BlockSite::VInput,
                    BlockSite::AttnOut,
                    BlockSite::ResidPost,
                ]
                .map(|site| Site::Block(layer, site)),
            );
        }
        sites
    }

    /// Logits `[batch, decoder positions, VOCABULARY]` of rows `[batch, SOURCE + decoder positions]`.
    fn forward_probed(&self, rows: Tensor<2, Int>, probe: &mut dyn AnyProbe) -> Tensor<3> {
        let [_, length] = rows.dims();
        let positions = self.w_pos.val().narrow(0, 0, length);
        let x = embedding(self.w_e.val(), rows) + positions.unsqueeze();
        let source = x.clone().narrow(1, 0, SOURCE);
        let target = x.narrow(1, SOURCE, length - SOURCE);

        let source = self.layer(ENCODER, source, None, &Mask::none(), probe);
        let target = self.layer(DECODER, target, None, &Mask::causal(), probe);
        let target = self.layer(CROSS, target, Some(source), &Mask::none(), probe);
        target.matmul(self.w_u.val().unsqueeze())
    }

    /// Two streams: the keys and values of the cross-attention read that of the source.
    fn summands(&self, site: Site) -> Option<Vec<Site>> {
        let Site::Block(layer, place) = site else {
            return None;
        };
        let (stream, written): (usize, &[usize]) = match (layer, place) {
            (_, BlockSite::AttnOut) => return None,
            (ENCODER, BlockSite::ResidPost) => (ENCODER, &[ENCODER]),
            (ENCODER, _) => (ENCODER, &[]),
            (DECODER, BlockSite::ResidPost) => (DECODER, &[DECODER]),
            (DECODER, _) => (DECODER, &[]),
            (_, BlockSite::KInput | BlockSite::VInput) => (ENCODER, &[ENCODER]),
            (_, BlockSite::ResidPost) => (DECODER, &[DECODER, CROSS]),
            (_, _) => (DECODER, &[DECODER]),
        };
        let results = written
            .iter()
            .map(|&layer| Site::Attention(layer, AttentionSite::Result));
        let start = Site::Block(stream, BlockSite::ResidPre);
        Some([start].into_iter().chain(results).collect())
    }

    /// The stream of the target.
    fn stream_sites(&self) -> Vec<Site> {
        vec![
            Site::Block(DECODER, BlockSite::ResidPre),
            Site::Block(DECODER, BlockSite::ResidPost),
            Site::Block(CROSS, BlockSite::ResidPost),
        ]
    }

    fn readout(&self) -> Option<Readout> {
        Some(Readout {
            norm: None,
            w_u: self.w_u.val(),
            b_u: None,
            softcap: None,
        })
    }

    fn attention_weights(&self, layer: usize) -> Option<AttentionWeights> {
        self.attention.get(layer).map(AttentionWeights::from)
    }

    fn circuit_weights(&self) -> Result<CircuitWeights, CircuitWeightsError> {
        Ok(CircuitWeights {
            w_e: self.w_e.val(),
            w_pos: Some(self.w_pos.val()),
            attention: self.attention.iter().map(AttentionWeights::from).collect(),
            w_u: self.w_u.val(),
            reads_no_mean: false,
        })
    }
}
