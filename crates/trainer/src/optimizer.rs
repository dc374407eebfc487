//! The optimizer of a model: a rule for each kind of parameter, and what it remembers of each by its path.

use std::collections::BTreeMap;

use burn::{
    module::{Module, ModuleMapper, ModuleVisitor, Param},
    optim::{DynOptimizer, DynState, GradientsParams, StateSink, StateSource},
    tensor::{Device, Tensor, TensorData},
};
use headlight_residual::{Decoder, ParameterPath};
use headlight_run::TrainConfig;

use crate::adamw::AdamW;

/// Updates every parameter of a model.
pub struct Optimizer {
    rules: Rules,
    states: BTreeMap<String, DynState>,
}

/// What an optimizer remembers, by parameter path and name: `blocks.0.attn.w_q.weight.momentum.moment_1`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Memory {
    /// Running means, each of the shape of its parameter.
    pub tensors: BTreeMap<String, TensorData>,
    /// Numbers of updates.
    pub counts: BTreeMap<String, u64>,
}

struct Rules {
    all: Box<dyn DynOptimizer>,
}

impl Rules {
    fn new(train: &TrainConfig) -> Self {
        Self { all: Box::new(AdamW::new(train)) }
    }

    /// The rule for a parameter with so many axes.
    fn of(&self, _path: &str, _axes: usize) -> &dyn DynOptimizer {
        &*self.all
    }
}

impl Optimizer {
    /// As configured, remembering nothing.
    #[must_use]
    pub fn new(train: &TrainConfig) -> Self {
        Self { rules: Rules::new(train), states: BTreeMap::new() }
    }

    /// Moves every parameter that has a gradient.
    #[must_use]
    pub fn step(&mut self, learning_rate: f64, model: Decoder, gradients: GradientsParams) -> Decoder {
        let path = ParameterPath::default();
        model.map(&mut Step { optimizer: self, learning_rate, gradients, path })
    }

    /// Everything it remembers.
    #[must_use]
    pub fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        for (path, state) in &self.states {
            let mut sink = StateSink::default();
            self.rules.of(path, state.rank()).state_flatten(path, state, &mut sink);
            memory.tensors.extend(sink.tensors);
            let counts = sink.scalars.into_iter().filter_map(|(name, value)| Some((name, u64::try_from(value).ok()?)));
            memory.counts.extend(counts);
        }
        memory
    }

    /// Takes `memory` for its own: what it remembers of every parameter of `model` must be there, in its shape, and
    /// nothing else.
    ///
    /// # Errors
    /// Names the parameter or the tensor that is missing, left over or of another shape.
    pub fn remember(&mut self, model: &Decoder, memory: Memory, device: &Device) -> Result<(), String> {
        let mut expected =
            Recall { rules: &self.rules, memory, device, path: ParameterPath::default(), found: Ok(BTreeMap::new()) };
        model.visit(&mut expected);
        self.states = expected.found?;
        match expected.memory.tensors.into_keys().next() {
            Some(name) => Err(format!("the optimizer remembers {name}, which the model does not have")),
            None => Ok(()),
        }
    }
}

struct Step<'a> {
    optimizer: &'a mut Optimizer,
    learning_rate: f64,
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
        let Some(gradient) = self.gradients.remove::<D>(param.id) else { return param };
        let path = self.path.to_string();
        let (id, parameter, mapper) = param.consume();
        // Taken out, not lent: what is held twice cannot be updated in place.
        let state = self.optimizer.states.remove(&path);
        let rule = self.optimizer.rules.of(&path, D);
        let (parameter, gradient) = (parameter.inner().into_bridge(), gradient.into_bridge());
        let (parameter, state) = rule.step_dyn(D, self.learning_rate, parameter, gradient, state);
        self.optimizer.states.extend(state.map(|state| (path, state)));
        let parameter = Tensor::<D>::from_inner(Tensor::from_bridge(parameter)).require_grad();
        Param::from_mapped_value(id, parameter, mapper)
    }
}

struct Recall<'a> {
    rules: &'a Rules,
    memory: Memory,
    device: &'a Device,
    path: ParameterPath,
    found: Result<BTreeMap<String, DynState>, String>,
}

impl Recall<'_> {
    /// The state of one parameter.
    fn state(&mut self, path: &str, dims: &[usize]) -> Result<DynState, String> {
        let below = |name: &str| name.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
        let names: Vec<String> = self.memory.tensors.keys().filter(|name| below(name)).cloned().collect();
        let counts = self.memory.counts.iter().filter(|(name, _)| below(name));
        let mut source = StateSource::new(counts.map(|(name, &count)| (name.clone(), count.into())).collect());
        for name in names {
            let Some(data) = self.memory.tensors.remove(&name) else { continue };
            if data.shape().to_vec() != dims {
                return Err(format!("{name} of the optimizer has shape {:?}, not {dims:?}", data.shape()));
            }
            source.insert_tensor(name, data);
        }
        self.rules
            .of(path, dims.len())
            .state_unflatten(dims.len(), path, &mut source, self.device)
            .ok_or_else(|| format!("the optimizer remembers nothing of {path}"))
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
