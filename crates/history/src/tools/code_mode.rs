//! Codex's code mode: a call of `exec` is a script that calls the other tools (`await tools.exec_command({cmd: "…"})`),
//! and its output is what the script printed of their results. [`expanded`] puts those calls and results in its place.
//!
//! Not JavaScript: string literals, objects and arrays of them, and constants that hold one. What a script computes is
//! unknown. (Codex 0.142 to 0.169.)

use std::collections::{HashMap, HashSet};
use std::iter::Peekable;
use std::str::CharIndices;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::{Call, History, Output, Part, Text};

/// Objects within one another that are looked into.
const DEEPEST: usize = 32;

/// Where a patch begins, for `apply_patch`.
const PATCH: &str = "*** Begin Patch";

/// Whether a call is a script.
fn is_script(call: &Call) -> bool {
    call.freeform && call.name.rsplit('.').next() == Some("exec")
}

/// The calls that a script makes, in order; nothing for any other call, and for a script that makes none.
pub(super) fn calls(script: &Call) -> Vec<Call> {
    if !is_script(script) {
        return Vec::new();
    }
    let mut parser = Parser::new(script.input.as_str());
    let found = parser.calls();
    let made = found.into_iter().filter_map(|(name, input)| {
        let (input, freeform) = match input {
            Value::String(text) => (text, true),
            _ if name == "apply_patch" => (parser.patch.clone()?, true),
            other => (other.to_string(), false),
        };
        Some((name, input, freeform))
    });
    let call = |(at, (name, input, freeform)): (usize, (String, String, bool))| Call {
        id: format!("{}.{at}", script.id).into(),
        name: name.into(),
        input: Text::new(input),
        freeform,
        signature: None,
    };
    made.enumerate().map(call).collect()
}

/// A history with the calls and results of scripts in place of the scripts, message by message; nothing if it has none.
pub fn expanded(history: &History) -> Option<History> {
    let mut scripts = history.messages().iter().flat_map(|it| it.calls());
    if !scripts.any(is_script) {
        return None;
    }
    let mut expansion = Expansion::default();
    for (number, message) in history.messages().iter().enumerate() {
        let mut message = message.clone();
        for part in std::mem::take(&mut message.parts) {
            match part {
                Part::Call(call) => message.parts.extend(expansion.call(call)),
                Part::Output(output) => {
                    for part in expansion.output(output) {
                        expansion.place(&part, number, message.parts.len());
                        message.parts.push(Part::Output(part));
                    }
                }
                Part::Text(_) | Part::Reasoning(_) | Part::Media(_) | Part::Opaque(_) => {
                    message.parts.push(part);
                }
            }
        }
        expansion.messages.push(message);
        expansion.continued();
    }
    Some(History::new(expansion.messages, history.meta.clone()))
}

#[derive(Default)]
struct Expansion {
    messages: Vec<crate::Message>,
    /// Calls of scripts that are not answered yet, by the script's id.
    scripts: HashMap<Arc<str>, Vec<Call>>,
    /// Scripts that go on, by cell.
    cells: HashMap<String, Arc<str>>,
    /// The cell that a call of `wait` waits for, by its id.
    waits: HashMap<Arc<str>, String>,
    /// Sessions of the shell that a result named.
    sessions: HashSet<String>,
    /// Message and part of the newest result of a command of which it is not known whether it ended.
    unfinished: Option<(usize, usize)>,
    /// A session that is attended though no result named it.
    attended: Option<String>,
}

impl Expansion {
    fn call(&mut self, call: Call) -> Vec<Part> {
        if is_script(&call) {
            let calls = calls(&call);
            if calls.is_empty() {
                return vec![Part::Call(call)];
            }
            for session in calls.iter().filter_map(session) {
                if !self.sessions.contains(&session) {
                    self.attended = Some(session);
                }
            }
            self.scripts.insert(call.id, calls.clone());
            return calls.into_iter().map(Part::Call).collect();
        }
        if &*call.name == "wait"
            && let Ok(input) = serde_json::from_str::<Value>(call.input.as_str())
            && let Some(cell) = input.get("cell_id").map(plain)
        {
            self.waits.insert(call.id.clone(), cell);
        }
        vec![Part::Call(call)]
    }

