//! Damage in an export of OpenCode, which is also how its database is read: rows that are no JSON, tools that run for
//! ever, and parts that the provider refuses.

use std::collections::BTreeSet;
use std::ops::Range;

use foldhash::{HashSet, HashSetExt as _};
use serde_json::json;

use crate::parse::raw::{Fields, quoted};
use crate::repair::media::{ANTHROPIC, Album, Attachment, GEMINI, Limits, OPENAI, Verdict};
use crate::repair::pairs::{Suffixes, removals};
use crate::repair::{Damage, EMPTY, Findings, hash, is_plain, object_of, plain_name, range_in};
use crate::{Record, Source};
use history::error::Result;
use history::json;

/// What a tool that was interrupted says (OpenCode 1.18, `SessionProcessor`).
const INTERRUPTED: &str = "Tool execution aborted";

/// Under this name stands the text of a row that is no JSON.
const UNREADABLE: &str = "unreadable";

struct Look<'a, 'f> {
    whole: &'a str,
    found: &'a mut Findings<'f>,
    album: Album,
    ids: HashSet<u64>,
    /// Ids of calls since the step began.
    calls: HashSet<u64>,
    id_suffixes: Suffixes,
    call_suffixes: Suffixes,
}

/// No message is one that OpenCode cannot read or its provider refuses.
pub(super) fn messages(source: &dyn Source, found: &mut Findings<'_>) -> Result<()> {
    let bytes = source.bytes(0..source.len())?;
    let whole = json::mend(&bytes);
    let Some(export) = Fields::of(whole.trim()) else { return Ok(()) };
    let messages = export.list("messages").unwrap_or_default();
    let mut look = Look {
        whole: &whole,
        found,
        album: Album::default(),
        ids: HashSet::new(),
        calls: HashSet::new(),
        id_suffixes: Suffixes::default(),
        call_suffixes: Suffixes::default(),
    };
    let mut gone = BTreeSet::new();
    for (number, raw) in messages.iter().enumerate() {
        if !look.message(raw) {
            gone.insert(number);
        }
    }
    look.remove(&messages, &gone);
    let Look { album, found, .. } = look;
    album.done(found);
    Ok(())
}

impl Look<'_, '_> {
    fn range(&self, part: &str) -> Range<u64> {
        range_in(Record { at: 0, len: self.whole.len() as u64 }, self.whole, part)
    }

    /// Takes elements out of a list.
    fn remove(&mut self, elements: &[&str], gone: &BTreeSet<usize>) {
        let places: Vec<_> = elements.iter().map(|it| self.range(it)).collect();
        match (removals(&places, gone), places.first().zip(places.last())) {
            (Some(ranges), _) => ranges.into_iter().for_each(|it| self.found.replace(it, "")),
            (None, Some((first, last))) => self.found.replace(first.start..last.end, ""),
            (None, None) => {}
        }
    }

    /// A message; whether it stays.
    fn message(&mut self, raw: &str) -> bool {
        let place = self.range(raw).start;
        let fields = Fields::of(raw);
        let Some((fields, info)) = fields.and_then(|it| it.object("info").map(|info| (it, info))) else {
            return true;
        };
        let id = info.text("id").unwrap_or_default();
        if info.get(UNREADABLE).is_some() {
            self.found.note(Damage::BrokenRecord, place, format!("message {id}"));
            return false;
        }
        let new = self.renamed(&id, place, "message");
        if let (Some(new), Some(raw)) = (&new, info.get("id")) {
            self.found.replace(self.range(raw), quoted(new));
        }
        let is_user = info.text("role").as_deref() == Some("user");
        let model = if is_user { info.object("model") } else { None };
        let limits = limits(model.as_ref().unwrap_or(&info));
        let parts = fields.list("parts").unwrap_or_default();
        let mut gone = BTreeSet::new();
        self.forget_calls();
        for (number, raw) in parts.iter().enumerate() {
            let Some(part) = Fields::of(raw) else { continue };
            let place = self.range(raw).start;
            let part_id = part.text("id").unwrap_or_default();
            if part.get(UNREADABLE).is_some() {
                self.found.note(Damage::BrokenRecord, place, format!("part {part_id} of message {id}"));
                gone.insert(number);
                continue;
            }
            if let (Some(new), Some(raw)) = (self.renamed(&part_id, place, "part"), part.get("id")) {
                self.found.replace(self.range(raw), quoted(&new));
            }
            if let (Some(new), Some(raw)) = (&new, part.get("messageID")) {
                self.found.replace(self.range(raw), quoted(new));
            }
            match part.text("type").as_deref() {
                Some("step-start") => self.forget_calls(),
                Some("text") if is_user && part.get("text") == Some("\"\"") => {
                    self.found.note(Damage::EmptyText, place, format!("message {id}"));
                    if let Some(raw) = part.get("text") {
                        self.found.replace(self.range(raw), quoted(EMPTY));
                    }
                }
                Some("tool") => self.tool(&part, place, limits),
                Some("file") => self.file(raw, &part, limits),
                _ => {}
            }
        }
        self.remove(&parts, &gone);
        true
    }

    fn forget_calls(&mut self) {
        self.calls.clear();
        self.call_suffixes.clear();
    }

