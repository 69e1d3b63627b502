//! What a sentence orders: whether it forbids, requires or prefers something, and for how long.

use std::borrow::Cow;

use super::ascii_first::AsciiFirstRegex;
use super::cues::{CUES, Lowercased};
use crate::facts::{Polarity, Topic};

/// How a question without a question mark begins. `do it` and `can you` are orders, so they are not listed.
pub(in crate::facts) static QUESTION_START: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)^\W*(?:(?:and|but|so|also|then|ok(?:ay)?|wait),? )?(?:(?:do|does|did|have|has|are|were|should) (?:we|you|i|they|these|those|there)",
    r"|(?:does|did|has|is|was|will|would|should|can|could) (?:it|this|that|there|the|i|we|they|our|my|your)",
    r"|(?:should|does|did|is|was|are|were|would|could|has|have)n['’]?t \w+",
    r"|(?:what|why|how|when|where|who) (?:is|are|was|were|do|does|did|should|would|can|could|will|about)|how (?:much|many|come))\b",
    r"|^\W*how to\b[^:.!]*$",
    r"|^\W*(?:(?:pourquoi|est-ce que|qu['’]est-ce|por qué|warum|wieso|weshalb|зачем)\b|почему(?:[^\w-]|$)|为什么|為什麼|为何|為何|为啥|怎么会|怎麼會|なぜ(?:[^な]|$)|どうして|왜(?:[^냐곡]|$))",
));

/// The polarity of a sentence; `None` if it is not a rule.
pub(in crate::facts) fn polarity(sentence: &str) -> Option<Polarity> {
    if sentence.trim_end_matches(['"', '”', '*']).ends_with(['?', '？'])
        && !sentence.to_lowercase().starts_with("can you")
        && !sentence.to_lowercase().starts_with("could you")
    {
        return None;
    }
    // Phrases that only resemble a rule are erased; another cue in the sentence still counts.
    let lower = Lowercased::of(sentence);
    let left = CUES.not_rule.erase(&lower);
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

/// Whether a reply begins with "no" as a word of its own.
pub(in crate::facts) fn begins_with_no(reply: &str) -> bool {
    const NO: [&str; 3] = ["no", "nope", "nah"];
    let first = reply.trim_start().split(|it: char| !it.is_alphabetic()).next();
    first.is_some_and(|it| NO.iter().any(|no| it.eq_ignore_ascii_case(no)))
}

/// A "no" and then an order, whatever was asked.
pub(in crate::facts) static NO_TO_ALL: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?i)^\W*no (?:push|commit|use|try) (?:everything|all)\b");

/// What follows a "no" that answers a question, if it is an order: "no push everything". In "no push to main", it forbids.
pub(in crate::facts) fn after_no(reply: &str) -> Option<&str> {
    const ORDERS: [&str; 10] =
        ["keep", "do", "just", "go", "continue", "leave", "add", "make", "let", "please"];
    const OBJECTS: [&str; 6] = ["everything", "all", "it", "them", "that", "this"];
    let rest = begins_with_no(reply).then(|| reply.trim_start().trim_start_matches(char::is_alphabetic))?;
    let mut words = rest.split(|it: char| !it.is_alphabetic()).filter(|it| !it.is_empty());
    let (verb, object) = (words.next()?, words.next().unwrap_or_default());
    let is = |list: &[&str], word: &str| list.iter().any(|it| word.eq_ignore_ascii_case(it));
    (is(&ORDERS, verb) || is(&["push", "commit", "use", "try"], verb) && is(&OBJECTS, object)).then_some(rest)
}

/// A clause that asks why.
static WHY: AsciiFirstRegex =
    AsciiFirstRegex::new(r"^\W*(?:但是?|可是|不过|不過)?(?:为什么|為什麼|为何|為何|为啥)");

/// Whether a sentence asks, and neither a rule precedes the question nor a prohibition follows it: "Why did you push, never
/// do that".
pub(in crate::facts) fn only_asks(sentence: &str) -> bool {
    let forbids = |rest: &str| {
        let rest = rest.trim_start();
        let lower = Lowercased::of(rest);
        let lead = |before: &str| before.split_whitespace().count() <= 1 && before.is_ascii();
        CUES.forbid.around(&lower).is_some_and(|it| lead(it.0)) && polarity(rest) == Some(Polarity::Forbid)
    };
    let mut clauses = sentence.split([',', '，', '、', ';', '；']);
    let asks = |it: &&str| polarity(it).is_some() || WHY.is_match(it);
    let begins = QUESTION_START.is_match(sentence);
    let first = if begins { clauses.next() } else { clauses.find(asks) };
    (begins || first.is_some_and(|it| WHY.is_match(it))) && !clauses.any(forbids)
}

