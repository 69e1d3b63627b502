//! Claude Code: `projects/<slug>/<session>.jsonl` in its configuration folder; sub-agents in
//! `<session>/subagents/`, formerly beside it as `agent-*.jsonl` (Claude Code 2.1).

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Agent, Env, File, Found, files, first_words, objects, spellings};

/// Its folder of projects.
pub fn projects(env: &Env) -> PathBuf {
    env.claude_config.clone().unwrap_or_else(|| env.home.join(".claude")).join("projects")
}

/// The name of a directory's folder: every UTF-16 unit that is not an ASCII letter or digit becomes `-`. Of a name
/// that is longer than 200, Claude Code keeps 200 and adds a hash that only it computes: what [`is_slug`] allows for.
pub fn slug(cwd: &Path) -> String {
    let dashed = |it: u16| u8::try_from(it).ok().filter(u8::is_ascii_alphanumeric).map_or('-', char::from);
    cwd.to_string_lossy().encode_utf16().map(dashed).collect()
}

const LONGEST: usize = 200;

/// Whether `folder` is the name of a directory's folder.
pub fn is_slug(folder: &str, cwd: &Path) -> bool {
    let slug = slug(cwd);
    match slug.get(..LONGEST).filter(|_| slug.len() > LONGEST) {
        Some(start) => folder.strip_prefix(start).is_some_and(|it| it.starts_with('-')),
        None => folder == slug,
    }
}

pub(super) fn search(env: &Env, cwd: Option<&Path>, id: Option<&str>) -> Vec<Found> {
    let projects = projects(env);
    let wanted = cwd.map(spellings);
    let mut out = Vec::new();
    for file in files(&projects, 4) {
        let Ok(inside) = file.path.strip_prefix(&projects) else { continue };
        let mut folders = inside.iter().filter_map(|it| it.to_str());
        let project = folders.next().unwrap_or_default();
        let here = |all: &Vec<PathBuf>| all.iter().any(|it| is_slug(project, it));
        if file.path.extension().is_none_or(|it| it != "jsonl") || wanted.as_ref().is_some_and(|it| !here(it))
        {
            continue;
        }
        // `<session>/subagents/…/agent-x.jsonl`: the folder names the parent.
        let parent = match inside.iter().count() {
            2 => None,
            _ => match (folders.next(), folders.next()) {
                (Some(parent), Some("subagents")) => Some(parent.to_owned()),
                _ => continue,
            },
        };
        if id.is_none_or(|it| it == file.stem()) {
            out.extend(look(&file, parent, wanted.as_deref()));
        }
    }
    out
}

/// The directory that a session was started in: the first that its file names. A shell that went elsewhere since names
/// another, in rows that come later.
pub(super) fn directory_of(path: &Path) -> Option<PathBuf> {
    let file = File { path: path.to_owned(), changed_ms: 0, len: 0 };
    objects(&file.head()).find_map(|it| it["cwd"].as_str().map(PathBuf::from))
}

fn look(file: &File, parent: Option<String>, wanted: Option<&[PathBuf]>) -> Option<Found> {
    let (mut cwd, mut words, mut owner, mut known) = (None, String::new(), None, false);
    for line in objects(&file.head()) {
        known |= line["type"].is_string();
        cwd = cwd.or_else(|| line["cwd"].as_str().map(PathBuf::from));
        owner = owner.or_else(|| line["sessionId"].as_str().map(str::to_owned));
        if words.is_empty() && line["type"] == "user" {
            words = prompt(&line);
        }
    }
    // Two directories can share a slug; the session knows its own.
    let elsewhere = |all: &[PathBuf]| {
        cwd.as_ref().is_some_and(|it| !all.contains(it) && all.iter().any(|one| slug(one) == slug(it)))
    };
    if !known || wanted.is_some_and(elsewhere) {
        return None;
    }
    let is_agent = file.name().starts_with("agent-");
    Some(Found {
        agent: Agent::ClaudeCode,
        id: file.stem().to_owned(),
        path: file.path.clone(),
        parent: parent.or(owner.filter(|_| is_agent)),
        cwd,
        changed_ms: file.changed_ms,
        first_words: words,
        live: false,
    })
}

