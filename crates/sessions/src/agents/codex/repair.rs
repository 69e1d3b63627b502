//! Damage in a rollout: a missing first record, repeated histories, and items that the API refuses.
//!
//! A call without an output is no damage: Codex itself answers it with `aborted` in each request.

use std::collections::BTreeSet;
use std::ops::Range;

use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};
use serde_json::json;

use crate::Source;
use crate::parse::lines::each_line;
use crate::parse::raw::{Fields, list, quoted, text};
use crate::repair::media::{Attachment, AttachmentBudget, OPENAI};
use crate::repair::pairs::{Pairs, ResultIs};
use crate::repair::{
    At, Damage, EMPTY, Findings, hash, is_spoilt, object_of, orphan_text, plain_name, whole_line,
};
use crate::wire::is_plain;
use history::error::Result;
use history::json;

/// Minimum total bytes of histories that no resume reads, from which on they are removed.
const SUPERSEDED: u64 = if cfg!(test) { 4_096 } else { 64 << 20 };

/// A record: its `type`, the JSON of its `payload`, and all its fields.
fn parsed(whole: &str) -> Option<(String, &str, Fields<'_>)> {
    let fields = Fields::of(whole)?;
    Some((fields.text("type")?, fields.get("payload")?, fields))
}

// ── The envelope ──

/// Checks that the file names its session, and that the last record has an ordinal if earlier ones have.
pub(super) fn envelope(source: &dyn Source, found: &mut Findings<'_>) -> Result<()> {
    let (mut meta, mut first, mut context) = (false, None, None);
    let (mut last, mut ordinal) = (None, None);
    each_line(source, |_, record, bytes| {
        // Most records are only asked for their ordinal, which is at the front.
        let whole = json::mend(bytes);
        let Some((kind, payload, fields)) = parsed(&whole) else { return Ok(true) };
        meta |= kind == "session_meta";
        if first.is_none() {
            first = fields.get("timestamp").map(|it| (record.at, it.to_owned()));
        }
        if kind == "turn_context" && context.is_none() {
            context = Fields::of(payload).and_then(|it| it.text("cwd"));
        }
        let number = fields.number("ordinal");
        ordinal = number.or(ordinal);
        last = Some((record.at, number.is_none()));
        Ok(true)
    })?;
    if let (Some((at, true)), Some(ordinal)) = (last, ordinal) {
        found.note(Damage::MissingOrdinal, at, format!("after ordinal {ordinal}"));
        found.replace(at + 1..at + 1, format!("\"ordinal\":{},", ordinal + 1));
    }
    let Some((at, time)) = first.filter(|_| !meta) else { return Ok(()) };
    let stem = source.name().rsplit(['/', '\\']).next().and_then(|it| it.strip_suffix(".jsonl"));
    // `rollout-2026-11-20T09-15-33-<uuid>`
    let Some(id) = stem.and_then(|it| it.get(it.len().checked_sub(36)?..)) else { return Ok(()) };
    found.note(Damage::MissingHeader, at, format!("no session_meta; the file's name says {id}"));
    let (id, cwd) = (quoted(id), quoted(context.as_deref().unwrap_or("/")));
    let mode = if ordinal.is_some() { ",\"history_mode\":\"paginated\"" } else { "" };
    let number = if ordinal.is_some() { "\"ordinal\":0," } else { "" };
    found.replace(
        at..at,
        format!(
            "{{\"timestamp\":{time},{number}\"type\":\"session_meta\",\"payload\":{{\"id\":{id},\"timestamp\":{time},\"cwd\":{cwd},\
             \"originator\":\"codex_exec\",\"cli_version\":\"0.169.0\",\"source\":\"exec\"{mode}}}}}\n"
        ),
    );
    Ok(())
}

// ── Repetitions ──

/// A run of items that were in the rollout before.
#[derive(Default)]
struct Run {
    /// The index of the earlier item that the next item should equal.
    next: usize,
    items: usize,
    /// Whether an item has the id of a call, so that it cannot be equal by chance.
    is_certain: bool,
    lines: Vec<Range<u64>>,
}

