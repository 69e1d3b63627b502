//! Which parts of a text are somebody's own words: prose cut into sentences, without code, logs, diffs and quotations.
//! All results are slices of the text, so that quotes are verbatim.

pub(crate) mod ascii_first;
pub(in crate::facts) mod cues;
pub(crate) mod regions;

use ascii_first::AsciiFirstRegex;

/// Elements that clients insert in a user message.
const INJECTED: [&str; 19] = [
    "system-reminder",
    "ide_opened_file",
    "ide_selection",
    "command-name",
    "command-message",
    "command-contents",
    "local-command-stdout",
    "local-command-caveat",
    "environment_context",
    "environment_details",
    "user_instructions",
    "task-notification",
    "ci-monitor-event",
    "teammate-message",
    "agent-message",
    "subagent_notification",
    "turn_aborted",
    "skill",
    "oai-mem-citation",
];

/// Markers between which Codex shows its reviewing model another session, one text for each entry. The
/// entries of that session's user count as the user's words.
const TRANSCRIPTS: [[&str; 2]; 2] = [
    [">>> TRANSCRIPT START\n", ">>> TRANSCRIPT END\n"],
    [">>> TRANSCRIPT DELTA START\n", ">>> TRANSCRIPT DELTA END\n"],
];

/// Markers between which Gemini CLI quotes the files that a prompt names; the second may be missing.
const REFERENCED: [&str; 2] = ["--- Content from referenced files ---", "--- End of content ---"];

/// How the last lines of Spec Kit's templates begin.
const TEMPLATE_ENDS: [&str; 5] = [
    "- \"Redis cache hit rate above 80%\"",
    "Context for prioritization: ",
    "- ERROR on gate failures",
    "- **Final Phase**: ",
    "Note: This command assumes a complete task breakdown",
];

/// What the user typed behind a command of Spec Kit, around which Codex sends the command's template, and the template.
fn spec_kit(text: &str) -> Option<(&str, &str)> {
    let block =
        behind_ide(text).trim_start().strip_prefix("## User Input")?.trim_start().strip_prefix("```text")?;
    let (typed, template) = block.split_once("\n```")?;
    let is_template = template.trim_start().starts_with("You **MUST** consider the user input");
    // Codex's editor extension does not fill in the template: what was typed follows it.
    let follows = || {
        let end = TEMPLATE_ENDS.iter().filter_map(|it| template.rfind(it)).max();
        let listed =
            || template.rmatch_indices('\n').find(|it| has_marker(template[it.0 + 1..].trim_start()));
        let rest = &template[end.or_else(|| Some(listed()?.0 + 1)).unwrap_or(template.len())..];
        rest.split_once('\n').map_or("", |it| it.1)
    };
    let typed = if typed.trim() == "$ARGUMENTS" { follows() } else { typed };
    is_template.then(|| (typed.trim(), template))
}

/// The request, before which Codex's editor extension puts the editor's state.
fn behind_ide(text: &str) -> &str {
    text.split_once("## My request for Codex:\n").map_or(text, |it| it.1)
}

/// Whether a text is the template of a command of Spec Kit without arguments.
pub(in crate::facts) fn is_bare_spec_kit(text: &str) -> bool {
    spec_kit(text).is_some_and(|(typed, _)| typed.is_empty())
}

/// What the user typed behind a command of Spec Kit; of a command without arguments, the template's first sentence.
fn spec_kit_request(text: &str) -> Option<&str> {
    let (typed, template) = spec_kit(text)?;
    let first = || {
        let (_, body) = template.split_once("\n## ")?.1.split_once('\n')?;
        let line = body.trim_start().lines().next()?;
        let is_number = |it: &str| it.bytes().all(|it| it.is_ascii_digit());
        let line = line.split_once(". ").filter(|it| is_number(it.0)).map_or(line, |it| it.1);
        line.split(". ").next()
    };
    if typed.is_empty() { first() } else { Some(typed) }
}

/// Of the template that OpenCode sends for `/init`, the first sentence, which says what is asked, and what the user typed
/// behind the command; any other text as it is.
fn of_opencode_init(text: &str) -> Vec<&str> {
    const FIRST: &str = "Create or update `AGENTS.md` for this repository.";
    let parts = || {
        let template = text.trim_start().strip_prefix(FIRST)?;
        let (_, rest) = template.split_once("User-provided focus or constraints (honor these):")?;
        let typed = rest.split_once("## How to investigate")?.0.trim();
        Some([&text.trim_start()[..FIRST.len()], typed])
    };
    parts().map_or(vec![text], |it| it.into_iter().filter(|it| !it.is_empty()).collect())
}

