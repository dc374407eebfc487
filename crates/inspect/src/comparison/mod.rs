//! Runs side by side: `inspect A B heads`, and the runs of several seeds in one folder.

mod curves;
mod measures;
mod page;
mod printout;
mod roles;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use headlight_report::{ComparedRun, ComparedSide, ComparisonData};
use headlight_run::{Error, ErrorKind, EventRow, MetricsRow, Summary, UsesRow};
use headlight_tasks::Tasks;

use super::Subject;

pub use page::{report_of_seeds, write_comparison};
pub(crate) use printout::accuracies_svg;
pub use printout::{comparison_printout, curves_text};

/// Several subjects that are looked at together.
pub struct Comparison {
    sides: Vec<Side>,
}

/// A run, or the runs of one configuration that differ in the seed.
struct Side {
    name: String,
    path: PathBuf,
    runs: Vec<Run>,
}

/// A run and what it has written.
struct Run {
    subject: Subject,
    summary: Summary,
    metrics: Vec<MetricsRow>,
    events: Vec<EventRow>,
    uses: Option<UsesRow>,
}

impl Comparison {
    /// Whether `path` is a folder of runs that differ in the seed, as `train --seeds` makes it.
    #[must_use]
    pub fn is_of_seeds(path: &Path) -> bool {
        !path.join("config.toml").exists() && !seeds_in(path).is_empty()
    }

    /// Opens runs, and folders of several seeds.
    ///
    /// # Errors
    /// If one of them is no run with its logs, or its heads were not scored.
    pub fn open(paths: &[PathBuf], device: &str, tasks: &Tasks) -> Result<Self, Error> {
        let mut sides = Vec::new();
        for path in paths {
            let mut runs = Vec::new();
            if Self::is_of_seeds(path) {
                for (_, run) in seeds_in(path) {
                    runs.push(Run::open(&run, device, tasks)?);
                }
            } else {
                runs.push(Run::open(path, device, tasks)?);
            }
            sides.push(Side {
                name: name_of(path),
                path: path.clone(),
                runs,
            });
        }
        let names: Vec<String> = sides.iter().map(|side| side.name.clone()).collect();
        for side in &mut sides {
            if names.iter().filter(|name| **name == side.name).count() > 1 {
                side.name = side.path.display().to_string();
            }
        }
        Ok(Self { sides })
    }

    /// Everything that is compared; `from` is the folder of the page that links to the runs' own.
    ///
    /// # Errors
    /// If a file of a run is damaged, or the weights of one that stands alone cannot be read.
    pub fn data(&self, from: &Path) -> Result<ComparisonData, Error> {
        Ok(ComparisonData {
            sides: self
                .sides
                .iter()
                .map(|side| side.facts(from))
                .collect::<Result<_, _>>()?,
            keys: self.keys()?,
            measures: self.measures()?,
            half_way: self.half_way(),
            roles: self.roles(),
            curves: self.curves()?,
        })
    }

    /// The keys of the configurations that differ between sides.
    fn keys(&self) -> Result<Vec<(String, Vec<String>)>, Error> {
        let mut of_sides = Vec::new();
        for side in &self.sides {
            of_sides.push(side.runs[0].subject.config()?.keys()?);
        }
        let mut names: Vec<&String> = of_sides.iter().flat_map(|keys| keys.keys()).collect();
        names.sort();
        names.dedup();
        let mut rows = Vec::new();
        for name in names {
            let value = |keys: &BTreeMap<String, String>| {
                keys.get(name).cloned().unwrap_or_else(|| "–".to_owned())
            };
            let values: Vec<String> = of_sides.iter().map(value).collect();
            let is_seed_of_several =
                name == "seed" && self.sides.iter().any(|side| side.runs.len() > 1);
            if values.iter().any(|value| *value != values[0]) && !is_seed_of_several {
                rows.push((name.clone(), values));
            }
        }
        Ok(rows)
    }
}

impl Side {
    fn facts(&self, from: &Path) -> Result<ComparedSide, Error> {
        let first = &self.runs[0];
        let mut runs = Vec::new();
        for run in &self.runs {
            let report = run.subject.path().join("report.html");
            runs.push(ComparedRun {
                seed: run.subject.seed(),
                report: report.is_file().then(|| link(from, &report)),
            });
        }
        Ok(ComparedSide {
            name: self.name.clone(),
            task: first.summary.task.clone(),
            logged_every: first.subject.config()?.log.every,
            runs,
        })
    }
}

impl Run {
    fn open(path: &Path, device: &str, tasks: &Tasks) -> Result<Self, Error> {
        let subject = Subject::open(path, device)?.with_tasks(tasks.clone());
        Ok(Self {
            summary: subject.summary()?,
            metrics: subject.finite_metrics()?,
            events: subject.trained()?.directory.events()?,
            uses: subject.logged_uses()?.pop(),
            subject,
        })
    }
}

/// The runs of several seeds in a folder, by seed.
fn seeds_in(path: &Path) -> Vec<(u64, PathBuf)> {
    let Ok(entries) = std::fs::read_dir(path) else {
        return Vec::new();
    };
    let mut seeds = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let seed = name.to_str().and_then(|name| name.strip_prefix("seed-"));
        if let Some(seed) = seed.and_then(|seed| seed.parse().ok())
            && entry.path().join("config.toml").is_file()
        {
            seeds.push((seed, entry.path()));
        }
    }
    seeds.sort_unstable();
    seeds
}

pub(crate) fn name_of(path: &Path) -> String {
    let absolute = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = absolute.file_name().unwrap_or(absolute.as_os_str());
    name.display().to_string()
}

/// The address of a file for a page in `from`: relative where the file is below that folder.
fn link(from: &Path, file: &Path) -> String {
    let absolute = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (from, file) = (absolute(from), absolute(file));
    let (way, prefix) = match file.strip_prefix(&from) {
        Ok(below) => (below.to_owned(), ""),
        Err(_) => (file, "file://"),
    };
    let way = way.to_string_lossy().replace('%', "%25");
    let way = way
        .replace(' ', "%20")
        .replace('#', "%23")
        .replace('?', "%3F");
    format!("{prefix}{way}")
}

/// That a verb has nothing to compare.
pub(crate) fn takes_one_run(verb: &str) -> Error {
    let message = format!("{verb} takes one run; heads, curves and report compare several");
    Error::of(ErrorKind::Argument, "inspect", message)
}
