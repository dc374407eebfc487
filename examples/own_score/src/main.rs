//! A score and a verb of one's own: induction by two tokens, and the key that each head looks at most.
//!
//! ```sh
//! cargo run --bin own_score -- inspect runs/induction heads
//! cargo run --bin own_score -- inspect runs/induction follow --prompt "a b c a b"
//! ```

use std::process::ExitCode;

use headlight::Program;
use headlight::own::{Error, HeadName, Output, Printout, Subject, Table, TargetKeys, Verb};
use serde::Serialize;

/// Heads that match two tokens (Akyürek et al. 2024, arXiv 2401.12973, call them n-gram heads).
struct BigramInduction;

impl TargetKeys for BigramInduction {
    fn name(&self) -> &'static str {
        "bigram induction"
    }

    fn formula(&self) -> &'static str {
        "mean over queries q whose last two tokens stood before: Σ A[q, j] over 1 < j ≤ q with x[j−1] = x[q], x[j−2] = x[q−1], j−1 < q"
    }

    fn does(&self) -> &'static str {
        "looks at the token that followed the last two tokens last time"
    }

    fn targets(&self, x: &[u32], q: usize) -> Vec<usize> {
        (2..=q)
            .filter(|&j| x[j - 1] == x[q] && x[j - 2] == x[q - 1])
            .collect()
    }
}

/// The key that each head looks at most, at the end of a prompt
#[derive(clap::Args)]
struct Follow {
    /// Tokens by name, with spaces between them; for a model of text, any text
    #[arg(long)]
    prompt: String,
}

#[derive(Serialize)]
struct Followed {
    head: HeadName,
    key: usize,
    token: String,
    weight: f32,
}

impl Verb for Follow {
    const NAME: &'static str = "follow";

    fn show(self, subject: Subject, out: &Output) -> Result<(), Error> {
        let mut heads = Vec::new();
        for seen in subject.patterns(None, Some(&self.prompt))? {
            let last = &seen.pattern[seen.tokens.len() - 1];
            let mut key = 0;
            for (other, weight) in last.iter().enumerate() {
                if *weight > last[key] {
                    key = other;
                }
            }
            heads.push(Followed {
                head: seen.head,
                key,
                token: seen.tokens[key].clone(),
                weight: last[key],
            });
        }
        out.show(&heads, |heads| {
            let row = |followed: &Followed| {
                let Followed {
                    head,
                    key,
                    token,
                    weight,
                } = followed;
                vec![
                    head.to_string(),
                    key.to_string(),
                    token.clone(),
                    format!("{weight:.2}"),
                ]
            };
            let rows = heads.iter().map(row);
            Printout::new().table(Table::new(&["head", "key", "token", "weight"], rows))
        })
    }
}

fn main() -> ExitCode {
    Program::new()
        .measure(BigramInduction)
        .verb::<Follow>()
        .run()
}
