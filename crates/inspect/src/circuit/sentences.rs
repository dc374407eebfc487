//! Edges in sentences: `L0H1 → keys of L1H0 to L1H3`.

use headlight_heads::{Destination, Edge, HeadName, Source};

/// Sources that have the same readers, which read the same thing in one layer.
struct Sentence {
    sources: Vec<Source>,
    readers: Vec<Destination>,
}

/// Edges in words: what has the same source and the same kind of reader in one layer is one
/// sentence, and so are sources with the same readers. `group` heads share keys and values.
pub(super) fn sentences(edges: &[Edge], group: usize) -> Vec<String> {
    let mut of_sources: Vec<Sentence> = Vec::new();
    let mut sorted = edges.to_vec();
    sorted.sort();
    for edge in sorted {
        match of_sources.last_mut() {
            Some(last) if last.goes_on_with(edge) => last.readers.push(edge.destination),
            _ => of_sources.push(Sentence {
                sources: vec![edge.source],
                readers: vec![edge.destination],
            }),
        }
    }
    let mut merged: Vec<Sentence> = Vec::new();
    for sentence in of_sources {
        match merged
            .iter_mut()
            .find(|known| known.readers == sentence.readers)
        {
            Some(known) => known.sources.extend(sentence.sources),
            None => merged.push(sentence),
        }
    }
    merged
        .iter()
        .map(|sentence| sentence.in_words(group))
        .collect()
}

impl Sentence {
    /// Whether an edge has the same source, and its destination reads the same thing in the same
    /// layer.
    fn goes_on_with(&self, edge: Edge) -> bool {
        let reader = self.readers[0];
        let kind = std::mem::discriminant::<Destination>;
        self.sources[0] == edge.source
            && kind(&reader) == kind(&edge.destination)
            && reader.layer() == edge.destination.layer()
    }

    fn in_words(&self, group: usize) -> String {
        let (sources, readers) = (self.sources_in_words(), self.readers_in_words(group));
        format!("{sources} → {readers}")
    }

    fn sources_in_words(&self) -> String {
        let (mut heads, mut words) = (Vec::new(), Vec::new());
        for source in &self.sources {
            match source {
                Source::Head(head) => heads.push(*head),
                other => words.push(other.to_string()),
            }
        }
        if !heads.is_empty() {
            words.push(heads_in_words(&heads));
        }
        words.join(", ")
    }

    fn readers_in_words(&self, group: usize) -> String {
        let mut heads = Vec::new();
        for reader in &self.readers {
            match *reader {
                Destination::Queries(head) => heads.push(head),
                Destination::Keys(first) | Destination::Values(first) => {
                    heads.extend((0..group).map(|next| HeadName {
                        head: first.head + next,
                        ..first
                    }));
                }
                Destination::FeedForward(_) | Destination::Logits => return reader.to_string(),
            }
        }
        let kind = match self.readers[0] {
            Destination::Queries(_) => "queries",
            Destination::Keys(_) => "keys",
            _ => "values",
        };
        format!("{kind} of {}", heads_in_words(&heads))
    }
}

/// `L1H0 to L1H3`, `L1H0, L1H2`
fn heads_in_words(heads: &[HeadName]) -> String {
    match heads {
        [first, .., last] if heads.len() > 2 && are_neighbours(heads) => {
            format!("{first} to {last}")
        }
        _ => {
            let names: Vec<String> = heads.iter().map(HeadName::to_string).collect();
            names.join(", ")
        }
    }
}

/// Whether each head is the next one of the same layer.
fn are_neighbours(heads: &[HeadName]) -> bool {
    heads.windows(2).all(|pair| {
        let [one, next] = [pair[0], pair[1]];
        one.layer == next.layer && one.head + 1 == next.head
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(layer: usize, head: usize) -> HeadName {
        HeadName { layer, head }
    }

    #[test]
    fn edges_with_a_common_end_are_one_sentence() {
        let mut edges = Vec::new();
        for reader in 0..3 {
            edges.push(Edge {
                source: Source::Head(head(0, 1)),
                destination: Destination::Keys(head(1, reader)),
            });
            edges.push(Edge {
                source: Source::Head(head(1, reader)),
                destination: Destination::Logits,
            });
        }
        edges.push(Edge {
            source: Source::Embedding,
            destination: Destination::Logits,
        });
        let expected = [
            "embedding, L1H0 to L1H2 → logits",
            "L0H1 → keys of L1H0 to L1H2",
        ];
        assert_eq!(sentences(&edges, 1), expected);
    }

    #[test]
    fn keys_are_those_of_all_heads_that_share_them() {
        let keys = |reader| Edge {
            source: Source::Positions,
            destination: Destination::Keys(head(1, reader)),
        };
        assert_eq!(sentences(&[keys(2)], 2), ["positions → keys of L1H2, L1H3"]);
        assert_eq!(
            sentences(&[keys(0), keys(2)], 2),
            ["positions → keys of L1H0 to L1H3"]
        );
    }
}