/// Checks that no history is repeated, and that histories that no resume reads do not make the file huge.
pub(super) fn repetitions(source: &dyn Source, found: &mut Findings<'_>) -> Result<()> {
    let (mut items, mut first) = (Vec::new(), HashMap::new());
    let mut others = HashSet::new();
    let mut run = Run::default();
    let mut histories: Vec<Range<u64>> = Vec::new();
    let close = |run: &mut Run, found: &mut Findings<'_>| {
        let run = std::mem::take(run);
        if let (true, Some(begin)) = (run.is_certain && run.items > 1, run.lines.first()) {
            let what = format!("{} items that are already in the session", run.items);
            found.note(Damage::RepeatedHistory, begin.start, what);
            run.lines.into_iter().for_each(|it| found.replace(it, ""));
        }
    };
    each_line(source, |_, record, bytes| {
        let whole = json::mend(bytes);
        let Some((kind, payload, _)) = parsed(&whole) else { return Ok(true) };
        if kind != "response_item" {
            let fields = Fields::of(payload);
            if let Some(history) =
                fields.as_ref().filter(|_| kind == "compacted").and_then(|it| it.get("replacement_history"))
            {
                histories.push(At { record, text: &whole }.range(history));
                close(&mut run, found);
            }
            let again = !others.insert(hash(format!("{kind}{payload}").as_bytes()));
            if again && run.items > 0 {
                run.lines.push(whole_line(source, record)?);
            }
            return Ok(true);
        }
        let key = hash(payload.as_bytes());
        let number = items.len();
        if items.get(run.next) != Some(&key) || run.items == 0 {
            close(&mut run, found);
            if let Some(earlier) = first.get(&key) {
                run.next = *earlier;
            }
        }
        if first.contains_key(&key) && items.get(run.next) == Some(&key) {
            run.next += 1;
            run.items += 1;
            run.is_certain |= Fields::of(payload).is_some_and(|it| it.text("call_id").is_some());
            run.lines.push(whole_line(source, record)?);
        }
        first.entry(key).or_insert(number);
        items.push(key);
        Ok(true)
    })?;
    close(&mut run, found);
    // A resume reads the newest history, or the one before it if the user rolled back.
    let old = &histories[..histories.len().saturating_sub(2)];
    let size: u64 = old.iter().map(|it| it.end - it.start).sum();
    if let (true, Some(begin)) = (size >= SUPERSEDED, old.first()) {
        let detail =
            format!("{} histories of {} MB that are not read on resume", old.len(), size.div_ceil(1 << 20));
        found.note(Damage::RepeatedHistory, begin.start, detail);
        old.iter().for_each(|it| found.replace(it.clone(), "null"));
    }
    Ok(())
}

// ── Items ──

/// Checks that calls and outputs are paired, and that the API refuses no item that a resume sends.
pub(super) fn items(source: &dyn Source, found: &mut Findings<'_>) -> Result<()> {
    // The position of the history that a resume begins with, and the ids of all calls.
    let (mut base, mut calls) = (0, HashSet::new());
    each_line(source, |_, record, bytes| {
        let whole = json::mend(bytes);
        let Some((kind, payload, _)) = parsed(&whole) else { return Ok(true) };
        match (&*kind, Fields::of(payload)) {
            ("compacted", Some(it)) if it.get("replacement_history").is_some() => base = record.at,
            ("response_item", Some(it)) => {
                if let (Some(kind), Some(id)) = (it.text("type"), it.text("call_id"))
                    && !kind.ends_with("_output")
                {
                    calls.insert(hash(id.as_bytes()));
                }
            }
            _ => {}
        }
        Ok(true)
    })?;
    let mut items = ItemRepair {
        source,
        found,
        pairs: Pairs::default(),
        attachments: AttachmentBudget::default(),
        calls,
    };
    each_line(source, |_, record, bytes| {
        if record.at < base {
            return Ok(true);
        }
        let whole = json::mend(bytes);
        match parsed(&whole) {
            Some((kind, payload, _)) if kind == "response_item" => {
                items.item(&At { record, text: &whole }, payload, true)?;
            }
            Some((kind, payload, _)) if kind == "compacted" => {
                let history = Fields::of(payload).and_then(|it| it.list("replacement_history"));
                for it in history.unwrap_or_default() {
                    items.item(&At { record, text: &whole }, it, false)?;
                }
            }
            _ => {}
        }
        Ok(true)
    })?;
    let ItemRepair { found, attachments, .. } = items;
    attachments.archive_excess(found);
    Ok(())
}

struct ItemRepair<'a, 'f> {
    source: &'a dyn Source,
    found: &'a mut Findings<'f>,
    pairs: Pairs<()>,
    attachments: AttachmentBudget,
    /// Hashes of the ids of all calls, including those that a compaction removed.
    calls: HashSet<u64>,
}

