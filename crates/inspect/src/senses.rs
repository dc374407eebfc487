//! `inspect RUN senses`: where the representations of one word part that stands in several senses.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use headlight_lens::{SenseHead, Senses, Separation, WordInContext};
use headlight_report::{Printout, Table, with_interval};
use headlight_run::{Error, untrusted::read_at_most};
use headlight_tasks::Vocabulary;
use headlight_watch::{interrupt, no_room};
use serde::{Deserialize, Serialize};

use super::{
    ModelParts, Output, Subject, Verb,
    patched_senses::{FEWEST_PAIRS, NamedSenses, PatchedSenses},
};

/// The largest file, far more than the most contexts take.
const MOST_BYTES: u64 = 1 << 20;
/// The most contexts: the pass of each head runs over all of them.
const MOST_CONTEXTS: usize = 256;
/// Heads that a printout shows.
const SHOWN_HEADS: usize = 12;

/// Where the representations of a word part that stands in several senses, and which heads part them
#[derive(Debug, clap::Args)]
pub struct SensesVerb {
    /// A file with a line of JSON for each context: {"text": "They rowed to the bank", "word":
    /// "bank", "sense": "river", "cue": "rowed"}; text, word and cue are spelt as tokens are
    #[arg(long)]
    words: PathBuf,
    /// Another word for the same places, which has one sense: the control
    #[arg(long)]
    control: Option<String>,
    /// Each head is also patched at the word with what it writes there in the same text with another
    /// cue: how far it moves the word towards its other sense
    #[arg(long)]
    patch: bool,
}

impl Verb for SensesVerb {
    const NAME: &'static str = "senses";

    fn show(self, subject: Subject, out: &Output) -> Result<(), Error> {
        interrupt::listen()?;
        let found = subject.senses(&self.words, self.control.as_deref(), self.patch)?;
        out.show(&found, WordSenses::printout)
    }
}

/// A line of the file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    text: String,
    word: String,
    sense: String,
    cue: String,
}

/// What `inspect RUN senses` shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WordSenses {
    /// The word.
    pub word: String,
    /// How many contexts there are of each sense.
    pub contexts: BTreeMap<String, usize>,
    /// Behind each layer.
    pub layers: Vec<Separation>,
    /// The word that stands in its place in the same contexts, and its layers.
    pub control: Option<ControlWord>,
    /// The layer behind which the separation is largest.
    pub most_apart: usize,
    /// What every head up to that layer brings to it.
    pub heads: Vec<SenseHead>,
    /// How far heads move the word, patched; none where that was not asked for.
    pub patched: Option<PatchedSenses>,
}

/// The same contexts with another word.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ControlWord {
    /// The word.
    pub word: String,
    /// Behind each layer.
    pub layers: Vec<Separation>,
}

impl Subject {
    /// The separation of the senses of a word behind each layer, beside that of a word of one sense
    /// in its place, and what every head brings to it. With `patch`, how far each head moves the word
    /// towards its other sense.
    ///
    /// # Errors
    /// Names the line and the field that is wrong.
    pub fn senses(
        &self,
        words: &Path,
        control: Option<&str>,
        patch: bool,
    ) -> Result<WordSenses, Error> {
        let place = format!("--words {}", words.display());
        let lines = read_lines(words, &place)?;
        let reader = Reader {
            place: &place,
            vocabulary: &self.vocabulary()?,
            n_ctx: self.n_ctx(),
        };
        let pairs = patch.then(|| pairs_of(&lines, &place)).transpose()?;
        let contexts = reader.contexts(&lines)?;
        let ModelParts { model, .. } = self.model()?;
        let word = NamedSenses {
            word: &lines[0].word,
            senses: Senses::new(&model, &contexts),
        };
        let layers = word.senses.by_layer(self.seed()).map_err(no_room)?;
        let most_apart = layers.iter().max_by(|a, b| {
            let [a, b] = [a, b].map(|layer| layer.separation.mean);
            a.total_cmp(&b)
        });
        let most_apart = most_apart.map_or(0, |layer| layer.layer);
        let heads = word.senses.heads(most_apart).map_err(no_room)?;
        let mut contexts_of_control = Vec::new();
        if let Some(word) = control {
            let lines: Vec<Line> = lines.iter().map(|line| line.with_word(word)).collect();
            contexts_of_control = reader.contexts(&lines)?;
        }
        let of_control = control.map(|word| NamedSenses {
            word,
            senses: Senses::new(&model, &contexts_of_control),
        });
        let mut control = None;
        if let Some(NamedSenses { word, senses }) = &of_control {
            control = Some(ControlWord {
                word: (*word).to_owned(),
                layers: senses.by_layer(self.seed()).map_err(no_room)?,
            });
        }
        let mut patched = None;
        if let Some(pairs) = pairs {
            let of_control = of_control.as_ref();
            patched = self.patched_senses(&model, &word, of_control, &pairs, most_apart)?;
        }
        let mut counts = BTreeMap::new();
        for line in &lines {
            *counts.entry(line.sense.clone()).or_default() += 1;
        }
        Ok(WordSenses {
            word: lines[0].word.clone(),
            contexts: counts,
            layers,
            control,
            most_apart,
            heads,
            patched,
        })
    }
}

