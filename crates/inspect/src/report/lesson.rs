//! What the lesson beside a report asks about the run.

use headlight_heads::{HeadName, HeadSet, Role};
use headlight_report::{LessonRun, RemovedHeads};
use headlight_run::{Error, HeadsUse};

use super::Subject;
use crate::comparison::name_of;

impl Subject {
    /// The run, and some of its heads that were switched off: the head that is missed most, a head
    /// of the largest set of a role, and that set. None where nothing was tested.
    pub(super) fn lesson_run(&self) -> Result<Option<LessonRun>, Error> {
        let Some(row) = self.logged_uses()?.pop() else {
            return Ok(None);
        };
        let roles = self.summary()?.heads;
        let role_of = |head: HeadName| {
            let found = roles.iter().find(|known| known.head == head);
            found.map_or(Role::Mixed, |known| known.role)
        };
        let mut removed = Vec::new();
        let of_one = row.uses.iter().filter(|uses| uses.heads.len() == 1);
        let alone: Vec<&HeadsUse> = of_one.filter(|uses| uses.ablated.is_some()).collect();
        let mut candidates: Vec<&HeadsUse> = Vec::new();
        let by_left = |a: &&&HeadsUse, b: &&&HeadsUse| left(a).total_cmp(&left(b));
        candidates.extend(alone.iter().min_by(by_left));
        let set = row
            .uses
            .iter()
            .filter(|uses| matches!(uses.name, HeadSet::LooksLike(Role::Of(_))))
            .filter(|uses| uses.heads.len() > 1 && uses.ablated.is_some())
            .max_by_key(|uses| uses.heads.len());
        if let Some(set) = set {
            let one = alone.iter().find(|uses| set.heads.contains(&uses.heads[0]));
            candidates.extend(one);
            candidates.push(set);
        }
        for uses in candidates {
            let known = |other: &RemovedHeads| other.heads == uses.heads;
            if !removed.iter().any(known) {
                removed.push(RemovedHeads {
                    role: role_of(uses.heads[0]),
                    accuracy: left(uses),
                    heads: uses.heads.clone(),
                });
            }
        }
        Ok(Some(LessonRun {
            name: name_of(self.path()),
            report: "report.html".to_owned(),
            accuracy: row.untouched.accuracy,
            removed,
        }))
    }
}

/// The accuracy that is left.
fn left(uses: &HeadsUse) -> f64 {
    uses.ablated.map_or(f64::NAN, |left| left.accuracy)
}
