//! Ranks together do what one process does. Threads stand in for processes, so that no MPI is
//! needed.

use std::{
    fs,
    path::Path,
    sync::{Arc, Barrier, Mutex},
    thread,
};

use burn::{
    module::{Module, ModuleVisitor, Param},
    optim::GradientsParams,
    tensor::{Device, Tensor},
};
use headlight_run::{Config, Error, MetricsRow, RunDirectory};
use headlight_tasks as tasks;
use headlight_tasks::{Tasks, Use};
use headlight_trainer::{Pass, Setup, StepDropout, Updater, ranks::Ranks};
use headlight_watch::model;

use headlight::seeds::{run_path, train_seeds};

/// One of several threads that meet at a table.
struct Seat {
    rank: usize,
    size: usize,
    table: Arc<Table>,
}

struct Table {
    barrier: Barrier,
    numbers: Mutex<Vec<Vec<f32>>>,
    bytes: Mutex<Vec<u8>>,
}

fn seats(size: usize) -> Vec<Seat> {
    let table = Table {
        barrier: Barrier::new(size),
        numbers: Mutex::new(vec![Vec::new(); size]),
        bytes: Mutex::new(Vec::new()),
    };
    let table = Arc::new(table);
    (0..size)
        .map(|rank| Seat {
            rank,
            size,
            table: table.clone(),
        })
        .collect()
}

impl Ranks for Seat {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn sum(&self, numbers: &mut [f32]) {
        self.table.numbers.lock().unwrap()[self.rank] = numbers.to_vec();
        self.table.barrier.wait();
        {
            let all = self.table.numbers.lock().unwrap();
            assert!(
                all.iter().all(|one| one.len() == numbers.len()),
                "ranks sum different things"
            );
            for (i, number) in numbers.iter_mut().enumerate() {
                *number = all.iter().map(|one| one[i]).sum();
            }
        }
        self.table.barrier.wait();
    }

    fn share(&self, bytes: &mut Vec<u8>) {
        if self.rank == 0 {
            self.table.bytes.lock().unwrap().clone_from(bytes);
        }
        self.table.barrier.wait();
        bytes.clone_from(&self.table.bytes.lock().unwrap());
        self.table.barrier.wait();
    }

    fn leave(self: Box<Self>) {
        self.table.barrier.wait();
    }
}

const CONFIG: &str = r#"
task = { name = "repeat", vocabulary = 16, prefix = [0, 4], block = [4, 8] }
model = { n_layers = 2, n_heads = 2, d_model = 16, n_ctx = 24, feed_forward = "gelu" }
train = { steps = 50, batch_size = 8, learning_rate = 1e-3, dropout = 0.1, attention_dropout = 0.1 }
log = { every = 10, patterns_every = 50 }
checkpoint = { every = 20 }
"#;

struct Numbers<'a>(&'a GradientsParams, Vec<f64>);

impl ModuleVisitor for Numbers<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let gradient = self
            .0
            .get::<D>(param.id)
            .expect("a gradient for every parameter");
        self.1.extend(gradient.into_data().iter::<f64>());
    }
}

/// Loss and gradient of the first step, as the rank in `seat` has them.
fn first_gradient(seat: &Seat) -> Vec<f64> {
    let config = Config::parse(CONFIG, "test", &[]).unwrap();
    let device = Device::flex().autodiff();
    let task = tasks::build(&config.task, config.model.n_ctx, 0).unwrap();
    let model = model::build(&config, task.vocabulary().len(), &device).unwrap();
    let sequences = tasks::batch(&*task, 0, Use::Training, 1, 8);
    let dropout = Pass::Dropping(StepDropout {
        stream: 0.5,
        weights: 0.1,
        seed: 0,
        step: 1,
        first_row: 0,
    });
    let gradient = Updater::new(&config.train, device)
        .unwrap()
        .gradient_over(seat, &model, &sequences, dropout);
    let mut numbers = Numbers(&gradient.gradients, vec![gradient.update.loss]);
    model.visit(&mut numbers);
    numbers.1
}

#[test]
fn every_rank_has_the_gradient_of_the_whole_batch() {
    let norm = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
    let whole = first_gradient(&seats(1)[0]);
    for size in [2, 4] {
        let threads: Vec<_> = seats(size)
            .into_iter()
            .map(|seat| thread::spawn(move || first_gradient(&seat)))
            .collect();
        let all: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect();
        assert!(
            all.iter().all(|one| *one == all[0]),
            "all ranks have the same bits"
        );
        let difference: Vec<f64> = whole.iter().zip(&all[0]).map(|(a, b)| a - b).collect();
        let relative = norm(&difference) / norm(&whole);
        assert!(relative < 1e-6, "{size} ranks: {relative:e}");
    }
}

