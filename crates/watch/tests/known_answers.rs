//! The methods of `lens` against programs whose circuit is known: what each finds, misses, and finds
//! falsely. `docs/results/known_answers.md` has the numbers that are held here.

mod common;

use std::collections::BTreeSet;

use burn::tensor::Device;
use common::{inputs_of, task_of};
use headlight_compile::{Compiled, Input, Part, Program, START, Trace, programs};
use headlight_heads::{Ablation, HeadName, Role};
use headlight_lens::{
    Behaviour, Patching, SensePatching, Senses, WordInContext, ablate, all_heads, path_tests,
};
use headlight_residual::{BlockSite, Decoder, Site, token_tensor};
use headlight_watch::{Watched, compiled::decoder, probe};

const ROWS: usize = 64;
const ABLATIONS: [Ablation; 3] = [Ablation::Zero, Ablation::Mean, Ablation::Resample];

/// A program, its model, and random inputs of full length.
struct Known {
    code: Program,
    compiled: Compiled,
    model: Decoder,
    /// What the model reads behind the start of the sequence.
    inputs: Vec<Vec<String>>,
    behaviour: Behaviour,
    /// The inputs whose targets count.
    scored: Vec<bool>,
}

impl Known {
    fn of(code: Program) -> Self {
        let names = code.vocabulary();
        let compiled = code.compile(100.0).unwrap();
        let (mut inputs, mut tokens, mut targets) = (Vec::new(), Vec::new(), Vec::new());
        for read in inputs_of(&code, ROWS) {
            let input: Vec<String> = read[1..]
                .iter()
                .map(|&id| names[id as usize].clone())
                .collect();
            // The program has an answer at every position; at the start there is none.
            let trace = code.run(&input).unwrap();
            let answers = [&[START], &trace.answers()[..]].concat();
            targets.push(code.ids(&answers).unwrap());
            inputs.push(input);
            tokens.push(read);
        }
        let positions = code.layout().positions() + 1;
        let scored: Vec<bool> = (0..positions).map(|position| position > 0).collect();
        let device = Device::flex();
        Self {
            model: decoder(&compiled, &device).unwrap(),
            behaviour: Behaviour::new(
                token_tensor(&tokens, &device),
                targets,
                vec![scored.clone(); ROWS],
            ),
            code,
            compiled,
            inputs,
            scored,
        }
    }

    fn random(seed: u64, length: usize) -> Self {
        Self::of(programs::named(&format!("random_{seed}"), Some(length)).unwrap())
    }

    fn traces(&self) -> Vec<Trace<'_>> {
        let run = |input: &Vec<String>| self.code.run(input).unwrap();
        self.inputs.iter().map(run).collect()
    }

    /// The variable that a head computes; none of a head whose weights are 0.
    fn variable(&self, head: HeadName) -> Option<&str> {
        let place = self.compiled.truth.computed_by(head)?;
        Some(&place.variable)
    }

    /// Accuracy without one head.
    fn without(&self, head: HeadName, by: Ablation) -> f64 {
        ablate(&self.model, &self.behaviour, &[head], by)
            .unwrap()
            .accuracy
    }
}

/// The programs that ship, on short inputs.
fn shipped() -> Vec<Known> {
    let named = |entry: &programs::Entry| {
        let length = entry.length.min(10);
        Known::of((entry.write)(length).unwrap())
    };
    programs::ALL.iter().map(named).collect()
}

/// Random programs, on short inputs.
fn random() -> Vec<Known> {
    (0..50).map(|seed| Known::random(seed, 10)).collect()
}

#[test]
fn the_decoder_computes_what_the_programs_say() {
    for known in shipped().into_iter().chain(random()) {
        let name = known.code.name();
        let last = Site::Block(known.compiled.shape.n_layers - 1, BlockSite::ResidPost);
        let seen = known
            .model
            .activations(known.behaviour.inputs(), &[last])
            .unwrap();
        let stream: Vec<f32> = seen.tensor::<3>(last).into_data().iter().collect();
        let d_model = known.compiled.shape.d_model;
        let rows = stream.chunks(d_model * known.scored.len());
        for (trace, row) in known.traces().iter().zip(rows) {
            let expected = trace.stream(&known.compiled);
            for (expected, found) in expected.iter().zip(row[d_model..].chunks(d_model)) {
                for (direction, (expected, found)) in expected.iter().zip(found).enumerate() {
                    let direction = &known.compiled.directions[direction];
                    assert!(
                        (expected - f64::from(*found)).abs() < 1e-5,
                        "{name} {direction}: {found}, not {expected}"
                    );
                }
            }
        }
        let untouched = ablate(&known.model, &known.behaviour, &[], Ablation::Mean).unwrap();
        assert_eq!(untouched.accuracy, 1.0, "{name}");
    }
}

