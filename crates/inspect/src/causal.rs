//! `inspect RUN ablate` and `inspect RUN paths`: what the heads are used as.

use headlight_heads::{Ablation, HeadName, Role, heads_by_role};
use headlight_lens::{
    Behaviour, Estimate, Input, MinimalSet, Performance, Taken, ablate, ablate_frozen, all_heads,
    control_sets, heads_after, minimal_set, path_tests, score_layer,
};
use headlight_report::{Printout, Table, number_or_dash, with_interval};
use headlight_residual::Decoder;
use headlight_run::Error;
use headlight_watch::{
    Patterns, no_room,
    uses::{self, SEQUENCES},
};
use serde::Serialize;

use super::{Limit, ModelParts, Output, Part, Subject, Verb, verb::POST_NORM};

/// What is left without each head, without the heads of a role, and without ever more heads
#[derive(Debug, clap::Args)]
pub struct AblateVerb {
    /// These heads together too, written L1H0,L1H2
    #[arg(long, value_delimiter = ',')]
    heads: Vec<HeadName>,
    /// What stands in place of a head's blend of values: zero, its mean over sequences and
    /// positions, or its blend in another sequence (resample)
    #[arg(long, value_name = "zero|mean|resample", default_value_t)]
    by: Ablation,
}

impl Verb for AblateVerb {
    const NAME: &'static str = "ablate";
    const TAKES_PAIRS: bool = true;

    fn show(self, subject: Subject, out: &Output) -> Result<(), Error> {
        out.show(
            &subject.ablations(&self.heads, self.by)?,
            Ablations::printout,
        )
    }
}

/// Which input of a later layer needs what a layer or head wrote
#[derive(Debug, clap::Args)]
pub struct PathsVerb;

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
        out.show(&subject.paths()?, Paths::printout)
    }
}

/// Random sets beside each set of heads.
const CONTROLS: usize = 5;
/// A minimal set has been found when no more than this share of the accuracy is left.
const LEFT: f64 = 0.1;

