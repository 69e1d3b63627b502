//! A row of a transcript, with the fields that decide its place in the tree.

use std::sync::Arc;

use super::assemble::RowItem;
use super::line::Compact;

/// What a row is, as far as the tree is concerned.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum RowKind {
    /// The user's, or the client's in the user's place.
    User { meta: bool, summary: bool, result: bool },
    /// One block of a response, or all of it.
    Assistant { api_error: bool },
    /// Text that the client adds.
    Attachment,
    /// A command that ran in the client, sent as the user's.
    LocalCommand,
    /// The boundary that a compaction writes.
    Boundary,
    /// Any other row that can be a parent.
    #[default]
    Link,
}

/// A row of the tree.
pub(super) struct Row {
    pub(super) record: u32,
    pub(super) line: u64,
    pub(super) kind: RowKind,
    pub(super) uuid: Arc<str>,
    pub(super) parent: Option<Arc<str>>,
    pub(super) answers: Option<Arc<str>>,
    pub(super) sidechain: bool,
    /// `message.id` of an assistant's row, or its uuid if it has none: it is a response of its own.
    pub(super) response: Option<Arc<str>>,
    pub(super) at: Option<i64>,
    pub(super) cwd: Option<Arc<str>>,
    /// Of a prompt: whether it was sent in plan mode.
    pub(super) planning: Option<bool>,
    pub(super) compact: Option<Box<Compact>>,
    /// Its content, if that was kept when the line was indexed.
    pub(super) loaded: Option<Result<Loaded, String>>,
}

/// The content of a row.
pub(super) struct Loaded {
    pub(super) item: Option<Box<RowItem>>,
    pub(super) model: Option<Arc<str>>,
}
