//! Every kind of text by every kind of tokens: trained, written on from, exported and explored; or
//! refused in one line.

mod common;

use std::{collections::HashMap, fs, path::Path, str::FromStr, sync::mpsc, thread};

use common::{Workshop, ask, assert_ok, assert_one_line, json as json_of};
use headlight_heads::Ablation;
use headlight_inspect::Subject;
use headlight_residual::Generation;
use headlight_run::{Config, Error, RunDirectory};
use headlight_tasks::train_bpe;
use headlight_trainer::Setup;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokenizers::Tokenizer;

const SHIPPED: &str = include_str!("../../../data/lighthouse.txt");

/// What is asked of every text; each finds the text at `a.txt`, and tokenizers beside it.
const KINDS: [&str; 6] = [
    "\"characters\"",
    "\"bytes\"",
    "\"words\"",
    "\"bpe.json\"",
    "\"pieces.json\"",
    "{ train = \"bpe\", size = 290 }",
];

/// As `SentencePiece` writes them: likelier pieces win, `▁` begins a word, bytes for what is unknown.
fn sentence_pieces() -> String {
    let mut vocabulary = vec![json!(["<unk>", 0.0])];
    for byte in 0..=u8::MAX {
        vocabulary.push(json!([format!("<0x{byte:02X}>"), -20.0]));
    }
    for (piece, score) in [
        ("▁", -3.0),
        ("▁the", -2.0),
        ("▁lamp", -4.0),
        ("e", -3.0),
        ("a", -3.0),
        ("ing", -4.0),
    ] {
        vocabulary.push(json!([piece, score]));
    }
    let spaces = json!({ "type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true });
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": spaces, "post_processor": null,
        "decoder": { "type": "Sequence", "decoders": [{ "type": "ByteFallback" }, spaces] },
        "model": { "type": "Unigram", "unk_id": 0, "byte_fallback": true, "vocab": vocabulary },
    })
    .to_string()
}

fn write_tokenizers(folder: &Path) {
    let trained = train_bpe(&[SHIPPED], 400).unwrap();
    fs::write(folder.join("bpe.json"), trained.json()).unwrap();
    fs::write(folder.join("pieces.json"), sentence_pieces()).unwrap();
}

fn config(folder: &Path, tokens: &str) -> Config {
    // In single quotes TOML takes a path as it is.
    let place = |name: &str| format!("'{}'", folder.join(name).display());
    let tokens = tokens
        .replace("\"bpe.json\"", &place("bpe.json"))
        .replace("\"pieces.json\"", &place("pieces.json"));
    let text = format!(
        "task = {{ name = \"text\", path = {}, tokens = {tokens} }}
         model = {{ n_layers = 1, n_heads = 1, d_model = 8, n_ctx = 12 }}
         train = {{ steps = 2, batch_size = 2, learning_rate = 1e-3 }}",
        place("a.txt")
    );
    Config::parse(&text, "a.toml", &[]).unwrap()
}

/// Trains on the text in `folder` for two steps.
fn trained(folder: &Path, tokens: &str) -> Result<RunDirectory, Error> {
    let setup = Setup::prepare(config(folder, tokens), "flex")?;
    let run = setup.create(&folder.join("run"), true)?;
    setup.run(&run).unwrap();
    Ok(run)
}

/// Ids of the names that the explorer shows.
fn ids(run: &RunDirectory, names: &Value) -> Vec<u32> {
    let known = run.vocabulary().unwrap();
    let ids: HashMap<&str, u32> = known.iter().map(String::as_str).zip(0..).collect();
    let names = names.as_array().unwrap().iter();
    names.map(|name| ids[name.as_str().unwrap()]).collect()
}

