//! Gemini CLI: sessions in `tmp/<project>/chats/session-<minute>-<id8>.jsonl` (`.json` before 0.36) of
//! `~/.gemini`, sub-agents in `chats/<parent>/`. `projects.json` maps directories to project names; older
//! folders are named by the directory's SHA-256. Resuming leaves stub files with the same id behind; the file
//! with real messages is the session (Gemini CLI 0.61).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::hooks::{AgentHooks, HookMoment};
use super::write_back::{self, Operation, WriteMethod};
use super::{
    Agent, AgentInfo, Env, FoundSession, HEAD, Problem, SessionFile, Variables, files, first_words, objects,
    settings, spellings,
};
use history::error::Result;
use sessions::Format;
use sessions::parse::document;

mod install;
mod seat;

pub struct GeminiCli;

impl Agent for GeminiCli {
    fn info(&self) -> &'static AgentInfo {
        static INFO: AgentInfo = AgentInfo {
            aliases: &["gemini"],
            variables: Variables {
                inside: &["GEMINI_CLI"],
                session: Some("GEMINI_SESSION_ID"),
                project: None,
            },
            directory_fields: &["projectHash"],
            hooks: AgentHooks {
                own_events: &[
                    "PreCompress",
                    "BeforeAgent",
                    "AfterAgent",
                    "BeforeModel",
                    "AfterModel",
                    "BeforeTool",
                    "AfterTool",
                ],
                file_prefix: Some("session-"),
                reply_reaches_model_at: &[HookMoment::Turn],
                ..AgentHooks::NONE
            },
            registration: Some(&install::REGISTRATION),
            seat: Some(&seat::SEAT),
            ..AgentInfo::new(Format::GEMINI_CLI, "Gemini CLI")
        };
        &INFO
    }

    fn home(&self, env: &Env) -> PathBuf {
        home(env).join("tmp")
    }

    fn search(&self, env: &Env, cwd: Option<&Path>, id: Option<&str>) -> Vec<FoundSession> {
        let directories = directories_by_folder(env);
        let tmp = home(env).join("tmp");
        let wanted = cwd.map(|it| projects(env, it));
        let mut best: BTreeMap<(PathBuf, String), (bool, FoundSession)> = BTreeMap::new();
        for file in files(&tmp, 3) {
            let Ok(inside) = file.path.strip_prefix(&tmp) else { continue };
            let folders: Vec<_> = inside.iter().filter_map(|it| it.to_str()).collect();
            let (project, parent) = match folders.as_slice() {
                [project, "chats", name] if name.starts_with("session-") => (*project, None),
                [project, "chats", parent, _] => (*project, Some((*parent).to_owned())),
                _ => continue,
            };
            let kind = file.path.extension().is_some_and(|it| it == "jsonl" || it == "json");
            if !kind || wanted.as_ref().is_some_and(|it| !it.iter().any(|it| it == project)) {
                continue;
            }
            // The file name contains the first eight characters of the id; a sub-agent's the whole id.
            let short = id.map(|it| it.get(..8).unwrap_or(it));
            if short.is_some_and(|it| !file.name().contains(it)) {
                continue;
            }
            let cwd = directories.get(project).cloned().or_else(|| cwd.map(Path::to_owned));
            let Some(found) = read_head(&file, parent, cwd).filter(|it| id.is_none_or(|id| id == it.id))
            else {
                continue;
            };
            // Not a stub if it has a prompt, or is so long that the prompt may come after the head.
            let real = !found.first_words.is_empty() || file.len > HEAD;
            let place = (tmp.join(project), found.id.clone());
            let rank = |it: &(bool, FoundSession)| (it.0, it.1.changed_ms, it.1.path.clone());
            let new = (real, found);
            if best.get(&place).is_none_or(|old| rank(old) < rank(&new)) {
                best.insert(place, new);
            }
        }
        best.into_values().map(|it| it.1).collect()
    }

    /// The directory of the project whose folder contains the session's file.
    fn directory_of(&self, env: &Env, path: &Path) -> Option<PathBuf> {
        let path = crate::files::canonical(path);
        let tmp = crate::files::canonical(&home(env).join("tmp"));
        let project = path.strip_prefix(tmp).ok()?.iter().next()?.to_str()?;
        directories_by_folder(env).remove(project)
    }

    /// Gemini CLI 0.61 starts another file with the same id when it resumes a `.json` session, and when a
    /// compaction clears the conversation in a later minute than the one in the file name. It continues with
    /// the most recently updated file.
    fn current_file(&self, env: &Env, id: &str, path: &Path) -> PathBuf {
        let folder = |it: &Path| it.parent().and_then(|it| fs::canonicalize(it).ok());
        let beside = |it: &FoundSession| folder(&it.path) == folder(path);
        self.search(env, None, Some(id))
            .into_iter()
            .find(beside)
            .map_or_else(|| path.to_owned(), |it| it.path)
    }

    fn write_method(&self, _operation: Operation, live: bool, _export: bool) -> Result<WriteMethod> {
        Ok(write_back::replace_when_idle(live))
    }

    fn directory_name(&self, directory: &Path) -> Option<String> {
        Some(hash(directory))
    }

    fn resume_command(&self, _env: &Env, id: &str) -> String {
        format!("gemini --resume {id}")
    }

    fn import_and_resume_command(&self, _env: &Env, file: &str, _id: &str) -> String {
        format!("gemini --session-file {file}")
    }

    fn reported(&self, row: &Value) -> Option<(u64, Option<String>)> {
        let total = row["tokens"]["total"].as_u64().filter(|it| *it > 0);
        total.map(|it| (it, row["model"].as_str().map(str::to_owned)))
    }

    fn settings_files(&self, env: &Env, _config: &Path) -> Vec<PathBuf> {
        vec![home(env).join("settings.json")]
    }

    fn own_compaction(&self, setting: &dyn Fn(&str) -> Option<Value>) -> String {
        format!("at {:.0} % of the window", own_threshold(setting) * 100.0)
    }

    fn seat_blocked_by(&self, _env: &Env, setting: &dyn Fn(&str) -> Option<Value>) -> Option<Problem> {
        let off = setting("gemini-cli:hooksConfig.enabled")? == false;
        off.then(|| {
            Problem::new(
                "Gemini CLI's hooks are switched off (hooksConfig.enabled = false): it compacts by itself",
                "remove hooksConfig.enabled from its settings.json",
            )
        })
    }

    fn known_problems(&self, env: &Env, _config: &Path) -> Vec<Problem> {
        let text = fs::read_to_string(home(env).join("settings.json")).unwrap_or_default();
        let kept = settings::get(&text, &["general", "sessionRetention", "enabled"]) == Some("false");
        if kept || !home(env).exists() {
            return Vec::new();
        }
        vec![Problem::new(
            "Gemini CLI 0.61 can delete a session that was resumed in a later minute (its session retention)",
            "\"general\": {\"sessionRetention\": {\"enabled\": false}} in ~/.gemini/settings.json",
        )]
    }
}

