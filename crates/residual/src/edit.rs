//! Changing activations during a forward pass: one probe for ablation, patching and freezing.

use std::{collections::BTreeSet, ops::Range};

use burn::tensor::{Bool, Tensor, TensorData};

use crate::{AttentionSite, Interest, KeptTensor, Probe, Site};

/// A replacement for an activation.
#[derive(Debug, Clone)]
pub enum Edit {
    /// 0 (zero ablation).
    Zero,
    /// The activation multiplied by a number.
    Scale(f64),
    /// The activation plus a tensor; an axis of 1 holds for all (steering).
    Add(KeptTensor),
    /// Another tensor; an axis of 1 holds for all. With an activation of another pass
    /// ([`Activations::kept`](crate::Activations::kept)), this patches; at `hook_pattern`, it
    /// freezes a pattern; at `hook_q_input`, `hook_k_input` or `hook_v_input`, it gives a layer
    /// other inputs for its queries, keys or values; with a mean over another batch, it
    /// mean-ablates.
    Replace(KeptTensor),
    /// The mean over batch and positions of the activation itself (mean ablation); over the batch
    /// alone at `hook_attn_scores` and `hook_pattern`.
    Mean,
    /// The same over the places that count: 1, and 0 for padding, `[batch, pos]`. Not at
    /// `hook_attn_scores` and `hook_pattern`.
    MeanOf(Tensor<2>),
}

/// The part of an activation that an edit changes. The rest stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Part {
    /// Only these heads.
    pub heads: Option<Vec<usize>>,
    /// Only these positions (of queries, at scores and pattern).
    pub positions: Option<Vec<usize>>,
}

impl Part {
    /// Only these heads.
    #[must_use]
    pub fn heads(heads: &[usize]) -> Self {
        Self {
            heads: Some(heads.to_vec()),
            positions: None,
        }
    }

    /// Only these positions.
    #[must_use]
    pub fn positions(positions: &[usize]) -> Self {
        Self {
            heads: None,
            positions: Some(positions.to_vec()),
        }
    }
}

/// Changes at some sites, in the order in which they were given.
///
/// ```
/// use burn::tensor::Device;
/// use headlight_residual::{DecoderConfig, Edit, Edits, token_tensor};
///
/// let device = Device::flex();
/// let model = DecoderConfig::default().try_init(0, &device)?;
/// let (clean, other) = (token_tensor(&[[1, 2, 3, 4]], &device), token_tensor(&[[5, 2, 3, 4]], &device));
/// // The stream after layer 0 patched from the other run: what came out of the other run comes out.
/// let sites = model.select("blocks.0.hook_resid_post")?;
/// let seen = model.activations(other.clone(), &sites)?;
/// let patch = Edit::Replace(seen.kept(sites[0]).clone());
/// let patched = model.forward_probed(clean, &mut Edits::default().at(sites[0], patch));
/// assert_eq!(patched.into_data(), model.forward(other).into_data());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Edits {
    edits: Vec<(Site, Part, Edit)>,
    met: BTreeSet<Site>,
}

impl Edits {
    /// Changes all of the activation at `site`.
    #[must_use]
    pub fn at(self, site: Site, edit: Edit) -> Self {
        self.part(site, Part::default(), edit)
    }

    /// Changes a part of the activation at `site`.
    ///
    /// # Panics
    /// If the part is heads and the site has none.
    #[must_use]
    pub fn part(mut self, site: Site, part: Part, edit: Edit) -> Self {
        assert!(
            part.heads.is_none() || site.head_axis().is_some(),
            "{site} has no heads"
        );
        self.edits.push((site, part, edit));
        self
    }

    /// The edited sites that the forward pass did not meet, because the model does not have them.
    #[must_use]
    pub fn unmet(&self) -> Vec<Site> {
        let wanted: BTreeSet<Site> = self.edits.iter().map(|(site, ..)| *site).collect();
        wanted.difference(&self.met).copied().collect()
    }
}

impl Probe for Edits {
    fn interest(&self, site: Site) -> Interest {
        if self.edits.iter().any(|(at, ..)| *at == site) {
            Interest::Change
        } else {
            Interest::Skip
        }
    }

    fn at<const D: usize>(&mut self, site: Site, activation: Tensor<D>) -> Tensor<D> {
        self.met.insert(site);
        self.edits
            .iter()
            .filter(|(at, ..)| *at == site)
            .fold(activation, |x, (_, part, edit)| part.change(site, x, edit))
    }
}

impl Edit {
    /// Whether the new value comes from the part of the activation that it replaces.
    fn is_of_its_part(&self) -> bool {
        match self {
            Self::Zero | Self::Scale(_) | Self::Mean | Self::MeanOf(_) => true,
            Self::Add(_) | Self::Replace(_) => false,
        }
    }

