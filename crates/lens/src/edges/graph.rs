//! The graph of a model: which part reads which.

use headlight_heads::{Destination, Edge, HeadName, Source};
use headlight_residual::{ActivationsError, AttentionSite, BlockSite, Probed, Projection, Site};

use crate::given::last_stream;

/// Sources, destinations and the edges between them.
///
/// Sources are the token embedding, the position vectors (if there are any), each head and each
/// feed-forward. Destinations are the query input of each head, the key and the value input of each
/// key/value head, the input of each feed-forward, and the logits. A part reads the sources that
/// were written before it. In a parallel block, attention and feed-forward do not read each other.
/// Constants, such as the bias of `W_O`, are the same on every prompt and no source.
///
/// With `L` layers of attention alone, `H` heads, `H_kv` key/value heads and position vectors there
/// are `(H + 2·H_kv)·Σ_l (2 + H·l) + 2 + H·L` edges.
///
/// ```
/// use burn::tensor::Device;
/// use headlight_lens::EdgeGraph;
/// use headlight_residual::DecoderConfig;
///
/// let model = DecoderConfig::default().try_init(0, &Device::flex())?; // 2 layers of 4 heads
/// let graph = EdgeGraph::of(&model)?;
/// assert_eq!(graph.edges().len(), 12 * (2 + 6) + 2 + 8); // 106
/// assert_eq!(graph.edges()[0].to_string(), "embedding → queries of L0H0");
/// assert_eq!(graph.edges()[105].to_string(), "L1H3 → logits");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct EdgeGraph {
    pub(super) sources: Vec<Sources>,
    pub(super) destinations: Vec<Destinations>,
    edges: Vec<Edge>,
    /// How many heads share keys and values, by layer.
    groups: Vec<usize>,
}

/// The sources whose outputs stand at one site.
#[derive(Debug, Clone)]
pub(super) struct Sources {
    pub site: Site,
    pub names: Vec<Source>,
}

/// The destinations whose inputs stand at one site.
#[derive(Debug, Clone)]
pub(super) struct Destinations {
    pub site: Site,
    pub names: Vec<Destination>,
    /// What they read: indices of [`EdgeGraph::sources`].
    pub reads: Vec<usize>,
    /// The index of their first edge. Edges stand by destination, then by source.
    pub first_edge: usize,
}

/// Why edges cannot be looked at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EdgeError {
    /// The stream is no sum.
    #[error(
        "{model} has no edges: its stream is no sum of what its parts write, since norms replace it"
    )]
    NoSum {
        /// [`Probed::name`]
        model: String,
    },
    /// The divergence from the clean prompt is smallest at the clean prompt.
    #[error(
        "the gradient of kl is 0 at the clean prompt, so that gradients say nothing about edges"
    )]
    NoGradient,
    /// A prompt is wrong.
    #[error("{0}")]
    Pair(String),
    /// The model lacks a site, or activations do not fit into memory.
    #[error(transparent)]
    Activations(#[from] ActivationsError),
}

impl EdgeGraph {
    /// The graph of `model`.
    ///
    /// # Errors
    /// If the stream of the model is no sum, as in a post-norm model, or it lacks the inputs by
    /// head.
    pub fn of(model: &dyn Probed) -> Result<Self, EdgeError> {
        let sizes = model.sizes();
        let last = last_stream(model)?;
        let mut graph = Self {
            sources: Vec::new(),
            destinations: Vec::new(),
            edges: Vec::new(),
            groups: Vec::new(),
        };
        for site in summands(model, last)? {
            let names = names_of(model, site)?;
            graph.sources.push(Sources { site, names });
        }
        for (layer, of_layer) in sizes.layers.iter().enumerate() {
            let group = of_layer.n_heads / of_layer.n_kv_heads;
            graph.groups.push(group);
            for projection in Projection::ALL {
                let (count, group) = match projection {
                    Projection::Query => (of_layer.n_heads, 1),
                    Projection::Key | Projection::Value => (of_layer.n_kv_heads, group),
                };
                let name = |index: usize| {
                    let head = HeadName {
                        layer,
                        head: index * group,
                    };
                    match projection {
                        Projection::Query => Destination::Queries(head),
                        Projection::Key => Destination::Keys(head),
                        Projection::Value => Destination::Values(head),
                    }
                };
                let names = (0..count).map(name).collect();
                graph.add(model, Site::HeadInput(layer, projection), names)?;
            }
            let mlp_in = Site::Block(layer, BlockSite::MlpIn);
            if model.has(mlp_in) {
                graph.add(model, mlp_in, vec![Destination::FeedForward(layer)])?;
            }
        }
        graph.add(model, last, vec![Destination::Logits])?;
        Ok(graph)
    }

