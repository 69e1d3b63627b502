//! How words of the user and the model are quoted: typed before pasted text, and both ends of a long text.

use super::SHORT;
use crate::facts::text::regions::{CLIENT_TEXT, Region, regions};
use crate::facts::text::typed::is_slash_command;
use crate::facts::text::{clip, clip_end, flat, without_cut_announcement};
use crate::facts::{Fact, Voice, error_lines, is_bounds_heading, is_plan};

/// Words of the user or the model: the user's in quotation marks, cut in the middle so that both ends stay verbatim.
pub(super) fn words(fact: &Fact, chars: usize) -> String {
    if fact.voice() != Voice::User {
        return told(&fact.text, chars);
    }
    // The name of a slash command is the client's, so it is not quoted.
    match fact.text.split_once('\n').filter(|it| is_slash_command(it.0)) {
        Some((command, arguments)) => format!("{command} {}", quoted(arguments, chars)),
        None => quoted(&fact.text, chars),
    }
}

/// Excess characters that are not worth cutting out.
const FEW: usize = 24;

fn quoted(said: &str, chars: usize) -> String {
    let plain = without_client_text(unboxed(said));
    // A text that is nothing but a code block is quoted without its fence.
    let bare = plain.trim().strip_prefix("```").and_then(|it| it.strip_suffix("```"));
    let text = flat(bare.filter(|it| !it.contains("```")).unwrap_or(&plain));
    let (typed, pasted) = unpasted(&plain);
    let long: usize = pasted.iter().map(|it| it.text.chars().count()).sum();
    if !typed.is_empty() && long > 0 && (text.chars().count() > chars || long > ASIDE) {
        return apart(&typed, &pasted, chars);
    }
    if text.chars().count() <= chars.saturating_add(FEW) {
        // A text with quotation marks at both ends gets no others.
        let bare = text.strip_prefix('"').and_then(|it| it.strip_suffix('"')).filter(|it| !it.contains('"'));
        return format!("\"{}\"", bare.unwrap_or(&text));
    }
    let head = paired(clip(text.trim_start_matches('"'), chars * 2 / 3).0);
    let tail = clip_end(text.trim_end_matches('"'), chars / 3);
    // If the tail begins within a code span, it starts behind that span.
    let tail = match tail.find('`').filter(|_| tail.matches('`').count() % 2 == 1) {
        Some(at) => tail[at..].trim_start_matches('`').trim_start(),
        None => tail,
    };
    // Of a text that is little longer, both ends tell most.
    let much = text.chars().count() > 2 * chars;
    match much.then(|| lost_error(&plain, head, tail)).flatten() {
        Some(error) => format!("\"{head}\" … \"{error}\" … \"{tail}\""),
        None => format!("\"{head}\" … \"{tail}\""),
    }
}

/// The last line of pasted output that states an error for certain, shortened, if neither `head` nor `tail` tells it.
fn lost_error(pasted: &str, head: &str, tail: &str) -> Option<String> {
    const BEGINS: usize = 40;
    let error = flat(clip(error_lines(pasted).last()?, SHORT).0);
    let begins = clip(&error, BEGINS).0;
    (!head.contains(begins) && !tail.contains(begins)).then_some(error)
}

/// A pasted plan, shortened: how the prompt begins, the title, the subject and the bounds.
pub(super) fn outline(text: &str) -> Option<String> {
    /// Minimum characters; a shorter plan stays as it is.
    const LONG: usize = 1_000;
    /// Maximum characters of what the user typed before the plan.
    const LEAD: usize = 400;
    let begins = text.lines().find(|it| !it.trim().is_empty())?;
    let heading = |it: &str| it.starts_with('#');
    let title = text.lines().find(|it| heading(it))?;
    let planned = is_plan(text) || begins.to_lowercase().contains("plan");
    if !planned || text.chars().count() < LONG {
        return None;
    }
    let mut bounds = false;
    let bound = |it: &&str| {
        if heading(it) {
            bounds = is_bounds_heading(it);
        }
        bounds && !heading(it) && !it.trim().is_empty()
    };
    let bounds: Vec<String> = text
        .lines()
        .filter(bound)
        .take(8)
        .map(|it| format!("\"{}\"", flat(clip(it.trim(), SHORT).0)))
        .collect();
    let lead =
        if begins == title { String::new() } else { format!("\"{}\" … ", flat(clip(begins, LEAD).0)) };
    // The subject usually follows under a heading of its own.
    let after = text.split_once(title).map_or("", |it| it.1);
    let about = after.lines().skip_while(|it| it.trim().is_empty() || heading(it));
    let about = flat(&about.take_while(|it| !heading(it)).collect::<Vec<_>>().join("\n"));
    // `…` because another heading may stand between them.
    let about = format!("\"{}\" … \"{}\"", flat(clip(title, SHORT).0), clip(&about, LEAD).0);
    let bounds = if bounds.is_empty() { String::new() } else { format!("; bounds: {}", bounds.join(", ")) };
    Some(format!("{lead}{about}{bounds}{SHORTENED}"))
}

/// Suffix of words that are told in part.
pub(super) const SHORTENED: &str = " (shortened; full text through recall)";

/// A prompt without what a client wrote before it.
fn without_client_text(said: String) -> String {
    if !said.contains(CLIENT_TEXT) {
        return said;
    }
    let own = regions(&said).into_iter().filter(|it| it.0 != Region::ClientText);
    let own: String = own.map(|it| it.1).collect();
    if own.trim().is_empty() { said } else { own.trim().to_owned() }
}

