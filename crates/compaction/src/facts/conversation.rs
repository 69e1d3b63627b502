//! Facts of the conversation: the goal, rules, decisions, requests, open questions, the model's findings and what it
//! gave up.

use std::sync::LazyLock;

use super::ascii_first::AsciiFirstRegex;
use super::cues::{CUES, Lowercased};
use super::handed::{Stretch, stretches};
use super::text::{bare, clip, flat, lines, sentences, shortened, unmarked};
use super::voice::{Prompt, Quote, Seen, Told};
use super::{Detail, Fact, Polarity, Topic};
use history::{History, Kind, Message, Part, Role};

/// A prompt of at most this many characters can be an answer to what the model just asked.
const ANSWER: usize = 240;

/// One that begins with a yes may say so many more.
const APPROVAL: usize = 400;

/// A rule of more characters than this is narrowed to the clause that holds its cue.
const RULE: usize = 420;

static OPTION: LazyLock<AsciiFirstRegex> = LazyLock::new(|| {
    AsciiFirstRegex::new(
        r"(?i)^\W*(?:(?:let'?s )?(?:go|do|take|use|pick|choose)(?: with| for)? )?(?:(?:option|approach|choice|number|plan|no\.?|#) ?)?([1-9]|[a-h])(?:\W|$)",
    )
});
static OFFER: LazyLock<AsciiFirstRegex> = LazyLock::new(|| {
    AsciiFirstRegex::new(
        r"(?mi)^\s*(?:[-*•]\s*)?[*_(]*(?:option\s+|approach\s+)?([1-9]|[a-h])[*_]*[.):\]—–-][*_]*\s+(\S.*)$",
    )
});
/// How a question begins that lost its mark. `do it` and `can you` ask for something to be done.
static ASKS: LazyLock<AsciiFirstRegex> = LazyLock::new(|| {
    AsciiFirstRegex::new(concat!(
        r"(?i)^\W*(?:(?:and|but|so|also|then|ok(?:ay)?|wait),? )?(?:(?:do|does|did|have|has|are|were|should) (?:we|you|i|they|these|those)",
        r"|(?:does|did|has|is|was|will|would|should|can|could) (?:it|this|that|there|the|i|we|they)",
        r"|(?:should|does|did|is|was|are|were|would|could|has|have)n['’]?t \w+",
        r"|(?:what|why|how|when|where|who) (?:is|are|was|were|do|does|did|should|would|can|could|will|about))\b",
    ))
});
/// How a question begins that takes up what was said, and how one is announced.
static DOUBTS: LazyLock<AsciiFirstRegex> =
    LazyLock::new(|| AsciiFirstRegex::new(r"(?i)^\W*(?:q:|(?:ok(?:ay)?|but|so|and|hm+|mh+|mm+)\b)"));
/// A question within a sentence that lost its marks.
static ASKS_WITHIN: LazyLock<AsciiFirstRegex> = LazyLock::new(|| {
    AsciiFirstRegex::new(
        r"\bIs there\b|\bAre there\b|(?i)\b(?:is there (?:like )?an?|do you (?:think|know|suggest)|can you (?:check|look|explain|reconsider))\b",
    )
});
/// How sentences begin that say nothing where they are short: "No output yet.", "Agreed."
static FILLER: LazyLock<AsciiFirstRegex> = LazyLock::new(|| {
    AsciiFirstRegex::new(concat!(
        r"(?i)^\W*(?:no|not|nothing|still|yes|ok|okay|sure|agreed|understood|got it|thanks?|thank you|great|perfect|good|right",
        r"|hello|hi|of course|certainly|sorry|i can help|i(?:'|’)?d be happy|happy to)\b",
    ))
});
/// Sentences that say of something that it is not so, as a rule.
static NEGATIVE: LazyLock<AsciiFirstRegex> =
    LazyLock::new(|| AsciiFirstRegex::new(r"(?i)^\W*(?:no|not|nothing|still)\b"));
