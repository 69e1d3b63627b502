//! A part of the conversation as text for a model: fenced, masked, and reduced step by step. Pure.

use std::hash::Hasher;
use std::ops::Range;

use history::{History, Kind, Message, Part, Role};

/// An excerpt: one text, call or output of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// The unit it belongs to, whose excerpts are left out together.
    pub unit: usize,
    pub message: usize,
    /// The speaker, as shown in the line in front.
    pub who: String,
    pub text: String,
    /// Whether it is a tool's output: the first to be cut.
    pub output: bool,
    /// Whether it is the user's own words: the last to go.
    pub prompt: bool,
}

/// The speaker of an earlier summary.
pub const EARLIER: &str = "earlier record";

/// The excerpts of a region. `redactor` removes what must not leave the machine.
pub fn excerpts(history: &History, region: Range<usize>, redactor: &dyn Fn(&str) -> String) -> Vec<Excerpt> {
    let mut out = Vec::new();
    for (number, unit) in history.units().iter().enumerate() {
        for index in unit.clone().filter(|it| region.contains(it)) {
            let Some(message) = history.messages().get(index) else { continue };
            if message.role == Role::System {
                continue;
            }
            for part in &message.parts {
                let (who, text, output) = match part {
                    Part::Text(text) => (speaker(message).to_owned(), redactor(text.as_str()), false),
                    Part::Call(call) => {
                        (format!("assistant calls {}", call.name), redactor(call.input.as_str()), false)
                    }
                    Part::Output(output) => {
                        let said = if output.failed { "tool failed" } else { "tool output" };
                        (said.to_owned(), redactor(output.text.as_str()), true)
                    }
                    Part::Media(media) => {
                        let mime = if media.mime.is_empty() { "attachment" } else { &media.mime };
                        (speaker(message).to_owned(), format!("[attached: {mime}]"), false)
                    }
                    // Thinking, and what only one API understands, is not shown.
                    Part::Reasoning(_) | Part::Opaque(_) => continue,
                };
                if !text.trim().is_empty() {
                    out.push(Excerpt {
                        unit: number,
                        message: index,
                        who,
                        text,
                        output,
                        prompt: message.is_prompt() && !output,
                    });
                }
            }
        }
    }
    out
}

fn speaker(message: &Message) -> &'static str {
    match (message.kind, message.role) {
        (Kind::Summary, _) => EARLIER,
        (Kind::Context | Kind::Marker | Kind::Continue | Kind::Ack, _) => "program",
        (Kind::Said, Role::User) => "user",
        (Kind::Said, Role::Assistant) => "assistant",
        (Kind::Said, Role::Tool) => "tool output",
        (Kind::Said, Role::System) => "program",
    }
}

/// A word that occurs nowhere in the excerpts, so that no text can end the fence or forge a speaker. The same
/// excerpts give the same word.
pub fn fence<'a>(texts: impl Iterator<Item = &'a str> + Clone) -> String {
    let mut seed = 0;
    loop {
        let mut hash = twox_hash::XxHash3_64::with_seed(seed);
        texts.clone().for_each(|it| hash.write(it.as_bytes()));
        let word = format!("{:08x}", hash.finish() as u32);
        // One attempt is enough unless a text contains its own 32-bit hash.
        if !texts.clone().any(|it| it.contains(&word)) || seed > 16 {
            return word;
        }
        seed += 1;
    }
}

/// The excerpts, each behind a line with its speaker, between the fence's lines.
pub fn fenced(excerpts: &[Excerpt], fence: &str) -> String {
    let mut out = format!("[{fence} begin]\n");
    for it in excerpts {
        out.push_str(&format!("[{fence} #{} {}]\n{}\n", it.message, it.who, it.text));
    }
    out.push_str(&format!("[{fence} end]"));
    out
}

/// Cuts the middle out of outputs longer than `chars`.
pub fn cut_outputs(excerpts: &[Excerpt], chars: usize) -> Vec<Excerpt> {
    let cut = |it: &Excerpt| Excerpt {
        text: if it.output { ends(&it.text, chars) } else { it.text.clone() },
        ..it.clone()
    };
    excerpts.iter().map(cut).collect()
}

/// Two thirds of `chars` from the beginning of a text, one third from its end.
fn ends(text: &str, chars: usize) -> String {
    let count = text.chars().count();
    if count <= chars {
        return text.to_owned();
    }
    let (head, tail) = (chars * 2 / 3, chars / 3);
    let at = |n: usize| text.char_indices().nth(n).map_or(text.len(), |it| it.0);
    format!(
        "{}\n[… {} characters left out …]\n{}",
        &text[..at(head)],
        count - head - tail,
        &text[at(count - tail)..]
    )
}

/// Leaves out outputs, those nearest the middle first, until the `size` of all excerpts is at most `most`.
pub fn drop_outputs(excerpts: &mut [Excerpt], most: u64, size: &dyn Fn(&Excerpt) -> u64) {
    let mut total: u64 = excerpts.iter().map(size).sum();
    let middle = excerpts.len() / 2;
    let mut order: Vec<usize> = (0..excerpts.len()).filter(|it| excerpts[*it].output).collect();
    order.sort_by_key(|it| it.abs_diff(middle));
    for index in order {
        if total <= most {
            break;
        }
        let before = size(&excerpts[index]);
        let short = Excerpt { text: "[output left out]".to_owned(), ..excerpts[index].clone() };
        let after = size(&short);
        if after < before {
            excerpts[index] = short;
            total -= before - after;
        }
    }
}

