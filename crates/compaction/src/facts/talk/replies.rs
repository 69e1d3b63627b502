//! Which requests of the user were answered, and by which message.

use super::report::{delivers, is_report, says_remaining, speaks, text_of_model};
use super::shorten::statements;
use super::{
    answers_question, asks, asks_back, asks_progress, chooses_option, is_praise, is_trivial, leaves_question,
};
use crate::facts::text::cues::{CUES, Lowercased};
use crate::facts::text::is_question;
use crate::facts::voice::{Prompt, argless_command, is_asked, is_run_by_user};
use crate::facts::work::command::is_read_only;
use history::tools::{self, Meaning};
use history::{History, Kind, Message, Role, Text};

/// The message that answered the request before the current one: the last report of the model, or summary, that was
/// followed by another request. If a compaction removed the replies, the last prompt that must have been answered.
pub fn last_answered(history: &History) -> Option<usize> {
    let messages = history.messages();
    // "Shall I?" "Yes": the report that asked has not finished what was requested.
    last_report(messages, |number| is_answer(messages, number))
}

/// The messages in which the user asks for something, even if only by a "yes", in order.
pub fn requests(history: &History) -> Vec<usize> {
    let messages = history.messages();
    (0..messages.len()).filter(|it| is_asked(&messages[*it])).collect()
}

/// Whether the prompt `number` answers the question of the message before it.
pub(in crate::facts) fn is_answer(messages: &[Message], number: usize) -> bool {
    let before = messages[..number].iter().rev().find(|it| !is_record(it));
    before.is_some_and(|it| answers_question(&messages[number], it))
}

/// The report that ends the turn in which message `number` is, if another prompt follows it.
pub(crate) fn report_of_turn(history: &History, number: usize) -> Option<usize> {
    let messages = history.messages();
    // The decisions of an earlier summary belong to turns that are gone.
    if messages.get(number)?.kind == Kind::Summary {
        return None;
    }
    let next = (number + 1..messages.len()).find(|it| messages[*it].is_prompt())?;
    let said = (number + 1..next).rfind(|it| speaks(&messages[*it]))?;
    is_report(&messages[said]).then_some(said)
}

/// Whether a message is the record of a local command (Claude Code): it neither asks nor interrupts.
fn is_record(message: &Message) -> bool {
    const STARTS: [&str; 3] = ["<command-name>", "<local-command-", "<system-reminder>"];
    let records = |it: &Text| STARTS.iter().any(|start| it.as_str().trim_start().starts_with(start));
    message.kind == Kind::Context && message.texts().all(records)
}

/// The last report of the model, or summary, that was followed by another request. `replies`: whether a prompt belongs
/// to the request before it.
pub(in crate::facts) fn last_report(messages: &[Message], replies: impl Fn(usize) -> bool) -> Option<usize> {
    let mut asked = false;
    // Whether the next message by the model or a person is a prompt.
    let mut next = false;
    for (number, message) in messages.iter().enumerate().rev() {
        if is_asked(message) {
            let replies = replies(number);
            next = asked || !replies;
            asked |= !replies && is_request(message);
        } else if message.kind == Kind::Summary && asked {
            return Some(number);
        } else if message.role == Role::Assistant {
            if asked && next && is_report(message) && !tells_progress(messages, number) {
                return Some(number);
            }
            next = false;
        }
    }
    answered_before_summary(messages)
}

/// Whether a message follows a prompt that only asks how the work goes.
fn tells_progress(messages: &[Message], number: usize) -> bool {
    let before = messages[..number].iter().rev().find(|it| !is_record(it));
    before.is_some_and(|it| it.is_prompt() && asks_progress(&it.plain()))
}

/// The message that answered the last prompt, if that is a question: a report without any call before it.
pub fn question_answered(history: &History) -> Option<usize> {
    let last = history.last_prompt()?;
    let after = history.messages().iter().enumerate().skip(last + 1);
    let first = after.skip_while(|it| it.1.role != Role::Assistant).map(|it| it.0).next()?;
    let (asked, answer) = (&history.messages()[last], &history.messages()[first]);
    // A counter-question is not an answer.
    let answers = is_report(answer) && !is_question(&answer.plain());
    (is_question(&asked.plain()) && answers).then_some(first)
}

/// The reply that ends the session: nothing follows it, it calls no tool, asks nothing, and announces or
/// leaves open no step. A short reply counts only after tool calls, or if it says that the work is done.
pub fn final_answer(history: &History) -> Option<usize> {
    last_reply(history).filter(|at| !leaves_open(&text_of_model(&history.messages()[*at])))
}

/// As [`final_answer`], but the reply may leave something open, or ask if it is long enough for a report.
pub fn last_reply(history: &History) -> Option<usize> {
    let messages = history.messages();
    let at = messages.iter().rposition(|it| it.role != Role::System && !is_record(it))?;
    let last = &messages[at];
    let text = text_of_model(last);
    let working = last.calls().next().is_some() && !delivers(last);
    let announces = |it: &str| CUES.announce.is_in(&Lowercased::of(it)) || it.ends_with([':', '：']);
    let goes_on = || statements(&text).pop().is_some_and(announces);
    let turn = messages[..at].iter().rev().take_while(|it| !it.is_prompt());
    let worked = is_report(last)
        || turn.flat_map(|it| it.calls()).next().is_some()
        || CUES.carried_out.is_in(&Lowercased::of(&text));
    let only_asks = leaves_question(&text) && !is_report(last);
    (at > 0 && speaks(last) && worked && !working && !only_asks && !goes_on()).then_some(at)
}

