//! What is written does not depend on how it is computed, and is always made of the model's tokens.

mod common;

use std::collections::BTreeSet;

use burn::{
    module::Param,
    tensor::{Device, Int, Tensor},
};
use common::{assert_close, config, llama, model, models, plain, values};
use headlight_attention::RotaryScaling;
use headlight_residual::{
    Activation, Decoder, DecoderConfig, Ending, GenerateError, Generation, NormKind, NormPlacement,
    Positions, RotaryPositions, Sampling, SamplingError, token_tensor,
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

/// Beyond the original context all keys have other angles, so the text is read again.
#[test]
fn a_text_that_outgrows_its_original_context_goes_on_as_without_a_cache() {
    let dynamic = RotaryScaling::Dynamic {
        factor: 4.0,
        original_n_ctx: 5,
    };
    let longrope = RotaryScaling::LongRope {
        short_factors: vec![1.0; 2],
        long_factors: vec![3.0, 9.0],
        original_n_ctx: 5,
        attention_factor: 1.5,
    };
    for scaling in [dynamic, longrope] {
        let model = model(&DecoderConfig {
            positions: Positions::Rotary(RotaryPositions {
                base: 30.0,
                scaling: scaling.clone(),
                ..RotaryPositions::default()
            }),
            d_head: Some(4),
            ..llama()
        });
        let prompts = [vec![1, 2], vec![3, 4, 5, 6, 0, 1, 2]];
        let texts = |cached| {
            let generation = Generation {
                tokens: 8,
                cached,
                sampling: Sampling::GREEDY,
                ..Generation::default()
            };
            let mut texts = model.generate_each(&prompts, generation).unwrap();
            let _ = texts.by_ref().count();
            [texts.text(0).to_vec(), texts.text(1).to_vec()]
        };
        assert_eq!(texts(true), texts(false), "{scaling:?}");
        // The whole text at once has the angles of its length, at every position.
        let long = token_tensor(&[[0, 3, 1, 6, 2, 5]], &Device::flex());
        let short = long.clone().narrow(1, 0, 5);
        let first = model.forward(long).narrow(1, 0, 5);
        let difference = (first - model.forward(short)).abs().max();
        assert!(difference.into_scalar::<f32>() > 1e-3, "{scaling:?}");
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

/// Every way in which positions enter, with and without a window, grouped heads, norms before and
/// after.
fn ragged_architectures() -> Vec<(String, DecoderConfig)> {
    let positions = [
        Positions::Learned,
        Positions::Sinusoidal,
        Positions::rotary(100.0),
        Positions::Alibi,
        Positions::None,
    ];
    let mut all = Vec::new();
    for positions in positions {
        for window in [None, Some(2)] {
            for n_kv_heads in [None, Some(2)] {
                for norm_placement in [NormPlacement::Pre, NormPlacement::Post] {
                    for norm in [NormKind::LayerNorm, NormKind::RmsNorm, NormKind::None] {
                        let config = DecoderConfig {
                            positions: positions.clone(),
                            window,
                            n_kv_heads,
                            norm_placement,
                            norm,
                            init_std: if norm == NormKind::None { 0.1 } else { 0.3 },
                            ..config(Some(plain(Activation::Gelu)))
                        };
                        let name = format!(
                            "{positions:?}, window {window:?}, {n_kv_heads:?} key/value heads, {norm:?} {norm_placement:?}"
                        );
                        all.push((name, config));
                    }
                }
            }
        }
    }
    all
}

#[test]
fn rows_of_different_length_get_the_logits_that_each_gets_alone() {
    // Prefill, then what is left of each, then single tokens; row 2 is full after the first round.
    let texts: [&[u32]; 4] = [&[1, 2, 3, 4, 5], &[6, 5], &[0, 3, 1, 6, 2, 5], &[4, 4, 0]];
    let rounds = [[2, 1, 6, 1], [1, 0, 0, 2], [1, 1, 0, 0], [1, 0, 0, 0]];
    for (name, config) in ragged_architectures() {
        let model = model(&config);
        let mut caches = model.caches(6);
        let mut found = vec![Vec::new(); 4];
        let mut done = [0; 4];
        for counts in rounds {
            let longest = *counts.iter().max().unwrap();
            let rows: Vec<Vec<u32>> = (0..4)
                .map(|row| {
                    let mut tokens = texts[row][done[row]..done[row] + counts[row]].to_vec();
                    tokens.resize(longest, 6);
                    tokens
                })
                .collect();
            let tokens = token_tensor(&rows, &Device::flex());
            let logits = model.forward_cached_rows(tokens, &counts, &mut caches);
            for row in 0..4 {
                found[row].push(logits.clone().slice([row..row + 1, 0..counts[row], 0..7]));
                done[row] += counts[row];
            }
        }
        for (row, text) in texts.into_iter().enumerate() {
            let alone = model.forward(token_tensor(&[text], &Device::flex()));
            let found = Tensor::cat(found[row].clone(), 1);
            assert_close(&format!("{name}, row {row}"), found, alone);
        }
    }
}

#[test]
fn each_of_several_prompts_gets_the_text_that_it_gets_alone() {
    let prompts: [&[u32]; 5] = [
        &[1, 2],
        &[6, 5, 4, 3, 2],
        &[0],
        &[1, 2],
        &[3, 3, 3, 3, 3, 3],
    ];
    let sampling = Sampling {
        temperature: 1.5,
        top_k: Some(5),
        top_p: Some(0.95),
    };
    for (name, config) in ragged_architectures() {
        let model = model(&config);
        for (sampling, cached) in [
            (Sampling::GREEDY, true),
            (sampling, true),
            (sampling, false),
        ] {
            let generation = Generation {
                tokens: 9,
                sampling,
                seed: 4,
                // Some texts end before others.
                stop: vec![5],
                cached,
            };
            let mut texts = model.generate_each(&prompts, generation.clone()).unwrap();
            let mut found = vec![Vec::new(); prompts.len()];
            for step in texts.by_ref() {
                for next in step {
                    found[next.text].push(next.token.unwrap());
                }
            }
            for (at, prompt) in prompts.into_iter().enumerate() {
                let (alone, ending) = written(&model, prompt, generation.clone());
                assert_eq!(found[at], alone, "{name}, prompt {at}");
                assert_eq!(texts.ending(at), Some(ending), "{name}, prompt {at}");
                assert_eq!(texts.text(at), [prompt, &alone].concat());
            }
        }
    }
}

#[test]
fn a_text_without_numbers_ends_alone() {
    // The embedding of token 6 is NaN, and only the second prompt has it.
    let mut model = model(&DecoderConfig {
        positions: Positions::Alibi,
        ..config(None)
    });
    let poison = Tensor::full([1, 24], f32::NAN, &Device::flex());
    let w_e = model.w_e.val().slice_assign([6..7, 0..24], poison);
    model.w_e = Param::from_tensor(w_e);
    let generation = Generation {
        tokens: 3,
        stop: vec![6],
        ..Generation::default()
    };
    let mut texts = model
        .generate_each(&[vec![1, 2], vec![6, 1]], generation)
        .unwrap();
    let first = texts.next().unwrap();
    assert!(first[0].token.is_ok());
    let error = first[1].token.clone().unwrap_err();
    assert!(matches!(
        error,
        GenerateError::Sampling(SamplingError::NotANumber { .. })
    ));
    let second = texts.next().unwrap();
    assert_eq!((second.len(), second[0].text), (1, 0));
    assert_eq!(texts.ending(1), None);
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
