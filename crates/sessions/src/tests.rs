//! A session that is only measured has the same history as one that is read whole. In tests, blocks are
//! small, and no file is too small to be read from its end.

// `tests/all/layers.rs` reads a file up to this line: without it, this one would count as production code.
#[cfg(test)]
use std::path::PathBuf;

use super::*;
use history::{History, Message};

/// The messages of a session of these lines as text, and the session.
pub(super) fn shown(lines: &[impl AsRef<str>]) -> (String, Session) {
    let lines: Vec<&str> = lines.iter().map(AsRef::as_ref).collect();
    let session = read(&MemorySource::new("t", lines.join("\n")), None).unwrap();
    let mut out = String::new();
    for message in session.history.messages() {
        out.push_str(&format!("{:?} {:?}:", message.role, message.kind));
        for part in &message.parts {
            match part {
                Part::Text(it) => out.push_str(&format!(" {:?}", it.as_str())),
                Part::Call(it) => out.push_str(&format!(" {}#{}{}", it.name, it.id, it.input.as_str())),
                Part::Output(it) => out.push_str(&format!(" #{}={:?}", it.id, it.text.as_str())),
                Part::Reasoning(it) => out.push_str(&format!(" ({})", it.text.as_str())),
                Part::Media(it) => out.push_str(&format!(" {}", it.mime)),
                Part::Opaque(_) => {}
            }
        }
        out.push('\n');
    }
    (out, session)
}

/// Sessions of the agents, name and bytes: every fourth of each folder, or all with `EPITOME_CORPUS_WHOLE`.
pub(super) fn sessions() -> Vec<(String, Vec<u8>)> {
    #[expect(clippy::disallowed_methods, reason = "tests find their data by it")]
    let every = if std::env::var_os("EPITOME_CORPUS_WHOLE").is_some() { 1 } else { 4 };
    let folder = |key: &str, name: &str| {
        #[expect(clippy::disallowed_methods, reason = "tests find their data by it")]
        let found = std::env::var_os(key).map(PathBuf::from);
        found.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(name))
    };
    let (corpus, kit) =
        (folder("EPITOME_CORPUS", "corpus"), folder("EPITOME_CLIENTS", "clients").join("samples"));
    let names = ["claude-code", "codex", "gemini", "opencode"];
    let folders: Vec<PathBuf> = names
        .iter()
        .map(|it| corpus.join(it))
        .chain(["claude", "codex", "gemini", "opencode"].map(|it| kit.join(it)))
        .collect();
    let paths = |folder: &PathBuf| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut all: Vec<PathBuf> = entries.map(|it| it.path()).collect();
        all.retain(|it| it.extension().is_some_and(|it| it == "jsonl" || it == "json"));
        all.sort();
        all.into_iter().step_by(every)
    };
    let read = |it: PathBuf| Some((it.display().to_string(), std::fs::read(it).ok()?));
    let out: Vec<_> = folders.iter().flat_map(paths).filter_map(read).collect();
    if out.is_empty() {
        eprintln!("SKIPPED: sessions::tests: no corpus (set EPITOME_CORPUS)");
    }
    out
}

/// Asserts that `scan` and `read` agree. `None` if the file is not a session of an agent whose format is
/// written.
fn same(name: &str, bytes: &[u8]) -> Option<()> {
    let source = MemorySource::new(name, bytes);
    let format = sniff(&source).ok()?;
    if format.is_wire() || format.is_read_only() {
        return None;
    }
    let (whole, live) = (read(&source, Some(format)).ok()?, scan(&source, Some(format), &|_, _| None).ok()?);
    let sent = |it: &Message| Message { replaced: None, ..it.clone() };
    let sent = History::new(whole.history.messages().iter().map(sent).collect(), whole.history.meta.clone());
    assert!(sent == live.history, "{name}: {} bytes", bytes.len());
    assert!(live.past.len() <= whole.past.len(), "{name}");
    assert_eq!(whole.past.last().map(|it| &it.summary), live.past.last().map(|it| &it.summary), "{name}");
    Some(())
}

