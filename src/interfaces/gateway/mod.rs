//! The gateway: a base URL between an agent and its provider. Requests pass through unchanged, except that
//! compaction requests are answered here, and capsules of ours are replaced by the summaries in them.
//!
//! ```text
//!  request ─▶ recognize ─┬─ no compaction ──────────────▶ proxy ─▶ provider
//!                        ├─ a capsule of ours: opened ──▶ proxy
//!                        └─ a compaction ─▶ engine ─┬─▶ answer
//!                                                   └─ failed, late ─▶ proxy: the agent compacts by itself
//! ```
//!
//! **Invariants.** Only our capsules are changed in a request, and no request is sent twice. Nothing of a
//! request is kept except the archived conversation of a compaction. A capsule is opened only for its owner.
//! Memory is bounded for any input.

mod answer;
mod body;
pub mod capsule;
mod proxy;
pub mod recognize;
pub mod rollouts;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, HeaderValue, UPGRADE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Request, Response, StatusCode};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::engine::{self, Engine, ItemsAsk, SeatEntry, seat_log};
use answer::CompactedReply;
use body::{BodyBudget, Coding, Gathered};
use capsule::CapsuleKey;
use history::error::{Error, ErrorKind, Result};
use history::verbatim::Prompts;
use proxy::Upstream;
use recognize::{ApiRoute, AskedBy};
use sessions::Format;

/// Maximum time for a compaction; after that the agent compacts by itself.
const LIMIT: Duration = Duration::from_secs(15);
/// Maximum time for the provider to refuse a websocket.
const UPGRADE_LIMIT: Duration = Duration::from_secs(2);
/// Maximum concurrent compactions, and maximum bodies parsed at the same time.
const AT_ONCE: usize = 4;
/// The client's name in the seat log for requests to `…/compact`.
const NAME: &str = "gateway";

/// Makes an engine for an owner's calls.
pub type Engines = Arc<dyn Fn(&str) -> Result<Engine> + Send + Sync>;

#[derive(Debug, Clone)]
pub struct GatewayCaller {
    /// The owner of the archive and capsules.
    pub owner: String,
    /// Whether the caller is this machine's user, who owns the sessions stored here.
    pub local: bool,
    /// Whether `Authorization` contains a token of ours, which no provider may see.
    pub own_token: bool,
}

/// Answers or forwards requests to a provider's paths.
pub struct Gateway {
    upstream: Option<Upstream>,
    key: Option<CapsuleKey>,
    engines: Engines,
    /// The folder of the seat log.
    folder: PathBuf,
    room: BodyBudget,
    compacting: Arc<Semaphore>,
    reading: Arc<Semaphore>,
}

/// What inspecting a body found.
struct Inspected {
    /// The body with our capsules replaced by summaries, if there are any.
    expanded: Option<String>,
    ask: Option<CompactionAsk>,
}

struct CompactionAsk {
    asked: AskedBy,
    stream: bool,
    model: Option<String>,
    conversation: Vec<u8>,
}

impl Gateway {
    /// Without an upstream, only paths that end in `/compact` are answered.
    pub fn new(upstream: Option<&str>, folder: PathBuf, engines: Engines) -> Result<Self> {
        let upstream = upstream.map(Upstream::new).transpose()?;
        // Without an upstream no capsules are created, so none can come back.
        let key = upstream.as_ref().map(|_| CapsuleKey::open(&folder)).transpose()?;
        Ok(Self {
            upstream,
            key,
            engines,
            folder,
            room: BodyBudget::default(),
            compacting: Arc::new(Semaphore::new(AT_ONCE)),
            reading: Arc::new(Semaphore::new(AT_ONCE)),
        })
    }

    /// The host to which requests are forwarded.
    pub fn host(&self) -> Option<&str> {
        self.upstream.as_ref().map(Upstream::host)
    }

    pub async fn handle(self: Arc<Self>, caller: GatewayCaller, request: Request<Body>) -> Response<Body> {
        if request.headers().contains_key(UPGRADE) {
            return self.without_upgrade(&caller, request).await;
        }
        let endpoint = ApiRoute::at(request.uri().path()).filter(|_| request.method() == Method::POST);
        let (Some(endpoint), Some(coding)) = (endpoint, Coding::of(request.headers())) else {
            return self.pass(&caller, request).await;
        };
        let (parts, body) = request.into_parts();
        let (bytes, _held) = match self.room.gather(&parts.headers, body).await {
            Gathered::Whole(bytes, held) => (bytes, held),
            Gathered::Streamed(body) => return self.pass(&caller, Request::from_parts(parts, body)).await,
        };
        let seen = match self.inspect_body(&caller, endpoint, coding, &bytes).await {
            Ok(seen) => seen,
            Err(error) => return refusal(&error),
        };
        let Some(Inspected { expanded, ask }) = seen else {
            return self.pass(&caller, Request::from_parts(parts, Body::from(bytes))).await;
        };
        if let Some(ask) = ask {
            match self.compact(&caller, &parts.headers, ask).await {
                Ok(response) => return response,
                Err(error) if self.upstream.is_none() => return refusal(&error),
                Err(_) => {}
            }
        }
        self.pass(&caller, with_body(parts, bytes, expanded)).await
    }

