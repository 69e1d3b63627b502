//! A line of a rollout, read in one pass. A field of the wrong type counts as missing; of duplicate fields
//! the last counts, as in JavaScript.

use std::borrow::Cow;
use std::ops::Range;

use super::item::{Reader, snake};
use super::items::{Item, Live};
use super::usage::{Report, report};
use crate::derive;
use crate::parse::cursor::Cursor;
use crate::parse::raw::{Fields, place};
use history::{Kind, Role};

/// A line, as far as a replay needs it.
pub(super) struct RolloutLine {
    pub(super) ordinal: Option<u64>,
    pub(super) at: Option<i64>,
    pub(super) payload: Payload,
}

pub(super) struct Payload {
    /// The window in tokens, if an event states it.
    pub(super) window: Option<u64>,
    /// The entry, or what is wrong with it.
    pub(super) entry: Result<RolloutEntry, String>,
}

/// The content of a line.
#[derive(Debug)]
pub(super) enum RolloutEntry {
    SessionMeta {
        is_paginated: bool,
        /// Whether the thread continues one in another file.
        goes_on: bool,
    },
    /// A response item that is sent.
    Item {
        /// Whether it begins a user turn. To Codex a summary does too; only context that Codex injected does
        /// not.
        starts_turn: bool,
        /// The item, if its texts are kept.
        live: Option<Box<Live>>,
    },
    Compacted {
        message: String,
        has_history: bool,
    },
    /// The id of the turn that this context belongs to.
    TurnContext(Option<String>),
    /// A full state, not a change of it.
    WorldState,
    /// The token usage in an event.
    TokenCountEvent(Option<Box<Report>>),
    /// The token usage in a `token_usage_record`.
    UsageRecord(Box<Report>),
    TurnStarted(Option<String>),
    TurnEnded(Option<String>),
    RolledBack(u64),
    /// An event: the user said something.
    UserMessage,
    /// An event: an item that the user wrote is complete. It begins no turn.
    UserItem,
    Nothing,
}

