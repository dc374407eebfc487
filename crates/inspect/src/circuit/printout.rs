//! A circuit in the terminal.

use headlight_heads::{Destination, Edge, EdgeMethod, Metric, PatchDirection, Source};
use headlight_lens::{CurvePoint, Estimate, RandomBand};
use headlight_report::{Printout, Table, number, number_or_dash, with_interval};

use super::{
    agreement::IMPORTANT,
    found::{FoundCircuit, MeasuredEdge, MeasuredPart, Similarity, Stability},
    search::ENOUGH,
};

/// Edges and parts in the terminal; JSON has all.
const SHOWN: usize = 12;

impl FoundCircuit {
    /// For the terminal.
    #[must_use]
    pub fn printout(&self) -> Printout {
        Printout::new()
            .prose(self.about_pairs())
            .prose(self.about_circuit())
            .table(self.drawing())
            .prose(self.about_edges())
            .table(self.edge_table())
            .prose(self.about_parts())
            .table(self.part_table())
            .prose(self.about_agreement())
            .prose(self.about_curve())
            .table(self.curve_table())
            .table(self.share_table())
            .prose(self.about_stability())
            .prose(
                "A circuit is one of this behaviour under this corruption: what both prompts share has no effect. Others \
                 may carry as much. f = (m with these edges − m corrupted) / (m clean − m corrupted), all other edges \
                 corrupted. Edges are chosen on one half of the pairs and reported on the other.",
            )
    }

    pub(super) fn about_pairs(&self) -> String {
        let metric = match self.metric {
            Metric::LogitDifference => "m = logit of the answer over that of the wrong one",
            Metric::Loss => "m = loss in nats",
            Metric::Kl => "m = divergence from the clean prompt in nats",
        };
        let pairs = self.pairs;
        let origin = match self.corruption {
            Some(corruption) => format!("made from the probe: {}", corruption.in_words()),
            None => "given: the corrupted prompt lowers the answer".to_owned(),
        };
        format!(
            "{} of {} pairs {origin}. The clean prompt is answered right in {:.0} %, the corrupted one \
             with the same answer in {:.0} %.\n{metric}: {} clean, {} corrupted.",
            pairs.used,
            pairs.made,
            100.0 * pairs.right,
            100.0 * pairs.right_on_corrupted,
            number(self.clean, 2),
            number(self.corrupted, 2),
        )
    }

    fn about_circuit(&self) -> String {
        let mut lines = vec![self.circuit_in_a_sentence()];
        if let Some(circuit) = &self.circuit {
            lines.extend_from_slice(&circuit.sentences);
        }
        lines.join("\n")
    }

    /// How many edges carry how much, beside random ones.
    pub(super) fn circuit_in_a_sentence(&self) -> String {
        let all = self.edges.len();
        let Some(circuit) = &self.circuit else {
            return if self.curve.is_empty() {
                format!("The graph has {all} edges. Those of the largest effects:")
            } else {
                format!("All {all} edges together do not carry {ENOUGH} of the behaviour.")
            };
        };
        format!(
            "{} of {all} edges carry {} of the behaviour ({:.2} on the pairs on which they were chosen). This share is the \
             faithfulness f: of the difference in m between the two prompts, so much is left when all other edges are \
             corrupted. {} sets of as many random edges carry {}, between the same layers {}.{}",
            circuit.edges.len(),
            with_interval(circuit.faithfulness.share, circuit.faithfulness.interval, 2),
            circuit.found.share,
            circuit.random.sets,
            ends(circuit.random, "to"),
            ends(circuit.random_same_layers, "to"),
            self.why_not_enough(),
        )
    }

    /// Where the circuit carries less on other pairs than it was chosen for.
    fn why_not_enough(&self) -> String {
        match &self.circuit {
            Some(circuit) if circuit.faithfulness.share < ENOUGH => format!(
                " That is less than {ENOUGH}: the search stops where the lower end of the interval reaches {ENOUGH} on the \
                 pairs on which edges are chosen, and does not look at the others."
            ),
            _ => String::new(),
        }
    }