    /// Another id, if this one is another's already.
    fn renamed(&mut self, id: &str, place: u64, what: &str) -> Option<String> {
        if id.is_empty() || self.ids.insert(hash(id.as_bytes())) {
            return None;
        }
        self.found.note(Damage::DuplicateId, place, format!("{what} {id}"));
        Some(self.id_suffixes.free(id, |it| self.ids.insert(hash(it.as_bytes()))))
    }

    fn tool(&mut self, part: &Fields, place: u64, limits: &Limits) {
        let (id, tool) = (part.text("callID").unwrap_or_default(), part.text("tool").unwrap_or_default());
        if !id.is_empty() && !self.calls.insert(hash(id.as_bytes())) {
            self.found.note(Damage::DuplicateCall, place, format!("{tool} {id}"));
            let new = self.call_suffixes.free(&format!("{id}_"), |it| self.calls.insert(hash(it.as_bytes())));
            if let Some(raw) = part.get("callID") {
                self.found.replace(self.range(raw), quoted(&new));
            }
        }
        if !is_plain(&tool, 128) {
            self.found.note(Damage::BadToolName, place, format!("{tool:.60}"));
            if let Some(raw) = part.get("tool") {
                self.found.replace(self.range(raw), quoted(&plain_name(&tool, 64)));
            }
        }
        let Some(state) = part.object("state") else { return };
        let input = state.get("input").unwrap_or("{}");
        let object = if input.starts_with('{') { input.to_owned() } else { object_of(input) };
        if matches!(state.text("status").as_deref(), Some("running" | "pending")) {
            self.found.note(Damage::RunningTool, place, format!("{tool} {id}"));
            let time = state.object("time");
            let start = time.as_ref().and_then(|it| it.get("start")).unwrap_or("0");
            let error = quoted(INTERRUPTED);
            let new = format!(
                "{{\"status\":\"error\",\"input\":{object},\"error\":{error},\"time\":{{\"start\":{start},\"end\":{start}}}}}"
            );
            if let Some(raw) = part.get("state") {
                self.found.replace(self.range(raw), new);
            }
            return;
        }
        if let Some(raw) = state.get("input").filter(|it| !it.starts_with('{')) {
            self.found.note(Damage::BadArguments, place, format!("{tool} {id}"));
            self.found.replace(self.range(raw), object);
        }
        let attachments = state.list("attachments").unwrap_or_default();
        // Among attachments a note would be none: they are only judged one by one.
        let limits = &limits.alone();
        let (mut gone, mut notes) = (BTreeSet::new(), String::new());
        for (number, raw) in attachments.iter().enumerate() {
            let Some(file) = Fields::of(raw) else { continue };
            if let Some(text) = self.attachment(raw, &file, limits, str::to_owned) {
                notes.push_str(&format!("\n\n{text}"));
                gone.insert(number);
            }
        }
        self.remove(&attachments, &gone);
        if let Some(raw) = state.get("output").filter(|it| it.starts_with('"') && !notes.is_empty()) {
            let end = self.range(raw).end - 1;
            let notes = quoted(&notes);
            self.found.replace(end..end, &notes.as_bytes()[1..notes.len() - 1]);
        }
    }

    fn file(&mut self, raw: &str, part: &Fields, limits: &Limits) {
        let ids: Vec<_> =
            ["id", "sessionID", "messageID"].iter().filter_map(|it| Some((*it, part.text(it)?))).collect();
        let note = |text: &str| {
            let mut note = json!({ "type": "text", "synthetic": true, "text": text });
            for (key, id) in &ids {
                json::set(&mut note, key, id.as_str());
            }
            note.to_string()
        };
        if let Some(text) = self.attachment(raw, part, limits, note) {
            self.found.replace(self.range(raw), text);
        }
    }

    /// What takes the place of an attachment, if it cannot stay.
    fn attachment(
        &mut self,
        raw: &str,
        file: &Fields,
        limits: &Limits,
        note: impl Fn(&str) -> String,
    ) -> Option<String> {
        let (mime, url) = (file.text("mime")?, file.get("url")?.trim_matches('"'));
        let data = url.strip_prefix("data:").and_then(|it| it.split_once(";base64,"))?.1;
        let attachment = Attachment { mime: &mime, data, at: self.range(data) };
        let range = self.range(raw);
        match self.album.judge(&attachment, limits, &range, note, self.found) {
            Verdict::Fine => None,
            Verdict::Note(text) => Some(text),
            Verdict::Declared(own) => {
                let declared = url.strip_prefix("data:").and_then(|it| it.split_once(';')).map(|it| it.0);
                if let (Some(raw), Some(declared)) = (file.get("mime"), declared) {
                    self.found.replace(self.range(raw), quoted(own));
                    self.found.replace(self.range(declared), own);
                }
                None
            }
        }
    }
}

/// What the provider of a model takes.
fn limits(model: &Fields) -> &'static Limits {
    let name = format!(
        "{} {}",
        model.text("providerID").unwrap_or_default(),
        model.text("modelID").unwrap_or_default()
    );
    if name.contains("anthropic") || name.contains("claude") {
        &ANTHROPIC
    } else if name.contains("google") || name.contains("gemini") {
        &GEMINI
    } else {
        &OPENAI
    }
}
