//! `inspect RUN serve`: a trained model that answers while someone plays with it.

use std::{net::SocketAddr, sync::Arc};

use headlight_lens::all_heads;
use headlight_report::{ActivationPatch, Answer, Bytes, Explorer, ExplorerFacts, Question, WalkData, serve};
use headlight_residual::{AttentionSite, Capture, Decoder, Edit, Edits, Part, Site};
use headlight_run::{HeadName, InputError};

use super::{Inspection, ModelParts, report::walk::walk_of};
use crate::{
    tasks::{self, RowKey, Task, Use},
    watch::ids,
};

/// Longer prompts would not be answered at once, nor read.
const MOST_TOKENS: usize = 512;
/// Each other prompt costs a pass.
const MOST_PATCHES: usize = 8;
/// Likeliest tokens shown.
const SHOWN_TOKENS: usize = 5;
/// Token names shown for help.
const SOME_TOKENS: usize = 64;

struct RunExplorer {
    inspection: Inspection,
    model: Decoder,
    vocabulary: Vec<String>,
    task: Box<dyn Task>,
}

impl Inspection {
    /// Serves the live explorer until the program is stopped; `ready` hears the address.
    ///
    /// # Errors
    /// If the run has no weights, or the port is taken.
    pub fn serve(self, port: u16, ready: impl FnOnce(SocketAddr)) -> Result<(), InputError> {
        let ModelParts { model, vocabulary } = self.model()?;
        let task = tasks::build(&self.config.task, self.config.model.n_ctx, self.config.seed)?;
        serve(Arc::new(RunExplorer { inspection: self, model, vocabulary, task }), port, ready)
    }
}

impl Explorer for RunExplorer {
    fn facts(&self) -> ExplorerFacts {
        let Inspection { run, config, .. } = &self.inspection;
        let heads = all_heads(&self.model).into_iter();
        ExplorerFacts {
            name: run.path().file_name().unwrap_or(run.path().as_os_str()).display().to_string(),
            task: config.task.name().to_owned(),
            heads: heads
                .zip(self.inspection.roles(&self.model))
                .map(|(head, role)| (head, role.name().to_owned()))
                .collect(),
            most_tokens: self.most_tokens(),
            some_tokens: self.vocabulary.iter().take(SOME_TOKENS).cloned().collect(),
            sites: self.model.sites().iter().map(ToString::to_string).collect(),
            window: config.model.window,
            prompt: self.sample(0),
        }
    }

    fn sample(&self, row: usize) -> String {
        let key = RowKey { seed: self.inspection.config.seed, usage: Use::Validation, step: 0, row };
        let sequence = self.task.sequence(key);
        let tokens = &sequence.tokens[..sequence.scored.len().min(self.most_tokens())];
        let text =
            tokens.iter().map(|&token| tasks::spelled(&self.inspection.config.task, &self.vocabulary[token as usize]));
        text.collect::<String>().trim_end().to_owned()
    }

    fn explore(&self, question: &Question) -> Result<Answer, InputError> {
        let tokens = self.tokens("prompt", &question.prompt)?;
        let mut patterns = Capture::new(&self.model.pattern_sites(), usize::MAX);
        let edits = self.edits(question, tokens.len())?;
        let predictions = self.predictions(&tokens, &mut (edits, &mut patterns));
        let is_touched = !(question.off.is_empty() && question.patches.is_empty());
        let untouched = if is_touched { self.predictions(&tokens, &mut Edits::default()) } else { predictions.clone() };
        let mut heads = Vec::new();
        for head in all_heads(&self.model) {
            let Some(pattern) = patterns.get::<4>(Site::Attention(head.layer, AttentionSite::Pattern)) else {
                continue;
            };
            let weights = pattern.narrow(1, head.head, 1).into_data();
            let bytes: Vec<u8> = weights.iter::<f32>().map(|weight| (weight * 255.0).round() as u8).collect();
            heads.push((head, Bytes(bytes)));
        }
        Ok(Answer { tokens: self.names(&tokens), predictions, untouched, patterns: heads })
    }

