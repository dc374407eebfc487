//! Which heads bring its sense to a word: each is patched at the word with what it writes there in the
//! same text with the other deciding word.

use headlight_heads::HeadName;
use headlight_lens::{
    Estimate, MeanCheck, SenseMoves, SensePatching, Senses, all_heads, control_sets, mean_checks,
};
use headlight_report::{Printout, Table, number, or_dash, with_interval};
use headlight_residual::Decoder;
use headlight_run::Error;
use headlight_watch::no_room;
use serde::Serialize;

use super::{Subject, progress::Progress};

/// The fewest pairs: the heads of a set are chosen on half of them.
pub(super) const FEWEST_PAIRS: usize = 4;
/// Heads of a set.
const SET: usize = 5;
/// Random sets beside each set.
const RANDOM_SETS: usize = 10;
/// Heads that a printout shows.
const SHOWN_HEADS: usize = 12;

/// How far heads move a word towards its other sense, patched at the word.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PatchedSenses {
    /// Pairs of contexts that differ in the deciding word alone.
    pub pairs: usize,
    /// The layer behind which the stream is read.
    pub layer: usize,
    /// How far the two contexts of a pair are apart, of the word and of the control.
    pub apart: Vec<Apart>,
    /// Every head alone.
    pub heads: Vec<PatchedHead>,
    /// Some heads together.
    pub sets: Vec<PatchedSet>,
}

/// The mean distance between what stands at a word in the two contexts of a pair, over their mean
/// length.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Apart {
    /// The word.
    pub word: String,
    /// Of the stream.
    pub stream: f64,
    /// Of the logits of the next token, less their mean.
    pub next_token: f64,
}

/// The share by which patched heads move a word towards the other context of its pair.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Shares {
    /// Of the stream.
    pub stream: Estimate,
    /// Of the logits of the next token.
    pub next_token: Estimate,
}

/// A head patched alone. Shares are tested by t test over pairs, among all heads.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PatchedHead {
    /// The head.
    pub head: HeadName,
    /// The share of the stream; none of a head behind it.
    pub stream: Option<MeanCheck>,
    /// The share of the logits of the next token.
    pub next_token: MeanCheck,
    /// With the control word; of the heads that move the word most.
    pub control: Option<Shares>,
}

/// Heads patched together. They are chosen on the first half of the pairs; everything here is of the
/// others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PatchedSet {
    /// What they move most, alone.
    pub chosen_by: Moved,
    /// The heads.
    pub heads: Vec<HeadName>,
    /// The share that they move.
    pub moved: Shares,
    /// With the control word.
    pub control: Option<Shares>,
    /// What as many random heads of the same layers move, none of which surely moves anything.
    pub random: Vec<RandomHeads>,
}

/// Random heads patched together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RandomHeads {
    /// The heads.
    pub heads: Vec<HeadName>,
    /// The share that they move.
    pub moved: Shares,
}

/// What a head moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Moved {
    /// The stream at the word.
    Stream,
    /// The logits of the next token.
    NextToken,
}

/// A word in contexts of two senses.
pub(super) struct NamedSenses<'a> {
    pub word: &'a str,
    pub senses: Senses<'a>,
}

impl Subject {
    /// Patches every head of `model` at the word, alone and some together. `None` if the model does not
    /// say how its logits are read.
    ///
    /// # Errors
    /// If the activations do not fit into memory, or a signal asked to stop.
    pub(super) fn patched_senses(
        &self,
        model: &Decoder,
        word: &NamedSenses,
        control: Option<&NamedSenses>,
        pairs: &[[usize; 2]],
        layer: usize,
    ) -> Result<Option<PatchedSenses>, Error> {
        let Some(patching) = SensePatching::new(&word.senses, pairs, layer).map_err(no_room)?
        else {
            return Ok(None);
        };
        let mut of_control = None;
        if let Some(control) = control {
            of_control = SensePatching::new(&control.senses, pairs, layer).map_err(no_room)?;
        }
        let all = all_heads(model);
        let each = self.each_patched(model, &patching, &all, pairs.len())?;
        let mut heads = tested(&each, layer);
        for chosen in [Moved::Stream, Moved::NextToken] {
            for head in moving_most(&each, chosen, pairs.len(), SHOWN_HEADS) {
                self.add_control(&mut heads, head, of_control.as_ref())?;
            }
        }
        let needed: Vec<HeadName> = heads
            .iter()
            .filter(|head| head.is_sure())
            .map(|head| head.head)
            .collect();
        let mut sets = Vec::new();
        for chosen_by in [Moved::Stream, Moved::NextToken] {
            let chosen = moving_most(&each, chosen_by, pairs.len() / 2, SET);
            let together = |of: &SensePatching, heads: &[HeadName]| {
                self.check_not_interrupted()?;
                let moves = of.together(heads).map_err(no_room)?;
                Ok::<Shares, Error>(Shares::of(&moves, pairs.len() / 2))
            };
            let mut random = Vec::new();
            for heads in control_sets(model, &chosen, &needed, RANDOM_SETS, self.seed()) {
                let moved = together(&patching, &heads)?;
                random.push(RandomHeads { heads, moved });
            }
            let mut with_control = None;
            if let Some(control) = &of_control {
                with_control = Some(together(control, &chosen)?);
            }
            sets.push(PatchedSet {
                chosen_by,
                moved: together(&patching, &chosen)?,
                control: with_control,
                heads: chosen,
                random,
            });
        }
        let mut apart = vec![Apart::of(word, &patching)];
        if let (Some(control), Some(patching)) = (control, &of_control) {
            apart.push(Apart::of(control, patching));
        }
        Ok(Some(PatchedSenses {
            pairs: pairs.len(),
            layer,
            apart,
            heads,
            sets,
        }))
    }

