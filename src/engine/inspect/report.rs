//! The values shown on a session's page.

use std::collections::HashMap;

use crate::engine::input::measured::Measured;
use crate::engine::{Ask, Compacted, Engine, Opened, To, compact, input::measured, method_info};
use crate::report::{Fate, Page, Remains, ReportEntry, ReportFact, TimelineMark};
use history::error::Result;
use history::secrets;
use history::{History, Kind, Message, Part, Role};
use score::{self, Class};
use tokens::TokenCounter;

/// Characters shown of each part; after as many in total, the message's other parts are left out.
const LONG: usize = 4_000;

/// A session's page: its context now, and what a compaction would make of it. Nothing is changed.
///
/// # Errors
///
/// As for [`compact`](crate::engine::compact) with [`To::Plan`].
pub fn report(engine: &Engine, opened: &Opened, ask: &Ask) -> Result<Page> {
    let compacted = compact::compact(engine, opened, &Ask { to: To::Plan, ..ask.clone() })?;
    let measured = measured::measure(engine, &opened.session, ask);
    let history = measured.history;
    let after = compacted.history().map_or(&[][..], History::messages);
    let stays: HashMap<u32, &Message> = after.iter().filter_map(|it| Some((it.from?, it))).collect();
    let fates: Vec<Fate> = history
        .messages()
        .iter()
        .enumerate()
        .map(|(at, message)| match stays.get(&(at as u32)) {
            Some(it) if it.parts == message.parts => Fate::Kept,
            Some(_) => Fate::Cleared,
            None => Fate::Summarized,
        })
        .collect();
    let calls = history.messages().iter().flat_map(Message::calls);
    let tools = calls.map(|it| (&*it.id, &*it.name)).collect();
    let entry = |(message, fate): (&Message, Fate)| entry(&measured.counter, &tools, message, fate);
    let before = history.messages().iter().zip(fates.iter().copied()).map(entry).collect();
    let after = after
        .iter()
        .map(|it| {
            let fate = it.from.and_then(|at| fates.get(at as usize)).copied().unwrap_or(Fate::Kept);
            entry((it, fate))
        })
        .collect();
    let mut marks: Vec<TimelineMark> = opened.session.past.iter().map(mark).collect();
    marks.extend(prunes(history));
    let method = method_info(&measured.counter);
    Ok(Page {
        title: title(opened),
        about: about(opened, &measured)
            .into_iter()
            .chain(compacted.accepted().and_then(|it| Some(it.next_cost.as_ref()?.why.clone())))
            .collect(),
        profile: ask.profile.name.clone(),
        window: measured.limits.window,
        overhead: measured.counter.overhead(),
        counted: format!("Tokens: {} ({}, ±{:.0} %).", method.kind, method.estimator, method.margin_percent),
        marks,
        before,
        after,
        kept: compacted.score().and_then(|it| it.kept),
        facts: facts(history, &compacted),
        reason: compacted.answer().reason,
    })
}

fn title(opened: &Opened) -> String {
    let first = opened.session.history.messages().iter().find(|it| it.is_prompt());
    let words = first.map(|it| crate::engine::words(&secrets::mask(&it.plain()), 72)).unwrap_or_default();
    if words.is_empty() { opened.source.name().to_owned() } else { words }
}

fn about(opened: &Opened, measured: &Measured<'_>) -> Vec<String> {
    let meta = &measured.history.meta;
    let mut out = vec![opened.session.format.name().to_owned()];
    out.extend(meta.model.as_deref().map(str::to_owned));
    out.extend(meta.session.as_deref().map(str::to_owned));
    if let Some((first, last)) = meta.times {
        let day = |at: i64| sessions::derive::time(at).get(..16).map(|it| it.replace('T', " "));
        if let (Some(first), Some(last)) = (day(first), day(last)) {
            out.push(format!("{first} to {last}"));
        }
    }
    out
}

fn mark(it: &sessions::PastCompaction) -> TimelineMark {
    let size = |tokens: u64| format!("{}k", (tokens + 500) / 1_000);
    let what = match (it.tokens_before, it.tokens_after) {
        (Some(before), Some(after)) => format!("compacted {} → {}", size(before), size(after)),
        (Some(before), None) => format!("compacted from {}", size(before)),
        (None, _) => "compacted".to_owned(),
    };
    let message = it.message.unwrap_or(0);
    // Only the compaction that the live history begins with: the agent's summary is among its first messages.
    let past = it.tokens_before.filter(|_| message < 4).map(|before| (before, it.tokens_after));
    TimelineMark { message, what, past }
}

