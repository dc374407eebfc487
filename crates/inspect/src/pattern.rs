//! `inspect RUN pattern`: who looks where.

use headlight_heads::{HeadName, MayAttend, Role};
use headlight_report::{Heatmap, MOST_PICTURED_TOKENS, Terminal, pattern_grid_svg, pattern_svg};
use headlight_run::Error;
use headlight_tasks as tasks;
use headlight_watch::Patterns;
use serde::Serialize;

use super::{ModelParts, Output, Subject, Verb, comparison::name_of, picture_files::PictureFiles};

/// Patterns as heat maps
#[derive(Debug, clap::Args)]
pub struct PatternVerb {
    /// The head, written L0H1 [default: every head]
    #[arg(long)]
    head: Option<HeadName>,
    /// Tokens by name, with spaces between them; for a model of text, any text [default: a sequence of the
    /// probe]
    #[arg(long)]
    prompt: Option<String>,
    #[command(flatten)]
    files: PictureFiles,
}

impl Verb for PatternVerb {
    const NAME: &'static str = "pattern";

    fn show(self, subject: Subject, out: &Output) -> Result<(), Error> {
        let patterns = subject.patterns(self.head, self.prompt.as_deref())?;
        let written = self.files.write(|| subject.picture(&patterns))?;
        let rows: Vec<PairOfTokens> = patterns.iter().flat_map(HeadPattern::rows).collect();
        // One head is asked for by name, so it is no list.
        if self.head.is_some() {
            return out.show_text(&patterns[0], &rows, written, |pattern| {
                pattern.draw(&out.terminal)
            });
        }
        out.show_text(&patterns, &rows, written, |patterns| {
            let drawn: Vec<String> = patterns
                .iter()
                .map(|pattern| pattern.draw(&out.terminal))
                .collect();
            drawn.join("\n")
        })
    }
}

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
        let (n_layers, n_heads) = (model.config().n_layers, model.config().n_heads);
        if let Some(head) = head.filter(|head| head.layer >= n_layers || head.head >= n_heads) {
            let message = format!(
                "there is no such head, the last is L{}H{}",
                n_layers - 1,
                n_heads - 1
            );
            return Err(Error::new(format_args!("--head {head}"), message));
        }
        let tokens = match prompt {
            Some(prompt) => tasks::encode_prompt(&self.vocabulary()?, prompt, self.n_ctx())?,
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
            may_attend: MayAttend::causal(self.window_of(head.layer)),
        };
        Ok(shown.map(pattern).collect())
    }
}

impl Subject {
    /// One head with its tokens, or several as a grid, for papers: as SVG, with what the heads look
    /// like and, over one head, the name of the run.
    ///
    /// # Errors
    /// If there are too many tokens for a picture, or the model cannot be read.
    pub fn picture(&self, heads: &[HeadPattern]) -> Result<String, Error> {
        let length = heads.first().map_or(0, |head| head.tokens.len());
        if length > MOST_PICTURED_TOKENS {
            let message = format!(
                "has {length} tokens, a picture shows {MOST_PICTURED_TOKENS}; give a shorter --prompt"
            );
            return Err(Error::new("the sequence", message));
        }
        let ModelParts { model, .. } = self.model()?;
        let roles = self.roles(&model)?;
        let weights: Vec<Vec<f32>> = heads.iter().map(|head| head.pattern.concat()).collect();
        let mut heatmaps: Vec<(HeadName, Role, Heatmap)> = Vec::new();
        for (pattern, weights) in heads.iter().zip(&weights) {
            let HeadName { layer, head } = pattern.head;
            let role = roles[layer * model.n_heads() + head];
            heatmaps.push((pattern.head, role, pattern.heatmap(weights)));
        }
        Ok(match heatmaps.as_slice() {
            [(head, role, heatmap)] => {
                pattern_svg(&format!("{head} {role}, {}", name_of(self.path())), heatmap)
            }
            heatmaps => pattern_grid_svg(heatmaps),
        })
    }
}

impl HeadPattern {
    /// The heat map.
    #[must_use]
    pub fn draw(&self, terminal: &Terminal) -> String {
        let weights: Vec<f32> = self.pattern.concat();
        format!("{}\n\n{}", self.head, self.heatmap(&weights).draw(terminal))
    }

    fn heatmap<'a>(&'a self, weights: &'a [f32]) -> Heatmap<'a> {
        Heatmap {
            weights,
            tokens: &self.tokens,
            may_attend: self.may_attend,
        }
    }

    /// A row for every key that the query may attend to.
    fn rows(&self) -> Vec<PairOfTokens> {
        let mut rows = Vec::new();
        for (query, weights) in self.pattern.iter().enumerate() {
            for key in self.may_attend.keys(query, weights.len()) {
                rows.push(PairOfTokens {
                    head: self.head,
                    query,
                    key,
                    query_token: self.tokens[query].clone(),
                    key_token: self.tokens[key].clone(),
                    weight: weights[key],
                });
            }
        }
        rows
    }
}

/// A query, a key and the weight between them, as a row of a table.
#[derive(Debug, Serialize)]
struct PairOfTokens {
    head: HeadName,
    query: usize,
    key: usize,
    query_token: String,
    key_token: String,
    weight: f32,
}
