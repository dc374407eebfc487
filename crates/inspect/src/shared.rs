//! `inspect RUN shared`: work that no head is missed for alone.

use headlight_heads::{Ablation, HeadName};
use headlight_lens::{
    Estimate, Joint, Pair, Performance, ablate, all_heads, keys_and_queries, pairs,
    without_distance,
};
use headlight_report::{Printout, Table, with_interval};
use headlight_residual::Decoder;
use headlight_run::Error;
use headlight_watch::{interrupt, no_room};
use serde::Serialize;

use super::{
    Limit, Output, Part, Subject, Verb,
    causal::{accuracy, names},
    progress::Progress,
    verb::POST_NORM,
};

/// Work that heads share: a distance forbidden to a whole layer, keys and queries together, pairs
/// of heads
#[derive(Debug, clap::Args)]
pub struct SharedVerb {
    /// Distances forbidden to these layers and the output of these layers hidden, and of no others,
    /// written 16,17 [default: all layers]
    #[arg(long, value_delimiter = ',')]
    layers: Vec<usize>,
    /// What stands in place of heads that are off
    #[arg(long, value_name = "zero|mean|resample", default_value_t)]
    by: Ablation,
}

impl Verb for SharedVerb {
    const NAME: &'static str = "shared";
    const TAKES_PAIRS: bool = true;
    const PARTS: &'static [Part] = &[
        Part::everywhere("distances"),
        Part {
            name: "readers",
            limits: &[Limit {
                on: POST_NORM,
                says: "Nothing was hidden from readers: the norms replace the stream.",
            }],
        },
    ];

    fn show(self, subject: Subject, out: &Output) -> Result<(), Error> {
        interrupt::listen()?;
        let shared = subject.shared_work(&self.layers, self.by)?;
        out.show(&shared, SharedWork::printout)
    }
}

/// The distances that are forbidden in turn: 0 to this one.
const FARTHEST: usize = 5;
/// Of more heads only pairs within a layer are tested.
const MOST_HEADS_FOR_ALL_PAIRS: usize = 16;
/// Of more heads no pair is tested: that would take too long.
const MOST_HEADS_FOR_PAIRS: usize = 64;
/// Pairs in the terminal; JSON has all.
const SHOWN_PAIRS: usize = 10;

/// What `inspect RUN shared` shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SharedWork {
    /// What stands in place of the heads of a pair.
    pub by: Ablation,
    /// The model as it is.
    pub untouched: Performance,
    /// Each distance forbidden to all heads of each layer.
    pub distances: Vec<ForbiddenDistance>,
    /// What layers and heads wrote, hidden from keys and queries of later layers, alone and
    /// together.
    pub readers: Vec<JointReaders>,
    /// Why there are no readers, if there are none.
    pub no_readers: Option<&'static str>,
    /// Pairs of heads, the largest interaction first.
    pub pairs: Vec<Pair>,
    /// Which pairs are left out, if any.
    pub left_out: Option<&'static str>,
}

/// What is left while no head of a layer may attend over a distance.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ForbiddenDistance {
    /// The layer.
    pub layer: usize,
    /// The distance in tokens; 0 is the token itself.
    pub distance: usize,
    /// What is left.
    pub performance: Performance,
}

/// What is lost with the output of some heads hidden from keys, from queries, and from both.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JointReaders {
    /// Who wrote: a layer or a head.
    pub writer: String,
    /// Their heads.
    pub heads: Vec<HeadName>,
    /// What is lost: `alone` with keys first, then queries.
    #[serde(flatten)]
    pub joint: Joint,
}

impl Subject {
    /// Tests of work that heads share, on the run's own task; of `layers`, or of all if there are none.
    ///
    /// # Errors
    /// If the run has no weights, or a layer does not exist.
    pub fn shared_work(&self, layers: &[usize], by: Ablation) -> Result<SharedWork, Error> {
        let (model, behaviour) = self.behaviour()?;
        let count = model.blocks.len();
        if let Some(layer) = layers.iter().find(|&&layer| layer >= count) {
            let message = format!("the last layer is {}", count - 1);
            return Err(Error::new("--layers", message).value(layer));
        }
        let is_chosen = |layer: usize| layers.is_empty() || layers.contains(&layer);
        let farthest = FARTHEST.min(model.n_ctx() - 1);
        let mut forbidden = Vec::new();
        for layer in (0..count).filter(|&layer| is_chosen(layer)) {
            forbidden.extend((0..=farthest).map(|distance| (layer, distance)));
        }
        let mut writers = writers(&model);
        writers.retain(|(_, heads)| heads.iter().all(|head| is_chosen(head.layer)));
        let tests = forbidden.len() + writers.len();
        let what = format!(
            "{} distances and {} writers (--layers chooses some of them)",
            forbidden.len(),
            writers.len()
        );
        // Of a writer, keys, queries and both are hidden.
        let all = (forbidden.len() + 3 * writers.len()) as f64;
        let mut progress = Progress::new(what, "tests", tests, all);
        let mut distances = Vec::new();
        for (layer, distance) in forbidden {
            self.check_not_interrupted()?;
            let performance = without_distance(&model, &behaviour, layer, distance);
            distances.push(ForbiddenDistance {
                layer,
                distance,
                performance: performance.map_err(no_room)?,
            });
            progress.add(1, 1.0);
        }
        let mut readers = Vec::new();
        for (writer, heads) in writers {
            self.check_not_interrupted()?;
            let joint = keys_and_queries(&model, &behaviour, &heads).map_err(no_room)?;
            readers.extend(joint.map(|joint| JointReaders {
                writer,
                heads,
                joint,
            }));
            progress.add(1, 3.0);
        }
        drop(progress);
        let no_readers = match (readers.is_empty(), count) {
            (false, _) => None,
            (true, _) if layers == [count - 1] => {
                Some("Nothing was hidden from readers: no layer comes later.")
            }
            (true, 1) => Some("Nothing was hidden from readers: no layer comes later."),
            (true, _) => Some("Nothing was hidden from readers: the norms replace the stream."),
        };
        let (chosen, left_out) = chosen_pairs(&all_heads(&model));
        let mut pairs = pairs(&model, &behaviour, &chosen, by).map_err(no_room)?;
        let size = |pair: &Pair| pair.joint.interaction.mean;
        pairs.sort_by(|a, b| size(b).total_cmp(&size(a)));
        let untouched = ablate(&model, &behaviour, &[], by).map_err(no_room)?;
        Ok(SharedWork {
            by,
            untouched,
            distances,
            readers,
            no_readers,
            pairs,
            left_out,
        })
    }
}