/// What the user wrote in the texts of a message: without injected elements, and of a transcript only the
/// user's entries.
pub(in crate::facts) fn user_text<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    // Claude Code wraps the arguments of a slash command in an element.
    let request = |it: &'a str| {
        let typed =
            it.trim_start().starts_with("<command-").then(|| it.split_once("<command-args>")).flatten();
        typed.and_then(|it| it.1.split_once("</command-args>")).map_or(behind_ide(it), |it| it.0)
    };
    let mut referenced = false;
    let typed = |it: &&'a str| {
        let begins = it.trim() == REFERENCED[0];
        let ends = it.trim() == REFERENCED[1];
        let within = referenced || begins;
        referenced = within && !ends;
        !within && !is_mark_of_image(it)
    };
    let texts = texts.filter(typed);
    let request = |it: &'a str| spec_kit_request(it).unwrap_or_else(|| request(it));
    let texts: Vec<&str> = texts
        .flat_map(assigned)
        .flat_map(of_opencode_init)
        .map(unquoted)
        .map(request)
        .map(without_header)
        .collect();
    let mut out = Vec::new();
    for [start, end] in TRANSCRIPTS {
        let from = texts.iter().enumerate().find_map(|(at, it)| Some((at, it.find(start)?)));
        // The last end marker: the transcript may contain one itself.
        let to = texts.iter().enumerate().rev().find_map(|(at, it)| Some((at, it.rfind(end)? + end.len())));
        if let (Some(from), Some(to)) = (from, to)
            && from < to
        {
            texts[..from.0].iter().for_each(|it| without_elements(it, &mut out));
            without_elements(&texts[from.0][..from.1], &mut out);
            let mut by_user = false;
            for text in texts.get(from.0 + 1..to.0).unwrap_or_default() {
                let entry = text.trim_start().strip_prefix('[').and_then(|it| it.split_once("] "));
                let entry = entry.filter(|(number, _)| number.bytes().all(|it| it.is_ascii_digit()));
                let said = entry.map(|(_, said)| said.strip_prefix("user: "));
                by_user = said.map_or(by_user, |it| it.is_some());
                if by_user {
                    without_elements(said.flatten().unwrap_or(text), &mut out);
                }
            }
            without_elements(&texts[to.0][to.1..], &mut out);
            texts[to.0 + 1..].iter().for_each(|it| without_elements(it, &mut out));
            return out;
        }
    }
    texts.iter().for_each(|it| without_elements(it, &mut out));
    out
}

/// Whether a text is only the tag of an image beside it (Codex).
fn is_mark_of_image(text: &str) -> bool {
    let text = text.trim();
    text == "</image>" || text.starts_with("<image name=") && text.ends_with('>') && !text.contains('\n')
}

/// A prompt without the quotes that `opencode run` puts around an argument with spaces, escaping those
/// inside.
fn unquoted(text: &str) -> &str {
    let inner = text.trim().strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    let is_escaped = |it: &str| it.match_indices('"').all(|(at, _)| it[..at].ends_with('\\'));
    inner.filter(|it| it.contains(' ') && is_escaped(it)).unwrap_or(text)
}

/// The name of a slash command that Claude Code sends as elements, with its slash.
pub(in crate::facts) fn slash_command(text: &str) -> Option<&str> {
    let command = Some(text).filter(|it| it.trim_start().starts_with("<command-"))?;
    Some(command.split_once("<command-name>")?.1.split_once("</command-name>")?.0.trim())
}

/// Whether a line is the name of a slash command and nothing else.
pub(crate) fn is_slash_command(line: &str) -> bool {
    line.strip_prefix('/').is_some_and(|it| !it.is_empty() && !it.contains([' ', '/', '"']))
}

