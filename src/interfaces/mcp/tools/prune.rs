//! `prune_tool_outputs`: clears old outputs.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use rmcp::model::Tool;

use super::answer::shorten::{self, ANSWER, PLAN, WRITTEN};
use super::answer::{Answer, name, names, shown, warn, warn_of_ignored};
use super::arguments::Arguments;
use super::request::{add_undo, ask, goal, messages_as, next_call, target, warn_of_format};
use super::schema::{
    self, any_object, format, integer, messages, meta, object, objects, option, options, profile, required,
    session, text, to, writing,
};
use crate::agents::write_back::Operation;
use crate::answers::{PruneAnswer, PrunedInfo, Status, Who};
use crate::engine::{self, CompactOptions, Opened, PruneOptions, To};
use crate::interfaces::mcp::server_state::{Caller, ServerState};
use history::error::Result;

pub(super) const NAME: &str = "prune_tool_outputs";

pub(super) fn tool() -> Tool {
    let mut input = vec![session(), messages(), format(), profile()];
    input.extend(options::<PruneOptions>());
    input.extend([option::<CompactOptions>("auto"), to()]);
    let input = object(input);
    let output = object([
        ("status", text("")),
        ("tokens_before", integer()),
        ("tokens_after", integer()),
        ("pruned", objects()),
        ("reason", text("")),
        ("next", any_object()),
    ]);
    let what = "Frees context by clearing old, large tool outputs; recall brings them back.";
    let output = required(output, &["status", "tokens_before", "tokens_after"]);
    schema::tool(NAME, "Prune tool outputs", what, input, output, writing(false).idempotent(true))
        .with_meta(meta("clear old tool results, prune, free context", false))
}

/// The fields of an answer that a model is shown.
const SHOWN: [&str; 17] = names!(PruneAnswer:
    status, session, profile, tokens_before, tokens_after, reason_code, reason, first_changed, prefix_tokens,
    handle, output, session_id, resume, takes_effect, next, pruned, warnings,
);

/// The fields of a pruned output for sessions. Replacement texts are only of use for inline messages.
const SHOWN_OF_OUTPUT: [&str; 5] = names!(PrunedInfo: message, call_id, tool, tokens_before, tokens_after);

pub(crate) fn call(state: &ServerState, caller: &Caller, arguments: &Arguments) -> Result<Answer> {
    let goal = goal(state, arguments)?;
    let mut ask = ask(state, NAME, arguments)?;
    let engine = state.engine(caller)?;
    let opened = state.open(&engine, arguments)?;
    ask.to = target(state, &opened, goal, "pruned")?;
    ask.messages_as = messages_as(&opened);
    let (exclude_tools, unknown) = tools_of(&opened, &ask.prune.exclude_tools);
    ask.prune.exclude_tools = exclude_tools;
    let mut answer = engine::prune(&engine, &opened, &ask)?;
    if answer.status == Status::Planned && ask.to == To::Plan {
        answer.next = next_call(state, &engine, &opened, NAME, Operation::Prune);
    }
    let mut out = shorten::pick(&answer, &SHOWN)?;
    if answer.next.who == Who::Nobody {
        out.remove(name!(PruneAnswer: next));
    }
    add_undo(&mut out, answer.takes_effect, answer.handle.as_deref());
    if matches!(ask.to, To::File(_)) && answer.output.is_some() {
        warn_of_format(&mut out, &opened);
    }
    warn(&mut out, unknown);
    warn_of_ignored(&mut out, NAME, arguments);
    let inline = ask.to == To::Bytes;
    if !inline {
        answer.pruned.sort_by_key(|it| Reverse(it.tokens_before));
        shorten::entries(&mut out, name!(PruneAnswer: pruned), &answer.pruned, &SHOWN_OF_OUTPUT)?;
    }
    let limit = if inline {
        ANSWER
    } else if answer.output.is_some() {
        shorten::first(&mut out, name!(PruneAnswer: pruned), 3);
        WRITTEN
    } else {
        PLAN
    };
    shorten::fit(&mut out, limit, &names!(PruneAnswer: pruned, warnings), &[], "");
    Ok(out)
}

/// The given tool names in the history's spelling, and a warning about those that do not occur in it.
fn tools_of(opened: &Opened, names: &[String]) -> (Vec<String>, Option<String>) {
    let messages = opened.session.history.messages();
    let called = messages.iter().flat_map(history::Message::calls).map(|it| &*it.name);
    let answered = messages.iter().flat_map(history::Message::outputs).filter_map(|it| it.name.as_deref());
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
