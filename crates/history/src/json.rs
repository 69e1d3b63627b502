//! Makes almost valid JSON (lone surrogates, broken UTF-8) readable, without moving a byte.
//!
//! JavaScript cuts emoji in two and writes lone surrogates, which serde_json refuses; files are cut in the
//! middle of a character. [`mend`] replaces both by something of the same length, so that every position
//! stays the same.

use std::borrow::Cow;

use memchr::memmem;
use serde_json::Value;

/// The byte order mark, with which some editors begin a file.
pub const BYTE_ORDER_MARK: &str = "\u{feff}";

pub fn without_byte_order_mark(text: &str) -> &str {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// Makes bytes readable as JSON text without moving anything: a lone surrogate escape becomes `\ufffd`, a byte that
/// is not UTF-8 becomes `?`. Borrowed when there is nothing to mend.
pub fn mend(bytes: &[u8]) -> Cow<'_, str> {
    let mut out = match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => {
            let mut text = String::with_capacity(bytes.len());
            for chunk in bytes.utf8_chunks() {
                text.push_str(chunk.valid());
                text.extend(chunk.invalid().iter().map(|_| '?'));
            }
            Cow::Owned(text)
        }
    };
    let lone = lone_surrogates(out.as_bytes());
    if !lone.is_empty() {
        let text = out.to_mut();
        for at in lone {
            text.replace_range(at..at + 6, "\\ufffd");
        }
    }
    out
}

/// The positions of `\uD800`–`\uDFFF` without their other half.
fn lone_surrogates(bytes: &[u8]) -> Vec<usize> {
    let unit = |at: usize| -> Option<u32> {
        let hex = bytes.get(at..at + 6)?;
        if &hex[..2] != b"\\u" {
            return None;
        }
        std::str::from_utf8(&hex[2..]).ok().and_then(|it| u32::from_str_radix(it, 16).ok())
    };
    let mut out = Vec::new();
    let mut skip_to = 0;
    for at in memmem::find_iter(bytes, b"\\u") {
        // The escapes of interest begin `\ud8`..`\udf`.
        if at < skip_to || !matches!(bytes.get(at + 2), Some(b'd' | b'D')) {
            continue;
        }
        // An odd number of backslashes before this one means that it is itself escaped.
        let run = bytes[..at].iter().rev().take_while(|it| **it == b'\\').count();
        if run % 2 == 1 {
            continue;
        }
        match unit(at) {
            Some(0xD800..=0xDBFF) => match unit(at + 6) {
                Some(0xDC00..=0xDFFF) => skip_to = at + 12,
                _ => out.push(at),
            },
            Some(0xDC00..=0xDFFF) => out.push(at),
            _ => {}
        }
    }
    out
}

/// Sets a field of an object; any other value stays as it is, while assigning by index would panic.
pub fn set(value: &mut Value, key: &str, field: impl Into<Value>) {
    if let Some(object) = value.as_object_mut() {
        object.insert(key.to_owned(), field.into());
    }
}

/// `value` as compact JSON, keys in their order.
pub fn compact<T: serde::Serialize + ?Sized>(value: &T) -> String {
    // Serializing to memory fails only for maps with keys that are not strings, which we do not make.
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_what_is_no_object_are_not_set() {
        let mut object = serde_json::json!({"a": 1});
        set(&mut object, "a", "x");
        assert_eq!(object, serde_json::json!({"a": "x"}));
        for other in ["null", "1", "\"a\"", "[{}]"] {
            let mut value: Value = serde_json::from_str(other).unwrap();
            set(&mut value, "a", "x");
            assert_eq!(compact(&value), other);
        }
    }

    #[test]
    fn mends_in_place() {
        for (broken, mended) in [
            (r#"{"a":"x"}"#, r#"{"a":"x"}"#),
            (r#"["\ud83d\ude00"]"#, r#"["\ud83d\ude00"]"#),
            (r#"["\ud83d"]"#, r#"["\ufffd"]"#),
            (r#"["\ude00\ud83d\ud83d\ude00"]"#, r#"["\ufffd\ufffd\ud83d\ude00"]"#),
            (r#"["\\ud83d"]"#, r#"["\\ud83d"]"#),
            (r#"["\\\ud83d"]"#, r#"["\\\ufffd"]"#),
        ] {
            assert_eq!(mend(broken.as_bytes()), mended, "{broken}");
        }
        assert_eq!(mend(b"a\xffb"), "a?b");
    }
}
