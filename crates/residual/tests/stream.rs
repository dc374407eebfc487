//! The residual stream is a sum, and looking at it changes nothing.

use burn::tensor::{Device, Int, Tensor};
use headlight_residual::{
    Activation, AttentionSite, BlockSite, Capture, Decoder, DecoderConfig, Interest, NormKind, Probe, Site, SwitchOff,
    weights_from_bytes, weights_to_bytes,
};

const LAYERS: usize = 3;

fn config(feed_forward: Option<(usize, Activation)>) -> DecoderConfig {
    DecoderConfig {
        vocabulary: 7,
        n_ctx: 6,
        d_model: 12,
        n_layers: LAYERS,
        n_heads: 3,
        feed_forward,
        // Large enough that no activation is negligible.
        init_std: 0.4,
        ..DecoderConfig::default()
    }
}

fn models() -> Vec<Decoder> {
    let wide = Some((20, Activation::Gelu));
    [
        config(None),
        config(Some((20, Activation::Relu))),
        config(wide),
        DecoderConfig { norm: NormKind::RmsNorm, ..config(wide) },
        DecoderConfig { norm: NormKind::None, ..config(wide) },
    ]
    .map(|config| config.try_init(3, &Device::flex()).unwrap())
    .into()
}

fn tokens() -> Tensor<2, Int> {
    Tensor::from_ints([[0, 1, 2, 3, 4, 5], [6, 6, 5, 1, 0, 2]], &Device::flex())
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}

#[track_caller]
fn assert_close<const D: usize>(a: Tensor<D>, b: Tensor<D>) {
    assert_eq!(a.dims(), b.dims());
    let (a, b) = (values(a), values(b));
    let size = b.iter().fold(1f32, |size, value| size.max(value.abs()));
    for (a, b) in a.iter().zip(&b) {
        assert!((a - b).abs() <= 1e-5 * size, "{a} is not {b}");
    }
}

fn capture_all(model: &Decoder) -> (Capture, Tensor<3>) {
    let mut capture = Capture::new(&model.sites(), usize::MAX);
    let logits = model.forward_probed(tokens(), &mut capture);
    (capture, logits)
}

#[test]
fn the_final_stream_is_the_sum_of_all_contributions() {
    for model in models() {
        let (seen, _) = capture_all(&model);
        let mut sum = seen.get::<3>(Site::Embed).unwrap() + seen.get(Site::PosEmbed).unwrap();
        for layer in 0..LAYERS {
            sum = sum + seen.get(Site::Block(layer, BlockSite::AttnOut)).unwrap();
            if let Some(mlp_out) = seen.get(Site::Block(layer, BlockSite::MlpOut)) {
                sum = sum + mlp_out;
            }
        }
        assert_close(seen.get::<3>(Site::Block(LAYERS - 1, BlockSite::ResidPost)).unwrap(), sum);
    }
}

#[test]
fn each_step_of_a_block_adds_what_its_site_says() {
    for model in models() {
        let (seen, _) = capture_all(&model);
        for layer in 0..LAYERS {
            let at = |site| seen.get::<3>(Site::Block(layer, site));
            let after_attention = at(BlockSite::ResidPre).unwrap() + at(BlockSite::AttnOut).unwrap();
            match (at(BlockSite::ResidMid), at(BlockSite::MlpOut)) {
                (Some(mid), Some(mlp_out)) => {
                    assert_close(after_attention, mid.clone());
                    assert_close(mid + mlp_out, at(BlockSite::ResidPost).unwrap());
                }
                _ => assert_close(after_attention, at(BlockSite::ResidPost).unwrap()),
            }
            let results = seen.get::<4>(Site::Attention(layer, AttentionSite::Result)).unwrap();
            assert_close(results.sum_dim(2).squeeze_dim(2), at(BlockSite::AttnOut).unwrap());
            let pattern = seen.get::<4>(Site::Attention(layer, AttentionSite::Pattern)).unwrap();
            assert_close(pattern.clone().sum_dim(3), Tensor::ones([2, 3, 6, 1], &Device::flex()));
            let v = seen.get::<4>(Site::Attention(layer, AttentionSite::V)).unwrap();
            let z = seen.get::<4>(Site::Attention(layer, AttentionSite::Z)).unwrap();
            assert_close(pattern.matmul(v.swap_dims(1, 2)), z.swap_dims(1, 2));
        }
    }
}

#[test]
fn looking_changes_no_bit() {
    for model in models() {
        let (seen, looked_at) = capture_all(&model);
        assert!(seen.dropped().is_empty());
        assert_eq!(values(model.forward(tokens())), values(looked_at));
    }
}

#[test]
fn every_site_of_the_model_is_met_and_its_name_reads_back() {
    for model in models() {
        let (seen, _) = capture_all(&model);
        for site in model.sites() {
            let name = site.to_string();
            assert_eq!(name.parse::<Site>().unwrap(), site, "{name}");
            let met = match site {
                Site::Attention(..) => seen.get::<4>(site).is_some(),
                _ => seen.get::<3>(site).is_some(),
            };
            assert!(met, "{name} was not met");
        }
    }
}

