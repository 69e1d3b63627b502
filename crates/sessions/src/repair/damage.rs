//! The kinds of damage: their names, why an agent fails on them, and what mends them.

use serde::{Serialize, Serializer};

macro_rules! damages {
    ($($variant:ident $name:literal $why:literal $mend:literal)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Damage { $(#[doc = $why] $variant),* }

        impl Damage {
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name used in JSON.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// How the agent or its API fails on it.
            pub fn why(self) -> &'static str {
                match self { $(Self::$variant => $why),* }
            }

            /// How the repair mends it.
            pub fn mend(self) -> &'static str {
                match self { $(Self::$variant => $mend),* }
            }
        }
    };
}

damages! {
    CutRecord "cut_record"
        "the last record is truncated: the agent skips it, and appends its next record to the same line, which is \
         lost too"
        "the fragment is removed"
    BrokenRecord "broken_record"
        "a line is not a JSON object: the agent skips it, and its child records may be lost with it"
        "the line is removed"
    JoinedRecords "joined_records"
        "several records are on one line: the agent reads none of them"
        "each gets its own line"
    SplitRecord "split_record"
        "a record contains an unescaped line break: the agent reads neither half"
        "the line break is escaped"
    Fragment "fragment"
        "a truncated record is on the same line as a complete one: the agent reads neither"
        "the fragment is removed, the complete record stays"
    NulBytes "nul_bytes"
        "there are NUL bytes among the records, as after a system crash: the agent skips the line"
        "they are removed"
    BadUtf8 "bad_utf8"
        "bytes are not valid UTF-8: Codex skips the record, other agents show replacement characters"
        "each such byte becomes `?`"
    LoneSurrogate "lone_surrogate"
        "a lone surrogate (half an emoji) is escaped: APIs reject the request as invalid JSON, Codex skips the record"
        "it becomes the replacement character"
    ByteOrderMark "byte_order_mark"
        "the file begins with a byte order mark: agents do not read the first record"
        "it is removed"
    MissingHeader "missing_header"
        "the first record of the session is missing: the agent does not open it"
        "it is rebuilt from the other records and the file name"
    MissingOrdinal "missing_ordinal"
        "the last record has no ordinal: Codex does not open a session of numbered records without it"
        "it gets the next ordinal"
    UnknownParent "unknown_parent"
        "a record's parent is not in the file: some versions of the agent do not find what came before it"
        "it becomes a child of the record before it"
    ParentCycle "parent_cycle"
        "records are each other's parents: some versions of the agent do not find what came before them"
        "the first of them becomes a child of the record before it"
    DuplicateId "duplicate_id"
        "two records have the same id: only one of them is read"
        "the second gets a new id"
    UnknownRewind "unknown_rewind"
        "a rewind names a message that is not in the file: the agent drops the whole history"
        "the rewind is removed"
    BadSet "bad_set"
        "the list of messages is not a list: the agent does not open the session"
        "the record is removed; the messages before it are used"
    UnansweredCall "unanswered_call"
        "a call has no result, though the conversation went on: APIs refuse every request, agents drop the call"
        "a result is added, which says that there is no output"
    RunningTool "running_tool"
        "a tool call is marked as running, and will never finish"
        "it is marked as interrupted"
    OrphanResult "orphan_result"
        "a result has no call: APIs refuse every request, agents drop the result"
        "a call without arguments is added for it; where that is not possible, the result becomes text"
    DuplicateResult "duplicate_result"
        "a call has two results: APIs refuse every request"
        "an identical one is removed, a different one gets its own call or becomes text"
    DuplicateCall "duplicate_call"
        "two calls have the same id: APIs refuse every request"
        "the second call and its result get a new id"
    BadCallId "bad_call_id"
        "the id of a call has characters that the API refuses"
        "they become `_`, also in its result"
    BadToolName "bad_tool_name"
        "the name of a tool is empty, too long or has characters that the API refuses"
        "they become `_`"
    BadArguments "bad_arguments"
        "the arguments of a call are not a JSON object: APIs refuse every request"
        "they become an object that contains what they said"
    EmptyText "empty_text"
        "a text is empty: the API refuses the request"
        "it is removed, or, if it is the only content, replaced by a note that it was empty"
    UnsignedThinking "unsigned_thinking"
        "thinking has no signature: the API accepts none without"
        "it is removed"
    SpoiltSignature "spoilt_signature"
        "the signature or encrypted text of thinking is truncated: the API refuses the request"
        "the signature is removed, and the thinking too if it is invalid without"
    ImageTooLarge "image_too_large"
        "an image is larger than the API accepts: every request fails"
        "a note with a handle takes its place"
    ImageTooWide "image_too_wide"
        "an image has more pixels than the API accepts: every request fails"
        "a note with a handle takes its place"
    ImageType "image_type"
        "an image is declared with the wrong type: the API refuses the request"
        "its actual type is declared"
    BrokenMedia "broken_media"
        "an attachment is empty, truncated, or of a type that the API does not accept"
        "a note with a handle takes its place"
    PdfTooLarge "pdf_too_large"
        "a PDF is larger, or has more pages, than the API accepts: every request fails"
        "a note with a handle takes its place"
    RequestTooLarge "request_too_large"
        "all attachments together exceed what the API accepts in a request: every request fails"
        "notes with handles replace the oldest ones"
    RepeatedHistory "repeated_history"
        "the session contains its own history twice: it is sent twice, or makes the file too large to resume"
        "the repetition is removed"
}

impl Serialize for Damage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = Damage::ALL.iter().map(|it| it.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Damage::ALL.len());
    }
}
