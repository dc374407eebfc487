//! Processed weights compute what the weights computed.

mod common;

use burn::tensor::{Tensor, activation::log_softmax};
use common::{assert_close, gpt2, llama, model, models, tokens, values};
use headlight_attention::Biases;
use headlight_residual::{Decoder, DecoderConfig, Norm, NormKind, NormPlacement, ProcessError};

fn is_pre_norm(model: &Decoder) -> bool {
    model.config().norm_placement == NormPlacement::Pre
}

#[test]
fn folding_norms_keeps_the_logits_and_leaves_plain_norms() {
    for (name, model) in models() {
        let folded = model.clone().fold_norms();
        match model.config().norm_placement {
            NormPlacement::Pre => {}
            NormPlacement::Post => {
                assert_eq!(folded.unwrap_err(), ProcessError::PostNorm, "{name}");
                continue;
            }
            NormPlacement::Output | NormPlacement::PreAndOutput => {
                assert_eq!(folded.unwrap_err(), ProcessError::OutputNorm, "{name}");
                continue;
            }
        }
        let folded = folded.unwrap();
        assert_close(name, folded.forward(tokens()), model.forward(tokens()));
        let norms = folded
            .blocks
            .iter()
            .flat_map(|block| [&block.ln1, &block.ln2])
            .chain([&folded.ln_final]);
        for norm in norms.flatten() {
            match norm {
                Norm::Layer(norm) => {
                    assert!(values(norm.gain.val()).iter().all(|&gain| gain == 1.0));
                    assert!(values(norm.bias.val()).iter().all(|&bias| bias == 0.0));
                }
                Norm::Rms(norm) => assert!(values(norm.gain.val()).iter().all(|&gain| gain == 1.0)),
            }
        }
        // What the configuration says of the result is true.
        let counted: usize = folded
            .config()
            .costs()
            .iter()
            .map(|cost| cost.parameters)
            .sum();
        let b_u = folded.b_u.as_ref().map_or(0, |_| folded.vocabulary());
        assert_eq!(
            counted + b_u,
            burn::module::Module::num_params(&folded),
            "{name}"
        );
    }
}

#[test]
fn centring_what_writes_keeps_the_logits_and_leaves_no_mean() {
    for (name, model) in models() {
        let centred = model.clone().centre_writing();
        if !is_pre_norm(&model) || model.config().norm != NormKind::LayerNorm {
            assert_eq!(centred.unwrap_err(), ProcessError::MeanIsRead, "{name}");
            continue;
        }
        let centred = centred.unwrap();
        assert_close(name, centred.forward(tokens()), model.forward(tokens()));
        let writes = [centred.w_e.val(), centred.blocks[0].attn.w_o.weight.val()];
        for matrix in writes {
            assert!(
                values(matrix.mean_dim(1))
                    .iter()
                    .all(|mean| mean.abs() < 1e-6),
                "{name}"
            );
        }
        assert!(
            values(model.w_e.val().mean_dim(1))
                .iter()
                .any(|mean| mean.abs() > 1e-3),
            "{name}"
        );
    }
}

#[test]
fn centring_the_unembedding_keeps_the_probabilities() {
    for (name, model) in models() {
        if model.config().logit_softcap.is_some() {
            continue; // the softcap is not linear
        }
        let centred = model.clone().centre_unembedding();
        let probabilities = |model: &Decoder| log_softmax(model.forward(tokens()), 2);
        assert_close(name, probabilities(&centred), probabilities(&model));
        let means: Tensor<3> = centred.forward(tokens()).mean_dim(2);
        assert!(values(means).iter().all(|mean| mean.abs() < 1e-4), "{name}");
    }
}

#[test]
fn folding_value_biases_keeps_the_logits_and_leaves_none() {
    let grouped = DecoderConfig {
        attention_bias: Biases::ALL,
        ..llama()
    };
    for (name, model) in models()
        .into_iter()
        .chain([("grouped, with biases", model(&grouped))])
    {
        let folded = model.clone().fold_value_biases();
        assert_close(name, folded.forward(tokens()), model.forward(tokens()));
        for block in &folded.blocks {
            assert!(
                block
                    .attn
                    .w_v
                    .bias
                    .iter()
                    .all(|bias| values(bias.val()).iter().all(|&value| value == 0.0)),
                "{name}"
            );
        }
    }
}

#[test]
fn all_together_keep_the_probabilities() {
    let model = model(&gpt2());
    let processed = model
        .clone()
        .fold_norms()
        .unwrap()
        .centre_writing()
        .unwrap()
        .centre_unembedding()
        .fold_value_biases();
    let probabilities = |model: &Decoder| log_softmax(model.forward(tokens()), 2);
    assert_close("gpt2", probabilities(&processed), probabilities(&model));
}
