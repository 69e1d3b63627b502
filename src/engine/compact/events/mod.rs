//! Events of a compaction as plain data: for a listener, the log, and the user's own commands.

#[cfg(feature = "otel")]
pub mod otel;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStderr, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::engine::input::measured::Measured;
use crate::engine::{Ask, Engine, Opened, session_info};

/// Something that happens during a compaction.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    Started {
        profile: String,
        /// `manual`, `auto` or `overflow`.
        trigger: String,
        /// The session's id or path, if it has one.
        session: Option<String>,
        /// Tokens of the messages.
        tokens: u64,
        /// The context as percent of the window, where that is known.
        percent: Option<u64>,
        /// What the profile tells the user; may be empty.
        notice: String,
    },
    Asked {
        summarizer: String,
        /// Maximum tokens of the summary.
        budget: u64,
    },
    Retry {
        number: u32,
        /// Maximum number of retries.
        of: u32,
        why: String,
    },
    Compacted {
        tokens_before: u64,
        tokens_after: u64,
        /// Handle of the original session, once archived.
        handle: Option<String>,
        /// Where the result was written, if it was.
        output: Option<String>,
        /// What the profile tells the user; may be empty.
        notice: String,
    },
    Failed {
        /// A `reason_code` of the contract.
        reason_code: String,
        reason: String,
    },
}

impl Event {
    /// What the user is shown: the profile's notice, or a default sentence.
    pub fn sentence(&self) -> String {
        match self {
            Self::Started { notice, .. } | Self::Compacted { notice, .. } if !notice.is_empty() => {
                notice.clone()
            }
            Self::Started { profile, trigger, tokens, .. } => {
                format!("compacting {tokens} tokens by {profile} ({trigger})")
            }
            Self::Asked { summarizer, budget } => {
                format!("asking {summarizer} for a summary of at most {budget} tokens")
            }
            Self::Retry { number, of, why } => format!("retry {number} of {of}: {why}"),
            Self::Compacted { tokens_before, tokens_after, .. } => {
                format!("compacted: {tokens_before} → {tokens_after} tokens")
            }
            Self::Failed { reason_code, reason } => format!("not compacted ({reason_code}): {reason}"),
        }
    }
}

/// Receives events while a compaction runs: it must not block.
pub type Listener = Arc<dyn Fn(&Event) + Send + Sync>;

/// Sends an event to the listener and the log.
pub(crate) fn notify(engine: &Engine, event: &Event) {
    tracing::info!(target: "epitome::compaction", "{}", history::json::compact(event));
    if let Some(listener) = &engine.listener {
        listener(event);
    }
}

pub(crate) fn started(opened: &Opened, ask: &Ask, measured: &Measured<'_>) -> Event {
    let context = measured.context();
    let percent = measured.limits.window.map(|it| context * 100 / it.max(1));
    let info = session_info(opened);
    Event::Started {
        profile: ask.profile.name.clone(),
        trigger: ask.cause().name().to_owned(),
        session: info.id.or(info.path),
        tokens: measured.tokens,
        percent,
        notice: notice(&ask.profile.notices.started, percent),
    }
}

/// Runs the user's `hooks.before` command, for at most `limit`. `Err`: the reason why it refused.
pub(crate) fn run_before(engine: &Engine, event: &Event, limit: Duration) -> Result<(), String> {
    let Some(command) = &engine.config.hooks.before else { return Ok(()) };
    run(command, event, limit.min(engine.config.hooks.limit()))
        .map_err(|why| format!("the command in hooks.before refused: {why}"))
}

/// Runs the user's `hooks.after` command, for at most `limit`. Returns a warning if it fails.
pub(crate) fn run_after(engine: &Engine, event: &Event, limit: Duration) -> Option<String> {
    let command = engine.config.hooks.after.as_ref()?;
    run(command, event, limit.min(engine.config.hooks.limit())).err().map(|why| format!("hooks.after: {why}"))
}

/// A notice with the percentage filled in.
pub(crate) fn notice(text: &str, percent: Option<u64>) -> String {
    text.replace("{percent}", &percent.map_or("?".to_owned(), |it| it.to_string()))
}

