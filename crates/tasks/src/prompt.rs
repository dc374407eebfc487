//! From what a person types to tokens.

use headlight_run::Error;

use crate::{Stop, UnknownToken, Vocabulary};

/// Names that a message shows.
const SHOWN_NAMES: usize = 12;

/// The tokens of `prompt`: of a text, text; of every other task, token names between spaces.
///
/// # Errors
/// Names what is no token, or says that the prompt is empty or longer than `n_ctx`.
pub fn encode_prompt(
    vocabulary: &Vocabulary,
    prompt: &str,
    n_ctx: usize,
) -> Result<Vec<u32>, Error> {
    let tokens = vocabulary
        .encode(prompt)
        .map_err(|unknown| unknown_token("--prompt", &unknown, vocabulary))?;
    match (tokens.len(), vocabulary) {
        (0, Vocabulary::Names(_)) => Err(Error::new(
            "--prompt",
            "is empty; write token names with spaces between them",
        )),
        (0, _) => Err(Error::new("--prompt", "is empty; write some text")),
        (length, _) if length > n_ctx => Err(Error::new(
            "--prompt",
            format_args!("has {length} tokens, the model takes {n_ctx}"),
        )),
        _ => Ok(tokens),
    }
}

/// The stop at `text`, which stands in the command line's `--stop`: of a text, any text; of every
/// other task, token names between spaces.
///
/// # Errors
/// Names what is no token, so that the model never writes it.
pub fn parse_stop(vocabulary: &Vocabulary, text: &str) -> Result<Stop, Error> {
    if text.is_empty() {
        return Err(Error::new("--stop", "is empty"));
    }
    vocabulary
        .stop(text)
        .map_err(|unknown| unknown_token("--stop", &unknown, vocabulary))
}

fn unknown_token(argument: &str, unknown: &UnknownToken, vocabulary: &Vocabulary) -> Error {
    let names = vocabulary.names();
    let some = names[..names.len().min(SHOWN_NAMES)].join(", ");
    let more = if names.len() > SHOWN_NAMES {
        ", …"
    } else {
        ""
    };
    let message = format!(
        "is no token of this run; its {} tokens are {some}{more}",
        names.len()
    );
    Error::new(argument, message).value(unknown)
}
