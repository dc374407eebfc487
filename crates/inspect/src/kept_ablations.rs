//! Heads that were ablated alone, kept between runs of the program: a long test goes on where it was
//! stopped.
//!
//! Nothing here is needed: whatever is missing, damaged or of another version is measured anew.

use std::{collections::BTreeMap, path::PathBuf};

use headlight_heads::{Ablation, HeadName, Interval};
use headlight_lens::{Behaviour, Estimate, Performance};
use headlight_residual::Decoder;
use headlight_run::{Error, sha256, untrusted::read_at_most, write_atomically};
use headlight_tasks::Cache;

/// The first line of a file. The number goes up when the same weights and sequences get other
/// numbers, or the file another form.
const FIRST: &str = "headlight ablations 1";
/// Far more than the heads of any model take.
const MOST_BYTES: u64 = 16 << 20;

/// What is left without each head, as far as it is known.
pub(super) struct KeptAblations {
    /// `None` where nothing is kept.
    file: Option<PathBuf>,
    pub found: BTreeMap<HeadName, Performance>,
}

impl KeptAblations {
    /// What is known of these weights on these sequences.
    pub fn open(cache: &Cache, model: &Decoder, behaviour: &Behaviour, by: Ablation) -> Self {
        let mut key = Vec::new();
        key.extend(model.sha256().bytes());
        key.extend(by.to_string().bytes());
        for number in behaviour.numbers() {
            key.extend(number.to_le_bytes());
        }
        let file = cache.file("ablations", &sha256(&key));
        let mut found = BTreeMap::new();
        if let Some(file) = &file
            && let Ok(bytes) = read_at_most(file, MOST_BYTES)
            && let Ok(text) = String::from_utf8(bytes)
        {
            found = read(&text).unwrap_or_default();
        }
        Self { file, found }
    }

    /// Writes what is known.
    pub fn write(&self) -> Result<(), Error> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder).map_err(|error| Error::io(folder, "create", error))?;
        }
        write_atomically(file, written(&self.found).as_bytes())
    }
}

/// A line for each head. Numbers are written so that they are read as the same bits.
fn written(found: &BTreeMap<HeadName, Performance>) -> String {
    let mut lines = vec![FIRST.to_owned()];
    for (head, left) in found {
        let difference = left.logit_difference.as_ref();
        let numbers = [
            Some(left.accuracy),
            Some(left.interval.low),
            Some(left.interval.high),
            Some(left.loss),
            left.loss_elsewhere,
            difference.map(|difference| difference.mean),
            difference.map(|difference| difference.interval.low),
            difference.map(|difference| difference.interval.high),
        ];
        let number = |number: Option<f64>| number.map_or("-".to_owned(), |x| x.to_string());
        lines.push(format!("{head} {}", numbers.map(number).join(" ")));
    }
    lines.push("end\n".to_owned());
    lines.join("\n")
}

/// The inverse of [`written`]; `None` if it is not whole.
fn read(text: &str) -> Option<BTreeMap<HeadName, Performance>> {
    let lines = text.strip_prefix(FIRST)?.strip_prefix('\n')?;
    let lines = lines.strip_suffix("end\n")?;
    let mut found = BTreeMap::new();
    for line in lines.lines() {
        let (head, numbers) = line.split_once(' ')?;
        let numbers: Vec<Option<f64>> = numbers.split(' ').map(|x| x.parse().ok()).collect();
        let [accuracy, low, high, loss, loss_elsewhere, mean, least, most] = numbers[..] else {
            return None;
        };
        let interval = Interval {
            low: low?,
            high: high?,
        };
        let mut logit_difference = None;
        if let (Some(mean), Some(low), Some(high)) = (mean, least, most) {
            let interval = Interval { low, high };
            logit_difference = Some(Estimate { mean, interval });
        }
        let left = Performance {
            accuracy: accuracy?,
            interval,
            loss: loss?,
            loss_elsewhere,
            logit_difference,
        };
        found.insert(head.parse().ok()?, left);
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> BTreeMap<HeadName, Performance> {
        let interval = Interval {
            low: 0.1 + 0.2,
            high: 1.0,
        };
        let plain = Performance {
            accuracy: 1.0 / 3.0,
            interval,
            loss: 5e-324,
            loss_elsewhere: Some(1e300),
            logit_difference: None,
        };
        let mean = -2.0_f64.sqrt();
        let paired = Performance {
            loss_elsewhere: None,
            logit_difference: Some(Estimate { mean, interval }),
            ..plain
        };
        let head = |name: &str| name.parse().unwrap();
        BTreeMap::from([(head("L0H3"), plain), (head("L29H8"), paired)])
    }

    #[test]
    fn numbers_are_read_as_the_bits_that_were_written() {
        assert_eq!(read(&written(&some())), Some(some()));
    }

    #[test]
    fn a_file_that_is_not_whole_says_nothing() {
        let text = written(&some());
        for end in 0..text.len() {
            assert_eq!(read(&text[..end]), None, "{end}");
        }
        assert_eq!(read(&text.replace("ablations 1", "ablations 0")), None);
        assert_eq!(read(&text.replace("L0H3", "L0")), None);
    }
}
