//! Parses which part of an original is wanted, and reads it within a token limit. Pure but for the reader
//! that it is given. Holds one piece of a line at a time, so that originals of any size can be read.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, BufRead};

use regex::Regex;

use history::error::{Error, ErrorKind, Result};

/// Lines are read in stretches of at most this many bytes.
const STRETCH: usize = 64 * 1024;

/// Maximum lines shown before and after a match.
const MAX_AROUND: u64 = 100;

#[derive(Debug, Clone)]
pub enum Range {
    /// `10-40`, `10-`, `10`: lines, the first is 1, the last included.
    Lines {
        from: u64,
        /// Last line; `u64::MAX` for all that follow.
        to: u64,
    },
    /// `b0-4096`, `b4096-`: bytes, the first is 0, the end not included; widened to whole characters.
    Bytes {
        from: u64,
        /// The byte after the last; `u64::MAX` for all that follow.
        to: u64,
    },
    /// `m12`, `m12-14`: messages of a session, the first is 0, the last included; as in a summary (`#12`).
    Messages {
        from: u64,
        /// Last message; `u64::MAX` for all that follow.
        to: u64,
    },
    /// `/regex/`, `/regex/±2`, `/regex/±2@120`: the lines that match, with two around each, from line 120 on.
    Matching {
        /// What a line must match, in its first 64 KiB.
        pattern: Regex,
        /// Lines shown before and after.
        around: u64,
        /// First line looked at.
        from: u64,
    },
}

impl Range {
    pub const WHOLE: Self = Self::Bytes { from: 0, to: u64::MAX };

    /// Reads a range as written above; `+-2` and `2` stand for `±2`.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        let wrong = || {
            let shown: String = text.chars().take(60).collect();
            let what = format!(
                "reading a range: expected lines (10-40), bytes (b0-4096), messages of a session (m12-14) or \
                 a pattern (/regex/±2), found {shown:?}"
            );
            Error::new(ErrorKind::Arguments, what)
        };
        if let Some(rest) = text.strip_prefix('/') {
            let (pattern, rest) = rest.rsplit_once('/').ok_or_else(wrong)?;
            let (around, from) = rest.split_once('@').unwrap_or((rest, "1"));
            let around = around.trim_start_matches(['±', '+', '-']);
            let around = if around.is_empty() { 0 } else { around.parse().map_err(|_| wrong())? };
            let from = from.parse().map_err(|_| wrong())?;
            return match Regex::new(pattern) {
                Ok(pattern) if !pattern.as_str().is_empty() && around <= MAX_AROUND => {
                    Ok(Self::Matching { pattern, around, from })
                }
                Ok(_) => Err(wrong()),
                Err(error) => Err(wrong().because(error)),
            };
        }
        let unit = text.chars().next().filter(|it| matches!(it, 'b' | 'm' | '#'));
        let numbers = unit.map_or(text, |_| &text[1..]);
        let number = |text: &str| -> Result<u64> {
            let digits = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
            if digits { text.parse().map_err(|_| wrong()) } else { Err(wrong()) }
        };
        let (from, to) = match numbers.split_once('-') {
            Some((from, "")) => (number(from)?, u64::MAX),
            Some((from, to)) => (number(from)?, number(to)?),
            None if unit == Some('b') => return Err(wrong()),
            None => (number(numbers)?, number(numbers)?),
        };
        match unit {
            Some('b') if from < to => Ok(Self::Bytes { from, to }),
            Some('m' | '#') if from <= to => Ok(Self::Messages { from, to }),
            None if 0 < from && from <= to => Ok(Self::Lines { from, to }),
            Some(_) | None => Err(wrong()),
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lines { from, to: u64::MAX } => write!(f, "{from}-"),
            Self::Lines { from, to } => write!(f, "{from}-{to}"),
            Self::Bytes { from, to: u64::MAX } => write!(f, "b{from}-"),
            Self::Bytes { from, to } => write!(f, "b{from}-{to}"),
            Self::Messages { from, to: u64::MAX } => write!(f, "m{from}-"),
            Self::Messages { from, to } if from == to => write!(f, "m{from}"),
            Self::Messages { from, to } => write!(f, "m{from}-{to}"),
            Self::Matching { pattern, around, from } => {
                write!(f, "/{pattern}/")?;
                if *around > 0 {
                    write!(f, "±{around}")?;
                }
                if *from > 1 {
                    write!(f, "@{from}")?;
                }
                Ok(())
            }
        }
    }
}

