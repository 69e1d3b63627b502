//! Damage in an export of OpenCode (its database is read in the same form): rows that are no JSON, tools that
//! never finish, and parts that the provider refuses.

use std::collections::BTreeSet;

use foldhash::{HashSet, HashSetExt as _};
use serde_json::json;

use crate::parse::raw::{Fields, quoted};
use crate::repair::media::{ANTHROPIC, Attachment, AttachmentBudget, GEMINI, Limits, OPENAI};
use crate::repair::pairs::Suffixes;
use crate::repair::{At, Damage, EMPTY, Findings, hash, object_of, plain_name};
use crate::wire::is_plain;
use crate::{Record, Source};
use history::error::Result;
use history::json;

/// The error of an interrupted tool (OpenCode 1.18, `SessionProcessor`).
const INTERRUPTED: &str = "Tool execution aborted";

/// The field that holds the text of a row that is no JSON.
const UNREADABLE: &str = "unreadable";

struct ElementRepair<'a, 'f> {
    at: At<'a>,
    found: &'a mut Findings<'f>,
    attachments: AttachmentBudget,
    ids: HashSet<u64>,
    /// Hashes of the ids of calls since the step began.
    calls: HashSet<u64>,
    id_suffixes: Suffixes,
    call_suffixes: Suffixes,
}

/// Checks that OpenCode can read every message and its provider refuses none.
pub(super) fn messages(source: &dyn Source, found: &mut Findings<'_>) -> Result<()> {
    let whole = source.text(0..source.len())?;
    let Some(export) = Fields::of(whole.trim()) else { return Ok(()) };
    let messages = export.list("messages").unwrap_or_default();
    let mut look = ElementRepair {
        at: At { record: Record { at: 0, len: whole.len() as u64 }, text: &whole },
        found,
        attachments: AttachmentBudget::default(),
        ids: HashSet::new(),
        calls: HashSet::new(),
        id_suffixes: Suffixes::default(),
        call_suffixes: Suffixes::default(),
    };
    let gone = (0..messages.len()).filter(|it| !look.message(messages[*it])).collect();
    let ElementRepair { attachments, found, at, .. } = look;
    found.remove(&at, &messages, &gone, "");
    attachments.archive_excess(found);
    Ok(())
}

impl ElementRepair<'_, '_> {
    /// Repairs a message; false if it must be removed.
    fn message(&mut self, raw: &str) -> bool {
        let place = self.at.range(raw).start;
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
        if let Some(new) = &new {
            self.found.set(&self.at, &info, "id", quoted(new));
        }
        let is_user = info.text("role").as_deref() == Some("user");
        let model = if is_user { info.object("model") } else { None };
        let limits = limits(model.as_ref().unwrap_or(&info));
        let parts = fields.list("parts").unwrap_or_default();
        let mut gone = BTreeSet::new();
        self.forget_calls();
        for (number, raw) in parts.iter().enumerate() {
            let Some(part) = Fields::of(raw) else { continue };
            let place = self.at.range(raw).start;
            let part_id = part.text("id").unwrap_or_default();
            if part.get(UNREADABLE).is_some() {
                self.found.note(Damage::BrokenRecord, place, format!("part {part_id} of message {id}"));
                gone.insert(number);
                continue;
            }
            if let Some(new) = self.renamed(&part_id, place, "part") {
                self.found.set(&self.at, &part, "id", quoted(&new));
            }
            if let Some(new) = &new {
                self.found.set(&self.at, &part, "messageID", quoted(new));
            }
            match part.text("type").as_deref() {
                Some("step-start") => self.forget_calls(),
                Some("text") if is_user && part.get("text") == Some("\"\"") => {
                    self.found.note(Damage::EmptyText, place, format!("message {id}"));
                    self.found.set(&self.at, &part, "text", quoted(EMPTY));
                }
                Some("tool") => self.tool(&part, place, limits),
                Some("file") => self.file(raw, &part, limits),
                _ => {}
            }
        }
        self.found.remove(&self.at, &parts, &gone, "");
        true
    }

    fn forget_calls(&mut self) {
        self.calls.clear();
        self.call_suffixes.clear();
    }

    /// A new id, if this one is already in use.
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
            self.found.set(&self.at, part, "callID", quoted(&new));
        }
        if !is_plain(&tool, 128) {
            self.found.note(Damage::BadToolName, place, format!("{tool:.60}"));
            self.found.set(&self.at, part, "tool", quoted(&plain_name(&tool, 64)));
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
            self.found.set(&self.at, part, "state", new);
            return;
        }
        if let Some(raw) = state.get("input").filter(|it| !it.starts_with('{')) {
            self.found.note(Damage::BadArguments, place, format!("{tool} {id}"));
            self.found.replace(self.at.range(raw), object);
        }
        let attachments = state.list("attachments").unwrap_or_default();
        // There can be no note among attachments, so they are only judged one by one.
        let limits = &limits.alone();
        let (mut gone, mut notes) = (BTreeSet::new(), String::new());
        for (number, raw) in attachments.iter().enumerate() {
            let Some(file) = Fields::of(raw) else { continue };
            if let Some(text) = self.attachment(raw, &file, limits, str::to_owned) {
                notes.push_str(&format!("\n\n{text}"));
                gone.insert(number);
            }
        }
        self.found.remove(&self.at, &attachments, &gone, "");
        if let Some(raw) = state.get("output").filter(|it| it.starts_with('"') && !notes.is_empty()) {
            let end = self.at.range(raw).end - 1;
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
            self.found.replace(self.at.range(raw), text);
        }
    }

    /// The replacement of an attachment, if it cannot stay.
    fn attachment(
        &mut self,
        raw: &str,
        file: &Fields,
        limits: &Limits,
        note: impl Fn(&str) -> String,
    ) -> Option<String> {
        let [mime, url] = [file.get("mime")?, file.get("url")?].map(|it| it.trim_matches('"'));
        let (declared, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
        let declared = declared.split(';').next().unwrap_or_default();
        let attachment = Attachment { raw, types: &[mime, declared], data };
        self.attachments.judge(&self.at, &attachment, limits, note, self.found)
    }
}

/// The limits of a model's provider.
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
