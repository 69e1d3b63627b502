//! Damage, made: of an example session, the same session with one thing wrong.

use epitome::sessions::repair::Damage;
use serde_json::{Value, json};

/// A session with one thing wrong.
pub(crate) struct Made {
    pub(crate) bytes: Vec<u8>,
    /// What is wrong with it because of that.
    pub(crate) also: Vec<Damage>,
    /// Lines of text that are gone from the file.
    pub(crate) lost: usize,
    /// What a damaged text says that nobody misses.
    pub(crate) spoilt: Vec<&'static str>,
}

/// The example session of an agent, OpenCode's without blanks.
pub(crate) fn example(agent: &str) -> Vec<u8> {
    let bytes = crate::apply::example(match agent {
        "opencode" => "opencode.json",
        "codex" => "codex.jsonl",
        "gemini-cli" => "gemini-cli.jsonl",
        _ => "claude-code.jsonl",
    });
    match agent {
        "opencode" => serde_json::from_slice::<Value>(&bytes).unwrap().to_string().into_bytes(),
        _ => bytes,
    }
}

/// A name that a session's file of that agent may have.
pub(crate) fn file_name(agent: &str) -> &'static str {
    match agent {
        "codex" => "rollout-2026-05-28T20-26-40-3d0c7a52-6f1e-4c58-9a41-0b8e5f2c7d10.jsonl",
        "gemini-cli" => "session-2026-05-28T20-26-3d0c7a52.jsonl",
        "opencode" => "opencode.json",
        _ => "3d0c7a52-6f1e-4c58-9a41-0b8e5f2c7d10.jsonl",
    }
}

/// The lines of a session, to be spoilt.
struct Lines(Vec<Vec<u8>>);

impl Lines {
    fn of(agent: &str) -> Self {
        Self(
            example(agent).split(|it| *it == b'\n').filter(|it| !it.is_empty()).map(<[u8]>::to_vec).collect(),
        )
    }

    fn json(&self, at: usize) -> Value {
        serde_json::from_slice(&self.0[at]).unwrap()
    }

    fn set(&mut self, at: usize, to: &Value) {
        self.0[at] = to.to_string().into_bytes();
    }

    fn edit(&mut self, at: usize, edit: impl FnOnce(&mut Value)) {
        let mut value = self.json(at);
        edit(&mut value);
        self.set(at, &value);
    }

    fn insert(&mut self, at: usize, new: &Value) {
        self.0.insert(at, new.to_string().into_bytes());
    }

