//! A circuit as a picture: parts by layer, edges between them.

use std::collections::BTreeSet;

use headlight_heads::{Destination, Edge, HeadName, Source};

use crate::{
    colour::{BLUE, BLUISH_GREEN, VERMILLION, hex},
    svg::{Svg, escaped},
};

/// An edge and how much it matters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PicturedEdge {
    /// The edge.
    pub edge: Edge,
    /// The line is as wide as this is large; below 0 it is dashed.
    pub importance: f64,
}

/// A circuit and the model that it is part of.
#[derive(Debug, Clone, PartialEq)]
pub struct CircuitPicture {
    /// Above the picture.
    pub title: String,
    /// Layers of the model.
    pub n_layers: usize,
    /// Query heads in each layer.
    pub n_heads: usize,
    /// The edges.
    pub edges: Vec<PicturedEdge>,
}

/// Of more heads in a layer, only those of the circuit are drawn.
const MOST_HEADS: usize = 12;
/// A box of a part.
const BOX: [f64; 2] = [72.0, 36.0];
/// From one box to its right neighbour, and from one row to the next.
const APART: [f64; 2] = [92.0, 104.0];
const MARGIN: f64 = 24.0;
/// Room for the title.
const TOP: f64 = 52.0;
/// Room for the legend.
const BOTTOM: f64 = 58.0;
/// The widest line.
const WIDEST: f64 = 7.0;
const GREY: &str = "#555555";

/// The places of the parts that are drawn.
struct Layout {
    /// The heads of each row, by layer.
    rows: Vec<Vec<HeadName>>,
    /// The layers whose feed-forward is drawn.
    feed_forwards: BTreeSet<usize>,
    has_positions: bool,
    width: f64,
    height: f64,
}

impl CircuitPicture {
    /// The picture. Sources write upwards. Each head has an entry for queries, keys and values.
    ///
    /// ```
    /// use headlight_heads::{Destination, Edge, Source};
    /// use headlight_report::{CircuitPicture, PicturedEdge};
    ///
    /// let edge = Edge { source: Source::Embedding, destination: Destination::Values("L1H0".parse()?) };
    /// let picture = CircuitPicture {
    ///     title: "one edge".to_owned(),
    ///     n_layers: 2,
    ///     n_heads: 4,
    ///     edges: vec![PicturedEdge { edge, importance: 2.5 }],
    /// };
    /// let svg = picture.svg();
    /// assert_eq!(svg.matches("<path").count(), 1);
    /// assert!(svg.contains("<title>embedding → values of L1H0: 2.50</title>"));
    /// assert!(svg.contains(">L0H3</text>"));
    /// # Ok::<(), headlight_heads::NotAHead>(())
    /// ```
    #[must_use]
    pub fn svg(&self) -> String {
        let layout = Layout::of(self);
        let mut svg = Svg::new(layout.width, layout.height);
        svg.text([MARGIN, 28.0], r#"font-size="15""#, &self.title);
        let largest = self.edges.iter().map(|edge| edge.importance.abs());
        let largest = largest.fold(f64::MIN_POSITIVE, f64::max);
        // Thin lines stay visible over wide ones.
        let mut edges = self.edges.clone();
        edges.sort_by(|a, b| b.importance.abs().total_cmp(&a.importance.abs()));
        for edge in &edges {
            layout.draw_edge(&mut svg, edge, largest);
        }
        layout.draw_parts(&mut svg, &self.used());
        layout.draw_legend(&mut svg);
        svg.finish()
    }

    /// The heads that an edge leads from or to.
    fn used(&self) -> BTreeSet<HeadName> {
        let mut used = BTreeSet::new();
        for PicturedEdge { edge, .. } in &self.edges {
            if let Source::Head(head) = edge.source {
                used.insert(head);
            }
            used.extend(head_of(edge.destination));
        }
        used
    }
}

impl Layout {
    fn of(picture: &CircuitPicture) -> Self {
        let used = picture.used();
        let mut rows = Vec::new();
        for layer in 0..picture.n_layers {
            let all = (0..picture.n_heads).map(|head| HeadName { layer, head });
            let is_drawn = |head: &HeadName| picture.n_heads <= MOST_HEADS || used.contains(head);
            let row: Vec<HeadName> = all.filter(is_drawn).collect();
            rows.push(row);
        }
        let ends = picture.edges.iter().map(|pictured| pictured.edge);
        let mut feed_forwards = BTreeSet::new();
        let mut has_positions = false;
        for edge in ends {
            if let Source::FeedForward(layer) = edge.source {
                feed_forwards.insert(layer);
            }
            if let Destination::FeedForward(layer) = edge.destination {
                feed_forwards.insert(layer);
            }
            has_positions |= edge.source == Source::Positions;
        }
        // A layer of a deep model without any part of the circuit takes no room.
        let widest = rows.iter().map(Vec::len).max().unwrap_or(0).max(3);
        let mut layout = Self {
            rows,
            feed_forwards,
            has_positions,
            width: 2.0 * MARGIN + APART[0] * (widest + 1) as f64,
            height: 0.0,
        };
        layout.height = TOP + APART[1] * layout.levels() + BOX[1] + BOTTOM;
        layout
    }

