//! Codex: sessions ("threads") in `sessions/YYYY/MM/DD/rollout-<time>-<thread>.jsonl` and
//! `archived_sessions/` of its home. A running thread holds a lock on `thread-writer-locks/<thread>.lock`
//! (Codex 0.169).

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::hooks::{AfterCompaction, AgentHooks, HookMoment};
use super::settings::own;
use super::write_back::{self, Operation, WriteMethod};
use super::{
    Agent, AgentInfo, Env, FoundSession, SessionFile, TypedPrompt, files, first_words, is_wanted, objects,
    spellings,
};
use history::error::{Error, ErrorKind, Result};
use history::{History, Message, Role};
use sessions::{Format, MemorySource, Session};

pub mod gateway;
mod install;

pub struct Codex;

impl Agent for Codex {
    fn info(&self) -> &'static AgentInfo {
        static INFO: AgentInfo = AgentInfo {
            aliases: &["codex-cli"],
            directory_fields: &["cwd", "runtime_workspace_roots", "writable_roots"],
            hooks: AgentHooks {
                file_prefix: Some("rollout-"),
                reply_reaches_model_at: &[HookMoment::StartCompacted, HookMoment::Turn],
                after: AfterCompaction::Missing,
                summary_in_session: true,
                ..AgentHooks::NONE
            },
            registration: Some(&install::REGISTRATION),
            has_gateway: true,
            ..AgentInfo::new(Format::CODEX, "Codex")
        };
        &INFO
    }

    fn calling_session(&self, meta: &serde_json::Map<String, Value>) -> Option<String> {
        meta.get("threadId").and_then(Value::as_str).map(str::to_owned)
    }

    fn home(&self, env: &Env) -> PathBuf {
        home(env)
    }

    fn search(&self, env: &Env, cwd: Option<&Path>, id: Option<&str>) -> Vec<FoundSession> {
        let home = self.home(env);
        let wanted = cwd.map(spellings);
        let all = ["sessions", "archived_sessions"].into_iter().flat_map(|it| files(&home.join(it), 3));
        let rollouts = all.filter(|it| it.name().starts_with("rollout-") && it.name().ends_with(".jsonl"));
        let mut out: Vec<FoundSession> = rollouts
            .filter(|file| id.is_none_or(|it| file.stem().ends_with(it)))
            .filter_map(|file| read_head(&file))
            .filter(|it| is_wanted(it, wanted.as_deref(), id))
            .collect();
        for it in &mut out {
            it.live = self.is_running(env, &it.id, &it.path);
        }
        out
    }

    /// `history.jsonl`: a line `{session_id, ts, text}` for each prompt, `ts` in seconds (Codex 0.169).
    fn typed(&self, env: &Env) -> Vec<TypedPrompt> {
        let bytes = crate::files::tail(&home(env).join("history.jsonl"), LOGGED).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let typed = |it: Value| {
            Some(TypedPrompt {
                agent: &Codex,
                session: it["session_id"].as_str()?.to_owned(),
                at: it["ts"].as_i64()?.saturating_mul(1_000),
                text: it["text"].as_str()?.to_owned(),
            })
        };
        objects(&text).filter_map(typed).collect()
    }

    /// Whether a Codex process is writing this thread. The check briefly takes a shared lock if nobody holds
    /// it; a missing lock file is not created.
    fn is_running(&self, env: &Env, id: &str, _path: &Path) -> bool {
        let file = lock_file(env, id).and_then(|it| crate::files::open(&it).ok());
        file.is_some_and(|it| matches!(it.try_lock_shared(), Err(fs::TryLockError::WouldBlock)))
    }

    /// Takes the lock of a running thread: while we hold it, Codex does not resume the thread.
    fn lock(&self, env: &Env, id: &str) -> Result<Option<fs::File>> {
        let Some(path) = lock_file(env, id) else {
            return Err(Error::new(ErrorKind::Input, format!("expected a thread's id, found {id:?}")));
        };
        let fail = |error: std::io::Error| {
            let what = "taking Codex's lock on a thread; nothing was changed";
            Error::new(ErrorKind::Io, what).at_path(&path).because(error)
        };
        fs::create_dir_all(path.parent().unwrap_or(&path)).map_err(fail)?;
        let file =
            fs::OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(fail)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(fs::TryLockError::WouldBlock) => {
                let what = format!(
                    "Codex is writing the thread {id}; end it, or run this again to make a new thread"
                );
                Err(Error::new(ErrorKind::Live, what))
            }
            Err(fs::TryLockError::Error(error)) => Err(fail(error)),
        }
    }

    fn untested_version(&self, head: &str) -> Option<String> {
        objects(head).find_map(|it| {
            let payload = &it["payload"];
            let unknown =
                |mode: &str| (!["legacy", "paginated"].contains(&mode)).then(|| format!("({mode})"));
            write_back::if_major_above(payload["cli_version"].as_str()?, 0)
                .or_else(|| payload["history_mode"].as_str().and_then(unknown))
        })
    }

    fn write_method(&self, _operation: Operation, live: bool, _export: bool) -> Result<WriteMethod> {
        Ok(write_back::replace_when_idle(live))
    }

    fn new_session_path(&self, env: &Env, _cwd: &Path, file_name: &str) -> Result<Option<PathBuf>> {
        // `rollout-YYYY-MM-DD…` belongs in the folder `YYYY/MM/DD`.
        let date = file_name.trim_start_matches("rollout-").get(..10).unwrap_or_default();
        let folder: PathBuf = date.split('-').collect();
        Ok(Some(home(env).join("sessions").join(folder).join(file_name)))
    }

    /// Codex finds a thread by the date and the id in the file name.
    fn session_file_name(&self, session: &Session, name: &str) -> String {
        let meta = &session.history.meta;
        let (Some(id), Some((begun, _))) = (meta.session.as_deref(), meta.times) else {
            return name.to_owned();
        };
        let fits = name.starts_with("rollout-") && name.contains(id);
        let time = sessions::derive::time(begun);
        let time = time.get(..19).unwrap_or_default().replace(':', "-");
        if fits { name.to_owned() } else { format!("rollout-{time}-{id}.jsonl") }
    }

    fn resume_command(&self, env: &Env, id: &str) -> String {
        format!("{}codex resume {id}", env.assigned(FOLDER))
    }

    /// The rollout up to the summary, without our reply, which Codex recorded as the last assistant messages.
    fn before_summary(&self, before: &[u8], handle: &str) -> Result<Option<(MemorySource, Session)>> {
        if !before.ends_with(b"\n") {
            return Ok(None);
        }
        let before = MemorySource::new("the rollout before the compaction", before);
        let mut session = sessions::read(&before, Some(self.format()))?;
        let meta = session.history.meta.clone();
        let mut messages = session.history.into_messages();
        let answer =
            |it: &Message| it.role == Role::Assistant && it.parts.iter().any(|it| gateway::names(it, handle));
        while messages.last().is_some_and(answer) {
            messages.pop();
        }
        session.history = History::new(messages, meta);
        Ok(Some((before, session)))
    }

    fn reported(&self, row: &Value) -> Option<(u64, Option<String>)> {
        let total = row["payload"]["info"]["last_token_usage"]["total_tokens"].as_u64();
        total.filter(|it| *it > 0).map(|it| (it, None))
    }

    fn settings_files(&self, env: &Env, _config: &Path) -> Vec<PathBuf> {
        vec![home(env).join("config.toml")]
    }

    fn own_compaction(&self, setting: &dyn Fn(&str) -> Option<Value>) -> String {
        let limit = setting("codex:model_auto_compact_token_limit").and_then(|it| own::number(&it));
        limit.map_or("at 90 % of the window".to_owned(), |it| format!("at {it} tokens"))
    }
}

