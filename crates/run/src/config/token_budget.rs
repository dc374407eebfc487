//! `train.tokens`: a number of steps from a number of tokens.

use toml::{Table, Value};

use crate::Config;

/// Where a budget of tokens is given, the number of steps need not be.
pub fn allow_without_steps(train: &mut Table) {
    if train.contains_key("tokens") {
        train.entry("steps").or_insert(Value::Integer(i64::MAX));
    }
}

impl Config {
    /// Puts the smaller of the two bounds into `train.steps`; done again, it changes nothing.
    pub(crate) fn resolve_steps(&mut self) {
        let tokens_per_step = self
            .train
            .batch_size
            .saturating_mul(self.model.n_ctx)
            .max(1);
        let steps = self
            .train
            .tokens
            .map_or(usize::MAX, |tokens| tokens.div_ceil(tokens_per_step));
        self.train.steps = self.train.steps.min(steps);
    }
}
