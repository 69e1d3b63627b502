//! Outputs and prompts that are kept, with their middle cut out so that they fit.

pub(super) mod answer;

use crate::plan::draft::{Draft, Replacement, Segment, number, total_of};
use crate::plan::outputs::{ends, thousands};
use crate::plan::{Op, OutputOp};
use history::{Kind, Message, Part, Role, Text};

/// Shortens the outputs of the items from `start` on until these items fit into `room` tokens, if possible.
pub(super) fn squeeze(draft: &mut Draft<'_>, start: usize, room: u64) {
    let total = total_of(draft, start..draft.items.len());
    let mut places: Vec<((usize, usize), u64)> = Vec::new();
    for item in &draft.items[start..] {
        let Segment::Old(index) = item else { continue };
        for (part, it) in draft.history.messages()[*index].parts.iter().enumerate() {
            if let Part::Output(output) = it {
                places.push(((*index, part), draft.counter.text(&output.text)));
            }
        }
    }
    let outputs: u64 = places.iter().map(|it| it.1).sum();
    let Some(mut allowed) = room.checked_sub(total.saturating_sub(outputs)) else { return };
    // Smallest first: what a small output leaves of its share goes to the larger ones.
    places.sort_by_key(|it| (it.1, it.0));
    let count = places.len() as u64;
    for (done, (at, tokens)) in places.into_iter().enumerate() {
        let share = allowed / (count - done as u64);
        if tokens > share {
            shorten_output(draft, at, tokens, share);
        }
        allowed = allowed.saturating_sub(tokens.min(share));
    }
}

/// Shortens one output to about `share` tokens, including the note that says so.
fn shorten_output(draft: &mut Draft<'_>, at: (usize, usize), tokens: u64, share: u64) {
    /// Tokens of that note.
    const NOTE: u64 = 40;
    let Some(output) = draft.output(at.0, at.1) else { return };
    let (original, recall) = (output.text.as_str(), draft.request.recall);
    let chars = output.text.size().chars as usize;
    let mut keep = (chars as u64 * share.saturating_sub(NOTE) / tokens.max(1)) as usize;
    // The characters at the ends may cost more tokens than the average, so shrink until it fits.
    for _ in 0..6 {
        let Some((first, last, omitted)) = ends(original, keep, 0.5) else { return };
        let text = |handle: &str| {
            let recall = recall.replace("{handle}", handle);
            format!("{first}\n[… {} characters left out; whole: {recall}]\n{last}", thousands(omitted))
        };
        let size = draft.counter.text(&Text::new(text("0000000000").as_str()));
        if size <= share || keep == 0 {
            let why = format!("{tokens} tokens in one output; {share} fit");
            draft.replaced.remove(&at);
            draft.replace(at, Replacement::Shorten, &why, text);
            return;
        }
        keep = (keep as u64 * share * 9 / (size * 10).max(1)) as usize;
    }
}

/// The message at a position with its text cut in the middle to about `tokens`.
pub(super) fn shortened(draft: &mut Draft<'_>, at: usize, tokens: u64) -> Segment {
    let Some(message) = draft.message(&draft.items[at]) else { return draft.items[at].clone() };
    let plain = message.plain();
    let size = draft.counter.text(&Text::new(plain.as_str()));
    let keep = (plain.chars().count() as u64 * tokens.saturating_sub(40) / size.max(1)) as usize;
    let handle = (draft.request.handle)(&plain);
    let recall = draft.request.recall.replace("{handle}", &handle);
    let text = ends(&plain, keep, 0.6).map(|(first, last, omitted)| {
        // What a pasted log says went wrong often stands in its middle.
        let middle = &plain[first.len()..plain.len() - last.len()];
        let errors = listed((draft.request.error_lines)(middle), keep / 4);
        let taken = errors.chars().count();
        let (first, last, omitted) = ends(&plain, keep - taken, 0.6).unwrap_or((first, last, omitted));
        let note = if errors.is_empty() { "" } else { "; its errors:" };
        format!(
            "{first}\n[… {} characters left out; whole: {recall}{note}]\n{errors}{last}",
            thousands(omitted)
        )
    });
    let text = text.unwrap_or(plain);
    let after = draft.counter.text(&Text::new(text.as_str()));
    if let Some(message) = number(draft, at) {
        draft.message_ops.push(of_message(
            message,
            (size, after),
            text.clone(),
            handle,
            format!("the last prompt alone has {size} tokens; {tokens} fit"),
        ));
    }
    Segment::Made(Message::text(Role::User, Kind::Said, text))
}

/// The lines that fit into `most` characters, one below the other.
fn listed<'t>(lines: impl IntoIterator<Item = &'t str>, most: usize) -> String {
    let mut out = String::new();
    for line in lines {
        if out.chars().count() + line.chars().count() < most {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// The op for a message whose whole text was shortened. `tokens`: before and after.
fn of_message(message: usize, tokens: (u64, u64), text: String, handle: String, why: String) -> Op {
    let (tokens_before, tokens_after) = tokens;
    let (call_id, tool) = (String::new(), String::new());
    Op::Shorten(OutputOp { message, part: 0, call_id, tool, tokens_before, tokens_after, text, handle, why })
}
