//! What probes change is what they say, in every architecture, and gradients reach every site.

mod common;

use burn::tensor::{Device, Int, Tensor};
use common::{LAYERS, assert_close, config, llama, model, models, tokens, values};
use headlight_attention::Mask;
use headlight_residual::{
    Activations, AttentionSite, BlockSite, Capture, Decoder, Edit, Edits, KeptTensor, Leaves,
    NoProbe, NormPlacement, Part, Probe, Projection, Site, weights_from_bytes, weights_to_bytes,
};

fn other_tokens() -> Tensor<2, Int> {
    Tensor::from_ints([[3, 3, 0, 6, 1, 2], [0, 5, 4, 4, 2, 1]], &Device::flex())
}

fn seen(model: &Decoder, tokens: Tensor<2, Int>) -> Activations {
    model.activations(tokens, &model.sites()).unwrap()
}

/// What attention of layer 1 adds while `probe` is at work.
fn attn_out<P: Probe>(model: &Decoder, mut probe: P) -> Tensor<3> {
    let site = Site::Block(1, BlockSite::AttnOut);
    let seen = model
        .activations_probed(tokens(), &[site], &mut probe)
        .unwrap();
    seen.tensor(site)
}

#[test]
fn a_stream_patched_from_another_run_gives_that_runs_logits() {
    for (name, model) in models() {
        let other = seen(&model, other_tokens());
        for layer in 0..LAYERS {
            let site = Site::Block(layer, BlockSite::ResidPre);
            let patch = Edit::Replace(other.kept(site).clone());
            let patched =
                model.forward_probed(tokens(), &mut Edits::default().at(site, patch.clone()));
            assert_eq!(
                values(patched),
                values(model.forward(other_tokens())),
                "{name}"
            );
            // At one position of the last block: there, and nowhere else, since later ones look
            // back.
            let part = Part::positions(&[5]);
            let patched =
                model.forward_probed(tokens(), &mut Edits::default().part(site, part, patch));
            let clean = model.forward(tokens());
            assert_eq!(
                values(patched.clone().narrow(1, 0, 5)),
                values(clean.clone().narrow(1, 0, 5)),
                "{name}"
            );
            assert_ne!(
                values(patched.narrow(1, 5, 1)),
                values(clean.narrow(1, 5, 1)),
                "{name}"
            );
        }
    }
}

#[test]
fn a_frozen_pattern_moves_the_values_of_this_run_along_the_paths_of_another() {
    for (name, model) in models() {
        let pattern = Site::Attention(1, AttentionSite::Pattern);
        let (own, other) = (seen(&model, tokens()), seen(&model, other_tokens()));
        let frozen = attn_out(
            &model,
            Edits::default().at(pattern, Edit::Replace(other.kept(pattern).clone())),
        );
        let v = own
            .get::<4>(Site::Attention(1, AttentionSite::V))
            .unwrap()
            .swap_dims(1, 2);
        let [batch, kv_heads, pos, width] = v.dims();
        let v = v
            .unsqueeze_dim::<5>(2)
            .expand([batch, kv_heads, 4 / kv_heads, pos, width])
            .reshape([batch, 4, pos, width]);
        let merged = model.blocks[1]
            .attn
            .merge(other.get::<4>(pattern).unwrap().matmul(v));
        assert_close(name, frozen, added(&model, merged));
    }
}

#[test]
fn other_inputs_of_queries_leave_keys_and_values() {
    for (name, model) in models() {
        let other = seen(&model, other_tokens());
        let inputs = Site::Block(1, BlockSite::QInput);
        let given = other.kept(Site::Block(1, BlockSite::ResidPre)).clone();
        let mut edits = Edits::default().at(inputs, Edit::Replace(given));
        let changed = model
            .activations_probed(tokens(), &model.sites(), &mut edits)
            .unwrap();
        let own = seen(&model, tokens());
        let at = |seen: &Activations, site| values(seen.tensor::<4>(Site::Attention(1, site)));
        assert_eq!(
            at(&changed, AttentionSite::Q),
            at(&other, AttentionSite::Q),
            "{name}"
        );
        assert_eq!(
            at(&changed, AttentionSite::K),
            at(&own, AttentionSite::K),
            "{name}"
        );
        assert_eq!(
            at(&changed, AttentionSite::V),
            at(&own, AttentionSite::V),
            "{name}"
        );
    }
}

