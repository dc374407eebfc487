//! `inspect RUN lens`: how the answer forms along the stream, and which parts give it.

use headlight_lens::{Behaviour, Contribution, Depth, direct_logit_attribution, logit_lens};
use headlight_report::{Printout, Table, number};
use headlight_residual::{Decoder, token_tensor};
use headlight_run::Error;
use headlight_tasks as tasks;
use headlight_watch::no_room;
use serde::Serialize;

use super::{
    Limit, ModelParts, Output, Part, Subject, Verb,
    causal::{cell_names, cells, cells_text},
    verb::POST_NORM,
};

/// What the stream says at each depth, and which parts say it
#[derive(Debug, clap::Args)]
pub struct LensVerb {
    /// Tokens by name, with spaces between them; for a model of text, any text [default: sequences of the run's
    /// task]
    #[arg(long)]
    prompt: Option<String>,
}

impl Verb for LensVerb {
    const NAME: &'static str = "lens";
    const TAKES_PAIRS: bool = true;
    const PARTS: &'static [Part] = &[
        Part::everywhere("by depth"),
        Part {
            name: "by part",
            limits: &[Limit {
                on: POST_NORM,
                says: "its norms replace the stream, so that parts do not add up",
            }],
        },
    ];

    fn show(self, subject: Subject, out: &Output) -> Result<(), Error> {
        out.show(&subject.lens(self.prompt.as_deref())?, Lens::printout)
    }
}

/// What `inspect RUN lens` shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lens {
    /// The logit lens, in the order of the stream.
    pub depths: Vec<Depth>,
    /// What each part adds to the right token's logit above the mean logit; none for a post-norm
    /// model.
    pub contributions: Option<Vec<Contribution>>,
    /// Whether one prompt is read, over which no interval can be taken.
    #[serde(skip)]
    is_one_prompt: bool,
}

impl Subject {
    /// Logit lens and direct logit attribution on sequences of the run's task or on `prompt` (token
    /// names between spaces; for a text, text), of which every next token counts.
    ///
    /// # Errors
    /// If the run has no weights, a token of the prompt does not exist, or the prompt has no next
    /// token or is too long.
    pub fn lens(&self, prompt: Option<&str>) -> Result<Lens, Error> {
        let (model, behaviour) = match prompt {
            Some(prompt) => self.continuing(prompt)?,
            None => self.behaviour()?,
        };
        Ok(Lens {
            depths: logit_lens(&model, &behaviour).map_err(no_room)?,
            contributions: direct_logit_attribution(&model, &behaviour).map_err(no_room)?,
            is_one_prompt: prompt.is_some(),
        })
    }

    /// The run's model, and to say of each token of `prompt` what comes next.
    fn continuing(&self, prompt: &str) -> Result<(Decoder, Behaviour), Error> {
        let ModelParts { model, .. } = self.model()?;
        let tokens = tasks::encode_prompt(&self.vocabulary()?, prompt, self.n_ctx())?;
        let inputs = &tokens[..tokens.len() - 1];
        if inputs.is_empty() {
            return Err(
                Error::new("--prompt", "has one token, so nothing comes next").value(prompt),
            );
        }
        let scored = vec![true; inputs.len()];
        let behaviour = Behaviour::new(
            token_tensor(&[inputs], &self.device),
            vec![tokens[1..].to_vec()],
            vec![scored],
        );
        Ok((model, behaviour))
    }
}

impl Lens {
    /// For the terminal.
    #[must_use]
    pub fn printout(&self) -> Printout {
        let depths = self.depths.iter().map(|depth| {
            let mut row = vec![in_words(&depth.site)];
            row.extend(cells(&depth.performance));
            if self.is_one_prompt {
                row[1] = number(depth.performance.accuracy, 3);
            }
            row.push(format!("{:.2}", depth.norm));
            row
        });
        let performance = self.depths.last().map(|depth| &depth.performance);
        let is_paired = performance.is_some_and(|left| left.logit_difference.is_some());
        let [first, second, third] =
            performance.map_or(["accuracy", "loss", "elsewhere"], cell_names);
        let columns = ["stream at", first, second, third, "norm"];
        let adds = if is_paired {
            "What each part adds to the logit of the answer, above that of the wrong token:"
        } else {
            "What each part adds to the right token's logit, above the mean of all logits, on scored targets:"
        };
        let printout = Printout::new()
            .prose(
                "What the unembedding reads from the stream on its way; the last row is the model itself.",
            )
            .table(Table::new(&columns, depths).first_to_go(&["norm"]))
            .prose(if self.is_one_prompt {
                "One prompt has no interval. loss in nats."
            } else {
                performance.map_or("", cells_text)
            })
            .prose(adds);
        let printout = match &self.contributions {
            None => printout.prose("its norms replace the stream, so that parts do not add up"),
            Some(parts) => {
                let row = |part: &Contribution| vec![part.name.clone(), signed(part.logit)];
                let sum: f64 = parts.iter().map(|part| part.logit).sum();
                let total = vec!["together".to_owned(), signed(sum)];
                printout.table(Table::new(
                    &["part", "logit"],
                    parts.iter().map(row).chain([total]),
                ))
            }
        };
        printout.prose(
            "A part that adds nothing here may be needed by later parts: see ablate and paths.",
        )
    }
}

/// `before layer 0` for `blocks.0.hook_resid_pre`; other names stay.
fn in_words(site: &str) -> String {
    let layer = site
        .strip_prefix("blocks.")
        .and_then(|rest| rest.split_once('.'));
    match layer {
        Some((layer, "hook_resid_pre")) => format!("before layer {layer}"),
        Some((layer, "hook_resid_mid")) => format!("between attention and MLP of layer {layer}"),
        Some((layer, "hook_resid_post")) => format!("after layer {layer}"),
        _ => site.to_owned(),
    }
}

/// `+3.026`; what rounds to 0 has no sign.
fn signed(value: f64) -> String {
    let text = format!("{value:+.3}");
    match text.as_str() {
        "+0.000" | "-0.000" => "0.000".to_owned(),
        _ => text,
    }
}
