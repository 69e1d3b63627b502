//! What a prompt contains besides what its author typed: logs and code, a web page, a transcript, the
//! preamble of a harness. Recognized by shape. Only what is typed is taken as the user's wishes.

use super::ascii_first::AsciiFirstRegex;
use super::cues::{CUES, Lowercased};
use super::{is_machine_output, sentences};

/// The kind of a part of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Region {
    Typed,
    /// A fenced block.
    Block,
    /// Its lines are code, not the user's words.
    Diff,
    /// Output of a program: its end matters as much as its beginning.
    Log,
    /// A conversation of others, or an earlier session.
    Transcript,
    /// A page or document: it may hold rules for the task, but for nothing beyond it.
    Document,
    /// What a harness writes to every model before and after the task.
    HarnessText,
    /// What a client writes around what the user typed: its prohibitions hold for the whole session.
    ClientText,
}

/// The speaker's name at the start of a line.
static SPEAKER: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)^\s*(?:\*\*|#+ )?\[?(?:(user|human|you)|assistant|ai|claude|chatgpt|gpt|gemini|codex|agent|bot|tool|system)",
    r"(?: \([^)]{1,40}\))?(?:\]|(?:\*\*)?\s*:(?:\*\*)?)(?:\s|$)",
));
/// The line that a chatbot's web page puts above its reply: `ChatGPT said:`, `Gemini a dit`.
static CHATBOT_SAID: AsciiFirstRegex = AsciiFirstRegex::new(
    r"^(?:ChatGPT|Gemini|Claude|Copilot|Grok) (?:said|a dit|dijo|disse|hat gesagt|ha detto|说|說|のメッセージ)\s?[:：]?\s*$",
);
/// The marks with which Gemini's app cites.
const CHATBOT_CITES: [&str; 2] = ["[cite: ", "[cite_start]"];
/// A shell prompt with a command: `❯ ls`, `$ ls`, `me@host:~$ ls`.
static SHELL_PROMPT: AsciiFirstRegex =
    AsciiFirstRegex::new(r"^(?:❯ |\$ [a-z./~]|[\w.-]+@[\w.-]+(?::\S*?| [^\s$%#]+)? ?[$%#] )\S*");
/// An exception with the name of its package: `java.io.IOException: Connection reset`.
static EXCEPTION: AsciiFirstRegex =
    AsciiFirstRegex::new(r"\b[a-z]\w*(?:\.[\w$]+)*\.[A-Z][\w$]*(?:Exception|Error): ");
/// How the preamble of a harness begins, which tells the model its role.
static PREAMBLE: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*(?:(?:setting|context|role|system)\b\W*)?(?:you are (?:an?|the) |your name is |you(?:'|’)re (?:an?|the) |act as )",
);
/// The line in which the text of a harness introduces the task.
static TASK: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)^\W*(?:(?:your |the |current )?(?:tasks?|objective|goal|issue|request|assignment|mission|problem(?: statement)?)(?:\b.{0,40})?[:*]*\W*$",
    r"|(?:your |the )?(?:task|objective|goal|issue|request|assignment|mission)\W*:",
    r"|(?:[^.\n]{1,160}\. )?your (?:current )?(?:task|job|goal) (?:is|here is)\b|we(?:'|’)?(?:re| are) (?:currently )?(?:solving|working on)\b)",
));

/// A heading over a harness's general instructions.
static MANUAL: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^(?:#+ *|\*\*)?(?:important |general )?(?:instructions|tips|guidelines|rules|response format|output format)\W*$",
);

/// The line of a web page that says when it appeared, or how long it takes to read.
static BYLINE: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"^\s*\d{4}年\d{1,2}月\d{1,2}日(?: \d{1,2}:\d{2})?(?: \S{1,12})?\s*$|^.{0,80}\b\d{1,2} min(?:utes?)? read\b",
    r"|(?i)^\W*(?:published|posted|updated) (?:on )?(?:[A-Z][a-z]{2,8} \d{1,2}, \d{4}|\d{4}-\d{2}-\d{2})\b",
));

