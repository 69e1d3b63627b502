//! Arguments of a call, as a model writes them: numbers as text, lists as one text, messages as a text of JSON. What
//! can be understood is; what cannot is an error that says what was expected and what was found.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use history::error::{Error, Kind, Result};

/// Other names by which models call an argument: who names a session in their own words means that one, not the current.
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

/// What a client adds to the arguments of every tool, for itself.
const OF_CLIENTS: [&str; 1] = ["wait_for_previous"];

/// The arguments as JSON text each: messages of many megabytes are not parsed twice.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arguments(pub(crate) BTreeMap<String, Box<RawValue>>);

impl Arguments {
    pub(crate) fn of(arguments: serde_json::Map<String, serde_json::Value>) -> Self {
        let raw = |(name, value): (String, serde_json::Value)| {
            Some((name, serde_json::value::to_raw_value(&value).ok()?))
        };
        Self(arguments.into_iter().filter_map(raw).collect())
    }

    /// The JSON of an argument that was given, under its own name or one that means the same.
    fn raw(&self, name: &str) -> Option<&str> {
        self.under(self.alias(name).unwrap_or(name))
    }

    /// The JSON under this very name; null is not given.
    fn under(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|it| it.get().trim()).filter(|it| *it != "null")
    }

    /// The other name that an argument was given under, where its own says nothing.
    fn alias(&self, name: &str) -> Option<&'static str> {
        let said = |it: &str| self.under(it).is_some_and(|it| it != "\"\"");
        let (_, others) = ALIASES.iter().find(|(it, _)| *it == name)?;
        if said(name) { None } else { others.iter().find(|it| said(it)).copied() }
    }

    /// Whether an argument was given.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.raw(name).is_some()
    }

    /// What was given that is none of the `known` arguments, and that no client adds for itself.
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

    /// A text; a number counts as one. Empty is not given.
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>> {
        let Some(raw) = self.raw(name) else { return Ok(None) };
        let text = if raw.starts_with('"') {
            decoded(raw).ok_or_else(|| wrong(name, "a text", raw))?
        } else if raw.starts_with(['{', '[', 't', 'f']) {
            return Err(wrong(name, "a text", raw));
        } else {
            raw.to_owned()
        };
        Ok(Some(text).filter(|it| !it.trim().is_empty()))
    }

    /// A whole number, also as a text.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>> {
        let Some(raw) = self.raw(name) else { return Ok(None) };
        let text = raw.trim_matches('"').trim();
        if text.is_empty() {
            return Ok(None);
        }
        let whole = text.strip_suffix(".0").unwrap_or(text);
        whole.parse().map(Some).map_err(|_| wrong(name, "a whole number", raw))
    }

    /// Yes or no, also as a text.
    pub(crate) fn flag(&self, name: &str) -> Result<bool> {
        let Some(raw) = self.raw(name) else { return Ok(false) };
        match raw.trim_matches('"') {
            "true" => Ok(true),
            "false" | "" => Ok(false),
            _ => Err(wrong(name, "true or false", raw)),
        }
    }

    /// A list of texts, also as a text of JSON; another text is a list of one, and is split at commas if `split`.
    pub(crate) fn texts(&self, name: &str, split: bool) -> Result<Vec<String>> {
        let Some(raw) = self.raw(name) else { return Ok(Vec::new()) };
        if raw.starts_with('[') {
            return listed(raw).ok_or_else(|| wrong(name, "a list of texts", raw));
        }
        let text = self.text(name)?.unwrap_or_default();
        if let Some(list) = listed(&text) {
            return Ok(list);
        }
        let texts: Vec<String> =
            if split { text.split(',').map(|it| it.trim().to_owned()).collect() } else { vec![text] };
        Ok(texts.into_iter().filter(|it| !it.is_empty()).collect())
    }

    /// Messages: an array, an object that holds one, or either as a text.
    pub(crate) fn messages(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let Some(raw) = self.raw(name) else { return Ok(None) };
        if raw.starts_with('"') {
            let text = decoded(raw).ok_or_else(|| wrong(name, "an array of messages", raw))?;
            return Ok(Some(text.into_bytes()).filter(|it| !it.is_empty()));
        }
        if raw.starts_with(['[', '{']) {
            Ok(Some(raw.as_bytes().to_vec()))
        } else {
            Err(wrong(name, "an array of messages", raw))
        }
    }
}

