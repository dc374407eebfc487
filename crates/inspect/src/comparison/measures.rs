//! The numbers of runs at the end of their training, and how far they differ.

use std::collections::BTreeSet;

use headlight_heads::{Interval, Values};
use headlight_lens::{Behaviour, Rights, difference_of_means, half_way, spread};
use headlight_report::{ComparedMeasure, Difference, MeasureOfSide, Over};
use headlight_residual::NoProbe;
use headlight_run::Error;
use headlight_watch::uses;

use super::{Comparison, Run, Side};
use crate::{ModelParts, phases::curves_of};

/// What every run has.
const ACCURACY: &str = "accuracy";

impl Comparison {
    /// Accuracy first, then loss and whatever else a run is measured on.
    pub(super) fn measures(&self) -> Result<Vec<ComparedMeasure>, Error> {
        let own = [
            "loss, nats",
            "loss above the best possible, nats",
            "in-context score, nats",
        ];
        let runs = self.sides.iter().flat_map(|side| &side.runs);
        let asked: BTreeSet<&String> = runs.flat_map(|run| run.summary.breakdown.keys()).collect();
        let mut measures = vec![self.accuracies()?];
        for name in own.into_iter().chain(asked.into_iter().map(String::as_str)) {
            let sides: Vec<MeasureOfSide> =
                self.sides.iter().map(|side| side.measure(name)).collect();
            if sides.iter().all(|side| side.mean.is_none()) {
                continue;
            }
            measures.push(ComparedMeasure {
                name: name.to_owned(),
                differences: over_seeds(&sides),
                sides,
            });
        }
        Ok(measures)
    }

    /// By curve, the first logged step at which each run had gone half of its way.
    pub(super) fn half_way(&self) -> Vec<(String, Vec<Values>)> {
        let mut all = Vec::new();
        for (name, _) in curves_of(&[]) {
            let of_run = |run: &Run| {
                let curves = curves_of(&run.metrics);
                let (_, points) = curves.iter().find(|(other, _)| *other == name)?;
                half_way(points).map(|step| step as f64)
            };
            let of_side = |side: &Side| Values {
                values: side.runs.iter().map(of_run).collect(),
            };
            let sides: Vec<Values> = self.sides.iter().map(of_side).collect();
            if sides.iter().any(|side| side.count() > 0) {
                all.push((name.to_owned(), sides));
            }
        }
        all
    }

    /// Accuracy: of one run with its interval over validation sequences, of several over seeds.
    fn accuracies(&self) -> Result<ComparedMeasure, Error> {
        let mut sides = Vec::new();
        let mut counted = Vec::new();
        for side in &self.sides {
            let mut measure = side.measure(ACCURACY);
            let rights = match side.runs.as_slice() {
                [run] => run.rights()?,
                _ => None,
            };
            if let Some((behaviour, rights)) = &rights {
                measure.interval = Some(behaviour.combined(&[(1.0, rights)]).interval);
            }
            sides.push(measure);
            counted.push(rights);
        }
        let mut differences = over_seeds(&sides);
        for (at, difference) in differences.iter_mut().enumerate().skip(1) {
            if let (Some(first), Some(other)) = (&counted[0], &counted[at]) {
                *difference = Some(self.of_runs(at, first, other)?);
            }
        }
        Ok(ComparedMeasure {
            name: ACCURACY.to_owned(),
            sides,
            differences,
        })
    }

    /// The difference of two runs that stand alone.
    fn of_runs(
        &self,
        at: usize,
        (first, right_of_first): &(Behaviour, Rights),
        (other, right_of_other): &(Behaviour, Rights),
    ) -> Result<Difference, Error> {
        let [side, other_side] = [0, at].map(|at| self.sides[at].runs[0].subject.validation());
        if side?.sequences == other_side?.sequences {
            let terms = [(1.0, right_of_other), (-1.0, right_of_first)];
            let estimate = first.combined(&terms);
            return Ok(Difference {
                mean: estimate.mean,
                interval: estimate.interval,
                over: Over::SameSequences,
            });
        }
        let [first, other] = [
            first.combined(&[(1.0, right_of_first)]),
            other.combined(&[(1.0, right_of_other)]),
        ];
        // Independent errors add up as squares.
        let half = first.interval.half().hypot(other.interval.half());
        let mean = other.mean - first.mean;
        Ok(Difference {
            mean,
            interval: Interval {
                low: mean - half,
                high: mean + half,
            },
            over: Over::Sequences,
        })
    }
}

/// The differences to the first side where both have several seeds.
fn over_seeds(sides: &[MeasureOfSide]) -> Vec<Option<Difference>> {
    let known = |side: &MeasureOfSide| side.values.iter().copied().flatten().collect::<Vec<f64>>();
    let mut differences = vec![None];
    for side in &sides[1..] {
        let difference = difference_of_means(&known(&sides[0]), &known(side));
        differences.push(difference.map(|estimate| Difference {
            mean: estimate.mean,
            interval: estimate.interval,
            over: Over::Seeds,
        }));
    }
    differences
}

impl Side {
    fn measure(&self, name: &str) -> MeasureOfSide {
        let values: Vec<Option<f64>> = self.runs.iter().map(|run| run.measure(name)).collect();
        let over_seeds = spread(values.clone());
        let interval = over_seeds.as_ref().and_then(|spread| {
            Some(Interval {
                low: spread.low?,
                high: spread.high?,
            })
        });
        MeasureOfSide {
            mean: over_seeds.map(|spread| spread.mean),
            interval,
            values,
        }
    }
}

impl Run {
    fn measure(&self, name: &str) -> Option<f64> {
        let summary = &self.summary;
        let value = match name {
            ACCURACY => summary.accuracy,
            "loss, nats" => summary.loss,
            "loss above the best possible, nats" => summary.loss - summary.floor?,
            "in-context score, nats" => self.metrics.last()?.in_context?,
            _ => summary.breakdown.get(name)?.accuracy,
        };
        value.is_finite().then_some(value)
    }

    /// Which scored targets of each validation sequence the run gets right; none without weights.
    fn rights(&self) -> Result<Option<(Behaviour, Rights)>, Error> {
        let Ok(ModelParts { model, .. }) = self.subject.model() else {
            return Ok(None);
        };
        let sequences = &self.subject.validation()?.sequences;
        let behaviour = uses::behaviour(sequences, sequences.len(), self.subject.device());
        let rights = behaviour.rights(&model, &mut NoProbe);
        Ok(Some((behaviour, rights)))
    }
}
