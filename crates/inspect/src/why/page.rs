//! Why heads look where they look, for pages.

use headlight_heads::HeadName;
use headlight_lens::{Cell, Contrast, Toward, all_heads};
use headlight_report::{WhyData, WhyOfHead, WhyOfHeads};
use headlight_residual::NormPlacement;
use headlight_run::{Error, ErrorKind};
use headlight_watch::Watched;

use super::{
    NamedModel, Opened, Place, WhyAsked, WhyOfCells, check_head, may_attend, one_cell, open, why_of,
};
use crate::Subject;

/// Terms of a cell on a page of which one cell is asked for.
const TERMS: usize = 12;
/// Of all that is moved, what is less than this share is not shown.
const LEAST_SHOWN: f64 = 0.002;
/// Terms of each of many cells.
const TERMS_OF_MANY: usize = 5;
/// Of more heads a report tells nothing: the page would be too large.
const MOST_HEADS: usize = 32;
/// Numbers of queries, keys and values that a report looks at for each head.
const MOST_NUMBERS: usize = 1 << 20;

/// Why a head looks at a key of a prompt.
pub(crate) fn why_of_cell(
    parts: NamedModel,
    tokens: Vec<u32>,
    head: HeadName,
    query: usize,
    key: usize,
) -> Result<WhyData, Error> {
    check_head(parts.model, head)?;
    let opened = one_cell(parts, tokens, head, Some(query), Some(key))?;
    let (toward, name) = toward_at(&opened);
    let why = why_of(parts, &WhyAsked::of(head), opened, &[toward], vec![name])?;
    Ok(data_of(why, TERMS))
}

impl Subject {
    /// Why each head looks where it looks: at its typical keys, and on the first sequence of the
    /// probe at the key that each query looks at most. `None` where the stream is no sum.
    ///
    /// # Errors
    /// If the activations do not fit into memory.
    pub(crate) fn why_of_heads(
        &self,
        parts: NamedModel,
        left_out: &mut Vec<String>,
    ) -> Result<Option<WhyOfHeads>, Error> {
        let model = parts.model;
        if model.config().norm_placement == NormPlacement::Post {
            return Ok(None);
        }
        let heads = all_heads(model);
        if heads.len() > MOST_HEADS {
            left_out.push(format!(
                "why heads look where they look: {} heads are too many; inspect RUN why tells it of one",
                heads.len()
            ));
            return Ok(None);
        }
        let probe = self.probe()?;
        let mut all = WhyOfHeads::default();
        for head in heads {
            match self.why_of_head(parts, &probe, head) {
                Ok(why) => all.heads.push(why),
                Err(error) if error.kind() == ErrorKind::Missing => {
                    left_out.push(format!("why heads look where they look: {error}"));
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Some(all))
    }

    fn why_of_head(
        &self,
        parts: NamedModel,
        probe: &Watched,
        head: HeadName,
    ) -> Result<WhyOfHead, Error> {
        Ok(WhyOfHead {
            head,
            typical: self.typical(parts, probe, head)?,
            cells: cells_of(parts, &probe.tokens[0], head)?,
        })
    }

    /// At the keys of what the head looks like; none where no query has such a key.
    fn typical(
        &self,
        parts: NamedModel,
        probe: &Watched,
        head: HeadName,
    ) -> Result<Option<WhyData>, Error> {
        let asked = WhyAsked::of(head);
        let probe = probe.clone();
        let Some(opened) = self.opened_at_targets(&asked, parts.model, probe, MOST_NUMBERS)? else {
            return Ok(None);
        };
        let (toward, name) = (Toward::KeyToken, "the token at the key".to_owned());
        let why = why_of(parts, &asked, opened, &[toward], vec![name])?;
        Ok(Some(data_of(why, TERMS)))
    }
}

/// For each query of a sequence that sees more than one key, the key that it looks at most.
fn cells_of(parts: NamedModel, sequence: &[u32], head: HeadName) -> Result<Vec<WhyData>, Error> {
    let tokens = [sequence.to_vec()];
    let opened = open(parts.model, head, &tokens, 0)?;
    let names: Vec<String> = sequence
        .iter()
        .map(|&token| parts.vocabulary[token as usize].clone())
        .collect();
    let mut cells = Vec::new();
    for query in 0..sequence.len() {
        let seen = may_attend(parts.model, head).keys(query, sequence.len());
        if seen.len() < 2 {
            continue;
        }
        let weight = |key: &usize| opened.weight(0, query, *key);
        let Some(key) = headlight_heads::first_largest(seen, weight) else {
            continue;
        };
        let place = Place::Cell {
            tokens: names.clone(),
            query,
            key,
        };
        let cell = Cell {
            query,
            keys: vec![key],
        };
        let cell = vec![vec![cell]];
        let Some(why) = opened.why(&cell, Contrast::Attention) else {
            continue;
        };
        let toward = [Toward::KeyToken];
        cells.push(data_of(
            WhyOfCells {
                head,
                finding: super::finding::finding(head, &place, &why),
                for_every_query: why.for_every_query(),
                place,
                has_softcap: false,
                toward: vec![names[key].clone()],
                moved: opened.moved(&cell, &toward),
                raised: Vec::new(),
                why,
            },
            TERMS_OF_MANY,
        ));
    }
    Ok(cells)
}

/// The logit of the next token; at the end of a sequence, of the token at the key.
fn toward_at(opened: &Opened) -> (Toward, String) {
    let Place::Cell { tokens, query, key } = &opened.place else {
        return (Toward::KeyToken, "the token at the key".to_owned());
    };
    match tokens.get(query + 1) {
        Some(next) => (Toward::NextToken, format!("{next}, which comes next")),
        None => (
            Toward::KeyToken,
            format!("{}, the token at the key", tokens[*key]),
        ),
    }
}

/// The rows of a page: so many terms, the others together.
fn data_of(why: WhyOfCells, most_terms: usize) -> WhyData {
    let WhyOfCells { why: found, .. } = &why;
    let telling = found.telling_terms();
    let (shown, rest) = found.terms.split_at(telling.min(most_terms));
    let terms = shown.iter().map(|term| {
        let [query, key] = [term.query, term.key].map(|part| part.to_string());
        (query, key, rounded(term.value.value))
    });
    let others: f64 = rest.iter().map(|term| term.value.value).sum();
    let mut moved = Vec::new();
    let mut moved_together = 0.0;
    if let Some(all) = &why.moved {
        moved_together = rounded(all.together[0].value);
        let least = LEAST_SHOWN * all.together[0].value.abs();
        let from = all.from.iter().take(most_terms);
        let from = from.filter(|from| from.logits[0].value.abs() > least);
        moved.extend(from.map(|from| (from.value.to_string(), rounded(from.logits[0].value))));
    }
    let mut place = None;
    if let Place::Cell { query, key, .. } = why.place {
        place = Some((query, key));
    }
    WhyData {
        place,
        margin: rounded(found.margin.value),
        sizes: rounded(found.sizes),
        for_every_query: rounded(why.for_every_query),
        random_key: rounded(found.random_key.value),
        terms: terms.collect(),
        others: (rest.len(), rounded(others)),
        toward: why.toward.first().cloned().unwrap_or_default(),
        moved,
        moved_together,
        raised: why
            .raised
            .iter()
            .map(|(token, logit)| (token.clone(), rounded(*logit)))
            .collect(),
        finding: why.finding,
    }
}

/// To what a page shows, with a digit to spare; what is no number is 0.
fn rounded(value: f64) -> f64 {
    if value.is_finite() {
        (value * 1000.0).round() / 1000.0
    } else {
        0.0
    }
}
