//! What do heads do together that none of them is missed for alone?

use std::collections::{BTreeMap, btree_map::Entry};

use headlight_heads::{Ablation, HeadName};
use headlight_residual::{ActivationsError, Probed};
use serde::Serialize;

use crate::{Ablations, Behaviour, Joint, Performance, Rights, all_heads, without};

/// Two heads, and what is lost without each and without both.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pair {
    /// The heads.
    pub heads: [HeadName; 2],
    /// What is lost.
    #[serde(flatten)]
    pub joint: Joint,
}

/// Ablates each of these pairs of heads, and each head of a pair alone.
///
/// # Errors
/// As [`without`].
pub fn pairs(
    model: &dyn Probed,
    behaviour: &Behaviour,
    pairs: &[[HeadName; 2]],
    ablation: Ablation,
) -> Result<Vec<Pair>, ActivationsError> {
    let rights = |heads: &[HeadName]| -> Result<Rights, ActivationsError> {
        let mut edits = without(model, behaviour, heads, ablation)?;
        Ok(behaviour.rights(model, &mut edits))
    };
    let untouched = rights(&[])?;
    let mut alone = BTreeMap::new();
    for &head in pairs.iter().flatten() {
        if let Entry::Vacant(new) = alone.entry(head) {
            new.insert(rights(&[head])?);
        }
    }
    let mut measured = Vec::with_capacity(pairs.len());
    for &heads in pairs {
        let both = rights(&heads)?;
        let joint = Joint::of(
            behaviour,
            &untouched,
            heads.map(|head| &alone[&head]),
            &both,
        );
        measured.push(Pair { heads, joint });
    }
    Ok(measured)
}

/// Heads without which a behaviour is gone, none of them superfluous.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MinimalSet {
    /// The heads in the order in which a greedy search took them away.
    pub taken: Vec<Taken>,
    /// The heads of these that are needed for the loss.
    pub heads: Vec<HeadName>,
    /// What is left without [`heads`](Self::heads), on the half on which they were found.
    pub found: Performance,
    /// The same on the other half.
    pub reported: Performance,
}

/// A head that the search took away.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Taken {
    /// The head.
    pub head: HeadName,
    /// What is left without it and all before it, on the half on which the search looks.
    pub found: Performance,
    /// The same on the other half.
    pub reported: Performance,
}

/// Searches on one half of the sequences for few heads without which accuracy falls to `share` of
/// what it is, and reports them on the other half.
///
/// A greedy search takes away the head without which accuracy is lowest, again and again. Then
/// every head that can come back without harm comes back, so that the set is minimal. A small set
/// is evidence that the behaviour lives there; another small set may exist.
///
/// # Errors
/// As [`without`].
///
/// # Panics
/// If the behaviour has fewer than two sequences.
pub fn minimal_set(
    model: &dyn Probed,
    behaviour: &Behaviour,
    ablation: Ablation,
    share: f64,
) -> Result<MinimalSet, ActivationsError> {
    let [finding, reporting] = behaviour.halves();
    let (finding, reporting) = (
        Ablations::new(model, &finding, ablation),
        Ablations::new(model, &reporting, ablation),
    );
    let found = |heads: &[HeadName]| finding.without(heads);
    let reported = |heads: &[HeadName]| reporting.without(heads);
    let enough = share * found(&[])?.accuracy;

    let mut taken: Vec<Taken> = Vec::new();
    let mut heads: Vec<HeadName> = Vec::new();
    let mut left = all_heads(model);
    while found(&heads)?.accuracy > enough && !left.is_empty() {
        let mut worst: Option<(HeadName, Performance)> = None;
        for &head in &left {
            let performance = found(&[&heads[..], &[head]].concat())?;
            if worst.is_none_or(|(_, worst)| performance.accuracy < worst.accuracy) {
                worst = Some((head, performance));
            }
        }
        let Some((head, performance)) = worst else {
            break;
        };
        left.retain(|other| *other != head);
        heads.push(head);
        taken.push(Taken {
            head,
            found: performance,
            reported: reported(&heads)?,
        });
    }
    for head in heads.clone() {
        let rest: Vec<HeadName> = heads
            .iter()
            .copied()
            .filter(|other| *other != head)
            .collect();
        if found(&rest)?.accuracy <= enough {
            heads = rest;
        }
    }
    heads.sort();
    Ok(MinimalSet {
        taken,
        found: found(&heads)?,
        reported: reported(&heads)?,
        heads,
    })
}