    /// The circuit from the logits down to the embedding: who reads, and from whom.
    fn drawing(&self) -> Table {
        let mut edges: Vec<&MeasuredEdge> =
            self.edges.iter().filter(|edge| edge.in_circuit).collect();
        edges.sort_by_key(|edge| (edge.destination, edge.source));
        let mut readers: Vec<Reader> = Vec::new();
        for edge in edges {
            let (reader, input) = Reader::of(edge.destination);
            let at = readers.iter().position(|known| known.name == reader.name);
            let at = at.unwrap_or(readers.len());
            if at == readers.len() {
                readers.push(reader);
            }
            readers[at].reads[input].push(short(edge.source));
        }
        readers.sort_by(|a, b| (b.height, &a.name).cmp(&(a.height, &b.name)));
        let header = ["reader", "queries ←", "keys ←", "values ←", "stream ←"];
        Table::new(&header, readers.iter().map(Reader::cells)).text_columns(5)
    }

    fn about_edges(&self) -> String {
        let how = match self.method {
            EdgeMethod::Exact => "each edge patched",
            EdgeMethod::Eap => "estimated from one gradient",
            EdgeMethod::EapIg => "estimated from averaged gradients",
            EdgeMethod::AtpStar => "estimated from one gradient, softmax recomputed",
        };
        let direction = match self.direction {
            PatchDirection::Noise => "corrupted values in the clean run",
            PatchDirection::Denoise => "clean values in the corrupted run",
        };
        let complete = self.completeness.map_or(String::new(), |complete| {
            format!(
                " {} points; the edges of the embedding add up to {:.3} of the difference.",
                complete.steps, complete.share
            )
        });
        format!("Effects on m, {how}, {direction}:{complete}")
    }

    fn edge_table(&self) -> Table {
        let has_exact = self.edges.iter().any(|edge| edge.exact.is_some());
        let mut header = vec!["edge", "effect"];
        if has_exact {
            header.push("patched");
        }
        if self.circuit.is_some() {
            header.push("circuit");
        }
        let mut rows = Vec::with_capacity(SHOWN);
        for edge in self.edges.iter().take(SHOWN) {
            let name = Edge {
                source: edge.source,
                destination: edge.destination,
            };
            let mut cells = vec![name.to_string(), effect_cell(edge.effect)];
            if has_exact {
                cells.push(edge.exact.map_or(String::new(), effect_cell));
            }
            if self.circuit.is_some() {
                let mark = if edge.in_circuit { "in" } else { "" };
                cells.push(mark.to_owned());
            }
            rows.push(cells);
        }
        Table::new(&header, rows)
    }

    fn about_parts(&self) -> String {
        if self.parts.is_empty() {
            return String::new();
        }
        let how = match self.method {
            EdgeMethod::Exact => "patched for all its readers at once",
            EdgeMethod::Eap | EdgeMethod::EapIg => {
                "the sum over its edges (attribution patching, AtP)"
            }
            EdgeMethod::AtpStar => {
                "the mean size over gradients with one layer dropped each (AtP*), which has no sign"
            }
        };
        format!("Effects of whole parts on m, {how}:")
    }

    /// The parts of the largest effects.
    fn part_table(&self) -> Table {
        let mut parts = self.parts.clone();
        parts.sort_by(|a, b| b.effect.mean.abs().total_cmp(&a.effect.mean.abs()));
        parts.truncate(SHOWN);
        let mut header = vec!["part", "effect"];
        if parts.iter().any(|part| part.exact.is_some()) {
            header.push("patched");
        }
        Table::new(&header, parts.iter().map(part_cells))
    }

    fn about_agreement(&self) -> String {
        let Some(agreement) = self.agreement else {
            return String::new();
        };
        let mut lines = vec![format!(
            "Estimates beside patching, by size. Spearman: rank correlation. AUROC: how well estimates tell what moves m \
             by {IMPORTANT} of its difference or more from the rest (0.5 by chance, at most 1)."
        )];
        lines.push(similarity_text("edges", agreement.edges));
        if let Some(parts) = agreement.parts {
            lines.push(similarity_text("parts", parts));
        }
        lines.join("\n")
    }

    fn about_curve(&self) -> String {
        if self.curve.is_empty() {
            return String::new();
        }
        "f of the first edges by size of effect, and of sets of as many random edges:".to_owned()
    }