/// Trains at `path`, or goes on there, with so many ranks.
fn train(path: &Path, size: usize) -> Vec<MetricsRow> {
    let config = Config::parse(CONFIG, "test", &[]).unwrap();
    let setup = Setup::prepare(config, "flex").unwrap();
    let directory = if path.exists() {
        setup.resume(path)
    } else {
        setup.create(path, false)
    };
    let directory = directory.unwrap();
    let mut seats = seats(size).into_iter();
    let first = Box::new(seats.next().unwrap());
    thread::scope(|scope| {
        for seat in seats {
            scope.spawn(|| {
                let config = Config::parse(CONFIG, "test", &[]).unwrap();
                Setup::prepare(config, "flex")
                    .unwrap()
                    .follow(Box::new(seat))
                    .unwrap();
            });
        }
        setup.lead(&directory, first).unwrap();
    });
    directory.metrics().unwrap()
}

fn assert_same_losses(a: &[MetricsRow], b: &[MetricsRow]) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert!(
            (a.validation - b.validation).abs() < 1e-4,
            "step {}: {} and {}",
            a.step,
            a.validation,
            b.validation
        );
    }
}

#[test]
fn ranks_train_to_the_same_losses_and_a_run_goes_on_with_another_number_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let one = train(&folder.path().join("one"), 1);
    assert!(
        one[5].validation < one[0].validation - 0.01,
        "it learns: {one:?}"
    );
    let path = folder.path().join("two");
    assert_same_losses(&one, &train(&path, 2));
    // As if it had been killed after its second checkpoint.
    fs::remove_dir_all(path.join("last")).unwrap();
    fs::remove_file(path.join("summary.json")).unwrap();
    assert_same_losses(&one, &train(&path, 4));
    // There is nothing left to do, and all ranks see that.
    assert_same_losses(&one, &train(&path, 2));
}

/// Trains seeds 3, 4 and 5 in `out` with so many ranks, or goes on there, and gives what each rank
/// ends with: whether it summarised, or why it failed. The seeds of `broken` cannot be begun.
fn train_spread(out: &Path, size: usize, broken: &[u64]) -> Vec<Result<bool, String>> {
    let config = Config::parse(CONFIG, "test", &[]).unwrap();
    let start = |path: &Path, setup: &Setup| {
        let is = |&seed: &u64| path.ends_with(format!("seed-{seed}"));
        if broken.iter().any(is) {
            return Err(Error::new(path.display(), "is broken"));
        }
        if path.exists() {
            setup.resume(path)
        } else {
            setup.create(path, false)
        }
    };
    let seeds = "3..6".parse().unwrap();
    let tasks = Tasks::built_in("test");
    let rank =
        |seat: Seat| train_seeds(&config, &tasks, &seeds, out, "flex", Box::new(seat), start);
    thread::scope(|scope| {
        let ranks: Vec<_> = seats(size)
            .into_iter()
            .map(|seat| scope.spawn(|| rank(seat)))
            .collect();
        let ended = ranks.into_iter().map(|rank| rank.join().unwrap());
        ended
            .map(|ended| {
                ended
                    .map(|summary| summary.is_some())
                    .map_err(|failure| failure.to_string())
            })
            .collect()
    })
}

#[test]
fn seeds_spread_over_ranks_are_those_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let one = folder.path().join("one");
    assert_eq!(train_spread(&one, 1, &[]), [Ok(true)]);
    for (name, size) in [("two", 2), ("four", 4)] {
        let spread = folder.path().join(name);
        let ended = train_spread(&spread, size, &[]);
        assert!(
            ended[0] == Ok(true) && ended[1..].iter().all(|rank| *rank == Ok(false)),
            "{ended:?}"
        );
        let same = |file: &str| {
            assert!(
                fs::read(one.join(file)).unwrap() == fs::read(spread.join(file)).unwrap(),
                "{file}"
            );
        };
        same("seeds.json");
        for seed in 3..6 {
            same(&format!("seed-{seed}/last/weights.safetensors"));
        }
    }
}

#[test]
fn a_rank_that_fails_says_so_and_the_others_end_their_seeds() {
    let out = tempfile::tempdir().unwrap();
    let ended = train_spread(out.path(), 2, &[4]);
    let place = run_path(out.path(), 4);
    let told =
        "rank 0: 1 of 2 ranks did not come to their end; --resume goes on with what they left";
    assert_eq!(
        ended,
        [
            Err(told.to_owned()),
            Err(format!("{}: is broken", place.display()))
        ]
    );
    for seed in [3, 5] {
        assert!(
            RunDirectory::open(&run_path(out.path(), seed))
                .unwrap()
                .is_finished(),
            "seed {seed}"
        );
    }
    assert!(!out.path().join("seeds.json").exists());
    assert_eq!(
        train_spread(out.path(), 3, &[]),
        [Ok(true), Ok(false), Ok(false)]
    );
    assert!(out.path().join("seeds.json").exists());
}