/// Splits a text into regions, which together are the whole text.
pub(crate) fn regions(text: &str) -> Vec<(Region, &str)> {
    let lines = split_at_fences(text);
    let mut kinds = vec![Region::Typed; lines.len()];
    mark_logs(&lines, &mut kinds);
    mark_printed(&lines, &mut kinds);
    mark_exceptions(&lines, &mut kinds);
    mark_terminal(&lines, &mut kinds);
    mark_transcript(&lines, &mut kinds);
    mark_chatbot(&lines, &mut kinds);
    mark_document(&lines, &mut kinds);
    mark_diffs(&lines, &mut kinds);
    mark_blocks(&lines, &mut kinds);
    mark_harness_text(&lines, &mut kinds);
    mark_client_text(&lines, &mut kinds);
    let mut out: Vec<(Region, &str)> = Vec::new();
    let (mut from, mut at) = (0, 0);
    for (number, line) in lines.iter().enumerate() {
        at += line.len();
        if kinds.get(number + 1) != Some(&kinds[number]) {
            out.push((kinds[number], &text[from..at]));
            from = at;
        }
    }
    out
}

const FENCE: &str = "```";

/// The lines of a text, split also where a fence opens or closes within a line.
fn split_at_fences(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut open = false;
    for line in text.split_inclusive('\n') {
        let fenced = line.trim_start().starts_with(FENCE);
        // Text with a space after a closing fence is prose, not the name of a language.
        let at = line.find(FENCE).filter(|_| line.matches(FENCE).count() % 2 == 1);
        let (from, to) = match at {
            Some(at) if open => (0, at + FENCE.len()),
            Some(at) if !fenced => (at, line.len()),
            Some(_) | None => (0, line.len()),
        };
        open ^= at.is_some();
        let rest = &line[to..];
        let to = if rest.trim().contains(' ') { to } else { line.len() };
        out.extend([&line[..from], &line[from..to], &line[to..]].into_iter().filter(|it| !it.is_empty()));
    }
    out
}

/// A statement of SQL.
static SQL: AsciiFirstRegex = AsciiFirstRegex::new(
    r"^\s*(?:ALTER|CREATE|DROP|GRANT|INSERT|UPDATE|DELETE|SELECT) (?:[A-Z]+|\*|[\w.,]+ FROM)\b",
);

/// A comment that may be the user's.
static FORBIDS: AsciiFirstRegex = AsciiFirstRegex::new(r"(?i)\b(?:never|must|do not|don['’]?t)\b");

/// Marks fenced blocks, fences included, and the comments between statements of SQL.
fn mark_blocks(lines: &[&str], kinds: &mut [Region]) {
    let is_sql = lines.iter().filter(|it| SQL.is_match(it)).nth(2).is_some();
    let mut open = false;
    for (line, kind) in lines.iter().zip(kinds) {
        let fence = line.matches(FENCE).count() % 2 == 1;
        let comment = is_sql && line.trim_start().starts_with("--") && !FORBIDS.is_match(line);
        if open || fence || comment || line.trim_start().starts_with(FENCE) {
            *kind = Region::Block;
        }
        open ^= fence;
    }
}

/// Marks a diff from its header to its last line.
fn mark_diffs(lines: &[&str], kinds: &mut [Region]) {
    let heads = |it: &str| ["diff --git ", "@@ -", "=== DIFF"].iter().any(|head| it.starts_with(head));
    let goes_on = |it: &str| {
        it.trim().is_empty()
            || it.starts_with(['+', '-', ' ', '\t', '\\'])
            || it.starts_with("index ")
            || heads(it)
    };
    let Some(from) = lines.iter().position(|it| heads(it)) else { return };
    let from = lines[..from]
        .iter()
        .rposition(|it| !it.starts_with("--- ") && !it.starts_with("+++ "))
        .map_or(0, |it| it + 1);
    let mut to = from;
    for (at, line) in lines.iter().enumerate().skip(from) {
        if heads(line) || goes_on(line) && to == at {
            to = at + 1;
        }
    }
    kinds[from..to].fill(Region::Diff);
}

