//! Every activation of a run on one sequence of tokens, as a safetensors file: each tensor bears the
//! name of its site, so that any tool that reads safetensors can go on from there.
//!
//! ```sh
//! cargo run --example activations -- runs/induction activations.safetensors --tokens 3,1,4,3,1
//! ```
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example prints what it wrote"
)]

use std::{collections::BTreeMap, error::Error, path::PathBuf};

use burn::tensor::TensorData;
use clap::Parser;
use headlight_residual::{Site, tensors_to_bytes, token_tensor};
use headlight_run::{RunDirectory, Weights, write_atomically};
use headlight_watch::{device, model};

#[derive(Parser)]
struct Arguments {
    /// The run, for example runs/induction
    run: PathBuf,
    /// The file to write
    out: PathBuf,
    /// The tokens, as numbers with commas between them
    #[arg(long, value_delimiter = ',', required = true)]
    tokens: Vec<u32>,
    /// The sites to keep; * stands for any run of characters
    #[arg(long, default_value = "*")]
    sites: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let run = RunDirectory::open(&arguments.run)?;
    let device = device::open("flex")?;
    let config = run.config()?;
    let model = model::load(&run, &config, Weights::Last, &device)?;
    let vocabulary = model.vocabulary();
    if let Some(token) = arguments
        .tokens
        .iter()
        .find(|&&token| token as usize >= vocabulary)
    {
        return Err(format!("token {token} is not among the {vocabulary} of the model").into());
    }
    let sites = model.select(&arguments.sites)?;
    let seen = model.activations(token_tensor(&[&arguments.tokens], &device), &sites)?;
    let numbers = |site: &Site| -> (String, TensorData) {
        let kept = seen.kept(*site);
        let data = match kept.dims().len() {
            4 => kept.tensor::<4>().into_data(),
            _ => kept.tensor::<3>().into_data(),
        };
        (site.to_string(), data)
    };
    let tensors: BTreeMap<String, TensorData> = sites.iter().map(numbers).collect();
    write_atomically(&arguments.out, &tensors_to_bytes(&tensors)?)?;
    println!(
        "{} activations in {}",
        tensors.len(),
        arguments.out.display()
    );
    Ok(())
}
