//! A TOML settings file edited as text: our block is appended, framed by comments, and can be removed again
//! even after the agent has rewritten the file.
//!
//! When Codex 0.169 adds a server, it drops the comment before our first section, sorts its own section in
//! among ours, and puts further sections before our closing comment. So our sections are recognized by their
//! names and content, not by the frame.

use std::ops::Range;

use toml_parser::Source;
use toml_parser::lexer::TokenKind;

/// The comments before and after our block.
const FRAME: (&str, &str) = ("# epitome: begin (epitome uninstall takes this out)", "# epitome: end");

pub fn append_block(text: &str, block: &str) -> String {
    format!("{text}\n{}\n{block}{}\n", FRAME.0, FRAME.1)
}

/// Removes our frame, and the sections for which `ours` returns true.
///
/// `ours` gets the names in a section's header, and the section's text with its header. An empty section is
/// removed too if all sections below it (`[[a.b]]` below `[[a]]`) are ours.
pub fn remove(text: &str, ours: impl Fn(&[String], &str) -> bool) -> String {
    let lines = lines(text);
    let sections = sections(text, &lines);
    let mut gone: Vec<bool> = sections
        .iter()
        .map(|it| text.get(it.range.clone()).is_some_and(|text| ours(&it.path, text)))
        .collect();
    for (number, it) in sections.iter().enumerate() {
        let below = sections[number + 1..]
            .iter()
            .take_while(|other| other.path.len() > it.path.len() && other.path.starts_with(&it.path));
        let below = below.count();
        let all = gone[number + 1..=number + below].iter().all(|it| *it);
        gone[number] |= it.is_list && it.is_empty && below > 0 && all;
    }
    let mut cuts: Vec<Range<usize>> = Vec::new();
    let mut framed = false;
    for line in lines.iter().filter(|it| it.kind == TomlLineKind::Other) {
        let comment = text[line.range.clone()].trim_end();
        if comment == FRAME.0 {
            // `append_block` also added the line break before the frame.
            cuts.push(before_break(text, line.range.start)..line.range.end);
            framed = true;
        } else if comment == FRAME.1 {
            cuts.push(line.range.clone());
        }
    }
    for (it, _) in sections.iter().zip(&gone).filter(|it| *it.1) {
        let mut range = it.range.clone();
        // The agent dropped the opening comment, but the blank line before it is still there.
        if !framed && text.get(..range.start).is_some_and(|it| it.ends_with("\n\n")) {
            range.start = before_break(text, range.start);
        }
        framed = true;
        cuts.push(range);
    }
    cuts.sort_by_key(|it| it.start);
    history::edited(text, cuts.into_iter().map(|it| (it, "")))
}

/// Whether there is a section for which `wanted` returns true.
pub fn contains_section(text: &str, wanted: impl Fn(&[String], &str) -> bool) -> bool {
    let found = sections(text, &lines(text));
    found.iter().any(|it| text.get(it.range.clone()).is_some_and(|text| wanted(&it.path, text)))
}

pub fn is_framed(text: &str) -> bool {
    lines(text)
        .iter()
        .any(|it| it.kind == TomlLineKind::Other && text[it.range.clone()].trim_end() == FRAME.0)
}

