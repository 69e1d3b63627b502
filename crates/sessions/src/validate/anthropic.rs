//! The rules of Anthropic Messages.
//!
//! The API merges consecutive messages of one role ("consecutive `user` or `assistant` turns … will be
//! combined", Messages reference), so the rules are about turns.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value};

use super::{Violations, short};
use crate::media::is_base64;
use crate::wire::{is_plain, string};

/// Consecutive messages of one role.
struct Turn<'a> {
    assistant: bool,
    start: usize,
    blocks: Vec<Block<'a>>,
}

/// A block and the index of its message. Content that is a string counts as a text block.
struct Block<'a> {
    message: usize,
    kind: &'a str,
    value: &'a Value,
}

pub(super) fn check(elements: &[Value], body: Option<&Map<String, Value>>, found: &mut Violations) {
    let turns = turns(elements, found);
    if let Some(first) = turns.first() {
        // "first message must use the user role" (Messages reference).
        found.unless(!first.assistant, "anthropic/first-user", first.start, || {
            "expected the first message from the user, found the assistant".into()
        });
    }
    let mut ids = HashSet::new();
    for (number, turn) in turns.iter().enumerate() {
        for block in &turn.blocks {
            shape(block, turn.assistant, found);
            let id = string(block.value, "id");
            if block.kind == "tool_use" {
                // "`tool_use` ids must be unique" (API error).
                found.unless(ids.insert(id), "anthropic/unique-ids", block.message, || {
                    format!("expected an id not used before, found {}", short(id))
                });
            }
        }
        if turn.assistant {
            assistant(turn, number + 1 == turns.len(), found);
            answered(turn, turns.get(number + 1), number + 2 >= turns.len(), found);
        } else {
            results(turn, number.checked_sub(1).and_then(|it| turns.get(it)), found);
        }
    }
    tools(&turns, body, found);
}

fn turns<'a>(elements: &'a [Value], found: &mut Violations) -> Vec<Turn<'a>> {
    let mut turns: Vec<Turn<'a>> = vec![];
    for (message, element) in elements.iter().enumerate() {
        // There is no system role among the messages; system text goes into `system` (Messages reference).
        let assistant = match element.get("role").and_then(Value::as_str) {
            Some("user") => false,
            Some("assistant") => true,
            other => {
                let what = format!("expected role user or assistant, found {other:?}");
                found.add("anthropic/role", message, what);
                continue;
            }
        };
        let mut blocks = vec![];
        match element.get("content") {
            Some(value @ Value::String(_)) => blocks.push(Block { message, kind: "text", value }),
            Some(Value::Array(it)) if !it.is_empty() => {
                blocks.extend(it.iter().map(|value| Block { message, kind: string(value, "type"), value }));
            }
            // "messages: all messages must have non-empty content" (API error).
            _ => {
                let what = "expected a text or blocks as content, found none";
                found.add("anthropic/content", message, what);
            }
        }
        match turns.last_mut() {
            Some(last) if last.assistant == assistant => last.blocks.extend(blocks),
            _ => turns.push(Turn { assistant, start: message, blocks }),
        }
    }
    turns
}

/// Checks a block by itself.
fn shape(block: &Block<'_>, assistant: bool, found: &mut Violations) {
    let Block { message, kind, value } = *block;
    let text_of = |it: &Value| it.as_str().unwrap_or_else(|| string(value, "text")).to_string();
    match kind {
        // "text content blocks must be non-empty", "must contain non-whitespace text" (API errors).
        "text" => found.unless(!text_of(value).trim().is_empty(), "anthropic/empty-text", message, || {
            "expected text, found an empty or blank text block".into()
        }),
        "tool_use" => {
            // The pattern is in the API's error for `tool_use.id`.
            let id = string(value, "id");
            found.unless(is_plain(id, usize::MAX), "anthropic/id-pattern", message, || {
                format!("expected an id of letters, digits, _ and -, found {}", short(id))
            });
            let name = string(value, "name");
            found.unless(is_plain(name, 128), "anthropic/tool-name", message, || {
                format!("expected a tool name of 1 to 128 letters, digits, _ and -, found {}", short(name))
            });
            let holds = value.get("input").is_some_and(Value::is_object);
            found.unless(holds, "anthropic/input-object", message, || {
                "expected a JSON object as input of a tool_use, found another value".into()
            });
            found.unless(assistant, "anthropic/block-role", message, || {
                "expected tool_use from the assistant, found it from the user".into()
            });
        }
        "tool_result" => {
            found.unless(!assistant, "anthropic/block-role", message, || {
                "expected tool_result from the user, found it from the assistant".into()
            });
            result_content(value.get("content"), message, found);
        }
        // Thinking must come back as it was signed (documentation, "Extended thinking").
        "thinking" => {
            let signed =
                !string(value, "signature").is_empty() && value.get("thinking").is_some_and(Value::is_string);
            found.unless(assistant && signed, "anthropic/thinking-signed", message, || {
                "expected thinking of the assistant with its signature, found it without".into()
            });
        }
        "redacted_thinking" => {
            let whole = assistant && !string(value, "data").is_empty();
            found.unless(whole, "anthropic/thinking-signed", message, || {
                "expected redacted_thinking of the assistant with its data, found it without".into()
            });
        }
        "image" | "document" => media(kind, value, assistant, message, found),
        "" => found.add("anthropic/content", message, "expected a block with a type, found none"),
        _ => {}
    }
}

