//! A run's model that reads prompts, as it is and with changes: the one answer behind
//! `inspect RUN predict` and the live explorer.

use burn::tensor::{Device, Int, Tensor};
use headlight_heads::HeadName;
use headlight_lens::{Ablation, without};
use headlight_report::{ActivationPatch, Question};
use headlight_residual::{Capture, Decoder, Edit, Edits, Part, Probe, Site};
use headlight_run::{ErrorKind, InputError, TaskConfig};
use headlight_tasks as tasks;
use headlight_watch::ids;

use super::{Inspection, ModelParts};

/// Likeliest tokens shown where nobody asks for more.
pub(super) const SHOWN_TOKENS: usize = 5;
/// Each other prompt costs a pass.
const MOST_PATCHES: usize = 8;

/// A trained model and what it takes to read a prompt with it.
pub(super) struct PromptReader {
    pub(super) model: Decoder,
    pub(super) vocabulary: Vec<String>,
    pub(super) most_tokens: usize,
    task: TaskConfig,
    device: Device,
}

/// What comes next after each token of a prompt.
pub(super) struct Reading {
    /// The prompt.
    pub(super) tokens: Vec<String>,
    /// `[position][token]`: probabilities, with the question's changes.
    pub(super) changed: Vec<Vec<f32>>,
    /// The same of the model as it is.
    pub(super) untouched: Vec<Vec<f32>>,
}

impl PromptReader {
    /// The model of a run, for prompts of at most `most_tokens`.
    pub(super) fn open(inspection: &Inspection, most_tokens: usize) -> Result<Self, InputError> {
        let ModelParts { model, vocabulary } = inspection.model()?;
        let (task, device) = (inspection.config.task.clone(), inspection.device.clone());
        Ok(Self {
            model,
            vocabulary,
            most_tokens,
            task,
            device,
        })
    }

    /// Reads the question's prompt; `seen` sees the pass with its changes. An error names the field
    /// that is wrong.
    pub(super) fn read(
        &self,
        question: &Question,
        seen: &mut impl Probe,
    ) -> Result<Reading, InputError> {
        let tokens = self.tokens("prompt", &question.prompt)?;
        let changed = self.probabilities(self.forward(question, &tokens, seen)?);
        let is_changed = !(question.off.is_empty() && question.patches.is_empty());
        let untouched = || self.probabilities(self.model.forward(self.batch(&tokens)));
        let untouched = if is_changed {
            untouched()
        } else {
            changed.clone()
        };
        Ok(Reading {
            tokens: self.names(&tokens),
            changed,
            untouched,
        })
    }

    /// The logits `[1, tokens, vocabulary]` of one pass with the question's changes, past `seen`.
    pub(super) fn forward(
        &self,
        question: &Question,
        tokens: &[u32],
        seen: &mut impl Probe,
    ) -> Result<Tensor<3>, InputError> {
        let edits = self.edits(question, tokens)?;
        Ok(self
            .model
            .forward_probed(self.batch(tokens), &mut (edits, seen)))
    }

    pub(super) fn tokens(&self, field: &str, prompt: &str) -> Result<Vec<u32>, InputError> {
        tasks::encode_prompt(&self.task, prompt, &self.vocabulary, self.most_tokens)
            .map_err(|error| error.at(field))
    }

    pub(super) fn names(&self, tokens: &[u32]) -> Vec<String> {
        tokens
            .iter()
            .map(|&token| self.vocabulary[token as usize].clone())
            .collect()
    }

    pub(super) fn check_head(&self, field: &str, head: HeadName) -> Result<(), InputError> {
        let known = head.layer < self.model.blocks.len() && head.head < self.model.n_heads();
        let unknown = || InputError::new(field, "there is no such head").value(head);
        known.then_some(()).ok_or_else(unknown)
    }

    fn batch(&self, tokens: &[u32]) -> Tensor<2, Int> {
        ids(&[tokens.to_vec()], &self.device)
    }

    /// Switched-off heads blend nothing: 0 stands in place of their blend of values. Patched places
    /// hold what another prompt has there.
    fn edits(&self, question: &Question, tokens: &[u32]) -> Result<Edits, InputError> {
        for &head in &question.off {
            self.check_head("off", head)?;
        }
        if question.patches.len() > MOST_PATCHES {
            return Err(
                InputError::new("patches", format_args!("are more than {MOST_PATCHES}"))
                    .value(question.patches.len()),
            );
        }
        let mut edits = without(
            &self.model,
            self.batch(tokens),
            &question.off,
            Ablation::Zero,
        );
        for patch in &question.patches {
            let (site, part, edit) = self.patch(patch, tokens.len())?;
            edits = edits.part(site, part, edit);
        }
        Ok(edits)
    }

    fn patch(
        &self,
        patch: &ActivationPatch,
        length: usize,
    ) -> Result<(Site, Part, Edit), InputError> {
        let site: Site = patch
            .site
            .parse()
            .map_err(|error| InputError::because(ErrorKind::Argument, "site", error))?;
        let tokens = self.tokens("from", &patch.from)?;
        if tokens.len() != length {
            let message = format_args!(
                "has {} tokens, the prompt has {length}; positions must match",
                tokens.len()
            );
            return Err(InputError::new("from", message));
        }
        for &position in patch.positions.iter().flatten() {
            check_position("positions", position, length)?;
        }
        let mut seen = Capture::new(&[site], usize::MAX);
        let _ = self.model.forward_probed(self.batch(&tokens), &mut seen);
        let other = seen
            .tensor_at(site)
            .ok_or_else(|| InputError::new("site", "is not in this model").value(site))?;
        let part = Part {
            heads: None,
            positions: patch.positions.clone(),
        };
        Ok((site, part, Edit::Replace(other.clone())))
    }

    /// Softmax over the vocabulary at each position.
    fn probabilities(&self, logits: Tensor<3>) -> Vec<Vec<f32>> {
        let logits: Vec<f32> = logits.into_data().iter().collect();
        let of_position = |logits: &[f32]| {
            let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let powers: Vec<f32> = logits.iter().map(|logit| (logit - largest).exp()).collect();
            let sum: f32 = powers.iter().sum();
            powers.into_iter().map(|power| power / sum).collect()
        };
        logits
            .chunks(self.vocabulary.len())
            .map(of_position)
            .collect()
    }
}

/// All tokens, the likeliest first.
pub(super) fn likeliest(probabilities: &[f32]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|&a, &b| probabilities[b].total_cmp(&probabilities[a]));
    order
}

/// That a prompt of `length` tokens has a token at `position`.
pub(super) fn check_position(
    place: &str,
    position: usize,
    length: usize,
) -> Result<(), InputError> {
    let outside = || {
        let message = format_args!("is not inside the prompt of {length} tokens, counted from 0");
        InputError::new(place, message).value(position)
    };
    (position < length).then_some(()).ok_or_else(outside)
}
