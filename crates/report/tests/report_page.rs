//! The report of a run that is written down: its sentences, its data, its size.

use std::collections::BTreeMap;

use headlight_heads::{
    Ablation, HeadName, HeadSet, Interval, Measure, Reader, Role, RoleEvent, RoleRange, ScoreName,
    SequenceKind,
};
use headlight_report::{
    Bytes, Control, Floats, HeadPairs, HeadPositions, MeasureText, PatternSet, RelationOfHead,
    RelationSeen, ReportData, RunFacts, ScoreSeries, SeenScore, WalkData, finding, headline,
    heads_that_matter, report_page,
};
use headlight_run::{EventRow, HeadsUse, Left, MetricsRow, UsesRow};

const HOSTILE: [&str; 5] = [
    "</script><script>throw 1</script>",
    "<!-- \"'&",
    "\n\r\t\0\u{2028}",
    "\u{202e}live",
    "",
];

const INDUCTION: Role = Role::Of(Measure::Induction);
const PREVIOUS_TOKEN: Role = Role::Of(Measure::PreviousToken);

fn head(name: &str) -> HeadName {
    name.parse().unwrap()
}

fn left(accuracy: f64) -> Left {
    Left {
        accuracy,
        interval: Interval {
            low: accuracy - 0.01,
            high: accuracy + 0.01,
        },
        loss: 1.0,
    }
}

fn uses(
    heads: &[&str],
    name: HeadSet,
    ablated: Option<f64>,
    through: &[(Reader, f64)],
) -> HeadsUse {
    HeadsUse {
        heads: heads.iter().map(|name| head(name)).collect(),
        name,
        ablated: ablated.map(left),
        through: through
            .iter()
            .map(|&(reader, accuracy)| (reader, left(accuracy)))
            .collect(),
    }
}

fn metrics(step: usize, accuracy: f64) -> MetricsRow {
    MetricsRow {
        step,
        loss: None,
        validation: 1.0,
        accuracy,
        exact: 0.0,
        in_context: None,
        training_accuracy: None,
        breakdown: BTreeMap::new(),
        learning_rate: None,
        gradient_norm: None,
    }
}

/// Two layers of one head: the first looks back, the second is an induction head from step 20 on.
fn data() -> ReportData {
    let emerged = |step, name: &str, role| EventRow {
        step,
        event: RoleEvent::Emerged,
        head: head(name),
        role,
        value: 0.6,
        positions: None,
    };
    ReportData {
        finding: Vec::new(),
        headline: None,
        first: Vec::new(),
        run: RunFacts {
            name: "run".to_owned(),
            task: "repeat".to_owned(),
            model: "2 layers".to_owned(),
            config: String::new(),
            seed: 0,
            version: "0".to_owned(),
            device: "flex".to_owned(),
            steps: 30,
            checkpoints: vec![30],
            validation: 256,
            seconds: 1.0,
            tokens_per_second: 1.0,
            loss: 0.1,
            accuracy: 0.9,
            floor: Some(0.0),
            chance: 0.25,
            best_accuracy: Some(0.95),
            breakdown: BTreeMap::new(),
            window: None,
        },
        metrics: vec![
            metrics(0, 0.25),
            metrics(10, 0.3),
            metrics(20, 0.7),
            metrics(30, 0.9),
        ],
        measures: vec![MeasureText::from(ScoreName::Measure(Measure::Induction))],
        events: vec![
            emerged(20, "L1H0", INDUCTION),
            emerged(30, "L0H0", PREVIOUS_TOKEN),
        ],
        heads: vec![(head("L0H0"), PREVIOUS_TOKEN), (head("L1H0"), INDUCTION)],
        steps: vec![0, 30],
        scores: vec![ScoreSeries {
            on: SequenceKind::Probe,
            name: "induction".to_owned(),
            null: 0.1,
            ceiling: 1.0,
            values: Floats(vec![
                0.1, 0.1, 0.1, 0.11, 0.1, 0.12, 0.2, 0.2, 0.2, 0.95, 0.94, 0.96,
            ]),
        }],
        patterns: vec![PatternSet {
            on: SequenceKind::Probe,
            tokens: HOSTILE.map(str::to_owned).to_vec(),
            relations: Vec::new(),
            steps: vec![30],
            weights: vec![Bytes(vec![51; 30])],
            value_norms: None,
        }],
        shuffled: Vec::new(),
        relations: Vec::new(),
        answers_lost: Vec::new(),
        accuracy_by_position: None,
        uses: vec![UsesRow {
            step: 30,
            sequences: 8,
            by: Ablation::Mean,
            missed: Vec::new(),
            untouched: left(0.9),
            uses: vec![
                uses(
                    &["L0H0"],
                    HeadSet::LooksLike(PREVIOUS_TOKEN),
                    Some(0.3),
                    &[],
                ),
                uses(&["L1H0"], HeadSet::LooksLike(INDUCTION), Some(0.25), &[]),
                uses(
                    &["L0H0"],
                    HeadSet::Layer,
                    None,
                    &[
                        (Reader::Keys, 0.35),
                        (Reader::Queries, 0.85),
                        (Reader::Values, 0.88),
                    ],
                ),
            ],
        }],
        positions: vec![
            HeadPositions {
                ranges: Vec::new(),
                check: None,
                writes: Some(0.5),
                scores: vec![(Measure::Induction, Floats(vec![0.25, 0.5]))],
            };
            2
        ],
        controls: vec![Control {
            role: INDUCTION,
            heads: vec![head("L0H0")],
            left: left(0.3),
        }],
        circuits: vec![
            HeadPairs {
                qk: Vec::new(),
                ov: Vec::new()
            };
            2
        ],
        program: None,
        seeds: None,
        stream: None,
        walk: None,
        why: None,
        edges: Vec::new(),
        left_out: Vec::new(),
    }
}

