//! One request to a provider: streamed, limited in time and size. Dropping the future closes the connection.

use std::error::Error as _;
use std::time::Duration;

use reqwest::{Client, ClientBuilder, Response, StatusCode, Url, header, redirect};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, timeout};

use compaction::summary::failure::{Failure, FailureCause, shown};
use compaction::summary::model::{Endpoint, ModelRequest, PartialReply, Reply};
use compaction::summary::providers::sse;
use history::error::{Error, ErrorKind, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestLimits {
    /// Time to connect.
    pub connect: Duration,
    /// Time without a byte from the provider. Local servers are silent while they process a long prompt.
    pub idle: Duration,
    /// Time for the whole request and response.
    pub total: Duration,
    /// Maximum bytes of a response, including SSE framing.
    pub bytes: usize,
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(60),
            total: Duration::from_secs(180),
            // SSE framing takes about 200 bytes per token; this is far more than any summary needs.
            bytes: 16 << 20,
        }
    }
}

/// Maximum bytes read of an error's body.
const ERROR_BYTES: usize = 64 << 10;

/// Whether a URL points to this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || ip.is_ok_and(|it| it.is_loopback())
}

/// Makes `ring` the crypto provider of rustls; call before the first connection.
pub(crate) fn use_ring() {
    // Fails only if it is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// A client for one server. Redirects are refused, so that nothing is sent elsewhere. `is_here`: the server
/// is on this machine, so no proxy is used.
pub(crate) fn client(is_here: bool) -> ClientBuilder {
    use_ring();
    let client = Client::builder()
        .redirect(redirect::Policy::none())
        .user_agent(concat!("epitome/", env!("CARGO_PKG_VERSION")));
    if is_here { client.no_proxy() } else { client }
}

/// A single-threaded runtime. `doing`: its purpose, for an error.
pub(crate) fn runtime(doing: &str) -> Result<Runtime> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Error::new(ErrorKind::Io, doing).because(error))
}

/// A connection to one provider.
pub struct Http {
    client: Client,
    endpoint: Endpoint,
    limits: RequestLimits,
}

impl Http {
    pub fn new(endpoint: Endpoint, limits: RequestLimits) -> Result<Self> {
        let is_here = Url::parse(&endpoint.base_url).is_ok_and(|it| is_loopback(&it));
        let client = client(is_here).connect_timeout(limits.connect).build().map_err(|error| {
            Error::new(ErrorKind::Provider, "setting up a connection").because(error.without_url())
        })?;
        Ok(Self { client, endpoint, limits })
    }

    /// Sends a request and reads the reply; `seen` gets the number of characters received so far.
    pub async fn send(&self, ask: &ModelRequest, seen: &dyn Fn(usize)) -> Result<Reply, Failure> {
        let until = Instant::now() + self.limits.total;
        self.in_time(async {
            let body = self.endpoint.body(ask);
            let response = self.post(self.endpoint.url(), "text/event-stream", &body).await?;
            self.answer(response, seen, until).await
        })
        .await
    }

    /// Runs a request with the total time limit, and removes the key from its error.
    async fn in_time<T>(&self, request: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        match timeout(self.limits.total, request).await {
            Ok(result) => result.map_err(|it| it.without(self.endpoint.key.as_ref())),
            Err(_) => Err(self.incomplete()),
        }
    }

    /// Has the provider count the tokens of messages.
    pub async fn count(&self, messages: Value) -> Result<u64, Failure> {
        let Some(url) = self.endpoint.count_url() else {
            return Err(Failure::new(FailureCause::NotFound, "this API has no endpoint that counts"));
        };
        self.in_time(async {
            let body = self.endpoint.count_body(messages);
            let mut response = self.post(url, "application/json", &body).await?;
            let mut body = Vec::new();
            while let Some(piece) = response.chunk().await.map_err(broken)? {
                body.extend_from_slice(&piece[..piece.len().min(ERROR_BYTES - body.len())]);
            }
            let value: Value = serde_json::from_slice(&body).unwrap_or_default();
            let tokens = ["/input_tokens", "/totalTokens"].iter().find_map(|it| value.pointer(it)?.as_u64());
            tokens.ok_or_else(|| Failure::new(FailureCause::Garbled, "an answer without a number of tokens"))
        })
        .await
    }

