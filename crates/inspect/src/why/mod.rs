//! `inspect SUBJECT why`: why a head looks there, and what it moves from there.

mod finding;
pub(super) mod page;
mod printout;

use std::str::FromStr;

use headlight_heads::{HeadName, MayAttend, Measure, Role, Score, ScoreName, first_largest};
use headlight_lens::{
    Cell, Contrast, LayerPattern, Moved, OpenedHead, Toward, Why, score_layer, target_cells,
};
use headlight_residual::Decoder;
use headlight_run::{Error, ErrorKind};
use headlight_tasks as tasks;
use headlight_watch::{Watched, no_room};
use serde::Serialize;

use super::{Limit, ModelParts, Output, Part, Subject, Verb, verb::POST_NORM};

/// Why a head looks there: which part of the query meets which part of the key, and what it moves
#[derive(Debug, clap::Args)]
pub struct WhyVerb {
    /// The head, written L0H1
    #[arg(long)]
    head: HeadName,
    /// One cell of this sequence: tokens by name, with spaces between them; for a model of text, any text
    #[arg(long)]
    prompt: Option<String>,
    /// One cell: the position of its query, counted from 0 [default: the last, if --prompt or --key
    /// is there]
    #[arg(long)]
    query: Option<usize>,
    /// One cell: the position of its key [default: the key with the most weight]
    #[arg(long)]
    key: Option<usize>,
    /// The sequences: probe, task, or text with --text
    #[arg(long, value_name = "probe|task|text", default_value = "probe")]
    on: On,
    /// What is taken off the scores: the scores of the other keys, weighted as the head weights
    /// them, their mean, or nothing
    #[arg(long, value_name = "attention|uniform|none", default_value_t)]
    contrast: Contrast,
    /// Toward which logits the head moves something, besides those of the next token and of the
    /// token at the key: token names with spaces between them
    #[arg(long)]
    toward: Option<String>,
}

const NOT_A_SUM: &str =
    "its norms replace the stream, so that a score is no sum of what parts wrote";

impl Verb for WhyVerb {
    const NAME: &'static str = "why";
    const PARTS: &'static [Part] = &[Part {
        name: "",
        limits: &[Limit {
            on: POST_NORM,
            says: NOT_A_SUM,
        }],
    }];

    fn show(self, subject: Subject, out: &Output) -> Result<(), Error> {
        let head = subject.why(&WhyAsked {
            head: self.head,
            prompt: self.prompt,
            query: self.query,
            key: self.key,
            on: self.on,
            contrast: self.contrast,
            toward: self.toward,
        })?;
        out.show(&head, WhyOfCells::printout)
    }
}

/// On which sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum On {
    /// Random tokens that come back.
    #[default]
    Probe,
    /// The subject's own task.
    Task,
    /// A text that stands in place of the task.
    Text,
}

impl FromStr for On {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "probe" => Ok(Self::Probe),
            "task" => Ok(Self::Task),
            "text" => Ok(Self::Text),
            _ => Err(format!("{name} is none of probe, task and text")),
        }
    }
}

/// What is asked.
#[derive(Debug, Clone)]
pub struct WhyAsked {
    /// The head.
    pub head: HeadName,
    /// One cell of this sequence.
    pub prompt: Option<String>,
    /// The query of one cell.
    pub query: Option<usize>,
    /// The key of one cell.
    pub key: Option<usize>,
    /// The sequences.
    pub on: On,
    /// What is taken off the scores.
    pub contrast: Contrast,
    /// Names of tokens whose logits are asked about too.
    pub toward: Option<String>,
}

impl WhyAsked {
    /// Many cells of the probe.
    pub(super) fn of(head: HeadName) -> Self {
        Self {
            head,
            prompt: None,
            query: None,
            key: None,
            on: On::Probe,
            contrast: Contrast::Attention,
            toward: None,
        }
    }

    fn is_of_one_cell(&self) -> bool {
        self.prompt.is_some() || self.query.is_some() || self.key.is_some()
    }
}

/// Why a head looks at the keys of some cells: what `inspect SUBJECT why` shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WhyOfCells {
    /// The head.
    pub head: HeadName,
    /// What came out, in sentences.
    pub finding: String,
    /// Which cells.
    #[serde(flatten)]
    pub place: Place,
    /// The terms of the margin.
    #[serde(flatten)]
    pub why: Why,
    /// What of the margin is for every query, whatever it holds.
    pub for_every_query: f64,
    /// Whether the scores are capped after the terms are added up.
    pub has_softcap: bool,
    /// The logits that [`moved`](Self::moved) speaks of.
    pub toward: Vec<String>,
    /// What the head moves from these keys.
    pub moved: Option<Moved>,
    /// Of one cell: the tokens whose logits it raises most above the mean logit.
    pub raised: Vec<(String, f64)>,
}

/// A model and the names of its tokens.
#[derive(Clone, Copy)]
pub(super) struct NamedModel<'a> {
    pub model: &'a Decoder,
    pub vocabulary: &'a [String],
}

