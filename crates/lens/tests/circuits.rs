//! Circuits in weights that are written down, and in random ones, where there is nothing to find.

mod common;

use burn::{
    module::Param,
    tensor::{Device, Tensor},
};
use common::{LENGTH, hand_built};
use faer::{Mat, mat};
use headlight_heads::{HeadName, Measure};
use headlight_lens::{
    CircuitError, Circuits, FactoredMatrix, Input, LayerPattern, compositions,
    copying_by_eigenvalues, detect_head, directions, favourite_distance, random_copying,
};
use headlight_residual::{
    Decoder, DecoderConfig, Initialization, NormKind, NormPlacement, Positions,
};

const DRAWS: usize = 200;

fn head(name: &str) -> HeadName {
    name.parse().unwrap()
}

/// A model that has learned nothing.
fn untrained(seed: u64) -> Decoder {
    let config = DecoderConfig {
        vocabulary: 40,
        n_heads: 4,
        initialization: Initialization::Normal,
        ..DecoderConfig::default()
    };
    config.try_init(seed, &Device::flex()).unwrap()
}

/// Numbers in no order, the same every time.
fn numbers(rows: usize, columns: usize, seed: usize) -> Mat<f64> {
    Mat::from_fn(rows, columns, |i, j| {
        ((i * 31 + j * 17 + seed * 7919) as f64).sin()
    })
}

#[track_caller]
fn assert_close(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() < 1e-9 * expected.abs().max(1.0),
        "{found}, expected {expected}"
    );
}

#[track_caller]
fn assert_equal(found: &Mat<f64>, expected: &Mat<f64>) {
    assert_eq!(found.shape(), expected.shape());
    let difference = (found - expected).norm_max();
    assert!(
        difference < 1e-9 * expected.norm_max().max(1.0),
        "{difference}"
    );
}

#[test]
fn factored_is_what_multiplied_out_is() {
    // Tall, wide, and an inner size larger than the outer ones.
    for (rows, inner, columns) in [(9, 3, 70), (70, 3, 9), (5, 8, 6), (130, 4, 130)] {
        let factored = FactoredMatrix::new(numbers(rows, inner, 1), numbers(inner, columns, 2));
        let whole = factored.multiplied();
        assert_eq!((factored.rows(), factored.columns()), (rows, columns));
        assert_close(factored.norm(), whole.norm_l2());
        assert!(factored.bound() >= factored.norm());
        assert_close(
            factored.entry(rows - 1, columns - 2),
            whole[(rows - 1, columns - 2)],
        );
        assert_equal(
            &factored.transpose().multiplied(),
            &whole.transpose().to_owned(),
        );

        let svd = factored.svd();
        let rank = inner.min(rows).min(columns);
        assert_eq!(svd.values.len(), rank);
        let expected: Vec<f64> = whole.singular_values().unwrap();
        svd.values
            .iter()
            .zip(expected)
            .for_each(|(&value, expected)| assert_close(value, expected));
        let scaled = Mat::from_fn(rows, rank, |i, j| svd.left[(i, j)] * svd.values[j]);
        assert_equal(&(scaled * svd.right.transpose()), &whole);

        let mut handed_out = 0;
        factored.for_each_row(|row, values| {
            assert_eq!((row, values.len()), (handed_out, columns));
            values
                .iter()
                .enumerate()
                .for_each(|(column, &value)| assert_close(value, whole[(row, column)]));
            handed_out += 1;
        });
        assert_eq!(handed_out, rows);
        let mut sorted: Vec<f64> = (0..rows)
            .flat_map(|i| whole.row(i).iter().copied().collect::<Vec<_>>())
            .collect();
        sorted.sort_by(|a, b| b.total_cmp(a));
        let largest = factored.largest(10);
        assert_eq!(largest.len(), 10);
        for (entry, expected) in largest.iter().zip(sorted) {
            assert_close(entry.value, expected);
            assert_close(whole[(entry.row, entry.column)], expected);
        }
    }
}

#[test]
fn products_keep_the_smaller_inner_size_and_the_product() {
    let (thin, thick) = (
        FactoredMatrix::new(numbers(6, 2, 1), numbers(2, 7, 2)),
        FactoredMatrix::new(numbers(7, 5, 3), numbers(5, 6, 4)),
    );
    for (a, b) in [(&thin, &thick), (&thick, &thin)] {
        let product = a.times(b);
        assert_equal(&product.multiplied(), &(a.multiplied() * b.multiplied()));
        assert_close(product.bound(), a.bound() * b.bound());
        assert_eq!(product.svd().values.len(), 2);
    }
    let between = thin.between(numbers(3, 6, 5).as_ref(), numbers(7, 4, 6).as_ref());
    assert_equal(
        &between.multiplied(),
        &(numbers(3, 6, 5) * thin.multiplied() * numbers(7, 4, 6)),
    );
}

