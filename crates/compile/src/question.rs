//! Sequences of a model that ask for what a program answers.

use crate::{Error, Layout, Program, SEPARATOR, program::START};

/// A sequence of tokens that ends with an answer, and which of its targets the program decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Ids in [`vocabulary`](Program::vocabulary). The last token is only a target.
    pub tokens: Vec<u32>,
    /// Whether the program decides the target at each input.
    pub scored: Vec<bool>,
}

impl Program {
    /// The sequence that asks for the answer to this input: of the [prefix](Layout::Prefix) form the
    /// answer at its last position, of the [answer](Layout::Answer) form as many answers as the input
    /// has tokens.
    ///
    /// # Errors
    /// If the input is empty, too long, or has an unknown token.
    ///
    /// ```
    /// use headlight_compile::programs;
    ///
    /// let reverse = programs::reverse(3)?;
    /// let question = reverse.question(&["a", "b"])?;
    /// let names = reverse.vocabulary();
    /// let tokens: Vec<&str> = question.tokens.iter().map(|&id| names[id as usize].as_str()).collect();
    /// assert_eq!(tokens, ["<s>", "a", "b", "=", "b", "a"]);
    /// assert_eq!(question.scored, [false, false, false, true, true]);
    /// # Ok::<(), headlight_compile::Error>(())
    /// ```
    pub fn question<T: AsRef<str>>(&self, input: &[T]) -> Result<Question, Error> {
        let most = self.layout.length();
        if !(1..=most).contains(&input.len()) {
            return Err(Error::Input {
                program: self.name.clone(),
                found: input.len(),
                most,
            });
        }
        let mut tokens: Vec<String> = input
            .iter()
            .map(|token| token.as_ref().to_owned())
            .collect();
        let mut answers = 1;
        if let Layout::Answer { .. } = self.layout {
            tokens.push(SEPARATOR.to_owned());
            answers = input.len();
        }
        for _ in 0..answers {
            let trace = self.run(&tokens)?;
            let answer = trace.answers()[tokens.len() - 1].to_owned();
            tokens.push(answer);
        }
        let inputs = tokens.len();
        tokens.insert(0, START.to_owned());
        Ok(Question {
            tokens: self.ids(&tokens)?,
            scored: (0..inputs).map(|input| input + answers >= inputs).collect(),
        })
    }

    /// The ids of tokens in [`vocabulary`](Self::vocabulary).
    ///
    /// # Errors
    /// If a token is unknown.
    pub fn ids<T: AsRef<str>>(&self, tokens: &[T]) -> Result<Vec<u32>, Error> {
        let vocabulary = self.vocabulary();
        let mut ids = Vec::new();
        for token in tokens {
            let token = token.as_ref();
            let id = vocabulary.iter().position(|name| name == token);
            ids.push(id.ok_or_else(|| Error::Token {
                program: self.name.clone(),
                token: token.to_owned(),
                known: vocabulary.join(", "),
            })? as u32);
        }
        Ok(ids)
    }
}