impl ItemRepair<'_, '_> {
    /// `alone`: whether the item is a line of its own.
    fn item(&mut self, at: &At<'_>, raw: &str, alone: bool) -> Result<()> {
        let Some(fields) = Fields::of(raw) else { return Ok(()) };
        let kind = fields.text("type").unwrap_or_default();
        match &*kind {
            "message" => self.parts(at, fields.get("content")),
            "function_call" | "custom_tool_call" => self.call(at, &kind, &fields),
            "function_call_output" | "custom_tool_call_output" if self.output(at, raw, &fields) && alone => {
                self.found.replace(whole_line(self.source, at.record)?, "");
            }
            "reasoning" if alone && fields.text("encrypted_content").is_some_and(|it| is_spoilt(&it)) => {
                self.found.note(Damage::SpoiltSignature, at.record.at, fields.text("id").unwrap_or_default());
                self.found.replace(whole_line(self.source, at.record)?, "");
            }
            _ => {}
        }
        Ok(())
    }

    fn call(&mut self, at: &At<'_>, kind: &str, fields: &Fields) {
        let (id, tool) =
            (fields.text("call_id").unwrap_or_default(), fields.text("name").unwrap_or_default());
        let is_id = |it: &str| !it.is_empty() && it.chars().count() <= 64;
        if let Some(new) = self.pairs.call(&id, is_id, ()) {
            let damage = if is_id(&id) { Damage::DuplicateCall } else { Damage::BadCallId };
            self.found.note(damage, at.record.at, format!("{tool} {id:.70}"));
            self.calls.insert(hash(new.as_bytes()));
            self.found.set(at, fields, "call_id", quoted(&new));
        }
        if !is_plain(&tool, 64) {
            self.found.note(Damage::BadToolName, at.record.at, format!("{tool:.60}"));
            self.found.set(at, fields, "name", quoted(&plain_name(&tool, 64)));
        }
        let is_object = |it: &str| Fields::of(it.trim()).is_some();
        if let Some(raw) = fields.get("arguments").filter(|_| kind == "function_call")
            && text(raw).is_none_or(|it| !is_object(&it))
        {
            self.found.note(Damage::BadArguments, at.record.at, format!("{tool} {id:.70}"));
            let object = if raw.starts_with('{') { raw.to_owned() } else { object_of(raw) };
            self.found.replace(at.range(raw), quoted(&object));
        }
    }

    /// Repairs an output; true if it must be removed.
    fn output(&mut self, at: &At<'_>, raw: &str, fields: &Fields) -> bool {
        let id = fields.text("call_id").unwrap_or_default();
        let output = fields.get("output").unwrap_or("\"\"");
        let to_text = |it: &mut Self, damage: Damage| {
            it.found.note(damage, at.record.at, format!("{id:.70}"));
            let text = orphan_text(&crate::repair::plain_text(output));
            let content = json!([{ "type": "input_text", "text": text }]);
            let message = json!({ "type": "message", "role": "user", "content": content });
            it.found.replace(at.range(raw), message.to_string());
            false
        };
        match self.pairs.result(&id, output) {
            ResultIs::Fine => {}
            ResultIs::Renamed(new) => {
                self.found.set(at, fields, "call_id", quoted(&new));
            }
            // A compaction removed its call, and Codex leaves it out.
            ResultIs::Orphan if self.calls.contains(&hash(id.as_bytes())) => return false,
            ResultIs::Orphan => return to_text(self, Damage::OrphanResult),
            ResultIs::Second(false) => return to_text(self, Damage::DuplicateResult),
            ResultIs::Second(true) => {
                self.found.note(Damage::DuplicateResult, at.record.at, format!("{id:.70}"));
                return true;
            }
        }
        self.parts(at, fields.get("output"));
        false
    }

    fn parts(&mut self, at: &At<'_>, content: Option<&str>) {
        let parts = content.and_then(list).unwrap_or_default();
        let mut gone = BTreeSet::new();
        for (number, raw) in parts.iter().enumerate() {
            let Some(part) = Fields::of(raw).filter(|it| it.text("type").as_deref() == Some("input_image"))
            else {
                continue;
            };
            let Some(url) = part.get("image_url").map(|it| it.trim_matches('"')) else { continue };
            let Some((head, data)) = url.strip_prefix("data:").and_then(|it| it.split_once(',')) else {
                if url.is_empty() {
                    self.found.note(Damage::BrokenMedia, at.record.at, "an image without data");
                    gone.insert(number);
                }
                continue;
            };
            let mime = head.split(';').next().unwrap_or_default();
            let attachment = Attachment { raw, types: &[mime], data };
            let note = |text: &str| json!({ "type": "input_text", "text": text }).to_string();
            if let Some(note) = self.attachments.judge(at, &attachment, &OPENAI, note, self.found) {
                self.found.replace(at.range(raw), note);
            }
        }
        let text = json!({ "type": "input_text", "text": EMPTY });
        self.found.remove(at, &parts, &gone, text.to_string());
    }
}