fn result_content(content: Option<&Value>, message: usize, found: &mut Violations) {
    match content {
        None | Some(Value::String(_)) => {}
        Some(Value::Array(blocks)) => {
            for value in blocks {
                let block = Block { message, kind: string(value, "type"), value };
                match block.kind {
                    "text" | "image" | "document" | "search_result" | "tool_reference" => {
                        shape(&block, false, found);
                    }
                    other => {
                        let what = format!("expected text or media in a tool_result, found {}", short(other));
                        found.add("anthropic/content", message, what);
                    }
                }
            }
        }
        Some(_) => {
            let what = "expected a text or blocks in a tool_result, found another value";
            found.add("anthropic/content", message, what);
        }
    }
}

/// Images are JPEG, PNG, GIF or WebP, documents PDF or text, whole or by URL (documentation, "Vision",
/// "PDF").
fn media(kind: &str, value: &Value, assistant: bool, message: usize, found: &mut Violations) {
    let source = value.get("source").unwrap_or(&Value::Null);
    let mime = string(source, "media_type");
    let known = match kind {
        "image" => matches!(mime, "image/jpeg" | "image/png" | "image/gif" | "image/webp"),
        _ => mime == "application/pdf",
    };
    let whole = match string(source, "type") {
        "base64" => known && is_base64(string(source, "data")),
        "url" => string(source, "url").starts_with("http"),
        "file" => !string(source, "file_id").is_empty(),
        "text" => kind == "document" && !string(source, "data").is_empty(),
        "content" => kind == "document" && source.get("content").is_some(),
        _ => false,
    };
    found.unless(whole && !assistant, "anthropic/media", message, || {
        format!("expected a whole {kind} of a known type from the user, found another")
    });
}

/// Checks a turn of the assistant.
fn assistant(turn: &Turn<'_>, last: bool, found: &mut Violations) {
    // "The final block in an assistant message cannot be `thinking`" (API error; only of the last message).
    if let Some(block) = turn.blocks.last().filter(|_| last) {
        let holds = !matches!(block.kind, "thinking" | "redacted_thinking");
        found.unless(holds, "anthropic/thinking-leads", block.message, || {
            "expected something after thinking, found the end".into()
        });
    }
    // A compaction comes first (documentation, "Compaction": what is before it in the request is ignored).
    for block in turn.blocks.iter().skip(1).filter(|it| it.kind == "compaction") {
        let what = "expected a compaction block first in its turn, found it after other blocks";
        found.add("anthropic/compaction-first", block.message, what);
    }
    // A server tool's use and result are in one turn (documentation, "Web search").
    let mut open: BTreeMap<&str, usize> = BTreeMap::new();
    for block in &turn.blocks {
        if matches!(block.kind, "server_tool_use" | "mcp_tool_use") {
            open.insert(string(block.value, "id"), block.message);
        } else if block.kind.ends_with("_tool_result") {
            let id = string(block.value, "tool_use_id");
            found.unless(open.remove(id).is_some(), "anthropic/server-tools", block.message, || {
                format!("expected the server_tool_use of {}, found none before it", short(id))
            });
        }
    }
    for (id, message) in open {
        let what = format!("expected a result of server tool {}, found none in its turn", short(id));
        found.add("anthropic/server-tools", message, what);
    }
}

/// Every call has a result in the next turn ("`tool_use` ids were found without `tool_result` blocks immediately
/// after", API error). At the end of the array, results may still be to come.
fn answered(turn: &Turn<'_>, next: Option<&Turn<'_>>, ends: bool, found: &mut Violations) {
    let after = next.map(|it| it.blocks.as_slice()).unwrap_or_default();
    if ends && after.iter().all(|it| it.kind == "tool_result") {
        return;
    }
    let results = after.iter().filter(|it| it.kind == "tool_result");
    let answers: HashSet<&str> = results.map(|it| string(it.value, "tool_use_id")).collect();
    for block in turn.blocks.iter().filter(|it| it.kind == "tool_use") {
        let id = string(block.value, "id");
        found.unless(answers.contains(id), "anthropic/result-follows-call", block.message, || {
            format!("expected a tool_result of {} in the next message, found none", short(id))
        });
    }
}

