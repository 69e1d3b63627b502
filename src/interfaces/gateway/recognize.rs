//! Recognizes compaction requests to the Responses API by the last item of the input (Codex 0.169), and
//! locates the items in the body, so that only our own are changed.

use std::ops::Range;

use serde_json::{Value, json};

use super::capsule::MARK;
use history::error::Result;
use sessions::Format;
use sessions::parse::raw::{Fields, place};

/// The start of Codex's prompt for a local compaction.
const PROMPT: &str = "You are performing a CONTEXT CHECKPOINT COMPACTION";
/// The type of the last item in a request for a remote compaction.
const TRIGGER: &str = "compaction_trigger";
/// Types of items whose `encrypted_content` replaces a conversation.
const CAPSULES: [&str; 3] = ["compaction", "compaction_summary", "context_compaction"];
/// Maximum size, in bytes, of a last item that asks for a compaction.
const LONGEST_PROMPT: usize = 64 << 10;

/// A way to ask for a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskedBy {
    /// A prompt asks the model for a summary: the reply is a text.
    Prompt,
    /// An item asks the provider for a compaction: the reply is one item.
    Trigger,
    /// `POST …/compact`: the reply is a list of items or messages.
    Compact(Format),
}

/// The endpoints whose requests are inspected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiRoute {
    /// `POST …/responses`.
    Responses,
    /// `POST …/compact` after the path of an API, whose messages are received and returned.
    Compact(Format),
}

impl ApiRoute {
    pub fn at(path: &str) -> Option<Self> {
        let Some(api) = path.strip_suffix("/compact") else {
            return path.ends_with("/responses").then_some(Self::Responses);
        };
        let apis = [
            ("/responses", Format::OPENAI_RESPONSES),
            ("/messages", Format::ANTHROPIC),
            ("/chat/completions", Format::OPENAI_CHAT),
        ];
        apis.into_iter().find(|(path, _)| api.ends_with(path)).map(|it| Self::Compact(it.1))
    }
}

/// Whether a body may contain a capsule or a compaction request: a quick search before parsing.
pub fn may_concern_us(body: &[u8]) -> bool {
    [MARK, TRIGGER, PROMPT].iter().any(|it| memchr::memmem::find(body, it.as_bytes()).is_some())
}

#[derive(Debug)]
pub struct RecognizedRequest {
    /// How it asks for a compaction, if it does.
    pub asked: Option<AskedBy>,
    /// Whether the response is to be streamed as events.
    pub stream: bool,
    pub model: Option<String>,
    /// The byte range of each input item in the body.
    items: Vec<Range<usize>>,
}

impl RecognizedRequest {
    /// Parses a body. `None` if it has no list of items or messages: then it is forwarded unchanged.
    pub fn read(body: &str, endpoint: ApiRoute) -> Option<Self> {
        let read = Fields::of(body)?;
        let items = read.list(match endpoint {
            ApiRoute::Compact(api) if api != Format::OPENAI_RESPONSES => "messages",
            ApiRoute::Responses | ApiRoute::Compact(_) => "input",
        })?;
        let no_tools = read.get("tools").is_none_or(|it| it.replace(char::is_whitespace, "") == "[]");
        let asked = match endpoint {
            ApiRoute::Compact(api) => Some(AskedBy::Compact(api)),
            ApiRoute::Responses => items.last().and_then(|it| asked_by(it, no_tools)),
        };
        let items = items.iter().filter_map(|it| place(body, it)).collect();
        Some(Self { asked, stream: read.get("stream") == Some("true"), model: read.text("model"), items })
    }

    /// The body with each of our capsules replaced by a user message; `None` if there are none.
    ///
    /// # Errors
    /// What `open` returns for a capsule with our prefix.
    pub fn expanded(&self, body: &str, open: &dyn Fn(&str) -> Result<String>) -> Result<Option<String>> {
        let edits = opened(body, &self.items, open)?;
        Ok((!edits.is_empty()).then(|| history::edited(body, edits)))
    }

    /// The conversation as a JSON array, without the item that asks for the compaction.
    pub fn conversation(&self, body: &str) -> Vec<u8> {
        let end = match self.asked {
            Some(AskedBy::Prompt | AskedBy::Trigger) => self.items.len() - 1,
            Some(AskedBy::Compact(_)) | None => self.items.len(),
        };
        let items: Vec<&str> = self.items[..end].iter().map(|it| &body[it.clone()]).collect();
        format!("[{}]", items.join(",")).into_bytes()
    }
}

/// How an item asks for a compaction. A prompt counts only if the request has no tools: otherwise a user may
/// have written it.
fn asked_by(item: &str, no_tools: bool) -> Option<AskedBy> {
    if item.len() > LONGEST_PROMPT {
        return None;
    }
    let item: Value = serde_json::from_str(item).ok()?;
    if item["type"] == TRIGGER {
        return Some(AskedBy::Trigger);
    }
    let is_message = item["type"] == "message" || item["type"].is_null();
    let text = item["content"].as_str().or_else(|| item["content"][0]["text"].as_str())?;
    (is_message && item["role"] == "user" && no_tools && text.starts_with(PROMPT)).then_some(AskedBy::Prompt)
}

