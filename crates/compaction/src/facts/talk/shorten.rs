//! How a long text of the model is shortened to what matters.

use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::cues::{CUES, Lowercased};
use crate::facts::text::{
    clip, ends_with_colon, flat, has_marker, offset, sentences, without_bold, without_cut_announcement,
    without_markers,
};

/// Heading of one of several points in a report: `1. **Title**`, `## 1. Title`, `P1: title`.
static NUMBERED_HEADING: AsciiFirstRegex = AsciiFirstRegex::new(
    r"^(?:[-*] )?(?:\d{1,2}[.)] \*\*|(?:#{1,6} |\*\*)\d{1,2}[.)] |(?:#{1,6} )?(?:\*\*)?\[?P\d\b)",
);

/// A line that readers look for first: a file and line number, a severity, an issue number, a fix, a table
/// row.
static SALIENT_LINE: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)\w\.[a-z]\w{0,4}:\d+|^[^\w#]*#\d+\b|^\W*(?:fix|severity):",
    r"|^\W*(?:\d+[.)]\W*)?(?:critical|blockers?|major|high)\b(?: severity)?\W|\bseverity: (?:critical|blocker|major|high)\b",
    r"|\S \| \S",
));

fn is_item(line: &str) -> bool {
    SALIENT_LINE.is_match(line) || has_marker(line) && !line.starts_with('#')
}

/// Whether a line only names places in files, and says nothing of them: "See `src/a.rs:12`, `src/b.rs:3`".
fn only_refers(line: &str) -> bool {
    static PLACE: AsciiFirstRegex = AsciiFirstRegex::new(r"\.\w+:\d+");
    const REFERS: [&str; 10] = ["see", "cf", "in", "at", "and", "ref", "refs", "参照", "参见", "見"];
    let words = line.split(|it: char| it.is_whitespace() || "、，,;".contains(it));
    let words = words.map(|it| it.trim_matches(|it: char| !it.is_alphanumeric() && it != '`'));
    let mut others = words.filter(|it| !it.is_empty() && !PLACE.is_match(it));
    PLACE.is_match(line) && others.all(|it| REFERS.contains(&it.to_lowercase().as_str()))
}

/// A short sentence that denies what the one before it says: "They don't."
static DENIES: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^(?:but )?(?:it|they|that|this|these|those|there|he|she|we|i)(?:['’](?:s|re|m|ve) not|(?: \w+)? ?(?:\w+n['’]t|cannot|not|never))(?: (?:true|right|so|the case|any ?more))?[.!]?$",
);

/// The sentences of a text. Clauses joined by semicolons stay together, and so does a short denial ("They
/// don't.") with the sentence before it: alone, they may mean something else.
pub(in crate::facts) fn statements(text: &str) -> Vec<&str> {
    let mut out: Vec<&str> = Vec::new();
    for sentence in sentences(text) {
        let from = |it: &str| offset(it, text);
        match out.last_mut() {
            Some(last)
                if (last.ends_with([';', '；']) || DENIES.is_match(sentence))
                    && !text[from(last) + last.len()..from(sentence)].contains('\n') =>
            {
                *last = &text[from(last)..from(sentence) + sentence.len()];
            }
            _ => out.push(sentence),
        }
    }
    out
}

