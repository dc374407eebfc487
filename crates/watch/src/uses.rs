//! What heads are used as, measured while training and at its end, on fixed sequences of the run's
//! own task.

use burn::tensor::Device;
use headlight_heads::{HeadName, Reader, Role, heads_by_role};
use headlight_lens::{Ablation, Behaviour, Performance, ablate, all_heads, readers};
use headlight_residual::Decoder;
use headlight_run::{Config, HeadsUse, InputError, Left, UsesRow};
use headlight_tasks::Sequence;

use crate::{batch::Batch, cores::Cores, no_room};

/// Sequences that interventions are measured on after training.
pub const SEQUENCES: usize = 128;
/// Forward passes on these many sequences while training, or on fewer where that would take too
/// long.
const WHILE_TRAINING: usize = 32;
/// As few as that are still measured on.
const AT_LEAST: usize = 8;
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
    roles: &[Role],
    step: usize,
    cores: &Cores,
) -> Result<UsesRow, InputError> {
    row(model, behaviour, step, groups(model, roles, false), cores)
}

/// As [`watch_uses`], with what each head and each set wrote hidden from each kind of reader
/// besides.
///
/// # Errors
/// As [`watch_uses`].
pub fn all_uses(
    model: &Decoder,
    behaviour: &Behaviour,
    roles: &[Role],
    step: usize,
    cores: &Cores,
) -> Result<UsesRow, InputError> {
    row(model, behaviour, step, groups(model, roles, true), cores)
}

/// What is tried of some heads.
struct Trial {
    heads: Vec<HeadName>,
    name: String,
    /// The mean stands in their place.
    ablated: bool,
    /// What they wrote is hidden from each kind of reader.
    hidden: bool,
}

/// Each head with its role, and the heads of each role that several have.
fn groups(model: &Decoder, roles: &[Role], hidden: bool) -> Vec<Trial> {
    let heads = all_heads(model);
    let trial = |heads, role: Role| Trial {
        heads,
        name: role.name().to_owned(),
        ablated: true,
        hidden,
    };
    let alone = heads
        .iter()
        .zip(roles)
        .map(|(&head, &role)| trial(vec![head], role));
    let several = heads_by_role(&heads, roles)
        .into_iter()
        .filter(|(_, heads)| heads.len() > 1);
    alone
        .chain(several.map(|(role, heads)| trial(heads, role)))
        .collect()
}

fn row(
    model: &Decoder,
    behaviour: &Behaviour,
    step: usize,
    groups: Vec<Trial>,
    cores: &Cores,
) -> Result<UsesRow, InputError> {
    let untouched = Trial {
        heads: Vec::new(),
        name: String::new(),
        ablated: true,
        hidden: false,
    };
    let layer = |layer| Trial {
        heads: (0..model.n_heads())
            .map(|head| HeadName { layer, head })
            .collect(),
        name: "layer".to_owned(),
        ablated: false,
        hidden: true,
    };
    let layers = 0..model.blocks.len();
    // The layers first: they take longest.
    let trials = layers
        .clone()
        .map(layer)
        .chain([untouched])
        .chain(groups)
        .collect();
    let tried = cores.map(trials, |trial| tried(model, behaviour, trial));
    let mut tried = tried.into_iter().collect::<Result<Vec<_>, _>>()?;
    let of_layers: Vec<HeadsUse> = tried.drain(layers).collect();
    let untouched = tried
        .remove(0)
        .ablated
        .expect("the untouched model is measured");
    tried.extend(of_layers);
    Ok(UsesRow {
        step,
        sequences: behaviour.sequences(),
        untouched,
        uses: tried,
    })
}

fn tried(model: &Decoder, behaviour: &Behaviour, trial: Trial) -> Result<HeadsUse, InputError> {
    let mut uses = HeadsUse {
        heads: trial.heads,
        name: trial.name,
        ablated: None,
        through: [].into(),
    };
    if trial.ablated {
        let performance = ablate(model, behaviour, &uses.heads, Ablation::Mean);
        uses.ablated = Some(left(&performance.map_err(no_room)?));
    }
    if trial.hidden {
        uses.through = by_name(&readers(model, behaviour, &uses.heads).map_err(no_room)?);
    }
    Ok(uses)
}

fn by_name(through: &[(Reader, Performance)]) -> std::collections::BTreeMap<String, Left> {
    through
        .iter()
        .map(|(reader, performance)| (reader.name().to_owned(), left(performance)))
        .collect()
}

/// As it stands in a row.
#[must_use]
pub fn left(performance: &Performance) -> Left {
    let Performance {
        accuracy,
        low,
        high,
        loss,
        ..
    } = *performance;
    Left {
        accuracy,
        low,
        high,
        loss,
    }
}
