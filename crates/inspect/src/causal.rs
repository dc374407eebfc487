//! `inspect RUN ablate` and `inspect RUN paths`: what the heads are used as.

use headlight_heads::{Ablation, HeadName, Role, heads_by_role};
use headlight_lens::{
    Behaviour, Estimate, Input, MinimalSet, Performance, Taken, ablate, ablate_frozen, all_heads,
    control_sets, heads_after, minimal_set, path_tests, score_layer,
};
use headlight_report::{Printout, Table, number_or_dash, or_dash, with_interval};
use headlight_residual::Decoder;
use headlight_run::{Error, ErrorKind};
use headlight_watch::{
    Cores, each_layer, interrupt, no_room,
    uses::{self, SEQUENCES},
};
use serde::Serialize;

use super::{Limit, ModelParts, Output, Part, Subject, Verb, progress::Progress, verb::POST_NORM};

/// What is left without each head, without the heads of a role, and with heads taken away one after the other
#[derive(Debug, clap::Args)]
pub struct AblateVerb {
    /// These heads together, written L1H0,L1H2, and no others unless --all
    #[arg(long, value_delimiter = ',')]
    heads: Vec<HeadName>,
    /// All heads and roles besides the heads that --heads names
    #[arg(long, requires = "heads")]
    all: bool,
    /// What stands in place of a head's blend of values: zero, its mean over sequences and
    /// positions, or its blend in another sequence (resample)
    #[arg(long, value_name = "zero|mean|resample", default_value_t)]
    by: Ablation,
}

impl Verb for AblateVerb {
    const NAME: &'static str = "ablate";
    const TAKES_PAIRS: bool = true;

    fn show(self, subject: Subject, out: &Output) -> Result<(), Error> {
        interrupt::listen()?;
        let ablations = if self.heads.is_empty() || self.all {
            subject.ablations(&self.heads, self.by)?
        } else {
            subject.ablations_of(&self.heads, self.by)?
        };
        out.show(&ablations, Ablations::printout)
    }
}

/// Which input of a later layer needs what a layer or head wrote
#[derive(Debug, clap::Args)]
pub struct PathsVerb {
    /// What these heads wrote and no others, each alone, written L1H0,L1H2 [default: each layer and
    /// each head]
    #[arg(long, value_delimiter = ',')]
    heads: Vec<HeadName>,
    /// Hidden from this layer alone [default: from each later one]
    #[arg(long)]
    reader: Option<usize>,
}

impl Verb for PathsVerb {
    const NAME: &'static str = "paths";
    const TAKES_PAIRS: bool = true;
    const PARTS: &'static [Part] = &[Part {
        name: "",
        limits: &[Limit {
            on: POST_NORM,
            says: "has no path from one layer to a later one; it takes two layers and norms before the parts",
        }],
    }];

    fn show(self, subject: Subject, out: &Output) -> Result<(), Error> {
        interrupt::listen()?;
        out.show(&subject.paths(&self.heads, self.reader)?, Paths::printout)
    }
}

/// Random sets beside each set of heads.
const CONTROLS: usize = 5;
/// A minimal set has been found when no more than this share of the accuracy is left.
const LEFT: f64 = 0.1;
/// Of more heads, each alone is not tested with patterns held, and no minimal set is searched.
const MOST_HEADS_AT_LENGTH: usize = 64;
const MANY_HEADS: &str = "Of so many heads none alone was tested with patterns held, and no minimal set was searched: \
     that would take too long.";
/// Of more heads alone, as many are shown as stand here, those first without which most changes.
const MOST_SHOWN: usize = 24;

/// Some heads and what is left without them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Without {
    /// What the heads have in common.
    pub name: String,
    /// The heads, ablated together.
    pub heads: Vec<HeadName>,
    /// What is left.
    pub performance: Performance,
    /// What is left while all later heads attend as in the untouched model. None of a head alone
    /// among many: that would take as long again.
    pub frozen: Option<Performance>,
    /// As many heads from the same layers, drawn at random from those that no test here marks as
    /// needed, and what is left without them. Empty where a layer has too few.
    pub controls: Vec<(Vec<HeadName>, Performance)>,
}

