//! The tools, one file each: the schema that the model is offered, and the call.
//!
//! **Invariants.** Every parameter is optional. Schemas are flat: no `$ref`, no `anyOf`, no boolean schemas,
//! no formats, since one client drops all tools of a server for one schema that it cannot read. Calls that
//! only read tolerate unknown arguments, since one client adds its own. Schemas and descriptions cost tokens
//! in every request, so a test counts them.

pub(crate) mod answer;
pub(crate) mod arguments;
pub(crate) mod error_hints;
pub(crate) mod estimate;
mod prune;
mod recall;
pub(crate) mod request;
mod schema;
mod edit;
mod split;
mod summarize;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use rmcp::model::Tool;
use serde_json::Value;

use crate::answers::CONTRACT;
use crate::interfaces::mcp::server_state::{Caller, ServerState};
use answer::{Answer, shown};
use arguments::Arguments;
use history::error::{Error, ErrorKind, Result};
use request::CallContext;

/// Description of the argument `profile`; a test compares the names with the built-in profiles.
pub(crate) const LIKE: &str =
    "Compact like codex, claude-code, gemini-cli, opencode, learn-claude-code or supermemory.";

/// The tools, in the order in which they are listed. `open_world`: whether a provider may be called; fixed
/// when the server starts.
pub(crate) fn all(open_world: bool) -> Vec<Tool> {
    vec![estimate::tool(), split::tool(), prune::tool(), recall::tool(), summarize::tool(open_world)]
}

/// Calls a tool. Errors are written for the model, which can correct its arguments. `context`: progress,
/// cancellation and sampling of the waiting client.
pub(crate) fn call(
    state: &ServerState,
    caller: &Caller,
    tool: &str,
    arguments: &Arguments,
    context: &CallContext,
) -> Result<Answer> {
    let ignored = arguments.ignored(known_arguments(tool));
    let to = if writes(tool) { arguments.text("to")? } else { None };
    if matches!(to.as_deref(), Some("session" | "file" | "undo")) && !ignored.is_empty() {
        // An unknown argument may have been meant to name the session, or to prevent writing.
        let what = format!(
            "expected only those of {tool} ({}), since this call writes, found {}; nothing was done",
            known_arguments(tool).join(", "),
            shown(&ignored)
        );
        return Err(Error::of_argument("arguments", what));
    }
    let answer = match tool {
        estimate::NAME => estimate::call(state, caller, arguments),
        split::NAME => split::call(state, caller, arguments),
        prune::NAME => prune::call(state, caller, arguments),
        summarize::NAME => summarize::call(state, caller, arguments, context),
        recall::NAME => recall::call(state, caller, arguments),
        other => {
            Err(Error::new(ErrorKind::Arguments, format!("expected a tool of this server, found {other:?}")))
        }
    };
    answer.map(with_contract)
}

/// Puts the contract's version first in an answer.
fn with_contract(mut answer: Answer) -> Answer {
    answer.shift_insert(0, "contract".to_owned(), CONTRACT.into());
    answer
}

/// The arguments that a tool accepts: those in its schema, and those that all tools but `recall` share.
pub(crate) fn known_arguments(tool: &str) -> &'static [String] {
    static KNOWN: LazyLock<BTreeMap<String, Vec<String>>> = LazyLock::new(|| {
        let names = |it: &Tool| -> Vec<String> {
            let offered = it.input_schema.get("properties").and_then(Value::as_object);
            let mut names: Vec<String> = offered.into_iter().flat_map(|it| it.keys().cloned()).collect();
            if it.name != recall::NAME {
                let shared = ["model", "window", "tokenizer", "profile", "keep"].map(str::to_owned);
                names.extend(shared.into_iter().filter(|it| offered.is_none_or(|all| !all.contains_key(it))));
            }
            names
        };
        all(false).iter().map(|it| (it.name.to_string(), names(it))).collect()
    });
    KNOWN.get(tool).map_or(&[], Vec::as_slice)
}

/// Whether a tool has the argument `to`.
pub(crate) fn writes(tool: &str) -> bool {
    known_arguments(tool).iter().any(|it| it == "to")
}
