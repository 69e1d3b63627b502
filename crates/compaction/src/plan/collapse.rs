//! Replaces finished turns with one line each, and makes the text that is archived for them.

use super::draft::{Draft, Segment, is_boundary, number};
use super::{Op, Reason};
use crate::profile::Collapse;
use history::{Kind, Message, Part, Role};

/// Maximum characters of the prompt that are quoted in the line.
const WORDS: usize = 120;

/// Runs the pass. `Err` says why no turn was collapsed.
pub(super) fn run(draft: &mut Draft<'_>, step: &Collapse) -> Result<(), Reason> {
    let starts: Vec<usize> = (0..draft.items.len())
        .filter(|at| draft.message(&draft.items[*at]).is_some_and(Message::is_prompt))
        .filter(|at| is_boundary(draft, *at))
        .collect();
    let finished = starts.len().saturating_sub(step.keep_turns);
    let mut lines = Vec::new();
    for turn in 0..finished {
        let (from, to) = (starts[turn], starts.get(turn + 1).copied().unwrap_or(draft.items.len()));
        let (Some(first), Some(last)) = (number(draft, from), number(draft, to - 1)) else { continue };
        let tokens: u64 = draft.items[from..to].iter().map(|it| draft.size(it)).sum();
        let messages = &draft.history.messages()[first..=last];
        let handle = (draft.request.handle)(&transcript(messages));
        let prompt = messages.first().map(Message::plain).unwrap_or_default();
        let text = step
            .line
            .replace("{recall}", &draft.request.recall.replace("{handle}", &handle))
            .replace("{count}", &(to - from).to_string())
            .replace("{tokens}", &super::outputs::thousands(tokens))
            .replace("{words}", &words(&prompt));
        let line = Message::text(Role::User, Kind::Marker, text.as_str());
        if draft.counter.message(&line) >= tokens {
            continue;
        }
        let why = format!("the turn is finished and not among the newest {}", step.keep_turns);
        draft.message_ops.push(Op::Collapse { from: first, to: last + 1, text, handle, tokens, why });
        lines.push((from, to, line));
    }
    if !lines.is_empty() {
        let mut items = std::mem::take(&mut draft.items).into_iter();
        let mut at = 0;
        for (from, to, line) in lines {
            draft.items.extend(items.by_ref().take(from - at));
            draft.items.push(Segment::Made(line));
            items.by_ref().take(to - from).for_each(drop);
            at = to;
        }
        draft.items.extend(items);
        return Ok(());
    }
    let text = format!("{} turns; the newest {} stay as they are", starts.len(), step.keep_turns);
    Err(Reason::new("nothing_to_compact", text))
}

/// The first words of a text, on one line.
fn words(text: &str) -> String {
    let flat: Vec<&str> = text.split_whitespace().collect();
    let flat = flat.join(" ");
    match flat.char_indices().nth(WORDS) {
        Some((at, _)) => format!("{}…", &flat[..at]),
        None => flat,
    }
}

/// Messages as readable, searchable text: what is archived for a collapsed turn.
pub fn transcript(messages: &[Message]) -> String {
    let mut out = String::new();
    for message in messages {
        let role = message.role.name();
        for part in &message.parts {
            let text = match part {
                Part::Text(text) => format!("[{role}] {}", text.as_str()),
                Part::Reasoning(it) => format!("[{role}, thinking] {}", it.text.as_str()),
                Part::Call(it) => format!("[{role}, call {}] {} {}", it.id, it.name, it.input.as_str()),
                Part::Output(it) => format!("[output of {}] {}", it.id, it.text.as_str()),
                Part::Media(it) => format!("[{role}, attached {}]", it.mime),
                Part::Opaque(it) => format!("[{role}, {} {}] {}", it.api, it.kind, it.raw.as_str()),
            };
            out.push_str(&text);
            out.push('\n');
        }
    }
    out
}