/// The requests in messages from the lead of a Claude Code agent team; any other text as it is.
fn assigned<'a>(text: &'a str) -> Vec<&'a str> {
    const FROM_LEAD: &str = "<teammate-message teammate_id=\"team-lead\"";
    if !text.trim_start().starts_with(FROM_LEAD) {
        return vec![text];
    }
    let body = |it: &'a str| {
        let body = it.split_once('>')?.1.split("</teammate-message>").next()?.trim();
        if !body.starts_with('{') {
            return Some(body);
        }
        let task = body.strip_prefix(r#"{"type":"task_assignment""#)?.split_once(r#""subject":""#)?.1;
        Some(task.split_once(r#"",""#).map_or(task, |it| it.0))
    };
    text.split(FROM_LEAD).skip(1).filter_map(body).collect()
}

/// The task in a message from another Codex agent, without its header. Empty for other such messages: reports
/// are not the user's words. Any other text as it is.
fn without_header(text: &str) -> &str {
    let Some(header) = text.trim_start().strip_prefix("Message Type: ") else { return text };
    let task = header.starts_with("NEW_TASK").then(|| header.split_once("\nPayload:"));
    task.flatten().map_or("", |it| it.1)
}

fn without_elements<'a>(mut rest: &'a str, out: &mut Vec<&'a str>) {
    let mut from = 0;
    while let Some(found) = rest[from..].find('<') {
        let at = from + found;
        let tag = &rest[at + 1..];
        let name =
            INJECTED.iter().find(|it| tag.starts_with(**it) && tag[it.len()..].starts_with(['>', ' ', '\n']));
        match name {
            Some(name) => {
                out.push(&rest[..at]);
                let end =
                    tag.find(&format!("</{name}>")).map_or(rest.len(), |it| at + 1 + it + name.len() + 3);
                rest = &rest[end..];
                from = 0;
            }
            None => from = at + 1,
        }
    }
    out.push(rest);
    out.retain(|it| !it.trim().is_empty());
}

/// Lines of logs, stack traces, diffs, code, terminals and tables.
static MACHINE: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)^\s*(?:",
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:|\[?\d\d:\d\d:\d\d|[A-Z][a-z]{2} +\d+ \d\d:\d\d:|\(\w+ pid=\d+\)\s", // time stamps, vLLM's processes
    r"|at \S+ ?\(.*\)$|at (?:async )?\S+:\d+|File .+, line \d+|Traceback|caused by:", // stack frames
    r"|\S+\.(?:m?js|jsx|tsx?):\d+(?::\d+)? (?:Uncaught|\w*Error:|GET |POST |Failed to load)", // browser console
    r"|\[?(?:debug|info|warn|warning|error|trace|fatal|notice|critical)\]?(?:[:|\]]|\s*\|)|npm (?:err|warn)|\S*(?:error|exception)\b[^:]{0,20}:",
    r"|@@ |diff --git|index [0-9a-f]{6,}|\+\+\+ |--- |[+-]\s*\d+\s|[+-][^\s\-+*]", // diffs
    r"|[$❯➜>#|│┃├└╭╰┌]\s|[|│┃├└╭╰┌]|\S*[$#%] (?:cd|ls|npm|git|cargo|go|python)\b", // terminals and tables
    r"|</?[a-z][\w-]*[^>]*>\s*$|</|\{|\}|\]|//|/\*|\*/|#include|import .*;?$|from \S+ import|(?:const|let|var|func|fn|def|class|return|if|for|while|public|private|export)\b.*[;{:(]\s*$",
    r#"|"[^"]+":\s|[\w.-]+=\S+(?:\s+[\w.-]+=\S+)+\s*$|\w+:\s*$|━|═|─"#,
    r")|[;{]\s*$|\|\w{4,5}\|\s|(?:\b\w+=\S+\s+){3}",
));

pub(crate) fn is_machine_output(line: &str) -> bool {
    MACHINE.is_match(line)
}

