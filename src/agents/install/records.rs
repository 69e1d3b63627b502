//! The record of what installing created, so that uninstalling leaves nothing behind.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Made, MadeInFiles};
use history::error::{Error, ErrorKind, Result};

/// What installing created, by agent.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Records {
    pub agents: BTreeMap<String, MadeInFiles>,
    /// Folders created for any of the agents.
    folders: BTreeSet<String>,
}

/// The file of the record, in our data directory (`data` below).
const RECORDS: &str = "installed.json";

impl Records {
    /// Empty if nothing is installed, or the file cannot be parsed.
    pub fn read(data: &Path) -> Self {
        let text = std::fs::read_to_string(data.join(RECORDS)).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Adds what is created in an agent's files.
    pub(super) fn add(&mut self, agent: &str, made: &MadeInFiles) {
        let of_agent = self.agents.entry(agent.to_owned()).or_default();
        for (file, made) in made {
            let known = of_agent.entry(file.clone()).or_default();
            let new: Vec<Made> = made.iter().filter(|it| !known.contains(it)).cloned().collect();
            known.extend(new);
        }
    }

    /// Adds the folders that do not exist yet and have to be created for a file.
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

    /// Saves the record after a change, and removes created folders that are empty now.
    pub(super) fn settle(mut self, data: &Path) -> Result<()> {
        let path = data.join(RECORDS);
        if self.agents.is_empty() && path.exists() {
            std::fs::remove_file(&path)
                .map_err(|error| Error::new(ErrorKind::Io, RECORDING).at_path(&path).because(error))?;
        }
        // Reversed, subfolders come before their parents. Removing a folder that is not empty fails.
        for folder in self.folders.iter().rev() {
            let _ = std::fs::remove_dir(folder);
        }
        self.folders.retain(|it| Path::new(it).exists());
        if self.agents.is_empty() { Ok(()) } else { self.write(data) }
    }
}

/// What was being done, for an error.
const RECORDING: &str = "recording what is installed";
