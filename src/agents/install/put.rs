//! The changes put in place, all or none, with a record of what was made for them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{FileChange, Made, MadeInFiles};
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

/// Makes the changes. What is made for them is recorded first; if a change fails, that record is taken back.
pub fn put_in(data: &Path, agent: &str, changes: &[FileChange], made: MadeInFiles) -> Result<()> {
    writable(changes)?;
    let before = records(data);
    let mut after = before.clone();
    let of_agent = after.agents.entry(agent.to_owned()).or_default();
    for (file, made) in made {
        let known = of_agent.entry(file).or_default();
        known.extend(made.into_iter().filter(|it| !known.contains(it)).collect::<Vec<_>>());
    }
    let files = changes.iter().filter(|it| it.after.is_some()).map(|it| target(&it.path));
    for file in files.chain([data.join(RECORDS)]) {
        let folders = file.ancestors().skip(1).take_while(|it| !it.exists());
        after.folders.extend(folders.map(|it| it.display().to_string()));
    }
    write_records(data, &after)?;
    let done = apply(changes);
    if done.is_err() {
        after.agents = before.agents;
    }
    store_records(data, after)?;
    done
}

/// Makes the changes that take an agent's registration out, and removes the folders that were made for it.
pub fn take_out(data: &Path, agent: &str, changes: &[FileChange]) -> Result<()> {
    writable(changes)?;
    apply(changes)?;
    let mut all = records(data);
    all.agents.remove(agent);
    store_records(data, all)
}

pub fn records(data: &Path) -> Records {
    let text = std::fs::read_to_string(data.join(RECORDS)).unwrap_or_default();
    serde_json::from_str(&text).ok().or_else(|| of_texts(&text)).unwrap_or_default()
}

/// Records as they were written until 25 November 2026: what was made as a text each, folders as one more agent.
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

/// Notes what is installed after a change, and removes the folders of ours that are empty now.
fn store_records(data: &Path, mut records: Records) -> Result<()> {
    let path = data.join(RECORDS);
    if records.agents.is_empty() && path.exists() {
        std::fs::remove_file(&path)
            .map_err(|error| Error::new(ErrorKind::Io, RECORDING).at_path(&path).because(error))?;
    }
    // A folder sorts before those in it. Removing one that is not empty fails.
    for folder in records.folders.iter().rev() {
        let _ = std::fs::remove_dir(folder);
    }
    records.folders.retain(|it| Path::new(it).exists());
    if records.agents.is_empty() { Ok(()) } else { write_records(data, &records) }
}

fn write_records(data: &Path, records: &Records) -> Result<()> {
    let path = data.join(RECORDS);
    crate::files::make_folder(data, RECORDING)?;
    crate::files::install(&path, history::json::compact(records).as_bytes())
}

/// What an error of the file of records was about.
const RECORDING: &str = "recording what is installed";

pub fn differ(it: &&FileChange) -> bool {
    it.before != it.after
}

/// A link stays a link: what it points to is written.
fn target(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Fails if one of the files is read-only: checked for all before the first is changed.
fn writable(changes: &[FileChange]) -> Result<()> {
    for it in changes.iter().filter(differ) {
        let path = target(&it.path);
        let there = path.ancestors().find(|it| it.exists());
        let folder = path.ancestors().skip(1).find(|it| it.exists());
        let locked = |it: &&Path| std::fs::metadata(it).is_ok_and(|it| it.permissions().readonly());
        if let Some(locked) = there.into_iter().chain(folder).find(locked) {
            let what = format!(
                "writing settings: {} may not be written; nothing was changed; allow it (chmod u+w), or add by hand what \
                 --dry-run shows",
                locked.display()
            );
            return Err(Error::new(ErrorKind::Refused, what).at_path(&it.path));
        }
    }
    Ok(())
}

/// Makes all changes; if one fails, those before it are taken back.
fn apply(changes: &[FileChange]) -> Result<()> {
    let changes: Vec<&FileChange> = changes.iter().filter(differ).collect();
    for (number, it) in changes.iter().enumerate() {
        if let Err(error) = put(&it.path, it.before.as_deref(), it.after.as_deref()) {
            let back = |it: &&&FileChange| put(&it.path, it.after.as_deref(), it.before.as_deref()).is_err();
            let left: Vec<String> =
                changes[..number].iter().filter(back).map(|it| it.path.display().to_string()).collect();
            if left.is_empty() {
                return Err(error);
            }
            let what = format!("{}; could not be put back: {}", error.full(), left.join(", "));
            return Err(Error::new(error.kind(), what));
        }
    }
    Ok(())
}

/// Writes `after` to a file, or removes it. Fails if it no longer holds `before`: its agent may have written it since.
fn put(path: &Path, before: Option<&str>, after: Option<&str>) -> Result<()> {
    let fail = |error| Error::new(ErrorKind::Io, "writing settings").at_path(path).because(error);
    let now = match std::fs::read_to_string(path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(fail(error)),
    };
    if now.as_deref() != before {
        let what =
            "writing settings: expected the file as it was read, found it changed since; run this again";
        return Err(Error::new(ErrorKind::Changed, what).at_path(path));
    }
    match after {
        Some(text) => {
            let path = target(path);
            std::fs::create_dir_all(path.parent().unwrap_or(&path)).map_err(fail)?;
            crate::files::install(&path, text.as_bytes())
        }
        None if now.is_some() => std::fs::remove_file(path).map_err(fail),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_the_agent_wrote_meanwhile_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let change = |name: &str, before: Option<&str>, after: Option<&str>| FileChange {
            path: path(name),
            before: before.map(str::to_owned),
            after: after.map(str::to_owned),
        };
        let text = |name: &str| std::fs::read_to_string(path(name)).ok();
        std::fs::write(path("b"), "theirs").unwrap();
        for meanwhile in [change("b", Some("old"), Some("ours")), change("b", None, Some("ours"))] {
            let changes = [change("a", None, Some("ours")), meanwhile];
            let error = apply(&changes).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Changed);
            assert_eq!((text("a"), text("b").as_deref()), (None, Some("theirs")), "{error}");
        }
        // What was put in place first goes back, as far as it can.
        std::fs::create_dir(path("c")).unwrap();
        let changes =
            [change("a", None, Some("ours")), change("b", Some("theirs"), None), change("c", None, Some(""))];
        apply(&changes).unwrap_err();
        assert_eq!((text("a"), text("b").as_deref()), (None, Some("theirs")));
    }

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
