//! The same run with several seeds, side by side or spread over ranks, and what they have in
//! common.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Mutex,
};

use headlight_heads::Spread;
use headlight_inspect::{curves_of, report_after_training};
use headlight_lens::{half_way, spread};
use headlight_report::{Printout, Table, say};
use headlight_run::{
    Config, EventRow, InputError, MetricsRow, RunDirectory, Seeds, SeedsSummary, Summary,
    write_atomically,
};
use headlight_trainer::{
    Training, View, interrupt,
    ranks::{Ranks, on_this_machine},
};
use headlight_watch::cores_of_machine;

use crate::command_line::Failure;

/// Where the run of one seed is written: below the folder of all.
#[must_use]
pub fn run_path(out: &Path, seed: u64) -> PathBuf {
    out.join(format!("seed-{seed}"))
}

/// Trains `config` with each of `seeds`, as many at a time as there are cores for their shards, and
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
    seeds: &Seeds,
    out: &Path,
    device: &str,
    ranks: Box<dyn Ranks>,
    start: impl Fn(&Path, &Config) -> Result<RunDirectory, InputError>,
) -> Result<Option<SeedsSummary>, Failure> {
    let own: Vec<u64> = seeds
        .iter()
        .skip(ranks.rank())
        .step_by(ranks.size())
        .collect();
    let trained = train_side_by_side(config, &own, out, device, start);
    let summary = all_well(&*ranks, trained).and_then(|()| {
        let is_first = ranks.rank() == 0;
        all_well(
            &*ranks,
            is_first
                .then(|| write_summary(seeds, out).map_err(Failure::Running))
                .transpose(),
        )
    });
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
        let message = format!(
            "{failed} of {} ranks did not come to their end; --resume goes on with what they left",
            ranks.size()
        );
        return Err(Failure::Running(InputError::new(
            format!("rank {}", ranks.rank()),
            message,
        )));
    }
    Ok(own)
}

