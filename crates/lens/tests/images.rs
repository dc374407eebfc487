//! A model whose input is no text: it holds images and takes their numbers. What its one head at work
//! does is known.
//!
//! A patch is `[colour, one-hot of 3 | marked | 1]`. The first patch looks at the marked one, and its
//! class is the colour there.

use burn::{
    module::{Module, Param},
    tensor::{Device, Int, Tensor},
};
use headlight_attention::{AttentionOptions, Mask, MultiHeadAttention, MultiHeadAttentionConfig};
use headlight_heads::{Ablation, HeadName, MayAttend};
use headlight_lens::{
    Behaviour, LayerPattern, Patching, Place, ablate, mean_distance, score_targets, swap_follow,
};
use headlight_residual::{
    AnyProbe, AttentionSite, AttentionSizes, NoProbe, Probed, Site, Sizes, attention_probed,
    check_probed, token_tensor,
};

const PATCHES: usize = 4;
const COLOURS: usize = 3;
const WIDTH: usize = COLOURS + 2;
/// exp(−200) is 0 in f32.
const SHARP: f32 = 200.0;

/// Colours of the patches, and which of them is marked.
const IMAGES: [([usize; PATCHES], usize); 4] = [
    ([0, 1, 2, 2], 0),
    ([0, 1, 2, 2], 1),
    ([0, 1, 2, 2], 3),
    ([1, 1, 0, 2], 2),
];

#[derive(Module, Debug)]
struct Classifier {
    /// `[image, patch, WIDTH]`
    images: Param<Tensor<3>>,
    attention: MultiHeadAttention,
}

impl Probed for Classifier {
    fn sizes(&self) -> Sizes {
        Sizes {
            layers: vec![AttentionSizes::of(&self.attention, MayAttend::All)],
            d_model: WIDTH,
            n_ctx: Some(1),
            vocabulary: None,
        }
    }

    fn device(&self) -> Device {
        self.images.device()
    }

    fn sites(&self) -> Vec<Site> {
        Site::of_attention(0)
    }

    fn forward_probed(&self, rows: Tensor<2, Int>, probe: &mut dyn AnyProbe) -> Tensor<3> {
        let x = self.images.val().select(0, rows.squeeze_dim(1)); // [batch, patch, WIDTH]
        let inputs = [x.clone(), x.clone(), x];
        let out = attention_probed(&self.attention, inputs, &Mask::none(), 0, probe);
        out.narrow(1, 0, 1).narrow(2, 0, COLOURS) // [batch, 1, COLOURS]
    }
}

/// `[rows, columns]` with these cells, 0 elsewhere.
fn matrix(rows: usize, columns: usize, cells: &[(usize, usize, f32)]) -> Param<Tensor<2>> {
    let mut values = vec![0.0; rows * columns];
    for &(row, column, value) in cells {
        values[row * columns + column] = value;
    }
    let values = Tensor::<1>::from_floats(values.as_slice(), &Device::flex());
    Param::from_tensor(values.reshape([rows, columns]))
}

/// L0H0 looks at the marked patch. L0H1 looks at all alike and writes nothing.
fn model() -> Classifier {
    let device = Device::flex();
    let mut images = Vec::new();
    for (colours, marked) in IMAGES {
        for (patch, colour) in colours.into_iter().enumerate() {
            let mut values = [0.0; WIDTH];
            values[colour] = 1.0;
            values[COLOURS] = f32::from(u8::from(patch == marked));
            values[COLOURS + 1] = 1.0;
            images.extend(values);
        }
    }
    let images = Tensor::<1>::from_floats(images.as_slice(), &device);
    let config = MultiHeadAttentionConfig::new(WIDTH, 2)
        .with_d_head(COLOURS)
        .with_options(AttentionOptions::default().with_scale(1.0));
    let mut attention = config.init(&device);
    let colours = |from: usize, to: usize| [0, 1, 2].map(|i| (from + i, to + i, 1.0));
    attention.w_q.weight = matrix(WIDTH, 2 * COLOURS, &[(COLOURS + 1, 0, SHARP)]);
    attention.w_k.weight = matrix(WIDTH, 2 * COLOURS, &[(COLOURS, 0, 1.0)]);
    attention.w_v.weight = matrix(WIDTH, 2 * COLOURS, &colours(0, 0));
    attention.w_o.weight = matrix(2 * COLOURS, WIDTH, &colours(0, 0));
    Classifier {
        images: Param::from_tensor(images.reshape([IMAGES.len(), PATCHES, WIDTH])),
        attention,
    }
}