    fn each_patched(
        &self,
        model: &Decoder,
        patching: &SensePatching,
        heads: &[HeadName],
        pairs: usize,
    ) -> Result<Vec<(HeadName, SenseMoves)>, Error> {
        let layers = model.blocks.len();
        let work = |head: HeadName| (layers - head.layer) as f64;
        let what = format!("{} heads patched in {pairs} pairs of contexts", heads.len());
        let all = heads.iter().copied().map(work).sum();
        let mut progress = Progress::new(what, "heads", heads.len(), all);
        let mut moves = Vec::new();
        // A layer at a time, so that a signal is heard.
        for of_layer in heads.chunk_by(|a, b| a.layer == b.layer) {
            self.check_not_interrupted()?;
            let found = patching.each(of_layer, &mut |head| progress.add(1, work(head)));
            moves.extend(found.map_err(no_room)?);
        }
        Ok(moves)
    }

    /// What a head moves with the control word.
    fn add_control(
        &self,
        heads: &mut [PatchedHead],
        head: HeadName,
        control: Option<&SensePatching>,
    ) -> Result<(), Error> {
        let place = heads.iter_mut().find(|known| known.head == head);
        let (Some(control), Some(place)) = (control, place) else {
            return Ok(());
        };
        if place.control.is_none() {
            self.check_not_interrupted()?;
            let moves = control.together(&[head]).map_err(no_room)?;
            place.control = Some(Shares::of(&moves, 0));
        }
        Ok(())
    }
}

impl PatchedHead {
    fn is_sure(&self) -> bool {
        self.next_token.is_sure || self.stream.is_some_and(|stream| stream.is_sure)
    }
}

impl Shares {
    /// Of the pairs from `first` on.
    fn of(moves: &SenseMoves, first: usize) -> Self {
        Self {
            stream: Estimate::of_values(&moves.stream[first..]),
            next_token: Estimate::of_values(&moves.next_token[first..]),
        }
    }
}

impl Apart {
    fn of(word: &NamedSenses, patching: &SensePatching) -> Self {
        let [stream, next_token] = patching.apart();
        Self {
            word: word.word.to_owned(),
            stream,
            next_token,
        }
    }
}

/// Tests every head's shares among those of all heads.
fn tested(each: &[(HeadName, SenseMoves)], layer: usize) -> Vec<PatchedHead> {
    let reaches = |head: &HeadName| head.layer <= layer;
    let of_stream = each.iter().filter(|(head, _)| reaches(head));
    let of_stream: Vec<Vec<f64>> = of_stream.map(|(_, moves)| moves.stream.clone()).collect();
    let next_tokens: Vec<Vec<f64>> = each
        .iter()
        .map(|(_, moves)| moves.next_token.clone())
        .collect();
    // Heads stand in the order of layers, so those that reach the stream are the first.
    let mut streams = mean_checks(&of_stream).into_iter();
    let mut heads = Vec::new();
    for ((head, _), next_token) in each.iter().zip(mean_checks(&next_tokens)) {
        heads.push(PatchedHead {
            head: *head,
            stream: streams.next(),
            next_token,
            control: None,
        });
    }
    heads
}