/// Generates, exports and asks the explorer its own first question.
fn assert_works(what: &str, run: &RunDirectory, folder: &Path) {
    let open = || Subject::open(run.path(), "flex").unwrap();
    let mut streamed = String::new();
    let settings = Generation {
        tokens: 20,
        ..Generation::default()
    };
    let written = open()
        .generate(&[], &[], settings.clone(), |piece| streamed += piece)
        .unwrap();
    assert_eq!(streamed, written[0].text, "{what}");
    for name in ["Ġ", "Ċ", "▁", "<0x", "0xC", "␣"] {
        assert!(!streamed.contains(name), "{what}: {streamed:?}");
    }

    let (sender, receiver) = mpsc::channel();
    let subject = open();
    thread::spawn(move || {
        subject.serve(0, Ablation::Zero, move |address| {
            sender.send(address).unwrap();
        })
    });
    let host = receiver.recv().unwrap().to_string();
    let (status, prompt) = ask(&host, "/sample", &json!({ "row": 0 }));
    assert_eq!(status, 200, "{what}");
    let (status, answer) = ask(&host, "/explore", &json!({ "prompt": prompt }));
    assert_eq!(status, 200, "{what}: {prompt}: {answer}");
    let asked = ids(run, &answer["tokens"]);
    assert!(
        (1..=12).contains(&asked.len()),
        "{what}: {prompt}: {asked:?}"
    );
    // The prompt is a cut of a validation sequence: the model sees what it was measured on.
    let prompt = prompt.as_str().unwrap();
    let subject = open();
    let again = subject
        .generate(&[prompt.to_owned()], &[], settings, |_| {})
        .unwrap();
    assert_eq!(ids(run, &json!(again[0].prompt)), asked, "{what}");
    assert!(
        again[0].text.starts_with(prompt),
        "{what}: {prompt:?}: {:?}",
        again[0].text
    );

    let to = folder.join("exported");
    let _ = fs::remove_dir_all(&to);
    open().export(&to, None).unwrap();
    let exported = fs::read_to_string(to.join("tokenizer.json")).unwrap();
    let found = Tokenizer::from_str(&exported)
        .unwrap()
        .encode(prompt, true)
        .unwrap();
    assert_eq!(found.get_ids(), asked, "{what}: {prompt:?}");
}

/// The text by every kind of tokens. `refusals` are kinds that must be refused, and with what.
fn check(name: &str, text: &[u8], refusals: &[(&str, &str)]) {
    let folder = TempDir::new().unwrap();
    write_tokenizers(folder.path());
    fs::write(folder.path().join("a.txt"), text).unwrap();
    for kind in KINDS {
        let what = format!("{name} by {kind}");
        let refusal = refusals
            .iter()
            .find(|(refused, _)| *refused == "all" || *refused == kind);
        match (trained(folder.path(), kind), refusal) {
            (Ok(run), None) => assert_works(&what, &run, folder.path()),
            (Err(error), Some((_, part))) => {
                let said = error.to_string();
                assert!(error.kind().is_wrong_input(), "{what}: {said}");
                assert!(
                    said.contains(part) && said.contains("a.txt"),
                    "{what}: {said}"
                );
                assert!(
                    !said.contains('\n') && error.key_name() == Some("task.path"),
                    "{said}"
                );
            }
            (Ok(_), Some(_)) => panic!("{what} was accepted"),
            (Err(error), None) => panic!("{what}: {error}"),
        }
    }
}

#[test]
fn an_empty_text_is_refused() {
    check("nothing", b"", &[("all", "is empty")]);
    check(
        "a mark alone",
        "\u{feff}".as_bytes(),
        &[("all", "is empty")],
    );
}

#[test]
fn bytes_that_are_no_utf8_are_refused() {
    let text = [SHIPPED.as_bytes(), b"\xff\xfe the lamp"].concat();
    check("no UTF-8", &text, &[("all", "0xFF is not UTF-8")]);
}

#[test]
fn one_line() {
    let line = "the lamp is lit and the keeper's dog is asleep again, ".repeat(40);
    check("one line", line.as_bytes(), &[]);
    let short = [("all", "a sequence needs model.n_ctx + 1 = 13")];
    check("a short line", b"the lamp", &short);
}

#[test]
fn lines_that_end_as_on_windows() {
    check(
        "CRLF",
        SHIPPED[..6000].replace('\n', "\r\n").as_bytes(),
        &[],
    );
}

#[test]
fn a_byte_order_mark() {
    let text = format!("\u{feff}{}", &SHIPPED[..6000]);
    check("a mark", text.as_bytes(), &[]);
}

#[test]
fn devanagari() {
    check(
        "Devanagari",
        "दीपक रात भर जलता है। नमस्ते दुनिया, समुद्र शांत है।\n"
            .repeat(60)
            .as_bytes(),
        &[],
    );
}

