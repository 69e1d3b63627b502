//! Building blocks of the tools' schemas.

use std::sync::Arc;

use rmcp::model::{MetaObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use history::json::set;

/// Search terms for clients that load tools on demand.
const SEARCH_HINT: &str = "anthropic/searchHint";
/// Keeps a tool loaded in clients that load tools on demand.
const ALWAYS_LOAD: &str = "anthropic/alwaysLoad";
/// Maximum characters up to which a client shows a result inline.
const RESULT_CHARS: &str = "anthropic/maxResultSizeChars";

/// Upper bound of an answer's characters: 8,000 tokens of the text with the most characters per token.
const MOST_CHARS: u64 = 80_000;

type Property = (String, Value);

/// The properties of `T`'s schema, flat so that every client can read them: type, items, values, description.
pub(super) fn options<T: JsonSchema>() -> Vec<Property> {
    let schema = schemars::schema_for!(T);
    let all = schema.get("properties").and_then(Value::as_object);
    let flat = |schema: &Value| {
        let parts = ["type", "items", "enum", "description"];
        let part = |it: &str| Some((it.to_owned(), schema.get(it).filter(|it| **it != json!(""))?.clone()));
        Value::Object(parts.into_iter().filter_map(part).collect())
    };
    all.into_iter().flatten().map(|(name, schema)| (name.clone(), flat(schema))).collect()
}

/// The property `name` from the schema of `T`.
pub(super) fn option<T: JsonSchema>(name: &'static str) -> Property {
    let found = options::<T>().into_iter().find(|it| it.0 == name);
    found.unwrap_or_else(|| property(name, json!({})))
}

pub(super) fn property(name: &'static str, schema: Value) -> Property {
    (name.to_owned(), schema)
}

pub(super) fn session() -> Property {
    property("session", text("Path, id, handle or latest; default current."))
}

pub(super) fn messages() -> Property {
    let what = "Or API messages.";
    property("messages", json!({"type": "array", "items": {"type": "object"}, "description": what}))
}

pub(super) fn format() -> Property {
    property("format", text(""))
}

pub(super) fn profile() -> Property {
    property("profile", text(""))
}

pub(super) fn to() -> Property {
    property("to", choice(&["plan", "file", "session"]))
}

pub(super) fn text(what: &str) -> Value {
    described(json!({"type": "string"}), what)
}

/// Adds a description, unless it is empty.
pub(super) fn described(mut schema: Value, what: &str) -> Value {
    if !what.is_empty() {
        set(&mut schema, "description", what);
    }
    schema
}

pub(super) fn whole(what: &str) -> Value {
    described(integer(), what)
}

pub(super) fn integer() -> Value {
    json!({"type": "integer"})
}

pub(super) fn number() -> Value {
    json!({"type": "number"})
}

pub(super) fn any_object() -> Value {
    json!({"type": "object"})
}

pub(super) fn objects() -> Value {
    json!({"type": "array", "items": {"type": "object"}})
}

pub(super) fn choice(values: &[&str]) -> Value {
    json!({"type": "string", "enum": values})
}

pub(super) fn object<N: Into<String>>(fields: impl IntoIterator<Item = (N, Value)>) -> Map<String, Value> {
    let properties: Map<String, Value> =
        fields.into_iter().map(|(name, schema)| (name.into(), schema)).collect();
    let mut out = Map::new();
    out.insert("type".to_owned(), json!("object"));
    out.insert("properties".to_owned(), Value::Object(properties));
    out
}

pub(super) fn required(mut schema: Map<String, Value>, names: &[&str]) -> Map<String, Value> {
    schema.insert("required".to_owned(), json!(names));
    schema
}

pub(super) fn read_only() -> ToolAnnotations {
    ToolAnnotations::new().read_only(true).destructive(false).idempotent(true).open_world(false)
}

/// Not destructive: originals are archived. One client refuses a tool that is not read-only unless all three
/// hints are set.
pub(super) fn writing(open_world: bool) -> ToolAnnotations {
    ToolAnnotations::new().read_only(false).destructive(false).idempotent(false).open_world(open_world)
}

pub(super) fn tool(
    name: &'static str,
    title: &str,
    what: &'static str,
    input: Map<String, Value>,
    output: Map<String, Value>,
    hints: ToolAnnotations,
) -> Tool {
    Tool::new(name, what, Arc::new(input))
        .with_title(title)
        .with_raw_output_schema(Arc::new(output))
        .with_annotations(hints)
}

pub(super) fn meta(search_hint: &str, always: bool) -> MetaObject {
    let mut meta = Map::new();
    meta.insert(SEARCH_HINT.to_owned(), json!(search_hint));
    meta.insert(RESULT_CHARS.to_owned(), json!(MOST_CHARS));
    if always {
        meta.insert(ALWAYS_LOAD.to_owned(), json!(true));
    }
    MetaObject(meta)
}
