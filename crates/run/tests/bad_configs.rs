//! Configurations that cannot be right: each is refused with one line that says what is wrong, and
//! with what.

use headlight_run::{Config, TaskConfig};

/// A good configuration, a key a line.
const GOOD: &str = "\
seed = 3
task.name = 'repeat'
task.vocabulary = 12
task.prefix = [0, 2]
task.block = [3, 5]
model.n_layers = 2
model.n_heads = 2
model.d_model = 16
model.n_ctx = 16
train.steps = 25
train.batch_size = 8
train.learning_rate = 1e-3
train.warmup = 5
train.shards = 2
";

fn key_of(line: &str) -> &str {
    line.split_once('=').map_or(line, |(key, _)| key).trim()
}

/// The good configuration with these lines in place of those of the same key or of a key below it.
fn with(lines: &str) -> String {
    let below = |key: &str, above: &str| {
        key.strip_prefix(above)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let kept = GOOD
        .lines()
        .filter(|line| !lines.lines().any(|new| below(key_of(line), key_of(new))));
    kept.chain(lines.lines()).collect::<Vec<_>>().join("\n")
}

fn error_of(text: &str, assignments: &[&str]) -> String {
    let assignments: Vec<String> = assignments.iter().map(ToString::to_string).collect();
    Config::parse(text, "a.toml", &assignments)
        .map_or_else(|error| error.to_string(), |_| format!("accepted:\n{text}"))
}

/// The lines in the good configuration, and what is said of them after the file's name.
#[track_caller]
fn refused(cases: &[(&str, &str)]) {
    for (lines, message) in cases {
        assert_eq!(
            error_of(&with(lines), &[]),
            format!("a.toml: {message}"),
            "{lines}"
        );
    }
}

#[test]
fn what_the_others_are_made_from_is_good() {
    assert!(Config::parse(GOOD, "a.toml", &[]).is_ok());
}

#[test]
fn the_whole_and_its_small_tables() {
    refused(&[
        ("sede = 5", "sede = 5: unknown key, did you mean seed?"),
        (
            "trian.steps = 5",
            "trian = { steps = 5 }: unknown key, did you mean train?",
        ),
        (
            "tokenizer = 5",
            "tokenizer = 5: unknown key, there are: seed, task, model, train, interchange, log, checkpoint",
        ),
        ("seed = -1", "seed = -1: must be a whole number, 0 or more"),
        (
            "seed = 1.5",
            "seed = 1.5: must be a whole number, 0 or more",
        ),
        (
            "seed = 2026-11-29",
            "seed = 2026-11-29: must be a whole number, 0 or more",
        ),
        ("log.every = 0", "log.every = 0: must be at least 1"),
        (
            "log.patterns_every = 0",
            "log.patterns_every = 0: must be at least 1",
        ),
        (
            "log.evry = 5",
            "log.evry = 5: unknown key, did you mean every?",
        ),
        ("log = 5", "log = 5: must be a table"),
        (
            "checkpoint.every = 0",
            "checkpoint.every = 0: must be at least 1",
        ),
        (
            "checkpoint.keep = 0",
            "checkpoint.keep = 0: must be at least 1",
        ),
        (
            "checkpoint.keep = -1",
            "checkpoint.keep = -1: must be a whole number, 0 or more",
        ),
        (
            "checkpoint.kept = 2",
            "checkpoint.kept = 2: unknown key, did you mean keep?",
        ),
    ]);
}

#[test]
fn names_of_tasks_and_repeat() {
    let names = TaskConfig::NAMES.join(", ");
    refused(&[
        (
            "task = 'repeat'",
            r#"task = "repeat": must be a table with the key name"#,
        ),
        ("task = {}", &format!("task.name: must be one of {names}")),
        (
            "task.name = 'repaet'",
            r#"task.name = "repaet": unknown task, did you mean repeat?"#,
        ),
        (
            "task.name = 'chess'",
            &format!(r#"task.name = "chess": unknown task, there are: {names}"#),
        ),
        (
            "task.blok = [1, 2]",
            "task.blok = [1, 2]: unknown key, did you mean block?",
        ),
        (
            "task.block = 5",
            "task.block = 5: must be a list of 2 numbers",
        ),
        (
            "task.block = [3, 4, 5]",
            "task.block = [3, 4, 5]: must be a list of 2 numbers",
        ),
        (
            "task.block = [5, 3]",
            "task.block = [5, 3]: the first must not exceed the second",
        ),
        (
            "task.block = [0, 3]",
            "task.block = [0, 3]: a block has at least 1 token",
        ),
        (
            "task.block = [3, 14]",
            "task.block = [3, 14]: after a prefix of 2 the longest leaves no repetition within model.n_ctx = 16",
        ),
        (
            "task.block = [3.0, 5.0]",
            "task.block[0] = 3.0: must be a whole number, 0 or more",
        ),
        (
            "task.prefix = [0, -2]",
            "task.prefix[1] = -2: must be a whole number, 0 or more",
        ),
        (
            "task.vocabulary = 300001",
            "task.vocabulary = 300001: must be between 2 and 300000",
        ),
    ]);
}

#[test]
fn other_tasks() {
    refused(&[
        (
            "task = { name = 'lagged_markov', states = 1 }",
            "task.states = 1: must be between 2 and 1024",
        ),
        (
            "task = { name = 'lagged_markov', states = 65536 }",
            "task.states = 65536: must be between 2 and 1024",
        ),
        (
            "task = { name = 'lagged_markov', concentration = -0.2 }",
            "task.concentration = -0.2: must be above 0 and finite in 32 bits",
        ),
        (
            "task = { name = 'lagged_markov', concentration = 1e-300 }",
            "task.concentration = 1e-300: must be above 0 and finite in 32 bits",
        ),
        (
            "task = { name = 'lagged_markov' }\nmodel.n_ctx = 1",
            "model.n_ctx = 1: must be at least 2 for lagged_markov",
        ),
        (
            "task = { name = 'lagged_markov', lag = 3 }",
            "task.lag = 3: unknown key, there are: states, concentration",
        ),
        (
            "task = { name = 'icl_markov', states = 65 }",
            "task.states = 65: must be between 2 and 64",
        ),
        (
            "task = { name = 'icl_markov', concentration = inf }",
            "task.concentration = inf: must be above 0 and finite in 32 bits",
        ),
        (
            "task = { name = 'recall', keys = 1 }",
            "task.keys = 1: must be between 2 and 300000",
        ),
        (
            "task = { name = 'recall', values = 1 }",
            "task.values = 1: must be between 2 and 300000",
        ),
        (
            "task = { name = 'recall', keys = 300000, values = 300000, pairs = 2 }",
            "task.keys + task.values = 600000: must be between 2 and 300000",
        ),
        (
            "task = { name = 'recall', pairs = 0 }",
            "task.pairs = 0: must be at least 1 and at most task.keys = 32",
        ),
        (
            "task = { name = 'recall', keys = 4, pairs = 5 }",
            "task.pairs = 5: must be at least 1 and at most task.keys = 4",
        ),
        (
            "task = { name = 'recall', pairs = 8 }",
            "task.pairs = 8: leaves no query within model.n_ctx = 16",
        ),
        (
            "task = { name = 'recall', pair = 5 }",
            "task.pair = 5: unknown key, did you mean pairs?",
        ),
        (
            "task = { name = 'modular_addition' }",
            "model.n_ctx = 16: must be 3 for modular_addition: a b =",
        ),
        (
            "task = { name = 'modular_addition', modulus = 1025 }\nmodel.n_ctx = 3",
            "task.modulus = 1025: must be between 2 and 1024",
        ),
        (
            "task = { name = 'modular_addition', train_share = 1.0 }\nmodel.n_ctx = 3",
            "task.train_share = 1: must leave some of the 113² pairs on both sides",
        ),
        (
            "task = { name = 'modular_addition', train_share = nan }\nmodel.n_ctx = 3",
            "task.train_share = NaN: must leave some of the 113² pairs on both sides",
        ),
        (
            "task = { name = 'modular_addition', mod = 7 }\nmodel.n_ctx = 3",
            "task.mod = 7: unknown key, there are: modulus, train_share",
        ),
        (
            "task = { name = 'program', program = 'induction', length = 0 }",
            "task.length = 0: must be between 1 and 64",
        ),
        (
            "task = { name = 'program', program = 'induction', length = 65 }\nmodel.n_ctx = 66",
            "task.length = 65: must be between 1 and 64",
        ),
        (
            "task = { name = 'program', program = 'induction', length = 9 }",
            "task.length = 9: takes model.n_ctx = 10 or 19, it is 16",
        ),
        (
            "task = { name = 'program', program = 'induction' }",
            "task.length: is missing",
        ),
        (
            "task = { name = 'sort' }",
            "task.length = 10: takes model.n_ctx = 20, it is 16",
        ),
        (
            "task = { name = 'sort', symbols = 1 }",
            "task.symbols = 1: must be between 2 and 299999",
        ),
        (
            "task = { name = 'sort', length = 0 }",
            "task.length = 0: of 20 symbols there are 1 such sequences, fewer than 1000",
        ),
        (
            "task = { name = 'reverse', symbols = 2, length = 8 }",
            "task.length = 8: of 2 symbols there are 256 such sequences, fewer than 1000",
        ),
        (
            "task = { name = 'dyck', kinds = 5 }\nmodel.n_ctx = 15",
            "task.kinds = 5: must be between 2 and 4",
        ),
        (
            "task = { name = 'dyck', depth = 0 }\nmodel.n_ctx = 15",
            "task.depth = 0: must be at least 1",
        ),
        (
            "task = { name = 'dyck' }",
            "model.n_ctx = 16: must be odd for dyck: with the last target, brackets come in pairs",
        ),
        (
            "task = { name = 'grammar' }\nmodel.n_ctx = 7",
            "model.n_ctx = 7: must be at least 8 for grammar: a sentence must fit",
        ),
        (
            "task = { name = 'grammar', lexicon = 'a.toml' }",
            r#"task.lexicon = "a.toml": unknown key"#,
        ),
        ("task = { name = 'text' }", "task.path: is missing"),
        (
            "task = { name = 'text', path = '' }",
            r#"task.path = "": must name a text file or a folder of them"#,
        ),
        (
            "task = { name = 'text', path = 3 }",
            "task.path = 3: must be text in quotes",
        ),
        (
            "task = { name = 'text', path = 'a.txt', tokens = 'letters' }",
            r#"task.tokens = "letters": must be characters, bytes, words, the path of a tokenizer.json or { train = "bpe", size = 512 }"#,
        ),
        (
            "task = { name = 'text', path = 'a.txt', tokens = { train = 'bpe', size = 255 } }",
            "task.tokens.size = 255: must be between 256, a token for each byte, and 300000",
        ),
        (
            "task = { name = 'text', path = 'a.txt', tokens = { train = 'unigram', size = 300 } }",
            r#"task.tokens.train = "unigram": unknown value, there are: bpe"#,
        ),
        (
            "task = { name = 'text', path = 'a.txt', tokens = { train = 'bpe' } }",
            "task.tokens.size: is missing",
        ),
        (
            "task = { name = 'text', path = 'a.txt', tokens = { train = 'bpe', sise = 300 } }",
            "task.tokens.sise = 300: unknown key, did you mean size?",
        ),
        (
            "task = { name = 'text', path = 'a.txt', tokens = 3 }",
            "task.tokens = 3: invalid type: integer `3`, expected characters, bytes, words, the path of a tokenizer.json or { train = \"bpe\", size = 512 }",
        ),
        (
            "task = { name = 'text', path = 'a.txt', token = 'bytes' }",
            r#"task.token = "bytes": unknown key, did you mean tokens?"#,
        ),
        (
            "task = { name = 'sort', symbols = 300000 }",
            "task.symbols = 300000: must be between 2 and 299999",
        ),
        (
            "task = { name = 'dyck', depth = 9 }\nmodel.n_ctx = 15",
            "task.depth = 9: is more than the 8 pairs of brackets that model.n_ctx = 15 holds",
        ),
    ]);
}

#[test]
fn models() {
    refused(&[
        ("model = 'gpt2'", r#"model = "gpt2": must be a table"#),
        (
            "model = { n_heads = 2, d_model = 16, n_ctx = 16 }",
            "model.n_layers: is missing",
        ),
        (
            "model = { n_layers = 2, d_model = 16, n_ctx = 16 }",
            "model.n_heads: is missing",
        ),
        (
            "model = { n_layers = 2, n_heads = 2, n_ctx = 16 }",
            "model.d_model: is missing",
        ),
        (
            "model = { n_layers = 2, n_heads = 2, d_model = 16 }",
            "model.n_ctx: is missing",
        ),
        (
            "model.d_modell = 16",
            "model.d_modell = 16: unknown key, did you mean d_model?",
        ),
        (
            "model.preset = 'gpt3'",
            r#"model.preset = "gpt3": unknown value, did you mean gpt2?"#,
        ),
        (
            "model.n_layers = 129",
            "model.n_layers = 129: must be at most 128",
        ),
        (
            "model.n_layers = -2",
            "model.n_layers = -2: must be a whole number, 0 or more",
        ),
        ("model.n_heads = 0", "model.n_heads = 0: must be at least 1"),
        (
            "model.n_heads = 3",
            "model.d_model = 16: is not divisible by model.n_heads = 3",
        ),
        (
            "model.n_heads = 1025",
            "model.n_heads = 1025: must be at most 1024",
        ),
        (
            "model.n_kv_heads = 0",
            "model.n_kv_heads = 0: must be at least 1",
        ),
        (
            "model.n_kv_heads = 3",
            "model.n_kv_heads = 3: does not divide model.n_heads = 2",
        ),
        ("model.d_model = 0", "model.d_model = 0: must be at least 1"),
        (
            "model.d_model = 16385",
            "model.d_model = 16385: must be at most 16384",
        ),
        (
            "model.d_model = 16.0",
            "model.d_model = 16.0: must be a whole number, 0 or more",
        ),
        (
            "model.d_head = 16385",
            "model.d_head = 16385: must be at most 16384",
        ),
        ("model.n_ctx = 0", "model.n_ctx = 0: must be at least 1"),
        (
            "model.n_ctx = 7",
            "task.block = [3, 5]: after a prefix of 2 the longest leaves no repetition within model.n_ctx = 7",
        ),
        (
            "model.n_ctx = 65537",
            "model.n_ctx = 65537: must be at most 65536",
        ),
        (
            "model.attention_bias = 1",
            "model.attention_bias = 1: must be true or false",
        ),
        (
            "model.feed_forward = 'swish'",
            r#"model.feed_forward = "swish": unknown value, did you mean silu?"#,
        ),
        (
            "model.feed_forward = 4",
            "model.feed_forward = 4: must be text in quotes",
        ),
        (
            "model.feed_forward = {}",
            "model.feed_forward = {}: must be text in quotes",
        ),
        (
            "model.d_ff = 8",
            "model.d_ff = 8: there is no feed-forward; set model.feed_forward",
        ),
        (
            "model.d_ff = 131073",
            "model.d_ff = 131073: must be at most 131072",
        ),
        (
            "model.feed_forward_bias = true",
            "model.feed_forward_bias = true: there is no feed-forward; set model.feed_forward",
        ),
        (
            "model.norm = 'rms'",
            r#"model.norm = "rms": unknown value, there are: layer_norm, rms_norm, none"#,
        ),
        (
            "model.norm_epsilon = 1e-60",
            "model.norm_epsilon = 1e-60: must be above 0 and finite in 32 bits",
        ),
        (
            "model.norm_placement = 'behind'",
            r#"model.norm_placement = "behind": unknown value, there are: pre, post, output, pre_and_output"#,
        ),
        (
            "model.norm_placement = 'post'\nmodel.norm = 'none'",
            "model.norm_placement = post: there is no norm to place; set model.norm",
        ),
        (
            "model.norm_placement = 'output'\nmodel.norm = 'none'",
            "model.norm_placement = output: there is no norm to place; set model.norm",
        ),
        (
            "model.block_order = 'parallel'",
            "model.block_order = parallel: there is no feed-forward; set model.feed_forward",
        ),
        (
            "model.block_order = 'parallel'\nmodel.feed_forward = 'relu'\nmodel.norm_placement = 'post'",
            "model.block_order = parallel: model.norm_placement = \"post\" norms the stream between the parts",
        ),
        (
            "model.full_layers = [0]",
            "model.full_layers = [0]: no layer has a window; set model.window",
        ),
        (
            "model.full_layers = [1, 0]\nmodel.window = 3",
            "model.full_layers = [1, 0]: must be in rising order",
        ),
        (
            "model.full_layers = [0, 99]\nmodel.window = 3",
            "model.full_layers = [0, 99]: the last layer is 1",
        ),
        (
            "model.rotary_components = 4",
            r#"model.rotary_components = 4: nothing rotates; set model.positions = "rotary""#,
        ),
        (
            "model.rotary_components = 3\nmodel.positions = 'rotary'",
            "model.rotary_components = 3: must be an even number from 2",
        ),
        (
            "model.rotary_components = 512\nmodel.positions = 'rotary'",
            "model.rotary_components = 512: is more than the width of a head, 8",
        ),
        (
            "model.rotary_base_in_window = 100.0\nmodel.positions = 'rotary'",
            "model.rotary_base_in_window = 100: no layer has a window; set model.window",
        ),
        (
            "model.rotary_scaling = { linear = { factor = 0.0 } }\nmodel.positions = 'rotary'",
            "model.rotary_scaling.linear.factor = 0.0: must be above 0 and finite in 32 bits",
        ),
        (
            "model.rotary_scaling = { linear = { factor = 2.0 } }",
            r#"model.rotary_scaling = linear: nothing rotates; set model.positions = "rotary""#,
        ),
        (
            "model.logit_softcap = 0.0",
            "model.logit_softcap = 0.0: must be above 0 and finite in 32 bits",
        ),
        (
            "model.embedding_scale = -2.0",
            "model.embedding_scale = -2.0: must be above 0 and finite in 32 bits",
        ),
        (
            "model.positions = 'rotery'",
            r#"model.positions = "rotery": unknown value, did you mean rotary?"#,
        ),
        (
            "model.rotary_base = 500.0",
            r#"model.rotary_base = 500: nothing rotates; set model.positions = "rotary""#,
        ),
        (
            "model.rotary_base = -1.0\nmodel.positions = 'rotary'",
            "model.rotary_base = -1.0: must be above 0 and finite in 32 bits",
        ),
        ("model.window = 0", "model.window = 0: must be at least 1"),
        (
            "model.window = 17",
            "model.window = 17: is wider than model.n_ctx = 16",
        ),
        (
            "model.tied_embedding = 'maybe'",
            r#"model.tied_embedding = "maybe": must be true or false"#,
        ),
        (
            "model.attention_scale = 0",
            "model.attention_scale = 0.0: must be above 0 and finite in 32 bits",
        ),
        (
            "model.attention_scale = inf",
            "model.attention_scale = inf: must be above 0 and finite in 32 bits",
        ),
        (
            "model.initialization = 'gpt3'",
            r#"model.initialization = "gpt3": unknown value, did you mean gpt2?"#,
        ),
        (
            "model.initialization = 'compiled'",
            r#"model.initialization = compiled: there is no program to compile; set task.name = "program""#,
        ),
        (
            "model.coldness = 10.0",
            r#"model.coldness = 10: only compiled weights have one; set model.initialization = "compiled""#,
        ),
        (
            "model.initialization = 'compiled'\nmodel.coldness = 0.0",
            "model.coldness = 0.0: must be above 0 and finite in 32 bits",
        ),
        (
            "model.init_std = -0.02",
            "model.init_std = -0.02: must be above 0 and finite in 32 bits",
        ),
        (
            "model.init_std = 1e300",
            "model.init_std = 1e300: must be above 0 and finite in 32 bits",
        ),
        (
            "model.d_head = 16384\nmodel.n_heads = 8",
            "model.d_head = 16384: with model.n_heads = 8 attention is wider than 65536",
        ),
    ]);
}

#[test]
fn training() {
    refused(&[
        ("train = 25", "train = 25: must be a table"),
        (
            "train = { batch_size = 8, learning_rate = 1e-3 }",
            "train.steps: is missing",
        ),
        (
            "train = { steps = 25, learning_rate = 1e-3 }",
            "train.batch_size: is missing",
        ),
        (
            "train = { steps = 25, batch_size = 8 }",
            "train.learning_rate: is missing",
        ),
        (
            "train.stepz = 5",
            "train.stepz = 5: unknown key, did you mean steps?",
        ),
        (
            "train.steps = 'many'",
            r#"train.steps = "many": must be a whole number, 0 or more"#,
        ),
        ("train.steps = 0", "train.steps = 0: must be at least 1"),
        (
            "train.steps = -1",
            "train.steps = -1: must be a whole number, 0 or more",
        ),
        (
            "train.steps = 1.5",
            "train.steps = 1.5: must be a whole number, 0 or more",
        ),
        ("train.tokens = 0", "train.tokens = 0: must be at least 1"),
        (
            "train.tokens = 256",
            "train.warmup = 5: must be below train.steps = 2",
        ),
        (
            "train.batch_size = 0",
            "train.batch_size = 0: must be at least 1",
        ),
        (
            "train.batch_size = 65537",
            "train.batch_size = 65537: must be at most 65536",
        ),
        (
            "train.learning_rate = 0",
            "train.learning_rate = 0.0: must be above 0 and finite in 32 bits",
        ),
        (
            "train.learning_rate = -1e-3",
            "train.learning_rate = -0.001: must be above 0 and finite in 32 bits",
        ),
        (
            "train.learning_rate = nan",
            "train.learning_rate = NaN: must be above 0 and finite in 32 bits",
        ),
        (
            "train.learning_rate = '1e-3'",
            r#"train.learning_rate = "1e-3": must be a number"#,
        ),
        (
            "train.learning_rate = 1e60",
            "train.learning_rate = 1e60: must be above 0 and finite in 32 bits",
        ),
        (
            "train.warmup = 25",
            "train.warmup = 25: must be below train.steps = 25",
        ),
        (
            "train.schedule = 'cosin'",
            r#"train.schedule = "cosin": unknown value, did you mean cosine?"#,
        ),
        (
            "train.schedule = 3",
            "train.schedule = 3: must be text in quotes",
        ),
        (
            "train.cooldown = 5",
            "train.cooldown = 5: only warmup_stable_decay cools down; set train.schedule",
        ),
        (
            "train.cooldown = 0",
            "train.cooldown = 0: must be at least 1",
        ),
        (
            "train.cooldown = 21\ntrain.schedule = 'warmup_stable_decay'",
            "train.cooldown = 21: does not fit after train.warmup = 5 into train.steps = 25",
        ),
        (
            "train.optimizer = 'adam'",
            r#"train.optimizer = "adam": unknown value, did you mean adamw?"#,
        ),
        (
            "train.optimizer = 'lion'",
            r#"train.optimizer = "lion": unknown value, did you mean muon?"#,
        ),
        (
            "train.momentum = 0.9",
            "train.momentum = 0.9: adamw has train.betas; set train.optimizer to muon or sgd",
        ),
        (
            "train.momentum = 1.0\ntrain.optimizer = 'sgd'",
            "train.momentum = 1: must be at least 0 and below 1",
        ),
        (
            "train.betas = [0.9, 1.0]",
            "train.betas = [0.9, 1]: both must be at least 0 and below 1",
        ),
        (
            "train.betas = [-0.1, 0.9]",
            "train.betas = [-0.1, 0.9]: both must be at least 0 and below 1",
        ),
        (
            "train.betas = [nan, 0.9]",
            "train.betas = [NaN, 0.9]: both must be at least 0 and below 1",
        ),
        (
            "train.epsilon = 1e-60",
            "train.epsilon = 1e-60: must be above 0 and finite in 32 bits",
        ),
        (
            "train.weight_decay = -0.1",
            "train.weight_decay = -0.1: must be 0 or more",
        ),
        (
            "train.weight_decay = 2000",
            "train.weight_decay = 2000: with train.learning_rate = 0.001 nothing is left of a parameter",
        ),
        (
            "train.weight_decay_on = 'vectors'",
            r#"train.weight_decay_on = "vectors": unknown value, there are: matrices, all"#,
        ),
        (
            "train.dropout = 1.0",
            "train.dropout = 1: must be at least 0 and below 1",
        ),
        (
            "train.dropout = nan",
            "train.dropout = NaN: must be at least 0 and below 1",
        ),
        (
            "train.attention_dropout = 1.0",
            "train.attention_dropout = 1: must be at least 0 and below 1",
        ),
        (
            "train.attention_dropout = -0.1",
            "train.attention_dropout = -0.1: must be at least 0 and below 1",
        ),
        (
            "train.clip = inf",
            "train.clip = inf: must be above 0 and finite in 32 bits",
        ),
        ("train.clip = false", "train.clip = false: must be a number"),
        ("train.shards = 0", "train.shards = 0: must be at least 1"),
        (
            "train.shards = 3",
            "train.shards = 3: must divide train.batch_size = 8",
        ),
        (
            "train.accumulate = 0",
            "train.accumulate = 0: must be at least 1",
        ),
        (
            "train.accumulate = 3",
            "train.accumulate = 3: must divide the 4 sequences of a shard",
        ),
        (
            "train.patience = 0",
            "train.patience = 0: must be at least 1",
        ),
        (
            "train.stop_when = 0.98",
            "train.stop_when = 0.98: must be text in quotes",
        ),
        (
            "train.overfit_one_batch = 'yes'",
            r#"train.overfit_one_batch = "yes": must be true or false"#,
        ),
        (
            "train.betas = [0.9, 'b']",
            r#"train.betas[1] = "b": must be a number"#,
        ),
    ]);
}

#[test]
fn targets() {
    for target in [
        "",
        "accuracy",
        "accuracy > 0.98",
        "accuracy >= 98",
        "accuracy >= 0",
        "accuracy <= 0.5",
        "acuracy >= 0.5",
        "exact >= -1",
        "validation <= nan",
        "validation <= inf",
        "validation <= -1",
        "validation >= 1",
        "loss <= 1",
        "accuracy >= 0.5 0.6",
    ] {
        let takes = "must be accuracy >= SHARE, exact >= SHARE or validation <= NATS, for example accuracy >= 0.98";
        let message = format!("a.toml: train.stop_when = \"{target}\": {takes}");
        assert_eq!(
            error_of(&with(&format!("train.stop_when = \"{target}\"")), &[]),
            message
        );
    }
}

#[test]
fn files_that_are_no_configuration() {
    for (text, message) in [
        ("", "a.toml: task: is missing"),
        ("# nothing\n", "a.toml: task: is missing"),
        ("task.name = 'repeat'", "a.toml: model: is missing"),
        (
            "seed = 0\n[task\n",
            "a.toml:2: unclosed table, expected `]`",
        ),
        ("seed = 0\nseed = 1\n", "a.toml:2: duplicate key"),
        (
            "seed = 0\n\nsteps 5\n",
            "a.toml:3: key with no value, expected `=`",
        ),
        (
            "seed =\n",
            "a.toml:1: string values must be quoted, expected literal string",
        ),
        (
            "seed = 9223372036854775808\n",
            "a.toml:1: u64 value was too large",
        ),
        (
            "seed = 3\nseed.deep = 1\n",
            "a.toml:2: cannot extend value of type integer with a dotted key",
        ),
    ] {
        assert_eq!(error_of(text, &[]), message, "{text}");
    }
}

#[test]
fn assignments() {
    let form = "must be KEY=VALUE, for example train.steps=500";
    for (assignment, message) in [
        ("steps", form),
        ("=1", form),
        ("train.=1", form),
        (".steps=1", form),
        ("train..steps=1", form),
        ("seed.deep=1", "seed = 3: is not a table"),
        (
            "train.stepz=5",
            "train.stepz = 5: unknown key, did you mean steps?",
        ),
        (
            "train.steps=",
            "train.steps = \"\": must be a whole number, 0 or more",
        ),
        (
            "train.steps=many",
            "train.steps = \"many\": must be a whole number, 0 or more",
        ),
        (
            "train.steps=5\nseed=1",
            r#"train.steps = """ 5 seed=1""": must be a whole number, 0 or more"#,
        ),
        (
            "train.warmup=25",
            "train.warmup = 25: must be below train.steps = 25",
        ),
        (
            "train.schedule=cosin",
            "train.schedule = \"cosin\": unknown value, did you mean cosine?",
        ),
    ] {
        let place = assignment.replace('\n', " ");
        assert_eq!(
            error_of(GOOD, &[assignment]),
            format!("--set {place}: {message}")
        );
    }
    // The last of several is the one that counts; an error about another key is the file's.
    let twice = error_of(GOOD, &["train.steps=0", "train.steps=-1"]);
    assert_eq!(
        twice,
        "--set train.steps=-1: train.steps = -1: must be a whole number, 0 or more"
    );
    assert_eq!(
        error_of(GOOD, &["train.steps=5"]),
        "a.toml: train.warmup = 5: must be below train.steps = 5"
    );
}

#[test]
fn interchange() {
    let aligned = "\
task = { name = 'program', program = 'induction', length = 15 }
interchange.alignment.previous = 'L0H1'
";
    assert!(Config::parse(&with(aligned), "a.toml", &[]).is_ok());
    for (lines, message) in [
        (
            "interchange.alignment.previous = 'L0H2'",
            "interchange.alignment.previous = L0H2: there is no such head; the model has 2 layers of 2 heads",
        ),
        (
            "interchange.alignment.previous = 'head 1'",
            "interchange.alignment.previous = \"head 1\": head 1 is no part of a model, parts are written \
             L0H1, feed-forward 0, embedding, positions",
        ),
        (
            "interchange.alignment.previous = 'feed-forward 0'",
            "interchange.alignment.previous = feed-forward 0: the model has no feed-forwards; set \
             model.feed_forward",
        ),
        (
            "interchange.alignment.previous = 'embedding'",
            "interchange.alignment.previous = embedding: must be a head or a feed-forward",
        ),
        (
            "interchange.alignment = {}",
            "interchange.alignment = {}: must name the part of at least one variable, for example \
             previous = \"L0H1\"",
        ),
        (
            "interchange.weight = -1.0",
            "interchange.weight = -1.0: must be 0 or more, and finite in 32 bits",
        ),
        (
            "interchange.strictness = nan",
            "interchange.strictness = NaN: must be 0 or more, and finite in 32 bits",
        ),
        (
            "train.dropout = 0.1",
            "train.dropout = 0.1: must be 0 with [interchange]: the two rows of a pair would drop \
             different numbers",
        ),
        (
            "train.accumulate = 4",
            "train.batch_size = 8: must be a multiple of 16 with [interchange]: each of 8 parts takes \
             pairs of rows",
        ),
        (
            "task = { name = 'repeat', prefix = [0, 2], block = [3, 5] }",
            "task.name = repeat: must be program with [interchange]: other tasks have no program to align \
             with",
        ),
    ] {
        let stays = |line: &&str| !key_of(line).starts_with(key_of(lines));
        let kept: Vec<&str> = aligned.lines().filter(stays).collect();
        let text = with(&format!("{}\n{lines}", kept.join("\n")));
        assert_eq!(
            error_of(&text, &[]),
            format!("a.toml: {message}"),
            "{lines}"
        );
    }
}
