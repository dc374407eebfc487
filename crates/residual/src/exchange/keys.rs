//! Keys of `config.json`: each is read, known to be harmless, or refused.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::ExchangeError;
use crate::Activation;

/// Keys that do not change what a decoder computes of its tokens.
const HARMLESS: &[&str] = &[
    // Who wrote the file, and of what.
    "_commit_hash",
    "_name_or_path",
    "name_or_path",
    "transformers_version",
    "transformers.js_config",
    "is_llama_config",
    // Which classes transformers makes of it: a head that is no language model's has a tensor of its
    // own, which is refused by name.
    "architectures",
    "_num_labels",
    "finetuning_task",
    "id2label",
    "label2id",
    "num_labels",
    "problem_type",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    // In which floating-point type it is stored and computed: it is read as f32.
    "dtype",
    "torch_dtype",
    "reorder_and_upcast_attn",
    "use_bfloat16",
    // How it starts, and what is dropped while it is trained.
    "attention_dropout",
    "attn_pdrop",
    "classifier_dropout",
    "embd_pdrop",
    "gradient_checkpointing",
    "hidden_dropout",
    "initializer_range",
    "resid_pdrop",
    // In what order the same numbers are computed, and which of them are kept or handed out.
    "_attn_implementation",
    "_attn_implementation_autoset",
    "attn_implementation",
    "cache_implementation",
    "chunk_size_feed_forward",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "pretraining_tp",
    "return_dict",
    "torchscript",
    "use_cache",
    // Said of a decoder, which these models are in any case.
    "is_decoder",
    // Which tokens and texts mean something to the tokenizer.
    "bos_token_id",
    "cls_token_id",
    "decoder_start_token_id",
    "eos_token_id",
    "pad_token_id",
    "prefix",
    "sep_token_id",
    "tokenizer_class",
    // How text is written on where the caller does not say.
    "bad_words_ids",
    "begin_suppress_tokens",
    "diversity_penalty",
    "do_sample",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "exponential_decay_length_penalty",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "length_penalty",
    "max_length",
    "min_length",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_return_sequences",
    "output_scores",
    "remove_invalid_values",
    "repetition_penalty",
    "return_dict_in_generate",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "top_k",
    "top_p",
    "typical_p",
];

/// Parts that a decoder of these families has only if a key switches them on.
const OFF: &[&str] = &[
    "add_cross_attention",
    "is_encoder_decoder",
    "pruned_heads",
    "rope_interleaved",
    "scale_attn_by_inverse_layer_idx",
    "tie_encoder_decoder",
    "use_bidirectional_attention",
];

/// Of a value, as many characters are shown.
const MOST_SHOWN: usize = 60;

/// The keys of a configuration, with the defaults of `transformers`. A key whose value is null is
/// one that is not there.
pub struct Keys<'a> {
    object: &'a Map<String, Value>,
    /// The key that holds this object, with a dot; empty for the file itself.
    within: &'static str,
    read: BTreeSet<&'static str>,
}

impl<'a> Keys<'a> {
    pub fn of_file(object: &'a Map<String, Value>) -> Self {
        Self::within("", object)
    }

    pub fn within(within: &'static str, object: &'a Map<String, Value>) -> Self {
        Self {
            object,
            within,
            read: BTreeSet::new(),
        }
    }

    pub fn size(&mut self, key: &'static str) -> Result<Option<usize>, ExchangeError> {
        let size = |value: &Value| value.as_u64().and_then(|size| usize::try_from(size).ok());
        // Products of such sizes do not overflow.
        let size = |value: &Value| size(value).filter(|size| (1..=1 << 20).contains(size));
        self.typed(key, size, "must be a whole number from 1 to 1048576")
    }

    /// A size that may be 0.
    pub fn count(&mut self, key: &'static str) -> Result<Option<usize>, ExchangeError> {
        let count = |value: &Value| value.as_u64().and_then(|count| usize::try_from(count).ok());
        self.typed(key, count, "must be a whole number")
    }

    /// A size; `default` if there is no such key, none if its value is null.
    pub fn size_or(
        &mut self,
        key: &'static str,
        default: Option<usize>,
    ) -> Result<Option<usize>, ExchangeError> {
        let size = self.size(key)?;
        Ok(if self.has(key) { size } else { default })
    }

    pub fn required_size(&mut self, key: &'static str) -> Result<usize, ExchangeError> {
        self.size(key)?
            .ok_or_else(|| self.refused(key, &Value::Null, "is missing"))
    }