/// The part of an original that was asked for, as far as it fits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Slice {
    /// The text. Matching lines have their number (`12:` on a match, `12-` beside one; `--` for left-out
    /// lines).
    pub text: String,
    /// The range to request next; `None` at the end of the requested range.
    pub next: Option<String>,
}

struct Stretch {
    /// 1-based line.
    line: u64,
    /// Byte offset of its first byte.
    at: u64,
    /// Whether it starts its line.
    first: bool,
    text: Vec<u8>,
}

/// Reads lines in stretches that end with the line or, in a long line, between two characters.
struct Stretches<'a> {
    from: &'a mut dyn BufRead,
    line: u64,
    at: u64,
    first: bool,
    /// Bytes read that belong to the next stretch: the beginning of a character.
    over: Vec<u8>,
}

impl Stretches<'_> {
    fn next(&mut self) -> io::Result<Option<Stretch>> {
        let mut text = std::mem::take(&mut self.over);
        let ended = loop {
            let found = self.from.fill_buf()?;
            if found.is_empty() {
                break false;
            }
            let room = &found[..found.len().min(STRETCH - text.len())];
            let (taken, ended) = match memchr::memchr(b'\n', room) {
                Some(at) => (at + 1, true),
                None => (room.len(), false),
            };
            text.extend_from_slice(&room[..taken]);
            self.from.consume(taken);
            if ended {
                break true;
            }
            if text.len() == STRETCH {
                self.over = text.split_off(boundary(&text));
                break false;
            }
        };
        if text.is_empty() {
            return Ok(None);
        }
        let stretch = Stretch { line: self.line, at: self.at, first: self.first, text };
        self.at += stretch.text.len() as u64;
        self.line += u64::from(ended);
        self.first = ended;
        Ok(Some(stretch))
    }
}

/// The end of the last whole character; the end of `text` if its tail is not UTF-8.
fn boundary(text: &[u8]) -> usize {
    let tail = text.len().saturating_sub(3);
    match text[tail..].iter().rposition(|it| *it >= 0xC0) {
        Some(lead) => {
            let lead = tail + lead;
            let width = match text[lead] {
                0xF0.. => 4,
                0xE0.. => 3,
                _ => 2,
            };
            if lead + width > text.len() && lead > 0 { lead } else { text.len() }
        }
        None => text.len(),
    }
}

/// The output so far, and the tokens left for it.
struct Room<'a> {
    left: u64,
    count: &'a dyn Fn(&str) -> u64,
    out: String,
}

impl Room<'_> {
    /// Adds `text` if all of it fits.
    fn take(&mut self, text: &str) -> bool {
        let tokens = (self.count)(text);
        let fits = tokens <= self.left;
        if fits {
            self.left -= tokens;
            self.out.push_str(text);
        }
        fits
    }

    fn take_bytes(&mut self, text: &[u8]) -> bool {
        self.take(&String::from_utf8_lossy(text))
    }

    /// Adds as many whole characters of `text` as fit; at least one if there is no output yet, so that
    /// reading on always advances. Returns how many bytes of `text` that were.
    fn take_some(&mut self, text: &[u8]) -> usize {
        let (mut ends, mut at) = (Vec::new(), 0);
        for chunk in text.utf8_chunks() {
            ends.extend(chunk.valid().char_indices().map(|(start, it)| at + start + it.len_utf8()));
            at += chunk.valid().len();
            if !chunk.invalid().is_empty() {
                at += chunk.invalid().len();
                ends.push(at);
            }
        }
        let fitting =
            ends.partition_point(|end| (self.count)(&String::from_utf8_lossy(&text[..*end])) <= self.left);
        let least = usize::from(self.out.is_empty());
        let taken = fitting.max(least).checked_sub(1).and_then(|it| ends.get(it)).map_or(0, |it| *it);
        self.out.push_str(&String::from_utf8_lossy(&text[..taken]));
        self.left = 0;
        taken
    }
}

