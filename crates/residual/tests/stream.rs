//! The residual stream is a sum, and looking at it changes nothing: in every architecture.

mod common;

use burn::tensor::{Device, Int, Tensor};
use common::{LAYERS, architectures, assert_close, config, model, models, plain, tokens, values};
use headlight_attention::{Dropout, DropoutKey};
use headlight_residual::{
    Activation, Activations, ActivationsError, AttentionSite, BlockOrder, BlockSite, Capture,
    Decoder, DecoderConfig, Edit, Edits, Initialization, Interest, NoProbe, Norm, NormPlacement,
    NormSite, Part, Probe, Site, weights_from_bytes, weights_to_bytes,
};

fn all_activations(model: &Decoder) -> Activations {
    model.activations(tokens(), &model.sites()).unwrap()
}

fn is_post_norm(model: &Decoder) -> bool {
    model.config().norm_placement == NormPlacement::Post
}

#[test]
fn the_final_stream_is_the_sum_of_all_contributions() {
    for (name, model) in models()
        .into_iter()
        .filter(|(_, model)| !is_post_norm(model))
    {
        let seen = all_activations(&model);
        let mut sum = seen.get::<3>(Site::Embed).unwrap();
        if let Some(positions) = seen.get(Site::PosEmbed) {
            sum = sum + positions;
        }
        for layer in 0..LAYERS {
            sum = sum + seen.get(Site::Block(layer, BlockSite::AttnOut)).unwrap();
            if let Some(mlp_out) = seen.get(Site::Block(layer, BlockSite::MlpOut)) {
                sum = sum + mlp_out;
            }
        }
        assert_close(
            name,
            seen.get::<3>(Site::Block(LAYERS - 1, BlockSite::ResidPost))
                .unwrap(),
            sum,
        );
    }
}

#[test]
fn each_step_of_a_block_adds_what_its_site_says() {
    for (name, model) in models() {
        let seen = all_activations(&model);
        for layer in 0..LAYERS {
            let at = |site| seen.get::<3>(Site::Block(layer, site));
            let normalized = seen.get::<3>(Site::Ln1(layer, NormSite::Out));
            let after_attention =
                at(BlockSite::ResidPre).unwrap() + at(BlockSite::AttnOut).unwrap();
            match (at(BlockSite::ResidMid), at(BlockSite::MlpOut)) {
                (Some(mid), Some(mlp_out)) => {
                    assert_close(name, after_attention, mid.clone());
                    let stream = if is_post_norm(&model) {
                        normalized.unwrap()
                    } else {
                        mid
                    };
                    assert_close(name, stream + mlp_out, at(BlockSite::ResidPost).unwrap());
                }
                // Both parts read the stream before the block.
                (None, Some(mlp_out)) => {
                    let both = after_attention + mlp_out;
                    assert_close(name, both, at(BlockSite::ResidPost).unwrap());
                }
                _ => assert_close(name, after_attention, at(BlockSite::ResidPost).unwrap()),
            }
            if let Some(next) = seen.get::<3>(Site::Block(layer + 1, BlockSite::ResidPre)) {
                let last_norm = seen.get(Site::Ln2(layer, NormSite::Out));
                let left = if is_post_norm(&model) {
                    last_norm.or_else(|| seen.get(Site::Ln1(layer, NormSite::Out)))
                } else {
                    at(BlockSite::ResidPost)
                };
                assert_eq!(values(next), values(left.unwrap()), "{name}");
            }
        }
    }
}

