//! A response item, read in one pass. A field of the wrong type counts as missing; of duplicate fields the
//! last counts, as in JavaScript.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use super::items::{API, Family, Item, NOT_SENT, Pair, is_task, kind_of, own_summary};
use crate::parse::cursor::Cursor;
use crate::parse::raw::{Fields, text};
use crate::parse::spans;
use crate::parse::texts::{Scratch, Texts};
use crate::wire::media_of_url;
use crate::{Keep, is_cleared, refusal};
use history::{Call, Kind, MediaKind, Message, Opaque, Output, Part, Reasoning, Role, Text};

/// Reads response items, reusing its buffers.
pub(super) struct Reader<'k> {
    /// Without a `keep`, only the texts that decide whether an item begins a turn are read.
    pub(super) texts: Texts<'k>,
    scratch: Scratch,
}

/// An item, filled in as its fields are read.
#[derive(Default)]
struct ItemFields<'a> {
    id: Option<Cow<'a, str>>,
    call: Option<Arc<str>>,
    name: Option<Cow<'a, str>>,
    namespace: Option<Cow<'a, str>>,
    role: Option<Cow<'a, str>>,
    execution: Option<Cow<'a, str>>,
    content: Vec<Part>,
    /// The metadata that Codex recorded with a message.
    noted: Option<&'a str>,
    /// The readable texts of a reasoning item: its summary, its content.
    thought: [Option<String>; 2],
    sealed: Option<Text>,
    input: Option<Text>,
    output: Option<Output>,
}

/// A piece of content, filled in as its fields are read.
#[derive(Default)]
struct PieceFields<'a> {
    text: Option<Text>,
    url: Option<Cow<'a, str>>,
}

impl<'k> Reader<'k> {
    pub(super) fn new(keep: Option<&'k Keep<'k>>, at: u64) -> Self {
        Self { texts: Texts { keep, at }, scratch: Scratch::default() }
    }

    /// Reads a response item. `given` is its type if that is around the item (`{"Message":{…}}`) and not in
    /// it. `Ok(None)` is an item that is not sent to the model; `Err` says what was found instead of an item.
    pub(super) fn item(
        &mut self,
        it: &mut Cursor<'_>,
        given: Option<String>,
    ) -> Option<Result<Option<Item>, String>> {
        if it.peek()? != b'{' {
            it.pass()?;
            return Some(Err("expected a response item, found no object".into()));
        }
        let ((tag, found), place) =
            it.span(|it| it.typed(given, |it, found, tag, key| self.field(it, found, tag, key)))?;
        let Some(tag) = tag else {
            return Some(Err("expected a response item with a type, found none".into()));
        };
        // As it is sent: without the fields that only the rollout needs.
        let sealed = || {
            let fields = Fields::of(it.text_at(place)?)?;
            Some(opaque(&tag, &fields.with(&NOT_SENT.map(|it| (it, None::<&str>)))))
        };
        self.item_of(&tag, found, sealed)
    }

