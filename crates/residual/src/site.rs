//! Names of the activations of a model, as `TransformerLens` writes them.

use std::{fmt, str::FromStr};

/// One activation of a decoder model: a place that a [`Probe`](crate::Probe) can read or change.
///
/// Sites are written as in `TransformerLens` (`blocks.0.attn.hook_pattern`) and hold the same
/// layouts.
///
/// | site | shape |
/// |---|---|
/// | `hook_embed`, `hook_pos_embed`, `blocks.{l}.hook_resid_pre\|mid\|post`, `hook_attn_out`, `hook_mlp_in\|mlp_out`, `hook_q_input\|k_input\|v_input` | `[batch, pos, d_model]` |
/// | `blocks.{l}.attn.hook_q\|k\|v\|z` | `[batch, pos, head, d_head]` |
/// | `blocks.{l}.attn.hook_attn_scores\|hook_pattern` | `[batch, head, query, key]` |
/// | `blocks.{l}.attn.hook_result`, `blocks.{l}.hook_heads_added`, `blocks.{l}.hook_q_input_by_head\|k_input_by_head\|v_input_by_head` | `[batch, pos, head, d_model]` |
/// | `blocks.{l}.ln1\|ln2\|ln1_post\|ln2_post.hook_scale`, `ln_final.hook_scale` | `[batch, pos, 1]` |
/// | `blocks.{l}.ln1\|ln2\|ln1_post\|ln2_post.hook_normalized\|hook_out`, `ln_final.hook_normalized\|hook_out` | `[batch, pos, d_model]` |
/// | `blocks.{l}.mlp.hook_pre\|hook_pre_linear\|hook_post` | `[batch, pos, d_ff]` |
///
/// ```
/// use headlight_residual::{AttentionSite, Site};
///
/// let site: Site = "blocks.1.attn.hook_pattern".parse()?;
/// assert_eq!(site, Site::Attention(1, AttentionSite::Pattern));
/// assert_eq!(site.to_string(), "blocks.1.attn.hook_pattern");
/// let error = "blocks.1.attn.hook_patern".parse::<Site>().unwrap_err();
/// assert_eq!(error.to_string(), "no site is called blocks.1.attn.hook_patern, did you mean blocks.1.attn.hook_pattern?");
/// # Ok::<(), headlight_residual::UnknownSite>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Site {
    /// `hook_embed`: the token embeddings.
    Embed,
    /// `hook_pos_embed`: the position embeddings.
    PosEmbed,
    /// `blocks.{l}.…`: the residual stream around block `l` and the outputs that are added to it.
    Block(usize, BlockSite),
    /// `blocks.{l}.attn.…`: inside the attention of block `l`.
    Attention(usize, AttentionSite),
    /// `blocks.{l}.mlp.…`: inside the feed-forward of block `l`.
    Mlp(usize, MlpSite),
    /// `blocks.{l}.ln1.…`: the norm before attention.
    Ln1(usize, NormSite),
    /// `blocks.{l}.ln2.…`: the norm before the feed-forward.
    Ln2(usize, NormSite),
    /// `blocks.{l}.hook_heads_added`: what each head adds to the stream where `ln1_post` stands
    /// between, which is its share of the output of this norm. `TransformerLens` has no such site.
    HeadsAdded(usize),
    /// `blocks.{l}.hook_q_input_by_head` and so on: the input of each head's queries, or of each
    /// key/value head's keys or values, before the norm. `TransformerLens` with split inputs has
    /// them as `hook_q_input`. Each head has a copy, which is made only where a probe wants it.
    HeadInput(usize, Projection),
    /// `blocks.{l}.ln1_post.…`: the norm between the output of attention and the stream.
    Ln1Post(usize, NormSite),
    /// `blocks.{l}.ln2_post.…`: the norm between the output of the feed-forward and the stream.
    Ln2Post(usize, NormSite),
    /// `ln_final.…`: the norm before the unembedding.
    LnFinal(NormSite),
}

/// What the stream is projected to in attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Projection {
    /// To queries, by `W_Q`.
    Query,
    /// To keys, by `W_K`.
    Key,
    /// To values, by `W_V`.
    Value,
}

/// Sites in a norm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NormSite {
    /// `hook_scale`: the divisor of the vector, which layer norm has centred: `√(variance + ε)` or
    /// `√(mean of squares + ε)`.
    Scale,
    /// `hook_normalized`: the vector divided by the scale, before gain and bias.
    Normalized,
    /// `hook_out`: the output of the norm, after gain and bias.
    Out,
}