fn rows() -> Tensor<2, Int> {
    token_tensor(&[[0], [1], [2], [3]], &Device::flex())
}

/// To name the colour of the marked patch.
fn behaviour() -> Behaviour {
    let targets = IMAGES.map(|(colours, marked)| vec![colours[marked] as u32]);
    Behaviour::new(rows(), targets.to_vec(), vec![vec![true]; IMAGES.len()])
}

fn head(name: &str) -> HeadName {
    name.parse().unwrap()
}

#[test]
fn a_classifier_of_images_is_what_it_says_about_itself() {
    check_probed(&model(), rows()).unwrap();
}

#[test]
fn heads_are_ablated_where_an_id_is_an_image() {
    let (model, behaviour) = (model(), behaviour());
    let without = |name, ablation| {
        let performance = ablate(&model, &behaviour, &[head(name)], ablation).unwrap();
        performance.accuracy
    };
    assert_eq!(behaviour.measure(&model, &mut NoProbe).accuracy, 1.0);
    // All logits 0: the first of equal classes is said, right for two of four images.
    assert_eq!(without("L0H0", Ablation::Zero), 0.5);
    // The image before, 3 before 0: colours 0, 0, 1, 2 in place of 0, 1, 2, 0.
    assert_eq!(without("L0H0", Ablation::Resample), 0.25);
    for ablation in [Ablation::Zero, Ablation::Mean, Ablation::Resample] {
        assert_eq!(without("L0H1", ablation), 1.0);
    }
}

#[test]
fn places_of_a_patched_activation_are_patches() {
    let model = model();
    let patching = Patching::new(&model, &[0], &[2], 0).unwrap();
    assert_eq!(patching.answers(), [0, 2]);
    assert_eq!(patching.heads(), [1.0, 0.0]);
    // The class is read at the first patch.
    let patched = patching.at(Place::Head(head("L0H0")));
    assert_eq!(patched.by_position, [1.0, 0.0, 0.0, 0.0]);
}

#[test]
fn a_pattern_without_a_mask_is_scored_over_all_patches() {
    let model = model();
    let site = Site::Attention(0, AttentionSite::Pattern);
    let seen = model.activations(rows(), &[site]).unwrap();
    let weights = seen.tensor::<4>(site);
    let (dims, weights) = (
        weights.dims(),
        weights.into_data().try_into_vec::<f32>().unwrap(),
    );
    let pattern = LayerPattern::of_all_keys(dims, &weights);
    let marked = |image: usize, _: usize| Some([IMAGES[image].1]);
    let scores = score_targets(&pattern, marked).unwrap();
    assert_eq!([scores[0].value, scores[1].value], [1.0, 0.25]);
    assert_eq!([scores[0].null, scores[0].ceiling], [0.25, 1.0]);
    let distance = std::panic::catch_unwind(|| mean_distance(pattern));
    assert!(
        distance.is_err(),
        "keys after the query have no distance back"
    );
}

#[test]
fn an_image_does_not_stand_in_the_place_of_a_token() {
    let swap = swap_follow(&model(), &[vec![0]], &[], Ablation::Zero, 0);
    let expected = "Classifier does not give its vocabulary";
    assert_eq!(swap.unwrap_err().to_string(), expected);
}
