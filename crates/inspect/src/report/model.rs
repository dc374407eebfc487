//! The report of a model that was not trained here: what its heads look like now.

use std::collections::BTreeMap;

use headlight_heads::{Ablation, HeadName, HeadSet, Measure, Role};
use headlight_lens::ablate;
use headlight_report::{ReportData, RunFacts, measures_as_told};
use headlight_residual::Decoder;
use headlight_run::{Error, HeadRow, HeadSummary, HeadsUse, Left, UsesRow};
use headlight_watch::{Cores, evaluate, no_room, uses::left};

use super::{ModelParts, ReportQuestion, Subject, model_in_words, over_training, weights};
use crate::subject::TrainedRun;

/// Heads of the first role that are switched off one by one; each takes a pass over the sequences.
const MOST_ALONE: usize = 8;

impl Subject {
    /// The same as of a run, without what only training knows. Of hundreds of heads, only those of a
    /// role are switched off together, and each of the role that is told first.
    pub(super) fn report_of_model(&self, asked: ReportQuestion) -> Result<ReportData, Error> {
        let ModelParts { model, vocabulary } = self.model()?;
        let behaviour = self.bounded_behaviour(&model)?;
        let mut left_out = vec![
            "what most heads are used as: inspect MODEL ablate and paths measure it".to_owned(),
        ];
        let observations = [
            self.probe()?.observe(&model, &self.device)?,
            self.on_task()?.observe(&model, &self.device)?,
        ];
        let [on_probe, on_task] = &observations;
        let summaries = on_probe.summaries();
        let rows: Vec<HeadRow> = [on_probe.rows(0), on_task.rows(0)].concat();
        let over = over_training::Scores::of(&rows, &summaries, &mut left_out);
        let role = |head: &HeadSummary| (head.head, head.role);
        let heads: Vec<(HeadName, Role)> = summaries.iter().map(role).collect();
        let uses = self.uses_of_model(&model, &heads)?;
        Ok(ReportData {
            finding: Vec::new(),
            headline: None,
            first: Vec::new(),
            run: self.facts_of_model(&model)?,
            metrics: Vec::new(),
            measures: over.measures,
            events: Vec::new(),
            patterns: self.patterns_now(&observations, &model, &vocabulary, &mut left_out)?,
            program: None,
            why: None,
            edges: self.circuits_of_page(asked.circuits, &mut left_out)?,
            shuffled: self.shuffled_scores(),
            relations: Vec::new(),
            answers_lost: Vec::new(),
            controls: self.controls(&model, &self.task_behaviour()?, &uses, 1)?,
            uses: vec![uses],
            positions: self.head_positions(&model, &summaries)?,
            accuracy_by_position: None,
            circuits: weights::pairs(&model, &vocabulary, &mut left_out),
            seeds: None,
            stream: Some(self.stream(&model, &behaviour, &vocabulary)?),
            walk: self.walk(&model, &vocabulary, &mut left_out)?,
            heads,
            steps: over.steps,
            scores: over.series,
            left_out,
        })
    }

    /// What the report of a run shows that watched some of its heads: all of them as they are now, and
    /// the loss over training.
    pub(super) fn report_of_some_heads(
        &self,
        run: &TrainedRun,
        asked: ReportQuestion,
    ) -> Result<ReportData, Error> {
        let ModelParts { model, .. } = self.model()?;
        let mut report = self.report_of_model(asked)?;
        report.run = self.facts(&self.summary()?, &model)?;
        report.metrics = self.finite_metrics()?;
        report.events = run.directory.events()?;
        report.left_out.push(
            "the scores of the heads that were watched over training: inspect RUN scores"
                .to_owned(),
        );
        Ok(report)
    }

    /// What is left without the heads of each role together, but for those that rest on the first
    /// token, and without each of the role that is told first.
    fn uses_of_model(&self, model: &Decoder, heads: &[(HeadName, Role)]) -> Result<UsesRow, Error> {
        let behaviour = self.task_behaviour()?;
        let by = Ablation::default();
        let without = |heads: &[HeadName]| {
            let performance = ablate(model, &behaviour, heads, by).map_err(no_room)?;
            Ok::<Left, Error>(left(&performance))
        };
        let mut uses = Vec::new();
        for measure in measures_as_told() {
            let role = Role::Of(measure);
            let has_role = heads.iter().filter(|(_, other)| *other == role);
            let of_role: Vec<HeadName> = has_role.map(|(head, _)| *head).collect();
            if of_role.is_empty() || measure == Measure::FirstToken {
                continue;
            }
            if uses.is_empty() {
                let alone = &of_role[..of_role.len().min(MOST_ALONE)];
                let found = self.each_alone(model, &behaviour, alone, by)?;
                for (head, performance) in alone.iter().zip(&found) {
                    uses.push(heads_use(role, &[*head], left(performance)));
                }
            }
            if of_role.len() > 1 {
                uses.push(heads_use(role, &of_role, without(&of_role)?));
            }
        }
        Ok(UsesRow {
            step: 0,
            sequences: behaviour.sequences(),
            by,
            untouched: without(&[])?,
            uses,
            missed: Vec::new(),
        })
    }

    fn facts_of_model(&self, model: &Decoder) -> Result<RunFacts, Error> {
        let validation = self.validation()?;
        let (sequences, questions) = (&validation.sequences, &validation.questions);
        let evaluation = evaluate(model, sequences, questions, &self.device, Cores::all());
        Ok(RunFacts {
            name: self.name(),
            task: self.task_name().to_owned(),
            model: model_in_words(model),
            config: String::new(),
            seed: self.seed(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            device: String::new(),
            checkpoints: vec![0],
            validation: sequences.len(),
            steps: 0,
            seconds: 0.0,
            tokens_per_second: 0.0,
            loss: evaluation.loss,
            accuracy: evaluation.accuracy,
            floor: validation.floor(),
            chance: self.chance()?,
            best_accuracy: validation.best_accuracy(),
            breakdown: evaluation.breakdown,
            window: self.window(),
        })
    }
}

fn heads_use(role: Role, heads: &[HeadName], left: Left) -> HeadsUse {
    HeadsUse {
        heads: heads.to_vec(),
        name: HeadSet::LooksLike(role),
        ablated: Some(left),
        through: BTreeMap::new(),
    }
}