    /// Puts one text in the place of another, in all lines.
    fn replace(&mut self, from: &str, to: &str) {
        for line in &mut self.0 {
            *line = String::from_utf8(std::mem::take(line)).unwrap().replace(from, to).into_bytes();
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for line in &self.0 {
            out.extend_from_slice(line);
            out.push(b'\n');
        }
        out
    }

    fn done(self) -> Option<Made> {
        Some(Made { bytes: self.bytes(), also: vec![], lost: 0, spoilt: vec![] })
    }
}

fn lost(lines: usize, made: Option<Made>) -> Option<Made> {
    made.map(|it| Made { lost: lines, ..it })
}

/// Base64 that begins like a PNG of that size, and is so long.
fn png(wide: u32, high: u32, long: usize) -> String {
    let mut bytes = b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR".to_vec();
    bytes.extend(wide.to_be_bytes());
    bytes.extend(high.to_be_bytes());
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in bytes.chunks_exact(3) {
        let bits = u32::from(three[0]) << 16 | u32::from(three[1]) << 8 | u32::from(three[2]);
        out.extend([18, 12, 6, 0].map(|it| char::from(ALPHABET[(bits >> it & 63) as usize])));
    }
    out.push_str(&"A".repeat(long.saturating_sub(out.len())));
    out
}

/// Attachments that the agent's API refuses: type and data.
fn attachments(agent: &str, damage: Damage) -> Option<Vec<(&'static str, String)>> {
    if damage == Damage::RequestTooLarge {
        let (count, size) = match agent {
            "codex" => (2, 26 << 20),
            "gemini-cli" => (2, 11 << 20),
            _ => (7, 19 << 18),
        };
        return Some(vec![("image/png", png(640, 480, size)); count]);
    }
    attachment(agent, damage).map(|it| vec![it])
}

/// One that is refused by itself.
fn attachment(agent: &str, damage: Damage) -> Option<(&'static str, String)> {
    let image = if agent == "codex" {
        51 << 20
    } else if agent == "gemini-cli" {
        21 << 20
    } else {
        6 << 20
    };
    Some(match damage {
        Damage::ImageTooLarge => ("image/png", png(640, 480, image)),
        Damage::ImageTooWide if matches!(agent, "claude-code" | "opencode") => {
            ("image/png", png(9_000, 100, 400))
        }
        Damage::ImageType if matches!(agent, "claude-code" | "opencode") => ("image/jpeg", png(64, 48, 400)),
        Damage::ImageType => ("image/x-icon", png(64, 48, 400)),
        Damage::BrokenMedia => ("image/png", "iVBOR… (cut)".to_owned()),
        Damage::PdfTooLarge if agent == "codex" => return None,
        Damage::PdfTooLarge => {
            ("application/pdf", "JVBERi0x".repeat(if agent == "gemini-cli" { 3 << 20 } else { 5 << 20 }))
        }
        _ => return None,
    })
}

/// The agent's example with this damage; nothing where it cannot have it.
pub(crate) fn made(agent: &str, damage: Damage) -> Option<Made> {
    match agent {
        "opencode" => opencode(damage),
        _ => torn(agent, damage).or_else(|| match agent {
            "codex" => codex(damage),
            "gemini-cli" => gemini_cli(damage),
            _ => claude_code(damage),
        }),
    }
}

/// Damage to lines, whatever stands in them. The agent's first prompt stands in the line `prompt`.
fn torn(agent: &str, damage: Damage) -> Option<Made> {
    let prompt = match agent {
        "codex" => 4,
        "gemini-cli" => 1,
        _ => 0,
    };
    let mut it = Lines::of(agent);
    let begin = it.0[9][..60].to_vec();
    match damage {
        Damage::CutRecord => {
            let mut bytes = it.bytes();
            bytes.extend(&begin);
            return Some(Made { bytes, also: vec![], lost: 0, spoilt: vec![] });
        }
        Damage::BrokenRecord => {
            it.0.insert(9, b"<<<<<<< HEAD".to_vec());
        }
        Damage::JoinedRecords => {
            let second = it.0.remove(9);
            it.0[8].extend(second);
        }
        Damage::SplitRecord => {
            let text = String::from_utf8(it.0[prompt].clone()).unwrap();
            it.0[prompt] = text.replacen("\\n\\nRules", "\\n\nRules", 1).into_bytes();
        }
        Damage::Fragment => {
            let whole = std::mem::take(&mut it.0[9]);
            it.0[9] = [begin, whole].concat();
        }
        Damage::NulBytes => it.0.insert(9, vec![0; 512]),
        Damage::BadUtf8 | Damage::LoneSurrogate => {
            let spoilt: &[u8] = if damage == Damage::BadUtf8 { b"\xFF" } else { b"\\ud83d" };
            let at = it.0[prompt].windows(8).position(|it| it == b"migratio").unwrap();
            it.0[prompt].splice(at..at, spoilt.iter().copied());
            return Some(Made { spoilt: vec!["Rules: never change"], lost: 1, ..it.done()? });
        }
        Damage::ByteOrderMark => {
            it.0[0] = [b"\xEF\xBB\xBF".as_slice(), &it.0[0]].concat();
        }
        _ => return None,
    }
    it.done()
}

fn uuid(it: &Lines, at: usize) -> Value {
    it.json(at)["uuid"].clone()
}

fn claude_code(damage: Damage) -> Option<Made> {
    let mut it = Lines::of("claude-code");
    let prompt = 18;
    let add = |it: &mut Lines, at: usize, block: Value| {
        it.edit(at, |row| {
            let content = row["message"]["content"].take();
            let mut blocks =
                content.as_array().cloned().unwrap_or_else(|| vec![json!({"type": "text", "text": content})]);
            blocks.insert(0, block);
            row["message"]["content"] = Value::Array(blocks);
        });
    };
    match damage {
        Damage::UnknownParent => {
            it.edit(20, |row| row["parentUuid"] = json!("ffffffff-0000-4000-8000-000000000000"))
        }
        Damage::ParentCycle => {
            let later = uuid(&it, 22);
            it.edit(19, |row| row["parentUuid"] = later);
        }
        Damage::DuplicateId => {
            let (old, new) = (uuid(&it, 19), uuid(&it, 13));
            it.replace(old.as_str()?, new.as_str()?);
        }
        Damage::UnansweredCall => {
            // The result of toolu_0005.
            let (gone, before) = (uuid(&it, 12), uuid(&it, 11));
            it.0.remove(12);
            it.replace(&format!("\"parentUuid\":{gone}"), &format!("\"parentUuid\":{before}"));
            return lost(1, it.done());
        }
        Damage::OrphanResult => {
            // The call toolu_0001.
            let (gone, before) = (uuid(&it, 2), uuid(&it, 1));
            it.0.remove(2);
            it.replace(&format!("\"parentUuid\":{gone}"), &format!("\"parentUuid\":{before}"));
            return lost(1, it.done());
        }
        Damage::DuplicateResult => {
            let mut again = it.json(5);
            let (first, next) = (uuid(&it, 5), json!("eeeeeeee-0000-4000-8000-000000000000"));
            (again["uuid"], again["parentUuid"]) = (next.clone(), first);
            it.edit(6, |row| row["parentUuid"] = next);
            it.insert(6, &again);
        }
        Damage::DuplicateCall => it.replace("toolu_0004", "toolu_0001"),
        Damage::BadCallId => it.replace("toolu_0001", "functions.Bash:0"),
        Damage::BadToolName => it.edit(2, |row| row["message"]["content"][0]["name"] = json!("Bash (now)")),
        Damage::BadArguments => {
            it.edit(2, |row| row["message"]["content"][0]["input"] = json!("git status --short && git log"));
            return lost(1, it.done());
        }
        Damage::EmptyText => add(&mut it, prompt, json!({"type": "text", "text": ""})),
        Damage::UnsignedThinking => {
            add(&mut it, 1, json!({"type": "thinking", "thinking": "Hm.", "signature": ""}))
        }
        Damage::SpoiltSignature => {
            add(&mut it, 1, json!({"type": "thinking", "thinking": "Hm.", "signature": "EqQB… [trimmed]"}));
            return Some(Made { spoilt: vec!["Hm."], ..it.done()? });
        }
        _ => {
            for (mime, data) in attachments("claude-code", damage)? {
                let kind = if mime == "application/pdf" { "document" } else { "image" };
                let source = json!({"type": "base64", "media_type": mime, "data": data});
                add(&mut it, prompt, json!({"type": kind, "source": source}));
            }
        }
    }
    it.done()
}

/// The line of Codex's example whose payload says so.
fn codex_line(it: &Lines, says: impl Fn(&Value) -> bool) -> usize {
    (0..it.0.len()).find(|at| says(&it.json(*at)["payload"])).unwrap()
}

fn codex(damage: Damage) -> Option<Made> {
    let mut it = Lines::of("codex");
    let call = codex_line(&it, |it| it["type"] == "function_call" && it["call_id"] == "call_0001");
    let output = codex_line(&it, |it| it["type"] == "function_call_output" && it["call_id"] == "call_0001");
    match damage {
        Damage::MissingHeader => {
            it.0.remove(0);
        }
        Damage::MissingOrdinal => {
            let last = it.0.len() - 1;
            for at in 0..last {
                it.edit(at, |row| row["ordinal"] = json!(at));
            }
            it.edit(0, |row| row["payload"]["history_mode"] = json!("paginated"));
        }
        Damage::OrphanResult => {
            it.0.remove(call);
            return lost(1, it.done());
        }
        Damage::DuplicateResult => {
            let again = it.json(output);
            it.insert(output + 2, &again);
        }
        Damage::DuplicateCall => it.replace("call_0004", "call_0001"),
        Damage::BadCallId => it.replace("call_0001", &"x".repeat(70)),
        Damage::BadToolName => it.edit(call, |row| row["payload"]["name"] = json!("exec command")),
        Damage::BadArguments => it.edit(call, |row| {
            let cut: String = row["payload"]["arguments"].as_str().unwrap().chars().take(20).collect();
            row["payload"]["arguments"] = json!(cut);
        }),
        Damage::SpoiltSignature => {
            let item = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA… [trimmed]"});
            let row =
                json!({"timestamp": "2026-05-28T20:28:02.000Z", "type": "response_item", "payload": item});
            it.insert(5, &row);
            return Some(Made { spoilt: vec!["trimmed"], ..it.done()? });
        }
        Damage::RepeatedHistory => {
            let again: Vec<_> = it.0[1..20].to_vec();
            it.0.splice(30..30, again);
        }
        _ => {
            let prompt =
                codex_line(&it, |it| it["role"] == "user" && it.to_string().contains("thread locals"));
            for (mime, data) in attachments("codex", damage)? {
                let image = json!({"type": "input_image", "image_url": format!("data:{mime};base64,{data}")});
                it.edit(prompt, |row| row["payload"]["content"].as_array_mut().unwrap().insert(0, image));
            }
        }
    }
    if damage == Damage::BadArguments {
        return lost(1, it.done());
    }
    it.done()
}

fn gemini_cli(damage: Damage) -> Option<Made> {
    let mut it = Lines::of("gemini-cli");
    let prompt = (1..it.0.len()).find(|at| it.json(*at)["content"].to_string().contains("thread locals"))?;
    let in_prompt = |it: &mut Lines, part: Value| {
        it.edit(prompt, |row| row["content"].as_array_mut().unwrap().insert(0, part));
    };
    match damage {
        Damage::MissingHeader => {
            it.0.remove(0);
        }
        Damage::UnknownRewind => it.insert(prompt + 1, &json!({"$rewindTo": "nobody"})),
        Damage::BadSet => it.insert(prompt + 1, &json!({"$set": {"messages": "[]"}})),
        Damage::DuplicateId => it.edit(prompt, |row| row["id"] = json!("m001")),
        Damage::UnansweredCall => {
            it.edit(2, |row| row["toolCalls"][0]["result"] = json!([]));
            it.edit(3, |row| _ = row["content"].as_array_mut().unwrap().remove(0));
            return lost(3, it.done());
        }
        Damage::OrphanResult => {
            it.edit(2, |row| _ = row["toolCalls"].as_array_mut().unwrap().remove(0));
            return lost(1, it.done());
        }
        Damage::BadToolName => it.replace("run_shell_command", "run shell command"),
        Damage::BadArguments => {
            it.edit(2, |row| row["toolCalls"][0]["args"] = json!("git status"));
            return lost(1, it.done());
        }
        Damage::EmptyText => in_prompt(&mut it, json!({"text": ""})),
        Damage::SpoiltSignature => {
            in_prompt(&mut it, json!({"text": "Look:", "thoughtSignature": "CiQB… [trimmed]"}))
        }
        _ => {
            for (mime, data) in attachments("gemini-cli", damage)? {
                in_prompt(&mut it, json!({"inlineData": {"mimeType": mime, "data": data}}));
            }
        }
    }
    it.done()
}

fn opencode(damage: Damage) -> Option<Made> {
    let text = String::from_utf8(example("opencode")).unwrap();
    let mut it: Value = serde_json::from_str(&text).unwrap();
    let made = |bytes: Vec<u8>| Some(Made { bytes, also: vec![], lost: 0, spoilt: vec![] });
    let spoilt =
        |bytes: Vec<u8>| Some(Made { bytes, also: vec![], lost: 1, spoilt: vec!["Rules: never change"] });
    let rule = text.find("migrations/").unwrap();
    match damage {
        Damage::CutRecord => {
            let end = text.rfind("{\"info\":").unwrap() + 100;
            return lost(20, made(text.as_bytes()[..end].to_vec()));
        }
        Damage::BadUtf8 => {
            return spoilt([&text.as_bytes()[..rule], b"\xFF", &text.as_bytes()[rule..]].concat());
        }
        Damage::LoneSurrogate => {
            return spoilt([&text.as_bytes()[..rule], b"\\ud83d", &text.as_bytes()[rule..]].concat());
        }
        Damage::ByteOrderMark => return made([b"\xEF\xBB\xBF", text.as_bytes()].concat()),
        Damage::BrokenRecord => {
            // As a row is shown that is no JSON.
            let part = &mut it["messages"][1]["parts"][1];
            *part = json!({"unreadable": "{\"type\":\"te", "id": part["id"], "sessionID": part["sessionID"],
                "messageID": part["messageID"]});
            return lost(1, made(it.to_string().into_bytes()));
        }
        Damage::DuplicateId => {
            it["messages"][4]["parts"][0]["id"] = it["messages"][0]["parts"][0]["id"].clone()
        }
        Damage::RunningTool => {
            let state = &mut it["messages"][1]["parts"][2]["state"];
            *state = json!({"status": "running", "input": state["input"], "time": {"start": 1}});
            return lost(3, made(it.to_string().into_bytes()));
        }
        Damage::DuplicateCall => it["messages"][1]["parts"][3]["callID"] = json!("call_0001"),
        Damage::BadToolName => it["messages"][1]["parts"][2]["tool"] = json!("bash (now)"),
        Damage::BadArguments => {
            it["messages"][1]["parts"][2]["state"]["input"] = json!("git status");
            return lost(1, made(it.to_string().into_bytes()));
        }
        Damage::EmptyText => {
            let mut part = it["messages"][4]["parts"][0].clone();
            (part["id"], part["text"]) = (json!("prt_1czz0000000000000000000000"), json!(""));
            it["messages"][4]["parts"].as_array_mut().unwrap().push(part);
        }
        _ => {
            for (at, (mime, data)) in attachments("opencode", damage)?.into_iter().enumerate() {
                let first = &it["messages"][4]["parts"][0];
                let part = json!({"id": format!("prt_1czz{at:022}"), "sessionID": first["sessionID"],
                    "messageID": first["messageID"], "type": "file", "mime": mime, "filename": "shot.png",
                    "url": format!("data:{mime};base64,{data}")});
                it["messages"][4]["parts"].as_array_mut().unwrap().push(part);
            }
        }
    }
    made(it.to_string().into_bytes())
}