/// Reads `range` from `from`: at most `limit` tokens by `count`, but at least one character. Bytes that are
/// not UTF-8 are shown as `\u{fffd}`.
pub fn slice(
    from: &mut dyn BufRead,
    range: &Range,
    limit: u64,
    count: &dyn Fn(&str) -> u64,
) -> io::Result<Slice> {
    let mut stretches = Stretches { from, line: 1, at: 0, first: true, over: Vec::new() };
    let mut room = Room { left: limit, count, out: String::new() };
    let next = match range {
        Range::Lines { from, to } => lines(&mut stretches, *from, *to, &mut room)?,
        Range::Bytes { from, to } => bytes(&mut stretches, *from, *to, &mut room)?,
        Range::Messages { .. } => {
            let what =
                "reading a range: expected lines, bytes or a pattern; messages are read from a session";
            return Err(io::Error::other(Error::new(ErrorKind::Arguments, what)));
        }
        Range::Matching { pattern, around, from } => {
            matching(&mut stretches, pattern, *around, *from, &mut room)?
        }
    };
    Ok(Slice { text: room.out, next: next.map(|it| it.to_string()) })
}

fn lines(rest: &mut Stretches<'_>, from: u64, to: u64, room: &mut Room<'_>) -> io::Result<Option<Range>> {
    while let Some(stretch) = rest.next()? {
        if stretch.line > to {
            break;
        }
        if stretch.line < from || room.take_bytes(&stretch.text) {
            continue;
        }
        if stretch.first && !room.out.is_empty() {
            return Ok(Some(Range::Lines { from: stretch.line, to }));
        }
        let at = stretch.at + room.take_some(&stretch.text) as u64;
        // The byte at which the last line ends is known only after reading on.
        let mut end = u64::MAX;
        while to < u64::MAX
            && let Some(later) = rest.next()?
        {
            if later.line > to {
                end = later.at;
                break;
            }
        }
        return Ok((at < end).then_some(Range::Bytes { from: at, to: end }));
    }
    Ok(None)
}

fn bytes(rest: &mut Stretches<'_>, from: u64, to: u64, room: &mut Room<'_>) -> io::Result<Option<Range>> {
    while let Some(stretch) = rest.next()? {
        let end = stretch.at + stretch.text.len() as u64;
        if end <= from {
            continue;
        }
        if stretch.at >= to {
            break;
        }
        let (mut low, mut high) =
            (from.saturating_sub(stretch.at) as usize, (to.min(end) - stretch.at) as usize);
        // Widen to whole characters: at most three continuation bytes at each end.
        let inside = |at: usize| stretch.text.get(at).is_some_and(|it| it & 0xC0 == 0x80);
        for _ in 0..3 {
            low -= usize::from(low > 0 && inside(low));
            high += usize::from(inside(high));
        }
        let wanted = &stretch.text[low..high];
        if !room.take_bytes(wanted) {
            let at = stretch.at + (low + room.take_some(wanted)) as u64;
            return Ok((at < to).then_some(Range::Bytes { from: at, to }));
        }
    }
    Ok(None)
}

