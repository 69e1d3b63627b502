//! A call becomes a question to the engine, its answer becomes what the model sees.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::answer::{Answer, shown, value, warn, warn_of_ignored};
use super::arguments::{Arguments, of};
use super::desk::{Caller, Desk};
use super::fit::{self, ANSWER, PLAN, WRITTEN};
use super::{recall, remedy, splice, tools, ways};
use crate::agents::reach::Job;
use crate::answers::{CONTRACT, Next, Status};
use crate::config::Choice;
use crate::engine::{Amount, Ask, Engine, MinKept, Opened, To};
use crate::llm::run::{Sampling, Watch};
use compaction::plan::Cause;
use compaction::profile::Style;
use history::error::{Error, Kind, Result};
use history::{History, Meta, Text};
use sessions::Format;
use tokens::{Estimator, TokenCounter, Tokenizer};

/// Calls a tool. An error is for the model: it can mend its arguments. `waiting`: whoever waits for it, who may call it
/// off while a model writes.
pub(super) fn call(
    desk: &Desk,
    caller: &Caller,
    tool: &str,
    arguments: &Arguments,
    waiting: &Waiting,
) -> Result<Answer> {
    let ignored = arguments.ignored(tools::known(tool));
    let to = if tools::writes(tool) { arguments.text("to")? } else { None };
    if matches!(to.as_deref(), Some("session" | "file")) && !ignored.is_empty() {
        // What was not understood may have said which session, or that nothing be written.
        let what = format!(
            "arguments: expected those of {tool} ({}), since this call writes, found {}; nothing was done",
            tools::known(tool).join(", "),
            shown(&ignored)
        );
        return Err(Error::new(Kind::Arguments, what));
    }
    match tool {
        "estimate_tokens" => estimate(desk, caller, arguments),
        "find_split_point" => split(desk, caller, arguments),
        "prune_tool_outputs" => prune(desk, caller, arguments),
        "summarize_history" => summarize(desk, caller, arguments, waiting),
        "recall" => recall::call(desk, caller, arguments),
        other => Err(Error::new(Kind::Arguments, format!("expected a tool of this server, found {other:?}"))),
    }
}

/// Whoever waits for an answer.
#[derive(Clone, Default)]
pub(super) struct Waiting {
    /// Hears what a model does, and may call it off.
    pub(super) watch: Watch,
    /// Its own model, where it offers it.
    pub(super) sampling: Option<Sampling>,
}

/// Answers a call that is so small that handing it to another thread would take longer than doing it: an estimate of a
/// short text. `None` for every other.
pub(super) fn quick(desk: &Desk, tool: &str, arguments: &Arguments) -> Option<Result<Answer>> {
    let short = arguments.0.get("text").is_some_and(|it| it.get().len() < 4096);
    let given = || ["session", "messages"].iter().any(|it| arguments.has(it));
    if tool != "estimate_tokens" || !short || given() {
        return None;
    }
    // What is no text, or an empty one, means the session.
    let text = arguments.text("text").ok()??;
    Some(detailed(arguments).and_then(|_| text_alone(desk, arguments, &text)))
}

fn estimate(desk: &Desk, caller: &Caller, arguments: &Arguments) -> Result<Answer> {
    let detailed = detailed(arguments)?;
    let given = arguments.text("session")?.is_some() || arguments.messages("messages")?.is_some();
    if let (Some(text), false) = (arguments.text("text")?, given) {
        return text_alone(desk, arguments, &text);
    }
    let engine = desk.engine(caller)?;
    let ask = ask(desk, arguments)?;
    let opened = desk.open_measured(&engine, arguments, ask.tokenizer)?;
    let answer = value(&engine.estimate(&opened, &ask, None)?)?;
    let mut out = fit::pick(
        &answer,
        &[
            "contract",
            "session",
            "tokens",
            "overhead",
            "context",
            "window",
            "usable",
            "used_percent",
            "method",
            "by_category",
            "counts",
            "reported",
            "advice",
            "cost",
            "largest",
            "triggers",
            "compactions",
            "warnings",
        ],
    );
    warn_of_ignored(&mut out, "estimate_tokens", arguments);
    if !detailed {
        fit::first(&mut out, "largest", 3);
        fit::first(&mut out, "compactions", 1);
        fit::first(&mut out, "warnings", 2);
        out.remove("triggers");
    }
    if answer["advice"]["level"] != "room" {
        let next = advised(desk, &engine, &opened);
        out.insert("next".to_owned(), json!(next));
    }
    fit::fit(&mut out, ANSWER, &["largest", "compactions", "warnings"], &[], "");
    Ok(out)
}