fn train_side_by_side(
    config: &Config,
    seeds: &[u64],
    out: &Path,
    device: &str,
    start: impl Fn(&Path, &Config) -> Result<RunDirectory, InputError>,
) -> Result<(), Failure> {
    let prepare = |&seed: &u64| {
        let config = Config {
            seed,
            ..config.clone()
        };
        let training =
            Training::prepare(config.clone(), device)?.shown(View::Lines(format!("seed {seed}")));
        Ok((seed, training, config))
    };
    let trainings: Vec<_> = seeds
        .iter()
        .map(prepare)
        .collect::<Result<_, _>>()
        .map_err(Failure::Input)?;
    let make = |(seed, training, config): (u64, Training, Config)| {
        Ok((seed, training, start(&run_path(out, seed), &config)?))
    };
    let runs: Vec<_> = trainings
        .into_iter()
        .map(make)
        .collect::<Result<_, _>>()
        .map_err(Failure::Input)?;

    let at_once = (cores_of_machine() / (config.train.shards * on_this_machine()))
        .clamp(1, runs.len().max(1));
    let failures = Mutex::new(BTreeMap::new());
    let waiting = Mutex::new(runs.into_iter());
    let work = || {
        // The lock is held only while the next run is taken.
        let next = || waiting.lock().ok()?.next();
        while !interrupt::requested()
            && let Some((seed, training, run)) = next()
        {
            if let Err(stopped) = training.run(&run) {
                failures
                    .lock()
                    .map(|mut failures| failures.insert(seed, stopped))
                    .unwrap_or_default();
            }
        }
    };
    std::thread::scope(|scope| (0..at_once).for_each(|_| drop(scope.spawn(work))));
    if let Some((_, stopped)) = failures.into_inner().unwrap_or_default().pop_first() {
        return Err(stopped.into());
    }
    match waiting.into_inner().map_or(0, |left| left.len()) {
        0 => Ok(()),
        left => {
            let message =
                format!("by a signal before {left} of its runs; --resume goes on with them");
            Err(Failure::Interrupted(InputError::new(
                out.display(),
                message,
            )))
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
fn write_summary(seeds: &Seeds, out: &Path) -> Result<SeedsSummary, InputError> {
    let read = |seed| {
        let run = RunDirectory::open(&run_path(out, seed))?;
        Ok(Ended {
            summary: run.summary()?,
            metrics: run.metrics()?,
            events: run.events()?,
        })
    };
    let ended: Vec<Ended> = seeds.iter().map(read).collect::<Result<_, InputError>>()?;
    let summary = summarise(seeds, &ended);
    let json = serde_json::to_vec_pretty(&summary)
        .map_err(|error| InputError::new("seeds.json", error))?;
    write_atomically(&out.join("seeds.json"), &json)?;
    Ok(summary)
}

fn summarise(seeds: &Seeds, ended: &[Ended]) -> SeedsSummary {
    let over = |value: &dyn Fn(&Ended) -> Option<f64>| spread(ended.iter().map(value).collect());
    let named = |names: BTreeSet<String>,
                 value: &dyn Fn(&Ended, &str) -> Option<f64>|
     -> BTreeMap<String, Spread> {
        names
            .into_iter()
            .filter_map(|name| Some((name.clone(), over(&|run| value(run, &name))?)))
            .collect()
    };
    let measured = |run: &Ended, name: &str| match name {
        "loss" => Some(run.summary.loss),
        "above the floor" => Some(run.summary.loss - run.summary.floor?),
        "accuracy" => Some(run.summary.accuracy),
        "in-context score" => run.metrics.last()?.in_context,
        _ => run
            .summary
            .breakdown
            .get(name)
            .map(|answers| answers.accuracy),
    };
    let own = ["loss", "above the floor", "accuracy", "in-context score"].map(str::to_owned);
    let asked = ended
        .iter()
        .flat_map(|run| run.summary.breakdown.keys().cloned());
    let roles: BTreeSet<String> = ended
        .iter()
        .flat_map(|run| run.summary.heads.iter().map(|head| head.role.clone()))
        .collect();
    let emerged = |run: &Ended, role: &str| {
        let first = |event: &&EventRow| event.event == "role_emerged" && event.role == role;
        run.events.iter().find(first).map(|event| event.step as f64)
    };
    let halves = |run: &Ended, name: &str| {
        let (_, points) = curves_of(&run.metrics)
            .into_iter()
            .find(|(measure, _)| *measure == name)?;
        half_way(&points).map(|step| step as f64)
    };
    let count = |run: &Ended, role: &str| {
        Some(
            run.summary
                .heads
                .iter()
                .filter(|head| head.role == role)
                .count() as f64,
        )
    };
    let events = ended
        .iter()
        .flat_map(|run| run.events.iter().map(|event| event.role.clone()))
        .collect();
    SeedsSummary {
        task: ended
            .first()
            .map_or_else(String::new, |run| run.summary.task.clone()),
        seeds: seeds.iter().collect(),
        measures: named(own.into_iter().chain(asked).collect(), &measured),
        heads: named(roles, &count),
        emergence: named(events, &emerged),
        half_way: named(
            curves_of(&[]).map(|(measure, _)| measure.to_owned()).into(),
            &halves,
        ),
    }
}

/// A line for each measure, a column for each seed.
#[must_use]
pub fn seeds_printout(summary: &SeedsSummary) -> Printout {
    let table = |title: &str, spreads: &BTreeMap<String, Spread>, digits: usize| {
        let number = |value: Option<f64>| {
            value.map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"))
        };
        let seeds: Vec<String> = summary
            .seeds
            .iter()
            .map(|seed| format!("seed {seed}"))
            .collect();
        let header: Vec<&str> = [title, "mean", "95 % from", "to"]
            .into_iter()
            .chain(seeds.iter().map(String::as_str))
            .collect();
        let row = |(name, spread): (&String, &Spread)| {
            let whole = [Some(spread.mean), spread.low, spread.high];
            let numbers = whole
                .into_iter()
                .chain(spread.values.iter().copied())
                .map(number);
            std::iter::once(name.clone()).chain(numbers).collect()
        };
        Table::new(&header, spreads.iter().map(row)).whole_in("seeds.json")
    };
    Printout::new()
        .table(table("at the end", &summary.measures, 4))
        .table(table("heads that look like", &summary.heads, 1))
        .table(table("role emerges at step", &summary.emergence, 0))
        .table(table("half of the way at step", &summary.half_way, 0))
        .prose(
            "The interval is that of the mean over seeds, by Student's t. A role emerges at the first logged step at \
             which a head takes it on; half of the way: from the first to the last value.",
        )
}
