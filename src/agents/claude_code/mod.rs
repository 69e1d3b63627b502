//! Claude Code: sessions in `projects/<slug>/<session>.jsonl` of its configuration folder, sub-agents in
//! `<session>/subagents/`, formerly beside the session as `agent-*.jsonl` (Claude Code 2.1).

use std::path::{Path, PathBuf};

use serde_json::Value;

use history::error::{Error, ErrorKind, Hint, Result};
use sessions::{Format, MemorySource, Mode, Session};

use super::hooks::{AfterCompaction, AgentHooks, HookMoment};
use super::settings::own;
use super::write_back::{self, Operation, Placement, WriteMethod};
use super::{
    Agent, AgentInfo, Env, FoundSession, Problem, SessionFile, Variables, files, first_words, objects,
    spellings,
};

mod install;
mod seat;

pub struct ClaudeCode;

impl Agent for ClaudeCode {
    fn info(&self) -> &'static AgentInfo {
        static INFO: AgentInfo = AgentInfo {
            aliases: &["claude"],
            variables: Variables {
                inside: &["CLAUDE_CODE_SESSION_ID", "CLAUDECODE"],
                session: Some("CLAUDE_CODE_SESSION_ID"),
                project: Some("CLAUDE_PROJECT_DIR"),
            },
            records_follow_shell: true,
            directory_fields: &["cwd", "workingDirectory"],
            hooks: AgentHooks {
                reply_reaches_model_at: &[
                    HookMoment::StartCompacted,
                    HookMoment::BeforeCompaction,
                    HookMoment::Turn,
                ],
                takes_text: true,
                after: AfterCompaction::Facts,
                missing_at_turn: true,
                ..AgentHooks::NONE
            },
            registration: Some(&install::REGISTRATION),
            seat: Some(&seat::SEAT),
            ..AgentInfo::new(Format::CLAUDE_CODE, "Claude Code")
        };
        &INFO
    }

    fn home(&self, env: &Env) -> PathBuf {
        projects(env)
    }

    fn search(&self, env: &Env, cwd: Option<&Path>, id: Option<&str>) -> Vec<FoundSession> {
        let projects = projects(env);
        let wanted = cwd.map(spellings);
        let mut out = Vec::new();
        for file in files(&projects, 4) {
            let Ok(inside) = file.path.strip_prefix(&projects) else { continue };
            let mut folders = inside.iter().filter_map(|it| it.to_str());
            let project = folders.next().unwrap_or_default();
            let here = |all: &Vec<PathBuf>| all.iter().any(|it| is_slug(project, it));
            if file.path.extension().is_none_or(|it| it != "jsonl")
                || wanted.as_ref().is_some_and(|it| !here(it))
            {
                continue;
            }
            // In `<session>/subagents/…/agent-x.jsonl` the first folder is the parent's id.
            let parent = match inside.iter().count() {
                2 => None,
                _ => match (folders.next(), folders.next()) {
                    (Some(parent), Some("subagents")) => Some(parent.to_owned()),
                    _ => continue,
                },
            };
            if id.is_none_or(|it| it == file.stem()) {
                out.extend(read_head(&file, parent, wanted.as_deref()));
            }
        }
        out
    }

    /// The directory that the session was started in: the first `cwd` in its file. Later rows have the
    /// shell's current directory.
    fn directory_of(&self, _env: &Env, path: &Path) -> Option<PathBuf> {
        let file = SessionFile { path: path.to_owned(), changed_ms: 0, len: 0 };
        objects(&file.head()).find_map(|it| it["cwd"].as_str().map(PathBuf::from))
    }

    fn untested_version(&self, head: &str) -> Option<String> {
        objects(head).find_map(|it| write_back::if_major_above(it["version"].as_str()?, 2))
    }

    fn write_method(&self, operation: Operation, _live: bool, _export: bool) -> Result<WriteMethod> {
        Ok(match operation {
            Operation::Prune => write_back::on_resume(Mode::Patch, Placement::InPlace),
            Operation::Compact | Operation::Restore => write_back::on_resume(Mode::New, Placement::NewFile),
        })
    }

    fn new_session_path(&self, env: &Env, cwd: &Path, file_name: &str) -> Result<Option<PathBuf>> {
        let slug = slug(cwd);
        if !is_slug(&slug, cwd) {
            let what =
                "Claude Code's folder name for so long a path is unknown; start Claude Code there once";
            let refused = Error::new(ErrorKind::Refused, what).or_hint(Hint::WriteCopy);
            return Err(refused.at_path(cwd));
        }
        Ok(Some(projects(env).join(slug).join(file_name)))
    }

    fn session_file_name(&self, session: &Session, name: &str) -> String {
        session.history.meta.session.as_deref().map_or(name.to_owned(), |it| format!("{it}.jsonl"))
    }

    /// Sub-agents' sessions and large tool outputs, in a folder named after the session.
    fn companion_files(&self, path: &Path) -> Vec<PathBuf> {
        files(&path.with_extension(""), 3).into_iter().map(|it| it.path).collect()
    }

    fn resume_command(&self, env: &Env, id: &str) -> String {
        format!("{}claude --resume {id}", env.assigned(FOLDER))
    }

    /// The transcript up to its last compaction boundary.
    fn before_summary(&self, before: &[u8], _handle: &str) -> Result<Option<(MemorySource, Session)>> {
        let Some(mark) = memchr::memmem::rfind(before, b"\"compact_boundary\"") else { return Ok(None) };
        let start = memchr::memrchr(b'\n', &before[..mark]).map_or(0, |it| it + 1);
        let before = MemorySource::new("the transcript before the compaction", &before[..start]);
        let session = sessions::read(&before, Some(self.format()))?;
        Ok(Some((before, session)))
    }

    fn reported(&self, row: &Value) -> Option<(u64, Option<String>)> {
        let usage = &row["message"]["usage"];
        let parts =
            ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens"];
        let sum = parts.iter().map(|it| usage[it].as_u64().unwrap_or(0)).sum::<u64>();
        let own = row["isSidechain"] != true;
        (sum > 0 && own).then(|| (sum, row["message"]["model"].as_str().map(str::to_owned)))
    }

    fn settings_files(&self, env: &Env, _config: &Path) -> Vec<PathBuf> {
        vec![folder(env).join("settings.json"), env.home.join(".claude.json")]
    }

    fn own_compaction(&self, setting: &dyn Fn(&str) -> Option<Value>) -> String {
        let is_off = ["env:DISABLE_AUTO_COMPACT", "env:DISABLE_COMPACT"]
            .into_iter()
            .any(|it| setting(it).is_some_and(|it| own::is_on(&it)))
            || setting("claude-code:autoCompactEnabled").is_some_and(|it| it == false);
        if is_off {
            return "off".to_owned();
        }
        let number = |name: &str| own::number(&setting(name)?);
        let window =
            number("env:CLAUDE_CODE_AUTO_COMPACT_WINDOW").or_else(|| number("claude-code:autoCompactWindow"));
        window.map_or("when the window is nearly full".to_owned(), |it| format!("near {it} tokens"))
    }

    fn seat_blocked_by(&self, env: &Env, _setting: &dyn Fn(&str) -> Option<Value>) -> Option<Problem> {
        let [major, minor, patch] = newest_version(env).filter(|it| *it < HOOKS_SINCE)?;
        Some(Problem::new(
            format!(
                "Claude Code {major}.{minor}.{patch} does not let others compact: the hooks are used instead"
            ),
            "claude update",
        ))
    }
}

