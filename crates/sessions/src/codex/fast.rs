//! The lines that make up nearly all of a rollout, read in one pass. Whatever is not exactly as expected here is left to
//! the reader that takes everything ([`super::rollout`]); where both read a line, they read the same.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::items::{Family, Item, Pair, compacted, make_call, output_of};
use super::usage::{Report, Tokens, report};
use crate::cursor::{Cursor, Recent, Room, Seen};
use crate::derive;
use history::{Kind, Message, Output, Part, Reasoning, Role, Text};

pub(super) struct Fast {
    pub(super) ordinal: Option<u64>,
    pub(super) at: Option<i64>,
    pub(super) said: Said,
}

/// What a line says.
pub(super) enum Said {
    /// An item that begins no turn, and where its JSON stands in the line. Nothing where texts are not asked for.
    Item(Option<Item>, Range<usize>),
    /// What was counted, and how large the window is.
    Counted(Option<Report>, Option<u64>),
    /// A turn's id where it begins, and how large the window is.
    TurnStarted(Option<String>, Option<u64>),
    /// The id of the turn that a context is of.
    TurnContext(Option<String>),
    /// That the user said something.
    UserMessage,
    /// Nothing that a replay needs.
    Nothing,
}

/// Events that a replay goes by and that are read elsewhere.
const EVENTS: [&str; 5] =
    ["task_complete", "turn_complete", "turn_aborted", "thread_rolled_back", "item_completed"];

pub(super) struct Reader<'k> {
    /// What becomes of texts; without it, nothing is made of items.
    pub(super) keep: Option<&'k dyn Fn(&str) -> Text>,
    pub(super) held: &'k mut Held,
}

/// Room for a text that stands escaped, and for one that is put together of several; names of tools and ids of calls,
/// which their outputs name too.
#[derive(Default)]
pub(super) struct Held {
    text: Room,
    joined: String,
    names: Recent,
    ids: Recent,
}

