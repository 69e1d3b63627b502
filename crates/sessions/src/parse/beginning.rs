//! The beginning of a source as JSON values, by whose shape its format is recognized.

use serde_json::{Map, Value};

use super::spans::{self, Span};
use history::json::without_byte_order_mark;

/// Maximum depth to which a truncated value is read: down to a block of a message in an array under a key.
const DEEPEST: usize = 5;

/// The lines of a beginning that are JSON. If the first one is not, it may begin a document of several lines,
/// or be cut off: then the value that begins there comes first, as far as it goes.
pub(crate) fn values(text: &str) -> impl Iterator<Item = Value> {
    let text = without_byte_order_mark(text);
    let lines = text.lines().map(str::trim).filter(|it| !it.is_empty());
    let mut lines = lines.map(|it| serde_json::from_str(it).ok()).peekable();
    let is_cut = lines.peek().is_some_and(Option::is_none);
    let document = is_cut.then(|| cut(text, spans::start(text), DEEPEST));
    document.into_iter().chain(lines.flatten())
}

/// The value that begins at `at`, as far as the text goes: a truncated string is empty, and so is what is
/// nested deeper than `depth`.
fn cut(text: &str, at: usize, depth: usize) -> Value {
    let part = |span: Span| {
        let whole = serde_json::from_str(&text[span.clone()]);
        whole.unwrap_or_else(|_| cut(text, span.start, depth - 1))
    };
    match text.as_bytes().get(at) {
        Some(b'"') => Value::String(String::new()),
        Some(b'{') if depth == 0 => Value::Object(Map::new()),
        Some(b'{') => spans::fields(text, at).fields.into_iter().map(|(key, it)| (key, part(it))).collect(),
        Some(b'[') if depth == 0 => Value::Array(Vec::new()),
        Some(b'[') => {
            let items = spans::items(text, at);
            let broken = items.broken.map(|it| it..text.len());
            items.spans.into_iter().chain(broken).map(part).collect()
        }
        _ => Value::Null,
    }
}
