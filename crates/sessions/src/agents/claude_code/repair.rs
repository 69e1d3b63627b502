//! Damage in a transcript: missing parents and cycles in the chain of rows, duplicate uuids, and content that
//! the API refuses. Content is checked only in rows that the client would send.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use foldhash::{HashMapExt as _, HashSet, HashSetExt as _};
use serde_json::json;

use super::chain::Index;
use super::row::{Row, RowKind};
use crate::parse::lines::Coverage;
use crate::parse::raw::{Fields, list, quoted, text};
use crate::repair::media::{ANTHROPIC, Attachment, AttachmentBudget};
use crate::repair::pairs::{Pairs, ResultIs};
use crate::repair::{
    At, Damage, EMPTY, Findings, LOST_TOOL, NO_RESULT, hash, is_spoilt, object_of, orphan_text, plain_name,
    plain_text, whole_line,
};
use crate::wire::is_plain;
use crate::{Record, Source, derive};
use history::error::Result;

// ── The chain ──

/// Checks that all parents exist, without cycles, and that rows with different content have different uuids.
pub(super) fn chain(source: &dyn Source, found: &mut Findings<'_>) -> Result<()> {
    let index = Index::of(source, None, Coverage::Whole)?;
    let rows = &index.rows;
    let is_main = |it: &usize| !rows[*it].sidechain;
    let linked = (0..rows.len()).filter(is_main).any(|it| rows[it].parent.is_some());
    if !linked {
        return Ok(());
    }
    let mut changes: HashMap<usize, Vec<(&str, String)>> = HashMap::new();
    let names = renamed(source, &index, &mut changes, found)?;
    let named = |at: usize| names.get(&at).map_or(&*rows[at].uuid, String::as_str);
    let by_uuid: foldhash::HashMap<&str, usize> = (0..rows.len()).map(|at| (named(at), at)).collect();
    let parent_of = |at: usize| {
        let new = changes.get(&at).and_then(|it| it.iter().rfind(|it| it.0 == "parentUuid"));
        let new = new.and_then(|it| text(&it.1));
        by_uuid.get(new.as_deref().or(rows[at].parent.as_deref())?).copied()
    };
    let mut parents: Vec<Option<usize>> = (0..rows.len()).map(parent_of).collect();
    let before = |at: usize| (0..at).rev().find(|it| is_main(it) && !matches!(rows[*it].kind, RowKind::Link));
    let is_message =
        |it: usize| is_main(&it) && matches!(rows[it].kind, RowKind::User { .. } | RowKind::Assistant { .. });
    // Rows that only report something may lack a parent, unless rows of another kind descend from them.
    let mut carries: Vec<bool> = rows.iter().map(|it| !matches!(it.kind, RowKind::Link)).collect();
    for at in (0..rows.len()).rev() {
        if let Some(parent) = parents[at] {
            carries[parent] |= carries[at];
        }
    }
    let first_message = (0..rows.len()).find(|it| is_message(*it)).unwrap_or(rows.len());
    for (at, row) in rows.iter().enumerate().filter(|it| is_main(&it.0)) {
        let Some(parent) =
            row.parent.as_ref().filter(|_| parents[at].is_none() && carries[at] && first_message < at)
        else {
            continue;
        };
        if let Some(bridge) = before(at) {
            let place = index.records[row.record as usize].at;
            found.note(Damage::UnknownParent, place, format!("parentUuid {parent}"));
            parents[at] = Some(bridge);
            changes.entry(at).or_default().push(("parentUuid", quoted(named(bridge))));
        }
    }
    for at in circles(&parents) {
        let place = index.records[rows[at].record as usize].at;
        found.note(Damage::ParentCycle, place, format!("uuid {}", rows[at].uuid));
        let new = before(at).map_or_else(|| "null".to_owned(), |it| quoted(named(it)));
        changes.entry(at).or_default().push(("parentUuid", new));
    }
    let mut changes: Vec<_> = changes.into_iter().collect();
    changes.sort_by_key(|it| it.0);
    for (at, fields) in changes {
        let record = index.records[rows[at].record as usize];
        let whole = source.text(record.range())?;
        let Some(old) = Fields::of(&whole) else { continue };
        for (key, new) in fields {
            if let Some((_, raw)) = old.iter().filter(|it| it.0 == key).last() {
                found.replace(At { record, text: &whole }.range(raw), new);
            }
        }
    }
    Ok(())
}