#[test]
fn heads_and_the_bias_add_up_to_what_attention_adds() {
    for (name, model) in models() {
        let seen = all_activations(&model);
        for (layer, block) in model.blocks.iter().enumerate() {
            let mut sum = seen
                .get::<4>(Site::Attention(layer, AttentionSite::Result))
                .unwrap()
                .sum_dim(2)
                .squeeze_dim(2);
            if let Some(bias) = &block.attn.w_o.bias {
                sum = sum + bias.val().unsqueeze();
            }
            if let Some(norm) = &block.ln1_post {
                // What heads add, and the bias of the norm; no W_O has a bias here.
                let mut added = seen
                    .tensor::<4>(Site::HeadsAdded(layer))
                    .sum_dim(2)
                    .squeeze_dim(2);
                if let Norm::Layer(norm) = norm {
                    added = added + norm.bias.val().unsqueeze();
                }
                let attn_out = seen.tensor::<3>(Site::Block(layer, BlockSite::AttnOut));
                assert_close(name, added, attn_out);
                sum = norm.forward(sum, |site| Site::Ln1Post(layer, site), &mut NoProbe);
            }
            assert_close(
                name,
                sum,
                seen.get::<3>(Site::Block(layer, BlockSite::AttnOut))
                    .unwrap(),
            );
            let pattern = seen
                .get::<4>(Site::Attention(layer, AttentionSite::Pattern))
                .unwrap();
            assert_close(
                name,
                pattern.clone().sum_dim(3),
                Tensor::ones([2, 4, 6, 1], &Device::flex()),
            );
            let v = seen
                .get::<4>(Site::Attention(layer, AttentionSite::V))
                .unwrap()
                .swap_dims(1, 2);
            let [batch, kv_heads, pos, width] = v.dims();
            // Each key/value head serves 4 / kv_heads query heads, one after the other.
            let v = v
                .unsqueeze_dim::<5>(2)
                .expand([batch, kv_heads, 4 / kv_heads, pos, width]);
            let z = seen
                .get::<4>(Site::Attention(layer, AttentionSite::Z))
                .unwrap();
            assert_close(
                name,
                pattern.matmul(v.reshape([batch, 4, pos, width])),
                z.swap_dims(1, 2),
            );
        }
    }
}

#[test]
fn the_logit_lens_after_the_last_block_is_the_logits() {
    for (name, model) in models() {
        let seen = all_activations(&model);
        let last = *model.stream_sites().last().unwrap();
        let lens = model.unembed(seen.get(last).unwrap(), &mut NoProbe);
        assert_eq!(values(lens), values(model.forward(tokens())), "{name}");
    }
}

#[test]
fn the_stream_is_what_each_block_reads_and_leaves() {
    for (name, model) in models() {
        let seen = all_activations(&model);
        let sites = model.stream_sites();
        let has_middle = model.has(Site::Block(0, BlockSite::ResidMid));
        let has_middle = has_middle && model.blocks[0].mlp.is_some();
        let per_block = 1 + usize::from(has_middle);
        assert_eq!(sites.len(), 1 + LAYERS * per_block, "{name}");
        for layer in 0..LAYERS {
            let pre = seen.tensor::<3>(Site::Block(layer, BlockSite::ResidPre));
            let stream = seen.tensor::<3>(sites[layer * per_block]);
            assert_eq!(values(pre.clone()), values(stream), "{name} before {layer}");
            let mask = &model.masks()[layer];
            let left = model.blocks[layer].forward(pre, mask, layer, &mut NoProbe);
            let stream = seen.tensor::<3>(sites[(layer + 1) * per_block]);
            assert_eq!(values(left), values(stream), "{name} after {layer}");
        }
    }
}

/// A norm of a model, and where its input and its three sites are.
struct NormAt<'a> {
    norm: &'a Norm,
    input: Site,
    scale: Site,
    normalized: Site,
    out: Site,
}

impl<'a> NormAt<'a> {
    fn new(norm: &'a Norm, input: Site, site: impl Fn(NormSite) -> Site) -> Self {
        Self {
            norm,
            input,
            scale: site(NormSite::Scale),
            normalized: site(NormSite::Normalized),
            out: site(NormSite::Out),
        }
    }

    /// Gain and bias; RMS norm has a bias of 0.
    fn gain_and_bias(&self) -> (Tensor<1>, Tensor<1>) {
        match self.norm {
            Norm::Layer(norm) => (norm.gain.val(), norm.bias.val()),
            Norm::Rms(norm) => (norm.gain.val(), norm.gain.val().zeros_like()),
        }
    }
}

