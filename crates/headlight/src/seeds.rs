//! The same run with several seeds, side by side or spread over ranks, and what they have in
//! common.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    path::{Path, PathBuf},
    sync::Mutex,
};

use headlight_heads::{Role, RoleEvent, Spread, Values};
use headlight_inspect::{curves_of, report_after_training};
use headlight_lens::{half_way, spread};
use headlight_report::say;
use headlight_run::{
    Config, Error, ErrorKind, EventRow, MetricsRow, RunDirectory, Seeds, SeedsSummary, Summary,
    write_atomically,
};
use headlight_tasks::Tasks;
use headlight_trainer::{
    Setup, Stopped, View, interrupt,
    ranks::{Ranks, on_this_machine},
};
use headlight_watch::{cores_of_machine, task};

use crate::command_line::Failure;

/// Where the run of one seed is written: below the folder of all.
#[must_use]
pub fn run_path(out: &Path, seed: u64) -> PathBuf {
    out.join(format!("seed-{seed}"))
}

/// Trains `config`, whose task is one of `tasks`, with each of `seeds`, as many at a time as there are cores for their shards, and
/// writes `seeds.json` beside the runs. `start` makes the directory of one run, or opens it where a
/// run is resumed.
///
/// Of N ranks, rank r trains seeds r, r + N, … of them, as it would alone. The first waits for all
/// and summarises what they wrote, so `out` has to be a folder that it sees too; the others give
/// nothing back.
///
/// # Errors
/// Before this process writes anything, if a run cannot be made; afterwards the error of its first
/// run that failed, when all have ended; or if another rank failed.
pub fn train_seeds(
    config: &Config,
    tasks: &Tasks,
    seeds: &Seeds,
    out: &Path,
    device: &str,
    ranks: Box<dyn Ranks>,
    start: impl Fn(&Path, &Setup) -> Result<RunDirectory, Error>,
) -> Result<Option<SeedsSummary>, Failure> {
    let own: Vec<u64> = seeds
        .iter()
        .skip(ranks.rank())
        .step_by(ranks.size())
        .collect();
    let trained = train_side_by_side(config, tasks, &own, out, device, start);
    let summary = summary_when_all_are_well(&*ranks, trained, seeds, out);
    if summary.is_ok() {
        // Only now, so that each run's report shows the spread over all.
        for seed in own {
            report_after_training(&run_path(out, seed), device);
        }
    }
    // An `mpirun` that was asked to stop no longer brings the ranks together.
    if !interrupt::requested() {
        ranks.leave();
    }
    summary
}

/// The summary that the first rank writes when every rank has trained its seeds.
fn summary_when_all_are_well(
    ranks: &dyn Ranks,
    trained: Result<(), Failure>,
    seeds: &Seeds,
    out: &Path,
) -> Result<Option<SeedsSummary>, Failure> {
    all_well(ranks, trained)?;
    let mut summary = Ok(None);
    if ranks.rank() == 0 {
        summary = write_summary(seeds, out).map(Some).map_err(Failure::from);
    }
    all_well(ranks, summary)
}

/// What this rank has, if no rank has failed. Each waits for all: when the first ends, `mpirun`
/// ends those that have not come so far.
fn all_well<T>(ranks: &dyn Ranks, own: Result<T, Failure>) -> Result<T, Failure> {
    if let Err(failure) = &own
        && ranks.size() > 1
    {
        say(&format!(
            "rank {}: {failure}; waiting for the other ranks",
            ranks.rank()
        ));
    }
    let mut failed = [f32::from(u8::from(own.is_err()))];
    ranks.sum(&mut failed);
    let own = own?;
    let [failed] = failed;
    if failed > 0.0 {
        return Err(Failure::OtherRanks {
            rank: ranks.rank(),
            failed: failed as usize,
            size: ranks.size(),
        });
    }
    Ok(own)
}

fn train_side_by_side(
    config: &Config,
    tasks: &Tasks,
    seeds: &[u64],
    out: &Path,
    device: &str,
    start: impl Fn(&Path, &Setup) -> Result<RunDirectory, Error>,
) -> Result<(), Failure> {
    // Every configuration is checked before the first directory is made.
    let mut trainings = Vec::new();
    for &seed in seeds {
        let mut config = config.clone();
        config.seed = seed;
        let task = task::build(&config, tasks)?;
        let training = Setup::prepare_with(config, task, device)?;
        trainings.push((seed, training.shown(View::Lines(format!("seed {seed}")))));
    }
    let mut waiting = VecDeque::new();
    for (seed, training) in trainings {
        let run = start(&run_path(out, seed), &training)?;
        waiting.push_back(Waiting {
            seed,
            training,
            run,
        });
    }

    let cores_of_a_run = config.train.shards * on_this_machine();
    let at_once = (cores_of_machine() / cores_of_a_run).clamp(1, waiting.len().max(1));
    let waiting = Mutex::new(waiting);
    let failures = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| train_what_waits(&waiting, &failures));
        }
    });
    if let Some((_, stopped)) = failures.into_inner().unwrap_or_default().pop_first() {
        return Err(stopped.into());
    }
    match waiting.into_inner().map_or(0, |left| left.len()) {
        0 => Ok(()),
        left => Err(Failure::Interrupted {
            out: out.to_owned(),
            left,
        }),
    }
}