/// The accuracy of a program whose variable is, on each input, as it was on the one before.
fn resampled(known: &Known, variable: Option<&str>) -> f64 {
    let traces = known.traces();
    let variables: Vec<&str> = variable.into_iter().collect();
    let (mut right, mut all) = (0_usize, 0_usize);
    for (row, input) in known.inputs.iter().enumerate() {
        let other = &traces[(row + ROWS - 1) % ROWS];
        let changed = known.code.interchanged(input, other, &variables).unwrap();
        let pairs = changed.answers().into_iter().zip(traces[row].answers());
        for (found, expected) in pairs {
            right += usize::from(found == expected);
            all += 1;
        }
    }
    right as f64 / all as f64
}

#[test]
fn resampling_a_head_costs_what_the_program_says() {
    for known in shipped().into_iter().chain(random()) {
        let name = known.code.name();
        for head in all_heads(&known.model) {
            let expected = resampled(&known, known.variable(head));
            let found = known.without(head, Ablation::Resample);
            assert!(
                (found - expected).abs() < 1e-6,
                "{name} {head}: {found}, not {expected}"
            );
        }
    }
}

#[test]
fn patching_a_head_moves_the_answer_as_far_as_the_program_says() {
    let mut compared = 0;
    for known in shipped().into_iter().chain(random()) {
        let name = known.code.name();
        let traces = known.traces();
        let last = known.scored.len() - 1;
        let ids = |input: &[String]| {
            let with_start: Vec<&str> = [START]
                .into_iter()
                .chain(input.iter().map(String::as_str))
                .collect();
            known.code.ids(&with_start).unwrap()
        };
        for row in 0..16 {
            let (base, source) = (row, row + 16);
            let answer = |trace: &Trace| trace.answers()[last - 1].to_owned();
            let (from, to) = (answer(&traces[base]), answer(&traces[source]));
            if from == to {
                continue;
            }
            let tokens = [base, source].map(|row| ids(&known.inputs[row]));
            let patching = Patching::new(&known.model, &tokens[0], &tokens[1], last).unwrap();
            let shares = patching.heads();
            for (head, found) in all_heads(&known.model).into_iter().zip(shares) {
                let variables: Vec<&str> = known.variable(head).into_iter().collect();
                let input = &known.inputs[base];
                let changed = known.code.interchanged(input, &traces[source], &variables);
                let expected = match answer(&changed.unwrap()) {
                    answer if answer == to => 1.0,
                    answer if answer == from => 0.0,
                    _ => 0.5,
                };
                assert!(
                    (found - expected).abs() < 1e-4,
                    "{name} {head}: {found}, not {expected}"
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 500, "{compared}");
}

/// How often a method is right about things that the truth knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Verdict {
    found: usize,
    missed: usize,
    falsely_found: usize,
    rightly_left: usize,
}

impl Verdict {
    fn add(&mut self, is_true: bool, is_found: bool) {
        match (is_true, is_found) {
            (true, true) => self.found += 1,
            (true, false) => self.missed += 1,
            (false, true) => self.falsely_found += 1,
            (false, false) => self.rightly_left += 1,
        }
    }
}

/// Heads without which accuracy falls, of those that compute something and of the others.
fn ablations(population: &[Known], by: Ablation) -> Verdict {
    let mut verdict = Verdict::default();
    for known in population {
        for head in all_heads(&known.model) {
            let is_true = known.variable(head).is_some();
            verdict.add(is_true, known.without(head, by) < 1.0);
        }
    }
    verdict
}

#[test]
fn ablation_finds_the_heads_of_the_programs_and_no_other() {
    let verdicts = ABLATIONS.map(|by| ablations(&shipped(), by));
    let expected = |found, missed| Verdict {
        found,
        missed,
        falsely_found: 0,
        rightly_left: 60,
    };
    // Resampling changes nothing that is the same in all inputs: in reverse and sort, where `=`
    // stands and how many answers there are.
    assert_eq!(
        verdicts,
        [expected(32, 0), expected(32, 0), expected(29, 3)]
    );
}

#[test]
fn ablation_finds_no_head_of_a_random_program_that_does_nothing() {
    let verdicts = ABLATIONS.map(|by| ablations(&random(), by));
    let expected = |found, missed| Verdict {
        found,
        missed,
        falsely_found: 0,
        rightly_left: 50,
    };
    // Of what a random program computes, much changes no answer on these inputs.
    assert_eq!(
        verdicts,
        [expected(65, 8), expected(68, 5), expected(48, 25)]
    );
}

/// Layer inputs that need what a head wrote, of those that an edge leads to and of the others.
fn paths(population: &[Known]) -> Verdict {
    let mut verdict = Verdict::default();
    for known in population {
        let edges = edges_between_heads(known);
        for writer in all_heads(&known.model) {
            for reader in writer.layer + 1..known.compiled.shape.n_layers {
                let measured = path_tests(&known.model, &known.behaviour, &[writer], reader);
                for (input, measured) in measured.unwrap().unwrap().into_iter().enumerate() {
                    let is_true = edges.contains(&(writer, reader, input));
                    verdict.add(is_true, measured.accuracy < 1.0);
                }
            }
        }
    }
    verdict
}

/// The edges from heads to heads that carry a variable, by writer and the input of the layer that
/// reads, in the order of [`headlight_lens::Input::ALL`].
fn edges_between_heads(known: &Known) -> BTreeSet<(HeadName, usize, usize)> {
    let mut edges = BTreeSet::new();
    for edge in known.compiled.truth.carrying() {
        let (input, reader) = match edge.to {
            Input::Queries(head) => (0, head),
            Input::Keys(head) => (1, head),
            Input::Values(head) => (2, head),
            Input::FeedForward(_) | Input::Logits => continue,
        };
        if let Part::Head(writer) = edge.from {
            edges.insert((writer, reader.layer, input));
        }
    }
    edges
}

#[test]
fn the_path_test_finds_edges_between_heads_and_no_other() {
    let expected = |found, rightly_left| Verdict {
        found,
        missed: 0,
        falsely_found: 0,
        rightly_left,
    };
    assert_eq!(paths(&shipped()), expected(1, 554));
    assert_eq!(paths(&random()), expected(13, 281));
}

/// The word `a` behind another token, which a head brings to it or not.
#[test]
fn only_the_head_that_fetches_the_deciding_token_moves_the_word() {
    let known = Known::of(programs::named("previous_token", Some(4)).unwrap());
    let context = |token: &str, before: &str, sense| WordInContext {
        tokens: known.code.ids(&[START, before, token, "a"]).unwrap(),
        sense,
        cue: 2,
    };
    let mut contexts = Vec::new();
    for before in ["a", "b", "c", "d"] {
        contexts.extend([context("b", before, 0), context("c", before, 1)]);
    }
    let pairs = [[0, 1], [2, 3], [4, 5], [6, 7]];
    let senses = Senses::new(&known.model, &contexts);
    let patching = SensePatching::new(&senses, &pairs, 0).unwrap().unwrap();
    // One-hot b and c, beside the word and its position: √2 apart, of a length √3.
    let [stream, _] = patching.apart();
    assert!((stream - (2.0_f64 / 3.0).sqrt()).abs() < 1e-5, "{stream}");
    let heads = all_heads(&known.model);
    let each = patching.each(&heads, &mut |_| {}).unwrap();
    assert_eq!(each.len(), heads.len());
    for (head, moves) in each {
        let expected = f64::from(u8::from(known.variable(head).is_some()));
        assert_eq!(patching.together(&[head]).unwrap(), moves);
        for share in moves.stream.iter().chain(&moves.next_token) {
            assert!((share - expected).abs() < 1e-5, "{head}: {share}");
        }
    }
}

/// The roles on the probe of every head, in their order.
fn roles(known: &Known) -> Vec<Role> {
    let task = task_of(&known.code);
    let n_ctx = known.scored.len();
    let watched = Watched::probe(&probe(&task, n_ctx, 0)).with_start(true);
    let observed = watched.observe(&known.model, &Device::flex()).unwrap();
    observed.roles()
}

#[test]
fn roles_of_the_shipped_programs() {
    let mut found = Vec::new();
    for entry in programs::ALL {
        let known = Known::of(programs::named(entry.name, None).unwrap());
        for (head, role) in all_heads(&known.model).into_iter().zip(roles(&known)) {
            if role != Role::Mixed {
                let variable = known.variable(head).unwrap_or("nothing");
                found.push(format!("{} {head} {variable}: {role}", entry.name));
            }
        }
    }
    let expected = [
        "previous_token L0H0 previous: previous token",
        "induction L0H0 previous: previous token",
        "induction L1H0 next: induction",
        "palindrome L0H0 front 0: first token",
        "palindrome L0H1 back 0: current token",
        "palindrome L0H3 back 1: previous token",
    ];
    assert_eq!(found, expected);
}
