//! The rules of OpenAI chat completions.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{Violations, is_address, is_object, short};
use crate::media::is_base64;
use crate::wire::{is_plain, string};

pub(super) fn check(elements: &[Value], _body: Option<&Map<String, Value>>, found: &mut Violations) {
    // The calls of the last assistant message, those that are not answered yet, and the index of that
    // message.
    let (mut calls, mut open, mut asked): (HashSet<&str>, HashSet<&str>, usize) = Default::default();
    for (message, element) in elements.iter().enumerate() {
        let role = string(element, "role");
        if role == "tool" {
            let id = string(element, "tool_call_id");
            // "messages with role 'tool' must be a response to a preceding message with 'tool_calls'" (API error).
            found.unless(calls.contains(id), "openai-chat/call-of-result", message, || {
                format!("expected a call {} in the assistant message before, found none", short(id))
            });
            let twice = calls.contains(id) && !open.remove(id);
            found.unless(!twice, "openai-chat/unique-ids", message, || {
                format!("expected one result of call {}, found another", short(id))
            });
            result(element, message, found);
            continue;
        }
        // "An assistant message with 'tool_calls' must be followed by tool messages responding to each
        // 'tool_call_id'" (API error); at the end of the array they may be still to come.
        unanswered(&mut open, asked, found);
        calls.clear();
        match role {
            "system" | "developer" | "user" => content(element, role, message, found),
            "assistant" => {
                for call in tool_calls(element) {
                    tool_call(call, message, found);
                    let id = string(call, "id");
                    found.unless(calls.insert(id), "openai-chat/unique-ids", message, || {
                        format!(
                            "expected calls of one message to have ids of their own, found {} twice",
                            short(id)
                        )
                    });
                }
                open.clone_from(&calls);
                asked = message;
                // "content: required unless tool_calls or function_call is specified" (API reference).
                let calls_something =
                    !calls.is_empty() || element.get("function_call").is_some_and(Value::is_object);
                let silent = element.get("content").is_none_or(Value::is_null);
                let refuses = element.get("refusal").is_some_and(Value::is_string);
                if silent {
                    found.unless(calls_something || refuses, "openai-chat/content", message, || {
                        "expected content or tool_calls of the assistant, found neither".into()
                    });
                } else {
                    content(element, role, message, found);
                }
            }
            "function" => {}
            _ => {
                let what = "expected role system, developer, user, assistant or tool, found";
                found.add("openai-chat/role", message, format!("{what} {}", short(role)));
            }
        }
    }
}