/// What `inspect RUN ablate` shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ablations {
    /// What stood in the heads' place.
    pub by: Ablation,
    /// The model as it is.
    pub untouched: Performance,
    /// Each head alone.
    pub alone: Vec<Without>,
    /// Heads of one role together.
    pub sets: Vec<Without>,
    /// The heads without which accuracy falls, alone or with the others of their role. No control
    /// is drawn from them.
    pub needed: Vec<HeadName>,
    /// Few heads without which the behaviour is gone. None where there are fewer than two
    /// sequences or too many heads, and where only chosen heads are ablated.
    pub minimal: Option<MinimalSet>,
    /// What is left out, if anything.
    pub left_out: Option<&'static str>,
}

/// One path: what `writers` wrote, hidden from one input of a later layer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Path {
    /// Who wrote: a head, or a whole layer.
    pub writer: String,
    /// The layer that does not see it.
    pub layer: usize,
    /// In this input.
    pub input: Input,
    /// What is left.
    pub performance: Performance,
}

/// What `inspect RUN paths` shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Paths {
    /// The model as it is.
    pub untouched: Performance,
    /// Every path from a layer or head to an input of a later layer.
    pub paths: Vec<Path>,
}

impl Subject {
    /// Ablates every head alone, the heads of each role together, the heads in `chosen` together,
    /// and searches for a small set that the behaviour needs.
    ///
    /// # Errors
    /// If the run has no weights, or a chosen head does not exist.
    pub fn ablations(&self, chosen: &[HeadName], ablation: Ablation) -> Result<Ablations, Error> {
        let (model, behaviour) = self.behaviour()?;
        let heads = all_heads(&model);
        check_heads(&heads, chosen)?;
        let test = Test::new(self, &model, &behaviour, ablation)?;
        let looks_like = self.roles(&model)?;
        let left = self.each_alone(&model, &behaviour, &heads, ablation)?;
        let is_large = heads.len() > MOST_HEADS_AT_LENGTH;
        let mut alone = Vec::new();
        for ((&head, role), performance) in heads.iter().zip(&looks_like).zip(left) {
            let mut frozen = None;
            if !is_large {
                frozen = Some(test.frozen(&[head])?);
            }
            alone.push(Without {
                name: role.to_string(),
                heads: vec![head],
                performance,
                frozen,
                controls: Vec::new(),
            });
        }
        let mut sets = Vec::new();
        for (role, heads) in heads_by_role(&heads, &looks_like) {
            sets.push(test.without(format!("all {role}"), heads)?);
        }
        if !chosen.is_empty() {
            sets.push(test.without("chosen".to_owned(), chosen.to_vec())?);
        }
        let needed = needed(&test.untouched, alone.iter().chain(&sets));
        test.add_controls(&mut sets, &needed)?;
        let mut minimal = None;
        if !is_large && behaviour.sequences() > 1 {
            let found = minimal_set(&model, &behaviour, ablation, LEFT);
            minimal = Some(found.map_err(no_room)?);
        }
        Ok(Ablations {
            by: ablation,
            untouched: test.untouched,
            alone,
            sets,
            needed,
            minimal,
            left_out: is_large.then_some(MANY_HEADS),
        })
    }

    /// Ablates the heads in `chosen` together, and nothing else but their controls.
    ///
    /// # Errors
    /// As [`ablations`](Self::ablations).
    pub fn ablations_of(
        &self,
        chosen: &[HeadName],
        ablation: Ablation,
    ) -> Result<Ablations, Error> {
        let (model, behaviour) = self.behaviour()?;
        check_heads(&all_heads(&model), chosen)?;
        let test = Test::new(self, &model, &behaviour, ablation)?;
        let mut sets = vec![test.without("chosen".to_owned(), chosen.to_vec())?];
        let mut needed = [self.needed_heads()?, needed(&test.untouched, sets.iter())].concat();
        needed.sort();
        needed.dedup();
        test.add_controls(&mut sets, &needed)?;
        Ok(Ablations {
            by: ablation,
            untouched: test.untouched,
            alone: Vec::new(),
            sets,
            needed,
            minimal: None,
            left_out: Some("Only these heads were ablated; with --all every other one is too."),
        })
    }

