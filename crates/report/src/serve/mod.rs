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
use tokio::{net::TcpListener, runtime::Builder};

use crate::explorer_page::explorer_page;

pub use explorer::{ActivationPatch, Answer, Explorer, ExplorerFacts, Question, WhyQuestion};
pub use live::{LiveAddress, LiveRun};

/// The largest question. A browser may ask anything: see [`untrusted`](headlight_run::untrusted).
const MOST_QUESTION_BYTES: usize = 64 * 1024;

type Shared = State<Arc<dyn Explorer>>;
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
    let router = Router::new()
        .route("/", get(|| async move { Html(page) }))
        .route("/sample", post(sample))
        .route("/explore", post(explore))
        .route("/walk", post(walk))
        .route("/why", post(why))
        .with_state(explorer);
    closed(router)
}

/// No other paths, no large questions, no other pages.
fn closed(router: Router) -> Router {
    router
        .fallback(|| async { refused(StatusCode::NOT_FOUND, "there is no such page") })
        .layer(DefaultBodyLimit::max(MOST_QUESTION_BYTES))
        .layer(from_fn(guard::own_page_only))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SampleQuestion {
    row: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WalkQuestion {
    question: Question,
    head: HeadName,
}

async fn sample(State(explorer): Shared, asked: Asked<SampleQuestion>) -> Response {
    answer(asked, |asked| Ok(explorer.sample(asked.row)))
}

async fn explore(State(explorer): Shared, asked: Asked<Question>) -> Response {
    answer(asked, |question| explorer.explore(&question))
}

async fn walk(State(explorer): Shared, asked: Asked<WalkQuestion>) -> Response {
    answer(asked, |asked| explorer.walk(&asked.question, asked.head))
}

async fn why(State(explorer): Shared, asked: Asked<WhyQuestion>) -> Response {
    answer(asked, |question| explorer.why(&question))
}

fn answer<T, A: Serialize>(
    asked: Asked<T>,
    answer: impl FnOnce(T) -> Result<A, Error>,
) -> Response {
    match asked {
        Ok(Json(question)) => match answer(question) {
            Ok(answer) => Json(answer).into_response(),
            Err(error) => refused(StatusCode::UNPROCESSABLE_ENTITY, &error.to_string()),
        },
        Err(rejection) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => refused(
            StatusCode::PAYLOAD_TOO_LARGE,
            &format!("a question has at most {MOST_QUESTION_BYTES} bytes"),
        ),
        Err(rejection) => refused(rejection.status(), &rejection.body_text()),
    }
}

/// `{"error": …}`
fn refused(status: StatusCode, message: &str) -> Response {
    (status, Json(serde_json::json!({ "error": message }))).into_response()
}
