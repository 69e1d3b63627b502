//! The result of an undo.

use std::path::Path;

use crate::answers::RestoreStatus;
use history::error::{Error, ErrorKind, Hint};

pub(crate) struct Done {
    pub(crate) status: RestoreStatus,
    pub(crate) id: String,
    pub(crate) output: String,
    pub(crate) later: usize,
    pub(crate) warnings: Vec<String>,
}

pub(crate) fn changed(path: &Path) -> Error {
    let what = "undoing: the session was changed since in other ways than by later turns; undo those first (newest \
                first)";
    Error::new(ErrorKind::Changed, what).or_hint(Hint::RestoreCopy).at_path(path)
}