    /// Makes the item of its fields; `sealed` gives the whole item as one opaque part.
    fn item_of(
        &mut self,
        tag: &str,
        found: ItemFields<'_>,
        sealed: impl FnOnce() -> Option<Part>,
    ) -> Option<Result<Option<Item>, String>> {
        let id = found.id.as_deref().map(Into::into);
        let mut kind = Kind::Said;
        let mut pair = Pair::None;
        let (role, mut parts) = match (tag, found.call.clone()) {
            ("message", _) => match message(found) {
                Ok(Some(it)) => {
                    kind = it.1;
                    (it.0, it.2)
                }
                Ok(None) => return Some(Ok(None)),
                Err(what) => return Some(Err(what)),
            },
            // A message from another agent is input to the model; one that gives a task is this session's
            // prompt.
            ("agent_message", _) => {
                let (mut parts, rest): (Vec<Part>, Vec<Part>) =
                    found.content.into_iter().partition(|it| !matches!(it, Part::Opaque(_)));
                // An encrypted piece is useless outside its item, so the whole item is kept beside its texts.
                if !rest.is_empty() {
                    parts.push(sealed()?);
                }
                kind = if is_task(&parts) { Kind::Said } else { Kind::Context };
                (Role::User, parts)
            }
            ("reasoning", _) => (Role::Assistant, vec![self.reasoning(found)]),
            ("function_call" | "custom_tool_call" | "local_shell_call", Some(call)) => {
                let (family, part) = self.tool_call(tag, found, &call);
                pair = Pair::Call(family, call);
                (Role::Assistant, vec![part])
            }
            ("function_call_output" | "custom_tool_call_output", Some(call)) => {
                let family = if tag == "function_call_output" { Family::Function } else { Family::Custom };
                pair = Pair::Output(family, call.clone());
                let name = found.name.map(|it| self.scratch.names.of(&it));
                let output = found.output.unwrap_or_else(|| output_of("", self.texts));
                (Role::Tool, vec![Part::Output(Output { id: call, name, ..output })])
            }
            // Tool definitions on demand: no text could replace them, so they are kept or dropped whole.
            ("tool_search_call", call) => {
                pair = call.map_or(Pair::None, |it| Pair::Call(Family::Search, it));
                (Role::Assistant, vec![sealed()?])
            }
            ("tool_search_output", call) => {
                let call = call.filter(|_| found.execution.as_deref() != Some("server"));
                pair = call.map_or(Pair::None, |it| Pair::Output(Family::Search, it));
                (Role::Tool, vec![sealed()?])
            }
            ("compaction" | "compaction_summary" | "context_compaction", _) => {
                kind = Kind::Summary;
                (Role::Assistant, vec![sealed()?])
            }
            ("additional_tools", _) => {
                kind = Kind::Context;
                (Role::System, vec![sealed()?])
            }
            ("ghost_snapshot" | "compaction_trigger" | "other", _) => return Some(Ok(None)),
            (
                "function_call"
                | "custom_tool_call"
                | "local_shell_call"
                | "function_call_output"
                | "custom_tool_call_output",
                None,
            ) => return Some(Err(format!("expected a {tag} with a call_id, found none"))),
            // web_search_call, image_generation_call, and types that are newer than this reader.
            _ => (Role::Assistant, vec![sealed()?]),
        };
        let ours = unframed(role, &mut kind, &mut parts);
        // Only now, because the kind of a message depends on its texts; `keep` was already applied to all
        // other parts.
        let late = parts.iter_mut().filter(|it| matches!(it, Part::Text(_) | Part::Opaque(_)));
        late.for_each(|it| self.texts.apply_keep(it));
        Some(Ok(Some(Item { message: Message { id, ..Message::new(role, kind, parts) }, pair, ours })))
    }

