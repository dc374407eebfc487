//! A score of one's own for the heads of a run: the mean weight on the token two back, on the
//! sequences of the run's probe, beside what even attention gives.
//!
//! The targets of the score are pairs (query, key). Any pairs will do: change `targets`.
//!
//! ```sh
//! cargo run --example score_of_your_own -- runs/induction
//! ```
#![allow(clippy::print_stdout, reason = "an example prints what it found")]

use std::{error::Error, path::Path};

use burn::tensor::Device;
use headlight_heads::{HeadName, Relation};
use headlight_lens::{LayerPattern, score_relations};
use headlight_residual::token_tensor;
use headlight_run::{RunDirectory, Weights};
use headlight_watch::model;

const SCORE: &str = "two back";

/// Where the score wants to see weight in a sequence: from each query to the key two before it.
fn targets(tokens: &[u32]) -> Vec<Relation> {
    let mut pairs = Vec::new();
    for query in 2..tokens.len() {
        pairs.push(Relation {
            name: SCORE.into(),
            dependent: query,
            source: query - 2,
        });
    }
    pairs
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1);
    let run = RunDirectory::open(Path::new(path.as_deref().unwrap_or("runs/induction")))?;
    let device = Device::flex();
    let model = model::load(&run, &run.config()?, Weights::Last, &device)?;

    let mut tokens = Vec::new();
    let mut pairs = Vec::new();
    for row in run.probe()? {
        let inputs = row.tokens[..row.inputs()].to_vec();
        pairs.push(targets(&inputs));
        tokens.push(inputs);
    }
    let sites = model.pattern_sites();
    let seen = model.activations(token_tensor(&tokens, &device), &sites)?;
    println!("head  {SCORE}  95 % interval  even attention");
    for (layer, site) in sites.into_iter().enumerate() {
        let pattern = seen.tensor::<4>(site); // [sequences, heads, queries, keys]
        let [sequences, heads, length, _] = pattern.dims();
        let weights: Vec<f32> = pattern.into_data().iter::<f32>().collect();
        let pattern = LayerPattern::new([sequences, heads, length], &weights)
            .with_window(model.config().window);
        for (head, scores) in score_relations(pattern, &pairs).iter().enumerate() {
            let score = scores[SCORE].score;
            println!(
                "{}  {:>8.3}  {:.3} to {:.3}  {:>14.3}",
                HeadName { layer, head },
                score.value,
                score.interval.low,
                score.interval.high,
                score.null
            );
        }
    }
    Ok(())
}