/// What a browser finds between the tags of the data.
fn data_of(html: &str) -> ReportData {
    let start = html.find("id=\"data\">").expect("data") + "id=\"data\">".len();
    let end = start + html[start..].find("</script>").expect("an end");
    serde_json::from_str(&html[start..end]).expect("the data as it was")
}

#[test]
fn the_finding_says_when_what_and_for_what() {
    assert_eq!(
        finding(&data()),
        [
            "Between steps 10 and 20 the induction head L1H0 formed. Accuracy was 0.300 at step 10 and is 0.900 at the end, \
             step 30 (guessing: 0.250).",
            "It looks like one: L1H0 looks at the token that followed the current token last time, with 0.95 of its attention \
             (95 % interval 0.94 to 0.96; the most is 1). Evenly spread attention would give 0.10, the untrained head gave 0.11.",
            "The model uses it: with it off (its mean over sequences and positions in place of the blend of values), \
             accuracy goes from 0.900 to 0.250. For comparison, as many heads of layer 1 that no test marks as needed leave \
             0.300 at worst, in 1 draw (without L0H0).",
            "What layer 0 wrote is needed in the keys of later layers: hidden from them alone, accuracy is 0.350; hidden from \
             others, 0.850 from the queries and 0.880 from the values.",
        ]
    );
}

#[test]
fn the_first_lines_say_role_steps_score_and_cost() {
    let mut data = data();
    data.uses[0].uses[1].through = [(Reader::Logits, left(0.5)), (Reader::Keys, left(0.9))].into();
    let [induction, previous] = &heads_that_matter(&data)[..] else {
        panic!("two roles are held");
    };
    assert_eq!((induction.role, previous.role), (INDUCTION, PREVIOUS_TOKEN));
    assert_eq!((induction.more, &induction.together), (0, &None));
    let line = &induction.heads[0];
    assert_eq!((line.head, line.formed), (head("L1H0"), Some((10, 20))));
    let score = SeenScore {
        value: f64::from(0.95_f32),
        low: f64::from(0.94_f32),
        high: f64::from(0.96_f32),
        null: 0.1,
    };
    assert_eq!(line.score, Some(score));
    let without = line.without.as_ref().unwrap();
    assert_eq!((without.accuracy, without.fall), (0.25, Some(0.9 - 0.25)));
    // Hidden from keys alone accuracy stays.
    assert_eq!(without.through, [Reader::Logits]);
    assert_eq!(previous.heads[0].formed, Some((20, 30)));
    assert_eq!(previous.heads[0].score, None, "it was not measured");
}

#[test]
fn a_role_at_some_positions_has_a_line_and_a_head_of_no_use_and_no_role_has_none() {
    let mut data = data();
    data.heads = vec![(head("L0H0"), Role::Mixed), (head("L1H0"), Role::Mixed)];
    data.uses[0].uses[1].ablated = Some(left(0.9));
    let [needed] = &heads_that_matter(&data)[..] else {
        panic!("one head is needed");
    };
    assert_eq!(
        (needed.role, needed.heads[0].head),
        (Role::Mixed, head("L0H0"))
    );
    data.positions[1].ranges = vec![RoleRange {
        role: Measure::Induction,
        first: 9,
        last: 27,
        share: 0.9,
        low: 0.8,
        high: 1.0,
        last_low: 26,
        last_high: 28,
        writes: None,
    }];
    let groups = heads_that_matter(&data);
    assert_eq!(
        (groups[0].role, groups[0].heads[0].positions),
        (INDUCTION, Some((9, 27)))
    );
    assert_eq!(
        groups[0].heads[0].formed, None,
        "the whole head emerged, the range did not"
    );
}

#[test]
fn of_many_heads_the_ones_that_cost_most_are_listed() {
    let mut data = data();
    data.heads = (0..20)
        .map(|head| (HeadName { layer: 0, head }, INDUCTION))
        .collect();
    let costly = HeadName { layer: 0, head: 17 };
    data.uses[0].uses[0].heads = vec![costly];
    let [group] = &heads_that_matter(&data)[..] else {
        panic!("one role is held");
    };
    assert_eq!((group.heads.len(), group.more), (8, 12));
    assert!(group.heads.iter().any(|line| line.head == costly));
}

