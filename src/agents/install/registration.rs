//! How each agent is registered with, as data.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::InstallRequest;
use crate::agents::Env;

/// How our server and hooks are put into an agent's settings, and how we take its place when it compacts.
pub struct Registration {
    /// Its program, as it is found on the `PATH`.
    pub program: &'static str,
    /// Its own folder. Here and below: `config` is the folder of user configurations (`~/.config`).
    pub folder: fn(env: &Env, config: &Path) -> PathBuf,
    /// The settings files: where the server stands, where the hooks do.
    pub files: fn(env: &Env, config: &Path) -> (PathBuf, PathBuf),
    pub style: SettingsStyle,
    /// The events at which we are called, with what each does and costs. In settings they are named; a plugin has its
    /// own.
    pub events: &'static [(&'static str, &'static str)],
    /// What changes when we compact in its place, and how to leave that; nothing where settings and files of ours
    /// cannot bring that about.
    pub seat_explained: Option<[&'static str; 3]>,
    /// The files of our own that the seat needs beside the settings.
    pub seat_files: fn(env: &Env, program: &Path, compact_at: u8) -> Vec<(PathBuf, String)>,
    /// Where plugins of others may lie that compact in its place.
    pub plugins: Option<Plugins>,
    /// How a server is taken out that the user registered by hand.
    pub by_hand: &'static str,
    /// Where prompts of the user lie as files, for an agent that shows no server's prompts.
    pub prompts: Option<fn(env: &Env, config: &Path) -> PathBuf>,
    /// Whether the seat can compact at the end of a turn from a share of the window on.
    pub has_threshold: bool,
    pub status_line: Option<StatusLineSetting>,
    /// What the user should know after installing.
    pub note: fn(&InstallRequest) -> Option<&'static str>,
}

/// In which files an agent keeps these settings, and in which form.
pub enum SettingsStyle {
    /// TOML: a section for the server, lists of tables for the hooks.
    Toml,
    /// JSON: the server in a section of that name, hooks by event.
    Json {
        section: &'static str,
        server: fn(&InstallRequest) -> Value,
        hook: fn(program: &Path) -> Value,
        seat: SeatSetting,
    },
    /// JSON for the server; the hooks and the seat are a plugin of ours, whose text this is.
    Plugin { section: &'static str, server: fn(&InstallRequest) -> Value, text: &'static str },
    /// Nothing in its settings, and no server: the seat's files are all there is.
    SeatFiles,
}

/// What puts us in an agent's place, in its settings.
pub enum SeatSetting {
    Hook {
        event: &'static str,
        hook: fn(program: &Path) -> Value,
    },
    /// An environment variable, in the section `env`, that switches on what our files need.
    Switch(&'static str),
}

/// A command in JSON settings that prints a status line.
pub struct StatusLineSetting {
    pub key: &'static str,
    pub value: fn(program: &Path) -> Value,
}

/// Code that holds `word`, at most `depth` folders below `folder`.
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

/// When the reminder speaks, and how to switch it off.
pub(crate) const REMINDER: &str = reminder!();

/// The same where what a summary left out comes with a prompt.
pub(crate) const MISSING_AND_REMINDER: &str =
    concat!("after a compaction, adds once what the summary left out (at most 1,500 tokens); ", reminder!());