fn matching(
    rest: &mut Stretches<'_>,
    pattern: &Regex,
    around: u64,
    from: u64,
    room: &mut Room<'_>,
) -> io::Result<Option<Range>> {
    let again = |line| Range::Matching { pattern: pattern.clone(), around, from: line };
    let mut before: VecDeque<(u64, String)> = VecDeque::new();
    let (mut after, mut shown) = (0, None::<u64>);
    while let Some(stretch) = rest.next()? {
        // Of a long line, only the first stretch is matched and shown.
        if stretch.line < from || !stretch.first {
            continue;
        }
        let text = String::from_utf8_lossy(&stretch.text);
        let text = text.trim_end_matches(['\n', '\r']);
        let hit = pattern.is_match(text);
        if hit {
            after = around + 1;
        }
        if after == 0 {
            before.push_back((stretch.line, format!("{}-{text}\n", stretch.line)));
            if before.len() as u64 > around {
                before.pop_front();
            }
            continue;
        }
        after -= 1;
        before.push_back((stretch.line, format!("{}{}{text}\n", stretch.line, if hit { ':' } else { '-' })));
        let gap = shown.zip(before.front()).is_some_and(|(shown, (next, _))| shown + 1 < *next);
        let mut group = String::from(if gap { "--\n" } else { "" });
        group.extend(before.iter().map(|(_, text)| text.as_str()));
        if !room.take(&group) {
            if room.out.is_empty() {
                // Not even one match fits: show its beginning, and continue at the next line.
                room.take_some(group.as_bytes());
                return Ok(Some(again(stretch.line + 1)));
            }
            return Ok(Some(again(before.front().map_or(stretch.line, |(line, _)| *line))));
        }
        shown = Some(stretch.line);
        before.clear();
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn chars(text: &str) -> u64 {
        text.chars().count() as u64
    }

    fn read(text: &str, range: &str, limit: u64) -> (String, Option<String>) {
        let slice = slice(&mut text.as_bytes(), &Range::parse(range).unwrap(), limit, &chars).unwrap();
        (slice.text, slice.next)
    }

    #[test]
    fn reads_and_shows_ranges() {
        for text in ["10-40", "10-", "7-7", "b0-4096", "b5-", "/a.b/", "/a\\/b/±2", "/x/±2@120"] {
            assert_eq!(Range::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Range::parse("7").unwrap().to_string(), "7-7");
        assert_eq!(Range::parse("/x/+-3").unwrap().to_string(), "/x/±3");
        for text in [
            "",
            "0-3",
            "4-3",
            "-3",
            "b4-4",
            "b4",
            "/x",
            "//",
            "/(/",
            "/x/±101",
            "+1",
            "1-2-3",
            "é",
            "99999999999999999999",
        ] {
            assert_eq!(Range::parse(text).unwrap_err().kind(), ErrorKind::Arguments, "{text}");
        }
    }

    #[test]
    fn lines_and_how_to_read_on() {
        let text = "one\ntwo\nthree\nfour";
        assert_eq!(read(text, "2-3", 99), ("two\nthree\n".into(), None));
        assert_eq!(read(text, "3-", 99), ("three\nfour".into(), None));
        assert_eq!(read(text, "9-10", 99), (String::new(), None));
        assert_eq!(read(text, "1-3", 9), ("one\ntwo\n".into(), Some("3-3".into())));
        assert_eq!(read(text, "2-3", 2), ("tw".into(), Some("b6-14".into())));
        assert_eq!(read(text, "b6-14", 99), ("o\nthree\n".into(), None));
    }

    #[test]
    fn bytes_never_cut_a_character() {
        assert_eq!(read("aé日😀z", "b2-4", 99), ("é日".into(), None));
        assert_eq!(read("aé日😀z", "b0-", 3), ("aé日".into(), Some("b6-".into())));
        assert_eq!(read("aé", "b3-9", 99), (String::new(), None));
        assert_eq!(read("aé", "b0-", 0), ("a".into(), Some("b1-".into())));
    }

    #[test]
    fn matching_lines_with_context() {
        let text = "a\nb\nHIT\nc\nd\ne\nHIT\n";
        assert_eq!(read(text, "/HIT/", 99), ("3:HIT\n--\n7:HIT\n".into(), None));
        assert_eq!(read(text, "/HIT/±1", 99), ("2-b\n3:HIT\n4-c\n--\n6-e\n7:HIT\n".into(), None));
        assert_eq!(read(text, "/HIT/±1", 17), ("2-b\n3:HIT\n4-c\n".into(), Some("/HIT/±1@6".into())));
        assert_eq!(read(text, "/HIT/±1@6", 99), ("6-e\n7:HIT\n".into(), None));
        assert_eq!(read(text, "/nothing/", 99), (String::new(), None));
    }

    #[test]
    fn a_line_of_any_length_is_read_in_stretches() {
        let text = "日".repeat(STRETCH);
        let (mut got, mut range) = (String::new(), Some(String::from("1-1")));
        while let Some(it) = range {
            let (part, next) = read(&text, &it, 50_000);
            assert!(chars(&part) <= 50_000);
            got.push_str(&part);
            range = next;
        }
        assert!(got == text);
    }

    proptest! {
        #[test]
        fn paging_on_gives_everything(text in "[a-c\né日😀]{0,200}", limit in 1u64..40, lines in any::<bool>()) {
            let (mut got, mut range) = (String::new(), Some(String::from(if lines { "1-" } else { "b0-" })));
            while let Some(it) = range {
                let (part, next) = read(&text, &it, limit);
                prop_assert!(chars(&part) <= limit);
                got.push_str(&part);
                range = next;
            }
            prop_assert_eq!(got, text);
        }

        #[test]
        fn any_bytes_and_any_range(text in proptest::collection::vec(any::<u8>(), 0..100), from in 0u64..110, len in 1u64..50, limit in 0u64..50) {
            let range = Range::Bytes { from, to: from + len };
            let got = slice(&mut text.as_slice(), &range, limit, &chars).unwrap();
            prop_assert!(chars(&got.text) <= limit.max(1));
        }

        #[test]
        fn reading_a_range_never_panics(text in "[-0-9b/±+@a(]{0,12}") {
            let _ = Range::parse(&text);
        }
    }
}
