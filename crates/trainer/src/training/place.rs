//! Where training goes on from: a checkpoint that the first rank read, told to the others.

use headlight_residual::{Decoder, tensors_from_bytes, weights_from_bytes};
use headlight_run::{Checkpoint, InputError};

use super::Training;
use crate::{optimizer::Memory, ranks::Ranks, step::Updater};

/// Gives `updater` what it remembered at `checkpoint`, and the model there.
pub fn restored(
    training: &Training,
    updater: &mut Updater,
    checkpoint: &Checkpoint,
) -> Result<Decoder, String> {
    let model = weights_from_bytes(training.model.clone(), &checkpoint.weights)
        .map_err(|error| error.to_string())?;
    let tensors =
        tensors_from_bytes(&checkpoint.optimizer).map_err(|error| format!("optimizer: {error}"))?;
    updater.remember(
        &model,
        Memory {
            tensors,
            counts: checkpoint.state.counts.clone(),
        },
    )?;
    Ok(model)
}

/// Tells the other ranks where to begin: at `checkpoint`, or at step 0.
pub fn share(ranks: &dyn Ranks, checkpoint: Option<&Checkpoint>) -> Result<(), InputError> {
    let state = checkpoint.map(|checkpoint| &checkpoint.state);
    let state = serde_json::to_vec(&state).map_err(|error| InputError::new("checkpoint", error))?;
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
    /// Training begins.
    Begin,
    /// Training goes on from here.
    GoOn(Box<Checkpoint>),
}

/// Waits for what the first rank tells.
pub fn told(ranks: &dyn Ranks) -> Result<Told, InputError> {
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
    let state: Option<_> =
        serde_json::from_slice(&state).map_err(|error| InputError::new("the first rank", error))?;
    Ok(state.map_or(Told::Begin, |state| {
        Told::GoOn(Box::new(Checkpoint {
            state,
            weights,
            optimizer,
        }))
    }))
}
