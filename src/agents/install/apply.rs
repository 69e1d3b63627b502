//! Applies changes, all or none, and records what was created for them.

use std::path::Path;

use super::records::Records;
use super::{FileChange, InstallPlan};
use crate::files::canonical;
use history::error::{Error, ErrorKind, Result};

/// Applies an installation. What it creates is recorded first, in our data directory `data`; if a change
/// fails, that record is undone.
pub fn put_in(data: &Path, agent: &str, plan: &InstallPlan) -> Result<()> {
    let changes = &plan.changes;
    writable(changes)?;
    let before = Records::read(data);
    let mut after = before.clone();
    after.add(agent, &plan.made);
    for it in changes.iter().filter(|it| it.after.is_some()) {
        after.add_folders_of(&canonical(&it.path));
    }
    after.write(data)?;
    let done = apply(changes);
    if done.is_err() {
        after.agents = before.agents;
    }
    after.settle(data)?;
    done
}

/// Applies an uninstallation, and removes the folders that were created for the agent.
pub fn take_out(data: &Path, agent: &str, changes: &[FileChange]) -> Result<()> {
    writable(changes)?;
    apply(changes)?;
    let mut all = Records::read(data);
    all.agents.remove(agent);
    all.settle(data)
}

pub fn differ(it: &&FileChange) -> bool {
    it.before != it.after
}

/// Fails if one of the files is read-only: checked for all before the first is changed.
fn writable(changes: &[FileChange]) -> Result<()> {
    for it in changes.iter().filter(differ) {
        let path = canonical(&it.path);
        let there = path.ancestors().find(|it| it.exists());
        let folder = path.ancestors().skip(1).find(|it| it.exists());
        let locked = |it: &&Path| std::fs::metadata(it).is_ok_and(|it| it.permissions().readonly());
        if let Some(locked) = there.into_iter().chain(folder).find(locked) {
            let what = format!(
                "writing settings: {} is not writable; nothing was changed; allow it (chmod u+w), or add by hand what \
                 --dry-run shows",
                locked.display()
            );
            return Err(Error::new(ErrorKind::Refused, what).at_path(&it.path));
        }
    }
    Ok(())
}

/// Makes all changes; if one fails, those already made are undone.
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
            let what = format!("{}; could not be restored: {}", error.full(), left.join(", "));
            return Err(Error::new(error.kind(), what));
        }
    }
    Ok(())
}

/// Writes `after` to a file, or removes it if `None`. Fails if the file's content is not `before`: the agent
/// may have written it since.
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
            // A symbolic link is kept: its target is written.
            let path = canonical(path);
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
        // Changes already made are undone, as far as possible.
        std::fs::create_dir(path("c")).unwrap();
        let changes =
            [change("a", None, Some("ours")), change("b", Some("theirs"), None), change("c", None, Some(""))];
        apply(&changes).unwrap_err();
        assert_eq!((text("a"), text("b").as_deref()), (None, Some("theirs")));
    }
}
