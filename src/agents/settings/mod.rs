//! JSON settings files edited as text: comments, order and white space are kept, and removing what was added
//! restores every byte.
//!
//! A member or element is always inserted first, right after the opening bracket. So removing it and the
//! comma after it leaves the original text.

pub mod own;
pub mod sections;

use std::ops::Range;

use history::error::{Error, ErrorKind, Result};

/// A member of an object or an element of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
struct JsonChild {
    /// The member's name; empty in an array.
    key: String,
    /// The byte range from the key (in an array: the value) to the end of the value.
    span: Range<usize>,
    value: Range<usize>,
}

/// The byte range of the document's value; `None` if anything but comments follows it.
fn root(text: &str) -> Option<Range<usize>> {
    let start = skip(text, if text.starts_with('\u{feff}') { 3 } else { 0 });
    let end = value_end(text, start)?;
    (skip(text, end) == text.len()).then_some(start..end)
}

/// The position of the next byte that is neither white space nor part of a comment.
fn skip(text: &str, mut at: usize) -> usize {
    let bytes = text.as_bytes();
    loop {
        while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        let rest = bytes.get(at..).unwrap_or_default();
        if rest.starts_with(b"//") {
            at += rest.iter().position(|it| *it == b'\n').unwrap_or(rest.len());
        } else if rest.starts_with(b"/*") {
            at += rest.windows(2).skip(2).position(|it| it == b"*/").map_or(rest.len(), |it| it + 4);
        } else {
            return at;
        }
    }
}

/// The end of the value that starts at `at`. Brackets are counted rather than parsed recursively: deep
/// nesting is safe.
fn value_end(text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = at;
    let mut depth = 0usize;
    loop {
        match *bytes.get(at)? {
            b'"' => {
                at += 1;
                while *bytes.get(at)? != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                at += 1;
            }
            b',' | b':' if depth > 0 => at += 1,
            b',' | b':' => return None,
            _ => {
                let start = at;
                while bytes.get(at).is_some_and(|it| it.is_ascii_alphanumeric() || b"+-.".contains(it)) {
                    at += 1;
                }
                if at == start || bytes.get(at).is_some_and(|it| !b",:]} \t\r\n/".contains(it)) {
                    return None;
                }
            }
        }
        if depth == 0 {
            return Some(at);
        }
        at = skip(text, at);
    }
}

/// The children of the object or array at `value`.
fn children(text: &str, value: &Range<usize>) -> Option<Vec<JsonChild>> {
    let object = match text.as_bytes().get(value.start)? {
        b'{' => true,
        b'[' => false,
        _ => return None,
    };
    let mut out = Vec::new();
    let mut at = skip(text, value.start + 1);
    while at + 1 < value.end {
        let start = at;
        let mut key = String::new();
        if object {
            let end = value_end(text, at)?;
            key = serde_json::from_str(text.get(at..end)?).ok()?;
            at = skip(text, end);
            if text.as_bytes().get(at) != Some(&b':') {
                return None;
            }
            at = skip(text, at + 1);
        }
        let end = value_end(text, at)?;
        out.push(JsonChild { key, span: start..end, value: at..end });
        at = skip(text, end);
        if text.as_bytes().get(at) == Some(&b',') {
            at = skip(text, at + 1);
        }
    }
    Some(out)
}

fn find(text: &str, path: &[&str]) -> Option<Range<usize>> {
    let mut value = root(text)?;
    for key in path {
        value = children(text, &value)?.into_iter().find(|it| it.key == *key)?.value;
    }
    Some(value)
}

/// The JSON text of the value at a path of keys.
pub fn get<'a>(text: &'a str, path: &[&str]) -> Option<&'a str> {
    text.get(find(text, path)?)
}

/// The JSON texts of the elements of the array at a path.
pub fn elements<'a>(text: &'a str, path: &[&str]) -> Vec<&'a str> {
    let all = find(text, path).and_then(|it| children(text, &it)).unwrap_or_default();
    all.into_iter().filter_map(|it| text.get(it.value)).collect()
}

/// Checks that a file can be edited: a JSON object, possibly with comments.
pub fn check(text: &str) -> Result<()> {
    let value = root(text).filter(|it| text.as_bytes().get(it.start) == Some(&b'{'));
    match value {
        Some(value) if children(text, &value).is_some() => Ok(()),
        _ => Err(Error::new(
            ErrorKind::Input,
            "expected a JSON object, with or without comments, found something else; fix it first",
        )),
    }
}

/// Inserts `"key": value` as the first member of the object at `path`; `None` if there is no such object.
pub fn insert(text: &str, path: &[&str], key: &str, value: &str) -> Option<String> {
    put(text, path, &format!("{}: {value}", history::json::compact(&key)))
}

/// Inserts the first element of the array at `path`; `None` if there is no such array.
pub fn push(text: &str, path: &[&str], value: &str) -> Option<String> {
    put(text, path, value)
}

fn put(text: &str, path: &[&str], what: &str) -> Option<String> {
    let at = find(text, path)?;
    let empty = children(text, &at)?.is_empty();
    let indent = "  ".repeat(path.len() + 1);
    let comma = if empty { "" } else { "," };
    Some(format!("{}\n{indent}{what}{comma}{}", &text[..at.start + 1], &text[at.start + 1..]))
}

