//! One head of a model of the real world, cut out by `scripts/fixtures/minilm.py`: all-MiniLM-L6-v2
//! (Apache-2.0). Pattern and contribution are those of Hugging Face's transformers.

mod common;

use burn::tensor::Device;
use common::{Fixture, assert_close, values};
use headlight_attention::{Biases, Mask, MultiHeadAttentionConfig, WeightFormat};

#[test]
fn a_head_of_a_pretrained_sentence_encoder() {
    let mut fixture = Fixture::open("minilm_head.safetensors");
    let device = Device::flex();
    let biases = Biases {
        output: false,
        ..Biases::ALL
    };
    let head = MultiHeadAttentionConfig::new(384, 1)
        .with_d_head(32)
        .with_biases(biases)
        .try_init(&device)
        .unwrap();
    let names = WeightFormat::TorchLinears(["query", "key", "value", "dense"].map(str::to_owned));
    let head = head.load(&mut fixture.0, "head.", &names).unwrap();

    let x = fixture.tensor::<3>("x", &device);
    let (contribution, pattern) = head.forward_with_weights(x, &Mask::none());
    assert_close(
        "pattern",
        &values(pattern),
        &fixture.numbers("pattern"),
        1e-6,
    );
    assert_close(
        "contribution",
        &values(contribution),
        &fixture.numbers("contribution"),
        1e-6,
    );
    // "The dog saw the cat": the two articles find each other, from both sides.
    let pattern = fixture.numbers("pattern");
    let strongest = |query: usize| {
        let row = &pattern[query * 7..][..7];
        (0..7)
            .filter(|&key| key != query)
            .max_by(|&a, &b| row[a].total_cmp(&row[b]))
            .unwrap()
    };
    assert_eq!([strongest(1), strongest(4)], [4, 1]);
}
