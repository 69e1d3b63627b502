//! What can go wrong between us and a model, classified by the remedy. Pure.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::model::{Endpoint, Key, text};
use crate::facts::flat;
use crate::facts::text::ascii_first::AsciiFirstRegex;
use history::secrets;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureCause {
    /// The input is too long; a smaller one may pass.
    Overflow {
        /// Tokens that were sent, where the provider says so.
        sent: Option<u64>,
        /// Tokens that may be sent, where it says so.
        limit: Option<u64>,
    },
    /// The key is missing or wrong.
    Key,
    /// The key may not do this, or the account has no credit.
    Forbidden,
    /// There is no such model or address.
    NotFound,
    /// The request is wrong, whatever its size.
    Request,
    /// The provider wants us to wait.
    Busy,
    Server,
    /// No connection, or it broke.
    Network,
    /// The certificate or handshake was not accepted.
    Tls,
    /// The provider redirects; a history is not sent to another address.
    Redirect,
    /// What came is not what the API promises: HTML, garbage, a stream cut in the middle.
    Garbled,
    /// More came than any summary needs.
    TooMuch,
    /// Nothing came for too long, or all of it took too long.
    Slow,
}

/// A request without a usable reply. Its sentence never holds a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub cause: FailureCause,
    /// The HTTP status, if there was a response.
    pub status: Option<u16>,
    /// What was found, in a few words.
    pub found: String,
    /// How long the provider wants us to wait, in milliseconds.
    pub wait_ms: Option<u64>,
}

/// Maximum characters of a provider's message that are shown.
const SHOWN: usize = 300;

impl Failure {
    /// A failure without an HTTP status.
    pub fn new(cause: FailureCause, found: impl Into<String>) -> Self {
        Self { cause, status: None, found: found.into(), wait_ms: None }
    }

    /// The meaning of a response with an error status. `headers` gives a header's value.
    pub fn of_status(status: u16, headers: &dyn Fn(&str) -> Option<String>, body: &str) -> Self {
        let parsed: Option<Value> = serde_json::from_str(body).ok();
        let said = parsed.as_ref().map_or_else(|| plain(body), error_message);
        let kind = parsed.as_ref().map(kind).unwrap_or_default();
        let cause = cause(status, &kind, &said);
        let found = if said.is_empty() {
            format!("HTTP {status}")
        } else {
            format!("HTTP {status}: {}", shown(&said))
        };
        Self { cause, status: Some(status), found, wait_ms: wait(headers, parsed.as_ref()) }
    }

    /// An error in a stream's event, or in a body with status 200 as some local servers send it.
    pub fn in_event(event: &Value) -> Option<Self> {
        let event = event.get(0).unwrap_or(event);
        // `response.failed` and `response.incomplete` have the error in the response; `error: null` is none.
        let of_response = event.pointer("/response/error").is_some_and(|it| !it.is_null());
        let wrong = of_response
            || event.get("error").is_some_and(|it| !it.is_null())
            || event["type"] == "error"
            || event["object"] == "error";
        if !wrong {
            return None;
        }
        let event = if of_response { &event["response"] } else { event };
        let (said, kind) = (error_message(event), kind(event));
        let status = event.pointer("/error/code").or_else(|| event.get("code")).and_then(Value::as_u64);
        let status = status.and_then(|it| u16::try_from(it).ok()).unwrap_or(match kind.as_str() {
            kind if kind.contains("overloaded") => 529,
            kind if kind.contains("rate_limit") => 429,
            kind if kind.contains("invalid") => 400,
            kind if kind.contains("authentication") => 401,
            _ => 500,
        });
        let found = format!("an error in the stream: {}", shown(if said.is_empty() { &kind } else { &said }));
        Some(Self { cause: cause(status, &kind, &said), status: None, found, wait_ms: None })
    }

