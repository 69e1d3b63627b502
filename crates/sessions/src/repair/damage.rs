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
        "the last record is cut off: the agent skips it, and writes its next record behind it on the same line, which is lost too"
        "the fragment is removed"
    BrokenRecord "broken_record"
        "a line is not a JSON object: the agent skips it, and its child records may be lost with it"
        "the line is removed"
    JoinedRecords "joined_records"
        "several records stand on one line: the agent reads none of them"
        "each gets a line of its own"
    SplitRecord "split_record"
        "a line break stands unescaped in a record: the agent reads neither half"
        "the line break is escaped"
    Fragment "fragment"
        "a truncated record is on the same line as a complete one: the agent reads neither"
        "the fragment is removed, the whole record stays"
    NulBytes "nul_bytes"
        "NUL bytes stand among the records, as a crash of the system leaves them: the agent skips the line"
        "they are removed"
    BadUtf8 "bad_utf8"
        "bytes are no UTF-8: Codex skips the record, other agents show replacement characters"
        "each such byte becomes `?`"
    LoneSurrogate "lone_surrogate"
        "a lone surrogate (half an emoji) is escaped: APIs reject the request as invalid JSON, Codex skips the record"
        "it becomes the replacement character"
    ByteOrderMark "byte_order_mark"
        "the file begins with a byte order mark: agents do not read the first record"
        "it is removed"
    MissingHeader "missing_header"
        "the record that begins a session is missing: the agent does not open it"
        "it is made anew from what the other records and the file's name say"
    MissingOrdinal "missing_ordinal"
        "the last record has no ordinal: Codex does not open a session of numbered records without"
        "it gets the next one"
    UnknownParent "unknown_parent"
        "a record's parent is not in the file: not every version of the agent finds what came before it"
        "it is hung on the record before it"
    ParentCycle "parent_cycle"
        "records are each other's parents: not every version of the agent finds what came before them"
        "the first of them is hung on the record before it"
    DuplicateId "duplicate_id"
        "two records have one id: only one of them is read"
        "the second gets an id of its own"
    UnknownRewind "unknown_rewind"
        "a rewind names a message that is not in the file: the agent drops the whole history"
        "the rewind is removed"
    BadSet "bad_set"
        "the list of messages is no list: the agent does not open the session"
        "the record is removed; what stood before it counts"
    UnansweredCall "unanswered_call"
        "a call has no result, though the conversation went on: APIs refuse that for ever, agents drop the call"
        "a result is added that says there is no output"
    RunningTool "running_tool"
        "a tool call is marked as running, and nothing will finish it"
        "it is marked as interrupted"
    OrphanResult "orphan_result"
        "a result has no call: APIs refuse that for ever, agents drop the result"
        "a call without arguments is made for it; where none can stand, it becomes a text"
    DuplicateResult "duplicate_result"
        "a call has two results: APIs refuse that"
        "an equal one is removed, another gets a call of its own or becomes a text"
    DuplicateCall "duplicate_call"
        "two calls have one id: APIs refuse that"
        "the second call and its result get an id of their own"
    BadCallId "bad_call_id"
        "the id of a call has characters that the API refuses"
        "they become `_`, in its result too"
    BadToolName "bad_tool_name"
        "the name of a tool is empty, too long or has characters that the API refuses"
        "they become `_`"
    BadArguments "bad_arguments"
        "the arguments of a call are no JSON object: APIs refuse that"
        "they become one, what they said is in it"
    EmptyText "empty_text"
        "a text is empty: the API refuses that"
        "it is removed, or replaced by a note that it was empty if it is the only content"
    UnsignedThinking "unsigned_thinking"
        "thinking has no signature: the API takes none back without"
        "it is removed"
    SpoiltSignature "spoilt_signature"
        "what signs or encrypts a thought is cut: the API refuses the request"
        "the signature is removed, with the thought where that cannot stand without"
    ImageTooLarge "image_too_large"
        "an image is larger than the API takes: every request fails"
        "a note with a handle takes its place"
    ImageTooWide "image_too_wide"
        "an image has more pixels than the API takes: every request fails"
        "a note with a handle takes its place"
    ImageType "image_type"
        "an image is declared as another type than it is: the API refuses that"
        "its own type is declared"
    BrokenMedia "broken_media"
        "an attachment is empty, cut, or of a type that the API does not take"
        "a note with a handle takes its place"
    PdfTooLarge "pdf_too_large"
        "a PDF is larger, or has more pages, than the API takes: every request fails"
        "a note with a handle takes its place"
    RequestTooLarge "request_too_large"
        "all attachments together are more than the API takes in a request: every request fails"
        "notes with handles take the place of the oldest"
    RepeatedHistory "repeated_history"
        "the session contains its own history a second time: it is sent twice, or makes the file too large to resume"
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