/// Head `head` of `[batch, pos, head, width]`.
fn of_head(heads: &Tensor<4>, head: usize) -> Tensor<4> {
    heads.clone().narrow(2, head, 1)
}

#[test]
fn another_input_of_one_head_leaves_the_other_heads_and_projections() {
    let projected = [
        (Projection::Query, AttentionSite::Q),
        (Projection::Key, AttentionSite::K),
        (Projection::Value, AttentionSite::V),
    ];
    for (name, model) in models() {
        let (own, other) = (seen(&model, tokens()), seen(&model, other_tokens()));
        let given = other.tensor::<3>(Site::Block(1, BlockSite::ResidPre));
        let given = KeptTensor::from(given.unsqueeze_dim::<4>(2));
        for (changed, _) in projected {
            let site = Site::HeadInput(1, changed);
            let heads = own.kept(site).dims()[2];
            let last = Part::heads(&[heads - 1]);
            let mut edits = Edits::default().part(site, last, Edit::Replace(given.clone()));
            let found = model
                .activations_probed(tokens(), &model.sites(), &mut edits)
                .unwrap();
            assert!(edits.unmet().is_empty(), "{name} {site}");
            for (projection, place) in projected {
                let place = Site::Attention(1, place);
                let (found, own) = (found.tensor::<4>(place), own.tensor::<4>(place));
                let heads = found.dims()[2];
                for head in 0..heads {
                    let is_changed = projection == changed && head == heads - 1;
                    let expected = if is_changed {
                        of_head(&other.tensor::<4>(place), head)
                    } else {
                        of_head(&own, head)
                    };
                    assert_close(&format!("{name} {site}"), of_head(&found, head), expected);
                }
            }
        }
    }
}

#[test]
fn a_feed_forward_reads_what_its_input_says_and_the_stream_goes_on() {
    for (name, model) in models() {
        if !model.has(Site::Block(1, BlockSite::MlpIn)) {
            continue;
        }
        let (own, other) = (seen(&model, tokens()), seen(&model, other_tokens()));
        let input = Site::Block(1, BlockSite::MlpIn);
        let given = Edit::Replace(other.kept(input).clone());
        let found = model
            .activations_probed(
                tokens(),
                &model.sites(),
                &mut Edits::default().at(input, given),
            )
            .unwrap();
        let at = |seen: &Activations, site| seen.tensor::<3>(Site::Block(1, site));
        let added = at(&other, BlockSite::MlpOut);
        assert_close(name, at(&found, BlockSite::MlpOut), added.clone());
        let before = at(&own, BlockSite::ResidPost) - at(&own, BlockSite::MlpOut);
        if model.config().norm_placement != NormPlacement::Post {
            assert_close(name, at(&found, BlockSite::ResidPost), before + added);
        }
    }
}

