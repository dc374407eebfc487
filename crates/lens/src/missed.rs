//! Is a head missed where the other heads of its role are off already? A head that looks like them
//! and is not missed even then has the pattern only.

use headlight_heads::{Ablation, HeadName};
use headlight_residual::{ActivationsError, Probed};

use crate::{Behaviour, Estimate, Performance, Rights, all_heads, without};

/// What one head adds to the others of its role.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Missed {
    /// The behaviour without the others.
    pub without_others: Performance,
    /// The accuracy that is lost when the head is ablated too.
    pub cost: Estimate,
    /// The accuracy that could be lost: what remains without the others, less what remains without
    /// any head. Where it is near 0, a cost of 0 says nothing.
    pub to_lose: Estimate,
}

/// Ablates `others`, then `others` and `head`, then all heads.
///
/// # Errors
/// As [`without`].
pub fn missed(
    model: &dyn Probed,
    behaviour: &Behaviour,
    head: HeadName,
    others: &[HeadName],
    ablation: Ablation,
) -> Result<Missed, ActivationsError> {
    let rights = |heads: &[HeadName]| -> Result<Rights, ActivationsError> {
        let mut edits = without(model, behaviour, heads, ablation)?;
        Ok(behaviour.rights(model, &mut edits))
    };
    let mut edits = without(model, behaviour, others, ablation)?;
    let without_others = behaviour.measure(model, &mut edits);
    let before = rights(others)?;
    let after = rights(&[others, &[head]].concat())?;
    let nothing = rights(&all_heads(model))?;
    Ok(Missed {
        without_others,
        cost: behaviour.combined(&[(1.0, &before), (-1.0, &after)]),
        to_lose: behaviour.combined(&[(1.0, &before), (-1.0, &nothing)]),
    })
}
