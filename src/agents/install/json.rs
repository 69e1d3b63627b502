//! Settings in JSON: the server in a section, hooks listed by event.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::by_hand::registered_by_hand;
use super::ours::is_our_command;
use super::status_line::with_status_line;
use super::{
    FileChange, InstallRequest, Made, MadeInFiles, NAME, Registration, SeatSetting, SettingsStyle,
    read_settings,
};
use crate::agents::settings;
use history::error::{Error, ErrorKind, Result};

/// The files that installing changes, and what it creates in them.
#[derive(Default)]
pub(super) struct Edits {
    pub(super) files: BTreeMap<PathBuf, FileChange>,
    pub(super) made: MadeInFiles,
}

impl Edits {
    /// Adds the server to JSON settings.
    pub(super) fn server(
        &mut self,
        file: &Path,
        section: &str,
        entry: &Value,
        wanted: &InstallRequest,
        manual_removal: &str,
    ) -> Result<()> {
        let entry = entry.to_string();
        self.json(file, |text, made| {
            let text = section_of(text, &[], section, "{}", made)?;
            if settings::get(&text, &[section, NAME]) == Some(&entry) {
                return Some(text);
            }
            let text = settings::remove(&text, &[section, NAME]).unwrap_or(text);
            settings::insert(&text, &[section], NAME, &entry)
        })?;
        let before = self.files.get(file).and_then(|it| it.before.as_deref()).unwrap_or_default();
        if !wanted.entry_is_ours && settings::get(before, &[section, NAME]).is_some_and(|it| it != entry) {
            return Err(registered_by_hand(manual_removal, file));
        }
        Ok(())
    }

    /// Adds the hooks, the seat's setting and the status line to JSON settings.
    pub(super) fn hooks(
        &mut self,
        file: &Path,
        of: &Registration,
        hook: fn(program: &Path) -> Value,
        seat: &SeatSetting,
        wanted: &InstallRequest,
    ) -> Result<()> {
        self.json(file, |text, made| {
            let mut text = without_hooks(text, of);
            if wanted.hooks {
                for (event, _) in of.events {
                    text = with_hook(&text, event, &hook(&wanted.program), made)?;
                }
            }
            if wanted.seat {
                text = match seat {
                    SeatSetting::Switch(variable) => switched_on(&text, variable, made)?,
                    SeatSetting::Hook { event, hook } => {
                        with_hook(&text, event, &hook(&wanted.program), made)?
                    }
                };
            }
            with_status_line(text, of, wanted)
        })
    }

    /// Edits a JSON file that an earlier edit may have changed already, or that may not exist yet.
    fn json(&mut self, path: &Path, with: impl FnOnce(&str, &mut Vec<Made>) -> Option<String>) -> Result<()> {
        let made = self.made.entry(path.display().to_string()).or_default();
        let change = match self.files.remove(path) {
            Some(change) => change,
            None => {
                let before = read_settings(path)?;
                FileChange { path: path.to_owned(), after: before.clone(), before }
            }
        };
        let text = match &change.after {
            Some(text) if !text.trim().is_empty() => text.clone(),
            Some(blank) => {
                made.push(Made::Object(blank.clone()));
                "{}\n".to_owned()
            }
            None => {
                made.push(Made::File);
                "{}\n".to_owned()
            }
        };
        let at = || path.display().to_string();
        settings::check(&text).map_err(|error| error.at(at(), None))?;
        let odd =
            "expected objects and lists in their usual places, found something else; nothing was changed";
        let after = with(&text, made);
        let after = after.ok_or_else(|| Error::new(ErrorKind::Input, odd).at(at(), None))?;
        settings::check(&after).map_err(|error| error.at(at(), None))?;
        self.files.insert(path.to_owned(), FileChange { after: Some(after), ..change });
        Ok(())
    }
}

fn with_hook(text: &str, event: &str, hook: &Value, made: &mut Vec<Made>) -> Option<String> {
    let text = section_of(text, &[], "hooks", "{}", made)?;
    let text = section_of(&text, &["hooks"], event, "[]", made)?;
    settings::push(&text, &["hooks", event], &hook.to_string())
}

/// Settings with an environment variable set to `"1"`, unless the user has set it to anything.
fn switched_on(text: &str, variable: &str, made: &mut Vec<Made>) -> Option<String> {
    let text = section_of(text, &[], "env", "{}", made)?;
    if settings::get(&text, &["env", variable]).is_some() {
        return Some(text);
    }
    made.push(Made::Switch(vec!["env".to_owned(), variable.to_owned()]));
    settings::insert(&text, &["env"], variable, "\"1\"")
}

/// The text with a section of that name, created with the value `empty` if missing.
fn section_of(text: &str, path: &[&str], name: &str, empty: &str, made: &mut Vec<Made>) -> Option<String> {
    let whole = [path, &[name]].concat();
    if settings::get(text, &whole).is_some() {
        return Some(text.to_owned());
    }
    made.push(Made::Section(whole.iter().map(|it| (*it).to_owned()).collect()));
    settings::insert(text, path, name, empty)
}

pub(super) fn without_hooks(text: &str, of: &Registration) -> String {
    let seat = match &of.style {
        SettingsStyle::Json { seat: SeatSetting::Hook { event, .. }, .. } => Some(event),
        _ => None,
    };
    let mut text = text.to_owned();
    for event in of.events.iter().map(|it| &it.0).chain(seat) {
        text = settings::remove_elements(&text, &["hooks", event], is_ours);
    }
    text
}

/// Whether a hook entry runs epitome, whatever path it was installed at.
pub(super) fn is_ours(element: &str) -> bool {
    let commands = |it: &serde_json::Value| {
        let all = it["hooks"].as_array().cloned().unwrap_or_default();
        all.iter().any(|it| it["command"].as_str().is_some_and(is_our_command))
    };
    serde_json::from_str(element).is_ok_and(|it| commands(&it))
}