    fn apply<const D: usize>(&self, site: Site, x: Tensor<D>) -> Tensor<D> {
        match self {
            Self::Zero => x.zeros_like(),
            Self::Scale(factor) => x.mul_scalar(*factor),
            Self::Add(added) => {
                let added = broadcast(site, added, x.dims());
                x + added
            }
            Self::Replace(other) => broadcast(site, other, x.dims()),
            Self::Mean => {
                let (dims, activation) = (x.dims(), KeptTensor::from(x));
                let mean = if site.is_square() {
                    activation.mean_over([0])
                } else {
                    activation.mean_over([0, 1])
                };
                broadcast(site, &mean, dims)
            }
            Self::MeanOf(counted) => {
                assert!(!site.is_square(), "{site} has no mean over positions");
                let dims = x.dims();
                let mut of_axes = [1; D];
                of_axes[..2].copy_from_slice(&counted.dims());
                let counted = counted.clone().reshape(of_axes);
                let sum = (x * counted.clone()).sum_dim(0).sum_dim(1);
                (sum / counted.sum_dim(0).sum_dim(1)).expand(dims)
            }
        }
    }
}

fn broadcast<const D: usize>(site: Site, activation: &KeptTensor, dims: [usize; D]) -> Tensor<D> {
    let fits = activation.dims().len() == D
        && activation
            .dims()
            .iter()
            .zip(dims)
            .all(|(&found, expected)| found == expected || found == 1);
    assert!(
        fits,
        "at {site} of shape {dims:?} an activation of shape {:?} was put",
        activation.dims()
    );
    activation.tensor::<D>().expand(dims)
}

impl Part {
    /// The activation with this part of it changed.
    fn change<const D: usize>(&self, site: Site, x: Tensor<D>, edit: &Edit) -> Tensor<D> {
        if let Some((axis, heads)) = self.neighbours(site)
            && edit.is_of_its_part()
            && heads.end <= x.dims()[axis]
        {
            // Other heads are neither read nor written.
            let changed = edit.apply(site, x.clone().narrow(axis, heads.start, heads.len()));
            let mut place = x.dims().map(|size| 0..size);
            place[axis] = heads;
            return x.slice_assign(place, changed);
        }
        let changed = edit.apply(site, x.clone());
        match self.mask(site, &x) {
            Some(mask) => x.mask_where(mask, changed),
            None => changed,
        }
    }

    /// The axis of heads and those of this part, if the part is nothing but heads side by side.
    fn neighbours(&self, site: Site) -> Option<(usize, Range<usize>)> {
        let (Some(heads), None) = (&self.heads, &self.positions) else {
            return None;
        };
        let (first, last) = (*heads.first()?, *heads.last()?);
        heads
            .is_sorted_by(|head, next| head + 1 == *next)
            .then_some((site.head_axis()?, first..last + 1))
    }

    /// True where the activation changes; `None` if it changes everywhere.
    fn mask<const D: usize>(&self, site: Site, x: &Tensor<D>) -> Option<Tensor<D, Bool>> {
        let axes = [
            (site.head_axis(), &self.heads),
            (Some(site.position_axis()), &self.positions),
        ];
        let masks = axes
            .into_iter()
            .filter_map(|(axis, chosen)| Some((axis?, chosen.as_ref()?)));
        let masks = masks.map(|(axis, chosen)| {
            let size = x.dims()[axis];
            assert!(
                chosen.iter().all(|&index| index < size),
                "at {site} of shape {:?} there are not all of {chosen:?}",
                x.dims()
            );
            let mut shape = [1; D];
            shape[axis] = size;
            let is_chosen: Vec<bool> = (0..size).map(|index| chosen.contains(&index)).collect();
            Tensor::<D, Bool>::from_data(TensorData::new(is_chosen, shape), &x.device())
                .expand(x.dims())
        });
        masks.reduce(Tensor::bool_and)
    }
}

impl Site {
    /// The axis of heads, where there is one.
    #[must_use]
    pub fn head_axis(self) -> Option<usize> {
        match self {
            Self::Attention(_, AttentionSite::Scores | AttentionSite::Pattern) => Some(1),
            Self::Attention(..) | Self::HeadsAdded(_) | Self::HeadInput(..) => Some(2),
            _ => None,
        }
    }

    /// The axis of positions; at scores and pattern, the axis of query positions.
    #[must_use]
    pub fn position_axis(self) -> usize {
        if self.is_square() { 2 } else { 1 }
    }

    /// Whether the activation has a row for each query and a column for each key.
    fn is_square(self) -> bool {
        matches!(
            self,
            Self::Attention(_, AttentionSite::Scores | AttentionSite::Pattern)
        )
    }
}
