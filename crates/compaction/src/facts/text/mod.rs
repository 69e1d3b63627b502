//! Sentences of prose, without code, logs, diffs and quotations; lines, list markers and cuts.
//! All results are slices of the text, so that quotes are verbatim.

pub(crate) mod ascii_first;
pub(in crate::facts) mod cues;
pub(crate) mod regions;
pub(in crate::facts) mod rule;
pub(crate) mod typed;

use std::collections::HashSet;

use ascii_first::AsciiFirstRegex;

/// Lines of logs, stack traces, diffs, code, terminals and tables.
static MACHINE: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)^\s*(?:",
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:|\[?\d\d:\d\d:\d\d|[A-Z][a-z]{2} +\d+ \d\d:\d\d:|\(\w+ pid=\d+\)\s", // time stamps, vLLM's processes
    r"|\[\d+\]\s+(?:\S*Error: |Line \d+:\d+:|$)", // concurrently
    r"|at \S+ ?\(.*\)$|at (?:async )?\S+:\d+|File .+, line \d+|Traceback|caused by:", // stack frames
    r"|\S+\.(?:m?js|jsx|tsx?):\d+(?::\d+)? (?:Uncaught|\w*Error:|GET |POST |Failed to load)", // browser console
    r"|\[?(?:debug|info|warn|warning|error|trace|fatal|notice|critical)\]?(?:[:|\]]|\s*\|)|npm (?:err|warn)|\S*(?:error|exception)\b[^:]{0,20}:",
    r"|@@ |diff --git|index [0-9a-f]{6,}|\+\+\+ |--- |[+-]\s*\d+\s|[+-][^\s\-+*]", // diffs
    r"|[$❯➜>#|│┃├└╭╰┌]\s|[|│┃├└╭╰┌]|(?:\([\w.-]+\) )?\S*[$#%] (?:cd|ls|npm|git|cargo|go|python)\b", // terminals and tables
    r"|</?[a-z][\w-]*[^>]*>\s*$|</|\{|\}|\]|//|/\*|\*/|#include|import .*;?$|from \S+ import|(?:const|let|var|func|fn|def|class|return|if|for|while|public|private|export)\b.*[;{:(]\s*$",
    r#"|"[^"]+":\s|[\w.-]+=\S+(?:\s+[\w.-]+=\S+)+\s*$|\w+:\s*$|━|═|─"#,
    r")|[;{]\s*$|\|\w{4,5}\|\s|(?:\b\w+=\S+\s+){3}",
));

pub(crate) fn is_machine_output(line: &str) -> bool {
    MACHINE.is_match(line)
}

/// The name of a file, perhaps with its path.
pub(in crate::facts) static FILE_NAME: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?:[\w.@-]+/)*[\w@-][\w.@-]*\.[a-z][a-z0-9]{0,4}\b");

/// Words that show what a text is about.
pub(in crate::facts) fn content_words(text: &str) -> HashSet<String> {
    let words = text.split(|it: char| !it.is_alphanumeric() && it != '_');
    words.filter(|it| it.chars().count() > 3).map(str::to_lowercase).collect()
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
pub(in crate::facts) fn without_sentences(text: &str, mut gone: impl FnMut(&str) -> bool) -> String {
    let over = sentences(text).into_iter().filter(|it| gone(it));
    over.fold(text.to_owned(), |rest, it| rest.replacen(it, "", 1))
}

/// What a line that only frames a text contains: `★ Insight ─────`.
const RULER: &str = "─────";

/// The lines of a text that contain words, tables included. `…` replaces a code block, so that what precedes and follows
/// it is not joined; a block of one short line, such as a command to run, is kept as that line.
pub(in crate::facts) fn lines(text: &str) -> Vec<&str> {
    let mut torn = false;
    let mut out: Vec<&str> = Vec::new();
    let mut rest = text.lines().map(str::trim);
    while let Some(line) = rest.next() {
        if line.starts_with("```") {
            let block = rest.by_ref().take_while(|it| !it.starts_with("```"));
            let block: Vec<&str> = block.filter(|it| !it.is_empty()).collect();
            if let Some(last) = out.pop() {
                if let Some(command) = only_line(&block).filter(|_| ends_with_colon(last)) {
                    out.extend([last, command]);
                    continue;
                }
                torn = !last.ends_with(['.', '!', '?', ';', '。', '！', '？', '…']);
                let rest = without_announcement(last);
                out.extend(Some(rest).filter(|it| !it.is_empty()));
                if !out.is_empty() && out.last() != Some(&"…") {
                    out.push("…");
                }
            }
        } else if line.chars().any(char::is_alphanumeric) && !line.contains(RULER) {
            // Drops the rest of a sentence that began before the block.
            let goes_on = torn && out.last() == Some(&"…") && line.starts_with(char::is_lowercase);
            let line = if goes_on { line.split_once(". ").map_or("", |it| it.1) } else { line };
            out.extend(Some(line.trim_matches(['|', ' '])).filter(|it| !it.is_empty()));
        }
    }
    out
}

/// The only line of a code block, if it may be a command: a single word is rather a name or a result.
fn only_line<'a>(block: &[&'a str]) -> Option<&'a str> {
    /// Maximum characters: a longer line is code.
    const CHARS: usize = 160;
    match *block {
        [line] if line.chars().count() <= CHARS && line.contains(' ') => Some(line),
        _ => None,
    }
}

pub(in crate::facts) fn is_question(text: &str) -> bool {
    // An emoji or closing mark may follow the question mark.
    let mark = |it: char| !it.is_alphanumeric() && !"?？.!。！".contains(it);
    text.trim_end_matches(mark).ends_with(['?', '？'])
}

/// Whether a line says what the lines below it are about, rather than what kind of list they are.
pub(in crate::facts) fn is_heading(line: &str) -> bool {
    let bold = line.starts_with("**") && line.ends_with("**");
    (bold || line.starts_with('#')) && !line.trim_end_matches('*').ends_with(':')
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

/// A text without bold marks; in code in backticks, `**` is part of a pattern.
pub(in crate::facts) fn without_bold(text: &str) -> String {
    let spans = text.split('`').enumerate();
    let plain: Vec<_> =
        spans.map(|(at, it)| if at % 2 == 0 { it.replace("**", "") } else { it.to_owned() }).collect();
    plain.join("`")
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
    fn never_joins_over_a_block() {
        for (text, expected) in [
            ("Fine. It looks so:\n```\na\n```\nThat is all", vec!["Fine.", "…", "That is all"]),
            ("It looks so:\n```\na\n```\nThat is all", vec!["That is all"]),
            ("Fine. The lines:\n```\na\n```\nare old. They go", vec!["Fine.", "…", "They go"]),
            ("Run it:\n```\na\n```\n```\nb\n```", vec![]),
            ("Run:\n```sh\nmake all\n```\nIt prints ok.", vec!["Run:", "make all", "It prints ok."]),
            ("Fine. Run:\n```sh\nmake all\nmake it\n```\nOk.", vec!["Fine.", "…", "Ok."]),
            ("Three things:\n- one\n- two", vec!["Three things:", "- one", "- two"]),
        ] {
            assert_eq!(lines(text), expected, "{text}");
        }
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
