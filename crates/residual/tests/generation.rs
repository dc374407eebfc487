//! What is written does not depend on how it is computed, and is always made of the model's tokens.

mod common;

use std::collections::BTreeSet;

use burn::{
    module::Param,
    tensor::{Device, Int, Tensor},
};
use common::{assert_close, config, llama, model, models, values};
use headlight_residual::{
    Decoder, DecoderConfig, Ending, GenerateError, Generation, Positions, Sampling, SamplingError,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

fn written(model: &Decoder, prompt: &[u32], generation: Generation) -> (Vec<u32>, Ending) {
    let mut text = model.generate(prompt, generation).unwrap();
    let tokens = text.by_ref().collect::<Result<_, _>>().unwrap();
    (tokens, text.ending().unwrap())
}

#[test]
fn cached_and_uncached_write_the_same_tokens_in_every_architecture() {
    for (name, model) in models() {
        for sampling in [
            Sampling::GREEDY,
            Sampling {
                temperature: 1.5,
                top_k: Some(5),
                top_p: Some(0.95),
            },
        ] {
            for seed in 0..3 {
                let generation = Generation {
                    tokens: 20,
                    sampling,
                    seed,
                    ..Generation::default()
                };
                let uncached = Generation {
                    cached: false,
                    ..generation.clone()
                };
                let (tokens, ending) = written(&model, &[1, 2], generation);
                assert_eq!(
                    (tokens.clone(), ending),
                    written(&model, &[1, 2], uncached),
                    "{name}"
                );
                // With learned positions the context of 6 is full after 4 tokens, otherwise it goes
                // on.
                match model.config().positions {
                    Positions::Learned => assert_eq!(
                        (tokens.len(), ending),
                        (4, Ending::ContextFull(6)),
                        "{name}"
                    ),
                    _ => assert_eq!((tokens.len(), ending), (20, Ending::Length), "{name}"),
                }
                assert!(tokens.iter().all(|&token| token < 7));
            }
        }
    }
}

#[test]
fn cached_logits_are_those_of_one_pass_however_the_text_is_cut() {
    let text = [0, 3, 1, 6, 2, 5];
    let tensor =
        |tokens: &[i32]| Tensor::<1, Int>::from_ints(tokens, &Device::flex()).unsqueeze::<2>();
    for (name, model) in models() {
        let whole = model.forward(tensor(&text));
        for cut in 1..6 {
            let mut caches = model.caches(6);
            let parts = [&text[..cut], &text[cut..]]
                .map(|part| model.forward_cached(tensor(part), &mut caches));
            assert_close(name, Tensor::cat(parts.into(), 1), whole.clone());
        }
    }
}

#[test]
fn a_rolling_cache_does_not_grow() {
    let model = model(&DecoderConfig {
        window: Some(3),
        ..llama()
    });
    let mut text = model
        .generate(
            &[1],
            Generation {
                tokens: 40,
                ..Generation::default()
            },
        )
        .unwrap();
    assert_eq!(text.by_ref().count(), 40);
    assert!(model.caches(1).iter().all(|cache| cache.slots() == 6));
}

#[test]
fn a_stop_token_ends_the_text_and_is_part_of_it() {
    let model = model(&llama());
    let free = Generation {
        tokens: 30,
        ..Generation::default()
    };
    let (tokens, _) = written(&model, &[0], free.clone());
    let stop = tokens[7];
    let first = tokens.iter().position(|&token| token == stop).unwrap();
    let (stopped, ending) = written(
        &model,
        &[0],
        Generation {
            stop: vec![stop],
            ..free.clone()
        },
    );
    assert_eq!(
        (stopped.as_slice(), ending),
        (&tokens[..=first], Ending::Stop(stop))
    );
    // A stop token in the prompt is no reason to stop.
    assert!(
        !written(
            &model,
            &[stop],
            Generation {
                stop: vec![stop],
                ..free
            }
        )
        .0
        .is_empty()
    );
}

#[test]
fn the_seed_decides() {
    let model = model(&llama());
    let with = |seed| {
        written(
            &model,
            &[0],
            Generation {
                seed,
                ..Generation::default()
            },
        )
        .0
    };
    assert_eq!(with(1), with(1));
    assert_ne!(with(1), with(2));
}

#[test]
fn what_cannot_be_written_on_is_said() {
    let model = model(&config(None));
    let error = |prompt: &[u32]| model.generate(prompt, Generation::default()).unwrap_err();
    assert_eq!(error(&[]), GenerateError::EmptyPrompt);
    assert_eq!(
        error(&[1, 7]),
        GenerateError::UnknownToken {
            token: 7,
            vocabulary: 7
        }
    );
    assert_eq!(
        error(&[0; 7]),
        GenerateError::PromptTooLong {
            tokens: 7,
            n_ctx: 6
        }
    );
    let cold = Generation {
        sampling: Sampling {
            temperature: -1.0,
            ..Sampling::default()
        },
        ..Generation::default()
    };
    assert_eq!(
        model.generate(&[1], cold).unwrap_err().to_string(),
        "temperature must be 0 or more and finite, not -1"
    );
    assert_eq!(
        written(&model, &[0; 6], Generation::default()),
        (vec![], Ending::ContextFull(6))
    );
}

#[test]
fn logits_that_are_no_numbers_are_an_error_and_the_end() {
    let mut model = model(&config(None));
    let nans = model.unembedding().mul_scalar(f32::NAN);
    model.w_u = Some(Param::from_tensor(nans));
    let mut text = model.generate(&[1], Generation::default()).unwrap();
    assert!(matches!(
        text.next(),
        Some(Err(GenerateError::Sampling(SamplingError::NotANumber {
            token: 0,
            ..
        })))
    ));
    assert!(text.next().is_none());
}

#[test]
fn draws_come_as_often_as_their_probabilities_say() {
    let logits = [0.0, f32::NEG_INFINITY, 2f32.ln(), 5f32.ln()]; // 1 : 0 : 2 : 5
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut shares = |sampling: Sampling| {
        let mut counts = [0.0; 4];
        (0..8000).for_each(|_| counts[sampling.choose(&logits, &mut rng).unwrap()] += 1.0 / 8000.0);
        counts
    };
    let plain = Sampling::default();
    for (sampling, expected) in [
        (plain, [0.125, 0.0, 0.25, 0.625]),
        // Divided by ½, logits double and ratios are squared.
        (
            Sampling {
                temperature: 0.5,
                ..plain
            },
            [1.0 / 30.0, 0.0, 4.0 / 30.0, 25.0 / 30.0],
        ),
        (
            Sampling {
                top_k: Some(2),
                ..plain
            },
            [0.0, 0.0, 2.0 / 7.0, 5.0 / 7.0],
        ),
        (
            Sampling {
                top_p: Some(0.7),
                ..plain
            },
            [0.0, 0.0, 2.0 / 7.0, 5.0 / 7.0],
        ),
        (
            Sampling {
                top_p: Some(0.6),
                ..plain
            },
            [0.0, 0.0, 0.0, 1.0],
        ),
        (
            Sampling {
                top_p: Some(1e-9),
                ..plain
            },
            [0.0, 0.0, 0.0, 1.0],
        ),
        (Sampling::GREEDY, [0.0, 0.0, 0.0, 1.0]),
    ] {
        // Four standard deviations of a share of 8000 draws.
        for (found, expected) in shares(sampling).into_iter().zip(expected) {
            let bound = 4.0 * (expected * (1.0 - expected) / 8000f64).sqrt();
            assert!(
                (found - expected).abs() <= bound + 1e-9,
                "{sampling:?}: {found}, not {expected}"
            );
        }
    }
}

#[test]
fn sampling_that_makes_no_sense_is_refused() {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut choose = |sampling: Sampling, logits: &[f32]| sampling.choose(logits, &mut rng);
    let plain = Sampling::default();
    let cases = [
        (
            Sampling {
                temperature: f64::NAN,
                ..plain
            },
            "temperature must be 0 or more and finite, not NaN",
        ),
        (
            Sampling {
                top_k: Some(0),
                ..plain
            },
            "top-k must be at least 1",
        ),
        (
            Sampling {
                top_p: Some(0.0),
                ..plain
            },
            "top-p must be above 0 and at most 1, not 0",
        ),
        (
            Sampling {
                top_p: Some(1.5),
                ..plain
            },
            "top-p must be above 0 and at most 1, not 1.5",
        ),
    ];
    for (sampling, message) in cases {
        assert_eq!(choose(sampling, &[0.0]).unwrap_err().to_string(), message);
    }
    assert_eq!(choose(plain, &[]), Err(SamplingError::Nothing));
    assert_eq!(
        choose(plain, &[f32::NEG_INFINITY]),
        Err(SamplingError::Nothing)
    );
    assert!(matches!(
        choose(Sampling::GREEDY, &[0.0, f32::INFINITY]),
        Err(SamplingError::NotANumber { token: 1, .. })
    ));
    // A top-k beyond the vocabulary takes all of it.
    let all = Sampling {
        top_k: Some(99),
        ..plain
    };
    let seen: BTreeSet<usize> = (0..200)
        .map(|_| choose(all, &[0.0, 0.0, 0.0]).unwrap())
        .collect();
    assert_eq!(seen.len(), 3);
}

#[test]
fn a_token_costs_the_work_of_one_token() {
    // The cache holds what was seen, so only the new token passes through the blocks.
    let model = model(&llama());
    let mut caches = model.caches(6);
    let tensor =
        |tokens: &[i32]| Tensor::<1, Int>::from_ints(tokens, &Device::flex()).unsqueeze::<2>();
    let _ = model.forward_cached(tensor(&[1, 2, 3, 4, 5]), &mut caches);
    let logits = model.forward_cached(tensor(&[6]), &mut caches);
    assert_eq!(logits.dims(), [1, 1, 7]);
    let whole = model.forward(tensor(&[1, 2, 3, 4, 5, 6])).narrow(1, 5, 1);
    assert!(
        values(logits)
            .iter()
            .zip(values(whole))
            .all(|(a, b)| (a - b).abs() <= 1e-5 * b.abs().max(1.0))
    );
}
