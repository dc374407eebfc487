//! A model whose activations pass a probe: what `headlight-lens` asks of a model.

use std::{any::type_name, fmt};

use burn::tensor::{Device, Int, Tensor};
use headlight_attention::MultiHeadAttention;
use headlight_heads::MayAttend;

use crate::{
    Activations, ActivationsError, AnyProbe, AttentionSite, AttentionWeights, BlockSite, Capture,
    CircuitWeights, CircuitWeightsError, Edit, Edits, LayerAttention, NextTokenScores, NoProbe,
    Readout, Site, TakeLayer, Targets, UnknownSite, activation_budget, by_layer::ByLayer,
    select::select,
};

/// A model whose activations pass a probe. Every test of `headlight-lens` takes `&dyn Probed`: a
/// [`Decoder`](crate::Decoder), or a Burn module of one's own.
///
/// **Four methods are enough** for scores, ablation and patching of heads:
/// [`sizes`](Self::sizes), [`device`](Self::device), [`sites`](Self::sites) and
/// [`forward_probed`](Self::forward_probed). The others say more about the model. A test that needs
/// more than the model says is an error that names the site or the part.
///
/// **The input is a row of ids**, for any model. What an id means is the model's own: a token, a
/// token of one of two inputs that stand one after the other in the row, the number of an image that
/// the module holds. So a row says everything about an input, and a test that cuts a batch, repeats
/// a row or puts one row in the place of another needs to know nothing else.
///
/// **The logits stand for the last positions of the row**: all positions in a decoder, those of the
/// target in an encoder–decoder, the last one in a classifier.
///
/// **A layer is an attention**, counted in the order in which they are computed. In an
/// encoder–decoder the cross-attention of a block is a layer of its own.
///
/// The [front page](crate#a-model-of-your-own) has a small module, `examples/own_model` an
/// encoder–decoder. [`check_probed`](crate::check_probed) checks that a model is what it says about
/// itself.
pub trait Probed: fmt::Debug + Sync {
    /// The name of the model in errors: unless overridden, the name of its type.
    fn name(&self) -> String {
        let path = type_name::<Self>();
        let (path, _) = path.split_once('<').unwrap_or((path, ""));
        path.rsplit("::").next().unwrap_or(path).to_owned()
    }

    /// The sizes.
    fn sizes(&self) -> Sizes;

    /// The device of the parameters.
    fn device(&self) -> Device;

    /// Every site that the probe meets in a pass, if it wants it.
    fn sites(&self) -> Vec<Site>;

    /// The logits of a pass in which every activation at one of [`sites`](Self::sites) passes
    /// `probe`: with [`visit`](crate::visit), [`attention_probed`](crate::attention_probed) and
    /// [`Norm::forward`](crate::Norm::forward).
    ///
    /// # Shapes
    /// - rows: `[batch, pos]`, ids
    /// - logits: `[batch, outputs, classes]`, of the last `outputs` positions of each row
    fn forward_probed(&self, rows: Tensor<2, Int>, probe: &mut dyn AnyProbe) -> Tensor<3>;

    /// The sites whose activations add up to the stream at `site`, in the order in which they are
    /// computed. `None` where the stream is not a sum, or the model does not say.
    ///
    /// A layer stands in the list as [`hook_result`](AttentionSite::Result) if the results of
    /// its heads are added as they are, with the bias of `W_O`. If a norm or a gate stands between
    /// the results and the stream, it stands in the list as `hook_attn_out`, or as
    /// [`hook_heads_added`](Site::HeadsAdded) if the model says what each head adds; the rest of
    /// `hook_attn_out` is then no head's.
    fn summands(&self, _site: Site) -> Option<Vec<Site>> {
        None
    }

    /// The sites at which the stream stands as the next part reads it, first to last. What stands at
    /// the last one is what the [`readout`](Self::readout) reads. Empty if the model does not say.
    fn stream_sites(&self) -> Vec<Site> {
        Vec::new()
    }

    /// How logits are read from the stream at the last of [`stream_sites`](Self::stream_sites).
    fn readout(&self) -> Option<Readout> {
        None
    }

    /// The weights of one attention, as they are.
    fn attention_weights(&self, _layer: usize) -> Option<AttentionWeights> {
        None
    }

    /// The self-attention of a layer with the norms around it, where queries and keys stand at
    /// positions 0, 1, 2, …: why heads look where they look is read from it.
    fn layer_attention(&self, _layer: usize) -> Option<LayerAttention> {
        None
    }

    /// All matrices, in the form in which circuits are read from them.
    ///
    /// # Errors
    /// If the model does not give them, or has no such form.
    fn circuit_weights(&self) -> Result<CircuitWeights, CircuitWeightsError> {
        Err(CircuitWeightsError::NotGiven { model: self.name() })
    }

