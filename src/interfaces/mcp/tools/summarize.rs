//! `summarize_history`: compacts, writes handoffs, and undoes.

use std::cmp::Reverse;

use rmcp::model::Tool;
use serde_json::json;

use super::answer::shorten::{self, ANSWER, PLAN, WRITTEN};
use super::answer::{Answer, name, names, warn, warn_of_ignored};
use super::arguments::Arguments;
use super::edit;
use super::request::{
    CallContext, Goal, add_undo, ask, doubtful_sizes, goal, messages_as, next_call, target, warn_of_format,
};
use super::schema::{
    self, any_object, choice, described, format, integer, messages, meta, object, option, options, property,
    required, session, text, writing,
};
use crate::agents::write_back::Operation;
use crate::answers::{CompactAnswer, Next, PrunedInfo, ReplaceInfo, RestoreAnswer, Who};
use crate::config::Choice;
use crate::engine::{
    self, Amount, Ask, CompactOptions, CompactOutcome, Compacted, Counting, Delivered, Engine, Opened, To,
};
use crate::interfaces::mcp::server_state::{Caller, ServerState};
use history::error::{Error, ErrorKind, Result};
use tokens::Estimator;

pub(super) const NAME: &str = "summarize_history";

pub(super) fn tool(open_world: bool) -> Tool {
    let mut input = vec![
        session(),
        messages(),
        format(),
        property("profile", text(super::LIKE)),
        option::<Counting>("model"),
        option::<Counting>("window"),
    ];
    input.extend(options::<CompactOptions>());
    input.extend([
        property("previous_summary", text("")),
        property("summarizer", text("offline (default), host, auto, provider.")),
        property("handle", text("From the first call; with undo, what to undo.")),
        property("answer", text("The summary you were asked for.")),
        property(
            "to",
            described(choice(&["plan", "file", "session", "undo"]), "plan: preview; session: in place."),
        ),
    ]);
    let input = object(input);
    let output = object([
        ("status", text("")),
        ("tokens_before", integer()),
        ("tokens_after", integer()),
        ("summary", text("")),
        ("replace", any_object()),
        ("facts", any_object()),
        ("handle", text("")),
        ("output", text("")),
        ("session_id", text("")),
        ("reason", text("")),
        ("next", any_object()),
    ]);
    let what = "Compacts (compresses) a conversation when the context window is full, or writes a handoff for a new \
                session: a summary keeping goals, decisions, errors, files. For messages returns replace: \
                history[..from] + with + history[to..].";
    let output = required(output, &["status"]);
    schema::tool(NAME, "Compact the conversation", what, input, output, writing(open_world))
        .with_meta(meta("compact, compress, summarize, context full, handoff, undo", true))
}

/// The fields of a compaction that a model is shown.
const SHOWN: [&str; 28] = names!(CompactAnswer:
    status, native_status, session, profile, summarizer, tokens_before, tokens_after, messages_before,
    messages_after, split, reason_code, reason, facts, facts_kept, first_changed, prefix_tokens, handle, ask, output,
    session_id, resume, takes_effect, valid_for, next, usage, summary, pruned, warnings,
);

/// The fields of a cleared output that a model is shown.
const SHOWN_OF_OUTPUT: [&str; 5] = names!(PrunedInfo: message, tool, tokens_before, tokens_after, handle);

const UNDONE: [&str; 8] = names!(RestoreAnswer:
    handle, status, session_id, output, later_messages, resume, next, warnings,
);

