//! Ranks through Open MPI, started by `mpirun`.

use std::mem::ManuallyDrop;

use headlight_run::{Error, ErrorKind};
use mpi::{
    Threading,
    collective::SystemOperation,
    environment::Universe,
    topology::SimpleCommunicator,
    traits::{Communicator, CommunicatorCollectives, Root},
};

use super::Ranks;

/// One count of MPI is an `i32`.
const MOST_BYTES_A_CALL: usize = 1 << 30;

pub struct OpenMpi {
    /// Dropped in [`leave`](Ranks::leave) alone: that waits for all ranks, and where one has failed
    /// they do not come. `mpirun` ends the others when a process exits without it.
    universe: ManuallyDrop<Universe>,
    world: SimpleCommunicator,
}

impl OpenMpi {
    /// Meets the others.
    pub fn start() -> Result<Box<dyn Ranks>, Error> {
        // Shards have their own threads; only the one that waits for them calls MPI.
        let (universe, _) = mpi::initialize_with_threading(Threading::Funneled)
            .ok_or_else(|| Error::of(ErrorKind::Internal, "mpirun", "MPI does not start"))?;
        let world = universe.world();
        Ok(Box::new(Self {
            universe: ManuallyDrop::new(universe),
            world,
        }))
    }
}

impl Ranks for OpenMpi {
    fn rank(&self) -> usize {
        self.world.rank() as usize
    }

    fn size(&self) -> usize {
        self.world.size() as usize
    }

    fn sum(&self, numbers: &mut [f32]) {
        let own = numbers.to_vec();
        self.world
            .all_reduce_into(&own[..], numbers, SystemOperation::sum());
    }

    fn share(&self, bytes: &mut Vec<u8>) {
        let first = self.world.process_at_rank(0);
        let mut length = bytes.len() as u64;
        first.broadcast_into(&mut length);
        bytes.resize(length as usize, 0);
        bytes
            .chunks_mut(MOST_BYTES_A_CALL)
            .for_each(|part| first.broadcast_into(part));
    }

    fn leave(self: Box<Self>) {
        drop(ManuallyDrop::into_inner(self.universe));
    }
}
