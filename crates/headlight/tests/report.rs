//! The report of models of every kind: its walk is the model's own arithmetic, its patterns are
//! those of the run.

use std::fs;

use headlight_heads::{Ablation, Corruption, Measure, SequenceKind};
use headlight_inspect::{CircuitQuestion, ReportQuestion, Subject};
use headlight_lens::Estimate;
use headlight_report::{Floats, ReportData, WalkData, WalkHead, WalkLayer};
use headlight_run::Config;
use headlight_trainer::Setup;
use tempfile::TempDir;

/// A model of two layers, trained for three steps, and its report.
struct Reported {
    folder: TempDir,
    report: ReportData,
}

impl Reported {
    fn of(model: &str) -> Self {
        Self::of_layers(2, model)
    }

    fn of_layers(n_layers: usize, model: &str) -> Self {
        let text = format!(
            r#"
            task = {{ name = "repeat", vocabulary = 12, prefix = [0, 2], block = [3, 5] }}
            model = {{ n_layers = {n_layers}, n_heads = 4, d_model = 16, n_ctx = 16, init_std = 0.5, {model} }}
            train = {{ steps = 3, batch_size = 4, learning_rate = 1e-2 }}
            log = {{ every = 1, patterns_every = 2 }}
            "#
        );
        let folder = TempDir::new().unwrap();
        let config = Config::parse(&text, "test", &[]).unwrap();
        let setup = Setup::prepare(config, "flex").unwrap();
        let run = setup.create(&folder.path().join("run"), false).unwrap();
        setup.run(&run).unwrap();
        let report = Subject::open(run.path(), "flex")
            .unwrap()
            .report(ReportQuestion::default())
            .unwrap();
        Self { folder, report }
    }

    fn open(&self) -> Subject {
        Subject::open(&self.folder.path().join("run"), "flex").unwrap()
    }
}

/// `left [rows, inner] · right [inner, columns]`, in f64.
fn product(left: &Floats, right: &Floats, inner: usize) -> Vec<f64> {
    let columns = right.0.len() / inner;
    let cell = |row: &[f32], column: usize| -> f64 {
        row.iter()
            .enumerate()
            .map(|(i, x)| f64::from(*x) * f64::from(right.0[i * columns + column]))
            .sum()
    };
    left.0
        .chunks(inner)
        .flat_map(|row| {
            (0..columns)
                .map(|column| cell(row, column))
                .collect::<Vec<_>>()
        })
        .collect()
}

#[track_caller]
fn assert_near(what: &str, found: &Floats, expected: &[f64]) {
    assert_eq!(found.0.len(), expected.len(), "{what}");
    let largest = expected
        .iter()
        .fold(1.0_f64, |largest, x| largest.max(x.abs()));
    let error = found
        .0
        .iter()
        .zip(expected)
        .map(|(a, b)| (f64::from(*a) - b).abs())
        .fold(0.0, f64::max);
    assert!(
        error <= 1e-5 * largest,
        "{what} is off by {error:e} of {largest}"
    );
}

/// Every matrix of a walk follows from those before it.
fn check_walk(walk: &WalkData) {
    let before = |layer: usize| {
        walk.written
            .iter()
            .take_while(move |(name, _)| *name != format!("attention {layer}"))
    };
    for layer in &walk.layers {
        if !walk.replaces_stream {
            let mut sum = vec![0.0; layer.stream.0.len()];
            for (_, part) in before(layer.layer) {
                sum.iter_mut()
                    .zip(&part.0)
                    .for_each(|(sum, x)| *sum += f64::from(*x));
            }
            assert_near("the stream", &layer.stream, &sum);
        }
        let mut added: Vec<f64> = vec![0.0; layer.added.0.len()];
        for head in &layer.heads {
            check_head(walk, layer, head);
            added
                .iter_mut()
                .zip(&head.result.0)
                .for_each(|(sum, x)| *sum += f64::from(*x));
        }
        if let Some(bias) = &layer.bias {
            added
                .iter_mut()
                .enumerate()
                .for_each(|(at, sum)| *sum += f64::from(bias.0[at % walk.d_model]));
        }
        assert_near("what the heads add", &layer.added, &added);
    }
}

