use serde_json::{Value, json};

use super::*;
use crate::{Memory, Mode, Session};
use history::{History, Kind, Message, Part, Role};

/// A transcript under construction: each row hangs on the one before, unless `parentUuid` is given.
#[derive(Default)]
struct Rows {
    lines: Vec<String>,
    last: Option<String>,
}

impl Rows {
    fn add(&mut self, uuid: &str, fields: Value) -> &mut Self {
        let at = format!("2026-01-01T00:00:{:02}.000Z", self.lines.len());
        let mut row = json!({"parentUuid": self.last, "isSidechain": false, "uuid": uuid, "timestamp": at,
            "sessionId": "s", "cwd": "/w", "version": "2.1.328"});
        for (key, value) in fields.as_object().unwrap() {
            row[key] = value.clone();
        }
        if row["isSidechain"] == json!(false) {
            self.last = Some(uuid.into());
        }
        self.line(&row.to_string())
    }
    fn line(&mut self, line: &str) -> &mut Self {
        self.lines.push(line.into());
        self
    }
    fn user(&mut self, uuid: &str, content: impl Into<Value>) -> &mut Self {
        self.add(uuid, json!({"type": "user", "message": {"role": "user", "content": content.into()}}))
    }
    fn block(&mut self, uuid: &str, id: &str, block: Value) -> &mut Self {
        self.add(uuid, assistant(id, block))
    }
    fn says(&mut self, uuid: &str, text: &str) -> &mut Self {
        self.block(uuid, &format!("msg_{uuid}"), json!({"type": "text", "text": text}))
    }
    fn result(&mut self, uuid: &str, call: &str, text: &str) -> &mut Self {
        self.user(uuid, json!([{"type": "tool_result", "tool_use_id": call, "content": text}]))
    }
    fn boundary(&mut self, uuid: &str, compact: Value) -> &mut Self {
        self.add(
            uuid,
            json!({"parentUuid": null, "type": "system", "subtype": "compact_boundary",
            "content": "Conversation compacted", "compactMetadata": compact}),
        )
    }
    fn summary(&mut self, uuid: &str, text: &str) -> &mut Self {
        self.add(
            uuid,
            json!({"type": "user", "isCompactSummary": true, "isVisibleInTranscriptOnly": true,
            "message": {"role": "user", "content": text}}),
        )
    }
    fn rendered(&mut self, uuid: &str, role: &str, text: &str) -> &mut Self {
        self.add(
            uuid,
            json!({"type": "attachment", "attachment": {"type": "date"},
            "rendered": [{"content": text}], "renderedRole": role}),
        )
    }
    fn leaf(&mut self, uuid: &str) -> &mut Self {
        self.line(&json!({"type": "last-prompt", "leafUuid": uuid, "sessionId": "s"}).to_string())
    }
    fn text(&self) -> String {
        self.lines.iter().map(|it| format!("{it}\n")).collect()
    }
    fn source(&self) -> Memory {
        Memory::new("t.jsonl", self.text())
    }
    fn shown(&self) -> String {
        show(&read(&self.source()).unwrap().history)
    }
}

fn rows() -> Rows {
    Rows::default()
}

fn assistant(id: &str, block: Value) -> Value {
    json!({"type": "assistant", "message": {"id": id, "type": "message", "role": "assistant", "model": "m",
        "content": [block], "usage": {"input_tokens": 5, "output_tokens": 2}}})
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "ls"}})
}

fn show(history: &History) -> String {
    history.messages().iter().map(show_message).collect()
}

fn show_message(message: &Message) -> String {
    let who = match (message.role, message.kind) {
        (Role::User, Kind::Said) => "user",
        (Role::User, Kind::Context) => "context",
        (Role::User, Kind::Summary) => "summary",
        (Role::System, Kind::Context) => "system",
        (Role::Assistant, Kind::Said) => "model",
        other => panic!("{other:?}"),
    };
    let parts: Vec<String> = message
        .parts
        .iter()
        .map(|part| match part {
            Part::Text(it) => it.as_str().to_owned(),
            Part::Reasoning(it) => {
                format!("({}/{})", it.text.as_str(), it.signature.as_ref().map_or("", |it| it.as_str()))
            }
            Part::Call(it) => format!("{}?", it.id),
            Part::Output(it) => {
                let flags =
                    format!("{}{}", if it.failed { "!" } else { "" }, if it.cleared { "~" } else { "" });
                format!("{}={}{flags}{}", it.id, it.text.as_str(), "+media".repeat(it.media.len()))
            }
            Part::Media(it) => format!("<{:?} {} {:?}>", it.kind, it.mime, it.size),
            Part::Opaque(it) => format!("{{{} {}}}", it.kind, it.raw.as_str()),
        })
        .collect();
    format!("{who}: {}\n", parts.join(" | "))
}

/// A session in which everything happens that a compaction has to carry over.
fn busy() -> Rows {
    let mut it = rows();
    it.user("u1", "first prompt")
        .rendered("x1", "system", "<system-reminder>\n# Env\n</system-reminder>")
        .rendered("x2", "user", "<system-reminder>\nRules\n</system-reminder>")
        .block("a1", "m1", json!({"type": "thinking", "thinking": "hm", "signature": "sig"}))
        .block("a2", "m1", json!({"type": "text", "text": "Looking."}))
        .block("a3", "m1", call("c1"))
        .block("a4", "m1", call("c2"))
        .add("r1", json!({"type": "user", "parentUuid": "a3", "toolUseResult": {"stdout": "one"},
            "message": {"role": "user", "content": [{"tool_use_id": "c1", "type": "tool_result", "content": "one"}]}}))
        .add("r2", json!({"type": "user", "parentUuid": "a4", "message": {"role": "user", "content": [
            {"type": "tool_result", "content": [{"type": "text", "text": "two"}, {"type": "text", "text": "2"}],
             "is_error": true, "tool_use_id": "c2"}]}}))
        .says("a5", "Found it.")
        .leaf("a5")
        .user("u2", "second prompt")
        .block("a6", "m3", call("c3"))
        .result("r3", "c3", "three, and quite a lot of it")
        .says("a7", "Done.")
        .leaf("a7");
    it
}

