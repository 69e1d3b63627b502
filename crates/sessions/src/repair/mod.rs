//! What is wrong with a session, and the smallest edits that mend it.
//!
//! A session goes through the stages of its format, each on what the one before left: broken lines first,
//! then the chain of records, then their content. A stage reads record by record and keeps what it must know
//! of the others (hashes of ids, open calls), never their texts; its edits are byte ranges. So a file of any
//! size is mended in memory that grows only with its number of records and damages, and what is not damaged
//! keeps its bytes.

mod damage;
mod document;
mod edits;
mod lines;
pub(crate) mod media;
pub(crate) mod pairs;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::BuildHasher as _;
use std::ops::Range;

use super::{Format, Piece, Record, Source};
use crate::media::is_base64;
use crate::parse::raw::{Fields, list, place, text};
use history::error::{Error, ErrorKind, Result};
use history::json;

pub use damage::Damage;
pub(crate) use document::document;
pub use edits::Mended;
pub(crate) use lines::{lines, whole_line};

/// Maximum findings of one kind that are described; further ones are only counted.
const DESCRIBED: u64 = 100;

/// Searches a whole session for one kind of damage.
pub(crate) type Stage = fn(&dyn Source, &mut Findings<'_>) -> Result<()>;

/// Gives the handle under which bytes are archived, for a note that replaces them.
pub type HandleOf<'a> = dyn Fn(&[u8]) -> String + 'a;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub damage: Damage,
    /// 1-based line of the file as it was.
    pub line: u64,
    pub detail: String,
}

/// What was found in a session, and how it is mended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// In file order.
    pub findings: Vec<Finding>,
    /// How often each kind was found: not all are described in `findings`.
    pub counts: BTreeMap<Damage, u64>,
    /// The ranges of the source that notes replace.
    pub archived: Vec<Range<u64>>,
    /// The session without damage.
    pieces: Vec<Piece>,
    /// Whether `pieces` differ from the source.
    is_needed: bool,
}

impl Repair {
    /// Whether anything would be written.
    pub fn is_needed(&self) -> bool {
        self.is_needed
    }

    /// The session without damage: the same bytes if there is none.
    pub fn mended<'a>(&self, source: &'a dyn Source) -> Mended<'a> {
        Mended::of(source, self.pieces.clone())
    }
}

pub(crate) struct Findings<'a> {
    handle_of: &'a HandleOf<'a>,
    edits: Vec<(Range<u64>, Vec<u8>)>,
    findings: Vec<(u64, Damage, String)>,
    counts: BTreeMap<Damage, u64>,
    archived: Vec<Range<u64>>,
}

impl Findings<'_> {
    /// Notes a damage at a byte of the source.
    pub(crate) fn note(&mut self, damage: Damage, at: u64, detail: impl Into<String>) {
        let count = self.counts.entry(damage).or_default();
        *count += 1;
        if *count <= DESCRIBED {
            self.findings.push((at, damage, detail.into()));
        }
    }

    /// Notes and removes the byte order mark of a file that begins with these bytes.
    pub(crate) fn byte_order_mark(&mut self, beginning: &[u8]) {
        if beginning.starts_with(json::BYTE_ORDER_MARK.as_bytes()) {
            self.note(Damage::ByteOrderMark, 0, "the file begins with EF BB BF");
            self.replace(0..3, "");
        }
    }

    /// Replaces a range by `new`; an empty range is a place to insert it.
    pub(crate) fn replace(&mut self, range: Range<u64>, new: impl Into<Vec<u8>>) {
        let new = new.into();
        // Adjacent removals are merged: a file may be broken line after line.
        match self.edits.last_mut() {
            Some((last, with)) if with.is_empty() && new.is_empty() && last.end == range.start => {
                last.end = range.end;
            }
            _ => self.edits.push((range, new)),
        }
    }

    /// Sets a field that the object has; a missing one stays missing.
    pub(crate) fn set(&mut self, at: &At<'_>, object: &Fields<'_>, key: &str, new: impl Into<Vec<u8>>) {
        if let Some(raw) = object.get(key) {
            self.replace(at.range(raw), new);
        }
    }

    /// Sets a field of the object with the JSON `raw`; a missing one is added first.
    pub(crate) fn put(&mut self, at: &At<'_>, raw: &str, object: &Fields<'_>, key: &str, new: &str) {
        match object.iter().filter(|it| it.0 == key).last() {
            Some((_, old)) => self.replace(at.range(old), new),
            None => {
                let begin = at.range(raw).start + 1;
                self.replace(begin..begin, format!("\"{key}\":{new},"));
            }
        }
    }

    /// Removes elements from a list; if none is left, it gets `instead`.
    pub(crate) fn remove(
        &mut self,
        at: &At<'_>,
        elements: &[&str],
        gone: &BTreeSet<usize>,
        instead: impl Into<Vec<u8>>,
    ) {
        let places: Vec<_> = elements.iter().map(|it| at.range(it)).collect();
        match (pairs::removals(&places, gone), places.first().zip(places.last())) {
            (Some(ranges), _) => ranges.into_iter().for_each(|it| self.replace(it, "")),
            (None, Some((first, last))) => self.replace(first.start..last.end, instead),
            (None, None) => {}
        }
    }

    /// The handle of data that a note replaces; this data is to be archived.
    pub(crate) fn archive(&mut self, data: &str, range: Range<u64>) -> String {
        self.archived.push(range);
        (self.handle_of)(data.as_bytes())
    }
}

