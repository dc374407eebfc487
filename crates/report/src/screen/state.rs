//! What the screen knows.

use std::{net::SocketAddr, time::Duration};

use headlight_heads::{HeadName, MayAttend, Role, Scores};
use headlight_run::PatternFile;

use crate::most_telling_head;

/// Something new about a run.
#[derive(Debug, Clone)]
pub enum News {
    /// So many updates are done, and it takes about so long still.
    Step(usize, Duration),
    /// The model was measured.
    Measured {
        /// Updates done.
        step: usize,
        /// On the batch of this step, nats.
        loss: f64,
        /// This and the rest in words.
        text: String,
        /// Every head's scores on the probe, first layer first.
        heads: Vec<(HeadName, Scores)>,
        /// The heads' patterns on some sequences of the probe.
        patterns: PatternFile,
    },
    /// Something worth a line happened.
    Line(String),
}

/// A head and what it looks like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Head {
    /// The head.
    pub name: HeadName,
    /// Its role on the probe.
    pub role: Role,
    /// The score of its role; of a mixed head there is none.
    pub score: Option<f64>,
}

/// A run as far as it is known.
#[derive(Debug, Clone)]
pub struct State {
    /// The task's name.
    pub task: String,
    /// Updates in all.
    pub steps: usize,
    /// Updates done.
    pub step: usize,
    /// About how long it takes still.
    pub left: Duration,
    /// What the best predictor pays, nats, where it is known.
    pub floor: Option<f64>,
    /// Which weights of a pattern are shown.
    pub may_attend: MayAttend,
    /// `(step, loss)`, nats.
    pub losses: Vec<(f64, f64)>,
    /// The newest measurements in words.
    pub text: String,
    /// Every head, first layer first.
    pub heads: Vec<Head>,
    /// The heads' patterns on some sequences of the probe.
    pub patterns: Option<PatternFile>,
    /// Whose pattern is shown: an index into `heads`.
    pub chosen: usize,
    /// Whether somebody chose it; until then it is the head that tells most by now.
    pub is_chosen_by_hand: bool,
    /// What was said.
    pub lines: Vec<String>,
    /// Where a page shows the run too.
    pub page: Option<SocketAddr>,
}

impl State {
    /// Before the first update.
    #[must_use]
    pub fn new(task: &str, steps: usize, floor: Option<f64>, may_attend: MayAttend) -> Self {
        Self {
            task: task.to_owned(),
            steps,
            step: 0,
            left: Duration::ZERO,
            floor,
            may_attend,
            losses: Vec::new(),
            text: String::new(),
            heads: Vec::new(),
            patterns: None,
            chosen: 0,
            is_chosen_by_hand: false,
            lines: Vec::new(),
            page: None,
        }
    }

    /// Takes in something new.
    pub fn learn(&mut self, news: News) {
        match news {
            News::Step(step, left) => (self.step, self.left) = (step, left),
            News::Measured {
                step,
                loss,
                text,
                heads,
                patterns,
            } => {
                self.step = step;
                self.losses.push((step as f64, loss));
                self.text = text;
                self.heads = heads
                    .into_iter()
                    .map(|(name, scores)| {
                        let role = Role::of(&scores);
                        let score = role.score().and_then(|name| scores.get(&name));
                        Head {
                            name,
                            role,
                            score: score.map(|score| score.value),
                        }
                    })
                    .collect();
                self.patterns = Some(patterns);
                if !self.is_chosen_by_hand {
                    self.chosen = self.most_telling();
                }
            }
            News::Line(line) => self.lines.push(line),
        }
    }

    /// The head that tells most, as an index.
    fn most_telling(&self) -> usize {
        let roles: Vec<(HeadName, Role)> = self
            .heads
            .iter()
            .map(|head| (head.name, head.role))
            .collect();
        let wanted = most_telling_head(&roles);
        let found = self.heads.iter().position(|head| Some(head.name) == wanted);
        found.unwrap_or(0)
    }