    /// Whether the same request may succeed later.
    pub fn passes(&self) -> bool {
        match self.cause {
            FailureCause::Busy
            | FailureCause::Server
            | FailureCause::Network
            | FailureCause::Garbled
            | FailureCause::Slow => true,
            FailureCause::Overflow { .. }
            | FailureCause::Key
            | FailureCause::Forbidden
            | FailureCause::NotFound
            | FailureCause::Request
            | FailureCause::Tls
            | FailureCause::Redirect
            | FailureCause::TooMuch => false,
        }
    }

    /// Which provider was asked, what was found, and what to do about it.
    pub fn sentence(&self, endpoint: &Endpoint) -> String {
        let host = endpoint.host();
        let todo = match self.cause {
            FailureCause::Overflow { .. } => {
                "the model's window is too small even for one piece; name a model with a larger one"
                    .to_owned()
            }
            FailureCause::Key if endpoint.key.is_none() => format!("set {}", endpoint.key_variable),
            FailureCause::Key => format!("check the key in {}", endpoint.key_variable),
            FailureCause::Forbidden => {
                format!("check what the key in {} may do, and the account's credit", endpoint.key_variable)
            }
            FailureCause::NotFound => {
                format!("check that the model {:?} and the address exist", endpoint.model)
            }
            FailureCause::Request => "check the model's name and settings".to_owned(),
            FailureCause::Busy => "try again later, or name another provider".to_owned(),
            FailureCause::Server => "try again later".to_owned(),
            FailureCause::Network => "check the network and the base URL".to_owned(),
            FailureCause::Tls => "check the certificate and the base URL".to_owned(),
            FailureCause::Redirect => "set the base URL to the final address".to_owned(),
            FailureCause::Garbled => {
                "check that the base URL is an API of that kind and not a page or a proxy".to_owned()
            }
            FailureCause::TooMuch => "name another model".to_owned(),
            FailureCause::Slow => {
                "raise summarizer.idle-seconds or total-seconds, or name a faster model".to_owned()
            }
        };
        format!("asking {} at {host}: {}; {todo}", endpoint.label(), self.found)
    }

    /// Removes the key, which a provider may repeat when it refuses it.
    #[must_use]
    pub fn without(self, key: Option<&Key>) -> Self {
        match key {
            Some(key) if !key.expose().is_empty() => {
                Self { found: self.found.replace(key.expose(), "[key]"), ..self }
            }
            Some(_) | None => self,
        }
    }
}

/// Messages that say that the input is too long (OpenCode 1.18's list, and llama.cpp's and LM Studio's).
static OVERFLOW: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)prompt is too long|request_too_large|input is too long for requested model|exceeds? the (?:model'?s )?context window",
    r"|exceeds (?:the )?(?:model'?s )?maximum context length|input token count.{0,60}exceeds the maximum",
    r"|tokens in request more than max tokens allowed|maximum prompt length is \d+|reduce the length of the (?:messages|prompt|input)",
    r"|maximum context length is \d+|exceeds maximum allowed input length|longer than the model'?s context length",
    r"|exceeds the limit of \d+|exceeds? the available context size|greater than the context length|context window exceeds limit",
    r"|exceeded model token limit|context_length_exceeded|request entity too large|context length is only \d+",
    r"|input length exceeds (?:the )?context length|prompt too long|too large for model with \d+ maximum context length",
    r"|configured context size is \d+|model_context_window_exceeded|too many tokens|token limit exceeded|exceed_context_size",
    r"|exceed context limit|context size has been exceeded|context length of only \d+|context the overflows|string too long",
));
/// Messages that look like an overflow and are none.
static BUSY: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)throttl|service unavailable|rate.?limit|too many requests|per (?:minute|day|hour)|overloaded|tokens_per_min",
);
/// Messages about the key, whatever the status.
static KEY: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)api.?key (?:not valid|invalid|expired|not found)|invalid.{0,12}api.?key|incorrect api key|API_KEY_INVALID|x-api-key",
);
static CREDIT: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?i)insufficient_quota|credit balance|billing|exceeded your current quota");
/// Sizes as in `213462 tokens > 200000 maximum`, `(1050001) exceeds the maximum number of tokens allowed
/// (1048576)`, `maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens`.
static SENT_FIRST: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)(\d{3,})\)? ?(?:tokens?)?\)? ?(?:>|exceeds?[^0-9]{0,60}|\+ \d+ >) ?\(?(\d{3,})",
);
static LIMIT_FIRST: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)(?:limit of|maximum(?: context| prompt)? length (?:is|of)|context size is|context length (?:is|of) only) (\d{3,})(?:[^0-9]{0,80}(\d{3,}))?",
);

