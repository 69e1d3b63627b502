//! The end mark: a hash in a summary's first line of where the history ended when it was made.

use crate::plan::{Reason, counts, is_work};
use history::{History, Kind, Message, Part, SUMMARY_START, Text, verbatim};

/// The end mark, from the messages behind the summary: six hex digits of the hash of the last part that is
/// not a system message's and, also in hex, the amount of text and calls in all of them. The amount tells two
/// ends apart whose last parts are equal.
pub fn end_mark(behind: &[Message]) -> Option<String> {
    Some(format!("{:06x}-{:x}", last_part(behind)?, amount(behind)))
}

/// 24 bits (six hex digits) of the hash of the last part.
fn last_part(messages: &[Message]) -> Option<u64> {
    let last = messages.iter().rev().find(|it| counts(it))?;
    let text = match last.parts.last()? {
        Part::Media(it) => &it.data,
        it => it.text()?.as_str(),
    };
    Some(twox_hash::XxHash3_64::oneshot(text.trim().as_bytes()) & 0xFF_FFFF)
}

/// Number of calls plus number of characters said, without white space: the same in every format, however it
/// splits messages.
fn amount(messages: &[Message]) -> usize {
    let said = |it: &Text| it.as_str().chars().filter(|it| !it.is_whitespace()).count();
    let work = messages.iter().filter(|it| is_work(it));
    work.map(|it| it.calls().count() + it.texts().map(said).sum::<usize>()).sum()
}

/// The end mark in the first line of a summary of ours: the hash, and the amount, which version 0.1.0 did not
/// write. Later lines are not searched, since they quote the session. `None` if the tail is text within the
/// summary itself: a message that equals its end was then sent later.
fn mark_of(summary: &Message) -> Option<(u64, Option<usize>)> {
    if verbatim::ends_in_text(summary) {
        return None;
    }
    let ours = |line: &&str| {
        // Some profiles put a name in front: `[Name] `.
        let line = line.strip_prefix('[').and_then(|it| it.split_once("] ")).map_or(*line, |it| it.1);
        line.starts_with(SUMMARY_START)
    };
    let line = summary.texts().flat_map(|it| it.as_str().lines()).find(ours)?;
    let mark = line.trim_end().strip_suffix(']')?.rsplit_once("[end ")?.1;
    match mark.split_once('-') {
        Some((part, then)) => {
            Some((u64::from_str_radix(part, 16).ok()?, Some(usize::from_str_radix(then, 16).ok()?)))
        }
        None => Some((u64::from_str_radix(mark, 16).ok()?, None)),
    }
}

/// An error if nothing was said since the last summary; in a summary of ours, the end mark tells.
pub(super) fn nothing_new(history: &History) -> Result<(), Reason> {
    let messages = history.messages();
    let Some(last) = messages.iter().rposition(|it| it.kind == Kind::Summary) else { return Ok(()) };
    let (summary, behind) = (&messages[last], &messages[last + 1..]);
    let reason = |text: &str| Err(Reason::new("nothing_to_compact", text));
    if !behind.iter().any(is_work) {
        return reason("nothing was said since the last summary");
    }
    if ends_here(summary, behind) {
        return reason("nothing was said since the last compaction: it ends with the same message");
    }
    Ok(())
}

/// Whether the messages behind a summary of ours are those that it was made with, and no more.
pub fn ends_here(summary: &Message, behind: &[Message]) -> bool {
    let (Some((part, then)), Some(end)) = (mark_of(summary), last_part(behind)) else { return false };
    part == end
        && match then {
            Some(then) => amount(behind) <= then,
            // Without an amount, times decide: a message newer than the summary was said since.
            None => {
                let newest = behind.iter().rev().find_map(|it| it.at);
                newest.zip(summary.at).is_none_or(|(newest, made)| newest <= made)
            }
        }
}

/// How many of the messages behind a summary of ours it was made with; `None` if its end is not among them.
pub fn made_with(summary: &Message, behind: &[Message]) -> Option<usize> {
    let (part, then) = mark_of(summary)?;
    let mut so_far = 0;
    let ends = behind.iter().enumerate().filter(|(_, message)| {
        let message = std::slice::from_ref(*message);
        so_far += amount(message);
        last_part(message) == Some(part) && then.is_none_or(|it| so_far <= it)
    });
    let mut ends = ends.map(|(at, _)| at + 1);
    // A mark without an amount means the first such end.
    if then.is_some() { ends.last() } else { ends.next() }
}
