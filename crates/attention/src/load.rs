//! Reads weights of other libraries' attention from safetensors files.

use std::collections::BTreeSet;

use burn::{
    module::Param,
    nn::{Linear, RmsNorm},
    store::{ModuleStore, SafetensorsStore},
    tensor::{Device, Tensor, TensorData},
};

use crate::{MultiHeadAttention, PositionScheme};

/// The source of attention weights: the names of the tensors and the layout of the matrices.
///
/// A module with QK-norm takes its gains from `q_norm.weight` and `k_norm.weight`, as in Qwen 3 and
/// `OLMo` 2; in the format [`Burn`](Self::Burn) they are `q_norm.gamma` and `k_norm.gamma`. A learned
/// relative bias is no part of these libraries. Its tensor is `relative_bias.table`
/// `[n_heads, 2·max_distance + 1]` in every format, as in [`RelativeBias`](crate::RelativeBias).
///
/// ```
/// use burn::{
///     nn::attention::{MhaInput, MultiHeadAttentionConfig as BurnConfig},
///     store::{ModuleSnapshot, SafetensorsStore},
///     tensor::{Device, Tensor, Tolerance},
/// };
/// use headlight_attention::{Mask, MultiHeadAttentionConfig, WeightFormat};
///
/// let device = Device::flex();
/// let theirs = BurnConfig::new(8, 2).with_dropout(0.0).init(&device);
/// let mut file = SafetensorsStore::from_bytes(None);
/// theirs.save_into(&mut file)?;
/// let mut file = SafetensorsStore::from_bytes(Some(file.get_bytes()?));
///
/// let ours = MultiHeadAttentionConfig::new(8, 2).with_bias(true).try_init(&device)?;
/// let ours = ours.load(&mut file, "", &WeightFormat::Burn)?;
/// let x = Tensor::<3>::ones([1, 3, 8], &device);
/// let (ours, theirs) = (ours.forward(x.clone(), &Mask::none()), theirs.forward(MhaInput::self_attn(x)).context);
/// ours.into_data().assert_approx_eq::<f32>(&theirs.into_data(), Tolerance::absolute(1e-6));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WeightFormat {
    /// `burn::nn`'s `MultiHeadAttention` and `CrossAttention` as saved by `burn-store`:
    /// `query.weight`, `key.weight`, `value.weight`, `output.weight` of shape `[in, out]`, and
    /// biases.
    Burn,
    /// PyTorch's `nn.MultiheadAttention`: `in_proj_weight` `[3·d_model, d_model]` (or
    /// `q_proj_weight`, `k_proj_weight`, `v_proj_weight`), `in_proj_bias`, `out_proj.weight`,
    /// `out_proj.bias`.
    TorchMultihead,
    /// Four PyTorch `nn.Linear`s of these names for query, key, value and output, each `[out, in]`.
    TorchLinears([String; 4]),
}

impl WeightFormat {
    /// `q_proj`, `k_proj`, `v_proj`, `o_proj`, as in Llama and many others.
    #[must_use]
    pub fn torch_projections() -> Self {
        Self::TorchLinears(["q_proj", "k_proj", "v_proj", "o_proj"].map(str::to_owned))
    }
}

/// The reason why weights could not be loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// A tensor is not in the file.
    #[error("there is no tensor {0}")]
    Missing(String),
    /// A tensor is in the file that the module has no place for.
    #[error("there is a tensor {0}, which the module has no place for")]
    Unexpected(String),
    /// A tensor has another shape than the module's.
    #[error("tensor {name} has shape {found:?}, the module needs {expected:?}")]
    Shape {
        /// The tensor.
        name: String,
        /// Its shape.
        found: Vec<usize>,
        /// The shape it should have.
        expected: Vec<usize>,
    },
}

