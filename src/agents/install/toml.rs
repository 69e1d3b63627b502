//! Settings in TOML: a section for the server, lists of tables for the hooks.

use std::path::Path;

use super::by_hand::registered_by_hand;
use super::ours::{command, is_our_command};
use super::{FileChange, InstallRequest, Made, MadeInFiles, NAME, Registration, read_settings};
use crate::agents::settings::sections;
use history::error::{Error, ErrorKind, Result};

pub(super) fn toml_change(
    path: &Path,
    of: &Registration,
    wanted: &InstallRequest,
    made: &mut MadeInFiles,
) -> Result<FileChange> {
    let before = read_settings(path)?;
    if before.is_none() {
        made.entry(path.display().to_string()).or_default().push(Made::File);
    }
    let text = before.clone().unwrap_or_default();
    let refuse = |what: String| Error::new(ErrorKind::Input, what).at_path(path);
    let parsed = |text: &str| {
        let parsed = ::toml::from_str::<::toml::Table>(text.trim_start_matches('\u{feff}'));
        parsed.map_err(|error| refuse(format!("expected TOML, found: {}", error.message())))
    };
    let registered = |text: &str| Ok(parsed(text)?.get("mcp_servers").and_then(|it| it.get(NAME)).is_some());
    let ours = wanted.entry_is_ours || sections::is_framed(&text);
    if registered(&text)? && !ours {
        return Err(registered_by_hand(of.manual_removal, path));
    }
    let text = sections::remove(&text, is_our_section);
    // Still there after removing our sections: not ours (such as an inline table).
    if registered(&text)? {
        return Err(registered_by_hand(of.manual_removal, path));
    }
    let quoted = |text: &str| ::toml::Value::String(text.to_owned()).to_string();
    let program = wanted.program.display().to_string();
    let mut block =
        format!("[mcp_servers.{NAME}]\ncommand = {}\nargs = [\"serve\", \"--stdio\"]\n", quoted(&program));
    if wanted.hooks {
        let command = quoted(&command(&wanted.program));
        for (event, _) in of.events {
            block.push_str(&format!(
                "[[hooks.{event}]]\n[[hooks.{event}.hooks]]\ntype = \"command\"\ncommand = {command}\ntimeout = 10\n"
            ));
        }
    }
    let after = sections::append_block(&text, &block);
    parsed(&after).map_err(|error| {
        refuse(format!(
            "the existing settings cannot be extended ({}); add this by hand:\n{block}",
            error.detail()
        ))
    })?;
    Ok(FileChange { path: path.to_owned(), before, after: Some(after) })
}

/// Whether a section of TOML settings was put there by installing.
pub(super) fn is_our_section(path: &[String], text: &str) -> bool {
    path.starts_with(&["mcp_servers".to_owned(), NAME.to_owned()]) || is_our_hook(path, text)
}

pub(super) fn is_our_hook(path: &[String], text: &str) -> bool {
    let [hooks, event, list] = path else { return false };
    let Ok(parsed) = ::toml::from_str::<::toml::Table>(text) else { return false };
    let command =
        parsed.get(hooks).and_then(|it| it.get(event)).and_then(|it| it.get(list)?.get(0)?.get("command"));
    hooks == "hooks" && list == "hooks" && command.and_then(::toml::Value::as_str).is_some_and(is_our_command)
}