fn home(env: &Env) -> PathBuf {
    env.home.join(".gemini")
}

/// The share of the window at which Gemini CLI compacts by itself; without a valid setting 0.5 (0.61).
fn own_threshold(setting: &dyn Fn(&str) -> Option<Value>) -> f64 {
    let share = setting("gemini-cli:model.compressionThreshold").and_then(|it| settings::own::number(&it));
    share.filter(|it| *it > 0.0 && *it <= 1.0).unwrap_or(0.5)
}

/// The possible folder names of a directory: its slug in `projects.json`, and the older SHA-256.
fn projects(env: &Env, cwd: &Path) -> Vec<String> {
    let directories = directories_by_folder(env);
    let mut out = Vec::new();
    for it in spellings(cwd) {
        out.extend(directories.iter().filter(|(_, path)| **path == it).map(|(name, _)| name.clone()));
        out.push(hash(&it));
    }
    out.dedup();
    out
}

/// Maps folder names (slugs and hashes) to directories.
fn directories_by_folder(env: &Env) -> BTreeMap<String, PathBuf> {
    let text = crate::files::read_to_string(&home(env).join("projects.json")).unwrap_or_default();
    let map: Value = serde_json::from_str(&history::json::mend(text.as_bytes())).unwrap_or_default();
    let mut out = BTreeMap::new();
    for (path, slug) in map["projects"].as_object().into_iter().flatten() {
        let path = PathBuf::from(path);
        out.insert(hash(&path), path.clone());
        out.extend(slug.as_str().map(|it| (it.to_owned(), path)));
    }
    out
}

fn hash(path: &Path) -> String {
    sessions::derive::hex(&Sha256::digest(path.to_string_lossy().as_bytes()))
}