const FOLDER: &str = "CODEX_HOME";

fn home(env: &Env) -> PathBuf {
    env.folder(FOLDER).unwrap_or_else(|| env.home.join(".codex"))
}

/// The lock file of a thread. `None` if the id is not a plain name: it must not lead to another path.
fn lock_file(env: &Env, id: &str) -> Option<PathBuf> {
    let is_plain = id.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-');
    is_plain.then(|| home(env).join("thread-writer-locks").join(format!("{id}.lock")))
}

/// How much of the end of `history.jsonl` is read, in bytes: about 50,000 prompts.
const LOGGED: u64 = 16 << 20;

fn read_head(file: &SessionFile) -> Option<FoundSession> {
    let head = file.head();
    let mut lines = objects(&head);
    let first = lines.next()?;
    let meta = &first["payload"];
    if first["type"] != "session_meta" {
        return None;
    }
    let parent = meta["parent_thread_id"]
        .as_str()
        .or_else(|| meta["source"]["subagent"]["thread_spawn"]["parent_thread_id"].as_str());
    Some(FoundSession {
        parent: parent.map(str::to_owned),
        cwd: meta["cwd"].as_str().map(PathBuf::from),
        first_words: lines.find_map(|it| prompt(&it)).unwrap_or_default(),
        ..file.session(&Codex, meta["id"].as_str()?)
    })
}