/// Reads all that was said. `goal`: it is known already.
pub(super) fn read(history: &History, mut goal: bool) -> Vec<Fact> {
    let mut facts = Vec::new();
    let messages = history.messages();
    let mut said: Option<usize> = None;
    // What the model said since the user last spoke: a question is answered once.
    let mut fresh: Option<usize> = None;
    // Where its facts begin, until it is concluded from.
    let mut since: Option<usize> = None;
    let mut last: Option<usize> = None;
    let mut started = goal;
    for (number, message) in messages.iter().enumerate() {
        // A history may begin in the midst of the work.
        started |= message.parts.iter().any(|it| matches!(it, Part::Call(_) | Part::Output(_)));
        match (message.role, message.kind) {
            (Role::User, Kind::Said) => {
                let Some(prompt) = Prompt::of(message) else { continue };
                let parts = prompt.parts();
                let whole = parts.join("\n");
                let small = trivial(&whole);
                for part in parts {
                    if !idle(part) {
                        facts.extend(user(Topic::UserMessages, number, &prompt, part));
                    }
                    // Clients join what was said in a row: each part asks for something or does not.
                    if !trivial(part) {
                        facts.extend(user(Topic::Requests, number, &prompt, part));
                    }
                    if !goal && !trivial(part) {
                        facts.extend(user(Topic::Goal, number, &prompt, part));
                    }
                }
                goal |= !small;
                if let Some(start) = since.take()
                    && let Some(said) = said
                {
                    concluded(said, &messages[said], start, &mut facts);
                }
                ruled(number, &prompt, &mut facts);
                // What starts the work answers nothing, whatever the model asked to be polite.
                let asked = fresh.take().filter(|_| started).map(|it| &messages[it]);
                chosen(number, &prompt, asked, &mut facts);
                if started {
                    objected(number, &whole, &messages[..number], &mut facts);
                }
                started |= !small;
                if !small || last.is_none() {
                    last = Some(number);
                }
            }
            (Role::Assistant, Kind::Said) => {
                if message.texts().any(|it| !it.as_str().trim().is_empty()) {
                    (said, fresh) = (Some(number), Some(number));
                    since = Some(facts.len());
                    told(number, message, &mut facts);
                }
            }
            (Role::User | Role::Assistant | Role::System | Role::Tool, _) => {}
        }
    }
    ended(history, last, said, &mut facts);
    facts
}

/// What the user said at a place of its own: the goal, a request.
fn user(topic: Topic, number: usize, prompt: &Prompt, part: &str) -> Option<Fact> {
    Some(Fact::user(topic, number, prompt.quote(part.trim())?, Detail::None))
}

/// What the model said last that it would do, and the user forbade at once: tried and given up, with the reason. From
/// what it said before that, it went on by itself.
fn objected(number: usize, prompt: &str, before: &[Message], facts: &mut Vec<Fact>) {
    let Some(no) = sentences(prompt).first().copied().filter(|it| polarity(it) == Some(Polarity::Forbid))
    else {
        return;
    };
    let stems = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|it| it.chars().count() >= 5);
        words.map(|it| it.to_lowercase().chars().take(6).collect()).collect()
    };
    let against = stems(no);
    let turn = before.iter().rev().take_while(|it| !it.is_prompt());
    let said = turn.filter(|it| it.role == Role::Assistant && it.kind == Kind::Said);
    let last = said.map(Message::plain).find(|it| !it.trim().is_empty()).unwrap_or_default();
    let meant = sentences(&last).into_iter().find(|it| {
        let own = stems(it);
        it.chars().count() <= RULE
            && CUES.announce.is_in(&Lowercased::of(it))
            && against.iter().any(|word| own.contains(word))
    });
    if let Some(meant) = meant {
        let text = format!("{} → \"{}\"", flat(meant), flat(clip(no, 200).0));
        facts.push(Fact::seen(Seen::Tried, number, text, Detail::None));
    }
}

/// Whether a prompt asks for nothing by itself: "yes", "continue", "hi".
pub(super) fn trivial(text: &str) -> bool {
    let text = text.trim();
    let count = text.chars().count();
    let greets = ["hi", "hello", "hey", "thanks", "thank you", "test", "/"];
    count <= 2
        || text.starts_with('/') && !text.contains(char::is_whitespace) && text.matches('/').count() == 1
        || greets.iter().any(|it| text.trim_end_matches(['.', '!']).eq_ignore_ascii_case(it))
        || count <= 24 && text.split_whitespace().count() <= 3 && {
            let small = Lowercased::of(text);
            CUES.approve.is_in(&small) || CUES.refuse.is_in(&small)
        }
}