#[test]
fn eigenvalues_and_singular_values_of_matrices_known_by_hand() {
    // A quarter turn times 2 in the first two of four dimensions: eigenvalues ±2i.
    let embed = mat![[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]];
    let turn = FactoredMatrix::new(
        embed.clone(),
        mat![[0.0, 2.0, 0.0, 0.0], [-2.0, 0.0, 0.0, 0.0]],
    );
    let mut eigenvalues = turn.eigenvalues();
    eigenvalues.sort_by(|a, b| b.im.total_cmp(&a.im));
    assert_eq!(eigenvalues.len(), 2);
    for (value, expected) in eigenvalues.iter().zip([2.0, -2.0]) {
        assert!(
            value.re.abs() < 1e-12 && (value.im - expected).abs() < 1e-12,
            "{value}"
        );
    }
    assert!(
        copying_by_eigenvalues(&turn).unwrap().abs() < 1e-12,
        "turning is not copying"
    );
    turn.svd()
        .values
        .iter()
        .for_each(|&value| assert_close(value, 2.0));

    // Eigenvalues 3 and −1: (3 − 1) / (3 + 1).
    let both = FactoredMatrix::new(embed, mat![[3.0, 9.0, 0.0, 0.0], [0.0, -1.0, 0.0, 0.0]]);
    assert_close(copying_by_eigenvalues(&both).unwrap(), 0.5);
}

#[test]
fn the_induction_head_copies_and_no_other() {
    let circuits = Circuits::of(&hand_built()).unwrap();
    assert_eq!(circuits.heads(), ["L0H0", "L0H1", "L1H0", "L1H1"].map(head));
    let copying = |name: &str| copying_by_eigenvalues(&circuits.full_ov(head(name)));
    assert!(
        (copying("L1H0").unwrap() - 1.0).abs() < 1e-6,
        "{:?}",
        copying("L1H0")
    );
    assert_eq!(circuits.full_ov(head("L1H0")).diagonal_is_largest(), 1.0);
    for other in ["L0H0", "L0H1", "L1H1"] {
        // L0H0 writes, but where the unembedding does not read.
        assert_eq!(copying(other), None, "{other}");
        assert!(circuits.full_ov(head(other)).multiplied().norm_max() < 1e-6);
    }
}

#[test]
fn keys_hold_what_the_previous_token_head_wrote() {
    let circuits = Circuits::of(&hand_built()).unwrap();
    let found = compositions(&circuits, DRAWS, 0);
    let best = &found[0];
    assert_eq!(
        (best.writer, best.reader, best.input),
        (head("L0H0"), head("L1H0"), Input::Key)
    );
    assert!(best.score.z > 10.0, "{:?}", best.score);
    // Twelve directions, all written and all read, of equal size: √12/(√12·√12), but for the mean
    // that norms take.
    assert!(
        (best.score.value - 1.0 / 12f64.sqrt()).abs() < 0.01,
        "{:?}",
        best.score
    );
    // L0H1 and L1H1 write nothing: only L0H0 composes, with the queries and keys of both and the
    // values of L1H0.
    assert!(
        found.iter().all(|pair| pair.writer == head("L0H0")),
        "{found:?}"
    );
    assert_eq!(found.len(), 5);
    assert!(
        found[1..].iter().all(|pair| pair.score.z < 0.0),
        "the token it wrote elsewhere is read by none: {found:?}"
    );

    assert_eq!(
        circuits
            .key_composed_qk(head("L0H0"), head("L1H0"))
            .diagonal_is_largest(),
        1.0
    );
    assert_eq!(
        circuits
            .key_composed_qk(head("L0H1"), head("L1H0"))
            .diagonal_is_largest(),
        0.0
    );
    // L1H1 compares tokens with tokens, without any help.
    assert_eq!(circuits.full_qk(head("L1H1")).diagonal_is_largest(), 1.0);
    assert!(circuits.full_qk(head("L1H0")).multiplied().norm_max() < 1e-6);
}

#[test]
fn positions_alone_make_the_previous_token_head() {
    let circuits = Circuits::of(&hand_built()).unwrap();
    let favourite = favourite_distance(&circuits, head("L0H0")).unwrap();
    assert_eq!((favourite.distance, favourite.share), (1, 1.0));
    let harmonic: f64 = (2..=LENGTH).map(|keys| 1.0 / keys as f64).sum();
    assert_close(favourite.null, harmonic / (LENGTH - 1) as f64);
    let rotary = DecoderConfig {
        positions: Positions::rotary(1e4),
        ..DecoderConfig::default()
    };
    let rotary = Circuits::of(&rotary.try_init(0, &Device::flex()).unwrap()).unwrap();
    assert_eq!(favourite_distance(&rotary, head("L0H0")), None);
}