/// The start of what the user typed: nothing that Codex injects, and of an editor's prompt only the request.
fn prompt(line: &Value) -> Option<String> {
    let item = &line["payload"];
    if line["type"] != "response_item" || item["type"] != "message" || item["role"] != "user" {
        return None;
    }
    let texts = item["content"].as_array()?.iter().filter_map(|it| it["text"].as_str());
    let said = texts.map(|it| it.split_once("## My request for Codex:").map_or(it, |it| it.1).trim_start());
    let mut said = said.filter(|it| !it.starts_with('<') && !it.starts_with("# AGENTS.md instructions"));
    said.next().map(first_words).filter(|it| !it.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::{current, find, list};

    #[test]
    fn reads_what_was_typed() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().display().to_string();
        let env = Env { variables: [(FOLDER.to_owned(), folder)].into(), ..Env::default() };
        assert!(Codex.typed(&env).is_empty());
        let log = "{\"session_id\":\"a-1\",\"ts\":1700000000,\"text\":\"fix the\\ncache\"}\nnot json\n{\"ts\":1}\n\
                   {\"session_id\":\"a-2\",\"ts\":1700000001,\"text\":\"\u{65e5}\"}\n{\"session_id\":\"cut";
        fs::write(home.path().join("history.jsonl"), log).unwrap();
        let found: Vec<_> = Codex.typed(&env).into_iter().map(|it| (it.session, it.at, it.text)).collect();
        let expected = [("a-1", 1_700_000_000_000, "fix the\ncache"), ("a-2", 1_700_000_001_000, "\u{65e5}")];
        assert_eq!(found, expected.map(|(session, at, text)| (session.into(), at, text.into())));
    }

    #[test]
    fn finds_threads_and_locks() {
        let home = tempfile::tempdir().unwrap();
        let codex = home.path().join("codex home");
        let day = codex.join("sessions/2026/11/20");
        for it in [&day, &codex.join("archived_sessions"), &codex.join("thread-writer-locks")] {
            fs::create_dir_all(it).unwrap();
        }
        let meta = |id: &str, more: &str| {
            format!("{{\"type\":\"session_meta\",\"payload\":{{\"id\":\"{id}\",\"cwd\":\"/p\"{more}}}}}\n")
        };
        let said = |text: &str| {
            format!(
                "{{\"type\":\"response_item\",\"payload\":{{\"type\":\"message\",\"role\":\"user\",\"content\":[{{\"type\":\"input_text\",\"text\":\"{text}\"}}]}}}}\n"
            )
        };
        let write = |path: PathBuf, text: String| fs::write(path, text).unwrap();
        let context = said("<environment_context>x") + &said("# AGENTS.md instructions for /p");
        write(
            day.join("rollout-2026-11-20T10-00-00-aaaa-1.jsonl"),
            meta("aaaa-1", "")
                + &context
                + &said("# Context from my IDE\\n## My request for Codex:\\nFix it")
                + "{\"cut",
        );
        write(
            day.join("rollout-2026-11-20T10-00-01-bbbb-2.jsonl"),
            meta("bbbb-2", r#","source":{"subagent":{"thread_spawn":{"parent_thread_id":"aaaa-1"}}}"#),
        );
        write(codex.join("archived_sessions/rollout-2026-01-01T00-00-00-cccc-3.jsonl"), meta("cccc-3", ""));
        write(day.join("rollout-x-dddd-4.jsonl"), "{}\n".into());
        write(day.join("notes.jsonl"), meta("eeee-5", ""));
        let lock = codex.join("thread-writer-locks/aaaa-1.lock");
        write(lock.clone(), String::new());
        let variables = [(FOLDER.to_owned(), codex.display().to_string())].into();
        let env = Env { home: home.path().to_owned(), variables, ..Env::default() };

        let found = list(&env, None, None);
        assert_eq!(found.len(), 3);
        assert!(found.iter().all(|it| !it.live));
        let one = &find(&env, "aaaa-1")[0];
        assert_eq!((&*one.first_words, one.cwd.as_deref()), ("Fix it", Some(Path::new("/p"))));
        assert_eq!(find(&env, "bbbb-2")[0].parent.as_deref(), Some("aaaa-1"));
        assert_eq!(find(&env, "1").len(), 0, "the end of an id is not the id");
        assert_eq!(list(&env, None, Some(Path::new("/p"))).len(), 3);
        assert_eq!(list(&env, None, Some(Path::new("/q"))).len(), 0);

        let held = fs::File::open(&lock).unwrap();
        held.lock().unwrap();
        assert!(find(&env, "aaaa-1")[0].live && !find(&env, "cccc-3")[0].live);
        drop(held);
        assert!(
            !Codex.is_running(&env, "aaaa-1", home.path()) && !Codex.is_running(&env, "../x", home.path())
        );

        let inside = Env { inside: Some(&Codex), session: Some("cccc-3".into()), ..env };
        assert_eq!(current(&inside)[0].id, "cccc-3");
    }
}
