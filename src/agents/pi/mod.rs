//! pi: `sessions/--<directory>--/<time>_<session>.jsonl` in its folder; its sessions are only read. An extension in that
//! folder, whose event `session_before_compact` takes one text for what stands before the messages that it keeps. It has
//! no MCP.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::install::{FileChange, InstallPlan, MadeInFiles, is_our_file, with_program};
use super::seat::{Around, Conversation, Given, Seat, SeatRequest, SeatSession};
use super::{
    Agent, AgentInfo, Env, FoundSession, SessionFile, Variables, files, first_words, objects, spellings,
};
use history::Message;
use history::error::{Error, ErrorKind, Result};
use sessions::Format;

/// The name used in arguments and in the log.
pub const NAME: &str = "pi";

const EXTENSION: &str = include_str!("extension.ts");

pub struct Pi;

/// Its folder, with settings, sessions and extensions.
fn folder(env: &Env) -> PathBuf {
    env.folder("PI_CODING_AGENT_DIR").unwrap_or_else(|| env.home.join(".pi/agent"))
}

fn extension(env: &Env) -> PathBuf {
    folder(env).join("extensions/epitome.ts")
}

impl Agent for Pi {
    fn info(&self) -> &'static AgentInfo {
        static INFO: AgentInfo = AgentInfo {
            variables: Variables { inside: &[], session: None, project: None },
            seat: Some(&PiSeat),
            ..AgentInfo::new(Format::PI, "pi")
        };
        &INFO
    }

    fn home(&self, env: &Env) -> PathBuf {
        folder(env).join("sessions")
    }

    fn search(&self, env: &Env, cwd: Option<&Path>, id: Option<&str>) -> Vec<FoundSession> {
        let wanted = cwd.map(spellings);
        let sessions = files(&self.home(env), 2).into_iter().filter_map(|it| look(&it));
        let here = |it: &FoundSession| {
            wanted.as_ref().is_none_or(|all| it.cwd.as_ref().is_some_and(|cwd| all.contains(cwd)))
        };
        sessions.filter(|it| here(it) && id.is_none_or(|id| it.id == id)).collect()
    }

    fn resume(&self, _env: &Env, id: &str) -> String {
        format!("pi --session {id}")
    }

    fn settings_files(&self, env: &Env, _config: &Path, owner: &str) -> Vec<PathBuf> {
        if owner == self.name() { vec![folder(env).join("settings.json")] } else { Vec::new() }
    }

    fn own_compaction(&self, setting: &dyn Fn(&str) -> Option<Value>) -> String {
        if setting("pi:compaction.enabled") == Some(Value::Bool(false)) {
            return "only with /compact".to_owned();
        }
        let reserve = setting("pi:compaction.reserveTokens").and_then(|it| it.as_u64()).unwrap_or(16_384);
        format!("{reserve} tokens before the window is full")
    }

    fn has_our_seat(&self, env: &Env) -> bool {
        std::fs::read_to_string(extension(env)).is_ok_and(|it| is_our_file(&it))
    }
}

fn look(file: &SessionFile) -> Option<FoundSession> {
    if file.path.extension().is_none_or(|it| it != "jsonl") {
        return None;
    }
    let head = file.head();
    let mut rows = objects(&head).skip_while(|it| it["type"] != "session");
    let first = rows.next()?;
    let prompts = rows.filter(|it| it["message"]["role"] == "user");
    let words = |row: Value| {
        let content = &row["message"]["content"];
        let parts = content.as_array().into_iter().flatten().filter_map(|it| it["text"].as_str());
        let text = content.as_str().into_iter().chain(parts).find(|it| !it.trim_start().starts_with('<'));
        text.map(first_words)
    };
    Some(FoundSession {
        agent: &Pi,
        id: first["id"].as_str()?.to_owned(),
        path: file.path.clone(),
        parent: None,
        cwd: first["cwd"].as_str().map(PathBuf::from),
        changed_ms: file.changed_ms,
        first_words: prompts.take(20).find_map(words).unwrap_or_default(),
        live: false,
    })
}

/// What installing changes: the extension, which calls `program`; without one, what uninstalling changes.
///
/// # Errors
/// [`ErrorKind::Refused`] where pi is not on this machine, or another's extension has our name.
pub fn plan(env: &Env, program: Option<&Path>) -> Result<InstallPlan> {
    let folder = folder(env);
    // Its first start makes the folder around it.
    if program.is_some() && ![&folder, &env.home.join(".pi")].into_iter().any(|it| it.exists()) {
        let what =
            format!("pi is not installed here: expected {}, found nothing; start it once", folder.display());
        return Err(Error::new(ErrorKind::Refused, what));
    }
    let path = extension(env);
    let before = std::fs::read_to_string(&path).ok();
    if before.as_deref().is_some_and(|it| !is_our_file(it)) {
        let what = "expected no extension of our name, or ours, found another; rename it";
        return Err(Error::new(ErrorKind::Refused, what).at_path(&path));
    }
    let after = program.map(|it| with_program(EXTENSION, it));
    Ok(InstallPlan { changes: vec![FileChange { path, before, after }], made: MadeInFiles::new() })
}

pub struct PiSeat;

impl Seat for PiSeat {
    fn name(&self) -> &'static str {
        NAME
    }

    fn limit(&self) -> Duration {
        Duration::from_secs(8)
    }

    fn asked(&self, event: &Value, _around: &Around<'_>) -> Result<Option<SeatRequest>> {
        let now = SeatSession::given(event["session"].as_str().unwrap_or_default().as_bytes(), Format::PI)?;
        let file = event["file"].as_str().map(Path::new);
        let original = file.and_then(|it| SeatSession::file(it, Format::PI).ok());
        Ok(Some(SeatRequest::new(
            event,
            Conversation::Given(Box::new(Given { now, original, archive: false })),
        )))
    }

    fn reply(&self, _messages: &[Message], text: &dyn Fn() -> String) -> Value {
        json!({ "summary": text() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::{find, list, named};

    #[test]
    fn finds_sessions_and_our_seat() {
        let home = tempfile::tempdir().unwrap();
        let project = home.path().join(".pi/agent/sessions/--w-pumps--");
        std::fs::create_dir_all(&project).unwrap();
        let rows = "{\"type\":\"session\",\"version\":3,\"id\":\"s1\",\"cwd\":\"/w/pumps\"}\n\
            {\"type\":\"message\",\"id\":\"a\",\"parentId\":null,\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"Mend  the\\npump\"}]}}\n";
        std::fs::write(project.join("2026-01-01_s1.jsonl"), rows).unwrap();
        std::fs::write(project.join("notes.jsonl"), "{}\n").unwrap();
        let env = Env { home: home.path().to_owned(), ..Env::default() };
        let found = list(&env, named("pi"), Some(Path::new("/w/pumps")));
        assert_eq!(
            found.iter().map(|it| (&*it.id, &*it.first_words)).collect::<Vec<_>>(),
            [("s1", "Mend the pump")]
        );
        assert_eq!(list(&env, named("pi"), Some(Path::new("/w/fans"))).len(), 0);
        assert_eq!(find(&env, "s1").len(), 1);
        assert!(!Pi.has_our_seat(&env));
        let change = plan(&env, Some(Path::new("/bin/epitome"))).unwrap().changes.remove(0);
        std::fs::create_dir_all(change.path.parent().unwrap()).unwrap();
        std::fs::write(&change.path, change.after.unwrap()).unwrap();
        assert!(Pi.has_our_seat(&env));
    }
}