/// A record with its text, to find the places of slices of that text.
pub(crate) struct At<'a> {
    pub(crate) record: Record,
    pub(crate) text: &'a str,
}

impl At<'_> {
    /// The range of a slice of the text in the source.
    pub(crate) fn range(&self, part: &str) -> Range<u64> {
        let at = place(self.text, part).unwrap_or(0..0);
        self.record.at + at.start as u64..self.record.at + at.end as u64
    }
}

/// The hash of an id or text, for tables that store no texts.
pub(crate) fn hash(text: &[u8]) -> u64 {
    foldhash::fast::FixedState::default().hash_one(text)
}

/// Finds what is wrong with a session of this format, and mends it. `handle_of` gives the handles for notes.
///
/// # Errors
/// [`ErrorKind::Arguments`] for a format whose sessions are not repaired; errors of [`Source::read_at`].
pub fn repair(source: &dyn Source, format: Format, handle_of: &HandleOf<'_>) -> Result<Repair> {
    if format.0.repair.is_empty() {
        let what = format!("repair does not support the format {}", format.name());
        return Err(Error::new(ErrorKind::Arguments, what));
    }
    let mut mended = Mended::part(source, 0..source.len());
    let (mut findings, mut counts, mut archived) = (Vec::new(), BTreeMap::new(), Vec::new());
    for stage in format.0.repair {
        let mut found = Findings {
            handle_of,
            edits: Vec::new(),
            findings: Vec::new(),
            counts: BTreeMap::new(),
            archived: Vec::new(),
        };
        stage(&mended, &mut found)?;
        findings
            .extend(found.findings.into_iter().map(|(at, damage, what)| (mended.origin(at), damage, what)));
        for (damage, count) in found.counts {
            *counts.entry(damage).or_default() += count;
        }
        archived.extend(found.archived.into_iter().map(|it| mended.origin(it.start)..mended.origin(it.end)));
        mended = mended.edited(found.edits);
    }
    findings.sort_by_key(|it| it.0);
    let pieces = mended.into_pieces();
    let is_needed = pieces != [Piece::Keep(0..source.len())] && !source.is_empty();
    Ok(Repair { findings: numbered(source, findings)?, counts, archived, pieces, is_needed })
}

/// Adds line numbers to findings, which are in order of position.
fn numbered(source: &dyn Source, findings: Vec<(u64, Damage, String)>) -> Result<Vec<Finding>> {
    const BLOCK: u64 = 1 << 20;
    let (mut at, mut line, mut block, mut begin) = (0, 1, Vec::new(), 0);
    let mut out = Vec::with_capacity(findings.len());
    for (to, damage, detail) in findings {
        while at < to.min(source.len()) {
            if at >= begin + block.len() as u64 {
                begin = at;
                block = source.bytes(at..source.len().min(at + BLOCK))?;
            }
            let end = to.min(begin + block.len() as u64);
            let seen = &block[(at - begin) as usize..(end - begin) as usize];
            line += memchr::memchr_iter(b'\n', seen).count() as u64;
            at = end;
        }
        out.push(Finding { damage, line, detail });
    }
    Ok(out)
}

/// A tool's name, with `_` for each character that an API does not accept.
pub(crate) fn plain_name(name: &str, max: usize) -> String {
    let plain = |it: char| if it.is_ascii_alphanumeric() || it == '-' { it } else { '_' };
    let name: String = name.chars().map(plain).take(max).collect();
    if name.is_empty() { "tool".to_owned() } else { name }
}

/// Whether a signature or encrypted thought was damaged, so that it is not base64.
pub(crate) fn is_spoilt(signature: &str) -> bool {
    !signature.is_empty() && !is_base64(signature)
}

/// The JSON of arguments as an object: the object inside a string, or an object with the arguments as
/// `value`.
pub(crate) fn object_of(raw: &str) -> String {
    let inner = text(raw).filter(|it| Fields::of(it.trim()).is_some());
    inner.map_or_else(|| format!("{{\"value\":{raw}}}"), |it| it.trim().to_owned())
}

/// The text of a content: a string, or the texts of a list of blocks.
pub(crate) fn plain_text(content: &str) -> String {
    let of_block = |raw: &str| text(raw).or_else(|| Fields::of(raw)?.text("text"));
    text(content).unwrap_or_else(|| {
        let blocks = list(content).unwrap_or_default();
        blocks.into_iter().filter_map(of_block).collect::<Vec<_>>().join("\n")
    })
}

/// A result whose call is missing, as a text.
pub(crate) fn orphan_text(result: &str) -> String {
    format!("[Result of a tool call that is not in this session]\n{result}")
}

/// Replaces an empty text.
pub(crate) const EMPTY: &str = "(empty)";

/// The tool of a call that is made for a result without one.
pub(crate) const LOST_TOOL: &str = "unknown_tool";

/// The answer to a call without a result.
pub(crate) const NO_RESULT: &str = "[No result: the session was damaged or ended before the tool did.]";
