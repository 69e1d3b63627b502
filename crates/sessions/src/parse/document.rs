//! A large JSON document that is mainly one array of records. Only the positions of its values are found: it
//! is not parsed as a whole, and may be cut off.

use std::ops::Range;

use serde_json::Value;

use super::spans::{self, FieldSpans, Items};
use history::error::{Error, ErrorKind, Result};

/// The fields of the object that begins at `at`, if one does.
pub fn object(text: &str, at: usize) -> Option<FieldSpans> {
    text.get(at..)?.starts_with('{').then(|| spans::fields(text, at))
}

/// The elements of the array that begins at `at`, if one does.
pub(crate) fn elements(text: &str, at: usize) -> Option<Items> {
    text.get(at..)?.starts_with('[').then(|| spans::items(text, at))
}

/// Follows keys from the object at `span` down to a value.
pub fn find(text: &str, span: Range<usize>, path: &[&str]) -> Option<Range<usize>> {
    path.iter().try_fold(span, |span, key| object(text, span.start)?.get(key))
}

/// A JSON document that is mainly one array of records.
#[derive(Debug, Clone)]
pub struct Document {
    /// The fields of the outermost object.
    pub top: FieldSpans,
    /// The ranges of the records.
    pub records: Vec<Range<usize>>,
    /// Whether nothing is cut off.
    pub is_complete: bool,
}

/// Finds the records under `key` in the outermost object.
pub fn open(text: &str, key: &str) -> Option<Document> {
    let top = object(text, spans::start(text))?;
    let records = elements(text, top.get(key)?.start)?;
    let is_complete = top.close.is_some() && records.close.is_some();
    Some(Document { top, records: records.spans, is_complete })
}

/// A field of the outermost object, even if the text ends inside its value.
pub fn member(text: &str, key: &str) -> Option<Range<usize>> {
    object(text, spans::start(text))?.get(key)
}

/// Parses a span. `what` says in the error what was expected there.
///
/// # Errors
/// [`ErrorKind::Input`] if it is no JSON.
pub fn value(text: &str, span: Range<usize>, what: &str) -> Result<Value> {
    let text = text.get(span).unwrap_or_default();
    serde_json::from_str(text)
        .map_err(|it| Error::new(ErrorKind::Input, format!("expected {what}, found broken JSON")).because(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_what_is_cut_off() {
        let text = r#"{"info":{"id":1},"messages":[{"a":1},{"b":2},{"c""#;
        let found = open(text, "messages").unwrap();
        assert_eq!((found.records.len(), found.is_complete), (2, false));
        assert!(open(r#"{"info":{"id":"#, "messages").is_none());
        assert!(open(r#"{"messages":[]}"#, "messages").unwrap().is_complete);
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