/// What to call when the context gets full.
fn advised(desk: &Desk, engine: &Engine, opened: &Opened) -> Next {
    let same = "with the same `messages`";
    let session = r#"with "to": "session""#;
    let how = |job| match desk.remote.is_none() && ways::back(engine, opened, job) {
        true => session,
        false if opened.path.is_none() => same,
        false => r#"with "to": "file""#,
    };
    let what = format!(
        "call prune_tool_outputs {} to clear old outputs, or summarize_history {} to compact",
        how(Job::Prune),
        how(Job::Compact)
    );
    Next { who: "model".to_owned(), what }
}

fn detailed(arguments: &Arguments) -> Result<bool> {
    match arguments.text("detail")?.as_deref() {
        None | Some("concise") => Ok(false),
        Some("detailed") => Ok(true),
        Some(other) => {
            Err(Error::new(Kind::Arguments, format!("detail: expected concise or detailed, found {other:?}")))
        }
    }
}

fn text_alone(desk: &Desk, arguments: &Arguments, text: &str) -> Result<Answer> {
    let model = arguments.text("model")?.map(Into::into);
    let nothing = History::new(Vec::new(), Meta { model, ..Meta::default() });
    let counter = TokenCounter::new(&nothing, tokenizer(desk, arguments)?, None);
    let tokens = counter.text(&Text::new(text));
    let method = counter.method();
    let mut out = Answer::new();
    out.insert("contract".to_owned(), json!(CONTRACT));
    out.insert("tokens".to_owned(), json!(tokens));
    out.insert(
        "method".to_owned(),
        json!({"kind": method.kind.name(), "estimator": method.estimator.name(), "margin_percent": method.margin_percent}),
    );
    warn_of_ignored(&mut out, "estimate_tokens", arguments);
    Ok(out)
}

fn split(desk: &Desk, caller: &Caller, arguments: &Arguments) -> Result<Answer> {
    let engine = desk.engine(caller)?;
    let opened = desk.open(&engine, arguments)?;
    let answer = value(&engine.split(&opened, &ask(desk, arguments)?)?)?;
    let mut out = fit::pick(
        &answer,
        &[
            "contract",
            "session",
            "profile",
            "split",
            "split_id",
            "compacted",
            "kept",
            "boundary",
            "reason_code",
            "reason",
            "ranges",
            "alternatives",
        ],
    );
    out.entry("reason").or_insert(json!(""));
    warn(&mut out, meant(arguments, &["keep"]));
    warn_of_ignored(&mut out, "find_split_point", arguments);
    fit::first(&mut out, "ranges", 20);
    fit::first(&mut out, "alternatives", 5);
    fit::fit(&mut out, PLAN, &["ranges", "alternatives"], &[], "");
    Ok(out)
}

/// Where a result goes, in the words of the tools.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goal {
    Plan,
    File,
    Session,
    /// The last write taken back, or the one of `handle`.
    Undo,
}

fn goal(desk: &Desk, arguments: &Arguments) -> Result<Goal> {
    let goal = match arguments.text("to")?.as_deref() {
        None | Some("plan") => Goal::Plan,
        Some("file") => Goal::File,
        Some("session") => Goal::Session,
        Some("undo") => Goal::Undo,
        Some(other) => {
            return Err(Error::new(
                Kind::Arguments,
                format!("to: expected plan, file, session or undo, found {other:?}"),
            ));
        }
    };
    if goal != Goal::Plan && desk.remote.is_some() {
        let what = "to: this server runs apart from your agent: it writes no files and no sessions for you. Leave `to` out \
                    and splice `replace` or the `pruned` texts into your messages";
        return Err(Error::new(Kind::Refused, what));
    }
    Ok(goal)
}

