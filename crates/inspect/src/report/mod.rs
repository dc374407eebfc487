//! `inspect RUN report`, and the end of every training: one page that shows the whole run.

mod lesson;
mod model;
mod over_training;
mod patterns;
mod positions;
mod relations;
mod stream;
pub(super) mod walk;
mod weights;

use std::path::{Path, PathBuf};

use headlight_heads::{Ablation, HeadName, HeadSet, Role, Scores};
use headlight_lens::{Behaviour, ablate, all_heads, control_sets};
use headlight_report::{
    Control, PatternSet, Printout, ProgramData, ReportData, RunFacts, report_page,
};
use headlight_residual::Decoder;
use headlight_run::{Error, HeadsUse, Summary, UsesRow, Weights, write_atomically};
use headlight_watch::{
    Cores,
    model::describe,
    no_room,
    uses::{self, left},
};

use super::{
    Comparison, ModelParts, Need, Output, Subject, Verb, learn::write_lesson, print,
    why::NamedModel, write_comparison,
};

/// The whole run as one page, written to report.html in the run
#[derive(Debug, clap::Args)]
pub struct ReportVerb {
    /// Where the page is written; a model of another tool has no place of its own
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// What stands in place of heads that are off: zero, mean or resample. Training measures with
    /// mean; the others are measured anew
    #[arg(long, value_name = "zero|mean|resample", default_value_t)]
    by: Ablation,
    /// Circuits of a model of many edges too, which takes minutes
    #[arg(long)]
    circuits: bool,
}

impl Verb for ReportVerb {
    const NAME: &'static str = "report";
    const NEEDS: &'static [Need] = &[Need::Logs];

    fn show(self, subject: Subject, out: &Output) -> Result<(), Error> {
        let asked = ReportQuestion {
            by: self.by,
            circuits: self.circuits,
        };
        if out.is_text() {
            let path = match self.out {
                Some(path) => subject.write_report_to(path, asked)?,
                None => subject.write_report(asked)?,
            };
            return print(&format!("Written to {}.", path.display()));
        }
        out.show(&subject.report(asked)?, |_| Printout::new())
    }

    fn compare(self, runs: &Comparison, out: &Output) -> Result<(), Error> {
        if self.by != Ablation::default() {
            let message = "several runs are shown with what training measured, which is mean";
            return Err(Error::new("--by", message).value(self.by));
        }
        if out.is_text() {
            let path = write_comparison(runs, self.out)?;
            return print(&format!("Written to {}.", path.display()));
        }
        out.show(&runs.data(Path::new("."))?, |_| Printout::new())
    }
}

/// What is asked of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReportQuestion {
    /// What stands in place of ablated heads.
    pub by: Ablation,
    /// Whether circuits of a model of many edges are looked for too.
    pub circuits: bool,
}

/// Random sets beside the heads of each role.
const CONTROLS: usize = 3;
/// Weights of patterns, of all heads on all sequences, that are held at once.
const MOST_WEIGHTS: usize = 1 << 26;