#[test]
fn chinese_and_japanese() {
    check(
        "CJK",
        "灯塔在夜里亮着。海は静かだ、ランプが光る。"
            .repeat(60)
            .as_bytes(),
        &[],
    );
}

#[test]
fn emoji_with_joiners() {
    check(
        "emoji",
        "👩\u{200d}💻 👍🏽 🏳\u{fe0f}\u{200d}🌈 ❤\u{fe0f} 🇩🇪 e\u{301} "
            .repeat(80)
            .as_bytes(),
        &[],
    );
}

#[test]
fn letters_without_white_space() {
    let dna: String = (0..20_000_u32)
        .map(|at| ['A', 'C', 'G', 'T'][(at.wrapping_mul(2_654_435_761) >> 30) as usize])
        .collect();
    check(
        "DNA",
        dna.as_bytes(),
        &[("\"words\"", "has 1 tokens in its first 90 %")],
    );
}

/// A text that is large enough for the cache, in processes of its own.
#[test]
fn a_large_text_is_encoded_once() {
    let workshop = Workshop::new();
    write_tokenizers(&workshop.path(""));
    let line = |number: u32| {
        let steps = number * 7;
        format!("{number}: the lamp is lit, and the keeper counts {steps} steps to the sea\n")
    };
    let text: String = (0..20_000).map(line).collect();
    assert!(text.len() > 1 << 20);
    workshop.write("a.txt", &text);
    let cache = workshop.path("cache/tokens");
    let kept = || -> Vec<Vec<u8>> {
        let files = fs::read_dir(&cache).into_iter().flatten();
        let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        files.sort();
        files
            .into_iter()
            .map(|file| fs::read(file).unwrap())
            .collect()
    };
    for kind in KINDS {
        let toml = format!(
            "task = {{ name = \"text\", path = \"a.txt\", tokens = {kind} }}
             model = {{ n_layers = 1, n_heads = 1, d_model = 8, n_ctx = 12 }}
             train = {{ steps = 2, batch_size = 2, learning_rate = 1e-3 }}"
        );
        let config = workshop.write("a.toml", &toml);
        assert_ok(&workshop.train(&config, &["--out", "run", "--overwrite"]));
        let written = json_of(&workshop.inspect("run", &["generate", "--stop", "\n", "--json"]));
        assert!(
            !written["text"].as_str().unwrap().contains(['Ġ', '▁']),
            "{written}"
        );
    }
    // Bytes need none, and a second start changes nothing.
    let files = kept();
    assert_eq!(files.len(), 5);
    let config = workshop.path("a.toml");
    assert_ok(&workshop.train(&config, &["--out", "again"]));
    assert!(kept() == files);
    let metrics = |run: &str| fs::read(workshop.path(run).join("metrics.jsonl")).unwrap();
    assert_eq!(metrics("again"), metrics("run"));

    // Damaged files are made anew.
    for file in fs::read_dir(&cache).unwrap() {
        let path = file.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        bytes[100] ^= 1;
        fs::write(path, bytes).unwrap();
    }
    assert_ok(&workshop.train(&config, &["--out", "mended"]));
    assert_eq!(metrics("mended"), metrics("run"));
    assert_eq!(kept().iter().filter(|file| files.contains(file)).count(), 1);

    // Where nothing can be kept, memory holds the tokens, and one line says so.
    fs::remove_dir_all(workshop.path("cache")).unwrap();
    workshop.write("cache", "no folder");
    let output = workshop.train(&config, &["--out", "held"]);
    assert_ok(&output);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.matches("are kept in memory").count(), 1, "{said}");
    assert_eq!(metrics("held"), metrics("run"));

    // A text that was changed is another text, though it has the same size.
    workshop.write("a.txt", &text.replace("keeper", "sailor"));
    assert_ok(&workshop.train(&config, &["--out", "other"]));
    assert_ne!(metrics("other"), metrics("run"));
    fs::remove_file(workshop.path("a.txt")).unwrap();
    let output = workshop.train(&config, &["--out", "none"]);
    assert_one_line(&output, 2, &["a.txt", "cannot read"]);
}