    /// Every edge, by destination and then by source, each in the order of the model.
    #[must_use]
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// The index of an edge; none if the graph does not have it.
    #[must_use]
    pub fn index(&self, edge: Edge) -> Option<usize> {
        self.edges.iter().position(|known| *known == edge)
    }

    /// The heads that read the keys and values which are named by the first of them.
    pub(super) fn heads_that_share(&self, first: HeadName) -> impl Iterator<Item = HeadName> {
        (first.head..first.head + self.groups[first.layer]).map(move |head| HeadName {
            layer: first.layer,
            head,
        })
    }

    /// The destinations at a site, and the edges that lead to them.
    fn add(
        &mut self,
        model: &dyn Probed,
        site: Site,
        names: Vec<Destination>,
    ) -> Result<(), EdgeError> {
        model.require(&[site])?;
        let read = summands(model, site)?;
        let is_read = |index: &usize| read.contains(&self.sources[*index].site);
        let reads: Vec<usize> = (0..self.sources.len()).filter(is_read).collect();
        let first_edge = self.edges.len();
        for &destination in &names {
            for &index in &reads {
                let sources = self.sources[index].names.iter();
                self.edges.extend(sources.map(|&source| Edge {
                    source,
                    destination,
                }));
            }
        }
        self.destinations.push(Destinations {
            site,
            names,
            reads,
            first_edge,
        });
        Ok(())
    }
}

impl Destinations {
    /// The block that they are in; `None` for the logits.
    pub fn layer(&self) -> Option<usize> {
        self.names[0].layer()
    }

    /// The index of the edge to the first of these destinations from the first source of the site
    /// that they read as number `read`, and how far the edges of two neighbouring destinations lie
    /// apart.
    pub fn edges_from(&self, graph: &EdgeGraph, read: usize) -> (usize, usize) {
        let count = |index: &usize| graph.sources[*index].names.len();
        let before: usize = self.reads[..read].iter().map(count).sum();
        let all: usize = self.reads.iter().map(count).sum();
        (self.first_edge + before, all)
    }
}

fn summands(model: &dyn Probed, site: Site) -> Result<Vec<Site>, EdgeError> {
    model.summands(site).ok_or_else(|| EdgeError::NoSum {
        model: model.name(),
    })
}

/// Who writes at a site.
fn names_of(model: &dyn Probed, site: Site) -> Result<Vec<Source>, EdgeError> {
    match site {
        Site::Embed => Ok(vec![Source::Embedding]),
        Site::PosEmbed => Ok(vec![Source::Positions]),
        Site::Block(layer, BlockSite::MlpOut) => Ok(vec![Source::FeedForward(layer)]),
        Site::Attention(layer, AttentionSite::Result) | Site::HeadsAdded(layer) => {
            let heads = 0..model.sizes().layers[layer].n_heads;
            Ok(heads
                .map(|head| Source::Head(HeadName { layer, head }))
                .collect())
        }
        _ => Err(EdgeError::Activations(ActivationsError::NotGiven {
            part: "heads one by one",
            model: model.name(),
        })),
    }
}
