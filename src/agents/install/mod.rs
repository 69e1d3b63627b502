//! Registration: what we add to each agent's settings.
//!
//! ```text
//! Registration ─▶ plan::install ─▶ InstallPlan ─▶ apply::put_in ─▶ files, and records of what was created
//!                 plan::uninstall ◀──────────────────────────────────────────────────┘
//! ```
//!
//! **Invariants.** Installing twice changes nothing more. Uninstalling restores every byte, also where a file
//! or a section had to be created. Files that do not parse are refused, not repaired.

mod registration;
mod plan;
mod json;
mod toml;
mod status_line;
pub mod apply;
pub mod records;
mod state;
mod ours;
mod by_hand;

use std::path::Path;

use history::error::{Error, ErrorKind, Result};

pub use by_hand::snippet;
pub(super) use ours::{command, fill_program_path};
pub use plan::{FileChange, InstallPlan, InstallRequest, Made, MadeInFiles, install, uninstall};
pub(super) use registration::{MISSING_AND_REMINDER, REMINDER};
pub use registration::{Plugins, Registration, SeatSetting, SettingsStyle, StatusLineSetting};
pub use state::{expect_agent, has_seat, installed, other_seats, registered};
pub use status_line::other_status_line;

/// The name under which our server is registered.
pub const NAME: &str = "epitome";

/// The text of a settings file; `None` if it does not exist.
fn read_settings(path: &Path) -> Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && path.is_symlink() => {
            let what = "expected settings, found a symbolic link without a target; create its target or remove the link";
            Err(Error::new(ErrorKind::Input, what).at_path(path))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::new(ErrorKind::Input, "reading settings").at_path(path).because(error)),
    }
}

#[cfg(test)]
mod tests;
