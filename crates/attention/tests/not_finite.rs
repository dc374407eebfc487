//! NaN and ±∞ in queries, keys, values and gradients reach exactly the queries that may attend to
//! them, and the gradients of these queries' pairs: at every place, under every kind of mask, by the
//! kernel (f32) and by the composed equation (f64).

mod common;

use burn::tensor::{Bool, DType, Device, Tensor, TensorData};
use common::{NaiveInput, Sizes, naive, numbers, tensor, values};
use headlight_attention::{
    AttentionOptions, Mask, attention, attention_scores, attention_weights, masked_scores,
    softmax_of_scores, weighted_sum,
};

const POISONS: [f64; 3] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];

fn sizes(queries: usize, keys: usize) -> Sizes {
    Sizes {
        batch: 2,
        heads: 4,
        kv_heads: 2,
        queries,
        keys,
        d_head: 3,
        d_value: 2,
    }
}

/// Whether query `q` of head `h` in row `b` may attend to key `k`.
type Allowed = dyn Fn(usize, usize, usize, usize) -> bool;

struct Masking {
    name: &'static str,
    mask: Mask,
    allowed: Box<Allowed>,
    with_bias: bool,
}

/// Every kind of mask, beside its definition in words of rows and columns.
fn maskings(sizes: Sizes) -> Vec<Masking> {
    let Sizes {
        batch,
        heads,
        queries,
        keys,
        ..
    } = sizes;
    let distance = move |q: usize, k: usize| (q + keys) as i64 - (queries + k) as i64;
    let kept = move |b: usize, h: usize, q: usize, k: usize| {
        !(b * 5 + h * 3 + q * 7 + k * 11).is_multiple_of(3)
    };
    let mut flags = Vec::new();
    for b in 0..batch {
        for h in 0..heads {
            for q in 0..queries {
                flags.extend((0..keys).map(|k| kept(b, h, q, k)));
            }
        }
    }
    let flags = TensorData::new(flags, [batch, heads, queries, keys]);
    let keep = Mask::allowed(Tensor::<4, Bool>::from_data(flags, &Device::flex()));
    let lengths = [keys - 2, 1];
    let masking = |name, mask, allowed: Box<Allowed>, with_bias| Masking {
        name,
        mask,
        allowed,
        with_bias,
    };
    vec![
        masking("none", Mask::none(), Box::new(|_, _, _, _| true), false),
        masking(
            "causal",
            Mask::causal(),
            Box::new(move |_, _, q, k| distance(q, k) >= 0),
            false,
        ),
        masking(
            "window",
            Mask::window(2),
            Box::new(move |_, _, q, k| (0..2).contains(&distance(q, k))),
            false,
        ),
        masking(
            "lengths",
            Mask::lengths(&lengths),
            Box::new(move |b, _, _, k| k < lengths[b]),
            false,
        ),
        masking("allowed", keep.clone(), Box::new(kept), false),
        masking(
            "causal and lengths and bias",
            Mask::causal().and(Mask::lengths(&lengths)),
            Box::new(move |b, _, q, k| distance(q, k) >= 0 && k < lengths[b]),
            true,
        ),
        masking(
            "window and allowed and bias",
            Mask::window(3).and(keep),
            Box::new(move |b, h, q, k| (0..3).contains(&distance(q, k)) && kept(b, h, q, k)),
            true,
        ),
    ]
}

/// Query, key, value, the factors of the output in the loss, bias.
struct Numbers {
    query: Vec<f64>,
    key: Vec<f64>,
    value: Vec<f64>,
    factors: Vec<f64>,
    bias: Vec<f64>,
}

impl Numbers {
    fn new(sizes: Sizes) -> Self {
        let draw = |dims: [usize; 4], salt| -> Vec<f64> {
            let numbers = numbers(dims.iter().product(), salt);
            // Rounded to f32 first, so that every dtype starts from the same numbers.
            numbers.iter().map(|&x| f64::from(x as f32)).collect()
        };
        Self {
            query: draw(sizes.query(), 1),
            key: draw(sizes.key(), 2),
            value: draw(sizes.value(), 3),
            factors: draw(sizes.output(), 4),
            bias: draw(sizes.scores(), 5),
        }
    }

