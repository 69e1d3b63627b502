//! Splits what a script printed into the results of its calls.

use serde_json::{Map, Value};

use super::{ENDED, RUNNING, plain};
use crate::{Call, Output, Text};

/// Prefix of the output of a script that threw an error.
const FAILED: &str = "Script failed";

fn is_shell(call: &Call) -> bool {
    matches!(&*call.name, "exec_command" | "write_stdin")
}

/// What a script printed, without Codex's header.
pub(super) fn printed(text: &str) -> &str {
    text.split_once("Output:\n").map_or(text, |it| it.1.trim_start_matches('\n'))
}

/// The results of the calls of a script. Each gets its own, reported as by Codex's shell outside of code
/// mode, if the text tells them apart, or if the script printed one block per call in a loop (`prints_each`);
/// else the first gets all of it. A call that a failed script may not have reached gets none.
pub(super) fn results(calls: &[Call], prints_each: bool, output: &Output) -> Vec<Output> {
    let text = output.text.as_str();
    let stopped = output.failed || text.starts_with(FAILED);
    let error = text.starts_with(FAILED).then(|| attribute_error(calls, text)).flatten();
    let (reached, body) = error.map_or((0, printed(text)), |it| (it.at, printed(it.before)));
    // The header for calls that did not make the script fail.
    let header = text[..text.len() - printed(text).len()].replacen(FAILED, "Script completed", 1);
    let mut rest = Some(body);
    let mut out: Vec<Output> = Vec::new();
    let block_of_each = || {
        let blocks = output.blocks().filter(|it| prints_each && !stopped && it.len() == calls.len() + 1)?;
        let head = blocks[0].trim_end();
        (head == header.trim_end())
            .then(|| blocks[1..].iter().map(|it| Some(format!("{head}\n{it}"))).collect())
    };
    let own = split_outputs(calls, body);
    let own = own.or_else(block_of_each).unwrap_or_else(|| vec![None; calls.len()]);
    for (at, (call, own)) in calls.iter().zip(own).enumerate() {
        let mut failed = output.failed;
        let text = match (own, error) {
            (_, Some(error)) if at == error.at => {
                failed = true;
                error.message.to_owned()
            }
            (Some(own), _) => {
                rest = None;
                own
            }
            (None, _) if stopped && at > reached => continue,
            (None, _) => format!("{header}{}", rest.take().unwrap_or_default()),
        };
        let (id, text) = (call.id.clone(), Text::new(text));
        out.push(Output { id, text, failed, media: [].into(), ..output.clone() });
    }
    if let Some(first) = out.first_mut() {
        first.media.clone_from(&output.media);
    }
    out
}

/// What each shell call printed, and none for other calls; none at all if the results cannot be told apart.
fn split_outputs(calls: &[Call], body: &str) -> Option<Vec<Option<String>>> {
    let mut shells = shells(body).into_iter();
    let count = calls.iter().filter(|it| is_shell(it)).count();
    let separable = shells.len() > 0 && (shells.len() == count || count == 1);
    let own = |call: &Call| match is_shell(call) {
        true if count == 1 => shells.by_ref().last(),
        true => shells.next(),
        false => None,
    };
    separable.then(|| calls.iter().map(own).collect())
}

#[derive(Clone, Copy)]
struct ScriptError<'a> {
    /// The index of the call that failed.
    at: usize,
    message: &'a str,
    /// The output before the error.
    before: &'a str,
}

/// The error of a failed script, if only one of its calls can have caused it.
fn attribute_error<'a>(calls: &[Call], text: &'a str) -> Option<ScriptError<'a>> {
    let (before, message) = text.split_once("Script error:\n")?;
    let message = message.trim();
    let named = |it: &usize| calls.len() == 1 || message.starts_with(&format!("{} ", calls[*it].name));
    let mut failed = (0..calls.len()).filter(named);
    let at = failed.next().filter(|_| failed.next().is_none())?;
    Some(ScriptError { at, message, before })
}

/// The results of Codex's shell that are in a text as JSON, in the form that they have outside of code mode.
fn shells(text: &str) -> Vec<String> {
    const START: &str = "{\"chunk_id\":\"";
    let mut out: Vec<String> = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find(START).map(|it| it + from) {
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        let (result, end) = match values.next() {
            Some(Ok(Value::Object(it))) => (it, at + values.byte_offset()),
            // Codex cut it: what is before the output is whole.
            _ => {
                let next =
                    text[at + START.len()..].find(START).map_or(text.len(), |it| at + START.len() + it);
                (cut(&text[at..next]), next)
            }
        };
        let output = result.get("output").and_then(Value::as_str);
        // `text(rest); text(output)`: the output follows the rest.
        let output = output.map_or_else(|| text[end..].trim_start_matches('\n').to_owned(), str::to_owned);
        let head = match (result.get("exit_code"), result.get("session_id")) {
            (Some(Value::Number(code)), _) => format!("{ENDED}{code}\n"),
            (_, Some(Value::Null) | None) => "Script completed\n".to_owned(),
            (_, Some(session)) => format!("{RUNNING}{}\n", plain(session)),
        };
        out.push(format!("{head}\nOutput:\n{output}"));
        from = end;
    }
    out
}

/// The fields of a result that was cut off inside its output.
fn cut(text: &str) -> Map<String, Value> {
    let (head, output) = text.split_once("\"output\":\"").unwrap_or((text, ""));
    let closed = format!("{}}}", head.trim_end_matches(','));
    let mut out: Map<String, Value> = serde_json::from_str(&closed).unwrap_or_default();
    let output = serde_json::from_str(&format!("\"{output}\""))
        .unwrap_or_else(|_| output.replace("\\n", "\n").replace("\\t", "\t").replace("\\\"", "\""));
    out.insert("output".into(), output.into());
    out
}
