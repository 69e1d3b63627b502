//! Damage in a transcript: holes and circles in the chain of rows, ids that stand for two, and content that the API
//! refuses. Only rows that the client would send are looked into.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use foldhash::{HashMapExt as _, HashSet, HashSetExt as _};
use serde_json::json;

use super::chain::Index;
use super::row::{Row, RowKind};
use crate::raw::{Fields, list, quoted, text};
use crate::repair::media::{ANTHROPIC, Album, Attachment, Verdict};
use crate::repair::pairs::{CallIs, Pairs, ResultIs, removals};
use crate::repair::{
    Damage, EMPTY, Found, NO_RESULT, hash, is_plain, is_spoilt, object_of, orphan_text, plain_name, plain_text, range_in, whole_line,
};
use crate::{Record, Source, derive};
use history::error::Result;
use history::json;

// ── The chain ──

/// Every row hangs on one that is there, none on itself, and no two rows that say something else have one uuid.
pub(super) fn chain(source: &dyn Source, found: &mut Found<'_>) -> Result<()> {
    let index = Index::places(source)?;
    let rows = &index.rows;
    let is_main = |it: &usize| !rows[*it].sidechain;
    let linked = (0..rows.len()).filter(is_main).any(|it| rows[it].parent.is_some());
    if !linked {
        return Ok(());
    }
    let mut changes: HashMap<usize, Vec<(&str, String)>> = HashMap::new();
    let names = renamed(source, &index, &mut changes, found)?;
    let by_uuid: foldhash::HashMap<&str, usize> =
        rows.iter().enumerate().map(|(at, it)| (&*it.uuid, at)).collect();
    let mut parents: Vec<Option<usize>> = rows
        .iter()
        .map(|it| it.parent.as_ref().and_then(|parent| by_uuid.get(&**parent)).copied())
        .collect();
    let before = |at: usize| {
        (0..at).rev().find(|it| is_main(it) && !matches!(rows[*it].kind, RowKind::Link))
    };
    let name = |at: usize| names.get(&at).map_or_else(|| rows[at].uuid.to_string(), Clone::clone);
    let is_message =
        |it: usize| is_main(&it) && matches!(rows[it].kind, RowKind::User { .. } | RowKind::Assistant { .. });
    // Rows that only report something may hang in the air, if nothing else hangs on them.
    let mut carries: Vec<bool> = rows.iter().map(|it| !matches!(it.kind, RowKind::Link)).collect();
    for at in (0..rows.len()).rev() {
        if let Some(parent) = parents[at] {
            carries[parent] |= carries[at];
        }
    }
    let first_message = (0..rows.len()).find(|it| is_message(*it)).unwrap_or(rows.len());
    for (at, row) in rows.iter().enumerate().filter(|it| is_main(&it.0)) {
        let Some(parent) = row.parent.as_ref().filter(|_| parents[at].is_none() && carries[at] && first_message < at) else {
            continue;
        };
        if let Some(bridge) = before(at) {
            let place = index.records[row.record as usize].at;
            found.note(Damage::UnknownParent, place, format!("parentUuid {parent}"));
            parents[at] = Some(bridge);
            changes.entry(at).or_default().push(("parentUuid", quoted(&name(bridge))));
        }
    }
    for at in circles(&parents) {
        let place = index.records[rows[at].record as usize].at;
        found.note(Damage::ParentCycle, place, format!("uuid {}", rows[at].uuid));
        let new = before(at).map_or_else(|| "null".to_owned(), |it| quoted(&name(it)));
        changes.entry(at).or_default().push(("parentUuid", new));
    }
    let mut changes: Vec<_> = changes.into_iter().collect();
    changes.sort_by_key(|it| it.0);
    for (at, fields) in changes {
        let record = index.records[rows[at].record as usize];
        let bytes = source.bytes(record.range())?;
        let whole = json::mend(&bytes);
        let Some(old) = Fields::of(&whole) else { continue };
        for (key, new) in fields {
            if let Some((_, raw)) = old.iter().filter(|it| it.0 == key).last() {
                found.replace(range_in(record, &whole, raw), new);
            }
        }
    }
    Ok(())
}

