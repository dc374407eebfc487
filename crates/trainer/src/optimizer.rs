//! The optimizer of a model: a rule for each kind of parameter, and what it remembers of each by
//! its path.

use std::collections::BTreeMap;

use burn::{
    module::{Module, ModuleMapper, ModuleVisitor, Param},
    optim::{
        AdjustLrFn, DynOptimizer, DynState, GradientsParams, MuonConfig, SgdConfig, StateSink,
        StateSource, decay::WeightDecayConfig, momentum::MomentumConfig,
    },
    tensor::{Device, Tensor, TensorData},
};
use headlight_residual::{Decoder, ParameterPath};
use headlight_run::{DecayGroup, OptimizerKind, TrainConfig};

use crate::adamw::AdamW;

/// Updates every parameter of a model.
pub struct Optimizer {
    rules: Rules,
    states: BTreeMap<String, DynState>,
}

/// What an optimizer remembers, by parameter path and name:
/// `blocks.0.attn.w_q.weight.momentum.moment_1`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Memory {
    /// Running means, each of the shape of its parameter.
    pub tensors: BTreeMap<String, TensorData>,
    /// Numbers of updates.
    pub counts: BTreeMap<String, u64>,
}

/// Why what an optimizer remembers is not of the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// Nothing is remembered of a parameter.
    #[error("the optimizer remembers nothing of {0}")]
    Missing(String),
    /// Something is remembered of a parameter that the model does not have.
    #[error("the optimizer remembers {0}, which the model does not have")]
    LeftOver(String),
    /// A tensor does not have the shape of its parameter.
    #[error("{name} of the optimizer has shape {found:?}, not {expected:?}")]
    Shape {
        /// The tensor.
        name: String,
        /// Its shape.
        found: Vec<usize>,
        /// The shape of its parameter.
        expected: Vec<usize>,
    },
}

struct Rules {
    /// For the matrices of the blocks.
    hidden: Rule,
    /// For the matrices outside: embeddings and unembedding.
    embeddings: Rule,
    /// For gains and biases.
    vectors: Rule,
}

/// How a parameter is moved.
enum Rule {
    /// In one pass, in which the gradient is scaled too.
    AdamW(AdamW),
    /// By an optimizer of Burn, which takes the gradient as it is.
    OfBurn(Box<dyn DynOptimizer>),
}

impl Rule {
    fn as_dyn(&self) -> &dyn DynOptimizer {
        match self {
            Self::AdamW(rule) => rule,
            Self::OfBurn(rule) => &**rule,
        }
    }

    /// Moves a parameter against `scale` times its gradient.
    fn step<const D: usize>(
        &self,
        learning_rate: f64,
        scale: f64,
        parameter: Tensor<D>,
        gradient: Tensor<D>,
        state: Option<DynState>,
    ) -> (Tensor<D>, Option<DynState>) {
        let scaled;
        let (rule, gradient): (&dyn DynOptimizer, _) = match self {
            Self::AdamW(rule) => {
                scaled = rule.scaled(scale);
                (&scaled, gradient)
            }
            Self::OfBurn(rule) if scale < 1.0 => (&**rule, gradient.mul_scalar(scale)),
            Self::OfBurn(rule) => (&**rule, gradient),
        };
        let (parameter, gradient) = (parameter.into_bridge(), gradient.into_bridge());
        let (parameter, state) = rule.step_dyn(D, learning_rate, parameter, gradient, state);
        (Tensor::from_bridge(parameter), state)
    }
}

impl Rules {
    fn new(train: &TrainConfig) -> Self {
        let adamw = |decay| Rule::AdamW(AdamW::new(train, decay));
        let decay = train.weight_decay;
        let of_vectors = if train.weight_decay_on == DecayGroup::All {
            decay
        } else {
            0.0
        };
        match train.optimizer {
            OptimizerKind::AdamW => Self {
                hidden: adamw(decay),
                embeddings: adamw(decay),
                vectors: adamw(of_vectors),
            },
            OptimizerKind::Muon => Self {
                hidden: Rule::OfBurn(muon(train)),
                embeddings: adamw(decay),
                vectors: adamw(of_vectors),
            },
            OptimizerKind::Sgd => Self {
                hidden: Rule::OfBurn(sgd(train, decay)),
                embeddings: Rule::OfBurn(sgd(train, decay)),
                vectors: Rule::OfBurn(sgd(train, of_vectors)),
            },
        }
    }

    /// The rule for the parameter at `path` with so many axes.
    fn of(&self, path: &str, axes: usize) -> &Rule {
        match (axes, path.starts_with("blocks.")) {
            (2, true) => &self.hidden,
            (2, false) => &self.embeddings,
            _ => &self.vectors,
        }
    }
}

fn muon(train: &TrainConfig) -> Box<dyn DynOptimizer> {
    let momentum = MomentumConfig::new()
        .with_momentum(train.momentum())
        .with_dampening(0.0)
        .with_nesterov(true);
    let muon = MuonConfig::new()
        .with_momentum(momentum)
        .with_weight_decay(penalty(train.weight_decay))
        // One learning rate serves the matrices and what AdamW moves.
        .with_adjust_lr_fn(AdjustLrFn::MatchRmsAdamW);
    Box::new(muon.build())
}

