//! The heads of runs, matched by what they look like: a head's number means nothing in another run.

use headlight_heads::{HeadName, HeadSet, Role, RoleEvent, Values};
use headlight_report::{ComparedRole, RoleOfSide, measures_as_told};

use super::{Comparison, Run, Side};

impl Comparison {
    /// The roles that a head of any run has, first the one that takes most to tell.
    pub(super) fn roles(&self) -> Vec<ComparedRole> {
        let mut roles = Vec::new();
        for measure in measures_as_told() {
            let role = Role::Of(measure);
            let mut runs = self.sides.iter().flat_map(|side| &side.runs);
            if runs.any(|run| run.has_had(role)) {
                roles.push(ComparedRole {
                    role,
                    sides: self.sides.iter().map(|side| side.role(role)).collect(),
                });
            }
        }
        roles
    }
}

impl Side {
    fn role(&self, role: Role) -> RoleOfSide {
        let of_runs = |value: &dyn Fn(&Run) -> Option<f64>| Values {
            values: self.runs.iter().map(value).collect(),
        };
        RoleOfSide {
            heads: self.runs.iter().map(|run| run.heads_of(role)).collect(),
            count: of_runs(&|run| Some(run.heads_of(role).len() as f64)),
            highest: of_runs(&|run| run.highest(role)),
            emerged: of_runs(&|run| run.emerged(role).map(|step| step as f64)),
            without: of_runs(&|run| run.without(role)),
        }
    }
}

impl Run {
    /// Whether a head looks so at the end, or ever did.
    fn has_had(&self, role: Role) -> bool {
        !self.heads_of(role).is_empty() || self.emerged(role).is_some()
    }

    fn heads_of(&self, role: Role) -> Vec<HeadName> {
        let heads = self.summary.heads.iter();
        let of_role = heads.filter(|head| head.role == role);
        of_role.map(|head| head.head).collect()
    }

    /// The highest score of the role over all heads at the end.
    fn highest(&self, role: Role) -> Option<f64> {
        let name = role.score()?;
        let heads = self.summary.heads.iter();
        let scores = heads.filter_map(|head| Some(head.scores.get(&name)?.value));
        scores.reduce(f64::max)
    }

    /// The first logged step at which a head took the role on.
    fn emerged(&self, role: Role) -> Option<usize> {
        let mut events = self.events.iter();
        let first = events.find(|event| event.event == RoleEvent::Emerged && event.role == role)?;
        Some(first.step)
    }

    /// The accuracy without all heads of the role, where it was measured.
    fn without(&self, role: Role) -> Option<f64> {
        let mut heads = self.heads_of(role);
        heads.sort_unstable();
        let uses = self.uses.as_ref()?;
        // A single head of its role stands alone, several stand as the set of their role.
        let of_role = uses.uses.iter().find(|uses| {
            let mut together = uses.heads.clone();
            together.sort_unstable();
            let is_named = uses.name == HeadSet::LooksLike(role) || heads.len() == 1;
            !heads.is_empty() && is_named && together == heads
        })?;
        of_role.ablated.map(|left| left.accuracy)
    }
}
