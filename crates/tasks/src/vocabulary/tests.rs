use std::collections::{BTreeMap, BTreeSet};

use headlight_run::{
    GrammarConfig, TaskConfig, TextConfig, TextTokens, TokenTrainer, TrainedTokens,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use unicode_segmentation::UnicodeSegmentation;

use super::*;

/// Texts of ten scripts, with what words of them consist of.
const SCRIPTS: [&str; 12] = [
    "The keeper’s lamp isn't lit, at 9.30 (it's 1,000 m away): U.S.A.!",
    "Über die Straße läuft ein Mädchen; 3,5 km.",
    "de\u{301}compose\u{301} cafe\u{301} nai\u{308}ve",
    "Маяк горит всю ночь. Всё тихо.",
    "Ο φάρος ανάβει τη νύχτα.",
    "المنارة تضيء في اللَّيل.",
    "המגדלור מאיר בלילה.",
    "दीपक रात भर जलता है। नमस्ते दुनिया १२३",
    "등대가 밤새 빛난다.",
    "灯塔在夜里亮着。",
    "とうだいは夜に光る。",
    "👩\u{200d}💻 👍🏽 🏳\u{fe0f}\u{200d}🌈 ❤\u{fe0f} 🇩🇪🇫🇷",
];

fn sorted<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    items.collect::<BTreeSet<T>>().into_iter().collect()
}

fn of_words(text: &str) -> Vocabulary {
    Vocabulary::of_words(sorted(words(text).map(str::to_owned)))
}

/// Strings of any characters, with many of those that tokenizers treat in their own ways.
fn any_text() -> impl Strategy<Value = String> {
    let special = prop::sample::select(
        "abcABC   \n\r\t'’.,:;-_09é\u{301}\u{308}\u{200d}\u{200c}न\u{94d}मس日かカ한👩💻🏽🇩🇪\u{fe0f}\u{feff}␣\\\u{a0}\u{3000}"
            .chars()
            .collect::<Vec<char>>(),
    );
    let character = prop_oneof![8 => special, 1 => any::<char>()];
    prop::collection::vec(character, 0..60)
        .prop_map(|characters| characters.into_iter().collect::<String>())
}

proptest! {
    #[test]
    fn what_was_encoded_comes_back(text in any_text()) {
        let expected = without_mark(&text).to_owned();
        let trained = train_bpe(&["the lamp the lamp é"], 270).unwrap();
        for vocabulary in [
            Vocabulary::Bytes,
            Vocabulary::of_characters(sorted(text.chars())),
            of_words(&expected),
            Vocabulary::Pieces(trained),
        ] {
            let tokens = vocabulary.encode(&text).unwrap();
            prop_assert_eq!(&vocabulary.decode(&tokens), &expected);
            let mut stream = TextStream::new(&vocabulary);
            let mut spelled: String = tokens.iter().map(|&token| stream.push(token)).collect();
            spelled += &stream.rest();
            prop_assert_eq!(&spelled, &expected);
        }
    }

    #[test]
    fn sentence_pieces_come_back(text in any_text()) {
        // Their mark for a space is no text of its own, and one space at the beginning is theirs.
        let text = text.replace(['▁', '\u{feff}'], "");
        prop_assume!(!text.starts_with(' '));
        for json in [unigram("the lamp", "always", true), unigram("the lamp", "first", false), llama("the lamp")] {
            let vocabulary = pieces(&json);
            let tokens = vocabulary.encode(&text).unwrap();
            prop_assert_eq!(vocabulary.decode(&tokens), text.clone());
        }
    }

    #[test]
    fn words_in_a_row_are_the_text(text in any_text()) {
        prop_assert_eq!(words(&text).collect::<String>(), text);
    }

    #[test]
    fn a_vocabulary_comes_back_from_a_run_s_files(text in any_text()) {
        let trained = TextTokens::Trained(TrainedTokens { train: TokenTrainer::Bpe, size: 270 });
        for (kind, vocabulary) in [
            (TextTokens::Bytes, Vocabulary::Bytes),
            (TextTokens::Characters, Vocabulary::of_characters(sorted(text.chars()))),
            (TextTokens::Words, of_words(without_mark(&text))),
            (trained, Vocabulary::Pieces(train_bpe(&[&text], 270).unwrap())),
        ] {
            let names = vocabulary.names();
            let distinct: BTreeSet<&String> = names.iter().collect();
            prop_assert_eq!(distinct.len(), names.len());
            prop_assert!(names.iter().all(|name| !name.contains([' ', '\n', '\r', '\t'])));
            let task = TaskConfig::Text(TextConfig { path: "a.txt".into(), tokens: kind });
            let tokenizer = vocabulary.tokenizer_json();
            let tokenizer = tokenizer.as_deref().map(str::as_bytes);
            let again = Vocabulary::of_run(&task, names.clone(), tokenizer).unwrap();
            prop_assert_eq!(again.names(), names);
            prop_assert_eq!(again.len(), vocabulary.len());
            prop_assert_eq!(again.encode(&text), vocabulary.encode(&text));
        }
    }
}