impl Reader<'_> {
    /// Reads a line.
    ///
    /// # Errors
    /// What was found instead of a line of Codex.
    pub(super) fn line(&mut self, line: &[u8]) -> Result<RolloutLine, String> {
        Cursor::mended(line, |it| self.fields(it)).unwrap_or_else(|| {
            Err("expected a JSON object, found something else; the line is skipped".into())
        })
    }

    fn fields(&mut self, it: &mut Cursor<'_>) -> Option<Result<RolloutLine, String>> {
        let (mut at, mut ordinal, mut tag, mut payload) = (None, None, None, None);
        it.object(|it, name| {
            match name {
                "timestamp" => at = it.optional_string()?,
                "ordinal" => ordinal = it.optional_number()?,
                "type" => tag = it.optional_string()?,
                "payload" if it.peek()? == b'n' => payload = it.some(|_| None)?,
                "payload" => {
                    let (read, place) = it.span(|it| self.payload(it, tag.as_deref().unwrap_or_default()))?;
                    payload = Some((read, tag.clone(), place.start));
                }
                _ => it.pass()?,
            }
            Some(())
        })?;
        let Some(tag) = tag else {
            return Some(Err("expected a line with a type, found none; it is skipped".into()));
        };
        let Some((mut payload, read_as, place)) = payload else {
            return Some(Err(format!("expected a payload in a {tag:?} line, found none; it is skipped")));
        };
        if read_as.as_ref() != Some(&tag) {
            payload = self.payload(&mut it.at(place), &tag)?;
        }
        let at = at.and_then(|it: Cow<'_, str>| derive::parse_time(&it));
        if let Ok(RolloutEntry::Item { live: Some(live), .. }) = &mut payload.entry {
            live.message.at = at;
        }
        Some(Ok(RolloutLine { ordinal, at, payload }))
    }

    fn payload(&mut self, it: &mut Cursor<'_>, tag: &str) -> Option<Payload> {
        let entry = match tag {
            "event_msg" => match it.optional(b'{', event)? {
                Some((entry, window)) => return Some(Payload { window, entry: Ok(entry) }),
                None => Ok(RolloutEntry::Nothing),
            },
            "response_item" => {
                let (item, place) = it.span(|it| self.item(it, None))?;
                item.map(|it| self.entry(it, place))
            }
            "rollout_item" => self.wrapped(it)?,
            "inter_agent_communication" => {
                it.pass()?;
                Err("what another agent sent is not read from this kind of line; it is left out".into())
            }
            "session_meta" => {
                let found = it.json()?;
                Ok(RolloutEntry::SessionMeta {
                    is_paginated: found["history_mode"] == "paginated",
                    goes_on: !found["history_base"].is_null(),
                })
            }
            "compacted" => Ok(it.optional(b'{', compacted)?.unwrap_or(COMPACTED)),
            "turn_context" => Ok(RolloutEntry::TurnContext(
                it.member("turn_id", Cursor::optional_string)?.flatten().map(Cow::into_owned),
            )),
            "world_state" => match it.member("full", |it| it.begins_with(b't'))? {
                Some(true) => Ok(RolloutEntry::WorldState),
                Some(false) | None => Ok(RolloutEntry::Nothing),
            },
            "token_usage_record" => {
                let report = usage_report(it.raw()?, "usage", "thread_token_usage");
                Ok(report.and_then(|it| it.0).map_or(RolloutEntry::Nothing, RolloutEntry::UsageRecord))
            }
            _ => it.pass().map(|()| Ok(RolloutEntry::Nothing))?,
        };
        Some(Payload { window: None, entry })
    }

    /// The entry for an item: `Nothing` if it is not sent. `place`: its range in its record.
    fn entry(&self, item: Option<Item>, place: Range<usize>) -> RolloutEntry {
        let Some(Item { message, pair, ours: _ }) = item else { return RolloutEntry::Nothing };
        let starts_turn = message.role == Role::User && matches!(message.kind, Kind::Said | Kind::Summary);
        let begin = self.texts.at;
        let at = Some(begin + place.start as u64..begin + place.end as u64);
        let live = self.texts.keep.map(|_| Box::new(Live { message, record: 0, at, pair, starts_turn }));
        RolloutEntry::Item { starts_turn, live }
    }

    /// A line whose body is wrapped in the name of its variant, as in illustrations of the format.
    fn wrapped(&mut self, it: &mut Cursor<'_>) -> Option<Result<RolloutEntry, String>> {
        let (payload, start) = it.span(Cursor::raw).map(|(it, place)| (it, place.start))?;
        let body = Fields::of(payload);
        let Some((name, inner)) = body.as_ref().and_then(|it| it.iter().next()) else {
            return Some(Err(
                "expected a rollout item in the payload, found none; the line is skipped".into()
            ));
        };
        let at = |part: &str| place(payload, part).map(|place| start + place.start..start + place.end);
        Some(match (name, Fields::of(inner)) {
            ("ResponseItem", Some(variant)) => match variant.iter().next() {
                Some((tag, body)) => {
                    let place = at(body)?;
                    self.item(&mut it.at(place.start), Some(snake(tag)))?.map(|it| self.entry(it, place))
                }
                None => Err("expected a response item, found an empty object".into()),
            },
            ("Compacted", Some(_)) => Ok(compacted(&mut it.at(at(inner)?.start))?),
            ("Compacted", None) => Ok(COMPACTED),
            (name, _) => Err(format!("expected ResponseItem or Compacted, found {name:?}")),
        })
    }
}

/// A `compacted` line without a body.
const COMPACTED: RolloutEntry = RolloutEntry::Compacted { message: String::new(), has_history: false };

