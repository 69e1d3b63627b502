//! Compaction of the items or messages in a request that passes through a gateway.

use crate::agents::{self, gateway};
use crate::engine::input::open::{open_path, read};
use crate::engine::{Engine, Opened, SeatAsk, seat};
use compaction::plan::Cause;
use history::error::{Error, ErrorKind, Result};
use history::verbatim::Prompts;
use history::{History, Message, Meta, Part, Role, Text};
use sessions::agents::codex::{is_contextual, own_summary};
use sessions::{self, Format, MemorySource, SUMMARY_START};

pub struct ItemsAsk {
    /// A JSON array of items or messages.
    pub items: Vec<u8>,
    /// The API whose items they are.
    pub format: Format,
    /// The client's id for its session, if the session is stored on this machine.
    pub thread: Option<String>,
    /// The model that would be asked.
    pub model: Option<String>,
    /// What becomes of the user's prompts.
    pub prompts: Prompts,
}

pub struct ItemsDone {
    /// The summary and the end of the conversation as one text.
    pub text: String,
    /// The same as a JSON array of the API's messages; `None` for OpenAI Responses, which has items.
    pub messages: Option<Vec<u8>>,
    /// Tokens of the messages, before and after.
    pub tokens: (u64, u64),
    /// Handle of the archived original.
    pub handle: Option<String>,
}

/// Compacts items into one text. The client's own file is archived where it is known, else the items.
///
/// # Errors
/// As [`seat::seat`], and [`ErrorKind::Input`] if `items` is not an array of items or messages.
pub fn seat_items(engine: &Engine, ask: ItemsAsk) -> Result<ItemsDone> {
    let source = MemorySource::new("request", ask.items);
    let mut opened = read(Box::new(source), Some(ask.format), None)?;
    let rollout = ask.thread.as_deref().and_then(|it| rollout(engine, it));
    let meta = match &rollout {
        Some(it) => Meta { agent: None, ..it.session.history.meta.clone() },
        None => Meta::default(),
    };
    let model = ask.model.map(Into::into).or(meta.model.clone());
    let mut messages = std::mem::take(&mut opened.session.history).into_messages();
    for it in &mut messages {
        mark_client_text(it);
    }
    opened.session.history = History::new(messages, Meta { model, ..meta });
    // The request does not say whether the user or the token limit triggered it.
    let seated =
        seat::seat(engine, opened, rollout.as_ref(), &SeatAsk { cause: Cause::Auto, ..SeatAsk::default() })?;
    let text = seated.one_text(ask.prompts);
    if text.is_empty() {
        return Err(Error::new(ErrorKind::Rejected, "expected a summary, found none"));
    }
    let messages = match ask.format == Format::OPENAI_RESPONSES {
        true => None,
        false => Some(valid_messages(&seated.history, ask.format)?),
    };
    Ok(ItemsDone {
        text,
        messages,
        tokens: (seated.tokens_before, seated.tokens_after),
        handle: seated.handle,
    })
}

/// The file of a thread on this machine, if there is exactly one.
fn rollout(engine: &Engine, thread: &str) -> Option<Opened> {
    let mut found = agents::find(&engine.config.agents, thread);
    found.retain(|it| it.agent == gateway::AGENT && it.id == thread);
    let [one] = found.as_slice() else { return None };
    open_path(&one.path, Some(gateway::AGENT.format())).ok()
}

/// The history as messages of an API; an error if they break its rules.
fn valid_messages(history: &History, format: Format) -> Result<Vec<u8>> {
    let (messages, _) = sessions::wire::messages_of(history, Some(format), format);
    match sessions::validate::check(format, &messages).first() {
        Some(first) => Err(Error::new(ErrorKind::Rejected, format!("the result breaks {first}"))),
        None => Ok(messages),
    }
}

/// Marks text that the client put into a user message as context, and a summary of ours as a summary, without
/// the words that the client puts in front.
fn mark_client_text(message: &mut Message) {
    if message.role != Role::User {
        return;
    }
    if let [Part::Text(text)] = message.parts.as_mut_slice()
        && let Some(ours) = own_summary(text.as_str())
    {
        (*text, message.kind) = (Text::new(ours), history::Kind::Summary);
    }
    if message.kind == history::Kind::Said && message.texts().any(|it| is_contextual(it.as_str())) {
        message.kind = history::Kind::Context;
    }
    if message.kind != history::Kind::Summary {
        return;
    }
    if let [Part::Text(text)] = message.parts.as_mut_slice()
        && !text.as_str().starts_with("[Epitome]")
        && let Some((_, ours)) = text.as_str().split_once('\n')
        && ours.lines().next().is_some_and(|it| it.contains(SUMMARY_START))
    {
        *text = Text::new(ours);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clients_words_are_not_the_users() {
        let of = |kind: history::Kind, text: &str| {
            let mut message = Message::text(Role::User, kind, text);
            mark_client_text(&mut message);
            (message.kind, message.plain())
        };
        let context = "<environment_context>\n<cwd>/p</cwd>\n</environment_context>";
        assert_eq!(of(history::Kind::Said, context).0, history::Kind::Context);
        assert_eq!(of(history::Kind::Said, "fix it").0, history::Kind::Said);
        let ours = format!("[Epitome] {SUMMARY_START} 9 messages\n## Goal\nx");
        assert_eq!(of(history::Kind::Summary, &format!("Another language model started …:\n{ours}")).1, ours);
        assert_eq!(of(history::Kind::Summary, &ours).1, ours);
        assert_eq!(
            of(history::Kind::Said, &sessions::agents::codex::framed_summary(&ours)),
            (history::Kind::Summary, ours)
        );
        let theirs = format!("Another language model started …:\nS\n{SUMMARY_START}");
        assert_eq!(of(history::Kind::Summary, &theirs).1, theirs);
    }
}
