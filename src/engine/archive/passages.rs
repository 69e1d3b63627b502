//! Splits archived sessions into searchable passages, and parses the qualifiers of a query.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

use crate::agents;
use crate::engine::Engine;
use crate::engine::input::values::timestamp;
use crate::store::{Filter, Passage, PassageKind, Scope, Unindexed};
use compaction::plan;
use history::error::{ErrorKind, Result};
use history::replaced;
use history::tools::{self, Meaning};
use history::{Call, History, Message, Part};
use sessions::{self, MemorySource};

/// Characters indexed at each end of a failed call's output: errors are at its beginning or end.
const ERROR_END: usize = 1_000;

/// Indexes archived sessions that are not indexed yet, newest first: up to `most` bytes, but at least one
/// session. Returns how many are left.
pub(crate) fn index(engine: &Engine, owner: &str, most: u64) -> Result<usize> {
    let waiting = engine.store.unindexed(owner)?;
    let mut bytes = 0;
    let within = |it: &&Unindexed| {
        let is_first = bytes == 0;
        bytes += it.bytes;
        is_first || bytes <= most
    };
    let some: Vec<&Unindexed> = waiting.iter().take_while(within).collect();
    // Oldest first, because a search looks first at what was indexed last.
    for it in some.iter().rev() {
        let read = || {
            let bytes = engine.store.restore(&it.scope, &it.handle)?;
            sessions::read(&MemorySource::new(&*it.handle, bytes), None)
        };
        // A damaged session is indexed as empty (`doctor` reports it). An unreachable one is tried again
        // later.
        let history = match read() {
            Ok(session) => session.history,
            Err(error) if matches!(error.kind(), ErrorKind::Locked | ErrorKind::Io) => return Err(error),
            Err(_) => History::default(),
        };
        index_session(engine, &it.scope, &it.handle, &history)?;
    }
    Ok(waiting.len() - some.len())
}

/// Indexes a session that is archived under `handle`.
pub(crate) fn index_session(engine: &Engine, scope: &Scope, handle: &str, history: &History) -> Result<()> {
    let agent = history.meta.agent.as_deref().unwrap_or_default();
    engine.store.put_passages(scope, handle, agent, &searched(history, passage))
}

/// Calls `read` with every message to search: its number, the message without our own calls and their outputs,
/// and whether an output answers a question. Instructions, reminders and summaries are not searched. Messages
/// that a sealed compaction replaced get the number of that compaction.
pub(crate) fn searched<T>(
    history: &History,
    read: impl Fn(u32, Message, &dyn Fn(&str) -> bool) -> Option<T>,
) -> Vec<T> {
    let (messages, numbers) = match replaced::expanded(history) {
        Some((it, origins)) => (Cow::Owned(it.into_messages()), origins),
        None => (Cow::Borrowed(history.messages()), (0..history.messages().len()).collect()),
    };
    let calls: HashMap<&str, &Call> =
        messages.iter().flat_map(Message::calls).map(|it| (&*it.id, it)).collect();
    let answers = |id: &str| calls.get(id).is_some_and(|it| tools::meaning(&it.name) == Meaning::Ask);
    let is_searched = |part: &Part| match part {
        Part::Call(it) => !is_ours(it),
        Part::Output(it) => answers(&it.id) || !calls.get(&*it.id).is_some_and(|it| is_ours(it)),
        Part::Text(_) | Part::Reasoning(_) | Part::Media(_) | Part::Opaque(_) => true,
    };
    let said = numbers.iter().zip(&*messages).filter(|(_, it)| it.kind == history::Kind::Said);
    said.filter_map(|(number, message)| {
        let mut message = message.clone();
        message.parts.retain(is_searched);
        read(*number as u32, message, &answers)
    })
    .collect()
}

