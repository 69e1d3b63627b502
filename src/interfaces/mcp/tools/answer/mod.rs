//! A tool's answer and its warnings.

pub(crate) mod shorten;

use serde_json::{Map, Value};

use crate::interfaces::mcp::tools;
use crate::interfaces::mcp::tools::arguments::Arguments;
use history::error::{Error, ErrorKind, Result};

/// An answer's fields by name, in display order.
pub(crate) type Answer = Map<String, Value>;

/// The JSON name of a document's field; a field that the document lacks does not compile.
macro_rules! name {
    ($document:ty: $field:ident) => {{
        const _: usize = std::mem::offset_of!($document, $field);
        stringify!($field)
    }};
}

/// The names of several fields of one document.
macro_rules! names {
    ($document:ty: $($field:ident),+ $(,)?) => { [$($crate::interfaces::mcp::tools::answer::name!($document: $field)),+] };
}

pub(crate) use {name, names};

/// Names of arguments for a message, shortened to at most five of at most 40 characters.
pub(crate) fn shown(names: &[&str]) -> String {
    let mut out: Vec<String> = names.iter().take(5).map(|it| it.chars().take(40).collect()).collect();
    if names.len() > out.len() {
        out.push(format!("and {} more", names.len() - out.len()));
    }
    out.join(", ")
}

/// Warns of arguments that the tool does not know.
pub(crate) fn warn_of_ignored(out: &mut Answer, tool: &str, arguments: &Arguments) {
    let ignored = arguments.ignored(tools::known_arguments(tool));
    if !ignored.is_empty() {
        let known = tools::known_arguments(tool).join(", ");
        warn(out, [format!("ignored: {}; {tool} takes {known}", shown(&ignored))]);
    }
}

/// Puts warnings before the existing ones, since lists are cut from the end.
pub(crate) fn warn(out: &mut Answer, more: impl IntoIterator<Item = String>) {
    let mut all: Vec<Value> = more.into_iter().map(Value::from).collect();
    if let Some(Value::Array(old)) = out.remove("warnings") {
        all.extend(old);
    }
    if !all.is_empty() {
        out.insert("warnings".to_owned(), Value::Array(all));
    }
}

pub(crate) fn value<T: serde::Serialize>(answer: &T) -> Result<Value> {
    serde_json::to_value(answer).map_err(|error| Error::new(ErrorKind::Bug, "writing JSON").because(error))
}
