//! The status line in an agent's JSON settings.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{InstallRequest, NAME, Registration, StatusLineSetting, read_settings};
use crate::agents::{Env, settings};

/// Settings with our status line, if wanted or installed before; a status line of the user's is kept.
pub(super) fn with_status_line(text: String, of: &Registration, wanted: &InstallRequest) -> Option<String> {
    let Some(StatusLineSetting { key, value }) = &of.status_line else { return Some(text) };
    let value = value(&wanted.program).to_string();
    let set = match settings::get(&text, &[key]) {
        Some(it) => it != value && is_our_status_line(it),
        None => wanted.status_line,
    };
    if !set {
        return Some(text);
    }
    let text = settings::remove(&text, &[key]).unwrap_or(text);
    settings::insert(&text, &[], key, &value)
}

pub(super) fn without_status_line(text: String, of: &Registration) -> String {
    match &of.status_line {
        Some(it) if settings::get(&text, &[it.key]).is_some_and(is_our_status_line) => {
            settings::remove(&text, &[it.key]).unwrap_or(text)
        }
        _ => text,
    }
}

fn is_our_status_line(value: &str) -> bool {
    let value: Option<Value> = serde_json::from_str(value).ok();
    let command = value.as_ref().and_then(|it| it["command"].as_str()).unwrap_or_default();
    command.ends_with(" statusline") && command.contains(NAME)
}

/// The settings file that configures a status line other than ours, if any.
pub fn other_status_line(env: &Env, config: &Path, of: &Registration) -> Option<PathBuf> {
    let key = of.status_line.as_ref()?.key;
    let (_, path) = (of.files)(env, config);
    let text = read_settings(&path).ok().flatten()?;
    settings::get(&text, &[key]).is_some_and(|it| !is_our_status_line(it)).then_some(path)
}
