//! The files of a model that another tool made: a folder of `transformers`, or a GGUF file.

use std::{
    fs,
    path::{Path, PathBuf},
};

use burn::tensor::Device;
use headlight_residual::{
    Decoder, DecoderConfig, ExchangeError, Gguf, from_huggingface, huggingface_config,
};
use headlight_run::{
    DataFile, Error, ErrorKind, ModelConfig, sha256,
    untrusted::{MOST_TOKENIZER_BYTES, read_at_most},
};
use headlight_tasks::TextTokenizer;

use crate::model::model_config;

const CONFIG: &str = "config.json";
const TOKENIZER: &str = "tokenizer.json";
const WEIGHTS: &str = "model.safetensors";
const SHARDS: &str = "model.safetensors.index.json";

/// A model that another tool made, on disk.
///
/// ```no_run
/// use burn::tensor::Device;
/// use headlight_watch::ModelFiles;
///
/// let files = ModelFiles::open("SmolLM2-135M-Instruct.Q4_1.gguf".as_ref())?;
/// assert_eq!(files.config()?.n_layers, 30);
/// let model = files.model(&Device::flex())?;
/// # Ok::<(), headlight_run::Error>(())
/// ```
#[derive(Debug)]
pub struct ModelFiles {
    path: PathBuf,
    format: Format,
}

#[derive(Debug)]
enum Format {
    Folder,
    Gguf(Gguf),
}

impl ModelFiles {
    /// Whether a path is a file, or a folder with a `config.json` that is no run.
    #[must_use]
    pub fn is_at(path: &Path) -> bool {
        path.is_file() || path.join(CONFIG).is_file() && !path.join("config.toml").exists()
    }

    /// Opens what is at `path`; of a GGUF file the header is read.
    ///
    /// # Errors
    /// If it is neither a GGUF file nor a folder with a `config.json`.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let missing = |message: &str| Error::of(ErrorKind::Missing, path.display(), message);
        if !path.exists() {
            return Err(missing("there is no such file or folder"));
        }
        let format = if path.is_dir() {
            if !path.join(CONFIG).is_file() {
                return Err(missing("is no folder of a model: it has no config.json"));
            }
            Format::Folder
        } else {
            Format::Gguf(Gguf::open(path).map_err(|error| wrong(path, error))?)
        };
        Ok(Self {
            path: path.to_owned(),
            format,
        })
    }

    /// The sizes and parts of the model.
    ///
    /// # Errors
    /// Names the key that no model of this project can have.
    pub fn config(&self) -> Result<DecoderConfig, Error> {
        let config = match &self.format {
            Format::Folder => huggingface_config(&self.path),
            Format::Gguf(file) => file.config(),
        };
        config.map_err(|error| wrong(&self.path, error))
    }

    /// The model.
    ///
    /// # Errors
    /// Names the key or the tensor that is wrong.
    pub fn model(&self, device: &Device) -> Result<Decoder, Error> {
        let model = match &self.format {
            Format::Folder => from_huggingface(&self.path, device),
            Format::Gguf(file) => file.model(device),
        };
        model.map_err(|error| wrong(&self.path, error))
    }

    /// The text of its `tokenizer.json`; `None` if it has none.
    ///
    /// # Errors
    /// If it cannot be read, or is of a kind that is not supported.
    pub fn tokenizer(&self) -> Result<Option<Vec<u8>>, Error> {
        match &self.format {
            Format::Folder => {
                let file = self.path.join(TOKENIZER);
                if !file.exists() {
                    return Ok(None);
                }
                read_at_most(&file, MOST_TOKENIZER_BYTES).map(Some)
            }
            Format::Gguf(file) => {
                let json = file.tokenizer().map_err(|error| wrong(&self.path, error))?;
                Ok(json.map(String::into_bytes))
            }
        }
    }

    /// The tokenizer, with the files that it is known by.
    ///
    /// # Errors
    /// If the model has no tokenizer.
    pub fn text_tokenizer(&self) -> Result<TextTokenizer, Error> {
        let Some(json) = self.tokenizer()? else {
            let message = "has no tokenizer.json, so that no text can be cut for it";
            return Err(Error::of(ErrorKind::Missing, self.path.display(), message));
        };
        Ok(TextTokenizer {
            json,
            files: self.files()?,
        })
    }

    /// The file, or the files of the folder, sorted by name.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn files(&self) -> Result<Vec<DataFile>, Error> {
        let Format::Folder = self.format else {
            return Ok(vec![DataFile::read(&self.path)?]);
        };
        let is_single = self.path.join(WEIGHTS).exists();
        let mut paths = Vec::new();
        let cannot = |error| Error::io(&self.path, "read", error);
        for entry in fs::read_dir(&self.path).map_err(cannot)? {
            let path = entry.map_err(cannot)?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            let belongs = match name {
                Some(CONFIG | TOKENIZER | WEIGHTS) => true,
                Some(SHARDS) => !is_single,
                Some(name) => !is_single && name.ends_with(".safetensors"),
                None => false,
            };
            if belongs {
                paths.push(path);
            }
        }
        paths.sort();
        paths.iter().map(|path| DataFile::read(path)).collect()
    }
}

/// The table `[model]` of the model at `path`, with its SHA-256: of the file or, for a folder, of the
/// lines that `sha256sum` prints for its files.
///
/// # Errors
/// If it cannot be read, or has parts that are not supported.
pub fn read_model(path: &Path) -> Result<ModelConfig, Error> {
    let files = ModelFiles::open(path)?;
    let config = model_config(&files.config()?)?;
    let mut hashes = Vec::new();
    for file in files.files()? {
        let name = file.path.file_name().unwrap_or_default();
        let line = format!("{}  {}\n", file.sha256, name.to_string_lossy());
        hashes.push((file.sha256, line));
    }
    let hash = match &hashes[..] {
        [(hash, _)] => hash.clone(),
        lines => sha256(
            lines
                .iter()
                .map(|(_, line)| &line[..])
                .collect::<String>()
                .as_bytes(),
        ),
    };
    Ok(ModelConfig {
        from_sha256: Some(hash),
        ..config
    })
}

/// What is wrong with the model at `path`. Some errors name the file themselves.
fn wrong(path: &Path, error: ExchangeError) -> Error {
    let own = path.display().to_string();
    let (place, message) = match &error {
        ExchangeError::File { file, reason } if file.starts_with(&own) => {
            (file.clone(), reason.clone())
        }
        ExchangeError::Sizes { file, reason } if file.starts_with(&own) => {
            (file.clone(), reason.to_string())
        }
        ExchangeError::Metadata {
            file,
            key,
            value,
            reason,
        } if file.starts_with(&own) => (file.clone(), format!("{key} = {value}: {reason}")),
        other => (own, other.to_string()),
    };
    Error::damaged(place, message).caused_by(error)
}