/// What a plan costs and where it goes: inline messages are handed back, sessions are planned or written to a file.
/// `edits`: what of the answer is spliced into messages.
fn target(desk: &Desk, opened: &Opened, goal: Goal, edits: &str) -> Result<To> {
    let format = opened.session.format;
    match goal {
        Goal::Plan if opened.path.is_none() => Ok(To::Bytes),
        Goal::Plan => Ok(To::Plan),
        Goal::Session if opened.path.is_none() => {
            let what = format!(
                "to: expected a session that an agent keeps, found messages; leave `to` out and splice `{edits}`, or pass \
                 \"file\""
            );
            Err(Error::new(Kind::Arguments, what))
        }
        Goal::Session if ways::agent_of(format).is_none() => {
            let what = format!(
                "to: expected a session that is written back to (claude-code, codex, gemini-cli, opencode), found {}; pass \
                 \"file\" for a copy",
                format.name()
            );
            Err(Error::new(Kind::Arguments, what))
        }
        Goal::Session => Ok(To::Session),
        Goal::Undo => Err(Error::new(Kind::Arguments, "to: summarize_history takes undo, also of a prune")),
        Goal::File => {
            let id = opened.session.history.meta.session.as_deref().unwrap_or("messages");
            let lines = opened.path.as_ref().is_some_and(|it| it.extension().is_some_and(|it| it == "jsonl"));
            let lines = lines && !format.is_read_only();
            Ok(To::File(desk.result_file(id, if lines { "jsonl" } else { "json" })?))
        }
    }
}

/// What is only read is written as messages of the API that its agent speaks; `None` for what is written as it is.
fn messages_as(opened: &Opened) -> Option<Format> {
    let format = opened.session.format;
    format.is_read_only().then(|| format.api())
}

/// Says in which format a file is, where that is not the session's.
fn warn_of_format(out: &mut Answer, opened: &Opened, to: &To) {
    if let (Some(api), To::File(_)) = (messages_as(opened), to) {
        let format = opened.session.format.name();
        warn(out, [format!("{format} sessions are only read: the file holds messages of {}", api.name())]);
    }
}

/// The call that a plan leads to: the same one with the `to` that works for this session.
fn carried_out(desk: &Desk, engine: &Engine, opened: &Opened, tool: &str, job: Job) -> Next {
    if desk.remote.is_some() {
        // No `to` but `plan` is taken from elsewhere.
        return Next { who: "nobody".to_owned(), what: String::new() };
    }
    let (to, why) = match ways::back(engine, opened, job) {
        true => ("session", "to write it back, or \"file\" to write a copy"),
        false => ("file", "to write a copy; the session itself cannot be written to"),
    };
    Next { who: "model".to_owned(), what: format!("call {tool} again with \"to\": \"{to}\" {why}") }
}

/// The tools' names as the history has them, however the caller writes them; and what is said of those it has not.
fn tools_of(opened: &Opened, names: &[String]) -> (Vec<String>, Option<String>) {
    let messages = opened.session.history.messages();
    let called = messages.iter().flat_map(|it| it.calls()).map(|it| &*it.name);
    let answered = messages.iter().flat_map(|it| it.outputs()).filter_map(|it| it.name.as_deref());
    let all: BTreeSet<&str> = called.chain(answered).collect();
    let is_one = |name: &&String| all.iter().any(|it| it.eq_ignore_ascii_case(name));
    let unknown: Vec<&str> = names.iter().filter(|it| !is_one(it)).map(String::as_str).collect();
    let warning = (!unknown.is_empty()).then(|| {
        let all: Vec<&str> = all.iter().copied().collect();
        format!(
            "exclude_tools: no tool of this history is called {}; its tools: {}",
            shown(&unknown),
            shown(&all)
        )
    });
    let is_meant = |it: &&&str| names.iter().any(|name| name.eq_ignore_ascii_case(it));
    (all.iter().filter(is_meant).map(|it| (*it).to_owned()).collect(), warning)
}