fn sgd(train: &TrainConfig, decay: f64) -> Box<dyn DynOptimizer> {
    let momentum = MomentumConfig::new()
        .with_momentum(train.momentum())
        .with_dampening(0.0);
    let momentum = (train.momentum() > 0.0).then_some(momentum);
    Box::new(
        SgdConfig::new()
            .with_momentum(momentum)
            .with_weight_decay(penalty(decay))
            .build(),
    )
}

fn penalty(decay: f64) -> Option<WeightDecayConfig> {
    (decay > 0.0).then(|| WeightDecayConfig::new(decay as f32))
}

impl Optimizer {
    /// As configured, remembering nothing.
    #[must_use]
    pub fn new(train: &TrainConfig) -> Self {
        Self {
            rules: Rules::new(train),
            states: BTreeMap::new(),
        }
    }

    /// Moves every parameter that has a gradient, against `scale` times it.
    #[must_use]
    pub fn step(
        &mut self,
        learning_rate: f64,
        scale: f64,
        model: Decoder,
        gradients: GradientsParams,
    ) -> Decoder {
        let path = ParameterPath::default();
        model.map(&mut Step {
            optimizer: self,
            learning_rate,
            scale,
            gradients,
            path,
        })
    }

    /// Everything it remembers.
    #[must_use]
    pub fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        for (path, state) in &self.states {
            let mut sink = StateSink::default();
            self.rules
                .of(path, state.rank())
                .as_dyn()
                .state_flatten(path, state, &mut sink);
            memory.tensors.extend(sink.tensors);
            let counts = sink
                .scalars
                .into_iter()
                .filter_map(|(name, value)| Some((name, u64::try_from(value).ok()?)));
            memory.counts.extend(counts);
        }
        memory
    }

    /// Takes `memory` for its own: what it remembers of every parameter of `model` must be there,
    /// in its shape, and nothing else.
    ///
    /// # Errors
    /// Names the parameter or the tensor that is missing, left over or of another shape.
    pub fn remember(
        &mut self,
        model: &Decoder,
        memory: Memory,
        device: &Device,
    ) -> Result<(), MemoryError> {
        let mut expected = Recall {
            rules: &self.rules,
            memory,
            device,
            path: ParameterPath::default(),
            found: Ok(BTreeMap::new()),
        };
        model.visit(&mut expected);
        self.states = expected.found?;
        match expected.memory.tensors.into_keys().next() {
            Some(name) => Err(MemoryError::LeftOver(name)),
            None => Ok(()),
        }
    }
}

struct Step<'a> {
    optimizer: &'a mut Optimizer,
    learning_rate: f64,
    scale: f64,
    gradients: GradientsParams,
    path: ParameterPath,
}

impl ModuleMapper for Step<'_> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _: &str, container: &str) {
        self.path.exit(container);
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(gradient) = self.gradients.remove::<D>(param.id) else {
            return param;
        };
        let path = self.path.to_string();
        let (id, parameter, mapper) = param.consume();
        // Taken out, not lent: what is held twice cannot be updated in place.
        let state = self.optimizer.states.remove(&path);
        let rule = self.optimizer.rules.of(&path, D);
        let (learning_rate, scale) = (self.learning_rate, self.scale);
        let (parameter, state) =
            rule.step(learning_rate, scale, parameter.inner(), gradient, state);
        self.optimizer
            .states
            .extend(state.map(|state| (path, state)));
        let parameter = Tensor::from_inner(parameter).require_grad();
        Param::from_mapped_value(id, parameter, mapper)
    }
}

struct Recall<'a> {
    rules: &'a Rules,
    memory: Memory,
    device: &'a Device,
    path: ParameterPath,
    found: Result<BTreeMap<String, DynState>, MemoryError>,
}

impl Recall<'_> {
    /// The state of one parameter.
    fn state(&mut self, path: &str, dims: &[usize]) -> Result<DynState, MemoryError> {
        let below = |name: &str| {
            name.strip_prefix(path)
                .is_some_and(|rest| rest.starts_with('.'))
        };
        let names: Vec<String> = self
            .memory
            .tensors
            .keys()
            .filter(|name| below(name))
            .cloned()
            .collect();
        let counts = self.memory.counts.iter().filter(|(name, _)| below(name));
        let mut source = StateSource::new(
            counts
                .map(|(name, &count)| (name.clone(), count.into()))
                .collect(),
        );
        for name in names {
            let Some(data) = self.memory.tensors.remove(&name) else {
                continue;
            };
            if data.shape().to_vec() != dims {
                return Err(MemoryError::Shape {
                    name,
                    found: data.shape().to_vec(),
                    expected: dims.to_vec(),
                });
            }
            source.insert_tensor(name, data);
        }
        self.rules
            .of(path, dims.len())
            .as_dyn()
            .state_unflatten(dims.len(), path, &mut source, self.device)
            .ok_or_else(|| MemoryError::Missing(path.to_owned()))
    }
}

impl ModuleVisitor for Recall<'_> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _: &str, container: &str) {
        self.path.exit(container);
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let path = self.path.to_string();
        let state = self.state(&path, &param.lazy_shape().to_vec());
        match (&mut self.found, state) {
            (Ok(found), Ok(state)) => {
                found.insert(path, state);
            }
            (Ok(_), Err(reason)) => self.found = Err(reason),
            (Err(_), _) => {}
        }
    }
}
