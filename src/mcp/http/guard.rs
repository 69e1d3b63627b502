//! What every request passes: host, origin, headers, token, rate, size, time. Cheap checks first.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, HOST, ORIGIN, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::sync::Semaphore;

use super::tokens::Tokens;
use super::{ALL_BODIES, MAX_BODY, MAX_SESSIONS, Shared};
use crate::mcp::desk::Caller;

/// All headers of a request together, in bytes.
const MAX_HEADERS: usize = 32 * 1024;
/// Within this time a request must have arrived whole.
const ARRIVAL: Duration = Duration::from_secs(60);
/// Requests a second that one caller may go on making.
const RATE: f64 = 1_000.0;
/// Requests that one caller may make at once.
const BURST: f64 = 2_000.0;
/// Callers that are remembered; beyond, those who are quiet are forgotten.
const CALLERS: usize = 10_000;

pub(super) struct Guard {
    hosts: Vec<String>,
    tokens: Option<Tokens>,
    rates: Mutex<HashMap<String, (f64, Instant)>>,
    /// Kilobytes of bodies that may still be taken.
    bodies: Arc<Semaphore>,
}

impl Guard {
    /// For a server that is bound to `address`.
    pub(super) fn new(address: SocketAddr, hosts: &[String], tokens: Option<Tokens>) -> Self {
        let mut known = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "[::1]".to_owned()];
        match address.ip() {
            ip if ip.is_unspecified() => {}
            IpAddr::V4(ip) => known.push(ip.to_string()),
            IpAddr::V6(ip) => known.push(format!("[{ip}]")),
        }
        known.extend(hosts.iter().map(|it| it.to_ascii_lowercase()));
        Self {
            hosts: known,
            tokens,
            rates: Mutex::default(),
            bodies: Arc::new(Semaphore::new(ALL_BODIES >> 10)),
        }
    }

    /// The `Host` must be ours: a page that renamed its own host to this address must not get through.
    fn host(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let mut all = headers.get_all(HOST).iter();
        let (Some(host), None) = (all.next(), all.next()) else {
            return Err(Refusal::new(StatusCode::BAD_REQUEST, "expected one Host header"));
        };
        let known = host.to_str().is_ok_and(|it| self.knows(it));
        if known {
            Ok(())
        } else {
            Err(Refusal::new(StatusCode::FORBIDDEN, "this host is not served here (--allow-host)"))
        }
    }

    /// An `Origin` means a web page; only pages of ours may call.
    fn origin(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        for origin in headers.get_all(ORIGIN) {
            let rest = origin
                .to_str()
                .ok()
                .and_then(|it| it.strip_prefix("http://").or(it.strip_prefix("https://")));
            if !rest.is_some_and(|it| self.knows(it)) {
                return Err(Refusal::new(StatusCode::FORBIDDEN, "this origin may not call (--allow-host)"));
            }
        }
        Ok(())
    }

    /// Whether `host` or `host:port` is one of ours.
    fn knows(&self, authority: &str) -> bool {
        let host = match authority.rsplit_once(':') {
            Some((host, port)) if !port.is_empty() && port.bytes().all(|it| it.is_ascii_digit()) => host,
            Some((_, "")) => return false,
            _ => authority,
        };
        self.hosts.iter().any(|it| it.eq_ignore_ascii_case(host))
    }

    fn owner(&self, headers: &HeaderMap) -> Result<String, Refusal> {
        let Some(tokens) = &self.tokens else { return Ok("http".to_owned()) };
        let token = headers
            .get(AUTHORIZATION)
            .and_then(|it| it.to_str().ok())
            .and_then(|it| it.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, token)| token.trim());
        match token.and_then(|it| tokens.owner(it)) {
            Some(name) => Ok(format!("token:{name}")),
            None => {
                let what = if token.is_some() {
                    "this token is not known"
                } else {
                    "expected Authorization: Bearer TOKEN"
                };
                Err(Refusal::new(StatusCode::UNAUTHORIZED, what))
            }
        }
    }

    /// Takes one request from what a caller may still make.
    fn rate(&self, caller: &str) -> Result<(), Refusal> {
        let now = Instant::now();
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        if rates.len() >= CALLERS {
            rates.retain(|_, (left, at)| *left + now.duration_since(*at).as_secs_f64() * RATE < BURST);
        }
        let (left, at) = rates.entry(caller.to_owned()).or_insert((BURST, now));
        *left = (*left + now.duration_since(*at).as_secs_f64() * RATE).min(BURST);
        *at = now;
        if *left < 1.0 {
            return Err(Refusal::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too many requests; try again in a second",
            ));
        }
        *left -= 1.0;
        Ok(())
    }
}

/// Why a request goes no further.
struct Refusal {
    status: StatusCode,
    what: &'static str,
}

impl Refusal {
    fn new(status: StatusCode, what: &'static str) -> Self {
        Self { status, what }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let error = serde_json::json!({
            "jsonrpc": "2.0",
            "id": null,
            "error": {"code": -32600, "message": self.what},
        });
        let mut response = (self.status, axum::Json(error)).into_response();
        let headers = response.headers_mut();
        match self.status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"epitome\""));
            }
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response
    }
}

