//! The decoder as a [`Probed`] model.

use burn::{
    module::Param,
    tensor::{Device, Int, Tensor},
};
use headlight_heads::MayAttend;

use crate::{
    Activations, ActivationsError, AnyProbe, AttentionSite, AttentionSizes, AttentionWeights,
    BlockOrder, BlockSite, Capture, CircuitWeights, CircuitWeightsError, Decoder, LayerAttention,
    NextTokenScores, NormKind, NormPlacement, Positions, Probed, Readout, Site, Sizes, TakeLayer,
    Targets, activation_budget, by_layer::ByLayer, sinusoids, site_of_heads,
};

impl Probed for Decoder {
    fn name(&self) -> String {
        "this model".to_owned()
    }

    fn sizes(&self) -> Sizes {
        let config = self.config();
        let layer = |layer| AttentionSizes {
            n_heads: config.n_heads,
            n_kv_heads: config.n_kv_heads(),
            d_head: config.d_head(),
            may_attend: MayAttend::causal(config.window_of(layer)),
        };
        Sizes {
            layers: (0..self.blocks.len()).map(layer).collect(),
            d_model: config.d_model,
            n_ctx: Some(config.n_ctx),
            vocabulary: Some(config.vocabulary),
        }
    }

    fn device(&self) -> Device {
        self.w_e.device()
    }

    fn sites(&self) -> Vec<Site> {
        Decoder::sites(self)
    }

    fn has(&self, site: Site) -> bool {
        Decoder::has(self, site)
    }

    fn forward_probed(&self, rows: Tensor<2, Int>, probe: &mut dyn AnyProbe) -> Tensor<3> {
        Decoder::forward_probed(self, rows, probe)
    }

    /// The logits are computed in [parts](Decoder::logits_in_parts), and only where they are asked for.
    fn next_token_scores(
        &self,
        rows: Tensor<2, Int>,
        targets: &Targets,
        probe: &mut dyn AnyProbe,
    ) -> NextTokenScores {
        let stream = self.stream_before(0, rows, probe);
        self.asked_scores_from(0, stream, targets, probe)
    }

    /// The stream before the block, and its `hook_z`.
    fn kept_for(&self, layer: usize) -> Vec<Site> {
        vec![
            Site::Block(layer, BlockSite::ResidPre),
            Site::Attention(layer, AttentionSite::Z),
        ]
    }

    fn next_token_scores_from(
        &self,
        layer: usize,
        kept: &Activations,
        _rows: Tensor<2, Int>,
        targets: &Targets,
        probe: &mut dyn AnyProbe,
    ) -> NextTokenScores {
        let stream = kept.tensor(Site::Block(layer, BlockSite::ResidPre));
        let z = kept.tensor(Site::Attention(layer, AttentionSite::Z));
        let x = self.blocks[layer].forward_from(stream, z, layer, probe);
        self.asked_scores_from(layer + 1, x, targets, probe)
    }

    fn logits_at(
        &self,
        rows: Tensor<2, Int>,
        position: usize,
        probe: &mut dyn AnyProbe,
    ) -> Tensor<3> {
        self.logits(self.final_stream(rows, probe).narrow(1, position, 1))
    }

    /// No logits are computed, and no block after the last that has one of the sites.
    fn activations_probed(
        &self,
        rows: Tensor<2, Int>,
        sites: &[Site],
        probe: &mut dyn AnyProbe,
    ) -> Result<Activations, ActivationsError> {
        self.keep(rows, Capture::new(sites, activation_budget()), probe)
    }

    /// No logits are computed, and no block after the last that has one of the sites.
    fn by_layer(
        &self,
        rows: Tensor<2, Int>,
        sites: &[Site],
        take: &mut TakeLayer<'_>,
    ) -> Result<(), ActivationsError> {
        Probed::require(self, sites)?;
        let mut probe = ByLayer::new(sites, take);
        self.run_to_the_last(sites, rows, &mut probe);
        probe.result()
    }