/// Whether a prompt says nothing at all: a greeting alone, a command that was not typed to its end.
pub(super) fn idle(text: &str) -> bool {
    let text = text.trim();
    let plain = text.trim_end_matches(['.', '!']);
    let greets = ["hi", "hello", "hey"].iter().any(|it| plain.eq_ignore_ascii_case(it));
    greets || text.starts_with('/') && trivial(text)
}

/// Which way a sentence points, if it is a rule.
pub(super) fn polarity(sentence: &str) -> Option<Polarity> {
    if sentence.ends_with(['?', '？'])
        && !sentence.to_lowercase().starts_with("can you")
        && !sentence.to_lowercase().starts_with("could you")
    {
        return None;
    }
    // What only looks like a rule is blotted out; another cue in the sentence still counts.
    let small = Lowercased::of(sentence);
    let left = CUES.void.erase(&small);
    if CUES.forbid.is_in(&left) {
        Some(Polarity::Forbid)
    } else if CUES.require.is_in(&left) {
        Some(Polarity::Require)
    } else if CUES.prefer.is_in(&left) {
        Some(Polarity::Prefer)
    } else {
        None
    }
}

/// Words that may stand before what an order forbids: `and please never`.
const ORDERING: [&str; 44] = [
    "please",
    "pls",
    "and",
    "but",
    "so",
    "then",
    "just",
    "also",
    "ok",
    "okay",
    "yes",
    "no",
    "you",
    "we",
    "i",
    "again",
    "must",
    "should",
    "shall",
    "may",
    "can",
    "will",
    "really",
    "want",
    "need",
    "to",
    "make",
    "sure",
    "ensure",
    "that",
    "absolutely",
    "remember",
    "important",
    "critical",
    "note",
    "always",
    "however",
    "or",
    "if",
    "possible",
    "there",
    "is",
    "it's",
    "as",
];

/// Words by which a sentence is told from an English one that is written in the same letters.
const FOREIGN: [&str; 20] = [
    "bitte", "nicht", "niemals", "kein", "keine", "und", "das", "nunca", "por", "favor", "los", "las", "que",
    "jamais", "les", "des", "est", "et", "ne", "pas",
];

/// Where an order of the user belongs.
pub(super) fn order(sentence: &str, polarity: Polarity) -> Topic {
    if stands(sentence, polarity) { Topic::Constraints } else { Topic::Directives }
}

/// Whether a rule is for the one request that it stands in: "for this question, only explain". One that may hold for longer
/// is not, nor are several in one.
pub(super) fn for_one_request(rule: &str) -> bool {
    let plain = unquoted(rule);
    let small = Lowercased::of(&plain);
    CUES.once.is_in(&small) && !CUES.lasting.is_in(&small) && !rule.trim().contains([';', '；', '\n'])
}

/// Whether a rule binds what comes after the task at hand too, as an order does and a report or a wish for the product
/// does not.
fn stands(sentence: &str, polarity: Polarity) -> bool {
    /// A longer sentence that begins with "no" reports.
    const SHORT: usize = 80;
    let plain = unquoted(sentence);
    let small = Lowercased::of(&plain);
    let left = CUES.void.erase(&small);
    let words = |text: &str| {
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '\'');
        words.filter(|it| !it.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    // A heading.
    let title = |it: &str| it.starts_with(char::is_uppercase) && it.contains(char::is_lowercase);
    if plain.split_whitespace().count() <= 3 && plain.split_whitespace().all(title) {
        return false;
    }
    if CUES.standing.is_in(&left) {
        return true;
    }
    if polarity != Polarity::Forbid {
        return false;
    }
    let Some((before, from)) = CUES.forbid.around(&left) else { return false };
    let english = sentence.chars().all(|it| it.is_ascii() || !it.is_alphabetic())
        && !words(before).iter().chain(&words(from)).any(|it| FOREIGN.contains(&it.as_str()));
    // "Say why, and do not go on": nothing but an order follows so.
    let joined =
        ["and ", "but ", "or ", "then ", "also "].iter().find_map(|it| from.trim_start().strip_prefix(it));
    if joined.is_some_and(|it| it.starts_with("do not") || it.starts_with("don")) {
        return true;
    }
    let clause = before.rsplit([',', ';', ':', '.', '(', '*']).next().unwrap_or_default();
    // What is no longer needed was decided.
    let free = from.trim_start().starts_with("no longer need");
    if free || clause.trim().is_empty() && from.trim_start().starts_with("without") {
        return false;
    }
    let reports = from.trim_start().starts_with("no ") && sentence.len() > SHORT;
    !english || !reports && words(clause).iter().all(|it| ORDERING.contains(&it.as_str()))
}

/// Without what stands in quotation marks: what others say.
fn unquoted(text: &str) -> std::borrow::Cow<'_, str> {
    if !text.contains(['"', '“']) {
        return text.into();
    }
    let parts = text.split(['"', '“', '”']).enumerate();
    parts.map(|(at, it)| if at % 2 == 0 { it } else { " " }).collect::<String>().into()
}

