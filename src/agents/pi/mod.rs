//! pi: an extension in its folder answers the event `session_before_compact` with one text, which replaces
//! everything before the messages that pi keeps. pi has no MCP.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::hooks::seat::{Conversation, Seat, SeatAsk, SeatContext, SeatSession, SentConversation};
use super::install::{Registration, SettingsStyle, fill_program_path};
use super::{
    Agent, AgentInfo, Env, FoundSession, SessionFile, files, first_words, is_wanted, objects, spellings,
};
use history::error::Result;
use sessions::Format;

pub struct Pi;

impl Agent for Pi {
    fn info(&self) -> &'static AgentInfo {
        static INFO: AgentInfo = AgentInfo {
            registration: Some(&REGISTRATION),
            seat: Some(&SEAT),
            ..AgentInfo::new(Format::PI, "pi")
        };
        &INFO
    }

    fn home(&self, env: &Env) -> PathBuf {
        folder(env).join("sessions")
    }

    fn search(&self, env: &Env, cwd: Option<&Path>, id: Option<&str>) -> Vec<FoundSession> {
        let wanted = cwd.map(spellings);
        let files = files(&self.home(env), 1).into_iter();
        let named = |it: &SessionFile| id.is_none_or(|id| it.stem().ends_with(id));
        let found = files.filter(named).filter_map(|it| read_head(&it));
        found.filter(|it| is_wanted(it, wanted.as_deref(), id)).collect()
    }

    fn resume_command(&self, _env: &Env, id: &str) -> String {
        format!("pi --session {id}")
    }

    fn settings_files(&self, env: &Env, _config: &Path) -> Vec<PathBuf> {
        vec![folder(env).join("settings.json")]
    }

    fn own_compaction(&self, setting: &dyn Fn(&str) -> Option<Value>) -> String {
        if setting("pi:compaction.enabled").is_some_and(|it| it == false) {
            return "off".to_owned();
        }
        let reserve = setting("pi:compaction.reserveTokens").and_then(|it| it.as_u64()).unwrap_or(16_384);
        format!("{reserve} tokens before the window is full")
    }
}

fn folder(env: &Env) -> PathBuf {
    env.folder("PI_CODING_AGENT_DIR").unwrap_or_else(|| env.home.join(".pi/agent"))
}

/// Reads the header of a session, `<time>_<id>.jsonl` in a folder per directory.
fn read_head(file: &SessionFile) -> Option<FoundSession> {
    if file.path.extension().is_none_or(|it| it != "jsonl") {
        return None;
    }
    let head = file.head();
    let mut rows = objects(&head).skip_while(|it| it["type"] == "title");
    let header = rows.next().filter(|it| it["type"] == "session")?;
    let first_prompt = rows.find(|it| it["message"]["role"] == "user");
    let content = first_prompt.map(|it| it["message"]["content"].clone()).unwrap_or_default();
    let text = content.as_str().or_else(|| content.as_array()?.iter().find_map(|it| it["text"].as_str()));
    Some(FoundSession {
        cwd: header["cwd"].as_str().map(PathBuf::from),
        first_words: text.map(first_words).unwrap_or_default(),
        ..file.session(&Pi, header["id"].as_str()?)
    })
}

static REGISTRATION: Registration = Registration {
    program: "pi",
    folder: |env, _| env.home.join(".pi"),
    files: |env, _| (folder(env).join("settings.json"), folder(env).join("settings.json")),
    style: SettingsStyle::SeatFiles,
    events: &[],
    seat_explained: Some([
        "Epitome answers /compact and automatic compaction, without asking a model",
        "the original is archived first; pi's session file keeps everything",
        "to leave: epitome uninstall pi; if anything goes wrong, pi compacts by itself",
    ]),
    seat_files: |env, program, _| {
        let text = fill_program_path(include_str!("extension.ts"), program);
        vec![(folder(env).join("extensions/epitome.ts"), text)]
    },
    plugins: None,
    manual_removal: "",
    prompts: None,
    has_threshold: false,
    status_line: None,
    note: |_| None,
};

static SEAT: Seat = Seat {
    format: Format::PI,
    limit: Duration::from_secs(8),
    answers_failure: false,
    requested,
    reply: |_, text| json!({ "summary": text() }),
};

fn requested(event: &Value, _: &SeatContext<'_>) -> Result<Option<(SeatAsk, Conversation)>> {
    let conversation =
        SeatSession::from_bytes(event["session"].as_str().unwrap_or_default().as_bytes(), Format::PI)?;
    let file = event["file"].as_str().map(Path::new);
    let transcript = file.and_then(|it| SeatSession::from_file(it, Format::PI).ok());
    let sent = SentConversation { conversation, transcript, archive_both: false };
    Ok(Some((SeatAsk::of(event), Conversation::Sent(Box::new(sent)))))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::agents::{find, list};

    #[test]
    fn finds_sessions_by_directory_and_id() {
        let home = tempfile::tempdir().unwrap();
        let sessions = home.path().join(".pi/agent/sessions/--w-app--");
        fs::create_dir_all(&sessions).unwrap();
        let session = |id: &str, cwd: &str| {
            let header = json!({"type": "session", "id": id, "timestamp": "t", "cwd": cwd});
            let text = json!([{"type": "text", "text": "Fix  the\nbug"}]);
            let prompt = json!({"type": "message", "message": {"role": "user", "content": text}});
            fs::write(sessions.join(format!("2026_{id}.jsonl")), format!("{header}\n{prompt}\n")).unwrap();
        };
        session("s1", "/w/app");
        session("s2", "/w-app");
        fs::write(sessions.join("junk.jsonl"), "junk\n{}\n").unwrap();
        let env = Env { home: home.path().to_owned(), ..Env::default() };
        let found = list(&env, Some(&Pi), Some(Path::new("/w/app")));
        let all: Vec<_> = found.iter().map(|it| (&*it.id, &*it.first_words)).collect();
        assert_eq!(all, [("s1", "Fix the bug")]);
        assert_eq!(find(&env, "s2")[0].cwd.as_deref(), Some(Path::new("/w-app")));
        assert_eq!(find(&env, "2"), []);
        assert_eq!(list(&env, None, None).len(), 2);
    }
}
