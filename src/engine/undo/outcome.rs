//! The result of an undo, and what its variants share.

use std::path::Path;

use crate::answers::RestoreStatus;
use crate::store::{Compaction, Handle};
use history::error::{Error, ErrorKind, Hint, Result};

pub(crate) struct Done {
    pub(crate) status: RestoreStatus,
    pub(crate) id: String,
    pub(crate) output: String,
    pub(crate) later: usize,
    pub(crate) warnings: Vec<String>,
}

/// The handle of the session that was compacted.
pub(crate) fn original_of(compaction: &Compaction) -> Result<&str> {
    compaction.original.as_ref().map(Handle::as_str).ok_or_else(|| {
        Error::new(ErrorKind::Store, "undoing: expected the original in the archive, found none")
    })
}

pub(crate) fn changed(path: &Path) -> Error {
    let what = "undoing: the session was changed since by more than later turns; undo those changes first (newest \
                first)";
    Error::new(ErrorKind::Changed, what).or_hint(Hint::RestoreCopy).at_path(path)
}