fn read_head(file: &SessionFile, parent: Option<String>, cwd: Option<PathBuf>) -> Option<FoundSession> {
    let head = file.head();
    let mut id = None;
    let mut words = String::new();
    let mut take = |message: &Value| {
        if words.is_empty() {
            words = prompt(message);
        }
    };
    match document::open(&head, "messages") {
        // The old format is one document. A JSONL line may also contain only messages, but then has no
        // `sessionId`.
        Some(old) if old.top.get("sessionId").is_some() => {
            let span = old.top.get("sessionId").unwrap_or_default();
            id = document::value(&head, span, "an id").ok().and_then(|it| it.as_str().map(str::to_owned));
            for span in old.records {
                document::value(&head, span, "a message").iter().for_each(&mut take);
            }
        }
        _ => {
            for line in objects(&head) {
                id = id.or_else(|| line["sessionId"].as_str().map(str::to_owned));
                line["$set"]["messages"].as_array().into_iter().flatten().for_each(&mut take);
                take(&line);
            }
        }
    }
    Some(FoundSession { parent, cwd, first_words: words, ..file.session(&GeminiCli, &id?) })
}

/// The start of what the user typed: no commands (`/`, `?`), nothing that Gemini CLI adds in angle brackets.
fn prompt(message: &Value) -> String {
    if message["type"] != "user" {
        return String::new();
    }
    let content = &message["content"];
    let parts = content.as_array().into_iter().flatten().chain(content.is_object().then_some(content));
    let mut texts = content.as_str().into_iter().chain(parts.filter_map(|it| it["text"].as_str()));
    let typed = texts.find(|it| !it.trim_start().starts_with(['/', '?', '<']));
    typed.map(first_words).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::{current, find, list};

    #[test]
    fn finds_sessions_and_passes_over_stubs() {
        let home = tempfile::tempdir().unwrap();
        let gemini = home.path().join(".gemini");
        let chats = gemini.join("tmp/my-proj/chats");
        let old = gemini.join("tmp").join(hash(Path::new("/w/My Proj"))).join("chats");
        fs::create_dir_all(chats.join("aaaaaaaa-1")).unwrap();
        fs::create_dir_all(&old).unwrap();
        fs::create_dir_all(gemini.join("tmp/other/chats")).unwrap();
        fs::write(gemini.join("projects.json"), r#"{"projects":{"/w/My Proj":"my-proj"}}"#).unwrap();
        let head = |id: &str| format!("{{\"sessionId\":\"{id}\",\"kind\":\"main\"}}\n");
        let said = |text: &str| {
            format!("{{\"id\":\"1\",\"type\":\"user\",\"content\":[{{\"text\":\"{text}\"}}]}}\n")
        };
        let set = "{\"$set\":{\"messages\":[{\"type\":\"user\",\"content\":\"<session_context>\"}]}}\n";
        let write = |path: PathBuf, text: String| fs::write(path, text).unwrap();
        write(
            chats.join("session-2026-11-20T09-15-aaaaaaaa.jsonl"),
            head("aaaaaaaa-1") + set + &said("/help") + &said("Fix it"),
        );
        // The stub is newer.
        write(chats.join("session-2026-11-20T09-17-aaaaaaaa.jsonl"), head("aaaaaaaa-1") + set);
        write(chats.join("aaaaaaaa-1/bbbbbbbb-2.jsonl"), head("bbbbbbbb-2") + &said("look it up"));
        write(
            old.join("session-2025-11-20T09-17-cccccccc.json"),
            "{\n \"sessionId\": \"cccccccc-3\",\n \"messages\": [\n  {\"type\":\"user\",\"content\":\"Old\"}, {\"type\":\"gem".into(),
        );
        write(gemini.join("tmp/other/chats/session-2026-11-20T09-15-dddddddd.jsonl"), head("dddddddd-4"));
        write(chats.join("session-x.txt"), head("x"));
        let env = Env { home: home.path().to_owned(), cwd: "/w/My Proj".into(), ..Env::default() };

        let mut found = list(&env, None, Some(Path::new("/w/My Proj")));
        found.sort_by(|a, b| a.id.cmp(&b.id));
        let all: Vec<_> = found.iter().map(|it| (&*it.id, it.parent.as_deref(), &*it.first_words)).collect();
        assert_eq!(
            all,
            [
                ("aaaaaaaa-1", None, "Fix it"),
                ("bbbbbbbb-2", Some("aaaaaaaa-1"), "look it up"),
                ("cccccccc-3", None, "Old")
            ]
        );
        assert!(found[0].path.ends_with("session-2026-11-20T09-15-aaaaaaaa.jsonl"));
        assert!(found.iter().all(|it| it.cwd.as_deref() == Some(Path::new("/w/My Proj"))));
        assert_eq!(list(&env, None, None).len(), 4);
        assert_eq!(find(&env, "aaaaaaaa-1").len(), 1);
        assert_eq!(find(&env, "dddddddd-4")[0].cwd, None);
        // Ambiguous: two sessions changed at about the same time.
        let inside = Env { inside: Some(&GeminiCli), ..env };
        assert_eq!(current(&inside).len(), 2);
    }
}
