//! What a verb of `inspect` is, and what it says about itself.

use clap::{ArgMatches, Args, Command};
use headlight_run::{Error, ErrorKind};

use crate::{Comparison, Output, Subject, comparison::takes_one_run};

/// A verb: `inspect RUN NAME`, with its fields as options. The first paragraph of its documentation
/// is its help, and its row in the table of verbs.
///
/// ```
/// use headlight_inspect::{AnyVerb, Output, Subject, Verb};
/// use headlight_report::Printout;
/// use headlight_run::Error;
///
/// /// The steps that the weights have been trained for
/// #[derive(clap::Args)]
/// struct Steps;
///
/// impl Verb for Steps {
///     const NAME: &'static str = "steps";
///
///     fn show(self, subject: Subject, out: &Output) -> Result<(), Error> {
///         let steps = subject.summary()?.steps;
///         out.show(&steps, |steps| Printout::new().prose(format!("{steps} steps")))
///     }
/// }
///
/// let verb = AnyVerb::of::<Steps>();
/// assert_eq!((verb.name(), verb.help().as_str()), ("steps", "The steps that the weights have been trained for"));
/// ```
pub trait Verb: Args {
    /// What it is called on the command line.
    const NAME: &'static str;

    /// What it needs of a run beside the weights.
    const NEEDS: &'static [Need] = &[];

    /// Its parts, where some architectures have not all of them. One part without a name is the
    /// whole verb on every architecture.
    const PARTS: &'static [Part] = &[Part::WHOLE];

    /// Whether it takes pairs of prompts (`--pairs value|key|query|FILE`) in the place of sequences.
    const TAKES_PAIRS: bool = false;

    /// Computes the result and shows it.
    ///
    /// # Errors
    /// If an option is wrong, or the subject lacks what the verb needs.
    fn show(self, subject: Subject, out: &Output) -> Result<(), Error>;

    /// Shows several runs side by side, if the verb does that.
    ///
    /// # Errors
    /// If it does not, an option is wrong, or a run lacks what the verb needs.
    fn compare(self, _runs: &Comparison, _out: &Output) -> Result<(), Error> {
        Err(takes_one_run(Self::NAME))
    }
}

/// What a verb needs of a run beside its configuration and its weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// What was logged while training.
    Logs,
    /// A task with gold relations.
    Relations,
    /// Weights that were compiled from a program.
    Program,
    /// Parts that are aligned with the variables of a program.
    Alignment,
}

impl Need {
    /// In the table of verbs.
    #[must_use]
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Logs => "the logs of training",
            Self::Relations => "a task with gold relations, such as `grammar`",
            Self::Program => "a [compiled program](results/known_answers.md)",
            Self::Alignment => "a run with a table [`[interchange]`](configuration.md#interchange)",
        }
    }
}

/// A part of a verb, and where it is not.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// What it is about; nothing for the whole verb.
    pub name: &'static str,
    /// Where there are no numbers.
    pub limits: &'static [Limit],
}

impl Part {
    /// The whole verb, on every architecture.
    pub const WHOLE: Self = Self::everywhere("");

    /// A part that every architecture has.
    #[must_use]
    pub const fn everywhere(name: &'static str) -> Self {
        Self { name, limits: &[] }
    }
}

/// Architectures on which a part of a verb has no numbers.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// Which, of [`ARCHITECTURES`].
    pub on: &'static [&'static str],
    /// What the verb says there.
    pub says: &'static str,
}

/// The architectures that every verb is tried on, as the table of verbs names them.
pub const ARCHITECTURES: [&str; 13] = [
    "attention only",
    "gpt2",
    "llama",
    "post-norm",
    "post-norm, no MLP",
    "RMS norm",
    "no norm",
    "grouped queries",
    "window",
    "rotary",
    "ALiBi",
    "sinusoidal",
    "no positions",
];

/// Those whose norms replace the stream.
pub(crate) const POST_NORM: &[&str] = &["post-norm", "post-norm, no MLP"];

/// A verb, whichever it is.
#[derive(Clone, Copy)]
pub struct AnyVerb {
    name: &'static str,
    needs: &'static [Need],
    parts: &'static [Part],
    takes_pairs: bool,
    command: fn() -> Command,
    show: fn(&ArgMatches, Subject, &Output) -> Result<(), Error>,
    compare: fn(&ArgMatches, &Comparison, &Output) -> Result<(), Error>,
}

impl AnyVerb {
    /// The verb `V`.
    #[must_use]
    pub fn of<V: Verb>() -> Self {
        Self {
            name: V::NAME,
            needs: V::NEEDS,
            parts: V::PARTS,
            takes_pairs: V::TAKES_PAIRS,
            command: || V::augment_args(Command::new(V::NAME)),
            show: |matches, subject, out| options::<V>(matches)?.show(subject, out),
            compare: |matches, runs, out| options::<V>(matches)?.compare(runs, out),
        }
    }

    /// What it is called on the command line.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What it needs of a run beside the weights.
    #[must_use]
    pub fn needs(&self) -> &'static [Need] {
        self.needs
    }

    /// Its parts, and on which architectures they are missing.
    #[must_use]
    pub fn parts(&self) -> &'static [Part] {
        self.parts
    }

    /// Whether it takes pairs of prompts in the place of sequences.
    #[must_use]
    pub fn takes_pairs(&self) -> bool {
        self.takes_pairs
    }

    /// Its name, its help and its options.
    #[must_use]
    pub fn command(&self) -> Command {
        (self.command)()
    }

    /// What it shows, in one sentence.
    #[must_use]
    pub fn help(&self) -> String {
        self.command()
            .get_about()
            .map(ToString::to_string)
            .unwrap_or_default()
    }

    /// Shows a subject as the arguments of the [`command`](Self::command) ask for.
    ///
    /// # Errors
    /// As [`Verb::show`].
    pub fn show(&self, matches: &ArgMatches, subject: Subject, out: &Output) -> Result<(), Error> {
        (self.show)(matches, subject, out)
    }

    /// Shows several runs side by side.
    ///
    /// # Errors
    /// As [`Verb::compare`].
    pub fn compare(
        &self,
        matches: &ArgMatches,
        runs: &Comparison,
        out: &Output,
    ) -> Result<(), Error> {
        (self.compare)(matches, runs, out)
    }
}

/// The options of a verb.
fn options<V: Verb>(matches: &ArgMatches) -> Result<V, Error> {
    V::from_arg_matches(matches)
        .map_err(|error| Error::because(ErrorKind::Argument, V::NAME, error))
}