/// Of each part of a prompt, where in it somebody begins to speak and whether that is the user: parts that hand over a
/// transcript, `[12] assistant: …`, hold much that the user did not say.
fn speakers(parts: &[&str]) -> Vec<Vec<(usize, bool)>> {
    let mut user = true;
    let mut marks = 0;
    let mut out: Vec<Vec<(usize, bool)>> = Vec::new();
    for part in parts {
        let mut turns = vec![(0, user)];
        let mut at = 0;
        for line in part.split_inclusive('\n') {
            let rest = line.strip_prefix('[').and_then(|it| it.split_once("] "));
            let said = rest.filter(|it| it.0.bytes().all(|it| it.is_ascii_digit())).map(|it| it.1);
            let turn = match said {
                Some(said) if said.starts_with("user: ") => Some(true),
                Some(said) if said.starts_with("assistant: ") || said.starts_with("tool ") => Some(false),
                _ if line.starts_with(">>> ") => Some(false),
                _ => None,
            };
            if let Some(turn) = turn {
                marks += 1;
                user = turn;
                turns.push((at, user));
            }
            at += line.len();
        }
        out.push(turns);
    }
    if marks < 2 { parts.iter().map(|_| vec![(0, true)]).collect() } else { out }
}

fn ruled(number: usize, prompt: &Prompt, facts: &mut Vec<Fact>) {
    let speakers = speakers(prompt.parts());
    let all = prompt.parts().iter().zip(&speakers).flat_map(|(part, turns)| {
        let stretches = stretches(part);
        let placed = sentences(part).into_iter().filter_map(|it| {
            let within = |text: &str| text.as_bytes().as_ptr_range().contains(&it.as_ptr());
            let kind = stretches.iter().find(|stretch| within(stretch.1)).map_or(Stretch::Typed, |it| it.0);
            let at = (it.as_ptr() as usize).saturating_sub(part.as_ptr() as usize);
            let own = turns.iter().rev().find(|turn| turn.0 <= at).is_some_and(|it| it.1);
            (own && kind != Stretch::Talk).then_some((*part, kind != Stretch::Typed, it))
        });
        placed.collect::<Vec<_>>()
    });
    // Where the last list ends: what stands in it was told with it.
    let mut told = std::ptr::null();
    for (part, handed, sentence) in all {
        let count = sentence.chars().count();
        let within = part.as_bytes().as_ptr_range();
        let listed = within.start <= told && told <= within.end && sentence.as_ptr() < told;
        if count < 5 || count < 12 && sentence.is_ascii() || listed {
            continue;
        }
        if let Some(polarity) = polarity(sentence).filter(|_| !ASKS.is_match(sentence)) {
            let topic = if handed { Topic::Directives } else { order(sentence, polarity) };
            let text = if sentence.ends_with([':', '：']) {
                // "The code should either:" is no rule without what follows.
                let Some(list) = with_items(part, sentence) else { continue };
                told = list.as_bytes().as_ptr_range().end;
                list
            } else if count > RULE {
                narrowed(sentence)
            } else {
                sentence
            };
            let quote = prompt.quote(text);
            facts.extend(quote.map(|it| Fact::user(topic, number, it, Detail::Rule(polarity))));
        }
    }
}

