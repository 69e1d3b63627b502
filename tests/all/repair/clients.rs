//! Clients that send a session as it stands: what they cannot parse they skip, nothing else is put right. What they send
//! is the messages of their API.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};

/// What the client of this agent would send; or why it does not open the session.
pub(crate) fn request(agent: &str, bytes: &[u8]) -> Result<Value, String> {
    match agent {
        "codex" => codex(bytes),
        "gemini-cli" => gemini_cli(bytes),
        "opencode" => opencode(bytes),
        _ => claude_code(bytes),
    }
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().filter_map(|it| serde_json::from_str(it).ok()).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The chain of parents from the last message on.
fn claude_code(bytes: &[u8]) -> Result<Value, String> {
    let rows = lines(&String::from_utf8_lossy(bytes));
    let by_uuid: HashMap<String, &Value> = rows.iter().map(|it| (text(&it["uuid"]), it)).collect();
    let mut next = rows.iter().rfind(|it| it["message"].is_object());
    let mut path = Vec::new();
    while let Some(row) = next.filter(|_| path.len() <= rows.len()) {
        path.push(row["message"].clone());
        next = by_uuid.get(&text(&row["parentUuid"])).copied();
    }
    if path.len() > rows.len() {
        return Err("the parents go in a circle".into());
    }
    path.reverse();
    Ok(Value::Array(path))
}

fn codex(bytes: &[u8]) -> Result<Value, String> {
    let whole = std::str::from_utf8(bytes).map_err(|it| it.to_string())?;
    let rows = lines(whole);
    let meta = rows.iter().find(|it| it["type"] == "session_meta").ok_or("no session_meta")?;
    let paginated = meta["payload"]["history_mode"] == "paginated";
    let last: Option<Value> = whole.lines().last().and_then(|it| serde_json::from_str(it).ok());
    if paginated && last.is_none_or(|it| it["ordinal"].is_null()) {
        return Err("the last record has no ordinal".into());
    }
    let mut items: Vec<Value> =
        rows.iter().filter(|it| it["type"] == "response_item").map(|it| it["payload"].clone()).collect();
    let answered =
        |id: &Value| items.iter().any(|it| text(&it["type"]).ends_with("_output") && it["call_id"] == *id);
    let aborted: Vec<(usize, Value)> = (0..items.len())
        .filter(|at| items[*at]["type"] == "function_call" && !answered(&items[*at]["call_id"]))
        .map(|at| (at, items[at]["call_id"].clone()))
        .collect();
    for (at, id) in aborted.into_iter().rev() {
        items.insert(at + 1, json!({"type": "function_call_output", "call_id": id, "output": "aborted"}));
    }
    Ok(Value::Array(items))
}

fn gemini_cli(bytes: &[u8]) -> Result<Value, String> {
    let rows = lines(&String::from_utf8_lossy(bytes));
    if !rows.iter().any(|it| it["sessionId"].is_string()) {
        return Err("no sessionId".into());
    }
    let mut ids: Vec<String> = Vec::new();
    let mut records: BTreeMap<String, Value> = BTreeMap::new();
    for row in rows {
        if let Some(to) = row["$rewindTo"].as_str() {
            let from = ids.iter().position(|it| it == to).unwrap_or(0);
            ids.truncate(from);
        } else if row["$set"]["messages"].is_null() && row["id"].is_string() {
            let id = text(&row["id"]);
            if !ids.contains(&id) {
                ids.push(id.clone());
            }
            records.insert(id, row);
        } else if !row["$set"]["messages"].is_null() {
            return Err("$set.messages is no list".into());
        }
    }
    let mut contents = Vec::new();
    let mut answered: Vec<Value> = Vec::new();
    for record in ids.iter().map(|it| &records[it]) {
        let parts = match &record["content"] {
            Value::String(it) if it.is_empty() => vec![],
            Value::String(it) => vec![json!({ "text": it })],
            it => it.as_array().cloned().unwrap_or_default(),
        };
        if record["type"] == "user" {
            // The client writes responses twice.
            let new = |it: &Value| {
                it["functionResponse"].is_null() || !answered.contains(&it["functionResponse"]["id"])
            };
            let parts: Vec<Value> = parts.into_iter().filter(new).collect();
            if !parts.is_empty() {
                contents.push(json!({"role": "user", "parts": parts}));
            }
            continue;
        }
        let tools = record["toolCalls"].as_array().cloned().unwrap_or_default();
        let calls = tools
            .iter()
            .map(|it| json!({"functionCall": {"id": it["id"], "name": it["name"], "args": it["args"]}}));
        let model: Vec<Value> = parts.into_iter().chain(calls).collect();
        contents.push(json!({"role": "model", "parts": model}));
        let results: Vec<Value> =
            tools.iter().flat_map(|it| it["result"].as_array().cloned().unwrap_or_default()).collect();
        answered.extend(results.iter().map(|it| it["functionResponse"]["id"].clone()));
        if !results.is_empty() {
            contents.push(json!({"role": "user", "parts": results}));
        }
    }
    Ok(Value::Array(contents))
}

/// As Anthropic's messages.
fn opencode(bytes: &[u8]) -> Result<Value, String> {
    let text_of = std::str::from_utf8(bytes).map_err(|it| it.to_string())?;
    let export: Value = serde_json::from_str(text_of).map_err(|it| it.to_string())?;
    let mut out = Vec::new();
    let mut ids: Vec<Value> = Vec::new();
    for message in export["messages"].as_array().ok_or("no messages")? {
        let (mut said, mut results) = (Vec::new(), Vec::new());
        for part in message["parts"].as_array().into_iter().flatten() {
            if ids.contains(&part["id"]) {
                return Err(format!("two parts have the id {}", part["id"]));
            }
            ids.push(part["id"].clone());
            match part["type"].as_str() {
                Some("text") => said.push(json!({"type": "text", "text": part["text"]})),
                Some("file") => {
                    let url = text(&part["url"]);
                    let data = url.split_once(";base64,").map(|it| it.1).unwrap_or_default();
                    let kind = if part["mime"] == "application/pdf" { "document" } else { "image" };
                    let source = json!({"type": "base64", "media_type": part["mime"], "data": data});
                    said.push(json!({"type": kind, "source": source}));
                }
                Some("tool") => {
                    let (id, state) = (&part["callID"], &part["state"]);
                    said.push(
                        json!({"type": "tool_use", "id": id, "name": part["tool"], "input": state["input"]}),
                    );
                    let output = state["output"].as_str().or(state["error"].as_str());
                    results.extend(
                        output.map(|it| json!({"type": "tool_result", "tool_use_id": id, "content": it})),
                    );
                }
                Some("step-start" | "step-finish") => {}
                other => return Err(format!("a part of the type {other:?}")),
            }
        }
        out.push(json!({"role": message["info"]["role"], "content": said}));
        if !results.is_empty() {
            out.push(json!({"role": "user", "content": results}));
        }
    }
    Ok(Value::Array(out))
}
