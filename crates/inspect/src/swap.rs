//! `inspect RUN swap`: do predictions follow what the context says came next?

use headlight_heads::{HeadName, SequenceKind, heads_by_role};
use headlight_lens::{Ablation, SwapFollow, all_heads, matched_sets, swap_follow};
use headlight_report::plain_table;
use headlight_run::InputError;
use headlight_tasks as tasks;
use headlight_watch::{Watched, no_room};
use serde::Serialize;

use super::{
    Inspection, ModelParts,
    causal::{names, share},
};

/// Swap-follow with some heads ablated.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Swapped {
    /// The sequences.
    pub on: SequenceKind,
    /// What the heads have in common.
    pub name: String,
    /// The heads, ablated together; none: the model as it is.
    pub heads: Vec<HeadName>,
    /// What it does.
    pub swap_follow: SwapFollow,
}

impl Inspection {
    /// Swap-follow on the probe and on the run's own task: of the model as it is, without the heads
    /// of each role, and without as many others drawn at random.
    ///
    /// # Errors
    /// If the run has no weights, or no token comes twice.
    pub fn swaps(&self) -> Result<Vec<Swapped>, InputError> {
        let ModelParts { model, vocabulary } = self.model()?;
        let task = tasks::build(&self.config.task, self.config.model.n_ctx, self.config.seed)?;
        let sequences = [
            Watched::probe(vocabulary.len(), self.config.model.n_ctx, self.config.seed),
            Watched::task(&*task, &tasks::validation(&*task, self.config.seed)),
        ];
        let mut sets = vec![("untouched".to_owned(), Vec::new())];
        for (role, heads) in heads_by_role(&all_heads(&model), &self.roles(&model)?) {
            let others = matched_sets(&model, &heads, 1, self.config.seed);
            sets.push((format!("all {role}"), heads));
            sets.extend(
                others
                    .into_iter()
                    .map(|heads| ("as many others".to_owned(), heads)),
            );
        }
        let mut swaps = Vec::new();
        for watched in &sequences {
            for (name, heads) in &sets {
                let found = swap_follow(
                    &model,
                    &watched.tokens,
                    heads,
                    Ablation::default(),
                    self.config.seed,
                )
                .map_err(no_room)?;
                let (name, heads, on) = (name.clone(), heads.clone(), watched.kind);
                swaps.extend(found.map(|swap_follow| Swapped {
                    on,
                    name,
                    heads,
                    swap_follow,
                }));
            }
        }
        if swaps.is_empty() {
            let message = "has no sequences in which a token comes back after another one";
            return Err(InputError::new(self.run.path().display(), message));
        }
        Ok(swaps)
    }
}

/// As text: one table for the probe, one for the task.
#[must_use]
pub fn swaps_text(swaps: &[Swapped]) -> String {
    let row = |swap: &Swapped| {
        let SwapFollow {
            copies,
            follows,
            control_follows,
            control_keeps,
            ..
        } = &swap.swap_follow;
        let shares = [copies, follows, control_follows, control_keeps].map(share);
        [vec![swap.name.clone(), names(&swap.heads)], shares.to_vec()].concat()
    };
    let header = [
        "without",
        "",
        "copies",
        "follows",
        "control follows",
        "control keeps",
    ];
    let table = |on: SequenceKind, title: &str| {
        let of: Vec<&Swapped> = swaps.iter().filter(|swap| swap.on == on).collect();
        match of.first() {
            Some(first) => {
                let queries = first.swap_follow.queries;
                format!(
                    "On {title}, {queries} queries:\n\n{}\n\n",
                    plain_table(&header, of.into_iter().map(row))
                )
            }
            None => format!("On {title} no token comes back after another one.\n\n"),
        }
    };
    format!(
        "Every token that followed an earlier token equal to the current one is replaced by one other token.\n\n{}{}\
         copies: before, the likeliest next token is one that followed. follows: afterwards it is the token in their place.\n\
         control: as many context tokens, none of them such a successor, are replaced by the same token instead; follows:\n\
         the likeliest is that token; keeps: it is what it was. share±half of the 95 % interval, ceiling 1. In place of\n\
         ablated heads stands their mean.",
        table(SequenceKind::Probe, "the probe"),
        table(SequenceKind::Task, "the run's own task"),
    )
}
