//! Pieces of work side by side, each on one core.

use std::{
    iter::{from_fn, once},
    sync::{Mutex, OnceLock},
    thread,
};

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

/// How many cores this process may use.
#[must_use]
pub fn cores_of_machine() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Cores that work on one piece at a time each.
///
/// Burn's operations use the pool they are called from. With a pool of one thread each, pieces do
/// not wait for parts of each other's operations, and what is computed does not depend on how many
/// cores there are.
pub struct Cores {
    pools: Vec<ThreadPool>,
}

impl Cores {
    /// As many cores, whether the machine has them or not.
    ///
    /// # Errors
    /// If threads cannot be started.
    pub fn new(count: usize) -> Result<Self, ThreadPoolBuildError> {
        let pool = |_| ThreadPoolBuilder::new().num_threads(1).build();
        Ok(Self {
            pools: (0..count).map(pool).collect::<Result<_, _>>()?,
        })
    }

    /// Those of this machine.
    ///
    /// # Panics
    /// If threads cannot be started.
    #[must_use]
    pub fn all() -> &'static Self {
        static ALL: OnceLock<Cores> = OnceLock::new();
        ALL.get_or_init(|| Self::new(cores_of_machine()).expect("threads for the machine's cores"))
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.pools.len()
    }

    /// What `work` makes of each piece, in the order of the pieces. Core `i` begins with piece `i`;
    /// whichever is done takes the next, so that heavy pieces are best put first.
    ///
    /// # Panics
    /// If `work` panics.
    pub fn map<T: Send, R: Send>(&self, pieces: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
        let waiting = Mutex::new(pieces.into_iter().enumerate());
        let next = || waiting.lock().ok()?.next();
        let results = Mutex::new(Vec::new());
        let from = |first: (usize, T)| {
            for (index, piece) in once(first).chain(from_fn(next)) {
                let result = work(piece);
                let mut results = results
                    .lock()
                    .expect("no piece panics while it has results");
                results.push((index, result));
            }
        };
        let first: Vec<_> = self.pools.iter().map_while(|_| next()).collect();
        side_by_side(&self.pools, first.into_iter(), &from);
        let mut results = results.into_inner().expect("all pieces are done");
        results.sort_unstable_by_key(|(index, _)| *index);
        results.into_iter().map(|(_, result)| result).collect()
    }

    /// What `work` makes of batches of at most `most` items, in order. As many batches of one size as
    /// cores run side by side. The last items, fewer than cores, are a batch that has all cores: no core
    /// waits for another's last batch.
    ///
    /// # Panics
    /// If `work` panics, or `most` is 0.
    pub fn map_batches<T: Sync, R: Send>(
        &self,
        items: &[T],
        most: usize,
        work: impl Fn(&[T]) -> R + Sync,
    ) -> Vec<R> {
        assert!(most > 0, "batches of no item");
        let mut results = Vec::new();
        let mut left = items;
        while left.len() >= self.count() {
            let size = most.min(left.len() / self.count());
            let (now, later) = left.split_at(size * self.count());
            results.extend(self.map(now.chunks(size).collect(), &work));
            left = later;
        }
        if !left.is_empty() {
            results.push(work(left));
        }
        results
    }
}

/// Does each job on a core of its own, whose thread lives on.
fn side_by_side<J: Send>(
    pools: &[ThreadPool],
    mut jobs: std::vec::IntoIter<J>,
    work: &(impl Fn(J) + Sync),
) {
    let (Some((pool, pools)), Some(job)) = (pools.split_first(), jobs.next()) else {
        return;
    };
    pool.in_place_scope(|scope| {
        scope.spawn(move |_| work(job));
        side_by_side(pools, jobs, work);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_stand_in_the_order_of_the_pieces_whatever_their_number() {
        let cores = Cores::new(3).unwrap();
        for count in 0..8 {
            let pieces: Vec<usize> = (0..count).collect();
            let expected: Vec<usize> = pieces.iter().map(|piece| piece * piece).collect();
            assert_eq!(cores.map(pieces, |piece| piece * piece), expected);
        }
    }

    #[test]
    fn batches_are_of_one_size_on_all_cores_but_the_last() {
        let batches = |count: usize, most| {
            let items: Vec<usize> = (0..count).collect();
            let batches = Cores::new(2)
                .unwrap()
                .map_batches(&items, most, <[usize]>::to_vec);
            assert_eq!(batches.concat(), items);
            batches.iter().map(Vec::len).collect::<Vec<usize>>()
        };
        assert_eq!(batches(9, 4), [4, 4, 1]);
        assert_eq!(batches(13, 4), [4, 4, 2, 2, 1]);
        assert_eq!(batches(1, 4), [1]);
        assert_eq!(batches(0, 4), [0; 0]);
    }

    #[test]
    fn a_piece_has_one_thread_and_as_many_pieces_as_cores_run_at_once() {
        // Each piece waits for the other: one after the other would wait for ever.
        let barrier = std::sync::Barrier::new(2);
        let threads = Cores::new(2).unwrap().map(vec![(); 2], |()| {
            barrier.wait();
            rayon::current_num_threads()
        });
        assert_eq!(threads, [1, 1]);
    }
}
