//! Reads weights of other libraries' attention from safetensors files.

use burn::{
    module::Param,
    nn::Linear,
    store::{ModuleStore, SafetensorsStore},
    tensor::{Device, Tensor, TensorData},
};

use crate::MultiHeadAttention;

/// The source of attention weights: the names of the tensors and the layout of the matrices.
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
    /// The file has a tensor that has no place in the module.
    #[error("there is a tensor {0}, but the module has no such bias")]
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
    /// Replaces the projections by those of another library's module, read from the tensors under
    /// `prefix`. The prefix is empty or ends in a dot.
    ///
    /// # Errors
    /// Names the tensor that is missing, is left over (a bias the module lacks), has the wrong
    /// shape, or holds integers.
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
        mut self,
        store: &mut SafetensorsStore,
        prefix: &str,
        format: &WeightFormat,
    ) -> Result<Self, LoadError> {
        let mut source = Source { store, prefix };
        let projections = [&self.w_q, &self.w_k, &self.w_v, &self.w_o];
        let loaded = match format {
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
        [self.w_q, self.w_k, self.w_v, self.w_o] = loaded;
        Ok(self)
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
        let wanted = to.iter().all(|linear| linear.bias.is_some());
        match self.find(name)? {
            None if to.iter().any(|linear| linear.bias.is_some()) => {
                Err(LoadError::Missing(self.full(name)))
            }
            None => Ok([None, None, None]),
            Some(_) if !wanted => Err(LoadError::Unexpected(self.full(name))),
            Some(packed) => {
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
        }
    }

    fn matrix(
        &mut self,
        name: &str,
        to: &Linear,
        layout: Layout,
    ) -> Result<Param<Tensor<2>>, LoadError> {
        let data = self
            .find(name)?
            .ok_or_else(|| LoadError::Missing(self.full(name)))?;
        let [input, output] = to.weight.dims();
        let device = to.weight.device();
        let matrix = match layout {
            Layout::InOut => self.checked(name, data, [input, output], &device)?,
            Layout::OutIn => self
                .checked::<2>(name, data, [output, input], &device)?
                .transpose(),
        };
        Ok(Param::from_tensor(matrix))
    }

    fn bias(&mut self, name: &str, to: &Linear) -> Result<Option<Param<Tensor<1>>>, LoadError> {
        match (self.find(name)?, &to.bias) {
            (None, None) => Ok(None),
            (None, Some(_)) => Err(LoadError::Missing(self.full(name))),
            (Some(_), None) => Err(LoadError::Unexpected(self.full(name))),
            (Some(data), Some(bias)) => {
                let bias: Tensor<1> = self.checked(name, data, bias.dims(), &to.weight.device())?;
                Ok(Some(Param::from_tensor(bias)))
            }
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
                let data = TensorData::try_from_bytes(bytes, tensor.shape.clone(), tensor.dtype);
                data.map(Some)
                    .map_err(|error| LoadError::Unreadable(format!("{full}: {error:?}")))
            }
            None => Ok(None),
        }
    }

    fn full(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}