/// The `count` heads that move most on the first pairs, the most first.
fn moving_most(
    each: &[(HeadName, SenseMoves)],
    by: Moved,
    pairs: usize,
    count: usize,
) -> Vec<HeadName> {
    let share = |moves: &SenseMoves| -> f64 {
        let values = match by {
            Moved::Stream => &moves.stream,
            Moved::NextToken => &moves.next_token,
        };
        values[..pairs].iter().sum()
    };
    let mut heads: Vec<(HeadName, f64)> = each
        .iter()
        .map(|(head, moves)| (*head, share(moves)))
        .collect();
    heads.sort_by(|a, b| b.1.total_cmp(&a.1));
    heads.truncate(count);
    heads.into_iter().map(|(head, _)| head).collect()
}

impl PatchedSenses {
    /// For the terminal.
    #[must_use]
    pub fn printout(&self) -> Printout {
        let apart = |apart: &Apart| {
            vec![
                apart.word.trim().to_owned(),
                number(apart.stream, 3),
                number(apart.next_token, 3),
            ]
        };
        let about = format!(
            "Each head patched at the word with what it writes there in the other context of its pair ({} pairs, which \
             differ in the deciding word). Share: how far this moves the stream behind layer {}, or the logits of the next \
             token, towards the other context; 1 is all the way. How far the contexts are apart, over their length:",
            self.pairs, self.layer
        );
        let tested = "The heads that move the stream most, and those that move the next token most. sure: by t test over \
                      pairs, false discovery rate 0.05 over all heads.";
        let sets = format!(
            "The {SET} heads that move most on the first half of the pairs, patched together on the others; random: as many \
             heads of the same layers, none of which surely moves anything, least to most of up to {RANDOM_SETS} sets."
        );
        Printout::new()
            .prose(about)
            .table(Table::new(
                &["word", "stream", "next token"],
                self.apart.iter().map(apart),
            ))
            .prose(tested)
            .table(self.head_table(Moved::Stream))
            .table(self.head_table(Moved::NextToken))
            .prose(sets)
            .table(self.set_table())
    }

    fn head_table(&self, by: Moved) -> Table {
        let share = |head: &PatchedHead| match by {
            Moved::Stream => head.stream,
            Moved::NextToken => Some(head.next_token),
        };
        let mut rows: Vec<(MeanCheck, &PatchedHead)> = Vec::new();
        for head in &self.heads {
            if let Some(check) = share(head) {
                rows.push((check, head));
            }
        }
        rows.sort_by(|(a, _), (b, _)| b.mean.total_cmp(&a.mean));
        rows.truncate(SHOWN_HEADS);
        let row = |(check, head): (MeanCheck, &PatchedHead)| {
            vec![
                head.head.to_string(),
                with_interval(check.mean, check.interval, 3),
                if check.is_sure { "yes" } else { "no" }.to_owned(),
                or_dash(head.control.map(|control| cell(control.by(by)))),
            ]
        };
        let (what, control) = (by.in_words(), self.control_name());
        Table::new(&["head", what, "sure", &control], rows.into_iter().map(row))
    }

    fn control_name(&self) -> String {
        let control = self.apart.get(1).map(|control| control.word.trim());
        control.unwrap_or("control").to_owned()
    }

    fn set_table(&self) -> Table {
        let mut rows = Vec::new();
        for set in &self.sets {
            let names: Vec<String> = set.heads.iter().map(ToString::to_string).collect();
            for by in [Moved::Stream, Moved::NextToken] {
                rows.push(vec![
                    format!("{} ({})", names.join(" "), set.chosen_by.in_words()),
                    by.in_words().to_owned(),
                    cell(set.moved.by(by)),
                    or_dash(set.control.map(|control| cell(control.by(by)))),
                    or_dash(ends(&set.random, by)),
                ]);
            }
        }
        let header = [
            "heads (chosen by)",
            "share of",
            "moved",
            &self.control_name(),
            "random",
        ];
        Table::new(&header, rows)
    }
}

impl Shares {
    fn by(&self, moved: Moved) -> Estimate {
        match moved {
            Moved::Stream => self.stream,
            Moved::NextToken => self.next_token,
        }
    }
}

impl Moved {
    fn in_words(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::NextToken => "next token",
        }
    }
}

fn cell(share: Estimate) -> String {
    with_interval(share.mean, share.interval, 3)
}

/// The least and the most of some random sets; none of none.
fn ends(random: &[RandomHeads], by: Moved) -> Option<String> {
    let mut shares: Vec<f64> = random.iter().map(|set| set.moved.by(by).mean).collect();
    shares.sort_by(f64::total_cmp);
    let (least, most) = (shares.first()?, shares.last()?);
    Some(format!("{} to {}", number(*least, 3), number(*most, 3)))
}