fn norms(model: &Decoder) -> Vec<NormAt<'_>> {
    let mut norms = Vec::new();
    for (layer, block) in model.blocks.iter().enumerate() {
        let at = |site| Site::Block(layer, site);
        let after_attention = if block.mlp.is_some() {
            at(BlockSite::ResidMid)
        } else {
            at(BlockSite::ResidPost)
        };
        let [first, second] = if is_post_norm(model) {
            [after_attention, at(BlockSite::ResidPost)]
        } else if model.config().block_order == BlockOrder::Parallel {
            [at(BlockSite::ResidPre), at(BlockSite::ResidPre)]
        } else {
            [at(BlockSite::ResidPre), at(BlockSite::ResidMid)]
        };
        if let Some(norm) = &block.ln1 {
            norms.push(NormAt::new(norm, first, |site| Site::Ln1(layer, site)));
        }
        if let Some(norm) = &block.ln2 {
            norms.push(NormAt::new(norm, second, |site| Site::Ln2(layer, site)));
        }
    }
    if let Some(norm) = &model.ln_final {
        let last = Site::Block(LAYERS - 1, BlockSite::ResidPost);
        norms.push(NormAt::new(norm, last, Site::LnFinal));
    }
    norms
}

#[test]
fn a_norm_divides_by_its_scale_and_then_applies_gain_and_bias() {
    for (name, model) in models() {
        let seen = all_activations(&model);
        let epsilon = model.config().norm_epsilon as f32;
        for at in norms(&model) {
            let name = format!("{name}: {}", at.out);
            let x = seen.tensor::<3>(at.input);
            let x = match at.norm {
                Norm::Layer(_) => x.clone() - x.mean_dim(2),
                Norm::Rms(_) => x,
            };
            let scale = x.clone().square().mean_dim(2).add_scalar(epsilon).sqrt();
            assert_close(&name, seen.tensor::<3>(at.scale), scale.clone());
            let normalized = seen.tensor::<3>(at.normalized);
            assert_close(&name, normalized.clone(), x / scale);
            let (gain, bias) = at.gain_and_bias();
            let out = normalized.clone() * gain.unsqueeze() + bias.unsqueeze();
            assert_close(&name, seen.tensor::<3>(at.out), out.clone());
            // Gains and biases of these models are not 1 and 0, so the two sites differ.
            assert_ne!(values(out), values(normalized), "{name}");
        }
    }
}

#[test]
fn a_change_before_gain_and_bias_passes_through_both() {
    for (name, model) in models() {
        for at in norms(&model) {
            let name = format!("{name}: {}", at.out);
            let after = |site, edit| {
                let mut edits = Edits::default().at(site, edit);
                let seen = model.activations_probed(tokens(), &[at.out], &mut edits);
                seen.unwrap().tensor::<3>(at.out)
            };
            let untouched = all_activations(&model).tensor::<3>(at.normalized);
            let (gain, bias) = at.gain_and_bias();
            let through = |x: Tensor<3>| x * gain.clone().unsqueeze() + bias.clone().unsqueeze();
            let doubled = through(untouched.clone().mul_scalar(2.0));
            assert_close(
                &name,
                after(at.normalized, Edit::Scale(2.0)),
                doubled.clone(),
            );
            assert_close(&name, after(at.scale, Edit::Scale(0.5)), doubled);
            let zeroed = through(untouched.zeros_like());
            assert_close(&name, after(at.normalized, Edit::Zero), zeroed);
        }
    }
}

#[test]
fn looking_changes_no_bit() {
    for (name, model) in models() {
        let (logits, _) = model
            .logits_and_activations(tokens(), &model.sites(), &mut NoProbe)
            .unwrap();
        assert_eq!(values(model.forward(tokens())), values(logits), "{name}");
    }
}

