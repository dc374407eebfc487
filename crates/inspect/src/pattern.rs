//! `inspect RUN pattern`: who looks where.

use headlight_heads::{HeadName, MayAttend};
use headlight_report::{
    Heatmap, MOST_PICTURED_TOKENS, Terminal, csv, pattern_grid_svg, pattern_svg,
};
use headlight_run::Error;
use headlight_tasks as tasks;
use headlight_watch::Patterns;
use serde::Serialize;

use super::{ModelParts, Subject, picture_files::Picture};

/// One head's pattern on one sequence, as `inspect pattern --json` prints it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeadPattern {
    /// The head.
    pub head: HeadName,
    /// The sequence.
    pub tokens: Vec<String>,
    /// `[queries][keys]`
    pub pattern: Vec<Vec<f32>>,
    /// Which of its weights are no weights but masked.
    #[serde(skip)]
    pub may_attend: MayAttend,
}

impl Subject {
    /// The pattern of `head` or, without one, of every head, on `prompt` (token names between
    /// spaces; for a text, text) or, without one, on the first probe sequence.
    ///
    /// # Errors
    /// If the head or a token does not exist, or the prompt is too long.
    pub fn patterns(
        &self,
        head: Option<HeadName>,
        prompt: Option<&str>,
    ) -> Result<Vec<HeadPattern>, Error> {
        let ModelParts { model, vocabulary } = self.model()?;
        let (n_layers, n_heads) = (self.config.model.n_layers, self.config.model.n_heads);
        if let Some(head) = head.filter(|head| head.layer >= n_layers || head.head >= n_heads) {
            let message = format!(
                "there is no such head, the last is L{}H{}",
                n_layers - 1,
                n_heads - 1
            );
            return Err(Error::new(format_args!("--head {head}"), message));
        }
        let tokens = match prompt {
            Some(prompt) => {
                tasks::encode_prompt(&self.vocabulary()?, prompt, self.config.model.n_ctx)?
            }
            None => self.probe()?.tokens.swap_remove(0),
        };
        let patterns = Patterns::of(&model, std::slice::from_ref(&tokens), &self.device)?;
        let (layers, length) = (patterns.weights(), tokens.len());
        let names: Vec<String> = tokens
            .iter()
            .map(|&token| vocabulary[token as usize].clone())
            .collect();
        let all =
            (0..n_layers).flat_map(|layer| (0..n_heads).map(move |head| HeadName { layer, head }));
        let shown = all.filter(|known| head.is_none_or(|head| head == *known));
        let pattern = |head: HeadName| HeadPattern {
            head,
            tokens: names.clone(),
            pattern: layers[head.layer][head.head * length * length..][..length * length]
                .chunks(length)
                .map(<[f32]>::to_vec)
                .collect(),
            may_attend: MayAttend::causal(self.config.model.window_of(head.layer)),
        };
        Ok(shown.map(pattern).collect())
    }
}

impl HeadPattern {
    /// The heat map.
    #[must_use]
    pub fn draw(&self, terminal: &Terminal) -> String {
        let weights: Vec<f32> = self.pattern.concat();
        format!("{}\n\n{}", self.head, self.heatmap(&weights).draw(terminal))
    }

    /// One head with its tokens, or several as a grid, for papers.
    ///
    /// # Errors
    /// If there are too many tokens for a picture.
    pub fn picture(heads: &[Self]) -> Result<Picture, Error> {
        let length = heads.first().map_or(0, |head| head.tokens.len());
        if length > MOST_PICTURED_TOKENS {
            let message = format!(
                "has {length} tokens, a picture shows {MOST_PICTURED_TOKENS}; give a shorter --prompt"
            );
            return Err(Error::new("the sequence", message));
        }
        let weights: Vec<Vec<f32>> = heads.iter().map(|head| head.pattern.concat()).collect();
        let heatmaps: Vec<(HeadName, Heatmap)> = heads
            .iter()
            .zip(&weights)
            .map(|(head, weights)| (head.head, head.heatmap(weights)))
            .collect();
        let svg = match heatmaps.as_slice() {
            [(head, heatmap)] => pattern_svg(*head, heatmap),
            heatmaps => pattern_grid_svg(heatmaps),
        };
        let header = ["head", "query", "key", "query_token", "key_token", "weight"];
        Ok(Picture {
            svg,
            csv: csv(&header, heads.iter().flat_map(Self::rows)),
        })
    }

    fn heatmap<'a>(&'a self, weights: &'a [f32]) -> Heatmap<'a> {
        Heatmap {
            weights,
            tokens: &self.tokens,
            may_attend: self.may_attend,
        }
    }

    /// A row for every key that the query may attend to.
    fn rows(&self) -> impl Iterator<Item = Vec<String>> {
        self.pattern
            .iter()
            .enumerate()
            .flat_map(move |(query, weights)| {
                self.may_attend.keys(query, weights.len()).map(move |key| {
                    let places = [self.head.to_string(), query.to_string(), key.to_string()];
                    let tokens = [self.tokens[query].clone(), self.tokens[key].clone()];
                    places
                        .into_iter()
                        .chain(tokens)
                        .chain([weights[key].to_string()])
                        .collect()
                })
            })
    }
}
