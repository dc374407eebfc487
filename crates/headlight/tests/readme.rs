//! The commands and the tables of the pages for users: every command runs, every name exists.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

/// Pages whose commands run one after the other in one folder, so that a page may use the run that
/// a page before it has made.
const PAGES: [&str; 7] = [
    "README.md",
    "docs/training.md",
    "docs/inspecting.md",
    "docs/notebooks.md",
    "crates/trainer/README.md",
    "crates/inspect/README.md",
    "crates/headlight/README.md",
];

/// What `scripts/test` is: the tests do not run the tests.
const TEST_COMMAND: &str = "scripts/test";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(page: &str) -> String {
    fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// The lines of the blocks marked `sh`, without their comments.
fn commands(page: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut inside = false;
    for line in read(page).lines() {
        if line.starts_with("```") {
            inside = line == "```sh";
        } else if inside {
            let (command, _comment) = line.split_once(" #").unwrap_or((line, ""));
            commands.push(command.trim().to_owned());
        }
    }
    commands.retain(|command| !command.is_empty());
    commands
}

/// The words of a command; double quotes keep spaces.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in command.split('"').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// A folder with the configurations and the data, as after `git clone`.
fn checkout() -> TempDir {
    let folder = TempDir::new().unwrap();
    for name in ["configs", "data"] {
        let copy = folder.path().join(name);
        fs::create_dir(&copy).unwrap();
        for entry in fs::read_dir(root().join(name)).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, copy.join(path.file_name().unwrap())).unwrap();
        }
    }
    folder
}

fn run(program: &str, arguments: &[String], folder: &Path) -> Result<(), String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Runs `command` in `folder` as the shell would after a build, trainings with few steps.
fn run_command(command: &str, folder: &Path) -> Result<(), String> {
    let words = words(command);
    let (first, rest) = words.split_first().ok_or("an empty command")?;
    if first == TEST_COMMAND {
        return Ok(());
    }
    if first != "cargo" {
        return Err("neither cargo nor the test command".to_owned());
    }
    let parts: Vec<&str> = rest.iter().map(String::as_str).collect();
    let (program, arguments) = match parts[..] {
        ["run", "--example", name] => return example_exists(name),
        ["run", "--bin", name, "--", ..] => (name, &rest[4..]),
        [alias, ..] if is_alias(alias) => (alias, &rest[1..]),
        _ => return Err("no test knows how to run this".to_owned()),
    };
    match program {
        "train" => {
            let few = ["--set", "train.steps=20", "--set", "train.warmup=0"];
            let mut arguments = arguments.to_vec();
            arguments.extend(few.map(str::to_owned));
            run(env!("CARGO_BIN_EXE_train"), &arguments, folder)
        }
        "inspect" => run(env!("CARGO_BIN_EXE_inspect"), arguments, folder),
        other => Err(format!("there is no program {other}")),
    }
}

/// Whether `cargo NAME` is `cargo run --bin NAME --`.
fn is_alias(name: &str) -> bool {
    let line = format!("{name} = \"run --bin {name} --\"");
    read(".cargo/config.toml")
        .lines()
        .any(|known| known == line)
}

/// The names of the examples.
fn examples() -> BTreeSet<String> {
    let manifest: toml::Table = read("examples/Cargo.toml").parse().unwrap();
    let examples = manifest["example"].as_array().unwrap();
    examples
        .iter()
        .map(|example| example["name"].as_str().unwrap().to_owned())
        .collect()
}

fn example_exists(name: &str) -> Result<(), String> {
    if examples().contains(name) {
        return Ok(());
    }
    Err(format!("there is no example {name}"))
}

#[test]
fn every_command_of_the_pages_runs() {
    let folder = checkout();
    let mut done = BTreeSet::new();
    for page in PAGES {
        for command in commands(page) {
            // A page before may have it too, perhaps by the alias.
            let by_alias = command.replace("cargo run --bin train -- ", "cargo train ");
            if !done.insert(by_alias) {
                continue;
            }
            if let Err(reason) = run_command(&command, folder.path()) {
                panic!("{page}: {command}: {reason}");
            }
        }
    }
    assert!(done.len() > 10, "only {done:?}");
}

