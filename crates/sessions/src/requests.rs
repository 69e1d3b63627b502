//! Every request of a session that a provider reported, also those whose messages are not sent any more: before a
//! compaction, on a branch that was left, in a side chain. All of them were paid for.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::derive::parse_time;
use super::{Format, Session, Source, lines};
use history::error::Result;
use history::json;
use history::{History, Kind, Role, Usage};

/// A request, as it was reported.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Request {
    /// Milliseconds since 1970 of what it answers: about when it was sent.
    pub sent_at: Option<i64>,
    /// Milliseconds since 1970 of its answer.
    pub at: Option<i64>,
    /// The model that answered.
    pub model: Option<Arc<str>>,
    pub usage: Usage,
    /// Number of the prompt that it worked on, in [`Requests::prompts`]; none before the first.
    pub prompt: Option<usize>,
    /// The first after a compaction.
    pub compacted: bool,
    /// Of a side chain: an agent's helper, with a context of its own.
    pub side: bool,
}

/// The requests of a session, oldest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Requests {
    /// All.
    pub all: Vec<Request>,
    /// The beginnings of the user's prompts.
    pub prompts: Vec<String>,
    /// How many compactions the session records.
    pub compactions: usize,
}

/// Reads them from the source that a session was read from.
pub fn requests(source: &dyn Source, session: &Session) -> Result<Requests> {
    let mut out = Collected::default();
    match session.format {
        Format::ClaudeCode => each_row(source, |row| claude_code(&row, &mut out))?,
        Format::Codex => each_row(source, |row| codex(&row, &mut out))?,
        Format::Pi => each_row(source, |row| pi(&row, &mut out))?,
        Format::GeminiCli => {
            if !document(source, |element| gemini_cli(&element, &mut out))? {
                each_row(source, |row| gemini_cli(&row, &mut out))?;
            }
        }
        Format::OpenCode => {
            document(source, |element| opencode(&element, &mut out))?;
        }
        Format::SweAgent
        | Format::Anthropic
        | Format::OpenAiChat
        | Format::OpenAiResponses
        | Format::Gemini => of_history(&session.history, &mut out),
    }
    Ok(out.requests)
}

/// Characters that are kept of a prompt.
const WORDS: usize = 80;

#[derive(Default)]
struct Collected {
    requests: Requests,
    /// Where the request of a response stands: what is reported of it later is the better figure.
    places: HashMap<String, usize>,
    sent_at: Option<i64>,
    compacted: bool,
    model: Option<Arc<str>>,
}

impl Collected {
    fn prompt(&mut self, at: Option<i64>, text: &str) {
        self.sent_at = at.or(self.sent_at);
        self.requests.prompts.push(beginning(text));
    }

    fn compaction(&mut self) {
        self.compacted = true;
        self.requests.compactions += 1;
    }

    /// `response`: its id, or nothing where each is reported once.
    fn response(&mut self, response: &str, at: Option<i64>, usage: Usage, side: bool) {
        if usage.sent() == 0 || usage.context() > Usage::MOST {
            return;
        }
        if let Some(known) = self.places.get(response).and_then(|it| self.requests.all.get_mut(*it)) {
            known.usage = usage;
            return;
        }
        if !response.is_empty() {
            self.places.insert(response.to_owned(), self.requests.all.len());
        }
        self.requests.all.push(Request {
            sent_at: self.sent_at.or(at),
            at,
            model: self.model.clone(),
            usage,
            prompt: self.requests.prompts.len().checked_sub(1),
            compacted: std::mem::take(&mut self.compacted),
            side,
        });
    }

    fn model(&mut self, model: &Value) {
        if let Some(model) = model.as_str()
            && self.model.as_deref() != Some(model)
        {
            self.model = Some(model.into());
        }
    }
}

/// The first words of a text, on one line.
fn beginning(text: &str) -> String {
    let mut out = String::new();
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.extend(word.chars().take(WORDS));
        if out.chars().count() > WORDS {
            return out.chars().take(WORDS).chain(['…']).collect();
        }
    }
    out
}

fn each_row(source: &dyn Source, mut each: impl FnMut(Value)) -> Result<()> {
    lines::each_line(source, |_, _, bytes| {
        if let Ok(row) = serde_json::from_str(&json::mend(bytes)) {
            each(row);
        }
        Ok(true)
    })
}

/// Every element of `messages`; whether there is such a list.
fn document(source: &dyn Source, mut each: impl FnMut(Value)) -> Result<bool> {
    #[derive(Deserialize)]
    struct Document<'a> {
        #[serde(borrow)]
        messages: Vec<&'a RawValue>,
    }
    let bytes = source.bytes(0..source.len())?;
    let text = json::mend(bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes));
    let Ok(document) = serde_json::from_str::<Document<'_>>(&text) else { return Ok(false) };
    document.messages.iter().filter_map(|it| serde_json::from_str(it.get()).ok()).for_each(&mut each);
    Ok(true)
}

/// The text of a message's content: a string, or parts with text.
fn text(content: &Value) -> Option<String> {
    if let Some(text) = content.as_str() {
        return Some(text.to_owned());
    }
    let texts = content.as_array()?.iter().filter_map(|it| it["text"].as_str());
    let texts: Vec<&str> = texts.collect();
    (!texts.is_empty()).then(|| texts.join(" "))
}

fn time(row: &Value) -> Option<i64> {
    row["timestamp"].as_str().and_then(parse_time)
}