fn check_head(walk: &WalkData, layer: &WalkLayer, head: &WalkHead) {
    let tokens = walk.tokens.len();
    let read = layer
        .norm
        .as_ref()
        .map_or(&layer.stream, |norm| &norm.output);
    for (name, at) in [("Q", 0), ("K", 1), ("V", 2)] {
        let mut expected = product(read, &head.w_qkv[at], walk.d_model);
        if let Some(bias) = &head.b_qkv[at] {
            expected
                .iter_mut()
                .enumerate()
                .for_each(|(at, x)| *x += f64::from(bias.0[at % walk.d_head]));
        }
        assert_near(name, &head.qkv[at], &expected);
    }
    for (row, (scores, weights)) in head
        .scores
        .0
        .chunks(tokens)
        .zip(head.pattern.0.chunks(tokens))
        .enumerate()
    {
        let powers: Vec<f64> = scores.iter().map(|score| f64::from(*score).exp()).collect();
        let sum: f64 = powers.iter().sum();
        let expected: Vec<f64> = powers.iter().map(|power| power / sum).collect();
        assert_near("softmax", &Floats(weights.to_vec()), &expected);
        assert!(
            weights[row + 1..].iter().all(|weight| *weight == 0.0),
            "row {row} sees the future"
        );
    }
    assert_near("Z", &head.z, &product(&head.pattern, &head.qkv[2], tokens));
    assert_near(
        "what the head writes",
        &head.result,
        &product(&head.z, &head.w_o, walk.d_head),
    );
}

/// `Q·Kᵀ·scale` where the mask leaves it.
fn check_scores(walk: &WalkData, head: &WalkHead) {
    let [q, k] = head
        .rotated
        .as_ref()
        .map_or([&head.qkv[0], &head.qkv[1]], |[q, k]| [q, k]);
    for (row, query) in q.0.chunks(walk.d_head).enumerate() {
        for (column, key) in k.0.chunks(walk.d_head).enumerate().take(row + 1) {
            let dot: f64 = query
                .iter()
                .zip(key)
                .map(|(a, b)| f64::from(*a) * f64::from(*b))
                .sum();
            let score = f64::from(head.scores.0[row * walk.tokens.len() + column]);
            // A window masks keys that are too far back.
            let masked = score == f64::NEG_INFINITY
                && head.pattern.0[row * walk.tokens.len() + column] == 0.0;
            assert!(
                masked || (score - dot * walk.scale).abs() <= 1e-5 * dot.abs().max(1.0),
                "score [{row}, {column}]"
            );
        }
    }
}

#[test]
fn every_number_of_the_walk_follows_from_those_before_it() {
    let models = [
        "",
        r#"positions = "rotary", n_kv_heads = 2, norm = "rms_norm", feed_forward = "swiglu", attention_bias = true"#,
        r#"positions = "alibi", norm_placement = "post", feed_forward = "gelu""#,
        r#"positions = "none", norm = "none", window = 4, attention_scale = 1.0"#,
    ];
    for model in models {
        let Reported { report, .. } = Reported::of(model);
        let walk = report.walk.unwrap();
        assert_eq!(
            (
                walk.layers.len(),
                walk.layers[0].heads.len(),
                walk.tokens.len()
            ),
            (2, 4, 16),
            "{model}"
        );
        check_walk(&walk);
        if !model.contains("alibi") {
            walk.layers
                .iter()
                .flat_map(|layer| &layer.heads)
                .for_each(|head| check_scores(&walk, head));
        }
    }
}

#[test]
fn patterns_scores_and_walk_are_of_the_same_model() {
    let Reported { report, .. } = Reported::of("");
    assert_eq!(report.steps, [0, 1, 2, 3]);
    assert_eq!(
        report
            .patterns
            .iter()
            .filter(|set| set.on == SequenceKind::Probe)
            .count(),
        2
    );
    let (set, walk) = (&report.patterns[0], report.walk.as_ref().unwrap());
    // Steps 1, 2 and 3 are moments: early steps are dense.
    assert_eq!((&set.steps, &set.tokens), (&vec![0, 1, 2, 3], &walk.tokens));
    let packed = |pattern: &Floats| -> Vec<u8> {
        let rows = pattern.0.chunks(16).enumerate();
        rows.flat_map(|(query, row)| {
            row[..=query]
                .iter()
                .map(|weight| (weight * 255.0).round() as u8)
        })
        .collect()
    };
    let expected: Vec<u8> = walk
        .layers
        .iter()
        .flat_map(|layer| &layer.heads)
        .flat_map(|head| packed(&head.pattern))
        .collect();
    // Another batch may round a weight to the other side.
    let close = set.weights[3]
        .0
        .iter()
        .zip(&expected)
        .all(|(a, b)| a.abs_diff(*b) <= 1);
    assert!(close && set.weights[3].0.len() == expected.len());
    let induction = report.scores.iter().find(|series| {
        series.on == SequenceKind::Probe && series.name == Measure::Induction.name()
    });
    assert_eq!(induction.unwrap().values.0.len(), 4 * 8 * 3);
    let names: Vec<&str> = report
        .measures
        .iter()
        .map(|measure| measure.name.as_str())
        .collect();
    assert!(
        report
            .scores
            .iter()
            .all(|series| names.contains(&series.name.as_str())),
        "a score without its formula"
    );
    assert_eq!(report.left_out, Vec::<String>::new());
}

