//! Values as users and models write them: a number as a string, a list as one string, 200k for 200000. An
//! error says what was expected and what was found.

use std::fmt::Display;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use sessions::derive;

/// A time in milliseconds since 1970: an age (`90d`, `12w`), a day (`2026-01-31`, UTC) or RFC 3339.
pub fn timestamp(text: &str, now: i64) -> Option<i64> {
    const DAY: i64 = 24 * 60 * 60 * 1_000;
    let age = |unit: char, days: i64| {
        let number: u32 = text.strip_suffix(unit)?.parse().ok()?;
        Some(now.saturating_sub(i64::from(number) * days * DAY))
    };
    let day = || derive::parse_time(&format!("{text}T00:00:00.000Z"));
    age('d', 1).or_else(|| age('w', 7)).or_else(|| derive::parse_time(text)).or_else(day)
}

/// A string, or a number as one. `None` if blank.
pub(crate) fn text(json: &str) -> Result<Option<String>, String> {
    let text = if json.starts_with('"') {
        decoded(json).ok_or_else(|| wrong("a text", json))?
    } else if json.starts_with(['{', '[', 't', 'f']) {
        return Err(wrong("a text", json));
    } else {
        json.to_owned()
    };
    Ok(Some(text).filter(|it| !it.trim().is_empty()))
}

/// A whole number, also as a string.
pub(crate) fn number(json: &str) -> Result<Option<u64>, String> {
    let text = json.trim_matches('"').trim();
    if text.is_empty() {
        return Ok(None);
    }
    let whole = text.strip_suffix(".0").unwrap_or(text);
    whole.parse().map(Some).map_err(|_| wrong("a whole number", json))
}

/// A boolean, also as a string.
fn flag(json: &str) -> Result<bool, String> {
    match json.trim_matches('"') {
        "true" => Ok(true),
        "false" | "" => Ok(false),
        _ => Err(wrong("true or false", json)),
    }
}

/// A list of strings. A single string is read as a JSON array if it is one, else split at commas if `split`.
fn texts(json: &str, split: bool) -> Result<Vec<String>, String> {
    if json.starts_with('[') {
        return listed(json).ok_or_else(|| wrong("a list of texts", json));
    }
    let text = text(json)?.unwrap_or_default();
    if let Some(list) = listed(&text) {
        return Ok(list);
    }
    let texts: Vec<String> =
        if split { text.split(',').map(|it| it.trim().to_owned()).collect() } else { vec![text] };
    Ok(texts.into_iter().filter(|it| !it.is_empty()).collect())
}

/// Parses a JSON array of strings.
fn listed(json: &str) -> Option<Vec<String>> {
    serde_json::from_str(&history::json::mend(json.trim().as_bytes())).ok()
}

/// The text of a JSON string; lone surrogates in it are replaced.
pub(crate) fn decoded(json: &str) -> Option<String> {
    serde_json::from_str(&history::json::mend(json.as_bytes())).ok()
}

pub(crate) fn wrong(expected: &str, json: &str) -> String {
    let found: String = json.chars().take(60).collect();
    format!("expected {expected}, found {found}")
}

/// A number of tokens: 200000, 200k, 1.5M.
pub(crate) fn tokens(text: &str) -> Result<u64, String> {
    let (number, unit) = match text.trim().char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&text.trim()[..at], 1e3),
        Some((at, 'm' | 'M')) => (&text.trim()[..at], 1e6),
        _ => (text.trim(), 1.0),
    };
    match number.parse::<f64>() {
        Ok(it) if it >= 0.0 && it * unit < 1e12 && (unit > 1.0 || it.fract() == 0.0) => {
            Ok((it * unit) as u64)
        }
        _ => Err("expected tokens, such as 200000, 200k or 1.5M".to_owned()),
    }
}

/// Like [`tokens()`], but not 0.
pub(crate) fn window(text: &str) -> Result<u64, String> {
    match tokens(text)? {
        0 => Err("expected tokens above 0, such as 200000, 200k or 1.5M".to_owned()),
        tokens => Ok(tokens),
    }
}

/// Reads a value with one of the functions above; null gives the default.
fn read<'de, D: Deserializer<'de>, T: Default>(
    from: D,
    of: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, D::Error> {
    match Value::deserialize(from)? {
        Value::Null => Ok(T::default()),
        value => of(&value.to_string()).map_err(D::Error::custom),
    }
}

fn parsed<T: FromStr<Err: Display>>(json: &str) -> Result<Option<T>, String> {
    let parse = |text: String| text.parse::<T>().map_err(|error| error.to_string());
    text(json)?.map(parse).transpose()
}

/// Functions for `deserialize_with`.
pub(crate) mod field {
    use super::{Deserializer, Display, FromStr, read};

    pub(crate) fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
        read(from, super::text)
    }

    pub(crate) fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
        read(from, super::number)
    }

    pub(crate) fn flag<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
        read(from, super::flag)
    }

    pub(crate) fn texts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
        read(from, |json| super::texts(json, false))
    }

    /// A list whose text form has commas.
    pub(crate) fn names<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
        read(from, |json| super::texts(json, true))
    }

    pub(crate) fn parsed<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
    where
        D: Deserializer<'de>,
        T: FromStr<Err: Display>,
    {
        read(from, super::parsed)
    }

    pub(crate) fn parsed_or_default<'de, D, T>(from: D) -> Result<T, D::Error>
    where
        D: Deserializer<'de>,
        T: FromStr<Err: Display> + Default,
    {
        parsed(from).map(Option::unwrap_or_default)
    }

    /// The window of a model, in tokens, also as `200k`.
    pub(crate) fn window<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
        read(from, |json| super::text(json)?.as_deref().map(super::window).transpose())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_understood_however_they_are_written() {
        let both = ["Read".to_owned(), "Bash".to_owned()];
        for list in [r#"["Read", "Bash"]"#, r#""[\"Read\", \"Bash\"]""#] {
            assert_eq!(
                (texts(list, true).unwrap(), texts(list, false).unwrap()),
                (both.to_vec(), both.to_vec())
            );
        }
        assert_eq!(texts(r#""a, b""#, true).unwrap(), ["a", "b"]);
        assert_eq!(texts(r#""one, whole""#, false).unwrap(), ["one, whole"]);
        assert_eq!(texts(r#""[x] y""#, false).unwrap(), ["[x] y"]);
        assert_eq!(texts("[1]", true).unwrap_err(), "expected a list of texts, found [1]");
    }

    #[test]
    fn numbers_and_flags_may_be_texts() {
        assert_eq!((number("\"5\""), number("5.0"), number("\"\"")), (Ok(Some(5)), Ok(Some(5)), Ok(None)));
        assert_eq!(number("\"many\"").unwrap_err(), "expected a whole number, found \"many\"");
        assert_eq!((flag("\"true\""), flag("false")), (Ok(true), Ok(false)));
        assert!(flag("\"maybe\"").is_err());
        assert_eq!(text("4000").unwrap().as_deref(), Some("4000"));
        assert_eq!(text("{\"a\":1}").unwrap_err(), "expected a text, found {\"a\":1}");
    }
}
