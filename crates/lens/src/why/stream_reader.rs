//! What a head reads of the stream, part by part.

use burn::tensor::Tensor;
use headlight_heads::HeadName;
use headlight_residual::{
    Activations, ActivationsError, AttentionSite, BlockSite, LayerAttention, NormSite, Probed,
    ReadingMatrices, Site, token_tensor,
};

use super::Ingredient;
use crate::{
    given::layer_attention_of,
    writer::{sites_of_written, written},
};

/// Numbers of the parts of the stream that are held at once.
const MOST_NUMBERS: usize = 1 << 25;

/// A head, and where the parts of the stream that it reads are seen.
pub(super) struct StreamReader<'a> {
    model: &'a dyn Probed,
    head: HeadName,
    pub layer: LayerAttention,
    pub matrices: ReadingMatrices,
    summands: Vec<Site>,
    sites: Vec<Site>,
}

/// What a pass over some sequences left.
pub(super) struct ReadBatch<'a> {
    reader: &'a StreamReader<'a>,
    /// What `input` is made of.
    pub ingredients: Vec<Ingredient>,
    /// `[batch, pos, ingredient, d_model]`: what the projections read, part by part.
    pub input: Tensor<4>,
    /// `[batch, 1, pos, d_head]`: what QK-norm multiplies queries and keys with.
    factors: Option<[Tensor<4>; 2]>,
    seen: Activations,
}

impl<'a> StreamReader<'a> {
    /// `None` if the stream that the head reads is no sum.
    pub fn of(model: &'a dyn Probed, head: HeadName) -> Result<Option<Self>, ActivationsError> {
        let at = head.layer;
        let Some(summands) = model.summands(Site::Block(at, BlockSite::ResidPre)) else {
            return Ok(None);
        };
        let layer = layer_attention_of(model, at)?;
        let mut sites = sites_of_written(&summands);
        sites.push(Site::Attention(at, AttentionSite::Scores));
        sites.push(Site::Attention(at, AttentionSite::Pattern));
        if layer.attention.q_norm.is_some() {
            sites.push(Site::Attention(at, AttentionSite::Q));
            sites.push(Site::Attention(at, AttentionSite::K));
        }
        for norm in [
            Site::Ln1(at, NormSite::Scale),
            Site::Ln1Post(at, NormSite::Scale),
            Site::LnFinal(NormSite::Scale),
        ] {
            if model.has(norm) {
                sites.push(norm);
            }
        }
        Ok(Some(Self {
            model,
            head,
            matrices: layer.matrices_of(head.head),
            layer,
            summands,
            sites,
        }))
    }

    /// The sequences, as many at once as memory should hold.
    pub fn at_once<'t>(&self, tokens: &'t [Vec<u32>]) -> std::slice::Chunks<'t, Vec<u32>> {
        let sizes = self.model.sizes();
        let heads: usize = sizes.layers.iter().map(|layer| layer.n_heads).sum();
        let of_sequence = (self.summands.len() + heads) * tokens[0].len() * sizes.d_model;
        tokens.chunks((MOST_NUMBERS / of_sequence).max(1))
    }

    /// Runs the model over some sequences.
    pub fn read(&self, tokens: &[Vec<u32>]) -> Result<ReadBatch<'_>, ActivationsError> {
        let rows = token_tensor(tokens, &self.model.device());
        let seen = self.model.activations(rows, &self.sites)?;
        let mut ingredients = Vec::new();
        let mut parts = Vec::new();
        for (writer, part) in written(self.model, &seen, &self.summands)? {
            ingredients.push(Ingredient::Written(writer));
            parts.push(part);
        }
        let mut input = Tensor::stack::<4>(parts, 2); // [batch, pos, ingredient, d_model]
        if let Some(norm) = &self.layer.ln1 {
            let scale = seen.tensor::<3>(Site::Ln1(self.head.layer, NormSite::Scale));
            input = norm.shares(input, scale);
            if let Some(bias) = norm.bias() {
                let [batch, length, _, d_model] = input.dims();
                let bias = bias.unsqueeze::<4>().expand([batch, length, 1, d_model]);
                ingredients.push(Ingredient::NormBias);
                input = Tensor::cat(vec![input, bias], 2);
            }
        }
        let projected = |site| seen.get::<4>(Site::Attention(self.head.layer, site));
        let factors = match (projected(AttentionSite::Q), projected(AttentionSite::K)) {
            (Some(q), Some(k)) => self.layer.qk_norm_factors(self.head.head, q, k),
            _ => None,
        };
        Ok(ReadBatch {
            reader: self,
            ingredients,
            input,
            factors,
            seen,
        })
    }
}

