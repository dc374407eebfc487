//! Where a loss or a gradient that is no number comes from.

use burn::{
    module::{Module, ModuleVisitor, Param},
    optim::GradientsParams,
    tensor::{Device, Tensor},
};
use headlight_residual::{AttentionSite, Decoder, Interest, ParameterPath, Probe, Site};
use headlight_tasks::Sequence;
use headlight_watch::Batch;

/// The first row of the batch with an activation that is not finite, and the first such activation
/// in the order of the forward pass; the logits are its last.
#[must_use]
pub fn first_activation(
    model: &Decoder,
    sequences: &[Sequence],
    device: &Device,
) -> Option<(usize, String)> {
    let model = model.valid();
    sequences.iter().enumerate().find_map(|(row, sequence)| {
        let mut first = First { site: None };
        let logits = model.forward_probed(
            Batch::new(std::slice::from_ref(sequence), device).inputs,
            &mut first,
        );
        let site = first.site.map(|site| site.to_string());
        let tensor = site.or_else(|| (!is_finite(logits)).then(|| "the logits".to_owned()))?;
        Some((row, tensor))
    })
}

/// The first parameter, in the order of the model, whose gradient is not finite.
#[must_use]
pub fn first_gradient(model: &Decoder, gradients: &GradientsParams) -> Option<String> {
    let mut search = FirstGradient {
        gradients,
        path: ParameterPath::default(),
        found: None,
    };
    model.visit(&mut search);
    search.found.map(|path| format!("the gradient of {path}"))
}

/// Whether every parameter is a number.
#[must_use]
pub fn is_finite_model(model: &Decoder) -> bool {
    let mut search = NonFiniteParameter { found: false };
    model.visit(&mut search);
    !search.found
}

fn is_finite<const D: usize>(tensor: Tensor<D>) -> bool {
    tensor.into_data().iter::<f32>().all(f32::is_finite)
}

struct First {
    site: Option<Site>,
}

impl Probe for First {
    fn interest(&self, site: Site) -> Interest {
        match site {
            // Scores are −∞ where masked, and what goes wrong in them shows in the pattern.
            Site::Attention(_, AttentionSite::Scores) => Interest::Skip,
            _ => Interest::Read,
        }
    }

    fn at<const D: usize>(&mut self, site: Site, activation: Tensor<D>) -> Tensor<D> {
        if self.site.is_none() && !is_finite(activation.clone()) {
            self.site = Some(site);
        }
        activation
    }
}

struct NonFiniteParameter {
    found: bool,
}

impl ModuleVisitor for NonFiniteParameter {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.found |= !is_finite(param.val());
    }
}

struct FirstGradient<'a> {
    gradients: &'a GradientsParams,
    path: ParameterPath,
    found: Option<String>,
}

impl ModuleVisitor for FirstGradient<'_> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _: &str, container: &str) {
        self.path.exit(container);
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if self.found.is_none()
            && self
                .gradients
                .get::<D>(param.id)
                .is_some_and(|gradient| !is_finite(gradient))
        {
            self.found = Some(self.path.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::TensorData;
    use headlight_run::Config;

    use super::*;
    use headlight_tasks as tasks;
    use headlight_tasks::Use;
    use headlight_watch::model;

    #[test]
    fn the_first_activation_of_the_first_row_is_named() {
        let text = r#"
            task = { name = "repeat", vocabulary = 12, prefix = [0, 2], block = [3, 5] }
            model = { n_layers = 2, n_heads = 2, d_model = 8, n_ctx = 16 }
            train = { steps = 10, batch_size = 4, learning_rate = 1e-3 }
        "#;
        let config = Config::parse(text, "test", &[]).unwrap();
        let device = Device::flex();
        let task = tasks::build(&config.task, config.model.n_ctx, 0).unwrap();
        let mut model = model::build(&config, 12, &device.clone().autodiff()).unwrap();
        let mut sequences = tasks::batch(&*task, 0, Use::Training, 1, 4);
        // Token 11 in row 2 alone.
        for sequence in &mut sequences {
            sequence.tokens.iter_mut().for_each(|token| *token %= 11);
        }
        sequences[2].tokens[3] = 11;
        assert_eq!(first_activation(&model, &sequences, &device), None);
        assert!(is_finite_model(&model));

        let gain = model.blocks[1].attn.w_v.weight.clone();
        model.blocks[1].attn.w_v.weight = gain.map(|weight| weight.mul_scalar(f32::INFINITY));
        assert!(!is_finite_model(&model));
        let everywhere = first_activation(&model, &sequences, &device).unwrap();
        assert_eq!(everywhere, (0, "blocks.1.attn.hook_v".to_owned()));

        model.w_e = model.w_e.map(|w_e| {
            let device = w_e.device();
            let mut values: Vec<f32> = w_e.into_data().iter::<f32>().collect();
            values[11 * 8] = f32::NAN;
            Tensor::from_data(TensorData::new(values, [12, 8]), &device)
        });
        model.blocks[1].attn.w_v.weight = model.blocks[1].attn.w_k.weight.clone();
        let in_row_2 = first_activation(&model, &sequences, &device).unwrap();
        assert_eq!(in_row_2, (2, "hook_embed".to_owned()));
    }
}