fn tool_calls(element: &Value) -> &[Value] {
    element.get("tool_calls").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn unanswered(open: &mut HashSet<&str>, asked: usize, found: &mut Violations) {
    let mut left: Vec<&str> = open.drain().collect();
    left.sort_unstable();
    for id in left {
        let what = format!("expected a tool message for call {} before anything else, found none", short(id));
        found.add("openai-chat/result-follows-call", asked, what);
    }
}

fn tool_call(call: &Value, message: usize, found: &mut Violations) {
    // "string too long. Expected a string with maximum length 40" (API error).
    let id = string(call, "id");
    found.unless(!id.is_empty() && id.chars().count() <= 40, "openai-chat/id-length", message, || {
        format!("expected a call id of 1 to 40 characters, found {}", short(id))
    });
    let (what, key) = match call.get("custom") {
        Some(it) => (it, "input"),
        None => (call.get("function").unwrap_or(&Value::Null), "arguments"),
    };
    // "string does not match pattern … '^[a-zA-Z0-9_-]+$'", at most 64 (API errors).
    let name = string(what, "name");
    found.unless(is_plain(name, 64), "openai-chat/tool-name", message, || {
        format!("expected a tool name of 1 to 64 letters, digits, _ and -, found {}", short(name))
    });
    // The API accepts any string; other servers with this API parse the arguments (vLLM, Mistral).
    let input = what.get(key).and_then(Value::as_str);
    let fits = input.is_some_and(|it| key == "input" || is_object(it));
    found.unless(fits, "openai-chat/arguments", message, || {
        "expected the arguments as a string that holds a JSON object, found another value".into()
    });
}

/// A tool message holds text only (API reference, `ChatCompletionToolMessageParam`).
fn result(element: &Value, message: usize, found: &mut Violations) {
    let fits = match element.get("content") {
        Some(Value::String(_)) => true,
        Some(Value::Array(it)) => {
            it.iter().all(|it| string(it, "type") == "text" && it.get("text").is_some_and(Value::is_string))
        }
        _ => false,
    };
    found.unless(fits, "openai-chat/content", message, || {
        "expected a text as content of a tool message, found another value".into()
    });
}

/// Texts for all roles, attachments for users (API reference, `ChatCompletion…MessageParam`).
fn content(element: &Value, role: &str, message: usize, found: &mut Violations) {
    let parts = match element.get("content") {
        Some(Value::String(_)) => return,
        Some(Value::Array(it)) if !it.is_empty() => it,
        _ => {
            let what = "expected a text or parts as content, found none";
            found.add("openai-chat/content", message, what);
            return;
        }
    };
    for part in parts {
        let kind = string(part, "type");
        let media = match kind {
            "text" => {
                let holds = part.get("text").is_some_and(Value::is_string);
                found.unless(holds, "openai-chat/content", message, || {
                    "expected text in a text part, found none".into()
                });
                continue;
            }
            "refusal" if role == "assistant" => continue,
            "image_url" => is_address(part.get("image_url").map_or("", |it| string(it, "url"))),
            "input_audio" => part.get("input_audio").is_some_and(|it| {
                is_base64(string(it, "data")) && matches!(string(it, "format"), "wav" | "mp3")
            }),
            "file" => part
                .get("file")
                .is_some_and(|it| !string(it, "file_id").is_empty() || is_address(string(it, "file_data"))),
            _ => {
                let what = format!("expected a known part, found {}", short(kind));
                found.add("openai-chat/content", message, what);
                continue;
            }
        };
        found.unless(media && role == "user", "openai-chat/media", message, || {
            format!("expected a whole {kind} from the user, found another")
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::Format;
    use crate::validate::tests::judge;

    #[test]
    fn each_rule_has_what_breaks_it_and_what_does_not() {
        let one = |it: &str| format!("[{it}]");
        let call = |id: &str| {
            format!(r#"{{"id":"{id}","type":"function","function":{{"name":"t","arguments":"{{}}"}}}}"#)
        };
        let asks = |calls: &[&str]| {
            let calls: Vec<String> = calls.iter().map(|it| call(it)).collect();
            format!(r#"{{"role":"assistant","content":null,"tool_calls":[{}]}}"#, calls.join(","))
        };
        let says = |id: &str| format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"x"}}"#);
        let user = r#"{"role":"user","content":"x"}"#;
        let array = |it: &[&str]| format!("[{}]", it.join(","));
        let (ab, a, b) = (asks(&["a", "b"]), says("a"), says("b"));
        let named = |name: &str, arguments: &str| {
            format!(
                r#"[{{"role":"assistant","tool_calls":[{{"id":"a","type":"function","function":{{"name":"{name}","arguments":{arguments}}}}}]}}]"#
            )
        };
        let parts = |role: &str, part: &str| format!(r#"[{{"role":"{role}","content":[{part}]}}]"#);
        let image = r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBO"}}"#;
        judge(
            Format::OPENAI_CHAT,
            &[
                ("json", "[".into(), "[]".into()),
                (
                    "openai-chat/role",
                    one(r#"{"role":"model","content":"x"}"#),
                    one(r#"{"role":"developer","content":"x"}"#),
                ),
                ("openai-chat/content", one(r#"{"role":"user","content":null}"#), one(user)),
                ("openai-chat/content", one(r#"{"role":"assistant","content":null}"#), one(&ab)),
                (
                    "openai-chat/content",
                    array(&[&asks(&["a"]), r#"{"role":"tool","tool_call_id":"a"}"#]),
                    array(&[&asks(&["a"]), &a]),
                ),
                (
                    "openai-chat/content",
                    parts("user", r#"{"type":"tool_result"}"#),
                    parts("user", r#"{"type":"text","text":"x"}"#),
                ),
                ("openai-chat/result-follows-call", array(&[&ab, &a, user, &b]), array(&[&ab, &b, &a, user])),
                ("openai-chat/result-follows-call", array(&[&ab, user]), array(&[&ab, &a])),
                ("openai-chat/call-of-result", array(&[user, &a]), array(&[&ab, &a, &b])),
                (
                    "openai-chat/call-of-result",
                    array(&[&asks(&["a"]), &a, user, &a]),
                    array(&[&asks(&["a"]), &a, user, &asks(&["a"]), &a]),
                ),
                ("openai-chat/unique-ids", array(&[&asks(&["a"]), &a, &a]), array(&[&asks(&["a"]), &a])),
                ("openai-chat/unique-ids", one(&asks(&["a", "a"])), one(&ab)),
                ("openai-chat/id-length", one(&asks(&[&"x".repeat(41)])), one(&asks(&[&"x".repeat(40)]))),
                ("openai-chat/id-length", one(&asks(&[""])), one(&asks(&["functions.bash:0"]))),
                ("openai-chat/tool-name", named("a b", r#""{}""#), named("a-b", r#""{}""#)),
                (
                    "openai-chat/tool-name",
                    named(&"x".repeat(65), r#""{}""#),
                    named(&"x".repeat(64), r#""{}""#),
                ),
                ("openai-chat/arguments", named("t", "{}"), named("t", r#""{\"a\":[1]}""#)),
                ("openai-chat/arguments", named("t", r#""{\"a\"""#), named("t", r#""{\"a\":1}""#)),
                ("openai-chat/media", parts("assistant", image), parts("user", image)),
                ("openai-chat/media", parts("user", &image.replace("iVBO", "iV…BO")), parts("user", image)),
            ],
        );
    }
}