/// New uuids for rows that share their uuid with an earlier row of different content; later children of that
/// uuid become children of the later row.
fn renamed<'a>(
    source: &dyn Source,
    index: &'a Index,
    changes: &mut HashMap<usize, Vec<(&'a str, String)>>,
    found: &mut Findings<'_>,
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
            let whole = source.text(index.records[it.record as usize].range())?;
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

/// The first row of each cycle of parents.
fn circles(parents: &[Option<usize>]) -> Vec<usize> {
    // The number of the walk that first reached each row; 0: none yet.
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

// ── The content of rows ──

/// A call that waits for its result.
struct OpenCall {
    response: Option<Arc<str>>,
    /// Index of its row in the path.
    place: usize,
    tool: String,
}

struct RowRepair<'a, 'f> {
    found: &'a mut Findings<'f>,
    pairs: Pairs<OpenCall>,
    attachments: AttachmentBudget,
    /// Where a block can be added to what the model said last; none once the user has said something.
    reply_end: Option<u64>,
    /// Path indices of the rows that lost all their content.
    unlinked: Vec<usize>,
}

/// A row that would be sent.
struct LiveRow<'a> {
    row: &'a Row,
    /// Index in the path.
    place: usize,
    at: At<'a>,
}

/// Checks that calls and results are paired, and that the API refuses no block of a live row.
pub(super) fn rows(source: &dyn Source, found: &mut Findings<'_>) -> Result<()> {
    let mut index = Index::of(source, None, Coverage::Whole)?;
    let live = index.live();
    let mut rows = RowRepair {
        found,
        pairs: Pairs::default(),
        attachments: AttachmentBudget::default(),
        reply_end: None,
        unlinked: Vec::new(),
    };
    // The latest response to begin, until the user says something: its calls may still be running.
    let (mut running, mut begun) = (None, HashSet::new());
    for (place, at) in live.iter().copied().enumerate() {
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
                rows.reply_end = None;
            }
            RowKind::Assistant { .. } | RowKind::Attachment | RowKind::Boundary | RowKind::Link => continue,
        }
        let whole = source.text(record.range())?;
        rows.check(&LiveRow { row, place, at: At { record, text: &whole } });
    }
    let RowRepair { found, mut pairs, attachments, unlinked, .. } = rows;
    let gone: HashSet<usize> = unlinked.into_iter().map(|it| live[it]).collect();
    unlink(source, &index, &gone, found)?;
    pairs.forget(|it| it.response == running);
    let mut batches: BTreeMap<usize, Vec<serde_json::Value>> = BTreeMap::new();
    for (id, open) in pairs.unanswered() {
        let call = index.records[index.rows[live[open.place]].record as usize];
        found.note(Damage::UnansweredCall, call.at, format!("{} {id}", open.tool));
        // After the other results of the same response.
        let is_of_batch = |it: &&usize| {
            let row = &index.rows[**it];
            matches!(row.kind, RowKind::User { result: true, .. }) || row.response == open.response
        };
        let last = open.place + live[open.place..].iter().take_while(is_of_batch).count().max(1) - 1;
        let block =
            json!({ "tool_use_id": *id, "type": "tool_result", "is_error": true, "content": NO_RESULT });
        batches.entry(last).or_default().push(block);
    }
    for (last, results) in batches {
        insert_results(source, &index, &live[last..], &results, found)?;
    }
    attachments.archive_excess(found);
    Ok(())
}

/// Removes rows from the chain: their children get their parents.
fn unlink(source: &dyn Source, index: &Index, gone: &HashSet<usize>, found: &mut Findings<'_>) -> Result<()> {
    if gone.is_empty() {
        return Ok(());
    }
    let by_uuid: foldhash::HashMap<&str, usize> =
        gone.iter().map(|it| (&*index.rows[*it].uuid, *it)).collect();
    for (at, row) in index.rows.iter().enumerate() {
        let record = index.records[row.record as usize];
        if gone.contains(&at) {
            found.replace(whole_line(source, record)?, "");
            continue;
        }
        let mut parent = row.parent.clone();
        let mut steps = 0;
        while let Some(it) = parent.as_ref().and_then(|it| by_uuid.get(&**it)).filter(|_| steps < gone.len())
        {
            parent.clone_from(&index.rows[*it].parent);
            steps += 1;
        }
        if steps == 0 {
            continue;
        }
        let new = parent.map_or_else(|| "null".to_owned(), |it| quoted(&it));
        set_parent(source, record, new, found)?;
    }
    Ok(())
}

