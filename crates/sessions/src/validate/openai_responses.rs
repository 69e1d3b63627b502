//! The rules of OpenAI Responses input items.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{Violations, is_address, is_object, short};
use crate::media::is_base64;
use crate::wire::{is_plain, string};

/// A call that has been seen.
struct Call<'a> {
    item: usize,
    kind: &'a str,
    answered: bool,
}

pub(super) fn check(elements: &[Value], _body: Option<&Map<String, Value>>, found: &mut Violations) {
    let mut calls: HashMap<&str, Call<'_>> = HashMap::new();
    // Where the last turn begins, with a message of another role or after an output: only its calls may be
    // unanswered.
    let (mut turn, mut after_output) = (0, false);
    for (item, element) in elements.iter().enumerate() {
        let kind = match string(element, "type") {
            "" if element.get("role").is_some() => "message",
            it => it,
        };
        let id = string(element, "call_id");
        match kind {
            "message" => message(element, item, found),
            "function_call" | "custom_tool_call" => call(element, kind, item, found),
            "function_call_output" | "custom_tool_call_output" => output(element, item, found),
            "reasoning" => reasoning(element, elements.get(item + 1), item, found),
            "" => found.add("openai-responses/item", item, "expected an item with a type, found none"),
            _ => {}
        }
        // Server tools answer their own calls, without a `call_id`.
        let server = id.is_empty() && !matches!(kind, "function_call_output" | "custom_tool_call_output");
        let is_output = kind.ends_with("_output") && !server;
        if is_output {
            match calls.get_mut(id) {
                // "No tool call found for function call output with call_id" (API error).
                None => {
                    let what = format!("expected a call {} before its output, found none", short(id));
                    found.add("openai-responses/call-of-output", item, what);
                }
                Some(call) => {
                    let fits = kind
                        .strip_suffix("_output")
                        .is_some_and(|it| it == call.kind || format!("{it}_call") == call.kind);
                    found.unless(fits, "openai-responses/call-of-output", item, || {
                        format!("expected the output of a {}, found a {kind}", call.kind)
                    });
                    let twice = std::mem::replace(&mut call.answered, true);
                    found.unless(!twice, "openai-responses/unique-ids", item, || {
                        format!("expected one output of call {}, found another", short(id))
                    });
                }
            }
        } else if !id.is_empty() {
            let again = calls.insert(id, Call { item, kind, answered: false }).is_some();
            found.unless(!again, "openai-responses/unique-ids", item, || {
                format!("expected a call id not used before, found {}", short(id))
            });
        }
        let is_said = kind == "message" && string(element, "role") != "assistant";
        if is_said || (after_output && !is_output) {
            turn = item;
        }
        after_output = is_output;
    }
    // "No tool output found for function call" (API error); calls at the end may be waiting for it.
    for (id, call) in calls.iter().filter(|it| !it.1.answered && it.1.item < turn) {
        let what = format!("expected an output of call {}, found none", short(id));
        found.add("openai-responses/output-of-call", call.item, what);
    }
}

fn call(element: &Value, kind: &str, item: usize, found: &mut Violations) {
    // "Invalid 'input[..].call_id': string too long. Expected a string with maximum length 64" (API error).
    let id = string(element, "call_id");
    found.unless(!id.is_empty() && id.chars().count() <= 64, "openai-responses/id-length", item, || {
        format!("expected a call_id of 1 to 64 characters, found {}", short(id))
    });
    // "string does not match pattern … '^[a-zA-Z0-9_-]+$'" (API error).
    let name = string(element, "name");
    found.unless(is_plain(name, 64), "openai-responses/tool-name", item, || {
        format!("expected a tool name of 1 to 64 letters, digits, _ and -, found {}", short(name))
    });
    let fits = match kind {
        "custom_tool_call" => element.get("input").is_some_and(Value::is_string),
        _ => element.get("arguments").and_then(Value::as_str).is_some_and(is_object),
    };
    found.unless(fits, "openai-responses/arguments", item, || {
        "expected arguments as a string that holds a JSON object, or the text of a custom tool, found another value".into()
    });
}

