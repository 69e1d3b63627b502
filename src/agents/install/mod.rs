//! Registration: what stands in each agent's settings while we are installed.
//!
//! **Invariants.** Installing twice is installing once. Uninstalling leaves every byte as it was, also where a file or
//! a section had to be made. Files that do not parse are refused, not mended.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{AgentRef, Env, settings};
use crate::agents::settings::sections;
use history::error::{Error, ErrorKind, Result};

mod json;
pub mod put;
mod status_line;
mod toml;

use json::{Edits, is_ours, section_of, switched_on, without_hooks};
pub use status_line::other_status_line;
use status_line::{with_status_line, without_status_line};
use toml::{is_our_hook, is_our_section, toml_change};

/// The name under which the server is registered.
pub const NAME: &str = "epitome";

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

#[derive(Debug, Clone)]
pub struct InstallRequest {
    pub program: PathBuf,
    /// Whether hooks are registered too.
    pub hooks: bool,
    /// Whether we compact in the agent's place.
    pub seat: bool,
    /// Percent of the window from which the agent is to compact at the end of a turn; 0: only when it decides to.
    pub compact_at: u8,
    /// Whether the agent is to show our status line. One of an earlier install stays either way.
    pub status_line: bool,
    /// Whether the agent is to run the tools without asking.
    pub trust: bool,
    /// Whether what stands there under our name is known to be ours.
    pub ours: bool,
    /// No provider can be asked: every call is done within seconds.
    pub offline: bool,
}

/// A file before and after. `None`: not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    pub path: PathBuf,
    pub before: Option<String>,
    /// As it will be.
    pub after: Option<String>,
}

/// Something that installing had to make in a file of settings: uninstalling takes it out where nothing else came in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Made {
    File,
    /// The whole object, in a file that held only this white space.
    Object(String),
    /// An empty object or list at these keys.
    Section(Vec<String>),
    /// `"1"` at these keys.
    Switch(Vec<String>),
}

/// By file.
pub type MadeInFiles = BTreeMap<String, Vec<Made>>;

/// What stands in the first lines of each file of ours, so that another's file of that name is not taken for one.
const MARK: &str = "epitome";

/// The file with this program's path in it.
pub fn with_program(text: &str, program: &Path) -> String {
    let program = serde_json::to_string(&program.display().to_string()).unwrap_or_default();
    text.replace("\"@EPITOME@\"", &program)
}

/// Whether a file that lies in the place of one of ours is one of ours.
pub fn is_our_file(text: &str) -> bool {
    text.get(..400.min(text.len())).unwrap_or(text).to_lowercase().contains(MARK)
        || text.contains("\"./seat.ts\"")
}

macro_rules! reminder {
    () => {
        "one line when the context passes 80 %, or is half full and the provider's cache has expired (off with [hooks] reminder = false)"
    };
}

/// When the reminder speaks, and how to switch it off.
pub(super) const REMINDER: &str = reminder!();

/// The same where what a summary left out comes with a prompt.
pub(super) const MISSING_AND_REMINDER: &str =
    concat!("after a compaction, adds once what the summary left out (at most 1,500 tokens); ", reminder!());

/// How an agent is registered with.
///
/// # Errors
/// [`ErrorKind::Arguments`] for one whose settings we do not edit.
pub fn registration(agent: AgentRef) -> Result<&'static Registration> {
    agent.info().registration.ok_or_else(|| {
        let what = format!("{} cannot be registered with: its sessions are only read", agent.info().title);
        Error::new(ErrorKind::Arguments, what)
    })
}

fn text_of(path: &Path) -> Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && path.is_symlink() => {
            let what =
                "expected settings, found a symbolic link to nothing; make its target or remove the link";
            Err(Error::new(ErrorKind::Input, what).at_path(path))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::new(ErrorKind::Input, "reading settings").at_path(path).because(error)),
    }
}