const BUSY: &str = "\
context: <system-reminder>\nRules\n</system-reminder>
user: first prompt
system: # Env
model: (hm/sig) | Looking. | c1? | c2?
user: c1=one | c2=two\n2!
model: Found it.
user: second prompt
model: c3?
user: c3=three, and quite a lot of it
model: Done.
";

#[test]
fn reads_what_is_sent() {
    let session = read(&busy().source()).unwrap();
    assert_eq!(show(&session.history), BUSY);
    assert_eq!(session.notes, []);
    assert_eq!(session.of_message[3], [3, 4, 5, 6]);
    let meta = &session.history.meta;
    assert_eq!(
        (meta.model.as_deref(), meta.cwd.as_deref(), meta.session.as_deref()),
        (Some("m"), Some("/w"), Some("s"))
    );
    let message = &session.history.messages()[3];
    assert_eq!((message.id.as_deref(), message.usage.unwrap().context()), (Some("a1"), 7));
    assert_eq!(message.at, Some(1_767_225_603_000));
}

#[test]
fn file_name_is_the_session_id() {
    let id = "0195f3a0-1111-8abc-9def-000000000001";
    let source = Memory::new(format!("/x/{id}.jsonl"), busy().text());
    assert_eq!(read(&source).unwrap().history.meta.session.as_deref(), Some(id));
}

/// The table of forms that the real client was seen to accept, and what it sent.
#[test]
fn compacted_forms() {
    let tail = |it: &mut Rows| {
        it.user("n1", "copied prompt").block("n2", "copy", json!({"type": "text", "text": "copied answer"}));
    };
    let old = |it: &mut Rows| {
        it.user("u1", "old prompt").says("a1", "old answer").leaf("a1");
    };
    let copied = "summary: S\nuser: copied prompt\nmodel: copied answer\n";

    let mut it = rows();
    it.summary("s", "S");
    tail(&mut it);
    assert_eq!(it.shown(), copied, "new file without a boundary");

    let mut it = rows();
    it.boundary("b", json!({})).summary("s", "S");
    tail(&mut it);
    assert_eq!(it.shown(), copied, "new file with a boundary");

    let mut it = rows();
    old(&mut it);
    it.boundary("b", json!({"trigger": "manual", "preTokens": 9})).summary("s", "S");
    assert_eq!(it.shown(), "summary: S\n", "appended boundary overrides the older last-prompt");

    let mut it = rows();
    old(&mut it);
    it.boundary("b", json!({})).summary("s", "S");
    tail(&mut it);
    assert_eq!(it.shown(), copied, "appended boundary, summary, copies");

    let mut it = rows();
    old(&mut it);
    it.boundary("b", json!({})).summary("s", "S").user("n1", "p").block(
        "n2",
        "msg_a1",
        json!({"type": "text", "text": "copy"}),
    );
    assert_eq!(
        it.shown(),
        "summary: S\nuser: p\nmodel: old answer | copy\n",
        "a copy with the old message.id"
    );

    let mut it = rows();
    old(&mut it);
    it.add(
        "n0",
        json!({"parentUuid": null, "type": "user", "message": {"role": "user", "content": "new root"}}),
    );
    assert_eq!(
        it.shown(),
        "user: old prompt\nmodel: old answer\n",
        "a new root without a boundary is ignored"
    );
    it.leaf("n0");
    assert_eq!(it.shown(), "user: new root\n", "unless last-prompt points at it");

    let mut it = rows();
    old(&mut it);
    it.boundary("b", json!({})).summary("s", "S").leaf("a1");
    assert_eq!(
        it.shown(),
        "user: old prompt\nmodel: old answer\n",
        "a client that ran on: its last-prompt is newer"
    );

    let mut it = rows();
    old(&mut it);
    it.boundary("b", json!({})).summary("s", "S").add(
        "u9",
        json!({"type": "user", "parentUuid": "a1",
        "timestamp": "2020-01-01T00:00:00.000Z", "message": {"role": "user", "content": "went on"}}),
    );
    assert_eq!(it.shown(), "user: old prompt\nmodel: old answer\nuser: went on\n", "file order, not time");
}

