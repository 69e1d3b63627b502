//! The result of a compaction, for all callers.

use crate::answers::CompactAnswer;
use history::History;
use score::Score;

/// What a compaction came to: the answer for everybody, and the history for whoever goes on with it.
pub struct Compacted {
    pub answer: CompactAnswer,
    /// The new history, if there is one.
    pub history: Option<History>,
    /// What survived, if there is a new history.
    pub score: Option<Score>,
    /// The bytes, with [`To::Bytes`](super::To::Bytes).
    pub bytes: Option<Vec<u8>>,
    /// The summary that a model or the user wrote; [`Ask::written`](super::Ask::written) takes it back.
    pub written: Option<String>,
}

impl Compacted {
    /// Only what is said: nothing was made.
    pub(super) fn told(answer: CompactAnswer) -> Self {
        Self { answer, history: None, score: None, bytes: None, written: None }
    }
}