#[test]
fn words_are_those_of_unicode() {
    for text in SCRIPTS {
        let expected: Vec<&str> = text
            .split_word_bounds()
            .filter(|word| !word.trim().is_empty())
            .collect();
        let found: Vec<&str> = words(text).map(str::trim).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn white_space_is_a_token_unless_it_is_one_space_before_a_word() {
    let found: Vec<&str> = words("a  b\n\n c\r\n\td — e\u{a0}f ").collect();
    let expected = [
        "a", " ", " b", "\n", "\n", " c", "\r\n", "\t", "d", " —", " e", "\u{a0}", "f", " ",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_byte_order_mark_is_no_token() {
    let text = "\u{feff}lamp";
    for vocabulary in [
        Vocabulary::Bytes,
        Vocabulary::of_characters(vec!['a', 'l', 'm', 'p']),
        of_words("lamp"),
        Vocabulary::of_names(vec!["lamp".to_owned()]),
        pieces(&unigram("lamp", "always", true)),
    ] {
        assert_eq!(vocabulary.encode(text), vocabulary.encode("lamp"));
    }
}

#[test]
fn what_is_no_token_is_named() {
    let unknown = |vocabulary: Vocabulary, text: &str| vocabulary.encode(text).unwrap_err().0;
    assert_eq!(
        unknown(Vocabulary::of_characters(vec!['a']), "a\u{301}"),
        "\\u{301}"
    );
    assert_eq!(unknown(of_words("the lamp"), "the lamps"), "␣lamps");
    assert_eq!(
        unknown(Vocabulary::of_names(vec!["a".to_owned()]), "a  bc"),
        "bc"
    );
}

#[test]
fn a_vocabulary_that_is_no_run_s_is_refused() {
    let text = |tokens| {
        TaskConfig::Text(TextConfig {
            path: "a.txt".into(),
            tokens,
        })
    };
    let refused = |tokens, names: &[&str], tokenizer: Option<&str>| {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        let opened = Vocabulary::of_run(&text(tokens), names, tokenizer.map(str::as_bytes));
        opened.err().map(|error| error.to_string()).unwrap()
    };
    let from = |path: &str| TextTokens::Tokenizer(path.into());
    for (said, part) in [
        (
            refused(TextTokens::Characters, &["ab"], None),
            "vocabulary.json: ab: is no character",
        ),
        (
            refused(TextTokens::Characters, &["b", "a"], None),
            "not in their order",
        ),
        (
            refused(TextTokens::Bytes, &["a"], None),
            "has not 256 names",
        ),
        (
            refused(TextTokens::Words, &["\\x"], None),
            "vocabulary.json: \\x: is no word",
        ),
        (
            refused(from("t.json"), &["a"], None),
            "tokenizer.json: is missing",
        ),
        (
            refused(from("t.json"), &["a"], Some("{")),
            "tokenizer.json: is no tokenizer.json",
        ),
        (
            refused(
                from("t.json"),
                &["a"],
                Some(&unigram("lamp", "always", true)),
            ),
            "its tokens differ from vocabulary.json",
        ),
    ] {
        assert!(said.contains(part), "{said}");
    }
    let names = TaskConfig::Grammar(GrammarConfig::default());
    assert_eq!(
        Vocabulary::of_run(&names, vec!["a".to_owned()], None)
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn a_stop_is_a_text_however_it_was_cut() {
    let text = "the lamp\n\nthe lamp";
    let trained = Vocabulary::Pieces(train_bpe(&[&text.repeat(9)], 300).unwrap());
    for vocabulary in [Vocabulary::Bytes, of_words(text), trained] {
        let tokens = vocabulary.encode(text).unwrap();
        for stop in [" ", "\n\n", "the", " lamp"] {
            let found = vocabulary.stop(stop).unwrap();
            let comes = (1..=tokens.len())
                .find(|&count| vocabulary.has_come_to(&found, &tokens[..count]))
                .unwrap();
            let written = |count: usize| vocabulary.decode(&tokens[..count]).contains(stop);
            assert!(written(comes) && !written(comes - 1), "{stop:?}");
        }
    }
    // Names are no text: t1 is not in t10.
    let names = Vocabulary::of_names(vec!["t1".to_owned(), "t10".to_owned()]);
    let stop = names.stop("t1 t10").unwrap();
    assert!(!names.has_come_to(&stop, &[1, 1]) && names.has_come_to(&stop, &[1, 0, 1]));
    assert_eq!(names.stop("t2").unwrap_err().0, "t2");
    assert!(Vocabulary::Bytes.stop("").is_err());
}

#[test]
fn a_cut_window_reads_back_after_a_few_tokens() {
    let bytes: Vec<u32> = "é lamp é".bytes().map(u32::from).collect();
    // Both ends are inside a character.
    let window = &bytes[1..bytes.len() - 1];
    let readable = Vocabulary::Bytes.readable(window).unwrap();
    assert_eq!(Vocabulary::Bytes.decode(readable), " lamp ");
    let vocabulary = pieces(&unigram("the lamp burns", "always", true));
    let tokens = vocabulary
        .encode("the lamp burns and the lamp burns")
        .unwrap();
    for start in 0..tokens.len() - 1 {
        let readable = vocabulary.readable(&tokens[start..]).unwrap();
        let text = vocabulary.decode(readable);
        assert_eq!(vocabulary.encode(&text).unwrap(), readable);
    }
}

#[test]
fn training_a_tokenizer_twice_gives_the_same() {
    let text = include_str!("../../../../data/lighthouse.txt");
    let first = train_bpe(&[text], 600).unwrap();
    assert_eq!(first.len(), 600);
    for _ in 0..3 {
        assert_eq!(train_bpe(&[text], 600).unwrap().json(), first.json());
    }
    // The text's own words are single tokens now, and it is shorter.
    let tokens = Vocabulary::Pieces(first).encode(text).unwrap();
    assert!(tokens.len() * 2 < text.len(), "{}", tokens.len());
}

#[test]
fn tokens_of_bytes_have_names_that_people_read() {
    let text = "the café of the lamp\n".repeat(40);
    let pieces = train_bpe(&[&text], 280).unwrap();
    let in_file = pieces.names_in_file();
    let vocabulary = Vocabulary::Pieces(pieces.clone());
    let names = vocabulary.names();
    for token in vocabulary.encode("the café of the lamp\n").unwrap() {
        let name = &names[token as usize];
        let text = vocabulary.decode(&[token]);
        assert_eq!(spelling::named_word(name).as_ref(), Some(&text), "{name}");
    }
    for (name, filed) in [("␣the", "Ġthe"), ("é", "Ã©"), ("\\n", "Ċ"), ("a", "a")] {
        let token = names.iter().position(|other| other == name).unwrap();
        assert_eq!(in_file[token], filed);
    }
    // The first byte of é, which is no character alone.
    assert!(names.contains(&"\\xC3".to_owned()));

    // A run of an earlier version has the names of the file.
    let task = TaskConfig::Text(TextConfig {
        path: "a.txt".into(),
        tokens: TextTokens::Trained(TrainedTokens {
            train: TokenTrainer::Bpe,
            size: 280,
        }),
    });
    let json = Some(pieces.json().as_bytes());
    assert!(Vocabulary::of_run(&task, names, json).is_ok());
    assert!(Vocabulary::of_run(&task, in_file.clone(), json).is_ok());
    let other = in_file.into_iter().rev().collect();
    assert!(Vocabulary::of_run(&task, other, json).is_err());
}

#[test]
fn a_tokenizer_is_trained_on_a_text_without_spaces() {
    let dna: String = (0..200_000_u32)
        .map(|at| ['A', 'C', 'G', 'T'][(at.wrapping_mul(2_654_435_761) >> 30) as usize])
        .collect();
    let vocabulary = Vocabulary::Pieces(train_bpe(&[&dna], 300).unwrap());
    assert_eq!(vocabulary.len(), 300);
    let tokens = vocabulary.encode(&dna).unwrap();
    assert!(tokens.len() < dna.len() / 2);
    assert_eq!(vocabulary.decode(&tokens), dna);
}

fn pieces(json: &str) -> Vocabulary {
    Vocabulary::Pieces(Pieces::parse(json.as_bytes()).unwrap())
}

fn tokenizer(normalizer: Value, pre_tokenizer: Value, decoder: Value, model: Value) -> String {
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
        "normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "post_processor": null,
        "decoder": decoder, "model": model,
    })
    .to_string()
}

/// How often each run of up to 4 characters of `text` occurs.
fn runs(text: &str) -> BTreeMap<String, f64> {
    let characters: Vec<char> = text.replace(' ', "▁").chars().collect();
    let mut runs = BTreeMap::new();
    for length in 1..=4 {
        for run in characters.windows(length) {
            *runs.entry(run.iter().collect()).or_default() += 1.0;
        }
    }
    runs
}

fn byte_names() -> impl Iterator<Item = String> {
    (0..=u8::MAX).map(|byte| format!("<0x{byte:02X}>"))
}

/// As `SentencePiece`'s unigram models: the likeliest of all ways to cut, and bytes for what is
/// unknown.
fn unigram(text: &str, prepend: &str, split: bool) -> String {
    let mut vocabulary = vec![json!(["<unk>", 0.0])];
    vocabulary.extend(byte_names().map(|name| json!([name, -30.0])));
    let runs = runs(text);
    let total: f64 = runs.values().sum();
    for (at, (run, count)) in runs.iter().enumerate() {
        // No two ways to cut a text are equally likely: rounding would choose between them.
        let untied = 0.01 * (at as f64).sin();
        vocabulary.push(json!([run, (count / total).ln() + untied]));
    }
    if !runs.contains_key("▁") {
        vocabulary.push(json!(["▁", -9.0]));
    }
    let spaces = json!({ "type": "Metaspace", "replacement": "▁", "prepend_scheme": prepend, "split": split });
    let decoder = json!({ "type": "Sequence", "decoders": [
        { "type": "ByteFallback" }, spaces,
    ]});
    let model =
        json!({ "type": "Unigram", "unk_id": 0, "byte_fallback": true, "vocab": vocabulary });
    tokenizer(Value::Null, spaces, decoder, model)
}

/// As Llama 2: byte-pair encoding of the whole text at once, with bytes for what is unknown.
fn llama(text: &str) -> String {
    let runs = runs(text);
    let mut ids = serde_json::Map::new();
    let names = std::iter::once("<unk>".to_owned()).chain(byte_names());
    for name in names.chain(["▁".to_owned()]).chain(runs.keys().cloned()) {
        let next = ids.len();
        ids.entry(name).or_insert(json!(next));
    }
    let mut merges: Vec<(&String, &f64)> = runs
        .iter()
        .filter(|(run, _)| run.chars().count() > 1)
        .collect();
    merges.sort_by(|a, b| b.1.total_cmp(a.1).then(a.0.cmp(b.0)));
    let merges: Vec<[String; 2]> = merges
        .into_iter()
        .map(|(run, _)| {
            let last = run.chars().last().unwrap();
            [run.strip_suffix(last).unwrap().to_owned(), last.to_string()]
        })
        .collect();
    let normalizer = json!({ "type": "Sequence", "normalizers": [
        { "type": "Prepend", "prepend": "▁" },
        { "type": "Replace", "pattern": { "String": " " }, "content": "▁" },
    ]});
    let decoder = json!({ "type": "Sequence", "decoders": [
        { "type": "Replace", "pattern": { "String": "▁" }, "content": " " },
        { "type": "ByteFallback" }, { "type": "Fuse" },
        { "type": "Strip", "content": " ", "start": 1, "stop": 0 },
    ]});
    let model = json!({
        "type": "BPE", "dropout": null, "unk_token": "<unk>", "continuing_subword_prefix": null,
        "end_of_word_suffix": null, "fuse_unk": true, "byte_fallback": true, "ignore_merges": false,
        "vocab": ids, "merges": merges,
    });
    tokenizer(normalizer, Value::Null, decoder, model)
}

/// As BERT: lower case, no accents, white space dropped, and one token for unknown words.
fn word_pieces(text: &str) -> String {
    let mut ids = serde_json::Map::new();
    ids.insert("[UNK]".to_owned(), json!(0));
    for run in runs(&text.to_lowercase()).keys() {
        for name in [run.clone(), format!("##{run}")] {
            let next = ids.len();
            ids.entry(name).or_insert(json!(next));
        }
    }
    let normalizer = json!({ "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true });
    let decoder = json!({ "type": "WordPiece", "prefix": "##", "cleanup": true });
    let model = json!({ "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": ids });
    tokenizer(
        normalizer,
        json!({ "type": "BertPreTokenizer" }),
        decoder,
        model,
    )
}

#[test]
fn broken_characters_leave_the_whole_ones_beside_them() {
    let trained = Vocabulary::Pieces(train_bpe(&["the lamp"], 256).unwrap());
    for vocabulary in [Vocabulary::Bytes, trained, pieces(&llama("lamp"))] {
        let mut tokens = vocabulary.encode("光る lamp").unwrap();
        tokens.remove(usize::from(vocabulary.decode(&tokens[..1]).is_empty()));
        assert_eq!(vocabulary.decode(&tokens), "\u{fffd}\u{fffd}る lamp");
    }
}

#[test]
fn word_pieces_lose_what_they_say_and_read_back_to_the_same_tokens() {
    let vocabulary = pieces(&word_pieces("the lamp burns"));
    let tokens = vocabulary.encode("The  LAMP\nburns").unwrap();
    assert_eq!(vocabulary.decode(&tokens), "the lamp burns");
    assert_eq!(vocabulary.encode("the lamp burns").unwrap(), tokens);
    assert_eq!(
        vocabulary.decode(&vocabulary.encode("the zebra").unwrap()),
        "the [UNK]"
    );
}

/// A few kilobytes of everything that makes chunks hard to join.
fn hard_text(bytes: usize) -> String {
    let shipped = include_str!("../../../../data/lighthouse.txt");
    let dna: String = (0..20_000_u32)
        .map(|at| ['A', 'C', 'G', 'T'][(at.wrapping_mul(2_654_435_761) >> 30) as usize])
        .collect();
    let mut text = String::new();
    while text.len() < bytes {
        text += shipped;
        text += &SCRIPTS.join("\n").repeat(40);
        text += &dna;
        text += &"la".repeat(7_001);
        text += &" ".repeat(9_001);
        text += &"\n".repeat(5_003);
        text += "the lamp burns ";
    }
    text.truncate(text.floor_char_boundary(bytes));
    text
}

#[test]
fn joined_chunks_are_the_tokens_of_the_whole() {
    let shipped = include_str!("../../../../data/lighthouse.txt");
    let trained = train_bpe(&[shipped], 700).unwrap().json().to_owned();
    let text = hard_text(1 << 20);
    // Chunks are shorter here than usual, so that there are many joins.
    let sizes = ChunkSizes {
        length: 20 << 10,
        ..ChunkSizes::USUAL
    };
    for (name, json) in [
        ("trained", trained),
        ("unigram", unigram(shipped, "always", true)),
        ("unigram of the whole", unigram(shipped, "first", false)),
        ("llama", llama(shipped)),
        ("word pieces", word_pieces(shipped)),
    ] {
        let pieces = Pieces::parse(json.as_bytes()).unwrap();
        let whole = pieces.encode(&text).unwrap();
        let (mut joined, mut calls, mut last) = (Vec::new(), 0, 0);
        encode_in_chunks(&pieces, &text, sizes, &mut |tokens, done| {
            joined.extend_from_slice(tokens);
            calls += 1;
            assert!(done >= last);
            last = done;
        })
        .unwrap();
        let same = joined
            .iter()
            .zip(&whole)
            .take_while(|(a, b)| a == b)
            .count();
        let around = |tokens: &[u32]| {
            let some = &tokens[same.saturating_sub(5)..tokens.len().min(same + 20)];
            pieces.decode(some)
        };
        let (found, expected) = (around(&joined), around(&whole));
        assert!(
            joined == whole,
            "{name}, token {same}: {found:?}, not {expected:?}"
        );
        assert!(calls > 15 && last == text.len(), "{name}: {calls} chunks");
    }
}

#[test]
fn a_tokenizer_without_joins_is_refused_above_a_size() {
    // Pairs of a letter: where they stand depends on where reading begins.
    let ids = json!({ "a": 0, "aa": 1 });
    let model = json!({
        "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
        "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
        "ignore_merges": false, "vocab": ids, "merges": [["a", "a"]],
    });
    let pieces = Pieces::parse(tokenizer(Value::Null, Value::Null, Value::Null, model).as_bytes());
    let pieces = pieces.unwrap();
    let sizes = ChunkSizes {
        length: 100,
        overlap: 41,
        most: 500,
    };
    let encode = |length: usize| {
        let mut tokens = Vec::new();
        let text = "a".repeat(length);
        let done = encode_in_chunks(&pieces, &text, sizes, &mut |some, _| {
            tokens.extend_from_slice(some);
        });
        done.map(|()| tokens)
    };
    assert_eq!(
        encode(800).unwrap(),
        pieces.encode(&"a".repeat(800)).unwrap()
    );
    let error = encode(900).unwrap_err().to_string();
    assert!(
        error.contains("800 bytes depending on where it begins to read"),
        "{error}"
    );
}
