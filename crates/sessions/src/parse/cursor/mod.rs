//! A one-pass JSON reader: it takes what is asked for, skips everything else, and checks all of it on the
//! way. Every method gives `None` for invalid JSON, also for a lone surrogate or broken UTF-8 in what is
//! taken: [`Cursor::mended`] then reads the text again, mended.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;
use serde_json::Value;

use crate::parse::spans;
use history::json;
use history::simd::{LANES, special};

/// A position in a JSON text. What is skipped may be invalid UTF-8.
#[derive(Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Bytes of white space between tokens that were skipped so far.
    spaces: usize,
}

impl<'a> Cursor<'a> {
    pub fn of(text: &'a str) -> Self {
        Self { bytes: text.as_bytes(), at: 0, spaces: 0 }
    }

    /// Reads a whole text by `take`; only white space may follow what that took.
    pub fn whole<T>(bytes: &'a [u8], take: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let mut it = Self { bytes, at: 0, spaces: 0 };
        let taken = take(&mut it)?;
        it.space();
        (it.at == bytes.len()).then_some(taken)
    }

    /// [`Self::whole`]; if that fails, of the mended text.
    pub fn mended<T>(bytes: &[u8], mut take: impl FnMut(&mut Cursor<'_>) -> Option<T>) -> Option<T> {
        Cursor::whole(bytes, &mut take).or_else(|| match json::mend(bytes) {
            Cow::Owned(text) => Cursor::whole(text.as_bytes(), take),
            Cow::Borrowed(_) => None,
        })
    }

    /// Reads an object. `each` gets every name, with the cursor before the value, which it has to take.
    pub fn object(&mut self, mut each: impl FnMut(&mut Self, &str) -> Option<()>) -> Option<()> {
        self.token(b'{')?;
        if self.next_is(b'}') {
            return self.token(b'}');
        }
        loop {
            self.space();
            let name = self.string()?;
            self.token(b':')?;
            each(self, &name)?;
            match self.peek()? {
                b',' => self.at += 1,
                b'}' => return self.token(b'}'),
                _ => return None,
            }
        }
    }

    /// Skips a value, but reads its last field of that name by `get`, if it is an object that has one.
    pub fn member<T>(&mut self, key: &str, mut get: impl FnMut(&mut Self) -> Option<T>) -> Option<Option<T>> {
        let mut found = None;
        self.optional(b'{', |it| {
            it.object(|it, name| {
                if name != key {
                    return it.pass();
                }
                found = Some(get(it)?);
                Some(())
            })
        })?;
        Some(found)
    }

    /// Reads an object whose `type` decides what its other fields mean: `each` gets it with each of them, and
    /// what was found so far. If `type` comes late, or again (the last counts), the object is read once more.
    /// `given` is used instead of the object's own `type`.
    pub fn typed<T: Default>(
        &mut self,
        given: Option<String>,
        mut each: impl FnMut(&mut Self, &mut T, &str, &str) -> Option<()>,
    ) -> Option<(Option<Cow<'a, str>>, T)> {
        let begin = self.at;
        let mut known = given.map(|it| Some(Cow::Owned(it)));
        loop {
            let (mut found, mut begun, mut is_late) = (T::default(), false, false);
            let mut tag = known.clone().flatten();
            self.object(|it, name| {
                match name {
                    "type" if known.is_some() => it.pass()?,
                    "type" => {
                        let new = it.optional_string()?;
                        is_late |= begun && new != tag;
                        tag = new;
                    }
                    _ => {
                        begun = true;
                        each(it, &mut found, tag.as_deref().unwrap_or_default(), name)?;
                    }
                }
                Some(())
            })?;
            if !is_late {
                return Some((tag, found));
            }
            (self.at, known) = (begin, Some(tag));
        }
    }

    /// Reads an array. `each` has to take an element.
    pub fn list(&mut self, mut each: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.token(b'[')?;
        if self.next_is(b']') {
            return self.token(b']');
        }
        loop {
            each(self)?;
            match self.peek()? {
                b',' => self.at += 1,
                b']' => return self.token(b']'),
                _ => return None,
            }
        }
    }

    /// The byte that the next token begins with.
    pub fn peek(&mut self) -> Option<u8> {
        self.space();
        self.bytes.get(self.at).copied()
    }

    /// Reads a value by `take`; `null` gives `Some(None)`.
    pub fn some<T>(&mut self, take: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        if self.peek()? == b'n' { self.word("null").map(|()| None) } else { take(self).map(Some) }
    }

    /// Reads a value by `take` if it begins with `first`. Any other is skipped: a field of the wrong type
    /// counts as missing.
    pub fn optional<T>(&mut self, first: u8, take: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        if self.peek()? == first { take(self).map(Some) } else { self.pass().map(|()| None) }
    }

    pub fn optional_string(&mut self) -> Option<Option<Cow<'a, str>>> {
        self.optional(b'"', Self::string)
    }