    /// Shows the head so many layers down and so many heads to the right, if there is one.
    pub fn choose(&mut self, down: isize, right: isize) {
        let Some(head) = self.chosen_head() else {
            return;
        };
        let wanted = HeadName {
            layer: head.name.layer.saturating_add_signed(down),
            head: head.name.head.saturating_add_signed(right),
        };
        if let Some(index) = self.heads.iter().position(|head| head.name == wanted) {
            self.chosen = index;
            self.is_chosen_by_hand = true;
        }
    }

    /// The head whose pattern is shown.
    #[must_use]
    pub fn chosen_head(&self) -> Option<&Head> {
        self.heads.get(self.chosen)
    }
}

#[cfg(test)]
pub mod tests {
    use headlight_heads::{Interval, Measure, Score};

    use super::*;

    /// Two layers of two heads over four tokens: L0H1 attends to the token before and L1H0 looks
    /// for induction, all others see everything alike.
    pub fn measured(step: usize) -> News {
        let score = |value| Score {
            value,
            null: 0.1,
            ceiling: 1.0,
            interval: Interval::point(value),
        };
        let of = |measure: Measure, value| Scores::from([(measure.into(), score(value))]);
        let head = |layer, head| HeadName { layer, head };
        let heads = vec![
            (head(0, 0), of(Measure::PreviousToken, 0.2)),
            (head(0, 1), of(Measure::PreviousToken, 0.98)),
            (head(1, 0), of(Measure::Induction, 0.9)),
            (head(1, 1), of(Measure::Induction, 0.3)),
        ];
        let mut weights = Vec::new();
        for (_, scores) in &heads {
            for query in 0..4 {
                let previous = scores
                    .get(&Measure::PreviousToken.into())
                    .is_some_and(|score| score.value > 0.9);
                let weight = |key: usize| match () {
                    () if key > query => 0.0,
                    () if previous => f32::from(u8::from(key == usize::max(query, 1) - 1)),
                    () => 1.0 / (query + 1) as f32,
                };
                weights.extend((0..4).map(weight));
            }
        }
        let patterns = PatternFile::quantise([2, 1, 2, 4], &weights, vec![vec![0, 1, 2, 0]]);
        News::Measured {
            step,
            loss: 2.0,
            text: "loss 2.0000".to_owned(),
            heads,
            patterns,
        }
    }

    #[test]
    fn arrows_move_between_heads_and_stop_at_the_edges() {
        let mut state = State::new("repeat", 100, None, MayAttend::Causal);
        state.choose(1, 0);
        assert_eq!(state.chosen_head(), None);
        state.learn(measured(50));
        // Until somebody chooses, the head that tells most is shown.
        assert_eq!(state.chosen_head().unwrap().name.to_string(), "L1H0");
        state.choose(-1, 0);
        let mut walk = |down, right| {
            state.choose(down, right);
            state
                .chosen_head()
                .map(|head| head.name.to_string())
                .unwrap()
        };
        assert_eq!(walk(0, 1), "L0H1");
        assert_eq!(walk(0, 1), "L0H1");
        assert_eq!(walk(1, 0), "L1H1");
        assert_eq!(walk(1, 0), "L1H1");
        assert_eq!(walk(0, -1), "L1H0");
        assert_eq!(walk(0, -1), "L1H0");
        assert_eq!(walk(-1, 0), "L0H0");
        state.learn(measured(60));
        assert_eq!(state.chosen_head().unwrap().name.to_string(), "L0H0");
    }

    #[test]
    fn heads_bear_their_roles() {
        let mut state = State::new("repeat", 100, None, MayAttend::Causal);
        state.learn(measured(50));
        state.learn(News::Step(51, Duration::from_secs(3)));
        let seen: Vec<_> = state
            .heads
            .iter()
            .map(|head| (head.role, head.score))
            .collect();
        assert_eq!(
            seen,
            [
                (Role::Mixed, None),
                (Role::Of(Measure::PreviousToken), Some(0.98)),
                (Role::Of(Measure::Induction), Some(0.9)),
                (Role::Mixed, None)
            ]
        );
        assert_eq!((state.step, state.losses), (51, vec![(50.0, 2.0)]));
    }
}