/// Marks runs of machine output: at least four lines that begin with a time or number, or eight of any kind.
fn mark_logs(lines: &[&str], kinds: &mut [Region]) {
    const STAMPED: usize = 4;
    const OTHERS: usize = 8;
    let stamped = |it: &str| {
        is_machine_output(it) && it.trim_start().starts_with(|c: char| "[(".contains(c) || c.is_ascii_digit())
    };
    let mut mark = |is: &dyn Fn(&str) -> bool, least: usize| {
        let mut from = None;
        for at in 0..=lines.len() {
            let here = lines.get(at).is_some_and(|it| it.trim().is_empty() && from.is_some() || is(it));
            match (here, from) {
                (true, None) => from = Some(at),
                (false, Some(start)) => {
                    let run = &lines[start..at];
                    if run.iter().filter(|it| !it.trim().is_empty()).count() >= least {
                        kinds[start..at].fill(if is_code(run) { Region::Block } else { Region::Log });
                    }
                    from = None;
                }
                (true, Some(_)) | (false, None) => {}
            }
        }
    };
    mark(&stamped, STAMPED);
    mark(&|it| is_machine_output(it) && !it.trim_end().ends_with(':'), OTHERS);
}

/// The prefix of the programs that `concurrently` runs, an option in a program's help, and its headings.
static CONCURRENT: AsciiFirstRegex = AsciiFirstRegex::new(r"^\s*\[(\d)\](?:\s|$)");
static OPTION: AsciiFirstRegex =
    AsciiFirstRegex::new(r"^\s*(?:-\w, )?--[a-z][\w-]+(?: \[[^\]]*\]| \w+)? {2,}\S");
static HELP: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?im)^\s*(?:usage|(?:global )?(?:flags|options)|commands):\s*$");

/// Marks what programs printed in a form that a list of the user's could have, where it is more than such a list: lines
/// of one program of several, options below the headings of a help, git's hints, and long tables with tabs.
fn mark_printed(lines: &[&str], kinds: &mut [Region]) {
    const PROGRAM_LINES: usize = 3;
    const ROWS: usize = 8;
    let program = |line: &str| CONCURRENT.captures(line)?.get(1)?.as_str().parse::<usize>().ok();
    let mut of_program = [0_usize; 10];
    lines.iter().filter_map(|it| program(it)).for_each(|it| of_program[it] += 1);
    let helps = lines.iter().any(|it| HELP.is_match(it));
    let row = |line: &str| line.matches('\t').count() >= 2;
    let hint = |line: &str| line.starts_with("hint: ");
    let of_git = lines.iter().filter(|it| hint(it)).count() > 1;
    let table = lines.iter().filter(|it| row(it)).count() >= ROWS;
    for (line, kind) in lines.iter().zip(kinds) {
        let printed = program(line).is_some_and(|it| of_program[it] >= PROGRAM_LINES)
            || helps && OPTION.is_match(line)
            || of_git && hint(line)
            || table && row(line);
        if printed {
            *kind = Region::Log;
        }
    }
}

/// Marks lines that an exception was pasted into, unless the line also gives an order.
fn mark_exceptions(lines: &[&str], kinds: &mut [Region]) {
    for (line, kind) in lines.iter().zip(kinds) {
        let Some(found) = EXCEPTION.find(line) else { continue };
        let before = Lowercased::of(&line[..found.start()]);
        let orders = [&CUES.forbid, &CUES.require, &CUES.prefer].iter().any(|it| it.is_in(&before));
        if !orders && !CUES.forbid.is_in(&Lowercased::of(&line[found.end()..])) {
            *kind = Region::Log;
        }
    }
}

