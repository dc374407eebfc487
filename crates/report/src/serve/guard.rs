//! Only a server's own page may ask.

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::Next,
    response::Response,
};

use super::refused;

/// Answers only requests of the server's own page, and tells browsers to show it nowhere else.
pub(super) async fn own_page_only(
    State(port): State<u16>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = match wrong_asker(request.headers(), port) {
        Some(message) => refused(StatusCode::FORBIDDEN, &message),
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Says why not, if another page asks, or one by a name that was made to point here (DNS
/// rebinding). Browsers say in `Host` which name they asked and in `Origin` which page asked; a
/// page can change neither.
fn wrong_asker(headers: &HeaderMap, port: u16) -> Option<String> {
    let own = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
    let is_own = |host: &str| own.iter().any(|own| own == host);
    let all = |name| {
        headers
            .get_all(name)
            .iter()
            .map(|value| value.to_str().unwrap_or(""))
            .collect::<Vec<_>>()
    };
    let (hosts, origins) = (all(header::HOST), all(header::ORIGIN));
    if hosts.len() != 1 || !is_own(hosts[0]) {
        return Some(format!("only http://{} is served", own[0]));
    }
    let all_own = origins
        .iter()
        .all(|origin| origin.strip_prefix("http://").is_some_and(is_own));
    (!all_own).then(|| "other pages may not ask".to_owned())
}