/// The contexts of two senses whose texts differ in the cue alone.
fn pairs_of(lines: &[Line], place: &str) -> Result<Vec<[usize; 2]>, Error> {
    let mut pairs: Vec<[usize; 2]> = Vec::new();
    for (later, line) in lines.iter().enumerate() {
        let is_partner = |earlier: &usize| {
            let other = &lines[*earlier];
            other.sense != line.sense
                && other.around_cue() == line.around_cue()
                && !pairs.iter().flatten().any(|taken| taken == earlier)
        };
        if let Some(earlier) = (0..later).find(is_partner) {
            pairs.push([earlier, later]);
        }
    }
    if pairs.len() < FEWEST_PAIRS {
        let message = format!(
            "has {} pairs of texts of two senses that differ in the cue alone; --patch needs {FEWEST_PAIRS}",
            pairs.len()
        );
        return Err(Error::new(place, message));
    }
    Ok(pairs)
}

fn read_lines(path: &Path, place: &str) -> Result<Vec<Line>, Error> {
    let text = String::from_utf8(read_at_most(path, MOST_BYTES)?)
        .map_err(|_| Error::new(place, "is no UTF-8"))?;
    let mut lines: Vec<Line> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let place = format!("{place} line {}", index + 1);
        if lines.len() == MOST_CONTEXTS {
            let message = format_args!("is one of more than {MOST_CONTEXTS} contexts");
            return Err(Error::new(place, message));
        }
        let line = serde_json::from_str(line).map_err(|error| {
            let expected = "must be {\"text\", \"word\", \"sense\", \"cue\"}, each a text";
            Error::new(&place, format_args!("{expected}: {error}"))
        })?;
        lines.push(line);
    }
    Ok(lines)
}

impl Line {
    /// What stands before and after the cue.
    fn around_cue(&self) -> Option<(&str, &str)> {
        self.text.split_once(&self.cue)
    }

    /// The same with another word in the place of its own.
    fn with_word(&self, word: &str) -> Self {
        let at = self.text.rfind(&self.word).unwrap_or(self.text.len());
        Self {
            text: format!("{}{word}", &self.text[..at]),
            word: word.to_owned(),
            ..self.clone()
        }
    }
}

/// Makes contexts of lines.
struct Reader<'a> {
    place: &'a str,
    vocabulary: &'a Vocabulary,
    n_ctx: usize,
}

