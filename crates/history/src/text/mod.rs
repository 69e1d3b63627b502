//! A text that knows its size, and caches its measurements.

pub mod middle;

use std::ops::{Add, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::simd::{self, BLOCK, BLOCKS, Block, Kernel, count};

/// A text on one line, with one blank between words.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A text with some ranges, which are given in order, replaced.
pub fn edited<T: AsRef<str>>(text: &str, edits: impl IntoIterator<Item = (Range<usize>, T)>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for (range, new) in edits {
        out.push_str(text.get(at..range.start).unwrap_or_default());
        out.push_str(new.as_ref());
        at = at.max(range.end);
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

/// The size of a text, in the units that the systems' own estimates are made of. One pass over the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TextSize {
    /// UTF-8 bytes.
    pub bytes: u64,
    /// Unicode scalar values.
    pub chars: u64,
    /// Those of `chars` that are below U+0080.
    pub ascii: u64,
    /// UTF-16 code units: JavaScript's `length`.
    pub utf16: u64,
    /// UTF-16 code units that `JSON.stringify` adds by escaping, without the two quotes.
    pub escapes: u64,
}

impl TextSize {
    pub fn of(text: &str) -> Self {
        simd::over::<SizeKernel<true>>(text.as_bytes())
    }

    /// The size without `escapes`, which are 0: counted at the speed of memory, and enough for estimates of
    /// plain text.
    pub fn plain(text: &str) -> Self {
        simd::over::<SizeKernel<false>>(text.as_bytes())
    }

    /// Length in UTF-16 units of the text as a JSON string, quotes included.
    pub fn json(&self) -> u64 {
        self.utf16 + self.escapes + 2
    }
}

/// [`TextSize::of`], or without escapes [`TextSize::plain`].
struct SizeKernel<const ESCAPES: bool>;

impl<const ESCAPES: bool> Kernel for SizeKernel<ESCAPES> {
    type Found = TextSize;

    #[inline(always)]
    fn over(bytes: &[u8], _: impl Fn(&Block) -> [u64; 8]) -> TextSize {
        let mut out = TextSize::default();
        let (rows, rest) = bytes.as_chunks();
        // Few rows at a time, so that one non-ASCII character makes only few others be processed twice, while
        // they are still in the L1 cache.
        for rows in rows.chunks(BLOCKS) {
            add_rows::<ESCAPES>(&mut out, rows);
        }
        if !rest.is_empty() {
            // Padded with letters, which are subtracted again: each is one byte, one character, one unit, no
            // escape.
            let mut row = [b'x'; BLOCK];
            row[..rest.len()].copy_from_slice(rest);
            add_rows::<ESCAPES>(&mut out, &[row]);
            let filled = (BLOCK - rest.len()) as u64;
            out.bytes -= filled;
            out.chars -= filled;
            out.ascii -= filled;
            out.utf16 -= filled;
        }
        out
    }
}

#[inline(always)]
fn add_rows<const ESCAPES: bool>(out: &mut TextSize, rows: &[Block]) {
    let bytes = rows.as_flattened().len() as u64;
    let usual = |it: u8| (it == b'"') | (it == b'\\') | (it == b'\n') | (it == b'\t');
    let ascii = if ESCAPES {
        let [ascii, escaped, short] = count(rows, |it| [it < 0x80, (it < 0x20) | usual(it), usual(it)]);
        out.escapes += escaped;
        if escaped > short {
            let [long] = count(rows, |it| [(it < 0x20) & ((it.wrapping_sub(8) >= 6) | (it == 0x0B))]);
            out.escapes += 4 * long;
        }
        ascii
    } else {
        let [ascii] = count(rows, |it| [it < 0x80]);
        ascii
    };
    let [chars, two] =
        if ascii == bytes { [bytes, 0] } else { count(rows, |it| [it & 0xC0 != 0x80, it >= 0xF0]) };
    out.bytes += bytes;
    out.ascii += ascii;
    out.chars += chars;
    out.utf16 += chars + two;
}

impl Add for TextSize {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            bytes: self.bytes + other.bytes,
            chars: self.chars + other.chars,
            ascii: self.ascii + other.ascii,
            utf16: self.utf16 + other.utf16,
            escapes: self.escapes + other.escapes,
        }
    }
}