/// Sites in a feed-forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MlpSite {
    /// `hook_pre`: before the activation function; in a gated feed-forward, the gate.
    Pre,
    /// `hook_pre_linear`: the tensor that the gate multiplies (only in a gated feed-forward).
    PreLinear,
    /// `hook_post`: after the activation function.
    Post,
}

/// Sites on the residual stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BlockSite {
    /// `hook_resid_pre`: the stream before the block.
    ResidPre,
    /// `hook_resid_mid`: after attention was added (only before a feed-forward that reads it).
    ResidMid,
    /// `hook_resid_post`: the stream after the block.
    ResidPost,
    /// `hook_attn_out`: the tensor that attention adds to the stream, after `ln1_post` if there is
    /// one.
    AttnOut,
    /// `hook_mlp_in`: the stream as the feed-forward reads it, before the norm.
    MlpIn,
    /// `hook_mlp_out`: the tensor that the feed-forward adds to the stream, after `ln2_post` if
    /// there is one.
    MlpOut,
    /// `hook_q_input`: the input of the queries, before the norm.
    QInput,
    /// `hook_k_input`: the input of the keys, before the norm.
    KInput,
    /// `hook_v_input`: the input of the values, before the norm.
    VInput,
}

/// Sites in the attention of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AttentionSite {
    /// `hook_q`: as projected, before QK-norm and rotation.
    Q,
    /// `hook_k`: as projected, before QK-norm and rotation.
    K,
    /// `hook_v`
    V,
    /// `hook_attn_scores`: before softmax, −∞ where masked.
    Scores,
    /// `hook_pattern`: the attention weights.
    Pattern,
    /// `hook_z`: each head's weighted sum of values.
    Z,
    /// `hook_result`: each head's output, `z·W_O`, before `ln1_post` if there is one.
    Result,
}

const BLOCK: [(BlockSite, &str); 9] = [
    (BlockSite::ResidPre, "hook_resid_pre"),
    (BlockSite::ResidMid, "hook_resid_mid"),
    (BlockSite::ResidPost, "hook_resid_post"),
    (BlockSite::AttnOut, "hook_attn_out"),
    (BlockSite::MlpIn, "hook_mlp_in"),
    (BlockSite::MlpOut, "hook_mlp_out"),
    (BlockSite::QInput, "hook_q_input"),
    (BlockSite::KInput, "hook_k_input"),
    (BlockSite::VInput, "hook_v_input"),
];
const HEAD_INPUT: [(Projection, &str); 3] = [
    (Projection::Query, "hook_q_input_by_head"),
    (Projection::Key, "hook_k_input_by_head"),
    (Projection::Value, "hook_v_input_by_head"),
];
const ATTENTION: [(AttentionSite, &str); 7] = [
    (AttentionSite::Q, "hook_q"),
    (AttentionSite::K, "hook_k"),
    (AttentionSite::V, "hook_v"),
    (AttentionSite::Scores, "hook_attn_scores"),
    (AttentionSite::Pattern, "hook_pattern"),
    (AttentionSite::Z, "hook_z"),
    (AttentionSite::Result, "hook_result"),
];
const NORM: [(NormSite, &str); 3] = [
    (NormSite::Scale, "hook_scale"),
    (NormSite::Normalized, "hook_normalized"),
    (NormSite::Out, "hook_out"),
];
const MLP: [(MlpSite, &str); 3] = [
    (MlpSite::Pre, "hook_pre"),
    (MlpSite::PreLinear, "hook_pre_linear"),
    (MlpSite::Post, "hook_post"),
];

impl Projection {
    /// All three.
    pub const ALL: [Self; 3] = [Self::Query, Self::Key, Self::Value];

    /// The input of all heads of a block.
    #[must_use]
    pub const fn input(self, layer: usize) -> Site {
        let site = match self {
            Self::Query => BlockSite::QInput,
            Self::Key => BlockSite::KInput,
            Self::Value => BlockSite::VInput,
        };
        Site::Block(layer, site)
    }
}

