//! Lines of a source, in bounded memory: one buffer, reused, as long as the longest line.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread::Builder;

use memchr::memchr;

use crate::media::SharedData;
use crate::{Keep, Note, Piece, READ_WHOLE_MAX, Record, Source};
use history::error::Result;
use history::json::BYTE_ORDER_MARK;
use history::{Part, parallel};

/// Bytes per read: few enough to be still in the L2 cache when they are looked at.
const CHUNK: usize = 256 << 10;

/// Calls `each` with every line that is not blank: its 1-based number, its place, and its bytes without line
/// break and byte order mark. A last line without a line break counts. `each` returns whether to continue.
///
/// # Errors
/// Errors of `each` and of reading `source`.
pub fn each_line(source: &dyn Source, each: impl FnMut(u64, Record, &[u8]) -> Result<bool>) -> Result<()> {
    each_line_in(source, 0..source.len(), each).map(|_| ())
}

/// [`each_line`] for the lines that begin in a range, numbered from its first one. Returns how many there
/// were, including blank ones.
///
/// # Errors
/// Errors of `each` and of reading `source`.
pub fn each_line_in(
    source: &dyn Source,
    range: Range<u64>,
    mut each: impl FnMut(u64, Record, &[u8]) -> Result<bool>,
) -> Result<u64> {
    // `buffer[done..filled]` was read but not yet passed on; it has no line break before `seen`. `base` is
    // the buffer's position in the source. A line begins after a line break, so the one before the range is
    // read too.
    let mut skipping = range.start > 0;
    let mut base = range.start.saturating_sub(1);
    let mut buffer = vec![0u8; CHUNK.min((range.end - base) as usize)];
    let (mut done, mut seen, mut filled, mut number) = (0, 0, 0, 0u64);
    loop {
        if let Some(found) = memchr(b'\n', &buffer[seen..filled]) {
            let end = seen + found;
            if skipping {
                skipping = false;
            } else {
                number += 1;
                if !give(&mut each, number, base, &buffer, done, end)? {
                    return Ok(number);
                }
            }
            (done, seen) = (end + 1, end + 1);
            if base + done as u64 >= range.end {
                return Ok(number);
            }
            continue;
        }
        let read_to = base + filled as u64;
        // No line begins in the range.
        if skipping && read_to >= range.end {
            return Ok(number);
        }
        if read_to >= source.len() {
            if done < filled {
                number += 1;
                give(&mut each, number, base, &buffer, done, filled)?;
            }
            return Ok(number);
        }
        if done > 0 {
            buffer.copy_within(done..filled, 0);
            (base, filled, done) = (base + done as u64, filled - done, 0);
        }
        seen = filled;
        // The last line may end far after the range.
        let more = if read_to < range.end {
            (CHUNK as u64).min(range.end - read_to)
        } else {
            HEAD.max(filled as u64 / 2).min(source.len() - read_to)
        };
        let more = filled + more as usize;
        if buffer.len() < more {
            buffer.resize(more, 0);
        }
        source.read_at(read_to, &mut buffer[filled..more])?;
        filled = more;
    }
}

/// Bytes at the beginning of a source that say what it is.
pub const HEAD: u64 = 64 * 1024;

/// How much of a source is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    Whole,
    /// Only what the history depends on, unless the source is small.
    History,
}

/// Bytes of the first range; later ones are larger.
const BLOCK: u64 = if cfg!(test) { 4 * 1024 } else { 512 * 1024 };