    /// Hides what each layer and each head wrote from the queries, the keys or the values of each
    /// later layer. With `heads` these alone are the writers, and `reader` the only layer that reads.
    ///
    /// # Errors
    /// If the run has no weights, a head or a layer does not exist, or the model has no paths: it has
    /// one layer, or its norms replace the stream.
    pub fn paths(&self, heads: &[HeadName], reader: Option<usize>) -> Result<Paths, Error> {
        let (model, behaviour) = self.behaviour()?;
        check_heads(&all_heads(&model), heads)?;
        let layers = model.blocks.len();
        if let Some(reader) = reader.filter(|&reader| reader >= layers) {
            let message = format!("the last layer is {}", layers - 1);
            return Err(Error::new("--reader", message).value(reader));
        }
        let mut tests = writers_and_readers(&model);
        if !heads.is_empty() {
            tests.retain(|test| matches!(test.heads[..], [head] if heads.contains(&head)));
        }
        if let Some(reader) = reader {
            tests.retain(|test| test.reader == reader);
        }
        let narrower = "--heads and --reader choose some of them";
        let what = format!("{} writers and readers ({narrower})", tests.len());
        let mut progress = Progress::new(what, "tests", tests.len(), tests.len() as f64);
        let mut paths = Vec::new();
        for some in tests.chunks(Cores::all().count()) {
            self.check_not_interrupted()?;
            let measured = Cores::all().map(some.iter().collect(), |test: &WriterAndReader| {
                path_tests(&model, &behaviour, &test.heads, test.reader)
            });
            for (test, through) in some.iter().zip(measured) {
                let Some(through) = through.map_err(no_room)? else {
                    continue;
                };
                for (input, performance) in Input::ALL.into_iter().zip(through) {
                    paths.push(Path {
                        writer: test.writer.clone(),
                        layer: test.reader,
                        input,
                        performance,
                    });
                }
            }
            progress.add(some.len(), some.len() as f64);
        }
        drop(progress);
        if paths.is_empty() {
            let message = "has no path from one layer to a later one; it takes two layers and norms before the parts";
            return Err(Error::new(self.path().display(), message));
        }
        let untouched = ablate(&model, &behaviour, &[], Ablation::default());
        Ok(Paths {
            untouched: untouched.map_err(no_room)?,
            paths,
        })
    }

    /// An error once a signal asked to stop.
    pub(super) fn check_not_interrupted(&self) -> Result<(), Error> {
        if interrupt::requested() {
            let path = self.path().display();
            return Err(Error::of(ErrorKind::Interrupted, path, "by a signal"));
        }
        Ok(())
    }

    /// The heads that the tests at the end of training mark as needed; none where the run has not
    /// come so far.
    pub(super) fn needed_heads(&self) -> Result<Vec<HeadName>, Error> {
        let last = self.logged_uses()?.pop();
        Ok(last.map(|row| row.needed()).unwrap_or_default())
    }

    /// The run's model and what its task scores.
    pub(super) fn behaviour(&self) -> Result<(Decoder, Behaviour), Error> {
        let ModelParts { model, .. } = self.model()?;
        Ok((model, self.task_behaviour()?))
    }

    /// What the run's task scores in its validation sequences, or the pairs of prompts ask. With a
    /// model of somebody else, logits are computed where they are scored only: of a vocabulary of
    /// many thousand tokens, they are a third of a pass.
    pub(super) fn task_behaviour(&self) -> Result<Behaviour, Error> {
        if let Some(pairs) = self.pairs() {
            return Ok(pairs.behaviour(&self.device));
        }
        let sequences = &self.validation()?.sequences;
        let behaviour = uses::behaviour(sequences, SEQUENCES, &self.device);
        Ok(match self.trained() {
            Ok(_) => behaviour,
            Err(_) => behaviour.only_where_scored(),
        })
    }

