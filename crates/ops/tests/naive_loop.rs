//! The fused operations against the same thing as loops in f64, and against Burn's own operations
//! elsewhere.

use burn::{
    module::{Module, Param},
    nn::{Linear, LinearConfig},
    optim::{AdamWConfig, Optimizer},
    tensor::{DType, Device, Int, Tensor, TensorData},
};
use headlight_ops::{
    AdamWStep, adamw, apply, cross_entropy, gelu, gelu_feed_forward, gelu_tanh,
    gelu_tanh_feed_forward, layer_norm, linear, linear_cross_entropy, rms_norm, score_next_tokens,
    squared_norm, sum_with_squared_norm, swiglu,
};

fn numbers(count: usize, salt: usize) -> Vec<f64> {
    (0..count)
        .map(|i| f64::from((((i * 7919 + salt * 104_729) % 10_007) as f32 / 10_007.0 - 0.5) * 6.0))
        .collect()
}

fn tensor<const D: usize>(values: &[f64], dims: [usize; D], place: &Place) -> Tensor<D> {
    let data = TensorData::new(values.to_vec(), dims);
    Tensor::from_data(data, (&place.device, place.dtype))
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

#[track_caller]
fn assert_close(what: &str, found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let size = expected
        .iter()
        .fold(1f64, |size, value| size.max(value.abs()));
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= 1e-5 * size, "{what}[{i}] is {a}, not {b}");
    }
}

/// A device and the dtype of the tensors on it.
struct Place {
    device: Device,
    dtype: DType,
}

impl Place {
    fn runs_the_kernels(&self) -> bool {
        self.dtype == DType::F32 && self.device == Device::flex()
    }
}

/// f32 on Flex runs the kernels. f64 there, and Burn's earlier backend with the cargo feature
/// `ndarray`, run the composed operations.
#[cfg_attr(
    feature = "ndarray",
    expect(
        deprecated,
        reason = "Burn's earlier backend is compared for as long as it ships"
    )
)]
fn places() -> Vec<Place> {
    let flex = |dtype| Place {
        device: Device::flex(),
        dtype,
    };
    vec![
        flex(DType::F32),
        flex(DType::F64),
        #[cfg(feature = "ndarray")]
        Place {
            device: Device::ndarray(),
            dtype: DType::F32,
        },
    ]
}

fn places_with_gradients() -> Vec<Place> {
    let mut places = places();
    for place in &mut places {
        place.device = place.device.clone().autodiff();
    }
    places
}

const SHAPES: [[usize; 3]; 6] = [
    [1, 1, 1],
    [1, 7, 3],
    [2, 63, 16],
    [3, 65, 64],
    [1, 130, 80],
    [2, 2, 1000],
];

#[test]
fn layer_norm_and_its_gradients() {
    for dims in SHAPES.into_iter().filter(|dims| dims[2] > 1) {
        let [batch, pos, width] = dims;
        let count = batch * pos * width;
        let (x, upstream) = (numbers(count, 1), numbers(count, 2));
        let (gain, bias) = (numbers(width, 3), numbers(width, 4));
        let n = width as f64;
        let (mut y, mut d_x) = (vec![0.0; count], vec![0.0; count]);
        let (mut d_gain, mut d_bias) = (vec![0.0; width], vec![0.0; width]);
        for row in 0..batch * pos {
            let at = |i: usize| row * width + i;
            let mean = (0..width).map(|i| x[at(i)]).sum::<f64>() / n;
            let variance = (0..width).map(|i| (x[at(i)] - mean).powi(2)).sum::<f64>() / n;
            let inverse = 1.0 / (variance + 1e-5).sqrt();
            let normal = |i: usize| (x[at(i)] - mean) * inverse;
            let g = |i: usize| upstream[at(i)] * gain[i];
            let mean_g = (0..width).map(g).sum::<f64>() / n;
            let mean_gn = (0..width).map(|i| g(i) * normal(i)).sum::<f64>() / n;
            for i in 0..width {
                y[at(i)] = normal(i) * gain[i] + bias[i];
                d_x[at(i)] = inverse * (g(i) - mean_g - normal(i) * mean_gn);
                d_gain[i] += upstream[at(i)] * normal(i);
                d_bias[i] += upstream[at(i)];
            }
        }
        for place in places_with_gradients() {
            let x = tensor(&x, dims, &place).require_grad();
            let gain = tensor(&gain, [width], &place).require_grad();
            let bias = tensor(&bias, [width], &place).require_grad();
            let output = layer_norm(x.clone(), gain.clone(), bias.clone(), 1e-5);
            assert_close("y", &values(output.clone()), &y);
            let gradients = (output * tensor(&upstream, dims, &place)).sum().backward();
            assert_close("d_x", &values(x.grad(&gradients).unwrap()), &d_x);
            assert_close("d_gain", &values(gain.grad(&gradients).unwrap()), &d_gain);
            assert_close("d_bias", &values(bias.grad(&gradients).unwrap()), &d_bias);
        }
    }
}