impl MultiHeadAttention {
    /// This module with the parameters of another library's module, from the tensors under
    /// `prefix` (with its final dot, or empty).
    ///
    /// Every parameter is taken from the file, and every tensor under the prefix has a place in the
    /// module. A part of another module may lie under the prefix, as BERT's layer norm
    /// `attention.output.LayerNorm`. [`SafetensorsStore::with_key_remapping`] moves it away.
    ///
    /// # Errors
    /// Names the tensor that is missing, left over (a bias, a norm or a learned key that the module
    /// lacks), of the wrong shape or of whole numbers.
    ///
    /// ```no_run
    /// use burn::{store::SafetensorsStore, tensor::Device};
    /// use headlight_attention::{MultiHeadAttentionConfig, WeightFormat};
    ///
    /// let attention = MultiHeadAttentionConfig::new(512, 8).with_n_kv_heads(2).try_init(&Device::flex())?;
    /// let mut file = SafetensorsStore::from_file("model.safetensors");
    /// let attention = attention.load(&mut file, "model.layers.0.self_attn.", &WeightFormat::torch_projections())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn load(
        self,
        store: &mut SafetensorsStore,
        prefix: &str,
        format: &WeightFormat,
    ) -> Result<Self, LoadError> {
        // Every field is named here, so that no parameter can be forgotten.
        let Self {
            w_q,
            w_k,
            w_v,
            w_o,
            q_norm,
            k_norm,
            position,
            n_heads,
            n_kv_heads,
            qk_norm,
            options,
        } = self;
        let mut source = Source {
            store,
            prefix,
            found: BTreeSet::new(),
        };
        let projections = [&w_q, &w_k, &w_v, &w_o];
        let [w_q, w_k, w_v, w_o] = match format {
            WeightFormat::Burn => {
                let names = ["query", "key", "value", "output"];
                source.linears(names, projections, Layout::InOut)?
            }
            WeightFormat::TorchLinears(names) => source.linears(
                names.each_ref().map(String::as_str),
                projections,
                Layout::OutIn,
            )?,
            WeightFormat::TorchMultihead => source.torch_multihead(projections)?,
        };
        let gain = match format {
            WeightFormat::Burn => "gamma",
            WeightFormat::TorchLinears(_) | WeightFormat::TorchMultihead => "weight",
        };
        let loaded = Self {
            w_q,
            w_k,
            w_v,
            w_o,
            q_norm: source.norm(&format!("q_norm.{gain}"), q_norm)?,
            k_norm: source.norm(&format!("k_norm.{gain}"), k_norm)?,
            position: source.position("relative_bias.table", position)?,
            n_heads,
            n_kv_heads,
            qk_norm,
            options,
        };
        source.check_all_found()?;
        Ok(loaded)
    }
}

/// The layout of a matrix in the file.
#[derive(Clone, Copy)]
enum Layout {
    InOut,
    OutIn,
}

struct Source<'a> {
    store: &'a mut SafetensorsStore,
    prefix: &'a str,
    /// The full names of the tensors that have a place in the module.
    found: BTreeSet<String>,
}