impl Subject {
    /// Collects what the report shows.
    ///
    /// # Errors
    /// If a file of the run is damaged.
    pub fn report(&self, asked: ReportQuestion) -> Result<ReportData, Error> {
        if self.trained().is_err() {
            return self.report_of_model(asked);
        }
        let run = self.trained()?;
        if run.config.log.heads.is_some() {
            return self.report_of_some_heads(run, asked);
        }
        let summary = self.summary()?;
        let ModelParts { model, vocabulary } = self.model()?;
        if !summary
            .heads
            .iter()
            .map(|head| head.head)
            .eq(all_heads(&model))
        {
            let place = format!("{}/summary.json", self.path().display());
            return Err(Error::damaged(place, "has other heads than the model"));
        }
        let behaviour = self.bounded_behaviour(&model)?;
        let mut used_as = self.uses_by(&model, &behaviour, asked.by)?;
        // Rows after the point that is looked at speak of another model.
        used_as.retain(|row| row.step <= summary.steps);
        let is_one_of_several = self.path().ends_with(format!("seed-{}", self.seed()));
        let mut left_out = Vec::new();
        if let Some(step) = self.diverged()? {
            left_out.push(format!("step {step}, at which the loss is no number"));
        }
        let patterns = self.pattern_sets(&model, &vocabulary, &mut left_out)?;
        let program =
            self.program_of_page(&model, &vocabulary, &summary, &patterns, used_as.last())?;
        let over = over_training::Scores::of(&self.head_rows()?, &summary.heads, &mut left_out);
        let heads: Vec<(HeadName, Role)> = summary
            .heads
            .iter()
            .map(|head| (head.head, head.role))
            .collect();
        Ok(ReportData {
            finding: Vec::new(),
            headline: None,
            first: Vec::new(),
            run: self.facts(&summary, &model)?,
            metrics: self.finite_metrics()?,
            measures: over.measures,
            events: run.directory.events()?,
            patterns,
            program,
            shuffled: self.shuffled_scores(),
            relations: self.relations_seen(&heads, summary.steps)?,
            answers_lost: self.answers_lost(heads.len())?,
            positions: self.head_positions(&model, &summary.heads)?,
            accuracy_by_position: self.accuracy_by_position(&model, asked.by, &mut left_out)?,
            controls: match used_as.last() {
                Some(row) => self.controls(&model, &behaviour, row, CONTROLS)?,
                None => Vec::new(),
            },
            uses: used_as,
            seeds: if is_one_of_several {
                run.directory.seeds()?
            } else {
                None
            },
            circuits: weights::pairs(&model, &vocabulary, &mut left_out),
            stream: Some(self.stream(&model, &behaviour, &vocabulary)?),
            walk: self.walk(&model, &vocabulary, &mut left_out)?,
            why: self.why_of_heads(
                NamedModel {
                    model: &model,
                    vocabulary: &vocabulary,
                },
                &mut left_out,
            )?,
            edges: self.circuits_of_page(asked.circuits, &mut left_out)?,
            heads,
            steps: over.steps,
            scores: over.series,
            left_out,
        })
    }

    /// The program of a compiled model, with its values along the sequences of the patterns.
    fn program_of_page(
        &self,
        model: &Decoder,
        vocabulary: &[String],
        summary: &Summary,
        patterns: &[PatternSet],
        uses: Option<&UsesRow>,
    ) -> Result<Option<ProgramData>, Error> {
        let Some(known) = self.known()? else {
            return Ok(None);
        };
        let id = |name: &String| vocabulary.iter().position(|known| known == name);
        let mut rows = Vec::new();
        for set in patterns {
            let ids = set.tokens.iter().filter_map(id).map(|id| id as u32);
            rows.push(ids.collect());
        }
        let program = self.program_data(&known, model, &summary.heads, uses, &rows)?;
        Ok(Some(program))
    }

    /// Writes `report.html` into the run and says where; beside it `learn.html`, to which it links.
    /// The report of a point that somebody chose has the point in its name: `report-step-250.html`.
    ///
    /// # Errors
    /// As [`report`](Self::report), or if the file cannot be written.
    pub fn write_report(&self, asked: ReportQuestion) -> Result<PathBuf, Error> {
        let Ok(run) = self.trained() else {
            let message = "a model of another tool has no place for its report; name a file";
            return Err(Error::new("--out", message));
        };
        let name = match run.chosen() {
            Some(point) => format!("report-{point}.html"),
            None => "report.html".to_owned(),
        };
        let path = self.write_report_to(self.path().join(name), asked)?;
        // The lesson asks about the run as training left it.
        let asked = match run.chosen() {
            Some(_) => None,
            None => self.lesson_run()?,
        };
        write_lesson(&self.path().join("learn.html"), asked, &self.device)?;
        Ok(path)
    }

    /// Writes the page to `path`, alone.
    fn write_report_to(&self, path: PathBuf, asked: ReportQuestion) -> Result<PathBuf, Error> {
        let html = report_page(self.report(asked)?)?;
        write_atomically(&path, html.as_bytes())?;
        Ok(path)
    }

    /// `[head]`: its scores on the probe with shuffled tokens.
    fn shuffled_scores(&self) -> Vec<Scores> {
        let shuffled = self.shuffled_probe().heads.into_iter();
        shuffled.map(|(_, scores)| scores).collect()
    }

    /// The name of the run's directory or of the model's file.
    fn name(&self) -> String {
        let path = self.path();
        let name = path
            .canonicalize()
            .ok()
            .and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        name.unwrap_or_else(|| path.display().to_string())
    }

