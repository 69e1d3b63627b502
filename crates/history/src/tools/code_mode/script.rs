//! The tool calls in a script.

use std::collections::HashMap;
use std::iter::Peekable;
use std::str::CharIndices;

use serde_json::{Map, Value};

use super::plain;

/// Maximum nesting of values that are read.
const DEEPEST: usize = 32;

/// The beginning of a patch, for `apply_patch`.
const PATCH: &str = "*** Begin Patch";

/// The calls of `tools.NAME(…)` in a script with their first argument, in order; an unknown argument is null.
/// Also the patch in the script, if there is one.
pub(super) fn read(text: &str) -> (Vec<(String, Value)>, Option<String>) {
    let mut parser = Parser {
        text,
        chars: text.char_indices().peekable(),
        constants: HashMap::new(),
        budget: (64 << 10) + 4 * text.len(),
        found: Vec::new(),
        patch: None,
    };
    while parser.peek().is_some() {
        parser.token(0);
    }
    (parser.found, parser.patch)
}

/// A constant that holds a literal.
struct Constant {
    value: Value,
    /// Approximate bytes that a copy takes.
    size: usize,
    /// Levels of arrays and objects.
    depth: usize,
}

impl Constant {
    fn new(value: Value) -> Self {
        let (size, depth) = extent(&value);
        Self { value, size, depth }
    }
}

/// Bytes and levels of a value.
fn extent(value: &Value) -> (usize, usize) {
    let all = |parts: &mut dyn Iterator<Item = (usize, &Value)>| {
        parts.fold((size_of::<Value>(), 1), |(size, depth), (key, part)| {
            let (more, below) = extent(part);
            (size + key + more, depth.max(below + 1))
        })
    };
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => (size_of::<Value>(), 0),
        Value::String(text) => (size_of::<Value>() + text.len(), 0),
        Value::Array(items) => all(&mut items.iter().map(|it| (0, it))),
        Value::Object(fields) => all(&mut fields.iter().map(|(key, it)| (key.len(), it))),
    }
}

struct Parser<'a> {
    text: &'a str,
    chars: Peekable<CharIndices<'a>>,
    constants: HashMap<&'a str, Constant>,
    /// Bytes that may still be copied from constants: each line can use the one before it twice, doubling the
    /// size.
    budget: usize,
    found: Vec<(String, Value)>,
    /// The patch in the script: its first literal or joined list that is one.
    patch: Option<String>,
}

impl<'a> Parser<'a> {
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

    /// Whether a list ends here: with its bracket, with another closing bracket, or with the script.
    fn ends(&mut self, bracket: char) -> bool {
        self.eat(bracket) || self.peek().is_none_or(|it| matches!(it, ')' | ']' | '}'))
    }

    /// Skips white space and comments.
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