/// The sentences of a text, without bullets and surrounding white space. Code blocks, quoted lines and machine output
/// are skipped. A sentence may span lines where the text is wrapped.
pub(in crate::facts) fn sentences(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut fence: Option<&str> = None;
    // Start and end of the current paragraph.
    let mut open: Option<(usize, usize)> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let body = line.trim_end();
        let lead = body.trim_start();
        if let Some(mark) = fence {
            if lead.starts_with(mark) {
                fence = None;
            }
            continue;
        }
        let marks = ["```", "~~~", "\"\"\""].into_iter().find(|it| lead.starts_with(it));
        let wrapped = open.is_some_and(|(from, to)| {
            let before = &text[from..to];
            let last = before.rsplit('\n').next().unwrap_or(before);
            last.chars().count() > 50
                && !last.ends_with(['.', '!', '?', ':', '。', '！', '？'])
                && lead.starts_with(|c: char| c.is_lowercase() || c == '(' || c == '`')
        });
        if marks.is_some() || lead.is_empty() || lead.starts_with('>') || !wrapped {
            end_paragraph(text, &mut open, &mut out);
        }
        if let Some(mark) = marks {
            fence = Some(mark);
        } else if !lead.is_empty() && !lead.starts_with('>') && (wrapped || !is_machine_output(body)) {
            let from = start + (body.len() - lead.len());
            open = Some((open.map_or(from, |(from, _)| from), start + body.len()));
        }
    }
    end_paragraph(text, &mut open, &mut out);
    out
}

/// A text without the sentences for which `gone` holds; what stands between them stays.
pub(in crate::facts) fn without_sentences(text: &str, gone: impl Fn(&str) -> bool) -> String {
    let over = sentences(text).into_iter().filter(|it| gone(it));
    over.fold(text.to_owned(), |rest, it| rest.replacen(it, "", 1))
}

/// The lines of a text outside code blocks that contain words, tables included. `…` replaces a block, so that what
/// precedes and follows it is not joined.
pub(in crate::facts) fn lines(text: &str) -> Vec<&str> {
    let (mut fenced, mut torn) = (false, false);
    let mut out: Vec<&str> = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with("```") {
            fenced = !fenced;
            if fenced && let Some(last) = out.pop() {
                torn = !last.ends_with(['.', '!', '?', ';', '。', '！', '？', '…']);
                let rest = without_announcement(last);
                out.extend(Some(rest).filter(|it| !it.is_empty()));
                if !out.is_empty() && out.last() != Some(&"…") {
                    out.push("…");
                }
            }
        } else if !fenced && line.chars().any(char::is_alphanumeric) {
            // Drops the rest of a sentence that began before the block.
            let goes_on = torn && out.last() == Some(&"…") && line.starts_with(char::is_lowercase);
            let line = if goes_on { line.split_once(". ").map_or("", |it| it.1) } else { line };
            out.extend(Some(line.trim_matches(['|', ' '])).filter(|it| !it.is_empty()));
        }
    }
    out
}

/// Whether a text introduces what follows it: it ends with a colon, apart from Markdown emphasis.
pub(in crate::facts) fn ends_with_colon(text: &str) -> bool {
    text.trim_end_matches(['*', '_', ' ']).ends_with([':', '：'])
}

/// A text without a last sentence that only introduces what is not shown: "The shape should be:".
pub(in crate::facts) fn without_announcement(text: &str) -> &str {
    if !ends_with_colon(text) {
        return text;
    }
    let ends = [". ", "! ", "? ", "; ", "。", "！", "？"];
    let end = ends.iter().filter_map(|it| Some(text.rfind(it)? + it.len())).max();
    text[..end.unwrap_or(0)].trim_end()
}

/// A text that was cut, without a last sentence that introduces what was cut off, unless that is most of the text.
pub(crate) fn without_cut_announcement(head: &str) -> &str {
    let rest = without_announcement(head);
    let head = if rest.len() * 2 > head.len() { rest } else { head };
    head.trim_end_matches(['…', ' '])
}

/// Maximum bytes of code in backticks within a sentence.
const MAX_CODE_BYTES: usize = 200;

fn end_paragraph<'a>(text: &'a str, open: &mut Option<(usize, usize)>, out: &mut Vec<&'a str>) {
    let Some((from, to)) = open.take() else { return };
    let paragraph = without_markers(&text[from..to]);
    let mut start = 0;
    // End offset of the current code in backticks, within which no sentence ends.
    let mut code = 0;
    let mut chars = paragraph.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, c)| *c);
        if c == '`' && at >= code {
            let end = paragraph[at + 1..].find('`').filter(|it| *it <= MAX_CODE_BYTES);
            code = end.map_or(code, |it| at + it + 2);
        }
        let ends = match c {
            _ if at < code => false,
            '。' | '！' | '？' | '；' => true,
            '.' | '!' | '?' | ';' => {
                next.is_none_or(char::is_whitespace) && !is_abbreviation(&paragraph[start..at])
            }
            _ => false,
        };
        if ends {
            let end = at + c.len_utf8();
            push_sentence(&paragraph[start..end], out);
            start = end;
        }
    }
    push_sentence(&paragraph[start..], out);
}