#[test]
fn a_direction_has_the_tokens_that_go_together() {
    // Tokens 0 and 1 go with 2, token 3 with none of them but against.
    let table = FactoredMatrix::new(
        mat![[2.0], [1.0], [0.0], [-2.0]],
        mat![[0.0, 0.0, 5.0, 0.0]],
    );
    let direction = &directions(&table, 3, 2)[0];
    assert_close(direction.value, 15.0);
    let plus = direction
        .ends
        .iter()
        .find(|end| !end.columns.is_empty())
        .unwrap();
    assert_eq!(
        plus.rows.iter().map(|(row, _)| *row).collect::<Vec<_>>(),
        [0, 1]
    );
    assert_close(plus.rows[0].1, 2.0 / 3.0);
    assert_eq!(plus.columns, [(2, 1.0)]);
    let minus = direction
        .ends
        .iter()
        .find(|end| end.columns.is_empty())
        .unwrap();
    assert_eq!(
        minus.rows.iter().map(|(row, _)| *row).collect::<Vec<_>>(),
        [3]
    );
}

#[test]
fn random_models_show_nothing() {
    for seed in 0..3 {
        let circuits = Circuits::of(&untrained(seed)).unwrap();
        let random = random_copying(&circuits, DRAWS, seed);
        assert!(
            random.mean.abs() < 4.0 * random.deviation / (DRAWS as f64).sqrt(),
            "{random:?}"
        );
        let heads = circuits.heads();
        for &head in &heads {
            let full_ov = circuits.full_ov(head);
            let copying = random.against(copying_by_eigenvalues(&full_ov).unwrap());
            assert!(copying.z.abs() < 4.0, "{head}: {copying:?}");
            // One token in 40 by chance.
            assert!(full_ov.diagonal_is_largest() <= 0.15, "{head}");
            assert!(
                favourite_distance(&circuits, head).unwrap().share < 0.4,
                "{head}"
            );
        }
        let found = compositions(&circuits, DRAWS, seed);
        assert_eq!(found.len(), 3 * 4 * 4);
        for pair in &found {
            assert!(pair.score.z.abs() < 4.5, "{pair:?}");
        }
        // The largest of 48 is not one of 48 like it: z is standardised.
        let mean_square =
            found.iter().map(|pair| pair.score.z.powi(2)).sum::<f64>() / found.len() as f64;
        assert!((0.4..2.5).contains(&mean_square), "{mean_square}");
    }
}

#[test]
fn random_matrices_compose_by_one_over_the_root_of_d_model() {
    for (d_model, n_heads) in [(32, 4), (64, 4), (128, 8)] {
        let config = DecoderConfig {
            d_model,
            n_heads,
            vocabulary: 8,
            ..DecoderConfig::default()
        };
        let circuits = Circuits::of(&config.try_init(1, &Device::flex()).unwrap()).unwrap();
        let expected = 1.0 / (d_model as f64).sqrt();
        for pair in compositions(&circuits, DRAWS, 2) {
            let mean = pair.score.random.mean;
            assert!(
                (mean / expected - 1.0).abs() < 0.02,
                "{mean}, expected {expected}"
            );
        }
        assert_eq!(
            compositions(&circuits, 20, 2),
            compositions(&circuits, 20, 2)
        );
        assert_ne!(
            compositions(&circuits, 20, 2),
            compositions(&circuits, 20, 3)
        );
    }
}

#[test]
fn query_heads_of_a_group_share_keys_and_values() {
    let config = DecoderConfig {
        n_heads: 4,
        n_kv_heads: Some(2),
        norm: NormKind::None,
        ..DecoderConfig::default()
    };
    let model = config.try_init(5, &Device::flex()).unwrap();
    let circuits = Circuits::of(&model).unwrap();
    let attention = &model.blocks[1].attn;
    let d_head = 16;
    let part = |weight: &Tensor<2>, rows: usize, row: usize, columns: usize, column: usize| {
        let part: Tensor<2> = weight
            .clone()
            .narrow(0, row, rows)
            .narrow(1, column, columns);
        let values: Vec<f64> = part.into_data().iter::<f64>().collect();
        Mat::from_fn(rows, columns, |i, j| values[i * columns + j])
    };
    for index in 0..4 {
        let of = |weight: &Param<Tensor<2>>, head: usize| {
            part(&weight.val(), 64, 0, d_head, head * d_head)
        };
        let name = HeadName {
            layer: 1,
            head: index,
        };
        let qk =
            of(&attention.w_q.weight, index) * of(&attention.w_k.weight, index / 2).transpose();
        assert_equal(&circuits.qk(name).multiplied(), &qk);
        let w_o = part(&attention.w_o.weight.val(), d_head, index * d_head, 64, 0);
        assert_equal(
            &circuits.ov(name).multiplied(),
            &(of(&attention.w_v.weight, index / 2) * w_o),
        );
    }
}

