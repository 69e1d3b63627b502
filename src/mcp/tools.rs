//! What the model is offered: names, descriptions and schemas of the tools.
//!
//! **Invariants.** Every parameter is optional. Schemas are flat: no `$ref`, no `anyOf`, no boolean schemas, no formats,
//! since one client drops all tools of a server for one schema it cannot read. Unknown arguments are tolerated: one
//! client adds its own. Everything here is paid for by the model in every request, so a test counts it.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use rmcp::model::{MetaObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde_json::{Value, json};

use crate::engine::{CompactOptions, Counting, PruneOptions};
use history::json::set;

/// Where a client that defers tools shows what a tool is for.
const SEARCH_HINT: &str = "anthropic/searchHint";
/// Keeps a tool loaded in a client that defers tools.
const ALWAYS_LOAD: &str = "anthropic/alwaysLoad";
/// Up to this many characters a client shows a result in place.
const RESULT_CHARS: &str = "anthropic/maxResultSizeChars";

/// What a profile may be called; a test compares it with the built-in ones.
pub(super) const LIKE: &str =
    "Compact like codex, claude-code, gemini-cli, opencode, learn-claude-code or supermemory.";

/// No answer has more characters than this: 8,000 tokens of the most compact text.
const MOST_CHARS: u64 = 80_000;

/// The tools, in the order in which they are listed. `open_world`: whether a model's provider may be asked, fixed when
/// the server starts.
pub(super) fn all(open_world: bool) -> Vec<Tool> {
    vec![estimate_tokens(), find_split_point(), prune_tool_outputs(), recall(), summarize_history(open_world)]
}

/// The arguments that a tool knows: those it offers, and those that all of them understand.
pub(super) fn known(tool: &str) -> &'static [String] {
    static KNOWN: LazyLock<BTreeMap<String, Vec<String>>> = LazyLock::new(|| {
        let names = |it: &Tool| -> Vec<String> {
            let offered = it.input_schema.get("properties").and_then(Value::as_object);
            let mut names: Vec<String> = offered.into_iter().flat_map(|it| it.keys().cloned()).collect();
            if it.name != "recall" {
                let shared = ["model", "window", "tokenizer", "profile", "keep"].map(str::to_owned);
                names.extend(shared.into_iter().filter(|it| offered.is_none_or(|all| !all.contains_key(it))));
            }
            names
        };
        all(false).iter().map(|it| (it.name.to_string(), names(it))).collect()
    });
    KNOWN.get(tool).map_or(&[], Vec::as_slice)
}

/// Whether a tool may be told where to write.
pub(super) fn writes(tool: &str) -> bool {
    known(tool).iter().any(|it| it == "to")
}

fn estimate_tokens() -> Tool {
    let input = object([
        session(),
        messages(),
        property("text", text("")),
        format(),
        option::<Counting>("model"),
        option::<Counting>("tokenizer"),
        property("detail", choice(&["concise", "detailed"])),
    ]);
    let output = object([
        ("tokens", integer()),
        ("overhead", integer()),
        ("context", integer()),
        ("window", integer()),
        ("used_percent", number()),
        ("method", any_object()),
        ("by_category", any_object()),
        ("largest", objects()),
        ("triggers", any_object()),
        ("advice", any_object()),
    ]);
    let what = "How full the context window is: tokens by category, largest outputs, whether to compact now. Also counts \
                text or messages.";
    tool("estimate_tokens", "Estimate tokens", what, input, required(output, &["tokens"]), read_only())
        .with_meta(meta("context window usage, token count, how full", false))
}

fn find_split_point() -> Tool {
    let input = object([session(), messages(), format(), profile(), option::<CompactOptions>("keep")]);
    let output = object([
        ("split", integer()),
        ("boundary", text("")),
        ("compacted", any_object()),
        ("kept", any_object()),
        ("reason", text("")),
        ("ranges", objects()),
        ("alternatives", objects()),
    ]);
    let what = "Where to cut a conversation so that no tool call loses its result.";
    let output = required(output, &["boundary", "reason"]);
    tool("find_split_point", "Find the split point", what, input, output, read_only())
        .with_meta(meta("where to split or cut a conversation history", false))
}

fn prune_tool_outputs() -> Tool {
    let mut input = vec![session(), messages(), format(), profile()];
    input.extend(options::<PruneOptions>());
    input.extend([option::<CompactOptions>("auto"), to()]);
    let input = object(input);
    let output = object([
        ("status", text("")),
        ("tokens_before", integer()),
        ("tokens_after", integer()),
        ("pruned", objects()),
        ("reason", text("")),
        ("next", any_object()),
    ]);
    let what =
        "Frees context by clearing old, large tool outputs. Originals are archived; recall brings them back.";
    let output = required(output, &["status", "tokens_before", "tokens_after"]);
    tool("prune_tool_outputs", "Prune tool outputs", what, input, output, writing(false).idempotent(true))
        .with_meta(meta("clear old tool results, prune, free context", false))
}

fn recall() -> Tool {
    let input = object([
        ("query", text("Words to find.")),
        ("handle", text("Original to read.")),
        ("session", text("")),
        ("scope", choice(&["session", "project", "all"])),
        ("range", text("Lines 10-40, messages m12-14, /regex/±2.")),
        ("limit", whole("Most hits, or tokens read.")),
    ]);
    let output = object([("hits", objects()), ("text", text("")), ("next", text("")), ("handle", text(""))]);
    let what = "Searches what compaction or pruning removed, or reads it word for word by handle.";
    tool("recall", "Recall", what, input, output, read_only())
        .with_meta(meta("find or restore compacted, cleared or forgotten earlier output; undo", false))
}