/// The most important lines of a text, within `chars` characters, and how many list items are left out: its
/// beginning and end, headings, [`SALIENT_LINE`] lines and conclusions; without any of these, the lines from its
/// beginning on.
fn key_lines<'a>(all: &[&'a str], chars: usize) -> (Vec<KeyLine<'a>>, usize) {
    let count = |it: &str| it.chars().count() + 2;
    let whole = || (all.iter().map(|it| KeyLine { text: it, after_gap: false }).collect(), 0);
    if all.iter().map(|it| count(it)).sum::<usize>() <= chars + 2 {
        return whole();
    }
    let (ranked, has_salient) = ranked(all);
    // The first and last line may be long paragraphs.
    let share = if has_salient { chars / 4 } else { chars / 3 };
    let mut left = chars;
    let mut picked: Vec<Option<&str>> = vec![None; all.len()];
    for &(rank, at) in &ranked {
        let line = if rank < CONCLUSION_RANK { first_sentences(all[at], share) } else { all[at] };
        if count(line) <= left {
            left -= count(line);
            picked[at] = Some(line);
        }
    }
    // What each section begins with, then items.
    let begins = |at: usize| at > 0 && is_title(all[at - 1]);
    left -= fill_leads(all, left, begins, &mut picked);
    left -= fill_leads(all, left, |at| is_item(all[at]), &mut picked);
    // A report without headings and conclusions says most at its beginning; any other does not end before half of the
    // room is used.
    let is_plain = !ranked.iter().any(|it| it.0 > 1);
    let spare = if is_plain { left } else { left.saturating_sub(chars / 2) };
    left -= fill_from_the_beginning(all, spare, |it| is_plain || !is_title(it), &mut picked);
    if picked.iter().all(Option::is_none) {
        return whole();
    }
    let left = restore_headings(all, left, &mut picked);
    let left = keep_contrasts(all, left, &mut picked);
    keep_subjects(all, left, &mut picked);
    let missing = (0..all.len()).filter(|at| picked[*at].is_none() && is_item(all[*at])).count();
    drop_empty_headings(all, &mut picked);
    let mut out: Vec<KeyLine> = Vec::new();
    let (mut after_gap, mut introduced) = (false, false);
    for (line, picked) in all.iter().zip(picked) {
        if let Some(text) = picked {
            out.push(KeyLine { text, after_gap: after_gap && !out.is_empty() });
            after_gap = false;
        }
        // Items that are left out are counted, and a heading says nothing by itself; but what "because:" introduces is
        // missed.
        let needs_mark = !is_item(line) && !is_title(line) && !ends_with_colon(line);
        after_gap |= needs_mark && picked != Some(*line) || introduced && picked.is_none();
        introduced = picked.is_some_and(ends_with_colon);
    }
    (out, missing)
}

/// A line of a shortened text.
struct KeyLine<'a> {
    text: &'a str,
    /// Something other than list items is left out before it.
    after_gap: bool,
}

/// Rank of a line that states a conclusion. From this rank on, lines are kept whole or not at all.
const CONCLUSION_RANK: u8 = 4;

/// Up to this many lines marked ❌ or ⚠ are kept as what is not done; more are ordinary items.
const MAX_UNDONE_MARKS: usize = 4;

/// The lines of a long text that are worth keeping, as rank and index, the most important first, and whether
/// any of them is [`SALIENT_LINE`].
fn ranked(all: &[&str]) -> (Vec<(u8, usize)>, bool) {
    let concludes = |lower: &Lowercased| {
        let cues = [&CUES.found, &CUES.unfinished, &CUES.finished, &CUES.untested, &CUES.recommends];
        cues.iter().any(|cue| cue.is_in(lower)) && !CUES.back_reference.is_in(lower)
    };
    let lower: Vec<Lowercased> = all.iter().map(|it| Lowercased::of(it)).collect();
    // A bold label that names a defect, a cause or a decision.
    let labelled = |it: &str| {
        let label = without_markers(it).strip_prefix("**").and_then(|it| it.split_once("**"));
        label.is_some_and(|(label, _)| {
            let lower = Lowercased::of(label);
            [&CUES.defect, &CUES.found, &CUES.recommends].iter().any(|cue| cue.is_in(&lower))
        })
    };
    let aside: Vec<bool> = lower.iter().map(|it| CUES.aside.is_in(it)).collect();
    let headings = all.iter().filter(|it| NUMBERED_HEADING.is_match(it)).count();
    let salient: Vec<bool> = (0..all.len())
        .map(|at| !aside[at] && SALIENT_LINE.is_match(all[at]) && !only_refers(all[at]))
        .collect();
    let has_salient = salient.contains(&true);
    let undone = all.iter().filter(|it| it.contains(['❌', '⚠'])).count();
    let (remaining, offered) = (remaining(all), offered(all));
    // Without its heading, a step that remains or is offered would seem to be done.
    let closes = |at: &usize| !aside[*at] && !remaining[*at] && !offered[*at];
    // The last items of a list conclude nothing, unless they are sentences.
    let is_sentence = |it: &str| it.ends_with(['.', '!', '。', '！']);
    let concluding = |at: &usize| closes(at) && (!is_item(all[*at]) || is_sentence(all[*at]));
    let last = (0..all.len()).rfind(concluding).or_else(|| (0..all.len()).rfind(closes)).unwrap_or(0);
    // Below a title, the first line says what it is about.
    let lead = all.iter().position(|it| !is_title(it)).unwrap_or(0);
    let rank = |at: usize, it: &str| match at {
        at if at == 0 || at == lead => Some(0),
        at if aside[at] => concludes(&lower[at]).then_some(CONCLUSION_RANK + 1),
        // What is not done, in a list where most is done.
        _ if undone <= MAX_UNDONE_MARKS && it.contains(['❌', '⚠']) => Some(1),
        at if at == last => Some(1),
        at if salient[at] || labelled(it) => Some(2),
        at if offered[at] => None,
        _ if headings > 1 && NUMBERED_HEADING.is_match(it) => Some(2),
        at if remaining[at] => Some(3),
        at if at + 1 == last => Some(if has_salient { 3 } else { 1 }),
        at => concludes(&lower[at]).then_some(CONCLUSION_RANK),
    };
    let mut ranked: Vec<(u8, usize)> =
        all.iter().enumerate().filter_map(|(at, it)| Some((rank(at, it)?, at))).collect();
    ranked.sort_unstable();
    (ranked, has_salient)
}

