//! What the heads are used as: ablations and path tests, as many as may be paid for.

use headlight_lens::{Ablation, Behaviour, Input, Performance, ablate, all_heads, matched_sets, path_test};
use headlight_report::{Ablated, CausalTests, Outcome, PathTest};
use headlight_residual::Decoder;
use headlight_run::{HeadName, InputError};

use super::Inspection;

/// Random sets beside each set of heads.
const CONTROLS: usize = 3;
/// The tests may cost this share of the training's own work, or that many floating-point operations.
const SHARE_OF_TRAINING: f64 = 0.03;
const ALWAYS: f64 = 60e9;

/// Which tests are done.
struct Plan {
    sequences: usize,
    each_head: bool,
    paths: bool,
}

impl Inspection {
    /// Ablations and path tests on the run's own task, heads in the order and with the roles of `heads`.
    pub(super) fn causal_tests(
        &self,
        model: &Decoder,
        heads: &[(HeadName, String)],
        left_out: &mut Vec<String>,
    ) -> Result<Option<CausalTests>, InputError> {
        let Some(plan) = self.plan(model, heads, left_out) else { return Ok(None) };
        let behaviour = self.behaviour_on(plan.sequences)?;
        let sequences = behaviour.inputs().dims()[0];
        let ablated = |role: &str, heads: Vec<HeadName>, controls: usize| Ablated {
            role: role.to_owned(),
            left: outcome(&ablate(model, &behaviour, &heads, Ablation::Mean)),
            controls: matched_sets(model, &heads, controls, self.config.seed)
                .into_iter()
                .map(|set| {
                    let left = outcome(&ablate(model, &behaviour, &set, Ablation::Mean));
                    (set, left)
                })
                .collect(),
            heads,
        };
        let alone = heads.iter().filter(|_| plan.each_head).map(|(head, role)| ablated(role, vec![*head], 0)).collect();
        let of = |role: &String| heads.iter().filter(|(_, other)| other == role).map(|(head, _)| *head).collect();
        let sets = roles(heads).into_iter().map(|role| ablated(role, of(role), CONTROLS)).collect();
        let paths = if plan.paths { paths(model, &behaviour, plan.each_head) } else { Vec::new() };
        let untouched = outcome(&ablate(model, &behaviour, &[], Ablation::Mean));
        let in_place = "replaced by the mean of what they do".to_owned();
        Ok(Some(CausalTests { in_place, sequences, untouched, alone, sets, paths }))
    }

    /// The most that may be paid for: fewer sequences first, then no tests of single heads, then no paths.
    fn plan(&self, model: &Decoder, heads: &[(HeadName, String)], left_out: &mut Vec<String>) -> Option<Plan> {
        let flops: f64 = model.config().costs().iter().map(|cost| cost.flops_per_token).sum();
        let per_sequence = flops * model.n_ctx() as f64;
        let train = &self.config.train;
        // A step's backward pass costs two forward passes.
        let training = 3.0 * per_sequence * (train.steps * train.batch_size) as f64;
        let most = (SHARE_OF_TRAINING * training).max(ALWAYS);
        let (layers, n_heads) = (model.blocks.len(), model.n_heads());
        let sets = 1 + roles(heads).len() * (1 + CONTROLS);
        let later = layers * (layers - 1) / 2;
        // Each path takes a pass to see what was written and one to hide it.
        let passes = |plan: &Plan| {
            let (single, writers) = if plan.each_head { (heads.len(), 1 + n_heads) } else { (0, 1) };
            sets + single + if plan.paths { 2 * Input::ALL.len() * later * writers } else { 0 }
        };
        let ways = [(true, true), (false, true), (false, false)];
        let ways = ways
            .into_iter()
            .flat_map(|(each_head, paths)| [128, 64, 32, 16].map(|sequences| Plan { sequences, each_head, paths }));
        let plan = ways.into_iter().find(|plan| per_sequence * (plan.sequences * passes(plan)) as f64 <= most);
        let too_dear =
            "they would cost more than 3 % of the training; inspect RUN ablate and inspect RUN paths do them";
        match &plan {
            None => left_out.push(format!("what the heads are used as: {too_dear}")),
            Some(Plan { each_head: false, paths, .. }) => {
                let what = if *paths { "" } else { " and path tests" };
                left_out.push(format!("ablations of single heads{what}: {too_dear}"));
            }
            Some(_) => {}
        }
        plan
    }
}

/// The roles that heads have, each once.
fn roles(heads: &[(HeadName, String)]) -> Vec<&String> {
    let mut roles: Vec<&String> = heads.iter().map(|(_, role)| role).filter(|role| *role != "mixed").collect();
    roles.sort_unstable();
    roles.dedup();
    roles
}

/// What each earlier layer, and each of its heads, wrote, hidden from each input of each later layer.
fn paths(model: &Decoder, behaviour: &Behaviour, each_head: bool) -> Vec<PathTest> {
    let mut paths = Vec::new();
    for reader in 1..model.blocks.len() {
        let earlier: Vec<HeadName> = all_heads(model).into_iter().filter(|head| head.layer < reader).collect();
        let whole = (0..reader).map(|layer| {
            let heads = earlier.iter().copied().filter(|head| head.layer == layer).collect();
            (format!("layer {layer}"), heads)
        });
        let single = earlier.iter().filter(|_| each_head).map(|head| (head.to_string(), vec![*head]));
        for (writer, heads) in whole.chain(single).collect::<Vec<(String, Vec<HeadName>)>>() {
            for input in Input::ALL {
                let Some(left) = path_test(model, behaviour, &heads, reader, input) else { continue };
                let input = match input {
                    Input::Query => "queries",
                    Input::Key => "keys",
                    Input::Value => "values",
                };
                let left = outcome(&left);
                paths.push(PathTest { writer: writer.clone(), reader, input: input.to_owned(), left });
            }
        }
    }
    paths
}

pub(super) fn outcome(performance: &Performance) -> Outcome {
    let Performance { accuracy, low, high, loss, .. } = *performance;
    Outcome { accuracy, low, high, loss }
}
