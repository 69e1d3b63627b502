//! The tools, prompts and resources that the protocol's own test suite asks for, on the transports of `epitome serve`.
//!
//!     cargo run --example conformance_server -- 127.0.0.1:8767      then run the suite against http://127.0.0.1:8767/mcp
//!     cargo run --example conformance_server -- --stdio             over rmcp's own transport, to compare speed with
//!
//! What it says is what the suite expects to read (@modelcontextprotocol/conformance 0.1.16 and
//! 0.2.0-alpha.12).

#![allow(deprecated, reason = "the suite tests what the newest protocol gave up, too")]

mod asking;

use std::sync::Arc;

use epitome::config::{Config, Environment};
use epitome::interfaces::mcp::{HttpOptions, serve_http_with};
use rmcp::model::*;
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use rmcp::{ErrorData, ServerHandler, ServiceExt};
use serde_json::{Value, json};

/// A red pixel.
const IMAGE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8/5+hHgAHggJ/PchI7wAAAABJRU5ErkJggg==";
/// Silence.
const AUDIO: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";

#[derive(Clone)]
struct Fixture;

fn tool(name: &'static str, schema: Value) -> Tool {
    let schema = schema.as_object().cloned().unwrap_or_default();
    Tool::new(name, format!("Fixture {name}"), Arc::new(schema))
}

fn text(text: impl Into<String>) -> Result<CallToolResponse, ErrorData> {
    Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
}

fn content(mut value: Value) -> Result<CallToolResponse, ErrorData> {
    value["resultType"] = json!("complete");
    said::<CallToolResult>(value).map(Into::into)
}

/// As rmcp's own type.
fn said<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

async fn pause() {
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
}