#[test]
fn preserved_rows_stand_behind_their_anchor() {
    let old = || {
        let mut it = rows();
        it.user("u1", "old").says("a1", "gone").user("u2", "kept").block("a2", "m2", call("c1")).block(
            "a3",
            "m2",
            call("c2"),
        );
        it.result("r1", "c1", "forgotten").add(
            "r2",
            json!({"type": "user", "parentUuid": "a3", "message":
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c2", "content": "two"}]}}),
        );
        it.says("a4", "answer");
        it
    };
    let uuids = json!({"preservedMessages": {"anchorUuid": "s", "uuids": ["u2", "a2", "a3", "r2", "a4"]}});
    let kept = "summary: S\nuser: kept\nmodel: c2?\nuser: c2=two\nmodel: answer\n";

    let mut it = old();
    it.boundary("b", uuids.clone()).summary("s", "S");
    assert_eq!(it.shown(), "summary: S\n", "the leaf is the summary itself");
    it.user("u3", "next");
    assert_eq!(it.shown(), format!("{kept}user: next\n"), "next hangs on the summary");

    let mut it = old();
    it.boundary("b", uuids).summary("s", "S").add(
        "u3",
        json!({"type": "user", "parentUuid": "a4",
        "message": {"role": "user", "content": "next"}}),
    );
    assert_eq!(it.shown(), format!("{kept}user: next\n"), "next hangs on the last kept row");

    let mut it = old();
    it.boundary("b", json!({"preservedSegment": {"headUuid": "a4", "anchorUuid": "s", "tailUuid": "a4"}}))
        .summary("s", "S")
        .user("u3", "next");
    assert_eq!(it.shown(), "summary: S\nmodel: answer\nuser: next\n", "a segment");

    let mut it = old();
    it.boundary("b", json!({"preservedMessages": {"anchorUuid": "b", "uuids": ["u2"]}}))
        .summary("s", "S")
        .user("u3", "next");
    assert_eq!(it.shown(), "user: kept\nsummary: S\nuser: next\n", "anchored at the boundary: a kept head");

    let mut it = old();
    it.boundary("b", json!({"preservedMessages": {"anchorUuid": "s", "uuids": ["u2", "nowhere"]}}))
        .summary("s", "S");
    assert_eq!(it.shown(), "summary: S\n", "an unknown uuid preserves nothing");
}

#[test]
fn the_leaf_is_followed_down() {
    let mut it = rows();
    it.user("u1", "p1").says("a1", "a1").leaf("a1").user("u2", "p2").says("a2", "a2");
    let all = "user: p1\nmodel: a1\nuser: p2\nmodel: a2\n";
    assert_eq!(it.shown(), all, "rows written after the pointer");
    it.leaf("a1");
    assert_eq!(it.shown(), all, "and before it");
    it.add("u3", json!({"type": "user", "parentUuid": "a1", "message": {"role": "user", "content": "p3"}}))
        .leaf("u3");
    assert_eq!(it.shown(), "user: p1\nmodel: a1\nuser: p3\n", "another branch");
    it.leaf("nowhere");
    assert_eq!(it.shown(), "user: p1\nmodel: a1\nuser: p3\n", "a pointer at nothing: the last row");
}

/// The file as it is between two writes: what a progress row hangs on is not there yet. Measured on 2.1.328.
#[test]
fn the_path_ends_in_a_message_whatever_comes_last() {
    let progress = json!({"type": "progress", "data": {"type": "hook_progress"}});
    let mut rows = rows();
    rows.user("u1", "never change migrations/").says("a1", "Good.").add("p1", progress.clone());
    let mut lost = progress;
    lost["parentUuid"] = json!("not-written-yet");
    rows.add("p2", lost);
    let session = read(&rows.source()).unwrap();
    assert_eq!(session.notes, []);
    let plain: Vec<String> = session.history.messages().iter().map(Message::plain).collect();
    assert_eq!(plain, ["never change migrations/", "Good."]);
}

/// Where a parent is lost, the client goes on from the last row written within 5 s before, wherever it stands, and sends
/// nothing from before the hole where there is none; measured on 2.1.328.
#[test]
fn a_hole_in_the_chain_is_bridged_or_told() {
    for (seconds, messages, told) in [("05.900", 3, "goes on from line 2"), ("06.600", 1, "2 rows")] {
        let mut rows = rows();
        rows.user("u1", "never change migrations/").says("a1", "Good.");
        rows.add(
            "u2",
            json!({"type": "user", "parentUuid": "lost", "message": {"role": "user", "content": "go on"},
                "timestamp": format!("2026-01-01T00:00:{seconds}Z")}),
        );
        let session = read(&rows.source()).unwrap();
        assert_eq!(session.history.messages().len(), messages);
        let [note] = &session.notes[..] else { panic!("{:?}", session.notes) };
        assert_eq!(note.line, 3);
        assert!(note.what.contains("uuid lost") && note.what.contains(told), "{}", note.what);
    }
}

#[test]
fn what_is_dropped() {
    let mut it = rows();
    it.user("u1", "p1")
        .block("a1", "m1", json!({"type": "thinking", "thinking": "only", "signature": "s"}))
        .user("u2", "p2")
        .block("a2", "m2", call("orphan"))
        .user("u3", "p3")
        .says("a3", "text")
        .block("a4", "msg_a3", call("orphan 2"))
        .user("u4", "p4")
        .add(
            "a5",
            json!({"type": "assistant", "isApiErrorMessage": true, "message": {"id": "e",
            "model": "<synthetic>", "content": [{"type": "text", "text": "API Error"}]}}),
        )
        .user("u5", "p5")
        .says("a6", "  ")
        .result("r0", "never asked", "orphan")
        .user("u6", "p6")
        .block("a7", "m7", json!({"type": "fallback", "from": {}, "to": {}}))
        .add(
            "a8",
            json!({"type": "assistant", "message": {"id": "y", "model": "<synthetic>",
            "usage": {"input_tokens": 9}, "content": [{"type": "text", "text": "No response requested."}]}}),
        )
        .add("i1", json!({"type": "system", "subtype": "informational", "content": "info"}))
        .add("p1", json!({"type": "progress", "data": {}}))
        .user("u7", "")
        .block("a9", "m9", json!({"type": "text", "text": "\n\n"}))
        .block("b9", "m9", json!({"type": "text", "text": "end"}))
        .user("u8", "p8")
        .block("a10", "m10", call("c1"))
        .block("a11", "m10", call("c2"))
        .result("r1", "c1", "one")
        .result("r2", "c1", "one again");
    let session = read(&it.source()).unwrap();
    assert_eq!(
        show(&session.history),
        "user: p1 | p2 | p3\nmodel: text\nuser: p4 | p5 | p6\nmodel: No response requested.\nmodel: end\n\
         user: p8\nmodel: c1? | c2?\nuser: c1=one\n",
        "the call at the very end is still running"
    );
    assert_eq!(session.history.messages()[3].usage, None);
    assert_eq!(session.history.meta.model.as_deref(), Some("m"));
    it.says("a12", "went on");
    assert!(
        it.shown().ends_with("model: c1?\nuser: c1=one\nmodel: went on\n"),
        "now it never will be answered"
    );
}

#[test]
fn one_response_is_one_message() {
    let mut it = rows();
    it.block("a1", "m1", call("c1")).result("r1", "c1", "one").block(
        "a2",
        "m1",
        json!({"type": "text", "text": "late"}),
    );
    it.block("a3", "m1", call("c2")).result("r2", "c2", "two");
    it.block("a4", "m2", json!({"type": "text", "text": "x"})).block("a5", "m3", call("c3"));
    it.block("a6", "m2", json!({"type": "text", "text": "y"})).result("r3", "c3", "three");
    it.block("a7", "m4", json!({"type": "text", "text": "before"})).user("u1", "mid").block(
        "a8",
        "m4",
        json!({"type": "text", "text": "after"}),
    );
    it.block("a9", "m5", call("c4")).user("u2", "typed meanwhile").result("r4", "c4", "four");
    assert_eq!(
        it.shown(),
        "model: late | c1? | c2?\nuser: c1=one | c2=two\nmodel: x | y\nmodel: c3?\nuser: c3=three\n\
         model: before\nuser: mid\nmodel: after\nmodel: c4?\nuser: c4=four\nuser: typed meanwhile\n"
    );
}

#[test]
fn whose_words() {
    let interrupted = json!([{"type": "text", "text": "[Request interrupted by user for tool use]"}]);
    let mut it = rows();
    it.add("u0", json!({"type": "user", "isMeta": true, "message": {"role": "user", "content": "skill body"}}))
        .user("u1", "<command-name>/effort</command-name>\n<command-args>high</command-args>")
        .user("u2", "<local-command-stdout>ok</local-command-stdout>")
        .add("l1", json!({"type": "system", "subtype": "local_command", "content": "<command-name>/x</command-name>"}))
        .user("u3", "mine")
        .user("u4", interrupted)
        .user("u5", "<command-message>review</command-message>\n<command-name>/review</command-name>\n<command-args>the parser</command-args>")
        .user("u6", "<command-message>init</command-message>\n<command-name>/init</command-name>")
        .user("u7", json!([{"type": "text", "text": "<system-reminder>x</system-reminder>"}, {"type": "text", "text": "mine too"}]))
        .says("a1", "ok")
        .add("q1", json!({"type": "attachment", "attachment": {"type": "queued_command", "prompt": "typed", "commandMode": "prompt"}}))
        .add("q2", json!({"type": "attachment", "attachment": {"type": "queued_command", "prompt": "done", "commandMode": "task-notification"}}))
        .add("h1", json!({"type": "attachment", "attachment": {"type": "hook_additional_context", "content": ["one", "two"]}}));
    assert_eq!(
        it.shown(),
        "context: skill body | <command-name>/effort</command-name>\n<command-args>high</command-args> | \
         <local-command-stdout>ok</local-command-stdout> | <command-name>/x</command-name>\n\
         user: mine\ncontext: [Request interrupted by user for tool use]\n\
         user: <command-message>review</command-message>\n<command-name>/review</command-name>\n<command-args>the parser</command-args>\n\
         context: <command-message>init</command-message>\n<command-name>/init</command-name>\n\
         user: <system-reminder>x</system-reminder> | mine too\nmodel: ok\nuser: typed\nsystem: one\ntwo\n"
    );
}

#[test]
fn words_beside_a_result() {
    let beside = |text: &str| {
        let mut it = rows();
        it.block("a1", "m1", call("c1")).block("a2", "m1", call("c2"));
        it.user("r1", json!([{"type": "tool_result", "tool_use_id": "c1", "content": "one"}, {"type": "text", "text": text}]));
        it.result("r2", "c2", "two");
        it.shown()
    };
    assert_eq!(beside("mine"), "model: c1? | c2?\nuser: c1=one | c2=two | mine\n");
    assert_eq!(
        beside("[Request interrupted by user]"),
        "model: c1? | c2?\ncontext: c1=one | c2=two | [Request interrupted by user]\n"
    );
}

#[test]
fn blocks_of_all_kinds() {
    let mut it = rows();
    it.user("u1", json!([{"type": "image", "source": {"type": "base64", "media_type": "image/png",
            "data": "iVBORw0KGgoAAAANSUhEUgAAAoAAAAHgCAYAAAA"}},
            {"type": "document", "source": {"type": "url", "url": "https://x/y.pdf", "media_type": "application/pdf"}}]))
        .block("a1", "m1", json!({"type": "redacted_thinking", "data": "enc"}))
        .block("a2", "m1", json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}))
        .block("a3", "m1", json!({"type": "tool_use", "id": "c1", "name": "Read", "input": {"a": [1, "x y"]}}))
        .user("r1", json!([{"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "t"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}}]}]))
        .block("a4", "m2", call("c2"))
        .result("r2", "c2", "[Old tool result content cleared]")
        .block("a5", "m3", call("c3"))
        .add("r3", json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "c3"}]}}));
    assert_eq!(
        it.shown(),
        "user: <Image image/png Some((640, 480))> | <Pdf application/pdf None>\n\
         model: (/enc) | {server_tool_use {\"type\":\"server_tool_use\",\"id\":\"s1\",\"name\":\"web_search\",\"input\":{}}} | c1?\n\
         user: c1=t+media\nmodel: c2?\nuser: c2=[Old tool result content cleared]~\nmodel: c3?\nuser: c3=\n"
    );
}

