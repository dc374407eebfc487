//! The tokens that a pass is scored on.

use burn::tensor::{IndexingUpdateOp, Int, Tensor, TensorData};
use headlight_ops::{NextTokenScores, score_against, score_next_tokens};

/// The token that should come next at each output of a batch; which token must not be likelier, if
/// one is named; and at which outputs anybody asks.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use headlight_residual::Targets;
///
/// let device = Device::flex();
/// let logits = Tensor::<3>::from_floats([[[0.0, 0.0, 9.0], [2.0, 1.0, 5.0]]], &device);
/// let targets = Targets::from(Tensor::from_ints([[0, 0]], &device));
/// let right = |targets: &Targets| -> Vec<f32> {
///     targets.scores(logits.clone()).right.into_data().to_vec().unwrap()
/// };
/// // Token 2 is the likeliest, but nobody compares with it.
/// assert_eq!(right(&targets), [0.0, 0.0]);
/// let against = targets.against(Tensor::from_ints([[1, 1]], &device));
/// assert_eq!(right(&against), [0.0, 1.0]);
/// let difference = against.scores(logits).difference.unwrap();
/// assert!((difference.into_data().to_vec::<f32>().unwrap()[1] - 1.0).abs() < 1e-6);
/// ```
#[derive(Debug, Clone)]
pub struct Targets {
    /// `[batch, outputs]`
    tokens: Tensor<2, Int>,
    /// `[batch, outputs]`
    wrong: Option<Tensor<2, Int>>,
    /// `row·outputs + output` of each output that is asked for; `None`: of all.
    places: Option<Tensor<1, Int>>,
    /// The first output that is asked for in some row.
    first: usize,
}

impl From<Tensor<2, Int>> for Targets {
    fn from(tokens: Tensor<2, Int>) -> Self {
        Self {
            tokens,
            wrong: None,
            places: None,
            first: 0,
        }
    }
}

impl Targets {
    /// The same, each beside a token that must not be likelier. The target is right if its logit is
    /// larger, whatever the other logits are.
    ///
    /// # Shapes
    /// - wrong: `[batch, outputs]`
    ///
    /// # Panics
    /// If there are not as many.
    #[must_use]
    pub fn against(self, wrong: Tensor<2, Int>) -> Self {
        assert_eq!(self.dims(), wrong.dims(), "targets and wrong tokens");
        Self {
            wrong: Some(wrong),
            ..self
        }
    }

    /// The same, asked for only where `asked`: elsewhere no logits need be computed, and every score
    /// is 0.
    ///
    /// # Panics
    /// If the rows are not those of the targets.
    #[must_use]
    pub fn only(self, asked: &[Vec<bool>]) -> Self {
        let [batch, outputs] = self.dims();
        let fits = asked.len() == batch && asked.iter().all(|row| row.len() == outputs);
        assert!(fits, "{} rows for targets {:?}", asked.len(), self.dims());
        let flat = asked.iter().flatten().enumerate();
        let places: Vec<i32> = flat
            .filter(|(_, asked)| **asked)
            .map(|(place, _)| place as i32)
            .collect();
        if places.len() == batch * outputs {
            return self;
        }
        let count = places.len();
        let device = self.tokens.device();
        let places = Tensor::from_data(TensorData::new(places, [count]), &device);
        let firsts = asked.iter().map(|row| row.iter().position(|&asked| asked));
        Self {
            places: Some(places),
            first: firsts.flatten().min().unwrap_or(0),
            ..self
        }
    }

    /// The first output that is asked for in some row; 0 if none is.
    pub(crate) fn first_asked(&self) -> usize {
        self.first
    }

    /// `[batch, outputs]`
    #[must_use]
    pub fn tokens(&self) -> Tensor<2, Int> {
        self.tokens.clone()
    }

    /// The tokens that must not be likelier, `[batch, outputs]`, if some are named.
    #[must_use]
    pub fn wrong(&self) -> Option<Tensor<2, Int>> {
        self.wrong.clone()
    }

    /// Rows and outputs.
    #[must_use]
    pub fn dims(&self) -> [usize; 2] {
        self.tokens.dims()
    }

    /// The targets of `times` batches, one after the other.
    #[must_use]
    pub fn repeated(&self, times: usize) -> Self {
        let [batch, outputs] = self.dims();
        let places = self.places.as_ref().map(|places| {
            let of_batch = |at| places.clone().add_scalar((at * batch * outputs) as i64);
            Tensor::cat((0..times).map(of_batch).collect(), 0)
        });
        Self {
            tokens: self.tokens.clone().repeat_dim(0, times),
            wrong: self.wrong.clone().map(|wrong| wrong.repeat_dim(0, times)),
            places,
            first: self.first,
        }
    }

    /// The scores of these logits: of all targets, wherever somebody asks.
    ///
    /// # Shapes
    /// - logits: `[batch, outputs, classes]`
    ///
    /// # Panics
    /// If there are not as many logits as targets.
    #[must_use]
    pub fn scores(&self, logits: Tensor<3>) -> NextTokenScores {
        let [batch, outputs, _] = logits.dims();
        assert_eq!(
            [batch, outputs],
            self.dims(),
            "logits (left) for targets (right), [batch, outputs]"
        );
        match &self.wrong {
            Some(wrong) => score_against(logits, self.tokens.clone(), wrong.clone()),
            None => score_next_tokens(logits, self.tokens.clone()),
        }
    }

    /// The scores of a stream, `[batch, outputs, d_model]`, of which `score` computes the logits.
    /// Where nobody asks, they are 0.
    pub(crate) fn scores_of(
        &self,
        stream: &Tensor<3>,
        score: impl Fn(&Tensor<3>, &Self) -> NextTokenScores,
    ) -> NextTokenScores {
        let Some(places) = &self.places else {
            return score(stream, self);
        };
        let [batch, outputs, d_model] = stream.dims();
        assert_eq!(
            [batch, outputs],
            self.dims(),
            "streams (left) for targets (right), [batch, outputs]"
        );
        let [count] = places.dims();
        let zeros = Tensor::<2>::zeros([1, batch * outputs], &stream.device());
        if count == 0 {
            let zeros = zeros.reshape([batch, outputs]);
            return NextTokenScores {
                losses: zeros.clone(),
                right: zeros.clone(),
                difference: self.wrong.as_ref().map(|_| zeros),
            };
        }
        let asked = |tokens: Tensor<2, Int>| {
            let flat = tokens.reshape([1, batch * outputs]);
            flat.select(1, places.clone()) // [1, count]
        };
        let targets = Self {
            tokens: asked(self.tokens.clone()),
            wrong: self.wrong.clone().map(asked),
            places: None,
            first: 0,
        };
        let stream = stream.clone().reshape([1, batch * outputs, d_model]);
        let scores = score(&stream.select(1, places.clone()), &targets);
        let put_back = |scores: Tensor<2>| {
            let all = zeros.clone();
            let all = all.select_assign(1, places.clone(), scores, IndexingUpdateOp::Add);
            all.reshape([batch, outputs])
        };
        NextTokenScores {
            losses: put_back(scores.losses),
            right: put_back(scores.right),
            difference: scores.difference.map(put_back),
        }
    }

    /// The targets of some outputs of all rows.
    pub(crate) fn some_outputs(&self, first: usize, count: usize) -> Self {
        let narrow = |tokens: Tensor<2, Int>| tokens.narrow(1, first, count);
        Self {
            tokens: narrow(self.tokens.clone()),
            wrong: self.wrong.clone().map(narrow),
            places: None,
            first: 0,
        }
    }
}