#[test]
fn attention_weights_are_dropped_row_by_row_and_differently_in_each_layer() {
    let model = model(&config(Some(plain(Activation::Gelu))));
    let key = DropoutKey {
        seed: 1,
        step: 2,
        site: 3,
        first_row: 4,
    };
    let dropout = Dropout::new(0.5, key);
    let dropped = |tokens, dropout: &Dropout| {
        values(model.logits(model.final_stream_with_dropout(tokens, dropout, &mut NoProbe)))
    };
    let whole = dropped(tokens(), &dropout);
    assert_ne!(whole, values(model.forward(tokens())));
    assert_eq!(whole, dropped(tokens(), &dropout), "a function of the key");
    assert_eq!(
        dropped(tokens(), &Dropout::new(0.0, key)),
        values(model.forward(tokens())),
        "with probability 0 nothing is dropped"
    );

    let second_key = DropoutKey {
        first_row: 5,
        ..key
    };
    let second = dropped(tokens().narrow(0, 1, 1), &Dropout::new(0.5, second_key));
    assert_eq!(
        second,
        whole[whole.len() / 2..],
        "a row alone drops what it does in the batch"
    );

    // Layer by layer, by the sites 3, 4, ...
    let seen = all_activations(&model);
    let mut x = seen.get(Site::Block(0, BlockSite::ResidPre)).unwrap();
    for (layer, block) in model.blocks.iter().enumerate() {
        let of_layer = Dropout::new(
            0.5,
            DropoutKey {
                site: 3 + layer as u64,
                ..key
            },
        );
        x = block.forward_with_dropout(x, &model.masks()[layer], layer, &of_layer, &mut NoProbe);
    }
    assert_eq!(values(model.unembed(x, &mut NoProbe)), whole);
}

#[test]
#[should_panic(expected = "blocks.0.attn.hook_pattern cannot be changed and dropped from")]
fn a_pattern_is_not_changed_and_dropped_from_in_one_pass() {
    let model = model(&config(None));
    let dropout = Dropout::new(0.5, DropoutKey::default());
    let pattern = Site::Attention(0, AttentionSite::Pattern);
    let mut edits = Edits::default().at(pattern, Edit::Zero);
    let _ = model.final_stream_with_dropout(tokens(), &dropout, &mut edits);
}

#[test]
fn every_site_of_the_model_is_met_and_its_name_reads_back() {
    for (architecture, model) in models() {
        let seen = all_activations(&model);
        for site in model.sites() {
            let name = site.to_string();
            assert_eq!(name.parse::<Site>().unwrap(), site, "{name}");
            let met = match site.head_axis() {
                Some(_) => seen.get::<4>(site).is_some(),
                None => seen.get::<3>(site).is_some(),
            };
            assert!(met, "{architecture}: {name} was not met");
        }
    }
}

/// Gives back what it gets, but says that it changes it.
struct Echo(fn(Site) -> bool);

impl Probe for Echo {
    fn interest(&self, site: Site) -> Interest {
        if (self.0)(site) {
            Interest::Change
        } else {
            Interest::Skip
        }
    }

    fn at<const D: usize>(&mut self, _: Site, activation: Tensor<D>) -> Tensor<D> {
        activation
    }
}

#[test]
fn putting_back_what_was_there_changes_nothing() {
    for (name, model) in models() {
        let expected = model.forward(tokens());
        assert_close(
            name,
            model.forward_probed(tokens(), &mut Echo(|_| true)),
            expected.clone(),
        );
        let one = |site: Site| matches!(site, Site::Block(1, BlockSite::KInput));
        assert_close(
            name,
            model.forward_probed(tokens(), &mut Echo(one)),
            expected,
        );
    }
}

#[test]
fn switching_a_head_off_takes_its_result_out_of_the_stream() {
    for (name, model) in models() {
        let seen = all_activations(&model);
        let last = LAYERS - 1;
        let added = Site::Block(last, BlockSite::AttnOut);
        let mut switch = Edits::default().part(
            Site::Attention(last, AttentionSite::Z),
            Part::heads(&[1]),
            Edit::Zero,
        );
        let off = model
            .activations_probed(tokens(), &[added], &mut switch)
            .unwrap();
        let head = seen
            .get::<4>(Site::Attention(last, AttentionSite::Result))
            .unwrap()
            .narrow(2, 1, 1)
            .squeeze_dim(2);
        if model.blocks[last].ln1_post.is_some() {
            // Less to normalise: what is left is larger.
            assert_ne!(
                values(off.tensor::<3>(added)),
                values(seen.tensor::<3>(added))
            );
            continue;
        }
        let expected = seen.tensor::<3>(added) - head;
        assert_close(name, off.tensor(added), expected);
    }
}

