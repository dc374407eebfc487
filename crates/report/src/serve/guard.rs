//! Only a server's own page may ask.

use axum::{
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    middleware::Next,
    response::Response,
};

use super::refused;

/// The names of this machine for itself. Nobody else can make a name of theirs out of these.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Answers only requests of the server's own page, and tells browsers to show it nowhere else.
pub(super) async fn own_page_only(request: Request, next: Next) -> Response {
    let mut response = match wrong_asker(request.headers()) {
        Some(message) => refused(StatusCode::FORBIDDEN, message),
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
/// page can change neither. The port may be any: an SSH tunnel or a container brings requests from
/// another one.
fn wrong_asker(headers: &HeaderMap) -> Option<&'static str> {
    let all = |name: HeaderName| {
        let values = headers.get_all(name).iter();
        values
            .map(|value| value.to_str().unwrap_or(""))
            .collect::<Vec<_>>()
    };
    let host = match all(header::HOST).as_slice() {
        &[host] if is_loopback(host) => host,
        _ => return Some("only localhost, 127.0.0.1 and [::1] are served"),
    };
    let is_own = |origin: &&str| {
        let asking = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"));
        asking == Some(host)
    };
    if all(header::ORIGIN).iter().all(is_own) {
        None
    } else {
        Some("other pages may not ask")
    }
}

/// A name of this machine for itself, with or without a port.
fn is_loopback(host: &str) -> bool {
    LOOPBACK.iter().any(|name| match host.strip_prefix(name) {
        Some("") => true,
        Some(rest) => rest
            .strip_prefix(':')
            .is_some_and(|port| port.parse::<u16>().is_ok() && !port.starts_with('+')),
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_served(headers: &[(HeaderName, &str)]) -> bool {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()));
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name, value);
        }
        wrong_asker(&map).is_none()
    }

    fn host_is_served(host: &str) -> bool {
        is_served(&[(header::HOST, host)])
    }

    #[test]
    fn every_loopback_name_is_served_on_every_port() {
        for name in LOOPBACK {
            for port in ["", ":80", ":8350", ":65535"] {
                assert!(host_is_served(&format!("{name}{port}")));
            }
        }
    }

    #[test]
    fn no_other_name_is_served() {
        for host in [
            "",
            ":8350",
            "evil.example",
            "localhost.evil.example",
            "localhost.evil.example:8350",
            "evil.example:8350",
            "127.0.0.1.evil.example:8350",
            "127.0.0.1:8350.evil.example",
            "127.0.0.1:",
            "127.0.0.1:65536",
            "127.0.0.1:+80",
            "localhost:80:80",
            "user@localhost",
            "[::1]evil.example",
            "0.0.0.0:8350",
            "192.168.0.2:8350",
            "[::]:8350",
        ] {
            assert!(!host_is_served(host), "{host}");
        }
        assert!(!is_served(&[]));
        let two = [(header::HOST, "localhost"), (header::HOST, "localhost")];
        assert!(!is_served(&two));
    }

    #[test]
    fn a_page_that_asks_is_the_one_that_is_asked() {
        let asked = |origins: &[&str]| {
            let origins = origins.iter().map(|origin| (header::ORIGIN, *origin));
            let host = (header::HOST, "localhost:9000");
            is_served(&std::iter::once(host).chain(origins).collect::<Vec<_>>())
        };
        assert!(asked(&[]));
        assert!(asked(&["http://localhost:9000"]));
        assert!(asked(&["https://localhost:9000"]));
        for origin in [
            "null",
            "",
            "localhost:9000",
            "http://localhost",
            "http://localhost:9001",
            "http://127.0.0.1:9000",
            "http://evil.example",
            "http://localhost:9000.evil.example",
            "http://localhost:9000/",
        ] {
            assert!(!asked(&[origin]), "{origin}");
        }
        assert!(!asked(&["http://localhost:9000", "http://evil.example"]));
    }
}