    /// A whole number, not negative; any other value counts as missing.
    pub fn optional_number(&mut self) -> Option<Option<u64>> {
        match self.peek()? {
            b'0'..=b'9' => self.value().map(|it| it.parse().ok()),
            _ => self.pass().map(|()| None),
        }
    }

    /// Skips a value; whether it begins with `first`: the first letter tells `true`, `false` and `null`
    /// apart.
    pub fn begins_with(&mut self, first: u8) -> Option<bool> {
        let found = self.peek()? == first;
        self.pass().map(|()| found)
    }

    /// A cursor at another position of the same text.
    pub fn at(&self, place: usize) -> Self {
        Self { bytes: self.bytes, at: place, spaces: 0 }
    }

    /// The text in a range, unless it must be mended.
    pub fn text_at(&self, place: Range<usize>) -> Option<&'a str> {
        match json::mend(self.bytes.get(place)?) {
            Cow::Borrowed(text) => Some(text),
            Cow::Owned(_) => None,
        }
    }

    /// Any value as raw JSON, unless it must be mended.
    pub fn raw(&mut self) -> Option<&'a str> {
        let ((), place) = self.span(Self::pass)?;
        self.text_at(place)
    }

    /// Parses a value that is small or rare; null if it is nested too deep.
    pub fn json(&mut self) -> Option<Value> {
        self.raw().map(|it| serde_json::from_str(it).unwrap_or_default())
    }

    /// Any value as JSON without white space between its tokens, unless it must be mended.
    pub fn compact(&mut self) -> Option<Cow<'a, str>> {
        let (raw, tight) = self.value_tight()?;
        if memmem::find(raw.as_bytes(), b"\\u").is_some()
            && matches!(json::mend(raw.as_bytes()), Cow::Owned(_))
        {
            return None;
        }
        Some(if tight { Cow::Borrowed(raw) } else { Cow::Owned(spans::compacted(raw)) })
    }

    /// Where the next token begins.
    pub fn place(&mut self) -> usize {
        self.space();
        self.at
    }

    /// Reads a value by `take`, and returns also its range in the text.
    pub fn span<T>(&mut self, take: impl FnOnce(&mut Self) -> Option<T>) -> Option<(T, Range<usize>)> {
        self.space();
        let begin = self.at;
        take(self).map(|it| (it, begin..self.at))
    }

    pub fn string(&mut self) -> Option<Cow<'a, str>> {
        if let Some(plain) = self.plain_string()? {
            return Some(Cow::Borrowed(plain));
        }
        let begin = self.at;
        self.pass_string()?;
        serde_json::from_slice(&self.bytes[begin..self.at]).ok().map(Cow::Owned)
    }

    /// A string: a slice of the text if nothing in it is escaped, else decoded into `buffer`.
    pub fn text<'b>(&mut self, buffer: &'b mut DecodeBuffer) -> Option<&'b str>
    where
        'a: 'b,
    {
        match self.plain_string()? {
            Some(plain) => Some(plain),
            None => self.escaped_string(buffer),
        }
    }

    /// The string that begins here, if nothing in it is escaped; else the cursor does not move.
    fn plain_string(&mut self) -> Option<Option<&'a str>> {
        if self.peek()? != b'"' {
            return None;
        }
        let begin = self.at + 1;
        let end = plain(self.bytes, begin);
        if *self.bytes.get(end)? != b'"' {
            return Some(None);
        }
        self.at = end + 1;
        simdutf8::basic::from_utf8(&self.bytes[begin..end]).ok().map(Some)
    }

    fn escaped_string<'b>(&mut self, buffer: &'b mut DecodeBuffer) -> Option<&'b str> {
        let bytes = self.bytes;
        let (mut at, mut to) = (self.at + 1, 0);
        let out = &mut buffer.0;
        loop {
            // Enough for a block that is copied at once and a character after it.
            if out.len() < to + 2 * LANES {
                out.resize(2 * to + 4 * LANES, 0);
            }
            // The whole block is copied; what is after its first special byte will be overwritten.
            match bytes.get(at..).and_then(|it| it.first_chunk::<LANES>()) {
                Some(block) => {
                    // Copied to a local first, or it would be loaded again after the write.
                    let block = *block;
                    *out.get_mut(to..)?.first_chunk_mut::<LANES>()? = block;
                    let many = special(&block).trailing_zeros() as usize;
                    (at, to) = (at + many.min(LANES), to + many.min(LANES));
                    if many >= LANES {
                        continue;
                    }
                }
                None => {
                    while let Some(byte) = bytes.get(at).filter(|it| !matches!(it, b'"' | b'\\' | 0..0x20)) {
                        out[to] = *byte;
                        (at, to) = (at + 1, to + 1);
                    }
                }
            }
            match bytes.get(at)? {
                b'\\' => match SHORT[usize::from(*bytes.get(at + 1)?)] {
                    0 => {
                        let (char, len) = long(&bytes[at..])?;
                        to += char.encode_utf8(out.get_mut(to..)?).len();
                        at += len;
                    }
                    byte => {
                        out[to] = byte;
                        (at, to) = (at + 2, to + 1);
                    }
                },
                b'"' => {
                    self.at = at + 1;
                    return simdutf8::basic::from_utf8(&out[..to]).ok();
                }
                _ => return None,
            }
        }
    }

    /// Any value, as raw JSON.
    pub fn value(&mut self) -> Option<&'a str> {
        let (begin, ()) = (self.at, self.pass()?);
        simdutf8::basic::from_utf8(&self.bytes[begin..self.at]).ok().map(str::trim_ascii_start)
    }

    /// Skips a JSON value; `None` at the end or if it is not JSON.
    pub fn pass(&mut self) -> Option<()> {
        let bytes = self.bytes;
        // The open brackets, in a list: they may be nested too deep for recursion.
        let mut open: Vec<u8> = Vec::new();
        loop {
            let mut ended = true;
            match self.peek()? {
                b'"' => self.pass_string()?,
                b'{' => {
                    self.at += 1;
                    if self.next_is(b'}') {
                        self.at += 1;
                    } else {
                        self.name()?;
                        open.push(b'}');
                        ended = false;
                    }
                }
                b'[' => {
                    self.at += 1;
                    if self.next_is(b']') {
                        self.at += 1;
                    } else {
                        open.push(b']');
                        ended = false;
                    }
                }
                b't' => self.word("true")?,
                b'f' => self.word("false")?,
                b'n' => self.word("null")?,
                _ => self.at += number(&bytes[self.at..])?,
            }
            while ended {
                let Some(close) = open.last().copied() else { return Some(()) };
                let found = self.peek()?;
                self.at += 1;
                if found == close {
                    open.pop();
                } else if found == b',' {
                    if close == b'}' {
                        self.name()?;
                    }
                    ended = false;
                } else {
                    return None;
                }
            }
        }
    }

    /// Any value as raw JSON, and whether there is no white space between its tokens.
    pub fn value_tight(&mut self) -> Option<(&'a str, bool)> {
        self.space();
        let before = self.spaces;
        let value = self.value()?;
        Some((value, self.spaces == before))
    }

    fn name(&mut self) -> Option<()> {
        self.space();
        self.pass_string()?;
        self.token(b':')
    }

    fn pass_string(&mut self) -> Option<()> {
        let bytes = self.bytes;
        self.token(b'"')?;
        let mut at = self.at;
        loop {
            at = plain(bytes, at);
            match bytes.get(at)? {
                b'"' => {
                    self.at = at + 1;
                    return Some(());
                }
                // The escape is not decoded: half a surrogate pair is accepted.
                b'\\' => {
                    at += match bytes.get(at + 1)? {
                        b'u' => hex(bytes.get(at + 2..at + 6)?).map(|_| 6)?,
                        it => Some(2).filter(|_| SHORT[usize::from(*it)] != 0)?,
                    }
                }
                _ => return None,
            }
        }
    }

    fn token(&mut self, byte: u8) -> Option<()> {
        self.space();
        let found = self.bytes.get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found.then_some(())
    }

    fn next_is(&mut self, byte: u8) -> bool {
        self.peek() == Some(byte)
    }

    fn word(&mut self, word: &str) -> Option<()> {
        let found = self.bytes[self.at..].starts_with(word.as_bytes());
        self.at += if found { word.len() } else { 0 };
        found.then_some(())
    }

    #[inline]
    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.bytes.get(self.at) {
            self.at += 1;
            self.spaces += 1;
        }
    }
}