    /// Sends a body; returns the response if its status is 200.
    async fn post(&self, url: String, accept: &'static str, body: &Value) -> Result<Response, Failure> {
        let body = serde_json::to_vec(body)
            .map_err(|error| Failure::new(FailureCause::Request, error.to_string()))?;
        let mut request = self
            .client
            .post(url)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, accept);
        for (name, value) in self.endpoint.headers() {
            let mut value = header::HeaderValue::from_str(&value).map_err(|_| {
                Failure::new(FailureCause::Key, "the key holds characters that no header can carry")
            })?;
            value.set_sensitive(name != "anthropic-version");
            request = request.header(name, value);
        }
        let response = match timeout(self.limits.idle, request.body(body).send()).await {
            Ok(response) => response.map_err(broken)?,
            Err(_) => return Err(self.silent()),
        };
        let status = response.status();
        if status.is_redirection() {
            let to =
                response.headers().get(header::LOCATION).and_then(|it| it.to_str().ok()).unwrap_or_default();
            // Without the query, which may contain anything.
            let to = shown(to.split(['?', '#']).next().unwrap_or_default());
            return Err(Failure {
                status: Some(status.as_u16()),
                ..Failure::new(
                    FailureCause::Redirect,
                    format!("HTTP {}: a redirect to {to:?}, which is not followed", status.as_u16()),
                )
            });
        }
        if status != StatusCode::OK {
            return Err(self.refusal(response).await);
        }
        Ok(response)
    }

    async fn refusal(&self, mut response: Response) -> Failure {
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let mut body = Vec::new();
        // Errors while reading an error's body are ignored.
        while body.len() < ERROR_BYTES
            && let Ok(Ok(Some(piece))) = timeout(self.limits.idle, response.chunk()).await
        {
            body.extend_from_slice(&piece[..piece.len().min(ERROR_BYTES - body.len())]);
        }
        let value = |name: &str| headers.get(name).and_then(|it| it.to_str().ok()).map(str::to_owned);
        Failure::of_status(status, &value, &String::from_utf8_lossy(&body))
    }

    async fn answer(
        &self,
        mut response: Response,
        seen: &dyn Fn(usize),
        until: Instant,
    ) -> Result<Reply, Failure> {
        let kind = response
            .headers()
            .get(header::CONTENT_TYPE)
            .and_then(|it| it.to_str().ok())
            .unwrap_or_default()
            .to_ascii_lowercase();
        let mut streamed = kind.contains("event-stream");
        let mut draft = PartialReply::default();
        let mut reader = sse::SseReader::default();
        let mut body = Vec::new();
        let mut bytes = 0;
        let event = |draft: &mut PartialReply, data: &[u8]| -> Result<(), Failure> {
            read_event(&self.endpoint, draft, data)?;
            seen(draft.reply.text.chars().count());
            Ok(())
        };
        loop {
            let piece = match timeout(self.limits.idle.min(until - Instant::now()), response.chunk()).await {
                Ok(Ok(piece)) => piece,
                // If the reply is complete, it does not matter how the connection ends.
                _ if draft.finished => None,
                Ok(Err(error)) => return Err(cut(&draft, &broken(error).found)),
                Err(_) if Instant::now() >= until => return Err(self.incomplete()),
                Err(_) => return Err(self.silent()),
            };
            let Some(piece) = piece else { break };
            bytes += piece.len();
            if bytes > self.limits.bytes || reader.waiting() > self.limits.bytes / 4 {
                return Err(Failure::new(
                    FailureCause::TooMuch,
                    format!("an answer of more than {} MB", self.limits.bytes >> 20),
                ));
            }
            if !streamed && body.is_empty() {
                let first = piece.iter().find(|it| !it.is_ascii_whitespace()).copied();
                match first {
                    Some(b'{' | b'[') => {}
                    Some(b'd' | b'e' | b':' | b'i') if !kind.contains("html") => streamed = true,
                    Some(_) => {
                        let page = Failure::of_status(200, &|_| None, &String::from_utf8_lossy(&piece));
                        return Err(Failure::new(FailureCause::Garbled, page.found));
                    }
                    None => continue,
                }
            }
            if streamed {
                reader.feed(&piece, &mut |data| event(&mut draft, data))?;
            } else {
                body.extend_from_slice(&piece);
            }
        }
        if streamed {
            reader.end(&mut |data| event(&mut draft, data))?;
        } else if !body.is_empty() {
            read_whole(&self.endpoint, &mut draft, &body)?;
        }
        if !draft.finished {
            return Err(cut(&draft, "the stream ended early"));
        }
        Ok(draft.reply)
    }

    fn incomplete(&self) -> Failure {
        Failure::new(FailureCause::Slow, format!("no complete answer within {}", seconds(self.limits.total)))
    }

    fn silent(&self) -> Failure {
        Failure::new(FailureCause::Slow, format!("nothing was received for {}", seconds(self.limits.idle)))
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

fn cut(draft: &PartialReply, how: &str) -> Failure {
    Failure::new(
        FailureCause::Garbled,
        format!("an answer that is cut off after {} characters: {how}", draft.reply.text.chars().count()),
    )
}

/// A connection error. The URL is left out: it may contain a password.
fn broken(error: reqwest::Error) -> Failure {
    let error = error.without_url();
    let mut words = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(it) = cause {
        let text = it.to_string();
        if words.last() != Some(&text) {
            words.push(text);
        }
        cause = it.source();
    }
    let all = shown(&words.join(": "));
    let lower = all.to_lowercase();
    let tls = ["certificate", "tls", "handshake", "corrupt message", "invalidcontenttype"]
        .iter()
        .any(|it| lower.contains(it));
    let cause = match () {
        () if error.is_builder() => FailureCause::Request,
        () if error.is_timeout() => FailureCause::Network,
        () if tls => FailureCause::Tls,
        () => FailureCause::Network,
    };
    Failure::new(cause, all)
}

fn read_event(endpoint: &Endpoint, draft: &mut PartialReply, data: &[u8]) -> Result<(), Failure> {
    if data == b"[DONE]" {
        draft.finished = true;
        return Ok(());
    }
    let value: Value = serde_json::from_slice(data).map_err(|_| {
        let start = String::from_utf8_lossy(&data[..data.len().min(80)]);
        Failure::new(FailureCause::Garbled, format!("an event that is not JSON: {:?}", shown(&start)))
    })?;
    endpoint.event(draft, &value)
}

/// Reads a body that is not streamed: one reply, or an array of all chunks.
fn read_whole(endpoint: &Endpoint, draft: &mut PartialReply, body: &[u8]) -> Result<(), Failure> {
    match serde_json::from_slice(body) {
        Ok(Value::Array(all)) => all.iter().try_for_each(|it| endpoint.event(draft, it)),
        Ok(one) => endpoint.event(draft, &one),
        Err(_) => Err(cut(draft, "the JSON is cut off")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_reached_without_a_proxy() {
        let local = |url: &str| is_loopback(&Url::parse(url).unwrap());
        for url in
            ["http://localhost:11434/v1", "http://127.1.2.3", "http://[::1]:8080/", "https://u:p@localhost"]
        {
            assert!(local(url), "{url}");
        }
        for url in
            ["http://localhost.evil.example", "http://127.evil.example", "https://api.example/localhost"]
        {
            assert!(!local(url), "{url}");
        }
    }
}
