//! What is lost without each head alone? All heads of a model in one untouched pass: each goes on from
//! where its layer begins.

use burn::tensor::Tensor;
use headlight_heads::HeadName;
use headlight_residual::{
    Activations, ActivationsError, Edit, Edits, KeptTensor, NextTokenScores, NoProbe, Part, Probe,
    Probed, Site,
};

use crate::{Ablation, Behaviour, Performance, ablate, ablation::blends_of};

/// The heads of one layer of a pass that has come to it: each can be ablated alone from here.
pub struct LayerAblations<'a> {
    model: &'a dyn Probed,
    behaviour: &'a Behaviour,
    ablation: Ablation,
    layer: usize,
    /// What the model goes on from; `None` if it computes a whole pass for each head.
    kept: Option<Kept>,
}

struct Kept {
    /// At the sites from which the model goes on.
    seen: Activations,
    sites: Vec<Site>,
    /// What the heads blend in the inputs that stand for resampled ones, `[batch, pos, head, d_head]`.
    others: Option<KeptTensor>,
}

/// Runs the untouched model once, and stops at each of `layers`, first to last, so that `look` can
/// ablate heads of it. What is kept is what one layer needs.
///
/// [`ablate`] with a single head is the definition; the numbers are the same.
///
/// ```
/// use burn::tensor::Device;
/// use headlight_heads::{Ablation, HeadName};
/// use headlight_lens::{Behaviour, ablate, at_each_layer};
/// use headlight_residual::{DecoderConfig, token_tensor};
///
/// let device = Device::flex();
/// let model = DecoderConfig::default().try_init(0, &device)?; // 2 layers of 4 heads
/// let behaviour = Behaviour::new(token_tensor(&[[1, 2, 3]], &device), vec![vec![2, 3, 4]], vec![vec![true; 3]]);
/// let mut alone = Vec::new();
/// at_each_layer(&model, &behaviour, Ablation::Mean, &[0, 1], &mut |layer| {
///     alone.extend(layer.without_each(&[0, 1, 2, 3])?);
///     Ok(())
/// })?;
/// let head: HeadName = "L1H2".parse()?;
/// let expected = ablate(&model, &behaviour, &[head], Ablation::Mean)?;
/// assert!((alone[6].loss - expected.loss).abs() < 1e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the model lacks `hook_z` of a layer, the activations of a layer do not fit into memory, or
/// `look` fails.
pub fn at_each_layer(
    model: &dyn Probed,
    behaviour: &Behaviour,
    ablation: Ablation,
    layers: &[usize],
    look: &mut dyn FnMut(&LayerAblations) -> Result<(), ActivationsError>,
) -> Result<(), ActivationsError> {
    let at = |layer, kept| LayerAblations {
        model,
        behaviour,
        ablation,
        layer,
        kept,
    };
    let mut sites: Vec<Site> = layers
        .iter()
        .flat_map(|&layer| model.kept_for(layer))
        .collect();
    sites.dedup();
    let goes_on = |&layer: &usize| model.kept_for(layer).contains(&blends_of(layer));
    if !layers.iter().all(goes_on) {
        return layers.iter().try_for_each(|&layer| look(&at(layer, None)));
    }
    let (rows, resampled) = (behaviour.inputs(), ablation == Ablation::Resample);
    let [batch, _] = rows.dims();
    // Both batches pass together, so that one layer of each is there at a time.
    let rows = if resampled {
        Tensor::cat(vec![rows, behaviour.others()], 0)
    } else {
        rows
    };
    model.by_layer(rows, &sites, &mut |layer, seen| {
        let sites = model.kept_for(layer);
        let others = || seen.kept(blends_of(layer)).rows(batch, batch);
        let of_inputs = |&site: &Site| (site, seen.kept(site).rows(0, batch));
        let kept = Kept {
            seen: sites.iter().map(of_inputs).collect(),
            sites,
            others: resampled.then(others),
        };
        look(&at(layer, Some(kept)))
    })
}

impl LayerAblations<'_> {
    /// The layer.
    #[must_use]
    pub fn layer(&self) -> usize {
        self.layer
    }

    /// What is left without each of these heads of the layer alone. They pass as one batch.
    ///
    /// # Errors
    /// As [`without`](crate::without).
    pub fn without_each(&self, heads: &[usize]) -> Result<Vec<Performance>, ActivationsError> {
        let Some(kept) = &self.kept else {
            return heads
                .iter()
                .map(|&head| self.in_a_whole_pass(head))
                .collect();
        };
        let site = blends_of(self.layer);
        let blends = kept.seen.tensor::<4>(site);
        let mut edited = Vec::new();
        for &head in heads {
            let edit = match (self.ablation, &kept.others) {
                (Ablation::Zero, _) => Edit::Zero,
                (Ablation::Resample, Some(others)) => Edit::Replace(others.clone()),
                _ => self.behaviour.mean(),
            };
            let mut edits = Edits::default().part(site, Part::heads(&[head]), edit);
            edited.push(Probe::at(&mut edits, site, blends.clone()));
        }
        let all_heads = |&at: &Site| {
            let kept = kept.seen.kept(at);
            (at, kept.rows_times(heads.len()))
        };
        let sites = kept.sites.iter().filter(|&&at| at != site);
        let edited = (site, KeptTensor::from(Tensor::cat(edited, 0)));
        let kept: Activations = sites.map(all_heads).chain([edited]).collect();
        let rows = self.behaviour.inputs().repeat_dim(0, heads.len());
        let targets = self.behaviour.asked().repeated(heads.len());
        let scores =
            self.model
                .next_token_scores_from(self.layer, &kept, rows, &targets, &mut NoProbe);
        let of_head = |index| self.behaviour.performance(&self.scores_of(&scores, index));
        Ok((0..heads.len()).map(of_head).collect())
    }

    /// The scores of the `index`-th head of the batch.
    fn scores_of(&self, scores: &NextTokenScores, index: usize) -> NextTokenScores {
        let [batch, _] = self.behaviour.asked().dims();
        let narrow = |scores: &Tensor<2>| scores.clone().narrow(0, index * batch, batch);
        NextTokenScores {
            losses: narrow(&scores.losses),
            right: narrow(&scores.right),
            difference: scores.difference.as_ref().map(narrow),
        }
    }

    fn in_a_whole_pass(&self, head: usize) -> Result<Performance, ActivationsError> {
        let layer = self.layer;
        ablate(
            self.model,
            self.behaviour,
            &[HeadName { layer, head }],
            self.ablation,
        )
    }
}
