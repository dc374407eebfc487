//! Sites by pattern.

use crate::{Decoder, Probed, Site, UnknownSite};

impl Decoder {
    /// The sites of this model that a pattern names, in the order in which a token meets them; `*`
    /// stands for any run of characters. `blocks.1.*` is a whole layer, `*` everything.
    ///
    /// # Errors
    /// If the pattern matches no site of this model; the error names the nearest.
    ///
    /// ```
    /// use burn::tensor::Device;
    /// use headlight_residual::DecoderConfig;
    ///
    /// let model = DecoderConfig::default().try_init(0, &Device::flex())?;
    /// let names = |pattern: &str| -> Vec<String> {
    ///     model.select(pattern).unwrap().iter().map(ToString::to_string).collect()
    /// };
    /// assert_eq!(names("blocks.*.attn.hook_z"), ["blocks.0.attn.hook_z", "blocks.1.attn.hook_z"]);
    /// assert_eq!(names("hook_embed"), ["hook_embed"]);
    /// let error = model.select("blocks.0.attn.hook_zz").unwrap_err().to_string();
    /// assert_eq!(error, "no site is called blocks.0.attn.hook_zz, did you mean blocks.0.attn.hook_z?");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn select(&self, pattern: &str) -> Result<Vec<Site>, UnknownSite> {
        Probed::select(self, pattern)
    }
}

/// The sites among `sites` that a pattern names.
pub(crate) fn select(sites: &[Site], pattern: &str) -> Result<Vec<Site>, UnknownSite> {
    let found: Vec<Site> = sites
        .iter()
        .copied()
        .filter(|site| matches(pattern, &site.to_string()))
        .collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let nearest = sites
        .iter()
        .map(Site::to_string)
        .min_by_key(|name| strsim::damerau_levenshtein(name, pattern));
    Err(UnknownSite {
        name: pattern.to_owned(),
        nearest: nearest.unwrap_or_default(),
    })
}

/// Whether `name` fits a pattern in which `*` stands for any run of characters.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut name) = name.strip_prefix(start) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        // The first match is the best: it leaves the longest rest for the following parts.
        let Some(at) = name.find(part) else {
            return false;
        };
        name = &name[at + part.len()..];
    }
    name.ends_with(end)
}
