//! Requests to a model and its replies, independent of the provider.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use history::Usage;
use history::json::set;
use history::named;

named! {
    /// How a provider wants to be spoken to.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Api {
        /// Anthropic Messages, `POST /v1/messages`.
        Anthropic = "anthropic",
        /// OpenAI Responses, `POST /v1/responses`.
        OpenaiResponses = "openai-responses",
        /// OpenAI chat completions and everything that speaks them, `POST /v1/chat/completions`.
        OpenaiChat = "openai-chat",
        /// Gemini, `POST /v1beta/models/MODEL:streamGenerateContent`.
        Gemini = "gemini",
    }
}

/// Who speaks in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Speaker {
    Us,
    Model,
}

impl Speaker {
    /// Its role for Anthropic and OpenAI.
    pub(super) fn role(self) -> &'static str {
        match self {
            Self::Us => "user",
            Self::Model => "assistant",
        }
    }
}

/// One message of the dialogue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    pub speaker: Speaker,
    pub text: String,
}

/// The session's own request so far, which the provider serves from its cache: the bytes must be those that
/// the agent sends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prefix {
    /// `system` or `instructions`, as the API has it.
    pub system: Option<Value>,
    /// Tool definitions. They are part of what is cached; calling them is forbidden by the last instruction, and by
    /// `tool_choice` where that does not break the cache.
    pub tools: Option<Value>,
    pub messages: Vec<Value>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelRequest {
    pub system: String,
    /// The dialogue so far; the last turn is ours.
    pub turns: Vec<Turn>,
    /// The session's own request, which goes before the turns instead of `system`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Prefix>,
    /// Maximum output tokens, including thinking.
    pub max_output: u64,
}

impl ModelRequest {
    /// What goes before the turns: the session's own request, or our system prompt.
    pub(super) fn front(&self) -> Prefix {
        let ours = || Prefix { system: Some(self.system.as_str().into()), tools: None, messages: Vec::new() };
        self.prefix.clone().unwrap_or_else(ours)
    }

    /// Everything that is sent, as text, for counting and for tests.
    pub fn text(&self) -> String {
        let turns = self.turns.iter().map(|it| it.text.clone());
        let prefix = self.prefix.iter().flat_map(|it| it.system.iter().chain(&it.tools).chain(&it.messages));
        let prefix = prefix.map(Value::to_string);
        std::iter::once(self.system.clone()).chain(turns).chain(prefix).collect::<Vec<_>>().join("\n")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// The answer is complete, or no reason was given.
    #[default]
    End,
    /// The output limit was reached.
    Length,
    /// The model, or a filter, refused.
    Refused,
    /// The model wanted to call a tool.
    ToolCall,
    WindowFull,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Reply {
    /// The answer's text, without thinking.
    pub text: String,
    pub stop: StopReason,
    pub tokens: Usage,
    /// The model that answered, as the provider names it.
    pub model: Option<String>,
}

/// A reply while it is being streamed.
#[derive(Debug, Default)]
pub struct PartialReply {
    pub reply: Reply,
    /// Whether the provider marked the reply as complete.
    pub finished: bool,
}

/// An API key, never shown: neither `Debug` nor `Display` nor any serializer has its text.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The key's text, for the one header that it goes into.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// Where a model is, and by which API it is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The provider's name as the user knows it: `anthropic`, `openai-compatible`.
    pub provider: String,
    pub api: Api,
    /// Such as `https://api.anthropic.com`; with or without the version at the end.
    pub base_url: String,
    pub model: String,
    /// Local servers need none.
    pub key: Option<Key>,
    /// The environment variable that the key comes from, for messages.
    pub key_variable: String,
    /// The model's window in tokens, if known.
    pub window: Option<u64>,
}

impl Endpoint {
    /// The host, for messages: without path, query and credentials.
    pub fn host(&self) -> &str {
        let rest = self.base_url.split_once("://").map_or(self.base_url.as_str(), |it| it.1);
        let rest = rest.split(['/', '?', '#']).next().unwrap_or_default();
        rest.rsplit_once('@').map_or(rest, |it| it.1)
    }

    /// `anthropic/claude-…`.
    pub fn label(&self) -> String {
        format!("{}/{}", self.provider, self.model)
    }

