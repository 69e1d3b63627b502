//! Checks on every request: host, origin, headers, token, rate, session, size, time. Cheap checks first.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, HOST, ORIGIN, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::tokens::TokenFile;
use super::{ALL_BODIES, MAX_BODY, MAX_SESSIONS, Shared};
use crate::interfaces::mcp::server_state::Caller;

/// Maximum size of all headers of a request, in bytes.
const MAX_HEADERS: usize = 32 * 1024;
/// Maximum time for a request's body to arrive.
const ARRIVAL: Duration = Duration::from_secs(60);
/// Sustained limit of requests per second, per caller.
const RATE: f64 = 1_000.0;
/// Requests that one caller may make in a burst.
const BURST: f64 = 2_000.0;
/// Callers whose rates are kept; beyond this, inactive ones are dropped.
const CALLERS: usize = 10_000;
/// The header that names a session of the older protocol.
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// Delay of the response to an address's first wrong token; each further one doubles it.
const FIRST_DELAY: Duration = Duration::from_millis(20);
/// Upper bound of that delay.
const LONGEST_DELAY: Duration = Duration::from_secs(1);
/// Time without a wrong token after which an address is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(60);
/// Responses delayed at the same time, since each occupies a connection. Beyond this, a wrong token gets "try
/// again".
const MAX_DELAYED: usize = 32;

pub(super) struct Guard {
    hosts: Vec<String>,
    tokens: Option<TokenFile>,
    rates: Mutex<HashMap<String, (f64, Instant)>>,
    failed_tokens: FailedTokens,
    delayed_slots: Semaphore,
    /// Session id → the owner who opened it.
    sessions: Mutex<HashMap<HeaderValue, String>>,
    /// Permits for request bodies, one per kilobyte.
    bodies: Arc<Semaphore>,
}