/// Which lines are a heading that says what remains to be done, or the first items below it.
fn remaining(all: &[&str]) -> Vec<bool> {
    /// Maximum words of such a heading, and maximum items kept below it.
    const WORDS: usize = 4;
    const ITEMS: usize = 6;
    let mut left = 0;
    let is_remaining = |line: &&str| {
        if is_title(line) || ends_with_colon(line) {
            let says =
                CUES.remaining.is_in(&Lowercased::of(line)) && !line.to_lowercase().contains("progress");
            left = if says && line.split_whitespace().count() <= WORDS { ITEMS } else { 0 };
            return left > 0;
        }
        let listed = left > 0 && is_item(line);
        left = if listed { left - 1 } else { 0 };
        listed
    };
    all.iter().map(is_remaining).collect()
}

/// The heading of a list of what the model offers to do next.
static OFFERS: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)^\W*(?:(?:possible|suggested|recommended|optional) (?:next|follow)|next (?:options?|ideas?|targets?|improvements?|enhancements?)\b|(?:further|future|potential)\b[^.:]{0,40}\(optional\)\W*$",
    r"|next steps?\b.{0,40}\b(?:optional|suggest(?:ions?|ed)|recommend(?:ations?|ed)|ideas?)\b",
    r"|if you(?:['’]d)? (?:want|like|prefer)\b|(?:do you )?want me to\b|would you like\b)",
    r"|^\W*(?:如需|如有需要|如果(?:你|您)?(?:需要|愿意|想|希望)|需要的话|必要であれば|ご希望|si (?:lo )?(?:quieres|deseas|prefieres)\b|se (?:quiser|preferir)\b)",
));

/// Which lines are a heading of offers, or the items below it.
fn offered(all: &[&str]) -> Vec<bool> {
    /// Maximum words of a heading without a mark, and characters in a language without spaces.
    const WORDS: usize = 4;
    const CHARS: usize = 15;
    let mut within = false;
    let is_offered = |line: &&str| {
        let short = if line.is_ascii() {
            line.split_whitespace().count() <= WORDS
        } else {
            line.chars().count() <= CHARS
        };
        let heading = is_title(line) || ends_with_colon(line) || short;
        within = heading && OFFERS.is_match(line) || within && is_item(line);
        within
    };
    all.iter().map(is_offered).collect()
}

/// The lines of a report without what it offers to do next: the user's next message takes an offer or does not.
pub(super) fn without_offers<'a>(all: &[&'a str]) -> Vec<&'a str> {
    all.iter().zip(offered(all)).filter(|it| !it.1).map(|it| *it.0).collect()
}

/// Whether a sentence begins with a word that qualifies the one before it or concludes from it: "But", "So".
pub(super) fn begins_with_contrast(sentence: &str) -> bool {
    CUES.turns.is_in(&Lowercased::of(sentence.lines().next().unwrap_or_default()))
}

/// Keeps a line and the next one that turns it ("But …"), or neither: the first alone may say the opposite.
/// Returns the number of characters left.
fn keep_contrasts<'a>(all: &[&'a str], mut left: usize, picked: &mut [Option<&'a str>]) -> usize {
    let count = |it: &str| it.chars().count() + 2;
    for at in 1..all.len() {
        // If the line before is already cut, the turn may be about the part left out.
        if picked[at].is_some() || picked[at - 1] != Some(all[at - 1]) || !begins_with_contrast(all[at]) {
            continue;
        }
        let line = [all[at], first_sentences(all[at], left)].into_iter().find(|it| count(it) <= left);
        left -= line.map_or(0, count);
        match line {
            Some(line) => picked[at] = Some(line),
            None if at > 1 => picked[at - 1] = None,
            None => {}
        }
    }
    left
}