/// A tool of which an argument stands in a header, too.
fn header_tool() -> Tool {
    let value = json!({"type": "string", "x-mcp-header": "Value"});
    tool(
        "test_custom_header",
        json!({"type": "object", "properties": {"value": value}, "required": ["value"]}),
    )
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_completions()
            .enable_logging()
            .build();
        ServerConfig::new(capabilities)
    }

    /// The transport asks for it, to compare headers with arguments.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        Some(header_tool()).filter(|it| it.name == name)
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        context.cancelled().await;
        Ok(())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let none = || json!({"type": "object", "properties": {}});
        let names = [
            "test_simple_text",
            "test_image_content",
            "test_audio_content",
            "test_embedded_resource",
            "test_multiple_content_types",
            "test_tool_with_logging",
            "test_tool_with_progress",
            "test_error_handling",
            "test_elicitation_sep1034_defaults",
            "test_elicitation_sep1330_enums",
            "test_reconnection",
        ];
        let names = names.into_iter().chain(asking::TOOLS);
        let mut tools: Vec<Tool> = names.map(|name| tool(name, none())).collect();
        let one = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
        tools.push(header_tool());
        tools.push(tool("test_sampling", one("prompt")));
        tools.push(tool("test_elicitation", one("message")));
        tools.push(tool(
            "json_schema_2020_12_tool",
            json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "$defs": {"address": {"$anchor": "address", "type": "object",
                    "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
                "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
                "allOf": [{"anyOf": [{"required": ["name"]}, {"required": ["address"]}]}],
                "if": {"required": ["address"]},
                "then": {"properties": {"address": {"required": ["street"]}}},
                "else": {"required": ["name"]},
                "additionalProperties": false
            }),
        ));
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let argument = |name: &str| {
            let arguments = request.arguments.as_ref();
            arguments.and_then(|it| it.get(name)?.as_str()).unwrap_or_default().to_owned()
        };
        match request.name.as_ref() {
            "test_simple_text" => text("This is a simple text response for testing."),
            "test_image_content" => {
                content(json!({"content": [{"type": "image", "data": IMAGE, "mimeType": "image/png"}]}))
            }
            "test_audio_content" => {
                content(json!({"content": [{"type": "audio", "data": AUDIO, "mimeType": "audio/wav"}]}))
            }
            "test_embedded_resource" => content(json!({"content": [{"type": "resource", "resource": {
                "uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource content."}}]})),
            "test_multiple_content_types" => content(json!({"content": [
                {"type": "text", "text": "Multiple content types test:"},
                {"type": "image", "data": IMAGE, "mimeType": "image/png"},
                {"type": "resource", "resource": {"uri": "test://mixed-content-resource", "mimeType": "application/json",
                    "text": "{\"test\":\"data\",\"value\":123}"}}]})),
            "test_tool_with_logging" => {
                for line in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                    let _ = context
                        .peer
                        .notify_logging_message(LoggingMessageNotificationParam::new(
                            LoggingLevel::Info,
                            json!(line),
                        ))
                        .await;
                    pause().await;
                }
                text("Tool with logging executed successfully")
            }
            "test_tool_with_progress" => {
                for step in [0.0, 50.0, 100.0] {
                    if let Some(token) = context.meta.get_progress_token() {
                        let sign = ProgressNotificationParam::new(token, step).with_total(100.0);
                        let _ = context.peer.notify_progress(sign).await;
                        pause().await;
                    }
                }
                text("Tool with progress executed successfully")
            }
            "test_error_handling" => {
                let what = "This tool intentionally returns an error for testing";
                Ok(CallToolResult::error(vec![ContentBlock::text(what)]).into())
            }
            "test_sampling" => {
                let params = said(
                    json!({"messages": [{"role": "user", "content": {"type": "text", "text": argument("prompt")}}],
                    "maxTokens": 100}),
                )?;
                let answer = context.peer.create_message(params).await;
                let answer = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
                let answer = serde_json::to_value(&answer).unwrap_or_default();
                text(format!("LLM response: {}", answer["content"]["text"].as_str().unwrap_or_default()))
            }
            "test_elicitation" => {
                let schema = json!({"type": "object", "properties": {
                    "username": {"type": "string", "description": "User's response"},
                    "email": {"type": "string", "description": "User's email address"}}, "required": ["username", "email"]});
                elicit(&context, &argument("message"), schema).await
            }
            "test_elicitation_sep1034_defaults" => {
                let schema = json!({"type": "object", "properties": {
                    "name": {"type": "string", "default": "John Doe"},
                    "age": {"type": "integer", "default": 30},
                    "score": {"type": "number", "default": 95.5},
                    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
                    "verified": {"type": "boolean", "default": true}}, "required": []});
                elicit(&context, "Please review and update the form fields with defaults", schema).await
            }
            "test_elicitation_sep1330_enums" => {
                let titled = |values: [(&str, &str); 3]| -> Vec<Value> {
                    values.iter().map(|(value, title)| json!({"const": value, "title": title})).collect()
                };
                let options = ["option1", "option2", "option3"];
                let one = titled([
                    ("value1", "First Option"),
                    ("value2", "Second Option"),
                    ("value3", "Third Option"),
                ]);
                let many = titled([
                    ("value1", "First Choice"),
                    ("value2", "Second Choice"),
                    ("value3", "Third Choice"),
                ]);
                let schema = json!({"type": "object", "properties": {
                    "untitledSingle": {"type": "string", "enum": options},
                    "titledSingle": {"type": "string", "oneOf": one},
                    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"],
                        "enumNames": ["Option One", "Option Two", "Option Three"]},
                    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
                    "titledMulti": {"type": "array", "items": {"anyOf": many}}}, "required": []});
                elicit(&context, "Please select options from the enum fields", schema).await
            }
            "test_reconnection" => text("Reconnection test completed successfully"),
            "json_schema_2020_12_tool" | "test_custom_header" => text("ok"),
            name if asking::TOOLS.contains(&name) => asking::call(&request, &context).await,
            other => Err(ErrorData::invalid_params(format!("unknown tool {other}"), None)),
        }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resource = |name: &str, mime: &str| {
            Resource::new(format!("test://{name}"), name)
                .with_description(format!("Fixture {name}"))
                .with_mime_type(mime)
        };
        Ok(ListResourcesResult::with_all_items(vec![
            resource("static-text", "text/plain"),
            resource("static-binary", "image/png"),
            resource("watched-resource", "text/plain"),
        ]))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template =
            ResourceTemplate::new("test://template/{id}/data", "template").with_mime_type("application/json");
        Ok(ListResourceTemplatesResult::with_all_items(vec![template]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.as_str();
        let contents = match uri {
            "test://static-text" => {
                ResourceContents::text("This is the content of the static text resource.", uri)
            }
            "test://watched-resource" => ResourceContents::text("Watched resource content", uri),
            "test://static-binary" => ResourceContents::blob(IMAGE, uri).with_mime_type("image/png"),
            _ => {
                let id = uri.strip_prefix("test://template/").and_then(|it| it.strip_suffix("/data"));
                let id = id.ok_or_else(|| {
                    ErrorData::resource_not_found("no such resource", Some(json!({"uri": uri})))
                })?;
                let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
                ResourceContents::text(data.to_string(), uri).with_mime_type("application/json")
            }
        };
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let argument =
            |name: &str| PromptArgument::new(name).with_description("An argument").with_required(true);
        let prompt = |name: &str, arguments: &[&str]| {
            let arguments =
                (!arguments.is_empty()).then(|| arguments.iter().map(|it| argument(it)).collect());
            Prompt::new(name, Some(format!("Fixture {name}")), arguments)
        };
        Ok(ListPromptsResult::with_all_items(vec![
            prompt("test_simple_prompt", &[]),
            prompt("test_prompt_with_arguments", &["arg1", "arg2"]),
            prompt("test_prompt_with_embedded_resource", &["resourceUri"]),
            prompt("test_prompt_with_image", &[]),
            prompt(asking::PROMPT, &[]),
        ]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let given = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
        let user = |content: Value| json!({"role": "user", "content": content});
        let messages = match request.name.as_str() {
            "test_simple_prompt" => {
                vec![user(json!({"type": "text", "text": "This is a simple prompt for testing."}))]
            }
            "test_prompt_with_arguments" => {
                let text =
                    format!("Prompt with arguments: arg1='{}', arg2='{}'", given("arg1"), given("arg2"));
                vec![user(json!({"type": "text", "text": text}))]
            }
            "test_prompt_with_embedded_resource" => vec![
                user(
                    json!({"type": "resource", "resource": {"uri": given("resourceUri"), "mimeType": "text/plain",
                    "text": "Embedded resource content for testing."}}),
                ),
                user(json!({"type": "text", "text": "Please process the embedded resource above."})),
            ],
            "test_prompt_with_image" => vec![
                user(json!({"type": "image", "data": IMAGE, "mimeType": "image/png"})),
                user(json!({"type": "text", "text": "Please analyze the image above."})),
            ],
            asking::PROMPT => return asking::prompt(request.input_responses.as_ref()),
            other => return Err(ErrorData::invalid_params(format!("unknown prompt {other}"), None)),
        };
        let result = json!({"resultType": "complete", "messages": messages});
        said::<GetPromptResult>(result).map(Into::into)
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Ok(CompleteResult::default())
    }
}

async fn elicit(
    context: &RequestContext<RoleServer>,
    message: &str,
    schema: Value,
) -> Result<CallToolResponse, ErrorData> {
    let params = said(json!({"mode": "form", "message": message, "requestedSchema": schema}))?;
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(params));
    let answer = context.peer.send_request(request).await;
    let answer = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let answer = serde_json::to_value(&answer).unwrap_or_default();
    text(format!(
        "Elicitation completed: action={}, content={}",
        answer["action"].as_str().unwrap_or_default(),
        answer["content"]
    ))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8767".to_owned());
    if address == "--stdio" {
        let runtime = tokio::runtime::Runtime::new()?;
        return runtime.block_on(async {
            Fixture.serve(rmcp::transport::stdio()).await?.waiting().await?;
            Ok(())
        });
    }
    let config = Config::load(Environment::of_process())?;
    let http = HttpOptions { address, ..HttpOptions::default() };
    serve_http_with(
        config,
        None,
        &http,
        |address| eprintln!("serving on http://{address}/mcp"),
        |_| Fixture,
    )?;
    Ok(())
}
