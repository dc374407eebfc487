//! `inspect RUN circuits`: what the heads' weights do, before any sequence is seen.

use headlight_attention::QkNorm;
use headlight_heads::HeadName;
use headlight_lens::{
    AgainstRandom, Circuits, Composition, Direction, End, FactoredMatrix, FavouriteDistance, Input,
    Random, compositions, copying_by_eigenvalues, directions, favourite_distance, random_copying,
};
use headlight_report::{Printout, Table, or_dash, plus_minus};
use headlight_residual::{DecoderConfig, Positions};
use headlight_run::{Error, ErrorKind};
use serde::Serialize;

use super::{Limit, ModelParts, Output, Part, Subject, Verb, verb::POST_NORM};

/// What the heads' weights do by themselves: copying, positions, who fits whom
#[derive(Debug, clap::Args)]
pub struct CircuitsVerb {
    /// This head token by token too, written L1H0
    #[arg(long)]
    head: Option<HeadName>,
}

impl Verb for CircuitsVerb {
    const NAME: &'static str = "circuits";
    const PARTS: &'static [Part] = &[
        Part {
            name: "tokens",
            limits: &[NOT_FOLDED],
        },
        Part {
            name: "positions",
            limits: &[
                NOT_FOLDED,
                Limit {
                    on: &["llama", "rotary", "ALiBi", "no positions"],
                    says: "positions are not added to the stream",
                },
            ],
        },
    ];

    fn show(self, subject: Subject, out: &Output) -> Result<(), Error> {
        out.show(&subject.circuits(self.head)?, CircuitTables::printout)
    }
}

const NOT_FOLDED: Limit = Limit {
    on: POST_NORM,
    says: "the norms of a post-norm model replace the stream and cannot be folded into what reads it",
};

/// Random matrices behind each null.
const DRAWS: usize = 200;
/// Compositions that are printed; JSON has all.
const SHOWN_COMPOSITIONS: usize = 16;
/// The largest entries of a head's tables that are shown.
const SHOWN_PAIRS: usize = 12;
/// Singular directions of a head's tables that are shown.
const SHOWN_DIRECTIONS: usize = 4;
/// Tokens at each end of a direction.
const SHOWN_TOKENS: usize = 5;

/// What `inspect RUN circuits` shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CircuitTables {
    /// What scores depend on besides the tables.
    pub positions: &'static str,
    /// What random heads between this embedding and unembedding have for copying.
    pub random_copying: Random,
    /// A table that says nothing about equal tokens has them on top of this share of rows.
    pub own_token_null: f64,
    /// Every head.
    pub heads: Vec<HeadCircuits>,
    /// Every composition, or those of the chosen head; the largest z first.
    pub compositions: Vec<ComposedHeads>,
    /// The chosen head.
    pub chosen: Option<ChosenHead>,
}

/// One head's circuits in a few numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeadCircuits {
    /// The head.
    pub head: HeadName,
    /// `Σλ / Σ|λ|` of the full OV circuit; none if it has no eigenvalues but 0.
    pub copying: Option<AgainstRandom>,
    /// The share of tokens that the head, looking at them, makes likelier than every other.
    pub own_token: f64,
    /// How far back positions look for each other; none where positions are not added to the
    /// stream.
    pub position: Option<FavouriteDistance>,
}

/// Two heads that compose.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComposedHeads {
    /// The score.
    #[serde(flatten)]
    pub composition: Composition,
    /// Through keys: the share of tokens that look for themselves above all in what the writer put
    /// into keys.
    pub own_token: Option<f64>,
}

/// One head's tables over tokens.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChosenHead {
    /// The head.
    pub head: HeadName,
    /// Which token looks for which.
    pub qk: TokenTable,
    /// Which token, looked at, makes which more likely.
    pub ov: TokenTable,
}

/// The heart of a table over tokens.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TokenTable {
    /// The largest entries: row, column, value.
    pub pairs: Vec<(String, String, f64)>,
    /// The largest singular directions.
    pub directions: Vec<NamedDirection>,
}

/// A [`Direction`] with the names of its tokens.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NamedDirection {
    /// The singular value.
    pub value: f64,
    /// Its share in the sum of squares.
    pub share: f64,
    /// At both ends, the row tokens and the column tokens.
    pub ends: [[Vec<String>; 2]; 2],
}

