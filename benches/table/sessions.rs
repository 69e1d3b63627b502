//! Sessions made up for measuring: the same seed gives the same bytes. Shaped like real ones: prompts, prose, calls,
//! and mostly tool outputs (source, logs with colours and hex, JSON), with reported usage.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use serde_json::json;

/// Numbers that look like chance and are not.
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % end
    }

    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }
}

const WORDS: [&str; 96] = [
    "the",
    "a",
    "to",
    "of",
    "and",
    "in",
    "is",
    "that",
    "it",
    "for",
    "on",
    "with",
    "as",
    "this",
    "be",
    "are",
    "not",
    "parser",
    "request",
    "handler",
    "returns",
    "error",
    "session",
    "config",
    "value",
    "when",
    "file",
    "module",
    "because",
    "before",
    "after",
    "function",
    "changed",
    "tests",
    "fail",
    "passes",
    "field",
    "index",
    "buffer",
    "writes",
    "reads",
    "lines",
    "empty",
    "missing",
    "first",
    "last",
    "should",
    "will",
    "now",
    "only",
    "each",
    "every",
    "connection",
    "timeout",
    "database",
    "migration",
    "schema",
    "user",
    "token",
    "cache",
    "thread",
    "queue",
    "worker",
    "retry",
    "deadline",
    "header",
    "payload",
    "response",
    "client",
    "server",
    "route",
    "component",
    "render",
    "state",
    "update",
    "branch",
    "commit",
    "release",
    "version",
    "build",
    "compile",
    "warning",
    "lifetime",
    "borrow",
    "string",
    "number",
    "array",
    "object",
    "option",
    "result",
    "unwrap",
    "match",
    "loop",
    "iterator",
    "closure",
    "trait",
];
const NAMES: [&str; 24] = [
    "parse_line",
    "readHeader",
    "get_user_by_id",
    "SessionStore",
    "maxRetries",
    "is_empty",
    "toJSON",
    "HttpClient",
    "render_row",
    "index",
    "total_bytes",
    "on_close",
    "fetchAll",
    "Config",
    "DEFAULT_TIMEOUT",
    "write_at",
    "i",
    "self",
    "buffer",
    "next_token",
    "useEffect",
    "handleSubmit",
    "err",
    "ctx",
];
const FILES: [&str; 12] = [
    "src/main.rs",
    "src/parser/lines.rs",
    "app/models/user.py",
    "web/src/components/Table.tsx",
    "cmd/serve/main.go",
    "tests/api_test.py",
    "package.json",
    "docs/setup.md",
    "Makefile",
    "src/store/schema.rs",
    "lib/http/client.ts",
    "scripts/release.sh",
];

/// Sentences of about so many bytes.
pub fn prose(chance: &mut Chance, bytes: usize) -> String {
    let mut out = String::with_capacity(bytes + 80);
    while out.len() < bytes {
        let start = out.len();
        for number in 0..6 + chance.below(12) {
            if number > 0 {
                out.push(' ');
            }
            match chance.below(14) {
                0 => {
                    let _ = write!(out, "`{}`", chance.of(&NAMES));
                }
                _ => out.push_str(chance.of(&WORDS)),
            }
        }
        out[start..start + 1].make_ascii_uppercase();
        out.push_str(if chance.below(5) == 0 { ".\n\n" } else { ". " });
    }
    out
}

fn code(chance: &mut Chance, bytes: usize) -> String {
    let mut out = String::with_capacity(bytes + 120);
    let mut number = 1;
    while out.len() < bytes {
        let indent = "    ".repeat(chance.below(4));
        let (a, b, c) = (chance.of(&NAMES), chance.of(&NAMES), chance.of(&WORDS));
        let _ = match chance.below(8) {
            0 => writeln!(out, "{number:>6}→{indent}let {a} = {b}.{c}({});", chance.below(1000)),
            1 => writeln!(out, "{number:>6}→{indent}if {a} != \"{c}\" {{"),
            2 => writeln!(out, "{number:>6}→{indent}}}"),
            3 => writeln!(out, "{number:>6}→{indent}// {} {} {}", c, chance.of(&WORDS), chance.of(&WORDS)),
            4 => writeln!(out, "{number:>6}→{indent}return {a}({b}, {c})?;"),
            5 => writeln!(out, "{number:>6}→"),
            6 => writeln!(out, "{number:>6}→{indent}fn {a}_{c}(&self, {b}: &str) -> Result<{a}> {{"),
            _ => writeln!(
                out,
                "{number:>6}→{indent}{a}.push(format!(\"{c}: {{}}\", {b}[{}]));",
                chance.below(64)
            ),
        };
        number += 1;
    }
    out
}