/// Each layer that a later one reads, and each head of it.
fn writers(model: &Decoder) -> Vec<(String, Vec<HeadName>)> {
    let mut writers = Vec::new();
    for layer in 0..model.blocks.len() - 1 {
        let heads = (0..model.n_heads()).map(|head| HeadName { layer, head });
        let heads: Vec<HeadName> = heads.collect();
        writers.push((format!("layer {layer}"), heads.clone()));
        writers.extend(heads.iter().map(|&head| (head.to_string(), vec![head])));
    }
    writers
}

/// The pairs that are tested, and which are not.
fn chosen_pairs(heads: &[HeadName]) -> (Vec<[HeadName; 2]>, Option<&'static str>) {
    if heads.len() > MOST_HEADS_FOR_PAIRS {
        return (
            Vec::new(),
            Some("No pairs were tested: there are too many heads."),
        );
    }
    let within_layers = heads.len() > MOST_HEADS_FOR_ALL_PAIRS;
    let mut pairs = Vec::new();
    for (index, &first) in heads.iter().enumerate() {
        for &second in &heads[index + 1..] {
            if !within_layers || first.layer == second.layer {
                pairs.push([first, second]);
            }
        }
    }
    let left_out = within_layers.then_some("Only pairs within a layer were tested.");
    (pairs, left_out)
}

impl SharedWork {
    /// For the terminal.
    #[must_use]
    pub fn printout(&self) -> Printout {
        let untouched = format!(
            "Accuracy is {} untouched. What is left while no head of a layer may attend over a distance (the rest of \
             the row is renormalised):",
            accuracy(&self.untouched)
        );
        let joint = format!(
            "Accuracy lost with the output of a layer or head hidden from keys, from queries, and from both at once; \
             in its place stands its mean. Pairs of heads, in place of each of which stands {} (--by {}):",
            self.by.in_words(),
            self.by
        );
        Printout::new()
            .prose(untouched)
            .table(self.distance_table())
            .prose(joint)
            .table(self.readers_table())
            .prose(self.no_readers.unwrap_or_default())
            .table(self.pairs_table())
            .prose(self.left_out.unwrap_or_default())
            .prose(
                "interaction: together − both alone. Above 0: each does what the other can do too, so that tests of one \
                 at a time miss the work that they share. Below 0: both are links of one chain.",
            )
    }

    /// A line for each layer, a column for each distance.
    fn distance_table(&self) -> Table {
        let mut rows: Vec<Vec<String>> = Vec::new();
        for forbidden in &self.distances {
            if forbidden.distance == 0 {
                rows.push(vec![format!("layer {}", forbidden.layer)]);
            }
            let row = rows.last_mut().into_iter();
            row.for_each(|row| row.push(accuracy(&forbidden.performance)));
        }
        let columns = rows.first().map_or(0, Vec::len);
        let header: Vec<String> = std::iter::once("forbidden".to_owned())
            .chain((1..columns).map(|column| format!("distance {}", column - 1)))
            .collect();
        let first_to_go = ["distance 5", "distance 4", "distance 0", "distance 3"];
        Table::new(&header, rows).first_to_go(&first_to_go)
    }

    fn readers_table(&self) -> Table {
        let row = |readers: &JointReaders| {
            [vec![readers.writer.clone()], joint_cells(&readers.joint)].concat()
        };
        let header = ["hidden", "keys", "queries", "both", "interaction"];
        Table::new(&header, self.readers.iter().map(row))
    }

    fn pairs_table(&self) -> Table {
        let row = |pair: &Pair| [vec![names(&pair.heads)], joint_cells(&pair.joint)].concat();
        let header = ["off", "first", "second", "both", "interaction"];
        Table::new(&header, self.pairs.iter().take(SHOWN_PAIRS).map(row))
    }
}

/// Both alone, both together, the interaction.
fn joint_cells(joint: &Joint) -> Vec<String> {
    let [first, second] = joint.alone;
    let cell = |cost: Estimate| with_interval(cost.mean, cost.interval, 3);
    [first, second, joint.together, joint.interaction]
        .map(cell)
        .into()
}