impl Site {
    /// Every site of one block.
    #[must_use]
    pub fn of_block(layer: usize) -> Vec<Self> {
        let mut sites: Vec<Self> = BLOCK
            .iter()
            .map(|&(site, _)| Self::Block(layer, site))
            .collect();
        sites.extend(Projection::ALL.map(|projection| Self::HeadInput(layer, projection)));
        sites.extend(NORM.iter().map(|&(site, _)| Self::Ln1(layer, site)));
        sites.extend(Self::of_attention(layer));
        sites.extend(NORM.iter().map(|&(site, _)| Self::Ln1Post(layer, site)));
        sites.push(Self::HeadsAdded(layer));
        sites.extend(NORM.iter().map(|&(site, _)| Self::Ln2(layer, site)));
        sites.extend(MLP.iter().map(|&(site, _)| Self::Mlp(layer, site)));
        sites.extend(NORM.iter().map(|&(site, _)| Self::Ln2Post(layer, site)));
        sites
    }

    /// Every site inside the attention of one block.
    #[must_use]
    pub fn of_attention(layer: usize) -> Vec<Self> {
        ATTENTION
            .iter()
            .map(|&(site, _)| Self::Attention(layer, site))
            .collect()
    }

    /// Every site outside the blocks.
    #[must_use]
    pub fn outside_blocks() -> Vec<Self> {
        let mut sites = vec![Self::Embed, Self::PosEmbed];
        sites.extend(NORM.iter().map(|&(site, _)| Self::LnFinal(site)));
        sites
    }

    /// The block the site is in.
    #[must_use]
    pub fn layer(self) -> Option<usize> {
        match self {
            Self::Embed | Self::PosEmbed | Self::LnFinal(_) => None,
            Self::HeadsAdded(layer) | Self::Ln1Post(layer, _) | Self::Ln2Post(layer, _) => {
                Some(layer)
            }
            Self::Block(layer, _)
            | Self::HeadInput(layer, _)
            | Self::Attention(layer, _)
            | Self::Mlp(layer, _)
            | Self::Ln1(layer, _)
            | Self::Ln2(layer, _) => Some(layer),
        }
    }
}

fn name_of<T: PartialEq>(names: &[(T, &'static str)], site: &T) -> &'static str {
    names
        .iter()
        .find(|(known, _)| known == site)
        .map_or("", |(_, name)| name)
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Embed => f.write_str("hook_embed"),
            Self::PosEmbed => f.write_str("hook_pos_embed"),
            Self::Block(layer, site) => write!(f, "blocks.{layer}.{}", name_of(&BLOCK, site)),
            Self::HeadInput(layer, projection) => {
                write!(f, "blocks.{layer}.{}", name_of(&HEAD_INPUT, projection))
            }
            Self::Attention(layer, site) => {
                write!(f, "blocks.{layer}.attn.{}", name_of(&ATTENTION, site))
            }
            Self::Mlp(layer, site) => write!(f, "blocks.{layer}.mlp.{}", name_of(&MLP, site)),
            Self::Ln1(layer, site) => write!(f, "blocks.{layer}.ln1.{}", name_of(&NORM, site)),
            Self::Ln2(layer, site) => write!(f, "blocks.{layer}.ln2.{}", name_of(&NORM, site)),
            Self::HeadsAdded(layer) => write!(f, "blocks.{layer}.hook_heads_added"),
            Self::Ln1Post(layer, site) => {
                write!(f, "blocks.{layer}.ln1_post.{}", name_of(&NORM, site))
            }
            Self::Ln2Post(layer, site) => {
                write!(f, "blocks.{layer}.ln2_post.{}", name_of(&NORM, site))
            }
            Self::LnFinal(site) => write!(f, "ln_final.{}", name_of(&NORM, site)),
        }
    }
}

/// No site has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no site is called {name}, did you mean {nearest}?")]
pub struct UnknownSite {
    /// The name as written.
    pub name: String,
    /// The known name nearest to it.
    pub nearest: String,
}

impl FromStr for Site {
    type Err = UnknownSite;

    fn from_str(name: &str) -> Result<Self, UnknownSite> {
        // The name itself has the layer number, so the candidates are the sites of that block.
        let layer = name
            .strip_prefix("blocks.")
            .and_then(|rest| rest.split('.').next()?.parse().ok());
        let mut candidates = Self::outside_blocks();
        candidates.extend(Self::of_block(layer.unwrap_or(0)));
        let distance = |site: &Self| strsim::damerau_levenshtein(&site.to_string(), name);
        match candidates.into_iter().min_by_key(distance) {
            Some(site) if site.to_string() == name => Ok(site),
            nearest => Err(UnknownSite {
                name: name.to_owned(),
                nearest: nearest.map(|site| site.to_string()).unwrap_or_default(),
            }),
        }
    }
}