/// Keeps a line that begins with an arrow only with the one before it, whose consequence it is.
fn keep_subjects<'a>(all: &[&'a str], mut left: usize, picked: &mut [Option<&'a str>]) {
    let count = |it: &str| it.chars().count() + 2;
    let arrows = (1..all.len()).filter(|at| all[*at].starts_with(['→', '⇒', '➜']));
    // From the end, since the line before may begin with an arrow, too.
    for at in arrows.clone().rev() {
        if picked[at].is_some() && picked[at - 1].is_none() {
            let subject = first_sentences(all[at - 1], left);
            if count(subject) <= left {
                left -= count(subject);
                picked[at - 1] = Some(subject);
            }
        }
    }
    for at in arrows {
        picked[at] = picked[at].filter(|_| picked[at - 1].is_some());
    }
}

/// A title: a heading, or a line that is bold and nothing else.
pub(super) fn is_title(line: &str) -> bool {
    let bold = line.strip_prefix("**").and_then(|it| it.strip_suffix("**"));
    line.starts_with('#') || bold.is_some_and(|it| !it.contains("**") && !it.ends_with(['.', '!']))
}

/// Adds the omitted headings of kept lines, which would otherwise seem to belong to the heading before.
/// Returns the number of characters left.
fn restore_headings<'a>(all: &[&'a str], mut left: usize, picked: &mut [Option<&'a str>]) -> usize {
    // `**Left as it was** (three files):`
    let heads = |it: &str| is_title(it) || it.starts_with("**") && ends_with_colon(it);
    let (mut heading_kept, mut left_out) = (false, None);
    for at in 0..all.len() {
        match picked[at] {
            Some(line) if heads(line) => (heading_kept, left_out) = (true, None),
            Some(_) if heading_kept => {
                let heading = left_out.take().filter(|it: &usize| all[*it].chars().count() + 2 <= left);
                if let Some(heading) = heading {
                    left -= all[heading].chars().count() + 2;
                    picked[heading] = Some(all[heading]);
                }
            }
            Some(_) => {}
            None if heads(all[at]) => left_out = Some(at),
            None => {}
        }
    }
    left
}

/// Whether a line says what it recommends, not only that it does: "I'd take the small pump because:".
fn recommends(line: &str) -> bool {
    /// Words of an introduction that names nothing: "My recommendation for the pump:".
    const FEW: usize = 5;
    line.split_whitespace().count() > FEW && CUES.recommends.is_in(&Lowercased::of(line))
}

/// Drops a heading or introduction without its next line, or without all that it announces ("Two causes:").
fn drop_empty_headings(all: &[&str], picked: &mut [Option<&str>]) {
    for at in (0..all.len()).rev() {
        let title = is_title(all[at]) && !NUMBERED_HEADING.is_match(all[at]);
        let depth = |it: &str| it.bytes().take_while(|it| *it == b'#').count();
        let next = picked.get(at + 1).copied().flatten();
        let empty = next.is_none_or(|it| title && is_title(it) && depth(it) <= depth(all[at]));
        let section = || all[at + 1..].iter().zip(&picked[at + 1..]).take_while(|it| !is_title(it.0));
        let fewer = |counted: usize| section().filter(|it| it.1.is_some()).count() < counted;
        let introduces = ends_with_colon(all[at]) && !recommends(all[at]);
        if (title || introduces) && (empty || counted(all[at]).is_some_and(fewer)) {
            picked[at] = None;
        }
    }
}

/// How many things a heading announces: 2 for "Two causes:".
fn counted(heading: &str) -> Option<usize> {
    static COUNT: AsciiFirstRegex = AsciiFirstRegex::new(
        r"(?i)(?:^|[\s(*])(two|three|four|five|six|seven|eight|[2-9]) (?:[\w-]+ ){0,3}[a-z]{3,}s\b",
    );
    const WORDS: [&str; 7] = ["two", "three", "four", "five", "six", "seven", "eight"];
    let word = COUNT.captures(heading)?.get(1)?.as_str().to_lowercase();
    WORDS.iter().position(|it| *it == word).map(|it| it + 2).or_else(|| word.parse().ok())
}

