//! The error message that a model gets for a wrong call: in terms of the tools, with a working example.

use serde_json::{Map, Value, json};

use super::arguments::{Arguments, hint_words, single};
use crate::agents;
use crate::interfaces::mcp::server_state::ServerState;
use crate::interfaces::mcp::tools;
use history::error::{Error, ErrorKind};

pub(crate) fn explain(state: &ServerState, tool: &str, arguments: &Arguments, error: &Error) -> String {
    let text = error.full_in(hint_words);
    if !matches!(error.kind(), ErrorKind::Arguments | ErrorKind::Input | ErrorKind::Ambiguous) {
        return text;
    }
    match example(state, tool, arguments, error) {
        Some(call) => format!("{text}\nA call that works: {tool} {}", Value::Object(call)),
        None => text,
    }
}

/// Example arguments: the caller's own source unless the error may be about it, else one that exists. `None`
/// for an undo, since an example would undo something else.
fn example(
    state: &ServerState,
    tool: &str,
    arguments: &Arguments,
    error: &Error,
) -> Option<Map<String, Value>> {
    if arguments.text("to").ok().flatten().as_deref() == Some("undo") {
        return None;
    }
    let own = is_of_another(tool, error).then(|| own_source(tool, arguments)).flatten();
    let candidate = error.first_candidate().map(|it| single("session", json!(it)));
    let mut call = own.or(candidate).unwrap_or_else(|| any_source(state, tool, arguments));
    if tool == "summarize_history" {
        call.insert("budget".to_owned(), json!("20%"));
    }
    Some(call)
}

/// Whether an error is about an argument other than the source (`session`, `messages`, `handle`, `answer`).
fn is_of_another(tool: &str, error: &Error) -> bool {
    let Some(name) = error.argument() else { return false };
    let source = ["session", "messages", "handle", "answer"].contains(&name);
    !source && (name == "arguments" || tools::known_arguments(tool).iter().any(|it| it == name))
}

/// The caller's own source. `None` for messages, which are too long to repeat.
fn own_source(tool: &str, arguments: &Arguments) -> Option<Map<String, Value>> {
    let names: &[&str] = if tool == "recall" { &["handle", "query"] } else { &["session"] };
    if tool != "recall" && arguments.has("messages") {
        return None;
    }
    let said = |name: &&str| Some(single(name, json!(arguments.text(name).ok()??)));
    names.iter().find_map(said)
}

fn any_source(state: &ServerState, tool: &str, arguments: &Arguments) -> Map<String, Value> {
    if tool == "recall" {
        return single("query", json!("failing test"));
    }
    let failed = arguments.text("session").ok().flatten();
    // `latest`, `current` or the default has just failed, so do not suggest it.
    let looked = failed.is_none_or(|it| it == "latest" || it == "current") && !arguments.has("messages");
    let here = || !agents::list(&state.config.agents, None, Some(&state.config.agents.cwd)).is_empty();
    if state.remote.is_none() && !looked && here() {
        return single("session", json!("latest"));
    }
    single("messages", json!([{"role": "user", "content": "hello"}]))
}
