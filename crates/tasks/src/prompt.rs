//! From what a person types to tokens.

use headlight_run::{Error, TaskConfig, TextConfig, TextTokens};

use super::text::{Tokens, named_character};

/// The tokens of `prompt`: of a text cut as the task cuts its own, of every other task the token
/// names between spaces. `vocabulary` are the names that the run wrote.
///
/// # Errors
/// Names what is no token, or says that the prompt is empty or longer than `n_ctx`.
pub fn encode_prompt(
    task: &TaskConfig,
    prompt: &str,
    vocabulary: &[String],
    n_ctx: usize,
) -> Result<Vec<u32>, Error> {
    let (tokens, empty) = match task {
        TaskConfig::Text(config) => {
            let tokens = Tokens::of_vocabulary(&config.tokens, vocabulary)?;
            (
                tokens
                    .encode(prompt)
                    .map_err(|unknown| unknown_token("--prompt", unknown, vocabulary))?,
                "is empty; write some text",
            )
        }
        _ => (
            names(prompt, vocabulary)?,
            "is empty; write token names with spaces between them",
        ),
    };
    match tokens.len() {
        0 => Err(Error::new("--prompt", empty)),
        length if length > n_ctx => Err(Error::new(
            "--prompt",
            format_args!("has {length} tokens, the model takes {n_ctx}"),
        )),
        _ => Ok(tokens),
    }
}

/// A token as it is read in running text: a character itself, of every other kind of token its name
/// and a space.
#[must_use]
pub fn spelled(task: &TaskConfig, name: &str) -> String {
    match task {
        TaskConfig::Text(TextConfig {
            tokens: TextTokens::Characters | TextTokens::Bytes,
            ..
        }) => named_character(name).map_or_else(|| name.to_owned(), String::from),
        _ => format!("{name} "),
    }
}

fn names(prompt: &str, vocabulary: &[String]) -> Result<Vec<u32>, Error> {
    prompt
        .split_whitespace()
        .map(|name| token_id("--prompt", name, vocabulary))
        .collect()
}

/// The token called `name`, which stands in the command line's `argument`.
///
/// # Errors
/// If there is no such token.
pub fn token_id(argument: &str, name: &str, vocabulary: &[String]) -> Result<u32, Error> {
    let found = vocabulary.iter().position(|known| known == name);
    found
        .map(|id| id as u32)
        .ok_or_else(|| unknown_token(argument, name, vocabulary))
}

fn unknown_token(argument: &str, name: impl std::fmt::Display, vocabulary: &[String]) -> Error {
    let some: Vec<&str> = vocabulary.iter().take(12).map(String::as_str).collect();
    let more = if vocabulary.len() > some.len() {
        ", …"
    } else {
        ""
    };
    let message = format!(
        "is no token of this run; its {} tokens are {}{more}",
        vocabulary.len(),
        some.join(", ")
    );
    Error::new(argument, message).value(name)
}