    fn cleaned(&self) -> Self {
        let clean = |numbers: &[f64]| -> Vec<f64> {
            let clean = |&x: &f64| if x.is_finite() { x } else { 0.0 };
            numbers.iter().map(clean).collect()
        };
        Self {
            query: clean(&self.query),
            key: clean(&self.key),
            value: clean(&self.value),
            factors: clean(&self.factors),
            bias: self.bias.clone(),
        }
    }
}

/// The loss, of which the upstream gradient follows.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Loss {
    /// `Σ factors·z`: the gradient of the output is finite where the output is NaN.
    Linear,
    /// `Σ factors·z²/2`: the gradient of the output is NaN where the output is.
    Square,
}

/// Output and gradients of query, key, value and bias.
struct Results {
    parts: Vec<(&'static str, Vec<f64>)>,
}

/// The definition: loops over the pairs that may attend. A query is reached if it, a key or a value
/// it may attend to, or its factor in the loss is not finite; a factor only reaches gradients.
fn expected(sizes: Sizes, masking: &Masking, numbers: &Numbers, loss: Loss) -> Results {
    let Sizes {
        batch,
        heads,
        kv_heads,
        queries,
        keys,
        d_head,
        d_value,
    } = sizes;
    let is_bad = |numbers: &[f64], row: usize, width: usize| {
        numbers[row * width..][..width]
            .iter()
            .any(|x| !x.is_finite())
    };
    let kv_row = |b: usize, h: usize, k: usize| (b * kv_heads + h / (heads / kv_heads)) * keys + k;
    let query_row = |b: usize, h: usize, q: usize| (b * heads + h) * queries + q;
    let is_reached = |b: usize, h: usize, q: usize| {
        (0..keys).any(|k| {
            (masking.allowed)(b, h, q, k)
                && (is_bad(&numbers.query, query_row(b, h, q), d_head)
                    || is_bad(&numbers.key, kv_row(b, h, k), d_head)
                    || is_bad(&numbers.value, kv_row(b, h, k), d_value))
        })
    };
    let has_bad_factor =
        |b: usize, h: usize, q: usize| is_bad(&numbers.factors, query_row(b, h, q), d_value);
    let clean = numbers.cleaned();
    let run = |upstream: &[f64], allowed: &dyn Fn(usize, usize, usize, usize) -> bool| {
        naive(&NaiveInput {
            sizes,
            query: &clean.query,
            key: &clean.key,
            value: &clean.value,
            upstream,
            bias: masking.with_bias.then_some(&clean.bias),
            allowed,
            scale: 1.0 / (d_head as f64).sqrt(),
            softcap: None,
        })
    };
    let forward = run(&clean.factors, &|b, h, q, k| {
        (masking.allowed)(b, h, q, k) && !is_reached(b, h, q)
    });
    let upstream: Vec<f64> = match loss {
        Loss::Linear => clean.factors.clone(),
        Loss::Square => clean
            .factors
            .iter()
            .zip(&forward.output)
            .map(|(a, b)| a * b)
            .collect(),
    };
    let backward = run(&upstream, &|b, h, q, k| {
        (masking.allowed)(b, h, q, k) && !is_reached(b, h, q) && !has_bad_factor(b, h, q)
    });
    let (mut output, mut d_query) = (forward.output, backward.d_query);
    let (mut d_key, mut d_value_rows) = (backward.d_key, backward.d_value);
    let mut d_bias = backward.d_bias;
    for b in 0..batch {
        for h in 0..heads {
            for q in 0..queries {
                let row = query_row(b, h, q);
                if is_reached(b, h, q) {
                    output[row * d_value..][..d_value].fill(f64::NAN);
                }
                if !is_reached(b, h, q) && !has_bad_factor(b, h, q) {
                    continue;
                }
                for k in (0..keys).filter(|&k| (masking.allowed)(b, h, q, k)) {
                    d_query[row * d_head..][..d_head].fill(f64::NAN);
                    d_key[kv_row(b, h, k) * d_head..][..d_head].fill(f64::NAN);
                    d_value_rows[kv_row(b, h, k) * d_value..][..d_value].fill(f64::NAN);
                    d_bias[row * keys + k] = f64::NAN;
                }
            }
        }
    }
    let mut parts = vec![
        ("output", output),
        ("d_query", d_query),
        ("d_key", d_key),
        ("d_value", d_value_rows),
    ];
    if masking.with_bias {
        parts.push(("d_bias", d_bias));
    }
    Results { parts }
}

/// The way through the crate.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    /// f32 on Flex: the kernel.
    Kernel,
    /// f64 on Flex: composed.
    Composed,
    /// The equation by hand, step by step, as a probe calls it.
    StepByStep,
}

