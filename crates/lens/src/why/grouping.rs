//! Many small ingredients under one name, so that a table can be read.

use headlight_heads::Source;

use super::Ingredient;
use crate::Writer;

/// Ingredients that keep their own name; of more, the rest is grouped.
const MOST_NAMED: usize = 9;

/// For each ingredient, the group that it is counted in.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Grouping {
    /// The names of the groups.
    pub names: Vec<Ingredient>,
    /// `[ingredient]`: the index of its group.
    pub group: Vec<usize>,
}

impl Grouping {
    /// The `MOST_NAMED` largest ingredients keep their names. The others are grouped by their kind.
    pub fn of(ingredients: &[Ingredient], sizes: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..ingredients.len()).collect();
        order.sort_by(|&a, &b| sizes[b].total_cmp(&sizes[a]));
        let mut kinds = vec![None; ingredients.len()];
        for &index in order.iter().skip(MOST_NAMED) {
            kinds[index] = Some(Kind::of(ingredients[index]));
        }
        let count = |kind: Kind| kinds.iter().filter(|other| **other == Some(kind)).count();
        let mut grouping = Self {
            names: Vec::new(),
            group: Vec::new(),
        };
        for (&ingredient, kind) in ingredients.iter().zip(&kinds) {
            let name = match *kind {
                Some(kind) if count(kind) > 1 => kind.name(count(kind)),
                _ => ingredient,
            };
            let known = grouping.names.iter().position(|other| *other == name);
            let group = known.unwrap_or_else(|| {
                grouping.names.push(name);
                grouping.names.len() - 1
            });
            grouping.group.push(group);
        }
        grouping
    }
}

/// What a group can have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Heads,
    FeedForwards,
    Others,
}

impl Kind {
    fn of(ingredient: Ingredient) -> Self {
        match ingredient {
            Ingredient::Written(Writer::Source(Source::Head(_))) => Self::Heads,
            Ingredient::Written(Writer::Source(Source::FeedForward(_))) => Self::FeedForwards,
            _ => Self::Others,
        }
    }

    fn name(self, count: usize) -> Ingredient {
        match self {
            Self::Heads => Ingredient::OtherHeads(count),
            Self::FeedForwards => Ingredient::OtherFeedForwards(count),
            Self::Others => Ingredient::Others(count),
        }
    }
}

#[cfg(test)]
mod tests {
    use headlight_heads::HeadName;

    use super::*;

    #[test]
    fn small_ingredients_of_a_kind_are_counted_together_and_a_lone_one_keeps_its_name() {
        let head = |layer, head| Ingredient::from(Source::Head(HeadName { layer, head }));
        let mut ingredients: Vec<Ingredient> = (0..MOST_NAMED).map(|at| head(0, at)).collect();
        let feed_forward = Ingredient::from(Source::FeedForward(0));
        ingredients.extend([head(1, 0), feed_forward, head(1, 1)]);
        let mut sizes = vec![1.0; MOST_NAMED];
        sizes.extend([0.1, 0.2, 0.3]);
        let grouping = Grouping::of(&ingredients, &sizes);
        let last = &grouping.group[MOST_NAMED..];
        let names: Vec<String> = last
            .iter()
            .map(|&at| grouping.names[at].to_string())
            .collect();
        assert_eq!(
            names,
            ["the other 2 heads", "feed-forward 0", "the other 2 heads"]
        );
    }
}