#[test]
fn heads_are_zeroed_scaled_and_mean_ablated_each_on_its_own() {
    for (name, model) in models() {
        let own = seen(&model, tokens());
        let z = Site::Attention(1, AttentionSite::Z);
        let result = own
            .get::<4>(Site::Attention(1, AttentionSite::Result))
            .unwrap();
        let of_head = |head: usize| result.clone().narrow(2, head, 1).squeeze_dim::<3>(2);
        let mut whole = result.clone().sum_dim(2).squeeze_dim::<3>(2);
        if let Some(bias) = &model.blocks[1].attn.w_o.bias {
            whole = whole + bias.val().unsqueeze();
        }
        let attn_out_of = |merged| added(&model, merged);
        let with = |edit| attn_out(&model, Edits::default().part(z, Part::heads(&[2]), edit));
        assert_close(
            name,
            with(Edit::Zero),
            attn_out_of(whole.clone() - of_head(2)),
        );
        assert_close(
            name,
            with(Edit::Scale(3.0)),
            attn_out_of(whole.clone() + of_head(2).mul_scalar(2.0)),
        );
        let mean = of_head(2).mean_dim(0).mean_dim(1).expand(whole.dims());
        assert_close(
            name,
            with(Edit::Mean),
            attn_out_of(whole.clone() - of_head(2) + mean.clone()),
        );
        // The same with a mean taken beforehand.
        let reference = own.kept(z).mean_over([0, 1]);
        assert_close(
            name,
            with(Edit::Replace(reference)),
            attn_out_of(whole.clone() - of_head(2) + mean),
        );
        // Two heads, side by side and apart.
        for heads in [[1, 2], [0, 2]] {
            let edits = Edits::default().part(z, Part::heads(&heads), Edit::Mean);
            let mean_of = |head| of_head(head).mean_dim(0).mean_dim(1).expand(whole.dims());
            let [first, second] = heads.map(|head| mean_of(head) - of_head(head));
            assert_close(
                name,
                attn_out(&model, edits),
                attn_out_of(whole.clone() + first + second),
            );
        }
        // All heads, and then half of them back: edits follow each other.
        let edits = Edits::default().at(z, Edit::Scale(2.0)).part(
            z,
            Part::heads(&[0, 1, 2, 3]),
            Edit::Scale(0.5),
        );
        assert_close(name, attn_out(&model, edits), attn_out_of(whole));
    }
}

/// What attention adds of the sum of its heads in layer 1: the sum itself, or through a norm.
fn added(model: &Decoder, merged: Tensor<3>) -> Tensor<3> {
    match &model.blocks[1].ln1_post {
        Some(norm) => norm.forward(merged, |site| Site::Ln1Post(1, site), &mut NoProbe),
        None => merged,
    }
}

/// Every kind of edit of scores, among them those that put a finite number at a masked pair.
fn edits_of_scores() -> Vec<(&'static str, Edit)> {
    let put = |number: f32| {
        let scores = Tensor::<4>::full([1, 1, 1, 1], number, &Device::flex());
        KeptTensor::from(scores)
    };
    vec![
        ("Zero", Edit::Zero),
        ("Scale(0)", Edit::Scale(0.0)),
        ("Scale(-1)", Edit::Scale(-1.0)),
        ("Add", Edit::Add(put(f32::INFINITY))),
        ("Replace by 1000", Edit::Replace(put(1000.0))),
        ("Replace by NaN", Edit::Replace(put(f32::NAN))),
        ("Mean", Edit::Mean),
    ]
}

#[test]
fn masked_pairs_stay_masked_under_every_edit_of_the_scores() {
    let scores = Site::Attention(1, AttentionSite::Scores);
    let pattern = Site::Attention(1, AttentionSite::Pattern);
    for (name, model) in models() {
        let window = model.config().window_of(1).unwrap_or(usize::MAX);
        for (edit_name, edit) in edits_of_scores() {
            for part in [Part::default(), Part::heads(&[2]), Part::positions(&[0, 3])] {
                let mut edits = Edits::default().part(scores, part, edit.clone());
                let seen = model
                    .activations_probed(tokens(), &[pattern], &mut edits)
                    .unwrap();
                let weights = values(seen.tensor::<4>(pattern));
                assert_eq!(weights.len(), 2 * 4 * 6 * 6);
                for (index, weight) in weights.into_iter().enumerate() {
                    let (query, key) = (index / 6 % 6, index % 6);
                    if key > query || query - key >= window {
                        assert_eq!(weight, 0.0, "{name}, {edit_name}: {query} to {key}");
                    }
                }
            }
        }
    }
}

