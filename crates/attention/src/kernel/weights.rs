//! The attention weights as a tensor: each row's scores are written into the output, then softmax
//! replaces them in place.

use burn::{
    backend::flex::FlexTensor,
    tensor::{Shape, TensorData},
};
use headlight_vector::{Kernel, Matrix, Onto, Simd, exp_and_sum, max_of, product, vectorised};
use rayon::prelude::*;

use super::{
    Plan,
    head::matrix,
    poison::Poison,
    tile::{self, Place},
};
use crate::score_shape::ScoreShape;

/// `softmax(Q·Kᵀ·scale + mask)`, `[batch, heads, queries, keys]`.
pub(crate) fn weights(
    query: FlexTensor,
    key: FlexTensor,
    bias: Option<FlexTensor>,
    plan: &Plan,
) -> FlexTensor {
    let poison = &Poison::of(&query, &[&key]);
    let (query, key) = (&poison.out_of_queries(query), &poison.out_of_keys(key));
    let ScoreShape {
        batch,
        heads,
        queries,
        keys,
    } = plan.shape;
    let mut weights = vec![0.0; batch * heads * queries * keys];
    weights
        .par_chunks_mut(queries * keys)
        .enumerate()
        .for_each(|(index, weights)| {
            let (batch, head) = (index / heads, index % heads);
            let [query, key] = [query, key].map(|tensor| matrix(tensor, batch, head, heads));
            let bias = bias.as_ref().map(|bias| matrix(bias, batch, head, heads));
            let place = Place {
                batch,
                head,
                queries: 0..queries,
                keys: 0..keys,
                seen: 0..keys,
            };
            vectorised(OneHead {
                plan,
                poison,
                place,
                query,
                key,
                bias,
                weights,
            });
        });
    FlexTensor::from_data(TensorData::new(
        weights,
        Shape::new([batch, heads, queries, keys]),
    ))
}

/// One head of one sequence.
struct OneHead<'a> {
    plan: &'a Plan,
    poison: &'a Poison,
    place: Place,
    query: Matrix<'a>,
    key: Matrix<'a>,
    bias: Option<Matrix<'a>>,
    weights: &'a mut [f32],
}

impl Kernel for OneHead<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self {
            plan,
            poison,
            place,
            query,
            key,
            bias,
            weights,
        } = self;
        let keys = key.rows;
        product(
            weights,
            keys,
            Onto::Zeros,
            plan.scale,
            query,
            key.transposed(),
        );
        poison.mark(weights, keys, &place, plan.shape.heads);
        for (row, weights) in weights.chunks_exact_mut(keys).enumerate() {
            let visible = plan.visible.run(place.batch, row);
            let seen = tile::seen(simd, weights, plan, &place, bias, row, &visible);
            weights[..seen.start].fill(0.0);
            weights[seen.end..].fill(0.0);
            let weights = &mut weights[seen];
            let max = max_of(weights);
            if max == f32::NEG_INFINITY {
                // The row sees no key, unless all of its visible scores are NaN. These must stay
                // NaN.
                for weight in weights {
                    *weight = if weight.is_nan() { f32::NAN } else { 0.0 };
                }
                continue;
            }
            let share = 1.0 / exp_and_sum(simd, weights, max);
            for weight in weights {
                // By selection: the share is NaN if the row may attend to NaN.
                *weight = if *weight == 0.0 { 0.0 } else { *weight * share };
            }
        }
    }
}
