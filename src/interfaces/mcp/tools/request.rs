//! Arguments that several tools share: options, and where the result goes.

use serde_json::json;

use super::answer::{Answer, warn};
use super::arguments::{Arguments, with_argument_name};
use crate::agents::{self, write_back::Operation};
use crate::answers::{Next, TakesEffect};
use crate::engine::{self, Amount, Ask, Counting, Engine, Opened, To};
use crate::interfaces::mcp::server_state::ServerState;
use crate::interfaces::mcp::tools;
use crate::llm::run::{Sampling, Watch};
use history::error::{Error, ErrorKind, Result};
use sessions::Format;

/// What the client offers while it waits for a call.
#[derive(Clone, Default)]
pub(crate) struct CallContext {
    pub(crate) watch: Watch,
    /// Access to its own model, if it supports sampling.
    pub(crate) sampling: Option<Sampling>,
}

/// The argument `to`: where a result goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    Plan,
    File,
    Session,
    /// Undoes the last write, or the one of `handle`.
    Undo,
}

pub(crate) fn goal(state: &ServerState, arguments: &Arguments) -> Result<Goal> {
    let goal = match arguments.text("to")?.as_deref() {
        None | Some("plan") => Goal::Plan,
        Some("file") => Goal::File,
        Some("session") => Goal::Session,
        Some("undo") => Goal::Undo,
        Some(other) => {
            let what = format!("expected plan, file, session or undo, found {other:?}");
            return Err(Error::of_argument("to", what));
        }
    };
    if goal != Goal::Plan && state.remote.is_some() {
        let what = "to: this server runs remotely and cannot write your files or sessions. Leave `to` out and splice \
                    `replace` or the `pruned` texts into your messages";
        return Err(Error::new(ErrorKind::Refused, what));
    }
    Ok(goal)
}

/// Where the result goes: inline messages are returned, a session is planned, or written if `goal` says so.
/// `edits`: the field of the answer that the caller would splice into its messages, for an error.
pub(crate) fn target(state: &ServerState, opened: &Opened, goal: Goal, edits: &str) -> Result<To> {
    let format = opened.session.format;
    match goal {
        Goal::Plan if opened.path.is_none() => Ok(To::Bytes),
        Goal::Plan => Ok(To::Plan),
        Goal::Session if opened.path.is_none() => {
            let what = format!(
                "expected an agent's session, found messages; leave `to` out and splice `{edits}`, or pass \
                 \"file\""
            );
            Err(Error::of_argument("to", what))
        }
        Goal::Session if agents::of_format(format).is_none() => {
            let what = format!(
                "expected a session that can be written to (claude-code, codex, gemini-cli, opencode), found {}; pass \
                 \"file\" for a copy",
                format.name()
            );
            Err(Error::of_argument("to", what))
        }
        Goal::Session => Ok(To::Session),
        Goal::Undo => Err(Error::of_argument(
            "to",
            "expected plan, file or session, found undo; summarize_history \
                                                    takes undo, also of a prune",
        )),
        Goal::File => {
            let id = opened.session.history.meta.session.as_deref().unwrap_or("messages");
            let lines = opened.path.as_ref().is_some_and(|it| it.extension().is_some_and(|it| it == "jsonl"));
            let lines = lines && !format.is_read_only();
            Ok(To::File(state.result_file(id, if lines { "jsonl" } else { "json" })?))
        }
    }
}

/// A session of a read-only format is written as messages of its agent's API; `None` for other formats.
pub(crate) fn messages_as(opened: &Opened) -> Option<Format> {
    let format = opened.session.format;
    format.is_read_only().then(|| format.api())
}

/// Warns that a written file has another format than the session.
pub(crate) fn warn_of_format(out: &mut Answer, opened: &Opened) {
    if let Some(api) = messages_as(opened) {
        let format = opened.session.format.name();
        warn(out, [format!("{format} sessions are read-only: the file contains {} messages", api.name())]);
    }
}

/// The next call after a plan: the same one with a `to` that works for this session.
pub(crate) fn next_call(
    state: &ServerState,
    engine: &Engine,
    opened: &Opened,
    tool: &str,
    job: Operation,
) -> Next {
    if state.remote.is_some() {
        // A remote caller may only plan.
        return Next::default();
    }
    let (to, why) = match engine::can_write_back(engine, opened, job) {
        true => ("session", "to write it back, or \"file\" to write a copy"),
        false => ("file", "to write a copy; the session itself cannot be written to"),
    };
    Next::model(format!("call {tool} again with \"to\": \"{to}\" {why}"))
}

/// Adds the call that undoes what was written.
pub(crate) fn add_undo(out: &mut Answer, takes_effect: Option<TakesEffect>, handle: Option<&str>) {
    if let (Some(_), Some(handle)) = (takes_effect, handle) {
        let call = json!({"to": "undo", "handle": handle});
        out.insert("undo".to_owned(), json!(format!("summarize_history {call}")));
    }
}

/// The [`Ask`] that a tool's arguments describe.
pub(crate) fn ask(state: &ServerState, tool: &str, arguments: &Arguments) -> Result<Ask> {
    let name = arguments.text("profile")?.unwrap_or_else(|| state.config.profile.clone());
    if state.remote.is_some() && name.ends_with(".toml") {
        let what =
            "profile: expected the name of a profile, found a file; this server reads no files of yours";
        return Err(Error::new(ErrorKind::Refused, what));
    }
    let profile = state.config.profile(&name).map_err(|error| with_argument_name("profile", &error))?;
    let known = tools::known_arguments(tool);
    let (options, prune) = (arguments.options(known)?, arguments.options(known)?);
    Ok(Ask { counting: counting(state, tool, arguments)?, options, prune, ..Ask::new(profile) })
}

/// How to count tokens, from a tool's arguments and the configuration.
pub(crate) fn counting(state: &ServerState, tool: &str, arguments: &Arguments) -> Result<Counting> {
    let mut counting: Counting = arguments.options(tools::known_arguments(tool))?;
    counting.tokenizer.get_or_insert(state.config.tokenizer);
    Ok(counting)
}

/// Warnings about sizes of at most 100 tokens, which were probably meant as percentages.
pub(crate) fn doubtful_sizes(sizes: &[(&str, Option<Amount>)]) -> Vec<String> {
    let doubtful = |(name, size): &(&str, Option<Amount>)| match size {
        Some(Amount::Tokens(tokens @ 1..=100)) => {
            Some(format!("{name}: {tokens} means {tokens} tokens; a share is \"{tokens}%\""))
        }
        _ => None,
    };
    sizes.iter().filter_map(doubtful).collect()
}