/// Removes the frame that a terminal drew around copied text.
fn unboxed(text: &str) -> String {
    let frame = |c: char| ('\u{2500}'..='\u{259f}').contains(&c) || c == ' ';
    let framed = |it: &str| it.trim_start().starts_with(|c: char| c != ' ' && frame(c));
    // In lines that were joined, the frame's bars stand between words.
    if !text.lines().any(framed) && !text.contains(" ┃ ") {
        return text.to_owned();
    }
    let bare = |it: &str| if framed(it) { it.trim_matches(frame) } else { it }.replace(" ┃ ", " ");
    text.lines().map(bare).collect::<Vec<_>>().join("\n")
}

/// Maximum characters of pasted text that stay in place among the user's words.
const ASIDE: usize = 120;

/// Maximum characters of a log, from both ends: it is looked up, not read.
const LOGGED: usize = 1_200;

/// Maximum characters of a diff.
const DIFF: usize = 300;

/// Maximum characters of a harness's instructions to every model: binding ones are listed as orders.
const MANUAL: usize = 400;

/// A pasted part of a prompt.
struct Pasted {
    /// Maximum characters.
    most: usize,
    /// On one line, without fences.
    text: String,
    /// As it was pasted.
    region: String,
}

/// Typed text, then what was pasted between it (code blocks, logs): what is wanted comes first.
fn apart(typed: &[String], pasted: &[Pasted], chars: usize) -> String {
    let mut left = chars;
    let mut out = String::new();
    let mut omits = false;
    for (at, text) in typed.iter().enumerate() {
        if left == 0 {
            omits = true;
            break;
        }
        let (head, short) = clip(text, left);
        let head = if short { paired(head) } else { head };
        left = if short { 0 } else { left - text.chars().count() };
        let before = if at == 0 { "" } else { " … " };
        out.push_str(&format!("{before}\"{head}\"{}", if short { " …" } else { "" }));
    }
    for text in pasted {
        let room = left.min(text.most);
        let length = text.text.chars().count();
        if length <= room {
            out.push_str(&format!("; pasted: \"{}\"", text.text));
        } else if room >= 60 {
            // The end of a log says how it ended, so it gets more.
            let share = if text.most == LOGGED { room / 3 } else { room * 2 / 3 };
            let (head, tail) = (paired(clip(&text.text, share).0), clip_end(&text.text, room - share));
            let error = lost_error(&text.region, head, tail).map(|it| format!("\"{it}\" … "));
            out.push_str(&format!("; pasted: \"{head}\" … {}\"{tail}\"", error.unwrap_or_default()));
        } else {
            omits = true;
        }
        left = left.saturating_sub(length.min(room));
    }
    if omits {
        out.push_str(SHORTENED);
    }
    out
}

/// The typed and the pasted parts of a text, each as one line. What was pasted in one piece stays one, whatever it holds.
fn unpasted(text: &str) -> (Vec<String>, Vec<Pasted>) {
    let (mut typed, mut pasted) = (Vec::new(), Vec::<Pasted>::new());
    let mut follows_pasted = false;
    for (kind, region) in regions(text) {
        let most = match kind {
            Region::Typed => {
                let text = flat(region);
                if !text.is_empty() {
                    follows_pasted = false;
                    typed.push(text);
                }
                continue;
            }
            Region::Block | Region::Document => usize::MAX,
            Region::Diff => DIFF,
            Region::Log | Region::Transcript => LOGGED,
            Region::HarnessText | Region::ClientText => MANUAL,
        };
        // A fence may share its line with content; the language after an opening fence is not content.
        let bare = region.lines().enumerate().map(|(at, it)| match it.trim_start().strip_prefix("```") {
            Some(rest) if rest.trim().is_empty() || at == 0 && !rest.trim().contains(' ') => "",
            Some(rest) if rest.trim().contains(' ') => rest,
            Some(_) => it,
            None => it.trim_end().trim_end_matches("```"),
        });
        let text = flat(&bare.collect::<Vec<_>>().join("\n"));
        match pasted.last_mut().filter(|it| follows_pasted && it.most == most) {
            Some(before) => {
                before.text = flat(&format!("{} {text}", before.text));
                before.region.push_str(region);
            }
            None => pasted.push(Pasted { most, text, region: region.to_owned() }),
        }
        follows_pasted = true;
    }
    pasted.retain(|it| !it.text.is_empty());
    (typed, pasted)
}

pub(super) fn cut(text: &str, chars: usize) -> String {
    let flat = flat(text);
    let (head, cut) = clip(&flat, chars);
    if cut { format!("{} …", paired(head)) } else { head.into() }
}

/// Prose, cut so that it does not end by announcing what is cut; a report also keeps its last sentences.
fn told(text: &str, chars: usize) -> String {
    let flat = flat(text);
    let (head, cut) = clip(&flat, chars);
    if let Some((first, rest)) = flat.split_once(" … ").filter(|_| cut)
        && let Some(room) = chars.checked_sub(first.chars().count() + 3)
        && let Some((_, end)) = clip_end(rest, room).split_once(". ")
    {
        return format!("{first} … {end}");
    }
    if cut { format!("{} …", without_cut_announcement(paired(head))) } else { head.into() }
}

/// Removes a code span that is opened and not closed.
fn paired(text: &str) -> &str {
    match text.rfind('`').filter(|_| text.matches('`').count() % 2 == 1) {
        Some(at) => text[..at].trim_end_matches('`').trim_end(),
        None => text,
    }
}
