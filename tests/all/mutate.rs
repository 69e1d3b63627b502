//! Sessions as no agent writes them, made from the examples: records and fields dropped, doubled, swapped, cut and given
//! other types, ids that collide. Seeded: the same number gives the same session.

use epitome::format::{self, Format, Memory, Mode};
use epitome::history::History;
use serde_json::{Map, Value, json};

use crate::format::shape;

/// The examples by format.
const EXAMPLES: [(Format, &str); 4] = [
    (Format::ClaudeCode, include_str!("../../examples/sessions/claude-code.jsonl")),
    (Format::Codex, include_str!("../../examples/sessions/codex.jsonl")),
    (Format::GeminiCli, include_str!("../../examples/sessions/gemini-cli.jsonl")),
    (Format::OpenCode, include_str!("../../examples/sessions/opencode.json")),
];

/// A sequence of numbers (PCG's multiplier and increment).
pub(crate) struct Seed(pub(crate) u64);

impl Seed {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end.max(1)
    }
}

/// The mutated session of that number, and its format.
pub(crate) fn session(number: u64) -> (Format, Vec<u8>) {
    let mut seed = Seed(number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let (format, text) = EXAMPLES[seed.below(EXAMPLES.len())];
    let mut out = if format == Format::OpenCode {
        let mut whole: Value = serde_json::from_str(text).unwrap();
        let changes = 1 + seed.below(4);
        for _ in 0..changes {
            change(&mut whole, &mut seed);
        }
        whole.to_string().into_bytes()
    } else {
        let mut lines: Vec<Value> = text.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
        let changes = 1 + seed.below(4);
        for _ in 0..changes {
            if seed.below(2) == 0 {
                order(&mut lines, &mut seed);
            } else {
                let at = seed.below(lines.len());
                if let Some(line) = lines.get_mut(at) {
                    change(line, &mut seed);
                }
            }
        }
        lines.iter().map(|it| it.to_string() + "\n").collect::<String>().into_bytes()
    };
    // Cut in the middle of a write.
    if seed.below(16) == 0 {
        out.truncate(seed.below(out.len()));
    }
    (format, out)
}

/// Drops, doubles or swaps an element.
fn order(all: &mut Vec<Value>, seed: &mut Seed) {
    if all.is_empty() {
        return;
    }
    let (one, other) = (seed.below(all.len()), seed.below(all.len()));
    match seed.below(3) {
        0 => drop(all.remove(one)),
        1 => {
            let copy = all[one].clone();
            all.insert(other, copy);
        }
        _ => all.swap(one, other),
    }
}

/// Changes one place somewhere within a value.
fn change(value: &mut Value, seed: &mut Seed) {
    let deeper = seed.below(5) > 0;
    match value {
        Value::Array(all) if deeper && !all.is_empty() => {
            let at = seed.below(all.len());
            change(&mut all[at], seed);
        }
        Value::Object(all) if deeper && !all.is_empty() => {
            let at = seed.below(all.len());
            change(all.iter_mut().nth(at).unwrap().1, seed);
        }
        Value::Array(all) => order(all, seed),
        Value::Object(all) => fields(all, seed),
        _ => retype(value, seed),
    }
}

fn retype(value: &mut Value, seed: &mut Seed) {
    *value = match seed.below(9) {
        0 => Value::Null,
        1 => json!(-1),
        2 => json!(u64::MAX),
        3 => json!(""),
        4 => json!([]),
        5 => json!({}),
        6 => json!("call_1"),
        7 => json!("a\u{1b}[31m\u{0}\nb"),
        _ => json!([value.clone(), value.clone()]),
    };
}

/// Drops, renames or adds a field, or gives it the value of another.
fn fields(all: &mut Map<String, Value>, seed: &mut Seed) {
    let keys: Vec<String> = all.keys().cloned().collect();
    let (Some(one), Some(other)) = (keys.get(seed.below(keys.len())), keys.get(seed.below(keys.len())))
    else {
        return;
    };
    match seed.below(4) {
        0 => drop(all.remove(one)),
        1 => {
            let value = all.remove(one).unwrap_or_default();
            all.insert(format!("{one}x"), value);
        }
        2 => drop(all.insert("more".into(), json!({"x": 1}))),
        _ => {
            let value = all[other].clone();
            all.insert(one.clone(), value);
        }
    }
}

fn shapes(history: &History) -> Vec<String> {
    history.messages().iter().map(shape).collect()
}

/// What is wrong with how a session is read and written; nothing where it cannot be read.
pub(crate) fn faults(format: Format, bytes: &[u8]) -> Option<&'static str> {
    let source = Memory::new("mutated", bytes);
    let session = format::read(&source, Some(format)).ok()?;
    // Of a session without a message there is nothing to go on from.
    if session.history.messages().is_empty() {
        return None;
    }
    let same = format::write(&source, &session, &session.history, Mode::Patch);
    if !same.is_ok_and(|it| it.bytes(&source).unwrap() == bytes) {
        return Some("an empty patch changes bytes");
    }
    let written = format::write(&source, &session, &session.history, Mode::New).ok()?;
    let written = written.bytes(&source).unwrap();
    let Ok(again) = format::read(&Memory::new("written", written.as_slice()), Some(format)) else {
        return Some("what was written cannot be read");
    };
    if shapes(&again.history) != shapes(&session.history) {
        return Some("what was written reads otherwise");
    }
    None
}

/// For each number whose session has a fault, what it is. Finds are printed; `EPITOME_MUTATIONS` says how many.
#[test]
fn mutated_sessions_are_read_and_written() {
    let count = std::env::var("EPITOME_MUTATIONS").ok().and_then(|it| it.parse().ok()).unwrap_or(120);
    let mut wrong = Vec::new();
    for number in 0..count {
        let (format, bytes) = session(number);
        if let Some(fault) = faults(format, &bytes) {
            wrong.push(format!("{number} {}: {fault}", format.name()));
        }
    }
    println!("{count} sessions, {} with a fault", wrong.len());
    assert_eq!(wrong, Vec::<String>::new());
}
