//! What heads are used as, measured while training and at its end, on fixed sequences of the run's
//! own task.

use std::{collections::BTreeMap, sync::OnceLock};

use burn::tensor::Device;
use headlight_heads::{Ablation, HeadName, HeadSet, Measure, Reader, heads_by_role};
use headlight_lens::{Ablations, Behaviour, Performance, missed, readers};
use headlight_residual::Decoder;
use headlight_run::{Config, Error, HeadsUse, Left, Missed, UsesRow};
use headlight_tasks::Sequence;

use crate::{Observation, batch::Batch, cores::Cores, no_room};

/// Sequences that interventions are measured on after training.
pub const SEQUENCES: usize = 128;
/// Forward passes on these many sequences while training, or on fewer where that would take too
/// long.
const WHILE_TRAINING: usize = 32;
/// As few as that are still measured on.
const AT_LEAST: usize = 8;
/// Sequences that some heads of a large model are ablated on.
pub const OF_A_LARGE_MODEL: usize = 32;
/// The share of training time that the tests may take: a forward pass is about a third of a
/// training step.
const SHARE: f64 = 0.03;

/// The first `count` sequences and what the task scores in them.
#[must_use]
pub fn behaviour(sequences: &[Sequence], count: usize, device: &Device) -> Behaviour {
    let sequences = &sequences[..sequences.len().min(count)];
    let targets = sequences
        .iter()
        .map(|sequence| sequence.tokens[1..].to_vec())
        .collect();
    let scored = sequences
        .iter()
        .map(|sequence| sequence.scored.clone())
        .collect();
    Behaviour::new(Batch::new(sequences, device).inputs, targets, scored)
}

/// How many sequences the tests of every `log.patterns_every` steps may run over.
#[must_use]
pub fn sequences_while_training(config: &Config) -> usize {
    let (layers, heads) = (
        config.model.n_layers,
        config.model.n_layers * config.model.n_heads,
    );
    // Untouched, each head, the heads of two roles or so, and each layer's results hidden from its
    // readers.
    let passes = 3 + heads + layers * (1 + Reader::ALL.len());
    let affordable =
        3.0 * SHARE * (config.train.batch_size * config.log.patterns_every) as f64 / passes as f64;
    (affordable as usize).clamp(AT_LEAST, WHILE_TRAINING)
}

/// Each head ablated alone, the heads of each role together, and each layer hidden from its
/// readers: cheap enough to be watched over training.
///
/// # Errors
/// If the activations of a layer do not fit into memory.
pub fn watch_uses(
    model: &Decoder,
    behaviour: &Behaviour,
    probe: &Observation,
    step: usize,
    cores: &Cores,
) -> Result<UsesRow, Error> {
    let trials = Trials {
        layers: layers(model),
        groups: groups(probe, false),
    };
    row(model, behaviour, step, trials, Ablation::Mean, cores)
}

/// Of the heads of `probe`, which are some of the model's, each ablated alone and those of each role
/// together.
///
/// # Errors
/// As [`watch_uses`].
pub fn uses_of_some_heads(
    model: &Decoder,
    behaviour: &Behaviour,
    probe: &Observation,
    step: usize,
    cores: &Cores,
) -> Result<UsesRow, Error> {
    let trials = Trials {
        layers: Vec::new(),
        groups: groups(probe, false),
    };
    row(model, behaviour, step, trials, Ablation::Mean, cores)
}

/// As [`watch_uses`], with what each head and each set wrote hidden from each kind of reader
/// besides, and each head that holds a role of `probe` beside the others that hold it.
///
/// # Errors
/// As [`watch_uses`].
pub fn all_uses(
    model: &Decoder,
    behaviour: &Behaviour,
    probe: &Observation,
    step: usize,
    ablation: Ablation,
    cores: &Cores,
) -> Result<UsesRow, Error> {
    let trials = Trials {
        layers: layers(model),
        groups: groups(probe, true),
    };
    let mut row = row(model, behaviour, step, trials, ablation, cores)?;
    let mut held = Vec::new();
    for (role, heads) in probe.holders() {
        for &head in &heads {
            let others = heads.iter().copied().filter(|other| *other != head);
            held.push((role, head, others.collect::<Vec<_>>()));
        }
    }
    let one = |(role, head, others)| missed_head(model, behaviour, role, head, others, ablation);
    for missed in cores.map(held, one) {
        row.missed.push(missed?);
    }
    Ok(row)
}