fn push_sentence<'a>(sentence: &'a str, out: &mut Vec<&'a str>) {
    let sentence = sentence.trim();
    // Longer is data on one line.
    if sentence.len() <= 8_000 && sentence.chars().any(char::is_alphanumeric) {
        out.push(sentence);
    }
}

fn is_abbreviation(text: &str) -> bool {
    let word = text.rsplit(char::is_whitespace).next().unwrap_or(text).trim_start_matches('(');
    ["e.g", "i.e", "vs", "etc", "cf", "z.B", "d.h", "bzw", "ca", "resp", "incl", "Nr", "no", "p"]
        .contains(&word)
        || !word.is_empty() && word.len() <= 2 && word.chars().all(|c| c.is_ascii_digit())
}

/// Whether a capital follows a small letter, as in `camelCase`.
pub(in crate::facts) fn is_camel_case(word: &str) -> bool {
    word.as_bytes().windows(2).any(|it| it[0].is_ascii_lowercase() && it[1].is_ascii_uppercase())
}

/// Whether a line begins with a bullet, number or heading mark.
pub(in crate::facts) fn has_marker(line: &str) -> bool {
    without_markers(line).len() < line.trim().len()
}

/// A line without leading bullets, numbers and heading marks.
pub(in crate::facts) fn without_markers(line: &str) -> &str {
    let mut it = line.trim();
    loop {
        let before = it;
        for mark in ["- [ ] ", "- [x] ", "- [X] ", "- ", "* ", "+ ", "• ", "· ", "– "] {
            it = it.strip_prefix(mark).unwrap_or(it).trim_start();
        }
        it = it.trim_start_matches('#').trim_start();
        let digits = it.len() - it.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if (1..=3).contains(&digits)
            && let Some(rest) = it[digits..].strip_prefix(['.', ')'])
            && rest.starts_with(' ')
        {
            it = rest.trim_start();
        }
        if it == before {
            return it;
        }
    }
}

/// Byte offset of a slice in the text that it is a slice of.
pub(in crate::facts) fn offset(slice: &str, text: &str) -> usize {
    slice.as_ptr() as usize - text.as_ptr() as usize
}

static DURATION: AsciiFirstRegex =
    AsciiFirstRegex::new(r"\s*[\[(]?\b\d+(?:\.\d+)? ?(?:ms|s|sec|seconds)\b[\])]?");

/// A text without durations, so that the same failure with another duration compares equal.
pub(in crate::facts) fn without_durations(text: &str) -> std::borrow::Cow<'_, str> {
    DURATION.replace_all(text, "")
}

pub(in crate::facts) fn without_bold(text: &str) -> String {
    text.replace("**", "")
}

/// At most `chars` characters of a text, cut at a word boundary, since half a path or name is wrong. Text without
/// spaces is cut anywhere. Returns whether it was cut.
pub(crate) fn clip(text: &str, chars: usize) -> (&str, bool) {
    let Some((end, next)) = text.char_indices().nth(chars) else { return (text, false) };
    let head = &text[..end];
    if next.is_whitespace() || !next.is_ascii() {
        return (head.trim_end(), true);
    }
    let words = head.rfind(char::is_whitespace).filter(|it| *it > 0);
    (words.map_or(head, |it| &head[..it]).trim_end(), true)
}

/// The last `chars` characters of a text, from a word boundary.
pub(crate) fn clip_end(text: &str, chars: usize) -> &str {
    let Some((start, _)) = text.char_indices().rev().nth(chars.saturating_sub(1)) else { return text };
    let tail = &text[start..];
    // Scripts without spaces have boundaries everywhere, but not within a word of katakana.
    let katakana = |c: char| ('\u{30a1}'..='\u{30ff}').contains(&c);
    if tail.starts_with(katakana) && text[..start].ends_with(katakana) {
        return tail.trim_start_matches(katakana).trim_start();
    }
    if tail.starts_with(|c: char| c >= '\u{2e80}') || text[..start].ends_with(char::is_whitespace) {
        return tail.trim_start();
    }
    tail.find(char::is_whitespace).map_or(tail, |it| tail[it..].trim_start())
}