impl Reader<'_> {
    /// Reads a line, if it is one of the usual ones.
    pub(super) fn look(&mut self, line: &[u8]) -> Option<Fast> {
        let (mut at, mut ordinal, mut tag, mut said, mut seen) = (None, None, None, None, Seen::default());
        Cursor::whole(line, |it| {
            it.object(|it, name| {
                match name {
                    "timestamp" => at = seen.once(0, it.some(Cursor::string))?,
                    "ordinal" => ordinal = seen.once(1, it.some(Cursor::number))?,
                    "type" => tag = Some(seen.once(2, it.string())?),
                    "payload" => {
                        let payload = match tag.as_deref()? {
                            "event_msg" => event(it),
                            "turn_context" => turn_context(it),
                            "response_item" => it.span(|it| self.item(it)).map(|(it, at)| Said::Item(it, at)),
                            _ => None,
                        };
                        said = Some(seen.once(3, payload)?);
                    }
                    _ => it.pass()?,
                }
                Some(())
            })
        })?;
        let at = at.and_then(|it: Cow<'_, str>| derive::parse_time(&it));
        Some(Fast { ordinal, at, said: said? })
    }

    /// An item. Its type stands in front of what it holds.
    fn item(&mut self, it: &mut Cursor<'_>) -> Option<Option<Item>> {
        let (mut tag, mut seen) = (None::<Cow<'_, str>>, Seen::default());
        let (mut id, mut role, mut call, mut name) = (None, None, None, None);
        let (mut parts, mut text, mut sealed, mut output) = (Vec::new(), None, None, None);
        it.object(|it, key| {
            match (tag.as_deref().unwrap_or_default(), key) {
                (_, "type") => tag = Some(seen.once(0, it.string())?),
                ("", _) => return None,
                (_, "id") => id = seen.once(1, it.some(Cursor::string))?,
                (_, "call_id") => call = seen.once(2, it.some(Cursor::string))?,
                (_, "name") => name = seen.once(3, it.some(Cursor::string))?,
                (_, "namespace") => return None,
                ("message", "role") => role = seen.once(4, it.some(Cursor::string))?,
                ("message", "content") => seen.once(5, self.blocks(it, &mut parts))?,
                ("reasoning", "summary") => text = seen.once(5, it.some(|it| self.summary(it)))?,
                ("reasoning", "content") => seen.once(6, it.some(|_| None::<()>)).map(|_| ())?,
                ("reasoning", "encrypted_content") => sealed = seen.once(7, it.some(|it| self.text(it)))?,
                ("function_call", "arguments") => text = seen.once(5, it.some(|it| self.arguments(it)))?,
                ("custom_tool_call", "input") => text = seen.once(5, it.some(|it| self.text(it)))?,
                ("function_call_output" | "custom_tool_call_output", "output") => {
                    output = Some(seen.once(5, self.output(it))?);
                }
                _ => it.pass()?,
            }
            Some(())
        })?;
        let text = text.unwrap_or_default();
        let call: Option<Arc<str>> = call.map(|it| self.held.ids.of(&it));
        let (role, part, pair) = match (&*tag?, call) {
            ("message", _) if role? == "assistant" && seen.has(5) => (Role::Assistant, None, Pair::None),
            ("reasoning", _) => {
                let part = Part::Reasoning(Reasoning { text, signature: sealed.map(Box::new) });
                (Role::Assistant, Some(part), Pair::None)
            }
            (tag @ ("function_call" | "custom_tool_call"), Some(call)) => {
                let family = if tag == "function_call" { Family::Function } else { Family::Custom };
                let name = self.held.names.of(name.as_deref().unwrap_or_default());
                let part = make_call(&call, name, text, family == Family::Custom);
                (Role::Assistant, Some(part), Pair::Call(family, call))
            }
            (tag @ ("function_call_output" | "custom_tool_call_output"), Some(call)) => {
                let family = if tag == "function_call_output" { Family::Function } else { Family::Custom };
                let output =
                    Output { id: call.clone(), name: name.map(|it| self.held.names.of(&it)), ..output? };
                (Role::Tool, Some(Part::Output(output)), Pair::Output(family, call))
            }
            _ => return None,
        };
        match part {
            Some(part) => parts = vec![part],
            None => parts.shrink_to_fit(),
        }
        let message = Message { id: id.map(|it| (*it).into()), ..Message::new(role, Kind::Said, parts) };
        Some(self.keep.map(|_| Item { message, pair, ours: false }))
    }

    fn text(&mut self, it: &mut Cursor<'_>) -> Option<Text> {
        match self.keep {
            Some(keep) => it.text(&mut self.held.text).map(keep),
            None => it.pass().map(|()| Text::default()),
        }
    }

    fn arguments(&mut self, it: &mut Cursor<'_>) -> Option<Text> {
        match self.keep {
            Some(keep) => it.text(&mut self.held.text).map(|it| keep(&compacted(it))),
            None => it.pass().map(|()| Text::default()),
        }
    }

    /// What a tool answered, if it is text alone.
    fn output(&mut self, it: &mut Cursor<'_>) -> Option<Output> {
        match self.keep {
            Some(keep) => it.text(&mut self.held.text).map(|it| output_of(it, keep)),
            None => it.pass().map(|()| output_of("", &|it| it.into())),
        }
    }

    /// What the model said: texts, and nothing else.
    fn blocks(&mut self, it: &mut Cursor<'_>, parts: &mut Vec<Part>) -> Option<()> {
        let mut some = false;
        it.list(|it| {
            some = true;
            let text =
                self.block(it, |reader, it| reader.text(it), &["output_text", "input_text", "text"])?;
            parts.push(Part::Text(text));
            Some(())
        })?;
        some.then_some(())
    }

    /// What can be read of a thought, joined.
    fn summary(&mut self, it: &mut Cursor<'_>) -> Option<Text> {
        self.held.joined.clear();
        let mut many = 0;
        it.list(|it| {
            let join = |reader: &mut Self, it: &mut Cursor<'_>| {
                let Held { text, joined, .. } = &mut *reader.held;
                joined.push_str(if many == 0 { "" } else { "\n" });
                joined.push_str(it.text(text)?);
                Some(())
            };
            self.block(it, join, &["summary_text"])?;
            many += 1;
            Some(())
        })?;
        Some(self.keep.map_or_else(Text::default, |keep| keep(&self.held.joined)))
    }

    /// A block of one of these types, what `take` makes of its text.
    fn block<T>(
        &mut self,
        it: &mut Cursor<'_>,
        take: impl FnOnce(&mut Self, &mut Cursor<'_>) -> Option<T>,
        tags: &[&str],
    ) -> Option<T> {
        let (mut tag, mut text, mut take, mut seen) = (None, None, Some(take), Seen::default());
        it.object(|it, key| {
            match key {
                "type" => tag = Some(seen.once(0, it.string())?),
                "text" => text = Some(take.take()?(self, it)?),
                _ => it.pass()?,
            }
            Some(())
        })?;
        tags.contains(&&*tag?).then_some(text?)
    }
}

/// The context of a turn.
fn turn_context(it: &mut Cursor<'_>) -> Option<Said> {
    let (mut turn, mut seen) = (None, Seen::default());
    it.object(|it, key| {
        match key {
            "turn_id" => turn = seen.once(0, it.some(Cursor::string))?,
            _ => it.pass()?,
        }
        Some(())
    })?;
    Some(Said::TurnContext(turn.map(Cow::into_owned)))
}

/// An event. Its type stands in front of what was counted.
fn event(it: &mut Cursor<'_>) -> Option<Said> {
    let (mut tag, mut counted, mut seen) = (None::<Cow<'_, str>>, None, Seen::default());
    let (mut turn, mut window) = (None, None);
    it.object(|it, key| {
        match key {
            "type" => tag = Some(seen.once(0, it.string())?),
            "info" if tag.as_deref()? == "token_count" => counted = seen.once(1, it.some(count))?,
            "turn_id" => turn = seen.once(2, it.some(Cursor::string))?,
            "model_context_window" => window = seen.once(3, it.some(Cursor::number))?,
            _ => it.pass()?,
        }
        Some(())
    })?;
    match &*tag? {
        "task_started" | "turn_started" => Some(Said::TurnStarted(turn.map(Cow::into_owned), window)),
        // Elsewhere it is not expected.
        _ if seen.has(3) => None,
        "user_message" => Some(Said::UserMessage),
        tag => (!EVENTS.contains(&tag)).then_some(counted.unwrap_or(Said::Nothing)),
    }
}

/// `info` of a count.
fn count(it: &mut Cursor<'_>) -> Option<Said> {
    let (mut last, mut so_far, mut window, mut seen) = (None, None, None, Seen::default());
    it.object(|it, key| {
        match key {
            "last_token_usage" => last = seen.once(0, it.some(Tokens::of))?,
            "total_token_usage" => so_far = seen.once(1, it.some(Tokens::of))?,
            "model_context_window" => window = seen.once(2, it.some(Cursor::number))?,
            _ => it.pass()?,
        }
        Some(())
    })?;
    Some(Said::Counted(last.map(|it| report(it, so_far)), window))
}

#[cfg(test)]
mod tests {
    use super::super::items::parse;
    use super::*;
    use crate::raw::Fields;

    fn look(line: &str, keep: bool) -> Option<Fast> {
        let make = |text: &str| Text::from(text);
        Reader { keep: keep.then_some(&make), held: &mut Held::default() }.look(line.as_bytes())
    }

    #[test]
    fn reads_what_the_other_reader_reads() {
        let payloads = [
            r#"{"type":"message","role":"assistant","id":"m","content":[{"type":"output_text","text":"a\nb"}]}"#,
            r#"{"type":"function_call","name":"shell","call_id":"c","arguments":"{ \"a\": 1 }"}"#,
            r#"{"type":"function_call","name":"shell","call_id":"c","arguments":"not { json"}"#,
            r#"{"type":"custom_tool_call","name":"apply_patch","call_id":"c","input":"*** Begin"}"#,
            r#"{"type":"function_call_output","call_id":"c","output":"Exit code: 1\nOutput:\nno"}"#,
            r#"{"type":"custom_tool_call_output","call_id":"c","name":"exec","output":""}"#,
            r#"{"type":"reasoning","id":"r","summary":[],"content":null,"encrypted_content":"gAAA"}"#,
            r#"{"type":"reasoning","summary":[{"type":"summary_text","text":""},{"type":"summary_text","text":"b"}]}"#,
        ];
        for payload in payloads {
            let line = format!(
                r#"{{"timestamp":"2026-11-20T09:15:35.675Z","type":"response_item","payload": {payload}}}"#
            );
            let fast = look(&line, true).unwrap();
            assert_eq!(fast.at, Some(1_795_166_135_675));
            let Said::Item(Some(item), place) = fast.said else { panic!("{payload}") };
            let other = parse(payload, None).unwrap().unwrap();
            assert_eq!((item.message, item.pair, item.ours), (other.message, other.pair, other.ours));
            assert_eq!(&line[place], payload);
            assert!(matches!(look(&line, false).unwrap().said, Said::Item(None, _)));
        }
    }

    #[test]
    fn leaves_the_rest_to_the_other_reader() {
        for line in [
            r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"x"}]}}"#,
            r#"{"type":"response_item","payload":{"type":"message","role":"assistant","content":[]}}"#,
            r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":[]}}"#,
            r#"{"type":"response_item","payload":{"type":"function_call","namespace":"mcp__x","call_id":"c"}}"#,
            r#"{"type":"response_item","payload":{"call_id":"c","type":"function_call"}}"#,
            r#"{"type":"response_item","payload":{"type":"reasoning","summary":[{"text":"untyped"}]}}"#,
            r#"{"payload":{"type":"agent_message"},"type":"event_msg"}"#,
            r#"{"type":"event_msg","payload":{"type":"task_complete"}}"#,
            r#"{"type":"event_msg","payload":{"type":"task_started","turn_id":7}}"#,
            r#"{"type":"event_msg","payload":{"type":"task_started","model_context_window":"large"}}"#,
            r#"{"type":"turn_context","payload":{"turn_id":[]}}"#,
            r#"{"type":"event_msg","payload":{"type":"token_count","info":{"model_context_window":-1}}}"#,
            r#"{"type":"event_msg","payload":{"type":"new","model_context_window":1}}"#,
            r#"{"type":"compacted","payload":{"type":"x"}}"#,
            r#"{"type":"event_msg","type":"event_msg","payload":{"type":"agent_message"}}"#,
            r#"{"type":"event_msg","payload":{"type":"agent_message"}"#,
        ] {
            assert!(Fields::of(line).is_some() || !line.ends_with("}}"), "{line}");
            assert!(look(line, true).is_none(), "{line}");
        }
        let said = |line: &str| look(line, true).unwrap().said;
        let line = r#"{"type":"event_msg","payload":{"type":"agent_message","message":"x","turn_id":"t"}}"#;
        assert!(matches!(said(line), Said::Nothing));
        let line = r#"{"type":"event_msg","payload":{"type":"user_message","message":"x"}}"#;
        assert!(matches!(said(line), Said::UserMessage));
        let line = r#"{"type":"event_msg","payload":{"model_context_window":9,"turn_id":"t","type":"turn_started"}}"#;
        assert!(matches!(said(line), Said::TurnStarted(Some(turn), Some(9)) if turn == "t"));
        let line = r#"{"type":"turn_context","payload":{"turn_id":"t","cwd":"/x"}}"#;
        assert!(matches!(said(line), Said::TurnContext(Some(turn)) if turn == "t"));
    }
}
