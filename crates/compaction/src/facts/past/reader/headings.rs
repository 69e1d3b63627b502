//! Headings and labels of summaries, ours and other agents', as data.

use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::{FileOp, Topic};

/// Words in a heading, in lower case, by the topic of its section. A heading needs to contain only the beginning of a
/// word; the first match counts.
const SECTIONS: [(&str, Topic); 69] = [
    ("replies in earlier turns", Topic::Replies),
    ("analysis", Topic::Findings),
    ("critical context", Topic::Findings),
    ("important detail", Topic::Findings),
    ("user message", Topic::UserMessages),
    ("user said", Topic::UserMessages),
    ("last request", Topic::Last),
    ("last step", Topic::Current),
    ("not confirmed", Topic::Unconfirmed),
    ("asked for in this task", Topic::Directives),
    ("skills loaded", Topic::Skills),
    ("approved plan", Topic::Approved),
    ("still open", Topic::Open),
    ("pending", Topic::Open),
    ("next step", Topic::Open),
    ("next move", Topic::Open),
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
    ("untested", Topic::Untested),
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
    ("active", Topic::Active),
];

static HEADING: AsciiFirstRegex = AsciiFirstRegex::new(
    r"^(?:#{1,6}\s+(.+)|(\d{1,2})[.)]\s+\**([^:`]{3,60}?)\**:\**(?:\s+(.*))?|\*\*([^*:]{3,60}):?\*\*:?|<([a-zA-Z_][\w-]*)>|([A-Z][\w &/-]{2,40}):)\s*$",
);

pub(super) struct Heading<'a> {
    /// The word of [`SECTIONS`] that matched, and its topic; `None` for an unknown heading.
    pub(super) section: Option<(&'static str, Topic)>,
    /// In lower case.
    pub(super) title: String,
    /// Text after the heading on the same line.
    pub(super) rest: Option<&'a str>,
    /// 0 for an XML element, the number of `#` for Markdown, otherwise more than these.
    pub(super) level: usize,
    /// The number of a numbered heading without `#`.
    pub(super) number: Option<usize>,
}

/// Parses a line as a heading. `next`: the number that a heading without `#` would have; a line with another number is
/// a list item.
pub(super) fn parse_heading(lead: &str, next: Option<usize>) -> Option<Heading<'_>> {
    const BELOW: usize = 7;
    let found = HEADING.captures(lead)?;
    let number = found.get(2).and_then(|it| it.as_str().parse().ok());
    if number.is_some() && number != next {
        return None;
    }
    let title = [1, 3, 5, 6, 7].iter().find_map(|it| found.get(*it))?.as_str().to_lowercase();
    let begins = |word: &str| {
        let mut places = title.match_indices(word);
        places.any(|(at, _)| !title[..at].ends_with(char::is_alphanumeric))
    };
    let section = SECTIONS.iter().find(|it| begins(it.0)).copied();
    let sharps = lead.bytes().take_while(|it| *it == b'#').count();
    let level = match sharps {
        0 if lead.starts_with('<') => 0,
        0 => BELOW,
        sharps => sharps,
    };
    let rest = found.get(4).map(|it| it.as_str());
    // An unknown title is a heading only if the line is marked as one, not if it only ends with a colon.
    let certain = section.is_some() || level < BELOW || number.is_some() && rest.is_none();
    certain.then_some(Heading { section, title, rest, level, number })
}

/// Whether a line is a lettered title in bold, which below a heading with `#` is an item: `**B. Review and fixes:**`.
pub(super) fn is_lettered(lead: &str) -> bool {
    let title = lead.strip_prefix("**").map(str::as_bytes);
    title.is_some_and(|it| it.first().is_some_and(u8::is_ascii_alphabetic) && it.get(1) == Some(&b'.'))
}

