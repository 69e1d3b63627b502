//! Whether an API would accept an array of messages, judged on the bytes alone.
//!
//! It shares no code with readers and writers, and never sees a history, so that it does not repeat their
//! mistakes. Each rule has a name, a source and a test that breaks it. An array may end with unanswered
//! calls: the caller is about to answer them.

mod anthropic;
mod gemini;
mod openai_chat;
mod openai_responses;

use serde_json::Value;

use super::format::Api;
use super::{Format, Violation};
use crate::media::is_base64;
use history::json;

/// The violations of the rules of `api` in a JSON array of messages, bare or in an object as `messages`,
/// `input`, `contents` or `history`, in the order of the messages. If there are none, the API accepts it.
///
/// For a session format, the rules of its agent's API are checked.
pub fn check(api: Format, bytes: &[u8]) -> Vec<Violation> {
    let judge = match api.0.api {
        Api::Anthropic => anthropic::check,
        Api::OpenAiResponses => openai_responses::check,
        Api::Gemini => gemini::check,
        Api::OpenAiChat => openai_chat::check,
    };
    let mut found = Violations::default();
    let text = json::mend(bytes);
    match serde_json::from_str::<Value>(json::without_byte_order_mark(&text)) {
        Err(error) => found.add("json", 0, format!("expected JSON, found {error}")),
        Ok(Value::Array(elements)) => judge(&elements, None, &mut found),
        Ok(Value::Object(body)) => {
            let keys = ["messages", "input", "contents", "history"];
            match keys.into_iter().find_map(|it| body.get(it)?.as_array()) {
                Some(elements) => judge(elements, Some(&body), &mut found),
                None => {
                    found.add("json", 0, "expected an array of messages in the object, found none");
                }
            }
        }
        Ok(_) => found.add("json", 0, "expected an array of messages, found a plain value"),
    }
    found.0.sort_by_key(|it| it.message);
    found.0
}

#[derive(Default)]
struct Violations(Vec<Violation>);

impl Violations {
    fn add(&mut self, rule: &'static str, message: usize, what: impl Into<String>) {
        self.0.push(Violation { rule, message, what: what.into() });
    }

    fn unless(&mut self, holds: bool, rule: &'static str, message: usize, what: impl FnOnce() -> String) {
        if !holds {
            self.add(rule, message, what());
        }
    }
}

/// A text, cut and quoted for a sentence.
fn short(text: &str) -> String {
    let shown: String = text.chars().take(60).collect();
    format!("{shown:?}")
}

/// Whether a text is a JSON object.
fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// Whether a text is a URL, or a data URL with whole base64 data.
fn is_address(text: &str) -> bool {
    match text.strip_prefix("data:") {
        Some(it) => {
            it.split_once(";base64,").is_some_and(|(mime, data)| mime.contains('/') && is_base64(data))
        }
        None => text.starts_with("https://") || text.starts_with("http://") || text.starts_with("gs://"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For each rule, a document that breaks it, and a similar one that does not.
    pub(super) fn judge(api: Format, cases: &[(&str, String, String)]) {
        for (rule, bad, good) in cases {
            let found = check(api, bad.as_bytes());
            assert!(found.iter().any(|it| it.rule == *rule), "{rule} not found in {bad}: {found:?}");
            assert!(found.iter().all(|it| it.what.starts_with("expected ")), "{found:?}");
            assert_eq!(check(api, good.as_bytes()), [], "{rule}: {good}");
        }
    }

    #[test]
    fn bad_input_is_a_violation_and_not_a_crash() {
        let bomb = "[".repeat(100_000);
        for api in Format::ALL {
            for text in ["", "x", "3", "[", "{}", "[3]", "[[]]", "[null]", bomb.as_str()] {
                assert!(!check(api, text.as_bytes()).is_empty(), "{api:?}: {text:.20}");
            }
            assert_eq!(check(api, b"\xEF\xBB\xBF[]"), []);
        }
    }
}
