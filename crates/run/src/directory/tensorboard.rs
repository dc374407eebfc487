//! Rows as a file that TensorBoard reads.
//!
//! An event file is a chain of records, all integers little-endian (TFRecord,
//! `tensorflow/core/lib/io/record_writer`):
//!
//! ```text
//! u64 length    u32 masked CRC-32C of the length    the data    u32 masked CRC-32C of the data
//! ```
//!
//! The data of each is a protocol buffer, `tensorflow/core/util/event.proto`, of which these fields
//! are written:
//!
//! ```text
//! Event      1 double wall_time   2 int64 step   3 string file_version   5 Summary summary   7 SessionLog session_log
//! Summary    1 repeated Value { 1 string tag   2 float simple_value }
//! SessionLog 1 enum status, START = 1
//! ```

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use headlight_heads::SequenceKind;

use crate::{Error, HeadRow, MetricsRow};

/// A process' own event file in the folder `tensorboard` of a run. It is made when the first row
/// comes.
#[derive(Debug, Clone)]
pub struct EventFile {
    path: PathBuf,
}

impl EventFile {
    /// The file in the run at `run` of a process that starts now. TensorBoard reads a folder's
    /// files in the order of their names, which is the order of time.
    pub fn new(run: &Path) -> Self {
        let now = since_1970();
        let name = format!(
            "events.out.tfevents.{:010}.{:09}.{}",
            now.as_secs(),
            now.subsec_nanos(),
            std::process::id()
        );
        Self {
            path: run.join("tensorboard").join(name),
        }
    }

    /// Losses, accuracies, learning rate and gradient norm, as far as the row has them.
    pub fn append_metrics(&self, row: &MetricsRow) -> Result<(), Error> {
        let scalars = [
            ("loss/training", row.loss),
            ("loss/validation", Some(row.validation)),
            ("accuracy/validation", Some(row.accuracy)),
            ("accuracy/training", row.training_accuracy),
            ("accuracy/whole sequences", Some(row.exact)),
            ("in-context score", row.in_context),
            ("update/learning rate", row.learning_rate),
            ("update/gradient norm", row.gradient_norm),
        ];
        let known = scalars
            .into_iter()
            .filter_map(|(tag, value)| Some((tag.to_owned(), value?)));
        let answers = row
            .breakdown
            .iter()
            .map(|(question, answers)| (format!("answers/{question}"), answers.accuracy));
        self.append(row.step, &known.chain(answers).collect::<Vec<_>>())
    }

    /// What each head scores on the probe, `induction/L1H2`, beside what uniform attention scores
    /// and the ceiling.
    pub fn append_heads(&self, rows: &[HeadRow]) -> Result<(), Error> {
        let on_probe = rows.iter().filter(|row| row.on == SequenceKind::Probe);
        let mut scalars = Vec::new();
        for (index, row) in on_probe.enumerate() {
            for (name, score) in &row.scores {
                scalars.push((format!("{name}/{}", row.head), score.value));
                // They are those of the sequences, the same for every head.
                if index == 0 {
                    scalars.push((format!("{name}/uniform"), score.null));
                    scalars.push((format!("{name}/ceiling"), score.ceiling));
                }
            }
        }
        match rows.first() {
            Some(row) if !scalars.is_empty() => self.append(row.step, &scalars),
            _ => Ok(()),
        }
    }

    fn append(&self, step: usize, scalars: &[(String, f64)]) -> Result<(), Error> {
        let time = since_1970().as_secs_f64();
        let mut bytes = Vec::new();
        let is_new = !self.path.exists();
        if is_new {
            record(&mut bytes, &version_event(time));
            // What an earlier process wrote at this step and after it counts no more.
            record(&mut bytes, &start_event(time, step));
        }
        record(&mut bytes, &scalars_event(time, step, scalars));
        let write = || -> std::io::Result<()> {
            if let Some(directory) = self.path.parent().filter(|_| is_new) {
                fs::create_dir_all(directory)?;
            }
            OpenOptions::new()
                .create(true)
                .append(true)
                .open(&self.path)?
                .write_all(&bytes)
        };
        write().map_err(|error| Error::io(&self.path, "append", error))
    }
}

/// Since the beginning of 1970; on a clock that is set before it, none.
fn since_1970() -> Duration {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}

fn record(out: &mut Vec<u8>, data: &[u8]) {
    let length = (data.len() as u64).to_le_bytes();
    out.extend(length);
    out.extend(masked_crc(&length).to_le_bytes());
    out.extend(data);
    out.extend(masked_crc(data).to_le_bytes());
}

