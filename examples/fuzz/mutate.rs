//! Damages sessions: a seeded generator, and mutations of JSON values by structure, of lines and of bytes.

use serde_json::{Map, Value, json};

/// SplitMix64: the same seed gives the same cases everywhere.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut out = self.0;
        out = (out ^ out >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        out = (out ^ out >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        out ^ out >> 31
    }

    /// A number below `end`; 0 for 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.below(all.len()))
    }
}

/// A session in pieces: JSON documents, one per line, or a single one.
pub struct Document {
    pub records: Vec<Value>,
}

impl Document {
    /// A small session made from a larger one: the first records or messages, with shortened texts.
    pub fn small(text: &str, records: usize) -> Self {
        let mut records: Vec<Value> = match serde_json::from_str(text) {
            Ok(whole) => vec![first_messages(whole, records)],
            Err(_) => text.lines().take(records).filter_map(|it| serde_json::from_str(it).ok()).collect(),
        };
        records.iter_mut().for_each(shorten);
        Self { records }
    }

    /// Its bytes in its format.
    pub fn bytes(&self) -> Vec<u8> {
        self.records.iter().flat_map(|it| format!("{it}\n").into_bytes()).collect()
    }

    /// The bytes of a case: one to four mutations.
    pub fn mutated(&self, random: &mut Random) -> Vec<u8> {
        let mut records = self.records.clone();
        for _ in 0..1 + random.below(4) {
            mutate(&mut records, random);
        }
        let mut bytes = Self { records }.bytes();
        // Sometimes, bytes that no JSON can contain.
        if random.below(8) == 0 {
            broken(&mut bytes, random);
        }
        bytes
    }
}

fn first_messages(mut whole: Value, most: usize) -> Value {
    if let Some(all) = whole.as_array_mut() {
        all.truncate(most);
    }
    for name in ["messages", "input", "contents", "history", "trajectory"] {
        if let Some(all) = whole.get_mut(name).and_then(Value::as_array_mut) {
            all.truncate(most);
        }
    }
    whole
}

fn shorten(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some((at, _)) = text.char_indices().nth(160).filter(|_| !text.starts_with('{')) {
                text.truncate(at);
            }
        }
        Value::Array(all) => all.iter_mut().for_each(shorten),
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// An odd value, to put where something else is expected.
fn odd(random: &mut Random) -> Value {
    let all = [
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(1e308),
        json!(0.5),
        json!(""),
        json!("x"),
        json!([]),
        json!({}),
        json!([null, [], {}, "x", 1]),
        json!({"type": "text", "text": "x"}),
        json!([{"type": "tool_use", "id": "x", "name": "", "input": 1}]),
        json!("\u{0}\u{1b}[2J\u{202e}\u{fffd}\u{10ffff}"),
        json!("[end abcdef]\n## Rules\n- never"),
        json!("2026-13-45T99:99:99Z"),
        json!("9999999999999999999999"),
        json!("日本語👩‍👩‍👧 e\u{301}".repeat(20)),
        json!("a".repeat(5_000)),
    ];
    random.of(&all).cloned().unwrap_or_default()
}

fn mutate(records: &mut Vec<Value>, random: &mut Random) {
    let (at, other) = (random.below(records.len()), random.below(records.len()));
    match random.below(12) {
        0 if records.len() > 1 => drop(records.remove(at)),
        1 if !records.is_empty() => records.insert(other, records[at].clone()),
        2 if !records.is_empty() => records.swap(at, other),
        _ => {
            let donor = records.get(other).map(|it| any(it, random)).unwrap_or_default();
            if let Some(record) = records.get_mut(at) {
                inside(record, donor, random);
            }
        }
    }
}

/// A random value inside another.
fn any(value: &Value, random: &mut Random) -> Value {
    let mut value = value;
    loop {
        let children: Vec<&Value> = match value {
            Value::Array(all) => all.iter().collect(),
            Value::Object(fields) => fields.values().collect(),
            _ => Vec::new(),
        };
        match random.of(&children) {
            Some(child) if random.below(4) > 0 => value = child,
            _ => return value.clone(),
        }
    }
}

/// Changes one place inside a value, deep places as often as shallow ones.
fn inside(value: &mut Value, donor: Value, random: &mut Random) {
    let deeper = random.below(5) > 0;
    match value {
        Value::Array(all) if deeper && !all.is_empty() => {
            let at = random.below(all.len());
            inside(&mut all[at], donor, random);
        }
        Value::Object(fields) if deeper && !fields.is_empty() => {
            let at = random.below(fields.len());
            if let Some(field) = fields.values_mut().nth(at) {
                inside(field, donor, random);
            }
        }
        Value::Array(all) => list(all, donor, random),
        Value::Object(fields) => object(fields, donor, random),
        Value::String(text) => string(text, donor, random),
        other => *other = if random.below(2) == 0 { donor } else { odd(random) },
    }
}

fn list(all: &mut Vec<Value>, donor: Value, random: &mut Random) {
    let (at, other) = (random.below(all.len()), random.below(all.len()));
    match random.below(6) {
        0 if !all.is_empty() => drop(all.remove(at)),
        1 if !all.is_empty() => all.insert(at, all[other].clone()),
        2 if !all.is_empty() => all.swap(at, other),
        3 => all.insert(at, odd(random)),
        4 => all.clear(),
        _ => all.insert(at, donor),
    }
}

fn object(fields: &mut Map<String, Value>, donor: Value, random: &mut Random) {
    let keys: Vec<String> = fields.keys().cloned().collect();
    let (Some(key), Some(other)) = (random.of(&keys).cloned(), random.of(&keys).cloned()) else {
        fields.insert("type".to_owned(), odd(random));
        return;
    };
    match random.below(6) {
        0 => drop(fields.remove(&key)),
        1 => drop(fields.insert(key, odd(random))),
        2 => drop(fields.insert(key, donor)),
        3 => {
            let value = fields.get(&other).cloned().unwrap_or_default();
            fields.insert(key, value);
        }
        4 => {
            let value = fields.remove(&key).unwrap_or_default();
            fields.insert(format!("{key}_"), value);
        }
        // Deeper than any real nesting.
        _ => {
            let deep = (0..60).fold(donor, |it, _| json!([it]));
            fields.insert(key, deep);
        }
    }
}

fn string(text: &mut String, donor: Value, random: &mut Random) {
    let cut = text.char_indices().map(|it| it.0).nth(random.below(text.chars().count())).unwrap_or(0);
    match (random.below(5), donor) {
        (0, Value::String(donor)) => *text = donor,
        (1, Value::String(donor)) => text.insert_str(cut, &donor),
        (2, _) => text.truncate(cut),
        (3, donor) => *text = donor.to_string(),
        _ => {
            if let Value::String(odd) = odd(random) {
                text.insert_str(cut, &odd);
            }
        }
    }
}

fn broken(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..1 + random.below(3) {
        let at = random.below(bytes.len());
        match random.below(6) {
            0 => bytes.truncate(at),
            1 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
            2 => bytes.insert(at, b'\n'),
            3 => drop(bytes.splice(at..at, *b"\\ud83d")),
            4 => drop(bytes.splice(at..at, [0xFF, 0, 0xC0])),
            _ => {
                let end = (at + random.below(40)).min(bytes.len());
                bytes.drain(at..end);
            }
        }
    }
}
