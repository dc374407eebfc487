//! Pairs of prompts that differ in one thing, as people write indirect objects (Wang et al. 2023,
//! section 2) and greater-than (Hanna et al. 2023, section 2).

use burn::tensor::{Device, Tensor, TensorData};
use headlight_residual::token_tensor;

use crate::Behaviour;

/// Two prompts of one length, and the two tokens between which the model has to choose after the
/// last position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptPair {
    /// The prompt after which `answer` is right.
    pub clean: Vec<u32>,
    /// The same with something else in it, token by token below the clean one.
    pub corrupted: Vec<u32>,
    /// The token that is right after the clean prompt.
    pub answer: u32,
    /// The token that would be wrong there.
    pub wrong: u32,
}

impl PromptPair {
    /// The position whose next token is asked for: the last one.
    #[must_use]
    pub fn position(&self) -> usize {
        self.clean.len() - 1
    }
}

/// Some pairs of prompts, at least one. The prompts of different pairs may differ in length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptPairs {
    pairs: Vec<PromptPair>,
}

impl PromptPairs {
    /// # Panics
    /// If there is no pair, or the prompts of a pair are empty or differ in length.
    #[must_use]
    pub fn new(pairs: Vec<PromptPair>) -> Self {
        assert!(!pairs.is_empty(), "no pair of prompts");
        for pair in &pairs {
            let lengths = [pair.clean.len(), pair.corrupted.len()];
            assert!(
                lengths[0] > 0 && lengths[0] == lengths[1],
                "a pair of prompts of {} and {} tokens",
                lengths[0],
                lengths[1]
            );
        }
        Self { pairs }
    }

    /// Every pair.
    #[must_use]
    pub fn pairs(&self) -> &[PromptPair] {
        &self.pairs
    }

    /// The behaviour "says `answer` rather than `wrong` after the clean prompt". Its accuracy is the
    /// share of pairs with logit\[answer\] > logit\[wrong\], and it has a
    /// [logit difference](crate::Performance::logit_difference). A head that is resampled does what it
    /// does in the corrupted prompt.
    ///
    /// Rows are padded behind their last token to the length of the longest. So the model must not
    /// look ahead, unless all prompts are equally long. Padding counts for no mean.
    ///
    /// ```
    /// use burn::tensor::Device;
    /// use headlight_lens::{PromptPair, PromptPairs};
    ///
    /// let pair = |clean: &[u32], corrupted: &[u32]| PromptPair {
    ///     clean: clean.to_vec(),
    ///     corrupted: corrupted.to_vec(),
    ///     answer: 7,
    ///     wrong: 8,
    /// };
    /// let pairs = PromptPairs::new(vec![pair(&[7, 8, 9], &[8, 7, 9]), pair(&[7, 9], &[8, 9])]);
    /// let behaviour = pairs.behaviour(&Device::flex());
    /// assert_eq!(behaviour.inputs().dims(), [2, 3]);
    /// let scored = behaviour.scored().into_data().to_vec::<f32>().unwrap();
    /// assert_eq!(scored, [0.0, 0.0, 1.0, 0.0, 1.0, 0.0]);
    /// ```
    #[must_use]
    pub fn behaviour(&self, device: &Device) -> Behaviour {
        let longest = self.pairs.iter().map(|pair| pair.clean.len()).max();
        let longest = longest.unwrap_or(0);
        let (mut clean, mut corrupted, mut answers, mut wrongs) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut scored, mut is_token) = (Vec::new(), Vec::new());
        for pair in &self.pairs {
            clean.push(padded(&pair.clean, longest));
            corrupted.push(padded(&pair.corrupted, longest));
            answers.push(vec![pair.answer; longest]);
            wrongs.push(vec![pair.wrong; longest]);
            let at = |asked: &dyn Fn(usize) -> bool| (0..longest).map(asked).collect::<Vec<bool>>();
            scored.push(at(&|position| position == pair.position()));
            is_token.push(at(&|position| position <= pair.position()));
        }
        let behaviour = Behaviour::new(token_tensor(&clean, device), answers, scored)
            .against(&wrongs)
            .only_where_scored()
            .resampled_from(token_tensor(&corrupted, device));
        if is_token.iter().flatten().all(|&is_token| is_token) {
            return behaviour;
        }
        let counts: Vec<f32> = is_token
            .iter()
            .flatten()
            .map(|&is_token| f32::from(u8::from(is_token)))
            .collect();
        let shape = [self.pairs.len(), longest];
        behaviour.padded(Tensor::from_data(TensorData::new(counts, shape), device))
    }
}

/// The tokens, and the last one again up to `length`.
fn padded(tokens: &[u32], length: usize) -> Vec<u32> {
    let mut padded = tokens.to_vec();
    padded.resize(length, tokens[tokens.len() - 1]);
    padded
}