pub(crate) fn call(
    state: &ServerState,
    caller: &Caller,
    arguments: &Arguments,
    context: &CallContext,
) -> Result<Answer> {
    let goal = goal(state, arguments)?;
    let mut ask = ask(state, NAME, arguments)?;
    ask.options.pin.extend(arguments.text("previous_summary")?);
    ask.writer.watch = context.watch.clone();
    ask.writer.sampling = context.sampling.clone();
    let engine = state.engine(caller)?;
    let second = (arguments.text("handle")?, arguments.text("answer")?);
    if goal == Goal::Undo {
        return undo(state, &engine, arguments, second.0.as_deref());
    }
    let (made, opened) = match second {
        (Some(handle), Some(answer)) => {
            // The first call set where the result goes; the second may override it.
            let to = |opened: &Opened| match goal {
                Goal::Plan | Goal::Undo => Ok(None),
                Goal::Session | Goal::File => target(state, opened, goal, "replace").map(Some),
            };
            engine::answered(&engine, &handle, &answer, to)?
        }
        (Some(handle), None) => {
            // Do not fall back to the calling session: the handle names another one.
            engine.store.locate(&handle, &caller.owner)?;
            let what = format!(
                "expected the requested summary with the handle, found none; to compact the history that {handle} \
                 names, pass it as session"
            );
            return Err(Error::of_argument("answer", what));
        }
        (None, Some(_)) => {
            let what = "expected the handle from the first call, found none; call without handle and answer to \
                        request a summary";
            return Err(Error::of_argument("answer", what));
        }
        (None, None) => {
            ask.writer.summarizer = summarizer(&engine, arguments)?;
            let opened = state.open(&engine, arguments)?;
            ask.to = target(state, &opened, goal, "replace")?;
            ask.messages_as = messages_as(&opened);
            (engine::compact(&engine, &opened, &ask)?, opened)
        }
    };
    let answer = answer(state, &engine, &opened, &ask, goal, &made)?;
    shown(answer, arguments, &opened, &ask, &made)
}

fn undo(state: &ServerState, engine: &Engine, arguments: &Arguments, handle: Option<&str>) -> Result<Answer> {
    let undone = match handle {
        handle if !(arguments.has("session") || arguments.has("messages")) => {
            engine::undo(engine, handle.unwrap_or("last"))?
        }
        None => engine::undo_of(engine, &state.open(engine, arguments)?)?,
        Some(_) => {
            let what = "handle: expected either a handle or a session with \"to\": \"undo\", found both; nothing was \
                        done";
            return Err(Error::new(ErrorKind::Arguments, what));
        }
    };
    let mut out = shorten::pick(&undone, &UNDONE)?;
    shorten::fit(&mut out, WRITTEN, &names!(RestoreAnswer: warnings), &[], "");
    Ok(out)
}

fn summarizer(engine: &Engine, arguments: &Arguments) -> Result<Choice> {
    let summarizers = &engine.config.summarizers;
    let Some(name) = arguments.text("summarizer")? else { return Ok(summarizers.default.clone()) };
    let choice = Choice::named(&name).map_err(|error| Error::of_argument("summarizer", error.detail()))?;
    summarizers.allowed(choice)
}

/// The answer document, adapted to the tools, with what to call next.
fn answer(
    state: &ServerState,
    engine: &Engine,
    opened: &Opened,
    ask: &Ask,
    goal: Goal,
    made: &Compacted,
) -> Result<CompactAnswer> {
    let mut answer = made.answer();
    match (&made.outcome, &ask.options.focus) {
        (CompactOutcome::Noop { .. }, Some(focus)) if goal == Goal::Plan => {
            // A handoff needs a brief, even if there is nothing to compact.
            answer.summary = Some(engine::brief(engine, opened, focus)?);
            let what = "nothing is compacted; summary is a brief for a new session";
            answer.next = Next::model(what.to_owned());
        }
        (CompactOutcome::Planned(_), _) if ask.to == To::Plan => {
            let job = if answer.summary.is_none() { Operation::Prune } else { Operation::Compact };
            answer.next = next_call(state, engine, opened, NAME, job);
        }
        _ => {}
    }
    if let ("empty", Some(Amount::Tokens(tokens))) = (answer.reason_code.as_str(), ask.options.budget) {
        let why = format!(
            "; a budget of {tokens} tokens leaves no room for one: pass more, or a share such as \"20%\""
        );
        answer.reason.push_str(&why);
    }
    Ok(answer)
}

