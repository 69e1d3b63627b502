//! Gemini CLI's AfterAgent hook: at the end of a turn it may deny the answer, clear the context, and give a
//! reason. The reason becomes a user message, which the model answers.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::{GeminiCli, own_threshold};
use crate::agents::hooks;
use crate::agents::hooks::seat::{Conversation, Seat, SeatAsk, SeatContext, SeatSession, SentConversation};
use compaction::plan::Cause;
use history::error::Result;
use history::{History, Kind, Message, Role};
use sessions::Format;

/// Called by the hook AfterAgent; replies with one text.
pub(super) static SEAT: Seat = Seat {
    format: Format::GEMINI_CLI,
    limit: Duration::from_secs(7),
    // A failed hook must still print a valid reply.
    answers_failure: true,
    requested,
    reply: |_, text| reply(&text()),
};

fn requested(event: &Value, context: &SeatContext<'_>) -> Result<Option<(SeatAsk, Conversation)>> {
    let path = PathBuf::from(event["transcript_path"].as_str().unwrap_or_default());
    let found = hooks::reported(&GeminiCli, &path);
    let model = found.as_ref().and_then(|it| it.model.as_deref());
    let threshold = threshold(model.and_then(context.window), own_threshold(context.setting));
    let Some((cause, focus)) = cause_and_focus(event, found.as_ref().map(|it| it.tokens), threshold) else {
        return Ok(None);
    };
    let mut sent = SeatSession::from_file(&path, Format::GEMINI_CLI)?;
    sent.session.history = conversation(sent.session.history);
    let sent = SentConversation { conversation: sent, transcript: None, archive_both: false };
    Ok(Some((SeatAsk { cause, focus, ..SeatAsk::of(event) }, Conversation::Sent(Box::new(sent)))))
}

/// Prefix of the prompt that our command `/epitome:compact` sends.
const BY_HAND: &str = "EPITOME: compact this conversation now.";
/// We compact at this many reported tokens at the latest.
const AT_MOST: u64 = 500_000;
/// Share of Gemini CLI's own threshold at which we compact, so as to come first.
const BEFORE_ITS_OWN: f64 = 0.9;

/// The cause of the compaction and the user's focus; `None`: do not compact. `reported`: tokens of the last
/// answer.
fn cause_and_focus(event: &Value, reported: Option<u64>, threshold: u64) -> Option<(Cause, Option<String>)> {
    // The AfterAgent that follows our own denial: denying that too would loop forever.
    if event["hook_event_name"] != "AfterAgent" || event["stop_hook_active"] == true {
        return None;
    }
    let prompt = event["prompt"].as_str().unwrap_or_default();
    if let Some(words) = prompt.trim_start().strip_prefix(BY_HAND) {
        let words = words.rsplit_once("Focus:").map(|it| it.1.trim()).filter(|it| !it.is_empty());
        return Some((Cause::Manual, words.map(str::to_owned)));
    }
    (reported? >= threshold).then_some((Cause::Auto, None))
}

/// Reported tokens from which we compact: before Gemini CLI does, at its `own` share of the window.
fn threshold(window: Option<u64>, own: f64) -> u64 {
    window.map_or(AT_MOST, |it| AT_MOST.min((it as f64 * own * BEFORE_ITS_OWN) as u64))
}

/// The history as Gemini CLI sends it, without our `/epitome:compact` prompts and the answers to them. The
/// transcript still has what the newest summary replaced, so that is dropped.
fn conversation(history: History) -> History {
    let meta = history.meta.clone();
    let mut messages = history.into_messages();
    if let Some(at) = messages.iter().rposition(|it| it.kind == Kind::Summary) {
        messages.drain(..at);
        // The model's short acknowledgement of the summary ("OK").
        let word =
            |it: &Message| it.role == Role::Assistant && it.calls().next().is_none() && it.plain().len() < 40;
        if messages.get(1).is_some_and(word) {
            messages.remove(1);
        }
    }
    let ours = |it: &Message| it.is_prompt() && it.plain().trim_start().starts_with(BY_HAND);
    let mut skip = false;
    messages.retain(|it| {
        if it.is_prompt() {
            skip = ours(it);
        }
        !skip
    });
    History::new(messages, meta)
}

/// The reply that compacts: `text` becomes the next user message.
fn reply(text: &str) -> Value {
    let reason = format!(
        "{text}\n\n(This replaces the conversation so far; it is no task. Answer OK, call no tool, and wait for the user.)"
    );
    json!({"decision": "deny", "reason": reason,
        "hookSpecificOutput": {"hookEventName": "AfterAgent", "clearContext": true}})
}

/// The file of the custom command `/epitome:compact`.
pub(super) fn command_file() -> String {
    format!(
        "# Made by `epitome install gemini-cli`; `epitome uninstall gemini-cli` removes it.\n\
         description = \"Compact this conversation with Epitome (offline, reversible)\"\n\
         prompt = \"\"\"\n{BY_HAND} Answer OK and call no tool: a hook does it when this turn ends. Focus: {{{{args}}}}\n\"\"\"\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_it_is_asked() {
        let event = |prompt: &str, again: bool| json!({"hook_event_name": "AfterAgent", "prompt": prompt, "stop_hook_active": again});
        let window = Some(1_048_576);
        let share = |set: Option<f64>| own_threshold(&|_| set.map(Value::from));
        assert_eq!(cause_and_focus(&event("x", false), Some(471_859), 471_859), Some((Cause::Auto, None)));
        assert_eq!(cause_and_focus(&event("x", false), Some(471_858), 471_859), None);
        assert_eq!(cause_and_focus(&event("x", false), None, 471_859), None);
        assert_eq!(cause_and_focus(&event("x", true), Some(900_000), 471_859), None);
        assert_eq!(threshold(None, share(None)), 500_000);
        assert_eq!(threshold(window, share(None)), 471_859);
        assert_eq!(threshold(window, share(Some(0.2))), 188_743);
        assert_eq!(threshold(window, share(Some(-3.0))), 471_859);
        let toml: toml::Table = command_file().parse().unwrap();
        let prompt = toml["prompt"].as_str().unwrap();
        let by_hand = |args: &str| cause_and_focus(&event(&prompt.replace("{{args}}", args), false), None, 0);
        assert_eq!(by_hand("the parser"), Some((Cause::Manual, Some("the parser".to_owned()))));
        assert_eq!(by_hand(""), Some((Cause::Manual, None)));
    }

    #[test]
    fn our_own_command_is_no_part_of_the_conversation() {
        let said = |role, text: &str| Message::text(role, Kind::Said, text);
        let history = History::new(
            vec![
                said(Role::User, "old"),
                Message::text(Role::User, Kind::Summary, "S"),
                said(Role::User, "fix"),
                said(Role::Assistant, "done"),
                said(Role::User, &format!("{BY_HAND} Focus: x")),
                said(Role::Assistant, "OK"),
            ],
            Default::default(),
        );
        let left: Vec<String> = conversation(history).messages().iter().map(Message::plain).collect();
        assert_eq!(left, ["S", "fix", "done"]);
    }
}