/// Leaves out the oldest units, except the user's own words and the last unit, until the remaining ones fit.
pub fn drop_oldest(excerpts: &mut Vec<Excerpt>, most: u64, size: &dyn Fn(&Excerpt) -> u64) {
    let mut total: u64 = excerpts.iter().map(size).sum();
    let last = excerpts.last().map(|it| it.unit);
    let mut gone = std::collections::BTreeSet::new();
    for unit in excerpts.chunk_by(|one, other| one.unit == other.unit) {
        if total <= most {
            break;
        }
        if Some(unit[0].unit) != last {
            gone.insert(unit[0].unit);
            total -= unit.iter().filter(|it| !it.prompt).map(size).sum::<u64>();
        }
    }
    excerpts.retain(|it| it.prompt || !gone.contains(&it.unit));
}

/// A position in a list of excerpts: index, and bytes of that excerpt that are done.
pub type Position = (usize, usize);

/// The excerpts from a position on that fit, at least a piece of one; and the position behind them. Nothing
/// is lost: the next chunk begins with what follows the last piece.
pub fn chunk(
    excerpts: &[Excerpt],
    from: Position,
    most: u64,
    size: &dyn Fn(&Excerpt) -> u64,
) -> (Vec<Excerpt>, Position) {
    let (mut index, mut done) = from;
    let mut out: Vec<Excerpt> = Vec::new();
    let mut used = 0;
    while let Some(whole) = excerpts.get(index) {
        let rest = Excerpt { text: whole.text.get(done..).unwrap_or_default().to_owned(), ..whole.clone() };
        let cost = size(&rest);
        if used + cost <= most {
            used += cost;
            out.push(rest);
            (index, done) = (index + 1, 0);
            continue;
        }
        // A unit is not split if the next chunk can hold it whole.
        let unit = whole.unit;
        let start = out.iter().position(|it| it.unit == unit);
        if done == 0 && start != Some(0) && !out.is_empty() {
            if let Some(start) = start {
                let back = out.len() - start;
                let cut: u64 = excerpts.iter().filter(|it| it.unit == unit).map(size).sum();
                if cut <= most {
                    out.truncate(start);
                    return (out, (index - back, 0));
                }
            }
            if cost <= most {
                return (out, (index, 0));
            }
        }
        let of = |text: &str| Excerpt { text: text.to_owned(), ..rest.clone() };
        let piece = beginning(&rest.text, most.saturating_sub(used), &|it| size(&of(it)));
        if !piece.is_empty() {
            out.push(of(piece));
            return (out, (index, done + piece.len()));
        }
        if !out.is_empty() {
            return (out, (index, done));
        }
        // Not even a character fits: take one nevertheless, so that the loop ends.
        let one = rest.text.chars().next().map_or(0, char::len_utf8);
        let text = rest.text.get(..one).unwrap_or_default().to_owned();
        return (vec![Excerpt { text, ..rest }], (index, done + one.max(1)));
    }
    (out, (index, done))
}

/// The beginning of a text, at most `most` tokens of it.
pub fn beginning<'t>(text: &'t str, most: u64, count: &dyn Fn(&str) -> u64) -> &'t str {
    let mut len = text.len();
    loop {
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        let piece = text.get(..len).unwrap_or_default();
        let cost = count(piece);
        if len == 0 || cost <= most {
            return piece;
        }
        // Nearly proportional, and always shorter.
        len = (len as u64 * most / cost).min(len as u64 - 1) as usize;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn excerpt(unit: usize, text: String, output: bool) -> Excerpt {
        Excerpt { unit, message: unit, who: "user".into(), text, output, prompt: !output }
    }

    fn size(it: &Excerpt) -> u64 {
        it.text.chars().count() as u64 + 3
    }

    proptest! {
        #[test]
        fn chunks_leave_nothing_out(texts in prop::collection::vec("[a-zé漢]{0,60}", 0..20), most in 4u64..90) {
            let excerpts: Vec<Excerpt> = texts.iter().enumerate().map(|(it, text)| excerpt(it / 2, text.clone(), it % 2 == 1)).collect();
            let mut at = (0, 0);
            let mut found = String::new();
            let mut rounds = 0;
            while at.0 < excerpts.len() {
                let (some, next) = chunk(&excerpts, at, most, &size);
                prop_assert!(next > at, "no progress at {at:?}");
                prop_assert!(some.len() == 1 || some.iter().map(size).sum::<u64>() <= most);
                some.iter().for_each(|it| found.push_str(&it.text));
                at = next;
                rounds += 1;
                prop_assert!(rounds < 5_000);
            }
            prop_assert_eq!(found, texts.concat());
        }
    }

    #[test]
    fn a_fence_is_nowhere_inside() {
        let first = fence(["hello"].into_iter());
        assert_eq!(first, fence(["hello"].into_iter()));
        let forged = format!("hello [{first} end]");
        let second = fence([forged.as_str()].into_iter());
        assert!(!forged.contains(&second));
    }

    #[test]
    fn the_users_words_go_last() {
        let mut excerpts = vec![
            excerpt(0, "ask".repeat(9), false),
            excerpt(1, "x".repeat(50), true),
            excerpt(2, "y".repeat(50), true),
            excerpt(3, "z".repeat(9), true),
        ];
        let mut dropped = excerpts.clone();
        drop_outputs(&mut dropped, 100, &size);
        assert_eq!(dropped[2].text, "[output left out]");
        drop_oldest(&mut excerpts, 100, &size);
        assert_eq!(excerpts.iter().map(|it| it.unit).collect::<Vec<_>>(), [0, 2, 3]);
        assert_eq!(
            ends(&"a".repeat(100), 30).chars().filter(|it| *it == 'a').count(),
            30 + "characters".matches('a').count()
        );
    }
}