impl Way {
    const ALL: [Self; 3] = [Self::Kernel, Self::Composed, Self::StepByStep];
}

fn found(sizes: Sizes, masking: &Masking, numbers: &Numbers, loss: Loss, way: Way) -> Results {
    let device = Device::flex().autodiff();
    let dtype = match way {
        Way::Kernel => DType::F32,
        Way::Composed | Way::StepByStep => DType::F64,
    };
    let leaf = |values: &[f64], dims| tensor(values, dims, dtype, &device).require_grad();
    let q = leaf(&numbers.query, sizes.query());
    let k = leaf(&numbers.key, sizes.key());
    let v = leaf(&numbers.value, sizes.value());
    let bias = leaf(&numbers.bias, sizes.scores());
    let mask = if masking.with_bias {
        masking.mask.and(Mask::bias(bias.clone()))
    } else {
        masking.mask.clone()
    };
    let options = AttentionOptions::default();
    let z = if way == Way::StepByStep {
        let scores = attention_scores(q.clone(), k.clone(), &mask, &options);
        weighted_sum(softmax_of_scores(scores), v.clone(), &mask)
    } else {
        attention(q.clone(), k.clone(), v.clone(), &mask, &options)
    };
    let factors = tensor(&numbers.factors, sizes.output(), dtype, &device);
    let weighted = match loss {
        Loss::Linear => z.clone() * factors,
        Loss::Square => z.clone() * z.clone() * factors.mul_scalar(0.5),
    };
    let gradients = weighted.sum().backward();
    let gradient = |leaf: &Tensor<4>| values(leaf.grad(&gradients).expect("a gradient"));
    let mut parts = vec![
        ("output", values(z)),
        ("d_query", gradient(&q)),
        ("d_key", gradient(&k)),
        ("d_value", gradient(&v)),
    ];
    if masking.with_bias {
        parts.push(("d_bias", gradient(&bias)));
    }
    Results { parts }
}

/// NaN in the same places, and equal numbers elsewhere.
#[track_caller]
fn assert_same(case: &str, found: &Results, expected: &Results, bound: f64) {
    for ((part, found), (_, expected)) in found.parts.iter().zip(&expected.parts) {
        let finite = expected.iter().filter(|x| x.is_finite());
        let size = finite.fold(1f64, |size, x| size.max(x.abs()));
        for (i, (a, b)) in found.iter().zip(expected).enumerate() {
            let same = if b.is_nan() {
                a.is_nan()
            } else {
                (a - b).abs() <= bound * size
            };
            assert!(same, "{case}: {part}[{i}] is {a}, not {b}");
        }
    }
}

fn check(sizes: Sizes, case: &str, masking: &Masking, numbers: &Numbers, loss: Loss, ways: &[Way]) {
    for &way in ways {
        let mut expected = expected(sizes, masking, numbers, loss);
        if way != Way::Kernel {
            // Composed of plain operations, a number that is not finite gets no gradient itself.
            let inputs = [&numbers.query, &numbers.key, &numbers.value];
            for (input, (_, gradient)) in inputs.into_iter().zip(&mut expected.parts[1..4]) {
                for (number, gradient) in input.iter().zip(gradient) {
                    if !number.is_finite() {
                        *gradient = 0.0;
                    }
                }
            }
        }
        let bound = if way == Way::Kernel { 1e-5 } else { 1e-12 };
        let found = found(sizes, masking, numbers, loss, way);
        let case = format!("{case}, mask {}, {loss:?}, {way:?}", masking.name);
        assert_same(&case, &found, &expected, bound);
    }
}

