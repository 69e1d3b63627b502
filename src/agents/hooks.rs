//! The agents' hooks: what they say on standard input, and the shape in which each takes an answer.
//!
//! Facts, all seen on the real programs (Claude Code 2.1.328, Codex 0.169, Gemini CLI 0.61, OpenCode 1.18): Claude Code
//! and OpenCode take a PreCompact answer as plain text into the prompt of their compaction; `additionalContext` reaches
//! the model from SessionStart, UserPromptSubmit and PostToolUse in Claude Code and Codex, and from BeforeAgent in
//! Gemini CLI, whose SessionStart must print nothing, or the user's message is lost at the next resume.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::Agent;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// A session begins or goes on.
    Start,
    /// It goes on right after a compaction.
    StartCompacted,
    /// The agent is about to compact.
    BeforeCompaction,
    /// Gemini CLI asks itself, every turn, whether to compress.
    BeforeCheck,
    /// The agent has compacted.
    AfterCompaction,
    /// The user has said something, or a tool has answered: once or more a turn.
    Turn,
    Other,
}

/// What a hook was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub agent: Agent,
    pub moment: Moment,
    /// Its name, as the answer repeats it.
    pub name: String,
    pub session: String,
    /// Its file, where there is one.
    pub path: Option<PathBuf>,
    pub cwd: Option<PathBuf>,
    /// What the agent's model wrote, after a compaction.
    pub summary: Option<String>,
}

/// Reads what an agent's hook says. `inside`: the agent that the environment tells of.
pub fn read(text: &str, inside: Option<Agent>) -> Option<Event> {
    let said: Value = serde_json::from_str(text).ok()?;
    let field = |key: &str| said[key].as_str().map(str::to_owned).filter(|it| !it.is_empty());
    let name = field("hook_event_name")?;
    let path = field("transcript_path").map(PathBuf::from);
    let file = path.as_deref().and_then(Path::file_name).and_then(|it| it.to_str()).unwrap_or_default();
    let agent = match (field("client").as_deref().and_then(Agent::named), name.as_str()) {
        (Some(agent), _) => agent,
        (
            None,
            "PreCompress" | "BeforeAgent" | "AfterAgent" | "BeforeModel" | "AfterModel" | "BeforeTool"
            | "AfterTool",
        ) => Agent::GeminiCli,
        (None, _) if file.starts_with("rollout-") => Agent::Codex,
        (None, _) if file.starts_with("session-") => Agent::GeminiCli,
        (None, _) => inside.unwrap_or(Agent::ClaudeCode),
    };
    let moment = match (name.as_str(), said["source"].as_str()) {
        ("SessionStart", Some("compact")) => Moment::StartCompacted,
        ("SessionStart", _) => Moment::Start,
        ("PreCompact", _) => Moment::BeforeCompaction,
        ("PreCompress", _) => Moment::BeforeCheck,
        ("PostCompact", _) => Moment::AfterCompaction,
        ("UserPromptSubmit" | "PostToolUse" | "BeforeAgent", _) => Moment::Turn,
        _ => Moment::Other,
    };
    let summary = field("compact_summary").map(|it| {
        // The model thinks first, in a part that the agent drops.
        let inner = it.split_once("<summary>").map_or(it.as_str(), |(_, rest)| rest);
        inner.split_once("</summary>").map_or(inner, |(inner, _)| inner).trim().to_owned()
    });
    Some(Event {
        agent,
        moment,
        name,
        session: field("session_id")?,
        path,
        cwd: field("cwd").map(PathBuf::from),
        summary,
    })
}

impl Event {
    /// Whether the user has just said something.
    pub fn is_prompt(&self) -> bool {
        matches!(self.name.as_str(), "UserPromptSubmit" | "BeforeAgent")
    }

    /// What to print so that `text` reaches the model, or nothing where it cannot.
    pub fn answer(&self, text: &str) -> String {
        let plain = self.moment == Moment::BeforeCompaction
            && matches!(self.agent, Agent::ClaudeCode | Agent::OpenCode);
        let deaf = match self.agent {
            Agent::GeminiCli => self.moment != Moment::Turn,
            Agent::Codex => matches!(self.moment, Moment::BeforeCompaction | Moment::AfterCompaction),
            Agent::ClaudeCode => self.moment == Moment::AfterCompaction,
            Agent::OpenCode => self.moment != Moment::BeforeCompaction,
        };
        match (text.is_empty() || deaf, plain) {
            (true, _) => String::new(),
            (false, true) => format!("{text}\n"),
            (false, false) => {
                let said = json!({"hookEventName": self.name, "additionalContext": text});
                format!("{}\n", json!({"hookSpecificOutput": said}))
            }
        }
    }
}

/// How much of a session's end is looked at for the context that was last reported.
const TAIL: u64 = 262_144;