/// The ranges of items that are our capsules, each with the user message that replaces it.
pub fn opened(
    text: &str,
    items: &[Range<usize>],
    open: &dyn Fn(&str) -> Result<String>,
) -> Result<Vec<(Range<usize>, String)>> {
    let capsules = items.iter().filter_map(|it| Some((it.clone(), capsule(&text[it.clone()])?)));
    capsules.map(|(it, capsule)| Ok((it, message(&open(&capsule)?).to_string()))).collect()
}

fn capsule(item: &str) -> Option<String> {
    if !item.contains(MARK) {
        return None;
    }
    let value: Value = serde_json::from_str(item).ok()?;
    let capsule = value["encrypted_content"].as_str().filter(|it| it.starts_with(MARK))?;
    CAPSULES.iter().any(|it| value["type"] == *it).then(|| capsule.to_owned())
}

pub fn message(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
}

#[cfg(test)]
mod tests {
    use super::*;
    use history::error::{Error, ErrorKind};

    fn read(body: &Value) -> Option<RecognizedRequest> {
        RecognizedRequest::read(&body.to_string(), ApiRoute::Responses)
    }

    fn prompt(text: &str) -> Value {
        message(&format!("{text}\nCreate a handoff summary"))
    }

    #[test]
    fn only_what_stands_last_asks() {
        let trigger = json!({"type": "compaction_trigger"});
        let local = prompt(PROMPT);
        let asked =
            |input: Value, tools: Value| read(&json!({"input": input, "tools": tools})).unwrap().asked;
        let said = message("hello");
        assert_eq!(asked(json!([said, trigger]), json!([{"type": "function"}])), Some(AskedBy::Trigger));
        assert_eq!(asked(json!([said, local]), json!([])), Some(AskedBy::Prompt));
        assert_eq!(asked(json!([said, local]), json!(null)), Some(AskedBy::Prompt));
        assert_eq!(asked(json!([said, local]), json!([{"type": "function"}])), None);
        assert_eq!(asked(json!([trigger, said]), json!([])), None);
        assert_eq!(asked(json!([local, said]), json!([])), None);
        assert_eq!(asked(json!([prompt(&format!("Why does it say: {PROMPT}?"))]), json!([])), None);
        assert_eq!(asked(json!([]), json!([])), None);
        let mut assistant = local;
        assistant["role"] = "assistant".into();
        assert_eq!(asked(json!([assistant]), json!([])), None);
        for other in [json!({"input": "text"}), json!({"input": {}}), json!([]), json!(3), json!({})] {
            assert!(read(&other).is_none(), "{other}");
        }
        assert!(RecognizedRequest::read("{\"input\": [{]}", ApiRoute::Responses).is_none());
        assert_eq!(ApiRoute::at("/v1/responses"), Some(ApiRoute::Responses));
        assert_eq!(
            ApiRoute::at("/backend-api/codex/responses/compact"),
            Some(ApiRoute::Compact(Format::OPENAI_RESPONSES))
        );
        assert_eq!(ApiRoute::at("/v1/messages/compact"), Some(ApiRoute::Compact(Format::ANTHROPIC)));
        assert_eq!(
            ApiRoute::at("/v1/chat/completions/compact"),
            Some(ApiRoute::Compact(Format::OPENAI_CHAT))
        );
        for other in ["/v1/responses/resp_1", "/v1/messages", "/v1/chat/completions", "/compact"] {
            assert_eq!(ApiRoute::at(other), None, "{other}");
        }
    }

    #[test]
    fn only_our_capsules_are_changed() {
        let body = format!(
            "{{ \"model\":\"m\", \"input\" : [ {{\"a\": 1.50}},\n {{\"type\":\"compaction\",\"encrypted_content\":\"{MARK}x\"}} ,{{\"type\":\"compaction\",\
             \"encrypted_content\":\"gAAA{MARK}\"}},{{\"type\":\"message\",\"encrypted_content\":\"{MARK}y\"}}], \"é\": [1,\t2] }}"
        );
        let request = RecognizedRequest::read(&body, ApiRoute::Responses).unwrap();
        let expanded = request.expanded(&body, &|it| Ok(format!("opened {it}"))).unwrap().unwrap();
        let ours = format!("{{\"type\":\"compaction\",\"encrypted_content\":\"{MARK}x\"}}");
        assert_eq!(expanded, body.replace(&ours, &message(&format!("opened {MARK}x")).to_string()));
        let refused = request.expanded(&body, &|_| Err(Error::new(ErrorKind::Refused, "no")));
        assert!(refused.is_err());
        let plain = body.replace(MARK, "gAAA");
        assert!(!may_concern_us(plain.as_bytes()));
        let request = RecognizedRequest::read(&plain, ApiRoute::Responses).unwrap();
        assert_eq!(request.expanded(&plain, &|it| Ok(it.to_owned())).unwrap(), None);
    }

    #[test]
    fn the_conversation_ends_before_the_item_that_asks() {
        let said = message("hello");
        let body = json!({"input": [said, {"type": "compaction_trigger"}], "stream": true, "model": "m"});
        let request = read(&body).unwrap();
        assert!(request.stream && request.model.as_deref() == Some("m"));
        let found: Value = serde_json::from_slice(&request.conversation(&body.to_string())).unwrap();
        assert_eq!(found, json!([said]));
        let body = json!({"input": [said]}).to_string();
        let request = RecognizedRequest::read(&body, ApiRoute::Compact(Format::OPENAI_RESPONSES)).unwrap();
        assert_eq!(request.conversation(&body), json!([said]).to_string().into_bytes());
    }
}