/// An item that says that its section is empty: `(none)`, `No code errors encountered`.
pub(super) static SAYS_NONE: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)^\W*(?:none|n/a)\W*$|^\W*no (?:[a-z]+ ){0,3}(?:errors?|issues?|bugs?|problems?|failures?|blockers?|(?:user )?feedback)",
    r"(?: (?:were|was|have been|has been))?(?: (?:encountered|found|reported|received|seen|so far|yet))?(?: (?:in|during) (?:this|the) \w+)?(?:\. (?:all (?:[\w-]+ ){0,4}tests?|(?:the )?(?:full )?build(?: \([^)]*\))?) pass(?:ed|es)?)*\W*$",
));

/// Says how things stood when the summary was written.
pub(in crate::facts) static STATES: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)^\W*(?:(?:current|ongoing) (?:status|state|issue)|status)(?: \([^)]*\))?:|^\W*(?:potential|possible) causes?:|\(current\)|^\W*the (?:immediate|top|first) priority\b|^\W*the assistant (?:has|had) the\b",
    r"|\bcurrent(?:ly)? (?:issue|investigating)\b|\bbeing investigated\b|\bneeds? (?:\w+ )?investigation\b",
));

/// A step that only looks: as the next step, it was taken at once.
pub(in crate::facts) static LOOKS: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*(?:investigate|check|confirm|ensure|inspect|examine|look (?:at|into)|verify|navigate to|determine|find out|debug|use \S+ to (?:check|inspect|look))\b",
);

/// A next step that says that the work is complete.
pub(super) static ALL_COMPLETE: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*(?:the|all) (?:[\w-]+ ){0,3}(?:is|are|has been|have been) (?:now )?(?:fully |successfully )?(?:completed?|done|finished|ready)\b",
);

/// What a statement that all is done leaves out: "all but the manual".
pub(in crate::facts) static BUT_LEFT: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)\b(?:except|but|however|although|other than|apart from|remaining (?:is|are|work|tasks?|items?)|still)\b",
);

/// The text of a heading that is marked with `#`.
pub(super) fn heading_text(lead: &str) -> &str {
    lead.trim_start_matches('#').trim_matches(['*', ' '])
}

/// Suffix of a goal that only an earlier summary states, if the user has asked for more since.
pub(crate) const EARLIER: &str = " (from an earlier summary)";

/// Suffix of a goal that is the current request and stands in full after the summary.
pub(crate) const BELOW: &str = " (current request; full text below)";

/// Suffix of a request that a message after the summary replies to.
pub(crate) const ANSWERED_BELOW: &str = " (reply in the messages below)";

/// Suffix of a request that the last message after the summary replies to, saying what is left.
pub(crate) const REPLIED_BELOW: &str = " (the last message below is the reply; it says what remains)";

/// Suffix of the last step, if the messages after the summary go on with it.
pub(crate) const GOES_ON: &str = " (continues in the messages below)";

/// Beginning of the suffix of a last step after which the model called tools without a word. It ends with `)`; before
/// that, the last change and command may follow after a colon.
pub(crate) const MORE_DONE: &str = " (more work followed";

/// Suffix of a prohibition in a request before the current one, which was answered.
pub(crate) const OF_EARLIER_REQUEST: &str = " (of an earlier request)";

/// Suffix of the last step, if it ended its turn and the next request is a message after the summary.
pub(crate) const FOLLOWED: &str = " (the next request is in the messages below)";

/// Suffix of a goal that the model replied to before the next request; the number of the reply follows. Only
/// the reply says what is left.
pub(crate) const ANSWERED: &str = " (reply at [#";
/// As [`ANSWERED`], if the session no longer contains the reply; the number of a later message follows.
pub(crate) const ANSWERED_BEFORE: &str = " (reply before [#";
/// As [`ANSWERED`], if the next request came before any reply; the number of the next reply follows.
pub(crate) const ANSWERED_LATER: &str = " (no reply before the next request; later reply at [#";
/// The wording of [`ANSWERED`], [`ANSWERED_BEFORE`] and [`ANSWERED_BELOW`] in older summaries.
pub(in crate::facts) const ANSWERED_ONCE: [&str; 3] =
    [" (answered at [#", " (answered before [#", " (answered in the messages below)"];