/// Every result has its call in the turn before ("unexpected `tool_use_id` found in `tool_result` blocks",
/// API error), once, and the results come before anything else (documentation, "Tool use").
fn results(turn: &Turn<'_>, before: Option<&Turn<'_>>, found: &mut Violations) {
    let calls =
        before.map(|it| it.blocks.as_slice()).unwrap_or_default().iter().filter(|it| it.kind == "tool_use");
    let calls: HashSet<&str> = calls.map(|it| string(it.value, "id")).collect();
    let (mut seen, mut other) = (HashSet::new(), false);
    for block in &turn.blocks {
        if block.kind != "tool_result" {
            other = true;
            continue;
        }
        let id = string(block.value, "tool_use_id");
        found.unless(calls.contains(id), "anthropic/call-of-result", block.message, || {
            format!("expected a tool_use of {} in the message before, found none", short(id))
        });
        found.unless(seen.insert(id), "anthropic/unique-ids", block.message, || {
            format!("expected one tool_result for {}, found another", short(id))
        });
        found.unless(!other, "anthropic/results-first", block.message, || {
            "expected tool_result blocks first in the message, found one after other content".into()
        });
    }
}

/// "Requests which include `tool_use` or `tool_result` blocks must define tools" (API error); only a request body,
/// which has `max_tokens`, can be judged.
fn tools(turns: &[Turn<'_>], body: Option<&Map<String, Value>>, found: &mut Violations) {
    let Some(body) = body.filter(|it| it.contains_key("max_tokens")) else { return };
    let mut blocks = turns.iter().flat_map(|it| &it.blocks);
    if body.get("tools").and_then(Value::as_array).is_none_or(Vec::is_empty)
        && let Some(block) = blocks.find(|it| matches!(it.kind, "tool_use" | "tool_result"))
    {
        let what = "expected `tools` beside messages that use them, found none";
        found.add("anthropic/tools-present", block.message, what);
    }
}

#[cfg(test)]
mod tests {
    use crate::Format;
    use crate::validate::tests::judge;

    const CALL: &str = r#"{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"t","input":{}}]}"#;
    const ANSWER: &str = r#"{"type":"tool_result","tool_use_id":"a","content":"x"}"#;

    #[test]
    fn each_rule_has_what_breaks_it_and_what_does_not() {
        let user = |content: &str| format!(r#"[{{"role":"user","content":{content}}}]"#);
        let assistant = |content: &str| {
            format!(
                r#"[{{"role":"user","content":"hi"}},{{"role":"assistant","content":{content}}},{{"role":"user","content":"go on"}}]"#
            )
        };
        let last = |content: &str| {
            format!(r#"[{{"role":"user","content":"hi"}},{{"role":"assistant","content":{content}}}]"#)
        };
        let after_call = |content: &str| {
            format!(
                r#"[{CALL},{{"role":"user","content":[{content}]}},{{"role":"assistant","content":"ok"}}]"#
            )
        };
        let call = |it: &str| last(&format!(r#"[{{"type":"tool_use",{it}}}]"#));
        judge(
            Format::ANTHROPIC,
            &[
                ("json", "[".into(), "[]".into()),
                ("json", "{}".into(), r#"{"messages":[]}"#.into()),
                ("anthropic/role", r#"[{"role":"system","content":"x"}]"#.into(), user(r#""x""#)),
                ("anthropic/first-user", r#"[{"role":"assistant","content":"x"}]"#.into(), user(r#""x""#)),
                ("anthropic/content", user("[]"), user(r#"[{"type":"text","text":"x"}]"#)),
                ("anthropic/content", user("null"), user(r#""x""#)),
                ("anthropic/empty-text", user(r#"" ""#), user(r#""a ""#)),
                (
                    "anthropic/empty-text",
                    user(r#"[{"type":"text","text":"\n"}]"#),
                    user(r#"[{"type":"text","text":"a"}]"#),
                ),
                (
                    "anthropic/id-pattern",
                    call(r#""id":"a.b","name":"t","input":{}"#),
                    call(r#""id":"a-b_C1","name":"t","input":{}"#),
                ),
                (
                    "anthropic/tool-name",
                    call(r#""id":"a","name":"t.u","input":{}"#),
                    call(r#""id":"a","name":"mcp__t-u","input":{}"#),
                ),
                (
                    "anthropic/input-object",
                    call(r#""id":"a","name":"t","input":[]"#),
                    call(r#""id":"a","name":"t","input":{"x":1}"#),
                ),
                (
                    "anthropic/block-role",
                    user(r#"[{"type":"tool_use","id":"a","name":"t","input":{}}]"#),
                    call(r#""id":"a","name":"t","input":{}"#),
                ),
                (
                    "anthropic/thinking-signed",
                    assistant(r#"[{"type":"thinking","thinking":"hm"},{"type":"text","text":"x"}]"#),
                    assistant(
                        r#"[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"x"}]"#,
                    ),
                ),
                (
                    "anthropic/thinking-signed",
                    assistant(r#"[{"type":"redacted_thinking"},{"type":"text","text":"x"}]"#),
                    assistant(r#"[{"type":"redacted_thinking","data":"s"},{"type":"text","text":"x"}]"#),
                ),
                (
                    "anthropic/thinking-leads",
                    last(r#"[{"type":"thinking","thinking":"hm","signature":"s"}]"#),
                    assistant(r#"[{"type":"thinking","thinking":"hm","signature":"s"}]"#),
                ),
                (
                    "anthropic/media",
                    user(
                        r#"[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO… cut"}}]"#,
                    ),
                    user(
                        r#"[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO"}}]"#,
                    ),
                ),
                (
                    "anthropic/media",
                    user(
                        r#"[{"type":"image","source":{"type":"base64","media_type":"image/bmp","data":"iVBO"}}]"#,
                    ),
                    user(r#"[{"type":"image","source":{"type":"url","url":"https://x/y.png"}}]"#),
                ),
                (
                    "anthropic/compaction-first",
                    assistant(r#"[{"type":"text","text":"x"},{"type":"compaction","content":"s"}]"#),
                    assistant(r#"[{"type":"compaction","content":"s"},{"type":"text","text":"x"}]"#),
                ),
                (
                    "anthropic/server-tools",
                    assistant(r#"[{"type":"server_tool_use","id":"a","name":"web_search","input":{}}]"#),
                    assistant(
                        r#"[{"type":"server_tool_use","id":"a","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"a","content":[]}]"#,
                    ),
                ),
                (
                    "anthropic/server-tools",
                    assistant(r#"[{"type":"web_search_tool_result","tool_use_id":"a","content":[]}]"#),
                    assistant(r#""x""#),
                ),
                (
                    "anthropic/result-follows-call",
                    format!(r#"[{CALL},{{"role":"user","content":"no"}}]"#),
                    after_call(ANSWER),
                ),
                (
                    "anthropic/result-follows-call",
                    format!(r#"[{CALL},{{"role":"user","content":"no"}}]"#),
                    format!("[{CALL}]"),
                ),
                // A block of another type that names the call does not answer it, in the middle or at the
                // end.
                (
                    "anthropic/result-follows-call",
                    after_call(&ANSWER.replace("tool_result", "x_result")),
                    after_call(&format!(r#"{ANSWER},{}"#, ANSWER.replace("tool_result", "x_result"))),
                ),
                (
                    "anthropic/result-follows-call",
                    format!(
                        r#"[{CALL},{{"role":"user","content":[{}]}}]"#,
                        ANSWER.replace("tool_result", "x_result")
                    ),
                    format!(r#"[{CALL},{{"role":"user","content":[{ANSWER}]}}]"#),
                ),
                ("anthropic/call-of-result", user(&format!("[{ANSWER}]")), after_call(ANSWER)),
                (
                    "anthropic/results-first",
                    after_call(&format!(r#"{{"type":"text","text":"x"}},{ANSWER}"#)),
                    after_call(&format!(r#"{ANSWER},{{"type":"text","text":"x"}}"#)),
                ),
                ("anthropic/unique-ids", after_call(&format!("{ANSWER},{ANSWER}")), after_call(ANSWER)),
                (
                    "anthropic/unique-ids",
                    format!(
                        r#"[{CALL},{{"role":"user","content":[{ANSWER}]}},{{"role":"assistant","content":[{{"type":"tool_use","id":"a","name":"t","input":{{}}}}]}}]"#
                    ),
                    after_call(ANSWER),
                ),
                (
                    "anthropic/tools-present",
                    format!(r#"{{"max_tokens":1,"messages":[{CALL}]}}"#),
                    format!(r#"{{"max_tokens":1,"tools":[{{"name":"t"}}],"messages":[{CALL}]}}"#),
                ),
            ],
        );
    }

    #[test]
    fn neighbours_of_one_role_are_one_turn() {
        let parts = format!(
            r#"[{CALL},{{"role":"assistant","content":[{{"type":"tool_use","id":"b","name":"t","input":{{}}}}]}},{{"role":"user","content":[{ANSWER}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"b"}}]}},{{"role":"user","content":"and?"}}]"#
        );
        assert_eq!(super::super::check(Format::ANTHROPIC, parts.as_bytes()), []);
    }
}