    /// What each head looks like on the probe.
    pub(super) fn roles(&self, model: &Decoder) -> Result<Vec<Role>, Error> {
        let probe = self.probe()?;
        let start = probe.has_start;
        let mut roles = Vec::new();
        each_layer(model, &probe.tokens, &self.device, start, false, |seen| {
            roles.extend(
                score_layer(seen.pattern, &probe.tokens)
                    .iter()
                    .map(Role::of),
            );
        })?;
        Ok(roles)
    }
}

/// Heads, and a later layer that reads them.
struct WriterAndReader {
    writer: String,
    heads: Vec<HeadName>,
    reader: usize,
}

/// Each layer and each head of it, with each later layer.
fn writers_and_readers(model: &Decoder) -> Vec<WriterAndReader> {
    let all = all_heads(model);
    let mut tests = Vec::new();
    for reader in 1..model.blocks.len() {
        for layer in 0..reader {
            let of_layer = all.iter().filter(|head| head.layer == layer);
            tests.push(WriterAndReader {
                writer: format!("layer {layer}"),
                heads: of_layer.copied().collect(),
                reader,
            });
        }
        for head in all.iter().filter(|head| head.layer < reader) {
            tests.push(WriterAndReader {
                writer: head.to_string(),
                heads: vec![*head],
                reader,
            });
        }
    }
    tests
}

/// Sets of heads ablated together.
struct Test<'a> {
    subject: &'a Subject,
    model: &'a Decoder,
    behaviour: &'a Behaviour,
    ablation: Ablation,
    untouched: Performance,
}

impl<'a> Test<'a> {
    fn new(
        subject: &'a Subject,
        model: &'a Decoder,
        behaviour: &'a Behaviour,
        ablation: Ablation,
    ) -> Result<Self, Error> {
        Ok(Self {
            subject,
            model,
            behaviour,
            ablation,
            untouched: ablate(model, behaviour, &[], ablation).map_err(no_room)?,
        })
    }

    fn left(&self, heads: &[HeadName]) -> Result<Performance, Error> {
        self.subject.check_not_interrupted()?;
        ablate(self.model, self.behaviour, heads, self.ablation).map_err(no_room)
    }

    fn frozen(&self, heads: &[HeadName]) -> Result<Performance, Error> {
        let later = heads_after(self.model, heads);
        let frozen = ablate_frozen(self.model, self.behaviour, heads, self.ablation, &later);
        frozen.map_err(no_room)
    }

    fn without(&self, name: String, heads: Vec<HeadName>) -> Result<Without, Error> {
        Ok(Without {
            name,
            performance: self.left(&heads)?,
            frozen: Some(self.frozen(&heads)?),
            controls: Vec::new(),
            heads,
        })
    }

    /// Beside each set, random ones from the heads of its layers that are not needed.
    fn add_controls(&self, sets: &mut [Without], needed: &[HeadName]) -> Result<(), Error> {
        let seed = self.subject.seed();
        for set in sets {
            for heads in control_sets(self.model, &set.heads, needed, CONTROLS, seed) {
                let left = self.left(&heads)?;
                set.controls.push((heads, left));
            }
        }
        Ok(())
    }
}

fn check_heads(all: &[HeadName], chosen: &[HeadName]) -> Result<(), Error> {
    match chosen.iter().find(|head| !all.contains(head)) {
        Some(head) => {
            let place = format_args!("--heads {head}");
            Err(Error::new(place, "there is no such head"))
        }
        None => Ok(()),
    }
}

/// The heads of the sets without which accuracy falls.
fn needed<'a>(untouched: &Performance, sets: impl Iterator<Item = &'a Without>) -> Vec<HeadName> {
    let mut needed = Vec::new();
    for set in sets {
        let left = uses::left(&set.performance);
        if left.fall_from(&uses::left(untouched)).is_some() {
            needed.extend_from_slice(&set.heads);
        }
    }
    needed.sort();
    needed.dedup();
    needed
}