    fn field<'a>(
        &mut self,
        it: &mut Cursor<'a>,
        found: &mut ItemFields<'a>,
        tag: &str,
        key: &str,
    ) -> Option<()> {
        match (tag, key) {
            (_, "id") => found.id = it.optional_string()?,
            (_, "call_id") => found.call = it.optional_string()?.map(|it| self.scratch.ids.of(&it)),
            (_, "name") => found.name = it.optional_string()?,
            (_, "namespace") => found.namespace = it.optional_string()?,
            (_, "execution") => found.execution = it.optional_string()?,
            ("message", "role") => found.role = it.optional_string()?,
            ("message" | "agent_message", "content") => found.content = self.content(it)?,
            ("message", "internal_chat_message_metadata_passthrough") => found.noted = Some(it.raw()?),
            ("reasoning", "summary") => found.thought[0] = it.optional(b'[', thoughts)?.flatten(),
            ("reasoning", "content") => found.thought[1] = it.optional(b'[', thoughts)?.flatten(),
            ("reasoning", "encrypted_content") => {
                found.sealed = it.optional(b'"', |it| self.text(it, |it| it.into()))?;
            }
            ("function_call", "arguments") => {
                found.input = it.optional(b'"', |it| self.text(it, compacted))?;
            }
            ("custom_tool_call", "input") => {
                found.input = it.optional(b'"', |it| self.text(it, |it| it.into()))?;
            }
            ("local_shell_call", "action") => {
                found.input = it.some(|it| Some(self.texts.of(&it.compact()?)))?;
            }
            ("function_call_output" | "custom_tool_call_output", "output") => {
                found.output = Some(self.output(it)?);
            }
            _ => it.pass()?,
        }
        Some(())
    }

    /// Reads a string and applies `change` to it.
    fn text(&mut self, it: &mut Cursor<'_>, change: fn(&str) -> Cow<'_, str>) -> Option<Text> {
        match self.texts.keep {
            Some(_) => it.text(&mut self.scratch.buffer).map(|it| self.texts.of(&change(it))),
            None => it.pass().map(|()| Text::default()),
        }
    }

    fn tool_call(&mut self, tag: &str, found: ItemFields<'_>, call: &Arc<str>) -> (Family, Part) {
        let input = |none: &str| found.input.unwrap_or_else(|| self.texts.of(none));
        let name = found.name.as_deref().unwrap_or_default();
        let names = &mut self.scratch.names;
        match tag {
            "custom_tool_call" => (Family::Custom, make_call(call, names.of(name), input(""), true)),
            "local_shell_call" => {
                (Family::Function, make_call(call, names.of("local_shell"), input("{}"), false))
            }
            _ => {
                let name = match found.namespace {
                    Some(space) if space.starts_with("mcp__") => names.of(&format!("{space}__{name}")),
                    Some(_) | None => names.of(name),
                };
                (Family::Function, make_call(call, name, input(""), false))
            }
        }
    }

    fn reasoning(&self, found: ItemFields<'_>) -> Part {
        let text = match found.thought {
            [Some(summary), Some(content)] => format!("{summary}\n{content}"),
            [summary, content] => summary.or(content).unwrap_or_default(),
        };
        Part::Reasoning(Reasoning { text: self.texts.of(&text), signature: found.sealed.map(Box::new) })
    }

    /// The content of a message: a string, or pieces.
    fn content(&mut self, it: &mut Cursor<'_>) -> Option<Vec<Part>> {
        let mut parts = Vec::new();
        match it.peek()? {
            b'"' => parts.push(Part::Text(it.text(&mut self.scratch.buffer)?.into())),
            b'[' => it.list(|it| {
                parts.push(self.piece(it)?);
                Some(())
            })?,
            _ => it.pass()?,
        }
        parts.shrink_to_fit();
        Some(parts)
    }

    fn piece(&mut self, it: &mut Cursor<'_>) -> Option<Part> {
        if it.peek()? != b'{' {
            return it.raw().map(|raw| opaque("", raw));
        }
        let ((tag, found), place) = it.span(|it| self.piece_fields(it, None))?;
        if let Some(tag) = tag {
            return part(&tag, found).or_else(|| Some(opaque(&tag, it.text_at(place)?)));
        }
        // `{"OutputText":{"text":…}}`
        let raw = it.text_at(place)?;
        let fields = Fields::of(raw)?;
        let Some((name, body)) = fields.iter().next().filter(|(_, body)| body.starts_with('{')) else {
            return Some(opaque("", raw));
        };
        let tag = snake(name);
        let (_, found) = self.piece_fields(&mut Cursor::of(body), Some(tag.clone()))?;
        Some(part(&tag, found).unwrap_or_else(|| opaque(&tag, raw)))
    }

    fn piece_fields<'a>(
        &mut self,
        it: &mut Cursor<'a>,
        given: Option<String>,
    ) -> Option<(Option<Cow<'a, str>>, PieceFields<'a>)> {
        it.typed(given, |it, found: &mut PieceFields<'a>, tag, key| {
            match (tag, key) {
                ("input_text" | "output_text" | "text", "text") | ("refusal", "refusal") => {
                    found.text = it.optional(b'"', |it| it.text(&mut self.scratch.buffer).map(Text::from))?;
                }
                ("input_image", "image_url") | ("input_audio", "audio_url") => {
                    found.url = it.optional_string()?;
                }
                _ => it.pass()?,
            }
            Some(())
        })
    }

    /// A tool's output; the caller sets its id.
    fn output(&mut self, it: &mut Cursor<'_>) -> Option<Output> {
        let texts = self.texts;
        let of = |text: &str| output_of(text, texts);
        match it.peek()? {
            _ if texts.keep.is_none() => it.pass().map(|()| of("")),
            b'"' => it.text(&mut self.scratch.buffer).map(of),
            b'[' => {
                let (mut texts, mut media) = (Vec::new(), Vec::new());
                for part in self.content(it)? {
                    match part {
                        Part::Text(text) => texts.push(text.as_str().to_owned()),
                        Part::Media(it) => media.push(it),
                        Part::Opaque(it) => texts.push(it.raw.as_str().to_owned()),
                        Part::Reasoning(_) | Part::Call(_) | Part::Output(_) => {}
                    }
                }
                let ends = texts.iter().scan(0, |end, it| {
                    *end += it.len() + 1;
                    Some(*end - 1)
                });
                let ends = if texts.len() > 1 { ends.collect() } else { [].into() };
                Some(Output { media: media.into(), ends, ..of(&texts.join("\n")) })
            }
            b'{' => {
                // Before 2025-10 an object: {content, success}.
                let raw = it.raw()?;
                let old: Value = serde_json::from_str(raw).unwrap_or_default();
                let output = old["content"].as_str().map_or_else(|| of(&compacted(raw)), of);
                Some(Output { failed: old["success"] == false || output.failed, ..output })
            }
            b'n' => it.pass().map(|()| of("")),
            _ => it.raw().map(of),
        }
    }
}

