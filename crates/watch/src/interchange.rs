//! Interchange interventions: what a part of a model writes is swapped between two inputs, and a
//! program says what the model must answer then (Geiger et al. 2021, section 3).

use std::collections::BTreeMap;

use burn::tensor::{Device, Int, Tensor};
use headlight_heads::{HeadName, Source};
use headlight_residual::{
    Activations, AttentionSite, BlockSite, Capture, Decoder, Edit, Edits, Part, Site,
};
use headlight_run::{
    Answers, Breakdown, Config, Error, ErrorKind, FeedForwardKind, InterchangeConfig, TaskConfig,
};
use headlight_tasks::{Sequence, program_code};

use crate::{Batch, Cores, Known};

/// Sequences in one forward pass: bounds memory. Pairs are not torn apart.
const ROWS_AT_ONCE: usize = 64;

/// In a [`Breakdown`]: the share of answers that a swap of aligned parts turns into the program's.
pub const INTERCHANGE_ACCURACY: &str = "interchange accuracy";
/// In a [`Breakdown`]: the share of answers that stay when a part outside the circuit is swapped.
pub const STRICTNESS: &str = "strictness";

/// Which parts of a model are to compute which variables of a program.
///
/// Sequences come in pairs, 0 with 1, 2 with 3 and so on. A swap gives each sequence what a part
/// writes on the other one of its pair, at every position.
///
/// ```
/// use headlight_run::Config;
/// use headlight_watch::Interchange;
///
/// let text = r#"
///     task = { name = "program", program = "previous_token", length = 4 }
///     model = { n_layers = 1, n_heads = 2, d_model = 8, n_ctx = 5 }
///     train = { steps = 1, batch_size = 2, learning_rate = 1e-3 }
///     interchange = { alignment = { previous = "L0H1" } }
/// "#;
/// let interchange = Interchange::of(&Config::parse(text, "a.toml", &[])?)?.unwrap();
/// let outside: Vec<String> = interchange.outside().iter().map(ToString::to_string).collect();
/// assert_eq!(outside, ["L0H0"]);
/// let error = Config::parse(text, "a.toml", &["interchange.alignment.next=L0H0".to_owned()])
///     .and_then(|config| Interchange::of(&config))
///     .unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "config: interchange.alignment.next = L0H0: previous_token has no such variable; there are: previous",
/// );
/// # Ok::<(), headlight_run::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Interchange {
    /// The weights of the losses.
    pub config: InterchangeConfig,
    known: Known,
    aligned: Vec<Aligned>,
    outside: Vec<Source>,
}

/// A part of a model, and the variables that it is to compute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aligned {
    /// The head or feed-forward.
    pub part: Source,
    /// Their names in the program.
    pub variables: Vec<String>,
}

/// What sequences are answered while one part is swapped.
#[derive(Debug, Clone, PartialEq)]
pub struct Swapped {
    /// The part.
    pub part: Source,
    /// The variables that it is to compute; none of a part outside the circuit.
    pub variables: Vec<String>,
    /// The answers that count. Of an aligned part: those that the swap changes in the program. Of a
    /// part outside: all.
    pub counted: usize,
    /// How many of these are right. Of an aligned part: as the program answers. Of a part outside:
    /// as the model answers without the swap.
    pub right: usize,
}

impl Interchange {
    /// The alignment of a run, if it has one.
    ///
    /// # Errors
    /// If the program has no such variable, or no part computes it.
    pub fn of(config: &Config) -> Result<Option<Self>, Error> {
        let (Some(interchange), TaskConfig::Program(program)) = (&config.interchange, &config.task)
        else {
            return Ok(None);
        };
        let known = Known::compiled(program_code(program)?, config.model.coldness())?;
        let mut aligned: BTreeMap<Source, Vec<String>> = BTreeMap::new();
        for (variable, part) in &interchange.alignment {
            check_variable(&known, variable).map_err(|error| error.value(part))?;
            aligned.entry(*part).or_default().push(variable.clone());
        }
        let outside = parts_of(config).into_iter();
        Ok(Some(Self {
            config: interchange.clone(),
            outside: outside.filter(|part| !aligned.contains_key(part)).collect(),
            aligned: aligned
                .into_iter()
                .map(|(part, variables)| Aligned { part, variables })
                .collect(),
            known,
        }))
    }

    /// The alignment and the weights, as one line.
    #[must_use]
    pub fn in_words(&self) -> String {
        let mut words = Vec::new();
        for Aligned { part, variables } in &self.aligned {
            words.push(format!("{} in {part}", variables.join(", ")));
        }
        format!(
            "interchange {}; {} parts outside; weight {}, strictness {}",
            words.join("; "),
            self.outside.len(),
            self.config.weight,
            self.config.strictness
        )
    }

    /// The program, and what the compiler makes of it.
    #[must_use]
    pub fn known(&self) -> &Known {
        &self.known
    }

    /// The parts of the circuit.
    #[must_use]
    pub fn aligned(&self) -> &[Aligned] {
        &self.aligned
    }

