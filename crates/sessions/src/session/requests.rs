//! Every request of a session that a provider reported, including those whose messages are no longer sent:
//! before a compaction, on an abandoned branch, in a side chain. All of them were paid for.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use crate::derive::parse_time;
use crate::parse::lines;
use crate::parse::raw::Fields;
use crate::{Session, Source};
use history::error::Result;
use history::json;
use history::{History, Kind, Role, Usage};

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Request {
    /// Time of the message that it answers, in milliseconds since 1970: about when it was sent.
    pub sent_at: Option<i64>,
    /// Time of its response, in milliseconds since 1970.
    pub at: Option<i64>,
    pub model: Option<Arc<str>>,
    pub usage: Usage,
    /// Index in [`Requests::prompts`] of the prompt that it worked on; none before the first.
    pub prompt: Option<usize>,
    /// Whether it is the first after a compaction.
    pub compacted: bool,
    /// Whether it is of a side chain: a sub-agent with its own context.
    pub side: bool,
}

/// The requests of a session, oldest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Requests {
    pub all: Vec<Request>,
    /// The beginnings of the user's prompts.
    pub prompts: Vec<String>,
    /// How many compactions the session records.
    pub compactions: usize,
}

/// Reads the requests from the source that `session` was read from.
///
/// # Errors
/// [`ErrorKind::Input`](history::error::ErrorKind::Input) or [`ErrorKind::Io`](history::error::ErrorKind::Io) where
/// `source` cannot be read any more.
pub fn requests(source: &dyn Source, session: &Session) -> Result<Requests> {
    let mut out = Collector::default();
    match session.format.0.requests {
        Some(read) => read(source, &mut out)?,
        None => of_history(&session.history, &mut out),
    }
    Ok(out.requests)
}

/// Maximum characters kept of a prompt.
const WORDS: usize = 80;

/// Makes requests of a format's records, which it is given oldest first.
#[derive(Default)]
pub(crate) struct Collector {
    requests: Requests,
    /// Index in `requests.all` by response id, because a later report of a response replaces its usage;
    /// `usize::MAX` for an id that only [`Self::is_first`] has seen.
    places: HashMap<String, usize>,
    sent_at: Option<i64>,
    compacted: bool,
    model: Option<Arc<str>>,
}

impl Collector {
    pub(crate) fn prompt(&mut self, at: Option<i64>, text: &str) {
        self.sent_at = at.or(self.sent_at);
        self.requests.prompts.push(beginning(text));
    }

    /// Something was sent to the model, at this time if it is known.
    pub(crate) fn sent(&mut self, at: Option<i64>) {
        self.sent_at = at.or(self.sent_at);
    }

    /// Whether this record id is new: some records are written again as they grow.
    pub(crate) fn is_first(&mut self, id: &str) -> bool {
        let is_first = id.is_empty() || !self.places.contains_key(id);
        if is_first {
            self.places.insert(id.to_owned(), usize::MAX);
        }
        is_first
    }

    pub(crate) fn compaction(&mut self) {
        self.compacted = true;
        self.requests.compactions += 1;
    }

    /// `response`: its id, or empty if each response is reported only once.
    pub(crate) fn response(&mut self, response: &str, at: Option<i64>, usage: Usage, side: bool) {
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

    pub(crate) fn model(&mut self, model: &Value) {
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

/// Calls `each` with every line that is JSON.
pub(crate) fn each_row(source: &dyn Source, mut each: impl FnMut(Value)) -> Result<()> {
    lines::each_line(source, |_, _, bytes| {
        if let Ok(row) = serde_json::from_str(&json::mend(bytes)) {
            each(row);
        }
        Ok(true)
    })
}

/// Calls `each` with every element of `messages`; false if there is no such list.
pub(crate) fn each_message(source: &dyn Source, mut each: impl FnMut(Value)) -> Result<bool> {
    let bytes = source.whole()?;
    let text = json::mend(&bytes);
    let fields = Fields::of(json::without_byte_order_mark(&text));
    let Some(messages) = fields.and_then(|it| it.list("messages")) else { return Ok(false) };
    messages.into_iter().filter_map(|it| serde_json::from_str(it).ok()).for_each(&mut each);
    Ok(true)
}

/// The text of a message's content: a string, or parts with text.
pub(crate) fn text(content: &Value) -> Option<String> {
    if let Some(text) = content.as_str() {
        return Some(text.to_owned());
    }
    let texts = content.as_array()?.iter().filter_map(|it| it["text"].as_str());
    let texts: Vec<&str> = texts.collect();
    (!texts.is_empty()).then(|| texts.join(" "))
}

pub(crate) fn time(row: &Value) -> Option<i64> {
    row["timestamp"].as_str().and_then(parse_time)
}

/// Requests for the current messages, without those from before the last compaction.
pub fn live(history: &History) -> Requests {
    let mut out = Collector::default();
    of_history(history, &mut out);
    out.requests
}

fn of_history(history: &History, out: &mut Collector) {
    let summary = history.messages().iter().rposition(|it| it.kind == Kind::Summary);
    let summarized = summary.and_then(|it| history.messages()[it].at);
    for (index, message) in history.messages().iter().enumerate() {
        if summary == Some(index) {
            out.compaction();
        }
        // Kept from before the summary: its usage measured another context.
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