fn prune(desk: &Desk, caller: &Caller, arguments: &Arguments) -> Result<Answer> {
    let goal = goal(desk, arguments)?;
    let mut ask = ask(desk, arguments)?;
    ask.protect = arguments.number("protect_tokens")?;
    let exclude_tools = arguments.texts("exclude_tools", true)?;
    ask.only = arguments.texts("only", true)?;
    ask.auto = arguments.flag("auto")?;
    if ask.auto {
        ask.cause = Cause::Auto;
    }
    let engine = desk.engine(caller)?;
    let opened = desk.open(&engine, arguments)?;
    ask.to = target(desk, &opened, goal, "pruned")?;
    ask.messages_as = messages_as(&opened);
    let (exclude_tools, unknown) = tools_of(&opened, &exclude_tools);
    ask.exclude_tools = exclude_tools;
    let mut answer = engine.prune(&opened, &ask)?;
    if answer.status == Status::Planned && ask.to == To::Plan {
        answer.next = carried_out(desk, &engine, &opened, "prune_tool_outputs", Job::Prune);
    }
    answer.reason = remedy::in_tools_words(&answer.reason);
    let inline = ask.to == To::Bytes;
    let mut out = fit::pick(
        &value(&answer)?,
        &[
            "contract",
            "status",
            "session",
            "profile",
            "tokens_before",
            "tokens_after",
            "reason_code",
            "reason",
            "first_changed",
            "prefix_tokens",
            "handle",
            "output",
            "session_id",
            "resume",
            "takes_effect",
            "next",
            "pruned",
            "warnings",
        ],
    );
    drop_nobody(&mut out);
    add_undo(&mut out, answer.takes_effect.as_deref(), answer.handle.as_deref());
    warn_of_format(&mut out, &opened, &ask.to);
    warn(&mut out, unknown);
    warn_of_ignored(&mut out, "prune_tool_outputs", arguments);
    if !inline && let Some(Value::Array(pruned)) = out.get_mut("pruned") {
        // Who only plans wants to know how much it is; what stands there afterwards is of use to who splices.
        for it in &mut *pruned {
            *it = Value::Object(fit::pick(
                it,
                &["message", "call_id", "tool", "tokens_before", "tokens_after"],
            ));
        }
        pruned.sort_by_key(|it| std::cmp::Reverse(it["tokens_before"].as_u64()));
    }
    let limit = if inline {
        ANSWER
    } else if answer.output.is_some() {
        fit::first(&mut out, "pruned", 3);
        WRITTEN
    } else {
        PLAN
    };
    fit::fit(&mut out, limit, &["pruned", "warnings"], &[], "");
    Ok(out)
}

/// What is told of an undo.
const UNDONE: [&str; 9] =
    ["contract", "handle", "status", "session_id", "output", "later_messages", "resume", "next", "warnings"];

/// The call that takes back what was written.
fn add_undo(out: &mut Answer, takes_effect: Option<&str>, handle: Option<&str>) {
    if let (Some(_), Some(handle)) = (takes_effect, handle) {
        let call = json!({"to": "undo", "handle": handle});
        out.insert("undo".to_owned(), json!(format!("summarize_history {call}")));
    }
}