#[test]
fn broken_lines_are_noted_and_kept() {
    let mut it = rows();
    it.line("\u{feff}")
        .user("u1", "p1")
        .line("{\"type\":\"user\", broken")
        .line("\0\0\0")
        .line("[1]")
        .line("7")
        .line("{\"type\":\"from-the-future\",\"x\":1}")
        .line("{\"type\":\"user\",\"message\":{}}")
        .line("{\"no\":\"type\"}")
        .says("a1", "ok")
        .add("x1", json!({"type": "attachment", "attachment": "text"}))
        .add("x2", json!({"type": "user", "message": 5}))
        .user("u2", "lone \u{fffd}")
        .user("u1", "p1, again: the later counts, and closes a cycle");
    let text = it.text().replace('\u{fffd}', "\\ud83d").replace('\n', "\r\n")
        + "{\"type\":\"assistant\",\"uuid\":\"a2\",\"mess";
    let source = Memory::new("t", text.clone());
    let session = read(&source).unwrap();
    assert_eq!(
        show(&session.history),
        "model: ok\nuser: lone \u{fffd} | p1, again: the later counts, and closes a cycle\n"
    );
    let lines: Vec<u64> = session.notes.iter().map(|it| it.line).collect();
    assert_eq!(lines, [3, 4, 5, 6, 7, 8, 9, 15, 12], "{:?}", session.notes);
    assert_eq!(session.records.len(), 14);
    let written = write(&source, &session, &session.history, Mode::Patch).unwrap();
    assert_eq!(written.bytes(&source).unwrap(), text.as_bytes());
}