/// The texts of a JSON array of them.
fn listed(json: &str) -> Option<Vec<String>> {
    serde_json::from_str(&history::json::mend(json.trim().as_bytes())).ok()
}

/// The text of a JSON string; half an emoji in it is no reason to refuse the rest.
fn decoded(raw: &str) -> Option<String> {
    serde_json::from_str(&history::json::mend(raw.as_bytes())).ok()
}

/// An error of what an argument says, with its name.
pub(crate) fn of(name: &str, error: &Error) -> Error {
    Error::new(error.kind(), format!("{name}: {}", error.full()))
}

fn wrong(name: &str, expected: &str, raw: &str) -> Error {
    let found: String = raw.chars().take(60).collect();
    Error::new(Kind::Arguments, format!("{name}: expected {expected}, found {found}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(json: serde_json::Value) -> Arguments {
        Arguments::of(json.as_object().unwrap().clone())
    }

    #[test]
    fn understands_what_models_write() {
        let it = arguments(serde_json::json!({
            "limit": "5", "budget": 4000, "auto": "true", "only": "a, b", "pin": "one, whole", "session": "",
            "messages": "[{\"role\":\"user\",\"content\":\"hi\"}]", "focus": null,
        }));
        assert_eq!(it.number("limit").unwrap(), Some(5));
        assert_eq!(it.text("budget").unwrap().as_deref(), Some("4000"));
        assert!(it.flag("auto").unwrap());
        assert_eq!(it.texts("only", true).unwrap(), ["a", "b"]);
        assert_eq!(it.texts("pin", false).unwrap(), ["one, whole"]);
        assert_eq!(it.text("session").unwrap(), None);
        assert_eq!(it.text("focus").unwrap(), None);
        assert!(it.messages("messages").unwrap().unwrap().starts_with(b"[{"));
    }

    #[test]
    fn understands_other_names() {
        let it = arguments(
            serde_json::json!({"session": "", "path": "/a", "file": "/b", "_meta": 1, "depth": 3, "x": null,
            "wait_for_previous": true}),
        );
        assert_eq!(it.text("session").unwrap().as_deref(), Some("/a"));
        // Of two names that mean the same, one counts.
        assert_eq!(it.ignored(&["session"]), ["depth", "file"]);
        let it = arguments(serde_json::json!({"session": "/a", "sessionId": "b", "text": "words"}));
        assert_eq!(it.text("session").unwrap().as_deref(), Some("/a"));
        assert_eq!(it.ignored(&["session", "query"]), ["sessionId"]);
        assert_eq!(it.ignored(&["session", "text"]), ["sessionId"]);
        assert_eq!(it.text("query").unwrap().as_deref(), Some("words"));
    }

    #[test]
    fn understands_lists() {
        let it = arguments(
            serde_json::json!({"a": "[\"Read\", \"Bash\"]", "b": "Read", "c": ["Read"], "d": "[x] y", "e": [1]}),
        );
        assert_eq!(it.texts("a", true).unwrap(), ["Read", "Bash"]);
        assert_eq!(it.texts("a", false).unwrap(), ["Read", "Bash"]);
        assert_eq!(it.texts("b", true).unwrap(), ["Read"]);
        assert_eq!(it.texts("c", false).unwrap(), ["Read"]);
        assert_eq!(it.texts("d", false).unwrap(), ["[x] y"]);
        assert!(it.texts("e", true).is_err());
    }

    #[test]
    fn says_what_it_found() {
        let it =
            arguments(serde_json::json!({"limit": "many", "text": {"a": 1}, "messages": 7, "auto": "maybe"}));
        assert_eq!(
            it.number("limit").unwrap_err().detail(),
            "limit: expected a whole number, found \"many\""
        );
        assert_eq!(it.text("text").unwrap_err().detail(), "text: expected a text, found {\"a\":1}");
        assert_eq!(
            it.messages("messages").unwrap_err().detail(),
            "messages: expected an array of messages, found 7"
        );
        assert!(it.flag("auto").is_err());
    }

    #[test]
    fn survives_half_an_emoji() {
        let raw = RawValue::from_string(r#""a \ud83d b""#.to_owned()).unwrap();
        let it = Arguments([("text".to_owned(), raw)].into());
        assert_eq!(it.text("text").unwrap().as_deref(), Some("a \u{fffd} b"));
    }
}