fn log(chance: &mut Chance, bytes: usize) -> String {
    let mut out = String::with_capacity(bytes + 160);
    while out.len() < bytes {
        let (level, colour) = [("INFO", 32), ("WARN", 33), ("ERROR", 31)][chance.below(3)];
        let _ = writeln!(
            out,
            "2026-11-{:02}T{:02}:{:02}:{:02}.{:03}Z \u{1b}[{colour}m{level}\u{1b}[0m {} request_id={:08x} status={} {} {}={}ms",
            1 + chance.below(28),
            chance.below(24),
            chance.below(60),
            chance.below(60),
            chance.below(1000),
            chance.of(&FILES),
            chance.below(usize::MAX) as u32,
            200 + chance.below(304),
            chance.of(&WORDS),
            chance.of(&NAMES),
            chance.below(900),
        );
    }
    out
}

fn object(chance: &mut Chance, bytes: usize) -> String {
    let mut out = String::from("[\n");
    while out.len() < bytes {
        let _ = writeln!(
            out,
            "  {{\"id\": {}, \"name\": \"{}\", \"path\": \"{}\", \"ok\": true, \"note\": \"{} {}\"}},",
            chance.below(100_000),
            chance.of(&NAMES),
            chance.of(&FILES),
            chance.of(&WORDS),
            chance.of(&WORDS),
        );
    }
    out.push_str("  {}\n]");
    out
}

/// What a tool says, of about so many bytes.
pub fn output(chance: &mut Chance, bytes: usize) -> String {
    match chance.below(8) {
        0..=2 => code(chance, bytes),
        3..=5 => log(chance, bytes),
        6 => object(chance, bytes),
        _ => prose(chance, bytes),
    }
}

/// Texts as a transcript holds them, of so many bytes in all.
pub fn texts(seed: u64, bytes: usize) -> Vec<String> {
    let mut chance = Chance::new(seed);
    let (mut out, mut sum) = (Vec::new(), 0);
    while sum < bytes {
        let text = match chance.below(4) {
            0 => prose(&mut chance, 600),
            _ => {
                let bytes = 1_000 + chance.below(12_000);
                output(&mut chance, bytes)
            }
        };
        sum += text.len();
        out.push(text);
    }
    out
}

/// Which agent's session.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Agent {
    Claude,
    Codex,
    Gemini,
}

/// A session under construction.
struct Writer {
    agent: Agent,
    chance: Chance,
    out: Vec<u8>,
    number: usize,
    parent: Option<String>,
    /// Bytes of text that are live, of which the usage is told.
    live: usize,
    id: &'static str,
}

impl Writer {
    fn line(&mut self, line: &serde_json::Value) {
        serde_json::to_writer(&mut self.out, line).unwrap();
        self.out.push(b'\n');
    }

    fn time(&mut self) -> String {
        self.number += 1;
        let (s, ms) = (self.number / 10, self.number % 10 * 100);
        format!(
            "2026-11-{:02}T{:02}:{:02}:{:02}.{ms:03}Z",
            1 + s / 86_400 % 28,
            s / 3_600 % 24,
            s / 60 % 60,
            s % 60
        )
    }

    fn uuid(&mut self) -> String {
        let (a, b) = (self.chance.below(usize::MAX), self.chance.below(usize::MAX));
        format!(
            "{:08x}-{:04x}-4{:03x}-8{:03x}-{:08x}{:04x}",
            a as u32,
            a >> 8 & 0xffff,
            b & 0xfff,
            b >> 12 & 0xfff,
            b as u32,
            self.number & 0xffff
        )
    }

    fn claude_row(&mut self, mut row: serde_json::Value) {
        let (uuid, at) = (self.uuid(), self.time());
        let parent = self.parent.replace(uuid.clone());
        let base = json!({"parentUuid": parent, "isSidechain": false, "userType": "external", "cwd": "/home/dev/shop",
            "sessionId": self.id, "version": "2.1.328", "gitBranch": "main", "uuid": uuid, "timestamp": at});
        let mut out = base.as_object().unwrap().clone();
        out.append(row.as_object_mut().unwrap());
        self.line(&out.into());
    }

