use std::{collections::HashSet, fs, path::PathBuf};

use headlight_run::{TextTokens, TokenTrainer, TrainedTokens};
use tempfile::TempDir;

use super::*;
use crate::batch;

/// A word-level tokenizer that knows four words and nothing else.
const TOKENIZER: &str = r#"{
    "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
    "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "decoder": null,
    "model": {"type": "WordLevel", "vocab": {"the": 0, "lamp": 1, "burns": 2, "again": 5}, "unk_token": "[UNK]"}
}"#;

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    fn open_with(
        &self,
        name: &str,
        tokens: &TextTokens,
        n_ctx: usize,
        cache: &Cache,
    ) -> Result<Text, Error> {
        let config = TextConfig {
            path: self.0.path().join(name),
            tokens: tokens.clone(),
        };
        Text::open_with(&config, n_ctx, cache)
    }

    fn open(&self, name: &str, tokens: &TextTokens, n_ctx: usize) -> Result<Text, Error> {
        self.open_with(name, tokens, n_ctx, &Cache::none())
    }
}

#[test]
fn what_is_no_text_is_refused_by_file_and_place() {
    let folder = Folder::new();
    let long = "the lamp burns again\n".repeat(20);
    let json = folder.write("t.json", TOKENIZER);
    let sparse = folder.write("sparse.json", TOKENIZER.replace("5}", "300000}"));
    let broken = folder.write("broken.json", "{");
    let other = long.replace("lamp", "moon");
    let bad_byte = [long.as_bytes(), b"\xff again\n"].concat();
    let cases: [(&str, &[u8], TextTokens, &[&str]); 11] = [
        (
            "empty.txt",
            b"",
            TextTokens::Characters,
            &["empty.txt", "task.path", "is empty", "UTF-8"],
        ),
        (
            "short.txt",
            b"too short",
            TextTokens::Characters,
            &["short.txt", "has 8 tokens", "n_ctx + 1 = 17"],
        ),
        (
            "tail.txt",
            &long.as_bytes()[..160],
            TextTokens::Characters,
            &["tail.txt", "last 10 %", "n_ctx + 1 = 17"],
        ),
        (
            "bad.txt",
            &bad_byte,
            TextTokens::Characters,
            &["bad.txt:21", "byte 420", "0xFF", "UTF-8"],
        ),
        (
            "cut.txt",
            b"caf\xc3",
            TextTokens::Bytes,
            &["cut.txt:1", "byte 3", "0xC3"],
        ),
        (
            "nul.txt",
            b"one\ntwo\0",
            TextTokens::Words,
            &["nul.txt:2", "byte 7", "NUL"],
        ),
        (
            "a.txt",
            long.as_bytes(),
            TextTokens::Tokenizer("none.json".into()),
            &["none.json", "no such tokenizer"],
        ),
        (
            "a.txt",
            long.as_bytes(),
            TextTokens::Tokenizer(broken),
            &["broken.json", "is no tokenizer.json"],
        ),
        (
            "a.txt",
            long.as_bytes(),
            TextTokens::Tokenizer(sparse),
            &["sparse.json", "\"again\"", "300000", "below 300000"],
        ),
        (
            "other.txt",
            other.as_bytes(),
            TextTokens::Tokenizer(json),
            &["other.txt", "from byte 0"],
        ),
        (
            "words.txt",
            b"one two three",
            TextTokens::Words,
            &["words.txt", "n_ctx + 1 = 17"],
        ),
    ];
    for (name, bytes, tokens, parts) in cases {
        folder.write(name, bytes);
        let error = folder
            .open(name, &tokens, 16)
            .err()
            .unwrap_or_else(|| panic!("{name} was accepted"))
            .to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
    let missing = folder
        .open("nowhere.txt", &TextTokens::Characters, 16)
        .err()
        .unwrap()
        .to_string();
    assert!(
        missing.contains("nowhere.txt") && missing.contains("cannot read"),
        "{missing}"
    );
    fs::create_dir(folder.0.path().join("hollow")).unwrap();
    let hollow = folder
        .open("hollow", &TextTokens::Characters, 16)
        .err()
        .unwrap()
        .to_string();
    assert!(hollow.contains("without files"), "{hollow}");
}

#[test]
fn windows_are_pieces_of_their_own_part_of_the_text() {
    // Every character once, some of them of 2, 3 and 4 bytes: a window must be a run, inside its
    // part.
    let text: String = ('a'..='z')
        .chain('à'..='ÿ')
        .chain('あ'..='み')
        .chain('😀'..='😿')
        .cycle()
        .take(4000)
        .collect();
    let folder = Folder::new();
    folder.write("a.txt", &text);
    let task = folder.open("a.txt", &TextTokens::Characters, 10).unwrap();
    let ids = task.vocabulary.encode(&text).unwrap();
    let cut = text[..text.len() * 9 / 10 + 3].chars().count();
    for (usage, part) in [
        (Use::Training, &ids[..cut]),
        (Use::Validation, &ids[cut - 3..]),
    ] {
        for sequence in batch(&task, 0, usage, 0, 300) {
            assert_eq!((sequence.tokens.len(), sequence.scored.len()), (11, 10));
            assert!(part.windows(11).any(|window| window == sequence.tokens));
        }
    }
}

#[test]
fn every_place_of_the_text_is_drawn() {
    let folder = Folder::new();
    folder.write("a.txt", "abcdefghijklmnopqrstuvwxyz".repeat(8));
    let task = folder.open("a.txt", &TextTokens::Bytes, 4).unwrap();
    // 187 bytes of training text hold 183 windows of 5, of which 26 differ.
    let starts: HashSet<u32> = batch(&task, 0, Use::Training, 1, 600)
        .into_iter()
        .map(|s| s.tokens[0])
        .collect();
    assert_eq!(starts.len(), 26);
    assert_eq!(task.training[0].len(), 187);
}

#[test]
fn a_folder_is_read_in_the_order_of_names_and_windows_stay_within_a_file() {
    let folder = Folder::new();
    folder.write("texts/b.txt", "b".repeat(100));
    folder.write("texts/a/one.txt", "a".repeat(100));
    folder.write("texts/.hidden", [0xff]);
    folder.write("texts/c.txt", "c".repeat(60));
    let task = folder.open("texts", &TextTokens::Characters, 8).unwrap();
    assert_eq!(task.vocabulary().names(), ["a", "b", "c"]);
    let tokens = |usage| -> HashSet<Vec<u32>> {
        batch(&task, 0, usage, 0, 200)
            .into_iter()
            .map(|sequence| sequence.tokens)
            .collect()
    };
    assert_eq!(
        tokens(Use::Training),
        HashSet::from([vec![0; 9], vec![1; 9], vec![2; 9]])
    );
    assert_eq!(tokens(Use::Validation), HashSet::from([vec![2; 9]]));
}

#[test]
fn a_tokenizer_cuts_windows_as_it_cuts_the_whole() {
    let folder = Folder::new();
    let json = folder.write("t.json", TOKENIZER);
    folder.write("a.txt", "the lamp burns again ".repeat(40));
    let task = folder
        .open("a.txt", &TextTokens::Tokenizer(json), 12)
        .unwrap();
    assert_eq!(
        task.vocabulary().names(),
        ["the", "lamp", "burns", "unused 3", "unused 4", "again"]
    );
    for sequence in batch(&task, 0, Use::Training, 0, 50) {
        let follows = |pair: &[u32]| matches!(pair, [0, 1] | [1, 2] | [2, 5] | [5, 0]);
        assert!(
            sequence.tokens.len() == 13 && sequence.tokens.windows(2).all(follows),
            "{:?}",
            sequence.tokens
        );
    }
    let words = folder.open("a.txt", &TextTokens::Words, 12).unwrap();
    assert_eq!(
        words.vocabulary().names(),
        ["␣", "␣again", "␣burns", "␣lamp", "␣the", "the"]
    );
    assert_eq!(batch(&words, 0, Use::Validation, 0, 50)[7].tokens.len(), 13);
}

/// As `SentencePiece`: `▁` before the text and in place of every space.
const SENTENCE_PIECES: &str = r#"{
    "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
    "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true},
    "post_processor": null,
    "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true},
    "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["▁", -9.0], ["▁the", -2.0],
        ["▁lamp", -2.0], ["s", -5.0], ["\n", -3.0], ["l", -7.0], ["a", -7.0], ["m", -7.0], ["p", -7.0]]}
}"#;