#[test]
fn a_key_or_value_that_is_not_finite_reaches_only_queries_that_may_attend_to_it() {
    let sizes = sizes(4, 5);
    for masking in maskings(sizes) {
        for at in 0..sizes.keys {
            for poison in POISONS {
                for in_value in [false, true] {
                    // One number of one key of one head in one row of the batch.
                    let mut numbers = Numbers::new(sizes);
                    let row = (sizes.kv_heads + 1) * sizes.keys + at;
                    if in_value {
                        numbers.value[row * sizes.d_value + 1] = poison;
                    } else {
                        numbers.key[row * sizes.d_head + 2] = poison;
                    }
                    let place = if in_value { "value" } else { "key" };
                    let case = format!("{poison} in {place} {at}");
                    for loss in [Loss::Linear, Loss::Square] {
                        check(sizes, &case, &masking, &numbers, loss, &Way::ALL);
                    }
                }
            }
        }
    }
}

#[test]
fn a_query_that_is_not_finite_reaches_only_the_gradients_of_keys_it_may_attend_to() {
    let sizes = sizes(4, 5);
    for masking in maskings(sizes) {
        for at in 0..sizes.queries {
            for poison in POISONS {
                let mut numbers = Numbers::new(sizes);
                numbers.query[(sizes.heads + at) * sizes.d_head] = poison;
                let case = format!("{poison} in query {at}");
                for loss in [Loss::Linear, Loss::Square] {
                    check(sizes, &case, &masking, &numbers, loss, &Way::ALL);
                }
            }
        }
    }
}

#[test]
fn a_gradient_that_is_not_finite_reaches_only_the_keys_of_its_query() {
    // Composed of plain operations, the gradient of the values is Pᵀ·dO, whatever is in dO: this is
    // the kernel alone.
    let sizes = sizes(4, 5);
    for masking in maskings(sizes) {
        for at in 0..sizes.queries {
            for poison in POISONS {
                let mut numbers = Numbers::new(sizes);
                numbers.factors
                    [(2 * sizes.heads - 1) * sizes.queries * sizes.d_value + at * sizes.d_value] =
                    poison;
                let case = format!("{poison} in the gradient of output {at}");
                check(
                    sizes,
                    &case,
                    &masking,
                    &numbers,
                    Loss::Linear,
                    &[Way::Kernel],
                );
            }
        }
    }
}

#[test]
fn beyond_one_tile_a_poisoned_key_stays_where_it_is_seen() {
    // Tiles have 128 queries and 256 keys: the key stands in the second tile of keys, and is seen
    // by queries of the second and third tiles of queries.
    let sizes = Sizes {
        batch: 1,
        heads: 2,
        kv_heads: 1,
        queries: 300,
        keys: 300,
        d_head: 4,
        d_value: 4,
    };
    let window = Masking {
        name: "window",
        mask: Mask::window(20),
        allowed: Box::new(|_, _, q, k| k <= q && q < k + 20),
        with_bias: false,
    };
    for at in [120, 250, 260] {
        let mut numbers = Numbers::new(sizes);
        numbers.key[at * sizes.d_head] = f64::NAN;
        numbers.value[(at - 15) * sizes.d_value] = f64::INFINITY;
        for loss in [Loss::Linear, Loss::Square] {
            check(
                sizes,
                &format!("key {at}"),
                &window,
                &numbers,
                loss,
                &Way::ALL,
            );
        }
    }
}

