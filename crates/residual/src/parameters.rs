//! The parameters of a model by their paths.

use std::{collections::BTreeMap, fmt};

use burn::{
    module::{Module, ModuleMapper, ModuleVisitor, Param},
    tensor::{Tensor, TensorData},
};

use crate::initialize::param_id;

/// The path of a parameter, such as `blocks.0.mlp.w_in.weight`. The path does not name the variant
/// of an interchangeable part: the gain of every kind of norm is at `ln1.gain`.
///
/// Visitors and mappers of Burn's modules call it in `enter_module` and `exit_module`. Its
/// `Display` is the path.
///
/// ```
/// use headlight_residual::ParameterPath;
///
/// let mut path = ParameterPath::default();
/// path.enter("ln1", "Block");
/// path.enter("LayerNorm", "Enum:Norm");
/// path.enter("gain", "LayerNorm");
/// assert_eq!(path.to_string(), "ln1.gain");
/// ```
#[derive(Debug, Clone, Default)]
pub struct ParameterPath(Vec<String>);

impl ParameterPath {
    /// Enters the part `name` of a module; `container` is Burn's name of the module.
    pub fn enter(&mut self, name: &str, container: &str) {
        if !is_enum(container) {
            self.0.push(name.to_owned());
        }
    }

    /// Leaves the part.
    pub fn exit(&mut self, container: &str) {
        if !is_enum(container) {
            self.0.pop();
        }
    }

    /// The innermost name.
    #[must_use]
    pub fn last(&self) -> Option<&str> {
        self.0.last().map(String::as_str)
    }
}

impl fmt::Display for ParameterPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

/// Whether Burn's derive announces the variant of an enum with this name.
fn is_enum(container: &str) -> bool {
    container.starts_with("Enum:")
}

/// Every parameter's values.
pub(crate) fn parameters<M: Module>(module: &M) -> BTreeMap<String, TensorData> {
    let mut reader = Reader::default();
    module.visit(&mut reader);
    reader.found
}

#[derive(Default)]
struct Reader {
    path: ParameterPath,
    found: BTreeMap<String, TensorData>,
}

impl ModuleVisitor for Reader {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _: &str, container: &str) {
        self.path.exit(container);
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.found
            .insert(self.path.to_string(), param.val().into_data());
    }
}

/// Why values do not fit a module's parameters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Mismatch {
    #[error("{0} is missing")]
    Missing(String),
    #[error("{0} is left over")]
    LeftOver(String),
    #[error("{name} has shape {found:?}, not {expected:?}")]
    Shape {
        name: String,
        found: Vec<usize>,
        expected: Vec<usize>,
    },
}

/// Sets the parameters to these values. Each parameter must have a value, and each value a
/// parameter.
pub(crate) fn with_parameters<M: Module>(
    module: M,
    values: BTreeMap<String, TensorData>,
) -> Result<M, Mismatch> {
    let mut writer = Writer {
        path: ParameterPath::default(),
        values,
        mismatch: None,
    };
    let module = module.map(&mut writer);
    match (writer.mismatch, writer.values.into_keys().next()) {
        (Some(mismatch), _) => Err(mismatch),
        (None, Some(name)) => Err(Mismatch::LeftOver(name)),
        (None, None) => Ok(module),
    }
}

struct Writer {
    path: ParameterPath,
    values: BTreeMap<String, TensorData>,
    mismatch: Option<Mismatch>,
}

impl ModuleMapper for Writer {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _: &str, container: &str) {
        self.path.exit(container);
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let name = self.path.to_string();
        let (expected, device) = (param.lazy_shape().to_vec(), param.lazy_device());
        let Some(data) = self.values.remove(&name) else {
            self.mismatch.get_or_insert(Mismatch::Missing(name));
            return param;
        };
        let found = data.shape().to_vec();
        if found != expected {
            self.mismatch.get_or_insert(Mismatch::Shape {
                name,
                found,
                expected,
            });
            return param;
        }
        // Gradients are stored by id, so the id must be the one of a new model's parameter for
        // every source of this model.
        param.transform_for_load(Tensor::from_data(data, &device), param_id(&name))
    }
}