impl Reader<'_> {
    fn contexts(&self, lines: &[Line]) -> Result<Vec<WordInContext>, Error> {
        let mut senses: Vec<&str> = Vec::new();
        let mut contexts: Vec<WordInContext> = Vec::new();
        for (index, line) in lines.iter().enumerate() {
            let place = format!("{} context {}", self.place, index + 1);
            let sense = senses.iter().position(|known| *known == line.sense);
            let sense = sense.unwrap_or_else(|| {
                senses.push(&line.sense);
                senses.len() - 1
            });
            let context = self.context(line, sense, &place)?;
            if let Some(first) = contexts.first()
                && first.tokens.last() != context.tokens.last()
            {
                let message = "ends in another token than in the first context";
                return Err(wrong(&place, "word", &line.word, message));
            }
            contexts.push(context);
        }
        let few = |sense| {
            contexts
                .iter()
                .filter(|context| context.sense == sense)
                .count()
                < 2
        };
        if senses.len() < 2 || (0..senses.len()).any(few) {
            let message = "must have two senses or more, with two contexts or more of each";
            return Err(Error::new(self.place, message));
        }
        Ok(contexts)
    }

    fn context(&self, line: &Line, sense: usize, place: &str) -> Result<WordInContext, Error> {
        let Some(at) = line
            .text
            .rfind(&line.word)
            .filter(|_| !line.word.is_empty())
        else {
            return Err(wrong(
                place,
                "word",
                &line.word,
                "does not occur in the text",
            ));
        };
        let before = &line.text[..at];
        let Some(cue) = before.find(&line.cue).filter(|_| !line.cue.is_empty()) else {
            let message = "does not occur in the text before the word";
            return Err(wrong(place, "cue", &line.cue, message));
        };
        let tokens_of = |text: &str| {
            let tokens = self.vocabulary.encode(text);
            tokens.map_err(|token| {
                let message = format!("cannot be cut into tokens of the model: {token}");
                wrong(place, "text", &line.text, &message)
            })
        };
        let tokens = tokens_of(&line.text[..at + line.word.len()])?;
        let to_cue = tokens_of(&line.text[..cue + line.cue.len()])?;
        if !tokens.starts_with(&to_cue) || to_cue.is_empty() {
            let message = "does not end where a token ends";
            return Err(wrong(place, "cue", &line.cue, message));
        }
        if tokens.len() > self.n_ctx {
            let message = format!(
                "has {} tokens, the model takes {}",
                tokens.len(),
                self.n_ctx
            );
            return Err(wrong(place, "text", &line.text, &message));
        }
        Ok(WordInContext {
            cue: to_cue.len() - 1,
            tokens,
            sense,
        })
    }
}

fn wrong(place: &str, field: &str, text: &str, message: &str) -> Error {
    Error::new(place, message)
        .key(field)
        .value(format_args!("{text:?}"))
}

impl WordSenses {
    /// For the terminal.
    #[must_use]
    pub fn printout(&self) -> Printout {
        let counts: Vec<String> = self
            .contexts
            .iter()
            .map(|(sense, count)| format!("{count} of {sense}"))
            .collect();
        let contexts = format!(
            "The stream at \"{}\" behind each layer, in {} contexts ({}). Separation: (distance between senses − \
             distance within a sense) / mean distance, cosine distances:",
            self.word.trim(),
            self.contexts.values().sum::<usize>(),
            counts.join(", ")
        );
        let null = self.layers.first().map_or(f64::NAN, |layer| layer.null);
        let explained = format!(
            "The largest separation of any layer is below {null:.2} in 95 % of random orders of the senses. Intervals: \
             jackknife over contexts, corrected for all layers."
        );
        let sure = self.heads.iter().filter(|head| head.lost.is_sure).count();
        let heads = format!(
            "Separation behind layer {}, where it is largest, that is lost without each of {} heads, its mean over \
             all contexts in its place at the word; {sure} of them surely part the senses (false discovery rate 0.05). \
             The heads that part them most:",
            self.most_apart,
            self.heads.len()
        );
        Printout::new()
            .prose(contexts)
            .table(self.layer_table())
            .prose(explained)
            .prose(heads)
            .table(self.head_table())
            .printout(
                self.patched
                    .as_ref()
                    .map(PatchedSenses::printout)
                    .unwrap_or_default(),
            )
    }

    fn layer_table(&self) -> Table {
        let mut header = ["layer", "within", "between", "separation"]
            .map(str::to_owned)
            .to_vec();
        if let Some(control) = &self.control {
            header.push(control.word.trim().to_owned());
        }
        let separation =
            |layer: &Separation| with_interval(layer.separation.mean, layer.separation.interval, 2);
        let mut rows = Vec::new();
        for (index, layer) in self.layers.iter().enumerate() {
            let mut row = vec![
                layer.layer.to_string(),
                format!("{:.4}", layer.within),
                format!("{:.4}", layer.between),
                separation(layer),
            ];
            if let Some(control) = &self.control {
                row.push(separation(&control.layers[index]));
            }
            rows.push(row);
        }
        Table::new(&header, rows)
    }

    fn head_table(&self) -> Table {
        let mut heads = self.heads.clone();
        heads.sort_by(|a, b| b.lost.mean.total_cmp(&a.lost.mean));
        let mut rows = Vec::new();
        for head in heads.iter().take(SHOWN_HEADS) {
            rows.push(vec![
                head.head.to_string(),
                with_interval(head.lost.mean, head.lost.interval, 3),
                if head.lost.is_sure { "yes" } else { "no" }.to_owned(),
                format!("{:.2}", head.weight),
                format!("{:.2}", head.uniform),
            ]);
        }
        Table::new(
            &["head", "lost", "sure", "weight on the cue", "uniform"],
            rows,
        )
    }
}
