//! Where things stand inside one large JSON document, without parsing it whole: the members of an object or the
//! elements of an array, as spans. Linear, without recursion, and at peace with a document that is cut off.

use std::ops::Range;

use serde_json::Value;

use super::spans::{space, string_end, value_end};
use history::error::{Error, ErrorKind, Result};

/// A member of an object, or an element of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    /// The member's key, unescaped; `None` for elements.
    pub key: Option<String>,
    /// Where the value stands in the text.
    pub span: Range<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Children {
    /// The children that are whole, in order.
    pub items: Vec<Child>,
    /// The object or array was closed; otherwise the text ended, or broke, after the last item.
    pub closed: bool,
}

impl Children {
    /// The value of a member. The last one wins, as in JavaScript.
    pub fn get(&self, key: &str) -> Option<Range<usize>> {
        self.items.iter().rev().find(|it| it.key.as_deref() == Some(key)).map(|it| it.span.clone())
    }
}

/// The children of the object or array that begins at `span.start` (white space before it is skipped). Values are
/// delimited, not validated: that is left to their readers. Anything else than an object or array has no children.
pub fn children(text: &str, span: Range<usize>) -> Children {
    let bytes = text.as_bytes();
    let bytes = &bytes[..span.end.min(bytes.len())];
    let mut out = Children::default();
    let mut at = blank(bytes, span.start);
    let (object, close) = match bytes.get(at) {
        Some(b'{') => (true, b'}'),
        Some(b'[') => (false, b']'),
        _ => return out,
    };
    at = space(bytes, at + 1);
    if bytes.get(at) == Some(&close) {
        out.closed = true;
        return out;
    }
    loop {
        let mut key = None;
        if object {
            let Some(end) = string_end(bytes, at) else { return out };
            let Some(name) = text.get(at..end).and_then(|it| serde_json::from_str(it).ok()) else {
                return out;
            };
            key = Some(name);
            at = space(bytes, end);
            if bytes.get(at) != Some(&b':') {
                return out;
            }
            at = space(bytes, at + 1);
        }
        let Some(end) = value_end(bytes, at) else { return out };
        out.items.push(Child { key, span: at..end });
        at = space(bytes, end);
        match bytes.get(at) {
            Some(b',') => at = space(bytes, at + 1),
            Some(it) if *it == close => {
                out.closed = true;
                return out;
            }
            _ => return out,
        }
    }
}

/// Follows keys from the object at `span` down to a value.
pub fn find(text: &str, span: Range<usize>, path: &[&str]) -> Option<Range<usize>> {
    path.iter().try_fold(span, |span, key| children(text, span).get(key))
}

/// A JSON document whose substance is one array of records.
#[derive(Debug, Clone)]
pub struct Document {
    /// The members of the outermost object.
    pub top: Children,
    /// Where the records stand.
    pub records: Vec<Range<usize>>,
    /// Nothing is cut off.
    pub whole: bool,
}

/// Finds the records under `key` in the outermost object.
pub fn open(text: &str, key: &str) -> Option<Document> {
    let mut top = children(text, 0..text.len());
    let records = children(text, member_of(text, &top, key)?);
    let whole = top.closed && records.closed;
    top.items.retain(|it| it.key.as_deref() != Some(key));
    Some(Document { top, records: records.items.into_iter().map(|it| it.span).collect(), whole })
}

/// A member of the outermost object, even if the text ends inside its value.
pub fn member(text: &str, key: &str) -> Option<Range<usize>> {
    member_of(text, &children(text, 0..text.len()), key)
}

fn member_of(text: &str, top: &Children, key: &str) -> Option<Range<usize>> {
    let last = top.items.last().map_or(0, |it| it.span.end);
    top.get(key).or_else(|| if top.closed { None } else { cut_member(text, last, key) })
}

/// From the first element of the array under `key` on, which the text may cut off.
pub fn from_first_element<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let array = text.get(member(text, key)?)?.strip_prefix('[')?.trim_start();
    array.starts_with('{').then_some(array)
}

/// Parses a span. The sentence says what it was expected to be.
///
/// # Errors
/// [`ErrorKind::Input`] where it is no JSON.
pub fn value(text: &str, span: Range<usize>, what: &str) -> Result<Value> {
    let text = text.get(span).unwrap_or_default();
    serde_json::from_str(text)
        .map_err(|it| Error::new(ErrorKind::Input, format!("expected {what}, found broken JSON")).because(it))
}

/// The span of the unfinished member `key` that begins after `from`.
fn cut_member(text: &str, from: usize, key: &str) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let mut at = blank(bytes, from);
    if matches!(bytes.get(at), Some(b',' | b'{')) {
        at = space(bytes, at + 1);
    }
    let end = string_end(bytes, at)?;
    if serde_json::from_str::<String>(text.get(at..end)?).ok()? != key {
        return None;
    }
    at = space(bytes, end);
    (bytes.get(at) == Some(&b':')).then(|| space(bytes, at + 1)..text.len())
}

/// The first position from `at` that holds no white space; at the start, no byte order mark either.
fn blank(bytes: &[u8], at: usize) -> usize {
    let mark = at == 0 && bytes.starts_with(b"\xEF\xBB\xBF");
    space(bytes, if mark { 3 } else { at })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> (Vec<String>, bool) {
        let found = children(text, 0..text.len());
        let items = found.items.iter().map(|it| {
            let key = it.key.as_ref().map(|it| format!("{it}=")).unwrap_or_default();
            format!("{key}{}", &text[it.span.clone()])
        });
        (items.collect(), found.closed)
    }

    #[test]
    fn finds_children() {
        for (text, items, closed) in [
            (
                r#" {"a" : 1, "b\u0041":[1,{"x":"]}"}], "c":"q\"\\"} "#,
                vec!["a=1", r#"bA=[1,{"x":"]}"}]"#, r#"c="q\"\\""#],
                true,
            ),
            ("\u{feff}[1, true ,{}]", vec!["1", "true", "{}"], true),
            (r#"[{"a":1},{"b":"#, vec![r#"{"a":1}"#], false),
            (r#"["open"#, vec![], false),
            ("[]", vec![], true),
            ("3", vec![], false),
            ("[1 2]", vec!["1"], false),
            ("[,]", vec![], false),
            ("", vec![], false),
        ] {
            assert_eq!(texts(text), (items.into_iter().map(str::to_owned).collect(), closed), "{text}");
        }
        // Deep nesting takes no stack.
        let deep = format!("[{}{}]", "[".repeat(200_000), "]".repeat(200_000));
        assert_eq!(children(&deep, 0..deep.len()).items.len(), 1);
    }

    #[test]
    fn opens_what_is_cut_off() {
        let text = r#"{"info":{"id":1},"messages":[{"a":1},{"b":2},{"c""#;
        let found = open(text, "messages").unwrap();
        assert_eq!((found.records.len(), found.whole), (2, false));
        assert!(open(r#"{"info":{"id":"#, "messages").is_none());
        assert!(open(r#"{"messages":[]}"#, "messages").unwrap().whole);
        assert!(open("[1]", "messages").is_none());
        assert_eq!(member(text, "info").map(|it| &text[it]), Some(r#"{"id":1}"#));
        assert_eq!(member(r#"{"info":{"id":"#, "info").map(|it| it.start), Some(8));
    }

    #[test]
    fn follows_paths() {
        let text = r#"{"a":{"b":"x"},"a":{"b":"y"}}"#;
        assert_eq!(&text[find(text, 0..text.len(), &["a", "b"]).unwrap()], r#""y""#);
        assert_eq!(find(text, 0..text.len(), &["a", "c"]), None);
    }
}