fn compacted(it: &mut Cursor<'_>) -> Option<RolloutEntry> {
    let (mut message, mut has_history) = (None, false);
    it.object(|it, name| {
        match name {
            "message" => message = it.optional_string()?,
            "replacement_history" => has_history = it.optional(b'[', Cursor::pass)?.is_some(),
            _ => it.pass()?,
        }
        Some(())
    })?;
    Some(RolloutEntry::Compacted { message: message.unwrap_or_default().into_owned(), has_history })
}

/// The entry of an event, and the window if it states one.
fn event(it: &mut Cursor<'_>) -> Option<(RolloutEntry, Option<u64>)> {
    let (mut tag, mut turn, mut window, mut turns) = (None, None, None, None);
    let (mut reported, mut is_users) = (None, false);
    it.object(|it, name| {
        match name {
            "type" => tag = it.optional_string()?,
            "turn_id" => turn = it.optional_string()?,
            "model_context_window" => window = it.optional_number()?,
            "num_turns" => turns = it.optional_number()?,
            "info" => reported = usage_report(it.raw()?, "last_token_usage", "total_token_usage"),
            "item" => {
                let tag = it.member("type", Cursor::optional_string)?.flatten();
                is_users = tag.as_deref() == Some("UserMessage");
            }
            _ => it.pass()?,
        }
        Some(())
    })?;
    let turn = turn.map(Cow::into_owned);
    let entry = match tag.as_deref().unwrap_or_default() {
        "task_started" | "turn_started" => RolloutEntry::TurnStarted(turn),
        "task_complete" | "turn_complete" | "turn_aborted" => RolloutEntry::TurnEnded(turn),
        "thread_rolled_back" => RolloutEntry::RolledBack(turns.unwrap_or(0)),
        "user_message" => RolloutEntry::UserMessage,
        "item_completed" if is_users => RolloutEntry::UserItem,
        "token_count" => match reported {
            Some((report, of_count)) => {
                window = of_count.or(window);
                RolloutEntry::TokenCountEvent(report)
            }
            None => RolloutEntry::Nothing,
        },
        _ => RolloutEntry::Nothing,
    };
    Some((entry, window))
}

/// The token usage of the last request and of all so far, in the fields with these names; and the window.
fn usage_report(raw: &str, last: &str, so_far: &str) -> Option<(Option<Box<Report>>, Option<u64>)> {
    let fields = Fields::of(raw)?;
    let report = fields.object(last).map(|it| Box::new(report(&it, fields.object(so_far).as_ref())));
    Some((report, fields.number("model_context_window")))
}

#[cfg(test)]
mod tests {
    use super::super::items::Pair;
    use super::*;
    use crate::parse::texts::WHOLE;
    use history::{Part, Role, Text};

    fn read(line: &str) -> Result<RolloutLine, String> {
        Reader::new(Some(WHOLE), 0).line(line.as_bytes())
    }

    fn entry(line: &str) -> Result<RolloutEntry, String> {
        read(line)?.payload.entry
    }