/// New uuids for rows whose uuid an earlier row has that says something else; what comes later and hangs on that uuid
/// hangs on the later row.
fn renamed<'a>(
    source: &dyn Source,
    index: &'a Index,
    changes: &mut HashMap<usize, Vec<(&'a str, String)>>,
    found: &mut Found<'_>,
) -> Result<HashMap<usize, String>> {
    let rows = &index.rows;
    let mut first: foldhash::HashMap<&str, usize> = foldhash::HashMap::with_capacity(rows.len());
    let (mut names, mut new_names) = (HashMap::new(), HashMap::<&str, String>::new());
    for (at, row) in rows.iter().enumerate() {
        let of = |it: &Option<Arc<str>>| it.as_deref().and_then(|it| new_names.get(it)).map(|it| quoted(it));
        let (parent, answers) = (of(&row.parent), of(&row.answers));
        let mut change = |key, new| changes.entry(at).or_default().push((key, new));
        if let Some(new) = answers {
            change("sourceToolAssistantUUID", new);
        }
        let earlier = first.get(&*row.uuid).copied();
        let says_more = matches!(row.kind, RowKind::User { .. } | RowKind::Assistant { .. });
        let Some(earlier) = earlier.filter(|_| says_more && !row.sidechain) else {
            first.entry(&row.uuid).or_insert(at);
            if let Some(new) = parent {
                change("parentUuid", new);
            }
            continue;
        };
        let message = |it: &Row| -> Result<u64> {
            let bytes = source.bytes(index.records[it.record as usize].range())?;
            let whole = json::mend(&bytes);
            let message = Fields::of(&whole).and_then(|it| it.get("message").map(|it| hash(it.as_bytes())));
            Ok(message.unwrap_or_default())
        };
        if message(row)? == message(&rows[earlier])? {
            continue;
        }
        let place = index.records[row.record as usize].at;
        found.note(Damage::DuplicateId, place, format!("uuid {}", row.uuid));
        let new = derive::uuid(derive::digest(&row.uuid, "repair", at, ""));
        change("uuid", quoted(&new));
        if row.parent == rows[earlier].parent {
            change("parentUuid", quoted(&row.uuid));
        } else if let Some(new) = parent {
            change("parentUuid", new);
        }
        names.insert(at, new.clone());
        new_names.insert(&row.uuid, new);
    }
    Ok(names)
}

/// Of each circle of parents the first row.
fn circles(parents: &[Option<usize>]) -> Vec<usize> {
    // In which walk a row was met first; none yet: 0.
    let mut met = vec![0; parents.len()];
    let mut out = Vec::new();
    for start in 0..parents.len() {
        let (walk, mut at) = (start + 1, start);
        while met[at] == 0 {
            met[at] = walk;
            let Some(next) = parents[at] else { break };
            at = next;
            if met[at] == walk {
                let (mut least, mut it) = (at, parents[at]);
                while let Some(row) = it.filter(|it| *it != at) {
                    least = least.min(row);
                    it = parents[row];
                }
                out.push(least);
            }
        }
    }
    out
}

// ── What rows say ──

/// A call that waits for its result.
struct Open {
    response: Option<Arc<str>>,
    /// Where a row behind that of the call begins.
    behind: u64,
    /// The row that answers it, but for the result.
    row: String,
    uuid: Arc<str>,
    tool: String,
}

struct Rows<'a, 'f> {
    source: &'a dyn Source,
    found: &'a mut Found<'f>,
    pairs: Pairs<Open>,
    album: Album,
}

/// A row at hand.
struct At<'a> {
    row: &'a Row,
    record: Record,
    whole: &'a str,
}

impl At<'_> {
    fn range(&self, part: &str) -> Range<u64> {
        range_in(self.record, self.whole, part)
    }
}

/// Calls and results are pairs, and no block of a live row is one that the API refuses.
pub(super) fn rows(source: &dyn Source, found: &mut Found<'_>) -> Result<()> {
    let mut index = Index::places(source)?;
    let live = index.live();
    let mut rows = Rows { source, found, pairs: Pairs::default(), album: Album::default() };
    // The response that began last, while the user has said nothing after it: its calls may still run.
    let (mut running, mut begun) = (None, HashSet::new());
    for at in live {
        let row = &index.rows[at];
        let record = index.records[row.record as usize];
        match row.kind {
            RowKind::Assistant { api_error: false } => {
                if running != row.response && begun.insert(row.response.clone()) {
                    running.clone_from(&row.response);
                }
            }
            RowKind::User { result: true, .. } => {}
            RowKind::User { .. } | RowKind::LocalCommand => {
                running = None;
                begun.clear();
            }
            RowKind::Assistant { .. } | RowKind::Attachment | RowKind::Boundary | RowKind::Link => continue,
        }
        let bytes = source.bytes(record.range())?;
        let whole = json::mend(&bytes);
        rows.look(&At { row, record, whole: &whole })?;
    }
    let Rows { found, mut pairs, album, .. } = rows;
    pairs.forget(|it| it.response == running);
    for (id, open) in pairs.unanswered() {
        found.note(Damage::UnansweredCall, open.behind.saturating_sub(1), format!("{} {id}", open.tool));
        let new = derive::uuid(derive::digest(&open.uuid, "repair, result", 0, &id));
        let block = json!([{
            "tool_use_id": *id, "type": "tool_result", "is_error": true,
            "content": NO_RESULT,
        }]);
        let row = format!(
            "{}\"message\":{{\"role\":\"user\",\"content\":{block}}},\"uuid\":{}}}\n",
            open.row,
            quoted(&new)
        );
        found.replace(open.behind..open.behind, row);
    }
    album.done(found);
    Ok(())
}