    /// How many rows stand above the embedding.
    fn levels(&self) -> f64 {
        self.level_of_layer(self.rows.len())
    }

    /// The number of rows below the heads of a layer.
    fn level_of_layer(&self, layer: usize) -> f64 {
        let mut level = 1.0;
        for below in 0..layer {
            if !self.rows[below].is_empty() {
                level += 1.0;
            }
            if self.feed_forwards.contains(&below) {
                level += 0.5;
            }
        }
        level
    }

    /// The middle of a row.
    fn height_of(&self, level: f64) -> f64 {
        self.height - BOTTOM - BOX[1] / 2.0 - APART[1] * level
    }

    fn head(&self, head: HeadName) -> [f64; 2] {
        let row = &self.rows[head.layer];
        let column = row.iter().position(|known| *known == head).unwrap_or(0);
        let first = self.width / 2.0 - APART[0] * (row.len() as f64 - 1.0) / 2.0;
        [
            first + APART[0] * column as f64,
            self.height_of(self.level_of_layer(head.layer)),
        ]
    }

    fn feed_forward(&self, layer: usize) -> [f64; 2] {
        let below = if self.rows[layer].is_empty() {
            0.0
        } else {
            0.5
        };
        let level = self.level_of_layer(layer) + below;
        [self.width - MARGIN - BOX[0] / 2.0, self.height_of(level)]
    }

    fn source(&self, source: Source) -> [f64; 2] {
        let bottom = self.height_of(0.0);
        let aside = if self.has_positions {
            APART[0] * 0.75
        } else {
            0.0
        };
        match source {
            Source::Embedding => [self.width / 2.0 - aside, bottom],
            Source::Positions => [self.width / 2.0 + aside, bottom],
            Source::Head(head) => self.head(head),
            Source::FeedForward(layer) => self.feed_forward(layer),
        }
    }

    /// The middle of the part, and how far to the right its entry is.
    fn destination(&self, destination: Destination) -> ([f64; 2], f64) {
        let third = BOX[0] / 3.0;
        match destination {
            Destination::Queries(head) => (self.head(head), -third),
            Destination::Keys(head) => (self.head(head), 0.0),
            Destination::Values(head) => (self.head(head), third),
            Destination::FeedForward(layer) => (self.feed_forward(layer), 0.0),
            Destination::Logits => ([self.width / 2.0, self.height_of(self.levels())], 0.0),
        }
    }