    fn output(&mut self, output: Output) -> Vec<Output> {
        let script = match self.waits.remove(&output.id) {
            Some(cell) => self.cells.remove(&cell),
            None => self.scripts.contains_key(&output.id).then(|| output.id.clone()),
        };
        let Some(script) = script else { return vec![output] };
        let text = output.text.as_str();
        if let Some(cell) = text.strip_prefix("Script running with cell ID ") {
            let cell = cell.lines().next().unwrap_or_default().trim().to_owned();
            self.cells.insert(cell, script);
            return Vec::new();
        }
        let Some(calls) = self.scripts.remove(&script) else { return vec![output] };
        let outputs = results(&calls, &output);
        for session in outputs.iter().filter_map(|it| it.text.as_str().strip_prefix(RUNNING)) {
            self.sessions.insert(session.lines().next().unwrap_or_default().to_owned());
        }
        outputs
    }

    fn place(&mut self, output: &Output, message: usize, part: usize) {
        let text = output.text.as_str();
        if output.failed || text.starts_with(ENDED) {
            self.unfinished = None;
        } else if text.starts_with("Script completed") {
            self.unfinished = Some((message, part));
        }
    }

    /// Says of the newest command whose end was not told that it went on in the session that is attended next.
    fn continued(&mut self) {
        let Some(session) = self.attended.take() else { return };
        let Some((message, part)) = self.unfinished.take() else { return };
        if let Some(Part::Output(output)) = self.messages[message].parts.get_mut(part) {
            let text = format!("{RUNNING}{session}\nOutput:\n{}", printed(output.text.as_str()));
            output.text = Text::new(text);
            self.sessions.insert(session);
        }
    }
}

/// What Codex's shell says outside of code mode of a command that goes on, and of one that ended.
const RUNNING: &str = "Process running with session ID ";
const ENDED: &str = "Process exited with code ";