/// A sentence that announces a list, with the items below it: as many as a rule may be long.
fn with_items<'a>(part: &'a str, sentence: &str) -> Option<&'a str> {
    // The sentence is a piece of the part.
    let start = (sentence.as_ptr() as usize).checked_sub(part.as_ptr() as usize)?;
    let from = start + sentence.len();
    let mut end = from;
    for line in part.get(from..)?.split_inclusive('\n') {
        let body = line.trim();
        let over = end - start > 4 * RULE
            || body.len() > 4 * RULE
            || part[start..end].chars().count() + body.chars().count() > RULE;
        let item = !body.is_empty() && (over || bare(body).len() < body.len());
        if !body.is_empty() && (!item || over) {
            break;
        }
        end += line.len();
    }
    let whole = part[start..end].trim_end();
    (whole.len() > sentence.len()).then_some(whole)
}

/// The clause of a long sentence that holds its first cue.
fn narrowed(sentence: &str) -> &str {
    let small = Lowercased::of(sentence);
    let cue = [&CUES.forbid, &CUES.require, &CUES.prefer].into_iter().find_map(|it| it.find(&small));
    let Some(cue) = cue else { return clip(sentence, RULE).0 };
    let breaks = [';', '；', '—', '–', '\n', ':'];
    let start = sentence[..cue.start]
        .rfind(breaks)
        .map_or(0, |it| it + sentence[it..].chars().next().map_or(1, char::len_utf8));
    let end = sentence[cue.end..].find(breaks).map_or(sentence.len(), |it| cue.end + it);
    let clause = sentence[start..end].trim();
    if clause.chars().count() <= RULE {
        return clause;
    }
    // No punctuation to go by: some words before the cue, and the rest after it.
    let from = sentence[..cue.start].char_indices().rev().nth(120).map_or(0, |(at, _)| at);
    let from = sentence[from..cue.start].find(' ').map_or(from, |it| from + it);
    clip(sentence[from..].trim(), RULE).0
}

/// The last thing a text asks, and what it offers to choose from.
fn question(text: &str) -> Option<&str> {
    let tail = super::text::clip_end(text, 4_000);
    // Options may follow the question; prose does not.
    let last = sentences(tail).into_iter().rev().take(8);
    let mut prose = 0;
    for sentence in last {
        if asking(sentence) {
            return Some(sentence);
        }
        prose += usize::from(!OFFER.is_match(sentence) && sentence.chars().count() > 40);
        if prose > 1 {
            break;
        }
    }
    None
}

fn asking(text: &str) -> bool {
    // An emoji or a closing mark may follow.
    let mark = |it: char| !it.is_alphanumeric() && !"?？.!。！".contains(it);
    text.trim_end_matches(mark).ends_with(['?', '？'])
}

fn chosen(number: usize, prompt: &Prompt, before: Option<&Message>, facts: &mut Vec<Fact>) {
    let said = prompt.whole();
    let whole: &str = &said;
    let count = whole.chars().count();
    let short = count <= ANSWER;
    let asks = asking(whole) || ASKS.is_match(whole) || whole.starts_with('/');
    let before = before.map(Message::plain).unwrap_or_default();
    let asked = question(&before);
    let push =
        |text: Quote, asked: Option<&str>, means: Option<String>, refused: bool, facts: &mut Vec<Fact>| {
            let asked = asked.map(|it| flat(clip(it, 240).0));
            let detail = Detail::Choice { asked, means, refused, superseded: None };
            facts.push(Fact::user(Topic::Decisions, number, text, detail));
        };
    // "2", "option B", "go with the first": said of what was offered.
    if short && let Some(letter) = OPTION.captures(whole).and_then(|it| it.get(1)) {
        let alone = whole.chars().count() <= 3 || whole[..letter.start()].chars().any(char::is_alphabetic);
        let wanted = letter.as_str();
        let offers: Vec<_> = OFFER.captures_iter(&before).collect();
        let offer = offers
            .iter()
            .rev()
            .find(|it| it.get(1).is_some_and(|it| it.as_str().eq_ignore_ascii_case(wanted)));
        let single = alone
            || whole[letter.end()..].starts_with([',', '.', ')', ' '])
                && letter.as_str().chars().all(|c| c.is_ascii_digit());
        if let Some(what) = offer.filter(|_| single && offers.len() >= 2).and_then(|it| it.get(2)) {
            let means = flat(clip(what.as_str().trim_matches(['*', ' ']), 200).0).replace("**", "");
            push(said.clone(), asked, Some(means), false, facts);
            return;
        }
    }
    let small = Lowercased::of(whole);
    let (approves, refuses) = (CUES.approve.is_in(&small), CUES.refuse.is_in(&small));
    // "Ok, but what if …?" approves of nothing.
    let approves = approves && !(asks && DOUBTS.is_match(whole) && sentences(whole).len() == 1);
    if asked.is_some() && (short && !asks || approves && count <= APPROVAL) {
        // Whatever it says, it is the answer; a yes may ask further.
        push(said.clone(), asked, None, refuses && !approves, facts);
        return;
    }
    let stretches = prompt.parts().iter().flat_map(|it| stretches(it));
    let typed = stretches.filter(|it| it.0 == Stretch::Typed).flat_map(|it| sentences(it.1));
    for sentence in typed {
        // A rule is a rule, and a manual decides nothing.
        let other = sentence.chars().count() > 320
            || asking(sentence)
            || (ASKS.is_match(sentence) && !sentence.contains(", ") && !sentence.contains("et's"))
            || ASKS_WITHIN.is_match(sentence)
            || whole.len() > 2_500
            || polarity(sentence).is_some();
        let small = Lowercased::of(sentence);
        if !other
            && (CUES.choose.is_in(&small) || short && CUES.reverse.is_in(&small))
            && let Some(quote) = prompt.quote(sentence)
        {
            push(quote, None, None, false, facts);
        }
    }
}

