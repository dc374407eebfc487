//! Where training goes on from: a checkpoint that the first rank read, told to the others.

use headlight_residual::{Decoder, tensors_from_bytes, weights_from_bytes};
use headlight_run::{Checkpoint, CheckpointState, Data, Error, ErrorKind};
use serde::{Deserialize, Serialize};

use crate::{Setup, optimizer::Memory, ranks::Ranks, step::Updater, stopped::UnusableCheckpoint};

/// Gives `updater` what it remembered at `checkpoint`, and the model there.
pub fn restored(
    setup: &Setup,
    updater: &mut Updater,
    checkpoint: &Checkpoint,
) -> Result<Decoder, UnusableCheckpoint> {
    let model = weights_from_bytes(setup.model.clone(), &checkpoint.weights)?;
    let tensors =
        tensors_from_bytes(&checkpoint.optimizer).map_err(UnusableCheckpoint::Optimizer)?;
    updater.remember(
        &model,
        Memory {
            tensors,
            counts: checkpoint.state.counts.clone(),
        },
    )?;
    Ok(model)
}

/// What the first rank tells the others before the first step.
#[derive(Serialize, Deserialize)]
struct Beginning {
    /// The data that it trains on.
    data: Data,
    /// Where it goes on from; `None` at step 0.
    state: Option<CheckpointState>,
}

/// Tells the other ranks which data to train on and where to begin: at `checkpoint`, or at step 0.
pub fn share(ranks: &dyn Ranks, data: Data, checkpoint: Option<&Checkpoint>) -> Result<(), Error> {
    let beginning = Beginning {
        data,
        state: checkpoint.map(|checkpoint| checkpoint.state.clone()),
    };
    let state = serde_json::to_vec(&beginning)
        .map_err(|error| Error::because(ErrorKind::Internal, "checkpoint", error))?;
    let [weights, optimizer] = checkpoint.map_or_else(Default::default, |found| {
        [found.weights.clone(), found.optimizer.clone()]
    });
    for mut bytes in [state, weights, optimizer] {
        ranks.share(&mut bytes);
    }
    Ok(())
}

/// Tells the other ranks that there is nothing to train.
pub fn share_nothing(ranks: &dyn Ranks) {
    ranks.share(&mut Vec::new());
}

/// What the first rank tells the others.
pub enum Told {
    /// There is nothing to train.
    Nothing,
    /// Setup begins.
    Begin,
    /// Setup goes on from here.
    GoOn(Box<Checkpoint>),
}

/// Waits for what the first rank tells. The rank has `data`.
///
/// # Errors
/// If the first rank has other data.
pub fn told(ranks: &dyn Ranks, data: &Data) -> Result<Told, Error> {
    let next = || {
        let mut bytes = Vec::new();
        ranks.share(&mut bytes);
        bytes
    };
    let state = next();
    if state.is_empty() {
        return Ok(Told::Nothing);
    }
    let (weights, optimizer) = (next(), next());
    let beginning: Beginning = serde_json::from_slice(&state)
        .map_err(|error| Error::because(ErrorKind::Internal, "the first rank", error))?;
    beginning.data.check_same(data).map_err(|error| {
        let place = format!("rank {}: {}", ranks.rank(), error.place());
        error.at(place)
    })?;
    Ok(beginning.state.map_or(Told::Begin, |state| {
        Told::GoOn(Box::new(Checkpoint {
            state,
            weights,
            optimizer,
        }))
    }))
}