#[test]
fn a_token_changes_no_bit_before_it_and_with_a_window_none_far_after_it() {
    for (name, model) in models() {
        let changed =
            Tensor::<2, Int>::from_ints([[0, 1, 2, 3, 6, 5], [6, 6, 5, 1, 3, 2]], &Device::flex());
        let before = |tokens| values(model.forward(tokens).narrow(1, 0, 4));
        let after = |tokens| values(model.forward(tokens).narrow(1, 4, 1));
        assert_eq!(before(tokens()), before(changed.clone()), "{name}");
        assert_ne!(after(tokens()), after(changed), "{name}");
    }
    // One layer with a window of 2 sees the token before, and no further.
    let model = model(&DecoderConfig {
        window: Some(2),
        n_layers: 1,
        ..config(None)
    });
    let changed =
        Tensor::<2, Int>::from_ints([[6, 1, 2, 3, 4, 5], [0, 6, 5, 1, 0, 2]], &Device::flex());
    let at = |tokens, position| values(model.forward(tokens).narrow(1, position, 1));
    assert_ne!(at(tokens(), 1), at(changed.clone(), 1));
    assert_eq!(at(tokens(), 2), at(changed, 2));
}

#[test]
fn the_first_activation_that_exceeds_the_budget_is_named_with_its_bytes() {
    let model = model(&config(None));
    let (embed, pattern) = (Site::Embed, Site::Attention(0, AttentionSite::Pattern));
    // 2 sequences of 6 tokens: the stream is 24 wide, a pattern has 4 heads of 6·6.
    let (stream_bytes, pattern_bytes) = (2 * 6 * 24 * 4, 2 * 4 * 6 * 6 * 4);
    let both = stream_bytes + pattern_bytes;
    let within = |budget| model.activations_within(tokens(), &[embed, pattern], budget);
    assert_eq!(within(both).unwrap().bytes(), both);
    let error = within(both - 1).unwrap_err();
    let expected = ActivationsError::DoesNotFit {
        site: pattern,
        bytes: pattern_bytes,
        used: stream_bytes,
        budget: both - 1,
    };
    assert_eq!(error, expected);
    let message =
        "blocks.0.attn.hook_pattern takes 1152 bytes, and 1152 of 2303 are taken".to_owned();
    assert_eq!(error.to_string(), message);
    let error = within(0).unwrap_err().to_string();
    assert_eq!(error, "hook_embed takes 1152 bytes, and 0 of 0 are taken");
}

