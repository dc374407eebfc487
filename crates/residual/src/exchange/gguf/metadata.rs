//! Keys and values in the header of a GGUF file: each key is read, known to be harmless, or refused.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use memmap2::Mmap;

use super::bytes::Bytes;
use crate::exchange::ExchangeError;

/// Of a value, as many characters are shown.
const MOST_SHOWN: usize = 60;

/// A value. Texts and lists stay in the file.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Whole(i128),
    Number(f64),
    Flag(bool),
    Text(Range<usize>),
    List(List),
}

/// A list of values of one type.
#[derive(Debug, Clone, PartialEq)]
pub struct List {
    /// The number of the type in the file.
    pub kind: u32,
    pub count: usize,
    pub bytes: Range<usize>,
}

/// The values of a file by their keys.
#[derive(Debug)]
pub struct Metadata {
    path: PathBuf,
    file: Arc<Mmap>,
    values: BTreeMap<String, Value>,
    read: RefCell<BTreeSet<String>>,
}

impl Metadata {
    pub fn new(path: PathBuf, file: Arc<Mmap>, values: BTreeMap<String, Value>) -> Self {
        Self {
            path,
            file,
            values,
            read: RefCell::default(),
        }
    }

    /// The file that has these values.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn size(&self, key: &str) -> Result<Option<usize>, ExchangeError> {
        let reason = "must be a whole number from 1 to 1048576";
        match self.value(key) {
            None => Ok(None),
            // Products of such sizes do not overflow.
            Some(&Value::Whole(size)) if (1..=1 << 20).contains(&size) => Ok(Some(size as usize)),
            Some(_) => Err(self.refused(key, reason)),
        }
    }

    /// A size or 0.
    pub fn count(&self, key: &str) -> Result<Option<usize>, ExchangeError> {
        match self.value(key) {
            Some(Value::Whole(0)) => Ok(Some(0)),
            _ => self.size(key),
        }
    }

    /// The id of a token.
    pub fn token(&self, key: &str) -> Result<Option<usize>, ExchangeError> {
        match self.value(key) {
            None => Ok(None),
            Some(&Value::Whole(id)) if (0..1 << 32).contains(&id) => Ok(Some(id as usize)),
            Some(_) => Err(self.refused(key, "must be the id of a token")),
        }
    }

    pub fn required_size(&self, key: &str) -> Result<usize, ExchangeError> {
        self.size(key)?
            .ok_or_else(|| self.refused(key, "is missing"))
    }

    pub fn number(&self, key: &str) -> Result<Option<f64>, ExchangeError> {
        match self.value(key) {
            None => Ok(None),
            Some(&Value::Number(number)) if number > 0.0 => Ok(Some(number)),
            Some(_) => Err(self.refused(key, "must be a number above 0")),
        }
    }

    pub fn flag(&self, key: &str) -> Result<Option<bool>, ExchangeError> {
        match self.value(key) {
            None => Ok(None),
            Some(&Value::Flag(flag)) => Ok(Some(flag)),
            Some(_) => Err(self.refused(key, "must be true or false")),
        }
    }

    pub fn text(&self, key: &str) -> Result<Option<&str>, ExchangeError> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(self.text_at(key, text)?)),
            Some(_) => Err(self.refused(key, "must be text")),
        }
    }

    /// A list of texts, which are read one after the other.
    pub fn texts(&self, key: &str) -> Result<Vec<&str>, ExchangeError> {
        let list = self.list(key, &[Bytes::TEXT], "must be a list of texts")?;
        let mut bytes = Bytes::within(&self.file, list.bytes.clone());
        let mut texts = Vec::with_capacity(list.count);
        for _ in 0..list.count {
            let text = bytes.text().map_err(|reason| self.refused(key, &reason))?;
            texts.push(self.text_at(key, &text)?);
        }
        Ok(texts)
    }

    /// A list of numbers of 32 bits.
    pub fn numbers(&self, key: &str) -> Result<Vec<f32>, ExchangeError> {
        let list = self.list(key, &[Bytes::F32], "must be a list of numbers")?;
        let (numbers, _) = self.file[list.bytes.clone()].as_chunks();
        let numbers = numbers.iter().map(|&bytes| f32::from_le_bytes(bytes));
        Ok(numbers.collect())
    }

    /// A list of whole numbers of 32 bits.
    pub fn wholes(&self, key: &str) -> Result<Vec<i64>, ExchangeError> {
        let list = self.list(
            key,
            &[Bytes::U32, Bytes::I32],
            "must be a list of whole numbers",
        )?;
        let (numbers, _) = self.file[list.bytes.clone()].as_chunks();
        let signed = list.kind == Bytes::I32;
        let number = |&bytes: &[u8; 4]| {
            if signed {
                i64::from(i32::from_le_bytes(bytes))
            } else {
                i64::from(u32::from_le_bytes(bytes))
            }
        };
        Ok(numbers.iter().map(number).collect())
    }

    /// Whether the file has this key.
    pub fn has(&self, key: &str) -> bool {
        self.value(key).is_some()
    }

    /// That no key of the model is left which might change what it computes.
    pub fn check_all_read(&self, is_harmless: impl Fn(&str) -> bool) -> Result<(), ExchangeError> {
        let read = self.read.borrow();
        let left = self
            .values
            .keys()
            .find(|key| !read.contains(*key) && !is_harmless(key));
        match left {
            Some(key) => {
                let reason = "is no key that is known here; it may change what the model computes";
                Err(self.refused(key, reason))
            }
            None => Ok(()),
        }
    }

    pub fn refused(&self, key: &str, reason: &str) -> ExchangeError {
        ExchangeError::Metadata {
            file: self.path.display().to_string(),
            key: key.to_owned(),
            value: self.shown(key),
            reason: reason.to_owned(),
        }
    }

    fn value(&self, key: &str) -> Option<&Value> {
        self.read.borrow_mut().insert(key.to_owned());
        self.values.get(key)
    }

    fn list(&self, key: &str, kinds: &[u32], reason: &str) -> Result<&List, ExchangeError> {
        match self.value(key) {
            None => Err(self.refused(key, "is missing")),
            Some(Value::List(list)) if kinds.contains(&list.kind) => Ok(list),
            Some(_) => Err(self.refused(key, reason)),
        }
    }

    fn text_at(&self, key: &str, text: &Range<usize>) -> Result<&str, ExchangeError> {
        let bytes = &self.file[text.clone()];
        std::str::from_utf8(bytes).map_err(|_| self.refused(key, "is no UTF-8"))
    }

    fn shown(&self, key: &str) -> String {
        match self.values.get(key) {
            None => "nothing".to_owned(),
            Some(Value::Whole(number)) => number.to_string(),
            Some(Value::Number(number)) => number.to_string(),
            Some(Value::Flag(flag)) => flag.to_string(),
            Some(Value::List(list)) => format!("a list of {}", list.count),
            Some(Value::Text(text)) => {
                let text = String::from_utf8_lossy(&self.file[text.clone()]);
                let shown: String = text.chars().take(MOST_SHOWN).collect();
                let cut = if shown.len() < text.len() { "…" } else { "" };
                format!("{shown:?}{cut}")
            }
        }
    }
}