/// The indexed part of a message: what the user and the model said, calls, the user's answers to questions,
/// and errors. Other outputs make up most of a session; they are searched only where the index finds nothing.
fn passage(number: u32, mut message: Message, answers: &dyn Fn(&str) -> bool) -> Option<Passage> {
    let by_user = message.is_prompt() || message.outputs().any(|it| answers(&it.id));
    let failed = message.outputs().any(|it| it.failed);
    let is_file = |it: &Call| {
        matches!(
            tools::meaning(&it.name),
            Meaning::Read | Meaning::Edit | Meaning::Create | Meaning::Delete | Meaning::Rename
        )
    };
    message.parts.retain_mut(|part| match part {
        Part::Output(it) if answers(&it.id) => true,
        Part::Output(it) => {
            it.text = ends(it.text.as_str()).into();
            it.failed
        }
        Part::Text(_) | Part::Reasoning(_) | Part::Call(_) => true,
        Part::Media(_) | Part::Opaque(_) => false,
    });
    if message.parts.is_empty() {
        return None;
    }
    let (at, names_file) = (message.at, message.calls().any(is_file));
    let text = plan::transcript(&[message]);
    let kinds = [
        (PassageKind::User, by_user),
        (PassageKind::Decision, is_decision(&text)),
        (PassageKind::Error, failed),
        (PassageKind::File, names_file),
    ];
    let kinds = kinds.into_iter().filter(|it| it.1).map(|it| it.0).collect();
    Some(Passage { message: number, kinds, at, text })
}

/// Whether a text states a decision or a rule.
pub(crate) fn is_decision(text: &str) -> bool {
    static CUES: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let cues = r"(?i)\b(decid\w*|decision\w*|agreed?|cho(se|ose|sen|ice)|selected|go(ing)? with|we('ll| will| should)? (use|keep|take)|let'?s (use|keep|take)|use \S+ instead|instead of|from now on|must( not)?|never|always|don't|do not)\b";
        Regex::new(cues).ok()
    });
    CUES.as_ref().is_some_and(|it| it.is_match(text))
}

/// Whether a call is one of Epitome's: a search for a word must not itself be found by that word.
fn is_ours(call: &Call) -> bool {
    call.name.contains("epitome") || call.input.as_str().contains("epitome recall")
}

/// A long text's beginning and end.
fn ends(text: &str) -> String {
    let head = text.char_indices().nth(ERROR_END).map_or(text.len(), |(at, _)| at);
    let tail = text.char_indices().rev().nth(ERROR_END - 1).map_or(0, |(at, _)| at);
    if tail <= head { text.to_owned() } else { format!("{}\n…\n{}", &text[..head], &text[tail..]) }
}

/// Splits a query into its words and its qualifiers: `agent:codex`, `kind:user`, `since:7d`,
/// `before:2026-01-31`. A qualifier with an unknown value stays among the words.
pub(crate) fn filter(text: &str, now: i64) -> (String, Filter) {
    static QUALIFIER: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"(?:^|\s)(agent|kind|since|before):(\S+)").ok());
    let (mut filter, mut cuts) = (Filter::default(), Vec::new());
    for found in QUALIFIER.iter().flat_map(|it| it.captures_iter(text)) {
        let (Some(all), Some(key), Some(value)) = (found.get(0), found.get(1), found.get(2)) else {
            continue;
        };
        if set(&mut filter, key.as_str(), value.as_str(), now).is_some() {
            cuts.push((all.range(), ""));
        }
    }
    (history::edited(text, cuts), filter)
}

/// Whether a text is nothing but qualifiers with known values.
pub fn is_qualifier(engine: &Engine, text: &str) -> bool {
    filter(text, engine.now).0.is_empty()
}

/// Applies a qualifier. `None` if its value is unknown.
fn set(filter: &mut Filter, key: &str, value: &str, now: i64) -> Option<()> {
    match key {
        "agent" => filter.agent = Some(agents::named(value)?.name().to_owned()),
        "kind" => filter.kind = Some(PassageKind::find(value)?),
        "since" => filter.since = Some(timestamp(value, now)?),
        _ => filter.before = Some(timestamp(value, now)?),
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qualifiers_are_taken_out_of_a_query() {
        let now = 1_000_000_000_000;
        let (words, found) = filter("agent:codex cache since:1d kind:error agent:nobody", now);
        assert_eq!(words, " cache agent:nobody");
        let expected = Filter {
            agent: Some("codex".into()),
            kind: Some(PassageKind::Error),
            since: Some(now - 86_400_000),
            before: None,
        };
        assert_eq!(found, expected);
        assert_eq!(filter("before:2001-09-09 x", now).1.before, Some(999_993_600_000));
        assert_eq!(
            filter("\"kind\" of since: never", now),
            ("\"kind\" of since: never".into(), Filter::default())
        );
    }

    #[test]
    fn long_errors_are_searched_at_both_ends() {
        let text = format!("first{}last", "ü".repeat(3 * ERROR_END));
        let found = ends(&text);
        assert!(found.starts_with("first") && found.ends_with("last"));
        assert_eq!(found.chars().count(), 2 * ERROR_END + 3);
        assert_eq!(ends("short"), "short");
    }
}