/// Marks text copied from a terminal: a shell prompt and the output below it, up to a blank line or a
/// sentence. Commands without output are ones that the user wants to be run.
fn mark_terminal(lines: &[&str], kinds: &mut [Region]) {
    // Advice that git prints after a blank line.
    let of_git = |it: &str| GIT_ADVICE.iter().any(|advice| it.starts_with(advice));
    let typed = |it: &str| {
        let listed = it.starts_with(['-', '*']) || it.starts_with(|c: char| c.is_ascii_digit());
        let says = it.trim_end().ends_with(['.', '?', '!']) && it.split_whitespace().count() > 3;
        (listed || says) && !is_machine_output(it) && !of_git(it)
    };
    let mut marked = kinds.to_vec();
    let (mut within, mut printed) = (false, false);
    for (at, line) in lines.iter().enumerate() {
        let blank = line.trim().is_empty();
        let prompt = SHELL_PROMPT.is_match(line);
        let goes_on = if blank { lines.get(at + 1).is_some_and(|it| of_git(it)) } else { !typed(line) };
        within = prompt || within && goes_on;
        if within {
            marked[at] = Region::Log;
            printed |= !blank && !prompt;
        }
    }
    if printed {
        kinds.copy_from_slice(&marked);
    }
}

/// The last lines that git prints if it may not read a repository.
const GIT_ADVICE: [&str; 2] =
    ["Please make sure you have the correct access rights", "and the repository exists."];

/// Whether lines are code rather than program output: most end like statements or blocks.
fn is_code(lines: &[&str]) -> bool {
    let told: Vec<&str> = lines.iter().map(|it| it.trim_end()).filter(|it| !it.is_empty()).collect();
    let ends = |it: &&&str| it.ends_with(['{', '}', ';', ',', '>', '[', ']', '(']);
    told.iter().filter(ends).count() * 3 >= told.len() * 2
}

/// Marks a conversation between a user and a model, from its first speaker to the end or to a short last
/// paragraph.
fn mark_transcript(lines: &[&str], kinds: &mut [Region]) {
    /// Maximum bytes of a last paragraph that is taken as the request.
    const REQUEST: usize = 400;
    let speaks = |it: &&str| SPEAKER.captures(it).map(|it| it.get(1).is_some());
    let all: Vec<(usize, bool)> =
        lines.iter().enumerate().filter_map(|(at, it)| speaks(it).map(|user| (at, user))).collect();
    if !all.iter().any(|it| it.1) || all.iter().all(|it| it.1) {
        return;
    }
    let (from, last) = (all[0].0, all[all.len() - 1].0);
    let blank = lines
        .iter()
        .rposition(|it| !it.trim().is_empty())
        .and_then(|end| lines[..end].iter().rposition(|it| it.trim().is_empty()));
    let rest = |at: usize| lines[at..].iter().map(|it| it.len()).sum::<usize>();
    let to = blank.filter(|it| *it > last && rest(*it) <= REQUEST).unwrap_or(lines.len());
    kinds[from..to].fill(Region::Transcript);
}

/// Marks the pasted reply of a chatbot: from the line that names it to the end, except a short last paragraph that forbids
/// something; without such a line, from the first paragraph that cites to the last.
fn mark_chatbot(lines: &[&str], kinds: &mut [Region]) {
    /// Maximum bytes of a last paragraph that is taken as the user's.
    const REQUEST: usize = 400;
    /// One citation may be what the prompt is about.
    const CITATIONS: usize = 2;
    let blank = |at: &usize| lines[*at].trim().is_empty();
    if let Some(from) = lines.iter().position(|it| CHATBOT_SAID.is_match(it)) {
        let last = (from..lines.len()).rfind(|at| !blank(at)).and_then(|end| (from..end).rfind(blank));
        let forbids = |at: &usize| {
            let rest = lines[*at..].concat();
            let begins = |it: &&str| {
                let lower = Lowercased::of(it);
                CUES.forbid.around(&lower).is_some_and(|(before, _)| before.trim().is_empty())
            };
            rest.len() <= REQUEST && sentences(&rest).iter().any(begins)
        };
        let to = last.filter(forbids).unwrap_or(lines.len());
        kinds[from..to].fill(Region::Transcript);
        return;
    }
    // In code, the marks are what the prompt is about.
    let citations = |line: &str| -> usize {
        let prose = line.split('`').step_by(2);
        prose.map(|it| CHATBOT_CITES.iter().map(|mark| it.matches(mark).count()).sum::<usize>()).sum()
    };
    let cites = |at: &usize| citations(lines[*at]) > 0;
    let (first, last) = ((0..lines.len()).find(cites), (0..lines.len()).rfind(cites));
    if let (Some(first), Some(last)) = (first, last)
        && lines.iter().map(|it| citations(it)).sum::<usize>() >= CITATIONS
    {
        let from = (0..first).rfind(blank).map_or(0, |it| it + 1);
        let to = (last..lines.len()).find(blank).unwrap_or(lines.len());
        kinds[from..to].fill(Region::Transcript);
    }
}