    fn draw_edge(&self, svg: &mut Svg, pictured: &PicturedEdge, largest: f64) {
        let PicturedEdge { edge, importance } = pictured;
        let [x1, y1] = self.source(edge.source);
        let ([x2, y2], aside) = self.destination(edge.destination);
        let (x2, y1, y2) = (x2 + aside, y1 - BOX[1] / 2.0, y2 + BOX[1] / 2.0);
        let bend = (y1 - y2) / 2.0;
        let width = (importance.abs() / largest * WIDEST).max(1.0);
        let dashes = if *importance < 0.0 {
            r#" stroke-dasharray="6 4""#
        } else {
            ""
        };
        let (colour, text) = (colour_of(edge.destination), escaped(&edge.to_string()));
        svg.element(format_args!(
            r#"<path d="M{x1:.1} {y1:.1} C{x1:.1} {:.1} {x2:.1} {:.1} {x2:.1} {y2:.1}" fill="none" stroke="{colour}" stroke-width="{width:.1}" stroke-opacity="0.75"{dashes}><title>{text}: {importance:.2}</title></path>"#,
            y1 - bend,
            y2 + bend,
        ));
    }

    fn draw_parts(&self, svg: &mut Svg, used: &BTreeSet<HeadName>) {
        for row in &self.rows {
            for head in row {
                draw_box(
                    svg,
                    self.head(*head),
                    &head.to_string(),
                    used.contains(head),
                );
                if used.contains(head) {
                    draw_entries(svg, self.head(*head));
                }
            }
        }
        for &layer in &self.feed_forwards {
            draw_box(svg, self.feed_forward(layer), &format!("MLP {layer}"), true);
        }
        draw_box(svg, self.source(Source::Embedding), "embedding", true);
        if self.has_positions {
            draw_box(svg, self.source(Source::Positions), "positions", true);
        }
        let (logits, _) = self.destination(Destination::Logits);
        draw_box(svg, logits, "logits", true);
    }

    fn draw_legend(&self, svg: &mut Svg) {
        let mut x = MARGIN;
        let y = self.height - 34.0;
        for (name, colour) in [
            ("queries", hex(BLUE)),
            ("keys", hex(VERMILLION)),
            ("values", hex(BLUISH_GREEN)),
            ("others", GREY.to_owned()),
        ] {
            svg.line(
                [x, y - 4.0],
                [x + 18.0, y - 4.0],
                &format!(r#"stroke="{colour}" stroke-width="4""#),
            );
            svg.text([x + 24.0, y], "", name);
            x += 84.0;
        }
        svg.text(
            [MARGIN, self.height - 14.0],
            r##"fill="#444444""##,
            "The wider a line, the larger the effect; dashed: against the answer.",
        );
    }
}

fn head_of(destination: Destination) -> Option<HeadName> {
    match destination {
        Destination::Queries(head) | Destination::Keys(head) | Destination::Values(head) => {
            Some(head)
        }
        Destination::FeedForward(_) | Destination::Logits => None,
    }
}

fn colour_of(destination: Destination) -> String {
    match destination {
        Destination::Queries(_) => hex(BLUE),
        Destination::Keys(_) => hex(VERMILLION),
        Destination::Values(_) => hex(BLUISH_GREEN),
        Destination::FeedForward(_) | Destination::Logits => GREY.to_owned(),
    }
}

/// A part; one that no edge touches is pale.
fn draw_box(svg: &mut Svg, [x, y]: [f64; 2], name: &str, is_used: bool) {
    let (stroke, text) = if is_used {
        ("#222222", "#000000")
    } else {
        ("#cccccc", "#999999")
    };
    svg.element(format_args!(
        r#"<rect x="{:.1}" y="{:.1}" width="{}" height="{}" rx="6" fill="white" stroke="{stroke}"/>"#,
        x - BOX[0] / 2.0,
        y - BOX[1] / 2.0,
        BOX[0],
        BOX[1],
    ));
    let attributes = format!(r#"text-anchor="middle" fill="{text}""#);
    svg.text([x, y + 2.0], &attributes, name);
}

/// The entries of a head for queries, keys and values.
fn draw_entries(svg: &mut Svg, [x, y]: [f64; 2]) {
    let third = BOX[0] / 3.0;
    for (name, aside) in [("q", -third), ("k", 0.0), ("v", third)] {
        let place = [x + aside, y + BOX[1] / 2.0 - 4.0];
        svg.text(
            place,
            r##"text-anchor="middle" font-size="9" fill="#444444""##,
            name,
        );
    }
}