fn cause(status: u16, kind: &str, said: &str) -> FailureCause {
    let all = format!("{kind} {said}");
    let large = OVERFLOW.is_match(&all) && !BUSY.is_match(&all);
    // A bare 413 means it too (OpenCode 1.18).
    if (large && matches!(status, 200 | 400 | 413 | 422 | 500)) || status == 413 {
        let (sent, limit) = sizes(said);
        return FailureCause::Overflow { sent, limit };
    }
    match status {
        _ if KEY.is_match(&all) && matches!(status, 400..=403) => FailureCause::Key,
        _ if CREDIT.is_match(&all) => FailureCause::Forbidden,
        401 => FailureCause::Key,
        402 | 403 => FailureCause::Forbidden,
        404 | 410 => FailureCause::NotFound,
        400 if all.contains("model_not_found") || all.contains("does not exist") => FailureCause::NotFound,
        300..400 => FailureCause::Redirect,
        408 | 409 | 425 | 429 | 503 | 529 => FailureCause::Busy,
        400..500 => FailureCause::Request,
        _ => FailureCause::Server,
    }
}

fn sizes(said: &str) -> (Option<u64>, Option<u64>) {
    let plain = said.replace(',', "");
    let number = |found: &regex::Captures<'_>, group| {
        found.get(group).and_then(|it: regex::Match<'_>| it.as_str().parse().ok())
    };
    if let Some(found) = SENT_FIRST.captures(&plain) {
        return (number(&found, 1), number(&found, 2));
    }
    if let Some(found) = LIMIT_FIRST.captures(&plain) {
        return (number(&found, 2), number(&found, 1));
    }
    (None, None)
}

/// The error's message, wherever providers and local servers put it.
fn error_message(body: &Value) -> String {
    let body = body.get(0).unwrap_or(body);
    let places = ["/error/message", "/message", "/detail", "/error"];
    let found = places.iter().find_map(|it| text(body, it));
    found.map_or_else(|| body.get("detail").map(Value::to_string).unwrap_or_default(), str::to_owned)
}

/// The error's type, code and status name, joined.
fn kind(body: &Value) -> String {
    let body = body.get(0).unwrap_or(body);
    let places = ["/error/type", "/error/code", "/error/status", "/code", "/error/details/0/reason"];
    places.iter().filter_map(|it| text(body, it)).collect::<Vec<_>>().join(" ")
}

/// What to say of a body that is not JSON: its title or its text.
fn plain(body: &str) -> String {
    let lower = body.to_ascii_lowercase();
    if let Some((from, to)) = lower
        .find("<title>")
        .and_then(|from| Some((from + 7, from + 7 + lower[from + 7..].find("</title>")?)))
    {
        return format!("a page of HTML titled {:?}", body[from..to].trim());
    }
    if lower.trim_start().starts_with('<') { "a page of HTML".to_owned() } else { body.trim().to_owned() }
}

/// A provider's message as we show it: one line, shortened, secrets masked.
pub fn shown(said: &str) -> String {
    let cut: String = flat(said).chars().take(SHOWN).collect();
    secrets::mask(&cut).into_owned()
}

