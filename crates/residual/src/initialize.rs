//! Initial values as a function of (seed, path), independent of the order of creation.

use burn::{
    module::{Module, ModuleMapper, Param, ParamId},
    tensor::{Tensor, TensorData},
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;
use sha2::{Digest, Sha256};

use crate::{DecoderConfig, parameters::ParameterPath};

/// The distribution of a new model's matrices. Gains start at 1 and biases at 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Initialization {
    /// N(0, std²). The matrices that write to the stream, `W_O` and `W_out`, are divided by
    /// √(number of writing parts), so that the stream's size does not grow with depth (Radford et
    /// al. 2019, section 2.3).
    #[default]
    Gpt2,
    /// N(0, std²) for all.
    Normal,
    /// N(0, 2/(in + out)) for each (Glorot & Bengio 2010, section 4.2.1).
    Xavier,
}

/// Draws every matrix, sets gains (`gamma` in Burn's norm of queries and keys) to 1 and biases to 0.
///
/// Burn would draw lazily, in the order of first use, from one global generator. Here each
/// parameter has its own `ChaCha8` stream, keyed by the seed and its path. Its id is a hash of the
/// path, so it is the same in every process.
pub(crate) fn initialize<M: Module>(module: M, seed: u64, config: &DecoderConfig) -> M {
    module.map(&mut Initializer {
        seed,
        config,
        path: ParameterPath::default(),
    })
}

struct Initializer<'a> {
    seed: u64,
    config: &'a DecoderConfig,
    path: ParameterPath,
}

impl Initializer<'_> {
    /// The standard deviation of the matrix at `path`.
    fn deviation(&self, path: &str, shape: &[usize]) -> f64 {
        let DecoderConfig {
            initialization,
            init_std,
            n_layers,
            feed_forward,
            ..
        } = self.config;
        let writes = path.ends_with("w_o.weight") || path.ends_with("w_out.weight");
        let writers = n_layers * (1 + usize::from(feed_forward.is_some()));
        match initialization {
            Initialization::Gpt2 if writes => init_std / (writers as f64).sqrt(),
            Initialization::Gpt2 | Initialization::Normal => *init_std,
            Initialization::Xavier => (2.0 / shape.iter().sum::<usize>() as f64).sqrt(),
        }
    }
}

impl ModuleMapper for Initializer<'_> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _: &str, container: &str) {
        self.path.exit(container);
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let path = self.path.to_string();
        let shape = param.lazy_shape();
        let device = param.lazy_device();
        let count = shape.num_elements();
        let values: Vec<f32> = match self.path.last() {
            Some("gain" | "gamma") => vec![1.0; count],
            Some("bias") => vec![0.0; count],
            _ => {
                let mut rng =
                    ChaCha8Rng::from_seed(hash(&[&self.seed.to_le_bytes(), path.as_bytes()]));
                let std = self.deviation(&path, &shape.to_vec());
                (0..count)
                    .map(|_| (std * rng.sample::<f64, _>(StandardNormal)) as f32)
                    .collect()
            }
        };
        let mut param =
            Param::from_tensor(Tensor::from_data(TensorData::new(values, shape), &device));
        param.id = param_id(&path);
        param
    }
}

/// The id of the parameter at `path`.
pub(crate) fn param_id(path: &str) -> ParamId {
    let digest = hash(&[path.as_bytes()]);
    ParamId::from(u64::from_le_bytes(
        digest[..8]
            .try_into()
            .expect("a SHA-256 digest has 32 bytes"),
    ))
}

fn hash(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().into()
}
