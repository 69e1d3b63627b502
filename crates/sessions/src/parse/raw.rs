//! Views into raw JSON text: what is not needed is not parsed, every value knows its position, and what is
//! copied keeps its bytes. Texts come from [`history::json::mend`], so that positions in them are positions
//! in the source.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use history::json;

/// The fields of an object, in order, with their values as raw JSON.
#[derive(Debug, Clone)]
pub struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// The fields of `text`, if it is a whole JSON object.
    pub fn of(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The JSON of a field, if it is there and not null. Of duplicates the last counts, as in JavaScript.
    pub fn get(&self, key: &str) -> Option<&'a str> {
        self.0.iter().rev().find(|(name, _)| name == key).map(|(_, raw)| raw.get()).filter(|it| *it != "null")
    }

    pub fn text(&self, key: &str) -> Option<String> {
        self.get(key).and_then(text)
    }

    pub fn object(&self, key: &str) -> Option<Fields<'a>> {
        self.get(key).and_then(Fields::of)
    }

    /// The elements of an array field, as raw JSON.
    pub fn list(&self, key: &str) -> Option<Vec<&'a str>> {
        self.get(key).and_then(list)
    }

    /// A field that is a whole number.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.get(key).and_then(|it| it.parse().ok())
    }

    /// Names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.0.iter().map(|(name, raw)| (&**name, raw.get()))
    }

    /// The object with fields replaced in place (or added at the end) by the given JSON, or left out
    /// (`None`).
    pub fn with<T: AsRef<str>>(&self, changes: &[(&str, Option<T>)]) -> String {
        let mut out = String::from("{");
        let mut put = |name: &str, raw: &str| {
            if out.len() > 1 {
                out.push(',');
            }
            out.push_str(&quoted(name));
            out.push(':');
            out.push_str(raw);
        };
        for (name, raw) in self.iter() {
            match changes.iter().find(|(key, _)| *key == name) {
                None => put(name, raw),
                Some((_, Some(new))) => put(name, new.as_ref()),
                Some((_, None)) => {}
            }
        }
        for (name, new) in changes {
            if let Some(new) = new
                && !self.0.iter().any(|(key, _)| key == name)
            {
                put(name, new.as_ref());
            }
        }
        out.push('}');
        out
    }
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Key<'a>(#[serde(borrow)] Cow<'a, str>);
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut out = Vec::new();
                while let Some((Key(name), raw)) = map.next_entry()? {
                    out.push((name, raw));
                }
                Ok(Fields(out))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

pub fn text(raw: &str) -> Option<String> {
    serde_json::from_str(raw).ok()
}

/// The elements of a JSON array, as raw JSON.
pub fn list(raw: &str) -> Option<Vec<&str>> {
    let list: Vec<&RawValue> = serde_json::from_str(raw).ok()?;
    Some(list.into_iter().map(RawValue::get).collect())
}

/// `text` as a JSON string.
pub fn quoted(text: &str) -> String {
    json::compact(text)
}

/// A JSON array of values that are JSON already.
pub fn array<T: AsRef<str>>(items: &[T]) -> String {
    let items: Vec<&str> = items.iter().map(AsRef::as_ref).collect();
    format!("[{}]", items.join(","))
}

/// The range of `part`, a slice of `whole`, in it.
pub fn place(whole: &str, part: &str) -> Option<Range<usize>> {
    let at = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    (at + part.len() <= whole.len()).then(|| at..at + part.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_keep_bytes_and_know_their_place() {
        let whole = r#"{ "a" : {"x": 1.50}, "b\n":"é\u00e9", "n": null, "l":[1, {"k":2}] , "a": 7}"#;
        let fields = Fields::of(whole).unwrap();
        assert_eq!(fields.number("a"), Some(7));
        assert_eq!(fields.text("b\n").unwrap(), "éé");
        assert_eq!(fields.get("n"), None);
        let list = fields.list("l").unwrap();
        assert_eq!(&whole[place(whole, list[1]).unwrap()], r#"{"k":2}"#);
        assert_eq!(place(whole, "elsewhere"), None);
        assert_eq!(
            fields.with(&[("n", Some("0")), ("l", None), ("z", Some("[]")), ("y", None)]),
            r#"{"a":{"x": 1.50},"b\n":"é\u00e9","n":0,"a":7,"z":[]}"#
        );
        assert!(Fields::of("[1]").is_none() && Fields::of("{} x").is_none());
    }

    #[test]
    fn deep_nesting_is_only_passed_over() {
        let deep = format!("{{\"a\":{}1{},\"b\":2}}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(Fields::of(&deep).unwrap().number("b"), Some(2));
    }
}
