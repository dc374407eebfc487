//! `assets/vocabulary.js`: the words of heads for the pages, spelled as the types spell them.

use std::{
    fmt::{Debug, Write as _},
    fs,
    path::PathBuf,
};

use headlight_heads::{Ablation, HeadSet, Reader, Role, RoleEvent, SequenceKind};

use crate::role_look::measures_as_told;

/// The roles as they are told; `mixed` is the last.
fn roles() -> Vec<Role> {
    let mut roles: Vec<Role> = measures_as_told().into_iter().map(Role::Of).collect();
    roles.push(Role::Mixed);
    roles
}

/// The module as text.
fn vocabulary() -> String {
    let role_key = |role: &Role| match role {
        Role::Of(measure) => key(measure),
        Role::Mixed => key(role),
    };
    let mut text = "\
// The words of heads, as the types of crates/heads spell them in the files of a run.
// Written by the test in crates/report/src/vocabulary.rs; change it there.
"
    .to_owned();
    text += &object(
        "What a head can look like; first the role that takes most to tell, last `mixed`, which is none.",
        "ROLE",
        roles().iter().map(|role| (role_key(role), role.name())),
    );
    text += &object(
        "What happened to a head's role.",
        "EVENT",
        RoleEvent::ALL
            .iter()
            .map(|event| (key(event), event.name())),
    );
    text += &object(
        "On which sequences a head was watched.",
        "KIND",
        SequenceKind::ALL
            .iter()
            .map(|kind| (key(kind), kind.name())),
    );
    text += &object(
        "Who reads what heads wrote, in the order of tables.",
        "READER",
        Reader::ALL
            .iter()
            .map(|reader| (key(reader), reader.name())),
    );
    text += &object(
        "What heads that are interfered with together have in common, if it is no role.",
        "SET",
        [(key(&HeadSet::Layer), HeadSet::Layer.name())].into_iter(),
    );
    text += &object(
        "What stands in place of a head that is off.",
        "PLACE",
        Ablation::ALL
            .iter()
            .map(|ablation| (ablation.name().to_owned(), ablation.in_words())),
    );
    text
}

fn object<'a>(
    comment: &str,
    name: &str,
    entries: impl Iterator<Item = (String, &'a str)>,
) -> String {
    let mut text = format!("\n/** {comment} */\nexport const {name} = {{\n");
    for (key, word) in entries {
        let _ = writeln!(text, "  {key}: {word:?},");
    }
    text + "};\n"
}

/// The name of a variant as JavaScript writes names: `previousToken`.
fn key(variant: &impl Debug) -> String {
    let name = format!("{variant:?}");
    let (first, rest) = name.split_at(1);
    first.to_lowercase() + rest
}

fn assets() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("assets")
}

#[test]
fn the_vocabulary_of_the_pages_is_that_of_the_types() {
    let path = assets().join("vocabulary.js");
    let due = vocabulary();
    if std::env::var_os("UPDATE_ASSETS").is_some() {
        fs::write(&path, &due).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    let command = "UPDATE_ASSETS=1 cargo test --workspace --lib vocabulary";
    assert!(
        written == due,
        "crates/report/assets/vocabulary.js is old; run: {command}"
    );
}

#[test]
fn no_other_script_spells_a_role_or_an_event() {
    let mut scripts = 0;
    for entry in fs::read_dir(assets()).unwrap() {
        let path = entry.unwrap().path();
        let is_script = path.extension().is_some_and(|extension| extension == "js");
        if !is_script || path.ends_with("vocabulary.js") {
            continue;
        }
        scripts += 1;
        let text = fs::read_to_string(&path).unwrap();
        let events = RoleEvent::ALL.map(RoleEvent::name);
        for word in roles().into_iter().map(Role::name).chain(events) {
            let quoted = format!("{word:?}");
            assert!(!text.contains(&quoted), "{} has {quoted}", path.display());
        }
    }
    assert!(scripts > 0, "no scripts in {}", assets().display());
}