/// Refuses to install for an agent that is not on this machine: no folder of its own, no program on the `PATH`.
///
/// # Errors
/// [`ErrorKind::Refused`] if it is not.
pub fn expect_agent(env: &Env, config: &Path, agent: AgentRef) -> Result<()> {
    let of = registration(agent)?;
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

/// What installing changes, and what it makes for that. `config`: the folder of user configurations.
pub fn install(
    env: &Env,
    config: &Path,
    of: &Registration,
    wanted: &InstallRequest,
) -> Result<(Vec<FileChange>, MadeInFiles)> {
    let (server, hooks) = (of.files)(env, config);
    let mut edits = Edits::default();
    match &of.style {
        SettingsStyle::Toml => {
            let change = toml_change(&server, of, wanted, &mut edits.made)?;
            edits.files.insert(server, change);
        }
        SettingsStyle::Json { section, server: entry, hook, seat } => {
            edits.server(&server, section, &entry(wanted), wanted, of.by_hand)?;
            edits.json(&hooks, |text, made| {
                let mut text = without_hooks(text, of);
                if wanted.hooks {
                    text = section_of(&text, &[], "hooks", "{}", made)?;
                    for (event, _) in of.events {
                        text = section_of(&text, &["hooks"], event, "[]", made)?;
                        text = settings::push(&text, &["hooks", event], &hook(&wanted.program).to_string())?;
                    }
                }
                match seat {
                    _ if !wanted.seat => {}
                    SeatSetting::Switch(variable) => text = switched_on(&text, variable, made)?,
                    SeatSetting::Hook { event, hook } => {
                        text = section_of(&text, &[], "hooks", "{}", made)?;
                        text = section_of(&text, &["hooks"], event, "[]", made)?;
                        text = settings::push(&text, &["hooks", event], &hook(&wanted.program).to_string())?;
                    }
                }
                with_status_line(text, of, wanted)
            })?;
        }
        SettingsStyle::Plugin { section, server: entry, text } => {
            edits.server(&server, section, &entry(wanted), wanted, of.by_hand)?;
            let plugin = with_program(text, &wanted.program);
            let plugin = plugin.replace("\"@SEAT@\"", if wanted.seat { "true" } else { "false" });
            let before = text_of(&hooks)?;
            let first = |text: &str| text.lines().next().map(str::to_owned);
            if before.as_deref().is_some_and(|it| first(it) != first(text)) {
                let what = "expected no plugin of our name, or ours, found another; rename it";
                return Err(Error::new(ErrorKind::Refused, what).at_path(&hooks));
            }
            let after = if wanted.hooks || wanted.seat { Some(plugin) } else { None };
            edits.files.insert(hooks.clone(), FileChange { path: hooks, before, after });
        }
    }
    for (path, text) in (of.seat_files)(env, &wanted.program, wanted.compact_at) {
        let before = text_of(&path)?;
        if before.as_deref().is_some_and(|it| !is_our_file(it)) {
            let what = "expected no file of that name, or ours, found another; rename it, or use --no-seat";
            return Err(Error::new(ErrorKind::Refused, what).at_path(&path));
        }
        if wanted.seat || before.is_some() {
            edits.files.insert(path.clone(), FileChange { path, before, after: wanted.seat.then_some(text) });
        }
    }
    Ok((edits.files.into_values().collect(), edits.made))
}

/// What uninstalling changes; `made` is what installing had to make.
pub fn uninstall(env: &Env, config: &Path, of: &Registration, made: &MadeInFiles) -> Result<Vec<FileChange>> {
    let (server, hooks) = (of.files)(env, config);
    let mut out: Vec<FileChange> = Vec::new();
    let mut paths = vec![server];
    if !paths.contains(&hooks) {
        paths.push(hooks.clone());
    }
    for path in paths {
        let Some(before) = text_of(&path)? else { continue };
        if before.trim().is_empty() {
            continue;
        }
        let made = made.get(&path.display().to_string()).map(Vec::as_slice).unwrap_or_default();
        let mut after = match &of.style {
            SettingsStyle::Toml => sections::remove(&before, is_our_section),
            SettingsStyle::Plugin { .. } if path == hooks => String::new(),
            SettingsStyle::Json { section, .. } | SettingsStyle::Plugin { section, .. } => {
                settings::check(&before).map_err(|error| error.at_path(&path))?;
                let text = without_status_line(without_hooks(&before, of), of);
                settings::remove(&text, &[section, NAME]).unwrap_or(text)
            }
        };
        // What stands in another was made after it.
        for it in made.iter().rev() {
            after = without_made(&after, it).unwrap_or(after);
        }
        let ours = made.contains(&Made::File);
        let nothing = after.trim().is_empty() || after.replace(char::is_whitespace, "") == "{}";
        let plugin = matches!(of.style, SettingsStyle::Plugin { .. }) && path == hooks;
        let blank = made.iter().find_map(|it| if let Made::Object(blank) = it { Some(blank) } else { None });
        let after = match blank {
            Some(blank) if nothing => Some(blank.clone()),
            _ if (ours && nothing) || plugin => None,
            _ => Some(after),
        };
        if after.as_deref() != Some(&before) {
            out.push(FileChange { path, before: Some(before), after });
        }
    }
    for (path, _) in (of.seat_files)(env, Path::new(""), 0) {
        if let Some(before) = text_of(&path)?.filter(|it| is_our_file(it)) {
            out.push(FileChange { path, before: Some(before), after: None });
        }
    }
    Ok(out)
}

/// The text without something that was made in it, if nothing else came into that.
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

/// Whether we compact in an agent's place.
pub fn seated(env: &Env, config: &Path, of: &Registration) -> bool {
    let (_, hooks) = (of.files)(env, config);
    let text = |path: &Path| text_of(path).ok().flatten().unwrap_or_default();
    match &of.style {
        SettingsStyle::Toml => false,
        SettingsStyle::Json { seat: SeatSetting::Switch(_), .. } => {
            (of.seat_files)(env, Path::new(""), 0).iter().all(|it| is_our_file(&text(&it.0)))
        }
        SettingsStyle::Json { seat: SeatSetting::Hook { event, .. }, .. } => {
            settings::elements(&text(&hooks), &["hooks", event]).iter().any(|it| is_ours(it))
        }
        SettingsStyle::Plugin { .. } => text(&hooks).contains("const SEAT = true"),
    }
}

/// Whether the server stands in an agent's settings, and whether hooks do.
pub fn installed(env: &Env, config: &Path, of: &Registration) -> (bool, bool) {
    let (server, hooks) = (of.files)(env, config);
    let text = |path: &Path| text_of(path).ok().flatten().unwrap_or_default();
    match &of.style {
        SettingsStyle::Toml => {
            let text = text(&server);
            let server = |path: &[String], _: &str| path == ["mcp_servers", NAME];
            let hook = |path: &[String], text: &str| is_our_hook(path, text);
            (sections::any(&text, server), sections::any(&text, hook))
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
    }
}

/// Plugins of others that may compact in an agent's place.
pub fn other_seats(env: &Env, config: &Path, of: &Registration) -> Vec<PathBuf> {
    let Some(Plugins { folder, depth, word }) = &of.plugins else { return Vec::new() };
    let is_code = |it: &PathBuf| it.extension().is_some_and(|it| it == "ts" || it == "js" || it == "mjs");
    let theirs = |it: &PathBuf| {
        let text = std::fs::read_to_string(it).unwrap_or_default();
        text.contains(word) && !is_our_file(&text)
    };
    let files = super::files(&folder(env, config), *depth).into_iter().map(|it| it.path);
    files.filter(is_code).filter(theirs).collect()
}

pub fn command(program: &Path) -> String {
    format!("{} hook", super::reach::quoted(&program.to_string_lossy()))
}

/// Whether a hook's command calls us, wherever we lie.
fn is_our_command(command: &str) -> bool {
    (command.ends_with(" hook") || command.contains(" seat gemini-cli")) && command.contains("epitome")
}

/// A server of our name that we did not register, and would not know how to put back.
fn registered_by_hand(remedy: &str, path: &Path) -> Error {
    let what = format!("a server named epitome is registered by hand already; remove it first: {remedy}");
    Error::new(ErrorKind::Refused, what).at_path(path)
}

/// What to write by hand for clients that we do not edit: name, file and text.
pub fn snippet(client: &str, program: &Path) -> Option<(&'static str, String)> {
    let program = program.display().to_string();
    let args = json!(["serve", "--stdio"]);
    let pretty = |value: serde_json::Value| serde_json::to_string_pretty(&value).unwrap_or_default();
    Some(match client {
        "cursor" => {
            ("~/.cursor/mcp.json", pretty(json!({"mcpServers": {NAME: {"command": program, "args": args}}})))
        }
        "vscode" => (
            ".vscode/mcp.json",
            pretty(json!({"servers": {NAME: {"type": "stdio", "command": program, "args": args}}})),
        ),
        "zed" => (
            "~/.config/zed/settings.json",
            pretty(json!({"context_servers": {NAME: {"command": program, "args": args}}})),
        ),
        "goose" => (
            "~/.config/goose/config.yaml",
            format!(
                "extensions:\n  {NAME}:\n    name: {NAME}\n    type: stdio\n    cmd: {}\n    args: [serve, --stdio]\n    enabled: true\n    timeout: 300",
                json!(program)
            ),
        ),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
