//! A model of someone else with Headlight's attention as a field: its configuration is saved and
//! loaded, and one step of training lowers its loss.

use burn::{
    config::Config,
    module::Module,
    nn::{Linear, LinearConfig},
    optim::{AdamWConfig, GradientsParams},
    tensor::{Device, Tensor},
};
use headlight_attention::{Mask, MultiHeadAttention, MultiHeadAttentionConfig, PositionConfig};

#[derive(Config, Debug)]
struct RegressorConfig {
    attention: MultiHeadAttentionConfig,
    #[config(default = 1)]
    n_outputs: usize,
}

#[derive(Module, Debug)]
struct Regressor {
    attention: MultiHeadAttention,
    output: Linear,
}

impl RegressorConfig {
    fn init(&self, device: &Device) -> Regressor {
        Regressor {
            attention: self.attention.init(device),
            output: LinearConfig::new(self.attention.d_model, self.n_outputs).init(device),
        }
    }
}

impl Regressor {
    /// The mean square of all outputs.
    fn loss(&self, x: Tensor<3>) -> Tensor<1> {
        let x = x.clone() + self.attention.forward(x, &Mask::causal());
        self.output.forward(x).square().mean()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let attention = MultiHeadAttentionConfig::new(16, 4).with_n_kv_heads(2);
    let config = RegressorConfig::new(attention.with_position(PositionConfig::rotary()));
    let file = std::env::temp_dir().join(format!("outside-{}.json", std::process::id()));
    config.save(&file)?;
    let loaded = RegressorConfig::load(&file)?;
    std::fs::remove_file(&file)?;
    assert_eq!(loaded.attention, config.attention);

    let device = Device::flex().autodiff();
    let model = loaded.init(&device);
    let x = Tensor::<3>::ones([2, 8, 16], &device);
    let before = model.loss(x.clone());
    let gradients = GradientsParams::from_grads(before.backward(), &model);
    let model = AdamWConfig::new().init().step(1e-3, model, gradients);
    let (before, after): (f32, f32) = (before.into_scalar(), model.loss(x).into_scalar());
    assert!(after < before, "loss {before} before the step, {after} after it");
    println!("loss {before} before the step, {after} after it");
    Ok(())
}
