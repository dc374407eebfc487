//! `inspect RUN swap`: do predictions follow what the context says came next?

use headlight_heads::{Ablation, HeadName, SequenceKind, heads_by_role};
use headlight_lens::{SwapFollow, all_heads, control_sets, swap_follow};
use headlight_report::{Printout, Table};
use headlight_run::Error;
use headlight_watch::{Watched, no_room};
use serde::Serialize;

use super::{
    ModelParts, Output, Subject, Verb,
    causal::{names, share},
};

/// Whether predictions follow when the context says that another token came next
#[derive(Debug, clap::Args)]
pub struct SwapVerb;

impl Verb for SwapVerb {
    const NAME: &'static str = "swap";

    fn show(self, subject: Subject, out: &Output) -> Result<(), Error> {
        out.show(&subject.swaps()?[..], swaps_printout)
    }
}

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

impl Subject {
    /// Swap-follow on the probe and on the run's own task: of the model as it is, without the heads
    /// of each role, and without as many others from the same layers, drawn at random from those
    /// that the run's tests do not mark as needed.
    ///
    /// # Errors
    /// If the run has no weights, or no token comes twice.
    pub fn swaps(&self) -> Result<Vec<Swapped>, Error> {
        let ModelParts { model, .. } = self.model()?;
        let sequences = [self.probe()?, Watched::task(self.validation()?)];
        let needed = self.needed_heads()?;
        let mut sets = vec![("untouched".to_owned(), Vec::new())];
        for (role, heads) in heads_by_role(&all_heads(&model), &self.roles(&model)?) {
            let others = control_sets(&model, &heads, &needed, 1, self.seed());
            sets.push((format!("all {role}"), heads));
            sets.extend(
                others
                    .into_iter()
                    .map(|heads| ("as many not needed".to_owned(), heads)),
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
                    self.seed(),
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
            return Err(Error::new(self.path().display(), message));
        }
        Ok(swaps)
    }
}

/// One table for the probe, one for the task.
#[must_use]
pub fn swaps_printout(swaps: &[Swapped]) -> Printout {
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
        "heads",
        "copies",
        "follows",
        "control follows",
        "control keeps",
    ];
    let of = |on: SequenceKind, title: &str| {
        let of: Vec<&Swapped> = swaps.iter().filter(|swap| swap.on == on).collect();
        match of.first() {
            Some(first) => {
                let queries = first.swap_follow.queries;
                Printout::new()
                    .prose(format!("On {title}, {queries} queries:"))
                    .table(
                        Table::new(&header, of.into_iter().map(row))
                            .text_columns(2)
                            .first_to_go(&["heads"]),
                    )
            }
            None => {
                Printout::new().prose(format!("On {title} no token comes back after another one."))
            }
        }
    };
    Printout::new()
        .prose(
            "Every token that followed an earlier token equal to the current one is replaced by one other token.",
        )
        .printout(of(SequenceKind::Probe, "the probe"))
        .printout(of(SequenceKind::Task, "the run's own task"))
        .prose(
            "copies: before, the likeliest next token is one that followed. follows: afterwards it is the token in \
             their place. control: as many context tokens, none of them such a successor, are replaced by the same \
             token instead; follows: the likeliest is that token; keeps: it is what it was. share±half of the 95 % \
             interval, ceiling 1. In place of ablated heads stands their mean. not needed: as many heads \
             from the same layers, drawn once from those that no test of the run marks as needed; none where a layer has \
             too few.",
        )
}
