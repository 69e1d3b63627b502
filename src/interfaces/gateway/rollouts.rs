//! Codex sessions that contain capsules. Without the gateway no provider can read them, so `uninstall`
//! replaces them by their summaries.

use std::path::Path;

use super::capsule::{CapsuleKey, MARK};
use super::recognize;
use crate::agents::{self, Env, FoundSession, gateway};
use history::error::{Error, ErrorKind, Result};
use sessions::agents::codex::framed_summary;

/// The sessions that contain a capsule of ours.
pub fn holding(env: &Env) -> Vec<FoundSession> {
    let mut found = agents::list(env, Some(gateway::AGENT), None);
    found.retain(|it| std::fs::read(&it.path).is_ok_and(|it| holds(&it)));
    found
}

fn holds(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, format!("\"{MARK}").as_bytes()).is_some()
}

/// Replaces the capsules in a session by their summaries; returns how many.
///
/// # Errors
/// [`ErrorKind::Live`] while Codex writes the session; [`ErrorKind::Refused`] for another owner's capsule.
pub fn open(env: &Env, session: &FoundSession, folder: &Path, owner: &str) -> Result<usize> {
    let _claim = gateway::AGENT.lock(env, &session.id)?;
    let path = &session.path;
    let bytes = std::fs::read(path)
        .map_err(|error| Error::new(ErrorKind::Io, "reading a session").at_path(path).because(error))?;
    let key = CapsuleKey::open(folder)?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|_| Error::new(ErrorKind::Input, "expected UTF-8, found other bytes").at_path(path))?;
    let (new, count) = opened(text, &|it| key.open_capsule(owner, it)).map_err(|it| it.at_path(path))?;
    if count > 0 {
        crate::files::replace(path, bytes.len() as u64, &mut new.as_bytes())?;
    }
    Ok(count)
}

/// Replaces each capsule in a rollout by a user message that Codex takes for injected context, so that its
/// next compaction does not keep it as the user's words. All other bytes stay.
fn opened(text: &str, open: &dyn Fn(&str) -> Result<String>) -> Result<(String, usize)> {
    let mut out = String::with_capacity(text.len());
    let mut count = 0;
    for line in text.split_inclusive('\n') {
        let spans = if holds(line.as_bytes()) { gateway::items(line) } else { Vec::new() };
        let edits = recognize::opened(line, &spans, &|it| open(it).map(|it| framed_summary(&it)))?;
        count += edits.len();
        out.push_str(&history::edited(line, edits));
    }
    Ok((out, count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sessions::{self, Format, MemorySource};

    #[test]
    fn only_capsules_are_changed_and_a_resume_reads_them() {
        let item =
            format!("{{\"type\":\"compaction\",\"id\":\"cmp_1\",\"encrypted_content\":\"{MARK}h.c.t\"}}");
        let said =
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}],"x":1.50}"#;
        let line = |kind: &str, payload: &str| {
            format!(
                "{{\"timestamp\":\"2026-11-20T10:00:00.000Z\",\"type\":\"{kind}\",\"payload\":{payload}}}\n"
            )
        };
        let text = line("session_meta", r#"{"id":"a-1","cwd":"/p","timestamp":"2026-11-20T10:00:00.000Z"}"#)
            + &line("response_item", said)
            + &line("compacted", &format!("{{\"message\":\"\",\"replacement_history\":[{said} , {item}]}}"))
            + &line("response_item", said)
            + "{\"cut";
        let (new, count) = opened(&text, &|it| Ok(format!("Earlier conversation compacted: {it}"))).unwrap();
        assert_eq!(count, 1);
        let summary = framed_summary(&format!("Earlier conversation compacted: {MARK}h.c.t"));
        assert_eq!(new, text.replace(&item, &recognize::message(&summary).to_string()));
        assert!(!holds(new.as_bytes()) && holds(text.as_bytes()));
        let session = sessions::read(&MemorySource::new("r", new.into_bytes()), Some(Format::CODEX)).unwrap();
        let kinds: Vec<history::Kind> = session.history.messages().iter().map(|it| it.kind).collect();
        assert_eq!(kinds, [history::Kind::Said, history::Kind::Summary, history::Kind::Said]);
        let refused = opened(&text, &|_| Err(Error::new(ErrorKind::Refused, "no")));
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Refused);
    }
}