/// The document as shown to the model, within the token limits.
fn shown(
    mut answer: CompactAnswer,
    arguments: &Arguments,
    opened: &Opened,
    ask: &Ask,
    made: &Compacted,
) -> Result<Answer> {
    let was_written = answer.output.is_some();
    if was_written {
        answer.session.path = None;
        // Show the command, with its long path, only once.
        if let Some(resume) = &answer.resume {
            answer.next.what = answer.next.what.replace(resume, "the command in `resume`");
        }
    }
    let mut out = shorten::pick(&answer, &SHOWN)?;
    if answer.next.who == Who::Nobody {
        out.remove(name!(CompactAnswer: next));
    }
    add_undo(&mut out, answer.takes_effect, answer.handle.as_deref());
    if answer.usage.requests == 0 {
        out.remove(name!(CompactAnswer: usage));
    }
    // Not `ask.to`: the first call may have set where the result goes.
    if matches!(&made.outcome, CompactOutcome::Compacted { output: Delivered::File(_), .. }) {
        warn_of_format(&mut out, opened);
    }
    warn(&mut out, doubtful_sizes(&[("budget", ask.options.budget), ("keep", ask.options.keep)]));
    warn_of_ignored(&mut out, NAME, arguments);
    let warnings = names!(CompactAnswer: warnings);
    if matches!(made.outcome, CompactOutcome::NeedsAnswer(_)) {
        let texts = names!(CompactAnswer: ask);
        shorten::fit(&mut out, ANSWER, &warnings, &texts, "write from what you remember");
        return Ok(out);
    }
    // After writing, only the facts that were not all kept.
    answer.facts.retain(|_, it| it.found != 0 && !(was_written && it.kept == it.found));
    shorten::set(&mut out, name!(CompactAnswer: facts), json!(answer.facts));
    answer.pruned.sort_by_key(|it| Reverse(it.tokens_before));
    shorten::entries(&mut out, name!(CompactAnswer: pruned), &answer.pruned, &SHOWN_OF_OUTPUT)?;
    shorten::first(&mut out, name!(CompactAnswer: pruned), 5);
    if let Some(after) = made.bytes() {
        let before = opened.source.whole()?;
        answer.replace = edit::replace(&before, after);
        add_replace(&mut out, answer.replace.as_ref());
        return Ok(out);
    }
    let limit = if was_written {
        for name in names!(CompactAnswer: summary, valid_for, pruned, native_status) {
            out.remove(name);
        }
        WRITTEN
    } else {
        PLAN
    };
    let (lists, texts) = (names!(CompactAnswer: pruned, warnings), names!(CompactAnswer: summary));
    shorten::fit(&mut out, limit, &lists, &texts, r#""to": "file" writes all of it"#);
    Ok(out)
}

/// Adds `replace` instead of `summary`, which it contains; if it is too large, a warning with the summary.
fn add_replace(out: &mut Answer, replace: Option<&ReplaceInfo>) {
    let (lists, texts) = (names!(CompactAnswer: pruned, warnings), names!(CompactAnswer: summary));
    let Some(replace) = replace else {
        return shorten::fit(out, ANSWER, &lists, &texts, "the messages could not be spliced");
    };
    let summary = out.remove(name!(CompactAnswer: summary));
    let mut with = out.clone();
    with.insert(name!(CompactAnswer: replace).to_owned(), json!(replace));
    shorten::fit(&mut with, ANSWER, &lists, &[], "");
    let size = serde_json::to_string(&with).map_or(0, |it| Estimator::O200k.text(&it));
    if size <= ANSWER {
        *out = with;
        return;
    }
    out.extend(summary.map(|it| (name!(CompactAnswer: summary).to_owned(), it)));
    let what = format!(
        "replace has {size} tokens, more than the limit of {ANSWER} for an answer; a smaller budget or keep makes it \
         fit, or \"to\": \"file\" writes all messages to a file"
    );
    warn(out, [what]);
    shorten::fit(out, ANSWER, &names!(CompactAnswer: pruned), &texts, "see warnings");
}
