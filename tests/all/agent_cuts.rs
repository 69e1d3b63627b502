//! Against the real agents: their sessions are cut just before each compaction of their own, planned by the newest
//! profile of that agent, and compared message by message with what the agent kept.
//!
//! Where a message differs, the event names why; an event without a cause counts against the agent.

use std::collections::BTreeMap;
use std::path::PathBuf;

use epitome::compaction::plan::{self, Cause, ModelLimits, Moment, Plan, PlanRequest, Segment};
use epitome::compaction::profile::Profile;
use epitome::history::{History, Kind, Message, Role};
use epitome::sessions::{self, MemorySource};
use epitome::tokens::{TokenCounter, Tokenizer};

use crate::corpus;

/// A compaction of an agent's own: the session before and after it.
struct Event {
    name: String,
    before: History,
    after: History,
    cause: Cause,
}

/// How the messages of an event compare.
#[derive(Default)]
struct Compared {
    same: usize,
    differ: Vec<String>,
}

fn files(folder: PathBuf) -> Vec<(String, String)> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut out = Vec::new();
    for path in entries.map(|it| it.unwrap().path()) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_file() && (name.ends_with(".jsonl") || name.ends_with(".json")) {
            out.push((name, String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned()));
        }
    }
    out.sort();
    out
}

fn history(name: &str, text: &str) -> Option<History> {
    sessions::read(&MemorySource::new(name, text), None).ok().map(|it| it.history)
}

/// The compactions in a session of lines. `is` finds the line of one. `whole`: what was kept is only told by lines that
/// follow, so the session is read up to the next one.
fn in_lines(name: &str, text: &str, is: impl Fn(&str) -> Option<Cause>, whole: bool) -> Vec<Event> {
    let lines: Vec<&str> = text.lines().collect();
    let mut out = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let Some(cause) = is(line) else { continue };
        let until = |to: usize| history(name, &(lines[..to.min(lines.len())].join("\n") + "\n"));
        let next = lines.iter().skip(number + 1).position(|it| is(it).is_some());
        let end = match (whole, next) {
            (false, _) => number + 1,
            (true, Some(next)) => number + 1 + next,
            (true, None) => lines.len(),
        };
        if let (Some(before), Some(after)) = (until(number), until(end)) {
            out.push(Event { name: format!("{name}:{}", number + 1), before, after, cause });
        }
    }
    out
}

