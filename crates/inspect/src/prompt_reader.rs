//! A run's model that reads prompts, as it is and with changes: the one answer behind
//! `inspect RUN predict` and the live explorer.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
};

use burn::tensor::{Device, Int, Tensor, activation::softmax};
use headlight_heads::{Ablation, HeadName};
use headlight_lens::zeroed;
use headlight_report::{ActivationPatch, Question};
use headlight_residual::{
    Activations, AttentionSite, Decoder, Edit, Edits, Ending, GenerateError, Generation,
    KeptTensor, Part, Probed, Site, token_tensor,
};
use headlight_run::{Error, ErrorKind};
use headlight_tasks::{self as tasks, Vocabulary};
use headlight_watch::no_room;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::{ModelParts, Subject};

/// Likeliest tokens shown where nobody asks for more.
pub(super) const SHOWN_TOKENS: usize = 5;
/// Each other prompt costs a pass.
const MOST_PATCHES: usize = 8;

/// A trained model and what it takes to read a prompt with it.
pub(super) struct PromptReader {
    pub(super) model: Decoder,
    /// The names of the tokens.
    pub(super) vocabulary: Vec<String>,
    pub(super) text: Vocabulary,
    pub(super) most_tokens: usize,
    device: Device,
    /// By layer, measured when a head of the layer is switched off first. Whoever asks meanwhile
    /// waits.
    references: Mutex<BTreeMap<usize, Reference>>,
}

/// Layers whose blends are measured in one pass: bounds memory.
const LAYERS_AT_ONCE: usize = 8;

/// What the heads of a layer blend on the task's validation sequences: the same sequences as in
/// `ablate`.
struct Reference {
    /// The mean over sequences and positions, `[1, 1, head, d_head]`.
    mean: KeptTensor,
    /// In the first sequence, `[1, pos, head, d_head]`.
    first: KeptTensor,
}

impl Reference {
    /// Adds those of `layers` that are not there yet.
    fn measure(
        references: &mut BTreeMap<usize, Self>,
        layers: &BTreeSet<usize>,
        subject: &Subject,
        model: &Decoder,
    ) -> Result<(), Error> {
        let missing = layers
            .iter()
            .filter(|layer| !references.contains_key(layer));
        let missing: Vec<usize> = missing.copied().collect();
        if missing.is_empty() {
            return Ok(());
        }
        let behaviour = subject.task_behaviour()?;
        for layers in missing.chunks(LAYERS_AT_ONCE) {
            let sites: Vec<Site> = layers.iter().map(|&layer| blends(layer)).collect();
            let mut seen = model
                .activations(behaviour.inputs(), &sites)
                .map_err(no_room)?;
            for &layer in layers {
                let blends = seen.take(blends(layer)).into_tensor::<4>();
                let reference = Self {
                    mean: KeptTensor::from(blends.clone().mean_dim(0).mean_dim(1)),
                    first: KeptTensor::from(blends.narrow(0, 0, 1)),
                };
                references.insert(layer, reference);
            }
        }
        Ok(())
    }

    /// What stands in place of the heads of the layer in a prompt of `length` tokens.
    fn edit(&self, by: Ablation, length: usize) -> Result<Edit, Error> {
        let edit = match by {
            Ablation::Zero => Edit::Zero,
            Ablation::Mean => Edit::Replace(self.mean.clone()),
            Ablation::Resample => {
                let first = self.first.tensor::<4>();
                let [_, positions, ..] = first.dims();
                if positions < length {
                    let message = format_args!(
                        "resample takes a sequence of the task, which has {positions} tokens; the prompt has {length}"
                    );
                    return Err(Error::new("by", message));
                }
                Edit::Replace(KeptTensor::from(first.narrow(1, 0, length)))
            }
        };
        Ok(edit)
    }
}

/// Where the heads of a layer put their blends of values.
fn blends(layer: usize) -> Site {
    Site::Attention(layer, AttentionSite::Z)
}

/// What comes next after each token of a prompt.
pub(super) struct Reading {
    /// The prompt.
    pub(super) tokens: Vec<String>,
    /// The same by id.
    pub(super) ids: Vec<u32>,
    /// `[position][token]`: probabilities, with the question's changes.
    pub(super) changed: Vec<Vec<f32>>,
    /// The same of the model as it is.
    pub(super) untouched: Vec<Vec<f32>>,
}

