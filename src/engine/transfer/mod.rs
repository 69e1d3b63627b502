//! A session taken to another machine, or to another directory of this one, and what was archived of it.

pub(super) mod carry;
pub(super) mod container;
mod export;
mod import;
pub(super) mod moved;

use std::path::PathBuf;

use crate::agents::{self, AgentRef};
use crate::engine::Opened;
use crate::files::File;
use history::error::{Error, ErrorKind, Result};
use sessions::Format;

pub use export::export;
pub use import::{ImportTo, import};

/// The agent of a format, if its sessions can be moved as files.
fn movable(format: Format) -> Result<AgentRef> {
    let can = |it: &AgentRef| !it.info().directory_fields.is_empty();
    agents::of_format(format).filter(can).ok_or_else(|| {
        let names = agents::names(|it| can(&it));
        let what = format!("expected a session of {names}, found one of {}", format.name());
        Error::new(ErrorKind::Refused, what)
    })
}

/// The files that belong to a session, each with its path relative to the session's folder.
fn companion_files(agent: AgentRef, opened: &Opened) -> Result<Vec<(String, File)>> {
    let Some(path) = opened.path.as_deref().filter(|it| it.is_file()) else { return Ok(Vec::new()) };
    let folder = path.parent().unwrap_or(path);
    let inside = |it: &PathBuf| Some(it.strip_prefix(folder).ok()?.to_str()?.replace('\\', "/"));
    let files = agent.companion_files(path);
    files
        .iter()
        .filter_map(|it| Some((inside(it)?, it)))
        .map(|(name, it)| Ok((name, File::open(it)?)))
        .collect()
}
