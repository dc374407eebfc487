//! `inspect RUN interchange`: does each part of a trained model compute the variable of the program
//! that it is aligned with, and which methods find these parts?

use burn::tensor::Tensor;
use headlight_heads::{Metric, PatchDirection, Role, Source};
use headlight_lens::{Completeness, EdgePatching, Effects, Estimate, PromptPair, auroc_of_effects};
use headlight_report::{Printout, Table, number, number_or_dash, or_dash, with_interval};
use headlight_residual::Decoder;
use headlight_run::{Error, ErrorKind};
use headlight_tasks::Sequence;
use headlight_watch::{
    Batch, Cores, Interchange, Swapped,
    interchange::{breakdown, run, run_ablated, run_swapped},
};
use serde::Serialize;

use super::{ModelParts, Need, Output, Subject, Verb, program::role_of_program};

/// Whether each part computes the variable that it is aligned with, and which methods find these
/// parts: what it writes is swapped between inputs, and the program says what must come out
#[derive(Debug, clap::Args)]
pub struct InterchangeVerb;

impl Verb for InterchangeVerb {
    const NAME: &'static str = "interchange";
    const NEEDS: &'static [Need] = &[Need::Alignment];

    fn show(self, subject: Subject, out: &Output) -> Result<(), Error> {
        out.show(&subject.interchange()?, InterchangeFound::printout)
    }
}

/// Sequences in one pass: bounds memory. Pairs are not torn apart.
const ROWS_AT_ONCE: usize = 64;
/// Points on the way between two runs, at most.
const MOST_STEPS: usize = 320;

/// What `inspect RUN interchange` shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InterchangeFound {
    /// The program.
    pub program: String,
    /// The share of answers of the task that are right.
    pub accuracy: f64,
    /// The share of answers that a swap in the circuit turns into the program's; none where no swap
    /// changes an answer of the program.
    pub interchange_accuracy: Option<f64>,
    /// The share of answers that stay when a part outside the circuit is swapped; none without such
    /// parts.
    pub strictness: Option<f64>,
    /// Pairs of sequences whose answers differ.
    pub pairs: usize,
    /// The heads and feed-forwards, those of the circuit first.
    pub parts: Vec<PartFound>,
    /// How well each method tells the parts of the circuit from the others.
    pub methods: Vec<MethodFound>,
    /// Why there are no effects from gradients, where there are none.
    pub no_gradients: Option<String>,
}

/// A part, and what was found of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartFound {
    /// The head or feed-forward.
    pub part: Source,
    /// The variables that it is to compute; none of a part outside the circuit.
    pub variables: Vec<String>,
    /// Answers that count: those that the swap changes in the program; outside the circuit all.
    pub counted: usize,
    /// The share of them that is right: the program's answer; outside the circuit the answer
    /// without the swap.
    pub right: Option<f64>,
    /// The mean size of its effect by each of the methods, in their order.
    pub effects: Vec<f64>,
    /// What a head looks like on the probe.
    pub looks_like: Option<Role>,
    /// The role whose targets, and nothing else, the program selects.
    pub must_look_like: Option<String>,
    /// Whether the role is right.
    pub role_is: Option<String>,
}

/// A method, and how well the sizes of its effects tell the parts of the circuit from the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MethodFound {
    /// Its name.
    pub method: &'static str,
    /// The area under the ROC curve, with its interval over pairs; none without a part outside.
    pub auroc: Option<Estimate>,
    /// How far averaged gradients add up, for EAP-IG.
    pub completeness: Option<Completeness>,
}

/// The effects of every part by one method.
struct Method {
    name: &'static str,
    /// `[part][pair]`
    by_pair: Vec<Vec<f64>>,
    completeness: Option<Completeness>,
}

impl Subject {
    /// The alignment of a run, if it has one.
    fn alignment(&self) -> Result<Interchange, Error> {
        let found = match self.trained() {
            Ok(run) => Interchange::of(&run.config)?,
            Err(_) => None,
        };
        let message = "has no table [interchange], so no part of it has a variable to compute; \
                       train configs/known_induction.toml for one that has";
        found.ok_or_else(|| Error::of(ErrorKind::Missing, self.path().display(), message))
    }