impl ReadBatch<'_> {
    /// `[batch, ingredient, query, d_head]`, not yet turned to their positions.
    pub fn queries(&self) -> Tensor<4> {
        let (matrix, bias) = self.reader.matrices.query.clone();
        let queries = projected(self.input.clone(), matrix, bias);
        match &self.factors {
            Some([factors, _]) => queries * factors.clone(),
            None => queries,
        }
    }

    /// `[batch, ingredient, key, d_head]`
    pub fn keys(&self) -> Tensor<4> {
        let (matrix, _) = self.reader.matrices.key.clone();
        self.keys_by(self.input.clone(), matrix)
    }

    /// The keys that another matrix makes of `[batch, pos, ingredient, d_model]`; `b_K` is added as it
    /// is.
    pub fn keys_by(&self, input: Tensor<4>, matrix: Tensor<2>) -> Tensor<4> {
        let bias = self.reader.matrices.key.1.clone();
        let keys = projected(input, matrix, bias);
        let keys = match &self.factors {
            Some([_, factors]) => keys * factors.clone(),
            None => keys,
        };
        self.reader.layer.turned(keys)
    }

    /// `[batch, ingredient, key, d_value]`
    pub fn values(&self) -> Tensor<4> {
        let (matrix, bias) = self.reader.matrices.value.clone();
        projected(self.input.clone(), matrix, bias)
    }

    /// `[batch, query, key]` of the head.
    pub fn scores_and_pattern(&self) -> [Tensor<3>; 2] {
        let HeadName { layer, head } = self.reader.head;
        [AttentionSite::Scores, AttentionSite::Pattern].map(|site| {
            let heads = self.seen.tensor::<4>(Site::Attention(layer, site));
            heads.narrow(1, head, 1).squeeze_dim(1)
        })
    }

    /// `[batch, query, 1]`: by what the norms divide that stand between the head's result and the
    /// unembedding.
    pub fn divisors(&self) -> Tensor<3> {
        let [batch, length, ..] = self.input.dims();
        let mut divisors = Tensor::ones([batch, length, 1], &self.input.device());
        let behind = Site::Ln1Post(self.reader.head.layer, NormSite::Scale);
        for site in [behind, Site::LnFinal(NormSite::Scale)] {
            if let Some(scale) = self.seen.get::<3>(site) {
                divisors = divisors * scale;
            }
        }
        divisors
    }
}

/// `[batch, ingredient, pos, width]`: each part of the input times the matrix; the bias comes last.
fn projected(input: Tensor<4>, matrix: Tensor<2>, bias: Option<Tensor<1>>) -> Tensor<4> {
    let [batch, length, parts, d_model] = input.dims();
    let [_, width] = matrix.dims();
    let product = input
        .reshape([batch * length * parts, d_model])
        .matmul(matrix)
        .reshape([batch, length, parts, width]);
    let all = match bias {
        Some(bias) => {
            let bias = bias.unsqueeze::<4>().expand([batch, length, 1, width]);
            Tensor::cat(vec![product, bias], 2)
        }
        None => product,
    };
    all.swap_dims(1, 2)
}
