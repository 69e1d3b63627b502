//! Arguments of a call as models write them: numbers as strings, lists as one string, messages as a string of
//! JSON. What can be understood is accepted; the rest is an error that says what was expected and found.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::engine::values;
use history::error::{Error, ErrorKind, Hint, Result};

/// Aliases that models use for an argument. A session named by an alias must not be ignored: the call would
/// act on the current session instead.
const ALIASES: [(&str, &[&str]); 2] = [
    (
        "session",
        &[
            "path",
            "file",
            "file_path",
            "filePath",
            "session_id",
            "sessionId",
            "session_path",
            "sessionPath",
            "session_file",
            "sessionFile",
        ],
    ),
    ("query", &["q", "text"]),
];

/// Arguments that a client adds to every call, for itself.
const OF_CLIENTS: [&str; 1] = ["wait_for_previous"];

/// The arguments, each as JSON text, so that messages of many megabytes are not parsed twice.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arguments(pub(crate) BTreeMap<String, Box<RawValue>>);

impl Arguments {
    pub(crate) fn of(arguments: Map<String, Value>) -> Self {
        let raw =
            |(name, value): (String, Value)| Some((name, serde_json::value::to_raw_value(&value).ok()?));
        Self(arguments.into_iter().filter_map(raw).collect())
    }

    /// The JSON of an argument, under its own name or an alias; `None` if not given.
    fn raw(&self, name: &str) -> Option<&str> {
        self.under(self.alias(name).unwrap_or(name))
    }

    /// The JSON under exactly this name; null counts as not given.
    fn under(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|it| it.get().trim()).filter(|it| *it != "null")
    }

    /// The alias under which an argument was given, if its own name is absent or empty.
    fn alias(&self, name: &str) -> Option<&'static str> {
        let said = |it: &str| self.under(it).is_some_and(|it| it != "\"\"");
        let (_, others) = ALIASES.iter().find(|(it, _)| *it == name)?;
        if said(name) { None } else { others.iter().find(|it| said(it)).copied() }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.raw(name).is_some()
    }

    /// The given arguments that are neither `known` nor added by clients for themselves.
    pub(crate) fn ignored<T: AsRef<str>>(&self, known: &[T]) -> Vec<&str> {
        let aliases: Vec<&str> = known.iter().filter_map(|it| self.alias(it.as_ref())).collect();
        let understood = |it: &str| {
            known.iter().any(|known| known.as_ref() == it)
                || aliases.contains(&it)
                || OF_CLIENTS.contains(&it)
                || it.starts_with('_')
        };
        self.0.keys().map(String::as_str).filter(|it| !understood(it) && self.under(it).is_some()).collect()
    }

    /// A string; a number counts as one. Empty counts as not given.
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>> {
        self.raw(name).map_or(Ok(None), |json| values::text(json).map_err(|why| invalid(name, &why)))
    }

    /// A whole number, also as a string.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>> {
        self.raw(name).map_or(Ok(None), |json| values::number(json).map_err(|why| invalid(name, &why)))
    }

    /// The options of `T` among the `known` arguments; models are not offered `T`'s other fields.
    pub(crate) fn options<T: DeserializeOwned>(&self, known: &[String]) -> Result<T> {
        let mut given = Map::new();
        // Messages are not an option, and may be many megabytes.
        for name in known.iter().filter(|it| *it != "messages") {
            if let Some(json) = self.under(name) {
                let value = serde_json::from_str(&history::json::mend(json.as_bytes()));
                given.insert(name.clone(), value.map_err(|_| invalid(name, &values::wrong("JSON", json)))?);
            }
        }
        serde_path_to_error::deserialize(Value::Object(given))
            .map_err(|error| invalid(&error.path().to_string(), &error.inner().to_string()))
    }

    /// Messages: an array, an object that contains one, or either as a string.
    pub(crate) fn messages(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let Some(raw) = self.raw(name) else { return Ok(None) };
        let not_messages = |raw: &str| invalid(name, &values::wrong("an array of messages", raw));
        if raw.starts_with('"') {
            let text = values::decoded(raw).ok_or_else(|| not_messages(raw))?;
            return Ok(Some(text.into_bytes()).filter(|it| !it.is_empty()));
        }
        if raw.starts_with(['[', '{']) { Ok(Some(raw.as_bytes().to_vec())) } else { Err(not_messages(raw)) }
    }
}

/// The arguments of a call with a single one.
pub(crate) fn single(name: &str, value: Value) -> Map<String, Value> {
    Map::from_iter([(name.to_owned(), value)])
}

/// Adds an argument's name to an error about its value.
pub(crate) fn with_argument_name(name: &str, error: &Error) -> Error {
    match error.kind() {
        ErrorKind::Arguments => Error::of_argument(name, error.full()),
        kind => Error::new(kind, format!("{name}: {}", error.full())),
    }
}

fn invalid(name: &str, why: &str) -> Error {
    Error::of_argument(name, why)
}