impl Rows<'_, '_> {
    fn look(&mut self, at: &At<'_>) -> Result<()> {
        let Some(fields) = Fields::of(at.whole) else { return Ok(()) };
        let Some(message) = fields.object("message") else { return Ok(()) };
        let Some(content) = message.get("content") else { return Ok(()) };
        let assistant = matches!(at.row.kind, RowKind::Assistant { .. });
        if let Some(said) = text(content) {
            if said.trim().is_empty() {
                self.found.note(Damage::EmptyText, at.record.at, "content");
                self.found.replace(at.range(content), quoted(EMPTY));
            }
            return Ok(());
        }
        let Some(blocks) = list(content) else { return Ok(()) };
        let model = message.text("model").unwrap_or_default();
        let (mut gone, mut orphans) = (BTreeSet::new(), 0);
        for (number, raw) in blocks.iter().enumerate() {
            let Some(block) = Fields::of(raw) else { continue };
            match block.text("type").as_deref() {
                Some("text") if block.text("text").is_none_or(|it| it.trim().is_empty()) => {
                    // Of the model's the client leaves out blank ones by itself.
                    if !assistant {
                        self.found.note(Damage::EmptyText, at.record.at, "a text block");
                        gone.insert(number);
                    }
                }
                Some("thinking") if block.text("signature").is_some_and(|it| is_spoilt(&it)) => {
                    self.found.note(Damage::SpoiltSignature, at.record.at, "a thinking block");
                    gone.insert(number);
                }
                Some("thinking")
                    if model.starts_with("claude") && block.text("signature").is_none_or(|it| it.is_empty()) =>
                {
                    self.found.note(Damage::UnsignedThinking, at.record.at, "a thinking block");
                    gone.insert(number);
                }
                Some("tool_use") if assistant => self.call(at, &fields, &block)?,
                Some("tool_result") if !assistant => match self.result(at, raw, &block) {
                    Outcome::Stays => {}
                    Outcome::Goes => _ = gone.insert(number),
                    Outcome::Text => orphans += 1,
                },
                Some("image" | "document") => self.attachment(at, raw, &block),
                _ => {}
            }
        }
        if orphans == blocks.len() && fields.get("isMeta").is_none() {
            let begin = at.record.at + 1;
            self.found.replace(begin..begin, "\"isMeta\":true,");
        }
        self.remove(at, content, &blocks, &gone);
        Ok(())
    }

    /// Takes blocks out of a list; if it would be empty, a text stands there.
    fn remove(&mut self, at: &At<'_>, content: &str, blocks: &[&str], gone: &BTreeSet<usize>) {
        if gone.is_empty() {
            return;
        }
        let places: Vec<_> = blocks.iter().map(|it| at.range(it)).collect();
        match removals(&places, gone) {
            Some(ranges) => ranges.into_iter().for_each(|it| self.found.replace(it, "")),
            None => {
                let block = json!([{ "type": "text", "text": EMPTY }]);
                self.found.replace(at.range(content), block.to_string());
            }
        }
    }