#[test]
fn what_is_no_transcript() {
    for text in ["", "\n\n", "{\"type\":\"session_meta\",\"payload\":{}}\n", "hello", "[]"] {
        let error = read(&Memory::new("t", text)).unwrap_err();
        assert_eq!(error.kind(), history::error::Kind::Input, "{text}");
        assert!(!sniff(text), "{text}");
    }
    let side = "{\"type\":\"mode\",\"mode\":\"normal\",\"sessionId\":\"s\"}\n";
    assert_eq!(show(&read(&Memory::new("t", side)).unwrap().history), "");
}

#[test]
fn sniffs() {
    assert!(sniff(&busy().text()) && sniff("{\"type\":\"summary\",\"summary\":\"x\",\"leafUuid\":\"y\"}"));
    assert!(sniff(&busy().text()[..150]), "a first line that is longer than what is looked at");
    for other in [
        r#"{"type":"message","id":"1","parentId":null,"message":{"role":"user","content":"x"}}"#,
        r#"{"timestamp":"t","type":"response_item","payload":{"type":"message"}}"#,
        r#"{"sessionId":"s","projectHash":"h","startTime":"t","kind":"main"}"#,
        r#"{"id":"1","timestamp":"t","type":"user","content":"x"}"#,
        r#"{"role":"user","content":"x"}"#,
    ] {
        assert!(!sniff(other), "{other}");
    }
}

#[test]
fn past_compactions() {
    let mut it = rows();
    it.summary("s0", "from version 1")
        .user("u1", "p")
        .boundary("b1", json!({"trigger": "auto", "preTokens": 90, "postTokens": 7}));
    it.summary("s1", "first")
        .user("u2", "q")
        .boundary("b2", json!({"trigger": "manual"}))
        .summary("s2", "second")
        .user("u3", "r");
    let session = read(&it.source()).unwrap();
    let past: Vec<_> = session
        .past
        .iter()
        .map(|it| (it.trigger.as_deref(), it.tokens_before, it.tokens_after, &*it.summary, it.message))
        .collect();
    assert_eq!(
        past,
        [
            (None, None, None, "from version 1", None),
            (Some("auto"), Some(90), Some(7), "first", None),
            (Some("manual"), None, None, "second", Some(0)),
        ]
    );
}

#[test]
fn a_sub_agents_file_is_a_chain() {
    let mut it = rows();
    it.add("u1", json!({"type": "user", "isSidechain": true, "message": {"content": "task"}}));
    it.add("a1", json!({"type": "assistant", "isSidechain": true, "parentUuid": "u1", "message": {"content": [{"type": "text", "text": "done"}]}}));
    assert_eq!(it.shown(), "user: task\nmodel: done\n");
    it.user("u2", "main")
        .add("u3", json!({"type": "user", "isSidechain": true, "message": {"content": "aside"}}));
    assert_eq!(it.shown(), "user: main\n", "beside a chain it is none");
}

#[test]
fn without_any_link_the_order_counts() {
    let mut it = rows();
    it.user("u1", "p1").says("a1", "a1").user("u2", "p2");
    let text = it.text().replace("\"parentUuid\":\"u1\"", "\"parentUuid\":null");
    let text = text.replace("\"parentUuid\":\"a1\"", "\"parentUuid\":null");
    let session = read(&Memory::new("t", text)).unwrap();
    assert_eq!(show(&session.history), "user: p1\nmodel: a1\nuser: p2\n");
    assert_eq!(session.notes.len(), 1);
}

#[test]
fn hostile_shapes_take_linear_time() {
    let mut it = rows();
    for n in 0..20_000 {
        it.block(&format!("a{n}"), "one", call(&format!("c{n}")));
    }
    for n in 0..20_000 {
        it.result(&format!("r{n}"), &format!("c{n}"), "x");
    }
    it.line(&format!("{{\"type\":\"user\",\"uuid\":\"deep\",\"message\":{}", "[".repeat(100_000)));
    let session = read(&it.source()).unwrap();
    assert_eq!(session.history.messages().len(), 2);
    assert_eq!(session.notes.len(), 1);
}

// ── Writing ──

fn edit(session: &Session, id: &str, text: &str) -> History {
    let mut messages = session.history.messages().to_vec();
    for part in messages.iter_mut().flat_map(|it| &mut it.parts) {
        if let Part::Output(output) = part
            && &*output.id == id
        {
            output.text = text.into();
        }
    }
    History::new(messages, session.history.meta.clone())
}

#[test]
fn a_patch_moves_nothing() {
    let source = busy().source();
    let session = read(&source).unwrap();
    let before = busy().text();
    let same = write(&source, &session, &session.history, Mode::Patch).unwrap();
    assert_eq!(same.pieces, [crate::Piece::Keep(0..before.len() as u64)]);

    let patched = write(&source, &session, &edit(&session, "c3", "[cut]"), Mode::Patch).unwrap();
    let bytes = patched.bytes(&source).unwrap();
    let expected = before.replace("\"three, and quite a lot of it\"", "\"[cut]\"");
    let (after, short) =
        (String::from_utf8(bytes).unwrap(), "three, and quite a lot of it".len() - "[cut]".len());
    assert_eq!(after.len(), before.len());
    let lines: Vec<_> = after.lines().zip(expected.lines()).filter(|it| it.0 != it.1).collect();
    let [(line, wanted)] = lines[..] else { panic!("{lines:?}") };
    assert_eq!(line, wanted.replace("\"[cut]\"", &format!("\"[cut]\"{}", " ".repeat(short))));
    let again = read(&Memory::new("t", after)).unwrap();
    assert_eq!(show(&again.history), BUSY.replace("three, and quite a lot of it", "[cut]"));

    // Blocks become a text; the mark of failure stays; the second copy in `toolUseResult` is nobody's context.
    for (id, from) in [("c1", "c1=one"), ("c2", "c2=two\n2")] {
        let after = edit(&session, id, "x \"y\" \\ \u{1}");
        let bytes = write(&source, &session, &after, Mode::Patch).unwrap().bytes(&source).unwrap();
        let again = read(&Memory::new("t", bytes)).unwrap();
        assert_eq!(show(&again.history), BUSY.replace(from, &format!("{id}=x \"y\" \\ \u{1}")));
    }
    let longer = write(&source, &session, &edit(&session, "c1", &"long ".repeat(30)), Mode::Patch).unwrap();
    assert_eq!(longer.warnings, ["record 8 grew by 147 bytes: what follows it moved"]);
}