impl Ablations {
    /// For the terminal.
    #[must_use]
    pub fn printout(&self) -> Printout {
        let needed = match self.needed.as_slice() {
            [] => "none".to_owned(),
            needed => names(needed),
        };
        // Of pairs the logit difference tells most.
        let first_to_go = match self.untouched.logit_difference {
            Some(_) => ["loss", "patterns held", "accuracy"],
            None => ["elsewhere", "loss", "patterns held"],
        };
        let mut printout = Printout::new().prose(format!(
            "In place of an ablated head stands {} (--by {}).",
            self.by.in_words(),
            self.by
        ));
        printout = printout
            .table(
                self.alone_table()
                    .text_columns(2)
                    .first_to_go(&first_to_go[..2]),
            )
            .prose(self.left_out_text());
        if !self.sets.is_empty() {
            printout = printout
                .prose(format!(
                    "Together, beside controls: as many heads from the same layers, drawn at random from those that \
                     no test here marks as needed (needed: {needed}), up to {CONTROLS} different draws. no control: a \
                     layer has too few such heads.",
                ))
                .table(self.sets_table().text_columns(2).first_to_go(&first_to_go));
        }
        printout
            .printout(self.minimal.as_ref().map(minimal_printout).unwrap_or_default())
            .prose(format!(
                "{} A head whose loss changes nothing alone may still be one of several that do the same: see the \
                 sets. patterns held: accuracy while all later heads attend as in the untouched model. What is lost \
                 there too is lost through what the heads move (OV); what comes back was lost because later heads \
                 look elsewhere without them (QK).",
                cells_text(&self.untouched)
            ))
    }

    /// The untouched model and each head alone; of many heads those without which most changes.
    fn alone_table(&self) -> Table {
        let untouched = vec!["none".to_owned(), String::new()];
        let cells_of_untouched = cells(&self.untouched);
        let mut rows = vec![
            [
                untouched,
                cells_of_untouched,
                vec![accuracy(&self.untouched)],
            ]
            .concat(),
        ];
        for head in self.shown() {
            let of_head = vec![names(&head.heads), head.name.clone()];
            rows.push([of_head, cells(&head.performance), vec![held(head)]].concat());
        }
        let [first, second, third] = cell_names(&self.untouched);
        let columns = [
            "without",
            "looks like",
            first,
            second,
            third,
            "patterns held",
        ];
        Table::new(&columns, rows)
    }

    /// All heads in their order, or of many those without which most changes.
    fn shown(&self) -> Vec<&Without> {
        let mut shown: Vec<&Without> = self.alone.iter().collect();
        if shown.len() <= MOST_HEADS_AT_LENGTH {
            return shown;
        }
        let change = |head: &&Without| change(&self.untouched, &head.performance);
        shown.sort_by(|a, b| change(b).total_cmp(&change(a)));
        shown.truncate(MOST_SHOWN);
        shown
    }

    fn left_out_text(&self) -> String {
        let mut text = self.left_out.unwrap_or_default().to_owned();
        if self.alone.len() > MOST_HEADS_AT_LENGTH {
            let by = cell_names(&self.untouched)[if self.untouched.logit_difference.is_some() {
                2
            } else {
                1
            }];
            let shown = format!(
                "Of {} heads these {MOST_SHOWN} are shown, those first without which {by} changes most; --json has all. \
                 The largest of many changes is in part luck: measure it anew on other sequences. ",
                self.alone.len()
            );
            text.insert_str(0, &shown);
        }
        text
    }

    fn sets_table(&self) -> Table {
        let row = |set: &Without| {
            let controls = match set.controls.as_slice() {
                [] => "no control".to_owned(),
                controls => controls
                    .iter()
                    .map(|(_, left)| control(left))
                    .collect::<Vec<_>>()
                    .join(" "),
            };
            let of_set = vec![some_names(&set.heads), set.name.clone()];
            [of_set, cells(&set.performance), vec![held(set), controls]].concat()
        };
        let [first, second, third] = cell_names(&self.untouched);
        let columns = [
            "without",
            "that is",
            first,
            second,
            third,
            "patterns held",
            "controls",
        ];
        Table::new(&columns, self.sets.iter().map(row))
    }
}

/// What is left without a control: the accuracy, or of pairs the logit difference.
fn control(left: &Performance) -> String {
    match &left.logit_difference {
        Some(difference) => format!("{:.2}", difference.mean),
        None => format!("{:.3}", left.accuracy),
    }
}