/// The one way in.
pub(super) async fn check(
    State(shared): State<Shared>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    let response = match pass(&shared, peer, request, next).await {
        Ok(response) => response,
        Err(refusal) => refusal.into_response(),
    };
    shared.metrics.response(response.status().as_u16());
    response
}

async fn pass(
    shared: &Shared,
    peer: SocketAddr,
    mut request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    let guard = &shared.guard;
    let headers = request.headers();
    guard.host(headers)?;
    guard.origin(headers)?;
    let size: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if size > MAX_HEADERS {
        return Err(Refusal::new(
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            "expected less than 32 KB of headers",
        ));
    }
    let owner = guard.owner(headers).inspect_err(|_| {
        // Guessing tokens has a rate too.
        shared.metrics.unauthorized();
    });
    let rate = guard.rate(owner.as_ref().map_or(&peer.ip().to_string(), |it| it));
    rate?;
    let owner = owner?;
    let caller = Caller { owner, thread: None, listener: None, _held: None };
    if !matches!(*request.method(), Method::POST | Method::PUT) {
        request.extensions_mut().insert(caller);
        return Ok(next.run(request).await);
    }
    let too_large = || Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "expected a body of at most 64 MB");
    let declared =
        request.headers().get(CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|it| it > MAX_BODY) {
        return Err(too_large());
    }
    // Who does not say how much comes may send as much as is allowed.
    let room = declared.unwrap_or(MAX_BODY).div_ceil(1024) as u32;
    let held = guard.bodies.clone().try_acquire_many_owned(room);
    let mut held = held.map_err(|_| {
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "too many large requests at once; try again")
    })?;
    let (mut parts, body) = request.into_parts();
    let bytes = match tokio::time::timeout(ARRIVAL, to_bytes(body, MAX_BODY)).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(_)) => return Err(too_large()),
        Err(_) => {
            return Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "the request took too long to arrive"));
        }
    };
    // A request is answered at once where the result comes on a stream: the call has the room until it is done, no more
    // than came.
    drop(held.split((room as usize).saturating_sub(bytes.len().div_ceil(1024))));
    parts.extensions.insert(Caller { _held: Some(Arc::new(held)), ..caller });
    if parts.uri.path() == "/mcp" && !parts.headers.contains_key("mcp-session-id") && opens_session(&bytes) {
        let open = shared.sessions.sessions.read().await.len();
        if open >= MAX_SESSIONS {
            return Err(Refusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many sessions are open; try again later",
            ));
        }
    }
    Ok(next.run(Request::from_parts(parts, Body::from(bytes))).await)
}

/// Whether this is the handshake of the older protocol.
fn opens_session(body: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Method {
        method: String,
    }
    body.len() < 64 * 1024 && serde_json::from_slice::<Method>(body).is_ok_and(|it| it.method == "initialize")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard() -> Guard {
        Guard::new("127.0.0.1:8765".parse().unwrap(), &["Team.example".to_owned()], None)
    }

    fn headers(name: axum::http::HeaderName, values: &[&str]) -> HeaderMap {
        let mut out = HeaderMap::new();
        for it in values {
            out.append(name.clone(), it.parse().unwrap());
        }
        out
    }

    #[test]
    fn knows_its_hosts() {
        let guard = guard();
        for host in
            ["localhost", "LOCALHOST:8765", "127.0.0.1:1", "[::1]:8765", "team.example:443", "TEAM.EXAMPLE"]
        {
            assert!(guard.host(&headers(HOST, &[host])).is_ok(), "{host}");
        }
        for host in [
            "evil",
            "evil.example:8765",
            "127.0.0.1.evil.example",
            "localhost:",
            "localhost:80a",
            "localhost:8765@evil",
            "",
        ] {
            assert!(guard.host(&headers(HOST, &[host])).is_err(), "{host}");
        }
        assert!(guard.host(&headers(HOST, &[])).is_err());
        assert!(guard.host(&headers(HOST, &["localhost", "evil"])).is_err());
    }

    #[test]
    fn knows_its_pages() {
        let guard = guard();
        assert!(guard.origin(&HeaderMap::new()).is_ok());
        assert!(guard.origin(&headers(ORIGIN, &["http://localhost:3000"])).is_ok());
        assert!(guard.origin(&headers(ORIGIN, &["https://team.example"])).is_ok());
        for origin in
            ["http://evil", "null", "file://", "http://localhost.evil", "ftp://localhost", "http://evil:80"]
        {
            assert!(guard.origin(&headers(ORIGIN, &[origin])).is_err(), "{origin}");
        }
    }

    #[test]
    fn limits_the_rate_of_each_caller() {
        let guard = guard();
        let taken = (0..10_000).take_while(|_| guard.rate("anna").is_ok()).count();
        assert!(taken >= BURST as usize && taken < 10_000, "{taken}");
        assert!(guard.rate("ben").is_ok());
    }
}