/// Environment variable: Claude Code's configuration folder.
const FOLDER: &str = "CLAUDE_CONFIG_DIR";
/// The first version with function hooks.
const HOOKS_SINCE: [u32; 3] = [2, 1, 274];
/// How much of a session's end is searched for its version, in bytes: sessions may be large.
const END: u64 = 256 << 10;

fn folder(env: &Env) -> PathBuf {
    env.folder(FOLDER).unwrap_or_else(|| env.home.join(".claude"))
}

fn projects(env: &Env) -> PathBuf {
    folder(env).join("projects")
}

/// The version that wrote the most recently changed session.
fn newest_version(env: &Env) -> Option<[u32; 3]> {
    let newest = super::list(env, Some(&ClaudeCode), None).into_iter().next()?;
    let bytes = crate::files::tail(&newest.path, END).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let rest = text.rsplit_once("\"version\":\"")?.1;
    let mut numbers = rest.split('"').next()?.split('.').map(|it| it.parse().ok());
    Some([numbers.next()??, numbers.next()??, numbers.next()??])
}

/// The name of a directory's folder in `projects`: each UTF-16 unit that is not an ASCII letter or digit
/// becomes `-`. Claude Code truncates names over 200 characters and appends a hash that we cannot compute:
/// see [`is_slug`].
pub(super) fn slug(cwd: &Path) -> String {
    let dashed = |it: u16| u8::try_from(it).ok().filter(u8::is_ascii_alphanumeric).map_or('-', char::from);
    cwd.to_string_lossy().encode_utf16().map(dashed).collect()
}