/// What the user typed. Lines of the client (commands, reminders, a summary) are not it.
fn prompt(line: &Value) -> String {
    if line["isMeta"] == true || line["isCompactSummary"] == true {
        return String::new();
    }
    let content = &line["message"]["content"];
    let blocks = content.as_array().into_iter().flatten().filter(|it| it["type"] == "text");
    let mut texts = content.as_str().into_iter().chain(blocks.filter_map(|it| it["text"].as_str()));
    texts.find(|it| !it.trim_start().starts_with('<')).map(first_words).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::agents::{current, find, list};

    #[test]
    fn slugs() {
        assert_eq!(slug(Path::new("/home/u/My.Proj_x/sub dir")), "-home-u-My-Proj-x-sub-dir");
        assert_eq!(slug(Path::new("/é😀")), "----");
        let long = PathBuf::from(format!("/{}", "a".repeat(300)));
        let start = format!("-{}", "a".repeat(199));
        assert!(is_slug(&format!("{start}-x1y2"), &long) && !is_slug(&start, &long));
        assert!(!is_slug(&format!("-{}", "a".repeat(300)), &long));
        let just = PathBuf::from(format!("/{}", "a".repeat(199)));
        assert!(is_slug(&start, &just) && !is_slug(&format!("{start}-x1y2"), &just));
    }

    #[test]
    fn finds_sessions_and_sub_agents() {
        let home = tempfile::tempdir().unwrap();
        let cwd = home.path().join("a-b");
        let other = home.path().join("a/b");
        let line = |cwd: &Path, text: &str| {
            format!(
                "{{\"type\":\"user\",\"cwd\":{cwd:?},\"sessionId\":\"s1\",\"message\":{{\"content\":\"{text}\"}}}}\n"
            )
        };
        let folder = home.path().join(".claude/projects").join(slug(&cwd));
        fs::create_dir_all(folder.join("s1/subagents/deep")).unwrap();
        fs::create_dir_all(folder.join("s1/tool-results")).unwrap();
        let write = |name: &str, text: String| fs::write(folder.join(name), text).unwrap();
        write(
            "s1.jsonl",
            format!(
                "{{\"type\":\"mode\"}}\n{}{}",
                line(&cwd, "<command-name>/x"),
                line(&cwd, "Fix  the\\nbug")
            ),
        );
        write("s2.jsonl", line(&other, "another directory of the same slug"));
        write("s1/subagents/agent-1.jsonl", line(&cwd, "look it up"));
        write("s1/subagents/deep/agent-2.jsonl", line(&cwd, "deeper"));
        write("s1/tool-results/x.jsonl", line(&cwd, "no session"));
        write("agent-3.jsonl", line(&cwd, "the old place"));
        write("junk.jsonl", "junk\n".into());
        write("s1.txt", line(&cwd, "no session"));
        let env = Env { home: home.path().to_owned(), cwd: cwd.clone(), ..Env::default() };
        let mut found = list(&env, None, Some(&cwd));
        assert_eq!(found[0].id, "s1");
        found.sort_by(|a, b| a.id.cmp(&b.id));
        let all: Vec<_> = found.iter().map(|it| (&*it.id, it.parent.as_deref(), &*it.first_words)).collect();
        assert_eq!(
            all,
            [
                ("agent-1", Some("s1"), "look it up"),
                ("agent-2", Some("s1"), "deeper"),
                ("agent-3", Some("s1"), "the old place"),
                ("s1", None, "Fix the bug"),
            ]
        );
        assert_eq!(list(&env, None, None).len(), 5);
        assert_eq!(list(&env, Some(Agent::Codex), None).len(), 0);
        assert_eq!(find(&env, "s2")[0].cwd, Some(other));
        // The caller, by id and by directory.
        let inside = Env { inside: Some(Agent::ClaudeCode), ..env };
        assert_eq!(current(&inside).iter().map(|it| &*it.id).collect::<Vec<_>>(), ["s1"]);
        let told = Env { session: Some("s2".into()), ..inside };
        let found = current(&told);
        assert_eq!((found.len(), &*found[0].id, found[0].live), (1, "s2", true));
        let elsewhere = Env { claude_config: Some(home.path().join("none")), ..told };
        assert_eq!(current(&elsewhere), []);
    }
}
