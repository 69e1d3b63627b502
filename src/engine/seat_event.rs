//! From an agent's compaction event to the answer in its own shape.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::open::{open_path, read};
use super::{Engine, Opened, SeatAsk, SessionRef};
use crate::agents::seat::{self, Client, claude_code, gemini_cli};
use crate::agents::{self, Agent, hooks};
use history::error::{Error, Kind, Result};
use history::verbatim::Prompts;
use history::{History, Kind as Why, Meta, Role};
use sessions::claude_code::is_clients;
use sessions::{Format, Memory};

/// How long a transcript may lag behind the event: its writer flushes what a turn said a little later.
const LAG: Duration = Duration::from_millis(400);

/// What was answered, for the log.
pub struct SeatAnswer {
    /// What the agent is told.
    pub reply: Value,
    /// The session, where it is known.
    pub session: Option<String>,
    /// Tokens of the messages, before and after.
    pub tokens: (u64, u64),
    /// Of the archived original.
    pub handle: Option<String>,
}

impl Engine {
    /// Answers an agent that compacts. Nothing if it did not ask for it.
    pub fn seat_event(&self, client: Client, event: &Value) -> Result<Option<SeatAnswer>> {
        let mut ask = SeatAsk {
            cause: seat::cause(event),
            focus: seat::focus(event),
            window: self.seat_window(client, event),
        };
        let (opened, original) = match client {
            Client::ClaudeCode => self.claude_event(event)?,
            Client::OpenCode => (self.opencode_event(event)?, None),
            Client::Pi => {
                let bytes = event["session"].as_str().unwrap_or_default().as_bytes();
                let opened = read(Box::new(Memory::new("event", bytes)), Some(Format::PI), None)?;
                let file = event["file"].as_str().map(std::path::Path::new);
                (opened, file.and_then(|it| open_path(it, Some(Format::PI)).ok()))
            }
            Client::GeminiCli => {
                let path = std::path::PathBuf::from(event["transcript_path"].as_str().unwrap_or_default());
                let found = hooks::reported(Agent::GeminiCli, &path);
                let model = found.as_ref().and_then(|it| it.1.as_deref());
                let window = model.and_then(|it| {
                    self.config.windows.get(it).copied().or(tokens::window(it).map(|it| it.context))
                });
                let settings = agents::gemini_cli::home(&self.config.agents).join("settings.json");
                let settings = std::fs::read_to_string(settings).unwrap_or_default();
                let Some((trigger, focus)) =
                    gemini_cli::asked(event, found.map(|it| it.0), window, &settings)
                else {
                    return Ok(None);
                };
                ask.cause = seat::cause(&json!({ "trigger": trigger }));
                ask.focus = focus;
                let mut opened = open_path(&path, Some(Format::GEMINI_CLI))?;
                opened.session.history = gemini_cli::conversation(opened.session.history);
                (opened, None)
            }
        };
        let session =
            original.as_ref().unwrap_or(&opened).session.history.meta.session.as_deref().map(str::to_owned);
        let seated = self.seat(opened, original.as_ref(), &ask)?;
        let reply = match client {
            Client::ClaudeCode => claude_code::reply(seated.history.messages()),
            Client::OpenCode => json!({ "text": seated.one_text(Prompts::Dropped) }),
            Client::GeminiCli => gemini_cli::reply(&seated.one_text(Prompts::Dropped)),
            Client::Pi => json!({ "summary": seated.one_text(Prompts::Dropped) }),
        };
        let tokens = (seated.tokens_before, seated.tokens_after);
        Ok(Some(SeatAnswer { reply, session, tokens, handle: seated.handle }))
    }

    /// The window that the agent tells, or that the user set for it.
    fn seat_window(&self, client: Client, event: &Value) -> Option<u64> {
        let set = |from: &str| {
            let found = self.config.agent_setting(from)?;
            found.as_u64().or_else(|| found.as_str()?.parse().ok())
        };
        let of_claude =
            || set("env:CLAUDE_CODE_AUTO_COMPACT_WINDOW").or_else(|| set("claude-code:autoCompactWindow"));
        let told = event["window"].as_u64();
        told.or_else(|| (client == Client::ClaudeCode).then(of_claude)?).filter(|it| *it > 0)
    }

    fn opencode_event(&self, event: &Value) -> Result<Opened> {
        let id = event["session_id"].as_str().filter(|it| !it.is_empty());
        let id = id.ok_or_else(|| Error::new(Kind::Input, "expected session_id in the event, found none"))?;
        self.open(&SessionRef::Named(id.to_owned()), Some(Format::OPENCODE), Some(Agent::OpenCode.name()))
    }

    /// The messages that Claude Code hands over, and its transcript, which is what a user wants back.
    fn claude_event(&self, event: &Value) -> Result<(Opened, Option<Opened>)> {
        let bytes = claude_code::messages(event)?;
        let mut opened = read(Box::new(Memory::new("event", bytes)), Some(Format::ANTHROPIC), None)?;
        // A sub-agent's messages are in no transcript of their own that anybody resumes.
        let sub_agent = event["agentId"].is_string();
        let transcript = if sub_agent { None } else { self.transcript(claude_code::last_row(event)) };
        let meta = match &transcript {
            Some((it, _)) => Meta { agent: None, ..it.session.history.meta.clone() },
            None => Meta { cwd: Some(self.project().project.into()), ..Meta::default() },
        };
        let mut messages = std::mem::take(&mut opened.session.history).into_messages();
        // Its record of the /compact that brought us here, and of those before.
        messages.retain(|it| !(it.role == Role::User && claude_code::is_compact_command(&it.plain())));
        for it in &mut messages {
            let clients = it.kind == Why::Said && it.texts().all(|it| is_clients(it.as_str()));
            if it.role == Role::User && clients && it.texts().next().is_some() {
                it.kind = Why::Context;
            }
        }
        opened.session.history = History::new(messages, meta);
        if transcript.as_ref().is_some_and(|it| !it.1) {
            self.keep(&opened)?;
        }
        Ok((opened, transcript.map(|it| it.0)))
    }

    /// The calling session's transcript, and whether it holds the row of that id already.
    fn transcript(&self, last_row: Option<&str>) -> Option<(Opened, bool)> {
        let launched = self.config.environment.get("CLAUDE_CODE_LAUNCHED_BY_SESSION_IDS");
        let launched = launched.and_then(|it| it.rsplit(',').next()).map(|it| it.trim().to_owned());
        let id = self.noted_caller(Agent::ClaudeCode).or(launched)?;
        let found = agents::find(&self.config.agents, &id);
        let path = found.into_iter().find(|it| it.agent == Agent::ClaudeCode && it.id == id)?.path;
        let begun = Instant::now();
        let holds = || {
            let row = last_row?;
            let bytes = std::fs::read(&path).ok()?;
            // Of a long file, its end: the newest row is near it.
            let end = &bytes[bytes.len().saturating_sub(8 << 20)..];
            memchr::memmem::find(end, row.as_bytes())
        };
        let whole = loop {
            if last_row.is_none() || holds().is_some() {
                break true;
            }
            if begun.elapsed() > LAG {
                break false;
            }
            std::thread::sleep(Duration::from_millis(40));
        };
        Some((open_path(&path, Some(Format::CLAUDE_CODE)).ok()?, whole))
    }
}