    fn call(&mut self, at: &At<'_>, fields: &Fields, block: &Fields) -> Result<()> {
        let (id, tool) = (block.text("id").unwrap_or_default(), block.text("name").unwrap_or_default());
        let behind = whole_line(self.source, at.record)?.end;
        let kept = ["isSidechain", "userType", "entrypoint", "cwd", "sessionId", "version", "gitBranch", "timestamp"];
        let mut row = format!("{{\"parentUuid\":{},", quoted(&at.row.uuid));
        for key in kept {
            if let Some(raw) = fields.get(key) {
                row.push_str(&format!("\"{key}\":{raw},"));
            }
        }
        row.push_str(&format!("\"type\":\"user\",\"sourceToolAssistantUUID\":{},", quoted(&at.row.uuid)));
        let open =
            Open { response: at.row.response.clone(), behind, row, uuid: at.row.uuid.clone(), tool: tool.clone() };
        if let CallIs::Renamed(new) = self.pairs.call(&id, |it| is_plain(it, usize::MAX), open) {
            let damage = if is_plain(&id, usize::MAX) { Damage::DuplicateCall } else { Damage::BadCallId };
            self.found.note(damage, at.record.at, format!("{tool} {id}"));
            if let Some(raw) = block.get("id") {
                self.found.replace(at.range(raw), quoted(&new));
            }
        }
        if !is_plain(&tool, 128) {
            self.found.note(Damage::BadToolName, at.record.at, format!("{:.60}", tool));
            if let Some(raw) = block.get("name") {
                self.found.replace(at.range(raw), quoted(&plain_name(&tool, 128)));
            }
        }
        if let Some(raw) = block.get("input").filter(|it| !it.starts_with('{')) {
            self.found.note(Damage::BadArguments, at.record.at, format!("{tool} {id}"));
            self.found.replace(at.range(raw), object_of(raw));
        }
        Ok(())
    }

    fn result(&mut self, at: &At<'_>, raw: &str, block: &Fields) -> Outcome {
        let id = block.text("tool_use_id").unwrap_or_default();
        let content = block.get("content").unwrap_or("\"\"");
        let to_text = |it: &mut Self, damage: Damage| {
            it.found.note(damage, at.record.at, id.clone());
            let said = orphan_text(&plain_text(content));
            it.found.replace(at.range(raw), json!({ "type": "text", "text": said }).to_string());
            Outcome::Text
        };
        match self.pairs.result(&id, content) {
            ResultIs::Fine => {}
            ResultIs::Renamed(new) => {
                if let Some(raw) = block.get("tool_use_id") {
                    self.found.replace(at.range(raw), quoted(&new));
                }
            }
            ResultIs::Orphan => return to_text(self, Damage::OrphanResult),
            ResultIs::Second(false) => return to_text(self, Damage::DuplicateResult),
            ResultIs::Second(true) => {
                self.found.note(Damage::DuplicateResult, at.record.at, id);
                return Outcome::Goes;
            }
        }
        let failed = block.get("is_error") == Some("true");
        match (text(content), list(content)) {
            (Some(said), _) if failed && said.is_empty() => {
                self.found.note(Damage::EmptyText, at.record.at, format!("the result of {id}"));
                match block.get("content") {
                    Some(raw) => self.found.replace(at.range(raw), quoted(EMPTY)),
                    None => {
                        let begin = at.range(raw).start + 1;
                        self.found.replace(begin..begin, format!("\"content\":{},", quoted(EMPTY)));
                    }
                }
            }
            (_, Some(blocks)) => {
                let mut gone = BTreeSet::new();
                for (number, raw) in blocks.iter().enumerate() {
                    let Some(inner) = Fields::of(raw) else { continue };
                    match inner.text("type").as_deref() {
                        Some("text") if inner.text("text").is_none_or(|it| it.is_empty()) => {
                            self.found.note(Damage::EmptyText, at.record.at, format!("in the result of {id}"));
                            gone.insert(number);
                        }
                        Some("image" | "document") => self.attachment(at, raw, &inner),
                        _ => {}
                    }
                }
                self.remove(at, content, &blocks, &gone);
            }
            _ => {}
        }
        Outcome::Stays
    }

    fn attachment(&mut self, at: &At<'_>, raw: &str, block: &Fields) {
        let Some(source) = block.object("source") else { return };
        if source.text("type").as_deref() != Some("base64") {
            return;
        }
        let (mime, data) = (source.text("media_type").unwrap_or_default(), source.get("data").unwrap_or("\"\""));
        let bare = data.trim_matches('"');
        let attachment = Attachment { mime: &mime, data: bare, at: at.range(bare) };
        let note = |text: &str| json!({ "type": "text", "text": text }).to_string();
        let range = at.range(raw);
        match self.album.judge(&attachment, &ANTHROPIC, &range, note, self.found) {
            Verdict::Fine => {}
            Verdict::Declared(own) => {
                if let Some(raw) = source.get("media_type") {
                    self.found.replace(at.range(raw), quoted(own));
                }
            }
            Verdict::Note(text) => self.found.replace(range, text),
        }
    }
}

/// What becomes of a result.
enum Outcome {
    Stays,
    Goes,
    /// It is a text now.
    Text,
}
