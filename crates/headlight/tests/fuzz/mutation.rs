//! Inputs for parsers.

use proptest::{collection::vec, prelude::*, sample::Index};

/// What parsers stumble over: limits of numbers, and marks that open something.
const STUMBLING_BLOCKS: [&str; 24] = [
    "-1",
    "0",
    "1e999",
    "-0.0",
    "nan",
    "inf",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "99999999999999999999",
    "\"",
    "'''",
    "\\u{0}",
    "\\ud800",
    "[[",
    "]",
    "{",
    "}",
    "=",
    ".",
    ":null,",
    "\n",
    "\u{0}",
    "\u{feff}é",
];

/// Up to 200 bytes of any kind.
pub fn arbitrary() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..200)
}

/// One of `valid`, changed in up to six places, or arbitrary bytes.
pub fn changed(valid: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let change = (any::<Index>(), any::<Index>(), 0..8_u8, any::<u8>());
    let changed =
        (proptest::sample::select(valid), vec(change, 0..6)).prop_map(|(mut bytes, changes)| {
            for (at, to, kind, byte) in changes {
                apply(&mut bytes, (at, to), kind, byte);
            }
            bytes
        });
    prop_oneof![4 => changed, 1 => arbitrary()]
}

fn apply(bytes: &mut Vec<u8>, (at, to): (Index, Index), kind: u8, byte: u8) {
    let (a, b) = (at.index(bytes.len() + 1), to.index(bytes.len() + 1));
    let (from, to) = (a.min(b), a.max(b).min(a.min(b) + 64));
    match kind {
        0 => bytes.insert(a, byte),
        1 => drop(bytes.drain(from..to)),
        2 => bytes.truncate(a),
        3 => {
            let piece = bytes[from..to].to_vec();
            bytes.splice(b..b, piece);
        }
        4 => {
            let block = STUMBLING_BLOCKS[usize::from(byte) % STUMBLING_BLOCKS.len()];
            bytes.splice(from..to.min(from + 2), block.bytes());
        }
        5 if a < bytes.len() => bytes[a] ^= 1 << (byte % 8),
        6 if a < bytes.len() => bytes[a] = byte,
        // A number in its place: lengths, offsets, sizes.
        _ => {
            let number = bytes
                .iter()
                .skip(a)
                .position(u8::is_ascii_digit)
                .map(|offset| a + offset);
            if let Some(number) = number {
                bytes[number] = b'0' + byte % 10;
                if byte > 127 {
                    bytes.splice(number..number, (0..byte % 12).map(|digit| b'1' + digit % 9));
                }
            }
        }
    }
}

/// As text, with what is no UTF-8 replaced.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