/// Gives back what it gets, but says that it changes it.
struct Echo(fn(Site) -> bool);

impl Probe for Echo {
    fn interest(&self, site: Site) -> Interest {
        if (self.0)(site) { Interest::Change } else { Interest::Skip }
    }

    fn at<const D: usize>(&mut self, _: Site, activation: Tensor<D>) -> Tensor<D> {
        activation
    }
}

#[test]
fn putting_back_what_was_there_changes_nothing() {
    for model in models() {
        let expected = model.forward(tokens());
        assert_close(model.forward_probed(tokens(), &mut Echo(|_| true)), expected.clone());
        assert_close(
            model.forward_probed(tokens(), &mut Echo(|site| matches!(site, Site::Block(1, BlockSite::KInput)))),
            expected,
        );
    }
}

#[test]
fn switching_a_head_off_takes_its_result_out_of_the_stream() {
    for model in models() {
        let (seen, _) = capture_all(&model);
        let last = LAYERS - 1;
        let mut off = Capture::new(&[Site::Block(last, BlockSite::AttnOut)], usize::MAX);
        let _ = model.forward_probed(tokens(), &mut (SwitchOff::new(&[(last, 1)]), &mut off));
        let head = seen.get::<4>(Site::Attention(last, AttentionSite::Result)).unwrap().narrow(2, 1, 1).squeeze_dim(2);
        let expected = seen.get::<3>(Site::Block(last, BlockSite::AttnOut)).unwrap() - head;
        assert_close(off.get(Site::Block(last, BlockSite::AttnOut)).unwrap(), expected);
    }
}

#[test]
fn a_token_changes_no_bit_before_it() {
    for model in models() {
        let changed = Tensor::<2, Int>::from_ints([[0, 1, 2, 3, 6, 5], [6, 6, 5, 1, 3, 2]], &Device::flex());
        let before = |tokens| values(model.forward(tokens).narrow(1, 0, 4));
        let after = |tokens| values(model.forward(tokens).narrow(1, 4, 1));
        assert_eq!(before(tokens()), before(changed.clone()));
        assert_ne!(after(tokens()), after(changed));
    }
}

#[test]
fn a_capture_keeps_to_its_budget_and_names_what_it_dropped() {
    let model = &models()[0];
    let (embed, pattern) = (Site::Embed, Site::Attention(0, AttentionSite::Pattern));
    let bytes = 2 * 6 * 12 * 4;
    let mut capture = Capture::new(&[embed, pattern], bytes);
    let _ = model.forward_probed(tokens(), &mut capture);
    assert_eq!(capture.bytes(), bytes);
    assert!(capture.get::<3>(embed).is_some() && capture.get::<4>(pattern).is_none());
    assert_eq!(capture.dropped(), [pattern]);
}

#[test]
fn initial_values_follow_from_seed_and_path_alone() {
    let bytes = |seed| weights_to_bytes(&config(None).try_init(seed, &Device::flex()).unwrap()).unwrap();
    let reference = bytes(1);
    assert_eq!(reference, bytes(1));
    assert_ne!(reference, bytes(2));
    // A model with one more kind of parameter has the same values where both have the same path.
    let larger = config(Some((20, Activation::Relu))).try_init(1, &Device::flex()).unwrap();
    let smaller = config(None).try_init(1, &Device::flex()).unwrap();
    assert_eq!(values(larger.w_u.val()), values(smaller.w_u.val()));
    assert_ne!(values(larger.blocks[0].attn.w_q.weight.val()), values(larger.blocks[1].attn.w_q.weight.val()));
}

#[test]
fn weights_survive_the_round_trip_bit_for_bit_and_wrong_ones_are_named() {
    for model in &models()[..3] {
        let bytes = weights_to_bytes(model).unwrap();
        let n_layers = LAYERS;
        let feed_forward = model.blocks[0].mlp.as_ref().map(|_| (20, Activation::Gelu));
        let other = config(feed_forward).try_init(9, &Device::flex()).unwrap();
        let read = weights_from_bytes(other, &bytes).unwrap();
        assert_eq!(weights_to_bytes(&read).unwrap(), bytes);

        let init = |config: DecoderConfig| config.try_init(0, &Device::flex()).unwrap();
        let deeper = init(DecoderConfig { n_layers: n_layers + 1, ..config(feed_forward) });
        let error = weights_from_bytes(deeper, &bytes).unwrap_err().to_string();
        assert!(error.starts_with("the weights lack blocks.3."), "{error}");
        let shallower = init(DecoderConfig { n_layers: n_layers - 1, ..config(feed_forward) });
        let error = weights_from_bytes(shallower, &bytes).unwrap_err().to_string();
        assert!(error.starts_with("the weights hold blocks.2."), "{error}");
        let wider = init(DecoderConfig { vocabulary: 8, ..config(feed_forward) });
        let error = weights_from_bytes(wider, &bytes).unwrap_err().to_string();
        assert!(error.contains("w_e"), "{error}");
        assert!(weights_from_bytes(init(config(feed_forward)), &[1, 2, 3]).is_err());
    }
}
