//! The report of a model that was not trained here: what its heads look like now.

use headlight_heads::{HeadName, Role};
use headlight_report::{ReportData, RunFacts};
use headlight_residual::Decoder;
use headlight_run::{Error, HeadRow, HeadSummary};
use headlight_watch::{Cores, evaluate};

use super::{ModelParts, ReportQuestion, Subject, model_in_words, over_training, weights};

impl Subject {
    /// The same as of a run, without what only training knows. What its heads are used as is not
    /// measured: of hundreds of heads each would take a pass over all sequences.
    pub(super) fn report_of_model(&self, asked: ReportQuestion) -> Result<ReportData, Error> {
        let ModelParts { model, vocabulary } = self.model()?;
        let behaviour = self.bounded_behaviour(&model)?;
        let mut left_out = vec![
            "what the heads are used as: inspect MODEL ablate and paths measure it".to_owned(),
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
            uses: Vec::new(),
            positions: self.head_positions(&model, &summaries)?,
            controls: Vec::new(),
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
            breakdown: evaluation.breakdown,
            window: self.window(),
        })
    }
}