/// The run of one seed, before it begins.
struct Waiting {
    seed: u64,
    training: Setup,
    run: RunDirectory,
}

/// Trains one run after another until none waits or somebody asked to stop; `failures` gets the
/// reason of each that stopped, by its seed.
fn train_what_waits(waiting: &Mutex<VecDeque<Waiting>>, failures: &Mutex<BTreeMap<u64, Stopped>>) {
    while !interrupt::requested() {
        // The lock is held only while the next run is taken.
        let next = waiting
            .lock()
            .ok()
            .and_then(|mut waiting| waiting.pop_front());
        let Some(Waiting {
            seed,
            training,
            run,
        }) = next
        else {
            return;
        };
        if let Err(stopped) = training.run(&run)
            && let Ok(mut failures) = failures.lock()
        {
            failures.insert(seed, stopped);
        }
    }
}

/// One seed's run, after it has ended.
struct Ended {
    summary: Summary,
    metrics: Vec<MetricsRow>,
    events: Vec<EventRow>,
}

/// `seeds.json`: what the runs have in common, as they are on disk.
fn write_summary(seeds: &Seeds, out: &Path) -> Result<SeedsSummary, Error> {
    let read = |seed| {
        let run = RunDirectory::open(&run_path(out, seed))?;
        Ok(Ended {
            summary: run.summary()?,
            metrics: run.metrics()?,
            events: run.events()?,
        })
    };
    let ended: Vec<Ended> = seeds.iter().map(read).collect::<Result<_, Error>>()?;
    let summary = summarise(seeds, &ended);
    let json = serde_json::to_vec_pretty(&summary)
        .map_err(|error| Error::because(ErrorKind::Internal, "seeds.json", error))?;
    write_atomically(&out.join("seeds.json"), &json)?;
    Ok(summary)
}

fn summarise(seeds: &Seeds, ended: &[Ended]) -> SeedsSummary {
    let own = ["loss", "above the floor", "accuracy", "in-context score"].map(str::to_owned);
    let asked = ended
        .iter()
        .flat_map(|run| run.summary.breakdown.keys().cloned());
    let heads = ended.iter().flat_map(|run| &run.summary.heads);
    let events = ended.iter().flat_map(|run| &run.events);
    let curves = curves_of(&[]).map(|(measure, _)| measure.to_owned());
    SeedsSummary {
        task: ended
            .first()
            .map_or_else(String::new, |run| run.summary.task.clone()),
        seeds: seeds.iter().collect(),
        measures: spreads(ended, own.into_iter().chain(asked), |run, name| {
            run.at_the_end(name)
        }),
        heads: values(ended, heads.map(|head| head.role), |run, role| {
            Some(run.heads_of(*role) as f64)
        }),
        emergence: values(ended, events.map(|event| event.role), |run, role| {
            run.emerged(*role).map(|step| step as f64)
        }),
        half_way: values(ended, curves, |run, name| {
            run.half_way(name).map(|step| step as f64)
        }),
    }
}

/// The spread of a value over the runs, for each of `names`; names without any value are left out.
fn spreads<N: Ord>(
    ended: &[Ended],
    names: impl IntoIterator<Item = N>,
    value: impl Fn(&Ended, &N) -> Option<f64>,
) -> BTreeMap<N, Spread> {
    let mut spreads = BTreeMap::new();
    for name in names.into_iter().collect::<BTreeSet<N>>() {
        if let Some(spread) = spread(ended.iter().map(|run| value(run, &name)).collect()) {
            spreads.insert(name, spread);
        }
    }
    spreads
}

/// A value of every run, for each of `names`; names without any value are left out.
fn values<N: Ord>(
    ended: &[Ended],
    names: impl IntoIterator<Item = N>,
    value: impl Fn(&Ended, &N) -> Option<f64>,
) -> BTreeMap<N, Values> {
    let mut found = BTreeMap::new();
    for name in names.into_iter().collect::<BTreeSet<N>>() {
        let values = Values {
            values: ended.iter().map(|run| value(run, &name)).collect(),
        };
        if values.count() > 0 {
            found.insert(name, values);
        }
    }
    found
}

impl Ended {
    fn at_the_end(&self, name: &str) -> Option<f64> {
        match name {
            "loss" => Some(self.summary.loss),
            "above the floor" => Some(self.summary.loss - self.summary.floor?),
            "accuracy" => Some(self.summary.accuracy),
            "in-context score" => self.metrics.last()?.in_context,
            _ => Some(self.summary.breakdown.get(name)?.accuracy),
        }
    }

    /// How many heads have the role at the end.
    fn heads_of(&self, role: Role) -> usize {
        let heads = self.summary.heads.iter();
        heads.filter(|head| head.role == role).count()
    }

    /// The first step at which a head took the role on.
    fn emerged(&self, role: Role) -> Option<usize> {
        let mut events = self.events.iter();
        let first = events.find(|event| event.event == RoleEvent::Emerged && event.role == role)?;
        Some(first.step)
    }

    /// The step at which a curve was half of its way.
    fn half_way(&self, name: &str) -> Option<usize> {
        let curves = curves_of(&self.metrics);
        let (_, points) = curves.iter().find(|(measure, _)| *measure == name)?;
        half_way(points)
    }
}
