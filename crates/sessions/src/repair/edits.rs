//! A source with edits applied.

use std::fmt;
use std::ops::Range;

use crate::{Piece, Source};
use history::error::{Error, ErrorKind, Result};

/// A source as it reads with edits applied. Only new bytes are in memory.
pub struct Mended<'a> {
    source: &'a dyn Source,
    pieces: Vec<Piece>,
    /// Where each piece begins.
    starts: Vec<u64>,
    len: u64,
}

impl fmt::Debug for Mended<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mended({}, {} pieces)", self.source.name(), self.pieces.len())
    }
}

impl<'a> Mended<'a> {
    /// A range of a source, as a source.
    pub fn part(source: &'a dyn Source, range: Range<u64>) -> Self {
        Self::of(source, vec![Piece::Keep(range)])
    }

    pub(crate) fn of(source: &'a dyn Source, pieces: Vec<Piece>) -> Self {
        let mut len = 0;
        let mut starts = Vec::with_capacity(pieces.len());
        for piece in &pieces {
            starts.push(len);
            len += size(piece);
        }
        Self { source, pieces, starts, len }
    }

    /// Applies more edits: ranges of it as it reads now, and their replacements. Of edits that overlap the
    /// first counts.
    pub(crate) fn edited(self, mut edits: Vec<(Range<u64>, Vec<u8>)>) -> Self {
        if edits.is_empty() {
            return self;
        }
        edits.sort_by_key(|it| (it.0.start, it.0.end));
        let mut out = Vec::with_capacity(self.pieces.len() + 2 * edits.len());
        let (mut at, mut piece) = (0, 0);
        for (range, new) in edits {
            if range.start < at {
                continue;
            }
            self.copy(at..range.start, &mut piece, &mut out);
            if !new.is_empty() {
                out.push(Piece::New(new));
            }
            at = range.end;
        }
        self.copy(at..self.len, &mut piece, &mut out);
        Self::of(self.source, out)
    }

    pub(crate) fn into_pieces(self) -> Vec<Piece> {
        self.pieces
    }

    /// Adds the pieces of a range. `from` is a piece that begins no later than the range, and advances.
    fn copy(&self, range: Range<u64>, from: &mut usize, out: &mut Vec<Piece>) {
        let mut at = range.start;
        while at < range.end {
            let (Some(piece), Some(start)) = (self.pieces.get(*from), self.starts.get(*from)) else { return };
            let end = start + size(piece);
            if end <= at {
                *from += 1;
                continue;
            }
            let inner = at - start..range.end.min(end) - start;
            match (piece, out.last_mut()) {
                (Piece::Keep(it), Some(Piece::Keep(last))) if last.end == it.start + inner.start => {
                    last.end = it.start + inner.end;
                }
                (Piece::Keep(it), _) => out.push(Piece::Keep(it.start + inner.start..it.start + inner.end)),
                (Piece::New(it), _) => {
                    out.push(Piece::New(it[inner.start as usize..inner.end as usize].to_vec()));
                }
            }
            at = start + inner.end;
        }
    }

    /// The position in the source of the byte at `at`; for a new byte, where the source continues.
    pub(super) fn origin(&self, at: u64) -> u64 {
        let first = self.starts.partition_point(|it| *it <= at).saturating_sub(1);
        let mut inside = self.starts.get(first).map_or(0, |it| at - it);
        for piece in self.pieces.get(first..).unwrap_or_default() {
            if let Piece::Keep(range) = piece {
                return (range.start + inside).min(range.end);
            }
            inside = 0;
        }
        self.source.len()
    }
}

fn size(piece: &Piece) -> u64 {
    match piece {
        Piece::Keep(range) => range.end - range.start,
        Piece::New(bytes) => bytes.len() as u64,
    }
}

impl Source for Mended<'_> {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
        let first = self.starts.partition_point(|it| *it <= at).saturating_sub(1);
        let mut filled = 0;
        for (piece, start) in self.pieces.iter().zip(&self.starts).skip(first) {
            if filled == buffer.len() {
                break;
            }
            let inside = at + filled as u64 - start;
            let many = ((size(piece) - inside) as usize).min(buffer.len() - filled);
            let part = &mut buffer[filled..filled + many];
            match piece {
                Piece::Keep(range) => self.source.read_at(range.start + inside, part)?,
                Piece::New(bytes) => part.copy_from_slice(&bytes[inside as usize..inside as usize + many]),
            }
            filled += many;
        }
        if filled < buffer.len() {
            let what = format!("expected {} bytes at {at}, found fewer", buffer.len());
            return Err(Error::new(ErrorKind::Changed, what).at(self.name(), None));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemorySource;

    #[test]
    fn edits_upon_edits() {
        let source = MemorySource::new("t", b"0123456789".as_slice());
        let text = |it: &Mended| String::from_utf8(it.whole().unwrap()).unwrap();
        let edit = |range: Range<u64>, new: &str| (range, new.as_bytes().to_vec());
        let whole = Mended::part(&source, 0..source.len()).edited(vec![]);
        assert_eq!(text(&whole), "0123456789");
        let once = whole.edited(vec![edit(7..8, ""), edit(2..4, "abc"), edit(0..0, "<"), edit(3..5, "lost")]);
        assert_eq!(text(&once), "<01abc45689");
        assert_eq!([0, 1, 3, 4, 6, 9].map(|it| once.origin(it)), [0, 0, 4, 4, 4, 8]);
        let twice = once.edited(vec![edit(2..5, "X"), edit(11..11, ">")]);
        assert_eq!(text(&twice), "<0Xc45689>");
        let all = text(&twice);
        for from in 0..all.len() {
            for to in from..=all.len() {
                assert_eq!(twice.bytes(from as u64..to as u64).unwrap(), &all.as_bytes()[from..to]);
            }
        }
        assert!(twice.bytes(5..11).is_err());
    }
}