impl PromptReader {
    /// The model of a run, for prompts of at most `most_tokens`.
    pub(super) fn open(inspection: &Subject, most_tokens: usize) -> Result<Self, Error> {
        let ModelParts { model, vocabulary } = inspection.model()?;
        Ok(Self {
            model,
            vocabulary,
            text: inspection.vocabulary()?,
            most_tokens,
            device: inspection.device.clone(),
            references: Mutex::new(BTreeMap::new()),
        })
    }

    /// Reads the question's prompt, and keeps the activations at `sites` with its changes. An error
    /// names the field that is wrong.
    pub(super) fn read(
        &self,
        subject: &Subject,
        question: &Question,
        sites: &[Site],
    ) -> Result<(Reading, Activations), Error> {
        let tokens = self.tokens("prompt", &question.prompt)?;
        let mut edits = self.edits(subject, question, &tokens)?;
        let (logits, seen) = self
            .model
            .logits_and_activations(self.batch(&tokens), sites, &mut edits)
            .map_err(no_room)?;
        let changed = self.probabilities(logits);
        let untouched = if question.off.is_empty() && question.patches.is_empty() {
            changed.clone()
        } else {
            self.probabilities(self.model.forward(self.batch(&tokens)))
        };
        let reading = Reading {
            tokens: self.names(&tokens),
            ids: tokens,
            changed,
            untouched,
        };
        Ok((reading, seen))
    }

    /// The activations at `sites` in one pass with the question's changes.
    pub(super) fn activations(
        &self,
        subject: &Subject,
        question: &Question,
        tokens: &[u32],
        sites: &[Site],
    ) -> Result<Activations, Error> {
        let mut edits = self.edits(subject, question, tokens)?;
        self.model
            .activations_probed(self.batch(tokens), sites, &mut edits)
            .map_err(no_room)
    }

    /// What the model writes on after the question's prompt while the question's heads are off, and
    /// why it ended. The draws are those of [`Decoder::generate`].
    pub(super) fn write(
        &self,
        subject: &Subject,
        question: &Question,
        generation: Generation,
    ) -> Result<(Vec<u32>, String), Error> {
        if !question.patches.is_empty() {
            let message = "a text that grows has no positions in another prompt";
            return Err(Error::new("patches", message));
        }
        let mut tokens = self.tokens("prompt", &question.prompt)?;
        let prompt = tokens.len();
        let wrong = |error: GenerateError| Error::new("temperature", error);
        if question.off.is_empty() {
            let mut text = self.model.generate(&tokens, generation).map_err(wrong)?;
            let written = text.by_ref().collect::<Result<_, _>>().map_err(wrong)?;
            let ending = text.ending().map(|ending| ending.to_string());
            return Ok((written, ending.unwrap_or_default()));
        }
        for &head in &question.off {
            self.check_head("off", head)?;
        }
        let most = self.model.most_positions().unwrap_or(usize::MAX);
        let mut rng = ChaCha8Rng::seed_from_u64(generation.seed);
        let mut ending = Ending::Length;
        while tokens.len() < prompt + generation.tokens {
            if tokens.len() >= most {
                ending = Ending::ContextFull(most);
                break;
            }
            let mut edits = self.off(subject, question, tokens.len())?;
            let last = tokens.len() - 1;
            let logits = self.model.logits_at(self.batch(&tokens), last, &mut edits);
            let logits: Vec<f32> = logits.into_data().iter::<f32>().collect();
            let next = generation.sampling.choose(&logits, &mut rng);
            tokens.push(next.map_err(|error| wrong(error.into()))? as u32);
        }
        Ok((tokens.split_off(prompt), ending.to_string()))
    }

    pub(super) fn tokens(&self, field: &str, prompt: &str) -> Result<Vec<u32>, Error> {
        tasks::encode_prompt(&self.text, prompt, self.most_tokens).map_err(|error| error.at(field))
    }

    pub(super) fn names(&self, tokens: &[u32]) -> Vec<String> {
        tokens
            .iter()
            .map(|&token| self.vocabulary[token as usize].clone())
            .collect()
    }

    pub(super) fn check_head(&self, field: &str, head: HeadName) -> Result<(), Error> {
        let known = head.layer < self.model.blocks.len() && head.head < self.model.n_heads();
        let unknown = || Error::new(field, "there is no such head").value(head);
        known.then_some(()).ok_or_else(unknown)
    }