fn summarize(desk: &Desk, caller: &Caller, arguments: &Arguments, waiting: &Waiting) -> Result<Answer> {
    let goal = goal(desk, arguments)?;
    let mut ask = ask(desk, arguments)?;
    ask.budget = amount(arguments, "budget")?;
    ask.focus = arguments.text("focus")?;
    ask.style = style(arguments)?;
    ask.pins = arguments.texts("pin", false)?;
    ask.pins.extend(arguments.text("previous_summary")?);
    if let Some(text) = arguments.text("min_kept")? {
        ask.min_kept = MinKept::parse(&text).map_err(|error| of("min_kept", &error))?;
    }
    ask.auto = arguments.flag("auto")?;
    if ask.auto {
        ask.cause = Cause::Auto;
    }
    ask.watch = waiting.watch.clone();
    ask.sampling = waiting.sampling.clone();
    let engine = desk.engine(caller)?;
    let answer = (arguments.text("handle")?, arguments.text("answer")?);
    if goal == Goal::Undo {
        let undone = value(&engine.undo(answer.0.as_deref().unwrap_or("last"))?)?;
        let mut out = fit::pick(&undone, &UNDONE);
        fit::fit(&mut out, WRITTEN, &["warnings"], &[], "");
        return Ok(out);
    }
    if let (Some(handle), None) = &answer {
        // Not the session that calls: a handle says that another one is meant.
        engine.store.locate(handle, &caller.owner)?;
        let what = format!(
            "answer: expected with a handle the summary that was asked for, found none; to compact the history that {handle} \
             names, pass it as session"
        );
        return Err(Error::new(Kind::Arguments, what));
    }
    let (mut made, opened) = if let (Some(handle), Some(answer)) = &answer {
        // Where it goes was said in the first call, unless it is said again.
        let to = match goal {
            Goal::Plan | Goal::Undo => None,
            Goal::Session => Some(To::Session),
            Goal::File => Some(To::File(desk.result_file(handle, "json")?)),
        };
        engine.answered(handle, answer, to)?
    } else {
        if answer.1.is_some() {
            let what = "answer: expected the handle of an ask that waits for it, found none; call without handle and answer to \
                        have the summary written";
            return Err(Error::new(Kind::Arguments, what));
        }
        let summarizers = &engine.config.summarizers;
        ask.summarizer =
            match arguments.text("summarizer")? {
                Some(name) => summarizers.allowed(Choice::named(&name).map_err(|error| {
                    Error::new(Kind::Arguments, format!("summarizer: {}", error.detail()))
                })?)?,
                None => summarizers.default.clone(),
            };
        let opened = desk.open(&engine, arguments)?;
        ask.to = target(desk, &opened, goal, "replace")?;
        ask.messages_as = messages_as(&opened);
        (engine.compact(&opened, &ask)?, opened)
    };
    if let (Status::Noop, Some(focus), Goal::Plan) = (made.answer.status, &ask.focus, goal) {
        // Who hands off wants a brief, however little there is to compact.
        made.answer.summary = Some(engine.brief(&opened, focus)?);
        let what = "nothing is compacted; summary is a brief for a new session";
        made.answer.next = Next { who: "model".to_owned(), what: what.to_owned() };
    }
    if made.answer.status == Status::Planned && ask.to == To::Plan {
        let job = if made.answer.summary.is_none() { Job::Prune } else { Job::Compact };
        made.answer.next = carried_out(desk, &engine, &opened, "summarize_history", job);
    }
    made.answer.reason = remedy::in_tools_words(&made.answer.reason);
    if let ("empty", Some(Amount::Tokens(tokens))) = (made.answer.reason_code.as_str(), ask.budget) {
        let why = format!(
            "; a budget of {tokens} tokens leaves no room for one: name more, or a share such as \"20%\""
        );
        made.answer.reason.push_str(&why);
    }
    let mut out = fit::pick(
        &value(&made.answer)?,
        &[
            "contract",
            "status",
            "native_status",
            "session",
            "profile",
            "summarizer",
            "tokens_before",
            "tokens_after",
            "messages_before",
            "messages_after",
            "split",
            "reason_code",
            "reason",
            "facts",
            "facts_kept",
            "first_changed",
            "prefix_tokens",
            "handle",
            "ask",
            "output",
            "session_id",
            "resume",
            "takes_effect",
            "valid_for",
            "next",
            "usage",
            "summary",
            "pruned",
            "warnings",
        ],
    );
    drop_nobody(&mut out);
    add_undo(&mut out, made.answer.takes_effect.as_deref(), made.answer.handle.as_deref());
    if made.answer.usage.requests == 0 {
        out.remove("usage");
    }
    warn_of_format(&mut out, &opened, &ask.to);
    warn(&mut out, meant(arguments, &["budget", "keep"]));
    warn_of_ignored(&mut out, "summarize_history", arguments);
    if made.answer.ask.is_some() {
        fit::fit(&mut out, ANSWER, &["warnings"], &["ask"], "write from what you remember");
        return Ok(out);
    }
    if let Some(Value::Object(facts)) = out.get_mut("facts") {
        facts.retain(|_, it| it["found"].as_u64() != Some(0));
    }
    if let Some(Value::Array(pruned)) = out.get_mut("pruned") {
        for it in &mut *pruned {
            *it =
                Value::Object(fit::pick(it, &["message", "tool", "tokens_before", "tokens_after", "handle"]));
        }
        pruned.sort_by_key(|it| std::cmp::Reverse(it["tokens_before"].as_u64()));
        fit::first(&mut out, "pruned", 5);
    }
    if let Some(after) = &made.bytes {
        let before = opened.source.bytes(0..opened.source.len())?;
        add_replace(&mut out, splice::replace(&before, after));
        return Ok(out);
    }
    let limit = if made.answer.output.is_some() {
        for name in ["summary", "valid_for", "pruned", "native_status"] {
            out.remove(name);
        }
        // Of the facts, those that are not all there any more.
        if let Some(Value::Object(facts)) = out.get_mut("facts") {
            facts.retain(|_, it| it["kept"] != it["found"]);
        }
        if let Some(Value::Object(session)) = out.get_mut("session") {
            session.remove("path");
        }
        // A long path stands in the command: once is enough.
        if let Some(resume) = out.get("resume").and_then(Value::as_str).map(str::to_owned)
            && let Some(Value::String(what)) = out.get_mut("next").and_then(|it| it.get_mut("do"))
        {
            *what = what.replace(&resume, "the command in `resume`");
        }
        WRITTEN
    } else {
        PLAN
    };
    fit::fit(&mut out, limit, &["pruned", "warnings"], &["summary"], r#""to": "file" writes all of it"#);
    Ok(out)
}

/// The edit takes the summary's place: the summary is in it.
fn add_replace(out: &mut Answer, replace: Option<Value>) {
    let Some(replace) = replace else {
        return fit::fit(
            out,
            ANSWER,
            &["pruned", "warnings"],
            &["summary"],
            "the messages could not be spliced",
        );
    };
    let summary = out.remove("summary");
    let mut with = out.clone();
    with.insert("replace".to_owned(), replace);
    let mut probe = with.clone();
    fit::fit(&mut probe, ANSWER, &["pruned", "warnings"], &[], "");
    let size = serde_json::to_string(&probe).map_or(0, |it| Estimator::O200k.text(&it));
    if size <= ANSWER {
        *out = probe;
        return;
    }
    out.extend(summary.map(|it| ("summary".to_owned(), it)));
    let what = format!(
        "replace has {size} tokens, more than an answer may ({ANSWER}); a smaller budget or keep makes it fit, or \"to\": \
         \"file\" writes all messages to a file"
    );
    warn(out, [what]);
    fit::fit(out, ANSWER, &["pruned"], &["summary"], "see warnings");
}

/// `next` is left out where there is nothing to do.
fn drop_nobody(out: &mut Answer) {
    if out.get("next").is_some_and(|it| it["who"] == "nobody") {
        out.remove("next");
    }
}

/// What all tools share of a question.
fn ask(desk: &Desk, arguments: &Arguments) -> Result<Ask> {
    let name = arguments.text("profile")?.unwrap_or_else(|| desk.config.profile.clone());
    if desk.remote.is_some() && name.ends_with(".toml") {
        let what =
            "profile: expected the name of a profile, found a file; this server reads no files of yours";
        return Err(Error::new(Kind::Refused, what));
    }
    let mut ask = Ask::new(desk.config.profile(&name).map_err(|error| of("profile", &error))?);
    ask.model = arguments.text("model")?;
    ask.window = window(arguments)?;
    ask.tokenizer = tokenizer(desk, arguments)?;
    ask.keep = amount(arguments, "keep")?;
    Ok(ask)
}

/// The model's window, also as `200k`.
fn window(arguments: &Arguments) -> Result<Option<u64>> {
    match amount(arguments, "window")? {
        None => Ok(None),
        Some(Amount::Tokens(tokens)) => Ok(Some(tokens)),
        Some(Amount::Share(_)) => {
            Err(Error::new(Kind::Arguments, "window: expected tokens (200000, 200k), found a share"))
        }
    }
}

fn tokenizer(desk: &Desk, arguments: &Arguments) -> Result<Tokenizer> {
    let name = arguments.text("tokenizer")?;
    let name = name.as_deref().unwrap_or(&desk.config.tokenizer);
    Tokenizer::named(name).map_err(|error| of("tokenizer", &error))
}

/// Sizes of which it is doubtful that tokens were meant.
fn meant(arguments: &Arguments, names: &[&str]) -> Vec<String> {
    let doubtful = |name: &&str| match amount(arguments, name) {
        Ok(Some(Amount::Tokens(tokens @ 1..=100))) => {
            Some(format!("{name}: {tokens} means {tokens} tokens; a share is \"{tokens}%\""))
        }
        _ => None,
    };
    names.iter().filter_map(doubtful).collect()
}

fn amount(arguments: &Arguments, name: &str) -> Result<Option<Amount>> {
    let parse = |text: String| Amount::parse(&text).map_err(|error| of(name, &error));
    arguments.text(name)?.map(parse).transpose()
}

fn style(arguments: &Arguments) -> Result<Style> {
    match arguments.text("style")?.as_deref() {
        None => Ok(Style::default()),
        Some("brief") => Ok(Style::Brief),
        Some("detailed") => Ok(Style::Detailed),
        Some("technical") => Ok(Style::Technical),
        Some(other) => Err(Error::new(
            Kind::Arguments,
            format!("style: expected brief, detailed or technical, found {other:?}"),
        )),
    }
}