#[test]
fn a_wrong_flag_a_wrong_verb_and_a_wrong_example_are_found() {
    let folder = checkout();
    let fails = |command: &str| run_command(command, folder.path()).is_err();
    assert!(!fails("cargo train --schema"));
    assert!(fails("cargo train --shcema"));
    assert!(fails("cargo train configs/inductoin.toml"));
    assert!(!fails(
        "cargo run --bin inspect -- learn --out \"a page.html\""
    ));
    assert!(folder.path().join("a page.html").exists());
    assert!(fails("cargo inspect lear --out page.html"));
    assert!(fails("cargo inspect runs/induction heads")); // nothing was trained here
    assert!(!fails("cargo run --example why_scale"));
    assert!(fails("cargo run --example why_not"));
    assert!(fails("cargo install headlight"));
    assert!(fails("make"));
}

/// The words between backticks in the first column of the table below `heading`.
fn first_column(page: &str, heading: &str) -> BTreeSet<String> {
    let text = format!("\n{}", read(page));
    let (_, section) = text.split_once(&format!("\n{heading}\n")).unwrap();
    let rows = section
        .lines()
        .skip_while(|line| !line.starts_with("| "))
        .take_while(|line| line.starts_with('|'));
    rows.flat_map(|row| {
        let cell = row.split('|').nth(1).unwrap();
        cell.split('`').skip(1).step_by(2).map(str::to_owned)
    })
    .collect()
}

#[test]
fn the_table_of_verbs_names_verbs_that_there_are() {
    let mut verbs: BTreeSet<String> = BTreeSet::from(["learn".to_owned()]);
    for verb in headlight_inspect::verbs() {
        verbs.insert(verb.name().to_owned());
    }
    let named = first_column("README.md", "## Verbs");
    assert!(named.len() > 5 && named.is_subset(&verbs), "{named:?}");
}

#[test]
fn the_table_of_examples_has_every_example_and_no_other() {
    assert_eq!(first_column("README.md", "## Examples"), examples());
}

#[test]
fn every_configuration_says_what_it_shows_and_the_root_readme_names_no_other() {
    let shipped: BTreeSet<String> = fs::read_dir(root().join("configs"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    for name in &shipped {
        let text = read(&format!("configs/{name}.toml"));
        let comment = text.strip_prefix("# ").unwrap_or_default();
        let sentences = comment.lines().next().unwrap_or_default();
        assert!(sentences.split(' ').count() > 5, "{name}: {sentences:?}");
    }
    let in_root = first_column("README.md", "## Configurations");
    assert!(
        !in_root.is_empty() && in_root.is_subset(&shipped),
        "{in_root:?}"
    );
}

#[test]
fn every_link_to_a_file_leads_somewhere() {
    let pages = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "configs/README.md",
        "docs/training.md",
        "docs/inspecting.md",
        "docs/verbs.md",
        "docs/notebooks.md",
        "docs/own.md",
        "docs/pretrained.md",
        "docs/results/README.md",
        "docs/results/cost.md",
        "docs/results/known_answers.md",
        "docs/results/experiments.md",
        "docs/results/shared_work.md",
        "docs/results/language.md",
        "docs/results/benchmarks.md",
        "docs/results/scaling.md",
    ];
    let crates = fs::read_dir(root().join("crates")).unwrap();
    let of_crates = crates.map(|entry| {
        format!(
            "crates/{}/README.md",
            entry.unwrap().file_name().to_str().unwrap()
        )
    });
    for page in pages.map(str::to_owned).into_iter().chain(of_crates) {
        let folder = root().join(&page);
        let folder = folder.parent().unwrap();
        for link in read(&page).split("](").skip(1) {
            let (target, _) = link.split_once(')').unwrap();
            if target.starts_with("http") {
                continue;
            }
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let path = if file.is_empty() {
                root().join(&page)
            } else {
                folder.join(file)
            };
            assert!(path.exists(), "{page}: {target}");
            if !heading.is_empty() {
                let text = fs::read_to_string(&path).unwrap();
                let headings = text.lines().filter(|line| line.starts_with('#'));
                let anchors: Vec<String> = headings.map(anchor).collect();
                assert!(
                    anchors.iter().any(|anchor| anchor == heading),
                    "{page}: {target}: {anchors:?}"
                );
            }
        }
    }
}

/// The address of a heading within its page, as code hosts make it.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars()
        .filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}