fn summarize_history(open_world: bool) -> Tool {
    let mut input = vec![
        session(),
        messages(),
        format(),
        property("profile", text(LIKE)),
        option::<Counting>("model"),
        option::<Counting>("window"),
    ];
    input.extend(options::<CompactOptions>());
    input.extend([
        property("previous_summary", text("")),
        property("summarizer", text("offline (default), host, auto, provider.")),
        property("handle", text("Of the first call.")),
        property("answer", text("Your summary.")),
        property(
            "to",
            described(choice(&["plan", "file", "session", "undo"]), "plan: preview; session: in place."),
        ),
    ]);
    let input = object(input);
    let output = object([
        ("status", text("")),
        ("tokens_before", integer()),
        ("tokens_after", integer()),
        ("summary", text("")),
        ("replace", any_object()),
        ("facts", any_object()),
        ("handle", text("")),
        ("output", text("")),
        ("session_id", text("")),
        ("reason", text("")),
        ("next", any_object()),
    ]);
    let what = "Compacts (compresses) a conversation when the context window is full, or writes a handoff for a new \
                session: a summary keeping goals, decisions, errors, files. For messages returns replace: \
                history[..from] + with + history[to..].";
    let output = required(output, &["status"]);
    tool("summarize_history", "Compact the conversation", what, input, output, writing(open_world))
        .with_meta(meta("compact, compress, summarize, context full, handoff, undo", true))
}

type Property = (String, Value);

/// The options of `T` that models are offered, flat as every client can read it: a type, its values, a description.
fn options<T: JsonSchema>() -> Vec<Property> {
    let schema = schemars::schema_for!(T);
    let all = schema.get("properties").and_then(Value::as_object);
    let flat = |schema: &Value| {
        let parts = ["type", "items", "enum", "description"];
        let part = |it: &str| Some((it.to_owned(), schema.get(it).filter(|it| **it != json!(""))?.clone()));
        Value::Object(parts.into_iter().filter_map(part).collect())
    };
    all.into_iter().flatten().map(|(name, schema)| (name.clone(), flat(schema))).collect()
}

/// A property with the schema of `T`.
fn option<T: JsonSchema>(name: &'static str) -> Property {
    let found = options::<T>().into_iter().find(|it| it.0 == name);
    found.unwrap_or_else(|| property(name, json!({})))
}

fn property(name: &'static str, schema: Value) -> Property {
    (name.to_owned(), schema)
}

fn session() -> Property {
    property("session", text("Path, id, handle, latest; default current."))
}

fn messages() -> Property {
    let what = "Or an API's messages.";
    property("messages", json!({"type": "array", "items": {"type": "object"}, "description": what}))
}

fn format() -> Property {
    property("format", text(""))
}

fn profile() -> Property {
    property("profile", text(""))
}

fn to() -> Property {
    property("to", choice(&["plan", "file", "session"]))
}

fn text(what: &str) -> Value {
    described(json!({"type": "string"}), what)
}

/// Where the name says enough, nothing is added.
fn described(mut schema: Value, what: &str) -> Value {
    if !what.is_empty() {
        set(&mut schema, "description", what);
    }
    schema
}

fn whole(what: &str) -> Value {
    described(integer(), what)
}

fn integer() -> Value {
    json!({"type": "integer"})
}

fn number() -> Value {
    json!({"type": "number"})
}

fn any_object() -> Value {
    json!({"type": "object"})
}

fn objects() -> Value {
    json!({"type": "array", "items": {"type": "object"}})
}

fn choice(values: &[&str]) -> Value {
    json!({"type": "string", "enum": values})
}

fn object<N: Into<String>>(
    properties: impl IntoIterator<Item = (N, Value)>,
) -> serde_json::Map<String, Value> {
    let properties: serde_json::Map<String, Value> =
        properties.into_iter().map(|(name, schema)| (name.into(), schema)).collect();
    let mut out = serde_json::Map::new();
    out.insert("type".to_owned(), json!("object"));
    out.insert("properties".to_owned(), Value::Object(properties));
    out
}

fn required(mut schema: serde_json::Map<String, Value>, names: &[&str]) -> serde_json::Map<String, Value> {
    schema.insert("required".to_owned(), json!(names));
    schema
}

fn read_only() -> ToolAnnotations {
    ToolAnnotations::new().read_only(true).destructive(false).idempotent(true).open_world(false)
}

/// Adds, never destroys. One client refuses a tool that is not read-only unless all three are said.
fn writing(open_world: bool) -> ToolAnnotations {
    ToolAnnotations::new().read_only(false).destructive(false).idempotent(false).open_world(open_world)
}

fn tool(
    name: &'static str,
    title: &str,
    what: &'static str,
    input: serde_json::Map<String, Value>,
    output: serde_json::Map<String, Value>,
    hints: ToolAnnotations,
) -> Tool {
    Tool::new(name, what, Arc::new(input))
        .with_title(title)
        .with_raw_output_schema(Arc::new(output))
        .with_annotations(hints)
}

fn meta(search_hint: &str, always: bool) -> MetaObject {
    let mut meta = serde_json::Map::new();
    meta.insert(SEARCH_HINT.to_owned(), json!(search_hint));
    meta.insert(RESULT_CHARS.to_owned(), json!(MOST_CHARS));
    if always {
        meta.insert(ALWAYS_LOAD.to_owned(), json!(true));
    }
    MetaObject(meta)
}