#[test]
fn the_head_that_follows_a_relation_is_named_with_its_nulls() {
    let mut data = data();
    let follows = |value: f64, distance| {
        Some(RelationOfHead {
            value,
            low: value - 0.01,
            high: value + 0.01,
            distance: Some(distance),
            shuffled: Some(0.05),
            since: Some((200, 300)),
        })
    };
    data.relations = vec![RelationSeen {
        name: "verb→subject".to_owned(),
        pairs: 40,
        uniform: 0.1,
        heads: vec![follows(0.9, 0.895), follows(0.6, 0.2)],
    }];
    assert_eq!(
        headline(&data),
        Some(head("L1H0")),
        "it stands further above its nulls"
    );
    assert_eq!(
        finding(&data)[0],
        "On the task, L1H0 follows verb→subject (0.60, since step 300)."
    );
    assert_eq!(
        finding(&data)[2],
        "Most clearly L1H0 follows verb→subject, since step 300: it gives the source 0.60 of its attention (95 % interval \
         0.59 to 0.61; evenly spread attention 0.10)."
    );
    assert_eq!(
        finding(&data)[3],
        "L1H0 was measured on 40 pairs of words of verb→subject. Evenly spread attention gives 0.10, the head itself 0.20 at \
         the same distances to other words, 0.05 when the words are shuffled. Of 2 heads and relations this pair stands out \
         most."
    );
    data.relations[0].heads = vec![follows(0.2, 0.195), follows(0.1, 0.2)];
    assert!(
        finding(&data)
            .iter()
            .all(|sentence| !sentence.contains("verb→subject"))
    );
}

#[test]
fn a_head_that_costs_nothing_is_not_said_to_be_used() {
    let mut data = data();
    data.uses[0].uses[1].ablated = Some(left(0.9));
    assert!(finding(&data)[2].starts_with("The model does without it: "));
}

#[test]
fn without_a_role_nothing_is_claimed() {
    let mut data = data();
    for (_, role) in &mut data.heads {
        *role = Role::Mixed;
    }
    let finding = finding(&data);
    assert_eq!(finding.len(), 1);
    let sentence = &finding[0];
    assert!(
        sentence.starts_with("After 30 steps no head looks like one of the roles"),
        "{sentence}"
    );
    for measure in Measure::BUILT_IN {
        assert!(sentence.contains(measure.name()), "{measure}: {sentence}");
    }
}

#[test]
fn of_equal_heads_the_first_is_shown() {
    let mut data = data();
    for (_, role) in &mut data.heads {
        *role = INDUCTION;
    }
    assert_eq!(headline(&data), Some(head("L1H0")), "it scores more");
    let Floats(values) = &mut data.scores[0].values;
    let (first, last) = (values.len() - 6, values.len() - 3);
    values.copy_within(last.., first);
    assert_eq!(headline(&data), Some(head("L0H0")), "both score the same");
}

#[test]
fn the_page_holds_the_data_as_it_is() {
    let mut data = data();
    let html = report_page(data.clone()).unwrap();
    (data.finding, data.headline) = (finding(&data), Some(head("L1H0")));
    // Through JSON a number may lose its last bit.
    let first = serde_json::to_string(&heads_that_matter(&data)).unwrap();
    data.first = serde_json::from_str(&first).unwrap();
    assert_eq!(data_of(&html), data);
    for hostile in &HOSTILE[..2] {
        assert!(
            !html.contains(hostile),
            "{hostile} stands in the page as markup"
        );
    }
}

#[test]
fn what_is_too_large_is_left_out_and_said() {
    let mut data = data();
    data.walk = Some(WalkData {
        tokens: Vec::new(),
        d_model: 1,
        directions: None,
        d_head: 1,
        scale: 1.0,
        scale_name: String::new(),
        replaces_stream: false,
        written: vec![("embedding".to_owned(), Floats(vec![0.5; 1_000_000]))],
        layers: Vec::new(),
    });
    let html = report_page(data).unwrap();
    assert!(html.len() <= 5_000_000, "{} bytes", html.len());
    let read = data_of(&html);
    assert_eq!(read.walk, None);
    assert_eq!(read.patterns.len(), 1);
    assert_eq!(
        read.left_out,
        ["the walk: the page would be larger than 5 MB"]
    );
}

#[test]
fn without_javascript_there_is_a_table() {
    let html = report_page(data()).unwrap();
    let table = &html[html.find("<noscript>").unwrap()..html.find("</noscript>").unwrap()];
    assert!(
        table.contains("<tr><td>L1H0</td><td>induction</td><td>0.950</td><td>0.250</td></tr>"),
        "{table}"
    );
}