fn missed_head(
    model: &Decoder,
    behaviour: &Behaviour,
    role: Measure,
    head: HeadName,
    others: Vec<HeadName>,
    ablation: Ablation,
) -> Result<Missed, Error> {
    let found = missed(model, behaviour, head, &others, ablation).map_err(no_room)?;
    Ok(Missed {
        head,
        role,
        others,
        without_others: found.without_others.accuracy,
        cost: found.cost.mean,
        low: found.cost.interval.low,
        high: found.cost.interval.high,
        to_lose: found.to_lose.mean,
    })
}

/// Everything that is tried for one row.
struct Trials {
    /// Each layer hidden from its readers.
    layers: Vec<Trial>,
    /// Each head, and sets of heads.
    groups: Vec<Trial>,
}

/// What is tried of some heads.
struct Trial {
    heads: Vec<HeadName>,
    name: HeadSet,
    /// They are ablated.
    ablated: bool,
    /// What they wrote is hidden from each kind of reader.
    hidden: bool,
}

impl Trial {
    fn measure(
        self,
        model: &Decoder,
        behaviour: &Behaviour,
        ablations: &Ablations,
    ) -> Result<HeadsUse, Error> {
        let mut uses = HeadsUse {
            heads: self.heads,
            name: self.name,
            ablated: None,
            through: BTreeMap::new(),
        };
        if self.ablated {
            uses.ablated = Some(accuracy_without(ablations, &uses.heads)?);
        }
        if self.hidden {
            let readers = readers(model, behaviour, &uses.heads).map_err(no_room)?;
            for (reader, performance) in readers {
                uses.through.insert(reader, left(&performance));
            }
        }
        Ok(uses)
    }
}

/// Without these heads.
fn accuracy_without(ablations: &Ablations, heads: &[HeadName]) -> Result<Left, Error> {
    let performance = ablations.without(heads).map_err(no_room)?;
    Ok(left(&performance))
}

/// Each head of the probe with its role, and the heads of each role that several have.
fn groups(probe: &Observation, hidden: bool) -> Vec<Trial> {
    let heads: Vec<HeadName> = probe.heads.iter().map(|(head, _)| *head).collect();
    let roles = probe.roles();
    let trial = |heads, role| Trial {
        heads,
        name: HeadSet::LooksLike(role),
        ablated: true,
        hidden,
    };
    let mut groups = Vec::new();
    for (&head, &role) in heads.iter().zip(&roles) {
        groups.push(trial(vec![head], role));
    }
    for (role, heads) in heads_by_role(&heads, &roles) {
        if heads.len() > 1 {
            groups.push(trial(heads, role));
        }
    }
    groups
}

/// Each layer, hidden from its readers.
fn layers(model: &Decoder) -> Vec<Trial> {
    let heads_of = |layer| (0..model.n_heads()).map(move |head| HeadName { layer, head });
    let trial = |layer| Trial {
        heads: heads_of(layer).collect(),
        name: HeadSet::Layer,
        ablated: false,
        hidden: true,
    };
    (0..model.blocks.len()).map(trial).collect()
}

fn row(
    model: &Decoder,
    behaviour: &Behaviour,
    step: usize,
    Trials { layers, groups }: Trials,
    ablation: Ablation,
    cores: &Cores,
) -> Result<UsesRow, Error> {
    let layer_count = layers.len();
    // The layers first: they take longest. No trial stands for the untouched model.
    let mut trials: Vec<Option<Trial>> = layers.into_iter().map(Some).collect();
    trials.push(None);
    trials.extend(groups.into_iter().map(Some));
    let untouched = OnceLock::new();
    let ablations = Ablations::new(model, behaviour, ablation);
    let measured = cores.map(trials, |trial| {
        if let Some(trial) = trial {
            trial.measure(model, behaviour, &ablations).map(Some)
        } else {
            let left = accuracy_without(&ablations, &[])?;
            untouched.get_or_init(|| left);
            Ok(None)
        }
    });
    let mut uses = Vec::new();
    for measured in measured {
        uses.extend(measured?);
    }
    // The layers last: a row begins with the heads.
    uses.rotate_left(layer_count);
    Ok(UsesRow {
        step,
        sequences: behaviour.sequences(),
        by: ablation,
        untouched: untouched
            .into_inner()
            .expect("the untouched model is measured"),
        uses,
        missed: Vec::new(),
    })
}

/// As it stands in a row.
#[must_use]
pub fn left(performance: &Performance) -> Left {
    Left {
        accuracy: performance.accuracy,
        interval: performance.interval,
        loss: performance.loss,
    }
}