fn set_parent(source: &dyn Source, record: Record, parent: String, found: &mut Findings<'_>) -> Result<()> {
    let text = source.text(record.range())?;
    if let Some(fields) = Fields::of(&text) {
        found.set(&At { record, text: &text }, &fields, "parentUuid", parent);
    }
    Ok(())
}

/// Inserts a row with results after the first row of `path`, and makes it the parent of the next one.
fn insert_results(
    source: &dyn Source,
    index: &Index,
    path: &[usize],
    results: &[serde_json::Value],
    found: &mut Findings<'_>,
) -> Result<()> {
    const COPIED: [&str; 8] =
        ["isSidechain", "userType", "entrypoint", "cwd", "sessionId", "version", "gitBranch", "timestamp"];
    let [last, next @ ..] = path else { return Ok(()) };
    let (row, record) = (&index.rows[*last], index.records[index.rows[*last].record as usize]);
    let whole = source.text(record.range())?;
    let Some(fields) = Fields::of(&whole) else { return Ok(()) };
    let uuid = quoted(&derive::uuid(derive::digest(&row.uuid, "repair, results", 0, "")));
    let copied: String =
        COPIED.iter().filter_map(|key| Some(format!("\"{key}\":{},", fields.get(key)?))).collect();
    let results = serde_json::Value::from(results);
    let new = format!(
        "{{\"parentUuid\":{},{copied}\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":{results}}},\"uuid\":{uuid}}}\n",
        quoted(&row.uuid)
    );
    let line_end = whole_line(source, record)?.end;
    found.replace(line_end..line_end, new);
    match next.first().map(|it| &index.rows[*it]).filter(|it| it.parent.as_ref() == Some(&row.uuid)) {
        Some(next) => set_parent(source, index.records[next.record as usize], uuid, found),
        None => Ok(()),
    }
}

