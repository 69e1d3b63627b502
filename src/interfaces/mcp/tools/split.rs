//! `find_split_point`: where a profile would cut.

use rmcp::model::Tool;
use serde_json::json;

use super::answer::shorten::{self, PLAN};
use super::answer::{Answer, name, names, warn, warn_of_ignored};
use super::arguments::Arguments;
use super::request::{ask, doubtful_sizes};
use super::schema::{
    self, any_object, format, integer, messages, meta, object, objects, option, profile, read_only, required,
    session, text,
};
use crate::answers::SplitAnswer;
use crate::engine::{self, CompactOptions};
use crate::interfaces::mcp::server_state::{Caller, ServerState};
use history::error::Result;

pub(super) const NAME: &str = "find_split_point";

pub(super) fn tool() -> Tool {
    let input = object([session(), messages(), format(), profile(), option::<CompactOptions>("keep")]);
    let output = object([
        ("split", integer()),
        ("boundary", text("")),
        ("compacted", any_object()),
        ("kept", any_object()),
        ("reason", text("")),
        ("ranges", objects()),
        ("alternatives", objects()),
    ]);
    let what = "Where to cut a conversation so that no tool call loses its result.";
    let output = required(output, &["boundary", "reason"]);
    schema::tool(NAME, "Find the split point", what, input, output, read_only())
        .with_meta(meta("where to split or cut a conversation history", false))
}

/// The fields of an answer that a model is shown.
const SHOWN: [&str; 11] = names!(SplitAnswer:
    session, profile, split, split_id, compacted, kept, boundary, reason_code, reason, ranges, alternatives,
);

pub(crate) fn call(state: &ServerState, caller: &Caller, arguments: &Arguments) -> Result<Answer> {
    let engine = state.engine(caller)?;
    let opened = state.open(&engine, arguments)?;
    let ask = ask(state, NAME, arguments)?;
    let mut out = shorten::pick(&engine::split(&engine, &opened, &ask), &SHOWN)?;
    out.entry(name!(SplitAnswer: reason)).or_insert(json!(""));
    warn(&mut out, doubtful_sizes(&[("keep", ask.options.keep)]));
    warn_of_ignored(&mut out, NAME, arguments);
    shorten::first(&mut out, name!(SplitAnswer: ranges), 20);
    shorten::first(&mut out, name!(SplitAnswer: alternatives), 5);
    shorten::fit(&mut out, PLAN, &names!(SplitAnswer: ranges, alternatives), &[], "");
    Ok(out)
}