#[test]
fn measured_sessions_have_the_history_of_read_ones() {
    let (mut count, mut cut) = (0, 0);
    for (name, bytes) in sessions() {
        count += usize::from(same(&name, &bytes).is_some());
        // As the file was earlier, or in the middle of a write.
        for part in 1..4 {
            cut += usize::from(same(&name, &bytes[..bytes.len() * part / 4]).is_some());
        }
    }
    println!("{count} sessions, {cut} beginnings of them");
}

/// Records that the end of a long session does not depend on are not read.
#[test]
fn what_is_not_live_is_not_read() {
    struct Watched(MemorySource, std::sync::atomic::AtomicU64);
    impl Source for Watched {
        fn name(&self) -> &str {
            self.0.name()
        }
        fn len(&self) -> u64 {
            self.0.len()
        }
        fn read_at(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
            self.1.fetch_add(buffer.len() as u64, std::sync::atomic::Ordering::Relaxed);
            self.0.read_at(at, buffer)
        }
    }
    let row = |number: usize, parent: Option<usize>, rest: &str| {
        let parent = parent.map_or("null".to_owned(), |it| format!("\"{it}\""));
        format!(
            r#"{{"parentUuid":{parent},"isSidechain":false,"uuid":"{number}","sessionId":"s","cwd":"/p","timestamp":"2026-11-20T09:15:35.675Z",{rest}}}"#
        ) + "\n"
    };
    let said = r#""type":"user","message":{"role":"user","content":"some words that stand for more"}"#;
    let boundary = r#""type":"system","subtype":"compact_boundary","compactMetadata":{"trigger":"auto"}"#;
    let mut claude: String = (0..20_000).map(|it| row(it, it.checked_sub(1), said)).collect();
    claude += &row(20_000, None, boundary);
    claude.extend((20_001..20_010).map(|it| row(it, Some(it - 1), said)));

    let item = r#"{"timestamp":"2026-11-20T09:15:35.675Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"some words"}]}}"#.to_owned() + "\n";
    let line = |tag: &str, payload: &str| {
        format!(r#"{{"timestamp":"2026-11-20T09:15:36.000Z","type":"{tag}","payload":{payload}}}"#) + "\n"
    };
    let mut codex = line("session_meta", r#"{"id":"i","cwd":"/p"}"#) + &item.repeat(20_000);
    codex += &line("event_msg", r#"{"type":"task_started","turn_id":"t","model_context_window":9}"#);
    codex += &line("turn_context", r#"{"turn_id":"t","model":"gpt"}"#);
    codex += &line("compacted", r#"{"message":"m","replacement_history":[]}"#);
    codex += &item.repeat(9);
    let message = |id: usize| {
        format!(
            r#"{{"id":"{id}","timestamp":"2026-11-20T09:15:35.675Z","type":"gemini","model":"m","content":"some words"}}"#
        )
    };
    let mut gemini =
        r#"{"sessionId":"s","projectHash":"h","startTime":"2026-11-20T09:15:35.675Z","directories":["/p"]}"#
            .to_owned()
            + "\n";
    gemini.extend((0..20_000).map(|it| message(it) + "\n"));
    gemini += &format!(r#"{{"$set":{{"messages":[{},{}]}}}}"#, message(19_999), message(20_000));
    gemini += "\n";
    gemini.extend((20_001..20_010).map(|it| message(it) + "\n"));
    for text in [claude, codex, gemini] {
        let source = Watched(MemorySource::new("t", text.as_bytes()), 0.into());
        let live = scan(&source, None, &|_, _| None).unwrap();
        let read_bytes = source.1.into_inner();
        // How far the other threads have read ahead when it turns out to be enough depends on the machine.
        assert!(read_bytes < text.len() as u64 / 2, "{read_bytes} of {}", text.len());
        assert_eq!(live.history, read(&source.0, None).unwrap().history);
    }
}

/// The one-pass reader and the reader for unusual records give the same result, also for broken lines.
#[test]
fn usual_records_are_read_as_unusual_ones() {
    // A field that changes nothing and that never comes first in a usual record.
    let oddity = |format: Format| match format.name() {
        "gemini-cli" => Some("\"epitome\":null,"),
        _ => None,
    };
    let odd = |format, bytes: &[u8]| {
        let lines = bytes.split(|it| *it == b'\n').map(|line| match oddity(format) {
            Some(oddity) if line.starts_with(b"{\"") => [b"{", oddity.as_bytes(), &line[1..]].concat(),
            _ => line.to_vec(),
        });
        lines.collect::<Vec<_>>().join(&b'\n')
    };
    let mut chance = 1u64;
    let mut below = |end: usize| {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (chance >> 33) as usize % end
    };
    let mut broken = |bytes: &[u8]| {
        let lines = bytes.split(|it| *it == b'\n').map(|line| {
            let mut line = line.to_vec();
            if line.len() > 2 && below(8) == 0 {
                let at = 1 + below(line.len() - 1);
                match below(12) {
                    0 => drop(line.remove(at)),
                    it => line[at] = b"\"\\{}[],:0\x01u"[it - 1],
                }
            }
            line
        });
        lines.collect::<Vec<_>>().join(&b'\n')
    };
    let mut count = 0;
    for (name, bytes) in sessions() {
        let Ok(format) = sniff(&MemorySource::new(name.as_str(), bytes.as_slice())) else { continue };
        if oddity(format).is_none() {
            continue;
        }
        for bytes in [broken(&bytes), bytes] {
            let read = |bytes: Vec<u8>| read(&MemorySource::new(name.as_str(), bytes), Some(format)).ok();
            let (usual, odd) = (read(bytes.clone()), read(odd(format, &bytes)));
            let (Some(usual), Some(odd)) = (usual, odd) else { continue };
            for (usual, odd) in usual.history.messages().iter().zip(odd.history.messages()) {
                assert_eq!(usual, odd, "{name}");
            }
            assert!(usual.history == odd.history && usual.past == odd.past, "{name}");
            assert_eq!(usual.notes.len(), odd.notes.len(), "{name}");
            count += 1;
        }
    }
    println!("{count} sessions");
}

/// By content, with keys in any order, or by path if there is too little content.
#[test]
fn sessions_are_recognised() {
    let gemini = r#"[{"id":"1","timestamp":"2026-11-20T09:15:35.675Z","type":"user","content":"hello"}]"#;
    let long = "x".repeat(200_000);
    let part = format!(r#"{{"id":"prt_1","sessionID":"s1","messageID":"m1","type":"text","text":"{long}"}}"#);
    let info = r#"{"id":"m1","sessionID":"s1","role":"user","time":{"created":1}}"#;
    for (name, text, expected) in [
        (
            "kind first",
            format!(r#"{{"kind":"main","messages":{gemini},"sessionId":"s","projectHash":"h"}}"#),
            Format::GEMINI_CLI,
        ),
        ("no projectHash", format!(r#"{{"sessionId":"s","messages":{gemini}}}"#), Format::GEMINI_CLI),
        (
            "messages first",
            format!(r#"{{"messages":[{{"info":{info},"parts":[{part}]}}],"info":{{"id":"ses_1"}}}}"#),
            Format::OPENCODE,
        ),
        (
            "parts first",
            format!(r#"{{"messages":[{{"parts":[{part}],"info":{info}}}],"info":{{"id":"ses_1"}}}}"#),
            Format::OPENCODE,
        ),
        (
            "another id",
            format!(r#"{{"info":{{"id":"s1"}},"messages":[{{"info":{info},"parts":[]}}]}}"#),
            Format::OPENCODE,
        ),
        (
            "Oh My Pi",
            concat!(
                r#"{"type":"title","v":1,"title":"","pad":"   "}"#,
                "\n",
                r#"{"type":"session","version":3,"id":"s","timestamp":"2026-08-19T19:02:23.554Z","cwd":"/w"}"#,
            )
            .to_owned(),
            Format::PI,
        ),
        (
            "/home/dev/.claude/projects/-p/a.jsonl",
            r#"{"type":"mode","mode":"default","sessionId":"s"}"#.to_owned(),
            Format::CLAUDE_CODE,
        ),
    ] {
        let source = MemorySource::new(name, text);
        assert_eq!(sniff(&source).unwrap(), expected, "{name}");
        let messages = read(&source, None).map(|it| it.history.messages().len());
        if name.contains("Hash") || name.contains("first") {
            assert_eq!(messages.unwrap(), 1, "{name}");
        }
    }
    let old = concat!(
        r#"{"id":"i","timestamp":"2025-06-01T00:00:00Z","instructions":null,"git":{}}"#,
        "\n",
        r#"{"record_type":"state"}"#,
        "\n",
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}"#,
        "\n",
    );
    for (text, expected) in [(old, "no `payload`"), ("SQLite format 3\0", "#ses_")] {
        let error = sniff(&MemorySource::new("f", text)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// Notes have the line number in the file, counting blank lines.
#[test]
fn notes_name_their_line() {
    let at = r#""timestamp":"2026-11-20T09:15:35.675Z""#;
    let gemini = [
        &format!(r#"{{"sessionId":"s","projectHash":"h","startTime":"x",{at}}}"#),
        "",
        &format!(r#"{{"id":"1",{at},"type":"user","content":"a"}}"#),
        "",
        "",
        &format!(r#"{{"id":"2",{at},"type":"odd","content":"b"}}"#),
    ];
    let codex = [
        "",
        "",
        &format!(
            r#"{{{at},"type":"session_meta","payload":{{"id":"i","cwd":"/p","history_base":{{"id":"j"}}}}}}"#
        ),
    ];
    let tree = format!(r#""sessionId":"s",{at},"cwd":"/p","version":"0.22.2""#);
    let qwen = [
        "",
        &format!(
            r#"{{"uuid":"1","parentUuid":null,"type":"user",{tree},"message":{{"role":"odd","parts":[{{"text":"a"}}]}}}}"#
        ),
    ];
    for (lines, line) in [(&gemini[..], 6), (&codex, 3), (&qwen, 2)] {
        let (_, session) = shown(lines);
        assert_eq!(session.notes.iter().map(|it| it.line).collect::<Vec<_>>(), [line], "{:?}", session.notes);
    }
}

/// Codex refuses a call whose arguments are no JSON.
#[test]
fn free_text_is_carried_as_an_object() {
    let old = r#"{"messages":[{"role":"user","content":"list it"}]}"#;
    let source = MemorySource::new("t", old);
    let session = read(&source, Some(Format::ANTHROPIC)).unwrap();
    let mut messages = session.history.messages().to_vec();
    let call = history::Call {
        id: "c".into(),
        name: "bash".into(),
        input: "ls -la".into(),
        freeform: true,
        signature: None,
    };
    messages.push(history::Message::new(Role::Assistant, history::Kind::Said, vec![Part::Call(call)]));
    let after = History::new(messages, session.history.meta.clone());
    let written = carry(&source, &session, &after, Format::CODEX).unwrap().bytes(&source).unwrap();
    let carried = read(&MemorySource::new("t", written), Some(Format::CODEX)).unwrap();
    let call = carried.history.messages().iter().flat_map(|it| it.calls()).next().unwrap();
    assert_eq!((call.input.as_str(), call.freeform), (r#"{"input":"ls -la"}"#, false));
}

#[test]
fn parts_within_parts_are_looked_into_once() {
    let deep = 100_000;
    let part = r#"{"functionResponse":{"id":"c","name":"n","response":{},"parts":["#.repeat(deep)
        + &"]}}".repeat(deep);
    let text = format!(
        r#"{{"sessionId":"s","projectHash":"h"}}
{{"id":"1","type":"gemini","content":"","toolCalls":[{{"id":"c","name":"n","args":{{}},"result":[{part}]}}]}}
"#
    );
    let repaired =
        repair::repair(&MemorySource::new("t", text), Format::GEMINI_CLI, &|_| "h".into()).unwrap();
    assert!(repaired.findings.is_empty(), "{:?}", repaired.findings);
}
