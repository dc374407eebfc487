//! A trained sentence encoder, all-MiniLM-L6-v2, on this project's attention.
//!
//! ```text
//! cargo run --example minilm -- FOLDER --sentence "The dog saw the cat" --sentence "A kitten met a puppy"
//! ```
//!
//! It prints each sentence's tokens and the first numbers of its embedding, how alike the sentences
//! are (the cosine of their embeddings), and one head's pattern on the first sentence. Two heads of
//! the first layer that everybody can read: `--head 2` attends to the previous token, `--head 8` to
//! tokens that mean the same or nearly so.
//!
//! It downloads nothing: FOLDER holds `model.safetensors`, `tokenizer.json` and `config.json` of
//! sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0) or of another BERT encoder;
//! `scripts/check_minilm.py` compares what it computes with PyTorch.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example prints what it found"
)]

mod encoder;
mod tokenizer;

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use burn::tensor::{Device, Tensor};
use clap::Parser;
use encoder::{Config, Encoder};
use headlight_heads::MayAttend;
use headlight_report::{Heatmap, Terminal};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokenizer::{Encoding, Tokenizer};

/// Embeds sentences with all-MiniLM-L6-v2, and shows where one of its heads looks.
#[derive(Parser)]
struct Arguments {
    /// Holds model.safetensors, tokenizer.json and config.json
    folder: PathBuf,
    /// A sentence to embed; may be given again
    #[arg(long = "sentence", required = true)]
    sentences: Vec<String>,
    /// The layer of the head to show, from 0
    #[arg(long, default_value_t = 0)]
    layer: usize,
    /// The head to show, from 0
    #[arg(long, default_value_t = 8)]
    head: usize,
    /// Print JSON: tokens and embeddings of all sentences, the head's pattern on the first
    #[arg(long)]
    json: bool,
}

/// What is printed.
#[derive(Serialize)]
struct Answer {
    /// `[sentences][tokens]`
    tokens: Vec<Vec<String>>,
    /// `[sentences][hidden]`, unit vectors
    embeddings: Vec<Vec<f32>>,
    /// `[queries][keys]` of the chosen head on the first sentence
    pattern: Vec<Vec<f32>>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(answer) if arguments.json => println!(
            "{}",
            serde_json::to_string(&answer).expect("numbers and strings")
        ),
        Ok(answer) => println!(
            "{}",
            answer.text(&arguments, &Terminal::of_standard_output())
        ),
        Err(message) => {
            eprintln!("error: {message}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn run(arguments: &Arguments) -> Result<Answer, String> {
    let [weights, vocabulary, sizes] = files(&arguments.folder)?;
    let config = Config::open(&sizes)?;
    let Arguments { layer, head, .. } = *arguments;
    for (option, value, count) in [
        ("--layer", layer, config.num_hidden_layers),
        ("--head", head, config.num_attention_heads),
    ] {
        if value >= count {
            return Err(format!(
                "{option} {value}: the model has {count}, from 0 to {}",
                count.saturating_sub(1)
            ));
        }
    }
    let tokenizer = Tokenizer::open(&vocabulary, max_length(&arguments.folder, &config)?)?;
    if tokenizer.highest_id() as usize >= config.vocab_size {
        let (highest, rows) = (tokenizer.highest_id(), config.vocab_size);
        return Err(format!(
            "{}: token {highest} has no row among the model's {rows}",
            vocabulary.display()
        ));
    }
    let read = |(index, sentence): (usize, &String)| {
        let encoding = tokenizer.encode(sentence);
        encoding.ok_or_else(|| format!("--sentence {sentence:?}: sentence {} is empty", index + 1))
    };
    let read: Vec<Encoding> = arguments
        .sentences
        .iter()
        .enumerate()
        .map(read)
        .collect::<Result<_, _>>()?;

    let encoder = Encoder::load(&weights, &config, &Device::flex())?;
    let ids: Vec<&[u32]> = read
        .iter()
        .map(|encoding| encoding.ids.as_slice())
        .collect();
    let encoded = encoder.encode(&ids);

    let length = ids[0].len();
    let pattern =
        encoded.patterns[layer]
            .clone()
            .slice([0..1, head..head + 1, 0..length, 0..length]);
    Ok(Answer {
        tokens: read.into_iter().map(|encoding| encoding.tokens).collect(),
        embeddings: rows(encoded.embeddings),
        pattern: rows(pattern.reshape([length, length])),
    })
}

/// The three files, all of them there.
fn files(folder: &Path) -> Result<[PathBuf; 3], String> {
    if !folder.is_dir() {
        return Err(format!("{}: there is no such folder", folder.display()));
    }
    let files =
        ["model.safetensors", "tokenizer.json", "config.json"].map(|name| folder.join(name));
    match files.iter().find(|file| !file.is_file()) {
        Some(missing) => Err(format!("{}: there is no such file", missing.display())),
        None => Ok(files),
    }
}

/// How many tokens the model reads: as many as it has positions, or fewer, if
/// sentence-transformers' own file says so.
fn max_length(folder: &Path, config: &Config) -> Result<usize, String> {
    #[derive(Deserialize)]
    struct SentenceConfig {
        max_seq_length: usize,
    }
    let path = folder.join("sentence_bert_config.json");
    if !path.is_file() {
        return Ok(config.max_position_embeddings);
    }
    let own: SentenceConfig = read_json(&path)?;
    Ok(own.max_seq_length.min(config.max_position_embeddings))
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, String> {
    let in_file = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = fs::read_to_string(path).map_err(|error| in_file(&error))?;
    serde_json::from_str(&text).map_err(|error| in_file(&error))
}

fn rows(matrix: Tensor<2>) -> Vec<Vec<f32>> {
    let [_, width] = matrix.dims();
    let numbers: Vec<f32> = matrix.into_data().iter::<f32>().collect();
    numbers.chunks(width).map(<[f32]>::to_vec).collect()
}

impl Answer {
    fn text(
        &self,
        Arguments {
            sentences,
            layer,
            head,
            ..
        }: &Arguments,
        terminal: &Terminal,
    ) -> String {
        let mut out = String::new();
        for (index, (sentence, tokens)) in sentences.iter().zip(&self.tokens).enumerate() {
            let first: Vec<String> = self.embeddings[index]
                .iter()
                .take(6)
                .map(|x| format!("{x:+.4}"))
                .collect();
            let _ = writeln!(
                out,
                "{}  {sentence}\n   {}\n   {} …\n",
                index + 1,
                tokens.join(" "),
                first.join(" ")
            );
        }
        if sentences.len() > 1 {
            let _ = writeln!(out, "How alike they are (cosine):\n\n{}", self.cosines());
        }
        let weights = self.pattern.concat();
        let heatmap = Heatmap {
            weights: &weights,
            tokens: &self.tokens[0],
            may_attend: MayAttend::All,
        };
        let _ = write!(
            out,
            "Where L{layer}H{head} looks in sentence 1:\n\n{}",
            heatmap.draw(terminal).trim_end()
        );
        out
    }

    /// A table of all pairs; embeddings have length 1, so a cosine is a dot product.
    fn cosines(&self) -> String {
        let mut table = "   ".to_owned();
        for number in 1..=self.embeddings.len() {
            let _ = write!(table, "{number:>7}");
        }
        for (index, a) in self.embeddings.iter().enumerate() {
            let _ = write!(table, "\n{:>3}", index + 1);
            for b in &self.embeddings {
                let cosine: f32 = a.iter().zip(b).map(|(a, b)| a * b).sum();
                let _ = write!(table, "{cosine:>7.3}");
            }
        }
        table.push('\n');
        table
    }
}
