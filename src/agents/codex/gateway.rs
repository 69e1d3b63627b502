//! Our gateway as the base URL in Codex's settings, and the compaction items that the gateway writes into
//! Codex's rollouts.

use std::ops::Range;
use std::path::PathBuf;

use super::Codex;
use crate::agents::{AgentRef, Env};
use history::Part;
use history::error::{Error, ErrorKind, Result};
use sessions::parse::raw::{Fields, place};

/// The only agent whose requests can go through the gateway.
pub const AGENT: AgentRef = &Codex;

/// Prefix of the `encrypted_content` of our compaction items; the archived original's handle follows.
pub const CAPSULE: &str = "EPITOME1.";

/// The setting for the built-in provider's base URL (Codex 0.169).
const KEY: &str = "openai_base_url";
/// Comment at the end of the line that we add.
const OURS: &str = "# epitome: gateway (epitome uninstall takes this out)";

pub fn settings(env: &Env) -> PathBuf {
    super::home(env).join("config.toml")
}

/// Whether a part contains the handle of an archived original: in a summary's text, or in a capsule's prefix.
pub fn names(part: &Part, handle: &str) -> bool {
    match part {
        Part::Text(text) => text.as_str().contains(handle),
        Part::Opaque(sealed) => sealed.raw.as_str().contains(&format!("{CAPSULE}{handle}.")),
        Part::Reasoning(_) | Part::Call(_) | Part::Output(_) | Part::Media(_) => false,
    }
}

/// Settings with the gateway as the built-in provider's base URL. The line is added at the top, since after a
/// section header it would belong to that section.
///
/// # Errors
/// [`ErrorKind::Refused`], with instructions for a manual change, if the user has set another provider or
/// base URL.
pub fn with_gateway(settings: &str, url: &str) -> Result<String> {
    let rest = without_gateway(settings);
    let table: toml::Table = toml::from_str(rest.trim_start_matches('\u{feff}')).map_err(|error| {
        Error::new(ErrorKind::Input, format!("expected TOML, found: {}", error.message()))
    })?;
    let provider = table.get("model_provider").and_then(toml::Value::as_str).filter(|it| *it != "openai");
    let by_hand = |what: String| Err(Error::new(ErrorKind::Refused, what));
    if let Some(name) = provider {
        let address = table.get("model_providers").and_then(|it| it.get(name)?.get("base_url")?.as_str());
        let upstream = address
            .map_or("its address now, without /v1", |it| it.trim_end_matches('/').trim_end_matches("/v1"));
        return by_hand(format!(
            "model_provider is {name:?}, which is not changed; to do it by hand, set base_url = {url:?} in \
             [model_providers.{name}] and run epitome serve --http HOST:PORT --upstream {upstream}"
        ));
    }
    if let Some(other) = table.get(KEY).and_then(toml::Value::as_str) {
        return by_hand(format!(
            "{KEY} is already {other:?}, which is not changed; to do it by hand, set {KEY} = {url:?} and run epitome \
             serve --http HOST:PORT --upstream {}",
            other.trim_end_matches('/').trim_end_matches("/v1")
        ));
    }
    let (mark, rest) = rest.strip_prefix('\u{feff}').map_or(("", rest.as_str()), |it| ("\u{feff}", it));
    let quoted = toml::Value::String(url.to_owned());
    Ok(format!("{mark}{KEY} = {quoted} {OURS}\n{rest}"))
}

/// Settings without the line that [`with_gateway`] adds.
pub fn without_gateway(settings: &str) -> String {
    let is_ours =
        |it: &str| it.trim_start_matches('\u{feff}').starts_with(KEY) && it.trim_end().ends_with(OURS);
    let mark = if settings.starts_with('\u{feff}') { "\u{feff}" } else { "" };
    let lines = settings.trim_start_matches('\u{feff}').split_inclusive('\n');
    std::iter::once(mark).chain(lines.filter(|it| !is_ours(it))).collect()
}

/// The gateway's URL in the settings, if [`with_gateway`] put it there.
pub fn gateway(settings: &str) -> Option<String> {
    if without_gateway(settings) == settings {
        return None;
    }
    let table: toml::Table = toml::from_str(settings.trim_start_matches('\u{feff}')).ok()?;
    table.get(KEY)?.as_str().map(str::to_owned)
}

/// The byte ranges of the items in a rollout line that may be capsules.
pub fn items(line: &str) -> Vec<Range<usize>> {
    let Some(payload) = Fields::of(line).and_then(|it| it.get("payload")) else { return Vec::new() };
    let history = Fields::of(payload).and_then(|it| it.list("replacement_history"));
    history.unwrap_or_else(|| vec![payload]).iter().filter_map(|it| place(line, it)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "http://127.0.0.1:8765/v1";

    #[test]
    fn every_byte_is_as_before() {
        for text in [
            "",
            "\n",
            "model = \"x\"\n[tui]\na = 1",
            "\u{feff}[tui]\r\nb = 2\r\n",
            "model_provider = \"openai\" # mine\n",
            "# openai_base_url = \"x\"\n",
        ] {
            let with = with_gateway(text, URL).unwrap();
            assert_eq!(gateway(&with).as_deref(), Some(URL));
            assert_eq!(with_gateway(&with, URL).unwrap(), with);
            let moved = with_gateway(&with, "http://localhost:1/v1").unwrap();
            assert_eq!(gateway(&moved).as_deref(), Some("http://localhost:1/v1"));
            assert_eq!(without_gateway(&with), text);
            assert_eq!(without_gateway(text), text);
            assert_eq!(gateway(text), None);
        }
    }

    #[test]
    fn what_the_user_chose_stays() {
        for text in [
            "openai_base_url = \"https://proxy.example/v1\"\n",
            "model_provider = \"mine\"\n[model_providers.mine]\nbase_url = \"https://proxy.example/v1\"\n",
        ] {
            let error = with_gateway(text, URL).unwrap_err();
            assert!(
                error.kind() == ErrorKind::Refused
                    && error.full().contains("--upstream https://proxy.example"),
                "{error}"
            );
        }
        assert_eq!(with_gateway("a = ", URL).unwrap_err().kind(), ErrorKind::Input);
    }

    #[test]
    fn items_of_a_line_are_found() {
        let of = |line: &str| items(line).into_iter().map(|it| line[it].to_owned()).collect::<Vec<_>>();
        assert_eq!(
            of(r#"{"a": 1.0, "payload": {"replacement_history": [ {"b":1} , {"c": 2}]}}"#),
            [r#"{"b":1}"#, r#"{"c": 2}"#]
        );
        assert_eq!(of(r#"{"payload":{"type":"compaction"}}"#), [r#"{"type":"compaction"}"#]);
        assert!(of("{\"payload\"").is_empty() && of("[]").is_empty());
    }
}
