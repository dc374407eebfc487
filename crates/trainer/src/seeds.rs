//! The same run with several seeds, side by side, and what they have in common.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Mutex,
};

use headlight_lens::{half_way, spread};
use headlight_report::plain_table;
use headlight_run::{
    Config, EventRow, InputError, MetricsRow, RunDirectory, Seeds, SeedsSummary, Spread, Summary, write_atomically,
};

use crate::{
    Training, View,
    command_line::Failure,
    inspect::{curves_of, report_after_training},
};

/// One seed's run, after it has ended.
struct Ended {
    summary: Summary,
    metrics: Vec<MetricsRow>,
    events: Vec<EventRow>,
}

/// Where the run of one seed is written: below the folder of all.
#[must_use]
pub fn run_path(out: &Path, seed: u64) -> PathBuf {
    out.join(format!("seed-{seed}"))
}

/// Trains `config` with each of `seeds`, as many at a time as there are cores for their shards, and writes
/// `seeds.json` beside the runs. `start` makes the directory of one run, or opens it where a run is resumed.
///
/// # Errors
/// Before anything is written, if a run cannot be made; afterwards the error of the first run that failed, when all
/// have ended.
pub fn train_seeds(
    config: &Config,
    seeds: &Seeds,
    out: &Path,
    device: &str,
    start: impl Fn(&Path, &Config) -> Result<RunDirectory, InputError>,
) -> Result<SeedsSummary, Failure> {
    let prepare = |seed| {
        let config = Config { seed, ..config.clone() };
        let training = Training::prepare(config.clone(), device)?.shown(View::Lines(format!("seed {seed}")));
        Ok((seed, training, config))
    };
    let trainings: Vec<_> = seeds.iter().map(prepare).collect::<Result<_, _>>().map_err(Failure::Input)?;
    let make =
        |(seed, training, config): (u64, Training, Config)| Ok((training, start(&run_path(out, seed), &config)?));
    let runs: Vec<_> = trainings.into_iter().map(make).collect::<Result<_, _>>().map_err(Failure::Input)?;

    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let at_once = (cores / config.train.shards).clamp(1, runs.len().max(1));
    let results = Mutex::new(Vec::new());
    let waiting = Mutex::new(runs.into_iter().enumerate());
    let work = || {
        // The lock is held only while the next run is taken.
        let next = || waiting.lock().ok()?.next();
        while let Some((index, (training, run))) = next() {
            let ended = train_one(training, &run);
            results.lock().map(|mut results| results.push((index, ended))).unwrap_or_default();
        }
    };
    std::thread::scope(|scope| (0..at_once).for_each(|_| drop(scope.spawn(work))));
    let mut results = results.into_inner().unwrap_or_default();
    results.sort_by_key(|(index, _)| *index);
    let ended: Vec<Ended> = results.into_iter().map(|(_, ended)| ended).collect::<Result<_, Failure>>()?;
    let summary = summarise(seeds, &ended);
    let json = serde_json::to_vec_pretty(&summary).map_err(|error| InputError::new("seeds.json", error));
    json.and_then(|json| write_atomically(&out.join("seeds.json"), &json)).map_err(Failure::Running)?;
    // Only now, so that each run's report shows the spread over all.
    seeds.iter().for_each(|seed| report_after_training(&run_path(out, seed), device));
    Ok(summary)
}

fn train_one(training: Training, run: &RunDirectory) -> Result<Ended, Failure> {
    let summary = training.run(run)?;
    let metrics = run.metrics().map_err(Failure::Running)?;
    Ok(Ended { summary, metrics, events: run.events().map_err(Failure::Running)? })
}

fn summarise(seeds: &Seeds, ended: &[Ended]) -> SeedsSummary {
    let over = |value: &dyn Fn(&Ended) -> Option<f64>| spread(ended.iter().map(value).collect());
    let named = |names: BTreeSet<String>, value: &dyn Fn(&Ended, &str) -> Option<f64>| -> BTreeMap<String, Spread> {
        names.into_iter().filter_map(|name| Some((name.clone(), over(&|run| value(run, &name))?))).collect()
    };
    let measured = |run: &Ended, name: &str| match name {
        "loss" => Some(run.summary.loss),
        "above the floor" => Some(run.summary.loss - run.summary.floor?),
        "accuracy" => Some(run.summary.accuracy),
        "in-context score" => run.metrics.last()?.in_context,
        _ => run.summary.breakdown.get(name).map(|answers| answers.accuracy),
    };
    let own = ["loss", "above the floor", "accuracy", "in-context score"].map(str::to_owned);
    let asked = ended.iter().flat_map(|run| run.summary.breakdown.keys().cloned());
    let roles: BTreeSet<String> =
        ended.iter().flat_map(|run| run.summary.heads.iter().map(|head| head.role.clone())).collect();
    let emerged = |run: &Ended, role: &str| {
        let first = |event: &&EventRow| event.event == "role_emerged" && event.role == role;
        run.events.iter().find(first).map(|event| event.step as f64)
    };
    let halves = |run: &Ended, name: &str| {
        let (_, points) = curves_of(&run.metrics).into_iter().find(|(measure, _)| *measure == name)?;
        half_way(&points).map(|step| step as f64)
    };
    let count =
        |run: &Ended, role: &str| Some(run.summary.heads.iter().filter(|head| head.role == role).count() as f64);
    let events = ended.iter().flat_map(|run| run.events.iter().map(|event| event.role.clone())).collect();
    SeedsSummary {
        task: ended.first().map_or_else(String::new, |run| run.summary.task.clone()),
        seeds: seeds.iter().collect(),
        measures: named(own.into_iter().chain(asked).collect(), &measured),
        heads: named(roles, &count),
        emergence: named(events, &emerged),
        half_way: named(curves_of(&[]).map(|(measure, _)| measure.to_owned()).into(), &halves),
    }
}

/// As text: a line for each measure, a column for each seed.
#[must_use]
pub fn seeds_text(summary: &SeedsSummary) -> String {
    let table = |title: &str, spreads: &BTreeMap<String, Spread>, digits: usize| {
        let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"));
        let seeds: Vec<String> = summary.seeds.iter().map(|seed| format!("seed {seed}")).collect();
        let header: Vec<&str> =
            [title, "mean", "95 % from", "to"].into_iter().chain(seeds.iter().map(String::as_str)).collect();
        let row = |(name, spread): (&String, &Spread)| {
            let whole = [Some(spread.mean), spread.low, spread.high];
            let numbers = whole.into_iter().chain(spread.values.iter().copied()).map(number);
            std::iter::once(name.clone()).chain(numbers).collect()
        };
        plain_table(&header, spreads.iter().map(row))
    };
    format!(
        "{}\n\n{}\n\n{}\n\n{}\n\n\
         The interval is that of the mean over seeds, by Student's t. A role emerges at the first logged step at which a\n\
         head takes it on; half of the way: from the first to the last value.",
        table("at the end", &summary.measures, 4),
        table("heads that look like", &summary.heads, 1),
        table("role emerges at step", &summary.emergence, 0),
        table("half of the way at step", &summary.half_way, 0),
    )
}