    /// What the run measured of its heads' uses, where it measured with `by`; else the same of the
    /// end, measured anew.
    fn uses_by(
        &self,
        model: &Decoder,
        behaviour: &Behaviour,
        by: Ablation,
    ) -> Result<Vec<UsesRow>, Error> {
        let measured = self.logged_uses()?;
        let Some(last) = measured.last() else {
            return Ok(measured);
        };
        if last.by == by {
            return Ok(measured);
        }
        let probe = self.probe()?.observe(model, &self.device)?;
        let step = self.trained()?.step()?;
        let row = uses::all_uses(model, behaviour, &probe, step, by, Cores::all())?;
        Ok(vec![row])
    }

    /// The run's task on as many sequences as [`uses::SEQUENCES`], or on as few as keep their
    /// patterns within bounds.
    fn bounded_behaviour(&self, model: &Decoder) -> Result<Behaviour, Error> {
        let of_sequence = model.blocks.len() * model.n_heads() * model.n_ctx() * model.n_ctx();
        let sequences = (MOST_WEIGHTS / of_sequence).clamp(1, uses::SEQUENCES);
        Ok(uses::behaviour(
            &self.validation()?.sequences,
            sequences,
            &self.device,
        ))
    }

    /// For the heads of each role that were ablated together, as many others from the same layers,
    /// drawn at random from those that no test marks as needed.
    fn controls(
        &self,
        model: &Decoder,
        behaviour: &Behaviour,
        row: &UsesRow,
        draws: usize,
    ) -> Result<Vec<Control>, Error> {
        let mut controls = Vec::new();
        let needed = row.needed();
        for uses in &row.uses {
            let HeadSet::LooksLike(role @ Role::Of(_)) = uses.name else {
                continue;
            };
            // A head that shares its role stands beside the others in a set of its own.
            let holds_more =
                |other: &HeadsUse| other.name == uses.name && other.heads.len() > uses.heads.len();
            if row.uses.iter().any(holds_more) {
                continue;
            }
            for heads in control_sets(model, &uses.heads, &needed, draws, self.seed()) {
                let performance = ablate(model, behaviour, &heads, row.by);
                controls.push(Control {
                    role,
                    left: left(&performance.map_err(no_room)?),
                    heads,
                });
            }
        }
        Ok(controls)
    }

    /// The steps up to the last one whose weights were kept.
    fn kept_checkpoints(&self, last: usize) -> Result<Vec<usize>, Error> {
        let mut steps = vec![last];
        for weights in self.trained()?.directory.checkpoints() {
            if let Weights::Step(step) = weights
                && step < last
            {
                steps.push(step);
            }
        }
        steps.sort_unstable();
        Ok(steps)
    }

    fn facts(&self, summary: &Summary, model: &Decoder) -> Result<RunFacts, Error> {
        Ok(RunFacts {
            name: self.name(),
            task: summary.task.clone(),
            model: model_in_words(model),
            config: self.trained()?.config.to_toml()?,
            seed: self.seed(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            device: summary.device.clone(),
            checkpoints: self.kept_checkpoints(summary.steps)?,
            validation: self.validation()?.sequences.len(),
            steps: summary.steps,
            seconds: summary.seconds,
            tokens_per_second: summary.tokens_per_second,
            loss: summary.loss,
            accuracy: summary.accuracy,
            floor: summary.floor,
            chance: summary.chance,
            best_accuracy: summary.best_accuracy,
            breakdown: summary.breakdown.clone(),
            window: self.window(),
        })
    }
}

/// What a model is made of, in one line.
fn model_in_words(model: &Decoder) -> String {
    let line = describe(model.config()).swap_remove(0);
    let words = line.strip_prefix("model").unwrap_or(&line);
    words.trim().to_owned()
}

/// Writes the report of a run that has just ended. One that cannot be made is said and costs
/// nothing else of the run.
pub fn report_after_training(run: &Path, device: &str) {
    if let Err(error) = Subject::open(run, device)
        .and_then(|inspection| inspection.write_report(ReportQuestion::default()))
    {
        tracing::warn!("the run has no report.html: {error}");
    }
}

/// Numbers of a tensor, row by row.
pub(super) fn numbers<const D: usize>(tensor: burn::tensor::Tensor<D>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}