    /// The logits of a pass that goes on from `stream`, the stream before block `layer`
    /// (`hook_resid_pre`). So a test of many changes behind one place computes what stands before it
    /// once.
    ///
    /// Unless overridden, the whole pass is computed and `stream` replaces the activation.
    ///
    /// # Shapes
    /// - rows: `[batch, pos]`, ids
    /// - stream: `[batch, positions of the stream, d_model]`
    /// - logits: as [`forward_probed`](Self::forward_probed)
    ///
    /// # Errors
    /// If the model has no such site.
    fn forward_from(
        &self,
        layer: usize,
        rows: Tensor<2, Int>,
        stream: Tensor<3>,
        probe: &mut dyn AnyProbe,
    ) -> Result<Tensor<3>, ActivationsError> {
        let kept = stream_before(self, layer, stream)?;
        Ok(self.forward_probed(rows, &mut (kept, probe)))
    }

    /// The activations at `sites` in a pass that goes on from `stream`, as in
    /// [`forward_from`](Self::forward_from). Only sites behind the stream can be asked for; the last
    /// norm and the logits are not.
    ///
    /// Unless overridden, the whole pass is computed.
    ///
    /// # Errors
    /// If the model has no such site, or the activations do not fit into the budget.
    fn activations_from(
        &self,
        layer: usize,
        rows: Tensor<2, Int>,
        stream: Tensor<3>,
        sites: &[Site],
        probe: &mut dyn AnyProbe,
    ) -> Result<Activations, ActivationsError> {
        let kept = stream_before(self, layer, stream)?;
        self.activations_probed(rows, sites, &mut (kept, probe))
    }

    /// The loss of every target that is asked for and whether the model is right. Unless overridden,
    /// all logits are computed at once.
    ///
    /// # Shapes
    /// - rows: `[batch, pos]`, ids
    /// - targets: `[batch, outputs]`
    ///
    /// # Panics
    /// If the model has not as many logits as there are targets.
    fn next_token_scores(
        &self,
        rows: Tensor<2, Int>,
        targets: &Targets,
        probe: &mut dyn AnyProbe,
    ) -> NextTokenScores {
        targets.scores(self.forward_probed(rows, probe))
    }

    /// The sites from which [`next_token_scores_from`](Self::next_token_scores_from) goes on, for changes at
    /// `hook_z` of a layer and behind it. Unless overridden there are none.
    fn kept_for(&self, _layer: usize) -> Vec<Site> {
        Vec::new()
    }

    /// [`next_token_scores`](Self::next_token_scores) of a pass that goes on from activations of another
    /// pass over the same rows, at the sites [`kept_for`](Self::kept_for) this layer: `probe` changes
    /// nothing before its `hook_z`. So a test of many heads computes what stands before them once.
    ///
    /// Unless overridden, the whole pass is computed.
    fn next_token_scores_from(
        &self,
        _layer: usize,
        _kept: &Activations,
        rows: Tensor<2, Int>,
        targets: &Targets,
        probe: &mut dyn AnyProbe,
    ) -> NextTokenScores {
        self.next_token_scores(rows, targets, probe)
    }

    /// The logits at one position of every row. Unless overridden, all logits are computed.
    ///
    /// # Shapes
    /// - output: `[batch, 1, classes]`
    ///
    /// # Panics
    /// If the model has no logits at `position`.
    fn logits_at(
        &self,
        rows: Tensor<2, Int>,
        position: usize,
        probe: &mut dyn AnyProbe,
    ) -> Tensor<3> {
        let [_, length] = rows.dims();
        at_position(self.forward_probed(rows, probe), length, position)
    }

    /// [`logits_at`](Self::logits_at) of a pass that goes on from `stream`, as
    /// [`forward_from`](Self::forward_from) does.
    ///
    /// # Shapes
    /// - output: `[batch, 1, classes]`
    ///
    /// # Errors
    /// As [`forward_from`](Self::forward_from).
    ///
    /// # Panics
    /// If the model has no logits at `position`.
    fn logits_at_from(
        &self,
        layer: usize,
        rows: Tensor<2, Int>,
        stream: Tensor<3>,
        position: usize,
        probe: &mut dyn AnyProbe,
    ) -> Result<Tensor<3>, ActivationsError> {
        let [_, length] = rows.dims();
        let logits = self.forward_from(layer, rows, stream, probe)?;
        Ok(at_position(logits, length, position))
    }

    /// Whether `site` is one of [`sites`](Self::sites).
    fn has(&self, site: Site) -> bool {
        self.sites().contains(&site)
    }

    /// Checks that the model has all of `sites`.
    ///
    /// # Errors
    /// Names the first site that it lacks.
    fn require(&self, sites: &[Site]) -> Result<(), ActivationsError> {
        match sites.iter().find(|&&site| !self.has(site)) {
            Some(&site) => Err(ActivationsError::NotInModel {
                site,
                model: self.name(),
            }),
            None => Ok(()),
        }
    }

