//! Every family that opens is a configuration, and the configuration is that model.

use std::{fs, path::PathBuf};

use burn::tensor::Device;
use headlight_residual::{token_tensor, weights_to_bytes};
use headlight_run::Config;
use headlight_tasks::Tasks;
use headlight_watch::{ModelFiles, model, read_model};

/// The folders and GGUF files of random weights that `scripts/fixtures` made.
fn fixtures() -> Vec<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../residual/tests/fixtures");
    let mut found = Vec::new();
    for folder in [root.clone(), root.join("gguf"), root.join("gguf/converted")] {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is_gguf = path.extension().is_some_and(|kind| kind == "gguf");
            let holds_blocks_alone = path.ends_with("blocks.gguf");
            if is_gguf && !holds_blocks_alone || path.join("config.json").is_file() {
                found.push(path);
            }
        }
    }
    found
}

fn config(path: &str, n_ctx: usize) -> Config {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.toml");
    let text = format!(
        "task = {{ name = 'text', path = 'a.txt' }}
        model = {{ from = '{path}', n_ctx = {n_ctx} }}
        train = {{ steps = 1, batch_size = 1, learning_rate = 1e-3 }}"
    );
    fs::write(&file, text).unwrap();
    let tasks = Tasks::built_in("test").reading_models(read_model);
    tasks.load(&file, &[]).unwrap()
}

#[test]
fn every_family_is_a_configuration_and_comes_back_from_it() {
    let device = Device::flex();
    let fixtures = fixtures();
    assert!(fixtures.len() > 20, "{fixtures:?}");
    for path in fixtures {
        let place = path.display().to_string();
        let theirs = ModelFiles::open(&path).unwrap().model(&device).unwrap();
        let (n_ctx, vocabulary) = (theirs.n_ctx(), theirs.vocabulary());
        let ours = model::build(&config(&place, n_ctx), vocabulary, &device).unwrap();
        let bytes = |model| weights_to_bytes(model).unwrap();
        assert!(bytes(&ours) == bytes(&theirs), "{place}");

        // On short sequences a shorter model computes the same.
        let short = model::build(&config(&place, 5), vocabulary, &device.clone().autodiff());
        let short = short.unwrap();
        let tokens = token_tensor(&[vec![1, 2, 0, 2, 1]], &device);
        let tracked = token_tensor(&[vec![1, 2, 0, 2, 1]], &device.clone().autodiff());
        let logits = short.forward(tracked);
        let expected = theirs.forward(tokens).into_data();
        let apart: f32 = logits
            .clone()
            .into_data()
            .iter::<f32>()
            .zip(expected.iter::<f32>())
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f32::max);
        let size: f32 = expected.iter::<f32>().map(f32::abs).fold(1.0, f32::max);
        assert!(apart <= 1e-5 * size, "{place}: {apart}");
        // Every parameter learns, the positions that were cut too.
        let gradients = logits.square().mean().backward();
        assert!(short.w_e.val().grad(&gradients).is_some(), "{place}");
        if let Some(w_pos) = &short.w_pos {
            assert_eq!(w_pos.dims(), [5, theirs.config().d_model]);
            assert!(w_pos.val().grad(&gradients).is_some(), "{place}");
        }
    }
}

#[test]
fn a_model_that_was_exchanged_meanwhile_is_refused() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../residual/tests/fixtures");
    let mut config = config(&root.join("llama").display().to_string(), 5);
    config.model.from = Some(root.join("gpt2"));
    let error = model::build(&config, 9, &Device::flex())
        .unwrap_err()
        .to_string();
    assert!(
        error.ends_with("is another model than the configuration was made for"),
        "{error}"
    );
}