fn claude_code(row: &Value, out: &mut Collected) {
    let (at, message) = (time(row), &row["message"]);
    let side = row["isSidechain"] == true;
    match row["type"].as_str() {
        Some("system") if row["subtype"] == "compact_boundary" => out.compaction(),
        Some("user") => {
            let results =
                message["content"].as_array().into_iter().flatten().any(|it| it["type"] == "tool_result");
            let own = row["isMeta"] != true && row["isCompactSummary"] != true && !side && !results;
            match text(&message["content"]).filter(|_| own) {
                Some(text) => out.prompt(at, &text),
                None => out.sent_at = at.or(out.sent_at),
            }
        }
        Some("assistant") if message["model"] != "<synthetic>" => {
            out.model(&message["model"]);
            let usage = super::claude_code::usage(&json::compact(&message["usage"]));
            out.response(message["id"].as_str().unwrap_or_default(), at, usage, side);
        }
        _ => {}
    }
}

fn codex(row: &Value, out: &mut Collected) {
    let (at, body) = (time(row), &row["payload"]);
    match (row["type"].as_str(), body["type"].as_str()) {
        (Some("turn_context"), _) => out.model(&body["model"]),
        (Some("compacted"), _) => out.compaction(),
        (Some("event_msg"), Some("token_count")) => {
            let (last, total) = (&body["info"]["last_token_usage"], &body["info"]["total_token_usage"]);
            // The same report comes again when limits are told.
            let key = total["total_tokens"].as_u64().map(|it| format!("{it}")).unwrap_or_default();
            out.response(&key, at, super::codex::usage(&json::compact(last)), false);
        }
        (Some("response_item"), Some("message")) if body["role"] == "user" => {
            // What the client puts there stands in parts of its own.
            let parts = body["content"].as_array().into_iter().flatten();
            let said = parts.filter_map(|it| it["text"].as_str()).find(|it| !super::codex::is_contextual(it));
            match said {
                Some(text) => out.prompt(at, text),
                None => out.sent_at = at.or(out.sent_at),
            }
        }
        (Some("response_item"), Some("function_call_output" | "custom_tool_call_output")) => {
            out.sent_at = at.or(out.sent_at);
        }
        _ => {}
    }
}

fn pi(row: &Value, out: &mut Collected) {
    let (at, message) = (time(row), &row["message"]);
    match (row["type"].as_str(), message["role"].as_str()) {
        (Some("compaction"), _) => out.compaction(),
        (Some("message"), Some("user")) => out.prompt(at, &text(&message["content"]).unwrap_or_default()),
        (Some("message"), Some("assistant")) => {
            out.model(&message["model"]);
            if let Some(usage) = super::pi::usage(&message["usage"]) {
                out.response(row["id"].as_str().unwrap_or_default(), at, usage, false);
            }
        }
        (Some("message"), _) => out.sent_at = at.or(out.sent_at),
        _ => {}
    }
}

fn gemini_cli(record: &Value, out: &mut Collected) {
    let (at, id) = (time(record), record["id"].as_str().unwrap_or_default());
    match record["type"].as_str() {
        // A record is written again when it grows.
        Some("user") if !id.is_empty() && out.places.contains_key(id) => {}
        Some("user") => {
            out.places.insert(id.to_owned(), usize::MAX);
            match text(&record["content"]) {
                Some(text) => out.prompt(at, &text),
                None => out.sent_at = at.or(out.sent_at),
            }
        }
        Some("gemini") => {
            out.model(&record["model"]);
            let usage = super::gemini_cli::usage(&record["tokens"]);
            out.response(id, at, usage, false);
        }
        _ => {}
    }
}

fn opencode(element: &Value, out: &mut Collected) {
    let info = &element["info"];
    let parts = || element["parts"].as_array().into_iter().flatten();
    let at = |key: &str| info["time"][key].as_f64().map(|it| it as i64);
    match info["role"].as_str() {
        Some("user") => {
            if parts().any(|it| it["type"] == "compaction") {
                return out.compaction();
            }
            let texts = parts().filter(|it| it["type"] == "text" && it["synthetic"] != true);
            let texts: Vec<&str> = texts.filter_map(|it| it["text"].as_str()).collect();
            out.prompt(at("created"), &texts.join(" "));
        }
        Some("assistant") => {
            out.model(&info["modelID"]);
            out.sent_at = at("created").or(out.sent_at);
            let done = at("completed").or(at("created"));
            let steps: Vec<_> = parts()
                .filter(|it| it["type"] == "step-finish")
                .filter_map(|it| super::opencode::usage(&it["tokens"]))
                .collect();
            let whole = super::opencode::usage(&info["tokens"]).filter(|_| steps.is_empty());
            steps.into_iter().chain(whole).for_each(|it| out.response("", done, it, false));
        }
        _ => {}
    }
}

/// The requests of the messages that are sent now: not those whose context was another.
pub fn live(history: &History) -> Requests {
    let mut out = Collected::default();
    of_history(history, &mut out);
    out.requests
}

fn of_history(history: &History, out: &mut Collected) {
    let summary = history.messages().iter().rposition(|it| it.kind == Kind::Summary);
    let summarized = summary.and_then(|it| history.messages()[it].at);
    for (index, message) in history.messages().iter().enumerate() {
        if summary == Some(index) {
            out.compaction();
        }
        // Kept from before the summary: what was reported of it was another context.
        if message.at.zip(summarized).is_some_and(|(at, summarized)| at < summarized) {
            continue;
        }
        if message.is_prompt() {
            out.prompt(message.at, message.texts().next().map_or("", |it| it.as_str()));
        } else if message.role != Role::Assistant {
            out.sent_at = message.at.or(out.sent_at);
        } else if let Some(usage) = message.usage {
            out.model = message.model.clone().or_else(|| history.meta.model.clone());
            out.response("", message.at, usage, false);
        }
    }
}
