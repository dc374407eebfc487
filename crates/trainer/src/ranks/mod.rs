//! Processes that train one model together.
//!
//! Each rank holds the whole model and works on its rows of every batch. One sum over all ranks a
//! step gives each of them the same gradient, so that all make the same update. The first rank
//! measures and writes; the others follow.

pub(crate) mod flat;
#[cfg(feature = "mpi")]
mod open_mpi;

use std::ops::Range;

use headlight_run::{Config, Error};

/// The processes of a run, seen from one of them. Every rank makes the same calls in the same
/// order.
pub trait Ranks {
    /// The number of this process, from 0.
    fn rank(&self) -> usize;

    /// How many there are.
    fn size(&self) -> usize;

    /// Replaces `numbers` by their sums over all ranks, the same bits on each.
    fn sum(&self, numbers: &mut [f32]);

    /// Gives every rank the `bytes` of the first.
    fn share(&self, bytes: &mut Vec<u8>);

    /// The end that all ranks come to. A rank that never calls it, because it failed, ends the
    /// others.
    fn leave(self: Box<Self>);
}

/// One process, which has nobody to wait for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Alone;

impl Ranks for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn sum(&self, _: &mut [f32]) {}

    fn share(&self, _: &mut Vec<u8>) {}

    fn leave(self: Box<Self>) {}
}

/// The rows of a batch of so many that a rank works on: equal parts, in order.
#[must_use]
pub fn rows_of(ranks: &dyn Ranks, rows: usize) -> Range<usize> {
    let each = rows.div_ceil(ranks.size());
    (each * ranks.rank()).min(rows)..(each * (ranks.rank() + 1)).min(rows)
}

/// Checks that every shard of every rank gets equally many rows.
///
/// # Errors
/// If `train.batch_size` does not fall into ranks × shards equal parts.
///
/// ```
/// use headlight_run::Config;
/// use headlight_trainer::ranks::check_parts;
///
/// let text = r#"
///     task = { name = "repeat" }
///     model = { n_layers = 2, n_heads = 4, d_model = 64, n_ctx = 64 }
///     train = { steps = 10, batch_size = 8, learning_rate = 1e-3, shards = 2 }
/// "#;
/// let config = Config::parse(text, "a.toml", &[])?;
/// assert!(check_parts(&config, 4).is_ok());
/// let error = check_parts(&config, 3).unwrap_err().to_string();
/// assert_eq!(error, "config: train.batch_size = 8: must be divisible by 3 ranks × train.shards = 2");
/// # Ok::<(), headlight_run::Error>(())
/// ```
pub fn check_parts(config: &Config, ranks: usize) -> Result<(), Error> {
    let train = &config.train;
    let parts = ranks * train.shards;
    if !train.batch_size.is_multiple_of(parts) {
        let message = format!(
            "must be divisible by {ranks} ranks × train.shards = {}",
            train.shards
        );
        return Err(Error::config(message)
            .key("train.batch_size")
            .value(train.batch_size));
    }
    let rows = train.batch_size / parts;
    if config.interchange.is_none() || rows.is_multiple_of(2 * train.accumulate) {
        return Ok(());
    }
    let message = format!(
        "leaves {rows} rows to each of {parts} shards; with [interchange] they must be pairs in each of \
         train.accumulate = {} parts",
        train.accumulate
    );
    Err(Error::config(message)
        .key("train.batch_size")
        .value(train.batch_size))
}

/// What the first of several ranks says when it is asked to stop. `mpirun` asks when any of them
/// has ended, and then there is no next step.
pub const ASKED_TO_STOP: &str = "asked to stop, by a signal or because a rank has ended; --resume goes on from the newest checkpoint, with any \
     number of ranks";

/// How many processes `mpirun` started, by what Open MPI tells them.
#[must_use]
pub fn started() -> usize {
    from_open_mpi("OMPI_COMM_WORLD_SIZE")
}

/// How many of them share this machine's cores.
#[must_use]
pub fn on_this_machine() -> usize {
    from_open_mpi("OMPI_COMM_WORLD_LOCAL_SIZE")
}

fn from_open_mpi(variable: &str) -> usize {
    std::env::var(variable)
        .ok()
        .and_then(|size| size.parse().ok())
        .filter(|&size| size > 0)
        .unwrap_or(1)
}

/// Meets the other processes that `mpirun` started; alone without it.
///
/// # Errors
/// If there are others, and this program was built without MPI or it does not start.
pub fn meet() -> Result<Box<dyn Ranks>, Error> {
    if started() == 1 {
        return Ok(Box::new(Alone));
    }
    #[cfg(feature = "mpi")]
    return open_mpi::OpenMpi::start();
    #[cfg(not(feature = "mpi"))]
    Err(Error::new(
        "mpirun",
        "this program was built without MPI; build with --features headlight-trainer/mpi",
    ))
}