    /// Refuses a websocket, so that the client switches to HTTP at once (Codex 0.169; after a 404 it retries
    /// for seven seconds). The provider gets the request without the `Connection` header that asks for the
    /// upgrade; if it refuses, its own response is returned.
    async fn without_upgrade(&self, caller: &GatewayCaller, request: Request<Body>) -> Response<Body> {
        if self.upstream.is_some()
            && let Ok(answer) = timeout(UPGRADE_LIMIT, self.pass(caller, request)).await
            && answer.status() == StatusCode::UPGRADE_REQUIRED
        {
            return answer;
        }
        let mut refused =
            answer::error(StatusCode::UPGRADE_REQUIRED, "upgrade_refused", "this server supports only HTTP");
        refused.headers_mut().insert(UPGRADE, HeaderValue::from_static("HTTP/1.1"));
        refused
    }

    async fn pass(&self, caller: &GatewayCaller, request: Request<Body>) -> Response<Body> {
        let Some(upstream) = &self.upstream else {
            return answer::error(
                StatusCode::NOT_FOUND,
                "not_found",
                "nothing is served at this path without --upstream",
            );
        };
        if caller.own_token {
            let what = "this request would be forwarded with an Epitome token in Authorization; send that token as \
                        X-Epitome-Token, and the provider's in Authorization";
            return answer::error(StatusCode::FORBIDDEN, "invalid_request_error", what);
        }
        upstream.pass(request).await
    }

    /// Inspects a body. `None`: nothing in it concerns us.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] for a capsule with our prefix that does not belong to the caller.
    async fn inspect_body(
        self: &Arc<Self>,
        caller: &GatewayCaller,
        endpoint: ApiRoute,
        coding: Coding,
        bytes: &Bytes,
    ) -> Result<Option<Inspected>> {
        let plain = coding == Coding::Plain;
        if plain && endpoint == ApiRoute::Responses && !recognize::may_concern_us(bytes) {
            return Ok(None);
        }
        let Ok(permit) = self.reading.clone().acquire_owned().await else { return Ok(None) };
        let (it, bytes, owner) = (self.clone(), bytes.clone(), caller.owner.clone());
        let seen = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            it.inspect(&owner, endpoint, coding, &bytes)
        });
        seen.await.unwrap_or_else(|error| {
            tracing::error!("reading a request: {error}; forwarded unchanged");
            Ok(None)
        })
    }

    fn inspect(
        &self,
        owner: &str,
        endpoint: ApiRoute,
        coding: Coding,
        bytes: &[u8],
    ) -> Result<Option<Inspected>> {
        let Some(text) = coding.text(bytes) else { return Ok(None) };
        if endpoint == ApiRoute::Responses && !recognize::may_concern_us(text.as_bytes()) {
            return Ok(None);
        }
        let Some(request) = recognize::RecognizedRequest::read(&text, endpoint) else { return Ok(None) };
        let expanded = match &self.key {
            Some(key) => request.expanded(&text, &|it| key.open_capsule(owner, it))?,
            None => None,
        };
        let request = match &expanded {
            Some(text) => recognize::RecognizedRequest::read(text, endpoint),
            None => Some(request),
        };
        let ask = request.and_then(|it| {
            let conversation = it.conversation(expanded.as_deref().unwrap_or(&text));
            Some(CompactionAsk { asked: it.asked?, stream: it.stream, model: it.model, conversation })
        });
        Ok(Some(Inspected { expanded, ask }))
    }

    /// Compacts and logs the result. After an error the request is forwarded, so that the agent's own
    /// compaction runs.
    async fn compact(
        self: &Arc<Self>,
        caller: &GatewayCaller,
        headers: &HeaderMap,
        ask: CompactionAsk,
    ) -> Result<Response<Body>> {
        let begun = Instant::now();
        let (asked, stream) = (ask.asked, ask.stream);
        let thread = if caller.local { thread(headers) } else { None };
        let (it, owner, of_thread) = (self.clone(), caller.owner.clone(), thread.clone());
        let work = move || it.compact_blocking(&owner, of_thread, ask);
        let done = within(LIMIT, self.compacting.clone(), work).await;
        let client = match asked {
            AskedBy::Prompt | AskedBy::Trigger => crate::agents::gateway::AGENT.name(),
            AskedBy::Compact(_) => NAME,
        };
        let now = jiff::Timestamp::now().as_millisecond();
        let entry = SeatEntry { session: thread, ..SeatEntry::new(client, now, begun) };
        match done {
            Ok(made) => {
                let (tokens, handle) = (Some(made.done.tokens), made.done.handle.clone());
                seat_log::append(&self.folder, &SeatEntry { tokens, handle, ..entry });
                Ok(answer::response(asked, stream, &made))
            }
            Err(error) => {
                tracing::warn!("a compaction is left to the agent: {}", error.full());
                seat_log::append(&self.folder, &SeatEntry { failed: Some(error.full()), ..entry });
                Err(error)
            }
        }
    }

    fn compact_blocking(
        &self,
        owner: &str,
        thread: Option<String>,
        ask: CompactionAsk,
    ) -> Result<CompactedReply> {
        let engine = (self.engines)(owner)?;
        let (prompts, format) = match ask.asked {
            AskedBy::Prompt | AskedBy::Trigger => (Prompts::Kept, Format::OPENAI_RESPONSES),
            AskedBy::Compact(format) => (Prompts::Dropped, format),
        };
        let at = engine.now / 1000;
        let items = ItemsAsk { items: ask.conversation, format, thread, model: ask.model.clone(), prompts };
        let done = engine::seat_items(&engine, items)?;
        let capsule = match (ask.asked, &self.key) {
            (AskedBy::Trigger, Some(key)) => Some(key.seal(owner, &done.text)?),
            (AskedBy::Trigger, None) => return Err(Error::new(ErrorKind::Bug, "a gateway without a key")),
            (AskedBy::Prompt | AskedBy::Compact(_), _) => None,
        };
        Ok(CompactedReply { done, capsule, at, model: ask.model })
    }
}

