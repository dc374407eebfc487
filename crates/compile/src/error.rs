//! Why a program is refused.

/// Why a program is refused. Each message names the program's own variables and values.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// A program needs tokens to read.
    #[error("{program}: the alphabet is empty")]
    NoAlphabet {
        /// The program.
        program: String,
    },
    /// The length of inputs is 0 or too large.
    #[error("{program}: inputs of {length} tokens; expected 1 to {most}")]
    Length {
        /// The program.
        program: String,
        /// The length that was asked for.
        length: usize,
        /// The largest length.
        most: usize,
    },
    /// Two values of a variable are written in the same way.
    #[error("{variable}: two of its values are written {value}")]
    SameValue {
        /// The variable.
        variable: String,
        /// How both are written.
        value: String,
    },
    /// A name that is reserved, used twice, or empty.
    #[error("{name}: is the name of another variable, a reserved token, or empty")]
    Name {
        /// The name.
        name: String,
    },
    /// A variable of another program.
    #[error("{name}: is no variable of the program {program}")]
    Foreign {
        /// The variable.
        name: String,
        /// The program.
        program: String,
    },
    /// A selector that may choose several keys, where one value is moved.
    #[error(
        "the keys of {keys} may stand at several positions; take the .latest() or the .first() of them"
    )]
    SeveralPositions {
        /// The variable of the keys.
        keys: String,
    },
    /// A selector that chooses several keys for one query.
    #[error(
        "the query {query} of {queries} selects {keys} = {first} and {second}; take the .latest() or the .first() of them"
    )]
    SeveralKeys {
        /// The variable of the queries.
        queries: String,
        /// The value of the query.
        query: String,
        /// The variable of the keys.
        keys: String,
        /// A key that is selected.
        first: String,
        /// Another one.
        second: String,
    },
    /// A number that is none.
    #[error("{variable}: {number} is not finite")]
    NotFinite {
        /// The variable.
        variable: String,
        /// The number.
        number: f64,
    },
    /// A mean that may have too many different values to be put into classes.
    #[error("{variable}: may have more than {most} different values, too many for classes")]
    ManyNumbers {
        /// The variable.
        variable: String,
        /// The largest number of values.
        most: usize,
    },
    /// Numbers of different classes that a model in f32 cannot tell apart.
    #[error(
        "{variable}: {low} and {high} belong to different classes and are closer than {gap}; use shorter inputs"
    )]
    CloseNumbers {
        /// The variable of the classes.
        variable: String,
        /// The smaller number.
        low: f64,
        /// The larger number.
        high: f64,
        /// The smallest distance.
        gap: f64,
    },
    /// An input of a wrong length.
    #[error("{program}: the input has {found} tokens; expected 1 to {most}")]
    Input {
        /// The program.
        program: String,
        /// The tokens of the input.
        found: usize,
        /// The largest number of tokens.
        most: usize,
    },
    /// An input with a token that the program does not know.
    #[error("{program}: {token} is no token; there are {known}")]
    Token {
        /// The program.
        program: String,
        /// The token.
        token: String,
        /// The tokens that it knows.
        known: String,
    },
    /// A coldness that is not a positive number.
    #[error("coldness = {0}: must be positive and finite")]
    Coldness(f64),
    /// The model would be too large.
    #[error("{program}: its model has {what} {found}, more than {most}")]
    TooLarge {
        /// The program.
        program: String,
        /// The size that is too large.
        what: &'static str,
        /// What it would be.
        found: usize,
        /// The largest value.
        most: usize,
    },
    /// No program of this name.
    #[error("{name}: is no program; there are {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The names that are known.
        known: String,
    },
}
