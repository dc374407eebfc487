//! A decoder as a reader would write it, to run compiled programs without a tensor library.
#![allow(dead_code, reason = "each test file uses its part")]

use headlight_compile::{Array, Compiled};

/// What a model computed on one sequence.
pub struct Forward {
    /// `[position][direction]`, after the last block.
    pub stream: Vec<Vec<f32>>,
    /// `[layer][head][query][key]`
    pub patterns: Vec<Vec<Vec<Vec<f32>>>>,
    /// `[position][token]`
    pub logits: Vec<Vec<f32>>,
}

/// Runs a compiled program on token ids, in f32.
pub fn forward(compiled: &Compiled, tokens: &[u32]) -> Forward {
    let array = |path: &str| &compiled.arrays[path];
    let mut stream: Vec<Vec<f32>> = Vec::new();
    for (position, &token) in tokens.iter().enumerate() {
        let embedded = row(array("w_e"), token as usize);
        let positioned = row(array("w_pos"), position);
        stream.push(sum(embedded, positioned));
    }
    let mut patterns = Vec::new();
    for layer in 0..compiled.shape.n_layers {
        let of = |matrix: &str| array(&format!("blocks.{layer}.attn.{matrix}.weight"));
        let project = |matrix: &str| -> Vec<Vec<f32>> {
            stream.iter().map(|x| times(x, of(matrix))).collect()
        };
        let (q, k, v) = (project("w_q"), project("w_k"), project("w_v"));
        let mut blends = vec![Vec::new(); tokens.len()];
        let mut of_layer = Vec::new();
        for head in 0..compiled.shape.n_heads {
            let columns = head * compiled.shape.d_head..(head + 1) * compiled.shape.d_head;
            let mut pattern = vec![vec![0.0; tokens.len()]; tokens.len()];
            for query in 0..tokens.len() {
                let score = |key: usize| dot(&q[query][columns.clone()], &k[key][columns.clone()]);
                let scores: Vec<f32> = (0..=query).map(score).collect();
                let most = scores.iter().copied().fold(f32::MIN, f32::max);
                let weights: Vec<f32> = scores.iter().map(|score| (score - most).exp()).collect();
                let all: f32 = weights.iter().sum();
                let mut blend = vec![0.0; compiled.shape.d_head];
                for (key, weight) in weights.iter().enumerate() {
                    pattern[query][key] = weight / all;
                    for (sum, value) in blend.iter_mut().zip(&v[key][columns.clone()]) {
                        *sum += weight / all * value;
                    }
                }
                blends[query].extend(blend);
            }
            of_layer.push(pattern);
        }
        patterns.push(of_layer);
        for (x, blend) in stream.iter_mut().zip(&blends) {
            *x = sum(x, &times(blend, of("w_o")));
        }
        if compiled.shape.d_ff.is_some() {
            let mlp = |name: &str| array(&format!("blocks.{layer}.mlp.{name}"));
            for x in &mut stream {
                let units = sum(&times(x, mlp("w_in.weight")), &mlp("w_in.bias").values);
                let on: Vec<f32> = units.into_iter().map(|unit| unit.max(0.0)).collect();
                let written = sum(&times(&on, mlp("w_out.weight")), &mlp("w_out.bias").values);
                *x = sum(x, &written);
            }
        }
    }
    let logits = stream.iter().map(|x| times(x, array("w_u"))).collect();
    Forward {
        stream,
        patterns,
        logits,
    }
}

fn row(matrix: &Array, index: usize) -> &[f32] {
    let columns = matrix.shape[1];
    &matrix.values[index * columns..][..columns]
}

fn sum(a: &[f32], b: &[f32]) -> Vec<f32> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// `x·W`
fn times(x: &[f32], matrix: &Array) -> Vec<f32> {
    let mut product = vec![0.0; matrix.shape[1]];
    for (index, &x) in x.iter().enumerate().filter(|(_, x)| **x != 0.0) {
        for (sum, weight) in product.iter_mut().zip(row(matrix, index)) {
            *sum += x * weight;
        }
    }
    product
}

/// Every input of `length` tokens of the alphabet.
pub fn inputs(alphabet: &[String], length: usize) -> impl Iterator<Item = Vec<&str>> {
    let count = alphabet.len().pow(length as u32);
    (0..count).map(move |number| {
        let mut rest = number;
        let mut input = Vec::new();
        for _ in 0..length {
            input.push(alphabet[rest % alphabet.len()].as_str());
            rest /= alphabet.len();
        }
        input
    })
}
