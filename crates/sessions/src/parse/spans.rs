//! Finds the spans of the values in a JSON text, without parsing them.
//!
//! It walks text that may be cut off or broken, never recurses, and looks at each byte a bounded number of times.
//! It does not check that a value is valid JSON: that is left to the parser of its span.

use std::ops::Range;

use history::json::without_byte_order_mark;
use memchr::memchr2;

/// Byte positions in the text that was scanned.
pub type Span = Range<usize>;

/// The elements of an array.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Items {
    /// The complete elements, in order.
    pub(crate) spans: Vec<Span>,
    /// The position of the `]`; none if the text is cut or broken before it.
    pub(crate) close: Option<usize>,
    /// The beginning of the element that is cut or broken, if there is one.
    pub(crate) broken: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldSpans {
    /// Keys (unescaped) and the spans of their values. A value that is cut off reaches to the end of the
    /// text.
    pub(crate) fields: Vec<(String, Span)>,
    /// The position of the `}`; none if the text is cut or broken before it.
    pub(crate) close: Option<usize>,
}

impl FieldSpans {
    /// The value of the last field of that name: of duplicates, a JSON parser takes the last.
    pub fn get(&self, key: &str) -> Option<Span> {
        self.fields.iter().rfind(|it| it.0 == key).map(|it| it.1.clone())
    }
}

/// The elements of the array whose `[` is at `open`.
pub(crate) fn items(text: &str, open: usize) -> Items {
    let bytes = text.as_bytes();
    let mut out = Items::default();
    let mut at = space(bytes, open + 1);
    if bytes.get(at) == Some(&b']') {
        out.close = Some(at);
        return out;
    }
    while at < bytes.len() {
        let Some(end) = value_end(bytes, at) else {
            out.broken = Some(at);
            return out;
        };
        out.spans.push(at..end);
        at = space(bytes, end);
        match bytes.get(at) {
            Some(b',') => at = space(bytes, at + 1),
            Some(b']') => {
                out.close = Some(at);
                return out;
            }
            Some(_) => {
                out.broken = Some(at);
                return out;
            }
            None => return out,
        }
    }
    out
}

/// The fields of the object whose `{` is at `open`.
pub(crate) fn fields(text: &str, open: usize) -> FieldSpans {
    let bytes = text.as_bytes();
    let mut out = FieldSpans::default();
    let mut at = space(bytes, open + 1);
    loop {
        match bytes.get(at) {
            Some(b'"') => {}
            Some(b'}') => {
                out.close = Some(at);
                return out;
            }
            _ => return out,
        }
        let Some(end) = string_end(bytes, at) else { return out };
        let key =
            text.get(at..end).and_then(|it| serde_json::from_str::<String>(it).ok()).unwrap_or_default();
        at = space(bytes, end);
        if bytes.get(at) != Some(&b':') {
            return out;
        }
        at = space(bytes, at + 1);
        let end = value_end(bytes, at);
        out.fields.push((key, at..end.unwrap_or(bytes.len())));
        let Some(end) = end else { return out };
        at = space(bytes, end);
        if bytes.get(at) == Some(&b',') {
            at = space(bytes, at + 1);
        }
    }
}

/// Where the outermost value begins: after a byte order mark and white space.
pub(crate) fn start(text: &str) -> usize {
    space(text.as_bytes(), text.len() - without_byte_order_mark(text).len())
}

