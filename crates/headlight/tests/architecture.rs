//! ARCHITECTURE.md says what the manifests say, and no room is too large.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use toml::Table;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap()
}

fn rooms() -> Vec<String> {
    let folders = fs::read_dir(root().join("crates")).unwrap();
    let mut rooms: Vec<String> = folders
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    rooms.sort();
    rooms
}

/// The block below "The arrows", a line a room, in the order of the page.
fn drawn() -> Vec<(String, BTreeSet<String>)> {
    let page = page();
    let (_, section) = page.split_once("\n## The arrows\n").unwrap();
    let (_, block) = section.split_once("\n```text\n").unwrap();
    let (block, _) = block.split_once("\n```\n").unwrap();
    block
        .lines()
        .map(|line| {
            let (room, uses) = line.split_once('→').unwrap_or((line, ""));
            let uses = uses
                .split(',')
                .map(str::trim)
                .filter(|room| !room.is_empty());
            (room.trim().to_owned(), uses.map(str::to_owned).collect())
        })
        .collect()
}

/// The rooms that the manifest of `room` names, for the library and its programs.
fn used_by(room: &str) -> BTreeSet<String> {
    let path = root().join("crates").join(room).join("Cargo.toml");
    let manifest: Table = fs::read_to_string(path).unwrap().parse().unwrap();
    let mut tables = vec![&manifest];
    if let Some(targets) = manifest.get("target") {
        tables.extend(
            targets
                .as_table()
                .unwrap()
                .values()
                .map(|target| target.as_table().unwrap()),
        );
    }
    let mut used = BTreeSet::new();
    for table in tables {
        for kind in ["dependencies", "build-dependencies"] {
            let Some(dependencies) = table.get(kind) else {
                continue;
            };
            for name in dependencies.as_table().unwrap().keys() {
                if let Some(room) = name.strip_prefix("headlight-") {
                    used.insert(room.to_owned());
                }
            }
        }
    }
    used
}

#[test]
fn the_arrows_drawn_are_those_of_the_manifests() {
    let mut drawn: BTreeMap<String, BTreeSet<String>> = drawn().into_iter().collect();
    for room in rooms() {
        let uses = drawn.remove(&room);
        let uses = uses.unwrap_or_else(|| panic!("ARCHITECTURE.md does not draw {room}"));
        assert_eq!(
            uses,
            used_by(&room),
            "{room}: ARCHITECTURE.md (left), its manifest (right)"
        );
    }
    assert!(drawn.is_empty(), "there are no such rooms: {drawn:?}");
}

#[test]
fn each_room_uses_only_rooms_above_it() {
    let mut above = BTreeSet::new();
    for (room, uses) in drawn() {
        assert!(
            uses.is_subset(&above),
            "{room} uses a room below it: {uses:?}"
        );
        assert!(above.insert(room.clone()), "{room} is drawn twice");
    }
}

/// The lines of all files below `folder`.
fn lines(folder: &Path) -> usize {
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    let mut sum = 0;
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sum += lines(&path);
        } else {
            sum += fs::read_to_string(&path).unwrap().lines().count();
        }
    }
    sum
}

#[test]
fn no_room_holds_more_than_a_fifth_of_all_lines() {
    let sizes: Vec<(String, usize)> = rooms()
        .into_iter()
        .map(|room| {
            let folder = root().join("crates").join(&room);
            (
                room,
                lines(&folder.join("src")) + lines(&folder.join("assets")),
            )
        })
        .collect();
    let all: usize = sizes.iter().map(|(_, lines)| lines).sum();
    assert!(sizes.iter().all(|(_, lines)| *lines > 0), "{sizes:?}");
    for (room, lines) in &sizes {
        assert!(
            5 * lines <= all,
            "{room} holds {lines} of {all} lines: it has two jobs"
        );
    }
}

#[test]
fn every_file_that_the_page_names_is_there() {
    let page = page();
    // Between backticks, with a folder; NAME and VERB stand for the new file.
    let named: Vec<&str> = page
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|name| name.contains('/') && name.contains('.') && !name.contains(' '))
        .filter(|name| !name.contains("NAME") && !name.contains("VERB"))
        .collect();
    assert!(named.len() >= 15, "{named:?}");
    for name in named {
        assert!(root().join(name).exists(), "ARCHITECTURE.md names {name}");
    }
}