/// Which cells.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Place {
    /// One cell of one sequence.
    Cell {
        /// The sequence.
        tokens: Vec<String>,
        /// The position of the query.
        query: usize,
        /// The position of the key.
        key: usize,
    },
    /// The targets of a measure.
    Targets {
        /// The measure that the head stands out on most.
        measure: String,
        /// What a head with this role does.
        does: String,
        /// Whether it stands out so far that the measure is its role.
        is_role: bool,
        /// The sequences.
        on: String,
        /// Their number.
        sequences: usize,
    },
}

impl Place {
    /// Whether nothing comes next.
    fn is_at_the_end(&self) -> bool {
        matches!(self, Self::Cell { tokens, query, .. } if query + 1 == tokens.len())
    }
}

/// Numbers of queries, keys and values of all sequences together that are held at once.
const MOST_NUMBERS: usize = 1 << 26;
/// Tokens named that one cell raises.
const RAISED: usize = 5;

/// The head on some sequences, and which of their cells are asked about.
struct Opened {
    head: OpenedHead,
    cells: Vec<Vec<Cell>>,
    place: Place,
}

impl Subject {
    /// Why a head looks at one key, or at the keys of the measure that it stands out on most.
    ///
    /// # Errors
    /// If the head, a token or a position does not exist, the stream is no sum, or no query has such
    /// a key.
    pub fn why(&self, asked: &WhyAsked) -> Result<WhyOfCells, Error> {
        let ModelParts { model, vocabulary } = self.model()?;
        let parts = NamedModel {
            model: &model,
            vocabulary: &vocabulary,
        };
        check_head(&model, asked.head)?;
        let opened = if asked.is_of_one_cell() {
            self.opened_at_a_cell(asked, parts)?
        } else {
            let watched = self.watched(asked.on)?;
            let opened = self.opened_at_targets(asked, &model, watched, MOST_NUMBERS)?;
            opened.ok_or_else(|| {
                let message = "no query of these sequences has a key that a head could look for";
                Error::new(format_args!("--head {}", asked.head), message)
            })?
        };
        let (toward, names) = self.toward(asked, parts, &opened.place)?;
        why_of(parts, asked, opened, &toward, names)
    }

    /// The directions that are asked about, and their names.
    fn toward(
        &self,
        asked: &WhyAsked,
        parts: NamedModel,
        place: &Place,
    ) -> Result<(Vec<Toward>, Vec<String>), Error> {
        let mut toward = vec![Toward::KeyToken];
        let mut names = vec!["token at the key".to_owned()];
        if !place.is_at_the_end() {
            toward.insert(0, Toward::NextToken);
            names.insert(0, "next token".to_owned());
        }
        if let Some(tokens) = &asked.toward {
            let vocabulary = self.vocabulary()?;
            let tokens = tasks::encode_prompt(&vocabulary, tokens, self.n_ctx())
                .map_err(|error| error.at("--toward"))?;
            for token in tokens {
                toward.push(Toward::Token(token));
                names.push(parts.vocabulary[token as usize].clone());
            }
        }
        Ok((toward, names))
    }

    fn opened_at_a_cell(&self, asked: &WhyAsked, parts: NamedModel) -> Result<Opened, Error> {
        let tokens = match &asked.prompt {
            Some(prompt) => tasks::encode_prompt(&self.vocabulary()?, prompt, self.n_ctx())?,
            None => self.watched(asked.on)?.tokens.swap_remove(0),
        };
        one_cell(parts, tokens, asked.head, asked.query, asked.key)
    }

    /// The head on the sequences that are asked for, at the targets of the measure that it stands out on most.
    /// At most `most_numbers` numbers of queries, keys and values are held. `None` where no query has
    /// a target.
    fn opened_at_targets(
        &self,
        asked: &WhyAsked,
        model: &Decoder,
        mut watched: Watched,
        most_numbers: usize,
    ) -> Result<Option<Opened>, Error> {
        let head = asked.head;
        watched
            .tokens
            .truncate(sequences_that_fit(model, head, &watched, most_numbers));
        let start = usize::from(watched.has_start);
        let opened = open(model, head, &watched.tokens, start)?;
        let weights = opened.weights();
        let length = watched.tokens[0].len();
        let pattern = LayerPattern::new([watched.tokens.len(), 1, length], &weights)
            .with_window(model.config().window_of(head.layer))
            .with_start(watched.has_start);
        Ok(self.at_targets(asked, opened, &watched, pattern))
    }

    fn at_targets(
        &self,
        asked: &WhyAsked,
        head: OpenedHead,
        watched: &Watched,
        pattern: LayerPattern,
    ) -> Option<Opened> {
        let scores = score_layer(pattern, &watched.tokens).swap_remove(0);
        let share = |measure: &Measure| {
            let score = scores.get(&ScoreName::from(*measure));
            score.map_or(f64::NEG_INFINITY, Score::share)
        };
        let known = Measure::all()
            .into_iter()
            .filter(|measure| share(measure).is_finite());
        let measure = first_largest(known, share)?;
        let cells = target_cells(measure, &pattern, &watched.tokens);
        if cells.iter().all(Vec::is_empty) {
            return None;
        }
        let on = match asked.on {
            On::Probe => "the probe".to_owned(),
            On::Task | On::Text => self.own_sequences(),
        };
        Some(Opened {
            head,
            cells,
            place: Place::Targets {
                measure: measure.name().to_owned(),
                does: measure.does().to_owned(),
                is_role: Role::of(&scores) == Role::Of(measure),
                on,
                sequences: watched.tokens.len(),
            },
        })
    }