/// The session that a call attends.
fn session(call: &Call) -> Option<String> {
    let input: Value = serde_json::from_str(call.input.as_str()).ok()?;
    (&*call.name == "write_stdin").then(|| input.get("session_id").map(plain)).flatten()
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn is_shell(call: &Call) -> bool {
    matches!(&*call.name, "exec_command" | "write_stdin")
}

/// What a script printed, without what Codex says of its run.
fn printed(text: &str) -> &str {
    text.split_once("Output:\n").map_or(text, |it| it.1.trim_start_matches('\n'))
}

/// The results of the calls of a script: each its own where what was printed tells them apart, as Codex's shell reports
/// outside of code mode; else the first has all of it.
fn results(calls: &[Call], output: &Output) -> Vec<Output> {
    let text = output.text.as_str();
    let body = printed(text);
    let header = &text[..text.len() - body.len()];
    let error = body.find("Script error:\n").filter(|_| text.starts_with("Script failed"));
    let error = error.map(|at| body[at..].trim_start_matches("Script error:\n").trim());
    let of = |call: &Call, text: String| Output {
        id: call.id.clone(),
        text: Text::new(text),
        failed: output.failed,
        media: [].into(),
        ..output.clone()
    };
    let mut shells = shells(body).into_iter();
    let count = calls.iter().filter(|it| is_shell(it)).count();
    let told = shells.len() == count || count == 1 && shells.len() > 0;
    let mut rest = Some(body);
    let mut out: Vec<Output> = calls
        .iter()
        .map(|call| {
            let shell = if count == 1 { shells.by_ref().last() } else { shells.next() };
            match shell.filter(|_| told && is_shell(call)) {
                Some(shell) => {
                    rest = None;
                    of(call, shell)
                }
                None => of(call, format!("{header}{}", rest.take().unwrap_or_default())),
            }
        })
        .collect();
    if let Some(error) = error {
        let named: Vec<usize> = (0..calls.len())
            .filter(|at| calls.len() == 1 || error.starts_with(&format!("{} ", calls[*at].name)))
            .collect();
        if let [at] = named[..] {
            out[at].text = Text::new(error.to_owned());
            out[at].failed = true;
        }
    }
    if let Some(first) = out.first_mut() {
        first.media.clone_from(&output.media);
    }
    out
}

/// The results of Codex's shell that stand in a text as JSON, in the words that it has outside of code mode.
fn shells(text: &str) -> Vec<String> {
    const START: &str = "{\"chunk_id\":\"";
    let mut out: Vec<String> = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find(START).map(|it| it + from) {
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        let (result, end) = match values.next() {
            Some(Ok(Value::Object(it))) => (it, at + values.byte_offset()),
            // Codex cut it: what stands in front of the output is whole.
            _ => {
                let next =
                    text[at + START.len()..].find(START).map_or(text.len(), |it| at + START.len() + it);
                (cut(&text[at..next]), next)
            }
        };
        let said = result.get("output").and_then(Value::as_str);
        // `text(rest); text(output)`: the output stands behind the rest.
        let said = said.map_or_else(|| text[end..].trim_start_matches('\n').to_owned(), str::to_owned);
        let head = match (result.get("exit_code"), result.get("session_id")) {
            (Some(Value::Number(code)), _) => format!("{ENDED}{code}\n"),
            (_, Some(Value::Null) | None) => "Script completed\n".to_owned(),
            (_, Some(session)) => format!("{RUNNING}{}\n", plain(session)),
        };
        out.push(format!("{head}\nOutput:\n{said}"));
        from = end;
    }
    out
}

/// The fields of a result that was cut within its output.
fn cut(text: &str) -> Map<String, Value> {
    let (head, output) = text.split_once("\"output\":\"").unwrap_or((text, ""));
    let closed = format!("{}}}", head.trim_end_matches(','));
    let mut out: Map<String, Value> = serde_json::from_str(&closed).unwrap_or_default();
    let output = output.replace("\\n", "\n").replace("\\t", "\t").replace("\\\"", "\"");
    out.insert("output".into(), output.into());
    out
}

struct Parser<'a> {
    text: &'a str,
    chars: Peekable<CharIndices<'a>>,
    /// Constants that hold a literal.
    constants: HashMap<&'a str, Value>,
    /// The first literal that is a patch.
    patch: Option<String>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, chars: text.char_indices().peekable(), constants: HashMap::new(), patch: None }
    }

    fn peek(&mut self) -> Option<char> {
        self.chars.peek().map(|it| it.1)
    }

    fn at(&mut self) -> usize {
        self.chars.peek().map_or(self.text.len(), |it| it.0)
    }

    fn eat(&mut self, wanted: char) -> bool {
        self.blank();
        self.chars.next_if(|it| it.1 == wanted).is_some()
    }

    /// Passes over white space and comments.
    fn blank(&mut self) {
        loop {
            let at = self.at();
            let rest = &self.text[at..];
            let length = if rest.starts_with("//") {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                rest.find("*/").map_or(rest.len(), |it| it + 2)
            } else {
                rest.len() - rest.trim_start().len()
            };
            if length == 0 {
                return;
            }
            while self.chars.next_if(|it| it.0 < at + length).is_some() {}
        }
    }

    fn word(&mut self) -> &'a str {
        let from = self.at();
        while self.chars.next_if(|it| it.1.is_alphanumeric() || it.1 == '_' || it.1 == '$').is_some() {}
        let to = self.at();
        &self.text[from..to]
    }

    /// The calls of `tools.NAME(…)` with their first argument, in order.
    fn calls(&mut self) -> Vec<(String, Value)> {
        let mut out = Vec::new();
        loop {
            self.blank();
            let Some(c) = self.peek() else { return out };
            match c {
                '"' | '\'' | '`' => {
                    self.string(c, false);
                }
                c if c.is_alphabetic() || c == '_' || c == '$' => match self.word() {
                    "const" | "let" | "var" => self.constant(),
                    "tools" => out.extend(self.tool()),
                    "String" => {
                        self.raw();
                    }
                    _ => {}
                },
                _ => {
                    self.chars.next();
                }
            }
        }
    }

    fn constant(&mut self) {
        self.blank();
        let name = self.word();
        if !name.is_empty()
            && self.eat('=')
            && let Some(value) = self.value(0)
        {
            self.constants.insert(name, value);
        }
    }

    fn tool(&mut self) -> Option<(String, Value)> {
        let name = if self.eat('.') {
            self.word().to_owned()
        } else if self.eat('[') {
            let name = self.value(0)?;
            self.eat(']').then_some(())?;
            name.as_str()?.to_owned()
        } else {
            return None;
        };
        (!name.is_empty() && self.eat('(')).then(|| (name, self.value(0).unwrap_or(Value::Null)))
    }

    /// A literal, or a constant that holds one. Nothing, and nothing passed over, for any other expression.
    fn value(&mut self, depth: usize) -> Option<Value> {
        self.blank();
        let first = self.peek().filter(|_| depth < DEEPEST)?;
        let value = match first {
            '"' | '\'' | '`' => Value::String(self.string(first, false)),
            '{' => self.object(depth),
            '[' => self.array(depth),
            '-' | '0'..='9' => {
                let from = self.at();
                while self.chars.next_if(|it| it.1.is_ascii_alphanumeric() || "-+._".contains(it.1)).is_some()
                {
                }
                let to = self.at();
                serde_json::from_str(&self.text[from..to].replace('_', "")).unwrap_or(Value::Null)
            }
            c if c.is_alphabetic() || c == '_' || c == '$' => {
                let before = self.chars.clone();
                let word = self.word();
                let known = match word {
                    "true" => Some(Value::Bool(true)),
                    "false" => Some(Value::Bool(false)),
                    "null" | "undefined" => Some(Value::Null),
                    "String" => self.raw().map(Value::String),
                    name => self.constants.get(name).cloned(),
                };
                self.blank();
                match known.filter(|_| !matches!(self.peek(), Some('.' | '(' | '['))) {
                    Some(value) => value,
                    None => {
                        self.chars = before;
                        return None;
                    }
                }
            }
            _ => return None,
        };
        Some(self.joined(value, depth))
    }

    /// With what `+` adds to a string.
    fn joined(&mut self, value: Value, depth: usize) -> Value {
        let Value::String(mut text) = value else { return value };
        while self.eat('+') {
            match self.value(depth + 1) {
                Some(Value::String(more)) => text.push_str(&more),
                Some(Value::Number(more)) => text.push_str(&more.to_string()),
                Some(_) | None => break,
            }
        }
        Value::String(text)
    }

    fn array(&mut self, depth: usize) -> Value {
        self.chars.next();
        let mut items = Vec::new();
        while !self.eat(']') && self.peek().is_some() {
            items.push(self.value(depth + 1).unwrap_or(Value::Null));
            self.rest();
        }
        let before = self.chars.clone();
        // `["a", "b"].join("\n")`.
        if self.eat('.') && self.word() == "join" && self.eat('(') {
            let between = self.value(depth + 1).unwrap_or_else(|| ",".into());
            self.rest();
            self.eat(')');
            let items: Vec<String> = items.iter().map(plain).collect();
            return self.literal(items.join(between.as_str().unwrap_or(",")));
        }
        self.chars = before;
        Value::Array(items)
    }

    fn object(&mut self, depth: usize) -> Value {
        self.chars.next();
        let mut fields = Map::new();
        while !self.eat('}') {
            let Some(first) = self.peek() else { break };
            let key = match first {
                '"' | '\'' | '`' => self.string(first, false),
                _ => self.word().to_owned(),
            };
            let value = if self.eat(':') {
                self.value(depth + 1)
            } else {
                // `{cmd, workdir}`.
                self.constants.get(key.as_str()).cloned()
            };
            if let Some(value) = value.filter(|_| !key.is_empty()) {
                fields.insert(key, value);
            }
            self.rest();
        }
        Value::Object(fields)
    }

    /// Passes over what is left of an element and the comma behind it, up to the bracket that closes the list.
    fn rest(&mut self) {
        let mut depth = 0_usize;
        loop {
            self.blank();
            let Some(c) = self.peek() else { return };
            match c {
                '"' | '\'' | '`' => {
                    self.string(c, false);
                    continue;
                }
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' if depth == 0 => return,
                ')' | ']' | '}' => depth -= 1,
                ',' if depth == 0 => {
                    self.chars.next();
                    return;
                }
                _ => {}
            }
            self.chars.next();
        }
    }

    /// `` String.raw`…` ``, from behind its first word.
    fn raw(&mut self) -> Option<String> {
        (self.eat('.') && self.word() == "raw" && self.peek() == Some('`')).then(|| self.string('`', true))
    }

    fn string(&mut self, quote: char, raw: bool) -> String {
        self.chars.next();
        let mut text = String::new();
        while let Some((_, c)) = self.chars.next() {
            match c {
                c if c == quote => break,
                '\\' if raw => {
                    text.push(c);
                    text.extend(self.chars.next().map(|it| it.1));
                }
                '\\' => match self.chars.next().map(|it| it.1) {
                    Some('n') => text.push('\n'),
                    Some('t') => text.push('\t'),
                    Some('r') => text.push('\r'),
                    Some('u') => text.extend(self.escaped(4)),
                    Some('x') => text.extend(self.escaped(2)),
                    Some('\n') | None => {}
                    Some(other) => text.push(other),
                },
                c => text.push(c),
            }
        }
        if self.patch.is_none() && text.contains(PATCH) {
            self.patch = Some(text.clone());
        }
        text
    }

    fn literal(&mut self, text: String) -> Value {
        if text.contains(PATCH) {
            self.patch = Some(text.clone());
        }
        Value::String(text)
    }

    /// The character that some hexadecimal digits stand for.
    fn escaped(&mut self, digits: usize) -> Option<char> {
        let mut code = 0;
        for _ in 0..digits {
            code = code * 16 + self.chars.next_if(|it| it.1.is_ascii_hexdigit())?.1.to_digit(16)?;
        }
        char::from_u32(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Message, Role};

    fn script(id: &str, input: &str) -> Call {
        Call { id: id.into(), name: "exec".into(), input: input.into(), freeform: true, signature: None }
    }

    fn shown(input: &str) -> String {
        let line = |it: Call| format!("{} {}", it.name, it.input.as_str());
        calls(&script("s", input)).into_iter().map(line).collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn calls_of_a_script() {
        for (input, expected) in [
            (
                r#"const r = await tools.exec_command({cmd:"rm \"a b\"","workdir":'/w', n: 5}); text(r.output);"#,
                r#"exec_command {"cmd":"rm \"a b\"","workdir":"/w","n":5}"#,
            ),
            (
                "// don't\nconst cmd = `go test ${x}`;\nawait tools.exec_command({cmd, workdir: dir, t: f(1, \"}\"), y: 2})",
                r#"exec_command {"cmd":"go test ${x}","y":2}"#,
            ),
            (
                r#"const p = ["*** Begin Patch", "*** End Patch"].join("\n"); text(await tools.apply_patch(p));"#,
                "apply_patch *** Begin Patch\n*** End Patch",
            ),
            (
                r"const p = String.raw`*** Begin Patch\n`; tools.apply_patch(made(p))",
                r"apply_patch *** Begin Patch\n",
            ),
            (
                r#"const [a, b] = await Promise.all([tools.exec_command({cmd: "a" + " b"}), tools["mcp__x__y"]({q: [1, true, null]})]);"#,
                r#"exec_command {"cmd":"a b"} | mcp__x__y {"q":[1,true,null]}"#,
            ),
            (
                "tools.update_plan({plan:[{step:\"a\",status:\"completed\"}]})",
                r#"update_plan {"plan":[{"step":"a","status":"completed"}]}"#,
            ),
            ("for (const c of cs) await tools.exec_command({cmd: c})", "exec_command {}"),
            ("tools.apply_patch(unknown)", ""),
            ("text(ALL_TOOLS.filter(x => x.name))", ""),
            ("tools.exec_command({cmd:\"unclosed", r#"exec_command {"cmd":"unclosed"}"#),
            ("tools.exec_command({a:{b:[", r#"exec_command {"a":{"b":[]}}"#),
        ] {
            assert_eq!(shown(input), expected, "{input}");
        }
        let deep = format!("tools.x({})", "[".repeat(100_000));
        assert_eq!(calls(&script("s", &deep)).len(), 1);
    }

    /// The outputs of scripts with what they printed, one line each.
    fn outputs(turns: &[(&str, &str)]) -> Vec<String> {
        let mut messages = Vec::new();
        for (number, (input, printed)) in turns.iter().enumerate() {
            let id: Arc<str> = format!("s{number}").into();
            let call = match input.strip_prefix("wait ") {
                Some(cell) => Call {
                    name: "wait".into(),
                    freeform: false,
                    input: format!("{{\"cell_id\":\"{cell}\"}}").into(),
                    ..script(&id, "")
                },
                None => script(&id, input),
            };
            messages.push(Message::new(Role::Assistant, Kind::Said, vec![Part::Call(call)]));
            let output = Output {
                id,
                name: None,
                text: Text::new((*printed).to_owned()),
                media: [].into(),
                failed: false,
                cleared: false,
                exit: None,
                refusal: None,
            };
            messages.push(Message::new(Role::Tool, Kind::Said, vec![Part::Output(output)]));
        }
        let count = messages.len();
        let found = expanded(&History::new(messages, Default::default())).unwrap();
        assert_eq!(found.messages().len(), count);
        let line = |it: &Output| {
            let failed = if it.failed { "failed " } else { "" };
            format!("{} {failed}{}", it.id, it.text.as_str().replace('\n', "·"))
        };
        found.messages().iter().flat_map(|it| it.outputs()).map(line).collect()
    }

    #[test]
    fn results_of_a_script() {
        let two = r#"tools.exec_command({cmd:"a"}); tools.exec_command({cmd:"b"})"#;
        let one = r#"const r = await tools.exec_command({cmd:"a"}); text(r)"#;
        for (turns, expected) in [
            (
                vec![(
                    one,
                    "Script completed\nWall time 0.1 seconds\nOutput:\n\n{\"chunk_id\":\"1\",\"exit_code\":2,\"output\":\"x\\ny\"}",
                )],
                vec!["s0.0 Process exited with code 2··Output:·x·y"],
            ),
            (
                vec![(
                    two,
                    "Script completed\nOutput:\n\n[{\"chunk_id\":\"1\",\"exit_code\":0,\"output\":\"x\"},{\"chunk_id\":\"2\",\"session_id\":7,\"output\":\"\"}]",
                )],
                vec![
                    "s0.0 Process exited with code 0··Output:·x",
                    "s0.1 Process running with session ID 7··Output:·",
                ],
            ),
            (
                vec![(one, "Script completed\nOutput:\n\n{\"chunk_id\":\"1\",\"exit_code\":1}\nx")],
                vec!["s0.0 Process exited with code 1··Output:·x"],
            ),
            (
                vec![(
                    one,
                    "Script completed\nOutput:\n\n{\"chunk_id\":\"1\",\"exit_code\":1,\"output\":\"x …3 tokens truncated",
                )],
                vec!["s0.0 Process exited with code 1··Output:·x …3 tokens truncated"],
            ),
            (
                vec![(two, "Script completed\nOutput:\n\nx\ny")],
                vec!["s0.0 Script completed·Output:··x·y", "s0.1 Script completed·Output:··"],
            ),
            (
                vec![(
                    "tools.apply_patch(\"*** Begin Patch\")",
                    "Script failed\nOutput:\n\nScript error:\napply_patch verification failed: no such lines",
                )],
                vec!["s0.0 failed apply_patch verification failed: no such lines"],
            ),
            // A script that goes on, and the wait for it.
            (
                vec![
                    (one, "Script running with cell ID 3\nOutput:\n"),
                    (
                        "wait 3",
                        "Script completed\nOutput:\n\n{\"chunk_id\":\"1\",\"exit_code\":0,\"output\":\"x\"}",
                    ),
                ],
                vec!["s0.0 Process exited with code 0··Output:·x"],
            ),
            // A command whose session only the call that attends it names.
            (
                vec![
                    (one, "Script completed\nOutput:\n\nx"),
                    ("tools.write_stdin({session_id:9})", "Script completed\nOutput:\n\ny"),
                ],
                vec!["s0.0 Process running with session ID 9·Output:·x", "s1.0 Script completed·Output:··y"],
            ),
        ] {
            assert_eq!(outputs(&turns), expected, "{turns:?}");
        }
        let plain = Message::text(Role::User, Kind::Said, "x");
        assert!(expanded(&History::new(vec![plain], Default::default())).is_none());
    }
}