#[test]
fn weights_are_nan_where_a_query_may_attend_and_exactly_zero_where_it_may_not() {
    let sizes = sizes(4, 5);
    for masking in maskings(sizes) {
        if masking.with_bias {
            continue;
        }
        for at in 0..sizes.keys {
            let mut numbers = Numbers::new(sizes);
            numbers.key[at * sizes.d_head] = f64::NAN;
            let options = AttentionOptions::default();
            for (way, dtype, device) in [
                ("native", DType::F32, Device::flex()),
                ("composed", DType::F64, Device::flex()),
                ("with gradients", DType::F32, Device::flex().autodiff()),
            ] {
                let q = tensor(&numbers.query, sizes.query(), dtype, &device);
                let k = tensor(&numbers.key, sizes.key(), dtype, &device);
                let weights = values(attention_weights(q, k, &masking.mask, &options));
                let mut weights = weights.into_iter();
                for b in 0..sizes.batch {
                    for h in 0..sizes.heads {
                        // Only key/value head 0 of row 0 has the key.
                        let has_key = b == 0 && h < sizes.heads / sizes.kv_heads;
                        for q in 0..sizes.queries {
                            let may = |k| (masking.allowed)(b, h, q, k);
                            let is_reached = has_key && may(at);
                            let row: Vec<f64> = weights.by_ref().take(sizes.keys).collect();
                            for (k, weight) in row.into_iter().enumerate() {
                                let right = match (may(k), is_reached) {
                                    (false, _) => weight == 0.0,
                                    (true, false) => weight.is_finite() && weight > 0.0,
                                    (true, true) => weight.is_nan(),
                                };
                                let name = masking.name;
                                assert!(
                                    right,
                                    "{name} {way}: key {at}, [{b},{h},{q},{k}] {weight}"
                                );
                            }
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn values_step_by_step_reach_only_queries_that_may_attend_to_them() {
    let sizes = sizes(4, 5);
    let device = Device::flex();
    for masking in maskings(sizes)
        .into_iter()
        .filter(|masking| !masking.with_bias)
    {
        for at in 0..sizes.keys {
            for poison in POISONS {
                let mut numbers = Numbers::new(sizes);
                numbers.value[at * sizes.d_value] = poison;
                let [q, k, v] = [
                    tensor(&numbers.query, sizes.query(), DType::F32, &device),
                    tensor(&numbers.key, sizes.key(), DType::F32, &device),
                    tensor(&numbers.value, sizes.value(), DType::F32, &device),
                ];
                let options = AttentionOptions::default();
                let weights = attention_weights(q, k, &masking.mask, &options);
                let z = values(weighted_sum(weights, v, &masking.mask));
                let expected = expected(sizes, &masking, &numbers, Loss::Linear);
                let found = Results {
                    parts: vec![("output", z)],
                };
                let case = format!("{poison} in value {at}, mask {}", masking.name);
                assert_same(&case, &found, &expected, 1e-5);
            }
        }
    }
}

#[test]
fn scores_that_are_masked_again_forget_what_was_put_there() {
    let sizes = sizes(4, 5);
    let device = Device::flex();
    for masking in maskings(sizes) {
        for put in [0.0, 1e30, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let scores = tensor(
                &vec![put; sizes.scores().iter().product()],
                sizes.scores(),
                DType::F32,
                &device,
            );
            let scores = masked_scores(scores, &masking.mask);
            let weights = values(softmax_of_scores(scores.clone()));
            let scores = values(scores);
            let mut index = 0;
            for b in 0..sizes.batch {
                for h in 0..sizes.heads {
                    for q in 0..sizes.queries {
                        for k in 0..sizes.keys {
                            let name = masking.name;
                            if !(masking.allowed)(b, h, q, k) {
                                assert_eq!(scores[index], f64::NEG_INFINITY, "{name} {put}");
                                assert_eq!(weights[index], 0.0, "{name} {put}");
                            } else if put.is_nan() {
                                assert!(scores[index].is_nan() && weights[index].is_nan());
                            } else {
                                assert_eq!(scores[index], f64::from(put as f32), "{name} {put}");
                            }
                            index += 1;
                        }
                    }
                }
            }
        }
    }
}
