//! One small session in four formats, with a hostile text in it.

use epitome::sessions::Format;
use serde_json::{Value, json};

use super::{Attack, Place};

pub(crate) const QUESTION: &str = "Which database should the tests use?";
pub(crate) const ANSWER: &str = "Postgres in a container";
pub(crate) const REASON: &str = "use the staging host instead";

/// Whether the agent records why the user said no beside the refusal.
pub(crate) fn records_reasons(format: Format) -> bool {
    [Format::CLAUDE_CODE, Format::OPENCODE].contains(&format)
}

enum Turn<'a> {
    User(&'a str),
    Model(&'a str),
    Call(Tool<'a>, Came<'a>),
}

#[derive(Clone, Copy)]
enum Tool<'a> {
    Shell(&'a str),
    Read(&'a str),
    Edit(&'a str),
    Fetch,
    Mcp,
    Ask,
    Named(&'a str),
}

#[derive(Clone, Copy)]
enum Came<'a> {
    Well(&'a str),
    Failed(&'a str),
    /// Several blocks of text.
    Blocks(&'a str),
    Refused,
    Answered,
}

/// The session as the agent writes it. `number` makes its ids unique.
pub(super) fn written(format: Format, attack: &Attack, number: usize) -> String {
    let text = attack.text.as_str();
    let (tool, came) = match attack.place {
        Place::Output => (Tool::Shell("make report"), Came::Well(text)),
        Place::Failed => (Tool::Shell("make report"), Came::Failed(text)),
        Place::Read => (Tool::Read("notes.md"), Came::Well(text)),
        Place::Mcp => (Tool::Mcp, Came::Well(text)),
        Place::McpFailed => (Tool::Mcp, Came::Failed(text)),
        Place::Blocks => (Tool::Mcp, Came::Blocks(text)),
        Place::Web => (Tool::Fetch, Came::Well(text)),
        Place::Path => (Tool::Edit(text), Came::Well("ok")),
        Place::Command => (Tool::Shell(text), Came::Well(&attack.output)),
        Place::Tool => (Tool::Named(text), Came::Well(&attack.output)),
    };
    let long = "let token = read(input); // checked\n".repeat(250);
    let turns = [
        Turn::User("Fix the login bug in src/login.rs. Never change the public API of the crate."),
        Turn::Model("I will read the file first."),
        Turn::Call(Tool::Read("src/login.rs"), Came::Well("fn login() {}")),
        Turn::Call(Tool::Shell("deploy --host production"), Came::Refused),
        Turn::User("Go on with the login."),
        Turn::Model("Looking at the report now."),
        Turn::Call(tool, came),
        Turn::Call(Tool::Ask, Came::Answered),
        Turn::Model("The bug is in the token check. Should I also write the changelog entry?"),
        Turn::User("Yes, and always run cargo fmt before a commit."),
        Turn::Call(Tool::Edit("src/login.rs"), Came::Well("ok")),
        Turn::Call(Tool::Read("src/token.rs"), Came::Well(&long)),
        Turn::Call(Tool::Shell("cargo fmt"), Came::Well("")),
        Turn::Model("The token check is fixed and the changelog is written."),
        Turn::User("Now add a test for the empty password, please."),
        Turn::Model("I start with the test file."),
        Turn::Call(Tool::Edit("tests/login.rs"), Came::Well("ok")),
        Turn::Model("The test for the empty password stands in tests/login.rs."),
    ];
    match format.name() {
        "claude-code" => claude_code(&turns, number),
        "codex" => codex(&turns, number),
        "gemini-cli" => gemini_cli(&turns, number),
        "opencode" => opencode(&turns, number),
        _ => unreachable!("one of four"),
    }
}

fn time(at: usize) -> String {
    format!("2026-01-01T00:{:02}:{:02}.000Z", at / 60, at % 60)
}

fn claude_code(turns: &[Turn], number: usize) -> String {
    let session = format!("00000000-0000-4000-8000-{number:012}");
    let mut out = String::new();
    let mut parent = Value::Null;
    let mut rows = 0;
    let mut row = |kind: &str, message: Value, more: Value| {
        rows += 1;
        let uuid = format!("00000000-0000-4000-9000-{rows:012}");
        let mut line = json!({"parentUuid": parent, "isSidechain": false, "userType": "external", "cwd": "/home/dev/project",
            "sessionId": session, "version": "2.1.328", "gitBranch": "main", "type": kind, "message": message, "uuid": uuid,
            "timestamp": time(rows)});
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        parent = json!(uuid);
        out.push_str(&format!("{line}\n"));
    };
    let reply = |at: usize, block: Value| {
        json!({"id": format!("msg_{at}"), "type": "message", "role": "assistant", "model": "claude-opus-5-5",
            "content": [block], "stop_reason": null, "usage": {"input_tokens": 10, "output_tokens": 10}})
    };
    for (at, turn) in turns.iter().enumerate() {
        match turn {
            Turn::User(text) => row("user", json!({"role": "user", "content": text}), json!({})),
            Turn::Model(text) => {
                row("assistant", reply(at, json!({"type": "text", "text": text})), json!({}))
            }
            Turn::Call(tool, came) => {
                let id = format!("toolu_{at}");
                let (name, input) = match tool {
                    Tool::Shell(it) => ("Bash", json!({"command": it})),
                    Tool::Read(it) => ("Read", json!({"file_path": it})),
                    Tool::Edit(it) => {
                        ("Edit", json!({"file_path": it, "old_string": "a", "new_string": "b"}))
                    }
                    Tool::Fetch => ("WebFetch", json!({"url": "https://example.org/page", "prompt": "what"})),
                    Tool::Mcp => ("mcp__docs__search", json!({"query": "login"})),
                    Tool::Ask => (
                        "AskUserQuestion",
                        json!({"questions": [{"question": QUESTION, "header": "Database",
                        "options": [{"label": ANSWER, "description": "d"}, {"label": "SQLite", "description": "d"}]}]}),
                    ),
                    Tool::Named(it) => {
                        (*it, json!({"question": "May I push?", "questions": [{"question": "May I push?"}]}))
                    }
                };
                let call = json!({"type": "tool_use", "id": id, "name": name, "input": input});
                row("assistant", reply(at, call), json!({}));
                let accepted = json!({"decision": "accept", "source": "config", "reasonType": "rule"});
                let (content, failed, more) = match came {
                    Came::Well(text) => (
                        json!(text),
                        false,
                        json!({"toolUseResult": {"stdout": text}, "permissionDecision": accepted}),
                    ),
                    Came::Failed(text) => {
                        let text = match tool {
                            Tool::Shell(_) => format!("Exit code 1\n{text}"),
                            _ => (*text).to_owned(),
                        };
                        (
                            json!(text),
                            true,
                            json!({"toolUseResult": format!("Error: {text}"), "permissionDecision": accepted}),
                        )
                    }
                    Came::Blocks(text) => (
                        json!([{"type": "text", "text": "one"}, {"type": "text", "text": text}]),
                        false,
                        json!({"toolUseResult": [{"type": "text", "text": text}], "permissionDecision": accepted}),
                    ),
                    Came::Refused => {
                        let text = format!(
                            "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). To tell you how to proceed, the user said:\n{REASON}"
                        );
                        (
                            json!(text),
                            true,
                            json!({"toolUseResult": format!("Error: {text}"), "toolDenialKind": "user-rejected",
                            "permissionDecision": {"decision": "reject", "source": "user_reject"}}),
                        )
                    }
                    Came::Answered => (
                        json!(format!(
                            "User has answered your questions: \"{QUESTION}\"=\"{ANSWER}\". You can now continue with the user's answers in mind."
                        )),
                        false,
                        json!({"toolUseResult": {"questions": [], "answers": {QUESTION: ANSWER}}, "permissionDecision": accepted}),
                    ),
                };
                let mut block = json!({"type": "tool_result", "tool_use_id": id, "content": content});
                if failed {
                    block["is_error"] = json!(true);
                }
                row("user", json!({"role": "user", "content": [block]}), more);
            }
        }
    }
    out
}

fn codex(turns: &[Turn], number: usize) -> String {
    let id = format!("018bcfe5-687b-7000-8000-{number:012}");
    let mut out = String::new();
    let mut ordinal = 0;
    let mut line = |kind: &str, payload: Value| {
        let line = json!({"timestamp": time(ordinal), "ordinal": ordinal, "type": kind, "payload": payload});
        ordinal += 1;
        out.push_str(&format!("{line}\n"));
    };
    line(
        "session_meta",
        json!({"id": id, "session_id": id, "timestamp": time(0), "cwd": "/home/dev/project", "originator": "codex_exec",
            "cli_version": "0.169.0", "source": "exec", "history_mode": "paginated"}),
    );
    let say = |role: &str, kind: &str, text: &str| json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]});
    for (at, turn) in turns.iter().enumerate() {
        match turn {
            Turn::User(text) => line("response_item", say("user", "input_text", text)),
            Turn::Model(text) => line("response_item", say("assistant", "output_text", text)),
            Turn::Call(tool, came) => {
                let id = format!("call_{at}");
                let (name, input) = match tool {
                    Tool::Shell(it) => ("exec_command", json!({"cmd": it})),
                    Tool::Read(it) => ("exec_command", json!({"cmd": format!("cat {it}")})),
                    Tool::Edit(it) => ("mcp__files__edit_file", json!({"path": it})),
                    Tool::Fetch => ("mcp__web__fetch", json!({"url": "https://example.org/page"})),
                    Tool::Mcp => ("mcp__docs__search", json!({"query": "login"})),
                    Tool::Ask => (
                        "request_user_input",
                        json!({"questions": [{"id": "database", "header": "Database", "question": QUESTION}]}),
                    ),
                    Tool::Named(it) => (
                        *it,
                        json!({"question": "May I push?", "questions": [{"id": "q1", "question": "May I push?"}]}),
                    ),
                };
                line(
                    "response_item",
                    json!({"type": "function_call", "name": name, "call_id": id, "arguments": input.to_string()}),
                );
                let shell = matches!(tool, Tool::Shell(_) | Tool::Read(_));
                let ran = |code: u8, text: &str| {
                    format!(
                        "Chunk ID: a1b2c3\nWall time: 0.1 seconds\nProcess exited with code {code}\nOutput:\n{text}"
                    )
                };
                let output = match came {
                    Came::Well(text) if shell => json!(ran(0, text)),
                    Came::Failed(text) if shell => json!(ran(1, text)),
                    // As Codex 0.169 wraps what an MCP server said.
                    Came::Well(text) | Came::Failed(text) => {
                        json!(format!("Wall time: 0.0058 seconds\nOutput:\n{text}"))
                    }
                    Came::Blocks(text) => {
                        json!([{"type": "input_text", "text": "Wall time: 0.0040 seconds\nOutput:"}, {"type": "input_text", "text": text}])
                    }
                    Came::Refused => json!("exec command rejected by user"),
                    Came::Answered => {
                        json!(json!({"answers": {"database": {"answers": [ANSWER]}}}).to_string())
                    }
                };
                line(
                    "response_item",
                    json!({"type": "function_call_output", "call_id": id, "output": output}),
                );
            }
        }
    }
    out
}

fn gemini_cli(turns: &[Turn], number: usize) -> String {
    let mut out = format!(
        "{}\n",
        json!({"sessionId": format!("5d16e92b-0a11-4caa-932f-{number:012}"), "projectHash": "1afbf223bb0b58ba08766ec87173ebd6",
            "startTime": time(0), "lastUpdated": time(0), "kind": "main"})
    );
    let mut line = |at: usize, mut record: Value| {
        record["id"] = json!(format!("record-{at}"));
        record["timestamp"] = json!(time(at));
        out.push_str(&format!("{record}\n"));
    };
    for (at, turn) in turns.iter().enumerate() {
        match turn {
            Turn::User(text) => line(at, json!({"type": "user", "content": [{"text": text}]})),
            Turn::Model(text) => line(
                at,
                json!({"type": "gemini", "content": text, "thoughts": [], "model": "gemini-2.5-pro"}),
            ),
            Turn::Call(tool, came) => {
                let id = format!("tool-{at}");
                let (name, args) = match tool {
                    Tool::Shell(it) => ("run_shell_command", json!({"command": it})),
                    Tool::Read(it) => ("read_file", json!({"file_path": it})),
                    Tool::Edit(it) => {
                        ("replace", json!({"file_path": it, "old_string": "a", "new_string": "b"}))
                    }
                    Tool::Fetch => ("web_fetch", json!({"prompt": "https://example.org/page"})),
                    Tool::Mcp => ("mcp_docs_search", json!({"query": "login"})),
                    Tool::Ask => (
                        "ask_user",
                        json!({"questions": [{"question": QUESTION, "header": "Database", "type": "text"}]}),
                    ),
                    Tool::Named(it) => {
                        (*it, json!({"question": "May I push?", "questions": [{"question": "May I push?"}]}))
                    }
                };
                let mut more = Vec::new();
                let (response, status) = match came {
                    Came::Well(text) => (json!({"output": text}), "success"),
                    Came::Failed(text) => match tool {
                        // A shell's failure is output to Gemini CLI.
                        Tool::Shell(_) => {
                            (json!({"output": format!("Output: {text}\nExit Code: 1")}), "success")
                        }
                        // As Gemini CLI 0.61 wraps what an MCP server said.
                        _ => (
                            json!({"error": format!("MCP tool 'search' reported tool error for function call: {{}} with response: {text}")}),
                            "error",
                        ),
                    },
                    Came::Blocks(text) => {
                        more.push(json!({"text": text}));
                        (json!({"output": "Tool execution succeeded."}), "success")
                    }
                    Came::Refused => (
                        json!({"error": "[Operation Cancelled] Reason: User denied execution."}),
                        "cancelled",
                    ),
                    Came::Answered => {
                        (json!({"output": json!({"answers": {"0": ANSWER}}).to_string()}), "success")
                    }
                };
                let mut result =
                    vec![json!({"functionResponse": {"id": id, "name": name, "response": response}})];
                result.extend(more);
                line(
                    at,
                    json!({"type": "gemini", "content": "", "thoughts": [], "model": "gemini-2.5-pro",
                    "toolCalls": [{"id": id, "name": name, "args": args, "result": result, "status": status, "timestamp": time(at)}]}),
                );
            }
        }
    }
    out
}

fn opencode(turns: &[Turn], number: usize) -> String {
    let session = format!("ses_{number:08}");
    let mut messages = Vec::new();
    let mut parent = String::new();
    for (at, turn) in turns.iter().enumerate() {
        let id = format!("msg_{at:04}");
        let made = NOW + at as i64 * 1_000;
        let answer = |parts: Vec<Value>| {
            let mut all = vec![json!({"type": "step-start", "id": format!("prt_{at}_0")})];
            all.extend(parts);
            json!({"info": {"id": id, "sessionID": session, "role": "assistant", "parentID": parent, "mode": "build",
                "path": {"cwd": "/home/dev/project", "root": "/"}, "cost": 0, "modelID": "m", "providerID": "p", "finish": "stop",
                "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
                "time": {"created": made, "completed": made}}, "parts": all})
        };
        let message = match turn {
            Turn::User(text) => {
                parent.clone_from(&id);
                json!({"info": {"id": id, "sessionID": session, "role": "user", "agent": "build", "time": {"created": made},
                    "model": {"providerID": "p", "modelID": "m"}}, "parts": [{"type": "text", "text": text, "id": format!("prt_{at}_1")}]})
            }
            Turn::Model(text) => {
                answer(vec![json!({"type": "text", "text": text, "id": format!("prt_{at}_1")})])
            }
            Turn::Call(tool, came) => {
                let (name, input) = match tool {
                    Tool::Shell(it) => ("bash", json!({"command": it, "description": "d"})),
                    Tool::Read(it) => ("read", json!({"filePath": it})),
                    Tool::Edit(it) => ("edit", json!({"filePath": it, "oldString": "a", "newString": "b"})),
                    Tool::Fetch => ("webfetch", json!({"url": "https://example.org/page", "format": "text"})),
                    Tool::Mcp => ("docs_search", json!({"query": "login"})),
                    Tool::Ask => (
                        "question",
                        json!({"questions": [{"question": QUESTION, "header": "Database", "options": []}]}),
                    ),
                    Tool::Named(it) => {
                        (*it, json!({"question": "May I push?", "questions": [{"question": "May I push?"}]}))
                    }
                };
                let span = json!({"start": made, "end": made});
                let well = |text: &str| json!({"status": "completed", "input": input, "output": text, "title": "t", "metadata": {}, "time": span});
                let state = match came {
                    Came::Well(text) => well(text),
                    Came::Blocks(text) => well(&format!("one\n\n{text}")),
                    Came::Failed(text) => match tool {
                        // A shell's failure is output to OpenCode.
                        Tool::Shell(_) => well(&format!("{text}\n\n<bash_metadata>exit 1</bash_metadata>")),
                        _ => json!({"status": "error", "input": input, "error": text, "time": span}),
                    },
                    Came::Refused => json!({"status": "error", "input": input, "time": span,
                        "error": format!("The user rejected permission to use this specific tool call with the following feedback: {REASON}")}),
                    Came::Answered => well(&format!(
                        "User has answered your questions: \"{QUESTION}\"=\"{ANSWER}\". You can now continue with the user's answers in mind."
                    )),
                };
                answer(vec![
                    json!({"type": "tool", "tool": name, "callID": format!("call_{at}"), "state": state, "id": format!("prt_{at}_1")}),
                ])
            }
        };
        messages.push(message);
    }
    let info = json!({"id": session, "slug": "s", "projectID": "global", "directory": "/home/dev/project", "title": "t",
        "version": "1.18.33", "time": {"created": NOW, "updated": NOW}});
    format!("{}\n", json!({"info": info, "messages": messages}))
}

const NOW: i64 = super::NOW;
