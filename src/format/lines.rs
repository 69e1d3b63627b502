//! Lines of a source, in bounded memory: one buffer, reused, as long as the longest line.

use std::ops::Range;

use memchr::memchr;

use super::{Record, Source};
use crate::error::Result;

const CHUNK: usize = 1 << 20;

/// Calls `each` with every line that is not blank: its 1-based number, where it stands, and its bytes without line
/// break and without a byte order mark. A last line without a line break counts. `each` returns whether to go on.
pub fn each_line(source: &dyn Source, each: impl FnMut(u64, Record, &[u8]) -> Result<bool>) -> Result<()> {
    each_line_in(source, 0..source.len(), each).map(|_| ())
}

/// The same for the lines that begin in a range, numbered from its first; how many there were, blank ones too.
pub fn each_line_in(
    source: &dyn Source,
    range: Range<u64>,
    mut each: impl FnMut(u64, Record, &[u8]) -> Result<bool>,
) -> Result<u64> {
    let mut buffer: Vec<u8> = Vec::with_capacity(CHUNK.min((range.end - range.start) as usize));
    // `buffer` holds the source from `base`; its first `done` bytes have been given out, `seen` searched. A line begins
    // behind a line break, so the one in front of the range is looked at too.
    let mut skipping = range.start > 0;
    let (mut base, mut done, mut seen, mut number) = (range.start.saturating_sub(1), 0usize, 0usize, 0u64);
    loop {
        if let Some(found) = memchr(b'\n', &buffer[seen..]) {
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
        seen = buffer.len();
        let read_to = base + buffer.len() as u64;
        // No line begins here; or the last one ends with the source.
        if skipping && read_to >= range.end {
            return Ok(number);
        }
        if read_to >= source.len() {
            if done < buffer.len() {
                number += 1;
                give(&mut each, number, base, &buffer, done, buffer.len())?;
            }
            return Ok(number);
        }
        buffer.drain(..done);
        (base, seen, done) = (base + done as u64, seen - done, 0);
        // The last line may end far behind the range.
        let more = if read_to < range.end {
            (CHUNK as u64).min(range.end - read_to)
        } else {
            HEAD.max(buffer.len() as u64 / 2).min(source.len() - read_to)
        } as usize;
        let old = buffer.len();
        buffer.resize(old + more, 0);
        source.read_at(read_to, &mut buffer[old..])?;
    }
}

/// The beginning of a source, in which it says what it is.
pub const HEAD: u64 = 64 * 1024;

/// How much is looked at first; later more at once.
const BLOCK: u64 = if cfg!(test) { 4 * 1024 } else { 512 * 1024 };

/// Goes through a source from its end to its beginning, on all cores: `look` makes something of the lines that begin in
/// a range, `take` is given that, the last range first, and says whether to go on. How far it got.
pub fn backwards<T: Send>(
    source: &dyn Source,
    look: impl Fn(Range<u64>) -> Result<T> + Sync,
    mut take: impl FnMut(T) -> bool,
) -> Result<u64> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    let mut from = source.len();
    while from > 0 {
        // In proportion to what was needed so far, so that little is looked at in vain.
        let size = ((source.len() - from) / 4).clamp(BLOCK, 16 * BLOCK);
        let mut ranges = Vec::with_capacity(cores);
        let mut start = from;
        while start > 0 && ranges.len() < cores {
            ranges.push(start.saturating_sub(size)..start);
            start = start.saturating_sub(size);
        }
        let found: Vec<Result<T>> = std::thread::scope(|scope| {
            let look = &look;
            let (mine, others) = ranges.split_at(1);
            let others: Vec<_> = others
                .iter()
                .map(|it| {
                    scope.spawn({
                        let it = it.clone();
                        move || look(it)
                    })
                })
                .collect();
            let mut found: Vec<Result<T>> = mine.iter().map(|it| look(it.clone())).collect();
            found.extend(others.into_iter().map(|it| match it.join() {
                Ok(it) => it,
                Err(panic) => std::panic::resume_unwind(panic),
            }));
            found
        });
        for (it, range) in found.into_iter().zip(ranges) {
            from = range.start;
            if !take(it?) {
                return Ok(from);
            }
        }
    }
    Ok(from)
}

fn give(
    each: &mut impl FnMut(u64, Record, &[u8]) -> Result<bool>,
    number: u64,
    base: u64,
    buffer: &[u8],
    mut from: usize,
    mut to: usize,
) -> Result<bool> {
    if base == 0 && from == 0 && buffer.starts_with(b"\xEF\xBB\xBF") {
        from = 3;
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
    use crate::format::Memory;

    #[test]
    fn every_line_is_in_one_range() {
        let text: String = (0..500).map(|it| format!("{}{it}\n", "y".repeat(it * 7 % 90))).collect();
        let text = format!("{text}\n\nlast");
        let source = Memory::new("t", text.as_bytes());
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
        let source = Memory::new("t", text.as_bytes());
        let count = |range| each_line_in(&source, range, |_, _, _| Ok(true));
        let mut sum = 0;
        let mut take = |most: u64| {
            sum = 0;
            backwards(&source, count, |it| {
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
        let source = Memory::new("t", text.as_bytes());
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