const LONGEST: usize = 200;

/// Whether `folder` is the slug of `cwd`; a truncated slug matches with any hash.
fn is_slug(folder: &str, cwd: &Path) -> bool {
    let slug = slug(cwd);
    match slug.get(..LONGEST).filter(|_| slug.len() > LONGEST) {
        Some(start) => folder.strip_prefix(start).is_some_and(|it| it.starts_with('-')),
        None => folder == slug,
    }
}

fn read_head(file: &SessionFile, parent: Option<String>, wanted: Option<&[PathBuf]>) -> Option<FoundSession> {
    let (mut cwd, mut words, mut owner, mut known) = (None, String::new(), None, false);
    for line in objects(&file.head()) {
        known |= line["type"].is_string();
        cwd = cwd.or_else(|| line["cwd"].as_str().map(PathBuf::from));
        owner = owner.or_else(|| line["sessionId"].as_str().map(str::to_owned));
        if words.is_empty() && line["type"] == "user" {
            words = prompt(&line);
        }
    }
    // Two directories can have the same slug; then the `cwd` recorded in the session decides.
    let elsewhere = |all: &[PathBuf]| {
        cwd.as_ref().is_some_and(|it| !all.contains(it) && all.iter().any(|one| slug(one) == slug(it)))
    };
    if !known || wanted.is_some_and(elsewhere) {
        return None;
    }
    let is_agent = file.name().starts_with("agent-");
    Some(FoundSession {
        parent: parent.or(owner.filter(|_| is_agent)),
        cwd,
        first_words: words,
        ..file.session(&ClaudeCode, file.stem())
    })
}

/// The start of what the user typed; empty for rows that the client adds (commands, reminders, summaries).
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
    use crate::agents::{current, find, list, named};

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
        assert_eq!(list(&env, named("codex"), None).len(), 0);
        assert_eq!(find(&env, "s2")[0].cwd, Some(other));
        // The caller, by id and by directory.
        let inside = Env { inside: Some(&ClaudeCode), ..env };
        assert_eq!(current(&inside).iter().map(|it| &*it.id).collect::<Vec<_>>(), ["s1"]);
        let told = Env { session: Some("s2".into()), ..inside };
        let found = current(&told);
        assert_eq!((found.len(), &*found[0].id, found[0].live), (1, "s2", true));
        let none = home.path().join("none").display().to_string();
        let elsewhere = Env { variables: [(FOLDER.to_owned(), none)].into(), ..told };
        assert_eq!(current(&elsewhere), []);
    }
}