/// One mark for each stretch of messages with cleared outputs, at its first message.
fn prunes(history: &History) -> Vec<TimelineMark> {
    /// Maximum distance, in messages, between cleared outputs of one stretch.
    const GAP: usize = 12;
    let cleared = |it: &Message| it.outputs().filter(|it| it.cleared).count();
    let mut stretches: Vec<(usize, usize, usize)> = Vec::new();
    for (at, message) in history.messages().iter().enumerate() {
        match (cleared(message), stretches.last_mut()) {
            (0, _) => {}
            (count, Some(last)) if at - last.1 <= GAP => (last.1, last.2) = (at, last.2 + count),
            (count, _) => stretches.push((at, at, count)),
        }
    }
    let mark = |(message, _, count): (usize, usize, usize)| {
        let what =
            if count == 1 { "an output cleared".to_owned() } else { format!("{count} outputs cleared") };
        TimelineMark { message, what, past: None }
    };
    stretches.into_iter().map(mark).collect()
}

fn entry(counter: &TokenCounter, tools: &HashMap<&str, &str>, message: &Message, fate: Fate) -> ReportEntry {
    let summary = message.kind == Kind::Summary;
    let (mut who, text) = said(message, tools);
    let text = if summary { message.plain() } else { text };
    let role = match (message.kind, message.role) {
        (Kind::Summary, _) => "summary",
        (Kind::Context, _) => "context",
        (Kind::Marker | Kind::Continue, _) => "client",
        (_, Role::System) => "system",
        (_, Role::User) => "user",
        (_, Role::Assistant) => "assistant",
        (_, Role::Tool) => "output",
    };
    who.dedup();
    who.truncate(3);
    let who = if who.is_empty() { role.to_owned() } else { format!("{role} · {}", who.join(", ")) };
    ReportEntry {
        number: message.from.map(|it| it as usize),
        who,
        tokens: counter.categories(std::slice::from_ref(message)),
        text: secrets::mask(&text).into_owned(),
        fate,
        summary,
    }
}

/// The tools that a message calls or has outputs of, and the beginnings of its parts.
fn said<'a>(message: &'a Message, tools: &HashMap<&str, &'a str>) -> (Vec<&'a str>, String) {
    let mut who: Vec<&str> = Vec::new();
    let mut text = String::new();
    for part in &message.parts {
        let piece = match part {
            Part::Text(it) => it.as_str(),
            Part::Reasoning(it) => it.text.as_str(),
            Part::Call(it) => {
                who.push(&it.name);
                it.input.as_str()
            }
            Part::Output(it) => {
                who.push(tools.get(&*it.id).copied().or(it.name.as_deref()).unwrap_or("tool"));
                it.text.as_str()
            }
            Part::Media(it) => &it.mime,
            Part::Opaque(it) => &it.kind,
        };
        if !piece.is_empty() && text.chars().count() < LONG {
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            text.extend(piece.chars().take(LONG));
        }
    }
    (who, text)
}

/// All facts of the history and what became of them.
fn facts(history: &History, compacted: &Compacted) -> Vec<ReportFact> {
    let Some(score) = compacted.score() else { return Vec::new() };
    let split = history.messages().len() - score.tail_messages;
    let lost: HashMap<(Class, &str), bool> =
        score.lost.iter().map(|it| ((it.class, it.text.as_str()), it.recoverable)).collect();
    let remains = |probe: &score::Probe| match lost.get(&(probe.class, probe.text().as_str())) {
        _ if probe.message() >= split => Remains::InTail,
        None => Remains::Kept,
        Some(true) => Remains::Recoverable,
        Some(false) => Remains::Lost,
    };
    score::probes(history)
        .iter()
        .map(|it| ReportFact {
            class: it.class,
            text: secrets::mask(&crate::engine::words(&it.text(), 240)).into_owned(),
            messages: it.messages.clone(),
            remains: remains(it),
        })
        .collect()
}