/// Marks a document from a heading that follows a short introduction or `---`, and an article or forum page, which others
/// wrote.
fn mark_document(lines: &[&str], kinds: &mut [Region]) {
    /// Maximum bytes of the introduction.
    const INTRODUCED: usize = 400;
    /// Maximum bytes before the `---` that precedes a document.
    const RULED: usize = 6_000;
    /// Minimum lines with nothing but a button's label that make a text a forum page.
    const VOICES: usize = 3;
    /// Minimum bytes of an article, and its first lines, among which the date stands.
    const ARTICLE: usize = 2_000;
    const TOP: usize = 20;
    const BUTTONS: [&str; 8] =
        ["reply", "share", "upvote", "downvote", "award", "permalink", "more replies", "like"];
    // A harness's text with a task is left to `mark_harness_text`.
    let harness =
        lines.iter().take(8).any(|it| PREAMBLE.is_match(it)) && lines.iter().any(|it| TASK.is_match(it));
    let button = |it: &&&str| BUTTONS.iter().any(|known| it.trim().eq_ignore_ascii_case(known));
    let mut at = 0;
    let mut before = "";
    let heading = lines.iter().position(|line| {
        let heading = line.starts_with("# ") || line.starts_with("## ");
        let announced = before.ends_with([':', '：']) || before.contains(" below");
        let ruled = before == "---" && (1..=RULED).contains(&at) && !harness;
        let found = heading && (ruled || announced && at <= INTRODUCED);
        at += line.len();
        if !line.trim().is_empty() {
            before = line.trim_end();
        }
        found
    });
    // What the user typed before the page is a paragraph of its own.
    let blank = lines.iter().position(|it| it.trim().is_empty()).unwrap_or(0);
    let length: usize = lines.iter().map(|it| it.len()).sum();
    let article = length >= ARTICLE && lines.iter().take(TOP).any(|it| BYLINE.is_match(it));
    let page = article || lines.iter().filter(button).take(VOICES).count() == VOICES;
    let found =
        if page { Some((blank, Region::Transcript)) } else { heading.map(|it| (it, Region::Document)) };
    if let Some((from, of)) = found {
        kinds[from..].iter_mut().filter(|it| **it == Region::Typed).for_each(|it| *it = of);
    }
}

/// Marks what a harness writes before and after the task, if the text is long and begins with the model's role, or with
/// the task and general instructions after it.
fn mark_harness_text(lines: &[&str], kinds: &mut [Region]) {
    /// A text up to this length may be typed by a user. Bytes.
    const TYPED: usize = 1_500;
    let long = lines.iter().map(|it| it.len()).sum::<usize>() > TYPED;
    let first: String = lines.iter().filter(|it| !it.trim().is_empty()).take(2).copied().collect();
    let first = first.replace('\n', " ");
    let begins =
        PREAMBLE.is_match(&first) || TASK.is_match(&first) && lines.iter().any(|it| MANUAL.is_match(it));
    if !long || !begins {
        return;
    }
    let Some(task) = lines.iter().position(|it| TASK.is_match(it)) else { return };
    // If the line is only a heading, the task is below it.
    let alone = lines[task].trim_end().ends_with([':', '*']) || heading_level(lines[task]) > 0;
    let below =
        if alone { (task + 1..lines.len()).find(|at| !lines[*at].trim().is_empty()) } else { Some(task) };
    let below = below.unwrap_or(lines.len());
    let ends = |at: &usize| kinds[*at] != Region::Block && ends_task(lines[task], lines[*at]);
    let end = (below + 1..lines.len()).find(ends).unwrap_or(lines.len());
    for (at, kind) in kinds.iter_mut().enumerate() {
        if !(task..end).contains(&at) && matches!(kind, Region::Typed | Region::Block) {
            *kind = Region::HarnessText;
        }
    }
}