impl Guard {
    /// For a server that is bound to `address`.
    pub(super) fn new(address: SocketAddr, hosts: &[String], tokens: Option<TokenFile>) -> Self {
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
            failed_tokens: FailedTokens::default(),
            delayed_slots: Semaphore::new(MAX_DELAYED),
            sessions: Mutex::default(),
            bodies: Arc::new(Semaphore::new(ALL_BODIES >> 10)),
        }
    }

    /// The `Host` must be ours, as a protection against DNS rebinding.
    pub(super) fn host(&self, headers: &HeaderMap) -> OrRefusal<()> {
        let mut all = headers.get_all(HOST).iter();
        let (Some(host), None) = (all.next(), all.next()) else {
            return Err(HttpRefusal(StatusCode::BAD_REQUEST, "expected one Host header"));
        };
        let known = host.to_str().is_ok_and(|it| self.knows(it));
        if known {
            Ok(())
        } else {
            Err(HttpRefusal(StatusCode::FORBIDDEN, "this host name is not allowed (--allow-host)"))
        }
    }

    /// An `Origin` header means that a web page is calling; only pages from our hosts may.
    pub(super) fn origin(&self, headers: &HeaderMap) -> OrRefusal<()> {
        for origin in headers.get_all(ORIGIN) {
            let rest = origin
                .to_str()
                .ok()
                .and_then(|it| it.strip_prefix("http://").or(it.strip_prefix("https://")));
            if !rest.is_some_and(|it| self.knows(it)) {
                return Err(HttpRefusal(StatusCode::FORBIDDEN, "this origin is not allowed (--allow-host)"));
            }
        }
        Ok(())
    }

    /// Whether `authority` (`host` or `host:port`) names one of our hosts.
    fn knows(&self, authority: &str) -> bool {
        let host = match authority.rsplit_once(':') {
            Some((host, port)) if !port.is_empty() && port.bytes().all(|it| it.is_ascii_digit()) => host,
            Some((_, "")) => return false,
            _ => authority,
        };
        self.hosts.iter().any(|it| it.eq_ignore_ascii_case(host))
    }

    pub(super) fn has_tokens(&self) -> bool {
        self.tokens.is_some()
    }

    /// The owner of a token. `Err(true)`: the token is unknown; `Err(false)`: there is none.
    fn owner(&self, token: Option<&str>) -> Result<String, bool> {
        let Some(tokens) = &self.tokens else { return Ok("http".to_owned()) };
        match token.and_then(|it| tokens.owner(it)) {
            Some(name) => Ok(format!("token:{name}")),
            None => Err(token.is_some()),
        }
    }

    /// The refusal of a wrong token, delayed so that tokens cannot be guessed quickly.
    async fn wrong_token(&self, address: IpAddr) -> HttpRefusal {
        let Ok(_place) = self.delayed_slots.try_acquire() else {
            let what = "too many wrong tokens; try again in a second";
            return HttpRefusal(StatusCode::TOO_MANY_REQUESTS, what);
        };
        tokio::time::sleep(self.failed_tokens.delay(address, Instant::now())).await;
        HttpRefusal(StatusCode::UNAUTHORIZED, "unknown token")
    }

    /// Replaces another caller's session id by a nonexistent one, so that the response does not reveal that
    /// it exists.
    fn only_own_session(&self, owner: &str, headers: &mut HeaderMap) {
        let Some(id) = headers.get(SESSION) else { return };
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.get(id).is_none_or(|it| it != owner) {
            headers.insert(SESSION, HeaderValue::from_static("none"));
        }
    }

    /// Records who opened a session. `is_open`: whether a session is still open; once there are many, closed
    /// ones are dropped.
    fn opened(&self, session: &HeaderValue, owner: &str, is_open: impl Fn(&str) -> bool) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= 2 * MAX_SESSIONS {
            sessions.retain(|id, _| id.to_str().is_ok_and(&is_open));
        }
        sessions.entry(session.clone()).or_insert_with(|| owner.to_owned());
    }

    /// Counts a request against the caller's rate limit (token bucket).
    fn rate(&self, caller: &str) -> OrRefusal<()> {
        let now = Instant::now();
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        if rates.len() >= CALLERS {
            rates.retain(|_, (left, at)| *left + now.duration_since(*at).as_secs_f64() * RATE < BURST);
        }
        let (left, at) = rates.entry(caller.to_owned()).or_insert((BURST, now));
        *left = (*left + now.duration_since(*at).as_secs_f64() * RATE).min(BURST);
        *at = now;
        if *left < 1.0 {
            let what = "too many requests; try again in a second";
            return Err(HttpRefusal(StatusCode::TOO_MANY_REQUESTS, what));
        }
        *left -= 1.0;
        Ok(())
    }
}

/// Recent wrong tokens by address: how many, and when the last one came.
#[derive(Default)]
struct FailedTokens(Mutex<HashMap<IpAddr, (u32, Instant)>>);

impl FailedTokens {
    /// Counts a wrong token, and returns the delay of the response.
    fn delay(&self, address: IpAddr, now: Instant) -> Duration {
        // An IPv6 caller can use any address in its /64 network: count them as one.
        let address = match address {
            IpAddr::V6(it) => IpAddr::V6((it.to_bits() >> 64 << 64).into()),
            IpAddr::V4(_) => address,
        };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lately = |at: &Instant| now.duration_since(*at) < FORGOTTEN;
        if known.len() >= CALLERS {
            known.retain(|_, (_, at)| lately(at));
        }
        if known.len() >= CALLERS && !known.contains_key(&address) {
            return LONGEST_DELAY;
        }
        let (count, at) = known.entry(address).or_insert((0, now));
        let before = if lately(at) { *count } else { 0 };
        (*count, *at) = (before.saturating_add(1), now);
        FIRST_DELAY.saturating_mul(1u32.checked_shl(before).unwrap_or(u32::MAX)).min(LONGEST_DELAY)
    }
}