/// Picks the first sentences of lines for which `may` holds and that are no offers, with the lines that introduce them,
/// from the beginning on, as far as `room` characters go. Returns the number of characters used.
fn fill_leads<'a>(
    all: &[&'a str],
    room: usize,
    may: impl Fn(usize) -> bool,
    picked: &mut [Option<&'a str>],
) -> usize {
    /// Characters of a line's first sentences; a longer first sentence is picked up to `LONGEST`.
    const LEAD: usize = 120;
    const LONGEST: usize = 200;
    let count = |it: &str| it.chars().count() + 2;
    let introduces = |it: &str| is_title(it) || ends_with_colon(it);
    let offered = offered(all);
    let mut left = room;
    // The line that introduces the list: "It does not touch:" turns what its items say.
    let mut head: Option<usize> = None;
    // A list whose first item does not fit would lose its introduction.
    let mut skips = false;
    for at in 0..all.len() {
        if introduces(all[at]) || !may(at) {
            head = introduces(all[at]).then_some(at).or(head.filter(|it| is_title(all[*it])));
            skips = false;
            continue;
        }
        if skips {
            continue;
        }
        let lead = first_sentences(all[at], LEAD);
        let intro = head.filter(|it| picked[*it].is_none());
        let needed = count(lead) + intro.map_or(0, |it| count(all[it]));
        if picked[at].is_none()
            && !offered[at]
            && !only_refers(all[at])
            && count(lead) <= LONGEST
            && needed <= left
        {
            left -= needed;
            picked[at] = Some(lead);
            intro.into_iter().for_each(|it| picked[it] = Some(all[it]));
        }
        skips = picked[at].is_none() && head == at.checked_sub(1) && head.is_some();
    }
    room - left
}

/// Picks lines for which `may` holds from the beginning on, as far as `room` characters go. Returns the number of
/// characters used.
fn fill_from_the_beginning<'a>(
    all: &[&'a str],
    room: usize,
    may: impl Fn(&str) -> bool,
    picked: &mut [Option<&'a str>],
) -> usize {
    let mut left = room;
    let count = |it: &str| it.chars().count() + 2;
    for (line, picked) in all.iter().zip(picked).filter(|it| may(it.0)) {
        let known = picked.map_or(0, count);
        let more = if count(line) - known <= left { line } else { first_sentences(line, left + known) };
        if count(more) > left + known {
            break;
        }
        left = left + known - count(more);
        *picked = Some(more);
        if more.len() < line.len() {
            break;
        }
    }
    room - left
}

/// The most important lines of a report on one line of at most about `chars` characters.
pub(super) fn shortened(all: &[&str], chars: usize) -> String {
    let (kept, missing) = key_lines(all, chars);
    let text = join(kept, chars);
    match missing {
        0 => text,
        1 => format!("{text} (1 more item omitted)"),
        _ => format!("{text} ({missing} more items omitted)"),
    }
}

/// The first sentences of a line: as many as fit in `chars`, at least one.
fn first_sentences(line: &str, chars: usize) -> &str {
    // Limits the work: a longer first sentence would be dropped anyway.
    let line = clip(line, 8 * chars).0;
    let all = statements(line);
    // A sentence is not separated from the next one that turns it.
    let may_end = |at: usize| all.get(at + 1).is_none_or(|next| !begins_with_contrast(next));
    let ends = all.iter().enumerate().filter(|it| may_end(it.0));
    let ends = ends.map(|(_, it)| offset(it, line) + it.len());
    // What looks like the end of a sentence inside code in backticks is not one, nor is that of "1." and "A.".
    let ends = ends.filter(|end| line[..*end].matches('`').count().is_multiple_of(2));
    let ends = ends.filter(|end| line[..*end].chars().filter(|it| it.is_alphanumeric()).nth(1).is_some());
    let fits = |end: &usize| line[..*end].chars().count() <= chars;
    let mut ends = ends.peekable();
    let first = ends.peek().copied().unwrap_or(line.len());
    let end = ends.take_while(fits).last().unwrap_or(first);
    &line[..end]
}

/// Joins sentences and bullets on one line, without bold marks.
pub(super) fn join_sentences(sentences: &[&str], chars: usize) -> String {
    join(sentences.iter().map(|it| KeyLine { text: it, after_gap: false }), chars)
}

fn join<'a>(lines: impl IntoIterator<Item = KeyLine<'a>>, chars: usize) -> String {
    let mut out = String::new();
    let mut titled = false;
    for KeyLine { text: sentence, after_gap } in lines {
        if !out.is_empty() {
            out.push_str(if after_gap {
                " … "
            } else if out.ends_with(['.', '!', '?', ':', ';', '…', '。', '！', '？', '：', '；']) {
                " "
            } else if titled && !is_title(sentence) {
                ": "
            } else {
                "; "
            });
        }
        titled = is_title(sentence);
        let text = without_bold(&flat(without_markers(sentence)));
        out.push_str(text.trim_end_matches(['-', '–', '—', ' ']));
        if out.chars().count() > chars {
            break;
        }
    }
    let (head, cut) = clip(&out, chars);
    let head = match head.rfind('`').filter(|_| cut && head.matches('`').count() % 2 == 1) {
        Some(at) => head[..at].trim_end_matches('`').trim_end(),
        None => head,
    };
    if cut { format!("{} …", without_cut_announcement(head)) } else { head.into() }
}