    pub fn number(&mut self, key: &'static str) -> Result<Option<f64>, ExchangeError> {
        let positive = |value: &Value| value.as_f64().filter(|number| *number > 0.0);
        self.typed(key, positive, "must be a number above 0")
    }

    pub fn required_number(&mut self, key: &'static str) -> Result<f64, ExchangeError> {
        self.number(key)?
            .ok_or_else(|| self.refused(key, &Value::Null, "is missing"))
    }

    /// A list of numbers.
    pub fn required_numbers(&mut self, key: &'static str) -> Result<Vec<f64>, ExchangeError> {
        let positive = |value: &Value| value.as_f64().filter(|number| *number > 0.0);
        let numbers = |value: &'a Value| value.as_array()?.iter().map(positive).collect();
        self.typed(key, numbers, "must be a list of numbers above 0")?
            .ok_or_else(|| self.refused(key, &Value::Null, "is missing"))
    }

    /// A number; `default` if there is no such key, none if its value is null.
    pub fn number_or(
        &mut self,
        key: &'static str,
        default: Option<f64>,
    ) -> Result<Option<f64>, ExchangeError> {
        let number = self.number(key)?;
        Ok(if self.has(key) { number } else { default })
    }

    /// Whether there is such a key, even with the value null.
    pub fn has(&self, key: &str) -> bool {
        self.object.contains_key(key)
    }

    /// An activation by its name.
    pub fn activation(
        &mut self,
        key: &'static str,
        default: Activation,
    ) -> Result<Activation, ExchangeError> {
        let Some(name) = self.text(key)? else {
            return Ok(default);
        };
        Activation::from_huggingface(name).ok_or_else(|| {
            let names = Activation::ALL
                .iter()
                .flat_map(|known| known.huggingface_names());
            let names: Vec<&str> = names.copied().collect();
            let reason = format!("must be one of {}", names.join(", "));
            self.refused(key, &json!(name), &reason)
        })
    }

    pub fn texts(&mut self, key: &'static str) -> Result<Option<Vec<&'a str>>, ExchangeError> {
        let texts = |value: &'a Value| value.as_array()?.iter().map(Value::as_str).collect();
        self.typed(key, texts, "must be a list of texts")
    }

    pub fn flag(&mut self, key: &'static str, default: bool) -> Result<bool, ExchangeError> {
        let flag = self.typed(key, Value::as_bool, "must be true or false")?;
        Ok(flag.unwrap_or(default))
    }

    pub fn text(&mut self, key: &'static str) -> Result<Option<&'a str>, ExchangeError> {
        self.typed(key, Value::as_str, "must be text")
    }

    pub fn object(
        &mut self,
        key: &'static str,
    ) -> Result<Option<&'a Map<String, Value>>, ExchangeError> {
        self.typed(key, Value::as_object, "must be an object")
    }

    /// That no key is left which might change what the model computes.
    pub fn check_all_read(&self) -> Result<(), ExchangeError> {
        for (key, value) in self.object {
            let is_listed = |keys: &[&str]| self.within.is_empty() && keys.contains(&&key[..]);
            if value.is_null() || self.read.contains(&key[..]) || is_listed(HARMLESS) {
                continue;
            }
            if !is_listed(OFF) {
                let reason = "is no key that is known here; it may change what the model computes";
                return Err(self.refused(key, value, reason));
            }
            if !is_off(value) {
                return Err(self.refused(key, value, "is not supported"));
            }
        }
        Ok(())
    }

    pub fn refused(&self, key: &str, value: &Value, reason: &str) -> ExchangeError {
        let mut value = value.to_string();
        if let Some((cut, _)) = value.char_indices().nth(MOST_SHOWN) {
            value.replace_range(cut.., "…");
        }
        ExchangeError::Config {
            key: format!("{}{key}", self.within),
            value,
            reason: reason.to_owned(),
        }
    }

    fn typed<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&'a Value) -> Option<T>,
        reason: &str,
    ) -> Result<Option<T>, ExchangeError> {
        self.read.insert(key);
        match self.object.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match read(value) {
                Some(typed) => Ok(Some(typed)),
                None => Err(self.refused(key, value, reason)),
            },
        }
    }
}

fn is_off(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(on) => !on,
        Value::Array(items) => items.is_empty(),
        Value::Object(items) => items.is_empty(),
        Value::Number(_) | Value::String(_) => false,
    }
}