    /// The URL for requests. The API version is added if the base URL does not end in one.
    pub fn url(&self) -> String {
        let base = self.base_url.trim_end_matches('/');
        let last = base.rsplit('/').next().unwrap_or_default();
        let versioned = last.strip_prefix('v').is_some_and(|it| it.starts_with(|c: char| c.is_ascii_digit()));
        let path = match self.api {
            Api::Anthropic => "v1/messages".to_owned(),
            Api::OpenaiResponses => "v1/responses".to_owned(),
            Api::OpenaiChat => "v1/chat/completions".to_owned(),
            Api::Gemini => {
                let model = self.model.trim_start_matches("models/");
                format!("v1beta/models/{model}:streamGenerateContent?alt=sse")
            }
        };
        match path.split_once('/') {
            Some((_, rest)) if versioned => format!("{base}/{rest}"),
            _ => format!("{base}/{path}"),
        }
    }

    /// The URL that counts tokens, if the API has one.
    pub fn count_url(&self) -> Option<String> {
        let url = self.url();
        match self.api {
            Api::Anthropic => Some(format!("{url}/count_tokens")),
            Api::OpenaiResponses => Some(format!("{url}/input_tokens")),
            Api::Gemini => Some(format!("{}:countTokens", url.rsplit_once(':')?.0)),
            Api::OpenaiChat => None,
        }
    }

    /// The body for [`count_url`](Self::count_url): messages as the API has them.
    pub fn count_body(&self, messages: Value) -> Value {
        match self.api {
            Api::Anthropic | Api::OpenaiChat => {
                serde_json::json!({"model": self.model, "messages": messages})
            }
            Api::OpenaiResponses => serde_json::json!({"model": self.model, "input": messages}),
            Api::Gemini => serde_json::json!({"contents": messages}),
        }
    }
}

/// Sets those of the fields that are `Some`.
pub(super) fn set_some<const N: usize>(out: &mut Value, fields: [(&str, Option<Value>); N]) {
    for (key, field) in fields {
        if let Some(field) = field {
            set(out, key, field);
        }
    }
}

/// The number at a JSON pointer; 0 if there is none.
pub(super) fn number(value: &Value, path: &str) -> u64 {
    value.pointer(path).and_then(Value::as_u64).unwrap_or(0)
}

pub(super) fn text<'a>(value: &'a Value, path: &str) -> Option<&'a str> {
    value.pointer(path).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(api: Api, base_url: &str) -> Endpoint {
        Endpoint {
            provider: "p".into(),
            api,
            base_url: base_url.into(),
            model: "m".into(),
            key: Some(Key::new("sk-very-secret")),
            key_variable: "P_KEY".into(),
            window: None,
        }
    }

    #[test]
    fn urls_take_a_base_with_and_without_a_version() {
        let url = |api, base| endpoint(api, base).url();
        assert_eq!(url(Api::Anthropic, "https://api.anthropic.com"), "https://api.anthropic.com/v1/messages");
        assert_eq!(url(Api::Anthropic, "https://gw/anthropic/"), "https://gw/anthropic/v1/messages");
        assert_eq!(
            url(Api::OpenaiChat, "http://localhost:11434/v1"),
            "http://localhost:11434/v1/chat/completions"
        );
        assert_eq!(
            url(Api::OpenaiResponses, "https://api.openai.com/v1/"),
            "https://api.openai.com/v1/responses"
        );
        let gemini = "https://g.com/v1beta/models/m:streamGenerateContent?alt=sse";
        assert_eq!(url(Api::Gemini, "https://g.com"), gemini);
        assert_eq!(url(Api::Gemini, "https://g.com/v1beta"), gemini);
    }

    #[test]
    fn counting_has_its_own_addresses() {
        let url = |api, base| endpoint(api, base).count_url();
        let of = |text: &str| Some(text.to_owned());
        assert_eq!(url(Api::Anthropic, "https://a.com"), of("https://a.com/v1/messages/count_tokens"));
        assert_eq!(url(Api::OpenaiResponses, "https://o/v1"), of("https://o/v1/responses/input_tokens"));
        assert_eq!(url(Api::Gemini, "https://g.com"), of("https://g.com/v1beta/models/m:countTokens"));
        assert_eq!(url(Api::OpenaiChat, "http://localhost:1/v1"), None);
    }

    #[test]
    fn a_key_shows_itself_to_nobody() {
        let it = endpoint(Api::Anthropic, "https://user:pass@host:1/x");
        assert!(!format!("{it:?}").contains("very-secret"));
        assert_eq!(it.host(), "host:1");
    }
}