    fn codex_item(&mut self, payload: serde_json::Value) {
        let (ordinal, at) = (self.number, self.time());
        self.line(&json!({"timestamp": at, "ordinal": ordinal, "type": "response_item", "payload": payload}));
    }

    fn codex_event(&mut self, payload: serde_json::Value) {
        let (ordinal, at) = (self.number, self.time());
        self.line(&json!({"timestamp": at, "ordinal": ordinal, "type": "event_msg", "payload": payload}));
    }

    fn begin(&mut self) {
        let at = self.time();
        match self.agent {
            Agent::Claude => {}
            Agent::Codex => {
                self.line(&json!({"timestamp": at, "ordinal": 0, "type": "session_meta", "payload": {"id": self.id,
                    "timestamp": at, "cwd": "/home/dev/shop", "originator": "codex_exec", "cli_version": "0.169.0",
                    "base_instructions": {"text": "Work in small steps."}, "model_provider": "openai"}}));
            }
            Agent::Gemini => self
                .line(&json!({"sessionId": self.id, "projectHash": "ab".repeat(32), "startTime": at,
                "lastUpdated": at, "kind": "main", "directories": ["/home/dev/shop"]})),
        }
    }

    /// What replaces everything before it.
    fn compact(&mut self) {
        let summary = prose(&mut self.chance, 4_000);
        self.live = summary.len();
        match self.agent {
            Agent::Claude => {
                self.parent = None;
                self.claude_row(json!({"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted",
                    "isMeta": false, "level": "info", "compactMetadata": {"trigger": "auto", "preTokens": 150_000}}));
                self.claude_row(json!({"type": "user", "isCompactSummary": true,
                    "message": {"role": "user", "content": summary}}));
            }
            Agent::Codex => {
                let (ordinal, at) = (self.number, self.time());
                let text = format!(
                    "Another language model started to solve this problem and left a summary.\n{summary}"
                );
                self.line(&json!({"timestamp": at, "ordinal": ordinal, "type": "compacted", "payload": {"message": text,
                    "replacement_history": [{"type": "message", "role": "user",
                        "content": [{"type": "input_text", "text": text}]}]}}));
            }
            Agent::Gemini => {
                let (a, b, at) = (self.uuid(), self.uuid(), self.time());
                let text = format!("<state_snapshot>\n{summary}\n</state_snapshot>");
                self.line(&json!({"$set": {"messages": [
                    {"id": a, "timestamp": at, "type": "user", "content": [{"text": text}]},
                    {"id": b, "timestamp": at, "type": "gemini", "content": "Got it. Thanks for the additional context!"}]}}));
            }
        }
    }

    /// A prompt, a few calls with their outputs, an answer.
    fn turn(&mut self, bytes: usize) {
        let prompt = prose(&mut self.chance, 200);
        self.live += prompt.len();
        match self.agent {
            Agent::Claude => {
                self.claude_row(json!({"type": "user", "message": {"role": "user", "content": prompt}}))
            }
            Agent::Codex => {
                let turn = self.uuid();
                self.codex_event(
                    json!({"type": "task_started", "turn_id": turn, "model_context_window": 272_000}),
                );
                let (ordinal, at) = (self.number, self.time());
                self.line(&json!({"timestamp": at, "ordinal": ordinal, "type": "turn_context", "payload": {"turn_id": turn,
                    "cwd": "/home/dev/shop", "model": "gpt-6.1-sol", "approval_policy": "never"}}));
                self.codex_item(json!({"type": "message", "role": "user",
                    "content": [{"type": "input_text", "text": prompt}]}));
                self.codex_event(json!({"type": "user_message", "message": prompt}));
            }
            Agent::Gemini => {
                let (id, at) = (self.uuid(), self.time());
                self.line(&json!({"id": id, "timestamp": at, "type": "user", "content": [{"text": prompt}]}));
            }
        }
        for _ in 0..4 {
            self.step(bytes / 4);
        }
        let answer = prose(&mut self.chance, 600);
        self.live += answer.len();
        match self.agent {
            Agent::Claude => {
                let usage = self.usage();
                let id = format!("msg_{}", self.number);
                self.claude_row(json!({"type": "assistant", "message": {"id": id, "type": "message", "role": "assistant",
                    "model": "claude-sonnet-5", "content": [{"type": "text", "text": answer}], "usage": usage}}));
            }
            Agent::Codex => {
                self.codex_item(json!({"type": "message", "role": "assistant",
                    "content": [{"type": "output_text", "text": answer}]}));
                self.codex_event(json!({"type": "agent_message", "message": answer}));
                self.codex_count();
            }
            Agent::Gemini => {
                let (id, at) = (self.uuid(), self.time());
                let tokens = self.live / 4 + 12_000;
                self.line(&json!({"id": id, "timestamp": at, "type": "gemini", "content": answer, "thoughts": [],
                    "tokens": {"input": tokens, "output": 150, "cached": 0, "thoughts": 0, "tool": 0, "total": tokens + 150},
                    "model": "gemini-3-pro"}));
            }
        }
    }