    fn item(payload: &str) -> Live {
        let line = format!(r#"{{"type":"response_item","payload": {payload}}}"#);
        let live = live(&line);
        assert_eq!(&line[place(&live)], payload);
        live
    }

    fn live(line: &str) -> Live {
        let Ok(RolloutEntry::Item { live: Some(live), .. }) = entry(line) else { panic!("{line}") };
        *live
    }

    fn place(live: &Live) -> Range<usize> {
        live.at.as_ref().map_or(0..0, |it| it.start as usize..it.end as usize)
    }

    #[test]
    fn a_type_may_come_late_or_twice() {
        let text = r#""content":[{"text":"x","type":"output_text"}],"role":"assistant""#;
        for payload in [
            format!(r#"{{"type":"message",{text}}}"#),
            format!(r#"{{{text},"type":"message"}}"#),
            format!(r#"{{"type":"reasoning",{text},"type":"message"}}"#),
            format!(r#"{{"type":"message","content":"other",{text}}}"#),
        ] {
            let item = item(&payload);
            assert_eq!((item.message.role, item.message.plain()), (Role::Assistant, "x".to_owned()));
        }
        let line = r#"{"payload":{"turn_id":"t"},"type":"event_msg","type":"turn_context"}"#;
        assert!(matches!(entry(line), Ok(RolloutEntry::TurnContext(Some(it))) if it == "t"));
    }

    #[test]
    fn a_field_of_the_wrong_type_is_missing() {
        let call = item(r#"{"type":"function_call","call_id":"c","name":[1],"arguments":{"a":1}}"#);
        let Part::Call(made) = &call.message.parts[0] else { panic!("{:?}", call.message) };
        assert_eq!((&*made.name, made.input.as_str()), ("", ""));
        assert!(matches!(call.pair, Pair::Call(_, id) if &*id == "c"));
        let line =
            r#"{"type":"event_msg","payload":{"type":"task_started","turn_id":7,"model_context_window":-1}}"#;
        let payload = read(line).unwrap().payload;
        assert!(matches!((payload.entry, payload.window), (Ok(RolloutEntry::TurnStarted(None)), None)));
        for (line, what) in [
            ("[]", "expected a JSON object"),
            (r#"{"type":1,"payload":{}}"#, "a line with a type"),
            (r#"{"type":"event_msg","payload":{},"payload":null}"#, "expected a payload in a \"event_msg\""),
            (r#"{"type":"response_item","payload":[]}"#, "found no object"),
            (r#"{"type":"response_item","payload":{"type":"message","role":1}}"#, "found None"),
            (r#"{"type":"response_item","payload":{"type":"function_call","call_id":1}}"#, "a call_id"),
        ] {
            let found = entry(line).err().unwrap_or_default();
            assert!(found.contains(what), "{line}: {found}");
        }
    }

    #[test]
    fn half_characters_are_mended_where_they_are_taken() {
        let output = r#"{"type":"function_call_output","call_id":"c","output":"a\ud83d"}"#;
        let message = item(output).message;
        let Part::Output(made) = &message.parts[0] else { panic!("{message:?}") };
        assert_eq!(made.text.as_str(), "a\u{fffd}");
        let Part::Opaque(made) = &item(r#"{"type":"new","metadata":1,"x":["\ud83d"]}"#).message.parts[0]
        else {
            panic!("{output}")
        };
        assert_eq!(made.raw, Text::from(r#"{"type":"new","x":["\ufffd"]}"#));
    }

    #[test]
    fn events_are_read_in_any_order() {
        let line = r#"{"type":"event_msg","payload":{"info":{"last_token_usage":{"input_tokens":5,"total_tokens":7},
            "model_context_window":9},"model_context_window":8,"type":"token_count"}}"#;
        let payload = read(line).unwrap().payload;
        let Ok(RolloutEntry::TokenCountEvent(Some(report))) = payload.entry else { panic!("{line}") };
        assert_eq!((report.total, report.usage.sent(), payload.window), (7, 5, Some(9)));
        let line =
            r#"{"type":"event_msg","payload":{"item":{"type":"UserMessage"},"type":"item_completed"}}"#;
        assert!(matches!(entry(line), Ok(RolloutEntry::UserItem)));
        let line = r#"{"type":"event_msg","payload":{"type":"agent_message","message":"x","turn_id":"t"}}"#;
        assert!(matches!(entry(line), Ok(RolloutEntry::Nothing)));
    }

    #[test]
    fn a_name_may_stand_around_an_item() {
        let line = r#"{"type":"rollout_item","payload":{"ResponseItem":{"Message":{"role":"assistant",
            "content":[{"OutputText":{"text":"a"}}]}}}}"#;
        let live = live(line);
        assert_eq!(live.message.plain(), "a");
        assert!(line[place(&live)].starts_with(r#"{"role""#));
        let line =
            r#"{"type":"rollout_item","payload":{"Compacted":{"message":"s","replacement_history":[]}}}"#;
        assert!(matches!(entry(line), Ok(RolloutEntry::Compacted { has_history: true, .. })));
    }
}