/// A text, or texts and attachments (API reference, `FunctionCallOutput.output`).
fn output(element: &Value, item: usize, found: &mut Violations) {
    match element.get("output") {
        Some(Value::String(_)) => {}
        Some(Value::Array(parts)) => parts.iter().for_each(|it| part(it, "user", item, found)),
        _ => {
            let what = "expected a text or parts as output, found another value";
            found.add("openai-responses/content", item, what);
        }
    }
}

fn message(element: &Value, item: usize, found: &mut Violations) {
    let role = string(element, "role");
    let known = matches!(role, "user" | "assistant" | "system" | "developer");
    found.unless(known, "openai-responses/role", item, || {
        format!("expected role user, assistant, system or developer, found {}", short(role))
    });
    match element.get("content") {
        Some(Value::String(_)) => {}
        Some(Value::Array(parts)) => parts.iter().for_each(|it| part(it, role, item, found)),
        _ => {
            let what = "expected a text or parts as content, found none";
            found.add("openai-responses/content", item, what);
        }
    }
}

/// "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'" for the assistant, and the other
/// way round (API errors).
fn part(part: &Value, role: &str, item: usize, found: &mut Violations) {
    let kind = string(part, "type");
    let assistant = role == "assistant";
    let fits = match kind {
        "input_text" => !assistant && part.get("text").is_some_and(Value::is_string),
        "output_text" => assistant && part.get("text").is_some_and(Value::is_string),
        "refusal" => assistant && part.get("refusal").is_some_and(Value::is_string),
        "input_image" | "input_file" | "input_audio" => !assistant,
        _ => false,
    };
    found.unless(fits, "openai-responses/content", item, || {
        format!("expected a part that fits role {role}, found {}", short(kind))
    });
    let by_id = !string(part, "file_id").is_empty();
    let whole = match kind {
        "input_image" => by_id || is_address(string(part, "image_url")),
        "input_file" => {
            let data = string(part, "file_data");
            by_id || is_address(data) || is_base64(data) || is_address(string(part, "file_url"))
        }
        _ => true,
    };
    found.unless(whole, "openai-responses/media", item, || {
        format!("expected a whole {kind}, found a part of one")
    });
}

/// Reasoning comes back whole (`encrypted_content`, or the `id` of a stored one) with its `summary` ("missing required
/// parameter"), and leads to something: "Item of type 'reasoning' was provided without its required following item"
/// (API errors).
fn reasoning(element: &Value, next: Option<&Value>, item: usize, found: &mut Violations) {
    let whole = ["encrypted_content", "id"].into_iter().any(|it| !string(element, it).is_empty());
    let holds = whole && element.get("summary").is_some_and(Value::is_array);
    found.unless(holds, "openai-responses/reasoning-whole", item, || {
        "expected reasoning with a summary and its encrypted_content or id, found it without".into()
    });
    let leads = next.is_some_and(|it| {
        let kind = string(it, "type");
        string(it, "role") == "assistant" || (string(it, "role").is_empty() && !kind.ends_with("_output"))
    });
    found.unless(leads, "openai-responses/reasoning-leads", item, || {
        "expected an item of the assistant after reasoning, found none".into()
    });
}

#[cfg(test)]
mod tests {
    use crate::Format;
    use crate::validate::tests::judge;