#[test]
fn the_page_is_written_and_a_damaged_run_is_named() {
    let reported = Reported::of("");
    let page = reported
        .open()
        .write_report(ReportQuestion::default())
        .unwrap();
    assert!(fs::metadata(&page).unwrap().len() < 1_000_000);
    let patterns = reported
        .folder
        .path()
        .join("run/patterns/step-2/probe.safetensors");
    fs::write(&patterns, b"nothing").unwrap();
    let before = fs::read(&page).unwrap();
    let error = reported
        .open()
        .write_report(ReportQuestion::default())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("step-2/probe.safetensors") && !error.contains('\n'),
        "{error}"
    );
    assert_eq!(
        fs::read(&page).unwrap(),
        before,
        "the page that was there stays"
    );
}

#[test]
fn accuracy_by_position_is_that_of_inspect_positions() {
    let reported = Reported::of("");
    let page = reported.report.accuracy_by_position.as_ref().unwrap();
    let verb = reported.open().positions(None, Ablation::Mean).unwrap();
    let numbers = |accuracy: &[Option<Estimate>]| -> Vec<[f32; 3]> {
        let of = |at: &Estimate| {
            [at.mean, at.interval.low, at.interval.high].map(|number| number as f32)
        };
        accuracy.iter().flatten().map(of).collect()
    };
    let shown = |Floats(floats): &Floats| -> Vec<[f32; 3]> {
        let (rows, _) = floats.as_chunks::<3>();
        rows.iter()
            .copied()
            .filter(|row| !row[0].is_nan())
            .collect()
    };
    assert!(numbers(&verb.accuracy).len() > 5, "positions are scored");
    assert_eq!(shown(&page.untouched), numbers(&verb.accuracy));
    assert_eq!(page.without.len(), 8);
    for (floats, head) in page.without.iter().zip(&verb.heads) {
        assert_eq!(shown(floats), numbers(&head.accuracy_without));
    }
    // At each position all that are scored are expected to be right as often as the best guess is.
    let best: Vec<f64> = verb.best_accuracy.unwrap().into_iter().flatten().collect();
    assert_eq!(best.len(), numbers(&verb.accuracy).len());
    assert!(
        best.iter().all(|share| (0.25..=1.0).contains(share)),
        "{best:?}"
    );
}

/// Whatever three steps have taught: every circuit of the page is what `inspect circuit` finds, and
/// its edges over training end where the circuit is.
#[test]
fn circuits_are_those_that_inspect_finds() {
    let reported = Reported::of("feed_forward = \"none\"");
    assert_eq!(
        reported.report.edges.len(),
        3,
        "{:?}",
        reported.report.left_out
    );
    for (circuit, pairs) in reported.report.edges.iter().zip(Corruption::ALL) {
        assert_eq!(circuit.pairs, pairs);
        let found = reported
            .open()
            .circuit(CircuitQuestion::for_page(pairs))
            .unwrap();
        assert_eq!(circuit.edges.len(), 106);
        for (shown, edge) in circuit.edges.iter().zip(&found.edges) {
            assert_eq!(shown.source, edge.source.to_string());
            assert_eq!(shown.destination, edge.destination.to_string());
            assert!((shown.effect - edge.effect.mean).abs() < 1e-3);
            assert_eq!(shown.in_circuit, edge.in_circuit);
        }
        let expected = found.circuit.unwrap();
        assert_eq!(circuit.sentences, expected.sentences);
        let in_circuit = circuit.edges.iter().filter(|edge| edge.in_circuit);
        assert_eq!(in_circuit.count(), expected.edges.len());
        let (first, last) = (&circuit.curve[0], circuit.curve.last().unwrap());
        assert_eq!((first.edges, last.edges), (0, 106));
        assert!(first.share.abs() < 1e-3 && (last.share - 1.0).abs() < 1e-3);
    }
}

#[test]
fn a_model_without_edges_has_no_circuit_and_one_of_many_edges_is_asked_for() {
    let post = Reported::of("norm_placement = \"post\"");
    assert!(post.report.edges.is_empty());
    let deep = Reported::of_layers(4, "feed_forward = \"gelu\"");
    assert!(deep.report.edges.is_empty());
    let left_out = deep.report.left_out.join("; ");
    assert!(left_out.contains("report --circuits"), "{left_out}");
    let asked = ReportQuestion {
        circuits: true,
        ..ReportQuestion::default()
    };
    assert_eq!(deep.open().report(asked).unwrap().edges.len(), 3);
}
