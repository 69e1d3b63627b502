//! `find_split_point`: where a profile would cut.

use crate::engine;
use serde_json::json;

use super::answer::{Answer, name, names, warn, warn_of_ignored};
use super::arguments::Arguments;
use super::desk::{Caller, Desk};
use super::fit::{self, PLAN};
use super::request::{ask, meant};
use crate::answers::SplitAnswer;
use history::error::Result;

const NAME: &str = "find_split_point";

/// What of an answer a model is shown.
const SHOWN: [&str; 12] = names!(SplitAnswer:
    contract, session, profile, split, split_id, compacted, kept, boundary, reason_code, reason, ranges, alternatives,
);

pub(super) fn call(desk: &Desk, caller: &Caller, arguments: &Arguments) -> Result<Answer> {
    let engine = desk.engine(caller)?;
    let opened = desk.open(&engine, arguments)?;
    let ask = ask(desk, NAME, arguments)?;
    let mut out = fit::pick(&engine::split(&engine, &opened, &ask)?, &SHOWN)?;
    out.entry(name!(SplitAnswer: reason)).or_insert(json!(""));
    warn(&mut out, meant(&[("keep", ask.options.keep)]));
    warn_of_ignored(&mut out, NAME, arguments);
    fit::first(&mut out, name!(SplitAnswer: ranges), 20);
    fit::first(&mut out, name!(SplitAnswer: alternatives), 5);
    fit::fit(&mut out, PLAN, &names!(SplitAnswer: ranges, alternatives), &[], "");
    Ok(out)
}