    /// Skips a token that is no part of a literal, but reads the call or the constant that begins with it.
    fn token(&mut self, depth: usize) {
        self.blank();
        let Some(first) = self.peek() else { return };
        match first {
            '"' | '\'' | '`' => {
                self.string(first, false);
            }
            '/' => self.slash(),
            c if c.is_alphanumeric() || c == '_' || c == '$' => match self.word() {
                "const" | "let" | "var" => self.constant(depth),
                "tools" => self.tool(depth),
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

    /// Skips a regular expression, or a division sign.
    fn slash(&mut self) {
        /// Maximum bytes of a regular expression.
        const LONGEST: usize = 1_000;
        let at = self.at();
        self.chars.next();
        let before = self.text[..at].trim_end();
        let operand = |it: char| it.is_alphanumeric() || "_$)]\"'`".contains(it);
        if before.ends_with(operand) && !before.ends_with("return") {
            return;
        }
        let start = self.chars.clone();
        let mut class = false;
        while let Some((_, c)) = self.chars.next_if(|it| it.0 < at + LONGEST) {
            match c {
                '\\' => {
                    self.chars.next();
                }
                '[' => class = true,
                ']' => class = false,
                '/' if !class => return,
                '\n' => break,
                _ => {}
            }
        }
        self.chars = start;
    }

    fn constant(&mut self, depth: usize) {
        self.blank();
        let name = self.word();
        if name.is_empty() {
            return;
        }
        self.constants.remove(name);
        if self.eat('=')
            && let Some(value) = self.value(depth)
        {
            self.constants.insert(name, Constant::new(value));
        }
    }

    /// A copy of a constant's value.
    fn known(&mut self, name: &str, depth: usize) -> Option<Value> {
        let constant = self.constants.get(name).filter(|it| depth + it.depth < DEEPEST)?;
        self.budget = self.budget.checked_sub(constant.size)?;
        Some(constant.value.clone())
    }

    /// Reads a call, from after `tools`.
    fn tool(&mut self, depth: usize) {
        if depth >= DEEPEST {
            return;
        }
        let name = if self.eat('.') {
            self.word().to_owned()
        } else if self.eat('[') {
            let name = self.value(depth + 1);
            match name.filter(|_| self.eat(']')) {
                Some(Value::String(name)) => name,
                Some(_) | None => return,
            }
        } else {
            return;
        };
        if name.is_empty() || !self.eat('(') {
            return;
        }
        let input = self.value(depth + 1).unwrap_or(Value::Null);
        while !self.ends(')') {
            self.rest(depth + 1);
        }
        self.found.push((name, input));
    }

    /// A literal, a constant that holds one, or such strings joined by `+`. `None` for any other expression,
    /// of which nothing is skipped.
    fn value(&mut self, depth: usize) -> Option<Value> {
        let mut text = match self.operand(depth)? {
            Value::String(text) => text,
            other => return Some(other),
        };
        while self.eat('+') {
            match self.operand(depth) {
                Some(Value::String(more)) => text.push_str(&more),
                Some(Value::Number(more)) => text.push_str(&more.to_string()),
                Some(_) | None => break,
            }
        }
        Some(Value::String(text))
    }

    fn operand(&mut self, depth: usize) -> Option<Value> {
        self.blank();
        let first = self.peek().filter(|_| depth < DEEPEST)?;
        match first {
            '"' | '\'' | '`' => Some(Value::String(self.string(first, false))),
            '{' => Some(self.object(depth)),
            '[' => Some(self.array(depth)),
            '-' | '0'..='9' => {
                let from = self.at();
                while self.chars.next_if(|it| it.1.is_ascii_alphanumeric() || "-+._".contains(it.1)).is_some()
                {
                }
                let to = self.at();
                Some(serde_json::from_str(&self.text[from..to].replace('_', "")).unwrap_or(Value::Null))
            }
            c if c.is_alphabetic() || c == '_' || c == '$' => {
                let before = self.chars.clone();
                let word = self.word();
                let raw = if word == "String" { self.raw() } else { None };
                self.blank();
                let alone = !matches!(self.peek(), Some('.' | '(' | '['));
                let value = match word {
                    _ if !alone => None,
                    "true" => Some(Value::Bool(true)),
                    "false" => Some(Value::Bool(false)),
                    "null" | "undefined" => Some(Value::Null),
                    "String" => raw.map(Value::String),
                    name => self.known(name, depth),
                };
                if value.is_none() {
                    self.chars = before;
                }
                value
            }
            _ => None,
        }
    }

    fn array(&mut self, depth: usize) -> Value {
        self.chars.next();
        let mut items = Vec::new();
        while !self.ends(']') {
            items.push(self.value(depth + 1).unwrap_or(Value::Null));
            self.rest(depth + 1);
        }
        let before = self.chars.clone();
        // `["a", "b"].join("\n")`.
        if self.eat('.') && self.word() == "join" && self.eat('(') {
            let between = self.value(depth + 1).and_then(|it| it.as_str().map(str::to_owned));
            while !self.ends(')') {
                self.rest(depth + 1);
            }
            return self.joined(&items, between.as_deref().unwrap_or(","));
        }
        self.chars = before;
        Value::Array(items)
    }

    fn joined(&mut self, items: &[Value], between: &str) -> Value {
        let added = between.len().saturating_mul(items.len());
        let Some(left) = self.budget.checked_sub(added) else { return Value::Null };
        self.budget = left;
        let text = items.iter().map(plain).collect::<Vec<_>>().join(between);
        if text.contains(PATCH) {
            self.patch = Some(text.clone());
        }
        Value::String(text)
    }

    fn object(&mut self, depth: usize) -> Value {
        self.chars.next();
        let mut fields = Map::new();
        while !self.ends('}') {
            let key = match self.peek() {
                Some(quote @ ('"' | '\'' | '`')) => self.string(quote, false),
                _ => self.word().to_owned(),
            };
            let value = if self.eat(':') {
                self.value(depth + 1)
            } else {
                // Shorthand: `{cmd, workdir}`.
                self.known(&key, depth + 1)
            };
            if let Some(value) = value.filter(|_| !key.is_empty()) {
                fields.insert(key, value);
            }
            self.rest(depth + 1);
        }
        Value::Object(fields)
    }

    /// Skips the rest of an element and the comma after it, up to the bracket that closes the list.
    fn rest(&mut self, depth: usize) {
        let mut open = 0_usize;
        loop {
            self.blank();
            let Some(c) = self.peek() else { return };
            match c {
                '(' | '[' | '{' => open += 1,
                ')' | ']' | '}' if open == 0 => return,
                ')' | ']' | '}' => open -= 1,
                ',' if open == 0 => {
                    self.chars.next();
                    return;
                }
                _ => {}
            }
            self.token(depth);
        }
    }

    /// `` String.raw`…` ``, from after `String`.
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
                    Some('u') => text.extend(self.escaped()),
                    Some('x') => text.extend(self.digits(2).and_then(char::from_u32)),
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

    /// Reads the rest of a `\u` escape, from after the `u`: four hexadecimal digits, a surrogate pair of two
    /// such escapes, or digits in braces. `None` if it is no character.
    fn escaped(&mut self) -> Option<char> {
        if self.chars.next_if(|it| it.1 == '{').is_some() {
            let mut code = 0_u32;
            while let Some(digit) = self.chars.next_if(|it| it.1.is_ascii_hexdigit()) {
                code = code.saturating_mul(16).saturating_add(digit.1.to_digit(16)?);
            }
            self.chars.next_if(|it| it.1 == '}');
            return char::from_u32(code);
        }
        let first = self.digits(4)?;
        if !(0xD800..0xDC00).contains(&first) {
            return char::from_u32(first);
        }
        let before = self.chars.clone();
        let pair = self.chars.next_if(|it| it.1 == '\\').and_then(|_| self.chars.next_if(|it| it.1 == 'u'));
        match pair.and_then(|_| self.digits(4)) {
            Some(second @ 0xDC00..0xE000) => {
                char::from_u32(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00))
            }
            Some(_) | None => {
                self.chars = before;
                None
            }
        }
    }

    /// The value of `count` hexadecimal digits.
    fn digits(&mut self, count: usize) -> Option<u32> {
        let mut code = 0;
        for _ in 0..count {
            code = code * 16 + self.chars.next_if(|it| it.1.is_ascii_hexdigit())?.1.to_digit(16)?;
        }
        Some(code)
    }
}
