//! The tools and the prompt that ask the client for something before they answer, as 2026-07-28 does it: the result
//! says what is needed, the client calls again with it. What a fixture hands out as its state is known beforehand, so
//! anything else was tampered with.

use rmcp::ErrorData;
use rmcp::model::*;
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};

/// The prompt that asks.
pub const PROMPT: &str = "test_input_required_result_prompt";

/// The tools that ask, and those that need something of the client.
pub const TOOLS: [&str; 11] = [
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_tampered_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_capabilities",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_logging_tool",
];

fn form(field: &str, kind: &str) -> Value {
    let schema = json!({"type": "object", "properties": {field: {"type": kind}}, "required": [field]});
    json!({"method": "elicitation/create", "params":
        {"mode": "form", "message": format!("Please say the {field}"), "requestedSchema": schema}})
}

fn sampling() -> Value {
    let message =
        json!({"role": "user", "content": {"type": "text", "text": "What is the capital of France?"}});
    json!({"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": 100}})
}

fn roots() -> Value {
    json!({"method": "roots/list"})
}

fn needs<T: From<InputRequiredResult>>(requests: Value, state: Option<&str>) -> Result<T, ErrorData> {
    let mut needed = json!({"resultType": "input_required", "inputRequests": requests});
    if let Some(state) = state {
        needed["requestState"] = json!(state);
    }
    super::said::<InputRequiredResult>(needed).map(Into::into)
}

/// What the client has brought under a name; what is no object is as good as nothing.
fn brought<'a>(responses: Option<&'a InputResponses>, name: &str) -> Option<&'a Value> {
    responses?.get(name).filter(|it| it.is_object())
}

fn tampered() -> ErrorData {
    ErrorData::invalid_params("expected the state that was handed out, found another", None)
}

/// Calls one of [`TOOLS`].
pub async fn call(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let brought = |name: &str| brought(request.input_responses.as_ref(), name);
    let state = request.request_state.as_deref();
    let able = context.meta.client_capabilities().unwrap_or_default();
    match request.name.as_ref() {
        "test_input_required_result_elicitation" => match brought("user_name") {
            Some(it) => super::text(format!("Hello, {}!", it["content"]["name"].as_str().unwrap_or("you"))),
            None => needs(json!({"user_name": form("name", "string")}), None),
        },
        "test_input_required_result_sampling" => match brought("capital_question") {
            Some(it) => super::text(format!("The model says: {}", it["content"]["text"])),
            None => needs(json!({"capital_question": sampling()}), None),
        },
        "test_input_required_result_list_roots" => match brought("client_roots") {
            Some(it) => super::text(format!("The roots are {}", it["roots"])),
            None => needs(json!({"client_roots": roots()}), None),
        },
        "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => {
            match state {
                None => needs(json!({"confirm": form("ok", "boolean")}), Some("asked-7f3a9c")),
                Some("asked-7f3a9c") => super::text("Confirmed: state-ok"),
                Some(_) => Err(tampered()),
            }
        }
        "test_input_required_result_multiple_inputs" => {
            if state.is_some_and(|it| it != "gathering-41d0be") {
                return Err(tampered());
            }
            let all = ["user_name", "greeting", "client_roots"].iter().all(|it| brought(it).is_some());
            if all && state.is_some() {
                return super::text("All inputs received");
            }
            let requests =
                json!({"user_name": form("name", "string"), "greeting": sampling(), "client_roots": roots()});
            needs(requests, Some("gathering-41d0be"))
        }
        "test_input_required_result_multi_round" => match state {
            None => needs(json!({"step1": form("name", "string")}), Some("round-1-c85e20")),
            Some("round-1-c85e20") => {
                needs(json!({"step2": form("color", "string")}), Some("round-2-9b17f4"))
            }
            Some("round-2-9b17f4") => super::text("Both rounds are over"),
            Some(_) => Err(tampered()),
        },
        "test_input_required_result_capabilities" => {
            // Only what the client says that it can do is asked of it.
            let mut requests = serde_json::Map::new();
            if able.elicitation.is_some() {
                requests.insert("user_name".to_owned(), form("name", "string"));
            }
            if able.sampling.is_some() {
                requests.insert("greeting".to_owned(), sampling());
            }
            if able.roots.is_some() {
                requests.insert("client_roots".to_owned(), roots());
            }
            if request.input_responses.is_some() || requests.is_empty() {
                return super::text("Nothing is missing");
            }
            needs(Value::Object(requests), None)
        }
        "test_missing_capability" if able.sampling.is_none() => {
            let needed = ClientCapabilities::builder().enable_sampling().build();
            Err(ErrorData::missing_required_client_capability(needed))
        }
        "test_streaming_elicitation" => needs(json!({"value": form("value", "string")}), None),
        "test_logging_tool" => {
            // Nothing is logged to who did not ask for it.
            if let Some(level) = context.meta.log_level() {
                let line = LoggingMessageNotificationParam::new(level, json!("asked for"));
                let _ = context.peer.notify_logging_message(line).await;
            }
            super::text("Logged if asked to")
        }
        _ => super::text("ok"),
    }
}

/// Gets [`PROMPT`].
pub fn prompt(responses: Option<&InputResponses>) -> Result<GetPromptResponse, ErrorData> {
    match brought(responses, "user_context") {
        Some(it) => {
            let text = format!("The context is {}", it["content"]["context"]);
            Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).into())
        }
        None => needs(json!({"user_context": form("context", "string")}), None),
    }
}