/// The texts of a reasoning item, joined by line breaks, if there are any.
fn thoughts(it: &mut Cursor<'_>) -> Option<Option<String>> {
    let mut joined: Option<String> = None;
    it.list(|it| {
        let text = it.member("text", Cursor::optional_string)?.flatten();
        match (&mut joined, text) {
            (Some(joined), Some(text)) => {
                joined.push('\n');
                joined.push_str(&text);
            }
            (None, Some(text)) => joined = Some(text.into_owned()),
            (_, None) => {}
        }
        Some(())
    })?;
    Some(joined)
}

/// Role, kind and parts; none for a message that Codex drops from its history.
fn message(found: ItemFields<'_>) -> Result<Option<(Role, Kind, Vec<Part>)>, String> {
    let parts = found.content;
    let role = match found.role.as_deref() {
        // The system prompt is sent separately.
        Some("system") => return Ok(None),
        Some("developer") => Role::System,
        Some("assistant") => Role::Assistant,
        Some("user") => Role::User,
        other => {
            return Err(format!("expected a message by user, assistant or developer, found {other:?}"));
        }
    };
    if parts.is_empty() {
        return Ok(None);
    }
    let kind = match kind_of(role, &parts) {
        Kind::Said if role == Role::User => recorded_kind(found.noted),
        kind => kind,
    };
    Ok(Some((role, kind, parts)))
}

/// Removes the frame of a message that is a summary of ours, and sets its kind; false for any other message.
fn unframed(role: Role, kind: &mut Kind, parts: &mut [Part]) -> bool {
    let (Role::User, [Part::Text(text)]) = (role, parts) else { return false };
    let Some(inner) = own_summary(text.as_str()).map(Text::from) else { return false };
    (*text, *kind) = (inner, Kind::Summary);
    true
}

/// The kind of a user message by the origin that Codex 0.169 records with it; older versions record none.
fn recorded_kind(noted: Option<&str>) -> Kind {
    let noted = noted.and_then(Fields::of);
    let kinds = noted.and_then(|it| it.list("content_item_kinds")).unwrap_or_default();
    let kinds: Vec<String> = kinds.into_iter().filter_map(text).collect();
    if kinds.iter().any(|it| it == "compaction.summary") {
        return Kind::Summary;
    }
    let by_user = |it: &String| it.starts_with("user.") || it == "unknown";
    if kinds.is_empty() || kinds.iter().any(by_user) { Kind::Said } else { Kind::Context }
}

