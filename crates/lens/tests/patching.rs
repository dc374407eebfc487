//! Prompts that differ in one token, on a circuit of which it is known what each head moves.

mod common;

use burn::{module::Param, tensor::s};
use common::{VOCABULARY, hand_built, sequences};
use headlight_heads::Interval;
use headlight_lens::{Ablation, Patching, PatchingError, Place, Swap, all_heads, swap_follow};
use headlight_residual::Decoder;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Position 3 is the token to be copied to position 6.
const CLEAN: [u32; 7] = [11, 1, 2, 3, 4, 1, 2];
const CORRUPTED: [u32; 7] = [11, 1, 2, 5, 4, 1, 2];

/// The one position of each place that moves the answer, all the way; all others do nothing.
fn assert_places(model: &Decoder, patching: &Patching) {
    for place in Place::all(model) {
        let expected = match place.to_string().as_str() {
            // The token itself, which layer 0 leaves where it is.
            "blocks.0.hook_resid_pre" | "blocks.1.hook_resid_pre" => Some(3),
            // What the induction head adds at the end.
            "blocks.1.hook_attn_out" | "L1H0" => Some(6),
            // The previous-token head marks position 3 by the token before, the same in both
            // prompts.
            _ => None,
        };
        let patched = patching.at(place);
        for (position, share) in patched.by_position.iter().enumerate() {
            let expected = f64::from(u8::from(expected == Some(position)));
            assert!(
                (share - expected).abs() < 1e-5,
                "{place} at {position}: {share}"
            );
        }
        let everywhere = f64::from(u8::from(expected.is_some()));
        assert!(
            (patched.everywhere - everywhere).abs() < 1e-5,
            "{place}: {}",
            patched.everywhere
        );
    }
}

#[test]
fn the_answer_returns_and_breaks_at_the_known_places_alone() {
    let model = hand_built();
    let restoring = Patching::new(&model, &CORRUPTED, &CLEAN, 6).unwrap();
    assert_eq!(restoring.answers(), [5, 3]);
    assert_places(&model, &restoring);
    let breaking = Patching::new(&model, &CLEAN, &CORRUPTED, 6).unwrap();
    assert_eq!(breaking.answers(), [3, 5]);
    assert_places(&model, &breaking);
    let [base, source] = restoring.differences();
    assert_eq!(breaking.differences(), [-source, -base]);
    assert_eq!(breaking.heads(), restoring.reversed().heads());

    for (head, share) in all_heads(&model).into_iter().zip(restoring.heads()) {
        let expected = f64::from(u8::from(head.to_string() == "L1H0"));
        assert!((share - expected).abs() < 1e-5, "{head}: {share}");
    }
}

#[test]
fn of_equal_answers_the_first_is_the_answer() {
    let mut model = hand_built();
    // The unembedding reads token 9 exactly where it reads token 3.
    let w_u = model.w_u.take().unwrap().val();
    let twice = w_u
        .clone()
        .slice_assign(s![.., 9..10], w_u.slice(s![.., 3..4]));
    model.w_u = Some(Param::from_tensor(twice));
    let patching = Patching::new(&model, &CORRUPTED, &CLEAN, 6).unwrap();
    assert_eq!(patching.answers(), [5, 3]);
}

#[test]
fn what_comes_after_the_position_that_is_read_changes_nothing() {
    // Nothing followed 3 or 5 before, so the model repeats them.
    let model = hand_built();
    let patching = Patching::new(&model, &CORRUPTED, &CLEAN, 3).unwrap();
    let shares = patching.at(Place::all(&model)[0]).by_position;
    assert!((shares[3] - 1.0).abs() < 1e-5, "{shares:?}");
    assert!(
        shares[4..].iter().all(|share| share.abs() < 1e-5),
        "what comes later is not seen: {shares:?}"
    );
}

#[test]
fn prompts_with_one_answer_are_refused() {
    let same = Patching::new(&hand_built(), &CLEAN, &CLEAN, 6).unwrap_err();
    assert_eq!(same, PatchingError::SameAnswer { token: 3 });
    assert_eq!(
        same.to_string(),
        "the model answers both prompts with token 3"
    );
}

#[test]
fn predictions_follow_the_successor_and_no_other_token() {
    let (model, sequences) = (hand_built(), sequences());
    let found = swap_follow(&model, &sequences, &[], Ablation::Mean, 0)
        .unwrap()
        .unwrap();
    assert_eq!(found.queries, 12, "the second copy of each sequence");
    assert_eq!(
        (
            found.copies.mean,
            found.follows.mean,
            found.follows.interval
        ),
        (1.0, 1.0, Interval::point(1.0))
    );
    assert_eq!(
        (found.control_follows.mean, found.control_keeps.mean),
        (0.0, 1.0)
    );
    for head in ["L0H0", "L1H0"] {
        let without = swap_follow(
            &model,
            &sequences,
            &[head.parse().unwrap()],
            Ablation::Zero,
            0,
        )
        .unwrap()
        .unwrap();
        assert!(
            without.follows.mean < 0.4 && without.copies.mean < 0.4,
            "{head}: {without:?}"
        );
    }
    let idle = [("L0H1").parse().unwrap(), "L1H1".parse().unwrap()];
    assert_eq!(
        swap_follow(&model, &sequences, &idle, Ablation::Mean, 0)
            .unwrap()
            .unwrap(),
        found
    );
    assert!(
        swap_follow(&model, &[vec![1, 2, 3]], &[], Ablation::Mean, 0)
            .unwrap()
            .is_none(),
        "nothing comes back"
    );
}

#[test]
fn a_swap_changes_every_successor_and_its_control_none() {
    let tokens = [1, 2, 3, 1, 4, 5, 1];
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    for _ in 0..50 {
        let swap = Swap::draw(&tokens, 6, VOCABULARY, &mut rng).unwrap();
        let new = swap.token();
        assert!(!tokens.contains(&new));
        assert_eq!(swap.swapped(&tokens), [1, new, 3, 1, new, 5, 1]);
        assert_eq!(
            swap.control(&tokens, &mut rng).unwrap(),
            [1, 2, new, 1, 4, new, 1]
        );
        assert!(
            (0..6).contains(&Swap::draw(&tokens, 6, 6, &mut rng).unwrap().token()),
            "all there are"
        );
        // With all of the vocabulary in the context, at least it did not follow.
        assert!(
            [0, 3, 5].contains(
                &Swap::draw(&[1, 2, 3, 1, 4, 5, 0, 1], 7, 6, &mut rng)
                    .unwrap()
                    .token()
            )
        );
    }
    assert!(
        Swap::draw(&tokens, 5, VOCABULARY, &mut rng).is_none(),
        "5 was not there before"
    );
    assert!(
        Swap::draw(&[1, 1], 1, VOCABULARY, &mut rng).is_none(),
        "it followed itself"
    );
    assert!(
        Swap::draw(&[0, 1, 0], 2, 2, &mut rng).is_none(),
        "no other token"
    );
    let small = Swap::draw(&[1, 2, 1], 2, VOCABULARY, &mut rng).unwrap();
    assert!(
        small.control(&[1, 2, 1], &mut rng).is_none(),
        "no other place"
    );
}