    fn usage(&self) -> serde_json::Value {
        json!({"input_tokens": 3, "cache_creation_input_tokens": 900, "cache_read_input_tokens": self.live / 4 + 12_000,
            "output_tokens": 210, "service_tier": "standard"})
    }

    fn codex_count(&mut self) {
        let tokens = self.live / 4 + 12_000;
        self.codex_event(json!({"type": "token_count", "info": {"total_token_usage": {"input_tokens": self.number * 1_000,
            "cached_input_tokens": 0, "output_tokens": self.number, "total_tokens": self.number * 1_001},
            "last_token_usage": {"input_tokens": tokens, "cached_input_tokens": tokens / 2, "output_tokens": 150,
            "total_tokens": tokens + 150}, "model_context_window": 272_000}}));
    }

    fn step(&mut self, bytes: usize) {
        let size = bytes / 2 + self.chance.below(bytes.max(1));
        let (said, file) = (prose(&mut self.chance, 120), self.chance.of(&FILES).to_owned());
        let out = output(&mut self.chance, size);
        self.live += said.len() + out.len() + 60;
        let call = format!("call_{:06}", self.number);
        match self.agent {
            Agent::Claude => {
                let (usage, id) = (self.usage(), format!("msg_{}", self.number));
                let message = |content: serde_json::Value| {
                    json!({"id": id, "type": "message", "role": "assistant",
                    "model": "claude-sonnet-5", "content": [content], "stop_reason": null, "usage": usage})
                };
                self.claude_row(
                    json!({"type": "assistant", "message": message(json!({"type": "text", "text": said}))}),
                );
                self.claude_row(
                    json!({"type": "assistant", "message": message(json!({"type": "tool_use", "id": call,
                    "name": "Read", "input": {"file_path": format!("/home/dev/shop/{file}")}}))}),
                );
                // The client keeps what the tool gave beside what the model is told.
                self.claude_row(json!({"type": "user", "message": {"role": "user", "content": [
                    {"tool_use_id": call, "type": "tool_result", "content": out}]},
                    "toolUseResult": {"type": "text", "file": {"filePath": file, "numLines": 40}}}));
            }
            Agent::Codex => {
                self.codex_item(json!({"type": "function_call", "name": "shell", "call_id": call,
                    "arguments": json!({"command": ["bash", "-lc", format!("sed -n 1,80p {file}")]}).to_string()}));
                self.codex_event(
                    json!({"type": "exec_command_begin", "call_id": call, "command": ["bash", "-lc"]}),
                );
                self.codex_item(json!({"type": "function_call_output", "call_id": call,
                    "output": format!("Exit code: 0\nWall time: 0.1 seconds\nOutput:\n{out}")}));
                self.codex_count();
            }
            Agent::Gemini => {
                let (id, at) = (self.uuid(), self.time());
                let tokens = self.live / 4 + 12_000;
                self.line(&json!({"id": id, "timestamp": at, "type": "gemini", "content": said, "model": "gemini-3-pro",
                    "thoughts": [], "tokens": {"input": tokens, "output": 90, "cached": 0, "thoughts": 0, "tool": 0,
                    "total": tokens + 90}, "toolCalls": [{"id": call, "name": "read_file", "args": {"file_path": file},
                    "status": "success", "timestamp": at, "result": [{"functionResponse": {"id": call, "name": "read_file",
                    "response": {"output": out}}}]}]}));
            }
        }
    }
}

/// A turn of about so many bytes, by which a session grows; another one for each seed.
pub fn turn(agent: Agent, bytes: usize, seed: u64) -> Vec<u8> {
    let id = "5f0c1a52-7f5e-4b1e-9d55-0a1b2c3d4e5f";
    let chance = Chance::new(seed);
    let mut writer = Writer { agent, chance, out: Vec::new(), number: 0, parent: None, live: 0, id };
    writer.turn(bytes);
    writer.out
}