#[test]
fn a_site_that_the_model_lacks_is_an_error_and_not_an_empty_place() {
    let model = model(&config(None));
    let mlp_out = Site::Block(1, BlockSite::MlpOut);
    let expected = "blocks.1.hook_mlp_out is not in this model";
    let sites = [Site::Embed, mlp_out];
    let error = model.activations(tokens(), &sites).unwrap_err();
    assert_eq!(error.to_string(), expected);
    // The probe by itself, in a pass that meets no such site.
    let mut capture = Capture::new(&sites, 1 << 20);
    let _ = model.forward_probed(tokens(), &mut capture);
    let error = capture.into_activations().unwrap_err();
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_site_met_three_times_is_counted_once() {
    // Queries with inputs of their own: the norm is met for queries, keys and values.
    let model = model(&config(None));
    let normalized = Site::Ln1(1, NormSite::Normalized);
    let bytes = 2 * 6 * 24 * 4;
    let mut capture = Capture::new(&[normalized], bytes);
    let mut edits = Edits::default().at(Site::Block(1, BlockSite::QInput), Edit::Scale(2.0));
    let _ = model.forward_probed(tokens(), &mut (&mut edits, &mut capture));
    let seen = capture.into_activations().unwrap();
    assert_eq!(seen.bytes(), bytes);
}

#[test]
fn initial_values_follow_from_seed_and_path_alone() {
    let bytes =
        |seed| weights_to_bytes(&config(None).try_init(seed, &Device::flex()).unwrap()).unwrap();
    let reference = bytes(1);
    assert_eq!(reference, bytes(1));
    assert_ne!(reference, bytes(2));
    // A model with one more kind of parameter has the same values where both have the same path.
    let larger = config(Some(plain(Activation::Relu)))
        .try_init(1, &Device::flex())
        .unwrap();
    let smaller = config(None).try_init(1, &Device::flex()).unwrap();
    assert_eq!(values(larger.unembedding()), values(smaller.unembedding()));
    assert_ne!(
        values(larger.blocks[0].attn.w_q.weight.val()),
        values(larger.blocks[1].attn.w_q.weight.val())
    );
}

#[test]
fn initialisations_have_the_deviations_they_promise() {
    let deviation = |initialization, matrix: fn(&Decoder) -> Tensor<2>| {
        let wide = DecoderConfig {
            d_model: 64,
            initialization,
            init_std: 0.5,
            ..config(Some(plain(Activation::Relu)))
        };
        let values = values(matrix(&wide.try_init(0, &Device::flex()).unwrap()));
        (values.iter().map(|value| value * value).sum::<f32>() / values.len() as f32).sqrt()
    };
    let [w_q, w_o]: [fn(&Decoder) -> Tensor<2>; 2] = [
        |model| model.blocks[1].attn.w_q.weight.val(),
        |model| model.blocks[1].attn.w_o.weight.val(),
    ];
    // 3 layers of 2 parts each write to the stream. 4096 numbers: the deviation is known to about 1
    // %.
    for (initialization, reads, writes) in [
        (Initialization::Gpt2, 0.5, 0.5 / 6f32.sqrt()),
        (Initialization::Normal, 0.5, 0.5),
        (Initialization::Xavier, 0.125, 0.125),
    ] {
        for (found, expected) in [
            (deviation(initialization, w_q), reads),
            (deviation(initialization, w_o), writes),
        ] {
            assert!(
                (found / expected - 1.0).abs() < 0.04,
                "{initialization:?}: {found}, not {expected}"
            );
        }
    }
}

#[test]
fn the_costs_count_every_parameter() {
    for (name, config) in architectures() {
        let counted: usize = config.costs().iter().map(|cost| cost.parameters).sum();
        assert_eq!(
            counted,
            burn::module::Module::num_params(&model(&config)),
            "{name}"
        );
    }
}

#[test]
fn weights_survive_the_round_trip_bit_for_bit_and_wrong_ones_are_named() {
    for (name, config) in architectures() {
        let bytes = weights_to_bytes(&model(&config)).unwrap();
        let init = |config: DecoderConfig| config.try_init(9, &Device::flex()).unwrap();
        let read = weights_from_bytes(init(config.clone()), &bytes).unwrap();
        assert_eq!(weights_to_bytes(&read).unwrap(), bytes, "{name}");

        let deeper = init(DecoderConfig {
            n_layers: LAYERS + 1,
            ..config.clone()
        });
        let error = weights_from_bytes(deeper, &bytes).unwrap_err().to_string();
        assert!(error.starts_with("the weights lack blocks.3."), "{error}");
        let shallower = init(DecoderConfig {
            n_layers: LAYERS - 1,
            ..config.clone()
        });
        let error = weights_from_bytes(shallower, &bytes)
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("the weights hold blocks.2."), "{error}");
        let wider = init(DecoderConfig {
            vocabulary: 8,
            ..config.clone()
        });
        let error = weights_from_bytes(wider, &bytes).unwrap_err().to_string();
        assert!(error.contains("w_e"), "{error}");
        assert!(weights_from_bytes(init(config), &[1, 2, 3]).is_err());
    }
}

#[test]
fn what_a_head_adds_through_a_norm_can_be_taken_out_of_the_stream() {
    for (name, model) in models() {
        let (heads, attn_out) = (Site::HeadsAdded(1), Site::Block(1, BlockSite::AttnOut));
        if !model.has(heads) {
            continue;
        }
        let seen = all_activations(&model);
        let mut without = Edits::default().part(heads, Part::heads(&[2]), Edit::Zero);
        let changed = model
            .activations_probed(tokens(), &[attn_out], &mut without)
            .unwrap();
        let head = seen.tensor::<4>(heads).narrow(2, 2, 1).squeeze_dim(2);
        let expected = seen.tensor::<3>(attn_out) - head;
        assert_close(name, changed.tensor(attn_out), expected);
    }
}