/// Runs `work` on a blocking thread as soon as a permit is free, and returns an error after `limit`. The work
/// itself then continues and keeps its permit until it ends.
async fn within<T: Send + 'static>(
    limit: Duration,
    places: Arc<Semaphore>,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let done = async {
        let place =
            places.acquire_owned().await.map_err(|_| Error::new(ErrorKind::Bug, "the gateway ends"))?;
        let done = tokio::task::spawn_blocking(move || {
            let _place = place;
            work()
        });
        done.await.unwrap_or_else(|_| Err(Error::new(ErrorKind::Bug, "the compaction panicked")))
    };
    let late = || Error::new(ErrorKind::Bug, format!("no compaction within {} s", limit.as_secs()));
    timeout(limit, done).await.unwrap_or_else(|_| Err(late()))
}

/// The request unchanged, or with its body replaced.
fn with_body(mut parts: Parts, bytes: Bytes, expanded: Option<String>) -> Request<Body> {
    let Some(text) = expanded else { return Request::from_parts(parts, Body::from(bytes)) };
    parts.headers.remove(CONTENT_ENCODING);
    parts.headers.remove(CONTENT_LENGTH);
    Request::from_parts(parts, Body::from(text))
}

/// The session id in the headers of a Codex request (0.169; older versions use other names).
fn thread(headers: &HeaderMap) -> Option<String> {
    let names = ["thread-id", "session-id", "session_id", "conversation_id"];
    let found = names.iter().find_map(|it| headers.get(*it))?.to_str().ok()?;
    let plain = found.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-');
    (plain && !found.is_empty()).then(|| found.to_owned())
}

fn refusal(error: &Error) -> Response<Body> {
    let status = match error.kind() {
        ErrorKind::Refused | ErrorKind::Input | ErrorKind::Arguments => StatusCode::BAD_REQUEST,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    answer::error(status, "invalid_request_error", error.detail())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[tokio::test]
    async fn late_and_broken_work_is_given_up() {
        let places = Arc::new(Semaphore::new(1));
        assert_eq!(within(LIMIT, places.clone(), || Ok(7)).await.unwrap(), 7);
        let broken = within(LIMIT, places.clone(), || -> Result<u8> { panic!("broken") }).await;
        assert!(broken.unwrap_err().full().contains("panicked"));
        let (end, wait) = channel::<()>();
        let hangs = move || {
            let _ = wait.recv();
            Ok(())
        };
        let late = within(Duration::from_millis(1), places.clone(), hangs).await;
        assert!(late.unwrap_err().full().contains("within"));
        assert_eq!(places.available_permits(), 0, "what hangs keeps its place");
        assert!(within(Duration::from_millis(1), places.clone(), || Ok(())).await.is_err());
        drop(end);
        assert_eq!(within(LIMIT, places, || Ok(8)).await.unwrap(), 8);
    }

    #[test]
    fn a_thread_has_a_plain_name() {
        let of = |name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            thread(&headers)
        };
        assert_eq!(of("thread-id", "01a1f83d-508c").as_deref(), Some("01a1f83d-508c"));
        assert_eq!(of("session_id", "a").as_deref(), Some("a"));
        assert_eq!(of("thread-id", "../../x"), None);
        assert_eq!(of("x-thread", "a"), None);
    }
}