/// The context that the provider last reported, and the model, from the end of a session's file: cheap enough for every
/// turn. Nothing if the end does not say it.
pub fn reported(agent: Agent, path: &Path) -> Option<(u64, Option<String>)> {
    let mut file = crate::files::open(path).ok()?;
    let len = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(TAIL))).ok()?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes).ok()?;
    let text = history::json::mend(&bytes);
    for line in text.lines().rev().filter(|it| it.contains("oken")) {
        let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
        let found = match agent {
            Agent::ClaudeCode => {
                let usage = &line["message"]["usage"];
                let part = |key: &str| usage[key].as_u64().unwrap_or(0);
                let parts = [
                    "input_tokens",
                    "cache_read_input_tokens",
                    "cache_creation_input_tokens",
                    "output_tokens",
                ];
                let sum = parts.iter().map(|it| part(it)).sum::<u64>();
                let own = line["isSidechain"] != true;
                (sum > 0 && own).then(|| (sum, line["message"]["model"].as_str().map(str::to_owned)))
            }
            Agent::Codex => {
                let total = &line["payload"]["info"]["last_token_usage"]["total_tokens"];
                total.as_u64().filter(|it| *it > 0).map(|it| (it, None))
            }
            Agent::GeminiCli => {
                let total = line["tokens"]["total"].as_u64().filter(|it| *it > 0);
                total.map(|it| (it, line["model"].as_str().map(str::to_owned)))
            }
            Agent::OpenCode => None,
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

/// The window that a session's own records name, from its end (Codex).
pub fn window(path: &Path) -> Option<u64> {
    let mut file = crate::files::open(path).ok()?;
    let len = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(TAIL))).ok()?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes).ok()?;
    let text = history::json::mend(&bytes);
    let found = text.lines().rev().filter(|it| it.contains("model_context_window"));
    found.filter_map(|it| serde_json::from_str::<Value>(it).ok()).find_map(|it| {
        it["payload"]["info"]["model_context_window"]
            .as_u64()
            .or_else(|| it["payload"]["model_context_window"].as_u64())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_and_how_it_is_answered() {
        let event = |text: &str| read(text, None).unwrap();
        let claude = event(
            r#"{"session_id":"s","transcript_path":"/p/s.jsonl","hook_event_name":"PreCompact","trigger":"auto"}"#,
        );
        assert_eq!((claude.agent, claude.moment), (Agent::ClaudeCode, Moment::BeforeCompaction));
        assert_eq!(claude.answer("keep"), "keep\n");
        let codex = event(
            r#"{"session_id":"s","transcript_path":"/p/rollout-x-s.jsonl","hook_event_name":"SessionStart","source":"compact"}"#,
        );
        assert_eq!((codex.agent, codex.moment), (Agent::Codex, Moment::StartCompacted));
        assert_eq!(
            codex.answer("keep"),
            "{\"hookSpecificOutput\":{\"hookEventName\":\"SessionStart\",\"additionalContext\":\"keep\"}}\n"
        );
        let gemini = event(
            r#"{"session_id":"s","transcript_path":"/p/session-x.jsonl","hook_event_name":"SessionStart","source":"startup"}"#,
        );
        assert_eq!((gemini.agent, gemini.answer("keep")), (Agent::GeminiCli, String::new()));
        let opencode = event(r#"{"client":"opencode","session_id":"ses_1","hook_event_name":"PreCompact"}"#);
        assert_eq!((opencode.agent, opencode.answer("keep")), (Agent::OpenCode, "keep\n".to_owned()));
        let after = event(
            r#"{"session_id":"s","hook_event_name":"PostCompact","compact_summary":"<analysis>x</analysis><summary>\nS\n</summary>"}"#,
        );
        assert_eq!((after.summary.as_deref(), after.answer("x")), (Some("S"), String::new()));
        for broken in ["", "[]", "{}", "{\"hook_event_name\":3}", "null", "{\"hook_event_name\":\"Stop\"}"] {
            assert_eq!(read(broken, None), None, "{broken}");
        }
    }

    #[test]
    fn finds_what_was_reported_last() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let write = |text: &str| std::fs::write(&path, text).unwrap();
        write(
            "cut\",\"x\":1}\n{\"message\":{\"model\":\"m\",\"usage\":{\"input_tokens\":5,\"cache_read_input_tokens\":90,\"output_tokens\":5}}}\n{\"type\":\"user\",\"text\":\"tokens\"}\n",
        );
        assert_eq!(reported(Agent::ClaudeCode, &path), Some((100, Some("m".into()))));
        write(
            "{\"type\":\"event_msg\",\"payload\":{\"type\":\"token_count\",\"info\":{\"last_token_usage\":{\"total_tokens\":7},\"model_context_window\":1000}}}\n",
        );
        assert_eq!((reported(Agent::Codex, &path), window(&path)), (Some((7, None)), Some(1000)));
        write("{\"type\":\"gemini\",\"model\":\"g\",\"tokens\":{\"total\":9}}\n");
        assert_eq!(reported(Agent::GeminiCli, &path), Some((9, Some("g".into()))));
        assert_eq!(reported(Agent::GeminiCli, folder.path()), None);
    }
}
