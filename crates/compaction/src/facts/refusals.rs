//! Calls that the user or the user's settings refused: decisions, not errors.

use std::collections::HashMap;

use super::plan::first_question;
use super::talk::{asks, is_trivial};
use super::text::cues::{CUES, Lowercased};
use super::text::is_question;
use super::text::rule::polarity;
use super::text::{clip, flat, sentences};
use super::voice::{ModelTopic, Prompt, Quote, ToolTopic};
use super::work::command::is_read_only;
use super::work::paths::path;
use super::{Detail, Fact, Topic, Voice, input_of};
use history::tools;
use history::{Call, History, Kind, Message, Refusal, Role};

/// The refused calls. Of refusals without a reason, only a call's newest, and none if the call ran later.
pub(in crate::facts) fn read(history: &History, base: Option<&str>) -> Vec<Fact> {
    let mut open: HashMap<&str, &Call> = HashMap::new();
    let mut refused: HashMap<String, usize> = HashMap::new();
    let mut facts: Vec<Option<Fact>> = Vec::new();
    for (number, message) in history.messages().iter().enumerate() {
        open.extend(message.calls().map(|it| (&*it.id, it)));
        for output in message.outputs() {
            let Some(call) = open.remove(&*output.id) else { continue };
            let Some(refusal) = &output.refusal else {
                // If the call ran later, only a refusal with a reason is worth keeping.
                let before = if refused.is_empty() { None } else { refused.remove(&subject(call, base)) };
                before.into_iter().for_each(|it| facts[it] = None);
                continue;
            };
            let what = subject(call, base);
            let Some(fact) = refusal_fact(number, call, refusal, &what, history) else { continue };
            let silent = fact.text.is_empty() && fact.topic == Topic::Decisions;
            if let Some(before) = silent.then(|| refused.insert(what, facts.len())).flatten() {
                facts[before] = None;
            }
            facts.push(Some(fact));
        }
    }
    facts.into_iter().flatten().collect()
}

/// A call in a few words: the tool, and the command, path or description.
fn subject(call: &Call, base: Option<&str>) -> String {
    let named = tools::actions(call)
        .into_iter()
        .find_map(|it| it.command.or_else(|| it.path.as_deref().map(|it| path(it, None, base))));
    let description =
        || input_of(call).get("description")?.as_str().map(|it| format!("({})", clip(it, 110).0));
    match named.or_else(description) {
        Some(it) => format!("{} {}", call.name, flat(clip(&it, 120).0)),
        None => call.name.to_string(),
    }
}

fn refusal_fact(
    number: usize,
    call: &Call,
    refusal: &Refusal,
    what: &str,
    history: &History,
) -> Option<Fact> {
    let choice = |asked: Option<String>, means: Option<String>| {
        let refused = means.is_some();
        Detail::Choice { asked, means, refused, superseded: None }
    };
    let means = || choice(None, Some(what.to_owned()));
    if refusal.by_settings {
        return Some(Fact::from_tools(ToolTopic::Denied, number, String::new(), means()));
    }
    if waits(call) && Quote::of_refusal(refusal).is_none() {
        return None;
    }
    let asks = tools::asks_user(history.meta.agent.as_deref(), &call.name);
    if let Some(question) = first_question(call).filter(|_| asks) {
        // A question that the user left unanswered decides nothing.
        return match Quote::of_refusal(refusal) {
            Some(said) => {
                Some(Fact::from_user(Topic::Decisions, number, said, choice(Some(flat(&question)), None)))
            }
            None if is_typed_answer(&history.messages()[number + 1..]) => None,
            None => is_last_matter(&history.messages()[number + 1..]).then(|| {
                let text = format!("unanswered question to the user: {}", flat(clip(&question, 400).0));
                Fact::from_model(ModelTopic::Asked, number, text)
            }),
        };
    }
    // Without a recorded reason, the next prompt is the reason, unless it only asks something.
    let next = || {
        let after = &history.messages()[number + 1..];
        let prompt = after.iter().take(3).find_map(Prompt::of)?;
        let text = prompt.parts().first()?.trim();
        let asks = sentences(text).iter().all(|it| is_question(it) && polarity(it).is_none());
        let short = text.chars().count() <= MAX_REASON_CHARS;
        prompt.quote(text).filter(|it| !asks && !it.starts_with('[') && (short || objects(text)))
    };
    let text = Quote::of_refusal(refusal).or_else(next);
    // A refused look decides nothing, unless the user said why.
    let text = if only_looks(call) { text? } else { text.unwrap_or_else(Quote::empty) };
    Some(Fact::from_user(Topic::Decisions, number, text, means()))
}

/// A longer prompt after a refusal is a request of its own, unless it says what is not wanted.
const MAX_REASON_CHARS: usize = 160;

/// Whether a prompt of moderate length begins by saying no.
fn objects(prompt: &str) -> bool {
    /// Characters.
    const LONG: usize = 400;
    let first = sentences(prompt).first().map(|it| Lowercased::of(it));
    prompt.chars().count() < LONG
        && first.is_some_and(|it| CUES.refuse.is_in(&it) || CUES.reverse.is_in(&it) || CUES.forbid.is_in(&it))
}

/// Whether a call only runs commands that change nothing.
fn only_looks(call: &Call) -> bool {
    let mut commands = tools::actions(call).into_iter().filter_map(|it| it.command).peekable();
    commands.peek().is_some() && commands.all(|it| is_read_only(&it))
}

/// Whether a call waits for a background task: interrupting it forbids nothing.
fn waits(call: &Call) -> bool {
    let input = input_of(call);
    let ends = ["Kill", "Stop"].iter().any(|it| call.name.contains(it));
    !ends && ["task_id", "bash_id", "shell_id"].iter().any(|it| input.get(it).is_some())
}

/// Whether the user closed the dialogue to type the answer: the next message that is not the client's is a short prompt
/// that asks nothing.
fn is_typed_answer(after: &[Message]) -> bool {
    /// Characters.
    const SHORT: usize = 240;
    let next = after.iter().find(|it| it.kind != Kind::Context).and_then(Prompt::of);
    next.is_some_and(|it| {
        let text = it.whole();
        text.chars().count() <= SHORT && !is_trivial(&text) && !asks(&text)
    })
}

/// Whether the user made at most one more request, so that a question before it may still be open. A slash command
/// begins another matter.
fn is_last_matter(after: &[Message]) -> bool {
    let requests = after.iter().filter_map(Prompt::of).filter(|it| !is_trivial(&it.whole()));
    let is_command = |it: &Message| it.role == Role::User && it.plain().starts_with("<command-message>");
    requests.count() <= 1 && !after.iter().any(is_command)
}

/// Drops the model's guesses why a call was denied, in the message after it: the settings are the cause.
pub(in crate::facts) fn drop_guessed_causes(facts: &mut Vec<Fact>) {
    let denied = |it: &&Fact| it.topic == Topic::Decisions && it.voice() == Voice::Tools;
    let denied: Vec<usize> = facts.iter().filter(denied).map(|it| it.message).collect();
    facts.retain(|it| {
        let after = it.topic == Topic::Findings && denied.iter().any(|at| at + 1 == it.message);
        !(after && CUES.denied.is_in(&Lowercased::of(&it.text)))
    });
}