#[test]
fn a_response_that_goes_on_behind_its_own_result_keeps_its_order() {
    let says = |text: &str| json!({"type": "text", "text": text});
    let mut it = rows();
    it.user("u1", "go")
        .block("a1", "m1", says("first"))
        .block("a2", "m1", call("c1"))
        .result("r1", "c1", "one");
    it.block("a3", "m1", says("then")).block("a4", "m1", call("c2")).result("r2", "c2", "two");
    it.block("b1", "m2", says("other")).block("a5", "m1", says("late")).user("u2", "on");
    let source = it.source();
    let session = read(&source).unwrap();
    let order = "user: go\nmodel: first | then | c1? | c2?\nuser: c1=one | c2=two\nmodel: other\nmodel: late\nuser: on\n";
    assert_eq!(show(&session.history), order);
    for mode in [Mode::New, Mode::Append] {
        let bytes = write(&source, &session, &session.history, mode).unwrap().bytes(&source).unwrap();
        assert_eq!(show(&read(&Memory::new("t", bytes)).unwrap().history), order, "{mode:?}");
    }
}

#[test]
fn a_long_output_is_set_aside_by_a_short_write() {
    let text = "line \\ \"quoted\" é \u{1F600}\n".repeat(3000);
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A".repeat(90_000)}});
    let contents = [
        json!(text),
        json!([{"type": "text", "text": text}]),
        json!([{"text": "short", "type": "text"}, {"type": "text", "text": text, "more": "x"}]),
        json!([image, {"type": "text", "text": "and this"}]),
    ];
    for (content, start) in contents.iter().flat_map(|it| (0..4).map(move |start| (it, start))) {
        let mut it = rows();
        it.user("u1", "go").block("a1", "m1", call("c1")).result("r1", "c1", "RESULT").user("u2", "on");
        // Escapes fall differently, and a failed one keeps its mark.
        let content = content.to_string().replacen("line", &"line"[..start], 1);
        let row = it.text().replace("\"RESULT\"", &format!("{content},\"is_error\":true"));
        let source = Memory::new("t", row.clone());
        let session = read(&source).unwrap();
        let mut messages = session.history.messages().to_vec();
        for part in messages.iter_mut().flat_map(|it| &mut it.parts) {
            if let Part::Output(output) = part {
                (output.text, output.media) = ("[cleared: \"x\"]".into(), [].into());
            }
        }
        let after = History::new(messages, session.history.meta.clone());
        let written = write(&source, &session, &after, Mode::Patch).unwrap();
        let patched = String::from_utf8(written.bytes(&source).unwrap()).unwrap();
        assert_eq!(patched.len(), row.len());
        let mut changed = (0..row.len()).filter(|at| row.as_bytes()[*at] != patched.as_bytes()[*at]);
        let (first, last) = (changed.next().unwrap(), changed.next_back().unwrap());
        assert!(last - first < 300, "{}: {}", last - first, &patched[first..last]);
        assert_eq!(patched.lines().count(), row.lines().count());
        assert!(patched.lines().all(|it| serde_json::from_str::<Value>(it).is_ok()), "{content:.200}");
        let patched = Memory::new("t", patched);
        let again = read(&patched).unwrap();
        assert_eq!(show(&again.history), "user: go\nmodel: c1?\nuser: c1=[cleared: \"x\"]!\nuser: on\n");
        // What was set aside stays in that file.
        let new = write(&patched, &again, &again.history, Mode::New);
        let new = new.unwrap().bytes(&patched).unwrap();
        assert!(new.len() < 6000, "{}", new.len());
    }
}

#[test]
fn a_patch_keeps_what_is_not_valid_text() {
    let mut it = rows();
    it.block("a1", "m1", call("c1")).result("r1", "c1", "CUT-ME");
    let mut bytes = it.text().into_bytes();
    let at = bytes.windows(6).rposition(|it| it == b"\"/w\",\"").unwrap();
    bytes.splice(at + 1..at + 2, [0xFF]);
    let source = Memory::new("t", bytes.clone());
    let session = read(&source).unwrap();
    let out =
        write(&source, &session, &edit(&session, "c1", "ab"), Mode::Patch).unwrap().bytes(&source).unwrap();
    assert_eq!(out.len(), bytes.len());
    assert!(out.contains(&0xFF));
}

#[test]
fn a_patch_is_nothing_else() {
    let source = busy().source();
    let session = read(&source).unwrap();
    let mut messages = session.history.messages().to_vec();
    messages[1].parts = vec![Part::Text("other words".into())];
    for messages in [messages, session.history.messages()[1..].to_vec()] {
        let after = History::new(messages, session.history.meta.clone());
        assert!(write(&source, &session, &after, Mode::Patch).is_err());
    }
}

/// Summary, then the last turn.
fn compacted(session: &Session) -> History {
    let from = session.history.last_prompt().unwrap();
    let mut messages = vec![Message::text(Role::User, Kind::Summary, "what was \"done\"")];
    messages.extend_from_slice(&session.history.messages()[from..]);
    History::new(messages, session.history.meta.clone())
}

