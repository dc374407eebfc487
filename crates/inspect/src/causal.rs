//! `inspect RUN ablate` and `inspect RUN paths`: what the heads are used as.

use headlight_heads::{HeadName, Role, heads_by_role};
use headlight_lens::{
    Ablation, Behaviour, Estimate, Input, Performance, ablate, ablate_frozen, all_heads,
    heads_after, matched_sets, minimal_set, path_tests,
};
use headlight_report::{Printout, Table, number_or_dash, with_interval};
use headlight_residual::Decoder;
use headlight_run::Error;
use headlight_watch::{
    no_room,
    uses::{self, SEQUENCES},
};
use serde::Serialize;

use super::{ModelParts, Subject};

/// Random sets beside each set of heads.
const CONTROLS: usize = 5;
/// A minimal set has been found when this share of the accuracy is gone.
const GONE: f64 = 0.9;

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
    /// As many other heads, drawn at random, and what is left without them. Empty where too few
    /// others exist.
    pub controls: Vec<(Vec<HeadName>, Performance)>,
}

/// What `inspect RUN ablate` shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ablations {
    /// What stood in the heads' place.
    pub ablation: &'static str,
    /// The model as it is.
    pub untouched: Performance,
    /// Each head alone.
    pub alone: Vec<Without>,
    /// Heads of one role together.
    pub sets: Vec<Without>,
    /// A greedy search for few heads without which the behaviour is gone, in its order.
    pub minimal: Vec<(HeadName, Performance)>,
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
        let left =
            |heads: &[HeadName]| ablate(&model, &behaviour, heads, ablation).map_err(no_room);
        let without = |name: String, heads: Vec<HeadName>, controls: usize| {
            let mut drawn = Vec::new();
            for set in matched_sets(&model, &heads, controls, self.config.seed) {
                let performance = left(&set)?;
                drawn.push((set, performance));
            }
            let later = heads_after(&model, &heads);
            let frozen = ablate_frozen(&model, &behaviour, &heads, ablation, &later);
            Ok::<Without, Error>(Without {
                controls: drawn,
                performance: left(&heads)?,
                frozen: frozen.map_err(no_room)?,
                name,
                heads,
            })
        };
        let looks_like = self.roles(&model)?;
        let mut alone = Vec::new();
        for (&head, role) in heads.iter().zip(&looks_like) {
            alone.push(without(role.to_string(), vec![head], 0)?);
        }
        let mut sets = Vec::new();
        for (role, heads) in heads_by_role(&heads, &looks_like) {
            sets.push(without(format!("all {role}"), heads, CONTROLS)?);
        }
        if !chosen.is_empty() {
            sets.push(without("chosen".to_owned(), chosen.to_vec(), CONTROLS)?);
        }
        let untouched = left(&[])?;
        let enough = untouched.accuracy * (1.0 - GONE);
        let minimal = minimal_set(&model, &behaviour, ablation, enough).map_err(no_room)?;
        let ablation = match ablation {
            Ablation::Zero => "zero",
            Ablation::Mean => "the head's mean over sequences and positions",
            Ablation::Resample => "what the head blended in another sequence",
        };
        Ok(Ablations {
            ablation,
            untouched,
            alone,
            sets,
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
            return Err(Error::new(self.run.path().display(), message));
        }
        let untouched = ablate(&model, &behaviour, &[], Ablation::default());
        Ok(Paths {
            untouched: untouched.map_err(no_room)?,
            paths,
        })
    }

    /// The run's model and what its task scores.
    pub(super) fn behaviour(&self) -> Result<(Decoder, Behaviour), Error> {
        let ModelParts { model, .. } = self.model()?;
        let sequences = &self.validation()?.sequences;
        let behaviour = uses::behaviour(sequences, SEQUENCES, &self.device);
        Ok((model, behaviour))
    }

    /// What each head looks like on the probe.
    pub(super) fn roles(&self, model: &Decoder) -> Result<Vec<Role>, Error> {
        Ok(self.probe()?.observe(model, &self.device)?.roles())
    }
}

impl Ablations {
    /// For the terminal.
    #[must_use]
    pub fn printout(&self) -> Printout {
        let line = |set: &Without| {
            let controls = match set.controls.as_slice() {
                [] => "too few other heads".to_owned(),
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
        let minimal = self
            .minimal
            .iter()
            .map(|(head, left)| [vec![head.to_string()], cells(left)].concat());
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
                "accuracy without others",
            ],
            self.sets.iter().map(line),
        );
        let minimal = Table::new(&["without also", "accuracy", "loss", "elsewhere"], minimal);
        Printout::new()
            .prose(format!(
                "In place of the ablated heads: {}.",
                self.ablation
            ))
            .table(alone.text_columns(2).first_to_go(&["elsewhere", "loss"]))
            .prose("Together, beside as many other heads drawn at random:")
            .table(together.text_columns(2).first_to_go(&[
                "elsewhere",
                "loss",
                "patterns held",
            ]))
            .prose(
                "Taken away one after the other, each time the head without which accuracy is lowest:",
            )
            .table(minimal)
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

fn accuracy(performance: &Performance) -> String {
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