/// A text and its size. Cloning shares the text.
#[derive(Clone)]
pub struct Text {
    text: Arc<str>,
    cache: TextCache,
}

/// The numbers that are known of a text. Walks over histories are faster the fewer bytes they read from
/// memory: so the numbers have 32 bits, and the few texts that need wider ones store them elsewhere.
enum TextCache {
    /// The size, and the results of the measures.
    Narrow([u32; 5], [AtomicU32; Measure::COUNT]),
    Wide(Box<(TextSize, [AtomicU64; Measure::COUNT])>),
}

/// Maximum bytes of a text whose numbers all fit into 32 bits: thousandths of its tokens, which are no more
/// than its bytes, and its escapes, at most five per byte.
const NARROW: u64 = 4 << 20;

/// Not measured yet; no measure returns this value.
const UNMEASURED: u64 = u64::MAX;
const UNMEASURED_NARROW: u32 = u32::MAX;

impl TextCache {
    fn new(size: TextSize) -> Self {
        let TextSize { bytes, chars, ascii, utf16, escapes } = size;
        if bytes <= NARROW {
            let size = [bytes, chars, ascii, utf16, escapes].map(|it| it as u32);
            Self::Narrow(size, [const { AtomicU32::new(UNMEASURED_NARROW) }; Measure::COUNT])
        } else {
            Self::wide(size)
        }
    }

    fn wide(size: TextSize) -> Self {
        Self::Wide(Box::new((size, [const { AtomicU64::new(UNMEASURED) }; Measure::COUNT])))
    }

    #[inline]
    fn size(&self) -> TextSize {
        match self {
            Self::Narrow(size, _) => {
                let [bytes, chars, ascii, utf16, escapes] = size.map(u64::from);
                TextSize { bytes, chars, ascii, utf16, escapes }
            }
            Self::Wide(it) => it.0,
        }
    }

    #[inline]
    fn known(&self, which: Measure) -> Option<u64> {
        match self {
            Self::Narrow(_, found) => match found[which as usize].load(Relaxed) {
                UNMEASURED_NARROW => None,
                found => Some(found.into()),
            },
            Self::Wide(it) => Some(it.1[which as usize].load(Relaxed)).filter(|it| *it != UNMEASURED),
        }
    }

    /// Caches a result; false if it does not fit.
    fn remember(&self, which: Measure, found: u64) -> bool {
        match self {
            Self::Narrow(_, known) => match u32::try_from(found) {
                Ok(found) if found != UNMEASURED_NARROW => {
                    known[which as usize].store(found, Relaxed);
                    true
                }
                Ok(_) | Err(_) => false,
            },
            Self::Wide(it) => {
                it.1[which as usize].store(found, Relaxed);
                true
            }
        }
    }
}

impl Clone for TextCache {
    fn clone(&self) -> Self {
        match self {
            Self::Narrow(size, found) => {
                Self::Narrow(*size, found.each_ref().map(|it| it.load(Relaxed).into()))
            }
            Self::Wide(it) => Self::Wide(Box::new((it.0, it.1.each_ref().map(|it| it.load(Relaxed).into())))),
        }
    }
}

/// The measures that [`Text::measured`] caches; `tokens` defines what they mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Estimated from the text's shape.
    Shape,
    Exact,
}

impl Measure {
    const COUNT: usize = 2;
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.size() == other.size() && self.text == other.text
    }
}

impl Eq for Text {}

