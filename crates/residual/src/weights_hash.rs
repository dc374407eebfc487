//! A hash of a model: its sizes and parts, and every parameter.

use std::fmt::Write as _;

use burn::{
    module::{Module, ModuleVisitor, Param},
    tensor::Tensor,
};
use sha2::{Digest, Sha256};

use crate::{Decoder, ParameterPath};

impl Decoder {
    /// SHA-256 of sizes, parts and parameters, in hexadecimal digits. Models with the same hash compute
    /// the same numbers.
    ///
    /// ```
    /// use burn::tensor::Device;
    /// use headlight_residual::DecoderConfig;
    ///
    /// let model = |seed| DecoderConfig::default().try_init(seed, &Device::flex()).unwrap();
    /// assert_eq!(model(0).sha256(), model(0).sha256());
    /// assert_ne!(model(0).sha256(), model(1).sha256());
    /// ```
    #[must_use]
    pub fn sha256(&self) -> String {
        let mut hasher = Hasher::default();
        hasher.sha256.update(format!("{:?}", self.config()));
        self.visit(&mut hasher);
        let mut digits = String::new();
        for byte in hasher.sha256.finalize() {
            let _ = write!(digits, "{byte:02x}");
        }
        digits
    }
}

#[derive(Default)]
struct Hasher {
    path: ParameterPath,
    sha256: Sha256,
}

impl ModuleVisitor for Hasher {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _: &str, container: &str) {
        self.path.exit(container);
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let data = param.val().into_data();
        self.sha256
            .update(format!("{} {:?}", self.path, data.shape()));
        self.sha256.update(data.as_bytes());
    }
}