/// The first position from `at` on that is not JSON white space.
pub(crate) fn space(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// The end of the value that begins at `at`; none if the text ends before it does, or no value begins here.
pub(crate) fn value_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    match bytes.get(at)? {
        b'"' => return string_end(bytes, at),
        b'{' | b'[' => {}
        b',' | b'}' | b']' | b':' => return None,
        _ => {
            let rest = bytes.get(at..)?;
            // A number or word at the end of the text may be cut off.
            let len =
                rest.iter().position(|it| matches!(it, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r'))?;
            return Some(at + len);
        }
    }
    let mut depth = 0usize;
    loop {
        match bytes.get(at)? {
            b'"' => {
                at = string_end(bytes, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

/// The end of the string that begins at `at`; none if the text ends before it does, or no string begins here.
pub(crate) fn string_end(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at) != Some(&b'"') {
        return None;
    }
    let mut from = at + 1;
    loop {
        let found = from + memchr2(b'"', b'\\', bytes.get(from..)?)?;
        if bytes[found] == b'"' {
            return Some(found + 1);
        }
        from = found + 2;
    }
}

/// How deep the arrays and objects of a JSON text are nested.
pub(crate) fn depth(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut depth, mut most) = (0, 0usize, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                let Some(end) = string_end(bytes, at) else { break };
                at = end;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        most = most.max(depth);
        at += 1;
    }
    most
}

/// A JSON text without the white space between its tokens; numbers and strings stay as they are written.
pub(crate) fn compacted(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let (mut at, mut from) = (0, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(bytes, at).unwrap_or(bytes.len()),
            b' ' | b'\t' | b'\n' | b'\r' => {
                out.push_str(&text[from..at]);
                at = space(bytes, at);
                from = at;
            }
            _ => at += 1,
        }
    }
    out.push_str(&text[from..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> (Vec<&str>, bool, Option<&str>) {
        let items = items(text, 0);
        let spans = items.spans.iter().map(|it| &text[it.clone()]).collect();
        (spans, items.close.is_some(), items.broken.map(|it| &text[it..]))
    }

    #[test]
    fn finds_elements_of_whole_cut_and_broken_arrays() {
        for (text, spans, closed, broken) in [
            ("[]", vec![], true, None),
            ("[ ]", vec![], true, None),
            ("[", vec![], false, None),
            (r#"[1, "a]\"", {"b":[2]} ] x"#, vec!["1", r#""a]\"""#, r#"{"b":[2]}"#], true, None),
            (r#"[{"a":1},{"b":"#, vec![r#"{"a":1}"#], false, Some(r#"{"b":"#)),
            (r#"[{"a":1},"#, vec![r#"{"a":1}"#], false, None),
            (r#"[{"a":1}"#, vec![r#"{"a":1}"#], false, None),
            (r#"[1,,2]"#, vec!["1"], false, Some(",2]")),
            (r#"[1 2]"#, vec!["1"], false, Some("2]")),
            ("[12", vec![], false, Some("12")),
        ] {
            assert_eq!(shown(text), (spans, closed, broken), "{text}");
        }
    }

    #[test]
    fn finds_fields_and_the_start_of_a_cut_one() {
        let text = r#"{"a" : 1, "b\"": [2], "c": [3, 4"#;
        let fields = fields(text, 0);
        let shown: Vec<_> = fields.fields.iter().map(|it| (it.0.as_str(), &text[it.1.clone()])).collect();
        assert_eq!(shown, [("a", "1"), ("b\"", "[2]"), ("c", "[3, 4")]);
        assert_eq!(fields.close, None);
        assert_eq!(fields.get("b\""), Some(17..20));
    }

    #[test]
    fn of_duplicate_fields_the_last_counts() {
        assert_eq!(fields(r#"{"a":1,"a":2,"b":3}"#, 0).get("a"), Some(11..12));
    }

    #[test]
    fn depth_bombs_are_walked_not_recursed() {
        let bomb = "[".repeat(1_000_000);
        assert_eq!(depth(&bomb), 1_000_000);
        assert_eq!(value_end(bomb.as_bytes(), 0), None);
        assert_eq!(depth(r#"{"a":"[[[","b":[1]}"#), 2);
    }

    #[test]
    fn compacting_drops_white_space_between_tokens_only() {
        let text = " {\"a b\" : [1.50 ,\n\t\"\\\" é \"], \"c\":{ } } ";
        assert_eq!(compacted(text), "{\"a b\":[1.50,\"\\\" é \"],\"c\":{}}");
    }
}