    fn watched(&self, on: On) -> Result<Watched, Error> {
        match on {
            On::Probe => self.probe(),
            On::Task => self.on_task(),
            On::Text if self.is_on_text() => self.on_task(),
            On::Text => Err(Error::new("--on text", "needs --text FILE")),
        }
    }
}

fn may_attend(model: &Decoder, head: HeadName) -> MayAttend {
    MayAttend::causal(model.config().window_of(head.layer))
}

/// Checks that the model has such a head.
fn check_head(model: &Decoder, head: HeadName) -> Result<(), Error> {
    let (n_layers, n_heads) = (model.blocks.len(), model.n_heads());
    if head.layer < n_layers && head.head < n_heads {
        return Ok(());
    }
    let message = format!(
        "there is no such head, the last is L{}H{}",
        n_layers - 1,
        n_heads - 1
    );
    Err(Error::new(format_args!("--head {head}"), message))
}

/// How many sequences of these may be taken apart at once: two at least.
fn sequences_that_fit(
    model: &Decoder,
    head: HeadName,
    watched: &Watched,
    most_numbers: usize,
) -> usize {
    let ingredients = 4 + head.layer * (model.n_heads() + 2);
    let width = 3 * model.config().d_head();
    let of_sequence = watched.tokens[0].len() * ingredients * width;
    (most_numbers / of_sequence).max(2)
}

fn open(
    model: &Decoder,
    head: HeadName,
    tokens: &[Vec<u32>],
    start: usize,
) -> Result<OpenedHead, Error> {
    let opened = OpenedHead::of(model, head, tokens, start).map_err(no_room)?;
    let opened = opened.ok_or_else(|| Error::of(ErrorKind::Missing, "the model", NOT_A_SUM))?;
    let length = tokens[0].len();
    let seen = may_attend(model, head);
    for sequence in 0..tokens.len() {
        for query in 0..length {
            let mut keys = seen.keys(query, length);
            if !keys.all(|key| opened.score(sequence, query, key).is_finite()) {
                let message = "has scores that are no numbers, so that nothing adds up to them";
                return Err(Error::of(ErrorKind::Missing, head, message));
            }
        }
    }
    Ok(opened)
}

/// One cell of a sequence.
fn one_cell(
    parts: NamedModel,
    tokens: Vec<u32>,
    head: HeadName,
    query: Option<usize>,
    key: Option<usize>,
) -> Result<Opened, Error> {
    let length = tokens.len();
    let query = query.unwrap_or(length - 1);
    if query >= length {
        let message = format!("is not inside the sequence of {length} tokens, counted from 0");
        return Err(Error::new("--query", message).value(query));
    }
    let opened = open(parts.model, head, std::slice::from_ref(&tokens), 0)?;
    let seen = may_attend(parts.model, head).keys(query, length);
    let weight = |key: &usize| opened.weight(0, query, *key);
    let key = key.unwrap_or_else(|| first_largest(seen.clone(), weight).unwrap_or(query));
    if !seen.contains(&key) {
        let message = format!(
            "is not seen by query {query}, which sees {} to {query}",
            seen.start
        );
        return Err(Error::new("--key", message).value(key));
    }
    if seen.len() == 1 {
        let message = "sees one key alone, so nothing has to be explained";
        return Err(Error::new("--query", message).value(query));
    }
    let names = tokens
        .iter()
        .map(|&token| parts.vocabulary[token as usize].clone());
    Ok(Opened {
        place: Place::Cell {
            tokens: names.collect(),
            query,
            key,
        },
        head: opened,
        cells: vec![vec![Cell {
            query,
            keys: vec![key],
        }]],
    })
}

/// The numbers and the finding.
fn why_of(
    parts: NamedModel,
    asked: &WhyAsked,
    opened: Opened,
    toward: &[Toward],
    toward_names: Vec<String>,
) -> Result<WhyOfCells, Error> {
    let Opened { head, cells, place } = opened;
    let no_cell = || Error::of(ErrorKind::Internal, "why", "has no cell");
    let why = head.why(&cells, asked.contrast).ok_or_else(no_cell)?;
    let why = why
        .against_turned(parts.model, &head, &cells)
        .map_err(no_room)?;
    let mut raised = Vec::new();
    if let Place::Cell { .. } = place {
        for (token, logit) in head.raised(0, &cells[0][0], RAISED) {
            raised.push((parts.vocabulary[token as usize].clone(), logit));
        }
    }
    Ok(WhyOfCells {
        head: asked.head,
        finding: finding::finding(asked.head, &place, &why),
        place,
        for_every_query: why.for_every_query(),
        has_softcap: parts.model.config().attention.softcap.is_some(),
        moved: head.moved(&cells, toward),
        toward: toward_names,
        raised,
        why,
    })
}