/// A piece of content as a part; none for a type that has no part of its own.
fn part(tag: &str, found: PieceFields<'_>) -> Option<Part> {
    Some(match tag {
        "input_text" | "output_text" | "text" | "refusal" => Part::Text(found.text.unwrap_or_default()),
        "input_image" => Part::Media(media_of_url(MediaKind::Image, &found.url?)),
        "input_audio" => Part::Media(media_of_url(MediaKind::Audio, &found.url?)),
        _ => return None,
    })
}

fn opaque(tag: &str, raw: &str) -> Part {
    Part::Opaque(Opaque { api: API.into(), kind: tag.into(), raw: (&*compacted(raw)).into() })
}

fn make_call(id: &Arc<str>, name: Arc<str>, input: Text, freeform: bool) -> Part {
    Part::Call(Call { id: id.clone(), name, input, freeform, signature: None })
}

/// An output of only a text; the caller sets its id.
fn output_of(text: &str, texts: Texts) -> Output {
    let refusal = refusal::codex(text).map(Box::new);
    Output {
        failed: refusal.is_some() || says_failed(text),
        cleared: is_cleared(text) || text == "Output exceeded the available model context and was truncated",
        refusal,
        ..Output::new("", texts.of(text))
    }
}

/// Whether an output itself says that the call failed: a nonzero exit code where Codex writes it (in the
/// first lines, or in `metadata` of the older JSON), or one of Codex's own error messages.
fn says_failed(text: &str) -> bool {
    const REFUSALS: [&str; 7] = [
        "aborted",
        "execution error:",
        "exec_command failed",
        "failed in sandbox",
        "apply_patch verification failed",
        "unsupported call",
        "tool call error",
    ];
    if REFUSALS.iter().any(|it| text.starts_with(it)) {
        return true;
    }
    if text.starts_with("{\"output\":") || text.starts_with("{\"metadata\":") {
        let code = Fields::of(text).and_then(|it| it.object("metadata")).and_then(|it| it.get("exit_code"));
        return code.is_some_and(|it| it != "0");
    }
    // The command, which may have many lines, can come before the report.
    let report = text.strip_prefix("Command: ").and_then(|it| it.split_once("\nChunk ID: "));
    report
        .map_or(text, |it| it.1)
        .lines()
        .take(6)
        .take_while(|it| !it.starts_with("Output:"))
        .filter_map(|it| {
            it.strip_prefix("Process exited with code ").or_else(|| it.strip_prefix("Exit code: "))
        })
        .any(|it| it.trim() != "0")
}

/// JSON without white space between its tokens; what is not JSON stays as it is.
fn compacted(raw: &str) -> Cow<'_, str> {
    match Cursor::whole(raw.as_bytes(), Cursor::value_tight) {
        Some((json, true)) => Cow::Borrowed(json),
        Some((json, false)) => Cow::Owned(spans::compacted(json)),
        None => Cow::Borrowed(raw),
    }
}

pub(super) fn snake(name: &str) -> String {
    let mut out = String::new();
    for it in name.chars() {
        if it.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(it.to_ascii_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_failures() {
        for (text, failed) in [
            (
                "Chunk ID: 1\nWall time: 0 seconds\nProcess exited with code 0\nOutput:\nProcess exited with code 3",
                false,
            ),
            ("Chunk ID: 1\nWall time: 0 seconds\nProcess exited with code 3\nOutput:\n", true),
            ("Exit code: 1\nWall time: 0\nOutput:\nx", true),
            (
                "Command: /bin/zsh -lc \"node - <<'EOF'\n1\n2\n3\n4\n5\n6\nEOF\"\nChunk ID: 1\nWall time: 0 seconds\nProcess exited with code 1\nOutput:\n",
                true,
            ),
            (r#"{"output":"x","metadata":{"exit_code":0,"duration_seconds":0.1}}"#, false),
            (r#"{"output":"x","metadata":{"exit_code":101,"duration_seconds":0.1}}"#, true),
            ("Plan updated", false),
            ("aborted", true),
            ("", false),
        ] {
            assert_eq!(says_failed(text), failed, "{text}");
        }
    }
}
