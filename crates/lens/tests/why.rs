//! Why a head looks there: the terms add up to the scores of every architecture, and on a circuit
//! whose weights are written down they are the ones that were written.

#[path = "../../residual/tests/common/mod.rs"]
mod architectures;
mod common;

use burn::{
    module::Param,
    tensor::{Device, Int, Tensor},
};
use headlight_attention::{PositionScheme, RelativeBias};
use headlight_heads::{HeadName, Measure, Source};
use headlight_lens::{
    Behaviour, Cell, Contrast, Ingredient, LayerPattern, OpenedHead, Toward,
    direct_logit_attribution, target_cells,
};
use headlight_residual::{AttentionSite, Decoder, NormPlacement, Site};

fn rows(tokens: Tensor<2, Int>) -> Vec<Vec<u32>> {
    let [_, length] = tokens.dims();
    let tokens: Vec<u32> = tokens.into_data().iter::<u32>().collect();
    tokens.chunks(length).map(<[u32]>::to_vec).collect()
}

fn opened(model: &Decoder, head: HeadName, tokens: &[Vec<u32>]) -> OpenedHead {
    OpenedHead::of(model, head, tokens, 0).unwrap().unwrap()
}

/// One model of every architecture, and one with a relative bias and another with a softcap beside
/// `ALiBi`.
fn models() -> Vec<(&'static str, Decoder)> {
    let mut models = architectures::models();
    let of = |models: &[(&str, Decoder)], name: &str| {
        let (_, model) = models.iter().find(|(known, _)| *known == name).unwrap();
        model.clone()
    };
    let mut relative = of(&models, "no positions");
    for block in &mut relative.blocks {
        let mut bias = RelativeBias::new(4, 3, &Device::flex());
        let numbers = Tensor::arange(0..28, &Device::flex())
            .float()
            .reshape([4, 7]);
        bias.table = Param::from_tensor(numbers.sin());
        block.attn.position = Some(PositionScheme::Relative(bias));
    }
    models.push(("relative bias", relative));
    models
}

#[test]
fn the_terms_add_up_to_every_score_of_every_architecture() {
    let tokens = rows(architectures::tokens());
    let mut sums = 0;
    for (name, model) in models() {
        let config = model.config();
        let softcap = config.attention.softcap;
        for layer in 0..config.n_layers {
            for head in 0..config.n_heads {
                let name = format!("{name}: L{layer}H{head}");
                let head = HeadName { layer, head };
                let opened = OpenedHead::of(&model, head, &tokens, 0).unwrap();
                let Some(opened) = opened else {
                    assert_eq!(config.norm_placement, NormPlacement::Post, "{name}");
                    continue;
                };
                for (sequence, query, key) in cells(&tokens) {
                    let score = opened.score(sequence, query, key);
                    if score == f64::NEG_INFINITY {
                        continue;
                    }
                    let terms = opened.score_terms(sequence, query, key);
                    let sum = match softcap {
                        Some(cap) => cap * (terms.sum() / cap).tanh(),
                        None => terms.sum(),
                    };
                    let bound = 1e-5 * terms.sizes();
                    let error = (sum + terms.position_bias - score).abs();
                    assert!(
                        error <= bound,
                        "{name}: {score} is off by {error}, bound {bound}"
                    );
                    sums += 1;
                }
            }
        }
    }
    assert!(sums > 5000, "{sums}");
}

/// Sequence, query, key.
fn cells(tokens: &[Vec<u32>]) -> impl Iterator<Item = (usize, usize, usize)> {
    let length = tokens[0].len();
    (0..tokens.len() * length * length)
        .map(move |at| (at / (length * length), at / length % length, at % length))
}

#[test]
fn biases_and_position_biases_are_terms_of_their_own() {
    let tokens = rows(architectures::tokens());
    let models = models();
    let of = |name: &str| {
        let (_, model) = models.iter().find(|(known, _)| *known == name).unwrap();
        opened(model, HeadName { layer: 1, head: 1 }, &tokens).score_terms(0, 4, 2)
    };
    let gpt2 = of("gpt2");
    for ingredient in [
        Ingredient::NormBias,
        Ingredient::Bias,
        Ingredient::EveryQuery,
    ] {
        assert!(gpt2.queries.contains(&ingredient), "{ingredient}");
    }
    assert_eq!(gpt2.position_bias, 0.0);
    assert!(!of("attention only").keys.contains(&Ingredient::Bias));
    // ALiBi of head 1 of 4: slope 2^−4, distance 2.
    assert!((of("alibi").position_bias + 0.125).abs() < 1e-6);
    // Distance 2 of head 1: column 2 + 3 of row 1.
    assert!((of("relative bias").position_bias - 12f64.sin()).abs() < 1e-6);
}

fn induction_cells(tokens: &[Vec<u32>]) -> Vec<Vec<Cell>> {
    let length = tokens[0].len();
    let weights = vec![0.0; tokens.len() * length * length];
    let pattern = LayerPattern::new([tokens.len(), 1, length], &weights);
    target_cells(Measure::Induction, &pattern, tokens)
}