    /// Swaps what each part writes between validation sequences, and measures the parts by every
    /// method.
    ///
    /// # Errors
    /// If the run has no alignment, or its sequences are none of the program's.
    pub fn interchange(&self) -> Result<InterchangeFound, Error> {
        let interchange = self.alignment()?;
        let ModelParts { model, .. } = self.model()?;
        let summary = self.summary()?;
        let sequences = in_pairs(&self.validation()?.sequences);
        let measured = interchange.measure(&model, sequences, self.device(), Cores::all())?;
        let pairs = differing_pairs(sequences);
        let (methods, no_gradients) = self.methods(&interchange, &model, sequences, &pairs)?;
        let truths: Vec<bool> = measured
            .iter()
            .map(|swapped| !swapped.variables.is_empty())
            .collect();
        let probe = self.probe()?.tokens;
        let of_swaps = breakdown(&measured);
        let share = |name: &str| of_swaps.get(name).map(|answers| answers.accuracy);
        let mut parts = Vec::new();
        for (at, swapped) in measured.into_iter().enumerate() {
            let effects = methods.iter().map(|method| mean_size(&method.by_pair[at]));
            let mut part = PartFound::of(swapped, effects.collect());
            if let Source::Head(head) = part.part {
                let heads = summary.heads.iter();
                let role = heads.clone().find(|of| of.head == head).map(|of| of.role);
                part.looks_like = role;
                if let (Some(role), Some(variable)) = (role, part.variables.first()) {
                    let expected = interchange.known().expected_of(variable, &probe);
                    let (must_be, is) = role_of_program(expected, role);
                    part.must_look_like = Some(must_be);
                    part.role_is = is;
                }
            }
            parts.push(part);
        }
        Ok(InterchangeFound {
            program: interchange.known().code.name().to_owned(),
            accuracy: summary.accuracy,
            interchange_accuracy: share(headlight_watch::interchange::INTERCHANGE_ACCURACY),
            strictness: share(headlight_watch::interchange::STRICTNESS),
            pairs: pairs.len(),
            parts,
            methods: methods
                .into_iter()
                .map(|method| MethodFound {
                    method: method.name,
                    auroc: auroc_of_effects(&method.by_pair, &truths),
                    completeness: method.completeness,
                })
                .collect(),
            no_gradients,
        })
    }

    /// The effects of every part by every method on the logit difference of the pairs; and why
    /// there are none from gradients, if there are none.
    fn methods(
        &self,
        interchange: &Interchange,
        model: &Decoder,
        sequences: &[Sequence],
        pairs: &[Pair],
    ) -> Result<(Vec<Method>, Option<String>), Error> {
        let parts = interchange.parts();
        let [patched, ablated] = self.exact(model, sequences, pairs, &parts);
        let mut methods = vec![
            Method::exact("patched", patched),
            Method::exact("mean-ablated", ablated),
        ];
        let prompts: Vec<PromptPair> = pairs.iter().map(|pair| pair.prompts.clone()).collect();
        if prompts.is_empty() {
            return Ok((
                methods,
                Some("no two sequences of a pair differ in an answer".to_owned()),
            ));
        }
        let patching = match EdgePatching::new(model, &prompts, Metric::LogitDifference) {
            Ok(patching) => patching,
            Err(error) => return Ok((methods, Some(error.to_string()))),
        };
        let wrong = |error| self.edge_error(error);
        let eap = patching.eap(PatchDirection::Noise).map_err(wrong)?;
        let (eap_ig, completeness) = patching
            .eap_ig(PatchDirection::Noise, MOST_STEPS)
            .map_err(wrong)?;
        let of_parts = |effects: &Effects, of_edge: fn(f64) -> f64| {
            by_part(&patching, effects, &parts, of_edge)
        };
        methods.extend([
            Method::exact("AtP", of_parts(&eap, |effect| effect)),
            Method::exact("EAP, |edges|", of_parts(&eap, f64::abs)),
            Method {
                name: "EAP-IG",
                by_pair: of_parts(&eap_ig, |effect| effect),
                completeness: Some(completeness),
            },
            Method::exact("EAP-IG, |edges|", of_parts(&eap_ig, f64::abs)),
        ]);
        Ok((methods, None))
    }

