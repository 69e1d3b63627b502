//! Codex's code mode: a call of `exec` is a script that calls the other tools (`await
//! tools.exec_command({cmd: "…"})`), and its output is what the script printed of their results. [`expanded`]
//! replaces it by those calls and results.
//!
//! This does not run JavaScript: it reads string literals, objects and arrays of them, and constants that
//! hold one. What a script computes is unknown. (Codex 0.142 to 0.169.)

mod results;
mod script;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use self::results::{printed, results};
use super::json_report::{is_report, unwrapped};
use crate::{Call, History, Output, Part, Text};

pub(super) fn is_script(call: &Call) -> bool {
    call.freeform && call.name.rsplit('.').next() == Some("exec")
}

/// The calls that a script makes, in order; none for any other call, and for a script that makes none.
pub(super) fn calls(script: &Call) -> Vec<Call> {
    if !is_script(script) {
        return Vec::new();
    }
    let (found, mut patch) = script::read(script.input.as_str());
    let calls = found.into_iter().filter_map(|(name, input)| {
        let (input, freeform) = match input {
            Value::String(text) => (text, true),
            _ if name == "apply_patch" => (patch.take()?, true),
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
    // A script within a script is ignored.
    calls.enumerate().map(call).filter(|it| !is_script(it)).collect()
}

/// Whether a script makes its calls at once and prints the results one by one: `const all = await
/// Promise.all([…]); all.forEach(it => text(it.output))`.
fn prints_each_result(script: &str) -> bool {
    let Some((_, behind)) = script.rsplit_once("Promise.all(") else { return false };
    let loops = [".forEach(", ".map(", "for (const ", "for(const "].iter().any(|it| behind.contains(it));
    loops && script.matches("text(").count() == 1 && script.matches("Promise.all(").count() == 1
}

/// A history with scripts replaced by their calls and results, message by message; none if it has no script.
pub fn expanded(history: &History) -> Option<History> {
    let mut scripts = history.messages().iter().flat_map(|it| it.calls());
    let mut outputs = history.messages().iter().flat_map(|it| it.outputs());
    if !scripts.any(is_script) && !outputs.any(is_report) {
        return None;
    }
    let mut expansion = Expansion::default();
    for (number, message) in history.messages().iter().enumerate() {
        let mut message = message.clone();
        for part in std::mem::take(&mut message.parts) {
            match part {
                Part::Call(call) => message.parts.extend(expansion.call(call)),
                Part::Output(output) => {
                    for part in expansion.output(unwrapped(output)) {
                        expansion.remember_unfinished(&part, number, message.parts.len());
                        message.parts.push(Part::Output(part));
                    }
                }
                Part::Text(_) | Part::Reasoning(_) | Part::Media(_) | Part::Opaque(_) => {
                    message.parts.push(part);
                }
            }
        }
        expansion.messages.push(message);
        expansion.mark_still_running();
    }
    for message in &mut expansion.messages {
        message
            .parts
            .retain(|it| !matches!(it, Part::Call(call) if expansion.ended_waits.contains(&call.id)));
    }
    Some(History::new(expansion.messages, history.meta.clone()))
}

#[derive(Default)]
struct Expansion {
    messages: Vec<crate::Message>,
    /// By a script's id: its calls that are not answered yet, and whether it prints each result.
    scripts: HashMap<Arc<str>, (Vec<Call>, bool)>,
    /// The ids of scripts that are still running, by cell.
    cells: HashMap<String, Arc<str>>,
    /// The cell that a call of `wait` waits for, by call id.
    waits: HashMap<Arc<str>, String>,
    /// Calls of `wait` whose output has the results of a script's calls.
    ended_waits: HashSet<Arc<str>>,
    /// Sessions of the shell that a result named.
    sessions: HashSet<String>,
    /// Message and part of the results of commands that may still be running.
    unfinished: Vec<(usize, usize)>,
    /// Whether the newest result is one of `unfinished`.
    is_unfinished: bool,
    /// A session that is polled although no result named it.
    polled_session: Option<String>,
    /// The session that a call polls, by call id.
    polls: HashMap<Arc<str>, String>,
    /// Message and part of the newest poll result, by session.
    polled: HashMap<String, (usize, usize)>,
}

impl Expansion {
    fn call(&mut self, call: Call) -> Vec<Part> {
        if is_script(&call) {
            let calls = calls(&call);
            if calls.is_empty() {
                return vec![Part::Call(call)];
            }
            for (call, session) in calls.iter().filter_map(|it| Some((it, session(it)?))) {
                if !self.sessions.contains(&session) {
                    self.polled_session = Some(session.clone());
                }
                // It was still running at the last poll.
                if let Some(at) = self.polled.remove(&session) {
                    self.set_running(at, &session);
                }
                self.polls.insert(call.id.clone(), session);
            }
            let prints_each = prints_each_result(call.input.as_str());
            self.scripts.insert(call.id, (calls.clone(), prints_each));
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
            Some(cell) => {
                let script = self.cells.remove(&cell);
                self.ended_waits.extend(script.is_some().then(|| output.id.clone()));
                script
            }
            None => self.scripts.contains_key(&output.id).then(|| output.id.clone()),
        };
        let Some(script) = script else { return vec![output] };
        let text = output.text.as_str();
        if let Some(cell) = text.strip_prefix("Script running with cell ID ") {
            let cell = cell.lines().next().unwrap_or_default().trim().to_owned();
            self.cells.insert(cell, script);
            return Vec::new();
        }
        let Some((calls, prints_each)) = self.scripts.remove(&script) else { return vec![output] };
        let outputs = results(&calls, prints_each, &output);
        for session in outputs.iter().filter_map(|it| it.text.as_str().strip_prefix(RUNNING)) {
            self.sessions.insert(session.lines().next().unwrap_or_default().to_owned());
        }
        outputs
    }

    fn remember_unfinished(&mut self, output: &Output, message: usize, part: usize) {
        let text = output.text.as_str();
        if let Some(session) = self.polls.remove(&output.id)
            && !output.failed
            && !text.starts_with(ENDED)
        {
            self.polled.insert(session, (message, part));
        }
        if output.failed || text.starts_with(ENDED) {
            self.is_unfinished = false;
        } else if text.starts_with("Script completed") {
            self.unfinished.push((message, part));
            self.is_unfinished = true;
        }
    }

    /// Finds the command behind the session that this message polls, and marks it as still running: the one
    /// whose output ends with the session's number, printed by the script, else the newest one without an
    /// exit code.
    fn mark_still_running(&mut self) {
        let Some(session) = self.polled_session.take() else { return };
        let names = |(message, part): &(usize, usize)| {
            let Part::Output(output) = &self.messages[*message].parts[*part] else { return false };
            let lines = output.text.as_str().lines().rev().take(LAST_LINES);
            lines.flat_map(|it| it.split(|c: char| !c.is_alphanumeric())).any(|it| it == session)
        };
        let recent = self.unfinished.len().saturating_sub(RECENT);
        let named = self.unfinished[recent..].iter().rposition(names).map(|it| it + recent);
        let newest =
            || self.unfinished.len().checked_sub(1).filter(|_| std::mem::take(&mut self.is_unfinished));
        let Some(at) = named.or_else(newest) else { return };
        let at = self.unfinished.remove(at);
        self.set_running(at, &session);
        self.sessions.insert(session);
    }

    /// Changes a result to say that its command is still running, in this session.
    fn set_running(&mut self, (message, part): (usize, usize), session: &str) {
        let parts = self.messages.get_mut(message).map(|it| &mut it.parts);
        if let Some(Part::Output(output)) = parts.and_then(|it| it.get_mut(part)) {
            let text = format!("{RUNNING}{session}\nOutput:\n{}", printed(output.text.as_str()));
            output.text = Text::new(text);
        }
    }
}

/// How many last lines of an output, and how many outputs, are searched for a session's number.
const LAST_LINES: usize = 3;
const RECENT: usize = 64;

/// What Codex's shell says, outside of code mode, of a command that is still running, and of one that ended.
const RUNNING: &str = "Process running with session ID ";
const ENDED: &str = "Process exited with code ";

/// The session that a call polls.
fn session(call: &Call) -> Option<String> {
    let input: Value = serde_json::from_str(call.input.as_str()).ok()?;
    (&*call.name == "write_stdin").then(|| input.get("session_id").map(plain)).flatten()
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
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
            ("tools.exec_command({)", "exec_command {}"),
            ("tools.exec_command({a:[)", r#"exec_command {"a":[]}"#),
            (
                r#"const all = [await tools.exec_command({cmd:"a"}), {b: tools.exec_command({cmd:"b"})}]"#,
                r#"exec_command {"cmd":"a"} | exec_command {"cmd":"b"}"#,
            ),
            (
                r#"tools.x({a: (await tools.y({b: 1}, f(tools.z({})))).c, d: 2}); tools.v({})"#,
                r#"z {} | y {"b":1} | x {"d":2} | v {}"#,
            ),
            (r#"tools.x({a: "\ud83d\ude00\u{1F600}\u00e9\ud83d!"})"#, r#"x {"a":"😀😀é!"}"#),
            (
                r#"const s = t.match(/["']a\/[/"]/) || x / 2; tools.x({a: s.replace(/"/g, "'")}); tools.y({b: "c"})"#,
                r#"x {} | y {"b":"c"}"#,
            ),
            (r#"{ const cmd = "a"; } { const cmd = f(); tools.x({cmd}) }"#, "x {}"),
            (r#"tools.exec("tools.x({})")"#, ""),
        ] {
            assert_eq!(shown(input), expected, "{input}");
        }
        let long = format!("tools.x({{a: {}}})", vec!["\"b\""; 40].join(" + "));
        assert_eq!(shown(&long), format!(r#"x {{"a":"{}"}}"#, "b".repeat(40)));
    }

    #[test]
    fn what_a_script_costs_is_bounded() {
        for deep in ["[", "[tools.x(", "tools.x(", "{a:", "[const a=["] {
            assert!(!calls(&script("s", &format!("tools.x({})", deep.repeat(100_000)))).is_empty());
        }
        let doubled = |more: &str| {
            let lines = (1..60).map(|it| {
                let more = more.replace('a', &format!("a{}", it - 1));
                format!("const a{it} = {more};\n")
            });
            format!("const a0 = \"x\";\n{}tools.x({{a59, a3}})", lines.collect::<String>())
        };
        let long = "x".repeat(8);
        assert_eq!(shown(&doubled("a + a")), format!(r#"x {{"a3":"{long}"}}"#));
        for more in ["[a, a]", "[a]", "{b: a, c: a}", "[1, 1, 1].join(a)"] {
            assert!(shown(&doubled(more)).len() < 100_000, "{more}");
        }
    }

    /// The outputs for scripts that printed this, one line each.
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
            // A form feed separates the blocks of an output.
            let ends = printed.match_indices('\u{c}').map(|it| it.0).chain([printed.len()]).collect();
            let output = Output { ends, ..Output::new(id, printed.replace('\u{c}', "\n")) };
            messages.push(Message::new(Role::Tool, Kind::Said, vec![Part::Output(output)]));
        }
        let count = messages.len();
        let found = expanded(&History::new(messages, Default::default())).unwrap();
        assert_eq!(found.messages().len(), count);
        assert!(found.messages().iter().flat_map(|it| it.calls()).all(|it| &*it.name != "wait"));
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
        let each = r#"const all = await Promise.all([tools.exec_command({cmd:"a"}), tools.exec_command({cmd:"b"})]); all.forEach((it)=>text(it.output));"#;
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
            // One block per call, and the same number of them by chance.
            (
                vec![(each, "Script completed\nOutput:\n\u{c}\u{c}x\ny")],
                vec!["s0.0 Script completed·Output:·", "s0.1 Script completed·Output:·x·y"],
            ),
            (
                vec![(two, "Script completed\nOutput:\n\u{c}x\u{c}exit code: 1")],
                vec!["s0.0 Script completed·Output:··x·exit code: 1", "s0.1 Script completed·Output:··"],
            ),
            (
                vec![(
                    "tools.apply_patch(\"*** Begin Patch\")",
                    "Script failed\nOutput:\n\nScript error:\napply_patch verification failed: no such lines",
                )],
                vec!["s0.0 failed apply_patch verification failed: no such lines"],
            ),
            (
                vec![(
                    "tools.update_plan({}); tools.exec_command({}); tools.exec_command({})",
                    "Script completed\nOutput:\n\n{\"chunk_id\":\"1\",\"exit_code\":1,\"output\":\"x\"}{\"chunk_id\":\"2\",\"exit_code\":0,\"output\":\"C:\\\\new …",
                )],
                vec![
                    "s0.0 Script completed·Output:··{\"chunk_id\":\"1\",\"exit_code\":1,\"output\":\"x\"}{\"chunk_id\":\"2\",\"exit_code\":0,\"output\":\"C:\\\\new …",
                    "s0.1 Process exited with code 1··Output:·x",
                    "s0.2 Process exited with code 0··Output:·C:\\new …",
                ],
            ),
            // Calls after a failed one were not made.
            (
                vec![(
                    "tools.exec_command({}); tools.apply_patch(\"*** Begin Patch\"); tools.exec_command({})",
                    "Script failed\nOutput:\n\nx\nScript error:\napply_patch verification failed: no such lines",
                )],
                vec![
                    "s0.0 Script completed·Output:··x·",
                    "s0.1 failed apply_patch verification failed: no such lines",
                ],
            ),
            (
                vec![(two, "Script failed\nOutput:\n\nScript error:\nTypeError: a is null")],
                vec!["s0.0 Script completed·Output:··Script error:·TypeError: a is null"],
            ),
        ] {
            assert_eq!(outputs(&turns), expected, "{turns:?}");
        }
    }

    #[test]
    fn what_a_script_began_and_what_ends_it() {
        let one = r#"const r = await tools.exec_command({cmd:"a"}); text(r)"#;
        for (turns, expected) in [
            // A script that is still running, and the wait for it.
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
            // A command whose session is named only by the call that polls it.
            (
                vec![
                    (one, "Script completed\nOutput:\n\nx"),
                    ("tools.write_stdin({session_id:9})", "Script completed\nOutput:\n\ny"),
                ],
                vec!["s0.0 Process running with session ID 9·Output:·x", "s1.0 Script completed·Output:··y"],
            ),
            // A command whose session the script prints in its own words.
            (
                vec![
                    (one, "Script completed\nOutput:\n\nx\nsession=91"),
                    (one, "Script completed\nOutput:\n\n9"),
                    ("tools.write_stdin({session_id:91})", "Script completed\nOutput:\n\ny"),
                ],
                vec![
                    "s0.0 Process running with session ID 91·Output:·x·session=91",
                    "s1.0 Script completed·Output:··9",
                    "s2.0 Script completed·Output:··y",
                ],
            ),
            // What is still running is polled again.
            (
                vec![
                    (one, "Script completed\nOutput:\n\nx"),
                    ("tools.write_stdin({session_id:9})", "Script completed\nOutput:\n\ny"),
                    ("tools.write_stdin({session_id:9})", "Script completed\nOutput:\n\nz"),
                ],
                vec![
                    "s0.0 Process running with session ID 9·Output:·x",
                    "s1.0 Process running with session ID 9·Output:·y",
                    "s2.0 Script completed·Output:··z",
                ],
            ),
        ] {
            assert_eq!(outputs(&turns), expected, "{turns:?}");
        }
        let plain = Message::text(Role::User, Kind::Said, "x");
        assert!(expanded(&History::new(vec![plain], Default::default())).is_none());
    }
}
