//! The agents' hooks: the events they send on standard input, and the form in which each agent takes a reply; also
//! what they send for a status line and for a compaction in their [`seat`].
//!
//! Observed in Claude Code 2.1.328, Codex 0.169, Gemini CLI 0.61 and OpenCode 1.18: Claude Code and OpenCode
//! insert a PreCompact reply, as plain text, into their compaction prompt. `additionalContext` reaches the
//! model from SessionStart, UserPromptSubmit and PostToolUse in Claude Code and Codex, and from BeforeAgent
//! in Gemini CLI. Gemini CLI's SessionStart hook must print nothing, or the user's message is lost at the
//! next resume.

pub mod seat;
pub mod statusline;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sessions::derive;

use super::{ALL, ASSUMED, AgentRef, named};
use crate::files;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookMoment {
    /// A session starts or is resumed.
    Start,
    /// A session continues right after a compaction.
    StartCompacted,
    /// The agent is about to compact.
    BeforeCompaction,
    /// Gemini CLI checks, every turn, whether to compress.
    BeforeCheck,
    /// The agent has compacted.
    AfterCompaction,
    /// After a prompt or a tool result: once or more per turn.
    Turn,
    End,
    Other,
}

/// What an agent's hooks report, and when our replies reach its model.
#[derive(Debug)]
pub struct AgentHooks {
    /// Event names that identify this agent.
    pub own_events: &'static [&'static str],
    /// Prefix of its session files' names, if that identifies this agent.
    pub file_prefix: Option<&'static str>,
    /// The moments at which a reply reaches its model.
    pub reply_reaches_model_at: &'static [HookMoment],
    /// Whether it takes the reply before a compaction as plain text; otherwise as JSON.
    pub takes_text: bool,
    /// Whether the reply before a compaction must list the summary's sections; other agents take instructions
    /// from a file.
    pub wants_sections: bool,
    pub after: AfterCompaction,
    /// Whether the session already contains the agent's summary when the event after a compaction arrives.
    pub summary_in_session: bool,
    /// Whether the facts that its summary left out are added at the next turn.
    pub missing_at_turn: bool,
}

/// What is added to the context when a session continues after a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterCompaction {
    Nothing,
    /// The most important facts of the original, since the summary is not available yet.
    Facts,
    /// The facts that the summary left out.
    Missing,
}

impl AgentHooks {
    /// For an agent without hooks.
    pub const NONE: Self = Self {
        own_events: &[],
        file_prefix: None,
        reply_reaches_model_at: &[],
        takes_text: false,
        wants_sections: false,
        after: AfterCompaction::Nothing,
        summary_in_session: false,
        missing_at_turn: false,
    };
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookEvent {
    pub agent: AgentRef,
    pub moment: HookMoment,
    /// The agent's name for the event, which the reply repeats.
    pub name: String,
    pub session: String,
    /// The session's file, if there is one.
    pub path: Option<PathBuf>,
    pub cwd: Option<PathBuf>,
    /// The agent's own summary, after a compaction.
    pub summary: Option<String>,
}

/// Parses a hook's input. `inside`: the agent that the environment names.
pub fn read(text: &str, inside: Option<AgentRef>) -> Option<HookEvent> {
    let said: Value = serde_json::from_str(text).ok()?;
    let field = |key: &str| said[key].as_str().map(str::to_owned).filter(|it| !it.is_empty());
    let name = field("hook_event_name")?;
    let path = field("transcript_path").map(PathBuf::from);
    let file = path.as_deref().and_then(Path::file_name).and_then(|it| it.to_str()).unwrap_or_default();
    let of = |which: &dyn Fn(&AgentHooks) -> bool| ALL.into_iter().find(|it| which(&it.info().hooks));
    let agent = field("client")
        .as_deref()
        .and_then(named)
        .or_else(|| of(&|it| it.own_events.contains(&name.as_str())))
        .or_else(|| of(&|it| it.file_prefix.is_some_and(|it| file.starts_with(it))))
        .or(inside)
        .unwrap_or(ASSUMED);
    let moment = match (name.as_str(), said["source"].as_str()) {
        ("SessionStart", Some("compact")) => HookMoment::StartCompacted,
        ("SessionStart", _) => HookMoment::Start,
        ("PreCompact", _) => HookMoment::BeforeCompaction,
        ("PreCompress", _) => HookMoment::BeforeCheck,
        ("PostCompact", _) => HookMoment::AfterCompaction,
        ("UserPromptSubmit" | "PostToolUse" | "BeforeAgent", _) => HookMoment::Turn,
        ("SessionEnd", _) => HookMoment::End,
        _ => HookMoment::Other,
    };
    let summary = field("compact_summary").map(|it| {
        // The model's text before `<summary>` is thinking, which the agent drops.
        let inner = it.split_once("<summary>").map_or(it.as_str(), |(_, rest)| rest);
        inner.split_once("</summary>").map_or(inner, |(inner, _)| inner).trim().to_owned()
    });
    Some(HookEvent {
        agent,
        moment,
        name,
        session: field("session_id")?,
        path,
        cwd: field("cwd").map(PathBuf::from),
        summary,
    })
}

impl HookEvent {
    /// Whether the user has just sent a prompt.
    pub fn is_prompt(&self) -> bool {
        matches!(self.name.as_str(), "UserPromptSubmit" | "BeforeAgent")
    }