    #[test]
    fn each_rule_has_what_breaks_it_and_what_does_not() {
        let array = |it: &[&str]| format!("[{}]", it.join(","));
        let call = |id: &str| {
            format!(r#"{{"type":"function_call","call_id":"{id}","name":"t","arguments":"{{}}"}}"#)
        };
        let named = |name: &str, arguments: &str| {
            format!(r#"[{{"type":"function_call","call_id":"a","name":"{name}","arguments":{arguments}}}]"#)
        };
        let says = |id: &str| format!(r#"{{"type":"function_call_output","call_id":"{id}","output":"x"}}"#);
        let (a, b, of_a, of_b) = (call("a"), call("b"), says("a"), says("b"));
        let user = r#"{"role":"user","content":"x"}"#;
        let parts =
            |role: &str, part: &str| format!(r#"[{{"type":"message","role":"{role}","content":[{part}]}}]"#);
        let image = r#"{"type":"input_image","image_url":"data:image/png;base64,iVBO"}"#;
        let thought = r#"{"type":"reasoning","summary":[],"encrypted_content":"s"}"#;
        judge(Format::OPENAI_RESPONSES, &[
            (
                    "openai-responses/call-of-output",
                    array(&[r#"{"type":"function_call_output","output":"x"}"#]),
                    array(&[r#"{"type":"tool_search_output","call_id":null,"execution":"server"}"#]),
                ),
                ("json", "3".into(), "[]".into()),
            ("openai-responses/item", "[{}]".into(), r#"[{"type":"item_reference","id":"x"}]"#.into()),
            ("openai-responses/role", r#"[{"role":"model","content":"x"}]"#.into(), array(&[user])),
            ("openai-responses/content", r#"[{"role":"user"}]"#.into(), array(&[user])),
            ("openai-responses/content", parts("assistant", r#"{"type":"input_text","text":"x"}"#), parts("user", r#"{"type":"input_text","text":"x"}"#)),
            ("openai-responses/content", parts("user", r#"{"type":"output_text","text":"x"}"#), parts("assistant", r#"{"type":"output_text","text":"x"}"#)),
            ("openai-responses/content", array(&[&a, r#"{"type":"function_call_output","call_id":"a"}"#]), array(&[&a, &of_a])),
            ("openai-responses/media", parts("user", &image.replace("iVBO", "…")), parts("user", image)),
            ("openai-responses/call-of-output", array(&[&of_a, user]), array(&[&a, &of_a, user])),
            ("openai-responses/call-of-output", array(&[&a, &of_a.replace("function_call", "custom_tool_call")]), array(&[&a, &b, &of_b, &of_a])),
            ("openai-responses/call-of-output", r#"[{"type":"computer_call_output","call_id":"a","output":{}}]"#.into(), r#"[{"type":"computer_call","call_id":"a"},{"type":"computer_call_output","call_id":"a","output":{}}]"#.into()),
            ("openai-responses/output-of-call", array(&[&a, user]), array(&[&a, user, &of_a])),
            ("openai-responses/output-of-call", array(&[&a, &b, &of_b, user]), array(&[&a, &b, &of_b])),
            ("openai-responses/output-of-call", array(&[&a, &b, &of_b, &call("c")]), array(&[&a, r#"{"role":"assistant","content":"x"}"#])),
            ("openai-responses/unique-ids", array(&[&a, &of_a, &a]), array(&[&a, &of_a])),
            ("openai-responses/unique-ids", array(&[&a, &of_a, &of_a]), array(&[&a, &of_a])),
            ("openai-responses/id-length", array(&[&call(&"x".repeat(65))]), array(&[&call(&"x".repeat(64))])),
            ("openai-responses/tool-name", named("a.b", r#""{}""#), named("a_b", r#""{}""#)),
            ("openai-responses/arguments", named("t", "{}"), named("t", r#""{}""#)),
            ("openai-responses/reasoning-whole", array(&[r#"{"type":"reasoning","summary":[]}"#, &a]), array(&[thought, &a])),
            ("openai-responses/reasoning-whole", array(&[r#"{"type":"reasoning","encrypted_content":"s"}"#, &a]), array(&[thought, &a])),
            ("openai-responses/reasoning-leads", array(&[thought, user]), array(&[thought, r#"{"role":"assistant","content":"x"}"#])),
            ("openai-responses/reasoning-leads", array(&[thought]), array(&[thought, thought, &a])),
        ]);
    }
}