impl RowRepair<'_, '_> {
    fn check(&mut self, live: &LiveRow<'_>) {
        let at = &live.at;
        let Some(fields) = Fields::of(at.text) else { return };
        let Some(message) = fields.object("message") else { return };
        let Some(content) = message.get("content") else { return };
        let assistant = matches!(live.row.kind, RowKind::Assistant { .. });
        if let Some(words) = text(content) {
            if words.trim().is_empty() {
                self.found.note(Damage::EmptyText, at.record.at, "content");
                self.found.replace(at.range(content), quoted(EMPTY));
            }
            return;
        }
        let Some(blocks) = list(content) else { return };
        if assistant {
            self.reply_end = Some(at.range(content).end - 1).filter(|_| !blocks.is_empty());
        }
        let model = message.text("model").unwrap_or_default();
        let (mut gone, mut orphans) = (BTreeSet::new(), 0);
        for (number, raw) in blocks.iter().enumerate() {
            let Some(block) = Fields::of(raw) else { continue };
            match block.text("type").as_deref() {
                // The client itself leaves out blank texts of the model.
                Some("text") if !assistant && block.text("text").is_none_or(|it| it.trim().is_empty()) => {
                    self.found.note(Damage::EmptyText, at.record.at, "a text block");
                    gone.insert(number);
                }
                Some("thinking") if block.text("signature").is_some_and(|it| is_spoilt(&it)) => {
                    self.found.note(Damage::SpoiltSignature, at.record.at, "a thinking block");
                    gone.insert(number);
                }
                Some("thinking")
                    if model.starts_with("claude")
                        && block.text("signature").is_none_or(|it| it.is_empty()) =>
                {
                    self.found.note(Damage::UnsignedThinking, at.record.at, "a thinking block");
                    gone.insert(number);
                }
                Some("tool_use") if assistant => self.call(live, &block),
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
        let is_words = matches!(live.row.kind, RowKind::User { result: false, .. });
        if gone.len() == blocks.len() && !blocks.is_empty() && !is_words {
            self.unlinked.push(live.place);
        } else {
            self.found.remove(at, &blocks, &gone, empty_text());
        }
    }

    fn call(&mut self, live: &LiveRow<'_>, block: &Fields) {
        let at = &live.at;
        let (id, tool) = (block.text("id").unwrap_or_default(), block.text("name").unwrap_or_default());
        let open = OpenCall { response: live.row.response.clone(), place: live.place, tool: tool.clone() };
        if let Some(new) = self.pairs.call(&id, |it| is_plain(it, usize::MAX), open) {
            let damage = if is_plain(&id, usize::MAX) { Damage::DuplicateCall } else { Damage::BadCallId };
            self.found.note(damage, at.record.at, format!("{tool} {id}"));
            self.found.set(at, block, "id", quoted(&new));
        }
        if !is_plain(&tool, 128) {
            self.found.note(Damage::BadToolName, at.record.at, format!("{tool:.60}"));
            self.found.set(at, block, "name", quoted(&plain_name(&tool, 128)));
        }
        if let Some(raw) = block.get("input").filter(|it| !it.starts_with('{')) {
            self.found.note(Damage::BadArguments, at.record.at, format!("{tool} {id}"));
            self.found.replace(at.range(raw), object_of(raw));
        }
    }

    fn result(&mut self, at: &At<'_>, raw: &str, block: &Fields) -> Outcome {
        let id = block.text("tool_use_id").unwrap_or_default();
        let content = block.get("content").unwrap_or("\"\"");
        match self.pairs.result(&id, content) {
            ResultIs::Fine => {}
            ResultIs::Renamed(new) => {
                self.found.set(at, block, "tool_use_id", quoted(&new));
            }
            ResultIs::Orphan => return self.orphan(at, raw, block, Damage::OrphanResult, id),
            ResultIs::Second(false) => {
                let id = self.pairs.another(&id);
                return self.orphan(at, raw, block, Damage::DuplicateResult, id);
            }
            ResultIs::Second(true) => {
                self.found.note(Damage::DuplicateResult, at.record.at, id);
                return Outcome::Goes;
            }
        }
        let failed = block.get("is_error") == Some("true");
        match (text(content), list(content)) {
            (Some(result), _) if failed && result.is_empty() => {
                self.found.note(Damage::EmptyText, at.record.at, format!("the result of {id}"));
                self.found.put(at, raw, block, "content", &quoted(EMPTY));
            }
            (_, Some(blocks)) => {
                let mut gone = BTreeSet::new();
                for (number, raw) in blocks.iter().enumerate() {
                    let Some(inner) = Fields::of(raw) else { continue };
                    match inner.text("type").as_deref() {
                        Some("text") if inner.text("text").is_none_or(|it| it.is_empty()) => {
                            let what = format!("in the result of {id}");
                            self.found.note(Damage::EmptyText, at.record.at, what);
                            gone.insert(number);
                        }
                        Some("image" | "document") => self.attachment(at, raw, &inner),
                        _ => {}
                    }
                }
                self.found.remove(at, &blocks, &gone, empty_text());
            }
            _ => {}
        }
        Outcome::Stays
    }

    /// A result without a call of its own: a call is added, or, where none is allowed, the result becomes a
    /// text.
    fn orphan(&mut self, at: &At<'_>, raw: &str, block: &Fields, damage: Damage, id: String) -> Outcome {
        self.found.note(damage, at.record.at, id.clone());
        let Some(end) = self.reply_end else {
            let text = orphan_text(&plain_text(block.get("content").unwrap_or("\"\"")));
            self.found.replace(at.range(raw), json!({ "type": "text", "text": text }).to_string());
            return Outcome::Text;
        };
        let id = if is_plain(&id, usize::MAX) { id } else { plain_name(&id, 64) };
        let call = json!({ "type": "tool_use", "id": id, "name": LOST_TOOL, "input": {} });
        self.found.replace(end..end, format!(",{call}"));
        self.pairs.answered(&id);
        self.found.set(at, block, "tool_use_id", quoted(&id));
        Outcome::Stays
    }

    fn attachment(&mut self, at: &At<'_>, raw: &str, block: &Fields) {
        let Some(source) = block.object("source") else { return };
        if source.text("type").as_deref() != Some("base64") {
            return;
        }
        let field = |key| source.get(key).unwrap_or_default().trim_matches('"');
        let attachment = Attachment { raw, types: &[field("media_type")], data: field("data") };
        let note = |text: &str| json!({ "type": "text", "text": text }).to_string();
        if let Some(note) = self.attachments.judge(at, &attachment, &ANTHROPIC, note, self.found) {
            self.found.replace(at.range(raw), note);
        }
    }
}

/// The block for a content list that lost all its blocks.
fn empty_text() -> String {
    json!({ "type": "text", "text": EMPTY }).to_string()
}

/// What becomes of a result.
enum Outcome {
    Stays,
    Goes,
    /// It became a text block.
    Text,
}