fn before_break(text: &str, at: usize) -> usize {
    let before = text.get(..at).unwrap_or_default();
    let before = before.strip_suffix('\n').map_or(before, |it| it.strip_suffix('\r').unwrap_or(it));
    before.len()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TomlLineKind {
    /// `[a]` or `[[a]]`.
    Header,
    /// A key and its value, which may span several lines of text.
    Pair,
    /// Blank, or a comment.
    Other,
}

struct TomlLine {
    kind: TomlLineKind,
    range: Range<usize>,
}

/// A table or an element of an array of tables: from its header to its last pair.
struct TomlSection {
    path: Vec<String>,
    is_list: bool,
    is_empty: bool,
    range: Range<usize>,
}

fn sections(text: &str, lines: &[TomlLine]) -> Vec<TomlSection> {
    let mut out: Vec<TomlSection> = Vec::new();
    for line in lines {
        match (line.kind, out.last_mut()) {
            (TomlLineKind::Header, _) => {
                let header = text[line.range.clone()].trim_start();
                let (path, is_list) = (path(header), header.starts_with("[["));
                out.push(TomlSection { path, is_list, is_empty: true, range: line.range.clone() });
            }
            (TomlLineKind::Pair, Some(section)) => {
                section.range.end = line.range.end;
                section.is_empty = false;
            }
            (TomlLineKind::Pair, None) | (TomlLineKind::Other, _) => {}
        }
    }
    out
}

fn path(header: &str) -> Vec<String> {
    let mut out = Vec::new();
    let parsed = toml::from_str::<toml::Table>(header).ok();
    let mut now = parsed.map(toml::Value::Table);
    while let Some(value) = now {
        now = match value {
            toml::Value::Table(table) => table.into_iter().next().map(|(key, value)| {
                out.push(key);
                value
            }),
            toml::Value::Array(list) => list.into_iter().next(),
            _ => None,
        };
    }
    out
}

/// The lines, each with its line break; a value that spans several lines counts as one.
fn lines(text: &str) -> Vec<TomlLine> {
    let mut out: Vec<TomlLine> = Vec::new();
    // The current line's kind, its start, and the bracket depth.
    let (mut kind, mut start, mut depth) = (TomlLineKind::Other, None, 0usize);
    for token in Source::new(text).lex() {
        let span = token.span();
        let start_here = *start.get_or_insert(span.start());
        match (token.kind(), kind) {
            (TokenKind::Newline, TomlLineKind::Pair) if depth > 0 => {}
            (TokenKind::Newline | TokenKind::Eof, _) => {
                out.push(TomlLine { kind, range: start_here..span.end() });
                (kind, start, depth) = (TomlLineKind::Other, None, 0);
            }
            (TokenKind::Whitespace | TokenKind::Comment, _) => {}
            (TokenKind::LeftSquareBracket, TomlLineKind::Other) => kind = TomlLineKind::Header,
            (TokenKind::LeftSquareBracket | TokenKind::LeftCurlyBracket, TomlLineKind::Pair) => depth += 1,
            (TokenKind::RightSquareBracket | TokenKind::RightCurlyBracket, TomlLineKind::Pair) => {
                depth = depth.saturating_sub(1);
            }
            (_, TomlLineKind::Other) => kind = TomlLineKind::Pair,
            (_, TomlLineKind::Header | TomlLineKind::Pair) => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(path: &[String], text: &str) -> bool {
        path.starts_with(&["c".to_owned()]) || path == ["hooks", "A", "hooks"] && text.contains("epitome")
    }

    const BLOCK: &str = "[c]\nd = 1\n[c.e]\nf = [\n  \"]\", # [x]\n]\n[[hooks.A]]\n[[hooks.A.hooks]]\ncommand = \"epitome hook\"\n";

    #[test]
    fn what_is_put_in_comes_out_again() {
        for file in [
            "",
            "\n",
            "\r\n",
            "a = 1",
            "a = 1\n[b]\n",
            "a = 1\r\n[b]\r\nc = 2\r\n",
            "\u{feff}# only this",
            "t = \"\"\"\n# epitome: end\n[c]\n\"\"\"\"\"\nu = '''\n[c]\\\n'''\n",
            "x = [ # [c]\n  '[c]',\n  \"\\\"#\",\n]\n\n\n",
            "[[hooks.A]]\nmatcher = \"x\"\n[[hooks.A.hooks]]\ncommand = \"theirs\"\n",
            "# the end\n\n# of it",
        ] {
            let with = append_block(file, BLOCK);
            assert!(
                is_framed(&with)
                    && contains_section(&with, ours)
                    && !is_framed(file)
                    && !contains_section(file, ours),
                "{file:?}"
            );
            assert_eq!(remove(&with, ours), file);
            // Even without the frame, the sections are found.
            let bare = with[file.len()..].replace(FRAME.0, "").replace(FRAME.1, "");
            let bare = format!("{file}{bare}");
            let left = remove(&bare, ours);
            assert_eq!(left.trim_end(), file.trim_end(), "{bare:?}");
        }
    }

    #[test]
    fn what_others_put_between_stays() {
        let with = append_block("a = 1\n", BLOCK);
        let with = with.replace("[[hooks.A]]\n", "[other]\nx = 1\n# about the hooks\n[[hooks.A]]\n").replace(
            "# epitome: end\n",
            "[[hooks.A.hooks]]\ncommand = \"mine\"\n\n[last]\ny = 2\n# epitome: end\n",
        );
        assert_eq!(
            remove(&with, ours),
            "a = 1\n[other]\nx = 1\n# about the hooks\n[[hooks.A]]\n[[hooks.A.hooks]]\ncommand = \"mine\"\n\n[last]\ny = 2\n"
        );
    }

    #[test]
    fn anything_is_survived() {
        for file in
            ["\"", "a = \"\"\"", "a = '", "[", "[[", "[]]\n=", "a = [[[", "\\", "a = \"\\", "é = \"é\\"]
        {
            assert_eq!(remove(file, ours), file);
        }
    }
}