/// The state of an error that a later success resolved.
pub(crate) const RESOLVED: &str = "resolved";
/// The state of an edit that did not fit, if the file was changed later.
pub(crate) const FILE_CHANGED: &str = "file changed";

/// Between the command of a check and what it reports, file by file.
pub(crate) const REPORTS: &str = " reported (only files not changed since)";

/// Before the command of the last check that was recognized, and the code that was edited after it.
pub(crate) const UNCHECKED: &str = "edited since `";
/// How older summaries said it: `` `npm test` last ran before the edits of a.ts ``.
pub(in crate::facts) const UNCHECKED_ONCE: &str = "` last ran before the edits of ";

/// What [`BELOW`] was in older summaries.
pub(in crate::facts) const BELOW_ONCE: &str = " (asked now, whole below)";

/// Suffixes that say how a line relates to the messages after it, now and in older summaries.
pub(in crate::facts) const SUFFIXES: [&str; 10] = [
    TOUCHED,
    REPORTED,
    EARLIER,
    FOLLOWED,
    GOES_ON,
    OF_EARLIER_REQUEST,
    REPLIED_BELOW,
    " (the messages below end with a reply, which tells what is left)",
    " (goes on in the messages below)",
    " (more was done since)",
];

/// Suffix of an open step whose files were changed after it was set.
pub(crate) const TOUCHED: &str = " (its files were changed since)";

/// Suffix of a finished step in whose files a check has reported errors since.
pub(crate) const REPORTED: &str = " (errors were reported in its files since)";

/// Label of commits in the summary; each follows with its hash, branch and subject.
pub(crate) const COMMITS: &str = "git commit → ok";

/// Mark of a reply; the number of the request's message and a colon follow.
pub(crate) const REPLY_TO: &str = "to #";

/// The text of a line without [`REPLY_TO`].
pub(super) fn reply(line: &str) -> &str {
    let marked = line.strip_prefix(REPLY_TO).and_then(|it| it.split_once(": "));
    marked.map_or(line, |it| it.1)
}

/// Beginnings, in lower case, of the lines that agents put around their summaries.
pub(super) const BOILERPLATE: [&str; 14] = [
    "from an earlier summary:",
    "findings before later work (may be outdated):",
    "reports of earlier turns (may be outdated):",
    "omitted for lack of space:",
    // Ours, in older summaries.
    "found before later work, as things stood then:",
    "reported in earlier turns, as things stood then:",
    "not listed:",
    "earlier conversation compacted:",
    "please continue the conversation",
    "if you need specific details",
    "this session is being continued",
    "turn context (split turn):",
    "continue the conversation from where",
    "read the full transcript",
];

/// Prefixes of a step: ours, then those of other agents.
pub(super) const STEP_MARKS: [(&str, Topic); 4] = [
    ("done: ", Topic::Done),
    ("doing: ", Topic::Active),
    ("open: ", Topic::Open),
    ("not confirmed: ", Topic::Unconfirmed),
];
pub(super) const STEP_BOXES: [(&str, Topic); 7] = [
    ("[done]", Topic::Done),
    ("[in progress]", Topic::Active),
    ("[todo]", Topic::Open),
    ("✅", Topic::Done),
    ("✓", Topic::Done),
    ("✔", Topic::Done),
    ("⏳", Topic::Active),
];

/// Words for file operations, in lower case; the first match counts.
pub(in crate::facts) const FILE_OPS: [(&str, FileOp); 28] = [
    ("read, changed since", FileOp::ReadThenChanged),
    ("created, edited", FileOp::CreatedThenEdited),
    ("edited earlier, read", FileOp::ReadAfterEdit),
    ("read, changes undone", FileOp::Restored),
    ("changed, committed", FileOp::Committed),
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
    ("mentioned", FileOp::Mentioned),
    // In older summaries.
    ("noted", FileOp::Mentioned),
];

