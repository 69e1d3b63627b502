//! The record of what installing made, by which uninstalling leaves nothing behind.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Made, MadeInFiles};
use history::error::{Error, ErrorKind, Result};

/// What installing made.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Records {
    pub agents: BTreeMap<String, MadeInFiles>,
    /// Folders that it made, for any of them.
    folders: BTreeSet<String>,
}

/// The file that holds it, in our data directory (`data` below).
const RECORDS: &str = "installed.json";

impl Records {
    /// Empty where nothing is installed, or the file is not one of ours.
    pub fn read(data: &Path) -> Self {
        let text = std::fs::read_to_string(data.join(RECORDS)).unwrap_or_default();
        serde_json::from_str(&text).ok().or_else(|| of_texts(&text)).unwrap_or_default()
    }

    /// Adds what is made in an agent's files.
    pub(super) fn add(&mut self, agent: &str, made: &MadeInFiles) {
        let of_agent = self.agents.entry(agent.to_owned()).or_default();
        for (file, made) in made {
            let known = of_agent.entry(file.clone()).or_default();
            let new: Vec<Made> = made.iter().filter(|it| !known.contains(it)).cloned().collect();
            known.extend(new);
        }
    }

    /// Adds the folders that have to be made for a file.
    pub(super) fn add_folders_of(&mut self, file: &Path) {
        let folders = file.ancestors().skip(1).take_while(|it| !it.exists());
        self.folders.extend(folders.map(|it| it.display().to_string()));
    }

    pub(super) fn write(&mut self, data: &Path) -> Result<()> {
        let path = data.join(RECORDS);
        self.add_folders_of(&path);
        crate::files::make_folder(data, RECORDING)?;
        crate::files::install(&path, history::json::compact(self).as_bytes())
    }

    /// Notes what is installed after a change, and removes the folders of ours that are empty now.
    pub(super) fn settle(mut self, data: &Path) -> Result<()> {
        let path = data.join(RECORDS);
        if self.agents.is_empty() && path.exists() {
            std::fs::remove_file(&path)
                .map_err(|error| Error::new(ErrorKind::Io, RECORDING).at_path(&path).because(error))?;
        }
        // A folder sorts before those in it. Removing one that is not empty fails.
        for folder in self.folders.iter().rev() {
            let _ = std::fs::remove_dir(folder);
        }
        self.folders.retain(|it| Path::new(it).exists());
        if self.agents.is_empty() { Ok(()) } else { self.write(data) }
    }
}

/// Records as written until 25 November 2026: each thing made is a text, and the folders are under one more agent.
fn of_texts(text: &str) -> Option<Records> {
    let mut agents: BTreeMap<String, BTreeMap<String, Vec<String>>> = serde_json::from_str(text).ok()?;
    let folders = agents.remove("folders").unwrap_or_default().into_keys().collect();
    let keys = |it: &str| it.split('/').map(str::to_owned).collect();
    let made = |it: String| match (it.strip_prefix("{}"), it.strip_prefix('=')) {
        _ if it.is_empty() => Made::File,
        (Some(blank), _) => Made::Object(blank.to_owned()),
        (None, Some(switch)) => Made::Switch(keys(switch)),
        (None, None) => Made::Section(keys(&it)),
    };
    let in_files = |files: BTreeMap<String, Vec<String>>| {
        files.into_iter().map(|(file, all)| (file, all.into_iter().map(made).collect())).collect()
    };
    Some(Records { agents: agents.into_iter().map(|(agent, it)| (agent, in_files(it))).collect(), folders })
}

/// What an error of the file of records was about.
const RECORDING: &str = "recording what is installed";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_an_earlier_day_are_read() {
        let text = r#"{"codex":{"/h/c.toml":[""]},"folders":{"/h/.epitome":[]},
            "gemini-cli":{"/h/s.json":["{}\n","mcpServers/a","=env/X"]}}"#;
        let records = of_texts(text).unwrap();
        let keys = |it: &[&str]| it.iter().map(|it| (*it).to_owned()).collect();
        let made = [
            Made::Object("\n".into()),
            Made::Section(keys(&["mcpServers", "a"])),
            Made::Switch(keys(&["env", "X"])),
        ];
        assert_eq!(records.agents["gemini-cli"]["/h/s.json"], made);
        assert_eq!(records.agents["codex"]["/h/c.toml"], [Made::File]);
        assert_eq!(records.folders, BTreeSet::from(["/h/.epitome".to_owned()]));
    }
}
