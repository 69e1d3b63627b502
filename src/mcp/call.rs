//! A call becomes a question to the engine, its answer becomes what the model sees: here it finds its tool.

use super::answer::{Answer, shown};
use super::arguments::Arguments;
use super::desk::{Caller, Desk};
use super::request::Waiting;
use super::{estimate, prune, recall, split, summarize, tools};
use history::error::{Error, Kind, Result};

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
        "estimate_tokens" => estimate::call(desk, caller, arguments),
        "find_split_point" => split::call(desk, caller, arguments),
        "prune_tool_outputs" => prune::call(desk, caller, arguments),
        "summarize_history" => summarize::call(desk, caller, arguments, waiting),
        "recall" => recall::call(desk, caller, arguments),
        other => Err(Error::new(Kind::Arguments, format!("expected a tool of this server, found {other:?}"))),
    }
}
