//! Pages and their answers on this machine's own address, for no one else: the live explorer, and a
//! run under way.

mod explorer;
mod guard;
mod live;

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, State, rejection::JsonRejection},
    http::StatusCode,
    middleware::from_fn,
    response::{Html, IntoResponse, Response},
    routing::{get, post},
};
use headlight_heads::HeadName;
use headlight_run::Error;
use serde::{Deserialize, Serialize};
use tokio::{net::TcpListener, runtime::Builder, sync::Semaphore, task::spawn_blocking};

use crate::explorer_page::explorer_page;

pub use explorer::{
    ActivationPatch, Answer, CircuitOfPairs, EdgesFacts, Explorer, ExplorerFacts, Question, Sweep,
    SweepDirection, SweepQuestion, WhyQuestion, Writing, WritingQuestion,
};
pub use live::{LiveAddress, LiveRun};

/// The largest question. A browser may ask anything: see [`untrusted`](headlight_run::untrusted).
const MOST_QUESTION_BYTES: usize = 64 * 1024;
/// Answers in the making. A browser asks one address at most 6 things at once, so that no question
/// of a page waits for another one of it; more pages than one wait in turn, which bounds memory.
const MOST_AT_ONCE: usize = 8;

type Asked<T> = Result<Json<T>, JsonRejection>;

/// Serves the explorer on 127.0.0.1 until the program is stopped. `port` 0 takes a free one;
/// `ready` hears the address.
///
/// # Errors
/// If the port is taken, or the page has no HTML form.
pub fn serve(
    explorer: Arc<dyn Explorer>,
    port: u16,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), Error> {
    let page = explorer_page(&explorer.facts())?;
    let wrong = |error: std::io::Error| Error::system(format_args!("--port {port}"), error);
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(wrong)?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .await
            .map_err(wrong)?;
        ready(listener.local_addr().map_err(wrong)?);
        axum::serve(listener, router(explorer, page))
            .await
            .map_err(wrong)
    })
}

/// Every path there is; none of them leads to a file.
fn router(explorer: Arc<dyn Explorer>, page: String) -> Router {
    let answering = Answering {
        explorer,
        turns: Arc::new(Semaphore::new(MOST_AT_ONCE)),
    };
    let router = Router::new()
        .route("/", get(|| async move { Html(page) }))
        .route("/sample", post(sample))
        .route("/explore", post(explore))
        .route("/patterns", post(patterns))
        .route("/walk", post(walk))
        .route("/why", post(why))
        .route("/circuit", post(circuit))
        .route("/sweep", post(sweep))
        .route("/write", post(write))
        .with_state(answering);
    closed(router)
}

/// No other paths, no large questions, no other pages.
fn closed(router: Router) -> Router {
    router
        .fallback(|| async { refused(StatusCode::NOT_FOUND, "there is no such page") })
        .layer(DefaultBodyLimit::max(MOST_QUESTION_BYTES))
        .layer(from_fn(guard::own_page_only))
}

/// Who answers, and how many questions at once.
#[derive(Clone)]
struct Answering {
    explorer: Arc<dyn Explorer>,
    turns: Arc<Semaphore>,
}

impl Answering {
    /// Answers on a thread of its own, so that a slow answer holds up no other one. A question whose
    /// page no longer waits for it is dropped before its turn.
    async fn answer<T, A>(
        self,
        asked: Asked<T>,
        answer: impl FnOnce(&dyn Explorer, &T) -> Result<A, Error> + Send + 'static,
    ) -> Response
    where
        T: Send + 'static,
        A: Serialize + Send + 'static,
    {
        let question = match asked {
            Ok(Json(question)) => question,
            Err(rejection) => return rejected(&rejection),
        };
        let Ok(turn) = self.turns.acquire_owned().await else {
            return refused(StatusCode::SERVICE_UNAVAILABLE, "no question is answered");
        };
        let explorer = self.explorer;
        let answered = spawn_blocking(move || {
            let answered = answer(&*explorer, &question);
            drop(turn);
            answered
        });
        match answered.await {
            Ok(answered) => told(answered),
            Err(panic) => refused(StatusCode::INTERNAL_SERVER_ERROR, &panic.to_string()),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SampleQuestion {
    row: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PatternsQuestion {
    question: Question,
    heads: Vec<HeadName>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WalkQuestion {
    question: Question,
    head: HeadName,
}

async fn sample(State(own): State<Answering>, asked: Asked<SampleQuestion>) -> Response {
    own.answer(asked, |explorer, asked| Ok(explorer.sample(asked.row)))
        .await
}

async fn explore(State(own): State<Answering>, asked: Asked<Question>) -> Response {
    own.answer(asked, Explorer::explore).await
}

async fn patterns(State(own): State<Answering>, asked: Asked<PatternsQuestion>) -> Response {
    own.answer(asked, |explorer, asked| {
        explorer.patterns(&asked.question, &asked.heads)
    })
    .await
}

async fn why(State(own): State<Answering>, asked: Asked<WhyQuestion>) -> Response {
    own.answer(asked, Explorer::why).await
}

async fn circuit(State(own): State<Answering>, asked: Asked<CircuitOfPairs>) -> Response {
    own.answer(asked, Explorer::circuit).await
}

async fn walk(State(own): State<Answering>, asked: Asked<WalkQuestion>) -> Response {
    own.answer(asked, |explorer, asked| {
        explorer.walk(&asked.question, asked.head)
    })
    .await
}

async fn sweep(State(own): State<Answering>, asked: Asked<SweepQuestion>) -> Response {
    own.answer(asked, Explorer::sweep).await
}

async fn write(State(own): State<Answering>, asked: Asked<WritingQuestion>) -> Response {
    own.answer(asked, Explorer::write).await
}

/// An answer that takes no time.
fn answer<T, A: Serialize>(
    asked: Asked<T>,
    answer: impl FnOnce(T) -> Result<A, Error>,
) -> Response {
    match asked {
        Ok(Json(question)) => told(answer(question)),
        Err(rejection) => rejected(&rejection),
    }
}

/// The answer, or `{"error": …, "field": the field that is wrong}`.
fn told<A: Serialize>(answered: Result<A, Error>) -> Response {
    match answered {
        Ok(answer) => Json(answer).into_response(),
        Err(error) => {
            let body = serde_json::json!({ "error": error.to_string(), "field": error.place() });
            (StatusCode::UNPROCESSABLE_ENTITY, Json(body)).into_response()
        }
    }
}

/// Of what is no question.
fn rejected(rejection: &JsonRejection) -> Response {
    if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
        let message = format!("a question has at most {MOST_QUESTION_BYTES} bytes");
        return refused(StatusCode::PAYLOAD_TOO_LARGE, &message);
    }
    refused(rejection.status(), &rejection.body_text())
}

/// `{"error": …}`
fn refused(status: StatusCode, message: &str) -> Response {
    (status, Json(serde_json::json!({ "error": message }))).into_response()
}