/// Whether a message is the client's note that the user stopped the model.
pub(in crate::facts) fn is_interruption(message: &Message) -> bool {
    const STARTS: [&str; 2] = ["<turn_aborted>", "[Request interrupted"];
    message.kind == Kind::Context && STARTS.iter().any(|it| message.plain().starts_with(it))
}

/// A request and the reply to it.
#[derive(Debug, Clone, Copy)]
pub struct AnsweredRequest {
    /// Number of the user's message.
    pub request: usize,
    /// Number of the model's message.
    pub reply: usize,
    /// The next request came before any reply: whether the reply covers this one is uncertain.
    pub passed_over: bool,
    /// The reply says that something is left, or asks.
    pub leaves_open: bool,
}

/// Each answered request, with the last message of the model before the next request. A request that comes while the
/// model works is answered together with the one before it.
pub fn answers(history: &History) -> Vec<AnsweredRequest> {
    let messages = history.messages();
    let mut out: Vec<AnsweredRequest> = Vec::new();
    // The last message of the model, and whether it calls tools.
    let (mut asked, mut said, mut last, mut works) = (Vec::<AnsweredRequest>::new(), None, 0, false);
    let mut interrupted = false;
    // Whether the next reply only tells how the work goes.
    let mut aside = false;
    for (number, message) in messages.iter().enumerate() {
        aside |= message.is_prompt() && asks_progress(&message.plain());
        // The replies to prompts that a compaction kept are gone; all but the last prompt were answered.
        if message.kind == Kind::Summary {
            asked.drain(..asked.len().saturating_sub(1));
        }
        // Praise ends a request, too.
        let request = is_request(message);
        if request || message.is_prompt() && is_praise(&message.plain()) {
            // A turn cut off in its work answers nothing.
            let answers = |it: &usize| !works || *it == last && is_report(&messages[*it]);
            let silent = std::mem::take(&mut interrupted) || said.is_none();
            if let Some(answer) = said.take().filter(answers) {
                // A reply that asks back has done nothing yet, but may have answered a question.
                let reply = text_of_model(&messages[answer]);
                let leaves_open = leaves_open(&reply);
                // Options from which the prompt chooses one answer no more than a question.
                let reports = is_report(&messages[answer]);
                let goes_on = answers_question(message, &messages[answer]);
                let open = chooses_option(message, &messages[answer])
                    || asks_back(&reply) && !(reports && (worked(messages, answer) || !goes_on));
                let is_answered = |it: &mut AnsweredRequest| {
                    let request = messages[it.request].plain();
                    !open || asks(&request) && !request.starts_with('/')
                };
                out.extend(asked.extract_if(.., is_answered).map(|it| AnsweredRequest {
                    reply: answer,
                    leaves_open,
                    ..it
                }));
            } else if silent && let Some(last) = asked.last_mut() {
                last.passed_over = true;
            }
            asked.extend(request.then_some(AnsweredRequest {
                request: number,
                reply: number,
                passed_over: false,
                leaves_open: false,
            }));
        } else if message.kind == Kind::Context {
            interrupted |= is_interruption(message);
        } else if message.role == Role::Assistant {
            let calls = message.calls().next().is_some() && !delivers(message);
            if std::mem::take(&mut aside) && !calls {
                continue;
            }
            (last, works) = (number, calls);
            said = Some(number).filter(|_| speaks(message)).or(said);
        }
    }
    out
}

/// Whether the turn that ends with message `reply` changed something, so that its report answers though it asks on.
fn worked(messages: &[Message], reply: usize) -> bool {
    let turn = messages[..reply].iter().rev().take_while(|it| !is_asked(it));
    let mut actions = turn.flat_map(Message::calls).flat_map(tools::actions);
    actions.any(|it| match it.meaning {
        Meaning::Edit | Meaning::Create | Meaning::Delete | Meaning::Rename => true,
        Meaning::Run => it.command.is_some_and(|it| !is_read_only(&it)),
        _ => false,
    })
}

/// For a compacted history that begins with several prompts, the message after the second to last: the
/// replies were removed, and all but the last were answered. The prompts are known to be such by a summary
/// after them, or else by the context that the client puts before the first prompt of a session.
fn answered_before_summary(messages: &[Message]) -> Option<usize> {
    /// Nobody types this many prompts before the first reply.
    const MANY: usize = 3;
    let end = messages.iter().position(|it| it.kind == Kind::Summary || it.role == Role::Assistant)?;
    let begins = &messages[..end];
    let first = begins.iter().position(is_request)?;
    let mut requests = begins.iter().enumerate().filter(|it| is_request(it.1));
    let again = begins[first..].iter().any(|it| it.kind == Kind::Context);
    if messages[end].kind != Kind::Summary && !(again && requests.clone().count() >= MANY) {
        return None;
    }
    requests.nth_back(1).map(|it| it.0 + 1)
}

/// The last message that finished or redirected the work: a report, or a request of the user.
pub(in crate::facts) fn last_turning_point(history: &History) -> Option<usize> {
    history.messages().iter().rposition(|it| is_request(it) || is_report(it))
}

/// Whether a reply says that something is left, or asks.
pub(in crate::facts) fn leaves_open(text: &str) -> bool {
    leaves_question(text) || says_remaining(text) || CUES.unfinished.is_in(&Lowercased::of(text))
}

/// Whether the user asks for something in a message: as [`is_asked`], but by more than a "yes" or "continue".
pub(in crate::facts) fn is_request(message: &Message) -> bool {
    // What an editor adds about its open files makes no request of a "yes".
    let asks = || match Prompt::of(message) {
        Some(it) => it.is_argless_command() || !is_trivial(&it.whole()),
        None => !is_trivial(&message.plain()),
    };
    argless_command(message).is_some() || is_run_by_user(message) || message.is_prompt() && asks()
}
