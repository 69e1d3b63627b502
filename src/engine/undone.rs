//! The result of an undo.

use std::path::Path;

use crate::answers::RestoreStatus;
use history::error::{Error, Kind};

pub(super) struct Done {
    pub(super) status: RestoreStatus,
    pub(super) id: String,
    pub(super) output: String,
    pub(super) later: usize,
    pub(super) warnings: Vec<String>,
}

pub(super) fn changed(path: &Path) -> Error {
    let what = "undoing: the session was changed since in other ways than by later turns; undo those first (newest first), or \
                restore the original with --out";
    Error::new(Kind::Changed, what).at(path.display().to_string(), None)
}