#[test]
fn windows_are_cuts_of_the_whole_text_s_tokens() {
    let folder = Folder::new();
    let json = folder.write("t.json", SENTENCE_PIECES);
    let text = "the lamps\nlamps the lamp\n".repeat(40);
    folder.write("a.txt", &text);
    let kinds = [
        TextTokens::Tokenizer(json),
        TextTokens::Words,
        TextTokens::Bytes,
        TextTokens::Characters,
        TextTokens::Trained(TrainedTokens {
            train: TokenTrainer::Bpe,
            size: 265,
        }),
    ];
    for kind in kinds {
        let task = folder.open("a.txt", &kind, 7).unwrap();
        let cut = text.len() * 9 / 10;
        for (usage, part) in [
            (Use::Training, &text[..cut]),
            (Use::Validation, &text[cut..]),
        ] {
            let whole = task.vocabulary.encode(part).unwrap();
            let sequences = batch(&task, 0, usage, 0, 200);
            let starts: HashSet<usize> = sequences
                .iter()
                .map(|sequence| {
                    let mut windows = whole.windows(8);
                    windows
                        .position(|window| window == sequence.tokens)
                        .unwrap()
                })
                .collect();
            assert!(starts.len() > 3, "{kind}: {starts:?}");
        }
    }
}