/// What the model says of its own work.
fn told(number: usize, message: &Message, facts: &mut Vec<Fact>) {
    let mut model = |topic: Told, text: &str| facts.push(Fact::told(topic, number, run_on(&[text], 300)));
    for text in message.texts() {
        let mut found = 0;
        for sentence in sentences(text.as_str()) {
            if sentence.chars().count() < 20 || sentence.ends_with([':', '?', '？', '：']) {
                continue;
            }
            let small = Lowercased::of(sentence);
            let plans = CUES.announce.is_in(&small);
            if !plans && CUES.gave_up.is_in(&small) {
                model(Told::Tried, sentence);
            } else if CUES.untested.is_in(&small) {
                model(Told::Untested, sentence);
            } else if !plans && found < 3 && sentence.chars().count() >= 40 && CUES.found.is_in(&small) {
                found += 1;
                model(Told::Findings, sentence);
            }
        }
    }
}

/// What the model had come to when the user spoke again: the last thing it said, in place of the sentences of it that
/// are facts already (those from `start` on).
fn concluded(number: usize, message: &Message, start: usize, facts: &mut Vec<Fact>) {
    let plain = message.plain();
    let plain = unasked(&plain);
    let text = run_on(&telling(&lines(plain), 600), 600);
    // A line that announces the next step says nothing once it is taken.
    if text.chars().count() > 60 && !text.ends_with(':') && tells(plain) {
        let mut since = facts.split_off(start);
        since.retain(|it| it.topic != Topic::Findings || it.message != number);
        facts.append(&mut since);
        facts.push(Fact::told(Told::Findings, number, text));
    }
}

/// Of a text that is longer than `chars`, its first line and those that conclude: what was found, what is left, how it ends.
fn telling<'a>(all: &[&'a str], chars: usize) -> Vec<&'a str> {
    if all.iter().map(|it| it.chars().count()).sum::<usize>() <= chars {
        return all.to_vec();
    }
    let concludes = |it: &str| {
        let small = Lowercased::of(it);
        [&CUES.found, &CUES.unfinished, &CUES.finished].iter().any(|cue| cue.is_in(&small))
    };
    let last = all.len() - 1;
    let picked: Vec<&str> = all
        .iter()
        .enumerate()
        .filter(|(at, it)| *at == 0 || *at == last || concludes(it))
        .map(|it| *it.1)
        .collect();
    // A report without such words tells most where it begins.
    if picked.len() > 2 { picked } else { all.to_vec() }
}

/// Without what is asked at the end: a question is no finding.
fn unasked(text: &str) -> &str {
    let mut rest = text.trim_end();
    // Nobody asks more at once.
    for _ in 0..4 {
        let last = sentences(super::text::clip_end(rest, 1_000)).pop().filter(|it| asking(it));
        let Some(at) = last.filter(|_| asking(rest)).and_then(|it| rest.rfind(it)) else { break };
        rest = rest[..at].trim_end();
    }
    rest
}