    /// How far the logit difference of each pair moves when a part is patched with what it writes on
    /// the other sequence, and when it is mean-ablated: `[method][part][pair]`.
    fn exact(
        &self,
        model: &Decoder,
        sequences: &[Sequence],
        pairs: &[Pair],
        parts: &[Source],
    ) -> [Vec<Vec<f64>>; 2] {
        let mut effects = [vec![Vec::new(); parts.len()], vec![Vec::new(); parts.len()]];
        for (chunk, rows) in sequences.chunks(ROWS_AT_ONCE).enumerate() {
            let first = chunk * ROWS_AT_ONCE;
            let of_chunk = |pair: &&Pair| (first..first + rows.len()).contains(&pair.row);
            let pairs: Vec<&Pair> = pairs.iter().filter(of_chunk).collect();
            let inputs = Batch::new(rows, self.device()).inputs;
            let (stream, seen) = run(model, inputs.clone(), parts);
            let clean = differences(model, stream, &pairs, first);
            for (at, &part) in parts.iter().enumerate() {
                let patched = run_swapped(model, inputs.clone(), &seen, part);
                let ablated = run_ablated(model, inputs.clone(), part);
                for (effects, stream) in effects.iter_mut().zip([patched, ablated]) {
                    let changed = differences(model, stream, &pairs, first);
                    let moved = changed
                        .iter()
                        .zip(&clean)
                        .map(|(changed, clean)| changed - clean);
                    effects[at].extend(moved);
                }
            }
        }
        effects
    }
}

impl Method {
    fn exact(name: &'static str, by_pair: Vec<Vec<f64>>) -> Self {
        Self {
            name,
            by_pair,
            completeness: None,
        }
    }
}

impl PartFound {
    fn of(swapped: Swapped, effects: Vec<f64>) -> Self {
        let share = swapped.right as f64 / swapped.counted as f64;
        Self {
            part: swapped.part,
            variables: swapped.variables,
            counted: swapped.counted,
            right: (swapped.counted > 0).then_some(share),
            effects,
            looks_like: None,
            must_look_like: None,
            role_is: None,
        }
    }
}

/// A sequence whose answer at one position is another one on its partner.
struct Pair {
    /// The number of the sequence.
    row: usize,
    /// Both sequences up to the position.
    prompts: PromptPair,
}

/// As many sequences as make pairs.
fn in_pairs(sequences: &[Sequence]) -> &[Sequence] {
    &sequences[..sequences.len() / 2 * 2]
}

/// Each sequence beside its partner, up to the first scored target in which they differ.
fn differing_pairs(sequences: &[Sequence]) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (row, sequence) in sequences.iter().enumerate() {
        let other = &sequences[row ^ 1];
        let differs = |&input: &usize| {
            sequence.scored[input] && sequence.tokens[input + 1] != other.tokens[input + 1]
        };
        if let Some(input) = (0..sequence.scored.len()).find(differs) {
            pairs.push(Pair {
                row,
                prompts: PromptPair {
                    clean: sequence.tokens[..=input].to_vec(),
                    corrupted: other.tokens[..=input].to_vec(),
                    answer: sequence.tokens[input + 1],
                    wrong: other.tokens[input + 1],
                },
            });
        }
    }
    pairs
}

/// The logit difference of each pair, whose rows are counted from `first` in the stream.
fn differences(model: &Decoder, stream: Tensor<3>, pairs: &[&Pair], first: usize) -> Vec<f64> {
    let logits = model.logits(stream); // [rows, positions, vocabulary]
    let [_, positions, vocabulary] = logits.dims();
    let logits: Vec<f64> = logits.into_data().iter::<f64>().collect();
    let difference = |pair: &&Pair| {
        let at = ((pair.row - first) * positions + pair.prompts.position()) * vocabulary;
        logits[at + pair.prompts.answer as usize] - logits[at + pair.prompts.wrong as usize]
    };
    pairs.iter().map(difference).collect()
}