/// Some heads and what is left without them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Without {
    /// What the heads have in common.
    pub name: String,
    /// The heads, ablated together.
    pub heads: Vec<HeadName>,
    /// What is left.
    pub performance: Performance,
    /// What is left while all later heads attend as in the untouched model.
    pub frozen: Performance,
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
    /// sequences.
    pub minimal: Option<MinimalSet>,
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
        if let Some(head) = chosen.iter().find(|head| !heads.contains(head)) {
            return Err(Error::new(
                format_args!("--heads {head}"),
                "there is no such head",
            ));
        }
        let ablations = headlight_lens::Ablations::new(&model, &behaviour, ablation);
        let left = |heads: &[HeadName]| ablations.without(heads).map_err(no_room);
        let without = |name: String, heads: Vec<HeadName>| {
            let later = heads_after(&model, &heads);
            let frozen = ablate_frozen(&model, &behaviour, &heads, ablation, &later);
            Ok::<Without, Error>(Without {
                controls: Vec::new(),
                performance: left(&heads)?,
                frozen: frozen.map_err(no_room)?,
                name,
                heads,
            })
        };
        let looks_like = self.roles(&model)?;
        let mut alone = Vec::new();
        for (&head, role) in heads.iter().zip(&looks_like) {
            alone.push(without(role.to_string(), vec![head])?);
        }
        let mut sets = Vec::new();
        for (role, heads) in heads_by_role(&heads, &looks_like) {
            sets.push(without(format!("all {role}"), heads)?);
        }
        if !chosen.is_empty() {
            sets.push(without("chosen".to_owned(), chosen.to_vec())?);
        }
        let untouched = left(&[])?;
        let needed = needed(&untouched, alone.iter().chain(&sets));
        for set in &mut sets {
            for heads in control_sets(&model, &set.heads, &needed, CONTROLS, self.seed()) {
                let performance = left(&heads)?;
                set.controls.push((heads, performance));
            }
        }
        let minimal = if behaviour.sequences() < 2 {
            None
        } else {
            Some(minimal_set(&model, &behaviour, ablation, LEFT).map_err(no_room)?)
        };
        Ok(Ablations {
            by: ablation,
            untouched,
            alone,
            sets,
            needed,
            minimal,
        })
    }

    /// Hides what each layer and each head wrote from the queries, the keys or the values of each
    /// later layer.
    ///
    /// # Errors
    /// If the run has no weights, or the model has no paths: it has one layer, or its norms replace
    /// the stream.
    pub fn paths(&self) -> Result<Paths, Error> {
        let (model, behaviour) = self.behaviour()?;
        let mut paths = Vec::new();
        for layer in 1..model.blocks.len() {
            let earlier: Vec<HeadName> = all_heads(&model)
                .into_iter()
                .filter(|head| head.layer < layer)
                .collect();
            let whole = (0..layer).map(|writer| {
                let heads = earlier
                    .iter()
                    .copied()
                    .filter(|head| head.layer == writer)
                    .collect();
                (format!("layer {writer}"), heads)
            });
            let single = earlier.iter().map(|&head| (head.to_string(), vec![head]));
            for (writer, heads) in whole
                .chain(single)
                .collect::<Vec<(String, Vec<HeadName>)>>()
            {
                let through = path_tests(&model, &behaviour, &heads, layer).map_err(no_room)?;
                let Some(through) = through else { continue };
                for (input, performance) in Input::ALL.into_iter().zip(through) {
                    paths.push(Path {
                        writer: writer.clone(),
                        layer,
                        input,
                        performance,
                    });
                }
            }
        }
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
        let patterns =
            Patterns::of(model, &probe.tokens, &self.device)?.with_start(probe.has_start);
        let mut roles = Vec::new();
        for layer in patterns.layers() {
            roles.extend(score_layer(layer, &probe.tokens).iter().map(Role::of));
        }
        Ok(roles)
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
        let line = |set: &Without| {
            let controls = match set.controls.as_slice() {
                [] => "no control".to_owned(),
                controls => controls
                    .iter()
                    .map(|(_, left)| format!("{:.3}", left.accuracy))
                    .collect::<Vec<_>>()
                    .join(" "),
            };
            let held = vec![accuracy(&set.frozen), controls];
            [
                vec![names(&set.heads), set.name.clone()],
                cells(&set.performance),
                held,
            ]
            .concat()
        };
        let alone = self.alone.iter().map(|head| {
            let mut row = line(head);
            row.truncate(6);
            row
        });
        let untouched = vec!["none".to_owned(), String::new()]
            .into_iter()
            .chain(cells(&self.untouched));
        let untouched = untouched.chain([accuracy(&self.untouched)]).collect();
        let alone = Table::new(
            &[
                "without",
                "looks like",
                "accuracy",
                "loss",
                "elsewhere",
                "patterns held",
            ],
            std::iter::once(untouched).chain(alone),
        );
        let together = Table::new(
            &[
                "without",
                "that is",
                "accuracy",
                "loss",
                "elsewhere",
                "patterns held",
                "controls",
            ],
            self.sets.iter().map(line),
        );
        let needed = match self.needed.as_slice() {
            [] => "none".to_owned(),
            needed => names(needed),
        };
        Printout::new()
            .prose(format!(
                "In place of an ablated head stands {} (--by {}).",
                self.by.in_words(),
                self.by
            ))
            .table(alone.text_columns(2).first_to_go(&["elsewhere", "loss"]))
            .prose(format!(
                "Together, beside controls: as many heads from the same layers, drawn at random from those that no test \
                 here marks as needed (needed: {needed}), up to {CONTROLS} different draws. no control: a layer has too \
                 few such heads.",
            ))
            .table(together.text_columns(2).first_to_go(&[
                "elsewhere",
                "loss",
                "patterns held",
            ]))
            .printout(self.minimal.as_ref().map(minimal_printout).unwrap_or_default())
            .prose(
                "accuracy±half of the 95 % interval; loss on scored targets, and on the others, in nats. A head whose \
                 loss changes nothing alone may still be one of several that do the same: see the sets. patterns held: \
                 accuracy while all later heads attend as in the untouched model. What is lost there too is lost \
                 through what the heads move (OV); what comes back was lost because later heads look elsewhere \
                 without them (QK).",
            )
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

/// Accuracy, loss, loss elsewhere.
pub(super) fn cells(performance: &Performance) -> Vec<String> {
    vec![
        accuracy(performance),
        format!("{:.3}", performance.loss),
        number_or_dash(performance.loss_elsewhere, 3),
    ]
}