impl Source<'_> {
    fn linears(
        &mut self,
        names: [&str; 4],
        to: [&Linear; 4],
        layout: Layout,
    ) -> Result<[Linear; 4], LoadError> {
        let mut loaded = Vec::new();
        for (name, to) in names.into_iter().zip(to) {
            let weight = self.matrix(&format!("{name}.weight"), to, layout)?;
            let bias = self.bias(&format!("{name}.bias"), to)?;
            loaded.push(Linear { weight, bias });
        }
        Ok(loaded.try_into().expect("four projections"))
    }

    fn torch_multihead(&mut self, to: [&Linear; 4]) -> Result<[Linear; 4], LoadError> {
        let [q, k, v, o] = to;
        let device = q.weight.device();
        let weights = if let Some(packed) = self.find("in_proj_weight")? {
            // Rows are the outputs of W_Q, W_K and W_V, one block below the other.
            let widths = [q, k, v].map(|linear| linear.weight.dims()[1]);
            let expected = [widths.iter().sum(), q.weight.dims()[0]];
            let packed: Tensor<2> = self.checked("in_proj_weight", packed, expected, &device)?;
            let mut from = 0;
            let mut blocks = widths.map(|width| {
                from += width;
                packed.clone().narrow(0, from - width, width).transpose()
            });
            for (block, linear) in blocks.iter_mut().zip([q, k, v]) {
                let (found, expected) = (block.dims(), linear.weight.dims());
                if found != expected {
                    return Err(self.wrong_shape("in_proj_weight", &found, &expected));
                }
            }
            blocks.map(Param::from_tensor)
        } else {
            [
                self.matrix("q_proj_weight", q, Layout::OutIn)?,
                self.matrix("k_proj_weight", k, Layout::OutIn)?,
                self.matrix("v_proj_weight", v, Layout::OutIn)?,
            ]
        };
        let biases = self.packed_bias([q, k, v])?;
        let [w_q, w_k, w_v] = weights;
        let [b_q, b_k, b_v] = biases;
        Ok([
            Linear {
                weight: w_q,
                bias: b_q,
            },
            Linear {
                weight: w_k,
                bias: b_k,
            },
            Linear {
                weight: w_v,
                bias: b_v,
            },
            Linear {
                weight: self.matrix("out_proj.weight", o, Layout::OutIn)?,
                bias: self.bias("out_proj.bias", o)?,
            },
        ])
    }

    fn packed_bias(
        &mut self,
        to: [&Linear; 3],
    ) -> Result<[Option<Param<Tensor<1>>>; 3], LoadError> {
        let name = "in_proj_bias";
        if to.iter().all(|linear| linear.bias.is_none()) {
            return Ok([None, None, None]);
        }
        let packed = self.required(name)?;
        if to.iter().any(|linear| linear.bias.is_none()) {
            return Err(LoadError::Unexpected(self.full(name)));
        }
        let widths = to.map(|linear| linear.weight.dims()[1]);
        let packed: Tensor<1> =
            self.checked(name, packed, [widths.iter().sum()], &to[0].weight.device())?;
        let mut from = 0;
        Ok(widths.map(|width| {
            from += width;
            Some(Param::from_tensor(packed.clone().narrow(
                0,
                from - width,
                width,
            )))
        }))
    }

    fn matrix(
        &mut self,
        name: &str,
        to: &Linear,
        layout: Layout,
    ) -> Result<Param<Tensor<2>>, LoadError> {
        match layout {
            Layout::InOut => self.parameter(name, &to.weight),
            Layout::OutIn => {
                let data = self.required(name)?;
                let [input, output] = to.weight.dims();
                let matrix = self.checked::<2>(name, data, [output, input], &to.weight.device())?;
                Ok(Param::from_tensor(matrix.transpose()))
            }
        }
    }

    fn bias(&mut self, name: &str, to: &Linear) -> Result<Option<Param<Tensor<1>>>, LoadError> {
        match &to.bias {
            Some(bias) => self.parameter(name, bias).map(Some),
            None => Ok(None),
        }
    }

    fn norm(&mut self, name: &str, to: Option<RmsNorm>) -> Result<Option<RmsNorm>, LoadError> {
        let Some(mut norm) = to else {
            return Ok(None);
        };
        norm.gamma = self.parameter(name, &norm.gamma)?;
        Ok(Some(norm))
    }

    fn position(
        &mut self,
        name: &str,
        to: Option<PositionScheme>,
    ) -> Result<Option<PositionScheme>, LoadError> {
        match to {
            Some(PositionScheme::Relative(mut relative)) => {
                relative.table = self.parameter(name, &relative.table)?;
                Ok(Some(PositionScheme::Relative(relative)))
            }
            // Nothing of these is learned.
            Some(PositionScheme::Rotary(_) | PositionScheme::Alibi(_)) | None => Ok(to),
        }
    }

    /// A parameter that lies in the file as in the module.
    fn parameter<const D: usize>(
        &mut self,
        name: &str,
        to: &Param<Tensor<D>>,
    ) -> Result<Param<Tensor<D>>, LoadError> {
        let data = self.required(name)?;
        let tensor = self.checked(name, data, to.dims(), &to.device())?;
        Ok(Param::from_tensor(tensor))
    }

    /// No tensor under the prefix is left over.
    fn check_all_found(&mut self) -> Result<(), LoadError> {
        let tensors = self
            .store
            .get_all_tensors()
            .map_err(|error| LoadError::Unreadable(error.to_string()))?;
        let left_over = tensors
            .keys()
            .find(|name| name.starts_with(self.prefix) && !self.found.contains(*name));
        match left_over {
            Some(name) => Err(LoadError::Unexpected(name.clone())),
            None => Ok(()),
        }
    }

    fn checked<const D: usize>(
        &self,
        name: &str,
        data: TensorData,
        expected: [usize; D],
        device: &Device,
    ) -> Result<Tensor<D>, LoadError> {
        let found = data.shape().to_vec();
        if found != expected {
            return Err(self.wrong_shape(name, &found, &expected));
        }
        Ok(Tensor::from_data(data, device))
    }

    fn wrong_shape(&self, name: &str, found: &[usize], expected: &[usize]) -> LoadError {
        LoadError::Shape {
            name: self.full(name),
            found: found.to_vec(),
            expected: expected.to_vec(),
        }
    }

    fn required(&mut self, name: &str) -> Result<TensorData, LoadError> {
        self.find(name)?
            .ok_or_else(|| LoadError::Missing(self.full(name)))
    }

    fn find(&mut self, name: &str) -> Result<Option<TensorData>, LoadError> {
        let full = self.full(name);
        let unreadable = |error: &dyn std::fmt::Display| LoadError::Unreadable(error.to_string());
        match self
            .store
            .get_tensor(&full)
            .map_err(|error| unreadable(&error))?
        {
            Some(tensor) if !tensor.dtype.is_float() => Err(LoadError::Unreadable(format!(
                "{full} holds {:?}, not floating-point numbers",
                tensor.dtype
            ))),
            Some(tensor) => {
                let bytes = tensor.to_bytes().map_err(|error| unreadable(&error))?;
                let data = TensorData::try_from_bytes(bytes, tensor.shape.clone(), tensor.dtype)
                    .map_err(|error| LoadError::Unreadable(format!("{full}: {error:?}")))?;
                self.found.insert(full);
                Ok(Some(data))
            }
            None => Ok(None),
        }
    }

    fn full(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}