/// The sums over the edges out of each part, pair by pair: `[part][pair]`.
fn by_part(
    patching: &EdgePatching,
    effects: &Effects,
    parts: &[Source],
    of_edge: fn(f64) -> f64,
) -> Vec<Vec<f64>> {
    let edges = patching.graph().edges();
    let pairs = patching.at_clean().len();
    let mut sums = vec![vec![0.0; pairs]; parts.len()];
    for (edge, by_pair) in edges.iter().zip(&effects.by_pair) {
        let Some(part) = parts.iter().position(|part| *part == edge.source) else {
            continue;
        };
        for (sum, effect) in sums[part].iter_mut().zip(by_pair) {
            *sum += of_edge(*effect);
        }
    }
    sums
}

fn mean_size(effects: &[f64]) -> f64 {
    let sum: f64 = effects.iter().map(|effect| effect.abs()).sum();
    sum / effects.len() as f64
}

impl InterchangeFound {
    /// The parts, and the methods.
    fn printout(&self) -> Printout {
        let shares = format!(
            "{}: accuracy {}, interchange accuracy {}, strictness {}.",
            self.program,
            number(self.accuracy, 4),
            number_or_dash(self.interchange_accuracy, 4),
            number_or_dash(self.strictness, 4),
        );
        let explained = "What a part writes is swapped between two inputs, at every position. right: in the circuit, the share \
                         of answers that become those of the program with the variable swapped, of those that the swap \
                         changes; outside, the share of answers that stay. must be: the role whose targets, and nothing \
                         else, the program selects at every query of the probe; no role: none at half of them; open: in \
                         between.";
        let rows = self.parts.iter().map(|part| {
            vec![
                part.part.to_string(),
                or_dash((!part.variables.is_empty()).then(|| part.variables.join(", "))),
                number_or_dash(part.right, 3),
                part.counted.to_string(),
                or_dash(part.looks_like.map(|role| role.to_string())),
                or_dash(part.must_look_like.clone()),
                or_dash(part.role_is.clone()),
            ]
        });
        let columns = [
            "part",
            "computes",
            "right",
            "of",
            "looks like",
            "must be",
            "role is",
        ];
        let mut header = vec!["part", "computes"];
        header.extend(self.methods.iter().map(|method| method.method));
        let effects = self.parts.iter().map(|part| {
            let mut row = vec![
                part.part.to_string(),
                or_dash((!part.variables.is_empty()).then(|| part.variables.join(", "))),
            ];
            row.extend(part.effects.iter().map(|effect| number(*effect, 3)));
            row
        });
        let methods = self.methods.iter().map(|method| {
            vec![
                method.method.to_owned(),
                or_dash(
                    method
                        .auroc
                        .map(|area| with_interval(area.mean, area.interval, 3)),
                ),
                number_or_dash(
                    method.completeness.map(|completeness| completeness.share),
                    3,
                ),
            ]
        });
        let no_gradients = self.no_gradients.as_ref();
        Printout::new()
            .prose(shares)
            .prose(explained)
            .table(Table::new(&columns, rows).text_columns(2))
            .prose(format!(
                "The mean size of the effect of each part on the logit difference between the two answers, over {} pairs. \
                 patched: it writes what it writes on the other input. mean-ablated: the mean over inputs and positions. \
                 AtP: the gradient's estimate of patching. |edges|: sizes of the edges out of a part, added up.",
                self.pairs
            ))
            .table(Table::new(&header, effects).text_columns(2))
            .prose(
                "AUROC: the share of pairs of a part in the circuit and one outside in which the first has the larger \
                 effect; ½ by chance. adds up to: what the edges of the embedding add up to, as a share of the whole \
                 difference.",
            )
            .table(Table::new(&["method", "AUROC", "adds up to"], methods))
            .prose(no_gradients.map_or_else(String::new, |why| {
                format!("No effects from gradients: {why}.")
            }))
    }
}