/// Removes the member at `path`; `None` if there is none.
pub fn remove(text: &str, path: &[&str]) -> Option<String> {
    let (key, parent) = path.split_last()?;
    let at = find(text, parent)?;
    let all = children(text, &at)?;
    let number = all.iter().position(|it| it.key == *key)?;
    cut(text, &at, &all, number)
}

/// Removes the elements for which `wanted` returns true from the array at `path`.
pub fn remove_elements(text: &str, path: &[&str], wanted: impl Fn(&str) -> bool) -> String {
    let mut text = text.to_owned();
    while let Some(at) = find(&text, path) {
        let Some(all) = children(&text, &at) else { break };
        let Some(number) = all.iter().position(|it| text.get(it.value.clone()).is_some_and(&wanted)) else {
            break;
        };
        let Some(shorter) = cut(&text, &at, &all, number) else { break };
        text = shorter;
    }
    text
}

fn cut(text: &str, parent: &Range<usize>, all: &[JsonChild], number: usize) -> Option<String> {
    let child = all.get(number)?;
    let behind = skip(text, child.span.end);
    let comma = text.as_bytes().get(behind) == Some(&b',');
    let to = if comma { behind + 1 } else { child.span.end };
    // White space before the child is removed too; a comment there is kept.
    let kept = |from: usize, to: usize| {
        let between = text.get(from..to).unwrap_or_default();
        if between.trim().is_empty() { "" } else { between }
    };
    let last = number.checked_sub(1).and_then(|it| all.get(it));
    let from = last.map_or(parent.start + 1, |it| it.span.end);
    let mut out = text.get(..from)?.to_owned();
    if last.is_some() {
        // Of the commas before and after the child, one is kept if another child follows, else none.
        let at = skip(text, from);
        let next = if text.as_bytes().get(at) == Some(&b',') { at + 1 } else { at };
        out.push_str(kept(from, at));
        out.push_str(if comma { "," } else { "" });
        out.push_str(kept(next, child.span.start));
    } else {
        out.push_str(kept(from, child.span.start));
    }
    out.push_str(text.get(to..)?);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [&str; 7] = [
        "{}",
        "{ }\n",
        "{\n  // why\n  \"a\": 1, /* { */\n  \"servers\": {\"x\": {\"b\": \"}\\\"\"}},\n}\n",
        "\u{feff}{\"servers\":{}}",
        "{\r\n\t\"servers\" : { // none yet\r\n\t}\r\n}",
        "{\"list\":[1,[2],\"]\"],\"servers\":{\"y\":null}}",
        "{\"a\":{\"b\":[{\"c\":true}]}}",
    ];

    #[test]
    fn what_is_put_in_comes_out_again() {
        for file in FILES {
            check(file).unwrap();
            let with = insert(file, &[], "epitome", "{\"command\": [\"x\"]}").unwrap();
            check(&with).unwrap();
            assert_eq!(get(&with, &["epitome"]), Some("{\"command\": [\"x\"]}"));
            assert_eq!(remove(&with, &["epitome"]).as_deref(), Some(file));
            if get(file, &["servers"]).is_some() {
                let with = insert(file, &["servers"], "epitome", "1").unwrap();
                assert_eq!(get(&with, &["servers", "epitome"]), Some("1"));
                assert_eq!(remove(&with, &["servers", "epitome"]).as_deref(), Some(file));
            }
        }
        let file = "{\"hooks\":{\"A\":[ {\"x\":1} ]}}";
        let with = push(file, &["hooks", "A"], "{\"mine\":1}").unwrap();
        assert_eq!(elements(&with, &["hooks", "A"]), ["{\"mine\":1}", "{\"x\":1}"]);
        assert_eq!(remove_elements(&with, &["hooks", "A"], |it| it.contains("mine")), file);
    }

    #[test]
    fn comments_around_what_is_taken_out_stay() {
        for (file, expected) in [
            ("{ // mine\n \"epitome\": 1,\n \"b\": 2}", "{ // mine\n \n \"b\": 2}"),
            ("{\"a\": 1, // one\n \"epitome\": 2 // two\n}", "{\"a\": 1 // one\n  // two\n}"),
            (
                "{\"a\": 1, // one\n \"epitome\": 2, // two\n \"b\": 3}",
                "{\"a\": 1, // one\n  // two\n \"b\": 3}",
            ),
            ("{\"a\": 1 /* one */,\n  \"epitome\": 2\n}", "{\"a\": 1 /* one */\n}"),
            ("{\n  \"a\": 1,\n  \"epitome\": 2,\n  \"b\": 3,\n}", "{\n  \"a\": 1,\n  \"b\": 3,\n}"),
        ] {
            let found = remove(file, &["epitome"]).unwrap();
            assert_eq!(found, expected);
            check(&found).unwrap();
        }
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for file in [
            "",
            "[]",
            "{\"a\"}",
            "{\"a\":1",
            "{\"a\":\"",
            "{a:1}",
            "{\"a\":1}}",
            "{\"a\":{\"b\":1]",
            "\u{1F600}",
            "/*",
            "{/}",
            "{\"a\": 1/2}",
        ] {
            assert!(check(file).is_err(), "{file}");
        }
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(check(&deep).is_ok());
    }
}