    fn curve_table(&self) -> Table {
        let header = ["edges", "f", "random", "same layers"];
        Table::new(&header, self.curve.iter().map(curve_cells))
    }

    fn share_table(&self) -> Table {
        let mut rows = Vec::new();
        if let Some(shares) = &self.shares {
            for (at, share) in shares.shares.iter().enumerate() {
                rows.push(vec![
                    format!("{share}"),
                    number(shares.by_importance[at], 2),
                    number(shares.by_size[at], 2),
                    number(shares.random[at], 2),
                ]);
            }
            let areas = [
                "area".to_owned(),
                format!("CPR {:.2}", shares.cpr),
                format!("CMD {:.2}", shares.cmd),
            ];
            rows.push(areas.to_vec());
        }
        Table::new(&["share", "f, signed", "f, by size", "f, random"], rows)
    }

    fn about_stability(&self) -> String {
        let Some(Stability {
            edges,
            jaccard,
            random,
        }) = self.stability
        else {
            return String::new();
        };
        let halves = self.circuit.as_ref().map_or(String::new(), |circuit| {
            format!(
                " The search on the other half finds {} edges; Jaccard index {:.2}.",
                circuit.on_other_half.len(),
                circuit.shared
            )
        });
        format!(
            "Stability: the first {edges} edges of two bootstraps over pairs have a Jaccard index of {jaccard:.2} \
             ({random:.2} at random).{halves}"
        )
    }
}

/// A row of the drawing: a part that reads.
struct Reader {
    name: String,
    /// Its layer, and the half of it; the logits stand above all.
    height: (usize, usize),
    /// Who is read as queries, keys, values, and whole.
    reads: [Vec<String>; 4],
}

impl Reader {
    /// The part that reads, and as which of its inputs.
    fn of(destination: Destination) -> (Self, usize) {
        let (name, height, input) = match destination {
            Destination::Queries(head) => (head.to_string(), (head.layer, 0), 0),
            Destination::Keys(head) => (head.to_string(), (head.layer, 0), 1),
            Destination::Values(head) => (head.to_string(), (head.layer, 0), 2),
            Destination::FeedForward(layer) => (destination.to_string(), (layer, 1), 3),
            Destination::Logits => (destination.to_string(), (usize::MAX, 0), 3),
        };
        let reader = Self {
            name,
            height,
            reads: Default::default(),
        };
        (reader, input)
    }

    fn cells(&self) -> Vec<String> {
        let mut cells = vec![self.name.clone()];
        cells.extend(self.reads.iter().map(|sources| sources.join(" ")));
        cells
    }
}

fn effect_cell(effect: Estimate) -> String {
    with_interval(effect.mean, effect.interval, 3)
}

fn part_cells(part: &MeasuredPart) -> Vec<String> {
    let mut cells = vec![part.source.to_string(), effect_cell(part.effect)];
    cells.extend(part.exact.map(effect_cell));
    cells
}

/// `106 edges: Spearman 0.93; AUROC 0.99 (15 of them)`
fn similarity_text(what: &str, found: Similarity) -> String {
    format!(
        "{} {what}: Spearman {}; AUROC {} ({} of them).",
        found.count,
        number_or_dash(found.rank_correlation, 2),
        number_or_dash(found.auroc, 2),
        found.important,
    )
}

fn curve_cells(point: &CurvePoint) -> Vec<String> {
    vec![
        point.edges.to_string(),
        with_interval(point.faithfulness.share, point.faithfulness.interval, 2),
        ends(point.random, "…"),
        ends(point.random_same_layers, "…"),
    ]
}

/// The least and the most of some random sets.
fn ends(band: RandomBand, between: &str) -> String {
    format!(
        "{} {between} {}",
        number(band.least, 2),
        number(band.most, 2)
    )
}

/// A source in a table.
fn short(source: Source) -> String {
    match source {
        Source::Embedding => "embedding".to_owned(),
        Source::Positions => "positions".to_owned(),
        Source::Head(head) => head.to_string(),
        Source::FeedForward(layer) => format!("MLP{layer}"),
    }
}
