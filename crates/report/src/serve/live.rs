//! A run under way on this machine's own address: a page that asks what is new.
//!
//! All it tells is read from the run's files when a page asks. Training knows nothing of it.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use axum::{
    Router,
    extract::State,
    http::StatusCode,
    response::{Html, IntoResponse, Response},
    routing::{get, post},
};
use headlight_heads::{HeadName, Measure, ScoreName, SequenceKind};
use headlight_run::{Error, EventRow, Follower, HeadRow, MetricsRow, RunDirectory, TimingRow};
use serde::{Deserialize, Serialize};
use tokio::runtime::Builder;

use super::{Asked, answer, closed, refused};
use crate::{Bytes, LiveFacts, live_page::live_page, measures_as_told};

/// Tokens of the probe's first sequence whose pattern is told.
const MOST_TOLD_TOKENS: usize = 128;
/// A page asks every second; one that has asked within this time is looking on.
const PATIENCE: Duration = Duration::from_secs(3);

/// An address on 127.0.0.1 that waits for a run.
#[derive(Debug)]
pub struct LiveAddress {
    listener: TcpListener,
    address: SocketAddr,
}

impl LiveAddress {
    /// Takes `port`; 0 takes a free one.
    ///
    /// # Errors
    /// If the port is taken.
    pub fn take(port: u16) -> Result<Self, Error> {
        let taken = |error: std::io::Error| Error::system(format_args!("--port {port}"), error);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(taken)?;
        listener.set_nonblocking(true).map_err(taken)?;
        let address = listener.local_addr().map_err(taken)?;
        Ok(Self { listener, address })
    }

    /// Shows the run at `path` there, from a thread of its own that ends with the process.
    ///
    /// # Errors
    /// If there is no run at `path`, or the thread cannot be started.
    pub fn show(self, facts: &LiveFacts, path: &Path) -> Result<LiveRun, Error> {
        let run = RunDirectory::open(path)?;
        let seen = Seen {
            follower: Follower::new(&run),
            metrics: Vec::new(),
            events: Vec::new(),
            heads: BTreeMap::new(),
            scores: Vec::new(),
            timing: None,
            asked: None,
        };
        let live = LiveRun {
            watched: Arc::new(Watched {
                run,
                seen: Mutex::new(seen),
            }),
            address: self.address,
        };
        let router = router(Arc::clone(&live.watched), live_page(facts)?);
        let wrong = |error: std::io::Error| Error::system(self.address, error);
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(wrong)?;
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(self.listener).map_err(wrong)?
        };
        let serve = move || runtime.block_on(async { axum::serve(listener, router).await });
        thread::Builder::new()
            .name("live".to_owned())
            .spawn(serve)
            .map_err(wrong)?;
        Ok(live)
    }
}

/// A run on show.
#[derive(Debug)]
pub struct LiveRun {
    watched: Arc<Watched>,
    address: SocketAddr,
}

impl LiveRun {
    /// Where it is.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Gives a page that is looking on the time to hear of the end and to take the report; returns
    /// at once without one.
    pub fn wait_for_last_look(&self) {
        let is_watched = self
            .watched
            .seen()
            .asked
            .is_some_and(|asked| asked.elapsed() < PATIENCE);
        if is_watched {
            thread::sleep(PATIENCE);
        }
    }
}

/// A run, and what was read of it.
#[derive(Debug)]
struct Watched {
    run: RunDirectory,
    seen: Mutex<Seen>,
}

#[derive(Debug)]
struct Seen {
    follower: Follower,
    metrics: Vec<MetricsRow>,
    events: Vec<EventRow>,
    /// Each head on the probe, as it was measured last.
    heads: BTreeMap<HeadName, HeadRow>,
    /// Every score that was measured, in the order of steps.
    scores: Vec<HeadScores>,
    /// The last row of the clock.
    timing: Option<TimingRow>,
    /// When a page asked last.
    asked: Option<Instant>,
}

/// The scores of a head on the probe at one step, in the order of the page's measures.
#[derive(Debug, Clone, Serialize)]
struct HeadScores {
    step: usize,
    head: HeadName,
    values: Vec<Option<f64>>,
}

impl HeadScores {
    fn of(row: &HeadRow) -> Self {
        let value = |measure: Measure| {
            let score = row.scores.get(&ScoreName::from(measure))?;
            Some(score.value).filter(|value| value.is_finite())
        };
        Self {
            step: row.step,
            head: row.head,
            values: measures_as_told().into_iter().map(value).collect(),
        }
    }
}