    /// The heads and feed-forwards outside the circuit.
    #[must_use]
    pub fn outside(&self) -> &[Source] {
        &self.outside
    }

    /// All heads and feed-forwards, those of the circuit first.
    #[must_use]
    pub fn parts(&self) -> Vec<Source> {
        let aligned = self.aligned.iter().map(|aligned| aligned.part);
        aligned.chain(self.outside.iter().copied()).collect()
    }

    /// The targets of sequences in pairs while some variables are swapped: where the task scores,
    /// the program's answer; elsewhere the sequence's own token.
    ///
    /// # Errors
    /// If a sequence is none of the program's.
    ///
    /// # Panics
    /// If the number of sequences is odd, or their lengths differ.
    pub fn swapped_targets(
        &self,
        sequences: &[Sequence],
        variables: &[String],
    ) -> Result<Vec<Vec<u32>>, Error> {
        let (pairs, single) = sequences.as_chunks::<2>();
        assert!(
            single.is_empty(),
            "{} sequences are no pairs",
            sequences.len()
        );
        let mut targets = Vec::with_capacity(sequences.len());
        for [first, second] in pairs {
            for (sequence, other) in [(first, second), (second, first)] {
                let swapped = self.targets_with(sequence, other, variables);
                targets.push(swapped.map_err(|error| {
                    Error::because(ErrorKind::Damaged, "a sequence of the program", error)
                })?);
            }
        }
        Ok(targets)
    }

    /// The targets of `sequence` with some variables as they are on `other`.
    fn targets_with(
        &self,
        sequence: &Sequence,
        other: &Sequence,
        variables: &[String],
    ) -> Result<Vec<u32>, headlight_compile::Error> {
        let code = &self.known.code;
        let variables: Vec<&str> = variables.iter().map(String::as_str).collect();
        let other = code.run(&self.read(other))?;
        let trace = code.interchanged(&self.read(sequence), &other, &variables)?;
        let answers = code.ids(&trace.answers())?;
        let mut targets = sequence.tokens[1..].to_vec();
        // At input 0 stands the start, of which the program says nothing.
        for (input, answer) in (1..).zip(answers) {
            if sequence.scored[input] {
                targets[input] = answer;
            }
        }
        Ok(targets)
    }

    /// What the program reads of a sequence: all inputs behind the start.
    fn read(&self, sequence: &Sequence) -> Vec<&str> {
        let names = &self.known.compiled.vocabulary;
        let inputs = sequence.tokens[..sequence.scored.len()].iter().skip(1);
        let name = |&id: &u32| names.get(id as usize).map_or("", String::as_str);
        inputs.map(name).collect()
    }

    /// What the model answers while each part is swapped, one after the other. A last sequence
    /// without a partner is left out.
    ///
    /// # Errors
    /// If a sequence is none of the program's.
    ///
    /// # Panics
    /// If the lengths of the sequences differ.
    pub fn measure(
        &self,
        model: &Decoder,
        sequences: &[Sequence],
        device: &Device,
        cores: &Cores,
    ) -> Result<Vec<Swapped>, Error> {
        let (pairs, _single) = sequences.as_chunks::<2>();
        let chunks = pairs.as_flattened().chunks(ROWS_AT_ONCE).collect();
        let of_chunk = |rows: &[Sequence]| self.measure_rows(model, rows, device);
        let mut sum: Vec<Swapped> = Vec::new();
        for measured in cores.map(chunks, of_chunk) {
            let measured = measured?;
            if sum.is_empty() {
                sum = measured;
                continue;
            }
            for (sum, more) in sum.iter_mut().zip(measured) {
                sum.counted += more.counted;
                sum.right += more.right;
            }
        }
        Ok(sum)
    }

    fn measure_rows(
        &self,
        model: &Decoder,
        rows: &[Sequence],
        device: &Device,
    ) -> Result<Vec<Swapped>, Error> {
        let inputs = Batch::new(rows, device).inputs;
        let (stream, seen) = run(model, inputs.clone(), &self.parts());
        let guesses = argmax(model, stream);
        let own: Vec<u32> = rows
            .iter()
            .flat_map(|row| row.tokens[1..].to_vec())
            .collect();
        let scored: Vec<bool> = rows.iter().flat_map(|row| row.scored.clone()).collect();
        let with_swapped = |part| argmax(model, run_swapped(model, inputs.clone(), &seen, part));
        let mut measured = Vec::new();
        for Aligned { part, variables } in &self.aligned {
            let targets = self.swapped_targets(rows, variables)?.concat();
            let changes = |at: &usize| scored[*at] && targets[*at] != own[*at];
            let counted: Vec<usize> = (0..own.len()).filter(changes).collect();
            let guesses = with_swapped(*part);
            measured.push(Swapped {
                part: *part,
                variables: variables.clone(),
                right: counted
                    .iter()
                    .filter(|&&at| guesses[at] == targets[at])
                    .count(),
                counted: counted.len(),
            });
        }
        for part in &self.outside {
            let counted: Vec<usize> = (0..own.len()).filter(|at| scored[*at]).collect();
            let swapped = with_swapped(*part);
            measured.push(Swapped {
                part: *part,
                variables: Vec::new(),
                right: counted
                    .iter()
                    .filter(|&&at| swapped[at] == guesses[at])
                    .count(),
                counted: counted.len(),
            });
        }
        Ok(measured)
    }
}