impl Subject {
    /// Circuits in the weights of all heads, and of `chosen` token by token.
    ///
    /// # Errors
    /// If the run has no weights, its model no circuits, or there is no such head.
    pub fn circuits(&self, chosen: Option<HeadName>) -> Result<CircuitTables, Error> {
        let ModelParts { model, vocabulary } = self.model()?;
        let circuits = Circuits::of(&model)
            .map_err(|error| Error::because(ErrorKind::Argument, self.path().display(), error))?;
        let heads = circuits.heads();
        if let Some(head) = chosen.filter(|head| !heads.contains(head)) {
            return Err(Error::new(
                format_args!("--head {head}"),
                "there is no such head",
            ));
        }
        let random = random_copying(&circuits, DRAWS, self.seed());
        let mut composed = Vec::new();
        for pair in compositions(&circuits, DRAWS, self.seed()) {
            if chosen.is_none_or(|head| pair.writer == head || pair.reader == head) {
                composed.push(ComposedHeads::of(pair, &circuits));
            }
        }
        let chosen = chosen.map(|head| ChosenHead {
            head,
            qk: TokenTable::of(&circuits.full_qk(head), &vocabulary),
            ov: TokenTable::of(&circuits.full_ov(head), &vocabulary),
        });
        Ok(CircuitTables {
            positions: besides_tokens(model.config()),
            random_copying: random,
            own_token_null: 1.0 / circuits.vocabulary() as f64,
            heads: heads
                .into_iter()
                .map(|head| HeadCircuits::of(head, &circuits, random))
                .collect(),
            compositions: composed,
            chosen,
        })
    }
}

/// A sentence: what scores depend on besides the tables over tokens.
fn besides_tokens(config: &DecoderConfig) -> &'static str {
    match (&config.positions, config.qk_norm) {
        (Positions::Rotary(_), QkNorm::None) => {
            "Queries and keys rotate: QK is that of distance 0."
        }
        (Positions::Rotary(_), _) => {
            "Queries and keys are normalised and rotate: QK is before the norm, at distance 0."
        }
        (_, QkNorm::EachHead | QkNorm::AllHeads) => {
            "Queries and keys are normalised before they are compared: QK is before the norm."
        }
        (Positions::Alibi, _) => "Scores also fall with distance, whatever the tokens.",
        (Positions::Learned | Positions::Sinusoidal, _) => {
            "Positions are in the stream beside the tokens, so scores depend on both."
        }
        (Positions::None, _) => "Scores depend on tokens alone.",
    }
}

impl HeadCircuits {
    fn of(head: HeadName, circuits: &Circuits, random: Random) -> Self {
        let full_ov = circuits.full_ov(head);
        Self {
            head,
            copying: copying_by_eigenvalues(&full_ov).map(|value| random.against(value)),
            own_token: full_ov.diagonal_is_largest(),
            position: favourite_distance(circuits, head),
        }
    }
}

impl ComposedHeads {
    fn of(composition: Composition, circuits: &Circuits) -> Self {
        let mut own_token = None;
        if composition.input == Input::Key {
            let table = circuits.key_composed_qk(composition.writer, composition.reader);
            own_token = Some(table.diagonal_is_largest());
        }
        Self {
            composition,
            own_token,
        }
    }
}

impl TokenTable {
    fn of(table: &FactoredMatrix, vocabulary: &[String]) -> Self {
        let name = |token: usize| vocabulary[token].clone();
        let mut pairs = Vec::new();
        for entry in table.largest(SHOWN_PAIRS) {
            pairs.push((name(entry.row), name(entry.column), entry.value));
        }
        let mut named = Vec::new();
        for Direction { value, share, ends } in directions(table, SHOWN_DIRECTIONS, SHOWN_TOKENS) {
            named.push(NamedDirection {
                value,
                share,
                ends: ends.map(|End { rows, columns }| {
                    [rows, columns].map(|tokens| names(&tokens, vocabulary))
                }),
            });
        }
        Self {
            pairs,
            directions: named,
        }
    }

    fn printout(&self, from: &str, to: &str) -> Printout {
        let pairs = self
            .pairs
            .iter()
            .map(|(row, column, value)| vec![row.clone(), column.clone(), three(*value)]);
        let mut ends = Vec::new();
        for direction in &self.directions {
            let [[rows, columns], [other_rows, other_columns]] = &direction.ends;
            // The value stands beside the first end alone.
            ends.push(vec![
                rows.join(" "),
                columns.join(" "),
                three(direction.value),
                two(direction.share),
            ]);
            ends.push(vec![
                other_rows.join(" "),
                other_columns.join(" "),
                String::new(),
                String::new(),
            ]);
        }
        let directions = Table::new(&[from, to, "singular value", "share of squares"], ends);
        Printout::new()
            .table(Table::new(&[from, to, "entry"], pairs).text_columns(2))
            .table(directions.text_columns(2))
    }
}

