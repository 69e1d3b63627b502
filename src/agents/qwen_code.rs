//! Qwen Code: sessions in `projects/<slug>/chats/<session>.jsonl` of its folder, sub-agents in
//! `subagents/<session>/`. A fork of Gemini CLI (versions 0.5 to 0.22). Its sessions are only read.

use std::path::{Path, PathBuf};

use serde_json::Value;
use sessions::Format;

use super::claude_code::slug;
use super::settings::own;
use super::{
    Agent, AgentInfo, Env, FoundSession, SessionFile, Variables, files, first_words, objects, spellings,
};

pub struct QwenCode;

impl Agent for QwenCode {
    fn info(&self) -> &'static AgentInfo {
        static INFO: AgentInfo = AgentInfo {
            aliases: &["qwen"],
            variables: Variables {
                inside: &["QWEN_CODE"],
                session: Some("QWEN_CODE_SESSION_ID"),
                project: Some("QWEN_PROJECT_DIR"),
            },
            ..AgentInfo::new(Format::QWEN_CODE, "Qwen Code")
        };
        &INFO
    }

    fn home(&self, env: &Env) -> PathBuf {
        env.folder("QWEN_RUNTIME_DIR").unwrap_or_else(|| env.home.join(".qwen")).join("projects")
    }

    fn search(&self, env: &Env, cwd: Option<&Path>, id: Option<&str>) -> Vec<FoundSession> {
        let projects = self.home(env);
        let wanted = cwd.map(spellings);
        let mut out = Vec::new();
        for file in files(&projects, 3) {
            let Ok(inside) = file.path.strip_prefix(&projects) else { continue };
            let folders: Vec<_> = inside.iter().filter_map(|it| it.to_str()).collect();
            let (project, parent) = match folders.as_slice() {
                [project, "chats", _] => (*project, None),
                [project, "subagents", parent, _] => (*project, Some((*parent).to_owned())),
                _ => continue,
            };
            let here = |all: &Vec<PathBuf>| all.iter().any(|it| slug(it) == project);
            if file.path.extension().is_none_or(|it| it != "jsonl")
                || wanted.as_ref().is_some_and(|it| !here(it))
                || id.is_some_and(|it| it != file.stem())
            {
                continue;
            }
            // Two directories can have the same slug; then the `cwd` recorded in the session decides.
            let found = read_head(&file, parent);
            let elsewhere = |it: &FoundSession| {
                wanted.as_ref().is_some_and(|all| it.cwd.as_ref().is_some_and(|cwd| !all.contains(cwd)))
            };
            out.extend(found.filter(|it| !elsewhere(it)));
        }
        out
    }

    fn resume_command(&self, _env: &Env, id: &str) -> String {
        format!("qwen --resume {id}")
    }

    fn settings_files(&self, env: &Env, _config: &Path) -> Vec<PathBuf> {
        vec![env.home.join(".qwen/settings.json")]
    }

    fn own_compaction(&self, setting: &dyn Fn(&str) -> Option<Value>) -> String {
        let share = setting("qwen-code:model.chatCompression.contextPercentageThreshold")
            .and_then(|it| own::number(&it));
        share.map_or("when the window is nearly full".to_owned(), |it| {
            format!("at {:.0} % of the window", it * 100.0)
        })
    }
}

fn read_head(file: &SessionFile, parent: Option<String>) -> Option<FoundSession> {
    let head = file.head();
    let is_record =
        |it: &Value| it["uuid"].is_string() && it["sessionId"].is_string() && it["type"].is_string();
    let (mut first, mut words) = (None, String::new());
    for record in objects(&head).filter(is_record) {
        if words.is_empty() && record["type"] == "user" && record["subtype"].is_null() {
            let parts = record["message"]["parts"].as_array().into_iter().flatten();
            let mut texts = parts.filter_map(|it| it["text"].as_str());
            words = texts
                .find(|it| !it.trim_start().starts_with(['<', '/']))
                .map(first_words)
                .unwrap_or_default();
        }
        first = first.or(Some(record));
    }
    let first = first?;
    Some(FoundSession {
        parent,
        cwd: first["cwd"].as_str().map(PathBuf::from),
        first_words: words,
        ..file.session(&QwenCode, file.stem())
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::agents::{current, find, list, named};

    #[test]
    fn finds_sessions_and_sub_agents() {
        let home = tempfile::tempdir().unwrap();
        let row = |cwd: &str, text: &str| {
            format!(
                "{{\"uuid\":\"a\",\"parentUuid\":null,\"sessionId\":\"s1\",\"type\":\"user\",\"cwd\":\"{cwd}\",\
                 \"message\":{{\"role\":\"user\",\"parts\":[{{\"text\":\"{text}\"}}]}}}}\n"
            )
        };
        let project = home.path().join(".qwen/projects/-w-my-proj");
        fs::create_dir_all(project.join("chats")).unwrap();
        fs::create_dir_all(project.join("subagents/s1")).unwrap();
        fs::write(project.join("chats/s1.jsonl"), row("/w/my_proj", "Fix  the\\nbug")).unwrap();
        fs::write(project.join("chats/s2.jsonl"), row("/w/my.proj", "a directory of the same name")).unwrap();
        fs::write(project.join("chats/junk.jsonl"), "junk\n{}\n").unwrap();
        fs::write(project.join("chats/s1.json"), row("/w/my_proj", "no session")).unwrap();
        fs::write(project.join("subagents/s1/agent-x.jsonl"), row("/w/my_proj", "look it up")).unwrap();
        let env = Env { home: home.path().to_owned(), cwd: "/w/my_proj".into(), ..Env::default() };
        let found = list(&env, named("qwen"), Some(Path::new("/w/my_proj")));
        let all: Vec<_> = found.iter().map(|it| (&*it.id, it.parent.as_deref(), &*it.first_words)).collect();
        assert_eq!(all, [("s1", None, "Fix the bug"), ("agent-x", Some("s1"), "look it up")]);
        assert_eq!(list(&env, None, None).len(), 3);
        assert_eq!(find(&env, "s2")[0].cwd.as_deref(), Some(Path::new("/w/my.proj")));
        let inside = Env { inside: Some(&QwenCode), session: Some("s1".into()), ..env };
        assert!(current(&inside)[0].live);
    }
}