/// What a caller can do about an error, in terms of the tools' arguments.
pub(crate) fn hint_words(hint: Hint) -> String {
    match hint {
        Hint::WriteCopy => r#"write the result with "to": "file""#.to_owned(),
        Hint::RestoreCopy => "read the original with recall".to_owned(),
        Hint::WriteMessages => r#"use "to": "file", which writes plain messages"#.to_owned(),
        Hint::NameFormat => "if you know the format, pass it with `format`".to_owned(),
        Hint::GiveWindow => "pass `window` in tokens, or the `model`".to_owned(),
        // No tool has such an argument.
        Hint::GiveNext => String::new(),
        Hint::SkipOutput => "leave that output out (`only`)".to_owned(),
        Hint::AllScopes => r#"use "scope": "all""#.to_owned(),
        Hint::RaiseBudget { tokens } => format!("a `budget` of {tokens} would keep it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Amount, CompactOptions, PruneOptions};

    fn arguments(json: serde_json::Value) -> Arguments {
        Arguments::of(json.as_object().unwrap().clone())
    }

    fn known() -> Vec<String> {
        ["budget", "keep", "focus", "style", "pin", "auto", "only"].map(str::to_owned).to_vec()
    }

    #[test]
    fn understands_what_models_write() {
        let it = arguments(serde_json::json!({
            "limit": "5", "budget": 4000, "keep": 0.25, "auto": "true", "only": "a, b", "pin": "one, whole", "session": "",
            "messages": "[{\"role\":\"user\",\"content\":\"hi\"}]", "focus": null, "trigger": "overflow",
        }));
        assert_eq!(it.number("limit").unwrap(), Some(5));
        assert_eq!(it.text("session").unwrap(), None);
        assert!(it.messages("messages").unwrap().unwrap().starts_with(b"[{"));
        let options: CompactOptions = it.options(&known()).unwrap();
        let expected = CompactOptions {
            budget: Some(Amount::Tokens(4000)),
            keep: Some(Amount::Share(0.25)),
            auto: true,
            pin: vec!["one, whole".to_owned()],
            ..CompactOptions::default()
        };
        // An option that is not offered is ignored: `trigger` is only for the command line.
        assert_eq!(options, expected);
        assert_eq!(it.options::<PruneOptions>(&known()).unwrap().only, ["a", "b"]);
        // For a tool that does not know them, they are ignored.
        assert_eq!(it.options::<CompactOptions>(&[]).unwrap(), CompactOptions::default());
    }

    #[test]
    fn understands_other_names() {
        let it = arguments(
            serde_json::json!({"session": "", "path": "/a", "file": "/b", "_meta": 1, "depth": 3, "x": null,
            "wait_for_previous": true}),
        );
        assert_eq!(it.text("session").unwrap().as_deref(), Some("/a"));
        // If two aliases are given, only one counts.
        assert_eq!(it.ignored(&["session"]), ["depth", "file"]);
        let it = arguments(serde_json::json!({"session": "/a", "sessionId": "b", "text": "words"}));
        assert_eq!(it.text("session").unwrap().as_deref(), Some("/a"));
        assert_eq!(it.ignored(&["session", "query"]), ["sessionId"]);
        assert_eq!(it.ignored(&["session", "text"]), ["sessionId"]);
        assert_eq!(it.text("query").unwrap().as_deref(), Some("words"));
    }

    #[test]
    fn says_what_it_found() {
        let it = arguments(serde_json::json!({"limit": "many", "text": {"a": 1}, "messages": 7}));
        assert_eq!(
            it.number("limit").unwrap_err().detail(),
            "limit: expected a whole number, found \"many\""
        );
        assert_eq!(it.text("text").unwrap_err().detail(), "text: expected a text, found {\"a\":1}");
        assert_eq!(
            it.messages("messages").unwrap_err().detail(),
            "messages: expected an array of messages, found 7"
        );
        for (wrong, says) in [
            (serde_json::json!({"auto": "maybe"}), "auto: expected true or false, found \"maybe\""),
            (
                serde_json::json!({"budget": "lots"}),
                "budget: expected tokens (4000, 4k) or a share (20%, 0.2), found \"lots\"",
            ),
            (serde_json::json!({"focus": ["a"]}), "focus: expected a text, found [\"a\"]"),
            (
                serde_json::json!({"style": "long"}),
                "style: expected brief, detailed or technical, found \"long\"",
            ),
        ] {
            let error = arguments(wrong).options::<CompactOptions>(&known()).unwrap_err();
            assert_eq!((error.kind(), error.detail()), (ErrorKind::Arguments, says));
        }
    }

    #[test]
    fn survives_half_an_emoji() {
        let raw = RawValue::from_string(r#""a \ud83d b""#.to_owned()).unwrap();
        let it = Arguments([("text".to_owned(), raw)].into());
        assert_eq!(it.text("text").unwrap().as_deref(), Some("a \u{fffd} b"));
        let it = Arguments([("focus".to_owned(), it.0["text"].clone())].into());
        assert_eq!(it.options::<CompactOptions>(&known()).unwrap().focus.as_deref(), Some("a \u{fffd} b"));
    }
}