impl Text {
    /// Owns `text`, and counts its size.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        let cache = TextCache::new(TextSize::of(&text));
        Self { text, cache }
    }

    /// The result of `measure`, cached once per [`Measure`].
    #[inline]
    pub fn measured(&self, which: Measure, measure: impl FnOnce(&str) -> u64) -> u64 {
        self.cache.known(which).unwrap_or_else(|| {
            let found = measure(&self.text);
            self.cache.remember(which, found);
            found
        })
    }

    /// Whether the result of [`Text::measured`] is cached.
    pub fn is_measured(&self, which: Measure) -> bool {
        self.cache.known(which).is_some()
    }

    /// Replaces a text in a history that is only measured: its first words, or all of a short one, with the
    /// size and the [`Measure::Shape`] of the whole.
    pub fn stub(text: &str, size: TextSize, shape: u64) -> Self {
        /// Maximum characters shown of a text.
        const SHOWN: usize = 60;
        let mut cache = TextCache::new(size);
        if !cache.remember(Measure::Shape, shape) {
            cache = TextCache::wide(size);
            cache.remember(Measure::Shape, shape);
        }
        if text.len() <= SHOWN {
            return Self { text: text.into(), cache };
        }
        let (mut out, mut chars) = (String::with_capacity(2 * SHOWN), 0);
        for word in text.split_whitespace() {
            if chars > SHOWN {
                break;
            }
            if chars > 0 {
                out.push(' ');
            }
            let long = word.len() > SHOWN;
            let end = if long { word.char_indices().nth(SHOWN) } else { None };
            let shown = &word[..end.map_or(word.len(), |(at, _)| at)];
            out.push_str(shown);
            chars += shown.chars().count() + 1;
        }
        Self { text: out.into(), cache }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Its size, counted when it was made.
    #[inline]
    pub fn size(&self) -> TextSize {
        self.cache.size()
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Whether both are the same text in memory, or equal byte for byte.
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.text, &other.text) || self == other
    }
}

impl Default for Text {
    fn default() -> Self {
        Self::new("")
    }
}

impl std::fmt::Debug for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown: String = self.text.chars().take(60).collect();
        write!(f, "Text({} bytes: {shown:?})", self.size().bytes)
    }
}

impl<T: Into<Arc<str>>> From<T> for Text {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

impl<T: Into<Arc<str>>> From<T> for Box<Text> {
    fn from(text: T) -> Self {
        Self::new(Text::new(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::narrow;

    #[test]
    fn measures_like_javascript() {
        let size = TextSize::of("a\"\n\u{1}é😀");
        assert_eq!(size, TextSize { bytes: 10, chars: 6, ascii: 4, utf16: 7, escapes: 1 + 1 + 5 });
    }

    #[test]
    fn measures_blocks_as_bytes() {
        // The slow definition, for texts longer than a block.
        let slow = |text: &str| {
            let escape = |c: char| match c {
                '"' | '\\' | '\u{8}' | '\t' | '\n' | '\u{c}' | '\r' => 1,
                '\0'..='\u{1f}' => 5,
                _ => 0,
            };
            TextSize {
                bytes: text.len() as u64,
                chars: text.chars().count() as u64,
                ascii: text.chars().filter(char::is_ascii).count() as u64,
                utf16: text.encode_utf16().count() as u64,
                escapes: text.chars().map(escape).sum(),
            }
        };
        let all: String = (0u8..0x80).map(char::from).chain("é漢字😀ß".chars()).collect();
        for len in [0, 1, 63, 64, 65, 127, 128, 130, 20_000, 40_001] {
            for text in [all.chars().cycle().take(len).collect::<String>(), "\u{b}\u{1b}".repeat(len)] {
                let size = slow(&text);
                assert_eq!(TextSize::of(&text), size, "{len}");
                assert_eq!(TextSize::plain(&text), TextSize { escapes: 0, ..size }, "{len}");
                assert_eq!(narrow::<SizeKernel<true>>(text.as_bytes()), size, "{len}");
                assert_eq!(
                    narrow::<SizeKernel<false>>(text.as_bytes()),
                    TextSize { escapes: 0, ..size },
                    "{len}"
                );
            }
        }
    }

    #[test]
    fn wide_sizes_are_kept_as_narrow_ones_are() {
        for len in [NARROW as usize - 1, NARROW as usize, NARROW as usize + 1] {
            let text = "\u{1}".repeat(len);
            let whole = Text::new(text.as_str());
            assert_eq!(whole.size(), TextSize::of(&text));
            assert_eq!(whole.clone(), whole);
            assert_eq!(whole.measured(Measure::Exact, |_| 7), 7);
            assert_eq!(whole.clone().measured(Measure::Exact, |_| 8), 7);
            assert!(!whole.is_measured(Measure::Shape));
            for shape in [0, u64::from(u32::MAX) - 1, u64::from(u32::MAX), 1 << 40] {
                let stub = Text::stub(&text, whole.size(), shape);
                assert_eq!((stub.size(), stub.measured(Measure::Shape, |_| 9)), (whole.size(), shape));
            }
        }
    }
}
