//! How to register with an agent, as data.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::InstallRequest;
use crate::agents::Env;

/// How our server and hooks are added to an agent's settings, and how we compact in its place.
pub struct Registration {
    /// Name of its program on the `PATH`.
    pub program: &'static str,
    /// Its own folder. Here and below: `config` is the folder of user configurations (`~/.config`).
    pub folder: fn(env: &Env, config: &Path) -> PathBuf,
    /// The settings files: the one with MCP servers, and the one with hooks (or our plugin).
    pub files: fn(env: &Env, config: &Path) -> (PathBuf, PathBuf),
    pub style: SettingsStyle,
    /// The events at which we are called, and what each does and costs. The names are those in settings; a
    /// plugin's are its own.
    pub events: &'static [(&'static str, &'static str)],
    /// What changes when we compact in its place, and how to turn that off; `None` where settings and our own
    /// files cannot achieve it.
    pub seat_explained: Option<[&'static str; 3]>,
    /// The files of our own that the seat needs beside the settings.
    pub seat_files: fn(env: &Env, program: &Path, compact_at: u8) -> Vec<(PathBuf, String)>,
    /// Where other plugins that compact in its place may be.
    pub plugins: Option<Plugins>,
    /// How to remove a server that the user registered by hand.
    pub manual_removal: &'static str,
    /// The folder of the user's prompt files, for an agent that does not show an MCP server's prompts.
    pub prompts: Option<fn(env: &Env, config: &Path) -> PathBuf>,
    /// Whether the seat can compact at the end of a turn above a given share of the window.
    pub has_threshold: bool,
    pub status_line: Option<StatusLineSetting>,
    /// What the user should know after installing.
    pub note: fn(&InstallRequest) -> Option<&'static str>,
}

/// The form of an agent's settings, and what registers us there.
pub enum SettingsStyle {
    /// TOML: a section for the server, lists of tables for the hooks.
    Toml,
    /// JSON: the server in the section `section`, hooks listed by event.
    Json {
        section: &'static str,
        server: fn(&InstallRequest) -> Value,
        hook: fn(program: &Path) -> Value,
        seat: SeatSetting,
    },
    /// JSON for the server; hooks and seat are in our plugin, whose source is `text`.
    Plugin { section: &'static str, server: fn(&InstallRequest) -> Value, text: &'static str },
    /// No settings and no MCP server: only the seat's files.
    SeatFiles,
}

/// The setting that makes us compact in an agent's place.
pub enum SeatSetting {
    Hook {
        event: &'static str,
        hook: fn(program: &Path) -> Value,
    },
    /// An environment variable, in the section `env`, that enables the feature our files need.
    Switch(&'static str),
}

/// A command in JSON settings that prints a status line.
pub struct StatusLineSetting {
    pub key: &'static str,
    pub value: fn(program: &Path) -> Value,
}

/// Code files that contain `word`, at most `depth` levels below `folder`.
pub struct Plugins {
    pub folder: fn(env: &Env, config: &Path) -> PathBuf,
    pub depth: usize,
    pub word: &'static str,
}

macro_rules! reminder {
    () => {
        "one line when the context passes 80 %, or is half full and the provider's cache has expired (off with [hooks] reminder = false)"
    };
}

/// When the reminder is printed, and how to switch it off.
pub(crate) const REMINDER: &str = reminder!();

/// The same, for agents that also get what a summary left out with a prompt.
pub(crate) const MISSING_AND_REMINDER: &str =
    concat!("after a compaction, adds once what the summary left out (at most 1,500 tokens); ", reminder!());