/// A command line of the user, to be run by the system's shell.
pub fn shell(line: impl AsRef<std::ffi::OsStr>) -> Command {
    let (shell, flag) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
    let mut command = Command::new(shell);
    command.arg(flag).arg(line);
    command
}

/// Runs a command in the shell with an event on its standard input, within a time limit.
fn run(command: &str, event: &Event, limit: Duration) -> Result<(), String> {
    /// Polling interval for the command's exit.
    const LOOK: Duration = Duration::from_millis(10);
    let mut child = shell(command)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("`{command}` could not be started: {error}"))?;
    let begun = Instant::now();
    let said = match child.stderr.take().map(listen).transpose() {
        Ok(said) => said,
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("`{command}` could not be listened to: {error}"));
        }
    };
    if let Some(mut input) = child.stdin.take() {
        // A command that does not read its input is no error.
        let _ = writeln!(input, "{}", history::json::compact(event));
    }
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if begun.elapsed() >= limit => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("`{command}` took longer than {} s", limit.as_secs()));
            }
            Ok(None) => std::thread::sleep(LOOK),
            Err(error) => return Err(format!("`{command}`: {error}")),
        }
    };
    if status.success() {
        return Ok(());
    }
    let left = limit.saturating_sub(begun.elapsed());
    let said = said.map(|it| first_words(&it, left)).unwrap_or_default();
    let what = if said.is_empty() { status.to_string() } else { said };
    Err(format!("`{command}`: {what}"))
}

/// Reads a command's standard error on a thread while the command runs, since a full pipe would block it. The
/// receiver gets the first `KEPT` bytes.
fn listen(stderr: ChildStderr) -> std::io::Result<Receiver<Vec<u8>>> {
    /// Maximum bytes kept: the rest is read and dropped.
    const KEPT: u64 = 4096;
    let (pieces, said) = mpsc::channel();
    std::thread::Builder::new().name("hook".to_owned()).spawn(move || {
        let mut stderr = stderr;
        let mut first = BufReader::new((&mut stderr).take(KEPT));
        while let Ok(piece @ [_, ..]) = first.fill_buf() {
            let len = piece.len();
            // The receiver may be gone.
            let _ = pieces.send(piece.to_vec());
            first.consume(len);
        }
        drop(pieces);
        // Drained so that the command is not blocked; a read error does not matter.
        let _ = std::io::copy(&mut stderr, &mut std::io::sink());
    })?;
    Ok(said)
}

/// The beginning of an ended command's standard error, as far as it arrives within `limit`.
fn first_words(said: &Receiver<Vec<u8>>, limit: Duration) -> String {
    /// Maximum wait for the end of the pipe: a background process that the command left may keep it open.
    const LINGER: Duration = Duration::from_secs(1);
    let (begun, limit) = (Instant::now(), limit.min(LINGER));
    let next = || said.recv_timeout(limit.saturating_sub(begun.elapsed())).ok();
    let text: Vec<u8> = std::iter::from_fn(next).flatten().collect();
    String::from_utf8_lossy(&text).trim().chars().take(200).collect()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn refusal(command: &str, limit: Duration) -> Result<(), String> {
        run(command, &Event::Failed { reason_code: String::new(), reason: String::new() }, limit)
    }

    #[test]
    fn a_command_may_say_more_than_a_pipe_holds() {
        let limit = Duration::from_secs(60);
        let much = "head -c 1000000 /dev/zero | tr '\\0' x >&2";
        assert_eq!(refusal(much, limit), Ok(()));
        let why = refusal(&format!("echo not now >&2; {much}; exit 3"), limit).unwrap_err();
        assert!(why.contains("not now") && why.ends_with('x'), "{why}");
        assert_eq!(refusal("exit 3", limit), Err("`exit 3`: exit status: 3".to_owned()));
    }

    #[test]
    fn what_is_left_in_the_background_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let late = folder.path().join("late");
        let command = format!("echo not now >&2; (sleep 30; touch '{}') & exit 1", late.display());
        let why = refusal(&command, Duration::from_secs(60)).unwrap_err();
        assert!(why.contains("not now"), "{why}");
        assert!(!late.exists());
    }
}