#[test]
fn with_all_scores_zero_a_query_attends_evenly_to_what_it_may_see() {
    let scores = Site::Attention(1, AttentionSite::Scores);
    let pattern = Site::Attention(1, AttentionSite::Pattern);
    for (name, model) in models() {
        let window = model.config().window_of(1).unwrap_or(usize::MAX);
        for edit in [Edit::Zero, Edit::Scale(0.0)] {
            let is_scaled = matches!(edit, Edit::Scale(_));
            let mut edits = Edits::default().at(scores, edit);
            let (logits, seen) = model
                .logits_and_activations(tokens(), &[pattern], &mut edits)
                .unwrap();
            let mut even = Vec::new();
            for query in 0..6_usize {
                let first = (query + 1).saturating_sub(window);
                let share = 1.0 / (query + 1 - first) as f32;
                even.extend((0..6).map(|key| {
                    if (first..=query).contains(&key) {
                        share
                    } else {
                        0.0
                    }
                }));
            }
            let even = Tensor::<1>::from_floats(even.as_slice(), &Device::flex());
            let expected = even.reshape([1, 1, 6, 6]).expand([2, 4, 6, 6]);
            let name = format!("{name}, scaled {is_scaled}");
            assert_close(&name, seen.tensor::<4>(pattern), expected);
            assert!(values(logits).iter().all(|logit| logit.is_finite()));
        }
    }
}

#[test]
fn a_query_that_may_see_nothing_writes_nothing_whatever_its_scores_become() {
    // The second row of the batch has no real token at all.
    let model = model(&config(None));
    let block = &model.blocks[0];
    let x = Tensor::<3>::ones([2, 6, 24], &Device::flex());
    let mask = model.masks()[0].and(Mask::lengths(&[6, 0]));
    let scores = Site::Attention(0, AttentionSite::Scores);
    let attn_out = Site::Block(0, BlockSite::AttnOut);
    let pattern = Site::Attention(0, AttentionSite::Pattern);
    for (name, edit) in edits_of_scores() {
        let mut edits = Edits::default().at(scores, edit);
        let mut capture = Capture::new(&[attn_out, pattern], 1 << 20);
        let _ = block.forward(x.clone(), &mask, 0, &mut (&mut edits, &mut capture));
        let seen = capture.into_activations().unwrap();
        let empty = |tensor: Vec<f32>| tensor.iter().all(|&x| x == 0.0);
        assert!(
            empty(values(seen.tensor::<4>(pattern).narrow(0, 1, 1))),
            "{name}"
        );
        assert!(
            empty(values(seen.tensor::<3>(attn_out).narrow(0, 1, 1))),
            "{name}"
        );
    }
}

#[test]
fn what_is_added_to_the_stream_arrives() {
    let model = model(&llama());
    let site = Site::Block(LAYERS - 1, BlockSite::ResidPost);
    let direction = Tensor::<3>::ones([1, 1, 24], &Device::flex());
    let mut edits = Edits::default().at(site, Edit::Add(KeptTensor::from(direction.clone())));
    let seen = model
        .activations_probed(tokens(), &[site], &mut edits)
        .unwrap();
    let before = model.activations(tokens(), &[site]).unwrap();
    assert_close(
        "steering",
        seen.tensor::<3>(site),
        before.tensor::<3>(site) + direction,
    );
}

#[test]
fn a_site_that_the_model_lacks_is_said() {
    let model = model(&config(None));
    let site: Site = "blocks.0.mlp.hook_post".parse().unwrap();
    let mut edits = Edits::default()
        .at(site, Edit::Zero)
        .at(Site::Embed, Edit::Scale(1.0));
    let _ = model.forward_probed(tokens(), &mut edits);
    assert_eq!(edits.unmet(), [site]);
}