    /// In all but post-norm models, embeddings and what all parts before `site` add.
    fn summands(&self, site: Site) -> Option<Vec<Site>> {
        let (layer, place) = match site {
            Site::Block(layer, place) => (layer, place),
            Site::HeadInput(layer, _) => (layer, BlockSite::ResidPre),
            _ => return None,
        };
        let is_parallel = self.config().block_order == BlockOrder::Parallel;
        let (attention, feed_forward) = match place {
            BlockSite::ResidPre | BlockSite::QInput | BlockSite::KInput | BlockSite::VInput => {
                (layer, layer)
            }
            BlockSite::MlpIn if is_parallel => (layer, layer),
            BlockSite::ResidMid | BlockSite::MlpIn => (layer + 1, layer),
            BlockSite::ResidPost => (layer + 1, layer + 1),
            BlockSite::AttnOut | BlockSite::MlpOut => return None,
        };
        if self.config().norm_placement == NormPlacement::Post || !Decoder::has(self, site) {
            return None;
        }
        let mut summands = vec![Site::Embed, Site::PosEmbed];
        for layer in 0..attention {
            summands.push(site_of_heads(self, layer));
            if layer < feed_forward {
                summands.push(Site::Block(layer, BlockSite::MlpOut));
            }
        }
        summands.retain(|&site| Decoder::has(self, site));
        Some(summands)
    }

    fn stream_sites(&self) -> Vec<Site> {
        Decoder::stream_sites(self)
    }

    fn readout(&self) -> Option<Readout> {
        Some(Decoder::readout(self))
    }

    fn attention_weights(&self, layer: usize) -> Option<AttentionWeights> {
        self.blocks
            .get(layer)
            .map(|block| AttentionWeights::from(&block.attn))
    }

    fn layer_attention(&self, layer: usize) -> Option<LayerAttention> {
        let block = self.blocks.get(layer)?;
        let reads_normalized = self.config().norm_placement.normalizes_inputs();
        Some(LayerAttention {
            ln1: block.ln1.clone().filter(|_| reads_normalized),
            attention: block.attn.clone(),
            ln1_post: block.ln1_post.clone(),
        })
    }

    /// With norms folded, what is written and the unembedding centred where that changes no
    /// probability.
    fn circuit_weights(&self) -> Result<CircuitWeights, CircuitWeightsError> {
        let mut model = self.clone().fold_norms()?.centre_unembedding();
        let config = model.config().clone();
        let reads_no_mean = config.norm == NormKind::LayerNorm;
        if reads_no_mean {
            model = model.centre_writing()?;
        }
        let w_pos = match (&model.w_pos, config.positions) {
            (Some(w_pos), _) => Some(w_pos.val()),
            (None, Positions::Sinusoidal) => Some(sinusoids(
                0..config.n_ctx,
                config.d_model,
                &model.w_e.device(),
            )),
            (None, _) => None,
        };
        let attention = model.blocks.iter().map(|block| &block.attn);
        Ok(CircuitWeights {
            w_e: model.w_e.val(),
            w_pos,
            attention: attention.map(AttentionWeights::from).collect(),
            w_u: model.unembedding(),
            reads_no_mean,
        })
    }

    /// Computes only the blocks from `layer` on, and no logits.
    fn activations_from(
        &self,
        layer: usize,
        _rows: Tensor<2, Int>,
        stream: Tensor<3>,
        sites: &[Site],
        probe: &mut dyn AnyProbe,
    ) -> Result<Activations, ActivationsError> {
        Probed::require(self, &[Site::Block(layer, BlockSite::ResidPre)])?;
        Probed::require(self, sites)?;
        let mut capture = Capture::new(sites, activation_budget());
        let _ = self.stream_from(layer, stream, &mut (probe, &mut capture));
        capture.into_activations()
    }

    /// Computes only the blocks from `layer` on.
    fn forward_from(
        &self,
        layer: usize,
        _rows: Tensor<2, Int>,
        stream: Tensor<3>,
        probe: &mut dyn AnyProbe,
    ) -> Result<Tensor<3>, ActivationsError> {
        Probed::require(self, &[Site::Block(layer, BlockSite::ResidPre)])?;
        let x = self.stream_from(layer, stream, probe);
        Ok(self.unembed(x, probe))
    }

    /// Computes only the blocks from `layer` on, and the logits of one position.
    fn logits_at_from(
        &self,
        layer: usize,
        _rows: Tensor<2, Int>,
        stream: Tensor<3>,
        position: usize,
        probe: &mut dyn AnyProbe,
    ) -> Result<Tensor<3>, ActivationsError> {
        Probed::require(self, &[Site::Block(layer, BlockSite::ResidPre)])?;
        let x = self.stream_from(layer, stream, probe);
        let x = self.final_norm(x, probe);
        Ok(self.logits(x.narrow(1, position, 1)))
    }
}

impl Decoder {
    /// The final norm, `W_U`, `b_U` and the softcap.
    #[must_use]
    pub fn readout(&self) -> Readout {
        Readout {
            norm: self.ln_final.clone(),
            w_u: self.unembedding(),
            b_u: self.b_u.as_ref().map(Param::val),
            softcap: self.config.logit_softcap,
        }
    }
}
