//! A row of a transcript, and what of it decides about its place in the tree.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::assemble::Item;
use super::lenient::lenient;

/// What of a line decides about its place. A field of the wrong type counts as missing.
#[derive(Deserialize, Default)]
pub(super) struct Line<'a> {
    #[serde(rename = "type", default, deserialize_with = "lenient")]
    pub(super) kind: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) uuid: Option<String>,
    #[serde(rename = "parentUuid", default, deserialize_with = "lenient")]
    pub(super) parent: Option<String>,
    #[serde(rename = "sourceToolAssistantUUID", default, deserialize_with = "lenient")]
    pub(super) answers: Option<String>,
    #[serde(rename = "isSidechain", default, deserialize_with = "lenient")]
    pub(super) sidechain: Option<bool>,
    #[serde(rename = "isMeta", default, deserialize_with = "lenient")]
    pub(super) meta: Option<bool>,
    #[serde(rename = "isCompactSummary", default, deserialize_with = "lenient")]
    pub(super) summary: Option<bool>,
    #[serde(rename = "isApiErrorMessage", default, deserialize_with = "lenient")]
    pub(super) api_error: Option<bool>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) subtype: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) timestamp: Option<String>,
    #[serde(rename = "sessionId", default, deserialize_with = "lenient")]
    pub(super) session: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) cwd: Option<String>,
    #[serde(rename = "leafUuid", default, deserialize_with = "lenient")]
    pub(super) leaf: Option<String>,
    #[serde(rename = "compactMetadata", default, deserialize_with = "lenient")]
    pub(super) compact: Option<Box<Compact>>,
    #[serde(borrow, default)]
    pub(super) message: Option<&'a RawValue>,
}

/// `compactMetadata` of a boundary.
#[derive(Deserialize, Default)]
pub(super) struct Compact {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) trigger: Option<String>,
    #[serde(rename = "preTokens", default, deserialize_with = "lenient")]
    pub(super) before: Option<u64>,
    #[serde(rename = "postTokens", default, deserialize_with = "lenient")]
    pub(super) after: Option<u64>,
    #[serde(rename = "preservedSegment", default, deserialize_with = "lenient")]
    pub(super) segment: Option<Segment>,
    #[serde(rename = "preservedMessages", default, deserialize_with = "lenient")]
    pub(super) kept: Option<Kept>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Segment {
    pub(super) head_uuid: String,
    pub(super) anchor_uuid: String,
    pub(super) tail_uuid: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Kept {
    pub(super) anchor_uuid: String,
    pub(super) uuids: Vec<String>,
}

/// What of a row decides about its place.
#[derive(Default)]
pub(super) struct RowPlace<'a> {
    pub(super) kind: RowKind,
    pub(super) uuid: Cow<'a, str>,
    pub(super) parent: Option<Cow<'a, str>>,
    pub(super) answers: Option<Cow<'a, str>>,
    pub(super) sidechain: bool,
    pub(super) response: Option<Cow<'a, str>>,
    pub(super) at: Option<i64>,
    pub(super) session: Option<Cow<'a, str>>,
    pub(super) cwd: Option<Cow<'a, str>>,
    pub(super) compact: Option<Box<Compact>>,
}

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
    /// Where a compaction cut.
    Boundary,
    /// Anything else that others hang on.
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
    /// `message.id` of an assistant's row; one without is a response of its own.
    pub(super) response: Option<Arc<str>>,
    pub(super) at: Option<i64>,
    pub(super) cwd: Option<Arc<str>>,
    pub(super) compact: Option<Box<Compact>>,
    /// What it says, where that was kept while the line was looked at.
    pub(super) loaded: Option<Result<Loaded, String>>,
}

/// What a row says.
pub(super) struct Loaded {
    pub(super) item: Option<Box<Item>>,
    /// The model that answered.
    pub(super) model: Option<Arc<str>>,
}
