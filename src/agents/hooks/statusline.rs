//! The JSON that Claude Code writes to a status line command's standard input.
//!
//! Fields: <https://code.claude.com/docs/en/statusline>. `context_window` exists since 2.0.65, `prompt_cache`
//! since 2.1.251; both seen in 2.1.328. For other agents the same form with only `transcript_path` works.

use std::path::PathBuf;

use serde_json::Value;

/// What the agent tells about its session; everything is optional.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StatusInput {
    pub session: Option<String>,
    pub path: Option<PathBuf>,
    pub model: Option<String>,
    pub context: Option<Context>,
    pub cache: Option<Cache>,
}

/// The context as the agent counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    /// Tokens of the last request and its reply; `None` before the first and right after a compaction.
    pub tokens: Option<u64>,
    pub window: Option<u64>,
}

/// The provider's prompt cache as the agent knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cache {
    /// When it expires, in ms since 1970; `None` if unknown.
    pub until: Option<i64>,
}

/// `None` if `text` is not a JSON object. A field of the wrong type counts as missing.
pub fn read(text: &str) -> Option<StatusInput> {
    let root: Value = serde_json::from_str(text).ok()?;
    root.is_object().then(|| StatusInput {
        session: text_of(&root["session_id"]),
        path: text_of(&root["transcript_path"]).map(PathBuf::from),
        model: text_of(&root["model"]["id"]),
        context: root["context_window"].is_object().then(|| context(&root["context_window"])),
        cache: root["prompt_cache"].is_object().then(|| cache(&root["prompt_cache"])),
    })
}

fn text_of(value: &Value) -> Option<String> {
    value.as_str().filter(|it| !it.is_empty()).map(str::to_owned)
}

fn context(value: &Value) -> Context {
    let usage = &value["current_usage"];
    let parts = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"];
    let tokens = parts.iter().fold(0_u64, |sum, it| sum.saturating_add(usage[it].as_u64().unwrap_or(0)));
    Context {
        tokens: Some(tokens).filter(|it| *it > 0),
        window: value["context_window_size"].as_u64().filter(|it| *it > 0),
    }
}

fn cache(value: &Value) -> Cache {
    // Seconds since 1970, possibly fractional.
    let seconds = value["expires_at"].as_f64().filter(|_| value["caching_observed"] != false);
    Cache { until: seconds.map(|it| (it * 1_000.0) as i64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_claude_code_writes() {
        let text = r#"{"session_id":"s","transcript_path":"/p/s.jsonl","cwd":"/p","model":{"id":"claude-opus-5-5","display_name":"Opus"},
            "context_window":{"context_window_size":200000,"used_percentage":69,"current_usage":{"input_tokens":2,
            "cache_creation_input_tokens":35998,"cache_read_input_tokens":100000,"output_tokens":2000}},
            "prompt_cache":{"warm":true,"caching_observed":true,"ttl":"1h","expires_at":1790682660}}"#;
        let input = read(text).unwrap();
        assert_eq!(input.context, Some(Context { tokens: Some(138_000), window: Some(200_000) }));
        assert_eq!(input.cache, Some(Cache { until: Some(1_790_682_660_000) }));
        assert_eq!((input.session.as_deref(), input.model.as_deref()), (Some("s"), Some("claude-opus-5-5")));
    }

    #[test]
    fn what_is_not_known_is_missing() {
        let input = read(
            r#"{"context_window":{"context_window_size":200000,"current_usage":null},"prompt_cache":{"caching_observed":false,"expires_at":5}}"#,
        );
        let input = input.unwrap();
        assert_eq!(input.context, Some(Context { tokens: None, window: Some(200_000) }));
        assert_eq!(input.cache, Some(Cache { until: None }));
        let odd = r#"{"session_id":3,"transcript_path":[],"model":"m","context_window":{"context_window_size":-1,"current_usage":{"input_tokens":"9"}},"prompt_cache":{"expires_at":1e300}}"#;
        let odd = read(odd).unwrap();
        assert_eq!((odd.session, odd.path, odd.model), (None, None, None));
        assert_eq!(odd.context, Some(Context { tokens: None, window: None }));
        for broken in ["", "[]", "null", "{", "3"] {
            assert_eq!(read(broken), None, "{broken}");
        }
    }
}