impl CircuitTables {
    /// For the terminal.
    #[must_use]
    pub fn printout(&self) -> Printout {
        let left_out = self.compositions.len().saturating_sub(SHOWN_COMPOSITIONS);
        let compositions = match (self.compositions.len(), left_out) {
            (0, _) => "No head reads what another wrote.".to_owned(),
            (_, 0) => String::new(),
            _ => format!("… {left_out} more with --json."),
        };
        let tables = Printout::new()
            .prose(format!(
                "Circuits in the weights, norm gains folded in. {}",
                self.positions
            ))
            .table(self.heads_table())
            .prose(format!(
                "copying: Σλ/Σ|λ| over the eigenvalues of W_E·W_OV·W_U, from −1 to 1; z against {DRAWS} random heads.\n\
                 own token: the share of tokens that the head, looking at them, makes likelier than every other.\n\
                 looks back: {}",
                self.looks_back()
            ))
            .table(self.compositions_table())
            .prose(compositions)
            .prose(format!(
                "composition: ‖W_OV·M‖ / (‖W_OV‖·‖M‖), at most 1; W_OV the writer's, M the reader's W_QK for its \
                 queries, W_QKᵀ for its keys, W_OV for its values. turned: both matrices turned at random against each \
                 other, {DRAWS} times.\n\
                 own token: the share of tokens that look above all for themselves in what the writer put into keys; \
                 by chance {}.\n\
                 That two heads fit does not show that they are used so: see paths.",
                two(self.own_token_null)
            ));
        match &self.chosen {
            None => tables,
            Some(ChosenHead { head, qk, ov }) => tables
                .prose(format!(
                    "{head}, W_E·W_QK·W_Eᵀ: which token looks for which"
                ))
                .printout(qk.printout("query", "key"))
                .prose(format!(
                    "{head}, W_E·W_OV·W_U: which token, looked at, makes which more likely"
                ))
                .printout(ov.printout("looked at", "next"))
                .prose(
                    "Entries hold up to the factor that the norms divide by. Singular directions have two ends, one a line.",
                ),
        }
    }

    fn looks_back(&self) -> &'static str {
        if self.heads.iter().any(|head| head.position.is_some()) {
            "where most rows of W_pos·W_QK·W_posᵀ have their largest score, and which share of rows; in brackets the \
             share that scores in no order have at this distance."
        } else {
            "not known, since positions are not added to the stream."
        }
    }

    fn heads_table(&self) -> Table {
        let row = |head: &HeadCircuits| {
            let (copying, z) = head
                .copying
                .map_or_else(none, |score| (two(score.value), one(score.z)));
            let (distance, share) = head.position.map_or_else(none, |favourite| {
                (
                    favourite.distance.to_string(),
                    format!("{} ({})", two(favourite.share), two(favourite.null)),
                )
            });
            vec![
                head.head.to_string(),
                copying,
                z,
                two(head.own_token),
                distance,
                share,
            ]
        };
        let Random { mean, deviation } = self.random_copying;
        let copying = plus_minus(mean, deviation, 2);
        let random = ["random", &copying, "", &two(self.own_token_null), "", ""]
            .map(str::to_owned)
            .to_vec();
        let header = [
            "head",
            "copying",
            "z",
            "own token",
            "looks back",
            "share of rows",
        ];
        Table::new(&header, self.heads.iter().map(row).chain([random]))
    }

    fn compositions_table(&self) -> Table {
        let row = |ComposedHeads {
                       composition,
                       own_token,
                   }: &ComposedHeads| {
            let Composition {
                writer,
                reader,
                input,
                score,
            } = composition;
            let random = plus_minus(score.random.mean, score.random.deviation, 3);
            let (value, z) = (format!("{:.3}", score.value), one(score.z));
            let own_token = own_token.map_or_else(String::new, two);
            vec![
                writer.to_string(),
                reader.to_string(),
                input.reader().to_string(),
                value,
                random,
                z,
                own_token,
            ]
        };
        let header = [
            "written by",
            "read by",
            "in its",
            "composition",
            "turned",
            "z",
            "own token",
        ];
        let shown = self.compositions.iter().take(SHOWN_COMPOSITIONS);
        Table::new(&header, shown.map(row))
            .text_columns(3)
            .first_to_go(&["own token"])
    }
}

/// The names of tokens that stand beside a number.
fn names(tokens: &[(usize, f64)], vocabulary: &[String]) -> Vec<String> {
    tokens
        .iter()
        .map(|(token, _)| vocabulary[*token].clone())
        .collect()
}

fn one(value: f64) -> String {
    format!("{value:.1}")
}

fn two(value: f64) -> String {
    format!("{value:.2}")
}

/// Three digits that count, whatever the size: entries hold up to a factor.
fn three(value: f64) -> String {
    let decimals = (2.0 - value.abs().log10().floor()).clamp(0.0, 12.0) as usize;
    format!("{value:.decimals$}")
}

fn none() -> (String, String) {
    (or_dash(None), String::new())
}