    fn batch(&self, tokens: &[u32]) -> Tensor<2, Int> {
        token_tensor(&[tokens], &self.device)
    }

    /// In place of the blends of heads that are off stands what the question says. Patched places
    /// hold what another prompt has there.
    fn edits(
        &self,
        subject: &Subject,
        question: &Question,
        tokens: &[u32],
    ) -> Result<Edits, Error> {
        for &head in &question.off {
            self.check_head("off", head)?;
        }
        if question.patches.len() > MOST_PATCHES {
            return Err(
                Error::new("patches", format_args!("are more than {MOST_PATCHES}"))
                    .value(question.patches.len()),
            );
        }
        let mut edits = self.off(subject, question, tokens.len())?;
        for patch in &question.patches {
            let (site, part, edit) = self.patch(patch, tokens.len())?;
            edits = edits.part(site, part, edit);
        }
        Ok(edits)
    }

    /// The changes of the heads that are off.
    fn off(&self, subject: &Subject, question: &Question, length: usize) -> Result<Edits, Error> {
        if question.off.is_empty() || question.by == Ablation::Zero {
            return Ok(zeroed(&question.off));
        }
        let layers = question.off.iter().map(|head| head.layer).collect();
        let mut references = self
            .references
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Reference::measure(&mut references, &layers, subject, &self.model)?;
        let mut edits = Edits::default();
        for head in &question.off {
            let edit = references[&head.layer].edit(question.by, length)?;
            edits = edits.part(blends(head.layer), Part::heads(&[head.head]), edit);
        }
        Ok(edits)
    }

    fn patch(&self, patch: &ActivationPatch, length: usize) -> Result<(Site, Part, Edit), Error> {
        let site: Site = patch
            .site
            .parse()
            .map_err(|error| Error::because(ErrorKind::Argument, "site", error))?;
        let tokens = self.tokens("from", &patch.from)?;
        if tokens.len() != length {
            let message = format_args!(
                "has {} tokens, the prompt has {length}; positions must match",
                tokens.len()
            );
            return Err(Error::new("from", message));
        }
        for &position in patch.positions.iter().flatten() {
            check_position("positions", position, length)?;
        }
        if !self.model.has(site) {
            return Err(Error::new("site", "is not in this model").value(site));
        }
        let mut other = self
            .model
            .activations(self.batch(&tokens), &[site])
            .map_err(no_room)?;
        let part = Part {
            heads: None,
            positions: patch.positions.clone(),
        };
        Ok((site, part, Edit::Replace(other.take(site))))
    }

    /// Softmax over the vocabulary at each position.
    fn probabilities(&self, logits: Tensor<3>) -> Vec<Vec<f32>> {
        let probabilities: Vec<f32> = softmax(logits, 2).into_data().iter::<f32>().collect();
        probabilities
            .chunks(self.vocabulary.len())
            .map(<[f32]>::to_vec)
            .collect()
    }
}

/// The `count` likeliest tokens, the likeliest first; of equally likely ones the first.
pub(super) fn likeliest(probabilities: &[f32], count: usize) -> Vec<usize> {
    let by_probability = |a: &usize, b: &usize| {
        let likelier = probabilities[*b].total_cmp(&probabilities[*a]);
        likelier.then(a.cmp(b))
    };
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    if count < order.len() {
        // A large vocabulary is not sorted for a few of its tokens.
        order.select_nth_unstable_by(count, by_probability);
        order.truncate(count);
    }
    order.sort_unstable_by(by_probability);
    order
}

/// That a prompt of `length` tokens has a token at `position`.
pub(super) fn check_position(place: &str, position: usize, length: usize) -> Result<(), Error> {
    let outside = || {
        let message = format_args!("is not inside the prompt of {length} tokens, counted from 0");
        Error::new(place, message).value(position)
    };
    (position < length).then_some(()).ok_or_else(outside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_likeliest_come_first_and_equal_ones_in_their_order() {
        let probabilities = [0.1, 0.3, 0.1, 0.4, 0.1];
        assert_eq!(likeliest(&probabilities, 3), [3, 1, 0]);
        assert_eq!(likeliest(&probabilities, 9), [3, 1, 0, 2, 4]);
        assert_eq!(likeliest(&probabilities, 0), [0; 0]);
    }
}
