//! What headings and labels of summaries stand for, ours and other agents', as data.

use crate::facts::{FileOp, Topic};

/// Words in a heading, in lower case, that tell what its section holds. The first that fits counts.
pub(in crate::facts) const SECTIONS: [(&str, Topic); 61] = [
    ("analysis", Topic::Findings),
    ("user message", Topic::UserMessages),
    ("user said", Topic::UserMessages),
    ("last request", Topic::Last),
    ("last step", Topic::Current),
    ("not confirmed", Topic::Unconfirmed),
    ("asked for in this task", Topic::Directives),
    ("still open", Topic::Open),
    ("pending", Topic::Open),
    ("next step", Topic::Open),
    ("remaining", Topic::Open),
    ("to do", Topic::Open),
    ("todo", Topic::Open),
    ("current_plan", Topic::Open),
    ("plan", Topic::Open),
    ("task", Topic::Open),
    ("in progress", Topic::Active),
    ("current work", Topic::Current),
    ("current state", Topic::Current),
    ("state of", Topic::Current),
    ("current", Topic::Current),
    ("request", Topic::Goal),
    ("goal", Topic::Goal),
    ("intent", Topic::Goal),
    ("objective", Topic::Goal),
    ("constraint", Topic::Constraints),
    ("must hold", Topic::Constraints),
    ("instruction", Topic::Constraints),
    ("preference", Topic::Constraints),
    ("rules", Topic::Constraints),
    ("decision", Topic::Decisions),
    ("decided", Topic::Decisions),
    ("chosen", Topic::Decisions),
    ("error", Topic::Errors),
    ("bug", Topic::Errors),
    ("fixes", Topic::Errors),
    ("command", Topic::Commands),
    ("artifact", Topic::Files),
    ("file", Topic::Files),
    ("code section", Topic::Files),
    ("given up", Topic::Tried),
    ("tried", Topic::Tried),
    ("approach", Topic::Tried),
    ("problem solving", Topic::Findings),
    ("test", Topic::Untested),
    ("identifier", Topic::Identifiers),
    ("name", Topic::Identifiers),
    ("reference", Topic::Identifiers),
    ("setup", Topic::Setup),
    ("environment", Topic::Setup),
    ("build", Topic::Setup),
    ("accomplished", Topic::Done),
    ("completed", Topic::Done),
    ("recent_actions", Topic::Done),
    ("progress", Topic::Done),
    ("done", Topic::Done),
    ("discover", Topic::Findings),
    ("key_knowledge", Topic::Findings),
    ("knowledge", Topic::Findings),
    ("concept", Topic::Findings),
    ("finding", Topic::Findings),
];

/// How the line of a goal says that it was answered, up to the number of the message that reports it.
pub(crate) const ANSWERED: &str = " (answered at [#";

/// Words that say what was done to a file, in lower case; the first that fits counts.
pub(in crate::facts) const DEEDS: [(&str, FileOp); 25] = [
    ("created, edited", FileOp::CreatedThenEdited),
    ("edited earlier, read", FileOp::ReadAfterEdit),
    ("read, changes undone", FileOp::Restored),
    ("rewritten", FileOp::Written),
    ("written", FileOp::Written),
    ("deleted", FileOp::Deleted),
    ("removed", FileOp::Deleted),
    ("renamed", FileOp::Renamed),
    ("moved", FileOp::Renamed),
    ("created", FileOp::Created),
    ("modified", FileOp::Edited),
    ("edited", FileOp::Edited),
    ("updated", FileOp::Edited),
    ("changed", FileOp::Edited),
    ("added", FileOp::Edited),
    ("fixed", FileOp::Edited),
    ("replaced", FileOp::Edited),
    ("simplified", FileOp::Edited),
    ("refactored", FileOp::Edited),
    ("extended", FileOp::Edited),
    ("rewrote", FileOp::Written),
    ("enhanced", FileOp::Edited),
    ("started", FileOp::Edited),
    ("read", FileOp::Read),
    ("noted", FileOp::Mentioned),
];

/// What the words after a path say was done to it.
pub(in crate::facts) fn told(text: &str) -> Option<FileOp> {
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).filter(|it| !it.is_empty()).collect();
    DEEDS.iter().find(|(word, _)| words.contains(word)).map(|it| it.1)
}
