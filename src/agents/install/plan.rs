//! Plans what installing and uninstalling change; nothing is written here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::json::without_hooks;
use super::ours::{fill_program_path, is_our_file};
use super::status_line::without_status_line;
use super::toml::{is_our_section, toml_change};
use super::{NAME, Registration, SettingsStyle, json::Edits, read_settings};
use crate::agents::Env;
use crate::agents::settings::{self, sections};
use history::error::{Error, ErrorKind, Result};

#[derive(Debug, Clone)]
pub struct InstallRequest {
    pub program: PathBuf,
    /// Whether hooks are registered too.
    pub hooks: bool,
    /// Whether we compact in the agent's place.
    pub seat: bool,
    /// Percent of the window at which a turn's end triggers a compaction; 0: only the agent decides.
    pub compact_at: u8,
    /// Whether to add our status line. One from an earlier install stays either way.
    pub status_line: bool,
    /// Whether the agent may run our tools without asking.
    pub trust: bool,
    /// Whether an existing entry under our name is known to be ours.
    pub entry_is_ours: bool,
    /// No provider is configured, so every call finishes within seconds.
    pub offline: bool,
}

/// A file's text before and after; `None`: no file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    pub path: PathBuf,
    pub before: Option<String>,
    pub after: Option<String>,
}

/// Something that installing had to create in a settings file: uninstalling removes it if nothing else was
/// added to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Made {
    File,
    /// The top-level object, in a file that contained only this white space.
    Object(String),
    /// An empty object or list at these keys.
    Section(Vec<String>),
    /// `"1"` at these keys.
    Switch(Vec<String>),
}

/// What was created, by file.
pub type MadeInFiles = BTreeMap<String, Vec<Made>>;

/// What installing changes, and what it creates for that.
#[derive(Debug)]
pub struct InstallPlan {
    pub changes: Vec<FileChange>,
    pub made: MadeInFiles,
}

/// Plans an installation. `config`: the folder of user configurations (`~/.config`).
pub fn install(env: &Env, config: &Path, of: &Registration, wanted: &InstallRequest) -> Result<InstallPlan> {
    let (server, hooks) = (of.files)(env, config);
    let mut edits = Edits::default();
    match &of.style {
        SettingsStyle::Toml => {
            let change = toml_change(&server, of, wanted, &mut edits.made)?;
            edits.files.insert(server, change);
        }
        SettingsStyle::Json { section, server: entry, hook, seat } => {
            edits.server(&server, section, &entry(wanted), wanted, of.manual_removal)?;
            edits.hooks(&hooks, of, *hook, seat, wanted)?;
        }
        SettingsStyle::Plugin { section, server: entry, text } => {
            edits.server(&server, section, &entry(wanted), wanted, of.manual_removal)?;
            edits.files.insert(hooks.clone(), plugin_change(hooks, text, wanted)?);
        }
        SettingsStyle::SeatFiles => {}
    }
    for (path, text) in (of.seat_files)(env, &wanted.program, wanted.compact_at) {
        let before = read_settings(&path)?;
        if before.as_deref().is_some_and(|it| !is_our_file(it)) {
            let what = "expected no file of that name, or one made by Epitome, found another; rename it, or use \
                        --no-seat";
            return Err(Error::new(ErrorKind::Refused, what).at_path(&path));
        }
        if wanted.seat || before.is_some() {
            edits.files.insert(path.clone(), FileChange { path, before, after: wanted.seat.then_some(text) });
        }
    }
    Ok(InstallPlan { changes: edits.files.into_values().collect(), made: edits.made })
}

/// `text`: the plugin, with placeholders for the program's path and the seat.
fn plugin_change(path: PathBuf, text: &str, wanted: &InstallRequest) -> Result<FileChange> {
    let before = read_settings(&path)?;
    if before.as_deref().is_some_and(|it| it.lines().next() != text.lines().next()) {
        let what = "expected no plugin of that name, or Epitome's own, found another; rename it";
        return Err(Error::new(ErrorKind::Refused, what).at_path(&path));
    }
    let plugin = || {
        let text = fill_program_path(text, &wanted.program);
        text.replace("\"@SEAT@\"", if wanted.seat { "true" } else { "false" })
    };
    Ok(FileChange { path, before, after: (wanted.hooks || wanted.seat).then(plugin) })
}

/// What uninstalling changes; `made`: what installing created.
pub fn uninstall(env: &Env, config: &Path, of: &Registration, made: &MadeInFiles) -> Result<Vec<FileChange>> {
    let (server, hooks) = (of.files)(env, config);
    let is_plugin = |path: &Path| matches!(of.style, SettingsStyle::Plugin { .. }) && *path == hooks;
    let mut out = Vec::new();
    let mut paths = vec![server];
    if !paths.contains(&hooks) {
        paths.push(hooks.clone());
    }
    for path in paths {
        let Some(before) = read_settings(&path)?.filter(|it| !it.trim().is_empty()) else { continue };
        let made = made.get(&path.display().to_string()).map(Vec::as_slice).unwrap_or_default();
        let after = if is_plugin(&path) { None } else { without_ours(&path, &before, of, made)? };
        if after.as_deref() != Some(&before) {
            out.push(FileChange { path, before: Some(before), after });
        }
    }
    for (path, _) in (of.seat_files)(env, Path::new(""), 0) {
        if let Some(before) = read_settings(&path)?.filter(|it| is_our_file(it)) {
            out.push(FileChange { path, before: Some(before), after: None });
        }
    }
    Ok(out)
}

/// The settings as if we had never been installed; `None` if the file was created for us.
fn without_ours(path: &Path, before: &str, of: &Registration, made: &[Made]) -> Result<Option<String>> {
    let mut after = match &of.style {
        SettingsStyle::Toml => sections::remove(before, is_our_section),
        SettingsStyle::Json { section, .. } | SettingsStyle::Plugin { section, .. } => {
            settings::check(before).map_err(|error| error.at_path(path))?;
            let text = without_status_line(without_hooks(before, of), of);
            settings::remove(&text, &[section, NAME]).unwrap_or(text)
        }
        SettingsStyle::SeatFiles => return Ok(Some(before.to_owned())),
    };
    // In reverse: inner sections were created after the outer ones.
    for it in made.iter().rev() {
        after = without_made(&after, it).unwrap_or(after);
    }
    if !after.trim().is_empty() && after.replace(char::is_whitespace, "") != "{}" {
        return Ok(Some(after));
    }
    let blank =
        made.iter().find_map(|it| if let Made::Object(blank) = it { Some(blank.clone()) } else { None });
    Ok(blank.or_else(|| (!made.contains(&Made::File)).then_some(after)))
}

/// The text without a created section or switch; `None` if something else was added to it.
fn without_made(text: &str, made: &Made) -> Option<String> {
    let (keys, untouched): (_, &[&str]) = match made {
        Made::File | Made::Object(_) => return None,
        Made::Section(keys) => (keys, &["{}", "[]"]),
        Made::Switch(keys) => (keys, &["\"1\""]),
    };
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let value = settings::get(text, &keys)?.replace(char::is_whitespace, "");
    if untouched.contains(&value.as_str()) { settings::remove(text, &keys) } else { None }
}