    fn walk(&self, question: &Question, head: HeadName) -> Result<WalkData, InputError> {
        self.check_head("head", head)?;
        let tokens = self.tokens("prompt", &question.prompt)?;
        let mut seen = Capture::new(&self.model.sites(), usize::MAX);
        let edits = self.edits(question, tokens.len())?;
        let _ = self
            .model
            .forward_probed(ids(std::slice::from_ref(&tokens), &self.inspection.device), &mut (edits, &mut seen));
        let heads = |layer| if layer == head.layer { head.head..head.head + 1 } else { 0..0 };
        Ok(walk_of(&self.model, self.names(&tokens), seen, heads))
    }
}

impl RunExplorer {
    fn most_tokens(&self) -> usize {
        self.inspection.config.model.n_ctx.min(MOST_TOKENS)
    }

    fn tokens(&self, field: &str, prompt: &str) -> Result<Vec<u32>, InputError> {
        let task = &self.inspection.config.task;
        tasks::encode_prompt(task, prompt, &self.vocabulary, self.most_tokens()).map_err(|error| error.at(field))
    }

    fn names(&self, tokens: &[u32]) -> Vec<String> {
        tokens.iter().map(|&token| self.vocabulary[token as usize].clone()).collect()
    }

    fn check_head(&self, field: &str, head: HeadName) -> Result<(), InputError> {
        let known = head.layer < self.model.blocks.len() && head.head < self.model.n_heads();
        let unknown = || InputError::new(field, "there is no such head").value(head);
        known.then_some(()).ok_or_else(unknown)
    }

    /// Switched-off heads blend nothing; patched places hold what another prompt has there.
    fn edits(&self, question: &Question, length: usize) -> Result<Edits, InputError> {
        let mut edits = Edits::default();
        for &head in &question.off {
            self.check_head("off", head)?;
            edits = edits.part(Site::Attention(head.layer, AttentionSite::Z), Part::heads(&[head.head]), Edit::Zero);
        }
        if question.patches.len() > MOST_PATCHES {
            return Err(
                InputError::new("patches", format_args!("are more than {MOST_PATCHES}")).value(question.patches.len())
            );
        }
        for patch in &question.patches {
            let (site, part, edit) = self.patch(patch, length)?;
            edits = edits.part(site, part, edit);
        }
        Ok(edits)
    }

    fn patch(&self, patch: &ActivationPatch, length: usize) -> Result<(Site, Part, Edit), InputError> {
        let site: Site = patch.site.parse().map_err(|error| InputError::new("site", error))?;
        let tokens = self.tokens("from", &patch.from)?;
        if tokens.len() != length {
            let message = format_args!("has {} tokens, the prompt has {length}; positions must match", tokens.len());
            return Err(InputError::new("from", message));
        }
        if let Some(position) = patch.positions.iter().flatten().find(|&&position| position >= length) {
            let message = format_args!("is not inside the prompt of {length} tokens, counted from 0");
            return Err(InputError::new("positions", message).value(position));
        }
        let mut seen = Capture::new(&[site], usize::MAX);
        let _ = self.model.forward_probed(ids(&[tokens], &self.inspection.device), &mut seen);
        let other = seen.tensor_at(site).ok_or_else(|| InputError::new("site", "is not in this model").value(site))?;
        let part = Part { heads: None, positions: patch.positions.clone() };
        Ok((site, part, Edit::Replace(other.clone())))
    }

    /// For each position the likeliest next tokens.
    fn predictions(&self, tokens: &[u32], probe: &mut impl headlight_residual::Probe) -> Vec<Vec<(String, f32)>> {
        let logits = self.model.forward_probed(ids(&[tokens.to_vec()], &self.inspection.device), probe);
        let logits: Vec<f32> = logits.into_data().iter().collect();
        logits.chunks(self.vocabulary.len()).map(|logits| self.likeliest(logits)).collect()
    }

    fn likeliest(&self, logits: &[f32]) -> Vec<(String, f32)> {
        let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f32 = logits.iter().map(|logit| (logit - largest).exp()).sum();
        let mut order: Vec<usize> = (0..logits.len()).collect();
        order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
        let shown = order.into_iter().take(SHOWN_TOKENS);
        shown.map(|token| (self.vocabulary[token].clone(), (logits[token] - largest).exp() / sum)).collect()
    }
}