/// The file operation that a text names.
pub(super) fn op_in(text: &str) -> Option<FileOp> {
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).filter(|it| !it.is_empty()).collect();
    FILE_OPS.iter().find(|(word, _)| words.contains(word)).map(|it| it.1)
}

const CLAUSE_STARTS: [char; 5] = [',', '(', '—', '–', ':'];
/// Words that may precede the word for the operation.
const FILLER_WORDS: [&str; 10] =
    ["now", "was", "is", "were", "has", "been", "already", "just", "also", "and"];
/// Words of a sentence about the future.
const FUTURE_WORDS: [&str; 6] = ["pending", "todo", "if", "wanted", "later", "planned"];

/// Words after "new" that mean the file itself; anything else that is new is inside the file.
const FILE_KINDS: [&str; 14] = [
    "file",
    "component",
    "module",
    "page",
    "script",
    "test",
    "tests",
    "class",
    "helper",
    "hook",
    "package",
    "service",
    "screen",
    "widget",
];

/// The operation that the words after a path state for that path: a clause begins with it, and no other path or name
/// follows as its object.
pub(super) fn op_of_path(rest: &str) -> Option<FileOp> {
    let lower = |it: &str| it.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    let sentences = rest.split([';', '\n']).flat_map(|it| it.split(". "));
    let real =
        sentences.filter(|it| !it.split_whitespace().any(|it| FUTURE_WORDS.contains(&lower(it).as_str())));
    real.flat_map(|it| it.split(CLAUSE_STARTS)).flat_map(|it| it.split(" - ")).find_map(|clause| {
        let clause = clause.trim_start_matches(['`', '*', ' ', '-', '.', '[']);
        let mut words = clause.split_whitespace().skip_while(|it| FILLER_WORDS.contains(&lower(it).as_str()));
        let word = lower(words.next()?);
        if word == "new" {
            let kind = words.next().map(lower).unwrap_or_default();
            return (kind.is_empty() || FILE_KINDS.contains(&kind.as_str())).then_some(FileOp::Created);
        }
        let op = FILE_OPS.iter().find(|it| it.0 == word)?.1;
        // Here the next word is the object: what was deleted or created.
        let other = words.next().is_some_and(|it| !it.starts_with(['(', '→']));
        let moves = matches!(op, FileOp::Deleted | FileOp::Renamed | FileOp::Created);
        (!(moves && other)).then_some(op)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_governs_the_path_before_it_or_nothing() {
        for (rest, expected) in [
            ("` (NEW) - reads a file", Some(FileOp::Created)),
            ("`: deleted (nobody called it)", Some(FileOp::Deleted)),
            ("/`: deleted `one.ts`, `two.ts`", None),
            ("` (label renamed \"Size\")", None),
            ("`: edited for the new margin", Some(FileOp::Edited)),
            ("` — the page, rewritten", Some(FileOp::Written)),
            ("`: fixed size (only if margins are wanted)", None),
            ("`: added later", None),
            ("`: to create", None),
            ("`: deletion pending", None),
            ("` — new, the hub of the docs", Some(FileOp::Created)),
            ("` — new component for the pump", Some(FileOp::Created)),
            ("` — rebuilt. New title, new `Support` group", None),
            ("`: half of it (`old` removal pending)", None),
        ] {
            assert_eq!(op_of_path(rest), expected, "{rest}");
        }
    }

    #[test]
    fn an_item_of_a_list_is_no_heading() {
        let topic = |lead, next| parse_heading(lead, next).and_then(|it| it.section).map(|it| it.1);
        assert_eq!(topic("4. **B** fixes in turn: one, two", Some(3)), None);
        assert_eq!(topic("4. Errors and fixes:", Some(4)), Some(Topic::Errors));
        assert_eq!(topic("### Active", None), Some(Topic::Active));
        assert_eq!(topic("<active_constraints>", None), Some(Topic::Constraints));
        assert_eq!(topic("### Interactive mode", None), None);
    }
}