    /// [`Decoder::select`](crate::Decoder::select)
    ///
    /// # Errors
    /// If the pattern matches no site of this model; the error names the nearest.
    fn select(&self, pattern: &str) -> Result<Vec<Site>, UnknownSite> {
        select(&self.sites(), pattern)
    }

    /// [`Decoder::activations`](crate::Decoder::activations)
    ///
    /// # Errors
    /// If the model has no such site, or the activations do not fit into the budget.
    fn activations(
        &self,
        rows: Tensor<2, Int>,
        sites: &[Site],
    ) -> Result<Activations, ActivationsError> {
        self.activations_probed(rows, sites, &mut NoProbe)
    }

    /// [`Decoder::activations_probed`](crate::Decoder::activations_probed)
    ///
    /// # Errors
    /// As [`activations`](Self::activations).
    fn activations_probed(
        &self,
        rows: Tensor<2, Int>,
        sites: &[Site],
        probe: &mut dyn AnyProbe,
    ) -> Result<Activations, ActivationsError> {
        let (_, seen) = self.logits_and_activations(rows, sites, probe)?;
        Ok(seen)
    }

    /// Runs the model and hands over the activations at `sites`, all of which are in layers, layer by
    /// layer: those of one layer are dropped before the next is computed. So what is made of the
    /// patterns of hundreds of heads never holds more than those of one layer.
    ///
    /// # Errors
    /// If the model has no such site, the activations of one layer do not fit into the budget, or
    /// `take` fails.
    ///
    /// # Panics
    /// If a site is in no layer.
    fn by_layer(
        &self,
        rows: Tensor<2, Int>,
        sites: &[Site],
        take: &mut TakeLayer<'_>,
    ) -> Result<(), ActivationsError> {
        self.require(sites)?;
        let mut probe = ByLayer::new(sites, take);
        let _ = self.forward_probed(rows, &mut probe);
        probe.result()
    }

    /// The logits of a pass beside its [`activations_probed`](Self::activations_probed).
    ///
    /// # Errors
    /// As [`activations`](Self::activations).
    fn logits_and_activations(
        &self,
        rows: Tensor<2, Int>,
        sites: &[Site],
        probe: &mut dyn AnyProbe,
    ) -> Result<(Tensor<3>, Activations), ActivationsError> {
        self.require(sites)?;
        let mut capture = Capture::new(sites, activation_budget());
        let logits = self.forward_probed(rows, &mut (probe, &mut capture));
        Ok((logits, capture.into_activations()?))
    }
}

/// What replaces the stream before block `layer`.
fn stream_before<M: Probed + ?Sized>(
    model: &M,
    layer: usize,
    stream: Tensor<3>,
) -> Result<Edits, ActivationsError> {
    let site = Site::Block(layer, BlockSite::ResidPre);
    model.require(&[site])?;
    Ok(Edits::default().at(site, Edit::Replace(stream.into())))
}

/// The logits at one position of rows of `length` ids.
fn at_position(logits: Tensor<3>, length: usize, position: usize) -> Tensor<3> {
    let [_, outputs, _] = logits.dims();
    assert!(
        position + outputs >= length,
        "no logits at position {position}: they stand for the last {outputs} of {length}"
    );
    logits.narrow(1, position + outputs - length, 1)
}

/// The sizes of a [`Probed`] model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sizes {
    /// Every attention, in the order in which they are computed.
    pub layers: Vec<AttentionSizes>,
    /// The width of the stream.
    pub d_model: usize,
    /// The most ids in a row; `None`: any number.
    pub n_ctx: Option<usize>,
    /// The ids of a row are below it; `None`: they are no tokens, and one cannot stand in the place
    /// of another.
    pub vocabulary: Option<usize>,
}

/// The sizes of one attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttentionSizes {
    /// The number of query heads.
    pub n_heads: usize,
    /// The number of key/value heads.
    pub n_kv_heads: usize,
    /// The width of a query and of a key.
    pub d_head: usize,
    /// The keys that the mask lets a query see. What a mask hides besides, the padding of a row say,
    /// is not counted.
    pub may_attend: MayAttend,
}

impl AttentionSizes {
    /// Those of `attention`, under a mask that says `may_attend`.
    #[must_use]
    pub fn of(attention: &MultiHeadAttention, may_attend: MayAttend) -> Self {
        let AttentionWeights {
            n_heads,
            n_kv_heads,
            w_q,
            ..
        } = AttentionWeights::from(attention);
        let [_, width] = w_q.dims();
        Self {
            n_heads,
            n_kv_heads,
            d_head: width / n_heads,
            may_attend,
        }
    }
}

/// The site at which the heads of a layer stand as they are added to the stream:
/// `attn.hook_result`, or `hook_heads_added` if the model has it, because a norm stands between.
#[must_use]
pub fn site_of_heads(model: &dyn Probed, layer: usize) -> Site {
    let added = Site::HeadsAdded(layer);
    if model.has(added) {
        added
    } else {
        Site::Attention(layer, AttentionSite::Result)
    }
}