/// Reads a source from its end to its beginning, on all cores: `look` reads the lines that begin in a range,
/// `take` gets its result and where the range begins, the last range first, and returns whether to continue.
/// Returns how far it got; `look` may have read a little more.
///
/// # Errors
/// Errors of `look`.
pub fn backwards<T: Send>(
    source: &dyn Source,
    look: impl Fn(Range<u64>) -> Result<T> + Sync,
    mut take: impl FnMut(T, u64) -> bool,
) -> Result<u64> {
    let len = source.len();
    let cores = len.div_ceil(BLOCK).min(parallel::threads() as u64);
    // The end of what no thread has taken yet. Ranges are in proportion to what was needed so far, so that
    // little is read in vain.
    let rest = AtomicU64::new(len);
    let claim = || {
        let begin = |end: u64| end.saturating_sub(((len - end) / 4).clamp(BLOCK, 16 * BLOCK));
        let end = rest.fetch_update(Relaxed, Relaxed, |it| (it > 0).then(|| begin(it))).ok()?;
        Some(begin(end)..end)
    };
    let look_at = |range: Range<u64>| (range.end, range.start, look(range));
    std::thread::scope(|scope| {
        // Bounded, so that a thread a few ranges ahead waits: what it would read next may not be needed.
        let (send, found) = mpsc::sync_channel(1);
        for _ in 1..cores {
            let (send, claim, look_at) = (send.clone(), &claim, &look_at);
            let work = move || while claim().is_some_and(|it| send.send(look_at(it)).is_ok()) {};
            // If the system gives no thread, the others do it all.
            if Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        drop(send);
        let mut from = len;
        let mut waiting = BTreeMap::new();
        // This thread reads too; when there is nothing left, it waits for the others.
        while from > 0
            && let Some((end, start, it)) = claim().map(look_at).or_else(|| found.recv().ok())
        {
            waiting.insert(end, (start, it));
            waiting.extend(found.try_iter().map(|(end, start, it)| (end, (start, it))));
            while let Some((start, it)) = waiting.remove(&from) {
                from = start;
                if !it.map(|it| take(it, start)).inspect_err(|_| rest.store(0, Relaxed))? {
                    rest.store(0, Relaxed);
                    return Ok(from);
                }
            }
        }
        Ok(from)
    })
}

/// What is known of the lines of a session that begin in a range.
pub(crate) trait Stretch: Sized + Send {
    /// Reads the lines that begin in a range; with `keep` also their contents, as it leaves them.
    fn within(source: &dyn Source, range: Range<u64>, keep: Option<&Keep>) -> Result<Self>;

    /// The contents of its lines, as far as they were read.
    fn parts(&mut self) -> impl Iterator<Item = &mut Part>;

    /// Whether it has a compaction that a resume may begin with: the contents of earlier lines are likely not
    /// needed.
    fn has_base(&self) -> bool;

    /// Whether no earlier line can change the history, or anything else that is read of a session.
    fn is_enough(&self) -> bool;

    /// Joins stretches of one session, which come last one first.
    fn joined(parts: Vec<Self>) -> Self;

    fn notes(&self) -> &[Note];

    /// What the beginning of a session adds to a stretch that is enough; `lines`: how many come before that
    /// stretch. None if the session must be read whole.
    fn into_head(self, lines: u64) -> Option<Self>;
}

/// Reads the lines of a session from the last one backwards, on all cores: all of them, or only until
/// [`Stretch::is_enough`], and the first ones. Contents are read as far back as a base, without `keep` none.
///
/// # Errors
/// Errors of [`Stretch::within`].
pub(crate) fn read<T: Stretch>(source: &dyn Source, keep: Option<&Keep>, coverage: Coverage) -> Result<T> {
    let mut parts: Vec<T> = Vec::new();
    let based = AtomicBool::new(false);
    let all = coverage == Coverage::Whole || source.len() <= READ_WHOLE_MAX;
    let look = |range| T::within(source, range, keep.filter(|_| !based.load(Relaxed)));
    // Where `is_enough` was last asked; it is asked again when a quarter more was read.
    let mut asked = source.len();
    let mut data = SharedData::default();
    let from = backwards(source, look, |mut part: T, from| {
        let behind = source.len() - from;
        based.fetch_or(part.has_base(), Relaxed);
        data.share(part.parts());
        parts.push(part);
        if all || !based.load(Relaxed) || (source.len() - asked) * 5 > behind * 4 {
            return true;
        }
        asked = from;
        parts = vec![T::joined(std::mem::take(&mut parts))];
        !parts[0].is_enough()
    })?;
    if from > 0 {
        let head = T::within(source, 0..HEAD.min(from), None)?;
        // Only notes need the line numbers.
        let has_notes = parts.iter().any(|it| !it.notes().is_empty());
        let lines = if has_notes { each_line_in(source, 0..from, |_, _, _| Ok(true))? } else { 0 };
        match head.into_head(lines) {
            Some(head) => parts.push(head),
            None => return read(source, keep, Coverage::Whole),
        }
    }
    Ok(T::joined(parts))
}

/// A source with lines appended, after a line break if its last line has none.
///
/// # Errors
/// Errors of [`Source::read_at`].
pub(crate) fn appended(source: &dyn Source, lines: &str) -> Result<Vec<Piece>> {
    let len = source.len();
    let is_whole = len == 0 || source.bytes(len - 1..len)? == b"\n";
    let new = if is_whole { lines.to_owned() } else { format!("\n{lines}") };
    Ok(vec![Piece::Keep(0..len), Piece::New(new.into_bytes())])
}

fn give(
    each: &mut impl FnMut(u64, Record, &[u8]) -> Result<bool>,
    number: u64,
    base: u64,
    buffer: &[u8],
    mut from: usize,
    mut to: usize,
) -> Result<bool> {
    if base == 0 && from == 0 && buffer.starts_with(BYTE_ORDER_MARK.as_bytes()) {
        from = BYTE_ORDER_MARK.len();
    }
    while to > from && buffer[to - 1].is_ascii_whitespace() {
        to -= 1;
    }
    while from < to && buffer[from].is_ascii_whitespace() {
        from += 1;
    }
    if from == to {
        return Ok(true);
    }
    each(number, Record { at: base + from as u64, len: (to - from) as u64 }, &buffer[from..to])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemorySource;

    #[test]
    fn every_line_is_in_one_range() {
        let text: String = (0..500).map(|it| format!("{}{it}\n", "y".repeat(it * 7 % 90))).collect();
        let text = format!("{text}\n\nlast");
        let source = MemorySource::new("t", text.as_bytes());
        let lines = |range: Range<u64>| {
            let mut out = Vec::new();
            let count = each_line_in(&source, range, |_, record, _| {
                out.push(record);
                Ok(true)
            });
            (out, count.unwrap())
        };
        let (all, count) = lines(0..source.len());
        assert_eq!((all.len(), count), (501, 503));
        for size in [1, 2, 7, 64, 1_000, 100_000] {
            let starts = (0..source.len()).step_by(size as usize);
            let parts: Vec<_> = starts.map(|it| lines(it..(it + size).min(source.len()))).collect();
            let joined: Vec<_> = parts.iter().flat_map(|it| it.0.clone()).collect();
            assert_eq!(joined, all, "{size}");
            assert_eq!(parts.iter().map(|it| it.1).sum::<u64>(), count, "{size}");
        }
    }

    #[test]
    fn goes_backwards_as_far_as_it_must() {
        let text = "0123456789abcde\n".repeat(400_000);
        let source = MemorySource::new("t", text.as_bytes());
        let count = |range| each_line_in(&source, range, |_, _, _| Ok(true));
        let mut sum = 0;
        let mut take = |most: u64| {
            sum = 0;
            backwards(&source, count, |it, _| {
                sum += it;
                sum < most
            })
            .map(|it| (it, sum))
            .unwrap()
        };
        assert_eq!(take(u64::MAX), (0, 400_000));
        let (from, lines) = take(1);
        assert_eq!((source.len() - from, lines), (BLOCK, BLOCK / 16));
    }

    #[test]
    fn gives_lines_and_places() {
        let long = "x".repeat(3 * CHUNK / 2);
        let text = format!("\u{feff}one\r\n\n  two \n{long}\n{long}\nlast");
        let source = MemorySource::new("t", text.as_bytes());
        let mut out = Vec::new();
        each_line(&source, |number, record, bytes| {
            assert_eq!(source.bytes(record.range()).unwrap(), bytes);
            out.push((number, bytes.len()));
            Ok(true)
        })
        .unwrap();
        assert_eq!(out, [(1, 3), (3, 3), (4, long.len()), (5, long.len()), (6, 4)]);
    }
}