/// Why a request is refused: status and message.
pub(super) struct HttpRefusal(StatusCode, &'static str);

pub(super) type OrRefusal<T> = Result<T, HttpRefusal>;

impl IntoResponse for HttpRefusal {
    fn into_response(self) -> Response {
        let error = serde_json::json!({
            "jsonrpc": "2.0",
            "id": null,
            "error": {"code": -32600, "message": self.1},
        });
        let mut response = (self.0, axum::Json(error)).into_response();
        let headers = response.headers_mut();
        match self.0 {
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

/// The middleware that every request passes.
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

async fn pass(shared: &Shared, peer: SocketAddr, mut request: Request, next: Next) -> OrRefusal<Response> {
    let guard = &shared.guard;
    let headers = request.headers();
    guard.host(headers)?;
    guard.origin(headers)?;
    let size: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if size > MAX_HEADERS {
        let what = "expected less than 32 KB of headers";
        return Err(HttpRefusal(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, what));
    }
    let token = bearer_token(headers);
    let owner = admitted(shared, peer, token, "expected Authorization: Bearer TOKEN").await?;
    guard.only_own_session(&owner, request.headers_mut());
    let caller = Caller::of(&owner);
    if !matches!(*request.method(), Method::POST | Method::PUT) {
        request.extensions_mut().insert(caller);
        return Ok(next.run(request).await);
    }
    let (mut parts, bytes, permit) = read_body(guard, request).await?;
    parts.extensions.insert(Caller { _body_permit: Some(Arc::new(permit)), ..caller });
    if parts.uri.path() == "/mcp" && !parts.headers.contains_key(SESSION) && opens_session(&bytes) {
        let open = shared.sessions.sessions.read().await.len();
        if open >= MAX_SESSIONS {
            let what = "too many sessions are open; try again later";
            return Err(HttpRefusal(StatusCode::SERVICE_UNAVAILABLE, what));
        }
    }
    let response = next.run(Request::from_parts(parts, Body::from(bytes))).await;
    if let Some(session) = response.headers().get(SESSION) {
        let open = shared.sessions.sessions.read().await;
        guard.opened(session, &owner, |id| open.contains_key(id));
    }
    Ok(response)
}

/// Reads a request's whole body; the permit stands for the memory it occupies.
async fn read_body(guard: &Guard, request: Request) -> OrRefusal<(Parts, Bytes, OwnedSemaphorePermit)> {
    let too_large = || HttpRefusal(StatusCode::PAYLOAD_TOO_LARGE, "expected a body of at most 64 MB");
    let declared =
        request.headers().get(CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|it| it > MAX_BODY) {
        return Err(too_large());
    }
    // Without a Content-Length, the body may be as large as allowed.
    let room = declared.unwrap_or(MAX_BODY).div_ceil(1024) as u32;
    let held = guard.bodies.clone().try_acquire_many_owned(room);
    let mut held = held.map_err(|_| {
        HttpRefusal(StatusCode::SERVICE_UNAVAILABLE, "too many large requests at once; try again")
    })?;
    let (parts, body) = request.into_parts();
    let bytes = match tokio::time::timeout(ARRIVAL, to_bytes(body, MAX_BODY)).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(_)) => return Err(too_large()),
        Err(_) => {
            return Err(HttpRefusal(StatusCode::REQUEST_TIMEOUT, "the request took too long to arrive"));
        }
    };
    // Keep permits only for the bytes that arrived. The call holds them until it is done, which may be after
    // the response, if the result is sent on a stream.
    drop(held.split((room as usize).saturating_sub(bytes.len().div_ceil(1024))));
    Ok((parts, bytes, held))
}

/// The token in `Authorization: Bearer TOKEN`.
pub(super) fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The caller's name, if its token and its rate are accepted. `expected`: the message if there is no token.
pub(super) async fn admitted(
    shared: &Shared,
    peer: SocketAddr,
    token: Option<&str>,
    expected: &'static str,
) -> OrRefusal<String> {
    let guard = &shared.guard;
    let owner = guard.owner(token);
    // Also limits how fast tokens can be guessed.
    guard.rate(owner.as_ref().map_or(&peer.ip().to_string(), |it| it))?;
    match owner {
        Ok(owner) => Ok(owner),
        Err(wrong) => {
            shared.metrics.unauthorized();
            Err(match wrong {
                true => guard.wrong_token(peer.ip()).await,
                false => HttpRefusal(StatusCode::UNAUTHORIZED, expected),
            })
        }
    }
}

/// Whether this is the handshake of the older protocol, which opens a session.
fn opens_session(body: &[u8]) -> bool {
    let is_one = |it: serde_json::Value| it["method"] == "initialize";
    body.len() < 64 * 1024 && serde_json::from_slice(body).is_ok_and(is_one)
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
    fn wrong_tokens_are_delayed_longer_and_longer() {
        let failed_tokens = FailedTokens::default();
        let now = Instant::now();
        let guesser: IpAddr = "192.0.2.1".parse().unwrap();
        let delays: Vec<u128> = (0..8).map(|_| failed_tokens.delay(guesser, now).as_millis()).collect();
        assert_eq!(delays, [20, 40, 80, 160, 320, 640, 1_000, 1_000]);
        for _ in 0..1_000 {
            assert_eq!(failed_tokens.delay(guesser, now), LONGEST_DELAY);
        }
        assert_eq!(
            failed_tokens.delay("192.0.2.2".parse().unwrap(), now),
            FIRST_DELAY,
            "others are not slowed"
        );
        assert_eq!(failed_tokens.delay(guesser, now + FORGOTTEN), FIRST_DELAY, "a mistake is forgotten");
        // Another address in the same /64 network counts as the same guesser.
        for (at, delay) in [("2001:db8::1", 20), ("2001:db8::ffff:2", 40), ("2001:db8:0:1::1", 20)] {
            assert_eq!(failed_tokens.delay(at.parse().unwrap(), now).as_millis(), delay, "{at}");
        }
    }

    #[test]
    fn a_crowd_of_guessers_takes_no_more_memory() {
        let failed_tokens = FailedTokens::default();
        let now = Instant::now();
        for number in 0..2 * CALLERS as u32 {
            failed_tokens.delay(IpAddr::V4(number.into()), now);
        }
        assert_eq!(failed_tokens.0.lock().unwrap().len(), CALLERS);
        assert_eq!(failed_tokens.delay("192.0.2.1".parse().unwrap(), now), LONGEST_DELAY);
        assert_eq!(failed_tokens.delay("192.0.2.1".parse().unwrap(), now + FORGOTTEN), FIRST_DELAY);
    }

    #[test]
    fn whose_session_it_is_is_forgotten_with_it() {
        let guard = guard();
        let id = |number: usize| HeaderValue::from_str(&format!("s{number}")).unwrap();
        for number in 0..=2 * MAX_SESSIONS {
            guard.opened(&id(number), "anna", |it| it == "s0");
        }
        assert_eq!(guard.sessions.lock().unwrap().len(), 2);
        let seen = |owner: &str, number: usize| {
            let mut headers = headers(SESSION, &[id(number).to_str().unwrap()]);
            guard.only_own_session(owner, &mut headers);
            headers[SESSION].to_str().unwrap().to_owned()
        };
        assert_eq!(seen("anna", 0), "s0");
        assert_eq!(
            (seen("ben", 0), seen("anna", 1), seen("ben", 1)),
            ("none".into(), "none".into(), "none".into())
        );
    }

    #[test]
    fn limits_the_rate_of_each_caller() {
        let guard = guard();
        let taken = (0..10_000).take_while(|_| guard.rate("anna").is_ok()).count();
        assert!(taken >= BURST as usize && taken < 10_000, "{taken}");
        assert!(guard.rate("ben").is_ok());
    }
}