/// A reusable buffer for decoded strings.
#[derive(Debug, Default)]
pub struct DecodeBuffer(Vec<u8>);

/// The first position from `at` on that is not plain text of a string: a quote, a backslash, a control
/// character, or the end.
#[inline]
fn plain(bytes: &[u8], mut at: usize) -> usize {
    while let Some(block) = bytes.get(at..).and_then(|it| it.first_chunk()) {
        let found = special(block);
        if found != 0 {
            return at + found.trailing_zeros() as usize;
        }
        at += LANES;
    }
    while bytes.get(at).is_some_and(|it| !matches!(it, b'"' | b'\\' | 0..0x20)) {
        at += 1;
    }
    at
}

/// The byte that a short escape such as `\n` stands for, by the byte after the backslash; 0 if there is none.
const SHORT: [u8; 256] = {
    let mut out = [0; 256];
    let pairs = *b"\"\"\\\\//b\x08f\x0cn\nr\rt\t";
    let mut at = 0;
    while at < pairs.len() {
        out[pairs[at] as usize] = pairs[at + 1];
        at += 2;
    }
    out
};

/// The character of the `\u` escape (or pair) that `bytes` begins with, and its length; none for half a pair.
fn long(bytes: &[u8]) -> Option<(char, usize)> {
    if bytes.get(1)? != &b'u' {
        return None;
    }
    let unit = hex(bytes.get(2..6)?)?;
    if !(0xD800..0xE000).contains(&unit) {
        return Some((char::from_u32(unit)?, 6));
    }
    let low = if bytes.get(6..8)? == b"\\u" { hex(bytes.get(8..12)?)? } else { 0 };
    let pair = unit < 0xDC00 && (0xDC00..0xE000).contains(&low);
    pair.then(|| char::from_u32(0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00)))?.map(|it| (it, 12))
}

fn hex(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |sum, it| Some(sum * 16 + char::from(*it).to_digit(16)?))
}

/// The length of the number that `bytes` begins with.
fn number(bytes: &[u8]) -> Option<usize> {
    let digits = |from: usize| bytes[from..].iter().take_while(|it| it.is_ascii_digit()).count();
    let some = |from: usize| Some(digits(from)).filter(|it| *it > 0).map(|it| from + it);
    let begin = usize::from(bytes.first() == Some(&b'-'));
    let mut at = if bytes.get(begin) == Some(&b'0') { begin + 1 } else { some(begin)? };
    if bytes.get(at) == Some(&b'.') {
        at = some(at + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        at = some(at + 1 + usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-'))))?;
    }
    Some(at)
}

#[cfg(test)]
mod tests;
