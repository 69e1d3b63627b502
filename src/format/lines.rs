//! Lines of a source, in bounded memory: one buffer, reused, as long as the longest line.

use memchr::memchr;

use super::{Record, Source};
use crate::error::Result;

const CHUNK: usize = 1 << 20;

/// Calls `each` with every line that is not blank: its 1-based number, where it stands, and its bytes without line
/// break and without a byte order mark. A last line without a line break counts. `each` returns whether to go on.
pub fn each_line(
    source: &dyn Source,
    mut each: impl FnMut(u64, Record, &[u8]) -> Result<bool>,
) -> Result<()> {
    let mut buffer: Vec<u8> = Vec::with_capacity(CHUNK.min(source.len() as usize));
    // `buffer` holds the source from `base`; its first `done` bytes have been given out, `seen` searched.
    let (mut base, mut done, mut seen, mut number) = (0u64, 0usize, 0usize, 0u64);
    loop {
        if let Some(found) = memchr(b'\n', &buffer[seen..]) {
            let end = seen + found;
            number += 1;
            if !give(&mut each, number, base, &buffer, done, end)? {
                return Ok(());
            }
            (done, seen) = (end + 1, end + 1);
            continue;
        }
        seen = buffer.len();
        let read_to = base + buffer.len() as u64;
        if read_to >= source.len() {
            if done < buffer.len() {
                give(&mut each, number + 1, base, &buffer, done, buffer.len())?;
            }
            return Ok(());
        }
        buffer.drain(..done);
        (base, seen, done) = (base + done as u64, seen - done, 0);
        let more = (CHUNK as u64).min(source.len() - read_to) as usize;
        let old = buffer.len();
        buffer.resize(old + more, 0);
        source.read_at(read_to, &mut buffer[old..])?;
    }
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