/// Whether a text says something, beyond what the model is about to do and that it has heard.
fn tells(text: &str) -> bool {
    let idle = |it: &&str| {
        let short = it.chars().count() < 40 && !it.contains(|c: char| c.is_ascii_digit() || c == '`');
        // "Nothing was pushed yet" tells something.
        let bare = it.split_whitespace().count() <= 3 || !NEGATIVE.is_match(it);
        asking(it) || CUES.announce.is_in(&Lowercased::of(it)) || short && bare && FILLER.is_match(it)
    };
    let sentences = sentences(text);
    sentences.is_empty() || !sentences.iter().all(idle)
}

/// Sentences and bullets of the model on one line, without marks of bold text.
fn run_on(sentences: &[&str], chars: usize) -> String {
    let mut out = String::new();
    for sentence in sentences {
        if !out.is_empty() {
            out.push_str(
                if out.ends_with(['.', '!', '?', ':', ';', '…', '。', '！', '？', '：', '；']) {
                    " "
                } else {
                    "; "
                },
            );
        }
        out.push_str(&unmarked(&flat(bare(sentence))));
        if out.chars().count() > chars {
            break;
        }
    }
    let (head, cut) = clip(&out, chars);
    let head = match head.rfind('`').filter(|_| cut && head.matches('`').count() % 2 == 1) {
        Some(at) => head[..at].trim_end_matches('`').trim_end(),
        None => head,
    };
    if cut { format!("{} …", shortened(head)) } else { head.into() }
}

/// Whether a sentence of the model says that something is not done. A short line that ends with a colon is a heading.
fn unfinished(sentence: &str) -> bool {
    const HEADING: usize = 60;
    let small = Lowercased::of(sentence);
    let heads = sentence.trim_end_matches(['*', '_', ' ']).ends_with([':', '：']);
    let heading = heads && sentence.chars().count() < HEADING;
    !asking(sentence) && !heading && CUES.unfinished.is_in(&small) && !CUES.finished.is_in(&small)
}

/// What was being done where the messages up to `end` end: the last that the model said there, unless the user spoke
/// since.
pub fn last_step(history: &History, region: &std::ops::Range<usize>) -> Option<Fact> {
    let messages = history.messages().get(region.clone())?;
    let said = |it: &Message| {
        it.role == Role::Assistant
            && it.kind == Kind::Said
            && it.texts().any(|it| !it.as_str().trim().is_empty())
    };
    let at = messages.iter().rposition(|it| it.is_prompt() || said(it)).filter(|it| said(&messages[*it]))?;
    let text = stood(&messages[at].plain());
    (!text.is_empty()).then(|| Fact::told(Told::Current, region.start + at, text))
}

/// Where the work stands, as a message of the model tells it.
fn stood(plain: &str) -> String {
    run_on(&telling(&lines(plain), 800), 800)
}

/// How it ends: the latest request, what the model last said, and what it asked without an answer.
fn ended(history: &History, last: Option<usize>, said: Option<usize>, facts: &mut Vec<Fact>) {
    let messages = history.messages();
    let newest = history.last_prompt().filter(|it| Some(*it) > last);
    for number in [last, newest].into_iter().flatten() {
        let Some(prompt) = Prompt::of(&messages[number]) else { continue };
        facts.extend(prompt.parts().iter().filter_map(|part| user(Topic::Last, number, &prompt, part)));
    }
    let Some(said) = said else { return };
    let plain = messages[said].plain();
    let fact = |topic: Told, text: String| Fact::told(topic, said, text);
    if let Some(asked) = question(&plain).filter(|_| history.last_prompt().is_none_or(|it| it < said)) {
        facts.push(fact(Told::Asked, flat(clip(asked, 400).0)));
    }
    let spoken: Vec<&str> = sentences(&plain);
    let current = stood(&plain);
    if !current.is_empty() {
        facts.push(fact(Told::Current, current));
    }
    // What the user asked for since is what is open.
    if last.is_some_and(|it| it > said) {
        return;
    }
    for sentence in spoken.into_iter().filter(|it| unfinished(it)).take(6) {
        facts.push(fact(Told::Open, flat(clip(sentence, 300).0)));
    }
}