/// Words that may precede a prohibition: `and please never`.
const BEFORE_ORDER: &str = "please pls and but so then just also ok okay yes no you we i again must should shall may can will really want need to \
    make sure ensure that absolutely remember important critical note always however or if possible there is it's as";

/// Words that show that a sentence in ASCII letters is not English.
const NOT_ENGLISH: [&str; 29] = [
    "bitte", "nicht", "niemals", "kein", "keine", "und", "das", "nunca", "por", "favor", "los", "las", "que",
    "jamais", "les", "des", "est", "et", "ne", "pas", "estoy", "una", "para", "pero", "porque", "con",
    "esto", "nada", "não",
];

pub(in crate::facts) fn rule_topic(sentence: &str, polarity: Polarity) -> Topic {
    if is_standing_rule(sentence, polarity) { Topic::Constraints } else { Topic::Directives }
}

/// Whether a rule is for one request only: "for this question, only explain". False if it may hold for
/// longer, or is a list of rules.
pub(in crate::facts) fn for_one_request(rule: &str) -> bool {
    let plain = without_quotations(rule);
    let lower = Lowercased::of(&plain);
    CUES.once.is_in(&lower) && !CUES.lasting.is_in(&lower) && !rule.trim().contains([';', '；', '\n'])
}

/// Whether a rule holds beyond the task at hand. An order can; a report or a product requirement does not.
pub(in crate::facts) fn is_standing_rule(sentence: &str, polarity: Polarity) -> bool {
    /// A longer sentence with the cue "no" reports rather than forbids. Bytes.
    const SHORT: usize = 80;
    let plain = without_quotations(sentence);
    let lower = Lowercased::of(&plain);
    let left = CUES.not_rule.erase(&lower);
    let words = |text: &str| {
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '\'');
        words.filter(|it| !it.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    let title = |it: &str| it.starts_with(char::is_uppercase) && it.contains(char::is_lowercase);
    if plain.split_whitespace().count() <= 3 && plain.split_whitespace().all(title) {
        return false;
    }
    if let Some((before, _)) = CUES.standing.around(&left) {
        // "What the user must complete first" describes the product.
        let subject = before.split(|c: char| !c.is_alphanumeric()).rfind(|it| !it.is_empty());
        return !subject.is_some_and(|it| ["user", "users", "they", "customers"].contains(&it));
    }
    if polarity != Polarity::Forbid {
        return false;
    }
    let Some((before, from)) = CUES.forbid.around(&left) else { return false };
    let english = sentence.chars().all(|it| it.is_ascii() || !it.is_alphabetic())
        && !words(before).iter().chain(&words(from)).any(|it| NOT_ENGLISH.contains(&it.as_str()));
    // "Say why, and do not go on": only an order is joined like this.
    let joined =
        ["and ", "but ", "or ", "then ", "also "].iter().find_map(|it| from.trim_start().strip_prefix(it));
    if joined.is_some_and(|it| it.starts_with("do not") || it.starts_with("don")) {
        return true;
    }
    let clause = before.rsplit([',', ';', ':', '.', '(', '*']).next().unwrap_or_default();
    // A cue may begin with the semicolon that ends the clause before it.
    let clause = if from.starts_with(';') { "" } else { clause };
    // "No longer need" is a decision.
    let free = from.trim_start().starts_with("no longer need");
    if free || clause.trim().is_empty() && from.trim_start().starts_with("without") {
        return false;
    }
    let reports = from.trim_start().starts_with("no ") && sentence.len() > SHORT;
    !english || !reports && words(clause).iter().all(|it| BEFORE_ORDER.split(' ').any(|word| word == it))
}

/// Without quotations, which are other people's words.
pub(in crate::facts) fn without_quotations(text: &str) -> Cow<'_, str> {
    if !text.contains(['"', '“']) {
        return text.into();
    }
    let parts = text.split(['"', '“', '”']).enumerate();
    parts.map(|(at, it)| if at % 2 == 0 { it } else { " " }).collect::<String>().into()
}