/// The tag of what Conductor writes before a prompt.
pub(crate) const CLIENT_TEXT: &str = "<system_instruction>";

/// Marks what Conductor writes before a prompt.
fn mark_client_text(lines: &[&str], kinds: &mut [Region]) {
    let is = |tag: &'static str| move |it: &&str| it.trim() == tag;
    let Some(from) = lines.iter().position(is(CLIENT_TEXT)) else { return };
    if let Some(length) = lines[from..].iter().position(is("</system_instruction>")) {
        kinds[from..=from + length].fill(Region::ClientText);
    }
}

/// Number of `#` of a heading whose title begins with a capital; 0 for other lines.
fn heading_level(line: &str) -> usize {
    let level = line.bytes().take_while(|it| *it == b'#').count();
    let title = line[level..].strip_prefix(' ').is_some_and(|it| it.starts_with(char::is_uppercase));
    if title { level } else { 0 }
}

/// Whether a line ends the task that begins with the line `task`. Headings within the task have another form.
fn ends_task(task: &str, line: &str) -> bool {
    let line = line.trim_end();
    let loud = line.ends_with(':') && line.len() > 4 && !line.contains(char::is_lowercase);
    let bold = line.starts_with("**") && (line.ends_with(":**") || line.ends_with("**:"));
    let heading = match heading_level(task) {
        0 => loud || bold,
        most => (1..=most).contains(&heading_level(line)),
    };
    heading || MANUAL.is_match(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let all = regions(text);
        assert_eq!(all.iter().map(|it| it.1).collect::<String>(), text);
        all.iter()
            .map(|it| format!("{:?}: {}", it.0, it.1.lines().next().unwrap_or_default()))
            .collect::<Vec<_>>()
            .join(" | ")
    }

    #[test]
    fn what_is_handed_over_is_told_by_its_shape() {
        for (text, expected) in [
            ("Mend the parser.\n\nNever touch x.", "Typed: Mend the parser."),
            (
                "Why did it say this?\n\nUser: sort the list\nAssistant: I will never sort it.\nUser: why\n\nExplain and fix it.",
                "Typed: Why did it say this? | Transcript: User: sort the list | Typed: ",
            ),
            (
                "It stops:\n(API pid=7) ERROR x\n(API pid=7) - For A: ensure b.\n(API pid=7) c\n(API pid=7) d\nwhy?",
                "Typed: It stops: | Log: (API pid=7) ERROR x | Typed: why?",
            ),
            ("User: is a class, and so is Owner:\nnothing else", "Typed: User: is a class, and so is Owner:"),
            ("See:\n```\nAssistant: a\n```\nthen go on", "Typed: See: | Block: ``` | Typed: then go on"),
            (
                "It hangs:\n[12:00:01] a\n[12:00:02] b\n[12:00:03] c\n[12:00:04] d\nwhy?",
                "Typed: It hangs: | Log: [12:00:01] a | Typed: why?",
            ),
            (
                "Make it like this:\nbody {\n  margin: 0;\n  color: red;\n}\ncanvas {\n  display: block;\n  top: 0;\n  left: 0;\n}\nbut darker",
                "Typed: Make it like this: | Block: body { | Typed: but darker",
            ),
            ("Implement this plan:\n\n# Plan\n\nAlways a.", "Typed: Implement this plan: | Document: # Plan"),
            (
                "Why?\n❯ git push\nfatal: no\n\nPlease make sure you have the correct access rights\n\nMend it.",
                "Typed: Why? | Log: ❯ git push | Typed: ",
            ),
            (
                "Fix it:\n$ npm test\nTypeError: a\nPlease mend src/a.ts, and never touch b.",
                "Typed: Fix it: | Log: $ npm test | Typed: Please mend src/a.ts, and never touch b.",
            ),
            ("Run these:\n$ npm i\n$ npm test\nand then always commit.", "Typed: Run these:"),
            (
                "<system_instruction>\nYou are in a workspace.\n</system_instruction>\n\nMend it.",
                "ClientText: <system_instruction> | Typed: ",
            ),
            (
                "Look at this change.\n\n=== DIFF: a.ts ===\n+// never do this\n \n+x();\n\nThen list what you find.",
                "Typed: Look at this change. | Diff: === DIFF: a.ts === | Typed: Then list what you find.",
            ),
            (
                "As context: ```Given a page\nyou must cap it``` do you agree to add one?\nfine",
                "Typed: As context:  | Block: ```Given a page | Typed:  do you agree to add one?",
            ),
            (
                "Assess what changed.\nGive your verdict.\n\n---\n\n# Roadmap\n\n- [ ] It must scale.",
                "Typed: Assess what changed. | Document: # Roadmap",
            ),
            (
                "You are an analyst.\nSay how the change fits the roadmap.\n\n---\n\n## Roadmap\n\n- It must scale.",
                "Typed: You are an analyst. | Document: ## Roadmap",
            ),
            (
                "I want the first one.\n\nChatGPT said:\nNever use the second.",
                "Typed: I want the first one. | Transcript: ChatGPT said:",
            ),
            (
                "Mend it.\n\nThe cause\nIt must resolve [cite: 2026-02-15].\n\nIt must wait [cite: 2026-02-15].\n\nNever skip it.",
                "Typed: Mend it. | Transcript: The cause | Typed: ",
            ),
            (
                "Remove `[cite: 1]` and `[cite: 2]`. Never skip one.",
                "Typed: Remove `[cite: 1]` and `[cite: 2]`. Never skip one.",
            ),
            (
                "ChatGPT said:\nDo a, then b.\n\nDo what it says. Never push.",
                "Transcript: ChatGPT said: | Typed: ",
            ),
            ("Nice idea\nReply\nShare\nI must say no\nReply\n", "Transcript: Nice idea"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
        let manual = "- Use one command at a time and wait for what it prints.\n".repeat(40);
        let article = "The operator must never leave the pump.\n".repeat(60);
        let text = format!("Sum this up.\n\nPumps\n2026年3月2日 10:34 浙江\n\n{article}");
        assert_eq!(shown(&text), "Typed: Sum this up. | Transcript: ");
        let text = format!(
            "SETTING: You are an autonomous programmer.\n{manual}\nISSUE:\nTimes are cut off.\n\nINSTRUCTIONS:\n{manual}"
        );
        assert_eq!(
            shown(&text),
            "HarnessText: SETTING: You are an autonomous programmer. | Typed: ISSUE: | HarnessText: INSTRUCTIONS:"
        );
        let text = format!(
            "We are working on the following issue:\nISSUE:\nTimes are cut off.\n### Steps\nCall it.\n```\nx = 1\n```\n\nINSTRUCTIONS:\n{manual}"
        );
        assert_eq!(
            shown(&text),
            "Typed: We are working on the following issue: | Block: ``` | Typed:  | HarnessText: INSTRUCTIONS:"
        );
        let text = format!(
            "# Context\n\nYour name is **Ada**.\n\n## Form\n{manual}\n```\nkind: note\n```\n\n## Tasks\n\nWork through docs/plan.md.\n"
        );
        assert_eq!(shown(&text), "HarnessText: # Context | Typed: ## Tasks");
        let text = format!(
            "You are a helper in a terminal. Your task is to describe this directory.\n\n**Steps:**\n{manual}"
        );
        assert_eq!(
            shown(&text),
            "Typed: You are a helper in a terminal. Your task is to describe this directory. | HarnessText: **Steps:**"
        );
        let text = format!("You are an expert.\n\nMend the loader.\n{manual}");
        assert_eq!(shown(&text), "Typed: You are an expert.");
    }
}