/// How long to wait: `retry-after-ms`, `retry-after` in seconds or as a date beside `date`, or Gemini's `RetryInfo`.
fn wait(headers: &dyn Fn(&str) -> Option<String>, body: Option<&Value>) -> Option<u64> {
    if let Some(ms) = headers("retry-after-ms").and_then(|it| it.trim().parse::<f64>().ok()) {
        return Some(ms.max(0.0) as u64);
    }
    if let Some(text) = headers("retry-after") {
        if let Ok(seconds) = text.trim().parse::<f64>() {
            return Some((seconds.max(0.0) * 1000.0) as u64);
        }
        let date = |text: &str| {
            jiff::fmt::rfc2822::parse(text.trim()).ok().map(|it| it.timestamp().as_millisecond())
        };
        let (until, now) = (date(&text)?, headers("date").as_deref().and_then(date)?);
        return u64::try_from((until - now).max(0)).ok();
    }
    let body = body?;
    let details = body.get(0).unwrap_or(body).pointer("/error/details")?.as_array()?;
    let delay = details.iter().find_map(|it| it["retryDelay"].as_str())?;
    delay.strip_suffix('s')?.parse::<f64>().ok().map(|it| (it.max(0.0) * 1000.0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, body: &str) -> Failure {
        Failure::of_status(status, &|_| None, body)
    }

    #[test]
    fn every_providers_overflow_is_known() {
        let cases: [(u16, &str, Option<u64>, Option<u64>); 9] = [
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 213462 tokens > 200000 maximum"}}"#,
                Some(213_462),
                Some(200_000),
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 198000 + 8000 > 200000, decrease input length"}}"#,
                Some(198_000),
                Some(200_000),
            ),
            (
                413,
                r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
                None,
                None,
            ),
            (
                400,
                r#"{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}"#,
                None,
                None,
            ),
            (
                400,
                r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9021 tokens. Please reduce the length of the messages.","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
                Some(9_021),
                Some(8_192),
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"The input token count (1203961) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
                Some(1_203_961),
                Some(1_048_576),
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":1407,"n_ctx":256}}"#,
                None,
                None,
            ),
            (
                400,
                r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the messages, 1000 in the completion). Please reduce the length of the messages or completion.","type":"BadRequestError","code":400}"#,
                Some(5_000),
                Some(4_096),
            ),
            (
                500,
                r#"{"error":"Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with context length of only 32768 tokens, which is not enough"}"#,
                None,
                Some(32_768),
            ),
        ];
        for (status, body, sent, limit) in cases {
            assert_eq!(of(status, body).cause, FailureCause::Overflow { sent, limit }, "{body}");
        }
    }

    #[test]
    fn what_only_sounds_like_it_is_not() {
        let limited = r#"{"error":{"message":"Rate limit reached for gpt-x on tokens per min (TPM): Limit 30000, too many tokens. Please try again in 6ms.","type":"tokens","code":"rate_limit_exceeded"}}"#;
        assert_eq!(of(429, limited).cause, FailureCause::Busy);
        assert_eq!(of(503, "Service Unavailable").cause, FailureCause::Busy);
        assert_eq!(
            of(529, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#).cause,
            FailureCause::Busy
        );
        assert_eq!(
            of(429, r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#)
                .cause,
            FailureCause::Forbidden
        );
        assert_eq!(of(400, r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}"#).cause, FailureCause::Key);
        assert_eq!(
            of(500, "<html><head><title>Bad gateway</title>").found,
            "HTTP 500: a page of HTML titled \"Bad gateway\""
        );
    }

    #[test]
    fn waits_as_long_as_told() {
        let after = |name: &'static str, value: &'static str| {
            move |asked: &str| match asked {
                "date" => Some("Wed, 21 Oct 2026 07:28:00 GMT".to_owned()),
                _ => (asked == name).then(|| value.to_owned()),
            }
        };
        let wait = |name, value| Failure::of_status(429, &after(name, value), "").wait_ms;
        assert_eq!(wait("retry-after", "3"), Some(3_000));
        assert_eq!(wait("retry-after", "1.5"), Some(1_500));
        assert_eq!(wait("retry-after-ms", "250"), Some(250));
        assert_eq!(wait("retry-after", "Wed, 21 Oct 2026 07:28:05 GMT"), Some(5_000));
        assert_eq!(wait("retry-after", "soon"), None);
        let gemini = r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"@type":"x/QuotaFailure"},{"@type":"x/RetryInfo","retryDelay":"17s"}]}}"#;
        assert_eq!(of(429, gemini).wait_ms, Some(17_000));
    }
}
