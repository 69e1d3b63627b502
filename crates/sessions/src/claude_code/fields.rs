//! Changing a few values of a JSON text and no other byte of it.

use std::fmt::Write as _;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The fields of a JSON object in their order, values as they are written. Keys that come twice are both there.
pub(super) struct Fields<'a>(Vec<(String, &'a str)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Vec<(String, &'de str)>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut out = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
                    out.push((key, value.get()));
                }
                Ok(out)
            }
        }
        deserializer.deserialize_map(Each).map(Fields)
    }
}

impl<'a> Fields<'a> {
    /// The object in `text`, if it is one.
    pub(super) fn of(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The value of the last field of that name: the one that JavaScript takes.
    pub(super) fn get(&self, key: &str) -> Option<&'a str> {
        self.0.iter().rev().find(|it| it.0 == key).map(|it| it.1)
    }

    /// The object again: fields that `change` names get its value, or go. Those in `change` that were not there are
    /// added at the end.
    pub(super) fn with(&self, change: &[(&str, Option<String>)]) -> String {
        let mut out = String::from("{");
        let mut put = |key: &str, value: &str| {
            if out.len() > 1 {
                out.push(',');
            }
            // A `String` takes everything that is written to it.
            let _ = write!(out, "{}:{value}", history::json::compact(key));
        };
        for (key, value) in &self.0 {
            match change.iter().find(|it| it.0 == key) {
                Some((_, Some(new))) => put(key, new),
                Some((_, None)) => {}
                None => put(key, value),
            }
        }
        for (key, value) in change {
            if let Some(value) = value
                && !self.0.iter().any(|it| it.0 == *key)
            {
                put(key, value);
            }
        }
        out.push('}');
        out
    }
}

/// Where `part`, a slice of `whole`, stands in it.
pub(super) fn span(whole: &str, part: &str) -> Range<usize> {
    let at = part.as_ptr() as usize - whole.as_ptr() as usize;
    at..at + part.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_only_what_is_named() {
        let text = r#"{"a": 1.0, "b":{ "x": [1e3] },"a":2, "c":null}"#;
        let fields = Fields::of(text).unwrap();
        assert_eq!(fields.get("a"), Some("2"));
        assert_eq!(
            fields.with(&[("c", None), ("d", Some("\"new\"".into())), ("e", None)]),
            r#"{"a":1.0,"b":{ "x": [1e3] },"a":2,"d":"new"}"#
        );
        assert_eq!(&text[span(text, fields.get("b").unwrap())], r#"{ "x": [1e3] }"#);
    }
}
