//! The rules of Gemini contents.

use serde_json::{Map, Value};

use super::{Violations, short};
use crate::media::is_base64;
use crate::wire::gemini::{either, is_name};
use crate::wire::string;

pub(super) fn check(elements: &[Value], _body: Option<&Map<String, Value>>, found: &mut Violations) {
    for (content, element) in elements.iter().enumerate() {
        let role = string(element, "role");
        // "Please use a valid role: user, model" (API error); without one it is the user.
        found.unless(matches!(role, "user" | "model" | ""), "gemini/role", content, || {
            format!("expected role user or model, found {}", short(role))
        });
        let model = role == "model";
        if content == 0 {
            // "Please ensure that multiturn requests … start with a user turn" (API errors).
            found.unless(!model, "gemini/first-user", content, || {
                "expected the first content from the user, found the model".into()
            });
        }
        // "contents.parts must not be empty" (API error).
        found.unless(!parts(element).is_empty(), "gemini/parts", content, || {
            "expected parts, found none".into()
        });
        for it in parts(element) {
            part(it, model, content, found);
        }
        let before = content.checked_sub(1).and_then(|it| elements.get(it));
        turn(element, before, elements.get(content + 1..).unwrap_or_default(), content, found);
    }
}

fn parts(element: &Value) -> &[Value] {
    element.get("parts").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn call(part: &Value) -> Option<&Value> {
    either(part, "functionCall", "function_call")
}

fn response(part: &Value) -> Option<&Value> {
    either(part, "functionResponse", "function_response")
}

/// Checks a part by itself.
fn part(part: &Value, model: bool, content: usize, found: &mut Violations) {
    let signed = either(part, "thoughtSignature", "thought_signature");
    // The signature must come back as it was given (documentation, "Thought signatures").
    let holds = signed.is_none_or(|it| it.as_str().is_some_and(|it| !it.is_empty()));
    found.unless(holds, "gemini/signature", content, || {
        "expected a thought signature as text, found another value".into()
    });
    if let Some(it) = call(part) {
        named(it, content, found);
        found.unless(model, "gemini/part-role", content, || {
            "expected a functionCall from the model, found it from the user".into()
        });
        found.unless(it.get("args").is_none_or(Value::is_object), "gemini/args-object", content, || {
            "expected a JSON object as args, found another value".into()
        });
    } else if let Some(it) = response(part) {
        named(it, content, found);
        found.unless(!model, "gemini/part-role", content, || {
            "expected a functionResponse from the user, found it from the model".into()
        });
        // `FunctionResponse.response` is a Struct (API reference).
        let holds = it.get("response").is_some_and(Value::is_object);
        found.unless(holds, "gemini/response-object", content, || {
            "expected a JSON object as response, found another value".into()
        });
    } else if let Some(it) = part.get("text") {
        // "Unable to submit request because it must have a text parameter" (API error); streams do give empty texts
        // that carry a signature.
        let fits = it.as_str().is_some_and(|it| !it.is_empty()) || signed.is_some();
        found.unless(fits, "gemini/empty-text", content, || "expected text, found an empty text part".into());
        // A thought without its signature may be anybody's text passed off as the model's thinking.
        let thought = part.get("thought").and_then(Value::as_bool).unwrap_or(false);
        found.unless(!thought || (model && signed.is_some()), "gemini/thought-signed", content, || {
            "expected a thought of the model with its signature, found it without".into()
        });
    } else if let Some(it) = either(part, "inlineData", "inline_data") {
        let whole = mime(it).contains('/') && is_base64(string(it, "data"));
        found.unless(whole, "gemini/media", content, || {
            "expected whole base64 data and its type, found another".into()
        });
    } else if let Some(it) = either(part, "fileData", "file_data") {
        let uri = either(it, "fileUri", "file_uri").and_then(Value::as_str).unwrap_or_default();
        found.unless(!uri.is_empty(), "gemini/media", content, || {
            "expected the address of a file, found none".into()
        });
    } else {
        // "required oneof field 'data' must have one initialized field" (API error).
        let known = ["executableCode", "executable_code", "codeExecutionResult", "code_execution_result"];
        found.unless(known.iter().any(|it| part.get(it).is_some()), "gemini/parts", content, || {
            "expected a part with data, found none".into()
        });
    }
}

fn mime(value: &Value) -> &str {
    either(value, "mimeType", "mime_type").and_then(Value::as_str).unwrap_or_default()
}

fn named(value: &Value, content: usize, found: &mut Violations) {
    let name = string(value, "name");
    found.unless(is_name(name), "gemini/tool-name", content, || {
        format!("expected a tool name of 1 to 64 letters, digits, _, -, . and :, found {}", short(name))
    });
}

/// Checks a content together with its neighbors.
fn turn(element: &Value, before: Option<&Value>, after: &[Value], content: usize, found: &mut Violations) {
    let calls: Vec<&Value> = parts(element).iter().filter_map(call).collect();
    if !calls.is_empty() {
        // "function call turn comes immediately after a user turn or after a function response turn" (API error).
        let after_user = before.is_some_and(|it| string(it, "role") != "model");
        found.unless(after_user, "gemini/call-after-user", content, || {
            "expected a functionCall right after the user's content, found it elsewhere".into()
        });
        // "number of function response parts is equal to the number of function call parts" (API error). Calls at
        // the end are waiting for theirs.
        let next = after.first().map(parts).unwrap_or_default();
        let answers = next.iter().filter_map(response).count();
        let waiting = after.is_empty();
        found.unless(answers == calls.len() || waiting, "gemini/response-count", content, || {
            format!("expected {} functionResponse parts in the next content, found {answers}", calls.len())
        });
    }
    let answers = parts(element).iter().filter_map(response);
    let asked: Vec<&Value> = before.map(parts).unwrap_or_default().iter().filter_map(call).collect();
    for (number, answer) in answers.enumerate() {
        // "function response turn comes immediately after a function call turn" (API error).
        let Some(call) = asked.get(number) else {
            let what = "expected a functionCall for each functionResponse in the content before, found fewer";
            found.add("gemini/call-of-response", content, what);
            continue;
        };
        let same = string(call, "name") == string(answer, "name")
            && (string(call, "id") == string(answer, "id") || string(answer, "id").is_empty());
        found.unless(same, "gemini/response-order", content, || {
            format!(
                "expected the response of {}, found that of {}",
                short(string(call, "name")),
                short(string(answer, "name"))
            )
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::Format;
    use crate::validate::tests::judge;

    #[test]
    fn each_rule_has_what_breaks_it_and_what_does_not() {
        let array = |it: &[&str]| format!("[{}]", it.join(","));
        let user = |it: &str| format!(r#"{{"role":"user","parts":[{it}]}}"#);
        let model = |it: &str| format!(r#"{{"role":"model","parts":[{it}]}}"#);
        let text = r#"{"text":"x"}"#;
        let call = |name: &str| format!(r#"{{"functionCall":{{"name":"{name}","args":{{}}}}}}"#);
        let says =
            |name: &str| format!(r#"{{"functionResponse":{{"name":"{name}","response":{{"output":"x"}}}}}}"#);
        let hi = user(text);
        let (f, of_f) = (model(&call("f")), user(&says("f")));
        let both = model(&format!("{},{}", call("f"), call("g")));
        let of_both = user(&format!("{},{}", says("f"), says("g")));
        let named = |name: &str| array(&[&hi, &model(&call(name))]);
        judge(
            Format::GEMINI,
            &[
                ("json", "[".into(), "[]".into()),
                ("gemini/role", r#"[{"role":"assistant","parts":[{"text":"x"}]}]"#.into(), array(&[&hi])),
                ("gemini/first-user", array(&[&model(text)]), array(&[&hi, &model(text)])),
                ("gemini/parts", array(&[&user("")]), array(&[&hi])),
                ("gemini/parts", array(&[&user("{}")]), array(&[&hi])),
                (
                    "gemini/empty-text",
                    array(&[&user(r#"{"text":""}"#)]),
                    array(&[&hi, &model(r#"{"text":"","thoughtSignature":"s"}"#)]),
                ),
                (
                    "gemini/thought-signed",
                    array(&[&hi, &model(r#"{"text":"x","thought":true}"#)]),
                    array(&[&hi, &model(r#"{"text":"x","thought":true,"thoughtSignature":"s"}"#)]),
                ),
                (
                    "gemini/signature",
                    array(&[&hi, &model(r#"{"text":"x","thoughtSignature":1}"#)]),
                    array(&[&hi, &model(r#"{"text":"x","thoughtSignature":"s"}"#)]),
                ),
                ("gemini/tool-name", named("1f"), named("_1f.a:b-c")),
                ("gemini/tool-name", named(&"x".repeat(65)), named(&"x".repeat(64))),
                (
                    "gemini/args-object",
                    array(&[&hi, &model(r#"{"functionCall":{"name":"f","args":[]}}"#)]),
                    named("f"),
                ),
                (
                    "gemini/response-object",
                    array(&[&hi, &f, &user(r#"{"functionResponse":{"name":"f","response":"x"}}"#)]),
                    array(&[&hi, &f, &of_f]),
                ),
                ("gemini/part-role", array(&[&user(&call("f"))]), named("f")),
                (
                    "gemini/media",
                    array(&[&user(r#"{"inlineData":{"data":"iVBO"}}"#)]),
                    array(&[&user(r#"{"inlineData":{"mimeType":"image/png","data":"iVBO"}}"#)]),
                ),
                (
                    "gemini/media",
                    array(&[&user(r#"{"fileData":{}}"#)]),
                    array(&[&user(r#"{"fileData":{"fileUri":"gs://x"}}"#)]),
                ),
                (
                    "gemini/call-after-user",
                    array(&[&hi, &model(text), &f]),
                    array(&[&hi, &model(&format!("{text},{}", call("f")))]),
                ),
                (
                    "gemini/response-count",
                    array(&[&hi, &both, &of_f, &hi]),
                    array(&[&hi, &both, &of_both, &hi]),
                ),
                ("gemini/response-count", array(&[&hi, &f, &hi]), array(&[&hi, &f])),
                ("gemini/call-of-response", array(&[&hi, &of_f]), array(&[&hi, &f, &of_f])),
                (
                    "gemini/response-order",
                    array(&[&hi, &both, &user(&format!("{},{}", says("g"), says("f")))]),
                    array(&[&hi, &both, &of_both]),
                ),
            ],
        );
    }
}
