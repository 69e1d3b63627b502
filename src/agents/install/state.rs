//! What is in an agent's settings now: our entries, and other plugins.

use std::path::{Path, PathBuf};

use super::json::is_ours;
use super::ours::is_our_file;
use super::toml::is_our_hook;
use super::{NAME, Plugins, Registration, SeatSetting, SettingsStyle, read_settings};
use crate::agents::settings::{self, sections};
use crate::agents::{AgentRef, Env};
use history::error::{Error, ErrorKind, Result};

/// Checks that the agent is on this machine: a folder of its own, or its program on the `PATH`.
///
/// # Errors
/// [`ErrorKind::Refused`] if neither is found.
pub fn expect_agent(env: &Env, config: &Path, agent: AgentRef, of: &Registration) -> Result<()> {
    let (folder, program) = ((of.folder)(env, config), of.program);
    let (server, _) = (of.files)(env, config);
    let endings: &[&str] = if cfg!(windows) { &[".exe", ".cmd", ".bat"] } else { &[""] };
    let runs = |it: &PathBuf| endings.iter().any(|ending| it.join(format!("{program}{ending}")).is_file());
    let sessions = agent.home(env);
    if [&folder, &server, &sessions].into_iter().any(|it| it.exists()) || env.path.iter().any(runs) {
        return Ok(());
    }
    let what = format!(
        "{} is not installed here: expected {} or `{program}` on the PATH, found neither; install it, start it once, and run \
         this again",
        agent.info().title,
        folder.display()
    );
    Err(Error::new(ErrorKind::Refused, what))
}

/// Whether we compact in an agent's place.
pub fn has_seat(env: &Env, config: &Path, of: &Registration) -> bool {
    let (_, hooks) = (of.files)(env, config);
    match &of.style {
        SettingsStyle::Toml => false,
        SettingsStyle::Json { seat: SeatSetting::Switch(_), .. } | SettingsStyle::SeatFiles => {
            (of.seat_files)(env, Path::new(""), 0).iter().all(|it| is_our_file(&text(&it.0)))
        }
        SettingsStyle::Json { seat: SeatSetting::Hook { event, .. }, .. } => {
            settings::elements(&text(&hooks), &["hooks", event]).iter().any(|it| is_ours(it))
        }
        SettingsStyle::Plugin { .. } => text(&hooks).contains("const SEAT = true"),
    }
}

/// Whether we are registered with an agent: by our server or, for an agent without MCP, by the seat.
pub fn registered(env: &Env, config: &Path, of: &Registration) -> bool {
    match of.style {
        SettingsStyle::SeatFiles => has_seat(env, config, of),
        _ => installed(env, config, of).0,
    }
}

/// Whether our server is in an agent's settings, and whether our hooks are.
pub fn installed(env: &Env, config: &Path, of: &Registration) -> (bool, bool) {
    let (server, hooks) = (of.files)(env, config);
    match &of.style {
        SettingsStyle::Toml => {
            let text = text(&server);
            let server = |path: &[String], _: &str| path == ["mcp_servers", NAME];
            let hook = |path: &[String], text: &str| is_our_hook(path, text);
            (sections::contains_section(&text, server), sections::contains_section(&text, hook))
        }
        SettingsStyle::Plugin { section, .. } => {
            (settings::get(&text(&server), &[section, NAME]).is_some(), hooks.exists())
        }
        SettingsStyle::Json { section, .. } => {
            let hooks = text(&hooks);
            let ours = |(event, _): &(&str, &str)| {
                settings::elements(&hooks, &["hooks", event]).iter().any(|it| is_ours(it))
            };
            (settings::get(&text(&server), &[section, NAME]).is_some(), of.events.iter().any(ours))
        }
        SettingsStyle::SeatFiles => (false, false),
    }
}

/// Other plugins that may compact in an agent's place.
pub fn other_seats(env: &Env, config: &Path, of: &Registration) -> Vec<PathBuf> {
    let Some(Plugins { folder, depth, word }) = &of.plugins else { return Vec::new() };
    let is_code = |it: &PathBuf| it.extension().is_some_and(|it| it == "ts" || it == "js" || it == "mjs");
    let theirs = |it: &PathBuf| {
        let text = std::fs::read_to_string(it).unwrap_or_default();
        text.contains(word) && !is_our_file(&text)
    };
    let files = crate::agents::files(&folder(env, config), *depth).into_iter().map(|it| it.path);
    files.filter(is_code).filter(theirs).collect()
}

/// The text of a settings file; empty if it cannot be read.
fn text(path: &Path) -> String {
    read_settings(path).ok().flatten().unwrap_or_default()
}