#[test]
fn the_tokens_that_training_never_has_are_known() {
    let folder = Folder::new();
    let mut text = "\u{feff}".to_owned() + &"abc ".repeat(90);
    text += &"abz ".repeat(10);
    folder.write("a.txt", &text);
    let tokens = |kind| folder.open("a.txt", &kind, 4).unwrap().training_tokens();
    // The mark is no token, and z occurs in the last tenth alone.
    let bytes = b" abc".iter().map(|&byte| u32::from(byte)).collect();
    assert_eq!(tokens(TextTokens::Bytes), Some(bytes));
    assert_eq!(tokens(TextTokens::Characters), Some(vec![0, 1, 2, 3]));
    folder.write("a.txt", "abc ".repeat(100));
    assert_eq!(tokens(TextTokens::Characters), None);
}

#[test]
fn the_files_that_were_read_are_named_with_their_hashes() {
    let folder = Folder::new();
    let json = folder.write("t.json", TOKENIZER);
    folder.write("texts/a.txt", "the lamp burns again ".repeat(40));
    folder.write("texts/b.txt", "again ".repeat(40));
    let files = folder
        .open("texts", &TextTokens::Tokenizer(json.clone()), 8)
        .unwrap()
        .files();
    let expected = [
        folder.0.path().join("texts/a.txt"),
        folder.0.path().join("texts/b.txt"),
        json,
    ];
    assert_eq!(files.len(), 3);
    for (file, path) in files.iter().zip(expected) {
        assert_eq!(file, &DataFile::read(&path).unwrap());
    }
    // printf 'again %.0s' $(seq 40) | sha256sum
    assert_eq!(files[1].bytes, 240);
    assert_eq!(
        files[1].sha256,
        "c906b1e9be7b9f0dd25259b4b3a7309edbd2d75f471f270a405423fd5f4f65e1"
    );
}

#[test]
fn a_large_text_is_read_from_the_cache() {
    let folder = Folder::new();
    let text = "the lamp burns again\n".repeat(60_000);
    assert!(text.len() as u64 > cache::LEAST_BYTES);
    folder.write("a.txt", &text);
    let cache = Cache::at(folder.0.path().join("cache"));
    let kind = TextTokens::Words;
    let open = |cache| folder.open_with("a.txt", &kind, 8, cache).unwrap();
    let rows = |task: &Text| batch(task, 0, Use::Training, 0, 20);
    let none = Cache::none();
    let held = open(&none);
    let first = open(&cache);
    assert_eq!(rows(&first), rows(&held));
    let [hash, tokens] = ["files", "tokens"].map(|name| {
        let mut files = fs::read_dir(folder.0.path().join("cache").join(name)).unwrap();
        let file = files.next().unwrap().unwrap().path();
        assert!(files.next().is_none());
        file
    });
    // The second start trusts size and date: it reads the cache and not the text.
    let written = fs::metadata(&tokens).unwrap().modified().unwrap();
    let modified = fs::metadata(folder.0.path().join("a.txt"))
        .unwrap()
        .modified()
        .unwrap();
    folder.write("a.txt", text.replace("lamp", "moon"));
    let file = fs::File::options()
        .write(true)
        .open(folder.0.path().join("a.txt"))
        .unwrap();
    file.set_modified(modified).unwrap();
    let second = open(&cache);
    assert_eq!(rows(&second), rows(&held));
    assert_eq!(second.files(), first.files());
    assert_eq!(fs::metadata(&tokens).unwrap().modified().unwrap(), written);
    // Another date, and the text is read.
    file.set_modified(modified + std::time::Duration::from_secs(1))
        .unwrap();
    let third = open(&cache);
    assert_ne!(third.vocabulary().names(), second.vocabulary().names());
    assert_ne!(third.files(), first.files());

    // Whatever stands in the cache, it is whole or made anew.
    let good = fs::read(&tokens).unwrap();
    let short = &good[..good.len() - 9];
    let mut flipped = good.clone();
    flipped[good.len() - 40] ^= 1;
    folder.write("a.txt", &text);
    for damaged in [&[], b"hltokn01".as_slice(), short, &flipped] {
        fs::write(&tokens, damaged).unwrap();
        fs::write(&hash, damaged).unwrap();
        assert_eq!(rows(&open(&cache)), rows(&held));
        assert_eq!(fs::read(&tokens).unwrap(), good);
    }
}