/// Rotated and shifted, since a CRC of data that holds CRCs says little
/// (`tensorflow/core/lib/hash/crc32c.h`).
fn masked_crc(data: &[u8]) -> u32 {
    crc32c::crc32c(data)
        .rotate_right(15)
        .wrapping_add(0xa282_ead8)
}

fn version_event(time: f64) -> Vec<u8> {
    let mut event = Message::default();
    event.double(1, time);
    event.bytes(3, b"brain.Event:2");
    event.0
}

fn start_event(time: f64, step: usize) -> Vec<u8> {
    let mut session_log = Message::default();
    session_log.varint(1, 1);
    let mut event = Message::default();
    event.double(1, time);
    event.varint(2, step as u64);
    event.bytes(7, &session_log.0);
    event.0
}

fn scalars_event(time: f64, step: usize, scalars: &[(String, f64)]) -> Vec<u8> {
    let mut summary = Message::default();
    for (tag, number) in scalars {
        let mut value = Message::default();
        value.bytes(1, tag.as_bytes());
        value.float(2, *number as f32);
        summary.bytes(1, &value.0);
    }
    let mut event = Message::default();
    event.double(1, time);
    event.varint(2, step as u64);
    event.bytes(5, &summary.0);
    event.0
}

/// A protocol buffer under construction: fields, each behind its number and the kind of its bytes.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    /// Seven bits a byte, lowest first; the eighth says that more follow.
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn varint(&mut self, field: u64, value: u64) {
        self.number(field << 3);
        self.number(value);
    }

    fn double(&mut self, field: u64, value: f64) {
        self.number(field << 3 | 1);
        self.0.extend(value.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, value: &[u8]) {
        self.number(field << 3 | 2);
        self.number(value.len() as u64);
        self.0.extend(value);
    }

    fn float(&mut self, field: u64, value: f32) {
        self.number(field << 3 | 5);
        self.0.extend(value.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<Vec<_>>()
            .concat()
    }

    #[test]
    fn the_checksum_is_crc_32c() {
        // RFC 3720, appendix B.4.
        assert_eq!(crc32c::crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c::crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c::crc32c(&(0..32).collect::<Vec<u8>>()), 0x46dd_794e);
        // A mask is undone by the other rotation.
        let undone = masked_crc(&[0; 32])
            .wrapping_sub(0xa282_ead8)
            .rotate_left(15);
        assert_eq!(undone, 0x8a91_36aa);
    }

    #[test]
    fn records_are_those_that_tensorboard_writes() {
        // From `tensorboard.summary.writer.record_writer.RecordWriter` and `event_pb2.Event`,
        // version 2.21.
        let mut bytes = Vec::new();
        record(&mut bytes, &version_event(1.5));
        record(&mut bytes, &start_event(1.5, 300));
        record(
            &mut bytes,
            &scalars_event(
                2.5,
                300,
                &[("loss".to_owned(), 0.25), ("accuracy".to_owned(), 1.0)],
            ),
        );
        assert_eq!(hex(&bytes), KNOWN);
    }

    const KNOWN: &str = "1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c1000000000000000\
        95fbfe1809000000000000f83f10ac023a020801713b788a2c00000000000000f4aecc4509000000000000044010ac02\
        2a1e0a0b0a046c6f7373150000803e0a0f0a086163637572616379150000803f864c97b0";

    #[test]
    fn a_second_process_writes_a_file_of_its_own_that_comes_after() {
        let run = tempfile::tempdir().unwrap();
        let (first, second) = (EventFile::new(run.path()), EventFile::new(run.path()));
        assert!(first.path < second.path);
        first.append(1, &[("loss".to_owned(), 1.0)]).unwrap();
        let before = fs::read(&first.path).unwrap();
        second.append(1, &[("loss".to_owned(), 2.0)]).unwrap();
        assert_eq!(fs::read(&first.path).unwrap(), before);
        second.append(2, &[("loss".to_owned(), 3.0)]).unwrap();
        // A version, a start and two rows, each record with its 16 bytes of frame.
        let rows = [version_event(0.0).len(), start_event(0.0, 1).len()];
        let row = scalars_event(0.0, 1, &[("loss".to_owned(), 1.0)]).len();
        assert_eq!(
            fs::read(&second.path).unwrap().len(),
            rows.iter().sum::<usize>() + 2 * row + 4 * 16
        );
    }
}