#[test]
fn a_new_session_starts_compacted() {
    let source = busy().source();
    let session = read(&source).unwrap();
    let after = compacted(&edit_session(&session, "c3", "[cut]"));
    let written = write(&source, &session, &after, Mode::New).unwrap();
    assert_eq!(written, write(&source, &session, &after, Mode::New).unwrap(), "same input, same bytes");
    let text = String::from_utf8(written.bytes(&source).unwrap()).unwrap();
    let id = written.session.unwrap();
    assert_eq!(written.file_name, Some(format!("{id}.jsonl")));
    let again = read(&Memory::new(format!("{id}.jsonl"), text.clone())).unwrap();
    let expected =
        "summary: what was \"done\"\nuser: second prompt\nmodel: c3?\nuser: c3=[cut]\nmodel: Done.\n";
    assert_eq!(show(&again.history), expected);
    assert_eq!(again.notes, []);
    assert_eq!(again.past.len(), 1);
    assert_eq!(again.past[0].message, Some(0));
    assert!(again.history.messages().iter().all(|it| it.usage.is_none()), "usage is reset");
    assert_eq!(again.history.meta.times.unwrap().1, session.history.meta.times.unwrap().1 + 1);
    for gone in ["\"m3\"", "toolUseResult", "quite a lot", "\"u2\"", "\"sessionId\":\"s\""] {
        assert!(!text.contains(gone), "{gone}");
    }
    let rows: Vec<Value> = text.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let (last, pointer) = (&rows[rows.len() - 2], &rows[rows.len() - 1]);
    assert_eq!(pointer["leafUuid"], last["uuid"]);
    assert_eq!(pointer["lastPrompt"], "second prompt");
    assert_eq!(last["timestamp"], "2026-01-01T00:00:14.001Z");
    assert!(
        rows[..rows.len() - 1]
            .iter()
            .all(|it| it["sessionId"] == *id && it["cwd"] == "/w" && it["version"] == "2.1.328")
    );
    assert!(rows[..rows.len() - 1].windows(2).all(|it| it[1]["parentUuid"] == it[0]["uuid"]));
}

fn edit_session(session: &Session, id: &str, text: &str) -> Session {
    Session { history: edit(session, id, text), ..session.clone() }
}

#[test]
fn appended_it_goes_on() {
    let source = Memory::new("t.jsonl", busy().text() + "{\"type\":\"cut off");
    let session = read(&source).unwrap();
    let after = compacted(&session);
    let written = write(&source, &session, &after, Mode::Append).unwrap();
    assert_eq!((&written.session, &written.file_name), (&None, &None));
    let bytes = written.bytes(&source).unwrap();
    assert!(bytes.starts_with(&source.bytes(0..source.len()).unwrap()));
    let again = read(&Memory::new("t.jsonl", bytes)).unwrap();
    assert_eq!(
        show(&again.history),
        "summary: what was \"done\"\nuser: second prompt\nmodel: c3?\nuser: c3=three, and quite a lot of it\nmodel: Done.\n"
    );

    // And once more on top of that: nothing is nested, nothing collides.
    let source = Memory::new("t.jsonl", written.bytes(&source).unwrap());
    let mut messages = compacted(&again).into_messages();
    messages[0] = Message::text(Role::User, Kind::Summary, "shorter");
    let twice =
        write(&source, &again, &History::new(messages, again.history.meta.clone()), Mode::Append).unwrap();
    let last = read(&Memory::new("t.jsonl", twice.bytes(&source).unwrap())).unwrap();
    assert!(show(&last.history).starts_with("summary: shorter\nuser: second prompt\nmodel: c3?\n"));
    assert_eq!(last.past.len(), 2);
}

use crate::Source as _;

/// Only the response that began last may have calls that still run.
#[test]
fn responses_whose_rows_alternate_read_the_same_once_written() {
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": id}});
    let mut rows = Rows::default();
    rows.user("u1", "fix it").block("a1", "m1", json!({"type": "text", "text": "Looking."}));
    rows.block("a2", "m2", call("c1")).block("a3", "m1", call("c2")).block("a4", "m2", call("c3"));
    rows.result("u2", "c1", "found");
    let source = rows.source();
    let session = read(&source).unwrap();
    assert_eq!(session.history.messages()[1].calls().count(), 0, "c2 was never answered");
    assert_eq!(session.history.messages()[2].calls().count(), 2, "c3 runs");
    for mode in [Mode::New, Mode::Append] {
        let written = write(&source, &session, &session.history, mode).unwrap();
        let again = read(&Memory::new("t", written.bytes(&source).unwrap())).unwrap();
        assert_eq!(show(&again.history), show(&session.history));
    }
}

#[test]
fn changed_messages_are_written_anew() {
    let source = busy().source();
    let session = read(&source).unwrap();
    let mut messages = session.history.messages().to_vec();
    messages[3].parts.remove(1);
    let mut call = messages[3].calls().next().unwrap().clone();
    call.input = "{\"command\":\"shorter\"}".into();
    messages[3].parts[1] = Part::Call(call);
    messages[6].parts = vec![Part::Text("second\nprompt, shortened".into())];
    messages.insert(7, Message::text(Role::Assistant, Kind::Ack, "I see."));
    messages.insert(8, Message::text(Role::User, Kind::Continue, "Go on."));
    let after = History::new(messages, session.history.meta.clone());
    for mode in [Mode::New, Mode::Append] {
        let written = write(&source, &session, &after, mode).unwrap();
        assert_eq!(written.warnings, Vec::<String>::new());
        let again = read(&Memory::new("t", written.bytes(&source).unwrap())).unwrap();
        let expected = BUSY
            .replace(" | Looking.", "")
            .replace("second prompt\n", "second\nprompt, shortened\nmodel: I see.\ncontext: Go on.\n");
        assert_eq!(show(&again.history), expected);
        assert_eq!(
            again.history.messages()[3].calls().next().unwrap().input.as_str(),
            "{\"command\":\"shorter\"}"
        );
        assert_eq!(
            again.history.messages()[3].parts[0],
            session.history.messages()[3].parts[0],
            "signed thinking"
        );
    }
}