/// Interchange accuracy and strictness over all parts, as far as something counts.
#[must_use]
pub fn breakdown(measured: &[Swapped]) -> Breakdown {
    let (aligned, outside): (Vec<&Swapped>, Vec<&Swapped>) = measured
        .iter()
        .partition(|swapped| !swapped.variables.is_empty());
    let mut breakdown = Breakdown::new();
    for (name, swapped) in [(INTERCHANGE_ACCURACY, aligned), (STRICTNESS, outside)] {
        let count: usize = swapped.iter().map(|swapped| swapped.counted).sum();
        let right: usize = swapped.iter().map(|swapped| swapped.right).sum();
        if count > 0 {
            let accuracy = right as f64 / count as f64;
            breakdown.insert(name.to_owned(), Answers { accuracy, count });
        }
    }
    breakdown
}

/// Runs a model and keeps what some parts write.
///
/// # Shapes
/// - inputs: `[rows, positions]`
/// - output, the final stream: `[rows, positions, d_model]`
///
/// # Panics
/// If the model has no such part.
#[must_use]
pub fn run(model: &Decoder, inputs: Tensor<2, Int>, parts: &[Source]) -> (Tensor<3>, Activations) {
    let mut sites: Vec<Site> = parts.iter().map(|part| site_of(*part)).collect();
    sites.sort_unstable();
    sites.dedup();
    let mut capture = Capture::new(&sites, usize::MAX);
    let stream = model.final_stream(inputs, &mut capture);
    let seen = capture.into_activations();
    (
        stream,
        seen.expect("parts are checked with the configuration"),
    )
}

/// The final stream while what one part writes is swapped between the rows of each pair: row 0 gets
/// what the part wrote on row 1, row 1 what it wrote on row 0, and so on.
///
/// # Shapes
/// - inputs: `[rows, positions]`
/// - output: `[rows, positions, d_model]`
///
/// # Panics
/// If `seen`, of a [`run`] of the same inputs, does not have the part, or the rows are no pairs.
#[must_use]
pub fn run_swapped(
    model: &Decoder,
    inputs: Tensor<2, Int>,
    seen: &Activations,
    part: Source,
) -> Tensor<3> {
    let site = site_of(part);
    let edit = Edit::Replace(seen.kept(site).pairs_swapped());
    model.final_stream(
        inputs,
        &mut Edits::default().part(site, heads_of(part), edit),
    )
}

/// The final stream with the mean over rows and positions in place of what one part writes.
///
/// # Shapes
/// - inputs: `[rows, positions]`
/// - output: `[rows, positions, d_model]`
#[must_use]
pub fn run_ablated(model: &Decoder, inputs: Tensor<2, Int>, part: Source) -> Tensor<3> {
    let mut edits = Edits::default().part(site_of(part), heads_of(part), Edit::Mean);
    model.final_stream(inputs, &mut edits)
}

/// Where a part writes.
fn site_of(part: Source) -> Site {
    match part {
        Source::Head(head) => Site::Attention(head.layer, AttentionSite::Z),
        Source::FeedForward(layer) => Site::Block(layer, BlockSite::MlpOut),
        Source::Embedding => Site::Embed,
        Source::Positions => Site::PosEmbed,
    }
}

/// The share of its site that a part has.
fn heads_of(part: Source) -> Part {
    match part {
        Source::Head(head) => Part::heads(&[head.head]),
        _ => Part::default(),
    }
}

/// The likeliest token at each output, row by row.
fn argmax(model: &Decoder, stream: Tensor<3>) -> Vec<u32> {
    model
        .logits(stream)
        .argmax(2)
        .into_data()
        .iter::<u32>()
        .collect()
}

/// Every head and feed-forward of a model.
fn parts_of(config: &Config) -> Vec<Source> {
    let mut parts = Vec::new();
    for layer in 0..config.model.n_layers {
        for head in 0..config.model.n_heads {
            parts.push(Source::Head(HeadName { layer, head }));
        }
        if config.model.feed_forward != FeedForwardKind::None {
            parts.push(Source::FeedForward(layer));
        }
    }
    parts
}

/// Whether a head or a feed-forward of the compiled program computes the variable.
fn check_variable(known: &Known, variable: &str) -> Result<(), Error> {
    let places = known.compiled.truth.places.iter();
    let computed = places.filter(|place| place.part.layer().is_some());
    let names: Vec<&str> = computed.map(|place| place.variable.as_str()).collect();
    if names.contains(&variable) {
        return Ok(());
    }
    let message = format!(
        "{} has no such variable; there are: {}",
        known.code.name(),
        names.join(", ")
    );
    Err(Error::config(message).key(format_args!("interchange.alignment.{variable}")))
}
