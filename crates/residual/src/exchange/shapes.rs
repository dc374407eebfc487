//! The shapes of a model's parameters.

use std::collections::BTreeMap;

use burn::{
    module::{Module, ModuleVisitor, Param},
    tensor::Tensor,
};

use crate::ParameterPath;

/// Every parameter's shape.
pub fn shapes<M: Module>(module: &M) -> BTreeMap<String, Vec<usize>> {
    let mut measurer = Measurer::default();
    module.visit(&mut measurer);
    measurer.found
}

#[derive(Default)]
struct Measurer {
    path: ParameterPath,
    found: BTreeMap<String, Vec<usize>>,
}

impl ModuleVisitor for Measurer {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _: &str, container: &str) {
        self.path.exit(container);
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.found
            .insert(self.path.to_string(), param.lazy_shape().to_vec());
    }
}