fn claude(name: &str, text: &str) -> Vec<Event> {
    let cause = |line: &str| if line.contains(r#""trigger":"manual""#) { Cause::Manual } else { Cause::Auto };
    in_lines(name, text, |it| it.contains(r#""subtype":"compact_boundary""#).then(|| cause(it)), true)
}

fn codex(name: &str, text: &str) -> Vec<Event> {
    in_lines(name, text, |it| it.contains(r#""type":"compacted""#).then_some(Cause::Auto), false)
}

fn gemini(name: &str, text: &str) -> Vec<Event> {
    let found = in_lines(
        name,
        text,
        |it| (it.starts_with(r#"{"$set""#) && it.contains("<state_snapshot>")).then_some(Cause::Auto),
        false,
    );
    // A resume writes the whole history anew: a snapshot that was there before is no new compression.
    let mut seen = Vec::new();
    let mut is_new = |it: &Event| {
        let summary = it.after.messages().iter().find(|it| it.kind == Kind::Summary).map(Message::plain);
        let new = summary.is_some() && !seen.contains(&summary);
        seen.push(summary);
        new
    };
    found.into_iter().filter(|it| is_new(it)).collect()
}

fn opencode(name: &str, text: &str) -> Vec<Event> {
    let session: serde_json::Value = serde_json::from_str(text).unwrap();
    let messages = session["messages"].as_array().cloned().unwrap_or_default();
    let is_mark = |it: &serde_json::Value| {
        it["parts"].as_array().is_some_and(|it| it.iter().any(|it| it["type"] == "compaction"))
    };
    let mut out = Vec::new();
    for (number, message) in messages.iter().enumerate() {
        if !is_mark(message) {
            continue;
        }
        let until = |to: usize| {
            let mut session = session.clone();
            session["messages"] = messages[..to.min(messages.len())].into();
            history(name, &session.to_string())
        };
        let auto = message["parts"][0]["auto"] == true;
        let cause = if auto { Cause::Auto } else { Cause::Manual };
        if let (Some(before), Some(after)) = (until(number), until(number + 2)) {
            out.push(Event { name: format!("{name}:{}", number + 1), before, after, cause });
        }
    }
    out
}

fn planned(profile: &Profile, event: &Event) -> Plan {
    let counter = TokenCounter::new(&event.before, Tokenizer::Auto, None);
    let model = event.before.meta.model.as_deref();
    let known = model.and_then(epitome::tokens::window);
    let limits = ModelLimits {
        model,
        window: event.before.meta.window.filter(|it| *it > 0).or(known.map(|it| it.context)),
        window_given: event.before.meta.window.is_some(),
        input: known.and_then(|it| it.input),
        output: known.map(|it| it.output),
        next: None,
    };
    let request = PlanRequest { limits, ..PlanRequest::new(profile, &|_| "0000000000".to_owned()) };
    plan::plan(&event.before, &counter, &request, &Moment { cause: event.cause, ..Moment::default() })
}

/// What a message says: role and texts, calls and outputs.
fn says(message: &Message) -> String {
    let calls = message.calls().map(|it| format!("call {} {}", it.id, it.input.as_str()));
    let outputs = message.outputs().map(|it| format!("output {} {}", it.id, it.text.as_str()));
    let all: Vec<String> =
        calls.chain(outputs).chain(message.texts().map(|it| it.as_str().to_owned())).collect();
    format!("{:?} {}", message.role, all.join("|"))
}

/// Message by message: kept or dropped, by the agent and by the plan. Messages of context are the client's own to put
/// in anew, and what no text tells apart (reasoning that is encrypted) goes with what stands next to it.
fn compared(event: &Event, plan: &Plan) -> Compared {
    let mut there: BTreeMap<String, usize> = BTreeMap::new();
    for message in event.after.messages() {
        *there.entry(says(message)).or_default() += 1;
    }
    let mut out = Compared::default();
    // From the newest: where the same was said twice, it is the newest that stays.
    for (number, message) in event.before.messages().iter().enumerate().rev() {
        let empty = message.parts.iter().all(|it| matches!(it, epitome::history::Part::Reasoning(_)));
        // An earlier summary gives way to the new one.
        if message.role == Role::System || matches!(message.kind, Kind::Context | Kind::Summary) || empty {
            continue;
        }
        let left = there.get_mut(&says(message)).filter(|it| **it > 0);
        let kept = left.map(|it| *it -= 1).is_some();
        let ours = plan.layout.contains(&Segment::Old(number));
        if kept == ours {
            out.same += 1;
        } else {
            let who = if kept { "only the agent keeps" } else { "only we keep" };
            let words: String = says(message).chars().take(90).collect();
            out.differ.push(format!("{who} #{number} {words:?}"));
        }
    }
    out
}

/// Why an event differs, where it does: name, and what the reason is.
const CAUSES: [(&str, &str); 3] = [
    (
        "claude/own-compaction-then-resumed.jsonl",
        "2.1.328 also keeps the last messages, by a rule that is not published (`preservedMessages`)",
    ),
    (
        "codex/agent-sessions--small.jsonl",
        "cut down for a test: most texts read the same, histories of several sessions are put together",
    ),
    ("claude-code/agent-sessions--small.jsonl", "cut down for a test: ids of what it kept are gone"),
];

#[test]
fn agrees_with_the_agents_own_compactions() {
    let (corpus, samples) = (corpus::corpus(), corpus::samples());
    if !corpus.is_dir() || !samples.is_dir() {
        eprintln!(
            "SKIPPED: agrees_with_the_agents_own_compactions: no corpus or samples (set EPITOME_CORPUS, EPITOME_CLIENTS)"
        );
        return;
    }
    type Find = fn(&str, &str) -> Vec<Event>;
    let agents: [(&str, &str, &str, Find, usize, usize); 4] = [
        ("claude-code", "claude-code", "claude", claude, 16, 1),
        ("codex@0.169", "codex", "codex", codex, 17, 1),
        ("gemini-cli@0.61", "gemini", "gemini", gemini, 0, 1),
        ("opencode@1.18", "opencode", "opencode", opencode, 0, 1),
    ];
    let mut failures = Vec::new();
    for (profile, in_corpus, in_samples, find, events_corpus, events_samples) in agents {
        let profile = epitome::profiles::built_in(profile).unwrap();
        let (mut same, mut all, mut explained) = (0, 0, 0);
        let mut counts = [0, 0];
        let sources = [
            (files(corpus.join(in_corpus)), in_corpus),
            (
                files(samples.join(in_samples))
                    .into_iter()
                    .filter(|it| it.0.starts_with("own-compaction"))
                    .collect(),
                in_samples,
            ),
        ];
        for (number, (files, folder)) in sources.into_iter().enumerate() {
            for (name, text) in files {
                for event in find(&format!("{folder}/{name}"), &text) {
                    counts[number] += 1;
                    let plan = planned(&profile, &event);
                    let found = compared(&event, &plan);
                    let (agreed, differ) = (found.same, found.differ.len());
                    println!("{:<16} {:<55} {agreed:>4} same {differ:>3} differ", profile.name, event.name);
                    for it in found.differ.iter().take(4) {
                        println!("    {it}");
                    }
                    let cause = CAUSES.iter().find(|(it, _)| event.name.starts_with(it));
                    match cause {
                        Some((_, why)) if differ > 0 => {
                            explained += differ;
                            println!("    cause: {why}");
                            same += agreed;
                            all += agreed;
                        }
                        Some(_) | None => {
                            same += agreed;
                            all += agreed + differ;
                        }
                    }
                    if !plan.act && cause.is_none() {
                        failures.push(format!("{}: nothing is done: {}", event.name, plan.reason.text));
                    }
                }
            }
        }
        let share = if all == 0 { 1.0 } else { same as f64 / all as f64 };
        println!(
            "{}: {} events in the corpus, {} in the samples; {:.1} % of {all} messages agree, {explained} differ for a named cause",
            profile.name,
            counts[0],
            counts[1],
            share * 100.0
        );
        if counts != [events_corpus, events_samples] {
            failures.push(format!(
                "{}: expected {events_corpus} and {events_samples} events, found {counts:?}",
                profile.name
            ));
        }
        if share < 0.95 {
            failures.push(format!("{}: {:.1} % agree", profile.name, share * 100.0));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The clearings of outputs of its own that the corpus holds: which results went.
#[test]
fn clears_what_the_agent_cleared() {
    let Some(corpus) = corpus::corpus_for("clears_what_the_agent_cleared") else { return };
    const PLACEHOLDER: &str = "[Old tool result content cleared]";
    let profile = epitome::profiles::built_in("claude-code").unwrap();
    let mut found = 0;
    for (name, text) in files(corpus.join("claude-code")) {
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            if !line.contains(r#""subtype":"microcompact_boundary""#) {
                continue;
            }
            found += 1;
            let said: serde_json::Value = serde_json::from_str(line).unwrap();
            let mut expected: Vec<String> =
                serde_json::from_value(said["microcompactMetadata"]["compactedToolIds"].clone()).unwrap();
            let before = history(&name, &(lines[..number].join("\n") + "\n")).unwrap();
            // What is shorter than the placeholder would grow; the agent clears it too, we leave it.
            let output =
                |id: &str| before.messages().iter().flat_map(Message::outputs).find(|it| &*it.id == id);
            expected.retain(|id| output(id).is_some_and(|it| it.text.as_str().len() > PLACEHOLDER.len()));
            let counter = TokenCounter::new(&before, Tokenizer::Auto, None);
            let request =
                PlanRequest { prune_only: true, ..PlanRequest::new(&profile, &|_| "0000000000".to_owned()) };
            let plan = plan::plan(&before, &counter, &request, &Moment::default());
            let mut cleared: Vec<String> = plan
                .ops
                .iter()
                .filter_map(|it| if let plan::Op::Clear(it) = it { Some(it.call_id.clone()) } else { None })
                .collect();
            expected.sort();
            cleared.sort();
            assert_eq!(cleared, expected, "{name}:{}", number + 1);
        }
    }
    assert_eq!(found, 3);
}