#[test]
fn gains_and_means_do_not_change_what_a_circuit_says() {
    // What layer norm reads of the stream is the same whatever mean is written to it, and a gain
    // can stand in the norm or in the matrices behind it.
    let model = untrained(1);
    let mut other = model.clone();
    other.w_e = other.w_e.map(|w_e| w_e + 3.0);
    for block in &mut other.blocks {
        block.attn.w_o.weight = block.attn.w_o.weight.clone().map(|w_o| w_o - 0.5);
        let Some(headlight_residual::Norm::Layer(norm)) = &mut block.ln1 else {
            unreachable!()
        };
        norm.gain = norm.gain.clone().map(|gain| gain * 2.0);
        for w in [
            &mut block.attn.w_q,
            &mut block.attn.w_k,
            &mut block.attn.w_v,
        ] {
            w.weight = w.weight.clone().map(|weight| weight / 2.0 + 0.25);
        }
    }
    let (circuits, others) = (Circuits::of(&model).unwrap(), Circuits::of(&other).unwrap());
    for head in circuits.heads() {
        for table in [
            Circuits::full_qk,
            Circuits::full_ov,
            Circuits::qk,
            Circuits::ov,
        ] {
            let (found, expected) = (
                table(&others, head).multiplied(),
                table(&circuits, head).multiplied(),
            );
            let difference = (&found - &expected).norm_max();
            // Only f32 rounding, of means far larger than the weights.
            assert!(
                difference < 1e-3 * expected.norm_max(),
                "{head}: {difference} of {}",
                expected.norm_max()
            );
        }
    }
}

#[test]
fn what_has_no_circuits_says_so() {
    let post = DecoderConfig {
        norm_placement: NormPlacement::Post,
        ..DecoderConfig::default()
    };
    let post = post.try_init(0, &Device::flex()).unwrap();
    assert!(matches!(Circuits::of(&post), Err(CircuitError::Norms(_))));
    for broken in [f32::NAN, f32::INFINITY, 1e30] {
        let mut model = untrained(0);
        model.w_e = model.w_e.map(|w_e| w_e * broken);
        assert_eq!(
            Circuits::of(&model).unwrap_err(),
            CircuitError::Weight,
            "{broken}"
        );
    }
}

#[test]
fn detect_head_counts_as_transformer_lens_does() {
    // Tokens 1 2 1 2: D of induction is 1 at (2, 1), (3, 2); of duplicates at (2, 0), (3, 1). The
    // pattern is uniform.
    let tokens = vec![vec![1, 2, 1, 2]];
    let uniform: Vec<f32> = (0..4)
        .flat_map(|q| (0..4).map(move |k| if k <= q { 1.0 / (q + 1) as f32 } else { 0.0 }))
        .collect();
    let of = |measure| detect_head(LayerPattern::new([1, 1, 4], &uniform), &tokens, measure)[0];
    // A holds 1/3 and 1/4 there, of 4 rows: 7/12/4. |A − D| of those cells is 2/3 + 3/4, of the
    // others 4 − 7/12.
    for measure in [Measure::Induction, Measure::DuplicateToken] {
        let found = of(measure);
        assert!((found.mul - 7.0 / 48.0).abs() < 1e-6, "{found:?}");
        // (17/12 + 41/12) / 4 = 1.20833…, rounded to three decimals.
        assert!((found.abs - (1.0 - 1.208)).abs() < 1e-9, "{found:?}");
    }
    // The same behind a start, which is no query and no key.
    let behind = |(row, query): (&[f32], usize)| -> Vec<f32> {
        let to_start = if query == 0 { 1.0 } else { 0.0 };
        [&[to_start], row].concat()
    };
    let rows = [[0.0; 4]]
        .iter()
        .map(|row| &row[..])
        .chain(uniform.chunks(4))
        .zip(0..);
    let started: Vec<f32> = rows.flat_map(behind).collect();
    let pattern = LayerPattern::new([1, 1, 5], &started).with_start(true);
    let found = detect_head(pattern, &[vec![9, 1, 2, 1, 2]], Measure::Induction)[0];
    assert_eq!(found, of(Measure::Induction));
    // Two sequences: the mean of both, the second with no token twice.
    let tokens = vec![vec![1, 2, 1, 2], vec![0, 1, 2, 3]];
    let patterns = uniform.repeat(2);
    let found = detect_head(
        LayerPattern::new([2, 1, 4], &patterns),
        &tokens,
        Measure::Induction,
    )[0];
    assert!(
        (found.mul - 7.0 / 96.0).abs() < 1e-6 && (found.abs + 0.104).abs() < 1e-9,
        "{found:?}"
    );
}