    /// What to print so that `text` reaches the model; empty if it cannot at this moment.
    pub fn answer(&self, text: &str) -> String {
        let hooks = &self.agent.info().hooks;
        let plain = self.moment == HookMoment::BeforeCompaction && hooks.takes_text;
        let cannot_reach_model = !hooks.reply_reaches_model_at.contains(&self.moment);
        match (text.is_empty() || cannot_reach_model, plain) {
            (true, _) => String::new(),
            (false, true) => format!("{text}\n"),
            (false, false) => {
                let said = json!({"hookEventName": self.name, "additionalContext": text});
                format!("{}\n", json!({"hookSpecificOutput": said}))
            }
        }
    }
}

/// How much of a session file's end is searched for the last reported context, in bytes.
const TAIL: u64 = 262_144;

/// The context size that the provider last reported.
#[derive(Debug, PartialEq, Eq)]
pub struct ReportedContext {
    pub tokens: u64,
    pub model: Option<String>,
    /// Milliseconds since 1970.
    pub at: Option<i64>,
}

/// The last reported context near the end of a session's file: cheap enough to run every turn.
pub fn reported(agent: AgentRef, path: &Path) -> Option<ReportedContext> {
    let end = files::tail(path, TAIL).ok()?;
    let text = history::json::mend(&end);
    let mut rows = text.lines().rev().filter(|it| it.contains("oken"));
    rows.find_map(|it| {
        let row: Value = serde_json::from_str(it).ok()?;
        let (tokens, model) = agent.reported(&row)?;
        Some(ReportedContext { tokens, model, at: row["timestamp"].as_str().and_then(derive::parse_time) })
    })
}

/// The window named in the records near a session's end (Codex).
pub fn window(path: &Path) -> Option<u64> {
    let end = files::tail(path, TAIL).ok()?;
    let text = history::json::mend(&end);
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

    fn agent(name: &str) -> AgentRef {
        named(name).unwrap()
    }

    #[test]
    fn who_asks_and_how_it_is_answered() {
        let event = |text: &str| read(text, None).unwrap();
        let claude = event(
            r#"{"session_id":"s","transcript_path":"/p/s.jsonl","hook_event_name":"PreCompact","trigger":"auto"}"#,
        );
        assert_eq!((claude.agent, claude.moment), (agent("claude-code"), HookMoment::BeforeCompaction));
        assert_eq!(claude.answer("keep"), "keep\n");
        let codex = event(
            r#"{"session_id":"s","transcript_path":"/p/rollout-x-s.jsonl","hook_event_name":"SessionStart","source":"compact"}"#,
        );
        assert_eq!((codex.agent, codex.moment), (agent("codex"), HookMoment::StartCompacted));
        assert_eq!(
            codex.answer("keep"),
            "{\"hookSpecificOutput\":{\"hookEventName\":\"SessionStart\",\"additionalContext\":\"keep\"}}\n"
        );
        let gemini = event(
            r#"{"session_id":"s","transcript_path":"/p/session-x.jsonl","hook_event_name":"SessionStart","source":"startup"}"#,
        );
        assert_eq!((gemini.agent, gemini.answer("keep")), (agent("gemini-cli"), String::new()));
        let opencode = event(r#"{"client":"opencode","session_id":"ses_1","hook_event_name":"PreCompact"}"#);
        assert_eq!((opencode.agent, opencode.answer("keep")), (agent("opencode"), "keep\n".to_owned()));
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
        let said = |name: &str| reported(agent(name), &path).map(|it| (it.tokens, it.model, it.at));
        assert_eq!(said("claude-code"), Some((100, Some("m".into()), None)));
        write(
            "{\"type\":\"event_msg\",\"payload\":{\"type\":\"token_count\",\"info\":{\"last_token_usage\":{\"total_tokens\":7},\"model_context_window\":1000}}}\n",
        );
        assert_eq!((said("codex"), window(&path)), (Some((7, None, None)), Some(1000)));
        write(
            "{\"type\":\"gemini\",\"model\":\"g\",\"tokens\":{\"total\":9},\"timestamp\":\"1970-01-01T00:00:01.000Z\"}\n",
        );
        assert_eq!(said("gemini-cli"), Some((9, Some("g".into()), Some(1_000))));
        assert_eq!(reported(agent("gemini-cli"), folder.path()), None);
    }
}
