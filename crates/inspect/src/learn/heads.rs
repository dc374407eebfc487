//! One head and several at the same cost.

use burn::{
    module::Module,
    tensor::{Device, Tensor},
};
use headlight_attention::{AttentionOptions, Mask, MultiHeadAttentionConfig, attention};
use headlight_report::{HeadCost, HeadsAtOneCost, ReadSentence};
use headlight_run::{Error, ErrorKind};

use super::scaling::numbers;

const D_MODEL: usize = 64;
const TOKENS: usize = 64;
/// A score that leaves the keys without it next to nothing: e⁻³⁰.
const SURE: f32 = 30.0;

/// Costs by the number of heads, and two sentences that one head of even weights cannot tell apart.
pub(super) fn at_one_cost(device: &Device) -> Result<HeadsAtOneCost, Error> {
    let cost = |n_heads: usize| {
        let module = MultiHeadAttentionConfig::new(D_MODEL, n_heads).try_init(device);
        let module = module.map_err(|error| Error::because(ErrorKind::Internal, "learn", error))?;
        let d_head = D_MODEL / n_heads;
        // Four projections, and a dot product and a blend for each head and each pair of tokens.
        let multiplications =
            4 * TOKENS * D_MODEL * D_MODEL + 2 * n_heads * TOKENS * TOKENS * d_head;
        Ok(HeadCost {
            n_heads,
            d_head,
            parameters: module.num_params(),
            multiplications,
        })
    };
    Ok(HeadsAtOneCost {
        d_model: D_MODEL,
        tokens: TOKENS,
        costs: [1, 2, 4, 8]
            .into_iter()
            .map(cost)
            .collect::<Result<_, _>>()?,
        sentences: [["cat", "saw", "dog"], ["dog", "saw", "cat"]]
            .map(|tokens| read(tokens, device))
            .to_vec(),
    })
}

/// What `saw`, the query, takes from the tokens before and after it. A value says which animal it
/// is.
fn read(tokens: [&str; 3], device: &Device) -> ReadSentence {
    let value = tokens.map(|token| [f32::from(token == "cat"), f32::from(token == "dog")]);
    // Keys say where a token stands: before the verb, at it, after it.
    let key = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0_f32]];
    let look = |query: [f32; 3]| {
        let query = Tensor::<4>::from_floats([[[query]]], device); // [1, 1 head, 1 query, 3]
        let key = Tensor::<4>::from_floats([[key]], device);
        let value = Tensor::<4>::from_floats([[value]], device);
        numbers(attention(
            query,
            key,
            value,
            &Mask::none(),
            &AttentionOptions::default().with_scale(1.0),
        ))
    };
    ReadSentence {
        tokens: tokens.map(str::to_owned).to_vec(),
        one_head: look([SURE, 0.0, SURE]),
        two_heads: [look([SURE, 0.0, 0.0]), look([0.0, 0.0, SURE])].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_cost_the_same_and_two_keep_apart_what_one_blends() {
        let heads = at_one_cost(&Device::flex()).unwrap();
        for cost in &heads.costs {
            // Four matrices and their biases.
            assert_eq!(cost.parameters, heads.costs[0].parameters);
            assert_eq!(cost.multiplications, heads.costs[0].multiplications);
        }
        let [cat_dog, dog_cat] = &heads.sentences[..] else {
            panic!("two sentences")
        };
        let near = |found: &[f32], expected: &[f32]| {
            found
                .iter()
                .zip(expected)
                .all(|(a, b)| (a - b).abs() < 1e-6)
        };
        assert!(near(&cat_dog.one_head, &[0.5, 0.5]) && near(&dog_cat.one_head, &[0.5, 0.5]));
        assert!(
            near(&cat_dog.two_heads, &[1.0, 0.0, 0.0, 1.0]),
            "{cat_dog:?}"
        );
        assert!(
            near(&dog_cat.two_heads, &[0.0, 1.0, 1.0, 0.0]),
            "{dog_cat:?}"
        );
    }
}