/// What a page has already.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewsQuestion {
    /// The step of its last row of metrics.
    metrics: Option<usize>,
    /// The step of its last scores of heads.
    #[serde(default)]
    scores: Option<usize>,
    /// The step of its patterns.
    patterns: Option<usize>,
}

#[derive(Serialize)]
struct News {
    metrics: Vec<MetricsRow>,
    /// All there are. They are few, and written later than the metrics of their step.
    events: Vec<EventRow>,
    heads: Vec<HeadRow>,
    scores: Vec<HeadScores>,
    /// Of the last rows, as far as there are any.
    tokens_per_second: Option<f64>,
    patterns: Option<NewPatterns>,
    /// Whether the report is there: it is written last.
    finished: bool,
}

/// Every head's pattern on the first sequence of the probe.
#[derive(Serialize)]
struct NewPatterns {
    step: usize,
    tokens: Vec<String>,
    /// How many tokens the sequence has, of which the first are told.
    length: usize,
    /// `[query][key]`, weight · 255.
    weights: Vec<(HeadName, Bytes)>,
}

impl Watched {
    /// Whoever held it before and failed left rows that are whole.
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn news(&self, question: &NewsQuestion) -> Result<News, Error> {
        let finished = self.run.path().join("report.html").is_file();
        let mut seen = self.seen();
        seen.asked = Some(Instant::now());
        let rows = seen.follower.new_rows()?;
        // The last row of a run that diverges has no numbers to draw.
        let finite = rows.metrics.into_iter().filter(MetricsRow::is_finite);
        seen.metrics.extend(finite);
        seen.events.extend(rows.events);
        let on_probe = rows
            .heads
            .into_iter()
            .filter(|row| row.on == SequenceKind::Probe);
        for row in on_probe {
            seen.scores.push(HeadScores::of(&row));
            seen.heads.insert(row.head, row);
        }
        if let Some(last) = rows.timing.into_iter().next_back() {
            seen.timing = Some(last);
        }
        let scored = seen
            .scores
            .partition_point(|row| Some(row.step) <= question.scores);
        let known = seen
            .metrics
            .partition_point(|row| Some(row.step) <= question.metrics);
        Ok(News {
            metrics: seen.metrics[known..].to_vec(),
            events: seen.events.clone(),
            heads: seen.heads.values().cloned().collect(),
            scores: seen.scores[scored..].to_vec(),
            tokens_per_second: seen.timing.as_ref().map(|row| row.tokens_per_second),
            patterns: self.patterns_after(question.patterns),
            finished,
        })
    }

    /// The newest patterns that can be read; those being written are not there yet.
    fn patterns_after(&self, known: Option<usize>) -> Option<NewPatterns> {
        let steps = self.run.pattern_steps().ok()?;
        let mut newer = steps
            .into_iter()
            .rev()
            .take_while(|&step| Some(step) > known);
        let (step, file) = newer
            .find_map(|step| Some((step, self.run.patterns(step, SequenceKind::Probe).ok()?)))?;
        let vocabulary = self.run.vocabulary().ok()?;
        let tokens = file.tokens().first()?.iter().take(MOST_TOLD_TOKENS);
        let tokens: Vec<String> = tokens
            .map(|&token| vocabulary.get(token as usize).cloned())
            .collect::<Option<_>>()?;
        let [layers, _, heads, length] = file.sizes();
        let of_head = |layer: usize, head: usize| {
            let rows = (0..tokens.len())
                .flat_map(|query| &file.row(layer, 0, head, query)[..tokens.len()]);
            (HeadName { layer, head }, Bytes(rows.copied().collect()))
        };
        let weights = (0..layers).flat_map(|layer| (0..heads).map(move |head| (layer, head)));
        Some(NewPatterns {
            step,
            length,
            weights: weights.map(|(layer, head)| of_head(layer, head)).collect(),
            tokens,
        })
    }
}

fn router(watched: Arc<Watched>, page: String) -> Router {
    let router = Router::new()
        .route("/", get(|| async move { Html(page) }))
        .route("/news", post(news))
        .route("/report.html", get(report))
        .with_state(watched);
    closed(router)
}

async fn news(State(watched): State<Arc<Watched>>, asked: Asked<NewsQuestion>) -> Response {
    answer(asked, |question| watched.news(&question))
}

/// The one file of the run that is handed out.
async fn report(State(watched): State<Arc<Watched>>) -> Response {
    match watched.run.report() {
        Ok(html) => Html(html).into_response(),
        Err(error) => refused(StatusCode::NOT_FOUND, &error.to_string()),
    }
}