/// Accuracy with patterns held.
fn held(set: &Without) -> String {
    or_dash(set.frozen.as_ref().map(accuracy))
}

/// By how much the logit difference changes, or else the loss.
fn change(untouched: &Performance, left: &Performance) -> f64 {
    match (&untouched.logit_difference, &left.logit_difference) {
        (Some(untouched), Some(left)) => (left.mean - untouched.mean).abs(),
        _ => (left.loss - untouched.loss).abs(),
    }
}

/// The names of few heads, or the first of many.
fn some_names(heads: &[HeadName]) -> String {
    match heads.len() {
        0..=8 => names(heads),
        count => format!("{} and {} more", names(&heads[..6]), count - 6),
    }
}

impl Paths {
    /// A line for each writer and reader, a column for each input.
    #[must_use]
    pub fn printout(&self) -> Printout {
        let rows = self.paths.chunks(Input::ALL.len()).map(|inputs| {
            let accuracies = inputs.iter().map(|path| accuracy(&path.performance));
            [
                inputs[0].writer.clone(),
                format!("layer {}", inputs[0].layer),
            ]
            .into_iter()
            .chain(accuracies)
            .collect()
        });
        let untouched = format!(
            "Accuracy is {} with every path open. What a writer wrote is replaced by its mean in one input of a later \
             layer only; everything else sees it.",
            accuracy(&self.untouched)
        );
        let columns: Vec<&str> = ["hidden from", "reader"]
            .into_iter()
            .chain(Input::ALL.map(|input| input.reader().name()))
            .collect();
        Printout::new()
            .prose(untouched)
            .table(Table::new(&columns, rows).text_columns(2))
    }
}

/// How the set was found, and what it is.
fn minimal_printout(minimal: &MinimalSet) -> Printout {
    let row = |taken: &Taken| {
        vec![
            taken.head.to_string(),
            accuracy(&taken.found),
            accuracy(&taken.reported),
        ]
    };
    let taken = minimal.taken.iter().map(row);
    Printout::new()
        .prose(
            "Taken away one after the other, each time the head without which accuracy is lowest on the first half of \
             the sequences; the other half had no say:",
        )
        .table(Table::new(&["without also", "accuracy", "on the other half"], taken))
        .prose(format!(
            "Of these a minimal set is {}: without it accuracy is {}, on the other half {}, and no head of it can come \
             back. Another small set may exist.",
            names(&minimal.heads),
            accuracy(&minimal.found),
            accuracy(&minimal.reported),
        ))
}

pub(super) fn names(heads: &[HeadName]) -> String {
    heads
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(" ")
}

/// A share and half of its interval.
pub(super) fn share(share: &Estimate) -> String {
    with_interval(share.mean, share.interval, 3)
}

pub(super) fn accuracy(performance: &Performance) -> String {
    with_interval(performance.accuracy, performance.interval, 3)
}

/// Accuracy, loss, and loss elsewhere or the logit difference.
pub(super) fn cells(performance: &Performance) -> Vec<String> {
    let third = match &performance.logit_difference {
        Some(difference) => share(difference),
        None => number_or_dash(performance.loss_elsewhere, 3),
    };
    vec![
        accuracy(performance),
        format!("{:.3}", performance.loss),
        third,
    ]
}

/// The columns of [`cells`].
pub(super) fn cell_names(performance: &Performance) -> [&'static str; 3] {
    match performance.logit_difference {
        Some(_) => ["accuracy", "loss", "logit difference"],
        None => ["accuracy", "loss", "elsewhere"],
    }
}

/// What [`cells`] are.
pub(super) fn cells_text(performance: &Performance) -> &'static str {
    match performance.logit_difference {
        Some(_) => {
            "accuracy: the share of pairs in which the logit of the answer is above that of the wrong token; loss of the \
             answer in nats; logit difference: answer less wrong token, of controls too. ±: half of the 95 % interval."
        }
        None => {
            "accuracy±half of the 95 % interval; loss on scored targets, and on the others, in nats."
        }
    }
}