#[test]
fn another_agents_session_is_carried_over() {
    let source = Memory::new("rollout", "not ours");
    let call = history::Call {
        id: "call_1".into(),
        name: "apply_patch".into(),
        input: "*** Begin".into(),
        freeform: true,
        signature: None,
    };
    let thought = history::Reasoning { text: "".into(), signature: Some("encrypted elsewhere".into()) };
    let output = history::Output {
        id: "call_1".into(),
        name: None,
        text: "Exit code 1".into(),
        media: [].into(),
        failed: true,
        cleared: false,
        exit: None,
        refusal: None,
    };
    let mut messages = vec![
        Message::text(Role::User, Kind::Said, "do it"),
        Message::new(Role::Assistant, Kind::Said, vec![Part::Reasoning(thought), Part::Call(call)]),
        Message::new(Role::Tool, Kind::Said, vec![Part::Output(output)]),
        Message::text(Role::Assistant, Kind::Said, "done"),
    ];
    for (number, message) in messages.iter_mut().enumerate() {
        message.from = Some(number as u32);
    }
    let meta = history::Meta { cwd: Some("/elsewhere".into()), ..Default::default() };
    let session = Session {
        format: crate::Format::CODEX,
        records: vec![crate::Record { at: 0, len: 8 }],
        of_message: vec![[0]; 4].into_iter().collect(),
        notes: vec![],
        past: vec![],
        history: History::new(messages, meta),
    };
    let written = write(&source, &session, &session.history, Mode::New).unwrap();
    assert_eq!(written.warnings, ["message 1: thinking that is not signed for this API is left out"]);
    let again = read(&Memory::new("t", written.bytes(&source).unwrap())).unwrap();
    assert_eq!(show(&again.history), "user: do it\nmodel: call_1?\nuser: call_1=Exit code 1!\nmodel: done\n");
    assert_eq!(
        again.history.messages()[1].calls().next().unwrap().input.as_str(),
        "{\"input\":\"*** Begin\"}"
    );
    assert_eq!(again.history.meta.cwd.as_deref(), Some("/elsewhere"));
    assert!(write(&source, &session, &session.history, Mode::Append).is_err());
}

// ── Laws ──

/// What a client would send: neighbours of the user are one. Without calls that have no result, as dice scatter them
/// so that which of them still run at the end depends on what else is dropped.
fn said(history: &History) -> Vec<(Role, Kind, Vec<Part>)> {
    let answered: Vec<_> =
        history.messages().iter().flat_map(Message::outputs).map(|it| it.id.clone()).collect();
    let mut out: Vec<(Role, Kind, Vec<Part>)> = Vec::new();
    for it in history.messages() {
        let mut parts = it.parts.clone();
        parts.retain(|it| !matches!(it, Part::Call(call) if !answered.contains(&call.id)));
        if parts.iter().all(|it| matches!(it, Part::Reasoning(_))) {
            continue;
        }
        match out.last_mut().filter(|last| it.role == Role::User && (last.0, last.1) == (it.role, it.kind)) {
            Some(last) => last.2.extend(parts),
            None => out.push((it.role, it.kind, parts)),
        }
    }
    out
}

/// A transcript from dice: each throw is a row, hung on the last or on an earlier one.
fn thrown(dice: &[(u8, u8, u8)]) -> Rows {
    let mut it = rows();
    let (mut ids, mut calls): (Vec<String>, Vec<String>) = Default::default();
    let mut response = 0;
    for (number, &(what, parent, small)) in dice.iter().enumerate() {
        if parent < 40 && !ids.is_empty() {
            it.last = Some(ids[parent as usize % ids.len()].clone());
        }
        let (uuid, text) = (format!("r{number}"), format!("text {number}"));
        // Now and then a response goes on behind another one, or behind a result of its own.
        let id = format!("m{}", response - usize::from(small) % 7 / 4 % (response + 1));
        response += usize::from(!matches!(what % 14, 2..=5 | 8) || small % 3 == 0);
        let tool = calls.get(small as usize % calls.len().max(1)).cloned().unwrap_or("c?".into());
        match what % 14 {
            0 | 1 => it.user(&uuid, text),
            2 => it.block(&uuid, &id, json!({"type": "text", "text": text})),
            3..=5 => {
                calls.push(format!("c{number}"));
                it.block(&uuid, &id, call(&format!("c{number}")))
            }
            6 | 7 => it.result(&uuid, &tool, &text),
            8 => it.block(&uuid, &id, json!({"type": "thinking", "thinking": text, "signature": "s"})),
            9 => it.rendered(&uuid, if small % 2 == 0 { "user" } else { "system" }, &text),
            10 => it.user(&uuid, "<local-command-stdout>x</local-command-stdout>"),
            11 if small % 3 == 0 => it.boundary(&uuid, json!({})).summary(&format!("s{number}"), &text),
            11 => {
                let kept = ids.iter().rev().take(small as usize % 4).rev().cloned().collect::<Vec<_>>();
                it.boundary(
                    &uuid,
                    json!({"preservedMessages": {"anchorUuid": format!("s{number}"), "uuids": kept}}),
                );
                it.summary(&format!("s{number}"), &text)
            }
            12 if !ids.is_empty() => {
                let leaf = ids[small as usize % ids.len()].clone();
                it.leaf(&leaf)
            }
            _ => it.add(&uuid, json!({"type": "progress", "data": {}})),
        };
        if it.lines.last().is_some_and(|line| line.contains(&format!("\"uuid\":\"{uuid}\""))) {
            ids.push(uuid);
        }
    }
    it
}

proptest::proptest! {
    #[test]
    fn laws(dice in proptest::collection::vec(proptest::prelude::any::<(u8, u8, u8)>(), 1..60), cut in 0usize..4000) {
        let source = thrown(&dice).source();
        let Ok(session) = read(&source) else { return Ok(()) };
        let history = &session.history;
        let same = write(&source, &session, history, Mode::Patch).unwrap();
        proptest::prop_assert_eq!(same.pieces, [crate::Piece::Keep(0..source.len())]);
        for (number, message) in history.messages().iter().enumerate() {
            proptest::prop_assert!(message.outputs().all(|it| history.call(&it.id, number).is_some()));
        }
        for mode in [Mode::New, Mode::Append] {
            let written = write(&source, &session, history, mode).unwrap();
            let bytes = written.bytes(&source).unwrap();
            if history.messages().is_empty() {
                continue;
            }
            let again = read(&Memory::new("t", bytes)).unwrap();
            proptest::prop_assert_eq!(said(&again.history), said(history), "{:?}\n{}", mode, thrown(&dice).text());
        }
        // Cut anywhere, with rubbish behind it: something is read, and nothing is lost of what is written back.
        let mut bytes = source.bytes(0..source.len()).unwrap();
        bytes.truncate(cut);
        bytes.extend_from_slice(b"\xFF{\0");
        let source = Memory::new("t", bytes.clone());
        if let Ok(session) = read(&source) {
            let same = write(&source, &session, &session.history, Mode::Patch).unwrap();
            proptest::prop_assert_eq!(same.bytes(&source).unwrap(), bytes);
        }
    }
}
