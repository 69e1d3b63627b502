//! `estimate_tokens`: how full the context is, or how many tokens a text has.

use rmcp::model::Tool;
use serde_json::json;

use super::answer::shorten::{self, ANSWER};
use super::answer::{Answer, name, names, warn_of_ignored};
use super::arguments::Arguments;
use super::request::{ask, counting};
use super::schema::{
    self, any_object, choice, format, integer, messages, meta, number, object, objects, option, property,
    read_only, required, session, text,
};
use crate::agents::write_back::Operation;
use crate::answers::{AdviceLevel, EstimateAnswer, Next};
use crate::engine::{self, Counting, Engine, Opened};
use crate::interfaces::mcp::server_state::{Caller, ServerState};
use history::error::{Error, Result};
use history::{History, Meta, Text};
use tokens::{TokenCounter, Tokenizer};

pub(super) const NAME: &str = "estimate_tokens";

pub(super) fn tool() -> Tool {
    let input = object([
        session(),
        messages(),
        property("text", text("")),
        format(),
        option::<Counting>("model"),
        option::<Counting>("tokenizer"),
        property("detail", choice(&["concise", "detailed"])),
    ]);
    let output = object([
        ("tokens", integer()),
        ("overhead", integer()),
        ("context", integer()),
        ("window", integer()),
        ("used_percent", number()),
        ("method", any_object()),
        ("by_category", any_object()),
        ("largest", objects()),
        ("triggers", any_object()),
        ("advice", any_object()),
    ]);
    let what = "How full the context window is: tokens by category, largest outputs, whether to compact now. Also counts \
                text or messages.";
    schema::tool(NAME, "Estimate tokens", what, input, required(output, &["tokens"]), read_only())
        .with_meta(meta("context window usage, token count, how full", false))
}

/// The fields of an estimate that a model is shown.
const SHOWN: [&str; 17] = names!(EstimateAnswer:
    session, tokens, overhead, context, window, usable, used_percent, method, by_category, counts, reported,
    advice, cost, largest, triggers, compactions, warnings,
);

/// Answers a call that takes less time than handing it to another thread: an estimate of a short text. `None`
/// for every other call.
pub(crate) fn quick(state: &ServerState, tool: &str, arguments: &Arguments) -> Option<Result<Answer>> {
    let short = arguments.0.get("text").is_some_and(|it| it.get().len() < 4096);
    let given = || ["session", "messages"].iter().any(|it| arguments.has(it));
    if tool != NAME || !short || given() {
        return None;
    }
    // If `text` is invalid or empty, the call is not about a text.
    let text = arguments.text("text").ok()??;
    Some(detailed(arguments).and_then(|_| text_alone(state, arguments, &text)).map(super::with_contract))
}

pub(crate) fn call(state: &ServerState, caller: &Caller, arguments: &Arguments) -> Result<Answer> {
    let detailed = detailed(arguments)?;
    let given = arguments.text("session")?.is_some() || arguments.messages("messages")?.is_some();
    if let (Some(text), false) = (arguments.text("text")?, given) {
        return text_alone(state, arguments, &text);
    }
    let engine = state.engine(caller)?;
    let ask = ask(state, NAME, arguments)?;
    let opened = state.open_measured(&engine, arguments, ask.tokenizer())?;
    let answer = engine::estimate(&engine, &opened, &ask, None)?;
    let mut out = shorten::pick(&answer, &SHOWN)?;
    warn_of_ignored(&mut out, NAME, arguments);
    if !detailed {
        shorten::first(&mut out, name!(EstimateAnswer: largest), 3);
        shorten::first(&mut out, name!(EstimateAnswer: compactions), 1);
        shorten::first(&mut out, name!(EstimateAnswer: warnings), 2);
        out.remove(name!(EstimateAnswer: triggers));
    }
    if answer.advice.level != AdviceLevel::Room {
        let next = advised(state, &engine, &opened);
        out.insert(name!(EstimateAnswer: next).to_owned(), json!(next));
    }
    shorten::fit(&mut out, ANSWER, &names!(EstimateAnswer: largest, compactions, warnings), &[], "");
    Ok(out)
}

/// Which tools to call when the context fills up.
fn advised(state: &ServerState, engine: &Engine, opened: &Opened) -> Next {
    let same = "with the same `messages`";
    let session = r#"with "to": "session""#;
    let how = |job| match state.remote.is_none() && engine::can_write_back(engine, opened, job) {
        true => session,
        false if opened.path.is_none() => same,
        false => r#"with "to": "file""#,
    };
    let what = format!(
        "call prune_tool_outputs {} to clear old outputs, or summarize_history {} to compact",
        how(Operation::Prune),
        how(Operation::Compact)
    );
    Next::model(what)
}

fn detailed(arguments: &Arguments) -> Result<bool> {
    match arguments.text("detail")?.as_deref() {
        None | Some("concise") => Ok(false),
        Some("detailed") => Ok(true),
        Some(other) => {
            Err(Error::of_argument("detail", format!("expected concise or detailed, found {other:?}")))
        }
    }
}

fn text_alone(state: &ServerState, arguments: &Arguments, text: &str) -> Result<Answer> {
    let Counting { model, tokenizer, .. } = counting(state, NAME, arguments)?;
    let nothing = History::new(Vec::new(), Meta { model: model.map(Into::into), ..Meta::default() });
    let counter = TokenCounter::new(&nothing, tokenizer.unwrap_or(Tokenizer::Auto), None);
    let tokens = counter.text(&Text::new(text));
    let method = counter.method();
    let mut out = Answer::new();
    out.insert("tokens".to_owned(), json!(tokens));
    out.insert(
        "method".to_owned(),
        json!({"kind": method.kind.name(), "estimator": method.estimator.name(), "margin_percent": method.margin_percent}),
    );
    warn_of_ignored(&mut out, NAME, arguments);
    Ok(out)
}