#[test]
fn the_induction_head_that_was_built_matches_the_token_with_what_the_previous_token_head_wrote() {
    let (model, tokens) = (common::hand_built(), common::sequences());
    let head = HeadName { layer: 1, head: 0 };
    let opened = opened(&model, head, &tokens);
    let cells = induction_cells(&tokens);
    assert_eq!(cells.iter().map(Vec::len).sum::<usize>(), 12);
    let why = opened.why(&cells, Contrast::Attention).unwrap();
    let why = why.against_turned(&model, &opened, &cells).unwrap();
    let writer = Ingredient::from(Source::Head(HeadName { layer: 0, head: 0 }));
    let matches = |term: &&headlight_lens::Term| {
        term.key == writer
            && [Ingredient::from(Source::Embedding), Ingredient::EveryQuery].contains(&term.query)
    };
    let found: f64 = why
        .terms
        .iter()
        .filter(matches)
        .map(|term| term.value.value)
        .sum();
    let margin = why.margin.value;
    assert!(
        margin > 100.0 && (found / margin - 1.0).abs() < 1e-4,
        "{found} of {margin}"
    );
    assert!(matches(&&why.terms[0]), "{:?}", why.terms[0]);
    // Any other key matches nothing: in its place the head finds what it finds everywhere else.
    assert!(
        why.random_key.value.abs() < 0.05 * margin,
        "{:?}",
        why.random_key
    );
    // A match in one direction of 33 is not made by turned matrices.
    let turned = why.terms[0].turned.unwrap();
    assert!(turned > 0.0 && turned < 0.2 * margin, "{turned}");
    assert!(why.weight.value > 0.999);
}

#[test]
fn a_head_that_matches_nothing_has_no_terms() {
    let (model, tokens) = (common::hand_built(), common::sequences());
    let opened = opened(&model, HeadName { layer: 0, head: 1 }, &tokens);
    let why = opened
        .why(&induction_cells(&tokens), Contrast::Attention)
        .unwrap();
    assert_eq!((why.margin.value, why.sizes), (0.0, 0.0));
}

#[test]
fn the_built_induction_head_moves_the_embedding_of_the_key_toward_its_token() {
    let (model, tokens) = (common::hand_built(), common::sequences());
    let opened = opened(&model, HeadName { layer: 1, head: 0 }, &tokens);
    let directions = [Toward::KeyToken, Toward::NextToken, Toward::Token(11)];
    let cells = induction_cells(&tokens);
    let moved = opened.moved(&cells, &directions).unwrap();
    for other in &moved.from[1..] {
        assert!(other.logits[0].value.abs() < 1e-5, "{other:?}");
    }
    assert_eq!(moved.from[0].value, Ingredient::from(Source::Embedding));
    // Above the mean of 12 logits: what one is raised by, the 11 others are lowered by.
    let [key, next, other] = &moved.from[0].logits[..] else {
        unreachable!()
    };
    assert!(
        key.value > 0.0 && (key.value - next.value).abs() < 1e-5,
        "{key:?} {next:?}"
    );
    assert!((other.value + key.value / 11.0).abs() < 1e-5, "{other:?}");
    let raised = opened.raised(0, &cells[0][0], 1);
    assert_eq!(raised[0].0, tokens[0][cells[0][0].keys[0]]);
}

#[test]
fn all_that_a_head_moves_is_its_direct_logit_attribution() {
    for (name, model) in architectures::models() {
        let tokens = rows(architectures::tokens());
        let length = tokens[0].len();
        let scored = vec![(0..length).map(|at| at + 1 < length).collect::<Vec<_>>(); tokens.len()];
        let mut targets: Vec<Vec<u32>> = tokens.iter().map(|row| row[1..].to_vec()).collect();
        for row in &mut targets {
            row.push(0);
        }
        let behaviour = Behaviour::new(architectures::tokens(), targets, scored);
        let Some(parts) = direct_logit_attribution(&model, &behaviour).unwrap() else {
            continue;
        };
        let head = HeadName { layer: 1, head: 2 };
        let opened = opened(&model, head, &tokens);
        // The key that a query sees for sure is the query itself; the rest is elsewhere.
        let cell = |query| Cell {
            query,
            keys: vec![query],
        };
        let cells = vec![(0..length).map(cell).collect::<Vec<_>>(); tokens.len()];
        let moved = opened.moved(&cells, &[Toward::NextToken]).unwrap();
        let found = moved.together[0].value + moved.elsewhere[0].value;
        let part = parts.iter().find(|part| part.name == "L1H2").unwrap();
        let error = (found - part.logit).abs();
        assert!(
            error < 1e-5 * found.abs().max(1.0),
            "{name}: {found} is not {}",
            part.logit
        );
    }
}

#[test]
fn the_terms_of_a_contrast_add_up_to_the_difference_of_the_scores() {
    let tokens = rows(architectures::tokens());
    let (_, model) = &architectures::models()[3];
    let head = HeadName { layer: 2, head: 0 };
    let opened = opened(model, head, &tokens);
    let cell = Cell {
        query: 4,
        keys: vec![2],
    };
    let score = |key| opened.score(1, 4, key);
    let weight = |key| opened.weight(1, 4, key);
    let others = [0, 1, 3, 4];
    let by_attention = others.map(|key| weight(key) / (1.0 - weight(2)) * score(key));
    let expected = [
        (
            Contrast::Attention,
            score(2) - by_attention.iter().sum::<f64>(),
        ),
        (
            Contrast::Uniform,
            score(2) - others.map(score).iter().sum::<f64>() / 4.0,
        ),
        (Contrast::None, score(2)),
    ];
    for (contrast, expected) in expected {
        let why = opened.why(&[vec![], vec![cell.clone()]], contrast).unwrap();
        let sum: f64 = why.terms.iter().map(|term| term.value.value).sum();
        for found in [why.margin.value, sum] {
            assert!(
                (found - expected).abs() < 1e-4,
                "{contrast}: {found} is not {expected}"
            );
        }
        assert_eq!(why.margin.interval, None); // one sequence says nothing about others
    }
    let pattern = Site::Attention(2, AttentionSite::Pattern);
    let seen = model
        .activations(architectures::tokens(), &[pattern])
        .unwrap();
    let row: Vec<f32> =
        architectures::values(seen.tensor::<4>(pattern).slice([1..2, 0..1, 4..5, 2..3]));
    assert!((weight(2) - f64::from(row[0])).abs() < 1e-6);
}