#[test]
fn sites_are_selected_by_name_layer_and_pattern() {
    for (name, model) in models() {
        assert_eq!(model.select("*").unwrap(), model.sites(), "{name}");
        let layer = model.select("blocks.1.*").unwrap();
        assert!(
            layer.iter().all(|site| site.layer() == Some(1)) && layer.len() > 10,
            "{name}"
        );
        let z: Vec<Site> = (0..LAYERS)
            .map(|layer| Site::Attention(layer, AttentionSite::Z))
            .collect();
        assert_eq!(model.select("blocks.*.attn.hook_z").unwrap(), z, "{name}");
        assert_eq!(
            model.select("blocks.*.hook_resid_p*").unwrap().len(),
            2 * LAYERS,
            "{name}"
        );
        for site in model.sites() {
            assert_eq!(model.select(&site.to_string()).unwrap(), [site], "{name}");
        }
        for nothing in ["blocks.7.*", "hook_z", "", "blocks.*.attn.hook_zz"] {
            assert!(
                model
                    .select(nothing)
                    .unwrap_err()
                    .to_string()
                    .starts_with("no site is called"),
                "{nothing}"
            );
        }
    }
}

#[test]
fn the_gradient_at_a_site_is_how_the_loss_changes_there() {
    let device = Device::flex().autodiff();
    for (name, model) in models() {
        let fresh = model.config().try_init(0, &device).unwrap();
        let with_gradients = weights_from_bytes(fresh, &weights_to_bytes(&model).unwrap()).unwrap();
        let sites = model.sites();
        let mut leaves = Leaves::new(&sites);
        let tokens_on = Tensor::<2, Int>::from_data(tokens().into_data(), &device);
        let loss = |logits: Tensor<3>| logits.narrow(1, 3, 2).square().mean();
        let gradients = loss(with_gradients.forward_probed(tokens_on, &mut leaves)).backward();
        let size = loss(model.forward(tokens())).into_scalar::<f32>();
        let mut checked = 0;
        for site in sites {
            let (dims, squared_norm, gradient) = if site.head_axis().is_some() {
                let Some(gradient) = leaves.gradient::<4>(site, &gradients) else {
                    continue;
                };
                (
                    gradient.dims().to_vec(),
                    gradient.clone().square().sum(),
                    KeptTensor::from(gradient),
                )
            } else {
                let Some(gradient) = leaves.gradient::<3>(site, &gradients) else {
                    continue;
                };
                (
                    gradient.dims().to_vec(),
                    gradient.clone().square().sum(),
                    KeptTensor::from(gradient),
                )
            };
            let squared_norm: f32 = squared_norm.into_scalar();
            assert!(squared_norm.is_finite(), "{name} {site} {dims:?}");
            if squared_norm < 1e-8 {
                continue;
            }
            // A small step along the gradient g raises the loss by step·‖g‖².
            // It moves the loss by at most 1 %, and the activation by at most 0.004.
            let length = (0.01 * size / squared_norm).min(4e-3 / squared_norm.sqrt());
            let moved = |by: f32| {
                let step = if dims.len() == 4 {
                    KeptTensor::from(gradient.tensor::<4>().mul_scalar(by * length))
                } else {
                    KeptTensor::from(gradient.tensor::<3>().mul_scalar(by * length))
                };
                let logits =
                    model.forward_probed(tokens(), &mut Edits::default().at(site, Edit::Add(step)));
                loss(logits).into_scalar::<f32>()
            };
            let slope = (moved(1.0) - moved(-1.0)) / (2.0 * length);
            // f32 sums to about 1e-6 of the loss; the third derivative is the other part of the
            // bound.
            let bound = 0.05 * squared_norm + 4e-6 * size / length;
            assert!(
                (slope - squared_norm).abs() <= bound,
                "{name} {site}: {slope}, not {squared_norm}"
            );
            checked += 1;
        }
        let few = if model.config().norm_placement == NormPlacement::Post {
            20
        } else {
            30
        };
        assert!(checked >= few, "{name}: {checked}");
    }
}