/// The density of the standard normal.
fn density(x: f64) -> f64 {
    (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

/// Its integral, by Simpson's rule from 0.
fn distribution(x: f64) -> f64 {
    let (n, step) = (200, x / 200.0);
    let inner = (1..n)
        .map(|i| density(f64::from(i) * step) * if i % 2 == 1 { 4.0 } else { 2.0 })
        .sum::<f64>();
    0.5 + step / 3.0 * (density(0.0) + inner + density(x))
}

#[test]
fn gelu_and_its_gradient() {
    for dims in SHAPES {
        let count = dims.iter().product();
        let (x, upstream) = (numbers(count, 5), numbers(count, 6));
        let expected_y: Vec<f64> = x.iter().map(|&x| x * distribution(x)).collect();
        let slope = |x: f64| distribution(x) + x * density(x);
        let expected_d_x: Vec<f64> = x
            .iter()
            .zip(&upstream)
            .map(|(&x, upstream)| upstream * slope(x))
            .collect();
        for place in places_with_gradients() {
            let x = tensor(&x, dims, &place).require_grad();
            let y = gelu(x.clone());
            let gradients = (y.clone() * tensor(&upstream, dims, &place))
                .sum()
                .backward();
            assert_close("y", &values(y), &expected_y);
            assert_close("d_x", &values(x.grad(&gradients).unwrap()), &expected_d_x);
        }
    }
}

#[test]
fn gelu_tanh_and_its_gradient() {
    let (factor, cubic) = ((2.0 / std::f64::consts::PI).sqrt(), 0.044_715);
    let tanh = |x: f64| (factor * (x + cubic * x.powi(3))).tanh();
    let slope = |x: f64| {
        0.5 * (1.0 + tanh(x))
            + 0.5 * x * (1.0 - tanh(x).powi(2)) * factor * (1.0 + 3.0 * cubic * x * x)
    };
    for dims in SHAPES {
        let count = dims.iter().product();
        let (x, upstream) = (numbers(count, 5), numbers(count, 6));
        let expected_y: Vec<f64> = x.iter().map(|&x| 0.5 * x * (1.0 + tanh(x))).collect();
        let expected_d_x: Vec<f64> = x
            .iter()
            .zip(&upstream)
            .map(|(&x, upstream)| upstream * slope(x))
            .collect();
        for place in places_with_gradients() {
            let x = tensor(&x, dims, &place).require_grad();
            let y = gelu_tanh(x.clone());
            let gradients = (y.clone() * tensor(&upstream, dims, &place))
                .sum()
                .backward();
            assert_close("y", &values(y), &expected_y);
            assert_close("d_x", &values(x.grad(&gradients).unwrap()), &expected_d_x);
        }
    }
}

#[test]
fn swiglu_and_its_gradients() {
    for dims in SHAPES {
        let count = dims.iter().product();
        let (gate, up, upstream) = (numbers(count, 5), numbers(count, 6), numbers(count, 7));
        let share = |x: f64| 1.0 / (1.0 + (-x).exp());
        let each = |f: &dyn Fn(usize) -> f64| (0..count).map(f).collect::<Vec<_>>();
        let y = each(&|i| gate[i] * share(gate[i]) * up[i]);
        let slope = |x: f64| share(x) + x * share(x) * (1.0 - share(x));
        let d_gate = each(&|i| upstream[i] * up[i] * slope(gate[i]));
        let d_up = each(&|i| upstream[i] * gate[i] * share(gate[i]));
        for place in places_with_gradients() {
            let (gate, up) = (
                tensor(&gate, dims, &place).require_grad(),
                tensor(&up, dims, &place).require_grad(),
            );
            let output = swiglu(gate.clone(), up.clone());
            assert_close("y", &values(output.clone()), &y);
            let gradients = (output * tensor(&upstream, dims, &place)).sum().backward();
            assert_close("d_gate", &values(gate.grad(&gradients).unwrap()), &d_gate);
            assert_close("d_up", &values(up.grad(&gradients).unwrap()), &d_up);
        }
    }
}

#[test]
fn rms_norm_and_its_gradients() {
    for dims in SHAPES.into_iter().filter(|dims| dims[2] > 1) {
        let [batch, pos, width] = dims;
        let count = batch * pos * width;
        let (x, upstream, gain) = (numbers(count, 1), numbers(count, 2), numbers(width, 3));
        let n = width as f64;
        let (mut y, mut d_x, mut d_gain) = (vec![0.0; count], vec![0.0; count], vec![0.0; width]);
        for row in 0..batch * pos {
            let at = |i: usize| row * width + i;
            let inverse =
                1.0 / ((0..width).map(|i| x[at(i)].powi(2)).sum::<f64>() / n + 1e-5).sqrt();
            let normal = |i: usize| x[at(i)] * inverse;
            let g = |i: usize| upstream[at(i)] * gain[i];
            let mean_gn = (0..width).map(|i| g(i) * normal(i)).sum::<f64>() / n;
            for i in 0..width {
                y[at(i)] = normal(i) * gain[i];
                d_x[at(i)] = inverse * (g(i) - normal(i) * mean_gn);
                d_gain[i] += upstream[at(i)] * normal(i);
            }
        }
        for place in places_with_gradients() {
            let x = tensor(&x, dims, &place).require_grad();
            let gain = tensor(&gain, [width], &place).require_grad();
            let output = rms_norm(x.clone(), gain.clone(), 1e-5);
            assert_close("y", &values(output.clone()), &y);
            let gradients = (output * tensor(&upstream, dims, &place)).sum().backward();
            assert_close("d_x", &values(x.grad(&gradients).unwrap()), &d_x);
            assert_close("d_gain", &values(gain.grad(&gradients).unwrap()), &d_gain);
        }
    }
}

#[test]
fn linear_and_its_gradients() {
    for [batch, pos, width] in SHAPES {
        for width_out in [1, 3, 65] {
            let (rows, count) = (batch * pos, batch * pos * width_out);
            let (x, weight) = (numbers(rows * width, 1), numbers(width * width_out, 2));
            let (bias, upstream) = (numbers(width_out, 3), numbers(count, 4));
            let mut y: Vec<f64> = (0..count).map(|i| bias[i % width_out]).collect();
            let (mut d_x, mut d_weight) = (vec![0.0; x.len()], vec![0.0; weight.len()]);
            let mut d_bias = vec![0.0; width_out];
            for row in 0..rows {
                for o in 0..width_out {
                    let g = upstream[row * width_out + o];
                    d_bias[o] += g;
                    for i in 0..width {
                        y[row * width_out + o] += x[row * width + i] * weight[i * width_out + o];
                        d_x[row * width + i] += g * weight[i * width_out + o];
                        d_weight[i * width_out + o] += g * x[row * width + i];
                    }
                }
            }
            for place in places_with_gradients() {
                let x = tensor(&x, [batch, pos, width], &place).require_grad();
                let weight = tensor(&weight, [width, width_out], &place).require_grad();
                let bias = tensor(&bias, [width_out], &place).require_grad();
                let output = linear(x.clone(), weight.clone(), Some(bias.clone()));
                let without = linear(x.clone(), weight.clone(), None) + bias.clone().unsqueeze();
                assert_close("y", &values(output.clone()), &y);
                assert_close("y without a bias", &values(without.clone()), &y);
                for output in [output, without] {
                    let upstream = tensor(&upstream, [batch, pos, width_out], &place);
                    let gradients = (output * upstream).sum().backward();
                    assert_close("d_x", &values(x.grad(&gradients).unwrap()), &d_x);
                    assert_close(
                        "d_weight",
                        &values(weight.grad(&gradients).unwrap()),
                        &d_weight,
                    );
                    assert_close("d_bias", &values(bias.grad(&gradients).unwrap()), &d_bias);
                }
            }
        }
    }
}

/// A linear map with these numbers.
fn map([rows, columns]: [usize; 2], salt: usize, bias: bool, place: &Place) -> Linear {
    let mut map = LinearConfig::new(rows, columns)
        .with_bias(bias)
        .init(&place.device);
    let weight = tensor(&numbers(rows * columns, salt), [rows, columns], place);
    map.weight = Param::from_tensor(weight.div_scalar(6.0)).set_require_grad(true);
    if bias {
        let bias = tensor(&numbers(columns, salt + 1), [columns], place);
        map.bias = Some(Param::from_tensor(bias).set_require_grad(true));
    }
    map
}

/// What `linear` and `gelu` make one after the other, which other tests compare with loops: the
/// same bits, and the same gradients up to the order of sums.
#[test]
fn the_feed_forward_is_two_linear_maps_with_gelu_between_them() {
    let place = Place {
        device: Device::flex().autodiff(),
        dtype: DType::F32,
    };
    // More rows than one thread sums; steps and panels of middle columns that are not full.
    let sizes = [[2100, 3, 70, 2], [5, 33, 300, 65], [193, 64, 256, 64]];
    for [rows, d_model, d_ff, d_out] in sizes {
        for (bias, is_exact) in [(true, true), (false, true), (true, false)] {
            let w_in = map([d_model, d_ff], 1, bias, &place);
            let w_out = map([d_ff, d_out], 5, bias, &place);
            let x = tensor(&numbers(rows * d_model, 9), [1, rows, d_model], &place);
            let x = x.require_grad();
            let upstream = tensor(&numbers(rows * d_out, 10), [1, rows, d_out], &place);
            let middle = apply(&w_in, x.clone());
            let (whole, parts) = if is_exact {
                (gelu_feed_forward(&w_in, &w_out, x.clone()), gelu(middle))
            } else {
                let whole = gelu_tanh_feed_forward(&w_in, &w_out, x.clone());
                (whole, gelu_tanh(middle))
            };
            let parts = apply(&w_out, parts);
            assert_eq!(values(whole.clone()), values(parts.clone()), "{rows} rows");
            let without_gradients = w_in.clone().valid();
            let y = gelu_feed_forward(
                &without_gradients,
                &w_out.clone().valid(),
                x.clone().inner(),
            );
            if is_exact {
                assert_eq!(values(y), values(whole.clone()), "{rows} rows");
            }
            let found = (whole * upstream.clone()).sum().backward();
            let expected = (parts * upstream).sum().backward();
            let of_x = |gradients| values(x.grad(gradients).unwrap());
            assert_close("d_x", &of_x(&found), &of_x(&expected));
            for map in [&w_in, &w_out] {
                let of_weight = |gradients| values(map.weight.val().grad(gradients).unwrap());
                assert_close("d_weight", &of_weight(&found), &of_weight(&expected));
                if let Some(bias) = &map.bias {
                    let of_bias = |gradients| values(bias.val().grad(gradients).unwrap());
                    assert_close("d_bias", &of_bias(&found), &of_bias(&expected));
                }
            }
            // Of x alone, where the weights are held.
            let (held_in, held_out) = (w_in.no_grad(), w_out.no_grad());
            let held = if is_exact {
                gelu_feed_forward(&held_in, &held_out, x.clone())
            } else {
                gelu_tanh_feed_forward(&held_in, &held_out, x.clone())
            };
            let upstream = tensor(&numbers(rows * d_out, 10), [1, rows, d_out], &place);
            let alone = (held * upstream).sum().backward();
            assert_eq!(of_x(&alone), of_x(&found));
        }
    }
}

/// The bits of a gradient do not depend on the number of threads.
#[test]
fn the_gradient_of_a_feed_forward_is_the_same_on_any_number_of_threads() {
    let place = Place {
        device: Device::flex().autodiff(),
        dtype: DType::F32,
    };
    let gradient = || {
        let (w_in, w_out) = (
            map([8, 100], 1, true, &place),
            map([100, 8], 3, true, &place),
        );
        let x = tensor(&numbers(5000 * 8, 5), [5, 1000, 8], &place);
        let y = gelu_feed_forward(&w_in, &w_out, x);
        values(
            w_in.weight
                .val()
                .grad(&y.powi_scalar(2).sum().backward())
                .unwrap(),
        )
    };
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build().unwrap().install(gradient)
    };
    assert_eq!(on(1), on(3));
}

#[test]
fn cross_entropy_and_its_gradient() {
    for dims in SHAPES {
        let [rows, positions, vocabulary] = dims;
        let count = rows * positions;
        let logits = numbers(count * vocabulary, 7);
        let targets: Vec<i32> = (0..count)
            .map(|i| ((i * 31 + 7) % vocabulary) as i32)
            .collect();
        let weights: Vec<f64> = (0..count)
            .map(|i| {
                if i % 3 == 1 {
                    0.0
                } else {
                    1.0 + i as f64 % 2.0
                }
            })
            .collect();
        let (mut loss, mut gradient) = (0.0, vec![0.0; logits.len()]);
        for (i, row) in logits.chunks(vocabulary).enumerate() {
            let sum: f64 = row.iter().map(|x| x.exp()).sum();
            loss += weights[i] * (sum.ln() - row[targets[i] as usize]);
            for (j, x) in row.iter().enumerate() {
                let hot = f64::from(u8::from(j == targets[i] as usize));
                gradient[i * vocabulary + j] = 3.0 * weights[i] * (x.exp() / sum - hot);
            }
        }
        for place in places_with_gradients() {
            let logits = tensor(&logits, dims, &place).require_grad();
            let targets = Tensor::<2, Int>::from_data(
                TensorData::new(targets.clone(), [rows, positions]),
                &place.device,
            );
            let output = cross_entropy(
                logits.clone(),
                targets,
                tensor(&weights, [rows, positions], &place),
            );
            assert_close("loss", &values(output.clone()), &[loss]);
            let gradients = output.mul_scalar(3.0).sum().backward();
            assert_close(
                "gradient",
                &values(logits.grad(&gradients).unwrap()),
                &gradient,
            );
        }
    }
}

/// The loss of `x·W + b` and its gradients as a loop, and what the loop starts from.
struct LinearLoss {
    sizes: [usize; 4],
    x: Vec<f64>,
    weight: Vec<f64>,
    bias: Vec<f64>,
    targets: Vec<i32>,
    weights: Vec<f64>,
    loss: f64,
    d_x: Vec<f64>,
    d_weight: Vec<f64>,
    d_bias: Vec<f64>,
}

impl LinearLoss {
    fn new(sizes: [usize; 4]) -> Self {
        let [rows, positions, width, vocabulary] = sizes;
        let count = rows * positions;
        let targets: Vec<i32> = (0..count)
            .map(|i| ((i * 31 + 7) % vocabulary) as i32)
            .collect();
        // Two of three positions count, and not all as much.
        let weights = (0..count).map(|i| [1.0, 0.0, 2.0][i % 3]).collect();
        let mut this = Self {
            sizes,
            x: numbers(count * width, 1),
            weight: numbers(width * vocabulary, 2),
            bias: numbers(vocabulary, 3),
            targets,
            weights,
            loss: 0.0,
            d_x: vec![0.0; count * width],
            d_weight: vec![0.0; width * vocabulary],
            d_bias: vec![0.0; vocabulary],
        };
        for at in 0..count {
            this.add_position(at);
        }
        this
    }

    fn add_position(&mut self, at: usize) {
        let [_, _, width, vocabulary] = self.sizes;
        let x = &self.x[at * width..][..width];
        let logits: Vec<f64> = (0..vocabulary)
            .map(|j| {
                let products = x.iter().enumerate();
                let product: f64 = products
                    .map(|(k, x)| x * self.weight[k * vocabulary + j])
                    .sum();
                product + self.bias[j]
            })
            .collect();
        let sum: f64 = logits.iter().map(|x| x.exp()).sum();
        let (target, weight) = (self.targets[at] as usize, self.weights[at]);
        self.loss += weight * (sum.ln() - logits[target]);
        for (j, logit) in logits.iter().enumerate() {
            let hot = f64::from(u8::from(j == target));
            let d_logit = 3.0 * weight * (logit.exp() / sum - hot);
            self.d_bias[j] += d_logit;
            for (k, x) in x.iter().enumerate() {
                self.d_x[at * width + k] += d_logit * self.weight[k * vocabulary + j];
                self.d_weight[k * vocabulary + j] += d_logit * x;
            }
        }
    }

    /// The weight is a view of its transpose if it is tied to an embedding.
    fn compare(&self, place: &Place, is_tied: bool) {
        let [rows, positions, width, vocabulary] = self.sizes;
        let x = tensor(&self.x, [rows, positions, width], place).require_grad();
        let dense = tensor(&self.weight, [width, vocabulary], place);
        let leaf = if is_tied {
            let numbers = values(dense.transpose());
            tensor(&numbers, [vocabulary, width], place).require_grad()
        } else {
            dense.require_grad()
        };
        let read = |leaf: Tensor<2>| if is_tied { leaf.transpose() } else { leaf };
        let bias = tensor(&self.bias, [vocabulary], place).require_grad();
        let targets = TensorData::new(self.targets.clone(), [rows, positions]);
        let targets = Tensor::<2, Int>::from_data(targets, &place.device);
        let weights = tensor(&self.weights, [rows, positions], place);
        let loss = linear_cross_entropy(
            x.clone(),
            read(leaf.clone()),
            Some(bias.clone()),
            targets,
            weights,
        );
        assert_close("loss", &values(loss.clone()), &[self.loss]);
        let gradients = loss.mul_scalar(3.0).sum().backward();
        assert_close("d_x", &values(x.grad(&gradients).unwrap()), &self.d_x);
        let d_weight = values(read(leaf.grad(&gradients).unwrap()));
        assert_close("d_weight", &d_weight, &self.d_weight);
        assert_close(
            "d_bias",
            &values(bias.grad(&gradients).unwrap()),
            &self.d_bias,
        );
    }
}

#[test]
fn the_loss_of_a_linear_map_and_its_gradients() {
    // The last one has over 2²² logits: the kernel computes them in blocks, of 256 positions.
    for sizes in [[1, 1, 1, 1], [2, 7, 3, 5], [2, 450, 3, 5000]] {
        let loss = LinearLoss::new(sizes);
        for place in places_with_gradients() {
            loss.compare(&place, false);
            loss.compare(&place, true);
        }
    }
}

#[test]
fn the_loss_of_a_linear_map_without_a_bias_or_gradients_is_the_same() {
    let sizes @ [rows, positions, width, vocabulary] = [2, 450, 3, 5000];
    let LinearLoss {
        x,
        weight,
        targets,
        weights,
        ..
    } = LinearLoss::new(sizes);
    for place in places() {
        let x = || tensor(&x, [rows, positions, width], &place);
        let weight = || tensor(&weight, [width, vocabulary], &place);
        let targets = || {
            let data = TensorData::new(targets.clone(), [rows, positions]);
            Tensor::<2, Int>::from_data(data, &place.device)
        };
        let weights = || tensor(&weights, [rows, positions], &place);
        let whole = values(cross_entropy(
            linear(x(), weight(), None),
            targets(),
            weights(),
        ));
        let found = linear_cross_entropy(x(), weight(), None, targets(), weights());
        assert_close("no bias", &values(found), &whole);
        let zeros = Tensor::zeros([vocabulary], (&place.device, place.dtype));
        let found = linear_cross_entropy(x(), weight(), Some(zeros), targets(), weights());
        assert_close("a bias of zeros", &values(found), &whole);
        let nothing = Tensor::zeros([rows, positions], (&place.device, place.dtype));
        let found = linear_cross_entropy(x(), weight(), None, targets(), nothing);
        assert_eq!(values(found), [0.0]);
    }
}

#[test]
fn every_target_has_its_loss_and_its_verdict() {
    for dims in SHAPES {
        let [rows, positions, vocabulary] = dims;
        let count = rows * positions;
        // Few different values, so that the likeliest tokens are often several.
        let logits: Vec<f64> = (0..count * vocabulary)
            .map(|i| ((i * 7919) % 13 % 5) as f64)
            .collect();
        let targets: Vec<i32> = (0..count)
            .map(|i| ((i * 5 + 1) % vocabulary) as i32)
            .collect();
        let (mut losses, mut right) = (Vec::new(), Vec::new());
        for (row, &target) in logits.chunks(vocabulary).zip(&targets) {
            let sum: f64 = row.iter().map(|x| x.exp()).sum();
            let mut likeliest = 0;
            for token in 1..vocabulary {
                if row[token] > row[likeliest] {
                    likeliest = token;
                }
            }
            losses.push(sum.ln() - row[target as usize]);
            right.push(f64::from(u8::from(likeliest == target as usize)));
        }
        for place in places() {
            let targets = TensorData::new(targets.clone(), [rows, positions]);
            let targets = Tensor::<2, Int>::from_data(targets, &place.device);
            let scores = score_next_tokens(tensor(&logits, dims, &place), targets.clone());
            let counts: Vec<f64> = (0..count).map(|i| f64::from(u8::from(i % 3 > 0))).collect();
            let counts = tensor(&counts, [rows, positions], &place);
            let summed = cross_entropy(tensor(&logits, dims, &place), targets, counts.clone());
            let found = [f64::from(scores.summed_loss(&counts))];
            // The kernels add in one order; what is composed adds in that of its backend.
            if place.runs_the_kernels() {
                assert_eq!(found, values(summed)[..], "{dims:?}");
            } else {
                assert_close("summed", &found, &values(summed));
            }
            assert_close("losses", &values(scores.losses), &losses);
            assert_eq!(values(scores.right), right, "{dims:?}");
        }
    }
}

#[test]
fn large_logits_neither_overflow_nor_lose_the_loss() {
    let device = Device::flex().autodiff();
    let logits = Tensor::<3>::from_floats([[[1e4, 0.0, -1e4]]], &device).require_grad();
    let targets = Tensor::<2, Int>::from_ints([[1]], &device);
    let loss = cross_entropy(logits.clone(), targets, Tensor::ones([1, 1], &device));
    assert_eq!(values(loss.clone()), [1e4]);
    assert_eq!(
        values(logits.grad(&loss.backward()).unwrap()),
        [1.0, -1.0, 0.0]
    );
}

#[test]
fn views_are_read_where_they_lie() {
    let place = Place {
        device: Device::flex(),
        dtype: DType::F32,
    };
    let x = tensor(&numbers(24, 9), [2, 3, 4], &place);
    let view = x.clone().swap_dims(0, 1);
    let copy = tensor(&values(view.clone()), [3, 2, 4], &place);
    let (gain, bias) = (
        Tensor::ones([4], &place.device),
        Tensor::zeros([4], &place.device),
    );
    let norm = |x| values(layer_norm(x, gain.clone(), bias.clone(), 1e-5));
    assert_eq!(norm(view.clone()), norm(copy.clone()));
    assert_eq!(values(gelu(view.clone())), values(gelu(copy.clone())));
    let weight = tensor(&numbers(12, 8), [3, 4], &place).transpose();
    assert_eq!(
        values(linear(view, weight.clone(), None)),
        values(linear(copy, weight.clone(), None))
    );
    assert_eq!(
        values(linear(x.clone(), weight.clone(), None)),
        values(x.clone().matmul(weight.unsqueeze()))
    );
    let part = x.clone().narrow(1, 1, 2);
    assert_eq!(values(gelu(part)), values(gelu(x).narrow(1, 1, 2)));
}

#[test]
#[should_panic(expected = "target 9 is outside the vocabulary of 3")]
fn a_target_outside_the_vocabulary_is_named() {
    let device = Device::flex();
    let targets = Tensor::<2, Int>::from_ints([[9]], &device);
    let _ = cross_entropy(
        Tensor::zeros([1, 1, 3], &device),
        targets,
        Tensor::ones([1, 1], &device),
    );
}

#[test]
fn the_squared_norm_equals_the_loop_also_of_a_view() {
    // More than one chunk of the kernel, and a number of elements that is no multiple of a vector.
    let (rows, columns) = (251, 199);
    let x = numbers(rows * columns, 1);
    let exact: f64 = x.iter().map(|x| x * x).sum();
    let mut first_columns = 0.0;
    for (i, x) in x.iter().enumerate() {
        if i % columns < 7 {
            first_columns += x * x;
        }
    }
    for place in places() {
        let x = tensor(&x, [rows, columns], &place);
        assert_close("all", &values(squared_norm(x.clone())), &[exact]);
        let part = x.narrow(1, 0, 7);
        assert_close("a view", &values(squared_norm(part)), &[first_columns]);
    }
}

#[test]
fn a_sum_with_its_squared_norm_has_the_bits_of_two_passes_and_writes_to_nothing_that_is_held() {
    // More than one chunk of the kernel, and a number of elements that is no multiple of a vector.
    let dims = [251, 199];
    for place in places() {
        for count in 1..=3 {
            let parts: Vec<Vec<f64>> = (0..count).map(|i| numbers(251 * 199, 1 + i)).collect();
            let tensors = || parts.iter().map(|part| tensor(part, dims, &place));
            let held: Vec<Tensor<2>> = tensors().collect();
            let two_passes = tensors().reduce(|sum, part| sum + part).unwrap();
            for parts in [held.clone(), tensors().collect()] {
                let (sum, norm) = sum_with_squared_norm(parts);
                assert_eq!(values(sum), values(two_passes.clone()));
                assert_eq!(values(norm), values(squared_norm(two_passes.clone())));
            }
            for (held, fresh) in held.into_iter().zip(tensors()) {
                assert_eq!(values(held), values(fresh));
            }
            let mut exact = 0.0;
            for i in 0..251 * 199 {
                exact += parts.iter().map(|part| part[i]).sum::<f64>().powi(2);
            }
            let (_, norm) = sum_with_squared_norm(tensors().collect());
            assert_close("the squared norm", &values(norm), &[exact]);
        }
    }
}

#[test]
fn adamw_equals_burns_own_and_the_loop_over_several_steps() {
    let theirs = AdamWConfig::new()
        .with_beta_1(0.9)
        .with_beta_2(0.98)
        .with_epsilon(1e-8)
        .with_weight_decay(0.1)
        .build();
    let count = 40_000;
    let start = numbers(count, 1);
    for place in places() {
        let zeros = || Tensor::zeros([count], (&place.device, place.dtype));
        let (mut p, mut m, mut v) = (start.clone(), vec![0.0; count], vec![0.0; count]);
        let mut ours = (tensor(&start, [count], &place), zeros(), zeros());
        let mut burns = (tensor(&start, [count], &place), None);
        for time in 1..=5 {
            let gradient = numbers(count, 10 + time as usize);
            let step = AdamWStep {
                learning_rate: 0.01,
                gradient_scale: 0.25,
                beta_1: 0.9,
                beta_2: 0.98,
                epsilon: 1e-8,
                weight_decay: 0.1,
                time,
            };
            for i in 0..count {
                m[i] = 0.9 * m[i] + 0.1 * gradient[i];
                v[i] = 0.98 * v[i] + 0.02 * gradient[i] * gradient[i];
                let (m, v) = (
                    m[i] / (1.0 - 0.9f64.powi(time)),
                    v[i] / (1.0 - 0.98f64.powi(time)),
                );
                p[i] -= 0.01 * m / (v.sqrt() + 1e-8) + 0.01 * 0.1 * p[i];
            }
            let given: Vec<f64> = gradient.iter().map(|g| 4.0 * g).collect();
            let scaled = tensor(&given, [count], &place);
            let gradient = tensor(&gradient, [count], &place);
            // What is held elsewhere must not be written to.
            let held = ours.0.clone();
            let before = values(held.clone());
            burns = theirs.step(0.01, burns.0, gradient, burns.1);
            ours = adamw(ours.0, scaled, ours.1, ours.2, &step);
            assert_eq!(values(held), before);
            assert_close("parameter", &values(ours.0.clone()), &p);
            assert_close("against Burn", &values(burns.0.clone()), &p);
            assert_close("m", &values(ours.1.clone()), &m);
            assert_close("v", &values(ours.2.clone()), &v);
        }
    }
}