/// Replaces runs of white space by one space.
pub fn flat(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

/// The text as a terminal shows it: without escape sequences (`ESC [ … letter`, `ESC ] … BEL`, `ESC ( B`) and overwritten
/// text.
pub(crate) fn without_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => {
                match chars.next_if(|it| "[]()".contains(*it)) {
                    Some('[') => while chars.next().is_some_and(|c| !c.is_ascii_alphabetic()) {},
                    // A window title or link.
                    Some(']') => {
                        while chars.next_if(|c| !matches!(c, '\u{7}' | '\u{1b}' | '\n')).is_some() {}
                        if chars.next_if(|c| matches!(c, '\u{7}' | '\u{1b}')) == Some('\u{1b}') {
                            chars.next_if_eq(&'\\');
                        }
                    }
                    // The choice of a character set.
                    Some(_) => {
                        chars.next_if(char::is_ascii_alphanumeric);
                    }
                    None => {}
                }
            }
            '\r' if chars.peek().is_none_or(|next| *next == '\n') => {}
            '\r' => out.truncate(out.rfind('\n').map_or(0, |it| it + 1)),
            '\u{8}' if !out.ends_with('\n') => {
                out.pop();
            }
            '\u{8}' => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_prose_into_sentences() {
        for (text, expected) in [
            ("Do it. Never push!  Ok?", vec!["Do it.", "Never push!", "Ok?"]),
            ("- use a.rs, e.g. here\n2. no v1.2.3 please", vec!["use a.rs, e.g. here", "no v1.2.3 please"]),
            ("不要改这个。必须测试", vec!["不要改这个。", "必须测试"]),
            (
                "Run `a -c \"import b; b.c()\"`; then stop. A ` alone. Ok",
                vec!["Run `a -c \"import b; b.c()\"`;", "then stop.", "A ` alone.", "Ok"],
            ),
            ("before\n```\nnever do this\n```\nafter", vec!["before", "after"]),
            ("> you must quote\nmine", vec!["mine"]),
            (
                "2024-01-01T10:00:00 must never\n[12:00:01] never\n    at f (x.js:1)\nreal words",
                vec!["real words"],
            ),
            (
                "this is a line that is wrapped by hand after about sixty\ncharacters or so",
                vec!["this is a line that is wrapped by hand after about sixty\ncharacters or so"],
            ),
            ("", vec![]),
        ] {
            assert_eq!(sentences(text), expected, "{text}");
        }
    }

    #[test]
    fn what_was_injected_or_is_evidence_is_not_the_users_own() {
        for (text, expected) in [
            ("a\n<system-reminder>never</system-reminder>\nb", vec!["a\n", "\nb"]),
            ("## Open tabs: x\n## My request for Codex:\nfix it", vec!["fix it"]),
            (
                "\n## User Input\n\n```text\ndo T012\n```\n\nYou **MUST** consider the user input before proceeding.\n\n## Outline",
                vec!["do T012"],
            ),
            (
                "## User Input\n\n```text\n\n```\n\nYou **MUST** consider the user input.\n\n## Goal\n\nFind gaps in the pump. It MUST run alone.\n",
                vec!["Find gaps in the pump"],
            ),
            (
                "## User Input\n\n```text\n\n```\n\nYou **MUST** consider the user input.\n\n## Outline\n\n1. **Setup**: Run `a.sh`. Then b.\n",
                vec!["**Setup**: Run `a.sh`"],
            ),
            (
                "## My request for Codex:\n## User Input\n\n```text\n$ARGUMENTS\n```\n\nYou **MUST** consider the user input.\n\n## Key rules\n\n- ERROR on gate failures or so\nadd a valve\n\n- and a lid\n",
                vec!["add a valve\n\n- and a lid"],
            ),
            (
                "## User Input\n\n```text\n$ARGUMENTS\n```\n\nYou **MUST** consider the user input.\n\n## Goal\n\nFind gaps. It MUST run alone.\n\n- a\nT016\n",
                vec!["T016"],
            ),
            (
                "## User Input\n\n```text\n$ARGUMENTS\n```\n\nYou **MUST** consider the user input.\n\n## Goal\n\nFind gaps. It MUST run alone.\n\n- a\n",
                vec!["Find gaps"],
            ),
            (
                "## User Input\r\n\r\n```text\r\nadd it\r\n```\r\n\r\nYou **MUST** consider the user input.\r\n",
                vec!["add it"],
            ),
            (
                "Create or update `AGENTS.md` for this repository.\n\nUser-provided focus or constraints (honor these):\nthe pump\n\n## How to investigate\n",
                vec!["Create or update `AGENTS.md` for this repository.", "the pump"],
            ),
            (
                "Create or update `AGENTS.md` for this repository.\n\nUser-provided focus or constraints (honor these):\n\n\n## How to investigate\n",
                vec!["Create or update `AGENTS.md` for this repository."],
            ),
            ("\"# Task\nSay \\\"done\\\" at the end.\"", vec!["# Task\nSay \\\"done\\\" at the end."]),
            ("\"not found\" and \"no such file\"", vec!["\"not found\" and \"no such file\""]),
            (
                "Assess this:\n>>> TRANSCRIPT DELTA START\n[1] user: never push\n>>> TRANSCRIPT DELTA END\nThe request:",
                vec!["Assess this:\n", "The request:"],
            ),
            (
                "Assess:¶>>> TRANSCRIPT START\n¶[1] user: never push\n¶[2] tool result: x\n>>> TRANSCRIPT END\n¶y\n¶>>> TRANSCRIPT END\n¶The request:",
                vec!["Assess:", "never push\n", "The request:"],
            ),
            (
                "Message Type: NEW_TASK\nTask name: /root/a\nSender: /root\nPayload:\nread it",
                vec!["\nread it"],
            ),
            ("Message Type: FINAL_ANSWER\nSender: /root/a\nPayload:\nit must go", vec![]),
            (">>> TRANSCRIPT START\nno end", vec![">>> TRANSCRIPT START\nno end"]),
        ] {
            assert_eq!(user_text(text.split('¶')), expected, "{text}");
        }
    }

    #[test]
    fn never_joins_over_a_block() {
        for (text, expected) in [
            ("Fine. It looks so:\n```\na\n```\nThat is all", vec!["Fine.", "…", "That is all"]),
            ("It looks so:\n```\na\n```\nThat is all", vec!["That is all"]),
            ("Fine. The lines:\n```\na\n```\nare old. They go", vec!["Fine.", "…", "They go"]),
            ("Run it:\n```\na\n```\n```\nb\n```", vec![]),
            ("Three things:\n- one\n- two", vec!["Three things:", "- one", "- two"]),
        ] {
            assert_eq!(lines(text), expected, "{text}");
        }
    }

    #[test]
    fn leaves_out_what_clients_inject() {
        assert_eq!(user_text(["a<system-reminder>never</system-reminder>b < c"].into_iter()), ["a", "b < c"]);
        assert_eq!(user_text(["<system-reminder>unclosed"].into_iter()), Vec::<&str>::new());
        let quoted = [
            "Look at @a",
            "\n--- Content from referenced files ---",
            "never",
            "\n--- End of content ---",
            "b",
        ];
        assert_eq!(user_text(quoted.into_iter()), ["Look at @a", "b"]);
        assert_eq!(user_text(["<image name=[Image #1]>", "</image>", "a"].into_iter()), ["a"]);
    }

    #[test]
    fn clips_at_words() {
        assert_eq!(clip("one two three", 9), ("one two", true));
        assert_eq!(clip("日本語です", 3), ("日本語", true));
        assert_eq!(clip_end("one two three", 6), "three");
        assert_eq!(clip_end("le redémarrer seul", 12), "seul");
        assert_eq!(clip_end("再起動します", 3), "します");
        assert_eq!(clip_end("ネットワークの確認", 7), "の確認");
        assert_eq!(clip("short", 9), ("short", false));
        assert_eq!(without_escapes("\u{1b}[31mred\u{1b}[0m\u{1b}(B"), "red");
        assert_eq!(without_escapes("\u{1b}]8;;https://a.b\u{1b}\\a\u{1b}]0;title\u{7}b"), "ab");
        assert_eq!(without_escapes("a\r\n10 %\r20 %\rdone\r\nx/\u{8}-\u{8}\u{8}y"), "a\ndone\ny");
    }
}