/// Writes a session of `bytes`, the last `live` of which are what a model would be sent, unless it is there already.
pub fn write(path: &Path, agent: Agent, bytes: usize, live: usize) {
    let near = |found: u64| found.abs_diff(bytes as u64) < bytes as u64 / 5;
    if path.metadata().is_ok_and(|it| near(it.len())) {
        return;
    }
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut file = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
    let id = "5f0c1a52-7f5e-4b1e-9d55-0a1b2c3d4e5f";
    let mut writer =
        Writer { agent, chance: Chance::new(7), out: Vec::new(), number: 0, parent: None, live: 0, id };
    writer.begin();
    let (mut written, mut compacted) = (0, live >= bytes);
    while written < bytes {
        if !compacted && written + live >= bytes {
            writer.compact();
            compacted = true;
        }
        let size = 8_000 + writer.chance.below(40_000);
        writer.turn(size);
        file.write_all(&writer.out).unwrap();
        written += writer.out.len();
        writer.out.clear();
        // A client compacts long before the model's window is a hundred times full; what is told stays plausible.
        if !compacted {
            writer.live = writer.live.min(800_000);
        }
    }
    file.flush().unwrap();
}

/// Writes a real session again and again, with ids of its own each time, until there are `bytes`; unless it is there
/// already.
pub fn repeat(path: &Path, session: &Path, bytes: usize) {
    if path.metadata().is_ok_and(|it| it.len() >= bytes as u64) {
        return;
    }
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let text = std::fs::read_to_string(session).unwrap();
    let lines: Vec<serde_json::Value> = text.lines().filter_map(|it| serde_json::from_str(it).ok()).collect();
    let mut file = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
    let (mut written, mut copy, mut last) = (0, 0, serde_json::Value::Null);
    while written < bytes {
        for line in &lines {
            let mut line = line.clone();
            if copy > 0 && line["type"] == "session_meta" {
                continue;
            }
            for key in ["uuid", "parentUuid", "logicalParentUuid", "leafUuid"] {
                if let Some(id) = line.get(key).and_then(|it| it.as_str()) {
                    line[key] = json!(format!("{copy:08x}{}", id.get(8..).unwrap_or_default()));
                }
            }
            let is_first = line.get("parentUuid").is_some_and(serde_json::Value::is_null);
            if is_first && line["subtype"] != "compact_boundary" {
                line["parentUuid"] = last.clone();
            }
            if line.get("uuid").is_some() && line["isSidechain"] != true {
                last = line["uuid"].clone();
            }
            if let Some(id) = line["payload"].get("call_id").and_then(|it| it.as_str()) {
                line["payload"]["call_id"] = json!(format!("{id}_{copy}"));
            }
            let line = format!("{line}\n");
            written += line.len();
            file.write_all(line.as_bytes()).unwrap();
        }
        copy += 1;
    }
    file.flush().unwrap();
}

/// Writes a Codex rollout that holds one picture of a megabyte again and again: in messages that are all live, or in
/// `compactions` that each carry some of them; unless it is there already.
pub fn pictures(path: &Path, bytes: usize, compactions: Option<usize>) {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if path.metadata().is_ok_and(|it| it.len() >= bytes as u64) {
        return;
    }
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut chance = Chance::new(7);
    let data: String = (0..1_400_000).map(|_| LETTERS[chance.below(64)] as char).collect();
    let mut picture = |bytes: usize| {
        let text = prose(&mut chance, bytes);
        json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text},
            {"type": "input_image", "image_url": format!("data:image/png;base64,{data}")}]})
    };
    let id = "5f0c1a52-7f5e-4b1e-9d55-0a1b2c3d4e5f";
    let agent = Agent::Codex;
    let mut writer =
        Writer { agent, chance: Chance::new(8), out: Vec::new(), number: 0, parent: None, live: 800_000, id };
    let mut file = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
    writer.begin();
    let mut written = 0;
    while written < bytes {
        match compactions {
            None => {
                let item = picture(2_000);
                writer.codex_item(item);
            }
            Some(many) => {
                let history: Vec<_> = (0..bytes / many / 1_400_000).map(|_| picture(2_000)).collect();
                let at = writer.time();
                writer.line(&json!({"timestamp": at, "type": "compacted",
                    "payload": {"message": "A summary.", "replacement_history": history}}));
            }
        }
        writer.turn(8_000);
        file.write_all(&writer.out).unwrap();
        written += writer.out.len();
        writer.out.clear();
    }
    file.flush().unwrap();
}
